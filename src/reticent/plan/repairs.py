"""Edits and imputations in a plan: `[[edit]]` and `[[impute]]`, edits first, and imputations made before the rows came here.

An edit follows from a record's own answers. What somebody else did to a file cannot be seen in it, so the plan says it:
`[survey] imputed_before = { rule = "deterministic", reach = 40 }`, where one respondent can move up to 40 filled rows beside
their own. Reads no row.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from hashlib import sha256
from typing import Any

from pydantic import Field

from reticent.answer.weighting import Weighting
from reticent.errors import PlanError, nearest
from reticent.exact import show
from reticent.files import Section, fill
from reticent.plan.donors import USUAL_DONORS, read_code, read_donors, repairable
from reticent.plan.models import CLASSES, REGRESSION, AnyModel, ModelRepair, read_model
from reticent.plan.words import capped_words, donors_words
from reticent.prepare.distance import check_repair, distances_of, values
from reticent.prepare.repair import NO_REPAIR, CappedDonors, Donors, Edit, Repair
from reticent.privacy.claim import Change, Claim
from reticent.privacy.convert import group
from reticent.schema import Levels, Number, Schema
from reticent.schema.bind import AllOf, AnyOf, Bound, Is, Negation, bind
from reticent.schema.parse import parse
from reticent.schema.predicate import Predicate, columns_used
from reticent.sensitivity.donors import served


class EditSection(Section):
    """An `[[edit]]` section: a deduction from a record's own answers.

    **Keys**

    - `if`: a filter expression.
    - `then`: the value that each column gets; `"missing"` takes an answer out.
    - `replace`: whether an answer that is there is replaced.
    """

    when: str = Field(alias="if", min_length=1)
    then: dict[str, Any] = Field(min_length=1)
    replace: bool = False


def read_edit(raw: Mapping[str, Any], schema: Schema, at: str) -> tuple[tuple[Edit, ...], str]:
    """The edits that `raw` writes down, one for each column it sets, and the rule in words."""
    section = fill(EditSection, raw, error=PlanError, at=at)
    predicate = parse(section.when, field=f"{at}.if")
    when = bind(predicate, schema.coded, field=f"{at}.if")
    _check_decided(when, schema, f"{at}.if")
    _check_order(predicate, section.then, f"{at}.then")
    edits, said = [], []
    for name, value in section.then.items():
        field = f"{at}.then.{name}"
        column = repairable(name, schema, verb="edited", field=field)
        if is_blank(value, column):
            edits.append(Edit(when=when, column=name, code=None, replaces=True))
            said.append(f"{name} was taken for missing")
            continue
        code = read_code(value, column, field=field)
        edits.append(Edit(when=when, column=name, code=code, replaces=section.replace))
        said.append(f"{name} was set to {column.text(code)}")
    only_blanks = all(edit.code is None for edit in edits)
    which = "whatever was answered" if section.replace or only_blanks else "if it was missing"
    return tuple(edits), f"where {predicate}, {' and '.join(said)}, {which}"


BLANK = "missing"


def is_blank(value: Any, column: Levels | Number) -> bool:
    """Whether an edit takes the answer out: "missing", unless the column has a level of that name."""
    return value == BLANK and not (isinstance(column, Levels) and BLANK in column.levels)


def _check_decided(when: Bound, schema: Schema, field: str) -> None:
    """Who was asked is settled after the edits, from the edited answers; no edit can look at it."""
    for status in _statuses(when):
        if status.kind == "structural" or schema.columns[status.column].universe is not None:
            raise PlanError(
                f"'{status.column} is {status.kind}' is decided after the edits, when it is known who was asked; "
                "compare answers instead",
                field=field,
            )


def _statuses(when: Bound) -> Iterator[Is]:
    match when:
        case Is():
            yield when
        case AllOf(parts=parts) | AnyOf(parts=parts):
            for part in parts:
                yield from _statuses(part)
        case Negation(part=part):
            yield from _statuses(part)


def _check_order(predicate: Predicate, then: Mapping[str, Any], field: str) -> None:
    """Several columns are set one after the other, so none of them may be what the rule asks about."""
    asked = next((name for name in then if name in columns_used(predicate)), None)
    if len(then) > 1 and asked is not None:
        raise PlanError(
            f"sets {asked}, which its own condition speaks of, beside another column; write one edit for each",
            field=field,
        )


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


def read_repairs(
    imputed: Sequence[Mapping[str, Any]],
    schema: Schema,
    *,
    edited: Sequence[Mapping[str, Any]] = (),
    weight: Weighting | None = None,
    shares: Mapping[str, Fraction] | None = None,
    rows: int | None = None,
) -> Repairs:
    """All edits and imputations of a plan, with the `weight` to known totals that it has; of the columns in `shares` so much
    is expected to be missing, among so many `rows`."""
    if not (edited or imputed):
        return Repairs()
    for key, raw in (("edit", edited), ("impute", imputed)):
        if len(raw) > MOST:
            raise PlanError(f"has more than {MOST} entries; drop some", field=key)
    edits: list[Edit] = []
    donors: list[Donors] = []
    capped: list[CappedDonors] = []
    models: list[AnyModel] = []
    standing: list[AnyModel] = []
    said: list[str] = []
    smooth: list[int] = []
    rings: list[int] = []
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
            read = read_donors(each, schema, at, shares)
            donors, capped = [*donors, *read.nearest], [*capped, *read.capped]
            _check_filled_once(donors, capped, at)
            standing += [
                replace(read_model(raw, schema, field, of_levels=of_levels), stands_in=True)
                for raw, field, of_levels in read.bought
            ]
            smooth += [read.smoothness] if read.smoothness is not None else []
            rings += [read.rings] if read.rings is not None else []
            said += [donors_words(one, schema) for one in read.nearest]
    _check_not_both(donors, capped, models)
    _check_one_bound(donors, capped)
    _check_copies(models)
    _check_domains(donors, schema)
    _check_weights(donors, capped, weight)
    repair = Repair(
        edits=tuple(edits),
        donors=tuple(donors),
        capped=tuple(capped),
        rings=_rings(rings) if capped else 1,
        follows=tuple((model.column, model.predictors) for model in models) if capped else (),
        key=ring_key(schema.name),
        smoothness=_smoothness(smooth),
    )
    _check_not_chained(repair)
    check_repair(repair, schema)
    said += [
        capped_words(group, schema, repair.rings, rows, capped[:place]) for place, group in enumerate(capped)
    ]
    said += [model.words() for model in standing]
    fitted = (_over_rings(model, repair) for model in models)
    return Repairs(repair=repair, models=(*standing, *fitted), words=tuple(said))


def _over_rings(model: AnyModel, repair: Repair) -> AnyModel:
    """A model told how many rows of others one record changes through donors who fill its predictors."""
    moved = served(repair, model.predictors)
    return replace(model, donees=moved, rings=repair.rings) if moved else model


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


def _check_not_both(
    donors: Sequence[Donors], capped: Sequence[CappedDonors], models: Sequence[AnyModel]
) -> None:
    """Models come after capped donors only, fill other columns than they do, and draw nothing."""
    if not models or not (donors or capped):
        return
    if donors:
        raise PlanError(
            "the nearest donors and models do not go together in one plan: no theorem bounds the two; leave bound = 'hubs' "
            "out, so that donors are capped, or keep one method",
            field="impute",
        )
    filled = {name for group in capped for name in group.columns}
    both = next((model.column for model in models if model.column in filled), None)
    if both is not None:
        raise PlanError(
            f"{both} is filled by donors and by a model; keep one, or let a line stand in for donors: default = "
            "{ line = [...], epsilon = '0.1' }",
            field="impute.column",
        )
    if any(model.draws or model.copies > 1 for model in models):
        raise PlanError(
            "draws about a model do not go with donors in one plan; write fill = 'predicted', or 'mode' for levels, and one "
            "copy",
            field="impute.fill",
        )


def _check_copies(models: Sequence[AnyModel]) -> None:
    if len({model.copies for model in models if isinstance(model, ModelRepair)}) > 1:
        raise PlanError(
            "differs between lines, but a copy holds them all; say one number", field="impute.copies"
        )


def _check_one_bound(donors: Sequence[Donors], capped: Sequence[CappedDonors]) -> None:
    if donors and capped:
        raise PlanError(
            f"is 'hubs' for {donors[0].column} and 'capped' for {capped[0].columns[0]}; say one for all columns of a plan",
            field="impute.bound",
        )


def _rings(said: Sequence[int]) -> int:
    """One number for the plan: one statistic may rest on several columns."""
    if len(set(said)) > 1:
        raise PlanError("differs between imputations; say one number", field="impute.donors")
    return said[0] if said else USUAL_DONORS


def _check_filled_once(donors: Sequence[Donors], capped: Sequence[CappedDonors], at: str) -> None:
    names = [*(each.column for each in donors), *(name for group in capped for name in group.columns)]
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


def _check_not_chained(repair: Repair) -> None:
    """Nobody is matched on what is filled, or predicted from it, and no default is made of it."""
    filled, capped = repair.filled(), repair.capped
    looks = [(each.column, match.column) for each in repair.donors for match in each.near]
    looks += [(group.columns[0], name) for group in capped for name in sorted(group.matched_on)]
    chained = next((each for each in looks if each[1] in filled), None)
    if chained is not None:
        raise PlanError(
            f"{chained[0]} is matched on {chained[1]}, which is imputed itself; changes would chain from donor to "
            "donor and nothing bounds them; match on columns that no donor fills",
            field="impute.match",
        )
    defaults = [each for group in capped for each in zip(group.columns, group.defaults, strict=True)]
    looked = next(((column, name) for column, each in defaults for name in each.seen if name in filled), None)
    if looked is not None:
        raise PlanError(
            f"that of {looked[0]} is made of {looked[1]}, which donors fill or decide, so it would carry changes from donor "
            "to donor; make it of columns that no donor fills, or write one value",
            field="impute.default",
        )


def _check_weights(
    donors: Sequence[Donors], capped: Sequence[CappedDonors], weight: Weighting | None
) -> None:
    """Weights that depend on who answered go with capped donors alone, by released factors, and not in what donors fill."""
    if weight is None or not (donors or capped):
        return
    if donors or weight.factors is None:
        raise PlanError(
            f"donors do not go together with {weight.name}, a weight that depends on who answered: nothing bounds the two "
            "together; write factors = { epsilon = '0.2' } under [weight] and let donors be capped, use base weights, or "
            "missing = 'available'",
            field="impute",
        )
    filled = {name for group in capped for name in group.columns}
    moved = next((key.column for key in weight.keys if key.column in filled), None)
    if moved is not None:
        raise PlanError(
            f"{moved} is filled by donors, so a recipient's factor would be that of another bin; weight by columns that "
            "nobody fills",
            field="weight.by",
        )


def _smoothness(said: Sequence[int]) -> int:
    """One number for the plan, since one bound may serve several columns."""
    if len(set(said)) > 1:
        raise PlanError(
            "differs between imputations, but one statistic may rest on several; say one",
            field="impute.smoothness",
        )
    return said[0] if said else NO_REPAIR.smoothness


IMPUTED_KINDS = ("deterministic",)


class BroughtSection(Section):
    """The `imputed_before` of `[survey]`: an imputation done before the rows came here.

    **Keys**

    - `rule`: its kind.
    - `reach`: how many rows of others one respondent can move.
    """

    rule: str = IMPUTED_KINDS[0]
    reach: int = Field(ge=1, le=2**40)


@dataclass(frozen=True, slots=True, kw_only=True)
class ExternalImputation:
    """One respondent moves at most `reach` filled rows of others: a function of the rule and the survey's public size."""

    reach: int

    def size(self, change: Change) -> int:
        """How many changes of the promised kind one respondent makes: their own, and for each row that is moved one
        replaced, or one removed and one added."""
        return 1 + self.reach * (1 if change is Change.REPLACE else 2)

    def worth(self, claim: Claim) -> tuple[Fraction, Fraction | None] | None:
        """Epsilon and delta for one respondent as they were before filling; None for a delta that would reach 1.

        Guarantee   that of the claim to one respondent of the survey before its gaps were filled.
        Adjacency   the claim's, before filling.
        Theorem     THEORY 7.4, with `size` changes.
        Proof       proofs/release/brought.md
        Assumes     the rule is deterministic, and one respondent moves at most `reach` rows of others by it.
        Keeps back  nothing: no row is read.
        """
        if claim.measure not in ("pure", "approximate"):
            return None
        k = self.size(claim.change)
        try:
            return group(epsilon=claim.epsilon, delta=claim.delta, k=k)
        except PlanError:
            return k * claim.epsilon, None


