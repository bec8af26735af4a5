"""Sensitivity on imputed data: a query moves by at most c0 + c1 n when a donor with n donees comes or goes.

The numbers are the plan's, and sizes or centres that were released before. `c0` is the respondent's own part, `c1` what
each donee adds. A record adds its value, less a centre, if it is a member; an imputed column can change the value, the
membership, or both:

    membership changes: one of the two terms is 0, so at most the largest |Y - c| moves;
    it does not: the value moves by at most b - a, or (b - a)/K0, rounded up to the grain, for the mean of K0 donors.

Several imputed columns, each with its own hubs: one c1 for each, with the part that column plays, put together for all
the filled columns an ask rests on. Values are counted in steps, so a rounded mean of donors has a grain of `step`.
"""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from math import ceil, isqrt

from reticent.engine.wants import Ring
from reticent.errors import PlanError
from reticent.prepare.repair import Repair, Scheme
from reticent.query.filled import Role
from reticent.sensitivity.bounds import Neighbours


@dataclass(frozen=True, slots=True, kw_only=True)
class Constants:
    """c0 and c1 of THEORY 3.3."""

    c0: Fraction
    c1: Fraction

    def __post_init__(self) -> None:
        if self.c0 < 0 or self.c1 < 0:
            raise ValueError("what a respondent can move is not negative")

    def over(self, size: Fraction | int) -> "Constants":
        """Of the query divided by a public or released size, floored at 1 by whoever released it."""
        if size < 1:
            raise PlanError("it is below 1; take the larger of 1 and the released size.", field="size")
        return Constants(c0=self.c0 / size, c1=self.c1 / size)

    def weighted(self, heaviest: Fraction | int) -> "Constants":
        """With base weights of at most `heaviest`; recipients are then counted by weight, so c1 stays."""
        if heaviest <= 0:
            raise PlanError("the largest base weight is positive.", field="weight")
        return Constants(c0=self.c0 * heaviest, c1=self.c1)


@dataclass(frozen=True, slots=True, kw_only=True)
class FilledPart:
    """What an imputed column does in a query: gives the value, decides on membership, or both.

    `averaged` donors give their mean; on a `grain`, when the mean is rounded to its multiples. Nearest donor
    and majority are 1: one donor can turn the whole value.
    """

    value: bool = True
    membership: bool = False
    averaged: int = 1
    grain: Fraction | None = None

    def __post_init__(self) -> None:
        if self.averaged < 1:
            raise PlanError(f"it is {self.averaged}, but at least one donor is needed.", field="k")
        if self.grain is not None and self.grain <= 0:
            raise PlanError(f"it is {self.grain}, but must be positive.", field="grain")

    def step(self, low: Fraction, high: Fraction) -> Fraction:
        """How far the value moves when one of its donors is exchanged: 0 if it is not imputed."""
        if not self.value:
            return Fraction(0)
        step = Fraction(high - low) / self.averaged
        # floor(x/g + 1/2) - floor(y/g + 1/2) is at most ceil((x - y)/g).
        return step if self.grain is None else min(high - low, self.grain * ceil(step / self.grain))


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """Declared bounds of a column, and the public or released point it is centred on."""

    low: Fraction
    high: Fraction
    centre: Fraction = Fraction(0)

    def __post_init__(self) -> None:
        if self.low > self.high:
            raise PlanError(f"the bounds are {self.low} and {self.high}; turn them round.", field="bounds")

    @property
    def reach(self) -> Fraction:
        """The largest |Y - centre|."""
        return max(abs(self.low - self.centre), abs(self.high - self.centre))


VALUE, MEMBERSHIP = FilledPart(), FilledPart(value=False, membership=True)


def count() -> Constants:
    """The count of a predicate."""
    return Constants(c0=Fraction(1), c1=Fraction(1))


def total(span: Span, part: FilledPart = VALUE) -> Constants:
    """The sum of Y - centre over members; `over(s)` gives the mean's.

    Guarantee   the sum moves by at most c0 + c1 n when a donor with n donees comes or goes, by c0 if a recipient.
    Adjacency   one respondent added or removed.
    Theorem     THEORY 3.3.
    Proof       proofs/sensitivity/constants.md
    Assumes     values, imputed and of default donors too, lie in the span.
    Keeps back  nothing: every input is public or was released.
    """
    moved = part.step(span.low, span.high)
    return Constants(c0=span.reach, c1=max(moved, span.reach if part.membership else Fraction(0)))


def variance(span: Span, *, size: Fraction | int, part: FilledPart = VALUE) -> Constants:
    """The sum of (Y - centre)^2 over a released size less one, centre released and within the bounds.

    u^2 moves by at most w(2M - w) when |u| <= M moves by w <= M, and by at most M^2 otherwise.
    """
    if not span.low <= span.centre <= span.high:
        raise PlanError("the centre lies outside the declared bounds; clamp it.", field="centre")
    m, w = span.reach, min(part.step(span.low, span.high), span.reach)
    moved = w * (2 * m - w)
    return Constants(c0=m**2, c1=max(moved, m**2 if part.membership else Fraction(0))).over(size - 1)


