"""Forms of the sections beside statistics: imputation, known totals, design, tables, regressions, cells and synthetic rows."""

import re
from collections.abc import Callable

from reticent.errors import PlanError
from reticent.schema import Levels, Schema
from reticent.web.compose import (
    Form,
    amount,
    block,
    condition,
    many,
    one,
    priced,
    statistic,
    toml,
    whole,
)

EDGE = re.compile(r"-?[0-9]{1,12}(\.[0-9]{1,12})?")


def imputation(form: Form, schema: Schema) -> str:
    """An `[[impute]]` from its form: donors that agree in columns, or a private model from them."""
    method, column = one(form, "method"), schema.column(one(form, "filled"), field="column")
    known = [name for name in many(form, "match") if name != column.name]
    if method == "donors":
        default = one(form, "default") or (column.levels[0] if isinstance(column, Levels) else "")
        head = block("[[impute]]", {"method": "donors", "column": column.name, "default": default})
        rungs = [known[:size] for size in range(len(known), -1, -1)] if known else [[]]
        match = [
            f"\n[[impute.match]]\non = {toml(rung)}\nserve = {2 if place == 0 and known else 1}\n"
            for place, rung in enumerate(rungs)
        ]
        return head + "".join(match)
    values = {"method": method, "column": column.name, "from": known, "epsilon": amount(form, "epsilon")}
    return block("[[impute]]", values)


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
    """A `[weight]` from its form: known totals for the levels of one column."""
    column = schema.column(one(form, "column"), field="column")
    if not isinstance(column, Levels):
        raise PlanError("is a column with levels; write bins of numbers in the text", field="weight.by")
    typed = one(form, "totals").split()
    if len(typed) != len(column.levels) or not all(re.fullmatch("[0-9]{1,12}", each) for each in typed):
        raise PlanError(f"gives the total of each of the {len(column.levels)} levels", field="weight.totals")
    known = [
        {column.name: level, "total": int(text)} for level, text in zip(column.levels, typed, strict=True)
    ]
    head = block("[weight]", {"base": one(form, "base-weight"), "totals": known})
    return head + f"\n[[weight.by]]\ncolumn = {toml(column.name)}\nmissing = {toml(column.levels[0])}\n"


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
    margins = [_columns(each, schema, "tables.margins") for each in _listed(one(form, "margins"))]
    if not margins:
        raise PlanError("lists columns, as in: sex age; age region", field="tables.margins")
    values = {
        "name": one(form, "name") or " and ".join(" by ".join(each) for each in margins)[:200],
        "margins": margins,
        "bins": dict(_bins(each, schema) for each in _listed(one(form, "bins"))),
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


def _listed(text: str) -> list[str]:
    return [each.strip() for each in text.split(";") if each.strip()]


def _columns(text: str, schema: Schema, field: str) -> list[str]:
    return [schema.column(each, field=field).name for each in re.split(r"[,\s]+", text) if each]


def _bins(text: str, schema: Schema) -> tuple[str, list[str]]:
    """A column, and the edges of its bins."""
    name, *edges = re.split(r"[,\s]+", text)
    if len(edges) < 2 or not all(EDGE.fullmatch(each) for each in edges):
        raise PlanError("names a column and its edges, as in: age 0 15 65 99", field="tables.bins")
    return schema.column(name, field="tables.bins").name, edges


ADDED: dict[str, Callable[[Form, Schema], str]] = {
    "statistic": statistic,
    "impute": imputation,
    "cells": cell_table,
    "synth": synthetic,
    "weight": weighting,
    "design": sampling_design,
    "tables": margin_tables,
    "regression": regression,
}
