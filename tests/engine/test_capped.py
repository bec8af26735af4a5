"""Capped rings: the engine fills what the definition says, and one record changes no more rows than the caps allow."""

from collections import Counter
from dataclasses import replace
from itertools import combinations, pairwise, product
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest

from reticent.engine.donors import circle, filling, levels, local, runs, serving, shelf
from reticent.engine.donors import records as labels
from reticent.engine.donors.levels import CellColumn
from reticent.engine.donors.serving import OnRing, SomeServed, serve
from reticent.engine.duckdb import engine as duckdb_engine
from reticent.engine.duckdb.engine import DuckDBEngine
from reticent.engine.sources.open import open_path
from reticent.engine.wants import Aggregate, PointsByCell, Rows, Sum, Table, Tallies, Unserved
from reticent.errors import PlanError
from reticent.prepare.repair import CappedDonors, Default, Match, MatchLevel, Repair
from reticent.schema import Schema
from tests.engine import capped_reference as reference
from tests.engine import donors_reference, slow
from tests.engine.slow import Raw
from tests.engine.test_donors import (
    FILLED,
    NEVER_FILLED,
    book,
    engine_on,
    frame,
    some_edit,
    some_people,
    some_wants,
)

# --- one ring, one level: the rule itself ---------------------------------------------------------------------------------


def ring_of(donors: list[int], recipients: list[int], cap: int) -> dict[int, int]:
    """Who is served by whom, in one cell."""
    place = np.array([*donors, *recipients])
    gives = np.arange(len(place)) < len(donors)
    who, whom = serve(np.zeros_like(place), place, np.arange(len(place)), gives, cap)
    return {int(place[x]): int(place[d]) for x, d in zip(who, whom, strict=True)}


def test_vectors():
    """THEORY 11.6."""
    silent = [12, 20, 30, 45, 60, 95]
    assert ring_of([10, 50, 90], silent, 2) == {30: 50, 45: 50, 60: 90, 95: 10}
    assert ring_of([10, 90], silent, 2) == {45: 90, 60: 90, 95: 10}
    assert ring_of([10, 50, 90], [*silent, 47], 2) == {45: 50, 47: 50, 60: 90, 95: 10}
    assert ring_of([], silent, 2) == {} and ring_of([5], [], 1) == {}


@pytest.mark.parametrize(("n", "m"), [(85, 15), (50, 50), (3, 4)])
def test_so_many_stay_unserved_as_the_formula_says(n: int, m: int):
    """THEORY 11.4, by ten thousand recipients or more at random places; five standard errors."""
    dice, runs = np.random.default_rng(1), 40_000 // m
    left = Counter[int]()
    for _ in range(runs):
        place = dice.permutation(10_000)[: n + m]
        for cap in (1, 2, 3):
            who, _ = serve(np.zeros_like(place), place, np.arange(n + m), np.arange(n + m) < n, cap)
            left[cap] += m - len(who)
    for cap in (1, 2, 3):
        share = float(np.prod([(m - 1 - i) / (n + m - 1 - i) for i in range(cap)]))
        assert abs(left[cap] / (runs * m) - share) < 5 * (share * (1 - share) / runs) ** 0.5 + 1e-3


# --- every small survey and every neighbour -------------------------------------------------------------------------------

CAPS = [(1,), (2,), (3,), (1, 1), (2, 1), (1, 1, 1)]


def universe(dice: Random, levels: int, size: int = 8) -> list[reference.Body]:
    """Labelled bodies: some answered, some did not; places tie often; later levels are coarser."""
    found = []
    for i in range(size):
        home = dice.randrange(2)
        cells = tuple(home if level == 0 else 0 for level in range(levels))
        points = tuple((dice.randrange(6), i) for _ in range(levels))
        found.append(reference.Body(f"b{i}", dice.choice([None, None, i]), cells, points))
    return found


