"""Figures 4 to 6 of *Differentially private k-nearest neighbor missing data imputation*, in the document's setting.

Each run draws a sample of a simulated state and who of it is silent. The silent are the more schooled, so ignoring them makes
the mean wage too low, as in the document. One nearest donor, Euclidean after one-hot coding, age by decade, ties by row
number; sizes are known; epsilon is 6 ln 2. Every method is held against the state, with everybody's wage:

    ignore                those who answered, Laplace noise
    global                donors, Laplace noise for every gap at once
    published             donors, the published bound 1 + L_1 and its generalised Cauchy noise
    reticent-size-known   the same filled answers, our bound and double Lomax noise

Wages are today's dollars and the document's are of 1940, so what compares is one method's error over another's.
"""

from dataclasses import dataclass, field
from fractions import Fraction
from functools import cache, partial
from itertools import product
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from reticent.lab.noise import QuickNoise
from reticent.lab.papers.items import Printed, printed
from reticent.lab.papers.row_donors import Flags, RowDonors
from reticent.lab.run.experiment import Experiment, Outcome, Row
from reticent.lab.run.figures import BOX_WORDS, box, boxes, titled
from reticent.lab.run.summary import Floats, groups
from reticent.lab.world import workers as wages
from reticent.lab.world.state import LEVELS, people
from reticent.prepare.distance import Distances, one_hot_euclidean
from reticent.report.marks import Spec
from reticent.sensitivity.bounds import smooth_bound
from reticent.sensitivity.donors import Constants
from reticent.sensitivity.hubs import Hubs

STATE_SEED = 2026
EPSILON = "4.158884"  # 6 ln 2, rounded up
MATCHED = ("sex", "race", "schooling", "employment")
HIGHEST = 500_000
IGNORE, GLOBAL, PUBLISHED, OURS_KNOWN = "ignore", "global", "published", "reticent-size-known"
METHODS = (IGNORE, GLOBAL, PUBLISHED, OURS_KNOWN)
MEANS, SHARES = ((20, 59), (20, 29), (40, 49)), ((20, 29), (40, 49))
SMOOTHNESS = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """A mean wage, or a share above the poverty line, of some ages; and the figure that asks it."""

    figure: str
    ages: tuple[int, int]
    share: bool

    @property
    def name(self) -> str:
        what = "above poverty" if self.share else "mean wage"
        return f"{what}, {self.ages[0]}-{self.ages[1]}"

    def printed(self, method: str) -> Printed:
        """The mean squared error that the document prints."""
        among = "" if self.figure == "Figure 4" else f"{self.ages[0]}-{self.ages[1]}, "
        return printed("donors", self.figure, f"{among}{method}")

    @property
    def methods(self) -> tuple[str, ...]:
        """Those with a printed error."""
        return (GLOBAL, IGNORE, PUBLISHED) if self.figure == "Figure 4" else (IGNORE, PUBLISHED)


QUESTIONS = (
    *(
        Question(figure="Figure 4" if n == 0 else "Figure 5", ages=a, share=False)
        for n, a in enumerate(MEANS)
    ),
    *(Question(figure="Figure 6", ages=ages, share=True) for ages in SHARES),
)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class WageState:
    """Those of the state who have a wage to tell: age, cell of the matching attributes, wage, and the true answers."""

    table: pa.Table = field(repr=False)
    distances: Distances = field(repr=False)
    cells: NDArray[np.int64] = field(repr=False)
    truth: dict[str, float]