def read_external(raw: Mapping[str, Any] | None) -> ExternalImputation | None:
    """What the plan says of its rows; None where it says nothing."""
    if raw is None:
        return None
    section = fill(BroughtSection, raw, error=PlanError, at="survey.imputed_before")
    if section.rule not in IMPUTED_KINDS:
        raise PlanError(
            "is 'deterministic': for other rules nothing is proved", field="survey.imputed_before.rule"
        )
    return ExternalImputation(reach=section.reach)


def check_external(external: ExternalImputation | None, *, is_sampled: bool) -> None:
    """Refuse to speak of a frame: amplification is for a respondent who is in one row, and here is in `reach` more."""
    if external is not None and is_sampled:
        raise PlanError(
            "missing values were filled before, by rows of others who were drawn, and that is not amplified; claim the guarantee of "
            "the sample itself",
            field="sample",
        )


def external_imputation_section(external: ExternalImputation | None, claim: Claim) -> dict[str, Any]:
    """What a preview and a release say of it; nothing where none was done."""
    if external is None:
        return {}
    k, found = external.size(claim.change), external.worth(claim)
    said = (
        f"missing values were imputed before, by a rule by which one respondent moves up to {external.reach} rows of others; for "
        f"one respondent of the survey as it was answered the guarantee is that for a group of {k}"
    )
    if found is None:
        return {"imputed_before": {"words": f"{said}, about which nothing can be said here", "group": k}}
    epsilon, delta = found
    if delta is None:
        worth = f"{said}: a delta of 1, which guarantees nothing"
        return {"imputed_before": {"words": worth, "group": k, "epsilon": show(epsilon), "delta": "1"}}
    more = f" and delta {float(delta):.3g}" if delta else ""
    return {
        "imputed_before": {
            "words": f"{said}: epsilon {show(epsilon)}{more}",
            "group": k,
            "epsilon": show(epsilon),
            "delta": float(delta),
        }
    }
