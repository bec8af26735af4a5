"""The pages on what there is: plans in the folder, the survey's header and codebook, and CONFIDENTIAL what is missing."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from starlette.responses import Response

from reticent.engine.open import open_engine
from reticent.engine.sources.draft import draft_codebook, header_of
from reticent.engine.sources.open import is_remote, remote_table
from reticent.errors import ReticentError, SchemaError
from reticent.exact import show
from reticent.files import read_text, write_new
from reticent.privacy.claim import Change
from reticent.privacy.ledger.store import ledger_service
from reticent.schema import Levels, Number, Schema
from reticent.schema.columns import Column
from reticent.web import compose
from reticent.web.asked import Asked, elsewhere
from reticent.web.budgets import view_of
from reticent.web.desk import ROWS, PlanFile, plain_text, text_digest
from reticent.workflow.codebooks import codebook_state
from reticent.workflow.releasing import WARNING, RowCheck, check_rows

MOST_LEVELS, MOST_PATTERNS, MOST_PAIRS = 200, 12, 8


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanCard:
    """A plan as the first page shows it: its state, its price, and what is wrong with it."""

    file: PlanFile
    state: str
    cost: str = ""
    problem: str = ""


def home(asked: Asked) -> Response:
    """Every plan in the folder, what is left for them, and a form for a new one."""
    desk = asked.desk
    plans = [_card(asked, each) for each in desk.plans()]
    return asked.page(
        "home.html.j2",
        plans=plans,
        views=[view_of(book, name, desk.folder / "releases") for name, book in desk.ledgers().items()],
        rows=desk.rows(),
        codebooks=desk.codebooks(),
        ledgers=list(desk.ledger_names().values()),
        changes=[each.value for each in Change],
        endings=sorted(ROWS),
        unseen=desk.unseen(),
        folder=desk.folder.name,
    )


def _card(asked: Asked, file: PlanFile) -> PlanCard:
    """The state of a plan's release, and what it costs, as far as can be said. No server is asked."""
    try:
        plan = asked.desk.whole(file)
    except ReticentError as problem:
        return PlanCard(file=file, state="draft", problem=problem.told)
    cost = f"{'ρ' if plan.unit == 'rho' else 'ε'} {show(plan.cost)}"
    if ledger_service(plan.ledger):
        return PlanCard(file=file, state="on a server", cost=cost)
    try:
        state = asked.desk.ledger(plan).state(plan.release_id)
    except ReticentError:
        state = "no ledger"
    words = {"none": "ready", "reserved": "cut off", "committed": "cut off"}
    return PlanCard(file=file, state=words.get(state, state), cost=cost)


def new_plan(asked: Asked) -> Response:
    """Write the frame of a plan; its statistics are added on its own page."""
    form = asked.form
    name = compose.one(form, "id")
    rows = compose.one(form, "rows")
    survey = {
        "source": rows,
        "codebook": compose.one(form, "codebook") or f"{Path(rows).stem or name}.codebook.toml",
        "ledger": compose.one(form, "ledger") or f"{Path(rows).stem or name}.ledger.db",
    }
    expect = compose.one(form, "expected")
    text = "format = 2\n\n" + "\n".join(
        [
            compose.block("[survey]", survey),
            compose.block("[release]", {"id": name, "title": compose.one(form, "title")}),
            *(
                [compose.block("[expect]", {"rows": compose.whole(form, "expected", "rows")})]
                if expect
                else []
            ),
            compose.block("[protect]", {"change": compose.one(form, "change"), **_protection(form)}),
        ]
    )
    made = asked.desk.new_plan(name, text)
    has_codebook = survey["codebook"] in asked.desk.codebooks()
    return elsewhere("plans", made, *([] if has_codebook else ["survey"]))


