"""Do intervals from synthetic tables hold? Every run draws rows with replacement from a table, which is the truth.

A piece is a table, a kind of silence, a method and an epsilon: `adult/MCAR/pairs/1`. Its questions are fixed: shares of the
largest levels, means of numbers, and for every pair of columns the largest cell and the one nearest to 2 %; for pairs of a
number and a category a difference of means, a slope and a logistic slope; a regression on several predictors, coefficient by
coefficient. Told are, for each kind of question and for all of them,

    coverage      how often the 95 % interval holds the truth, over runs and questions that have an interval
    width_ratio   its median width over that of the usual interval without privacy, from as many complete rows
    measured      the share of questions that have an interval at all
    naive         how often the usual interval about the same estimate holds, as if there were no noise: the twin that must fail

Rows are drawn one by one, so the design effect is 1. Complete rows, MCAR and MAR: the truth is the table's own. Silence as a
category: shares count silence, and the truth does too. Of `-copies` the intervals are those of twenty bootstrap copies, for
questions about tables that were measured.
"""

from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from functools import cache
from math import isfinite
from time import process_time

import numpy as np
import pyarrow as pa

from reticent.lab.noise import NoSynthNoise, QuickSynthNoise
from reticent.lab.run.experiment import Experiment, Outcome, Row
from reticent.lab.run.summary import groups
from reticent.lab.trials.asked import TableQuestions, asked
from reticent.lab.trials.fitting import DELTA, held_in_steps
from reticent.lab.trials.masks import mask
from reticent.lab.trials.tables import Codes, at_hand, with_missing
from reticent.noise.bits import Bits
from reticent.refine.combine import combine
from reticent.synth.answer import DirectAnswer, answer_directly
from reticent.synth.base import FitTask, MissingMethod, Spend
from reticent.synth.bootstrap import bootstrap
from reticent.synth.direct import MeasuredTables, NoInterval
from reticent.synth.domain import decode
from reticent.synth.marginals.aim import AIM
from reticent.synth.marginals.mst import MST
from reticent.synth.marginals.pairs import AllPairs
from reticent.synth.model_only import rows_answer
from reticent.synth.network import Network
from reticent.synth.questions import TableQuestion

LEVEL, Z = 0.95, 1.959963984540054
RATE = 0.2
COPIES = 20
METHODS: dict[str, AllPairs | MST | AIM] = {
    "pairs": AllPairs(most_pairs=0, iterations=1, last=1),
    "mst": MST(residuals=True, iterations=1),
    "aim": AIM(residuals=True),
    "mst-copies": MST(residuals=True),
}
"""Intervals come from the noisy tables, so the model need not be fitted well, but for copies; aim chooses by its model, which is."""
LEADING = tuple(
    f"adult/{silence}/{method}/1" for method in ("pairs", "mst", "aim") for silence in ("complete", "MCAR")
)
PIECES = (
    *LEADING,
    *(
        f"adult/{silence}/{method}/3"
        for method in ("pairs", "mst", "aim")
        for silence in ("complete", "MCAR")
    ),
    *(
        f"adult/{silence}/{method}/1"
        for method in ("pairs", "mst", "aim")
        for silence in ("category", "MAR-category", "MAR")
    ),
    *(
        f"adult/{silence}/{method}-laplace/1"
        for method in ("pairs", "mst", "aim")
        for silence in ("complete", "MCAR")
    ),
    *(
        f"{name}/{silence}/{method}/1"
        for name in ("census", "national")
        for method in ("pairs", "mst", "aim")
        for silence in ("complete", "MCAR", "MAR-category")
    ),
    *(
        f"{name}/{silence}/{method}/3"
        for name in ("census", "national")
        for method in ("pairs", "mst", "aim")
        for silence in ("complete", "MCAR")
    ),
    *(f"adult/{silence}/mst-copies/1" for silence in ("complete", "MCAR")),
)
EVERY = "all"
"""The kind of question that stands for all of them."""


@cache
def truths(name: str, is_category: bool, silence: str) -> tuple[tuple[tuple[float, float], ...], ...]:
    """Of every question its answers, from the whole table without noise, each with the usual half-width without privacy."""
    case = asked(name)
    codes = case.table.codes
    if is_category:
        codes = with_missing(codes, mask(name, "MAR" if silence.startswith("MAR") else "MCAR", RATE))
    spend = Spend(epsilon=Fraction(1000), delta=DELTA)
    network = fitted("pairs", codes, case, is_category, spend, NoSynthNoise(np.random.default_rng(0)))
    tables = tables_of(network)
    return tuple(
        tuple((each.estimate, Z * (each.sampling or 0.0)) for each in answers(question, tables))
        for _, question in case.questions
    )


def fitted(
    method: str,
    codes: Codes,
    case: TableQuestions,
    is_category: bool,
    spend: Spend,
    noise: NoSynthNoise | QuickSynthNoise,
) -> Network:
    """What the method makes of these rows."""
    missing = MissingMethod.VALUES if is_category else MissingMethod.WEIGHTED
    rows = held_in_steps(codes, case.domain)
    return METHODS[method].fit(FitTask(rows, case.domain, missing, spend, noise=noise, step=lambda _: None))


def tables_of(network: Network) -> MeasuredTables:
    """The noisy tables that these methods keep."""
    if network.lists is None:
        raise ValueError("these methods keep their lists")
    return MeasuredTables(network.lists)