@cache
def world(size: int) -> WageState:
    """Made once in every worker, and the same in all of them."""
    state = people(size, seed=STATE_SEED)
    table = state.filter(state["wage"].is_valid()).combine_chunks()
    codes = [
        pc.index_in(table[name].cast(pa.string()), pa.array(LEVELS[name])).fill_null(0).to_numpy()
        for name in MATCHED
    ]
    apart = one_hot_euclidean([list(range(10)), *(len(LEVELS[name]) for name in MATCHED)])
    decade = np.minimum(table["age"].to_numpy() // 10, 9)
    truth = {
        each.name: float(_values(each, table["wage"].to_numpy())[_aged(each, table)].mean())
        for each in QUESTIONS
    }
    cells = np.ravel_multi_index((decade.astype(np.int64), *codes), apart.shape)
    return WageState(table=table, distances=apart, cells=cells, truth=truth)


def _aged(question: Question, table: pa.Table) -> Flags:
    age, (low, high) = table["age"].to_numpy(), question.ages
    return np.asarray((age >= low) & (age <= high))


def _values(question: Question, wage: NDArray[Any]) -> Floats:
    return np.asarray(wage > wages.POVERTY if question.share else wage, dtype=float)


def run(index: int, seed: int, *, size: int, rows: int, silence: str) -> list[Outcome]:
    """A sample, its silence, its donors; then one draw of noise for every method and question."""
    state, rng = world(size), np.random.default_rng(seed)
    drawn = np.sort(rng.choice(state.table.num_rows, rows, replace=False))
    sample = state.table.take(pa.array(drawn))
    lost = wages.law(silence).draw(sample, seed=int(rng.integers(2**31)))["wage"].to_numpy()
    donors = RowDonors(distances=state.distances, cells=state.cells[drawn], gives=~lost)
    wage = sample["wage"].to_numpy().astype(float)
    asking = np.flatnonzero(lost & _aged(QUESTIONS[0], sample))
    filled = wage.copy()
    filled[asking] = wage[donors.of(asking)]
    noise = QuickNoise(rng)
    outcomes: list[Outcome] = []
    for question in QUESTIONS:
        here = _aged(question, sample)
        hubs = donors.hubs(np.flatnonzero(lost & here))
        told = _values(question, wage)[here & ~lost]
        found = _answers(question, told, _values(question, filled)[here], hubs, noise)
        outcomes += [
            Outcome(
                method=method,
                query=question.name,
                epsilon=float(EPSILON),
                truth=state.truth[question.name],
                estimate=estimate,
            )
            for method, estimate in found.items()
        ]
    return outcomes


def _answers(
    question: Question, told: Floats, filled: Floats, hubs: Hubs, noise: QuickNoise
) -> dict[str, float]:
    """By every method. One respondent moves a sum by `reach`, and each of its donees by as much again."""
    epsilon, reach = Fraction(EPSILON), Fraction(1 if question.share else HIGHEST)
    each = Constants(c0=reach, c1=reach).over(len(filled))
    ours = smooth_bound(hubs.ladder(each), epsilon / SMOOTHNESS)
    theirs = hubs.published(each, epsilon=epsilon)
    grid, exact = Fraction(1, 10**9), Fraction(float(filled.mean()))
    at = {"epsilon": epsilon, "grid": grid}
    gaps, scale = hubs.everybody, float(reach) / float(epsilon)
    return {
        IGNORE: float(told.mean() + noise.rng.laplace(0, scale / len(told))),
        GLOBAL: float(filled.mean() + noise.rng.laplace(0, scale * (1 + gaps) / len(filled))),
        PUBLISHED: float(noise.cauchy(exact, sensitivity=theirs, **at) * grid),
        OURS_KNOWN: float(noise.lomax(exact, sensitivity=ours, **at) * grid),
    }


def beside_printed(outcomes: pa.Table) -> list[Row]:
    """Mean squared errors beside the printed ones, and one method's over another's beside the same of printed numbers."""
    squares = {
        (key["query"], key["method"]): float(np.mean((lines["estimate"] - lines["truth"]) ** 2))
        for key, lines in groups(outcomes)
    }
    rows: list[Row] = []
    for each in QUESTIONS:
        at = {"query": each.name, "epsilon": float(EPSILON)}
        for method in METHODS:
            item = {"item": f"{each.figure}, mean squared error, {method}", **at}
            stated: Row = {"printed": each.printed(method)} if method in each.methods else {}
            rows.append({**item, **stated, "value": squares[each.name, method]})
        for top, bottom in product((GLOBAL, IGNORE), METHODS):
            if bottom not in (top, GLOBAL):
                known = {top, bottom} <= set(each.methods)
                item = {"item": f"{each.figure}, error of {top} over that of {bottom}", **at}
                stated = {"as_printed": each.printed(top) / each.printed(bottom)} if known else {}
                rows.append({**item, **stated, "value": squares[each.name, top] / squares[each.name, bottom]})
    for what, name, method in THESIS:
        stated = {"printed": printed("thesis", "Chapter 6, experiment", what)}
        rows.append({"item": f"Chapter 6, {what}", "query": name, **stated, "value": squares[name, method]})
    return rows


THESIS = (
    ("mean income, global", QUESTIONS[0].name, GLOBAL),
    ("share above the line, 20-29, ignore", QUESTIONS[3].name, IGNORE),
)
"""What the thesis prints in another form, of which question and method it is."""


def figures(outcomes: pa.Table, *, rows: int) -> dict[str, Spec]:
    """Figures 4 to 6 in one: a panel for every question. `global` is left out: its boxes would hide all others."""
    lines = [
        box(
            100 * (values["estimate"] / values["truth"] - 1),
            panel=f"{key['query']}",
            label=key["method"],
            noisy=key["method"] == OURS_KNOWN,
        )
        for key, values in groups(outcomes)
        if key["method"] != GLOBAL
    ]
    runs = len(outcomes["run"].unique())
    said = f"A new sample of {rows:,} workers of a simulated state in every run; the more schooled are silent. Epsilon 6 ln 2."
    made = titled(boxes(lines), "Donors as the document has them", said, f"{runs:,} runs. {BOX_WORDS}")
    return {"donors-figures": made}


def experiment(*, size: int = 500_000, rows: int = 200_000, silence: str = wages.MORE_SCHOOLED) -> Experiment:
    """The experiment at any size, under either law of silence."""
    return Experiment(
        name="donors-figures",
        title="Donors in the document's setting: the silent earn more, ties by row number, sizes known",
        source="Differentially private k-nearest neighbor missing data imputation, Figures 4 to 6",
        run=partial(run, size=size, rows=rows, silence=silence),
        params={"size": size, "rows": rows, "silence": silence, "epsilon": EPSILON},
        runs=200,
        figures=partial(figures, rows=rows),
        more=beside_printed,
    )
