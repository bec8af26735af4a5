"""Refuse asks about silence in columns that models fill: after the repair nobody is silent there. Reads no row."""

from collections.abc import Sequence

from reticent.errors import PlanError
from reticent.predicate.tree import Status, statuses
from reticent.query.kinds import Derived, Proportion
from reticent.release.asks import Statistic
from reticent.release.model_repair import AnyModel


def check_silence(asks: Sequence[Statistic], models: Sequence[AnyModel]) -> None:
    """As for donors: a question about silence would always have the answer nobody. Who was asked stays as it was."""
    filled = {model.column for model in models}
    for place, ask in enumerate(asks):
        for status in _statuses(ask):
            if status.column in filled and status.kind != "structural":
                raise PlanError(
                    f"a model fills {status.column}, so after the repair nobody's is missing and {status} says "
                    "nothing; ask it in a release without this repair, or of a column that is not filled.",
                    field=f"statistic[{place}].query",
                )


def _statuses(ask: Statistic) -> list[Status]:
    if isinstance(ask.query, Derived):
        return []
    of = [ask.query.of] if isinstance(ask.query, Proportion) else []
    return [status for predicate in (ask.query.among.where, *of) for status in statuses(predicate)]
