"""The numbers of *A practical method to reduce privacy loss when disclosing statistics based on small samples*, one by one.

The document's tract of 20 people and its table of cells are hypothetical and not published. In their place stand 20 people of
our own, laid so that they have the printed numbers, and the simulated atlas. Its precision is told of real outcomes; those are
not public either. Nothing is drawn, but for the people of the atlas and of the placebo example, which are always the same.
"""

from collections.abc import Iterator, Sequence
from fractions import Fraction
from functools import partial

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from reticent.lab.cells import ATLAS_SEED, ESTIMATOR, LEAST
from reticent.lab.noise import SeededBits
from reticent.lab.papers.items import printed, several
from reticent.lab.papers.placebo import estimate, largest_chi, release_placebo
from reticent.lab.papers.suppress import (
    FewEvents,
    FewRespondents,
    one_cell,
    reliability,
    scatters,
    worked_example,
)
from reticent.lab.run.experiment import Experiment, Outcome, Row
from reticent.lab.trials.tables import data_folder
from reticent.lab.world.atlas import TRACTS, Atlas, atlas
from reticent.smallcells.local import local_sensitivity
from reticent.smallcells.observed import envelope
from reticent.smallcells.points import GridPoints

DOCUMENT = "small-cells"
PARENTS = (22, 27, 27, 29, 31, 36, 40, 43, 46, 49, 58, 58, 59, 65, 70, 75, 88, 98, 98, 98)
CHILDREN = (16, 2, 14, 62, 24, 52, 45, 37, 29, 27, 13, 37, 36, 26, 25, 63, 52, 97, 54, 68)
"""Ranks in hundredths of 20 people who have the numbers of Figure 1: found by trying, and nobody's."""
OUR_PEOPLE = "20 people of our own; those of the figure are hypothetical and not published"
OUR_ATLAS = "the simulated atlas; the figure's data are hypothetical and not published"
OUR_BIRTHS = "births of the simulated atlas; those of the figure are not public"
EXAMPLE, FINE = "mose_example.parquet", 2**31


def tract() -> GridPoints:
    """Figure 1's tract."""
    x, y = (np.array(each, dtype=np.int64) for each in (PARENTS, CHILDREN))
    return GridPoints(starts=np.array([0, len(x)], np.int64), x=x, y=y, x_steps=100, y_steps=100)


def run(index: int, seed: int, *, tracts: int) -> list[Outcome]:
    """All items; the first two arguments do not matter. `query` says what differs."""
    made = atlas(tracts, seed=ATLAS_SEED)
    return [
        *_one_tract(),
        *_envelope(made),
        *_slopes(made),
        *_precision(),
        *_differencing(),
        *_placebo(),
    ]


def _one_tract() -> Iterator[Outcome]:
    rows = one_cell(tract(), 0, Fraction(1, 4))
    worst = max(rows, key=lambda row: row["moved"])
    local = float(local_sensitivity(tract(), ESTIMATOR)[0])
    found = {
        "prediction": rows[0]["prediction"],
        f"prediction {worst['line']}, the worst point": worst["prediction"],
        "local sensitivity": local,
    }
    stated = {what: printed(DOCUMENT, "Figure 1", what) for what in found}
    first, moved, _ = (Fraction(each.digits) for each in stated.values())
    for what, value in found.items():
        apart = float(moved - first) if what == "local sensitivity" else None
        yield Outcome(
            item=f"Figure 1, {what}",
            printed=stated[what],
            as_printed=apart,
            value=float(value),
            query=OUR_PEOPLE,
        )


def _envelope(made: Atlas) -> Iterator[Outcome]:
    """Figure 2, and the same by state."""
    sizes, states = made.tracts.people, made.tracts.state
    local = local_sensitivity(made.ranks, ESTIMATOR)
    chi = float(envelope(local, sizes, least=LEAST).chi[0])
    yield Outcome(
        item="Figure 2, chi", printed=printed(DOCUMENT, "Figure 2", "chi"), value=chi, query=OUR_ATLAS
    )
    for state, each in enumerate(envelope(local, sizes, groups=states, least=LEAST).chi):
        if each:
            yield Outcome(item=f"chi, state {state + 1:02}", value=float(each), query=OUR_ATLAS)


def _slopes(made: Atlas) -> Iterator[Outcome]:
    """Figure 3: births on single parents, nothing withheld, and tracts with 1 to 4 births withheld."""
    asked = made.tracts.asked > 0
    given = made.tracts.single[asked], made.tracts.asked[asked], made.events()[asked]
    whole, kept = scatters(*given, FewEvents())
    stated = printed(DOCUMENT, "Figure 3a", "slope")
    yield Outcome(item="Figure 3a, slope", printed=stated, value=whole.slope, query=OUR_BIRTHS)
    why = f"{OUR_BIRTHS}; not to be told from 0, says the document"
    yield Outcome(item="Figure 3b, slope", value=kept.slope, query=why)
    lost = 100 * (1 - kept.slope / whole.slope)
    yield Outcome(item="Figure 3b, % of the slope that suppression takes away", value=lost, query=OUR_BIRTHS)


