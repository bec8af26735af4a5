"""Do intervals from synthetic tables hold? Every run draws rows with replacement from a table, which is the truth.

A piece is a table, a kind of silence, a method and an epsilon: `adult/MCAR/pairs/1`. Its questions are fixed: shares of the
largest levels, means of numbers, and for every pair of columns the largest cell and the one nearest to 2 %; for pairs of a
number and a category a difference of means, a slope and a logistic slope. Told are, for each kind of question,

    coverage      how often the 95 % interval holds the truth, over runs and questions that have an interval
    width_ratio   its median width over that of the usual interval without privacy, from as many complete rows
    measured      the share of questions that have an interval at all
    naive         how often the usual interval about the same estimate holds, as if there were no noise: the twin that must fail

Rows are drawn one by one, so the design effect is 1. Complete rows and MCAR: the truth is the table's own. Silence as a category: shares count silence, and the truth does too.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cache
from itertools import combinations
from time import process_time
from typing import Any

import numpy as np
import pyarrow as pa

from reticent.lab.noise import NoSynthNoise, QuickSynthNoise
from reticent.lab.run.experiment import Experiment, Outcome, Row
from reticent.lab.run.summary import groups
from reticent.lab.trials.fitting import DELTA, Held
from reticent.lab.trials.masks import mask
from reticent.lab.trials.tables import Cells, Codes, Trial, at_hand, cells_of, trial, with_missing
from reticent.schema import Levels, Number
from reticent.synth.answer import answer_directly
from reticent.synth.base import FitTask, MissingMethod, Spend
from reticent.synth.direct import MeasuredTables, NoInterval
from reticent.synth.domain import HOLE, UNASKED, Domain
from reticent.synth.lists import Lists
from reticent.synth.marginals.aim import AIM
from reticent.synth.marginals.mst import MST
from reticent.synth.marginals.pairs import AllPairs
from reticent.synth.questions import TableQuestion, read_question
from reticent.synth.residuals import fine_axes, with_fine_axes

LEVEL, Z = 0.95, 1.959963984540054
RATE = 0.2
METHODS: dict[str, AllPairs | MST | AIM] = {
    "pairs": AllPairs(most_pairs=0, iterations=1, last=1),
    "mst": MST(residuals=True, iterations=1),
    "aim": AIM(residuals=True),
}
"""Intervals come from the noisy tables, so the model need not be fitted well; aim chooses by its model, which is."""
PIECES = (
    *(f"adult/{silence}/{method}/1" for method in METHODS for silence in ("complete", "MCAR")),
    *(f"adult/{silence}/pairs/{epsilon}" for silence in ("complete", "MCAR") for epsilon in ("3",)),
    "adult/category/pairs/1",
    "adult/MAR-category/pairs/1",
    "adult/complete/pairs-laplace/1",
    *(f"{name}/{silence}/pairs/1" for name in ("census", "national") for silence in ("complete", "MCAR")),
)
LEADING = PIECES[:6]
TINY = "census/MCAR/pairs/1"


@dataclass(frozen=True, slots=True, kw_only=True)
class TableQuestions:
    """The questions of one table, with their kinds."""

    table: Trial = field(repr=False)
    domain: Domain
    questions: tuple[tuple[str, TableQuestion], ...] = field(repr=False)


@cache
def asked(name: str) -> TableQuestions:
    """Made once in every worker. Levels are chosen by the whole table, which is public here."""
    table = trial(name)
    domain = table.domain()
    written = [*_single(table, domain), *_double(table, domain)]
    return TableQuestions(
        table=table,
        domain=domain,
        questions=tuple((kind, read_question(raw, domain)) for kind, raw in written),
    )


def _cells(table: Trial, domain: Domain) -> Cells:
    return cells_of(table.codes, domain)


def _filter(domain: Domain, place: int, cell: int) -> str | None:
    """A cell of a column in words: its level, or its bin's bounds."""
    axis = domain.axes[place]
    column = domain.schema.coded[axis.column]
    if cell >= axis.answers:
        return None
    if isinstance(column, Levels):
        return f"{axis.column} = '{column.levels[cell]}'" if "'" not in column.levels[cell] else None
    starts = axis.key.starts or tuple(range(column.low, column.high + 1))
    text = f"{axis.column} >= {column.text(starts[cell])}"
    return text if cell + 1 == len(starts) else f"{text} and {axis.column} < {column.text(starts[cell + 1])}"