def _protection(form: compose.Form) -> dict[str, str]:
    """The cap of a plan, in the unit that was chosen."""
    cap = compose.amount(form, "epsilon")
    return {"measure": "zcdp", "rho": cap} if compose.one(form, "unit") == "rho" else {"epsilon": cap}


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnRow:
    """A column as the survey page shows it: what the header and what the codebook says."""

    name: str
    label: str = ""
    kind: str = ""
    domain: str = ""
    role: str = ""
    levels: tuple[tuple[str, str, tuple[str, ...]], ...] = ()
    more: int = 0
    universe: str = ""
    said: tuple[str, ...] = ()
    stored: str = ""


def survey(asked: Asked) -> Response:
    """Header, types and codebook of the survey; no value is shown, and no row is read."""
    plan = asked.plan
    schema, problem = None, ""
    try:
        schema = asked.desk.schema(plan)
    except ReticentError as refused:
        problem = refused.told
    header, unread = _header(asked, plan)
    return asked.page(
        "survey.html.j2",
        plan=plan,
        schema=schema,
        protected=_protected(schema),
        columns=_columns(schema, header),
        loose=_loose(schema, header),
        problem=problem,
        unread=unread,
        has_codebook=(asked.desk.folder / plan.named("codebook")).is_file()
        if plan.named("codebook")
        else False,
    )


def _protected(schema: Schema | None) -> str:
    """Whose answers are protected, in words."""
    if schema is None:
        return "not said yet"
    most = f", up to {schema.at_most} rows each" if schema.at_most > 1 else ""
    return f"one {schema.unit_name}: " + ("a row" if schema.unit == "row" else f"by {schema.unit}{most}")


def _header(asked: Asked, plan: PlanFile) -> tuple[dict[str, str], str]:
    """Names and types as the file has them; or why they cannot be seen."""
    source = plan.named("source")
    try:
        if is_remote(source):
            engine = open_engine(remote_table(source, plan.data["survey"].get("relation")))
            try:
                return dict(engine.types), ""
            finally:
                engine.close()
        rows = asked.desk.rows_of(plan)
        return {key: each.kind for key, each in header_of(rows).items()}, ""
    except ReticentError as refused:
        return {}, refused.told


def _columns(schema: Schema | None, header: dict[str, str]) -> list[ColumnRow]:
    if schema is None:
        return [ColumnRow(name=name, stored=_stored(kind)) for name, kind in header.items()]
    return [
        _row(column, header.get(column.source, ""), is_computed=column.name in schema.computed)
        for column in schema.columns.values()
    ]


def _row(column: Column, stored: str, *, is_computed: bool) -> ColumnRow:
    kind, domain = "identifier", ""
    levels: tuple[tuple[str, str, tuple[str, ...]], ...] = ()
    if isinstance(column, Levels):
        kind = "ordinal" if column.ordered else "categorical"
        groups = column.members or ((),) * len(column.levels)
        found = zip(column.levels, map(column.title_of, range(len(column.levels))), groups, strict=True)
        levels = tuple((level, title, codes if codes != (level,) else ()) for level, title, codes in found)
        domain = f"{len(levels)} levels"
    elif isinstance(column, Number):
        kind = "integer" if column.whole else "decimal"
        domain = f"{show(column.lower)} to {show(column.upper)}"
        domain += f", in steps of {show(column.grid)}" if column.grid != 1 else ""
    return ColumnRow(
        name=column.name,
        label=column.label,
        kind=kind,
        domain=domain + (f" {column.unit}" if column.unit else ""),
        role=column.role,
        levels=levels[:MOST_LEVELS],
        more=max(0, len(levels) - MOST_LEVELS),
        universe="" if column.universe is None else str(column.universe),
        said=tuple(_said(column)),
        stored=_stored(stored) or ("made by the codebook" if is_computed else "not found"),
    )


def _stored(kind: str) -> str:
    """A type of a file in words: engines say `decimal2` of decimals with two places."""
    places = kind.removeprefix("decimal")
    return f"decimal, {places} place{'s' if places != '1' else ''}" if places.isdigit() else kind


