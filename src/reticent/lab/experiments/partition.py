"""One question asked of a whole sample, and of one of ten pieces of it: ten analysts, each with the full budget.

The share of adults among the males of a sample. A piece has a tenth of the people and the same epsilon; the other
way to serve ten analysts is a tenth of the epsilon for each, on everybody.

`partition-full` has the sizes of the thesis: a tenth of a hundred million people, and epsilons up to a hundredth. Who is drawn
does not matter for a share, only how many of them are adults; so their number is drawn, by its exact law.
"""

from fractions import Fraction
from functools import cache, partial
from typing import Any

import numpy as np
import pyarrow as pa

from reticent.engine.wants import SufficientStatistics, Tallies
from reticent.exact import show
from reticent.lab.noise import QuickNoise
from reticent.lab.papers.items import printed
from reticent.lab.run.experiment import Experiment, Outcome, Row
from reticent.lab.run.figures import BOX_WORDS, box, boxes, titled
from reticent.lab.run.summary import Floats, groups
from reticent.lab.world.state import people
from reticent.plan.plan import Plan, plan_from
from reticent.release.statistics import evaluate
from reticent.report.marks import Spec

EPSILONS = ("0.1", "0.5", "1", "2", "5", "10")
PIECES = 10
FULL, PIECE, SHARED = "full sample", "one of ten pieces", "full sample, a tenth of epsilon"
QUERY = "adults among males"
STATE_SEED = 7


@cache
def males(size: int) -> np.ndarray[Any, np.dtype[np.bool_]]:
    """Of every male of the state, whether he is an adult."""
    state = people(size, seed=STATE_SEED)
    male = state["sex"].cast(pa.string()).to_numpy(zero_copy_only=False) == "m"
    return np.asarray(state["age"].to_numpy()[male] >= 18)


@cache
def plan(epsilon: str) -> Plan:
    """A proportion under replacement, at this epsilon."""
    columns = {"age": {"kind": "integer", "bounds": [0, 99]}}
    data = {
        "survey": {"source": "rows", "codebook": "codebook", "ledger": "none"},
        "release": {"id": "partition"},
        "protect": {"change": "one respondent's answers replaced", "epsilon": "20"},
        "statistic": [{"name": QUERY, "query": {"proportion": "age >= 18"}, "epsilon": epsilon}],
    }
    return plan_from(data, {"survey": {"name": "males", "unit": "row"}, "columns": columns})


