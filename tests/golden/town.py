"""The rows of a made-up town, from whole numbers alone: the same on every machine, and no file has to hold them."""

from collections.abc import Iterator
from hashlib import sha256

HEADER = ("region", "tract", "age", "sex", "schooling", "employment", "hours", "wage", "rent", "weight")
REGIONS = ("coast", "hills", "valley")
SCHOOLING = ("none", "primary", "high", "college")
SILENT = {"schooling": 6, "employment": 5, "hours": 15, "wage": 20, "rent": 10}
"""Of a hundred respondents, how many do not answer."""


def rows_csv(count: int) -> str:
    """The town as a CSV file; the young are not asked about work, and every hundredth cell is no answer at all."""
    return "\n".join([",".join(HEADER), *(",".join(_row(number)) for number in range(count)), ""])


def _row(number: int) -> Iterator[str]:
    answers = _answers(number)
    lots = sha256(f"silence {number}".encode()).digest()
    for name, lot in zip(HEADER, lots, strict=False):
        yield "" if lot * 100 // 256 < SILENT.get(name, 0) else answers[name]


def _answers(number: int) -> dict[str, str]:
    dice = sha256(f"town {number}".encode()).digest()
    age = (dice[0] * 97 + dice[1] * 3) // 256
    school = min(3, dice[2] % 4 + (age > 25))
    job = 2 if age > 70 else (0, 0, 0, 1, 2)[dice[3] % 5]
    hours = 0 if job else 40 if dice[4] % 3 == 0 else 8 + dice[4] % 48
    wage = 0 if job else min(200_000, hours * (300 + 250 * school) + 90 * dice[5])
    asked = age >= 15
    return {
        "region": REGIONS[dice[6] % 3],
        "tract": str(1 + dice[7] % 7),  # nobody lives in the eighth
        "age": str(age) if dice[8] else "old",
        "sex": "fm"[dice[9] % 2],
        "schooling": SCHOOLING[school] if age >= 3 else "",
        "employment": ("employed", "unemployed", "inactive")[job] if asked else "",
        "hours": str(hours) if asked else "",
        "wage": str(wage) if asked else "",
        "rent": f"{200 + 12 * dice[10]}.{dice[11] % 100:02d}",
        "weight": f"{5 + dice[12] % 20}.5",
    }
