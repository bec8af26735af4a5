"""Read the `[[edit]]` and `[[impute]]` sections of a plan: edits first, then imputation by donors or by a model."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

from reticent.errors import PlanError
from reticent.prepare.donors import NO_REPAIR, Donors, Repair
from reticent.prepare.edits import Edit
from reticent.prepare.metric import distances_of, values
from reticent.release.donors import read_donors
from reticent.release.edits import read_edit
from reticent.release.model_repair import AnyModel, ModelRepair
from reticent.release.model_section import CLASSES, REGRESSION, read_model
from reticent.release.repair_words import donors_words, stand_in
from reticent.schema import Schema
from reticent.words import nearest

METHODS = ("donors", REGRESSION, CLASSES)
MOST = 100
MOST_PAIRS = 2**24  # of values to be compared, so that a plan is read within seconds
ROTATION = ("hot deck", "rotation", "sequential hot deck", "donor rotation")
WHY_NOT_ROTATION = (
    "a hot deck with donor rotation has no bound: whom a recipient gets depends on the recipients before it, so "
    "one respondent added at the front can shift everybody's donor, however few donees each donor has (Clifton "
    "and others, Figure 2); use method = 'donors', where every recipient's order is its own"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Repairs:
    """The repairs of a plan, as an engine takes them and in words."""

    repair: Repair = NO_REPAIR
    models: tuple[AnyModel, ...] = ()
    words: tuple[str, ...] = ()

    @property
    def copied(self) -> Repair:
        """What stands for columns that are filled several times, where it matters which asks rest on them."""
        return stand_in([model for model in self.models if model.copies > 1])


def read_repairs(
    imputed: Sequence[Mapping[str, Any]],
    schema: Schema,
    *,
    edited: Sequence[Mapping[str, Any]] = (),
    derived_weights: Sequence[str] = (),
) -> Repairs:
    """All edits and imputations of a plan. `derived_weights` name weights that depend on who answered."""
    if not (edited or imputed):
        return Repairs()
    for key, raw in (("edit", edited), ("impute", imputed)):
        if len(raw) > MOST:
            raise PlanError(f"has more than {MOST} entries; drop some", field=key)
    edits: list[Edit] = []
    donors: list[Donors] = []
    models: list[AnyModel] = []
    said: list[str] = []
    smooth: list[int] = []
    for place, each in enumerate(edited):
        made, words = read_edit(each, schema, f"edit[{place}]")
        edits += made
        said.append(words)
    for place, each in enumerate(imputed):
        at = f"impute[{place}]"
        if _method(each, at) != "donors":
            model = read_model(each, schema, at)
            _check_new(model, models, at)
            models.append(model)
            said.append(model.words())
        else:
            filled, smoothness = read_donors(each, schema, at)
            _check_not_filled(filled, donors, at)
            donors += filled
            smooth += [smoothness] if smoothness is not None else []
            said += [donors_words(one, schema) for one in filled]
    _check_not_both(donors, models)
    _check_copies(models)
    _check_not_chained(donors)
    _check_domains(donors, schema)
    _check_weights(donors, derived_weights)
    repair = Repair(
        edits=tuple(edits), donors=tuple(donors), key=ring_key(schema.name), smoothness=_smoothness(smooth)
    )
    return Repairs(repair=repair, models=tuple(models), words=tuple(said))


def ring_key(dataset: str) -> str:
    """The key of the donor ring: a function of the data set's public name, so that releases of one survey agree."""
    return sha256(f"reticent donor ring\n{dataset}".encode()).hexdigest()


def _method(raw: Mapping[str, Any], at: str) -> str:
    method = raw.get("method")
    if method in ROTATION:
        raise PlanError(WHY_NOT_ROTATION, field=f"{at}.method")
    if not isinstance(method, str) or method not in METHODS:
        hint = nearest(str(method)[:80], METHODS)
        raise PlanError(f"is one of {', '.join(METHODS)}{hint}", field=f"{at}.method")
    return method


def _check_new(model: AnyModel, before: Sequence[AnyModel], at: str) -> None:
    if any(each.column == model.column for each in before):
        raise PlanError(f"{model.column} is filled twice; keep one", field=f"{at}.column")


def _check_not_both(donors: Sequence[Donors], models: Sequence[AnyModel]) -> None:
    if donors and models:
        raise PlanError(
            "donors and models do not go together in one plan: no theorem bounds the two; keep one method",
            field="impute",
        )


def _check_copies(models: Sequence[AnyModel]) -> None:
    if len({model.copies for model in models if isinstance(model, ModelRepair)}) > 1:
        raise PlanError(
            "differs between lines, but a copy holds them all; say one number", field="impute.copies"
        )


def _check_not_filled(new: Sequence[Donors], before: Sequence[Donors], at: str) -> None:
    names = [each.column for each in (*before, *new)]
    if len(names) > MOST:
        raise PlanError(f"more than {MOST} columns are filled; leave some out", field=f"{at}.columns")
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise PlanError(f"{twice} is filled twice; keep one", field=f"{at}.column")


def _check_domains(donors: Sequence[Donors], schema: Schema) -> None:
    """Public: the cells to match on are counted in the codebook. Columns matched alike are looked at once."""
    alike = {(each.near, each.metric): each for each in donors}
    if sum(values(match, schema) ** 2 for near, _ in alike for match in near) > MOST_PAIRS:
        raise PlanError(
            "the attributes to match on have too many values, taken together; group them",
            field="impute.match",
        )
    for each in alike.values():
        try:
            distances_of(each, schema)
        except PlanError as problem:
            raise PlanError(str(problem.args[0]), field=f"impute.{problem.field}") from None


def _check_not_chained(donors: Sequence[Donors]) -> None:
    filled = {each.column for each in donors}
    for each in donors:
        chained = next((match.column for match in each.near if match.column in filled), None)
        if chained is not None:
            raise PlanError(
                f"{each.column} is matched on {chained}, which is imputed itself; changes would chain from donor to "
                "donor and nothing bounds them; match on columns that no donor fills",
                field="impute.match",
            )


def _check_weights(donors: Sequence[Donors], derived: Sequence[str]) -> None:
    if donors and derived:
        raise PlanError(
            f"donors do not go together with {derived[0]}, a weight that depends on who answered: nothing bounds "
            "the two together; use base weights, or missing = 'available'",
            field="impute",
        )


def _smoothness(said: Sequence[int]) -> int:
    """One number for the plan, since one bound may serve several columns."""
    if len(set(said)) > 1:
        raise PlanError(
            "differs between imputations, but one statistic may rest on several; say one",
            field="impute.smoothness",
        )
    return said[0] if said else NO_REPAIR.smoothness