def by_engine(bodies: list[reference.Body], caps: tuple[int, ...]) -> dict[str, object]:
    """The same by the engine's own function, level by level."""
    found: dict[str, object] = {x.name: None for x in bodies if x.answer is None}
    for level, cap in reversed(list(enumerate(caps))):
        cell = np.array([x.cells[level] for x in bodies], np.int64)
        place = np.array([x.points[level][0] for x in bodies], np.int64)
        label = np.array([x.points[level][1] for x in bodies], np.int64)
        gives = np.array([x.answer is not None for x in bodies], np.bool_)
        who, whom = serve(cell, place, label, gives, cap) if bodies else ([], [])
        found |= {bodies[x].name: bodies[d].answer for x, d in zip(who, whom, strict=True)}
    return found


def moved(everybody: list[reference.Body], left: int, fill: Any) -> int:
    """How many others are filled otherwise when somebody leaves."""
    some = everybody[:left] + everybody[left + 1 :]
    before, after = fill(everybody), fill(some)
    return sum(before[name] != after[name] for name in after)


def worst(fill: Any, levels: int, seeds: int, *, replaced: bool = False) -> int:
    """The largest number of others that change, over all subsets of small universes and all who may leave; or, `replaced`, who
    may leave while another comes. Each subset is filled once."""
    most = 0
    for seed in range(seeds):
        bodies = universe(Random(f"{seed} {levels}"), levels)
        everybody = range(len(bodies))
        subsets = [some for size in range(len(bodies) + 1) for some in combinations(everybody, size)]
        found = {some: fill([bodies[i] for i in some]) for some in subsets}
        for here, left in [(each, gone) for each in subsets for gone in each]:
            fewer = tuple(i for i in here if i != left)
            news = [i for i in everybody if i not in here]
            others = [tuple(sorted((*fewer, new))) for new in news] if replaced else [fewer]
            before, stayed = found[here], found[fewer].keys()
            most = max([most, *(sum(before[x] != found[each][x] for x in stayed) for each in others)])
    return most


# covers T08
@pytest.mark.parametrize("caps", CAPS)
def test_no_record_changes_more_others_than_the_caps_add_up_to_and_some_change_as_many(caps: tuple[int, ...]):
    """Exhaustive: every data set of eight labelled records with tied places, and every neighbour (THEORY 11.2)."""
    assert worst(lambda some: by_engine(some, caps), len(caps), 4) == sum(caps)


# covers T08
@pytest.mark.parametrize("caps", CAPS)
def test_a_replaced_record_changes_twice_as_many_others_at_most_and_some_change_as_many(
    caps: tuple[int, ...],
):
    """Exhaustive: every data set, every record in it, and every other record in its place. A twin with one tau would fail."""
    most = worst(lambda some: by_engine(some, caps), len(caps), 6, replaced=True)
    assert sum(caps) < most <= 2 * sum(caps)


@pytest.mark.parametrize("caps", CAPS)
def test_a_recipient_changes_one_other_for_each_level_at_most(caps: tuple[int, ...]):
    bodies = universe(Random(str(caps)), len(caps))
    for size in range(1, len(bodies) + 1):
        for some in map(list, combinations(bodies, size)):
            for left in (i for i, x in enumerate(some) if x.answer is None):
                assert moved(some, left, lambda each: by_engine(each, caps)) <= len(caps)


def test_the_engine_serves_as_the_definition_does():
    for seed, caps in product(range(30), CAPS):
        bodies = universe(Random(seed), len(caps), size=12)
        assert by_engine(bodies, caps) == reference.filled(bodies, caps)


# --- some recipients, from what is near them --------------------------------------------------------------------------------

TOP = circle.PRIME


def some_standing(dice: np.random.Generator, size: int, cells: int, *, ties: bool) -> OnRing:
    """Donors and recipients on the rings of some cells, places even or in a few heaps."""
    heaps = dice.integers(0, TOP, 4)
    place = heaps[dice.integers(0, 4, size)] if ties else dice.integers(0, TOP, size)
    share = dice.choice([0.1, 0.5, 0.95])
    cell = np.minimum(dice.integers(0, cells, size), dice.integers(0, cells, size))
    return OnRing(cell, place, dice.permutation(size), dice.random(size) > share, (np.arange(size),))