def _single(table: Trial, domain: Domain) -> Iterator[tuple[str, Row]]:
    cells = _cells(table, domain)
    for place, axis in enumerate(domain.axes):
        counts = np.bincount(cells[:, place], minlength=axis.size)[: axis.answers]
        for cell in np.argsort(-counts)[:2]:
            if (text := _filter(domain, place, int(cell))) is not None:
                yield "share", {"proportion": text}
        if isinstance(domain.schema.coded[axis.column], Number):
            yield "mean", {"mean": axis.column}


def _double(table: Trial, domain: Domain) -> Iterator[tuple[str, Row]]:
    cells, axes = _cells(table, domain), domain.axes
    for one, other in combinations(range(len(axes)), 2):
        if axes[one].size * axes[other].size > 10_000:
            continue
        counts = np.zeros((axes[one].size, axes[other].size))
        np.add.at(counts, (cells[:, one], cells[:, other]), 1 / len(cells))
        inner = counts[: axes[one].answers, : axes[other].answers]
        for flat in (int(inner.argmax()), int(np.abs(inner - 0.02).argmin())):
            at = np.unravel_index(flat, inner.shape)
            found = [_filter(domain, place, int(cell)) for place, cell in zip((one, other), at, strict=True)]
            if all(found):
                yield "two-way cell", {"proportion": " and ".join(str(text) for text in found)}
        yield from _mixed(domain, one, other, counts)


def _mixed(domain: Domain, one: int, other: int, counts: Any) -> Iterator[tuple[str, Row]]:
    kinds = [domain.schema.coded[domain.axes[place].column] for place in (one, other)]
    if isinstance(kinds[0], Number) == isinstance(kinds[1], Number):
        return
    number, levels = (one, other) if isinstance(kinds[0], Number) else (other, one)
    sums = counts.sum(axis=0 if number == one else 1)[: domain.axes[levels].answers]
    if len(sums) < 2:
        return
    first, second = (_filter(domain, levels, int(cell)) for cell in np.argsort(-sums)[:2])
    name = domain.axes[number].column
    if first is None or second is None:
        return
    yield "difference", {"difference": name, "between": [first, second]}
    yield "slope", {"regression": first, "on": [name]}
    yield "logistic slope", {"logistic": first, "on": [name]}


def held(codes: Codes, domain: Domain) -> Held:
    """Rows as cells, numbers once more in fine steps."""
    fine = []
    for each in fine_axes(domain):
        found = codes[:, each.place]
        low = domain.schema.coded[each.axis.column].low
        step = (2 * (found - low) + each.step) // (2 * each.step)
        step = np.where(found == HOLE, each.axis.silence, step)
        fine.append(np.where(found == UNASKED, each.axis.answers + 1, step))
    cells = np.concatenate([cells_of(codes, domain), *(column[:, None] for column in fine)], axis=1)
    return Held(domain=with_fine_axes(domain), cells=cells.astype(np.int32))


@cache
def truths(name: str, is_category: bool, silence: str) -> tuple[tuple[float, float] | None, ...]:
    """Of every question the answer, from the whole table without noise, and the usual half-width without privacy."""
    case = asked(name)
    codes = case.table.codes
    if is_category:
        codes = with_missing(codes, mask(name, "MAR" if silence.startswith("MAR") else "MCAR", RATE))
    missing = MissingMethod.VALUES if is_category else MissingMethod.WEIGHTED
    spend = Spend(epsilon=Fraction(1000), delta=DELTA)
    noise = NoSynthNoise(np.random.default_rng(0))
    network = METHODS["pairs"].fit(
        FitTask(held(codes, case.domain), case.domain, missing, spend, noise=noise, step=lambda _: None)
    )
    found: list[tuple[float, float] | None] = []
    tables = MeasuredTables(_kept(network.lists))
    for _, question in case.questions:
        try:
            (each,) = answer_directly(question, tables, design_effect=1.0)
            found.append((each.estimate, Z * (each.sampling or 0.0)))
        except NoInterval:
            found.append(None)
    return tuple(found)


def _kept(lists: Lists | None) -> Lists:
    if lists is None:
        raise ValueError("these methods keep their lists")
    return lists