def _precision() -> Iterator[Outcome]:
    """The noise's share off the reliability in points, as printed, and as it multiplies."""
    share, before, after = (
        printed(DOCUMENT, "Precision", what)
        for what in ("share of the variance that is noise", "reliability before", "reliability after")
    )
    noise = share / 100
    found = reliability(variance=1.0, sampling=1 - before / 100, noise=noise / (1 - noise))
    yield Outcome(item="Precision, % of the variance that is noise", printed=share, query="as printed")
    yield Outcome(item="Precision, reliability before noise, %", printed=before, query="as printed")
    yield Outcome(
        item="Precision, reliability after noise, %",
        printed=after,
        as_printed=before - share,
        value=100 * found.after,
        query="taken off in points; ours: a share of the variance multiplies",
    )


def _differencing() -> Iterator[Outcome]:
    """150 people, then 151: two means that a threshold of 100 lets pass."""
    name, rule = "Suppression and differencing", FewRespondents(least=100)
    answers = [Fraction(n % 3 == 0) for n in range(150)] + [Fraction(1)]
    before, after, told = worked_example(answers, rule)
    found = {
        "withheld below so many events": [FewEvents().high + 1],
        "withheld below so many people": [rule.least],
        "people of two means": [before.people, after.people],
    }
    for what, values in found.items():
        for stated, value in zip(several(DOCUMENT, name, what), values, strict=True):
            yield Outcome(item=f"{name}, {what}", printed=stated, value=float(value), query="as run here")
    item = f"{name}, answer of the 151st person by two exact means"
    yield Outcome(item=item, value=float(told), query="it is 1")


Person = tuple[bool, bool, Fraction]
"""Whether of the treated, whether asked afterwards, and the answer, 0 or 1."""


def difference_in_differences(people: Sequence[Person]) -> Fraction | None:
    """The treated's change less the others' change."""
    means = {}
    for treated in (False, True):
        for after in (False, True):
            told = [y for t, a, y in people if (t, a) == (treated, after)]
            if not told:
                return None
            means[treated, after] = sum(told, Fraction(0)) / len(told)
    return (means[True, True] - means[True, False]) - (means[False, True] - means[False, False])


EVERYBODY: tuple[Person, ...] = tuple(
    (treated, after, Fraction(y)) for treated in (False, True) for after in (False, True) for y in (0, 1)
)


def cells_of(*, people: int, effect: float, seed: int) -> list[Person]:
    """So many people in each of four groups; one in five says yes, and of the treated afterwards `effect` more."""
    rng = np.random.default_rng([ATLAS_SEED, seed])
    made: list[Person] = []
    for treated in (False, True):
        for after in (False, True):
            chance = 0.2 + effect * (treated and after)
            made += [(treated, after, Fraction(int(y))) for y in rng.random(people) < chance]
    return made


def _placebo() -> Iterator[Outcome]:
    real, placebos = (
        cells_of(people=40, effect=0.3, seed=0),
        [cells_of(people=40, effect=0, seed=n) for n in range(1, 7)],
    )
    bits = SeededBits(np.random.default_rng(1))
    epsilon, grid = Fraction(8), Fraction(1, 10**4)
    made = release_placebo(
        difference_in_differences, real, placebos, EVERYBODY, epsilon=epsilon, grid=grid, bits=bits
    )
    why = "a difference in differences, four groups of 40 and six placebos, epsilon 8; not differentially private"
    told = {
        "estimate without noise": estimate(difference_in_differences, real),
        "chi of the real cell": largest_chi(difference_in_differences, [real], EVERYBODY),
        "chi over placebos and the real cell": made.chi,
        "estimate released": made.estimate,
        "sd of its noise": made.noise_variance**0.5,
    }
    for what, value in told.items():
        yield Outcome(item=f"Placebo, {what}", value=float(value or 0), query=why)


def public_example(_: pa.Table) -> list[Row]:
    """chi of the example that goes with the document, read anew each time; without its file, why it is not told."""
    path = data_folder() / EXAMPLE
    item = "Public example, chi"
    if not path.is_file():
        return [
            {
                "item": item,
                "query": f"not computed: {EXAMPLE} is not at hand; name its folder in RETICENT_DATA",
            }
        ]
    points = _example_points(pq.read_table(path))
    sizes = np.diff(points.starts)
    local = local_sensitivity(points, ESTIMATOR, corners_only=True, removals=False)
    at = {"query": "corners and no removals; none is printed"}
    return [
        {"item": "Public example, cells", **at, "value": float(len(sizes))},
        {"item": "Public example, people", **at, "value": float(sizes.sum())},
        {"item": item, **at, "value": float((sizes * local).max())},
    ]


def _example_points(raw: pa.Table) -> GridPoints:
    """Its people cell by cell, ranks on a grid fine enough to move nothing."""
    cell, x, y = (raw[name].to_numpy().astype(float) for name in ("cell", "parent_rank", "kid_rank"))
    order = np.lexsort((y, x, cell))
    sizes = np.unique(cell, return_counts=True)[1]
    return GridPoints(
        starts=np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64),
        x=np.rint(x[order] * FINE).astype(np.int64),
        y=np.rint(y[order] * FINE).astype(np.int64),
        x_steps=FINE,
        y_steps=FINE,
    )


def experiment(*, tracts: int = TRACTS) -> Experiment:
    """The numbers, the atlas at any size."""
    return Experiment(
        name="small-cells-printed",
        title="The document on small cells, number by number: one tract, chi, slopes, precision, placebos",
        source="A practical method to reduce privacy loss when disclosing statistics based on small samples, Figures 1 to 3",
        run=partial(run, tracts=tracts),
        params={"tracts": tracts, "atlas": ATLAS_SEED},
        exact=True,
        more=public_example,
    )
