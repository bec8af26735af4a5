"""Which answers of one row are observed: a law that is public, or bounded by public numbers."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from types import MappingProxyType

from flint import arb

from reticent.balls import ball
from reticent.errors import PlanError
from reticent.privacy.missingness.means import course, mean_product
from reticent.privacy.missingness.uses import Sets
from reticent.words import nearest


@dataclass(frozen=True, slots=True)
class IndependentMask:
    """Attributes are observed independently of each other, each with at most the stated chance, whatever the row says.

    The chances are typed by the curator: a design's, or upper bounds that were released privately. What was counted
    in the table is neither.
    """

    chances: Mapping[str, Fraction] = field(hash=False)

    def __post_init__(self) -> None:
        if not self.chances:
            raise PlanError("say of each attribute how often it is observed at most.", field="observed")
        for name, chance in self.chances.items():
            _check_chance(name, chance)
        object.__setattr__(self, "chances", MappingProxyType(dict(self.chances)))

    @property
    def attributes(self) -> tuple[str, ...]:
        return tuple(self.chances)

    def mean(self, uses: Sequence[Sets], factors: Sequence[arb]) -> list[arb]:
        """The mean of the product of factors of those that use the row; one class of rows."""
        chances = {name: ball(chance) for name, chance in self.chances.items()}
        return [mean_product(uses, factors, chances, course(tuple(uses), self._named()))]

    def used(self, sets: Sets) -> Fraction:
        """The chance that a row is used, exactly."""
        zero = [Fraction(0)]  # the mean of 0^(used) is the chance of not being used
        return 1 - mean_product([sets], zero, self.chances, course((sets,), self._named()))

    def taken(self, uses: Sequence[Sets]) -> tuple[str, ...]:
        """Attributes taken as always observed because the sum would be too long; the result is a bound above then."""
        return course(tuple(uses), self._named()).taken

    def _named(self) -> tuple[tuple[str, Fraction], ...]:
        return tuple(sorted(self.chances.items()))


@dataclass(frozen=True, slots=True)
class MaskTable:
    """For each class of rows, how likely each set of observed attributes is. Bits may depend on each other.

    A class is all rows that share one law; which class a row is in may depend on its answers. Shares add up to 1.
    """

    classes: Sequence[Mapping[frozenset[str], Fraction]] = field(hash=False)

    def __post_init__(self) -> None:
        if not self.classes:
            raise PlanError("give at least one class of rows.", field="observed")
        for shares in self.classes:
            if not all(isinstance(share, Fraction) for share in shares.values()):
                raise PlanError("pass shares as exact Fractions.", field="observed")
            if any(share < 0 for share in shares.values()) or sum(shares.values()) != 1:
                raise PlanError("the shares of a class are not negative and add up to 1.", field="observed")
        kept = tuple(MappingProxyType(dict(each)) for each in self.classes)
        object.__setattr__(self, "classes", kept)

    @property
    def attributes(self) -> tuple[str, ...]:
        return tuple(sorted({name for shares in self.classes for mask in shares for name in mask}))

    def mean(self, uses: Sequence[Sets], factors: Sequence[arb]) -> list[arb]:
        """The same mean for each class of rows."""
        return [
            sum((ball(share) * _product(mask, uses, factors) for mask, share in shares.items()), arb(0))
            for shares in self.classes
        ]

    def used(self, sets: Sets) -> Fraction:
        """The chance that a row is used, in the class where it is largest."""
        return max(
            sum((share for mask, share in shares.items() if _is_used(mask, sets)), Fraction(0))
            for shares in self.classes
        )

    def deltas(self, uses: Sequence[Sets], deltas: Sequence[Fraction], factors: Sequence[arb]) -> list[arb]:
        """Both directions for each class: the mean of delta, and its mean weighted by the factors, which are e^-epsilon."""
        found = []
        for shares in self.classes:
            ways = [
                (ball(share), _product(mask, uses, factors), _total(mask, uses, deltas))
                for mask, share in shares.items()
            ]
            found.append(sum((share * delta for share, _, delta in ways), arb(0)))
            weight = sum((share * factor for share, factor, _ in ways), arb(0))
            found.append(sum((share * factor * delta for share, factor, delta in ways), arb(0)) / weight)
        return found

    def taken(self, uses: Sequence[Sets]) -> tuple[str, ...]:
        """None: every mask is gone through."""
        return ()


Law = IndependentMask | MaskTable


def check_known(uses: Iterable[Sets], law: Law) -> None:
    """Every attribute that a mechanism needs has a chance of being observed."""
    known = law.attributes
    for name in sorted({name for sets in uses for one in sets for name in one}):
        if name not in known:
            raise PlanError(
                f"nothing says how often {name[:40]!r} is observed{nearest(name, known)}", field="observed"
            )


def _check_chance(name: str, chance: object) -> None:
    if not isinstance(chance, Fraction):
        raise PlanError(
            f"of {name[:40]!r} it is no exact Fraction; a number counted in the table is confidential and no bound.",
            field="observed",
        )
    if not 0 < chance <= 1:
        raise PlanError(
            f"of {name[:40]!r} it is {chance}, but must lie above 0 and at most at 1.", field="observed"
        )


def _is_used(mask: frozenset[str], sets: Sets) -> bool:
    return any(one <= mask for one in sets)


def _product(mask: frozenset[str], uses: Sequence[Sets], factors: Sequence[arb]) -> arb:
    found = arb(1)
    for sets, factor in zip(uses, factors, strict=True):
        if _is_used(mask, sets):
            found = found * factor
    return found


def _total(mask: frozenset[str], uses: Sequence[Sets], deltas: Sequence[Fraction]) -> arb:
    return ball(sum((d for u, d in zip(uses, deltas, strict=True) if _is_used(mask, u)), Fraction(0)))
