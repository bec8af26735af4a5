"""Forms of the sections beside statistics: edits, imputation, known totals, design, tables, regressions, cells, synthetic rows."""

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from reticent.errors import PlanError
from reticent.files import is_printable
from reticent.schema import Levels, Schema
from reticent.web.compose import (
    Form,
    amount,
    bins,
    block,
    condition,
    decimal,
    listed,
    many,
    one,
    priced,
    statistic,
    whole,
)

MOST_TYPED = 100_000
BLANKS = re.compile(r"[,\s]+")


def edit(form: Form, schema: Schema) -> str:
    """An `[[edit]]` from its form: what follows from a record's other answers."""
    when, column = condition(form, schema, "if"), schema.column(one(form, "then"), field="then")
    if not when:
        raise PlanError("needs a condition: for whom is the value set?", field="edit.if")
    if not one(form, "value"):
        raise PlanError("needs the value that is set, or: missing", field="edit.then")
    replace = {"replace": True} if one(form, "replace") else {}
    return block("[[edit]]", {"if": when, "then": {column.name: one(form, "value")}, **replace})


def imputation(form: Form, schema: Schema) -> str:
    """An `[[impute]]` from its form: donors that agree in columns, the most important first, or a private model."""
    method, column = one(form, "method"), schema.column(one(form, "filled"), field="column")
    if method == "donors":
        values = {"column": column.name, "match": _match(form, schema), "default": one(form, "default")}
        return block("[[impute]]", {"method": "donors", **values})
    known = [name for name in many(form, "from") if name != column.name]
    values = {"method": method, "column": column.name, "from": known, "epsilon": amount(form, "epsilon")}
    return block("[[impute]]", values)


def _match(form: Form, schema: Schema) -> list[str | dict[str, str]]:
    """The columns that donors agree in, in the order of the fields; numbers in groups of a width, where one is typed."""
    widths = [*form.get("width", ()), *[""] * len(form.get("match", ()))]
    found: list[str | dict[str, str]] = []
    for name, width in zip(form.get("match", ()), widths, strict=False):
        if not name:
            continue
        column = schema.column(name, field="match").name
        by = decimal({"width": [width]}, "width", "match") if width.strip() else ""
        found.append({"column": column, "by": by} if by else column)
    if not found:
        raise PlanError(
            "choose the columns that donor and recipient agree in, the most important first", field="match"
        )
    return found


def cell_table(form: Form, schema: Schema) -> str:
    """A `[[cells]]` from its form: the mean of a column in many small cells."""
    number = schema.number(one(form, "y"), field="column")
    values = {
        "name": one(form, "name") or f"mean {number.name} by {one(form, 'cell')}",
        "cell": schema.column(one(form, "cell"), field="cell").name,
        "y": number.name,
        "estimate": {"mean": True},
        "method": "smooth",
        "epsilon": amount(form, "epsilon"),
    }
    return block("[[cells]]", values)


def synthetic(form: Form, schema: Schema) -> str:
    """A `[[synth]]` from its form."""
    values = {
        "name": one(form, "name") or "synthetic rows",
        "method": one(form, "method"),
        "rows": whole(form, "rows", "rows"),
        **priced(form),
        "columns": [schema.column(each, field="columns").name for each in many(form, "columns")],
    }
    return block("[[synth]]", values)


def weighting(form: Form, schema: Schema) -> str:
    """A `[weight]` from its form: known totals for every combination of the levels or bins of some columns."""
    chosen, homes = form.get("column", ()), form.get("missing", ())
    missing = {name: one({"missing": [home]}, "missing") for name, home in zip(chosen, homes, strict=False)}
    names = [schema.column(each, field="weight.by").name for each in chosen if each]
    if not names:
        raise PlanError("choose the columns whose totals are known", field="weight.by")
    edges = bins(form, schema, "weight.by")
    totals = _totals(form, names, schema)
    head = block("[weight]", {"base": one(form, "base-weight"), "totals": totals})
    parts = [
        block(
            "[[weight.by]]",
            {"column": name, "bins": edges.get(name), "missing": missing.get(name) or _largest(totals, name)},
        )
        for name in names
    ]
    return "\n".join([head, *parts])


