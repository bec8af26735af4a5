"""The kinds of column, and what a text in one means: a number, a truth value, a date, or the text itself.

Every answer has an integer code: the level's number, or steps of the public grid. One rule reads a text, whatever file or
frame holds it. The meaning of a cell follows from that cell and the codebook, never from the type that a file or frame gave
the whole column: that type can hang on a single respondent. Why, and the table: docs/decisions/0015-one-reading.md. A number
is the double nearest to it, and a double means the decimal that its shortest writing shows.
"""

import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from decimal import ROUND_HALF_UP, Context, Decimal
from fractions import Fraction
from itertools import pairwise
from math import ceil, floor, gcd, lcm

from reticent.errors import PlanError, SchemaError
from reticent.exact import show
from reticent.schema.predicate import Predicate, literal_text

READING = 1  # the version of this rule; it is part of what binds a partition

BLANKS = " \t"  # all that is trimmed
LAST_WHOLE = 2**53  # up to here every whole number is a double of its own
PLACES = 12  # a number counts to so many decimals, halves away from zero

# The same patterns are matched by Python and by the engine: ASCII, no look-around.
_PLAIN = "[+-]?([0-9]+([.][0-9]*)?|[.][0-9]+)"
_VAST = "[+-]?[iI][nN][fF]([iI][nN][iI][tT][yY])?"
_PRINTED = "[+-]?[0-9]([.][0-9]*)?e[+-][0-9]{2,3}"  # as doubles are printed; the code 1E5 is none
QUANTITY = f"{_PLAIN}([eE][+-]?[0-9]+)?|{_VAST}"
CODE = f"{_PLAIN}|{_PRINTED}|{_VAST}"
MOMENT = "([0-9]{4}-[0-9]{2}-[0-9]{2})[ T]([0-9]{2}:[0-9]{2}:[0-9]{2})([.][0-9]+)?"
TRUTHS = {"true": ("true", "True", "TRUE"), "false": ("false", "False", "FALSE")}

_TRUTH_OF = {word: truth for truth, words in TRUTHS.items() for word in words}
_WIDE = Context(prec=400, rounding=ROUND_HALF_UP)


def read_quantity(text: str) -> float | None:
    """The number that a text is in a column of numbers, exponents read; None for any other text."""
    return _matched(QUANTITY, text)


def read_code(text: str) -> float | None:
    """The number that a text is among levels and identifiers, where an exponent is read as printed alone."""
    return _matched(CODE, text)


def canonical(text: str) -> str:
    """One text for all that mean the same: 17 for 017, 17.0 and 1.7e+01; true for TRUE; a day for its midnight."""
    number = read_code(text)
    if number is not None:
        return number_text(number)
    return _TRUTH_OF.get(text) or moment_text(text) or text


FOLDS = ("case", "spacing")
"""What two texts may differ in and still be one level, where the codebook says `ignore`."""


def folded(text: str, ignore: Collection[str], letters: Mapping[str, str]) -> str:
    """The text with what is ignored taken out: blanks in a row are one, none at its ends, and `letters` are small."""
    if "spacing" in ignore:
        text = re.sub(f"[{BLANKS}]+", " ", text).strip(BLANKS)
    return text.translate({ord(big): small for big, small in letters.items()}) if letters else text


def letters_of(texts: Iterable[str]) -> dict[str, str]:
    """For every letter of the texts its capital, and the small one it counts as.

    Only these: a cell with any other letter is no level, and engines disagree on the capitals of all the world.
    """
    pairs = ((char.upper(), char.lower()) for text in texts for char in text)
    return {big: small for big, small in sorted(set(pairs)) if len(big) == len(small) == 1 and big != small}


def number_text(number: float) -> str:
    """A double as its digits where it is whole and every whole number is one; else its shortest writing."""
    if abs(number) <= LAST_WHOLE and number == int(number):
        return str(int(number))
    return repr(number)


