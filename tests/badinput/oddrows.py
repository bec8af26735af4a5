"""The odd rows of the catalogue as data: what a cell holds, and the code it must get (None: missing).

Codes count steps of the grid: age in years within [0, 99], rent in steps of 0.5 within [-100, 1000],
sex 0 or 1. Exponents are read in all columns of numbers, because doubles are printed with them, and a column is
doubles in one frame and text in the next (docs/decisions/0015-one-reading.md).
"""

from dataclasses import dataclass

AGES = (0, 99)
RENTS = (-200, 2000)


@dataclass(frozen=True)
class Odd:
    """One odd cell: the entry of the catalogue, the column, the text, the code it must get."""

    entry: str
    column: str
    text: str
    code: int | None

    def __str__(self) -> str:
        return f"{self.entry}-{self.column}"


def _both(entry: str, text: str, age: int | None, rent: int | None) -> tuple[Odd, Odd]:
    return Odd(entry, "age", text, age), Odd(entry, "rent", text, rent)


def _silent(entry: str, text: str) -> tuple[Odd, Odd]:
    return _both(entry, text, None, None)


def _above(entry: str, text: str) -> tuple[Odd, Odd]:
    return _both(entry, text, AGES[1], RENTS[1])


NUMBERS: tuple[Odd, ...] = (
    # covers B001-B008
    *_silent("B001", "plenty"),
    *_silent("B002", ""),
    *_silent("B003", "NA"),
    *_silent("B004", "NaN"),
    *_silent("B005", "nan"),
    *_silent("B006", "None"),
    *_silent("B007", "null"),
    *_silent("B008", "."),
    # covers B009-B012
    *_above("B009", "inf"),
    *_both("B010", "-Infinity", AGES[0], RENTS[0]),
    *_above("B011", "1e308"),
    *_above("B012", "1e400"),
    *_both("B012", "-1e400", AGES[0], RENTS[0]),
    # covers B013-B017
    *_above("B013", str(2**53 + 1)),
    *_above("B014", str(2**63)),
    *_above("B015", str(2**64)),
    *_above("B016", "7" * 40),
    *_above("B017", "7" * 5000),
    *_both("B017", "-" + "7" * 5000, AGES[0], RENTS[0]),
    # covers B018-B020
    *_both("B018", "-500", AGES[0], RENTS[0]),
    *_above("B019", "100000"),
    *_both("B020", "34.5", None, 69),
    # covers B021-B025
    *_silent("B021", "34,5"),
    *_silent("B022", "1,234"),
    *_silent("B023", "1_0"),
    *_silent("B024", "0x10"),
    *_both("B025", "1e1", 10, 20),
    # covers B026-B031
    *_silent("B026", "   "),
    *_both("B027", "  34 ", 34, 68),
    *_silent("B028", "٣٤"),
    *_silent("B029", "３４"),
    *_silent("B030", "\u221234"),
    *_silent("B031", "34\u200b"),
    # covers B032-B038
    *_silent("B032", "2026-02-30"),
    *_silent("B033", "True"),
    *_silent("B034", "=1+1"),
    *_silent("B035", "50%"),
    *_silent("B036", "1; DROP TABLE rows_; --"),
    *_both("B037", "-0", 0, 0),
    *_both("B038", "5e-324", 0, 0),
)

CATEGORIES: tuple[Odd, ...] = tuple(
    Odd(entry, "sex", text, None)
    for entry, text in (
        # covers B039-B043
        ("B039", "x"),
        ("B040", ""),
        ("B041", "NA"),
        ("B042", "F"),
        ("B043", " f "),
        # covers B044-B050
        ("B044", "f\u0301"),
        ("B045", "f\u200f"),
        ("B046", "f\0"),
        ("B047", "f" * 100_000),
        ("B048", 'f"f'),
        ("B049", "f\nm"),
        ("B050", '{"sex": "f"}'),
        # covers B051-B055
        ("B051", "<script>alert('f')</script>"),
        ("B052", '=HYPERLINK("http://x","f")'),
        ("B053", "../../etc/passwd"),
        ("B054", "1"),
        ("B055", "😀"),
    )
)

# Whole lines under the header age,rent,sex,weight, with the codes of age, rent and sex of every record
# that they make (weight is looked at elsewhere).
Codes = tuple[int | None, int | None, int | None]
LINES: tuple[tuple[str, bytes, tuple[Codes, ...]], ...] = (
    # covers B058-B063
    ("B058", b"34,420.5,f", ((34, 841, 0),)),
    ("B059", b"34,420.5,f,1.25,99", ((34, 841, 0),)),
    ("B060", b"", ()),
    ("B061", b",,,", ((None, None, None),)),
    ("B062", b'34,"420.5,f,1.25', ((34, None, None),)),
    ("B063", b"34;420.5;f;1.25", ((None, None, None),)),
    # covers B064-B065
    ("B064", b"34\xff,420.5,\xe9,1.25", ((None, 841, None),)),
    ("B065", b"34\r,4\r20.5,f\r,1.25", ((None, None, None),)),
)