def found_near(here: OnRing, who: np.ndarray, cap: int, portions: int) -> tuple[dict[int, int], int]:
    """Whom of `who` the look at what is near finds served, and by whom; and how many looks it took."""
    sizes = np.bincount(here.cell)
    some = SomeServed(here.cell[who], here.place[who], here.label[who], sizes, cap)
    looks = 0
    while some.is_open:
        some.look()
        for part in np.array_split(np.arange(len(here.cell)), portions):
            some.meet(here.only(part))
        some.settle()
        looks += 1
    return {int(x): int(d) for label, (y,) in some.found for x, d in zip(label, y, strict=True)}, looks


@pytest.mark.parametrize("ties", [False, True])
@pytest.mark.parametrize("seed", range(12))
def test_a_look_at_what_is_near_finds_what_the_sort_of_all_finds(
    seed: int, ties: bool, monkeypatch: pytest.MonkeyPatch
):
    """Sizes to 3,000 records, one to forty cells, short arcs and long ones, caps to 5, records in one portion or three."""
    dice = np.random.default_rng([seed, ties])
    monkeypatch.setattr(serving, "FEWEST", int(dice.integers(1, 9)))
    monkeypatch.setattr(serving, "LONGEST", int(dice.integers(1, 9)))
    monkeypatch.setattr(serving, "LONGER", int(dice.integers(2, 17)))
    for size in (1, 2, 7, 60, 3_000):
        here = some_standing(dice, size, int(dice.integers(1, 41)), ties=ties)
        cap = int(dice.integers(1, 6))
        taker, donor = serve(here.cell, here.place, here.label, here.gives, cap)
        silent = np.flatnonzero(~here.gives)
        who = dice.permutation(silent)[: dice.integers(0, len(silent) + 1)]
        meant = {int(here.label[x]): int(d) for x, d in zip(taker, donor, strict=True) if x in set(who)}
        assert found_near(here, who, cap, 1)[0] == meant
        assert found_near(here, who, cap, 3)[0] == meant


def test_short_arcs_take_another_look_where_too_few_stand_in_front(monkeypatch: pytest.MonkeyPatch):
    """The other test would prove little if one look were always enough; nor may one look be taken for enough."""
    monkeypatch.setattr(serving, "FEWEST", 1)
    monkeypatch.setattr(serving, "LONGEST", 1)
    here = some_standing(np.random.default_rng(1), 3_000, 1, ties=False)
    assert found_near(here, np.flatnonzero(~here.gives), 1, 1)[1] > 1


def test_cells_of_a_wide_domain_are_numbered_before_they_are_counted():
    cell = np.array([2**31 - 2, 5, 2**31 - 2, 70])
    numbers = levels.CellNumbers(cell)
    assert numbers.sizes.tolist() == [1, 1, 2] and numbers.of(cell).tolist() == [2, 0, 2, 1]


def test_places_of_many_keys_are_those_of_the_cubic():
    """Random spots and the ends of their range, random keys and the largest coefficients there are."""
    dice = np.random.default_rng(3)
    ends = [0, 1, 2**30, 2**31 - 1, 2**31, 2**61 - 2, 2**61 - 1, 2**61, 2**61 + 7]
    spots = np.concatenate([np.array(ends), dice.integers(0, 2**61 + 8, 70_000)])
    powers = circle.Powers(spots)
    for key in ([TOP - 1] * 4, [0, 0, 0, 1], [0] * 4, *(circle.coefficients(f"k{i}", 4) for i in range(5))):
        found = powers.places(key)
        assert (found == circle.cubic(spots, key)).all()
        assert [int(z) for z in found[: len(ends)]] == [
            sum(c * z**i for i, c in enumerate(key)) % TOP for z in ends
        ]


# --- rules that look alike: they have no such bound -------------------------------------------------------------------


def test_serving_the_farthest_first_changes_more():
    assert worst(lambda some: reference.filled(some, (2,), reference.farthest_first), 1, 4) > 2


def test_overflow_that_walks_on_changes_more():
    assert worst(lambda some: reference.filled(some, (1,), reference.walking_on), 1, 4) > 1


def test_later_levels_for_leftovers_only_change_more():
    assert worst(lambda some: reference.leftovers_only(some, (1, 1)), 2, 6) > 2


