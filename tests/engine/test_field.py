"""Places made by an engine in 64 bits are those of the field, for the largest numbers too."""

from random import Random

import duckdb
import pytest

from reticent.engine.donors.circle import PRIME
from reticent.engine.donors.field import CUBE, SQUARE, PrimeField

FIELD = PrimeField("//")
EDGES = [0, 1, 2**30, 2**31 - 1, 2**31, 2**60, PRIME - 2, PRIME - 1]


def numbers(seed: int, most: int) -> list[int]:
    dice = Random(seed)
    return [*(each for each in EDGES if each <= most), *(dice.randint(0, most) for _ in range(300)), most]


def asked(statement: str, rows: str) -> list[tuple[int, ...]]:
    return duckdb.connect().execute(f"{statement} ORDER BY i".replace("ROWS_", f"({rows})")).fetchall()


@pytest.mark.parametrize("count", [1, 2, 3, 4, 7])
def test_an_element_is_the_sum_of_all_its_terms(count: int):
    """Up to three are added before anything is reduced; the largest of all are among them."""
    columns = [numbers(seed, 2**63 - 1) for seed in range(count)]
    by = [PRIME - 1, *(Random(seed).randrange(PRIME) for seed in range(count - 1))]
    lines = ", ".join(
        f"({i}, {', '.join(map(str, row))})" for i, row in enumerate(zip(*columns, strict=True))
    )
    names = [f"x{i}" for i in range(count)]
    rows = f"SELECT * FROM (VALUES {lines}) v(i, {', '.join(names)})"
    made = FIELD.element("ROWS_", ["i", *names], PRIME - 1, list(zip(by, names, strict=True)), "z")
    found = [z for _, z in asked(f"SELECT i, z FROM ({made})", rows)]
    expected = [
        (PRIME - 1 + sum(a * x for a, x in zip(by, row, strict=True))) % PRIME
        for row in zip(*columns, strict=True)
    ]
    assert found == expected


def test_places_are_the_cubics_of_the_field():
    spots = numbers(9, PRIME - 1)
    lines = ", ".join(f"({i}, {z})" for i, z in enumerate(spots))
    rows = f"SELECT * FROM (VALUES {lines}) v(i, z)"
    powers = FIELD.powers("ROWS_", ["i", "z"], "z")
    for c in ([PRIME - 1] * 4, [Random(4).randrange(PRIME) for _ in range(4)]):
        statement = f"SELECT i, {SQUARE}, {CUBE}, {FIELD.reduced()} FROM (SELECT *, {FIELD.parts('z', c)} FROM ({powers}))"
        for z, (_, square, cube, place) in zip(spots, asked(statement, rows), strict=True):
            assert (square, cube) == (z**2 % PRIME, z**3 % PRIME)
            assert place == (c[0] + c[1] * z + c[2] * z**2 + c[3] * z**3) % PRIME


def test_adding_before_reducing_would_pass_64_bits():
    """The naive twin: products of halves as they are."""
    with pytest.raises(duckdb.Error, match="Overflow"):
        asked(
            "SELECT i, 3 * (z % 2147483648) * (z % 2147483648) + z AS p FROM ROWS_",
            f"SELECT 0 AS i, {2**31 - 1} AS z",
        )
