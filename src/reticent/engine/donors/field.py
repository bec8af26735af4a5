"""The field of `circle.py` in SQL, in whole numbers of 64 bits with a sign: products of halves, reduced modulo p = 2^61 - 1.

An engine keeps z, z^2 and z^3 of every record, each below p, and makes of them the places of any key. A sum of products is
made in two steps: its parts, which are columns so that each is computed once, and `reduced`, which makes one number of them.
With elements x = h 2^31 + l and y likewise, h h' is below 2^60, h l' + l h' below 2^62 and l l' below 2^62. The latter two
are reduced before up to three of them and a start, all below p, are added, so that every sum stays below 2^63. In the end
2^62 is 2, 2^61 is 1 and 2^30 2^31 is 1.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from reticent.engine.donors.circle import PRIME

HIGH, MIDDLE, LOW = "high_", "middle_", "low_"
SQUARE, CUBE = "square_", "cube_"
HALF, LOWER, AT_ONCE = 2**31, 2**30, 3


@dataclass(frozen=True, slots=True)
class PrimeField:
    """Its statements; `div` is an engine's sign for dividing whole numbers, toward zero."""

    div: str

    def element(
        self, rows: str, kept: Sequence[str], start: int, terms: Sequence[tuple[int, str]], name: str
    ) -> str:
        """The `kept` columns of rows, each x of `terms` among them, and start + a_1 x_1 + ...; every x is from 0 to 2^63 - 1."""
        found: int | str = start
        for first in range(0, len(terms), AT_ONCE):
            some = terms[first : first + AT_ONCE]
            parts = self._named([self._scaled(a, f"({x} % {PRIME})") for a, x in some], str(found))
            into = name if first + AT_ONCE >= len(terms) else f"{name}{first}_"
            rows, found = self._with(rows, kept, parts, into), into
        return rows

    def powers(self, rows: str, kept: Sequence[str], z: str) -> str:
        """The same with the second and third power of the element z, which is among them."""
        rows = self._with(rows, kept, self._named([self._product(z, z)], "0"), SQUARE)
        return self._with(rows, [*kept, SQUARE], self._named([self._product(z, SQUARE)], "0"), CUBE)

    def parts(self, z: str, c: Sequence[int]) -> str:
        """The parts of the place of z under a key's coefficients c_0 to c_3, as columns."""
        products = [self._scaled(by, x) for by, x in zip(c[1:], (z, SQUARE, CUBE), strict=True)]
        return self._named(products, str(c[0]))

    def reduced(self) -> str:
        """What the parts make up, from 0 to p - 1."""
        crossed = f"{MIDDLE} {self.div} {LOWER} + ({MIDDLE} % {LOWER}) * {HALF}"
        return f"((2 * {HIGH}) % {PRIME} + {crossed} + {LOW} % {PRIME}) % {PRIME}"

    def _with(self, rows: str, kept: Sequence[str], parts: str, into: str) -> str:
        """OFFSET 0 keeps a planner from computing a part wherever it is named."""
        names = ", ".join(kept)
        parted = f"SELECT {names}, {parts} FROM ({rows}) t OFFSET 0"
        return f"SELECT {names}, {self.reduced()} AS {into} FROM ({parted}) t OFFSET 0"

    def _named(self, products: Sequence[tuple[str, str, str]], start: str) -> str:
        """The parts of several products and a start."""
        high, middle, low = zip(*products, strict=True)
        sums = (" + ".join(high), _added(middle), _added((*low, start)))
        return ", ".join(f"{each} AS {name}" for each, name in zip(sums, (HIGH, MIDDLE, LOW), strict=True))

    def _scaled(self, by: int, x: str) -> tuple[str, str, str]:
        """The three parts of a constant times x."""
        (high, low), (h, l_) = divmod(by, HALF), self._halves(x)
        return f"{h} * {high}", f"{h} * {low} + {l_} * {high}", f"{l_} * {low}"

    def _product(self, x: str, y: str) -> tuple[str, str, str]:
        """The three parts of x y."""
        (h, l_), (high, low) = self._halves(x), self._halves(y)
        return f"{h} * {high}", f"{h} * {low} + {l_} * {high}", f"{l_} * {low}"

    def _halves(self, x: str) -> tuple[str, str]:
        return f"({x} {self.div} {HALF})", f"({x} % {HALF})"


def _added(parts: Sequence[str]) -> str:
    return " + ".join(f"({each}) % {PRIME}" for each in parts)