def answers(question: TableQuestion, tables: MeasuredTables) -> tuple[DirectAnswer, ...]:
    """The answers that have an interval: none, one, or one for each coefficient."""
    try:
        return answer_directly(question, tables, design_effect=1.0)
    except NoInterval:
        return ()


def run(index: int, seed: int) -> list[Outcome]:
    """One survey of one piece."""
    piece = PIECES[index % len(PIECES)]
    name, silence, method, epsilon = piece.split("/")
    case, start = asked(name), process_time()
    rng = np.random.default_rng(seed)
    picked = rng.integers(0, len(case.table.codes), len(case.table.codes))
    codes, is_category = case.table.codes[picked], silence.endswith("category")
    if silence == "MCAR":
        codes = with_missing(codes, rng.random(codes.shape) < RATE)
    elif (
        silence != "complete"
    ):  # whoever is drawn is silent where the table is: of silence as a category, too, the table is the truth
        codes = with_missing(codes, mask(name, "MCAR" if silence == "category" else "MAR", RATE)[picked])
    spend = Spend(epsilon=Fraction(epsilon), delta=Fraction(0) if "laplace" in method else DELTA)
    noise = QuickSynthNoise(rng)
    network = fitted(method.removesuffix("-laplace"), codes, case, is_category, spend, noise)
    tables, known = tables_of(network), truths(name, is_category, silence)
    direct = [answers(question, tables) for _, question in case.questions]
    found = from_copies(network, case, direct, len(codes), noise.bits) if "copies" in method else direct
    made = [
        each
        for at, (truth, answered) in enumerate(zip(known, found, strict=True))
        for each in _outcomes(f"{piece}|{case.questions[at][0]}|{at}", truth, answered, float(epsilon))
    ]
    return [replace(each, seconds=process_time() - start) for each in made]


def _outcomes(
    query: str,
    truth: tuple[tuple[float, float], ...],
    answered: tuple[DirectAnswer, ...],
    epsilon: float,
) -> Iterator[Outcome]:
    """One for each answer that there is to a question, with its place among them."""
    for place, (true, _) in enumerate(truth):
        key = f"{query}|{place}"
        if not answered:
            yield Outcome(method="none", query=key, epsilon=epsilon, truth=true, estimate=true)
            continue
        each = answered[place]
        yield Outcome(
            method="direct",
            query=key,
            epsilon=epsilon,
            truth=true,
            estimate=each.estimate,
            low=each.low,
            high=each.high,
        )


def from_copies(
    network: Network,
    case: TableQuestions,
    direct: list[tuple[DirectAnswer, ...]],
    rows: int,
    bits: Bits,
) -> list[tuple[DirectAnswer, ...]]:
    """What an analyst of rows and their bootstrap copies would tell, of questions that have a direct interval, too."""
    tables = [
        decode(each.draw(rows, bits), case.domain, bits)
        for each in (network, *bootstrap(network, COPIES, bits))
    ]
    made = []
    for (_, question), known in zip(case.questions, direct, strict=True):
        told = [list(rows_answer(question, table, case.domain.schema)) for table in tables] if known else []
        made.append(tuple(_combined([value for _, value in each]) for each in zip(*told, strict=True)))
    return [each if all(isfinite(one.estimate) for one in each) else () for each in made]


def _combined(values: list[float]) -> DirectAnswer:
    released, *copies = values
    if not all(map(isfinite, values)):
        return DirectAnswer(words="", estimate=float("nan"))
    found = combine(released, copies, level=LEVEL)
    return DirectAnswer(words="", estimate=found.estimate, low=found.low, high=found.high)


def told(outcomes: pa.Table) -> list[Row]:
    """A row for every piece and kind of question, and one for all kinds: coverage and width over runs and questions."""
    found: dict[tuple[str, str], Row] = {}
    for key, lines in groups(outcomes):
        piece, kind, at, place = key["query"].split("|")
        for each in (kind, EVERY):
            row = found.setdefault(
                (piece, each), {"asked": 0, "held": [], "naive": [], "ratio": [], "run": set()}
            )
            row["asked"] += len(lines["truth"])
            row["run"] |= set(lines["run"].tolist())
            if key["method"] == "direct":
                name, silence, _, _ = piece.split("/")
                usual = truths(name, silence.endswith("category"), silence)[int(at)][int(place)][1]
                row["held"] += ((lines["low"] <= lines["truth"]) & (lines["truth"] <= lines["high"])).tolist()
                row["naive"] += (np.abs(lines["estimate"] - lines["truth"]) <= usual).tolist()
                row["ratio"] += ((lines["high"] - lines["low"]) / 2 / max(usual, 1e-300)).tolist()
    return [_row(piece, kind, row) for (piece, kind), row in sorted(found.items(), key=_order)]


def _order(found: tuple[tuple[str, str], Row]) -> int:
    """By piece; kinds stay in the order of the questions, all of them at the end."""
    (piece, kind), _ = found
    return 2 * PIECES.index(piece) + (kind == EVERY)


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
        params={"level": LEVEL, "rate": RATE, "delta": "0.000001", "copies": COPIES},
        runs=20,
        batch=1,
        pieces=PIECES,
        cases=PIECES,
        lacks=_lacks,
        told=told,
    )
