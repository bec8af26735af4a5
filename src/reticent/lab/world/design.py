"""Sampling designs over a frame, with exact inclusion probabilities and the base weights they imply.

A probability is kept as a pair of whole numbers, and every draw compares whole numbers, so a design does
exactly what it says. A base weight is the inverse, rounded to the codebook's grid and clamped to its bound.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from reticent.errors import PlanError
from reticent.lab.world.state import Array, cents

HEAVIEST = 6000  # the codebook's bound on a weight, in hundredths


@dataclass(frozen=True, slots=True, kw_only=True)
class DrawnSample:
    """Rows of a frame, ascending, each drawn with probability `part / whole`."""

    rows: Array
    part: Array
    whole: Array

    def __post_init__(self) -> None:
        if not len(self.rows) == len(self.part) == len(self.whole):
            raise PlanError("every sampled row needs its own probability.", field="sample")
        if np.any(self.part < 1) or np.any(self.part > self.whole):
            raise PlanError("a sampled row has a probability above 0 and at most 1.", field="sample")

    def weights(self) -> Array:
        """Base weights in hundredths: floor(x + 1/2) of 100 whole / part, at most the codebook's bound."""
        # 100 whole / part + 1/2 = (200 whole + part) / (2 part)
        rounded = (200 * self.whole + self.part) // (2 * self.part)
        return np.asarray(np.minimum(rounded, HEAVIEST))

    def take(self, frame: pa.Table) -> pa.Table:
        """The sampled people with their base weights."""
        column = frame.column_names.index("weight")
        return frame.take(pa.array(self.rows)).set_column(column, "weight", cents(self.weights()))


def frame(
    people: pa.Table, *, least_age: int = 0, coverage: Fraction = Fraction(1), seed: int = 0
) -> pa.Table:
    """The sampling frame: people of an age, in the share of households that the list covers.

    **Parameters**

    - `people`: the population.
    - `least_age`: who is younger is not on the list.
    - `coverage`: the share of households on it.
    - `seed`: of the draw of those households.
    """
    listed = pc.greater_equal(people["age"], least_age).to_numpy()
    if coverage < 1:
        homes, at = np.unique(people["household"].to_numpy(), return_inverse=True)
        lot = np.random.default_rng(seed).integers(coverage.denominator, size=len(homes))
        listed = listed & (lot < coverage.numerator)[at]
    return people.filter(pa.array(listed))


def simple(frame: pa.Table, *, size: int, seed: int) -> DrawnSample:
    """A simple random sample: every set of `size` rows is equally likely.

    **Parameters**

    - `frame`: the list that is drawn from.
    - `size`: of the sample.
    - `seed`: of the draw.
    """
    return _within(np.zeros(frame.num_rows, dtype=int), [size], seed)


def stratified(frame: pa.Table, *, sizes: Mapping[str, int], seed: int, by: str = "stratum") -> DrawnSample:
    """Stratified sampling: a simple random sample of its own size in every stratum.

    **Parameters**

    - `frame`: the list that is drawn from.
    - `sizes`: for each stratum, as `allocate` gives them.
    - `seed`: of the draw.
    - `by`: the column that holds the stratum.
    """
    strata, codes = _strata(frame, by)
    if set(strata) != set(sizes):
        raise PlanError("every stratum of the frame needs a size, and no other.", field="sizes")
    return _within(codes, [sizes[stratum] for stratum in strata], seed)


def allocate(
    frame: pa.Table,
    *,
    size: int,
    by: str = "stratum",
    rule: Literal["proportional", "root", "equal"] = "proportional",
) -> dict[str, int]:
    """Sample allocation: split `size` over the strata by their population, its square root, or evenly.

    No stratum is asked for more people than it has; what it cannot give goes to the others.

    **Parameters**

    - `frame`: the list that is drawn from.
    - `size`: of the whole sample.
    - `by`: the column that holds the stratum.
    - `rule`: what a stratum's share goes by.
    """
    strata, codes = _strata(frame, by)
    room = np.bincount(codes)
    if not 0 <= size <= room.sum():
        raise PlanError(f"the sample size is {size}, but the frame lists {room.sum()}.", field="size")
    power = {"proportional": 1.0, "root": 0.5, "equal": 0.0}[rule]
    given = np.zeros(len(room), dtype=int)
    while (rest := size - given.sum()) > 0:
        claim = np.where(given < room, room**power, 0)
        exact = rest * claim / claim.sum()
        more = np.floor(exact).astype(int)
        order = np.argsort(-(exact - more), kind="stable")
        more[order[: rest - more.sum()]] += 1
        given = np.minimum(given + more, room)
    return {stratum: int(count) for stratum, count in zip(strata, given, strict=True)}


