"""What a form holds, as TOML: its fields read one by one, and the `[[statistic]]` that they write."""

import json
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from reticent.errors import PlanError
from reticent.files import is_printable
from reticent.query.kinds import KINDS
from reticent.schema import Number, Schema

Form = Mapping[str, Sequence[str]]
ASKED = tuple(key for kind in KINDS for key in kind.KEYS)
WITH_DOMAINS = tuple(key for kind in KINDS if kind.takes_domains for key in kind.KEYS)
PLAIN = re.compile(r"[A-Za-z0-9_-]+")
AMOUNT = re.compile(r"[0-9]{1,12}(\.[0-9]{1,12})?")
EDGE = re.compile(r"-?[0-9]{1,12}(\.[0-9]{1,12})?")
UNIT = "desk:unit"
"""By which the desk tells a form what its plan is counted in."""
SIGNS = ("=", "!=", "<", "<=", ">", ">=")
STATES = ("is missing", "is answered")


def one(form: Form, name: str) -> str:
    """The value of a field; empty where it was left out."""
    value = (form.get(name) or [""])[-1].strip()
    if not is_printable(value) or len(value) > 2_000:
        raise PlanError("holds a control character, or is too long", field=name)
    return value


def many(form: Form, name: str) -> list[str]:
    """All values of a field."""
    return [value for value in form.get(name, ()) if value and is_printable(value)]


def toml(value: Any) -> str:
    """A value as TOML on one line."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value)
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False)
    if isinstance(value, Mapping):
        return "{ " + ", ".join(f"{toml_key(key)} = {toml(each)}" for key, each in value.items()) + " }"
    return "[" + ", ".join(toml(each) for each in value) + "]"


def toml_key(key: str) -> str:
    """A key as TOML, in quotes where it needs them."""
    return key if PLAIN.fullmatch(key) else json.dumps(key, ensure_ascii=False)


def block(header: str, values: Mapping[str, Any]) -> str:
    """A section: its header and a line for each value that is there."""
    lines = [
        f"{toml_key(key)} = {toml(each)}" for key, each in values.items() if each not in ("", None, [], {})
    ]
    return "\n".join([header, *lines, ""])


def amount(form: Form, name: str, what: str = "epsilon") -> str:
    """A decimal that somebody typed."""
    text = one(form, name).replace(",", ".")
    if AMOUNT.fullmatch(text) is None:
        raise PlanError("is a decimal such as 0.5", field=what)
    return text


def decimal(form: Form, name: str, what: str) -> str:
    """A decimal that somebody typed, below 0 too."""
    text = one(form, name).replace(",", ".")
    if EDGE.fullmatch(text) is None:
        raise PlanError("is a decimal such as 0.5", field=what)
    return text


def expected(form: Form, value: str = "expect-value", size: str = "expect-size") -> dict[str, Any]:
    """What a preview assumes of a statistic; nothing where no value was typed."""
    if not one(form, value):
        return {}
    sized = {"size": whole(form, size, "expect.size")} if one(form, size) else {}
    return {"value": decimal(form, value, "expect.value"), **sized}


def listed(text: str) -> list[str]:
    """The parts of a text that semicolons keep apart."""
    return [each.strip() for each in text.split(";") if each.strip()]


def bins(form: Form, schema: Schema, field: str = "bins") -> dict[str, list[str]]:
    """Columns and the edges of their bins, as in `age 0 15 65 99; hours 0 20 99`."""
    return dict(_edges(each, schema, field) for each in listed(one(form, "bins")))


def _edges(text: str, schema: Schema, field: str) -> tuple[str, list[str]]:
    name, *edges = re.split(r"[,\s]+", text)
    if len(edges) < 2 or not all(EDGE.fullmatch(each) for each in edges):
        raise PlanError("names a column and its edges, as in: age 0 15 65 99", field=field)
    return schema.column(name, field=field).name, edges


def priced(form: Form) -> dict[str, str]:
    """What something costs, in the unit of the plan, which the desk adds to the form."""
    return {one(form, UNIT) or "epsilon": amount(form, "epsilon")}


def whole(form: Form, name: str, what: str) -> int:
    """A whole number that somebody typed."""
    text = one(form, name)
    if re.fullmatch(r"[0-9]{1,12}", text) is None:
        raise PlanError("is a whole number", field=what)
    return int(text)


def condition(form: Form, schema: Schema, prefix: str = "where") -> str:
    """A filter from a column, a sign and a value, or in the curator's own words; both are joined by `and`."""
    column, sign, value = (one(form, f"{prefix}-{part}") for part in ("column", "sign", "value"))
    parts = []
    if column:
        found = schema.column(column, field=prefix)
        if sign in STATES:
            parts.append(f"{column} {sign}")
        elif sign in SIGNS:
            written = value if isinstance(found, Number) else "'" + value.replace("'", "''") + "'"
            parts.append(f"{column} {sign} {written}")
    words = one(form, f"{prefix}-words")
    parts += [f"({words})" if parts else words] if words else []
    return " and ".join(parts)