def test_raw_places_without_labels_change_more():
    """Five recipients and two donors at one place: whoever comes first in the file serves; with labels, one changes."""

    def by_file(some: list[reference.Body]) -> dict[str, object]:
        # Naive: "between" on raw places alone, so that everybody at one place is in front of everybody else there.
        donors = [x for x in some if x.answer is not None]
        return {x.name: donors[0].answer if donors else None for x in some if x.answer is None}

    everybody = [
        *(reference.Body(f"t{i}", i, (0,), ((3, i),)) for i in range(2)),
        *(reference.Body(f"x{i}", None, (0,), ((3, 10 + i),)) for i in range(5)),
    ]
    assert moved(everybody, 0, by_file) == 5
    assert max(moved(everybody, i, lambda some: by_engine(some, (1,))) for i in range(7)) == 1


def outcomes(equal: int, donors: list[list[int]], places: list[list[int]], anew: bool) -> Counter[object]:
    """What so many equal recipients are given at two levels of cap 1. Numbered `anew`, the second level counts from the end."""
    given: dict[int, object] = {}
    for level in (1, 0):
        numbers = [equal - 1 - i if anew and level else i for i in range(equal)]
        bodies = [
            reference.Body(f"d{k}", k, (0, 0), tuple((p, -1) for p in at)) for k, at in enumerate(donors)
        ]
        for i, number in enumerate(numbers):
            bodies.append(reference.Body(f"{i}", None, (0, 0), ((places[level][number], number),) * 2))
        given |= {int(x): donor.answer for x, donor in reference.serving(bodies, level, 1).items()}
    return Counter(given.get(i) for i in range(equal))


def most_renamed(anew: bool) -> int:
    """Over sixty sets of places, one equal recipient more at a time."""
    most = 0
    for seed in range(60):
        dice = Random(seed)
        donors = [[dice.randrange(1000), dice.randrange(1000)] for _ in range(12)]
        places = [[dice.randrange(1000) for _ in range(18)] for _ in range(2)]
        made = [outcomes(equal, donors, places, anew) for equal in range(18)]
        most = max(most, *((some - more).total() for some, more in pairwise(made)))
    return most


def test_numbers_given_anew_at_each_level_change_more():
    """Equal recipients are told apart by a number. Where it is not the same at all levels, a newcomer renames others."""
    assert most_renamed(anew=True) > 2 >= most_renamed(anew=False)


# Two columns, each with rings of its own and cap 1. In the second nobody may look at what was filled in the first.
Pair = tuple[str, int | None, int | None, tuple[int, int]]


def second_column(people: list[Pair], rule: str) -> dict[str, object]:
    """What is filled in the second column: by rule, its default or its universe looks at the first, filled or as answered."""
    first = [reference.Body(name, y, (0,), ((at[0], name),)) for name, y, _, at in people]
    given = reference.filled(first, (1,))
    seen = {name: given[name] if y is None and "filled" in rule else y for name, y, _, _ in people}
    asked = [each for each in people if "universe" not in rule or seen[each[0]] == 1]
    second = [reference.Body(name, z, (0,), ((at[1], name),)) for name, _, z, at in asked]
    made = reference.filled(second, (1,))
    stands_in = {name: seen[name] if "default" in rule else None for name in made}
    return {name: stands_in[name] if answer is None else ("given", answer) for name, answer in made.items()}


def most_moved(rule: str) -> int:
    most = 0
    for seed in range(150):
        dice = Random(seed)
        people: list[Pair] = [
            (
                f"p{i}",
                dice.choice([None, 0, 1]),
                dice.choice([None, i]),
                (dice.randrange(9), dice.randrange(9)),
            )
            for i in range(7)
        ]
        whole = second_column(people, rule)
        for left in range(len(people)):
            fewer = second_column(people[:left] + people[left + 1 :], rule)
            own = people[left][0]
            names = (whole.keys() | fewer.keys()) - {own}
            most = max(most, sum(whole.get(name, "out") != fewer.get(name, "out") for name in names))
    return most


@pytest.mark.parametrize("rule", ["default", "universe"])
def test_defaults_and_universes_that_look_at_filled_answers_change_more(rule: str):
    """Of answers that respondents gave themselves they may be made: then one other changes at most."""
    assert most_moved(f"{rule} by what was filled") > 1 >= most_moved(f"{rule} by what was answered")


# --- the engine against one record at a time --------------------------------------------------------------------------------


