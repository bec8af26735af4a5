"""The plan page: sections composed by forms beside the TOML they write, and what a preview says of it at every change."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from decimal import Decimal
from typing import Any
from urllib.parse import quote

from starlette.responses import HTMLResponse, Response

from reticent.errors import PlanError, ReticentError
from reticent.exact import read_decimal
from reticent.report.page import page as report_page
from reticent.schema import Levels, Number, Schema
from reticent.synth.registry import KNOWN
from reticent.web import compose, forms, plan_text
from reticent.web.asked import Asked, elsewhere
from reticent.web.desk import PlanFile, plain_text
from reticent.web.foreseeing import ahead
from reticent.web.sections import LISTED, SINGLE, WITH_CV, Path, cap_of, sections, unit_of, written
from reticent.workflow.releasing import rehearse


def _cv(text: str) -> float:
    value = read_decimal(text.replace(",", ".")) if text else None
    return float(value) / 100 if value and 0 < value <= 100 else 0.0


def show_plan(asked: Asked) -> Response:
    """The page of a plan as its file is."""
    plan = asked.plan
    return _page(asked, plan, plan.text, cv=asked.query.get("cv", ""))


def _page(
    asked: Asked,
    plan: PlanFile,
    text: str,
    *,
    cv: str = "",
    problem: str = "",
    base: str = "",
    status: int = 200,
) -> Response:
    schema, fields = None, {}
    with suppress(ReticentError):
        schema = asked.desk.schema(plan)
        fields = _fields(schema)
    return asked.page(
        "plan.html.j2",
        status=status,
        plan=plan,
        text=text,
        base=base or plan.digest,
        ahead=ahead(text, plan.path, _cv(cv)),
        cv=cv if _cv(cv) else "5",
        has_cv=bool(_cv(cv)),
        problem=problem,
        schema=schema,
        **{"numbers": [], "levels": [], "asked": [], "weights": [], **fields},
        expect=_expect(text),
        shares=_named(text, ("proportion",)),
        others=_named(text, compose.ASKED),
        kinds=list(compose.FIELDS),
        domains=[each for each in compose.FIELDS if each in compose.WITH_DOMAINS],
        with_cv=WITH_CV,
        signs=[*compose.SIGNS, *compose.STATES],
        methods=list(KNOWN),
    )


def _named(text: str, kinds: Sequence[str]) -> list[str]:
    """The statistics of a text that ask for one of these kinds, by name."""
    listed: Any = []
    with suppress(ReticentError):
        listed = plan_text.plan_data(text).get("statistic")
    held = [each for each in listed if isinstance(each, Mapping)] if isinstance(listed, list) else []
    return [
        str(each["name"])
        for each in held
        if "name" in each and isinstance(each.get("query"), Mapping) and {*each["query"]} & {*kinds}
    ]


def _expect(text: str) -> dict[str, str]:
    """What the fields of `[expect]` hold: its keys as they are written, shares of missing answers apart by semicolons."""
    held: Any = {}
    with suppress(ReticentError):
        held = plan_text.plan_data(text).get("expect")
    found = held if isinstance(held, Mapping) else {}
    missing = found.get("missing")
    shares = missing.items() if isinstance(missing, Mapping) else ()
    said = {key: written(found.get(key)) for key in ("rows", "mean_weight", "design_effect")}
    return {**said, "missing": "; ".join(f"{name} {written(share)}" for name, share in shares)}


def _fields(schema: Schema) -> dict[str, Any]:
    """The columns that forms offer."""
    asked = list(schema.coded.values())
    return {
        "numbers": [each for each in asked if isinstance(each, Number) or each.scale],
        "levels": [each for each in asked if isinstance(each, Levels)],
        "asked": asked,
        "weights": [each for each in asked if isinstance(each, Number) and each.role == "weight"],
    }


def look(asked: Asked) -> Response:
    """What the page would say of a text that is not saved, with the fields that were changed: for the script, which shows it."""
    plan, form = asked.plan, asked.form
    text, problem = _text(form, plan), ""
    try:
        text = _with_amounts(text, form)
    except ReticentError as refused:
        problem = refused.told
    wants = bool(compose.one(form, "wants"))
    found = ahead(text, plan.path, _cv(compose.one(form, "cv")) if wants else 0.0)
    found.problem = problem or found.problem
    return asked.page(
        "look.html.j2",
        plan=plan,
        text=text,
        taken=not problem,
        ahead=found,
        has_cv=wants,
        cv=compose.one(form, "cv"),
    )


def _text(form: compose.Form, plan: PlanFile) -> str:
    return plain_text((form.get("text") or [plan.text])[-1])


def _with_amounts(text: str, form: compose.Form, base: Mapping[str, Any] | None = None) -> str:
    """The text with the amounts and expected values that stand in the form's fields, where they differ.

    Against a `base`, the plan that the page showed, a field counts where it was changed and the text was not.
    """
    data = plan_text.plan_data(text)
    fields, shown = _amounts(data), _amounts(data if base is None else base)
    for name, (at, was) in fields.items():
        given = compose.one(form, name) if name in form else was
        if given == was or shown.get(name) != (at, was):
            continue
        if at[-1] == "expect":
            text = plan_text.with_keys(text, at[:-1], {"expect": _expected(data, at, form, name)})
        elif given and was:
            text = plan_text.with_value(text, at, compose.amount(form, name, ".".join(map(str, at))))
    return text


def _expected(data: Mapping[str, Any], at: Path, form: compose.Form, name: str) -> dict[str, Any]:
    """The `expect` of a statistic with the value of a field; what else stands in it stays, and an empty field takes it out."""
    held: Any = data[str(at[0])][at[1]].get("expect")
    found = held.items() if isinstance(held, Mapping) else ()
    kept = {key: written(each) if isinstance(each, Decimal) else each for key, each in found}
    return {**kept, **new} if (new := compose.expected(form, name, "")) else {}


def _amounts(data: Mapping[str, Any]) -> dict[str, tuple[Path, str]]:
    """The amounts and expected values that have a field, by its name: where they stand and what they are."""
    cap: tuple[Path, str] = (("protect", unit_of(data)), cap_of(data))
    found = sections(data)
    values = {
        f"expected-{each.id}": ((each.section, each.place, "expect"), each.expected)
        for each in found
        if each.expected is not None
    }
    return {"cap": cap, **{f"amount-{each.id}": (each.at, each.amount) for each in found}, **values}


def change_plan(asked: Asked) -> Response:
    """Save the text, or the text with a section added, changed or taken out; then show the page anew, or go on."""
    plan, form = asked.plan, asked.form
    text, do = _text(form, plan), compose.one(form, "do")
    base = compose.one(form, "base")
    is_wanted = do == "target" or bool(compose.one(form, "wants"))
    cv = f"{_cv(compose.one(form, 'cv')) * 100:g}" if is_wanted else ""
    try:
        text = _changed(asked, plan, _with_amounts(text, form, plan.data), do)
        asked.desk.save(plan, text, base=base)
        if do == "rehearse":
            return rehearsal(asked)
    except ReticentError as problem:
        return _page(asked, plan, text, cv=cv, problem=problem.told, base=base, status=422)
    if do == "confirm":
        return elsewhere("plans", plan.name, "confirm")
    return elsewhere("plans", plan.name, query=f"?cv={cv}" if cv else "")


def _changed(asked: Asked, plan: PlanFile, text: str, do: str) -> str:
    """The text after what a button does."""
    verb, _, rest = do.partition(":")
    if do == "add:expect":
        return plan_text.with_keys(text, ("expect",), forms.expectation(asked.form, asked.desk.schema(plan)))
    if verb == "add" and rest in forms.ADDED:
        unit = unit_of(plan_text.plan_data(text))
        given = {**asked.form, compose.UNIT: [unit]}
        return plan_text.with_block(text, forms.ADDED[rest](given, asked.desk.schema(plan)))
    if verb in ("remove", "use"):
        section, _, rest = rest.partition(":")
        place, _, amount = rest.partition(":")
        if section not in {**LISTED, **SINGLE} or not place.isdigit() or len(place) > 5:
            raise PlanError("is not there; look at the plan again", field="plan")
        if verb == "remove":
            return plan_text.without_block(text, section, None if section in SINGLE else int(place))
        found = [each for each in sections(plan_text.plan_data(text)) if each.id == f"{section}-{place}"]
        return plan_text.with_value(text, found[0].at if found else (section, "epsilon"), amount)
    return text


def rehearsal(asked: Asked) -> Response:
    """The whole plan on rows simulated from the codebook: a report that is marked, and nothing charged."""
    plan = asked.plan
    whole = asked.desk.whole(plan)
    with asked.desk.one_at_a_time():
        made = rehearse(whole)
    return HTMLResponse(
        report_page(made, linked="/static/report.css", back=f"/plans/{quote(plan.name)}").decode()
    )
