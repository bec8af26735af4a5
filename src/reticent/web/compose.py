"""Plans composed by forms: sections written as TOML, added to a text, changed in it and taken out of it.

The text of the plan is what counts; forms only write it. After every change the text is read again and must hold exactly
what was meant, or nothing is changed and the curator is asked to edit the text.
"""

import json
import re
from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from typing import Any

from reticent.errors import PlanError
from reticent.files import is_printable, parse_toml
from reticent.plan.upgrade import scanned
from reticent.query.kinds import KINDS
from reticent.schema import Number, Schema

Form = Mapping[str, Sequence[str]]
ASKED = tuple(key for kind in KINDS for key in kind.KEYS)
WITH_DOMAINS = tuple(key for kind in KINDS if kind.takes_domains for key in kind.KEYS)
PLAIN = re.compile(r"[A-Za-z0-9_-]+")
AMOUNT = re.compile(r"[0-9]{1,12}(\.[0-9]{1,12})?")
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
        return "{ " + ", ".join(f"{_key(key)} = {toml(each)}" for key, each in value.items()) + " }"
    return "[" + ", ".join(toml(each) for each in value) + "]"


def _key(key: str) -> str:
    return key if PLAIN.fullmatch(key) else json.dumps(key, ensure_ascii=False)


def block(header: str, values: Mapping[str, Any]) -> str:
    """A section: its header and a line for each value that is there."""
    lines = [f"{_key(key)} = {toml(each)}" for key, each in values.items() if each not in ("", None, [], {})]
    return "\n".join([header, *lines, ""])


def amount(form: Form, name: str, what: str = "epsilon") -> str:
    """A decimal that somebody typed."""
    text = one(form, name).replace(",", ".")
    if AMOUNT.fullmatch(text) is None:
        raise PlanError("is a decimal such as 0.5", field=what)
    return text


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
    if kind in WITH_DOMAINS and many(form, "by"):
        query["by"] = many(form, "by")
    held = {key: each for key, each in query.items() if each not in ("", [], None)}
    price = {} if kind in FREE else priced(form)
    return block("[[statistic]]", {"name": one(form, "name") or _named(kind, held), "query": held, **price})


def _named(kind: str, query: Mapping[str, Any]) -> str:
    """A name for a statistic that was given none."""
    told = query[kind] if isinstance(query[kind], str) and query[kind] != "*" else ""
    told = (" and " if kind in FREE else " by ").join(query[kind]) if isinstance(query[kind], list) else told
    told = f"of {told}" if kind in FREE else told
    parts = [f"{kind} {told}".strip(), *([query["where"]] if "where" in query else [])]
    return ", ".join([*parts, *([f"by {', '.join(query['by'])}"] if "by" in query else [])])[:200]


def _of_number(kind: str) -> Callable[[Form, Schema], dict[str, Any]]:
    def read(form: Form, schema: Schema) -> dict[str, Any]:
        return {kind: schema.scale(one(form, "column"), field="column").name}

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
    return {"table": [schema.column(each, field="columns").name for each in sides]}


def _of_two(kind: str) -> Callable[[Form, Schema], dict[str, Any]]:
    def read(form: Form, schema: Schema) -> dict[str, Any]:
        pair = [one(form, "first"), one(form, "second")]
        if not all(pair):
            raise PlanError("choose two statistics of this plan", field=kind)
        return {kind: pair}

    return read


FREE = ("difference", "ratio")
"""Of two other statistics: they read no row and cost nothing."""
FIELDS: dict[str, Callable[[Form, Schema], dict[str, Any]]] = {
    "count": lambda form, schema: {"count": "*"},
    "total": _of_number("total"),
    "mean": _of_number("mean"),
    "variance": _of_number("variance"),
    "proportion": lambda form, schema: {"proportion": condition(form, schema, "share")},
    "median": _of_ranks("median"),
    "quantile": _of_ranks("quantile"),
    "table": _of_table,
    **{kind: _of_two(kind) for kind in FREE},
}
"""What a form can ask for; every other kind is written in the text."""


