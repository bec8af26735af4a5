"""A simulated state of any size, with the truth in hand. Every person in it is made up.

People come in fixed blocks, each with its own random stream. So a seed gives the same people (under the same
NumPy; another may round a dollar differently), a small state is the beginning of a large one, and a state
larger than memory can be written block by block.
`state.codebook.toml` beside this file is the codebook.

The simulated state's land and homes: what is drawn before anybody lives there.

Nothing here was estimated from real records. The shares and curves are round numbers, chosen so that the
population looks like an American state at arm's length: a quarter of homes hold one person, cities are
mixed, tracts differ in affluence.

The people of the simulated state, as coded arrays; -1 where a question does not apply to a person.

Again round numbers, not estimates: pay rises with schooling and hours, and with age until it falls; couples
resemble each other; later generations stayed at school longer; the old are more often women and widowed.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

from reticent.errors import PlanError

Array: TypeAlias = NDArray[Any]

LEVELS: dict[str, tuple[str, ...]] = {
    "region": ("coast", "hills", "plains", "valley"),
    "stratum": tuple(f"{r}-{d}" for r in ("coast", "hills", "plains", "valley") for d in ("rural", "urban")),
    "sex": ("f", "m"),
    "race": ("asian", "black", "native", "other", "white"),
    "marital": ("married", "widowed", "divorced", "separated", "never"),
    "relationship": ("head", "partner", "child", "relative", "unrelated"),
    "schooling": (
        "none",
        "nursery",
        "primary",
        "middle",
        "some-high",
        "high-school",
        "some-college",
        "bachelor",
        "graduate",
    ),
    "employment": ("employed", "unemployed", "inactive"),
}
TRACTS = 2000
HEAD, PARTNER, CHILD, RELATIVE, UNRELATED = range(5)

# Homes: alone, couple, couple with children, lone parent, extended family, sharers.
ALONE, COUPLE, PARENTS, LONE, EXTENDED, SHARERS = range(6)
HOME_SHARES = np.array([0.26, 0.26, 0.22, 0.09, 0.09, 0.08])
# Age of the head at the 0, 1/7, ..., 1 quantile; homes with children take it from the youngest child.
HEAD_AGES = np.array(
    [
        [18, 26, 34, 47, 60, 71, 81, 100],
        [19, 28, 40, 52, 60, 67, 75, 96],
        [18, 28, 33, 38, 43, 48, 54, 66],
        [18, 26, 31, 36, 41, 46, 52, 66],
        [20, 30, 38, 45, 52, 59, 66, 90],
        [18, 20, 22, 25, 29, 35, 48, 85],
    ],
    dtype=float,
)


@dataclass(frozen=True, slots=True)
class Land:
    """The geography, the same in every population: one entry per tract."""

    share: Array
    region: Array
    urban: Array
    affluence: Array
    races: Array


@cache
def land() -> Land:
    """Tracts with their size, region, density, affluence and mix of races."""
    rng = np.random.default_rng(1787)
    region = np.repeat(np.arange(4), [760, 260, 340, 640])
    urban = rng.random(TRACTS) < np.array([0.9, 0.35, 0.45, 0.75])[region]
    affluence = rng.normal(np.array([0.25, -0.15, -0.1, 0.05])[region], 0.6)
    base = np.array([[0.12, 0.16, 0.01, 0.16, 0.55], [0.02, 0.05, 0.03, 0.05, 0.85]])[1 - urban.astype(int)]
    races = rng.gamma(4 * base + 0.02)
    size = rng.gamma(4.0, 0.25, TRACTS)
    return Land(size / size.sum(), region, urban, affluence, races / races.sum(axis=1, keepdims=True))


@dataclass(frozen=True, slots=True)
class Homes:
    """One entry per household."""

    kind: Array
    tract: Array
    couple: Array
    children: Array
    relatives: Array
    unrelated: Array
    youngest: Array
    head_age: Array

    @property
    def size(self) -> Array:
        return 1 + self.couple + self.children + self.relatives + self.unrelated


def pick(rng: np.random.Generator, shares: Array, size: int) -> Array:
    """Positions drawn with the given shares."""
    edges = np.cumsum(shares)[:-1] / shares.sum()
    return np.searchsorted(edges, rng.random(size), side="right")


def draw_homes(rng: np.random.Generator, size: int) -> Homes:
    """Households of six kinds, each in a tract."""
    kind = pick(rng, HOME_SHARES, size)
    extended = kind == EXTENDED
    couple = np.isin(kind, (COUPLE, PARENTS)) | (extended & (rng.random(size) < 0.6))
    is_parent = np.isin(kind, (PARENTS, LONE)) | (extended & (rng.random(size) < 0.4))
    children = is_parent * (1 + np.minimum(rng.poisson(0.85, size), 6))
    relatives = extended * (1 + (rng.random(size) < 0.35))
    unrelated = (kind == SHARERS) * (1 + np.minimum(rng.poisson(0.5, size), 4))
    youngest = (23 * rng.random(size) ** 1.3).astype(int)
    # A parent is 17 to 41 years older than the youngest child; two uniforms make the middle likelier.
    from_child = youngest + 17 + (12 * (rng.random(size) + rng.random(size))).astype(int)
    at = 7 * rng.random(size)
    knot = at.astype(int)
    low, high = HEAD_AGES[kind, knot], HEAD_AGES[kind, knot + 1]
    drawn = (low + (high - low) * (at - knot)).astype(int)
    head_age = np.where(is_parent, from_child, np.minimum(drawn, 99))
    tract = pick(rng, land().share, size)
    return Homes(kind, tract, couple.astype(int), children, relatives, unrelated, youngest, head_age)


@dataclass(frozen=True, slots=True)
class Seats:
    """Who sits where: one entry per person."""

    home: Array
    first: Array
    place: Array
    role: Array


def seat(homes: Homes, count: int) -> Seats:
    """The first `count` people of these homes in order; the last home may be cut short."""
    size = homes.size
    starts = np.concatenate([[0], np.cumsum(size)[:-1]])
    home = np.repeat(np.arange(len(size)), size)[:count]
    place = np.arange(len(home)) - starts[home]
    ends = np.cumsum([np.ones_like(size), homes.couple, homes.children, homes.relatives], axis=0)
    role = (place >= ends[0][home]).astype(int)
    for end in ends[1:]:
        role += place >= end[home]
    return Seats(home, starts[home], place, role)


NULL = -1
YEARS = np.array([0, 1, 5, 8, 11, 12, 14, 16, 18])
MARRIED, WIDOWED, DIVORCED, SEPARATED, NEVER = range(5)
EMPLOYED, UNEMPLOYED, INACTIVE = range(3)


def by_age(*knots: tuple[float, float]) -> Array:
    """A curve over ages 0 to 99, straight between the (age, value) knots."""
    ages, values = zip(*knots, strict=True)
    return np.asarray(np.interp(np.arange(100), ages, values))


WORKS = by_age(
    (15, -2.5), (18, -0.3), (22, 0.9), (30, 1.6), (50, 1.6), (60, 0.9), (66, -0.4), (72, -2), (99, -5)
)
SEEKS = by_age((15, 0.1), (20, 0.22), (40, 0.2), (60, 0.1), (70, 0.01), (99, 0))
EARNS = by_age((15, -1.3), (22, -0.55), (30, -0.15), (45, 0.1), (58, 0.1), (75, -0.4), (99, -0.8))
WEDS = by_age((17, 0.1), (25, 0.62), (35, 0.85), (60, 0.93), (99, 0.97))
WIDOWS = by_age((15, 0), (50, 0.04), (65, 0.2), (80, 0.62), (99, 0.9))
PARTS = by_age((15, 0), (25, 0.06), (40, 0.42), (55, 0.5), (99, 0.5))


def draw_ages(rng: np.random.Generator, homes: Homes, seats: Seats) -> Array:
    """Ages that fit together: parents are at least 15 years older than their children."""
    head, size = homes.head_age[seats.home], len(seats.home)
    bell = rng.normal(size=size)
    nth_child = seats.place - 1 - homes.couple[seats.home]
    child = homes.youngest[seats.home] + (nth_child * (1.5 + 2 * rng.random(size))).astype(int)
    elder = np.where(rng.random(size) < 0.5, head + 27 + 4 * bell, 18 + 60 * rng.random(size))
    partner = np.maximum(np.rint(head - 0.5 + 3.5 * bell), 18)
    unrelated = np.maximum(np.rint(head + 5 * bell), 18)
    age = np.choose(seats.role, [head, partner, np.minimum(child, head - 15), elder, unrelated])
    # A partner is a parent too, and may not be younger than that allows.
    at_least = np.where((seats.role == PARTNER) & (homes.children[seats.home] > 0), head - 1, 0)
    return np.asarray(np.clip(np.maximum(age, at_least), 0, 99), dtype=np.int32)


def draw_sexes(rng: np.random.Generator, homes: Homes, seats: Seats, age: Array) -> Array:
    """0 for women; most partners are of the other sex, most lone parents and most of the old are women."""
    woman = 0.49 + 0.12 * (age > 74) + 0.28 * ((homes.kind[seats.home] == LONE) & (seats.role == HEAD))
    sex = (rng.random(len(age)) >= woman).astype(np.int8)
    other = 1 - sex[seats.first]
    swap = (seats.role == PARTNER) & (rng.random(len(age)) < 0.97)
    return np.asarray(np.where(swap, other, sex), dtype=np.int8)


def draw_races(rng: np.random.Generator, homes: Homes, seats: Seats) -> Array:
    """From the tract's mix; relatives mostly share the head's."""
    edges = np.cumsum(land().races, axis=1)[homes.tract[seats.home], :4]
    race = (rng.random(len(edges))[:, None] >= edges).sum(axis=1)
    alike = rng.random(len(race)) < np.array([0, 0.85, 0.93, 0.95, 0])[seats.role]
    return np.asarray(np.where(alike, race[seats.first], race), dtype=np.int8)


def draw_maritals(rng: np.random.Generator, homes: Homes, seats: Seats, age: Array) -> Array:
    """Both of a couple are married or neither is; the others lived lives by their age; nobody under 15."""
    lot, size = rng.random(len(age)), len(age)
    widowed, parted = WIDOWS[age], WIDOWS[age] + (1 - WIDOWS[age]) * PARTS[age]
    single = np.select(
        [lot < widowed, lot < parted - 0.15 * (parted - widowed), lot < parted],
        [WIDOWED, DIVORCED, SEPARATED],
        NEVER,
    )
    in_couple = (homes.couple[seats.home] == 1) & (seats.role <= PARTNER)
    wed = (rng.random(size) < WEDS[age])[seats.first]
    return np.where(age < 15, NULL, np.where(in_couple & wed, MARRIED, single)).astype(np.int8)


def draw_schooling(rng: np.random.Generator, homes: Homes, seats: Seats, age: Array) -> Array:
    """By age while at school; then by talent, home and tract. Later generations stayed longer."""
    home = rng.normal(size=len(homes.tract)) + 0.8 * land().affluence[homes.tract]
    latent = 0.6 * home[seats.home] + 0.75 * rng.normal(size=len(age)) - 0.008 * (age - 45)
    adult = np.searchsorted([-2.6, -2.5, -2.1, -1.75, -1.2, -0.1, 0.55, 1.4], latent)
    most = by_age((3, 0), (4, 1), (5, 1), (6, 2), (10, 2), (11, 3), (13, 3), (14, 4), (17, 4), (18, 6), (21, 6),
                  (22, 7), (24, 7), (25, 8)).astype(int)[age]  # fmt: skip
    least = np.where(age < 18, most - (rng.random(len(age)) < 0.04), 0)
    return np.where(age < 3, NULL, np.maximum(np.minimum(adult, most), least)).astype(np.int8)


def draw_work(rng: np.random.Generator, person: dict[str, Array], small_child: Array) -> None:
    """Employment, weekly hours and yearly wage, added to `person`."""
    age, woman, years = person["age"], person["sex"] == 0, YEARS[person["schooling"]]
    size, adult = len(age), person["age"] >= 15
    logit = WORKS[age] + 0.11 * (years - 12) * (age >= 22) - woman * (0.25 + 0.7 * small_child)
    works = rng.random(size) * (1 + np.exp(-logit)) < 1
    seeks = rng.random(size) < SEEKS[age]
    person["employment"] = np.where(
        adult, np.where(works, EMPLOYED, np.where(seeks, UNEMPLOYED, INACTIVE)), NULL
    )
    lot, spread = rng.random(size), rng.random(size)
    part = 0.1 + 0.1 * woman + 0.4 * (age < 22) + 0.2 * (age > 66)
    full = np.select([lot > 0.985, lot > 0.55], [60 + 40 * spread, 35 + 25 * spread], 40)
    hours = np.where(rng.random(size) < part, 5 + 30 * spread, full).astype(int)
    person["hours"] = np.where(adult, works * hours, NULL)
    # Some people out of work earned earlier in the year, and some at work are paid no wage.
    paid = rng.random(size) < np.choose(person["employment"] % 3, [0.92, 0.35, 0.06])
    usual = np.log(np.where(works, hours, 15) / 40)
    tract = land().affluence[person["tract"] - 1]
    mean = 9.85 + 0.085 * years + EARNS[age] + 0.9 * usual - 0.16 * woman + 0.22 * tract
    wage = paid * np.exp(mean + 0.55 * rng.normal(size=size))
    step = np.where((wage >= 10_000) & (rng.random(size) < 0.5), 1000, 10)  # answers heap on round sums
    person["wage"] = np.where(adult, np.minimum(np.rint(wage / step) * step, 500_000), NULL)


def draw_rent(rng: np.random.Generator, homes: Homes) -> Array:
    """Monthly housing cost of the home in cents; nothing where it is owned outright."""
    typical = (
        6.75
        + 0.3 * land().affluence[homes.tract]
        + 0.12 * np.log(homes.size)
        + 0.3 * land().urban[homes.tract]
    )
    cost = np.exp(typical + 0.4 * rng.normal(size=len(homes.tract)))
    owned = rng.random(len(cost)) < 0.1 + 0.3 * (homes.head_age > 60)
    return np.where(owned, 0, np.minimum(np.rint(100 * cost), 500_000)).astype(np.int64)


def draw_lives(rng: np.random.Generator, count: int) -> dict[str, Array]:
    """`count` people in coded columns; `household` counts from 0, rent is in cents."""
    homes = draw_homes(rng, count // 2 + 64)  # homes hold 2.4 on average, so half as many are enough
    seats = seat(homes, count)
    tract, where = homes.tract[seats.home], land()
    age = draw_ages(rng, homes, seats)
    person = {"household": seats.home, "tract": tract + 1, "age": age, "relationship": seats.role}
    person["region"] = where.region[tract]
    person["stratum"] = 2 * where.region[tract] + where.urban[tract]
    person["sex"] = draw_sexes(rng, homes, seats, age)
    person["race"] = draw_races(rng, homes, seats)
    person["marital"] = draw_maritals(rng, homes, seats, age)
    person["schooling"] = draw_schooling(rng, homes, seats, age)
    young = (homes.children > 0) & (homes.youngest < 6)
    draw_work(rng, person, young[seats.home] & (seats.role <= PARTNER))
    person["rent"] = draw_rent(rng, homes)[seats.home]
    return person


BLOCK = 1 << 16
BLOCKS_PER_GROUP = 8  # in a file, half a million rows to a row group
CENTS = pa.decimal128(7, 2)
AGE_GROUPS = ((0, 14), (15, 24), (25, 44), (45, 64), (65, 99))

# What a respondent is asked, in the order of the questionnaire; the other columns belong to the design.
ANSWERS = (
    "age",
    "sex",
    "race",
    "marital",
    "relationship",
    "schooling",
    "employment",
    "hours",
    "wage",
    "rent",
)

_TYPES = {"tract": pa.int32(), "age": pa.int16(), "hours": pa.int16(), "wage": pa.int32()}
SCHEMA = pa.schema(
    [("person_id", pa.int64()), ("household", pa.int64())]
    + [
        (name, pa.dictionary(pa.int8(), pa.string()) if name in LEVELS else _TYPES[name])
        for name in ("region", "tract", "stratum", *ANSWERS[:-1])
    ]
    + [("rent", CENTS), ("weight", CENTS)]
)


def codebook() -> str:
    """The state's codebook, as TOML."""
    return files("reticent.lab").joinpath("state.codebook.toml").read_text(encoding="utf-8")