def moment_text(text: str) -> str | None:
    """A date with its time of day, without the zeros at the end; the date alone at midnight. None for other texts."""
    found = re.fullmatch(MOMENT, text)
    if found is None:
        return None
    day, time, part = found[1], found[2], (found[3] or "").rstrip("0").rstrip(".")
    return day if time + part == "00:00:00" else f"{day} {time}{part}"


def exact(number: float) -> Fraction:
    """What a finite double means: the decimal that its shortest writing shows, to twelve decimals."""
    shown = Decimal(repr(number))
    return Fraction(shown.quantize(Decimal(1).scaleb(-PLACES), context=_WIDE))


def _matched(pattern: str, text: str) -> float | None:
    plain = text.strip(BLANKS)
    return float(plain) if re.fullmatch(pattern, plain) else None


Ranges = tuple[tuple[int, int], ...]
Literal = Fraction | str

LARGEST_CODE = 2**53  # so that doubles, JSON readers and spreadsheets agree on every code
FINEST_GRID = Fraction(1, 10**12)  # text is read to twelve decimals
MOST_LEVELS = 10_000
MOST_DIGITS = 10**22  # so that rounding a cell to the grid fits 38 digits, whatever type the cell has


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """What every column has: a name of ours, the header it goes by in the file, and who is asked."""

    name: str
    source: str
    label: str = ""
    unit: str = ""
    role: str = ""
    of: str = ""
    concept: str = ""
    missing: tuple[str, ...] = ()
    universe: Predicate | None = None

    @property
    def title(self) -> str:
        return self.label or self.name