def with_block(text: str, added: str) -> str:
    """The text with one more section at its end."""
    joined = text.rstrip("\n") + "\n\n" + added.rstrip("\n") + "\n"
    before, more = plan_data(text), plan_data(added)
    return _meant(joined, _merged(before, more))


def _merged(before: Mapping[str, Any], more: Mapping[str, Any]) -> dict[str, Any]:
    made = dict(deepcopy(before))
    for key, value in more.items():
        if isinstance(value, list):
            made[key] = [*made.get(key, []), *value]
        elif key in made:
            raise PlanError("is in the plan already; change it in the text", field=key)
        else:
            made[key] = value
    return made


def without_block(text: str, section: str, place: int | None = None) -> str:
    """The text without the section of that number, such as the second `[[statistic]]`, or without one that stands once."""
    path: tuple[str | int, ...] = (section,) if place is None else (section, place)
    heads = [key for key in scanned(text).keys if _is_head(text, key.start)]
    found = next((number for number, key in enumerate(heads) if key.path == path), None)
    data = dict(deepcopy(plan_data(text)))
    if found is None or not _taken_out(data, section, place):
        raise PlanError("is not there; look at the plan again", field=section)
    start = text.rfind("\n", 0, heads[found].start) + 1
    after = next((key.start for key in heads[found + 1 :] if key.path[: len(path)] != path), len(text))
    end = text.rfind("\n", 0, after) + 1 if after < len(text) else len(text)
    kept = text[:start].rstrip("\n") + "\n\n" + _remarks(text[start:end]) + text[end:].lstrip("\n")
    return _meant(kept.rstrip("\n") + "\n", data)


def _taken_out(data: dict[str, Any], section: str, place: int | None) -> bool:
    """Take a section out of what a text holds, if it is there."""
    held = data.get(section)
    if place is None:
        return isinstance(data.pop(section, None), Mapping)
    if not isinstance(held, list) or not 0 <= place < len(held):
        return False
    data[section] = [each for number, each in enumerate(held) if number != place]
    if not data[section]:
        del data[section]
    return True


def _is_head(text: str, start: int) -> bool:
    return text[text.rfind("\n", 0, start) + 1 : start].strip() in ("[", "[[")


def _remarks(cut: str) -> str:
    """Comments at the end of what is cut out speak of what comes after it, and stay."""
    lines = cut.rstrip("\n").split("\n")
    kept: list[str] = []
    while lines and lines[-1].lstrip().startswith("#"):
        kept.insert(0, lines.pop())
    return "".join(f"{line}\n" for line in kept)


def with_value(text: str, path: tuple[str | int, ...], value: str) -> str:
    """The text with another decimal at a place where one stands."""
    if AMOUNT.fullmatch(value) is None:
        raise PlanError("is a decimal such as 0.5", field=str(path[-1]))
    place = next((each for each in scanned(text).values if each.path == path), None)
    if place is None:
        raise PlanError("stands nowhere that a form can change; change it in the text", field=str(path[-1]))
    written = f'"{value}"' if text[place.start] in "\"'" else value
    data = dict(deepcopy(plan_data(text)))
    inner: Any = data
    for step in path[:-1]:
        inner = inner[step]
    tail = text[place.start : place.end]
    inner[path[-1]] = parse_toml(f"x = {written}", "", error=PlanError)["x"]
    return _meant(text[: place.start] + written + tail[len(tail.rstrip()) :] + text[place.end :], data)


def plan_data(text: str) -> dict[str, Any]:
    """What a text holds, whether or not it is a plan."""
    return parse_toml(text, "plan", error=PlanError)


def _meant(text: str, data: Mapping[str, Any]) -> str:
    """The text, if it holds just that."""
    if plan_data(text) != data:
        raise PlanError("is written in a way that no form can change; change it in the text", field="plan")
    return text
