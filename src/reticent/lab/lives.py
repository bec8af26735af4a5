"""The people of the simulated state, as coded arrays; -1 where a question does not apply to a person.

Again round numbers, not estimates: pay rises with schooling and hours, and with age until it falls; couples
resemble each other; later generations stayed at school longer; the old are more often women and widowed.
"""

import numpy as np

from reticent.lab.homes import HEAD, LONE, PARTNER, Array, Homes, Seats, draw_homes, land, seat

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