def co_moment(
    y: Span,
    z: Span,
    *,
    size: Fraction | int,
    y_part: FilledPart | None = VALUE,
    z_part: FilledPart | None = None,
) -> Constants:
    """The sum of (Y - y)(Z - z) over a released size less one, for columns imputed from one set of hubs.

    A part is None where that column is not imputed, or has hubs of its own and so a call of its own.
    """
    m = y.reach * z.reach
    moved = y_part.step(y.low, y.high) * z.reach if y_part else Fraction(0)
    moved += z_part.step(z.low, z.high) * y.reach if z_part else Fraction(0)
    member = any(part.membership for part in (y_part, z_part) if part)
    return Constants(c0=m, c1=max(min(moved, 2 * m), m if member else Fraction(0))).over(size - 1)


def largest(parts: Sequence[Constants]) -> Fraction:
    """max(c0, c1) over several columns' constants: with it one bound for c0 = c1 = 1 serves the ask (THEORY 3.5a)."""
    return max(max(each.c0, each.c1) for each in parts)


@dataclass(frozen=True, slots=True, kw_only=True)
class Moves:
    """U_k = c0 + the sum over rings of c1 V_k. Without a ring no donor matters, and c0 is a global bound.

    Capped donors have no rings here: `donees` is what one record moves through those whom it serves, a public number.
    """

    c0: Fraction
    c1: tuple[tuple[Ring, Fraction], ...] = ()
    donees: Fraction = Fraction(0)

    @property
    def constants(self) -> tuple[Constants, ...]:
        """One for each ring; each repeats c0."""
        return tuple(Constants(c0=self.c0, c1=c1) for _, c1 in self.c1)

    def times(self, other: "Moves") -> Fraction | None:
        """A factor r with U_k <= r W_k on every rung, W the other's ladder over the same rings; None if there is none."""
        theirs = dict(other.c1)
        if other.c0 <= 0 or any(ring not in theirs for ring, _ in self.c1):
            return None
        return max([self.c0 / other.c0, *(c1 / theirs[ring] for ring, c1 in self.c1)])


@dataclass(frozen=True, slots=True, kw_only=True)
class Imputed:
    """The filled columns of an ask with what is made of their donors, and the largest base weight (1 for heads).

    Guarantee   without capped donors, c0 and c1 of THEORY 3.3; with them, c0 + donees bounds what one record moves.
    Adjacency   one record added or removed.
    Theorem     THEORY 3.3; 11.3 (a) and (e).
    Proof       proofs/sensitivity/capped.md
    Assumes     filled values lie in the spans, weights are at most `heaviest`.
    Keeps back  nothing: no row is read.
    """

    roles: tuple[Role, ...]
    repair: Repair
    heaviest: int = 1

    def count(self) -> Moves:
        """How many members there are."""
        return self._moves(count(), lambda roles: count() if _decides(roles) else None)

    def total(self, span: Span, *, of: str | None, step: int = 1) -> Moves:
        """The sum of Y - centre over members; Y is the column `of`, or a condition where that is None."""
        return self._moves(total(span), lambda roles: total(span, self._part(roles, of, step)))

    def squares(self, span: Span, *, of: str) -> Moves:
        """The sum of (Y - centre)^2 over members."""
        return self._moves(
            variance(span, size=2),
            lambda roles: variance(span, size=2, part=self._part(roles, of, 1)),
        )

    def products(self, y: Span, z: Span, *, of: tuple[str, str]) -> Moves:
        """The sum of (Y - y)(Z - z) over members. Columns filled from one donor move together; others each by itself."""

        def each(roles: tuple[Role, ...]) -> Constants:
            first, second = (self._part(roles, name, 1) for name in of)
            return co_moment(y, z, size=2, y_part=first, z_part=second)

        return self._moves(co_moment(y, z, size=2, y_part=None), each)

    def table(self) -> Fraction:
        """How far, in the L1 norm, capped donees move a table of members: from cell to cell, or in or out."""
        return self._served(lambda roles: Fraction(2 if any(role.value for role in roles) else 1))

    def table_length(self) -> Fraction:
        """How far one record moves a table in Euclidean length, its own row and its donees' (THEORY 11.3 b).

        At most 1 + T + E of their weight enters cells and T leaves some, T the donees that may go from cell to cell and E
        those that go in or out; two such parts in the positive quadrant are no longer than the root of the squares.
        """
        moved = self._served(lambda roles: Fraction(any(role.value for role in roles)))
        entered = self._served(lambda roles: Fraction(not any(role.value for role in roles)))
        return root_up((self.heaviest + moved + entered) ** 2 + moved**2)

    def ranks(self, at: Fraction) -> Fraction:
        """How far capped donees move the score of a candidate for the quantile `at` (see `bound_rank`)."""
        a, b = at.numerator, at.denominator
        own = max(a, b - a)

        def each(roles: tuple[Role, ...]) -> Fraction:
            if _crosses(roles):
                return Fraction(2 * own)
            return Fraction(b if any(role.value for role in roles) else own)

        return self._served(each)

    @property
    def crosses(self) -> bool:
        """Whether donees may leave one domain for another."""
        return _crosses(self.roles)

    def _part(self, roles: tuple[Role, ...], of: str | None, step: int) -> FilledPart:
        """What columns of one donor do in a sum of `of`: with None, of a condition, which one donor can turn."""
        decides = _decides(roles)
        if of is None:
            return FilledPart(value=any(role.value for role in roles), membership=decides)
        gives = any(role.value and role.column == of for role in roles)
        if self.repair.capped:
            return FilledPart(value=gives, membership=decides)
        donors = self.repair.of(roles[0].column)
        averaged = donors.k if donors.scheme is Scheme.MEAN else 1
        return FilledPart(value=gives, membership=decides, averaged=averaged, grain=Fraction(step))

    def _moves(self, own: Constants, each: Callable[[tuple[Role, ...]], Constants | None]) -> Moves:
        c0 = own.weighted(self.heaviest).c0
        if self.repair.capped:

            def moved(roles: tuple[Role, ...]) -> Fraction:
                # Out of one domain with all it counted for, and into another: THEORY 14.3.
                if _crosses(roles):
                    return 2 * own.c0
                return found.c1 if (found := each(roles)) else Fraction(0)

            return Moves(c0=c0, donees=self._served(moved))
        rings = [(role.ring, each((role,))) for role in self.roles]
        donees = [(ring, constants.c1) for ring, constants in rings if constants is not None and constants.c1]
        return Moves(c0=c0, c1=tuple(donees))

    def _served(self, c1: Callable[[tuple[Role, ...]], Fraction]) -> Fraction:
        """What one record moves through its donees: tau c1 for each group of columns that is filled from one donor."""
        found = Fraction(0)
        for group in self.repair.capped:
            reach = self.repair.reach(group)
            roles = tuple(role for role in self.roles if role.column in reach)
            found += group.serve * self.heaviest * c1(roles) if roles else 0
        return found