def people(n: int, *, seed: int) -> pa.Table:
    """The first `n` people of the state with this seed. Everybody stands for themselves: the weight is 1.

    **Parameters**

    - `n`: how many people.
    - `seed`: of the state; a smaller one is the beginning of a larger one.
    """
    return pa.Table.from_batches(_blocks(n, seed), schema=SCHEMA)


def write_people(path: str | Path, n: int, seed: int) -> None:
    """Write `people(n, seed=seed)` to a Parquet file, holding only a few blocks in memory.

    **Parameters**

    - `path`: of the file.
    - `n`: how many people.
    - `seed`: of the state.
    """
    with pq.ParquetWriter(path, SCHEMA, compression="zstd") as writer:
        group: list[pa.RecordBatch] = []
        for block in _blocks(n, seed):
            group.append(block)
            if len(group) == BLOCKS_PER_GROUP:
                writer.write_table(pa.Table.from_batches(group))
                group = []
        if group:
            writer.write_table(pa.Table.from_batches(group))


def cents(values: Array) -> pa.Array:
    """Whole hundredths as exact decimals of two digits."""
    # A decimal of 128 bits is the number itself and its sign, low half first.
    halves = np.empty((len(values), 2), dtype="<i8")
    halves[:, 0] = values
    halves[:, 1] = -(values < 0).astype(np.int8)
    return pa.Array.from_buffers(CENTS, len(values), [None, pa.py_buffer(halves)])


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownTotals:
    """What an office would know of the state from elsewhere: counts of the whole population."""

    persons: int
    by_age_sex: dict[tuple[str, str], int]
    by_region: dict[str, int]


