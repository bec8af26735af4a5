"""Known totals of a population, written in a plan or in a public file beside it: one for every combination of bins."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import product
from typing import Any

from reticent.errors import PlanError, nearest
from reticent.exact import read_decimal
from reticent.prepare.strata import BaseCells, Groups, Strategy
from reticent.schema.public_files import PublicCell, PublicFiles

Rows = list[dict[str, Any]]
Label = tuple[str, ...]
TOTAL = "total"
RAKE = "rake"


@dataclass(frozen=True, slots=True, kw_only=True)
class Totals:
    """A total for every combination of the bins of `by`, the last one fastest."""

    by: tuple[str, ...]
    of: Mapping[Label, Fraction]

    def onto(self, by: Sequence[str]) -> "Totals":
        """The sums over all stratifiers that are not among `by`."""
        places = [self.by.index(name) for name in by]
        sums: dict[Label, Fraction] = {}
        for label, total in self.of.items():
            short = tuple(label[place] for place in places)
            sums[short] = sums.get(short, Fraction(0)) + total
        return Totals(by=tuple(by), of=sums)


def read_totals(raw: Rows | str, labels: Mapping[str, Sequence[str]], *, field: str) -> Totals:
    """Every combination of the labels exactly once, none negative."""
    if isinstance(raw, str):
        raise PlanError("a file of totals is read from a plan file; here list them", field=field)
    found: dict[Label, Fraction] = {}
    for place, line in enumerate(raw):
        at = _place(line, field, place)
        label, total = _line(line, labels, at)
        if label in found:
            which = "the same" if _is_read(line) else _words(labels, label)
            raise PlanError(f"{which} has two totals; keep one", field=at)
        found[label] = total
    lost = next((each for each in product(*labels.values()) if each not in found), None)
    if lost is not None:
        raise PlanError(
            f"{_words(labels, lost)} has no total; give one for every combination, 0 where there is nobody",
            field=field,
        )
    if not any(found.values()):
        raise PlanError("are all 0; a population has somebody in it", field=field)
    return Totals(by=tuple(labels), of={each: found[each] for each in product(*labels.values())})


def _is_read(line: Mapping[str, Any]) -> bool:
    """Whether a line was read from a file, whose cells no text quotes."""
    return any(isinstance(cell, PublicCell) for cell in line.values())


def _place(line: Mapping[str, Any], field: str, place: int) -> str:
    """Where a line stands: its number in the file, or its place in the plan."""
    read = next((cell for cell in line.values() if isinstance(cell, PublicCell)), None)
    return f"{field}[{place}]" if read is None else f"{field}, line {read.line}"


def _line(line: Mapping[str, Any], labels: Mapping[str, Sequence[str]], at: str) -> tuple[Label, Fraction]:
    if set(line) != {*labels, TOTAL}:
        raise PlanError(f"has the columns {', '.join([*labels, TOTAL])} and no others", field=at)
    for name, known in labels.items():
        text = str(line[name])
        if text not in known:
            hint = ("" if _is_read(line) else nearest(text, known)) or f"; the first is {known[0]!r}"
            shown = "of that name" if _is_read(line) else repr(text[:80])
            raise PlanError(f"{name} has no bin {shown}{hint}", field=at)
    total = read_decimal(line[TOTAL])
    if total is None or total < 0:
        raise PlanError("its total is a plain decimal, 0 or more", field=at)
    return tuple(str(line[name]) for name in labels), total


def _words(labels: Mapping[str, Sequence[str]], label: Label) -> str:
    return "; ".join(f"{name} = {text}" for name, text in zip(labels, label, strict=True)) or "everybody"


def totals_of(
    name: str, cells: BaseCells, fine: Totals, chosen: Mapping[str, Groups | None], *, field: str
) -> Strategy:
    """The strategy of these groups, its totals summed from those of the fine bins."""
    try:
        bins, places = cells.by(chosen), cells.by(dict.fromkeys(chosen))
        ordered, sums = list(fine.of.values()), [Fraction(0)] * (max(bins) + 1)
        for place, bin_ in set(zip(places, bins, strict=True)):
            sums[bin_] += ordered[place]
        return Strategy(name=name, bins=bins, totals=tuple(sums))
    except PlanError as problem:
        raise PlanError(str(problem.args[0]), field=field) from None


def with_totals(raw: Any, files: PublicFiles) -> Any:
    """A `[weight]` section whose totals, where they stand in public CSV files, are written out."""
    if not isinstance(raw, Mapping):
        return raw
    made = dict(raw) if raw.get("totals") == RAKE else _written(raw, files, "weight.totals")
    made = _listed(made, "strategy", files, "weight")
    if isinstance(made.get("rake"), Mapping):
        made = {**made, "rake": _listed(made["rake"], "margin", files, "weight.rake")}
    return made


def _listed(raw: Mapping[str, Any], name: str, files: PublicFiles, at: str) -> dict[str, Any]:
    """The same, with the files of every entry of the list called `name` written out."""
    entries = raw.get(name)
    if not isinstance(entries, list):
        return dict(raw)
    fields = [f"{at}.{name}[{place}].totals" for place in range(len(entries))]
    made = [_written(each, files, field) for each, field in zip(entries, fields, strict=True)]
    return {**raw, name: made}


def _written(raw: Any, files: PublicFiles, field: str) -> Any:
    name = raw.get("totals") if isinstance(raw, Mapping) else None
    if not isinstance(name, str):
        return raw
    rows: Rows = [dict(line) for line in files.lines(name, field=field)]
    texts = [line[TOTAL] for line in rows if TOTAL in line]
    files.publish(field=field, what="totals, or sums of them", texts=texts)
    return {**raw, "totals": rows}