def statistic(form: Form, schema: Schema) -> str:
    """A `[[statistic]]` from its form."""
    kind = one(form, "kind")
    if kind not in FIELDS:
        raise PlanError("choose what to compute", field="statistic")
    query = FIELDS[kind](form, schema)
    if kind not in FREE:
        query |= {"where": condition(form, schema), "weight": one(form, "weight")}
    if kind in WITH_DOMAINS:
        query |= _cut("by", many(form, "by"), form, schema)
    held = {key: each for key, each in query.items() if each not in ("", [], {}, None)}
    values = {"name": one(form, "name") or _named(kind, held), "query": held}
    if kind not in FREE:
        price = priced(form)
        (unit,) = price
        bought = one(form, "interval") if kind in RANKED else ""
        interval = {unit: amount(form, "interval", "interval")} if bought else {}
        values |= {**price, "interval": interval, "expect": expected(form)}
    return block("[[statistic]]", values)


def _cut(key: str, names: Sequence[str], form: Form, schema: Schema) -> dict[str, Any]:
    """Columns that are told apart, and the bins of those that are numbers."""
    columns = [schema.column(each, field=key) for each in names]
    edges = bins(form, schema) if columns else {}
    loose = next((each.name for each in columns if isinstance(each, Number) and each.name not in edges), None)
    if loose is not None:
        raise PlanError(f"is told by bins where it is a number; write: {loose} and the edges", field="bins")
    return {key: [each.name for each in columns], "bins": edges}


def _named(kind: str, query: Mapping[str, Any]) -> str:
    """A name for a statistic that was given none."""
    told = query[kind] if isinstance(query[kind], str) and query[kind] != "*" else ""
    told = (" and " if kind in FREE else " by ").join(query[kind]) if isinstance(query[kind], list) else told
    told = f"of {told}" if kind in FREE else told
    parts = [f"{kind} {told}".strip(), *([query["where"]] if "where" in query else [])]
    return ", ".join([*parts, *([f"by {', '.join(query['by'])}"] if "by" in query else [])])[:200]


def _of_share(form: Form, schema: Schema) -> dict[str, Any]:
    share = condition(form, schema, "share")
    if not share:
        raise PlanError(
            "is the share of those for whom something is so; choose a column and a value", field="share"
        )
    return {"proportion": share}


def _of_number(kind: str) -> Callable[[Form, Schema], dict[str, Any]]:
    def read(form: Form, schema: Schema) -> dict[str, Any]:
        centre = decimal(form, "centre", "centre") if one(form, "centre") and kind in CENTRED else ""
        return {kind: schema.scale(one(form, "column"), field="column").name, "centre": centre}

    return read


def _of_ranks(kind: str) -> Callable[[Form, Schema], dict[str, Any]]:
    def read(form: Form, schema: Schema) -> dict[str, Any]:
        column = schema.column(one(form, "column"), field="column")
        step = {"step": one(form, "step")} if isinstance(column, Number) else {}
        return {kind: column.name, **step, **({"at": one(form, "at")} if kind == "quantile" else {})}

    return read


def _of_table(form: Form, schema: Schema) -> dict[str, Any]:
    sides = many(form, "sides")
    if not sides:
        raise PlanError("choose the columns of the table", field="columns")
    return _cut("table", sides, form, schema)


def _of_two(kind: str) -> Callable[[Form, Schema], dict[str, Any]]:
    def read(form: Form, schema: Schema) -> dict[str, Any]:
        pair = [one(form, "first"), one(form, "second")]
        if not all(pair):
            raise PlanError("choose two statistics of this plan", field=kind)
        return {kind: pair}

    return read


FREE = ("difference", "ratio")
"""Of two other statistics: they read no row and cost nothing."""
RANKED, CENTRED = ("median", "quantile"), ("mean", "variance")
FIELDS: dict[str, Callable[[Form, Schema], dict[str, Any]]] = {
    "count": lambda form, schema: {"count": "*"},
    "total": _of_number("total"),
    "mean": _of_number("mean"),
    "variance": _of_number("variance"),
    "proportion": _of_share,
    "median": _of_ranks("median"),
    "quantile": _of_ranks("quantile"),
    "table": _of_table,
    **{kind: _of_two(kind) for kind in FREE},
}
"""What a form can ask for; every other kind is written in the text."""