def run(index: int, seed: int) -> list[Outcome]:
    """One survey of one piece."""
    name, silence, method, epsilon = PIECES[index % len(PIECES)].split("/")
    case, start = asked(name), process_time()
    rng = np.random.default_rng(seed)
    picked = rng.integers(0, len(case.table.codes), len(case.table.codes))
    codes = case.table.codes[picked]
    is_category = silence.endswith("category")
    if silence in ("MCAR", "category"):
        codes = with_missing(codes, rng.random(codes.shape) < RATE)
    elif silence == "MAR-category":
        codes = with_missing(codes, mask(name, "MAR", RATE)[picked])
    missing = MissingMethod.VALUES if is_category else MissingMethod.WEIGHTED
    spend = Spend(epsilon=Fraction(epsilon), delta=Fraction(0) if "laplace" in method else DELTA)
    network = METHODS[method.removesuffix("-laplace")].fit(
        FitTask(
            held(codes, case.domain),
            case.domain,
            missing,
            spend,
            noise=QuickSynthNoise(rng),
            step=lambda _: None,
        )
    )
    made, piece, tables = [], PIECES[index % len(PIECES)], MeasuredTables(_kept(network.lists))
    known = truths(name, is_category, silence)
    for at, ((kind, question), truth) in enumerate(zip(case.questions, known, strict=True)):
        if truth is not None:
            made.append(_outcome(f"{piece}|{kind}|{at}", question, tables, truth[0], float(epsilon)))
    return [replace(each, seconds=process_time() - start) for each in made]


def _outcome(
    query: str, question: TableQuestion, tables: MeasuredTables, truth: float, epsilon: float
) -> Outcome:
    try:
        (found,) = answer_directly(question, tables, design_effect=1.0)
    except NoInterval:
        return Outcome(method="none", query=query, epsilon=epsilon, truth=truth, estimate=truth)
    return Outcome(
        method="direct",
        query=query,
        epsilon=epsilon,
        truth=truth,
        estimate=found.estimate,
        low=found.low,
        high=found.high,
    )


def told(outcomes: pa.Table) -> list[Row]:
    """A row for every piece and kind of question: coverage and width over runs and questions."""
    found: dict[tuple[str, str], Row] = {}
    for key, lines in groups(outcomes):
        piece, kind, at = key["query"].split("|")
        row = found.setdefault(
            (piece, kind), {"asked": 0, "held": [], "naive": [], "ratio": [], "run": set()}
        )
        row["asked"] += len(lines["truth"])
        row["run"] |= set(lines["run"].tolist())
        if key["method"] == "direct":
            name, silence, _, _ = piece.split("/")
            usual = _usual(name, silence, int(at))
            row["held"] += ((lines["low"] <= lines["truth"]) & (lines["truth"] <= lines["high"])).tolist()
            row["naive"] += (np.abs(lines["estimate"] - lines["truth"]) <= usual).tolist()
            row["ratio"] += ((lines["high"] - lines["low"]) / 2 / max(usual, 1e-300)).tolist()
    return [_row(piece, kind, row) for (piece, kind), row in found.items()]


def _usual(name: str, silence: str, at: int) -> float:
    known = truths(name, silence.endswith("category"), silence)[at]
    return known[1] if known is not None else 0.0


def _row(piece: str, kind: str, row: Row) -> Row:
    dataset, silence, method, epsilon = piece.split("/")
    return {
        "dataset": dataset,
        "mask": silence,
        "method": method,
        "query": kind,
        "epsilon": float(epsilon),
        "level": LEVEL,
        "leading": piece in LEADING,
        "coverage": float(np.mean(row["held"])) if row["held"] else None,
        "naive": float(np.mean(row["naive"])) if row["naive"] else None,
        "width_ratio": float(np.median(row["ratio"])) if row["ratio"] else None,
        "measured": len(row["held"]) / row["asked"],
        "runs": len(row["run"]),
    }


def _lacks(piece: str) -> bool:
    return not at_hand(piece.split("/")[0])


def experiment() -> Experiment:
    """Coverage of direct answers, piece by piece."""
    return Experiment(
        name="synth-intervals",
        title="Intervals from the noisy tables behind synthetic rows: how often they hold",
        source="synthesis",
        run=run,
        params={"level": LEVEL, "rate": RATE, "delta": "0.000001"},
        runs=20,
        batch=1,
        pieces=PIECES,
        lacks=_lacks,
        told=told,
    )