def some_level(dice: Random, on: list[str]) -> MatchLevel:
    starts = (0, 3, 6) if dice.random() < 0.5 else ()
    return MatchLevel(
        on=tuple(Match(column=name, starts=starts if name == "age" else ()) for name in on),
        serve=dice.randint(1, 3),
    )


def some_default(dice: Random, name: str, schema: Schema) -> Default:
    known = schema.coded[name]

    def code() -> int:
        return dice.randint(known.low, known.high)

    if dice.random() < 0.5:
        return Default(code=code())
    return Default(code=code(), by="school", codes=(code(), code(), code()))


def some_capped(dice: Random, schema: Schema) -> Repair:
    """One to three groups of columns, one of them perhaps of two; levels from fine to coarse."""
    names = dice.sample(FILLED, dice.randint(1, 3))
    groups = [(names[0], names[1]), *((name,) for name in names[2:])] if len(names) > 1 else [(names[0],)]
    made = []
    for group in groups:
        on = dice.sample(NEVER_FILLED, dice.randint(1, 3))
        levels = [some_level(dice, on[:k]) for k in range(len(on), -1, -1)][: dice.randint(1, 4)]
        defaults = tuple(some_default(dice, name, schema) for name in group)
        made.append(CappedDonors(columns=group, levels=tuple(levels), defaults=defaults))
    return Repair(
        edits=tuple(some_edit(dice, schema) for _ in range(dice.randrange(3))),
        capped=tuple(made),
        rings=dice.choice([1, 2, 3]),
        key=dice.choice(["", "a key", "'; DROP"]),
    )


def labelled(schema: Schema, people: list[Raw], repair: Repair) -> list[reference.Labelled]:
    """Every record that counts, with its label."""
    columns = schema.in_universe_order
    found = []
    for record in donors_reference.records(schema, people, columns, repair):
        words = donors_reference.words(schema, columns, record.row)
        number, owner = record.point[-2], record.point[-1]
        told = (donors_reference.owner_number(str(owner)),) if schema.unit != "row" else ()
        found.append(reference.Labelled(record.row, words, int(str(number)), told))
    return found


def by_hand(
    people: list[Raw], schema: Schema, wants: list[Aggregate], repair: Repair, spot: Any = reference.spot_at
) -> tuple[list[object], list[object]]:
    """What is wanted of the first ring, and added over all."""
    found = labelled(schema, people, repair)
    rings = [reference.impute(schema, found, repair, ring, spot) for ring in range(repair.rings)]
    several = [row for rows in rings for row in rows]
    return tell(wants, rings[0], schema), tell(wants, several, schema)


def tell(wants: list[Aggregate], rows: list[Any], schema: Schema) -> list[object]:
    return [
        slow.add_up(want, rows) if isinstance(want, Sum) else slow.tabulate(want, rows, schema)
        for want in wants
        if isinstance(want, Sum | Table)
    ]


def engine_says(
    people: Any, schema: Schema, wants: list[Aggregate], repair: Repair, threads: int = 1
) -> tuple[list[object], list[object]]:
    found = engine_on(people, threads).tally(schema, wants, repair)
    return told_of(found, wants), told_of(found.fractions or found, wants)


def told_of(tallies: Tallies, wants: list[Aggregate]) -> list[object]:
    return [
        tallies.statistics[want] if isinstance(want, Sum) else tallies.tables[want].cells for want in wants
    ]


def linear(dice: Random, schema: Schema, repair: Repair) -> list[Aggregate]:
    return [want for want in some_wants(dice, schema, repair) if isinstance(want, Sum | Table)]


# covers T08 B096
@pytest.mark.parametrize("unit", [("row", 1), ("pid", 1), ("pid", 2)], ids=["row", "one", "two"])
@pytest.mark.parametrize("seed", range(24))
def test_donors_are_those_of_the_definition(seed: int, unit: tuple[str, int]):
    """Random people, owners, edits, groups of columns, levels, defaults, one to three rings: sums and tables."""
    dice, schema = Random(f"{seed} {unit}"), book(*unit)
    people = some_people(dice, dice.choice([0, 1, 2, 5, 12, 20]), hush=dice.choice([0.1, 0.4, 0.8]))
    repair = some_capped(dice, schema)
    wants = linear(dice, schema, repair)
    assert engine_says(people, schema, wants, repair) == by_hand(people, schema, wants, repair)