def root_up(square: Fraction) -> Fraction:
    """A rational at or above the square root, by at most a millionth."""
    return Fraction(isqrt(ceil(square * 10**12) - 1) + 1, 10**6) if square else Fraction(0)


def _decides(roles: tuple[Role, ...]) -> bool:
    return any(role.membership for role in roles)


def _crosses(roles: tuple[Role, ...]) -> bool:
    return any(role.domain for role in roles)


CAPPED_PAGES = (
    ("what one respondent moves through capped donors", "proofs/sensitivity/capped.md"),
    ("capped rings", "proofs/engine/capped.md"),
)
"""What a claim rests on wherever capped donors have filled something."""


def stability(repair: Repair, columns: Collection[str]) -> int:
    """One record more or less is so many in filled rows of which `columns` are seen: itself, and tau replaced.

    Guarantee   filling maps neighbours to surveys that differ by at most so many records added or removed; and, where a
                record is replaced, by at most so many replaced.
    Adjacency   one record added or removed, or replaced.
    Theorem     THEORY 11.3 (d).
    Proof       proofs/sensitivity/capped.md
    Assumes     whole rows are taken from one ring.
    Keeps back  nothing: no row is read.
    """
    return 1 + 2 * served(repair, columns)


def served(repair: Repair, columns: Collection[str]) -> int:
    """T: how many rows of others one record changes, of which `columns` are seen, in each ring of capped donors."""
    return sum(group.serve for group in repair.capped if repair.reach(group) & set(columns))


def fitted_to(own: Neighbours, donees: int, rings: int, *, of_products: bool) -> Neighbours:
    """The change in rows that a model is fitted to, the completions of all rings, `donees` by `served`.

    In each, for a record that comes or goes, it does so and `donees` others are exchanged. Sums of products move as far
    for a row that is exchanged as for one that comes or goes, so all of them are counted as exchanged; other estimators
    count an exchanged row twice. Where a record is replaced, twice as many others are exchanged.

    Guarantee   neighbours of the survey have completions that differ by no more than this change.
    Adjacency   `own`.
    Theorem     THEORY 11.2 and 11.3 (d), ring by ring.
    Proof       proofs/release/regression.md
    Assumes     with `of_products`, bounds that are the same for a row that comes, goes or is exchanged.
    Keeps back  nothing: no row is read.
    """
    if not donees:
        return own
    if own.replaced or not of_products:
        return replace(own, records=own.records * (1 + 2 * donees) * rings)
    return Neighbours(replaced=True, records=own.records * (1 + donees) * rings)
