"""Base cells and strategies of a plan's `[weight]`, from the words of its section. Public, all of it."""

from collections.abc import Mapping, Sequence

from reticent.errors import PlanError
from reticent.prepare.bins import BaseCells, Stratifier
from reticent.prepare.strategies import Strategy
from reticent.query.kinds import CrossTabulation
from reticent.query.read import read_query
from reticent.release.totals import Totals, read_totals, totals_of
from reticent.release.weights_sections import StrategySection, WeightSection
from reticent.schema import Schema
from reticent.words import nearest


def margin_of(section: WeightSection, schema: Schema) -> CrossTabulation:
    """The base cells, as the table they would be asked for as."""
    names = [each.column for each in section.by]
    bins = {each.column: each.bins for each in section.by if each.bins is not None}
    for name in names:
        if schema.column(name, field="weight.by").role == "weight":
            raise PlanError(f"{name} is a base weight; write base = {name!r} instead", field="weight.by")
    raw = {"table": names, "bins": bins}
    query = read_query(raw, schema, missing="available", size=None, field="weight.by")
    if not isinstance(query, CrossTabulation):
        raise TypeError("a margin was asked for")
    return query


def cells_of(section: WeightSection, margin: CrossTabulation, schema: Schema) -> BaseCells:
    found = []
    for place, each in enumerate(section.by):
        labels = margin.labels(schema, each.column)
        answers = margin.table(schema).keys[place].answers(schema)
        at = f"weight.by[{place}].missing"
        found.append(
            Stratifier(
                name=each.column, bins=answers, missing=label_of(str(each.missing), labels[:answers], at)
            )
        )
    return BaseCells(stratifiers=tuple(found))


def label_of(text: str, labels: Sequence[str], field: str) -> int:
    if text not in labels:
        hint = nearest(text, labels) or f"; the first is {labels[0]!r}"
        raise PlanError(f"there is no bin {text[:80]!r}{hint}", field=field)
    return labels.index(text)


def strategies_of(
    section: WeightSection, cells: BaseCells, labels: Mapping[str, Sequence[str]], base: Totals | None
) -> tuple[Strategy, ...]:
    """Those that are listed, or every base cell a bin."""
    listed = section.strategy or [StrategySection(name="every base cell")]
    found = []
    for place, each in enumerate(listed):
        at = f"weight.strategy[{place}]" if section.strategy else "weight"
        by = list(labels) if each.by is None else known_names(each.by, labels, f"{at}.by")
        if each.totals is not None and section.rake is not None:
            raise PlanError("all totals are raked; remove these", field=f"{at}.totals")
        if each.totals is not None:
            fine = read_totals(each.totals, {name: labels[name] for name in by}, field=f"{at}.totals")
        elif base is not None:
            fine = base.onto(by)
        else:
            raise PlanError("needs totals, of its own or of all base cells", field=f"{at}.totals")
        groups = groups_of_labels(each.groups, by, labels, at)
        found.append(totals_of(each.name, cells, fine, {name: groups.get(name) for name in by}, field=at))
    return tuple(found)


def known_names(names: list[str], labels: Mapping[str, Sequence[str]], field: str) -> list[str]:
    for name in names:
        if name not in labels:
            raise PlanError(f"{name[:60]!r} is no stratifier{nearest(name, labels)}", field=field)
    if len(set(names)) < len(names):
        raise PlanError("names a stratifier twice; keep one", field=field)
    return [name for name in labels if name in names]


def groups_of_labels(
    raw: Mapping[str, list[list[str | int]]], by: Sequence[str], labels: Mapping[str, Sequence[str]], at: str
) -> dict[str, list[list[int]]]:
    found = {}
    for name, groups in raw.items():
        field = f"{at}.groups.{name}"
        if name not in by:
            raise PlanError("groups a stratifier that the strategy does not use", field=field)
        found[name] = [[label_of(str(text), labels[name], field) for text in group] for group in groups]
    return found