def _said(column: Column) -> Iterator[str]:
    """What else the codebook says of a column."""
    if column.missing:
        yield f"missing codes {', '.join(column.missing[:MOST_LEVELS])}"
    if isinstance(column, Levels):
        if column.positions:
            yield "placed on a scale"
        if column.ignore:
            yield f"ignores {' and '.join(column.ignore)}"
        if column.strata or column.drawn:
            yield "with its strata"
        if column.dealt:
            yield f"respondents are dealt into {column.dealt} groups"
    if column.source != column.name:
        yield f"called {column.source} in the file"


def _loose(schema: Schema | None, header: dict[str, str]) -> list[str]:
    """Names in the header that the codebook does not declare."""
    if schema is None or not header:
        return []
    known = {column.source for column in schema.columns.values()}
    return [name for name in header if name not in known]


def draft(asked: Asked) -> Response:
    """Draft the codebook that the plan names from the header of its rows."""
    plan = asked.plan
    target, source = asked.desk.codebook_path(plan), plan.named("source")
    if is_remote(source):
        header, problem = _header(asked, plan)
        if problem:
            raise SchemaError(problem, field="survey.source")
        text = draft_codebook(source, header)
    else:
        text = draft_codebook(asked.desk.rows_of(plan))
    write_new(target, text.encode(), private=False)
    return elsewhere("plans", plan.name, "codebook")


def codebook(asked: Asked) -> Response:
    """The codebook's text, and what `codebook check` says of it."""
    plan = asked.plan
    path = asked.desk.codebook_path(plan)
    text = read_text(path, error=SchemaError) if path.is_file() else ""
    return _codebook_page(asked, plan, path, text, base=text_digest(text))


def save_codebook(asked: Asked) -> Response:
    """Check the text; put it in place of the old one if it is TOML."""
    plan = asked.plan
    path, text = asked.desk.codebook_path(plan), plain_text((asked.form.get("text") or [""])[-1])
    base = compose.one(asked.form, "base")
    if compose.one(asked.form, "do") != "save":
        return _codebook_page(asked, plan, path, text, base=base)
    try:
        asked.desk.put(path, text, base=base, error=SchemaError)
    except ReticentError as problem:
        return _codebook_page(asked, plan, path, text, base=base, problem=problem.told, status=422)
    return elsewhere("plans", plan.name, "codebook")


def _codebook_page(
    asked: Asked, plan: PlanFile, path: Path, text: str, *, base: str, problem: str = "", status: int = 200
) -> Response:
    done = ""
    try:
        state, is_finished = codebook_state(text, path.name)
        done, problem = (state, problem) if is_finished and not problem else ("", problem or state)
    except ReticentError as refused:
        problem = problem or refused.told
    return asked.page(
        "codebook.html.j2",
        status=status,
        plan=plan,
        text=text,
        base=base,
        name=path.name,
        problem=problem,
        done=done,
    )


def missing(asked: Asked) -> Response:
    """What the click will show, before it."""
    return asked.page("missing.html.j2", plan=asked.plan, found=None, warning=WARNING)


def look_at_rows(asked: Asked) -> Response:
    """CONFIDENTIAL: read the rows for the curator's eyes. Never kept: a reload reads them again. No cell is shown (W08)."""
    plan = asked.plan
    whole = asked.desk.whole(plan)
    with asked.desk.one_at_a_time():
        found = check_rows(plan.path, whole)
    return asked.page("missing.html.j2", plan=plan, warning=WARNING, found=found, **_figures(found))


def _figures(found: RowCheck) -> dict[str, Any]:
    """CONFIDENTIAL: bars, patterns and pairs for the page."""
    bars = [
        {
            "column": each.column,
            "share": each.missing / asked if (asked := each.answered + each.missing) else None,
            "each": each,
        }
        for each in found.findings
    ]
    held = found.patterns
    return {
        "bars": sorted(bars, key=lambda bar: -(bar["share"] or 0)),
        "patterns": [(gone, count, count / held.rows) for gone, count in held.counts[:MOST_PATTERNS]]
        if held
        else [],
        "silent": list(held.columns) if held else [],
        "pairs": [(strength, a, b) for a, b, strength in held.together[:MOST_PAIRS]] if held else [],
    }