def poisson(frame: pa.Table, *, size: int, measure: Array, seed: int) -> DrawnSample:
    """Every row on its own, with probability in proportion to `measure`; `size` is expected, not fixed."""
    part, whole = probabilities(measure, size=size, rows=frame.num_rows)
    drawn = np.random.default_rng(seed).integers(whole) < part
    return DrawnSample(rows=np.flatnonzero(drawn), part=part[drawn], whole=whole[drawn])


def systematic(frame: pa.Table, *, size: int, measure: Array, seed: int) -> DrawnSample:
    """Systematic sampling with probability in proportion to `measure`: exactly `size` rows, by equal steps along the list.

    **Parameters**

    - `frame`: the list that is drawn from.
    - `size`: of the sample.
    - `measure`: of the size of each row.
    - `seed`: of the draw.
    """
    part, whole = probabilities(measure, size=size, rows=frame.num_rows)
    start = int(np.random.default_rng(seed).integers(whole.max(initial=1)))
    drawn = steps(part, whole, start)
    return DrawnSample(rows=drawn, part=part[drawn], whole=whole[drawn])


def probabilities(measure: Array, *, size: int, rows: int) -> tuple[Array, Array]:
    """Exact `part` and `whole` with part/whole = size * measure / total; too large a row is certain.

    A row that would pass 1 is taken for sure and the rest share what is left, until nobody passes 1.
    """
    measure = np.asarray(measure)
    if len(measure) != rows or not np.issubdtype(measure.dtype, np.integer) or measure.min(initial=1) < 1:
        raise PlanError("give every row of the frame a whole measure of size, 1 or more.", field="measure")
    if not 0 < size <= rows or size * int(measure.sum()) >= 2**62:
        raise PlanError(
            "the sample size must be between 1 and the frame's, its measures smaller.", field="size"
        )
    certain = np.zeros(rows, dtype=bool)
    while True:
        left, total = size - int(certain.sum()), int(measure[~certain].sum())
        over = ~certain & (left * measure >= total)
        if not over.any():
            break
        certain |= over
    whole = np.full(rows, max(total, 1), dtype=np.int64)
    return np.where(certain, whole, left * measure), whole


def steps(part: Array, whole: Array, start: int) -> Array:
    """Rows whose stretch of the list holds one of the points start, start + whole, start + 2 whole, ...

    A stretch is `part` long and at most `whole`, so of the `whole` possible starts exactly `part` hit it.
    """
    step = int(whole.max(initial=1))
    ends = np.cumsum(part)
    points = (ends - 1 - start) // step  # how many points, less one, lie before the end of each stretch
    return np.flatnonzero(np.diff(points, prepend=(-1 - start) // step))


def _strata(frame: pa.Table, by: str) -> tuple[list[str], Array]:
    """The strata in alphabetical order, and every row's position among them."""
    names, codes = np.unique(frame[by].cast(pa.string()).to_numpy(zero_copy_only=False), return_inverse=True)
    return [str(name) for name in names], codes


def _within(codes: Array, sizes: list[int], seed: int) -> DrawnSample:
    """A simple random sample of each size among the rows with each code."""
    room = np.bincount(codes, minlength=len(sizes))
    wanted = np.asarray(sizes)
    if np.any(wanted < 0) or np.any(wanted > room):
        raise PlanError("a stratum is asked for more people than the frame lists there.", field="sizes")
    rng = np.random.default_rng(seed)
    groups = np.split(np.argsort(codes, kind="stable"), np.cumsum(room)[:-1])
    drawn = [rng.choice(group, n, replace=False) for group, n in zip(groups, sizes, strict=True)]
    rows = np.sort(np.concatenate(drawn))
    return DrawnSample(rows=rows, part=wanted[codes[rows]], whole=room[codes[rows]])
