"""How far a sum on imputed data moves: c0 for a respondent's own part, and for each filled column a c1 per donee.

The constants of one column come from `reticent.sensitivity.constants`; here they are put together for all the
filled columns an ask rests on. Values are counted in steps, so a rounded mean of donors has a grain of `step`.
"""

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

from reticent.engine.wants import Ring
from reticent.prepare.donors import Repair, Scheme
from reticent.query.imputed import Role
from reticent.sensitivity import constants
from reticent.sensitivity.constants import Constants, FilledPart, Span


@dataclass(frozen=True, slots=True, kw_only=True)
class Moves:
    """U_k = c0 + the sum over rings of c1 V_k. Without a ring no donor matters, and c0 is a global bound."""

    c0: Fraction
    c1: tuple[tuple[Ring, Fraction], ...] = ()

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
    """The filled columns of an ask with what is made of their donors, and the largest base weight (1 for heads)."""

    roles: tuple[Role, ...]
    repair: Repair
    heaviest: int = 1

    def count(self) -> Moves:
        """How many members there are."""
        return self._moves(constants.count(), lambda role: constants.count() if role.membership else None)

    def total(self, span: Span, *, of: str | None, step: int = 1) -> Moves:
        """The sum of Y - centre over members; Y is the column `of`, or a condition where that is None."""
        return self._moves(
            constants.total(span), lambda role: constants.total(span, self._part(role, of, step))
        )

    def squares(self, span: Span, *, of: str) -> Moves:
        """The sum of (Y - centre)^2 over members."""
        return self._moves(
            constants.variance(span, size=2),
            lambda role: constants.variance(span, size=2, part=self._part(role, of, 1)),
        )

    def products(self, y: Span, z: Span, *, of: tuple[str, str]) -> Moves:
        """The sum of (Y - y)(Z - z) over members. Each column has hubs of its own, so each its own share."""

        def each(role: Role) -> Constants:
            first, second = (self._part(role, name, 1) for name in of)
            return constants.co_moment(y, z, size=2, y_part=first, z_part=second)

        return self._moves(constants.co_moment(y, z, size=2, y_part=None), each)

    def _part(self, role: Role, of: str | None, step: int) -> FilledPart:
        """What the role's column does in a sum of `of`: with None, of a condition, which one donor can turn."""
        if of is None:
            return FilledPart(value=role.value, membership=role.membership)
        donors = self.repair.of(role.column)
        averaged = donors.k if donors.scheme is Scheme.MEAN else 1
        return FilledPart(
            value=role.value and role.column == of,
            membership=role.membership,
            averaged=averaged,
            grain=Fraction(step),
        )

    def _moves(self, own: Constants, each: Callable[[Role], Constants | None]) -> Moves:
        found = [(role.ring, each(role)) for role in self.roles]
        donees = [(ring, constants.c1) for ring, constants in found if constants is not None and constants.c1]
        return Moves(c0=own.weighted(self.heaviest).c0, c1=tuple(donees))