def _totals(form: Form, names: Sequence[str], schema: Schema) -> list[dict[str, Any]]:
    """A line for each combination: its levels or bins in the order of the columns, and its total. Of one column, totals alone will do."""
    text = (form.get("totals") or [""])[-1]
    if len(text) > MOST_TYPED or not is_printable(BLANKS.sub(" ", text)):
        raise PlanError("hold a control character, or are too long", field="weight.totals")
    column, alone = schema.column(names[0], field="weight.by"), text.split()
    if len(names) == 1 and isinstance(column, Levels) and all(COUNTED.fullmatch(each) for each in alone):
        if len(alone) != len(column.levels):
            raise PlanError(
                f"gives the total of each of the {len(column.levels)} levels", field="weight.totals"
            )
        return [_total(names, [each], typed) for each, typed in zip(column.levels, alone, strict=True)]
    mark = next((each for each in "\t;" if each in text), ",")
    lines = [line.split(mark) for line in text.splitlines() if line.strip()]
    for line in lines:
        if len(line) != len(names) + 1 or not COUNTED.fullmatch(line[-1].strip()):
            said = ", ".join([*names, "total"])
            raise PlanError(f"has a line for each combination, with commas: {said}", field="weight.totals")
    if not lines:
        raise PlanError(f"gives a total for each combination of {' and '.join(names)}", field="weight.totals")
    return [_total(names, line[:-1], line[-1]) for line in lines]


COUNTED = re.compile(r"[0-9]{1,12}")


def _total(names: Sequence[str], cells: Sequence[str], total: str) -> dict[str, Any]:
    return {**dict(zip(names, (each.strip() for each in cells), strict=True)), "total": int(total)}


def _largest(totals: Sequence[Mapping[str, Any]], name: str) -> str:
    """The level, or bin, of a column with most people in it."""
    sums: dict[str, int] = {}
    for line in totals:
        sums[line[name]] = sums.get(line[name], 0) + line["total"]
    return max(sums, key=lambda each: sums[each])


def sampling_design(form: Form, schema: Schema) -> str:
    """A `[design]` from its form: a factor bought from shares of the plan, or a design effect that is declared."""
    items, effect = many(form, "items"), one(form, "design_effect")
    if bool(items) == bool(effect):
        raise PlanError(
            "choose shares to buy it from, or give a design effect: one of the two", field="design"
        )
    if effect:
        return block("[design]", {"design_effect": amount(form, "design_effect", "design.design_effect")})
    return block("[design]", {"items": items, "epsilon": amount(form, "epsilon", "design.epsilon")})


def margin_tables(form: Form, schema: Schema) -> str:
    """A `[[tables]]` from its form: margins such as `sex age; age region`, and bins such as `age 0 15 65 99`."""
    margins = [_columns(each, schema, "tables.margins") for each in listed(one(form, "margins"))]
    if not margins:
        raise PlanError("lists columns, as in: sex age; age region", field="tables.margins")
    values = {
        "name": one(form, "name") or " and ".join(" by ".join(each) for each in margins)[:200],
        "margins": margins,
        "bins": bins(form, schema, "tables.bins"),
        "where": condition(form, schema),
        **priced(form),
    }
    return block("[[tables]]", values)


def regression(form: Form, schema: Schema) -> str:
    """A `[[regression]]` from its form: one column on others, by least squares."""
    number = schema.scale(one(form, "y"), field="column")
    known = [schema.column(each, field="x").name for each in many(form, "x") if each != number.name]
    if not known:
        raise PlanError("choose the columns that explain it", field="regression.x")
    values = {
        "name": one(form, "name") or f"{number.name} on {', '.join(known)}",
        "y": number.name,
        "x": known,
        "where": condition(form, schema),
        **priced(form),
    }
    return block("[[regression]]", values)


def _columns(text: str, schema: Schema, field: str) -> list[str]:
    return [schema.column(each, field=field).name for each in BLANKS.split(text) if each]


def expectation(form: Form, schema: Schema) -> dict[str, Any]:
    """The keys of `[expect]` from its form; an empty field takes its key out."""
    shares = [each.rpartition(" ")[::2] for each in listed(one(form, "missing"))]
    missing = {
        schema.column(name.strip(), field="expect.missing").name: decimal(
            {"share": [share]}, "share", "expect.missing"
        )
        for name, share in shares
    }
    return {
        "rows": whole(form, "rows", "expect.rows") if one(form, "rows") else "",
        **{
            key: amount(form, key, f"expect.{key}") if one(form, key) else ""
            for key in ("mean_weight", "design_effect")
        },
        "missing": missing,
    }


ADDED: dict[str, Callable[[Form, Schema], str]] = {
    "statistic": statistic,
    "edit": edit,
    "impute": imputation,
    "cells": cell_table,
    "synth": synthetic,
    "weight": weighting,
    "design": sampling_design,
    "tables": margin_tables,
    "regression": regression,
}