@dataclass(frozen=True, slots=True, kw_only=True)
class Identifier(Column):
    """Names a respondent. It is never asked about and never leaves. `literal`: 017 and 17 are two respondents."""

    literal: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Levels(Column):
    """A categorical or ordinal column: `levels` in order, `positions` where the order is a scale.

    A cell is the level that means the same (`schema/columns.py`); with `literal`, the one that is the same text.
    Of a primary sampling unit, `strata` names the stratum of every level; or, where levels are numbers within strata, `drawn`
    has for every stratum how many of them were drawn there; or respondents are `dealt` into so many groups by a digest, and
    the column is not in the file. No more is one that `is_first`: of the records of a household it marks one. `members` are the codes of the file that each level stands
    for, where levels are groups of them; `labels` what a reader sees in place of each; `ignore` what texts may differ in.
    Levels that are bands of a number have its edges as `bands`, one more than levels.
    """

    levels: tuple[str, ...]
    positions: tuple[Fraction, ...] = ()
    bands: tuple[Fraction, ...] = ()
    ordered: bool = False
    literal: bool = False
    labels: tuple[str, ...] = ()
    members: tuple[tuple[str, ...], ...] = ()
    ignore: tuple[str, ...] = ()
    strata: tuple[str, ...] = ()
    drawn: tuple[int, ...] = ()
    dealt: int = 0
    is_first: bool = False
    letters: Mapping[str, str] = field(init=False, repr=False, compare=False, default_factory=dict)

    def __post_init__(self) -> None:
        if "case" in self.ignore:
            object.__setattr__(self, "letters", letters_of(self.spellings))
        if not self.levels:
            raise SchemaError("has no levels; list every answer that can be given", field=self.name)
        if len(self.levels) > MOST_LEVELS:
            raise SchemaError(f"has more than {MOST_LEVELS} levels; group them", field=self.name)
        if len(self.spellings) < sum(map(len, self.members)):
            raise SchemaError("has a code in two groups; keep it in one", field=self.name)
        if len({level.strip() for level in self.levels}) < len(self.levels):
            raise SchemaError("names a level twice (white space aside); keep one", field=self.name)
        self._check_meanings()
        if set(map(self.meaning, self.spellings)) & set(map(self.meaning, self.missing)):
            raise SchemaError("has a level that is also a missing code; choose", field=self.name)
        if self.bands and len(self.bands) != len(self.levels) + 1:
            raise SchemaError(
                "needs one edge more than levels: where each band begins, and the last ends", field=self.name
            )
        if self.positions and len(self.positions) != len(self.levels):
            raise SchemaError("needs one position for each level", field=self.name)
        if any(b <= a for a, b in pairwise(self.positions)):
            raise SchemaError(
                "needs increasing positions; list the levels in order, and join levels of one position by groups",
                field=self.name,
            )
        if any(b <= a for a, b in pairwise(self.bands)):
            raise SchemaError("needs increasing edges of bands; list the levels in order", field=self.name)
        if self.bands and any(
            not low <= at <= high
            for at, (low, high) in zip(self.positions, pairwise(self.bands), strict=True)
        ):
            raise SchemaError("has a position outside its band", field=self.name)
        if self.strata and len(self.strata) != len(self.levels):
            raise SchemaError("needs one stratum for each level", field=self.name)
        if self.labels and len(self.labels) != len(self.levels):
            raise SchemaError("needs one label for each level", field=self.name)
        if any(not 0 <= count <= len(self.levels) for count in self.drawn):
            raise SchemaError("has no stratum of more units than levels, or of fewer than 0", field=self.name)

    @property
    def spellings(self) -> dict[str, int]:
        """Every text of the file that is a level, with its code: the levels themselves, or the members of groups."""
        members = self.members or tuple((level,) for level in self.levels)
        return {text: code for code, texts in enumerate(members) for text in texts}

    def folded(self, text: str) -> str:
        """The text without what the codebook says to ignore."""
        return folded(text, self.ignore, self.letters)

    def meaning(self, text: str) -> str:
        """The one text for all texts that are the same level."""
        plain = self.folded(text)
        return plain if self.literal else canonical(plain)

    def title_of(self, code: int) -> str:
        """The level as a reader sees it: its label, or the level where it has none."""
        return (self.labels[code] if self.labels else "") or self.levels[code]

    def _check_meanings(self) -> None:
        first: dict[str, str] = {}
        for level in self.spellings:
            other = first.setdefault(self.meaning(level), level)
            if other is not level:
                raise SchemaError(
                    f"has the levels {other!r} and {level!r}, which mean the same; keep one, or write text = true "
                    "where texts count letter by letter",
                    field=self.name,
                )

    @property
    def low(self) -> int:
        return 0

    @property
    def high(self) -> int:
        return len(self.levels) - 1

    @property
    def scale(self) -> "Number | None":
        """The numbers that levels stand for, on the grid that all positions lie on; None where levels have none."""
        if len(self.positions) < 2:
            return None
        return Number(
            name=self.name,
            source=self.source,
            label=self.label,
            unit=self.unit,
            lower=self.positions[0],
            upper=self.positions[-1],
            grid=self._grid,
        )

    @property
    def _grid(self) -> Fraction:
        """The largest number of which all positions are multiples."""
        below = lcm(*(each.denominator for each in self.positions))
        return Fraction(gcd(*(int(each * below) for each in self.positions)), below)

    @property
    def steps(self) -> tuple[int, ...]:
        """The positions, in steps of their grid."""
        return tuple(int(each / self._grid) for each in self.positions)

    def text(self, code: int) -> str:
        return self.levels[code]

    def matching(self, op: str, literals: tuple[Literal, ...], *, field: str) -> Ranges:
        """The codes for which `column op literals` is true. Order comparisons need an ordinal column."""
        codes = [self._code(literal, field) for literal in literals]
        if op in ("=", "in"):
            return _ranges(codes)
        if op == "!=":
            return _ranges(c for c in range(len(self.levels)) if c != codes[0])
        if not self.ordered:
            raise PlanError(f"{self.name} has no order; use = or in, or declare it ordinal", field=field)
        if op == "between" and codes[0] > codes[1]:
            raise PlanError(f"between has the later level of {self.name} first; swap the two", field=field)
        return _between(op, codes[0], codes[-1], self.low, self.high)

    def _code(self, literal: Literal, field: str) -> int:
        if isinstance(literal, str) and literal in self.levels:
            return self.levels.index(literal)
        written = literal_text(literal)
        called = [level for level, label in zip(self.levels, self.labels, strict=False) if label == literal]
        hint = f"{written} is the label of {called[0]!r}" if called else _offer(self.levels)
        raise PlanError(f"{written} is not a level of {self.name}; {hint}", field=field)