def run(index: int, seed: int, *, size: int, rows: int) -> list[Outcome]:
    """One sample, one piece of it, one stream of noise for each way and epsilon."""
    rng = np.random.default_rng(seed)
    known = males(size)
    sample = rng.choice(known, rows, replace=False)
    piece = rng.choice(sample, rows // PIECES, replace=False)
    truth = float(np.mean(known))
    ways = ((FULL, sample, 1), (PIECE, piece, 1), (SHARED, sample, PIECES))
    return [
        _outcome(method, len(asked), int(asked.sum()), epsilon, shared, truth, rng)
        for epsilon in EPSILONS
        for method, asked, shared in ways
    ]


def _outcome(
    method: str, rows: int, adults: int, epsilon: str, shared: int, truth: float, rng: np.random.Generator
) -> Outcome:
    made = plan(show(Fraction(epsilon) / shared))
    decided, true = made.asks[0].query.wants(made.schema)
    sums = {decided: rows, true: adults}
    tallies = Tallies(statistics=SufficientStatistics(sums=sums), tables={})  # type: ignore[arg-type]
    estimate = evaluate(made, tallies, QuickNoise(rng))[QUERY].estimates[0]
    return Outcome(
        method=method, query=QUERY, epsilon=float(epsilon), truth=truth, estimate=float(estimate.value)
    )


SMALL = ("0.0001", "0.0005", "0.001", "0.005", "0.01")
COPIES = 100
FIGURE, LAPLACE = "Figure 5.1", ", Laplace noise"


def run_full(index: int, seed: int, *, size: int, copies: int) -> list[Outcome]:
    """A tenth of `copies` states of this size and a tenth of that, by our plan and by Laplace noise on the share."""
    rng, known = np.random.default_rng(seed), males(size)
    people_, adults = copies * len(known), copies * int(known.sum())
    rows = people_ // PIECES
    told = int(rng.hypergeometric(adults, people_ - adults, rows))
    held = rows // PIECES
    in_piece = int(rng.hypergeometric(told, rows - told, held))
    truth, outcomes = adults / people_, []
    for epsilon in SMALL:
        for method, asked, count, shared in ((SHARED, rows, told, PIECES), (PIECE, held, in_piece, 1)):
            outcomes.append(_outcome(method, asked, count, epsilon, shared, truth, rng))
            noisy = count / asked + float(rng.laplace(0, shared / (asked * float(epsilon))))
            at: dict[str, Any] = {"query": QUERY, "epsilon": float(epsilon), "truth": truth}
            outcomes.append(Outcome(method=method + LAPLACE, estimate=noisy, **at))
    return outcomes


def variances(*, rows: int, share: float, epsilon: float) -> dict[str, float]:
    """By the thesis's formulas: of the whole sample at a tenth of epsilon, and of one of ten pieces, given the sample."""
    held = rows // PIECES
    sampling = share * (1 - share) / held * (rows - held) / (rows - 1)
    return {SHARED: 2 * PIECES**2 / (rows * epsilon) ** 2, PIECE: sampling + 2 / (held * epsilon) ** 2}


def findings(outcomes: pa.Table, *, size: int, copies: int) -> list[Row]:
    """What is said of the figure, and the variances by formula, beside the errors over the runs."""
    errors = {(key["method"], key["epsilon"]): lines for key, lines in groups(outcomes)}
    share = float(np.mean(males(size)))
    rows, made = copies * len(males(size)) // PIECES, []
    for epsilon in (float(text) for text in SMALL):
        exact = variances(rows=rows, share=share, epsilon=epsilon)
        # The formulas are about a given sample; its own error from the state comes on top, for both.
        above = share * (1 - share) / rows * (1 - 1 / PIECES)
        for method, formula in exact.items():
            for noise in (LAPLACE, ""):
                value = float(_error(errors[method + noise, epsilon]).var())
                item = {"item": f"variance of the share, {method}{noise}", "epsilon": epsilon}
                made.append({**item, "as_printed": formula + above, "value": value})
    excess = share * (1 - share) / (rows // PIECES) * (rows - rows // PIECES) / (rows - 1)
    bound = (PIECES - 1) / (4 * (rows - 1))
    made.append({"item": "variance that a piece adds, at most", "as_printed": bound, "value": excess})
    return [*made, *_said(errors, rows, share)]


def _said(errors: dict[tuple[str, float], dict[str, Floats]], rows: int, share: float) -> list[Row]:
    """The three numbers of the text, by the document's noise. Errors are in per cent of everybody.

    Alike: the standard deviations, by formula, differ by less than a tenth.
    """
    small = [float(text) for text in SMALL]
    pieces = {e: 100 * np.abs(_error(errors[PIECE + LAPLACE, e])) for e in small}
    by = {e: variances(rows=rows, share=share, epsilon=e) for e in small}
    alike = [e for e in small if by[e][PIECE] < 1.1**2 * by[e][SHARED]]
    mostly = [e for e in small if np.median(pieces[e]) < 0.5]
    found = {
        "epsilon up to which both are alike": max(alike, default=0.0),
        "epsilon at which most errors are below half a per cent": min(mostly, default=0.0),
        "error in % that 90 % of pieces stay under": float(np.quantile(pieces[0.005], 0.9)),
    }
    said = {name: printed("thesis", FIGURE, name) for name in found}
    return [{"item": f"{FIGURE}, {name}", "printed": said[name], "value": v} for name, v in found.items()]


def _error(lines: dict[str, Floats]) -> Floats:
    return np.asarray(lines["estimate"] - lines["truth"])


SHORT = {
    SHARED + LAPLACE: "everybody, Laplace noise",
    PIECE + LAPLACE: "a piece, Laplace noise",
    SHARED: "everybody, a plan",
    PIECE: "a piece, a plan",
}
"""Labels of the large figure; everybody is asked at a tenth of epsilon there."""


def figures(
    outcomes: pa.Table, *, said: str, labels: dict[str, str] | None = None, name: str = "partition"
) -> dict[str, Spec]:
    """Boxes around the truth, by epsilon; with `labels`, the lines in their order."""
    order = list(labels or {})
    found = list(groups(outcomes))
    if labels:
        found.sort(key=lambda one: (one[0]["epsilon"], order.index(one[0]["method"])))
    lines = [
        box(
            100 * (values["estimate"] / values["truth"] - 1),
            panel=f"epsilon {key['epsilon']:g}",
            label=labels[key["method"]] if labels else key["method"],
            noisy=key["method"].startswith(PIECE),
        )
        for key, values in found
    ]
    runs = len(outcomes["run"].unique())
    return {name: titled(boxes(lines), "Ten analysts, one sample", said, f"{runs:,} runs. {BOX_WORDS}")}


def experiment(*, size: int = 200_000, rows: int = 10_000) -> Experiment:
    """Estimates from a whole sample, from a piece of a partition, and at a tenth of epsilon."""
    return Experiment(
        name="partition",
        title="A question to a whole sample, to one of ten pieces, and at a tenth of epsilon",
        source="Privacy in complex sample based surveys, Figure 5.1",
        run=partial(run, size=size, rows=rows),
        params={"size": size, "rows": rows, "epsilons": EPSILONS, "pieces": PIECES},
        runs=1000,
        batch=50,
        figures=partial(
            figures,
            said=f"A simple sample of {rows:,} males of a simulated state of {size:,}; a piece has {rows // PIECES:,}.",
        ),
    )


def full(*, size: int = 1_000_000, copies: int = COPIES) -> Experiment:
    """At the sizes of the thesis: ten million rows out of a hundred copies of a state of a million."""
    return Experiment(
        name="partition-full",
        title="The same at the sizes of the document: ten million rows, epsilon up to 0.01",
        source="Privacy in complex sample based surveys, Figure 5.1",
        run=partial(run_full, size=size, copies=copies),
        params={"size": size, "copies": copies, "epsilons": SMALL, "pieces": PIECES},
        runs=1000,
        batch=100,
        figures=partial(
            figures,
            said=f"A tenth of the males among {size * copies:,} simulated people, and a tenth of that for a piece. "
            "Everybody is asked at a tenth of the epsilon of a piece.",
            labels=SHORT,
            name="partition-full",
        ),
        more=partial(findings, size=size, copies=copies),
    )
