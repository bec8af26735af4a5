"""Which rows an ask is about, when people did not answer everything."""

from dataclasses import dataclass

from reticent.engine.wants import Rows
from reticent.predicate.bind import AllOf, AnyOf, Bound, Negation, bind
from reticent.predicate.tree import Everyone, Predicate, columns_compared
from reticent.schema import Schema

AVAILABLE, COMPLETE = "available", "complete"
EVERYONE = Everyone()


@dataclass(frozen=True, slots=True, kw_only=True)
class Subpopulation:
    """A condition, the base weight that counts, and what is done about missing cells.

    `available` keeps rows that are not missing on any column the ask uses; `complete` those not missing on any
    column of the codebook. A question that was not asked is not missing.
    """

    where: Predicate = EVERYONE
    weight: str | None = None
    missing: str = AVAILABLE

    def rows(
        self, schema: Schema, *, of: Predicate | None = None, true: bool = True, values: tuple[str, ...] = ()
    ) -> Rows:
        """The rows that count. With `of`, those where it is true, or (true=False) where it is decided."""
        condition = self.bound(schema)
        compared = list(columns_compared(self.where))
        if of is not None:
            compared += columns_compared(of)
            inner = bind(of, schema.coded, field="query")
            condition = AllOf((condition, inner if true else AnyOf((inner, Negation(inner)))))
        answered = values + ((self.weight,) if self.weight else ())
        known = tuple(schema.coded) if self.missing == COMPLETE else tuple(dict.fromkeys(compared))
        return Rows(where=condition, known=known, answered=answered)

    def bound(self, schema: Schema) -> Bound:
        return bind(self.where, schema.coded, field="where")

    def words(self) -> str:
        """`among respondents with age >= 18`, for a sentence."""
        who = "all respondents" if self.where == Everyone() else f"respondents with {self.where}"
        kept = "who answered every question" if self.missing == COMPLETE else "who answered what is used here"
        weighted = f", weighted by {self.weight}" if self.weight else ""
        return f"{who} {kept}{weighted}"
