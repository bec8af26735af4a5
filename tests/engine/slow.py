"""What a tally should be, computed one row at a time in plain Python. Written to be read, not to be fast."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from fractions import Fraction
from math import floor, prod
from random import Random

from reticent.engine.wants import Key, Rows, Sum, Table
from reticent.prepare.repair import Edit
from reticent.schema import Levels, Number, Schema
from reticent.schema.bind import (
    MISSING,
    STRUCTURAL,
    AllOf,
    Always,
    AnyOf,
    Bound,
    Cell,
    CodeIn,
    Is,
    Negation,
    truth,
)

Raw = Mapping[str, object]  # one record: a Fraction, an int, a bool, a text, or None
Row = dict[str, Cell]


def code_of(column: Levels | Number, cell: object) -> Cell:
    """The code of one cell by the rules of the codebook."""
    if isinstance(column, Levels):
        text = str(cell).lower() if isinstance(cell, bool) else str(cell)
        return column.levels.index(text) if cell is not None and text in column.levels else MISSING
    if not isinstance(cell, int | Fraction) or Fraction(cell) in map(Fraction, column.missing):
        return MISSING
    if column.whole and Fraction(cell).denominator != 1:
        return MISSING
    steps = floor(min(max(Fraction(cell), column.lower), column.upper) / column.grid + Fraction(1, 2))
    return min(max(steps, column.low), column.high)


def clean(
    schema: Schema, rows: Sequence[Raw], columns: Sequence[str], edits: Sequence[Edit] = ()
) -> list[Row]:
    """Codes of `columns`, at most `at_most` rows of a respondent, edits made, universes decided."""
    coded = [{c: code_of(schema.coded[c], row[c]) for c in columns} for row in rows]
    return finished(schema, [row for _, row in bounded(schema, rows, coded)], columns, edits)


def finished(
    schema: Schema, coded: list[Row], columns: Sequence[str], edits: Sequence[Edit] = ()
) -> list[Row]:
    """Rows of codes after edits, each from the row as the one before left it, and universes."""
    for row in coded:
        for edit in edits:
            if (edit.replaces or row[edit.column] is MISSING) and truth(edit.when, row) is True:
                row[edit.column] = MISSING if edit.code is None else edit.code
    for row in coded:
        for column in columns:  # each comes after those its universe speaks of
            if not _was_asked(schema.universe(column), row):
                row[column] = STRUCTURAL
    return coded


def bounded(schema: Schema, rows: Sequence[Raw], coded: list[Row]) -> list[tuple[str, Row]]:
    """The rows that count, each with its owner: nobody where it has none, or where rows are respondents."""
    if schema.unit == "row":
        return [("", row) for row in coded]
    owned: dict[str, list[Row]] = defaultdict(list)
    kept: list[tuple[str, Row]] = []
    for raw, row in zip(rows, coded, strict=True):
        owner = str(raw[schema.unit] or "").strip()
        if owner:
            owned[owner].append(row)
        else:
            kept.append((owner, row))
    for owner, records in owned.items():
        records.sort(key=lambda row: [(cell is not MISSING, cell) for cell in row.values()])
        kept += [(owner, row) for row in records[: schema.at_most]]
    return kept


def _was_asked(universe: Bound | None, row: Row) -> bool:
    """Where the universe is unknown the question counts as asked, unless what it speaks of was not."""
    if universe is None:
        return True
    holds = truth(universe, row)
    return not any(row[c] is STRUCTURAL for c in _named(universe)) if holds is None else holds


def _named(bound: Bound) -> list[str]:
    if isinstance(bound, CodeIn | Is):
        return [bound.column]
    parts = bound.parts if isinstance(bound, AllOf | AnyOf) else ()
    parts = (bound.part,) if isinstance(bound, Negation) else parts
    return [name for part in parts for name in _named(part)]


def counts(rows: Rows, row: Row) -> bool:
    """Whether the row is among `rows`."""
    known = all(row[c] is not MISSING for c in rows.known)
    return truth(rows.where, row) is True and known and all(isinstance(row[c], int) for c in rows.answered)


def add_up(want: Sum, rows: Sequence[Row]) -> int:
    """The sum of weight x value^power x other over the rows that count and hold a code in each."""
    factors = [f for f in (want.weight, want.other, *[want.value] * want.power) if f]
    held = [row for row in rows if counts(want.rows, row) and all(isinstance(row[f], int) for f in factors)]
    return sum(prod(row[f] for f in factors) for row in held)  # type: ignore[misc]


def tabulate(want: Table, rows: Sequence[Row], schema: Schema) -> tuple[int, ...]:
    """The table, cell by cell; rows without a code in what is summed add nothing."""
    factors = [f for f in (want.weight, want.other, *[want.value] * want.power) if f]
    cells = [0] * want.size(schema)
    for row in rows:
        if counts(want.rows, row) and all(isinstance(row[f], int) for f in factors):
            places = [place(key, row[key.column], schema) for key in want.keys]
            if None not in places:
                index = 0
                for key, at in zip(want.keys, places, strict=True):
                    index = index * key.size(schema) + (at or 0)
                cells[index] += prod(row[f] for f in factors)  # type: ignore[misc]
    return tuple(cells)


def place(key: Key, cell: Cell, schema: Schema) -> int | None:
    if not isinstance(cell, int):
        silent = key.answers(schema) + (cell is STRUCTURAL)
        return silent if key.silent else None
    if key.step is not None:
        return floor(Fraction(cell - schema.coded[key.column].low, key.step) + Fraction(1, 2))
    return sum(cell >= start for start in key.starts) - 1 if key.starts else cell


def some_bound(dice: Random, schema: Schema, depth: int = 2) -> Bound:
    """A predicate over codes, of any shape."""
    shape = dice.randrange(5) if depth else dice.randrange(2)
    if shape == 0:
        name = dice.choice(list(schema.coded))
        return Is(name, dice.choice(["missing", "answered", "structural"]))
    if shape == 1:
        name = dice.choice(list(schema.coded))
        column = schema.coded[name]
        ends = sorted(dice.randint(column.low, column.high) for _ in range(4))
        wide = ((ends[0], ends[1]), (ends[2], ends[3]))
        return CodeIn(name, wide if ends[1] < ends[2] else wide[: dice.randrange(2)])
    parts = tuple(some_bound(dice, schema, depth - 1) for _ in range(dice.randint(1, 3)))
    shapes: list[Bound] = [AllOf(parts), AnyOf(parts), Negation(parts[0])]
    return shapes[shape - 2]


def some_rows(dice: Random, schema: Schema, answered: Sequence[str]) -> Rows:
    """Rows under a predicate, some columns known, some answered."""
    where = dice.choice([Always(), some_bound(dice, schema), some_bound(dice, schema)])
    likely = [*_named(where), *schema.coded]  # an ask usually wants known what it compares
    known = tuple(dict.fromkeys(likely[: dice.randrange(4)] + dice.sample(likely, dice.randrange(2))))
    return Rows(where=where, known=known, answered=tuple(answered))


def some_sum(dice: Random, schema: Schema) -> Sum:
    """A count, a total, a second moment or a product, weighted or not."""
    numbers = [n for n, c in schema.coded.items() if isinstance(c, Number) and c.role != "weight"]
    value, weight = dice.choice([None, *numbers]), dice.choice([None, "weight"])
    answered = [*([value] if value else []), *([weight] if weight else [])]
    power = dice.randint(1, 2) if value else 0
    other = dice.choice([None, *numbers])
    rows = some_rows(dice, schema, answered if dice.random() < 0.5 else [])
    return Sum(rows=rows, value=value, power=power, weight=weight, other=other)


def some_table(dice: Random, schema: Schema) -> Table:
    """One or two sides of levels, bins or steps, with or without cells for silence."""
    keys = tuple(
        _some_key(dice, schema, name) for name in dice.sample(list(schema.coded), dice.randint(1, 2))
    )
    weight = dice.choice([None, "weight"])
    return Table(rows=some_rows(dice, schema, [weight] if weight else []), keys=keys, weight=weight)


def some_domain_sum(dice: Random, schema: Schema) -> Table:
    """A sum in every cell of one or two columns, silent cells among them."""
    names = dice.sample(list(schema.coded), dice.randint(1, 2))
    return some_sum(dice, schema).by(tuple(_some_key(dice, schema, name) for name in names))


def _some_key(dice: Random, schema: Schema, name: str) -> Key:
    column, silent = schema.coded[name], dice.random() < 0.5
    if isinstance(column, Levels):
        return Key(column=name, silent=silent)
    if dice.random() < 0.5:
        return Key(column=name, step=dice.randint(1, 40), silent=silent)
    inside = sorted(dice.sample(range(column.low + 1, column.high), dice.randint(0, 3)))
    return Key(column=name, starts=(column.low, *inside), silent=silent)