@dataclass(frozen=True, slots=True, kw_only=True)
class Number(Column):
    """A number between public bounds on a public grid; its code is the number of grid steps from zero."""

    lower: Fraction
    upper: Fraction
    grid: Fraction = Fraction(1)
    whole: bool = False

    def __post_init__(self) -> None:
        if self.grid < FINEST_GRID:
            raise SchemaError("needs a grid above zero, not finer than 1e-12", field=self.name)
        if self.lower >= self.upper:
            raise SchemaError("needs a lower bound below its upper bound", field=self.name)
        if (self.lower / self.grid).denominator != 1 or (self.upper / self.grid).denominator != 1:
            raise SchemaError("needs bounds that are whole multiples of its grid", field=self.name)
        extremes = (Fraction(self.low), Fraction(self.high), self.lower, self.upper)
        if max(abs(extreme) for extreme in extremes) > LARGEST_CODE:
            raise SchemaError("has bounds above 2^53 steps of its grid; use a coarser grid", field=self.name)
        if 2 * self.grid.denominator * (self.upper - self.lower) > MOST_DIGITS:
            raise SchemaError(
                "has a grid with too many digits for its bounds; use a rounder one", field=self.name
            )

    @property
    def low(self) -> int:
        return int(self.lower / self.grid)

    @property
    def high(self) -> int:
        return int(self.upper / self.grid)

    def text(self, code: int) -> str:
        return show(code * self.grid)

    def matching(self, op: str, literals: tuple[Literal, ...], *, field: str) -> Ranges:
        """The codes for which `column op literals` is true, by exact comparison with `code * grid`."""
        if any(isinstance(literal, str) for literal in literals):
            raise PlanError(f"{self.name} is a number; compare it with a number, without quotes", field=field)
        steps = sorted(Fraction(literal) / self.grid for literal in literals)
        if op in ("=", "!=", "in"):
            if any(s.denominator != 1 or not self.low <= s <= self.high for s in steps):
                raise PlanError(f"compares {self.name} with a value off its grid or bounds", field=field)
            same = _ranges(int(s) for s in steps)
            return _complement(same, self.low, self.high) if op == "!=" else same
        return _between(op, steps[0], steps[-1], self.low, self.high)


def _between(op: str, first: Fraction | int, last: Fraction | int, low: int, high: int) -> Ranges:
    """One inclusive range of codes for an order comparison, clipped to the column's own codes."""
    start, end = {
        "<": (low, ceil(first) - 1),
        "<=": (low, floor(first)),
        ">": (floor(first) + 1, high),
        ">=": (ceil(first), high),
        "between": (ceil(first), floor(last)),
    }[op]
    start, end = max(start, low), min(end, high)
    return ((start, end),) if start <= end else ()


def _ranges(codes: Iterable[int]) -> Ranges:
    """Sorted codes as inclusive ranges."""
    found: list[tuple[int, int]] = []
    for code in sorted(set(codes)):
        if found and found[-1][1] == code - 1:
            found[-1] = (found[-1][0], code)
        else:
            found.append((code, code))
    return tuple(found)


def _complement(ranges: Ranges, low: int, high: int) -> Ranges:
    edges = [low - 1, *(edge for r in ranges for edge in r), high + 1]
    gaps = zip(edges[::2], edges[1::2], strict=True)
    return tuple((a + 1, b - 1) for a, b in gaps if a + 1 <= b - 1)


def _offer(levels: tuple[str, ...]) -> str:
    shown = ", ".join(repr(level) for level in levels[:6])
    return f"its levels are {shown}" + (", ..." if len(levels) > 6 else "")