@pytest.mark.parametrize("seed", range(4))
def test_places_that_tie_are_settled_by_labels(seed: int, monkeypatch: pytest.MonkeyPatch):
    """With three spots in all the engine still has the strict order of the definition, in any order of rows."""

    def spots(z: Any, number: Any, by: int) -> Any:
        return (z.view(np.int64) + number) % 3

    def sums(label: Any, start: int, by: Any) -> Any:
        return (label[0] % 3).view(np.uint64)

    monkeypatch.setattr(labels, "spots", spots)
    monkeypatch.setattr(labels, "sums", sums)
    dice, schema = Random(seed), book()
    people = some_people(dice, 25)
    repair = some_capped(dice, schema)
    wants = linear(dice, schema, repair)
    meant = by_hand(
        people, schema, wants, repair, spot=lambda key, each: (each.words[0] % 3 + each.number) % 3
    )
    assert engine_says(people, schema, wants, repair) == meant
    dice.shuffle(people)
    assert engine_says(people, schema, wants, repair, threads=2) == meant


@pytest.mark.parametrize("seed", [5, 6, 7, 8])
@pytest.mark.parametrize("lot", [1, 7, 30])
@pytest.mark.parametrize("held", [0, 2_000, 2**28])
def test_no_bit_depends_on_how_many_are_taken_up_at_a_time_nor_on_where_they_are_kept(
    held: int, lot: int, seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """Blocks and runs of one record to thirty, all of them on disk, some, and none; from a frame and from a file."""
    dice, schema = Random(seed), book("pid", 2)
    people = some_people(dice, 150, hush=0.5)
    repair = some_capped(dice, schema)
    wants = linear(dice, schema, repair)
    once = engine_says(people, schema, wants, repair)
    monkeypatch.setattr(shelf, "HELD", held)
    monkeypatch.setattr(shelf, "STEP", 1 + lot // 4)
    monkeypatch.setattr(levels, "HELD", lot)
    for module in (circle, filling, runs, duckdb_engine):
        monkeypatch.setattr(module, "LOT", lot)
    dice.shuffle(people)
    assert engine_says(people, schema, wants, repair, threads=2) == once
    path = tmp_path / "people.parquet"
    pq.write_table(frame(people), path)
    engine = DuckDBEngine(open_path(str(path)), threads=2)
    found = engine.tally(schema, wants, repair)
    assert (told_of(found, wants), told_of(found.fractions or found, wants)) == once
    marked = engine.filled(schema, repair)
    assert list(engine.folder.iterdir()) == []  # what was put aside has no name there, and is gone
    engine.close()
    monkeypatch.undo()
    assert marked.equals(engine_on(people).filled(schema, repair))


def test_levels_that_no_run_holds_whole_are_served_as_if_one_did(monkeypatch: pytest.MonkeyPatch):
    """Three groups of columns: by age and school, by school alone, by sex; runs of five records cut through cells of all."""
    dice, schema = Random(11), book()
    people = some_people(dice, 200, hush=0.4)
    age, school, sex = (Match(column=name) for name in ("age", "school", "sex"))
    ladders = (((age, school), (age,), ()), ((school,), ()), ((sex, school), (sex,), ()))
    groups = tuple(
        CappedDonors(
            columns=(name,),
            levels=tuple(MatchLevel(on=on, serve=1) for on in ladder),
            defaults=(Default(code=schema.coded[name].low),),
        )
        for name, ladder in zip(FILLED, ladders, strict=False)
    )
    repair = Repair(capped=groups, rings=2, key="k")
    wants: list[Aggregate] = [
        *(Sum(rows=Rows(answered=(group.columns[0],)), value=group.columns[0], power=1) for group in groups),
        *(Unserved(column=group.columns[0]) for group in groups),
    ]

    def told() -> list[object]:
        found = engine_on(people).tally(schema, wants, repair)
        sums = [found.fractions.statistics[want] for want in wants[:3]] if found.fractions else []
        return [*sums, *found.unserved.values()]

    once = told()
    for module in (circle, filling, runs, duckdb_engine):
        monkeypatch.setattr(module, "LOT", 5)
    apart, taken = list[int](), local.LocalCapped._take_apart
    monkeypatch.setattr(
        local.LocalCapped, "_take_apart", lambda self, fill: (apart.append(1), taken(self, fill))
    )
    assert told() == once and len(once) == 6 and len(apart) == 2


def test_cells_side_by_side_have_the_records_of_both():
    dice = np.random.default_rng(2)
    cell = dice.integers(0, 23, 400)
    sizes = {"cell0": np.bincount(cell)}
    for width in (1, 2, 5, 24):
        column = CellColumn("cell0", width)
        assert column.sizes(sizes).tolist() == np.bincount(column.of({"cell0": cell})).tolist()


# --- what one record changes, through the whole engine -----------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(12))
def test_one_record_more_changes_no_more_filled_rows_than_the_caps(seed: int):
    """As sets of filled rows, neighbours differ by the newcomer and at most so many rows replaced by others."""
    dice, schema = Random(seed), book()
    people = some_people(dice, 15, hush=0.5)
    repair = replace(some_capped(dice, schema), edits=(), rings=1)
    allowed = sum(group.serve for group in repair.capped)

    def rows(some: list[Raw]) -> Counter[Any]:
        table = engine_on(some).filled(schema, repair)
        return Counter(tuple(line.values()) for line in table.to_pylist())

    before = rows(people)
    for newcomer in some_people(dice, 6)[:6]:
        after = rows([*people, newcomer])
        assert sum((before - after).values()) <= allowed
        assert sum((after - before).values()) <= allowed + 1


def test_the_fill_is_the_same_whatever_is_asked_and_the_curator_sees_the_same():
    """Once a statistic about an unrelated column moved a filled count: labels were made of the columns asked about."""
    dice, schema = Random(4), book()
    people = some_people(dice, 80, hush=0.4)
    repair = Repair(
        capped=(CappedDonors(columns=("mood",), levels=(MatchLevel(serve=2),), defaults=(Default(code=0),)),),
        key="k",
    )
    total = Sum(rows=Rows(answered=("mood",)), value="mood", power=1)
    alone = engine_on(people).tally(schema, [total], repair).statistics[total]
    for other in ("house", "far", "school"):
        more: list[Aggregate] = [total, Sum(rows=Rows(answered=(other,)))]
        assert engine_on(people).tally(schema, more, repair).statistics[total] == alone
    assert sum(line["mood"] for line in engine_on(people).filled(schema, repair).to_pylist()) == alone


def test_points_of_cells_are_those_of_the_first_ring():
    dice, schema = Random(6), book()
    people = some_people(dice, 40, hush=0.4)
    group = CappedDonors(columns=("mood",), levels=(MatchLevel(serve=2),), defaults=(Default(code=0),))
    want = PointsByCell(rows=Rows(), cell="school", y="mood")
    one, three = (
        engine_on(people).tally(schema, [want], Repair(capped=(group,), rings=rings, key="k")).points[want]
        for rings in (1, 3)
    )
    assert one.y.tolist() == three.y.tolist() and len(one.y)


def test_what_nothing_bounds_is_refused():
    schema, one = book(), (Default(code=0),)
    chained = CappedDonors(columns=("mood",), levels=(MatchLevel(on=(Match(column="house"),)),), defaults=one)
    house = CappedDonors(columns=("house",), levels=(MatchLevel(),), defaults=one)
    for bad in (
        Repair(capped=(chained, house)),
        Repair(capped=(house, house)),
        Repair(
            capped=(CappedDonors(columns=("mood",), levels=(MatchLevel(),), defaults=(Default(code=7),)),)
        ),
        Repair(capped=(CappedDonors(columns=("weight",), levels=(MatchLevel(),), defaults=one),)),
        Repair(
            capped=(
                house,
                replace(
                    chained, levels=(MatchLevel(),), defaults=(Default(code=0, by="house", codes=(0, 0, 0)),)
                ),
            )
        ),
    ):
        with pytest.raises(PlanError):
            engine_on(some_people(Random(0), 3)).tally(schema, [Sum(rows=Rows())], bad)