def known_totals(state: pa.Table) -> KnownTotals:
    """Population totals: counts by age group and sex, and by region, of a complete population.

    **Parameters**

    - `state`: the people, as `people` makes them.
    """
    lowest = np.array([low for low, _ in AGE_GROUPS])
    group = np.searchsorted(lowest, state["age"].to_numpy(), side="right") - 1
    sex = _codes(state["sex"], LEVELS["sex"])
    region = np.bincount(_codes(state["region"], LEVELS["region"]), minlength=4)
    both = np.bincount(2 * group + sex, minlength=2 * len(lowest)).reshape(-1, 2)
    return KnownTotals(
        persons=state.num_rows,
        by_age_sex={
            (f"{low}-{high}", level): int(both[g, s])
            for g, (low, high) in enumerate(AGE_GROUPS)
            for s, level in enumerate(LEVELS["sex"])
        },
        by_region={level: int(region[r]) for r, level in enumerate(LEVELS["region"])},
    )


def _codes(column: pa.ChunkedArray, levels: tuple[str, ...]) -> Array:
    """Positions of the values among the levels; the column has no nulls."""
    codes: Array = pc.index_in(column.cast(pa.string()), pa.array(levels)).to_numpy()
    return codes


def _blocks(n: int, seed: int) -> Iterator[pa.RecordBatch]:
    """Blocks of people, the last one cut to measure."""
    if n < 0 or seed < 0:
        raise PlanError("a state needs a number of people and a seed, both 0 or more.", field="people")
    for start in range(0, n, BLOCK):
        yield _block(start, seed).slice(0, n - start)


def _block(start: int, seed: int) -> pa.RecordBatch:
    """The block of people that begins after person `start`."""
    person = draw_lives(np.random.default_rng([seed, start // BLOCK]), BLOCK)
    person["person_id"] = np.arange(start + 1, start + BLOCK + 1)
    person["household"] = start + 1 + person["household"]  # a block has fewer homes than people
    columns = [_column(field.name, field.type, person) for field in SCHEMA]
    return pa.RecordBatch.from_arrays(columns, schema=SCHEMA)


def _column(name: str, kind: pa.DataType, person: dict[str, Array]) -> pa.Array:
    """One coded column as Arrow holds it."""
    if name == "weight":
        return cents(np.full(BLOCK, 100))
    values = person[name]
    if name == "rent":
        return cents(values)
    empty = values == NULL
    if name in LEVELS:
        return pa.DictionaryArray.from_arrays(
            pa.array(values.astype(np.int8), mask=empty), list(LEVELS[name])
        )
    return pa.array(values.astype(kind.to_pandas_dtype()), mask=empty)
