"""Parallel composition in a plan: the `[partition]` section, into which pieces a survey is cut, and which one is read.

**By lot.** Who is in which piece follows from a key that the ledger draws and keeps; a plan holds none. With fixed sizes
every cut into pieces of those sizes is equally likely; or each respondent falls into a piece on their own.

**By a column.** By answers, a replaced one takes a respondent from piece to piece, and the two largest charges count. A lot
that was drawn over the frame is no answer: nobody changes piece, and the largest counts.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from hashlib import sha256
from itertools import accumulate, pairwise
from json import dumps
from math import ceil
from typing import Any

from pydantic import Field

from reticent.engine.sql.sampling import BITS, Lot
from reticent.errors import PlanError, nearest
from reticent.exact import read_decimal, show
from reticent.files import Section, fill
from reticent.prepare.repair import Repair
from reticent.privacy.claim import Change
from reticent.privacy.ledger import ChargedPiece
from reticent.privacy.ledger.history import BEFORE, CHANCE, FIXED, VALUES
from reticent.schema import Schema
from reticent.schema.columns import READING, Levels
from reticent.schema.schema import PLAIN_CSV, ROW

KEY_SECRET = {
    FIXED: (
        "charges of other pieces do not add to it while nobody who reads the releases knows the ledger's key; with the key "
        "one replaced answer can exchange a respondent in every piece, and all charges add up"
    ),
    CHANCE: (
        "it holds while nobody who reads the releases knows the ledger's key; with the key one replaced answer can take a "
        "respondent out of one piece and into another, and both are charged"
    ),
}
"""What a promise against replaced answers rests on, in a piece by lot."""


class PartitionSection(Section):
    """The `[partition]` section: parallel composition over pieces of a survey.

    **Keys**

    - `name`: the name of the partition, by which a ledger knows it.
    - `piece`: which piece this release reads.
    - `pieces`: how many there are, by lot.
    - `shares`: the share of each, by lot.
    - `by`: the column that says who is where.
    - `groups`: the values of each piece.
    - `frame`: how many people each piece of the frame has.
    - `sizes`: how many of them were drawn.
    - `draw`: how the pieces came about.
    """

    name: str = Field(min_length=1, max_length=100)
    piece: int | str
    pieces: int | None = Field(default=None, ge=2, le=1000)
    shares: list[str] | None = Field(default=None, min_length=2, max_length=1000)
    by: str | None = None
    groups: list[list[str | int]] | None = Field(default=None, min_length=2, max_length=1000)
    frame: list[int] | None = Field(default=None, max_length=1000)
    sizes: list[int] | None = Field(default=None, max_length=1000)
    draw: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Frame:
    """A piece of a frame that was cut before anybody was drawn: `size` of its `piece` people were, of `whole` in all."""

    size: int
    piece: int
    whole: int

    @property
    def share(self) -> Fraction:
        """Of the whole frame, the part that this release reads."""
        return Fraction(self.size, self.whole)

    @property
    def rate(self) -> Fraction:
        """Of the piece's own people, the part that was drawn."""
        return Fraction(self.size, self.piece)


@dataclass(frozen=True, slots=True, kw_only=True)
class Partition:
    """The piece a release reads: which respondents, by rank, by chance or by a column, and what share they stand for.

    `share` is exact: of the survey for a piece by lot, of the frame for a piece of one, and 1 for a piece by
    values, which speaks of itself alone.
    """

    piece: ChargedPiece
    share: Fraction
    first: int = 0
    last: int = 0
    column: str | None = None
    codes: tuple[int, ...] = ()
    frame: Frame | None = None

    @property
    def scale(self) -> Fraction:
        """What a count or total of the piece is multiplied by, to speak of the whole."""
        return 1 / self.share

    @property
    def is_fixed(self) -> bool:
        return self.piece.draw == FIXED

    @property
    def is_by_values(self) -> bool:
        return self.piece.draw == VALUES

    def secret(self, change: Change) -> str:
        """What the promise of a piece by lot rests on; nothing where it holds given the lot."""
        return KEY_SECRET.get(self.piece.draw, "") if change is Change.REPLACE else ""

    def lot(self, key: str) -> Lot:
        """The lot under the ledger's key; by a column the key does not matter."""
        if self.column is not None:
            return Lot(key=key, column=self.column, codes=self.codes)
        return Lot(key=key, first=self.first, last=self.last, chance=not self.is_fixed)

    def rows(self, expected: int | None, sample_size: int | None) -> int | None:
        """How many respondents to expect in the piece; by values, as many as the plan says it expects."""
        if self.is_by_values:
            return expected
        if self.frame is not None:
            return self.frame.size
        rows = expected or sample_size
        return None if rows is None else ceil(rows * self.share)

    @property
    def words(self) -> str:
        of = f"piece {self.piece.number} of {len(self.piece.parts)} of the partition {self.piece.partition!r}"
        times = show(self.scale, digits=6)
        if self.is_by_values:
            return f"{of}, by the answers in {self.column}; it speaks of those respondents alone"
        if self.piece.draw == BEFORE:
            return (
                f"{of}, into which the frame was cut by lot before anybody was drawn; {self.column} is not protected; "
                f"counts and totals are multiplied by {times} to speak of the whole frame"
            )
        drawn = "of fixed size" if self.is_fixed else "into which respondents fell on their own"
        return (
            f"{of}, {drawn}, by lot; counts and totals are multiplied by {times} to speak of the whole survey"
        )


def by_column(section: PartitionSection, schema: Schema, binds: str, change: Change) -> Partition:
    """The piece of a plan that cuts by a column."""
    if section.pieces is not None or section.shares is not None:
        raise PlanError("is by a column here, so leave pieces and shares out", field="partition.pieces")
    if schema.unit != ROW:
        raise PlanError(
            "a respondent with several rows could be in several pieces; cut by lot", field="partition.by"
        )
    column = _column(section.by or "", schema)
    draw = section.draw or VALUES
    if draw not in (VALUES, BEFORE):
        raise PlanError(f"by a column it is {VALUES!r} or {BEFORE!r}", field="partition.draw")
    groups = _groups(section, column)
    number = _number(section, column, groups)
    frame = _frame(section, groups, number, schema, change) if draw == BEFORE else None
    if draw == VALUES and (section.frame or section.sizes):
        raise PlanError(f"goes with draw = {BEFORE!r}", field="partition.frame")
    parts = [[column.name, *(column.levels[code] for code in group)] for group in groups]
    sizes = zip(section.frame or [], section.sizes or [], strict=True)
    texts = (
        [dumps(part) for part in parts]
        if frame is None
        else [dumps([*part, *size]) for part, size in zip(parts, sizes, strict=True)]
    )
    piece = ChargedPiece(partition=section.name, number=number, parts=tuple(texts), draw=draw, binds=binds)
    share = Fraction(1) if frame is None else frame.share
    return Partition(piece=piece, share=share, column=column.name, codes=groups[number - 1], frame=frame)


def _column(name: str, schema: Schema) -> Levels:
    found = schema.coded.get(schema.column(name, field="partition.by").name)
    if not isinstance(found, Levels):
        raise PlanError("has no levels to cut by; name a categorical column", field="partition.by")
    return found


def _groups(section: PartitionSection, column: Levels) -> list[tuple[int, ...]]:
    """Each level a piece, or levels put together; none is in two."""
    if section.groups is None:
        return [(code,) for code in range(len(column.levels))]
    groups = [tuple(_level(str(text), column) for text in group) for group in section.groups]
    named = [code for group in groups for code in group]
    if len(set(named)) < len(named) or not all(groups):
        raise PlanError("a level is in one piece at most, and no piece is empty", field="partition.groups")
    return groups


def _level(text: str, column: Levels) -> int:
    if text not in column.levels:
        raise PlanError(
            f"{column.name} has no level {text[:80]!r}{nearest(text, column.levels)}", field="partition"
        )
    return column.levels.index(text)


def _number(section: PartitionSection, column: Levels, groups: Sequence[tuple[int, ...]]) -> int:
    """The piece by its number, or by one of its levels."""
    if isinstance(section.piece, int):
        if not 1 <= section.piece <= len(groups):
            raise PlanError(f"pieces are numbered from 1 to {len(groups)}", field="partition.piece")
        return section.piece
    code = _level(section.piece, column)
    found = [place for place, group in enumerate(groups, 1) if code in group]
    if not found:
        raise PlanError("is in no piece", field="partition.piece")
    return found[0]


def _frame(
    section: PartitionSection,
    groups: Sequence[tuple[int, ...]],
    number: int,
    schema: Schema,
    change: Change,
) -> Frame:
    """Public sizes: of every piece of the frame, and of the sample that was drawn from it."""
    frame, sizes = section.frame or [], section.sizes or []
    if change is not Change.REPLACE:
        raise PlanError(
            f"pieces of a frame have samples of fixed sizes; protect {Change.REPLACE.value!r}",
            field="partition.draw",
        )
    clustered = [name for name, column in schema.columns.items() if column.role in ("stratum", "psu")]
    if clustered:
        raise PlanError(
            f"{clustered[0]} is part of the sampling design in the codebook, so this is no simple sample of each piece; "
            "leave draw out",
            field="partition.draw",
        )
    if not len(frame) == len(sizes) == len(groups):
        raise PlanError(
            f"needs frame and sizes, one number for each of {len(groups)} pieces", field="partition.frame"
        )
    if any(not 1 <= drawn <= of for drawn, of in zip(sizes, frame, strict=True)):
        raise PlanError(
            "a sample has somebody, and not more than its piece of the frame", field="partition.sizes"
        )
    if schema.sample_size not in (None, sum(sizes)):
        raise PlanError("do not add up to survey.sample_size", field="partition.sizes")
    return Frame(size=sizes[number - 1], piece=frame[number - 1], whole=sum(frame))


WHOLE = 2**BITS


def read_partition(
    raw: Mapping[str, Any] | None, schema: Schema, codebook: Mapping[str, Any], change: Change
) -> Partition | None:
    """The piece of a plan; None where it reads the whole survey."""
    if raw is None:
        return None
    section = fill(PartitionSection, raw, error=PlanError, at="partition")
    if section.by is not None:
        return by_column(section, schema, _binds(schema, codebook), change)
    if section.groups or section.frame or section.sizes or not isinstance(section.piece, int):
        raise PlanError(
            "by lot a piece has a number, and no groups or sizes of a frame", field="partition.piece"
        )
    draw = _draw(section, schema, change)
    if draw == FIXED and schema.sample_size is not None:
        whole = schema.sample_size
        ends = _ends(section, whole)
        parts = tuple(str(b - a) for a, b in pairwise(ends))
    else:
        whole = WHOLE
        ends = _ends(section, whole)
        parts = tuple(str(end) for end in ends[1:])
    if any(b <= a for a, b in pairwise(ends)):
        raise PlanError("leaves a piece without respondents; cut into fewer", field="partition")
    number = section.piece
    if number < 1:
        raise PlanError(f"pieces are numbered from 1 to {len(parts)}.", field="partition.piece")
    piece = ChargedPiece(
        partition=section.name, number=number, parts=parts, draw=draw, binds=_binds(schema, codebook)
    )
    first, last = ends[number - 1], ends[number]
    return Partition(piece=piece, first=first, last=last, share=Fraction(last - first, whole))


def _draw(section: PartitionSection, schema: Schema, change: Change) -> str:
    """Fixed sizes presume how many respondents there are: only where that is public."""
    public = change is Change.REPLACE and schema.sample_size is not None
    draw = section.draw if section.draw is not None else FIXED if public else CHANCE
    if draw not in (FIXED, CHANCE):
        raise PlanError(
            f"is one of: {FIXED}; {CHANCE}{nearest(draw, [FIXED, CHANCE])}", field="partition.draw"
        )
    if draw == FIXED and not public:
        raise PlanError(
            f"pieces of fixed sizes presume how many respondents there are; declare survey.sample_size and protect "
            f"{Change.REPLACE.value!r}, or write draw = {CHANCE!r}",
            field="partition.draw",
        )
    return draw


def _ends(section: PartitionSection, whole: int) -> list[int]:
    """Where pieces end, from 0 up to `whole`, each end rounded down."""
    if (section.pieces is None) == (section.shares is None):
        raise PlanError("says pieces = 10 for equal ones, or the shares of each", field="partition.pieces")
    if section.pieces is not None:
        shares = [Fraction(1, section.pieces)] * section.pieces
    else:
        shares = [_share(text, place) for place, text in enumerate(section.shares or ())]
        if sum(shares) != 1:
            raise PlanError("add up to 1; list pieces that are not released too", field="partition.shares")
    return [0, *(int(end * whole) for end in accumulate(shares))]


def _share(text: str, place: int) -> Fraction:
    share = read_decimal(text)
    if share is None or not 0 < share < 1:
        raise PlanError("is a decimal between 0 and 1", field=f"partition.shares[{place}]")
    return share


def _binds(schema: Schema, codebook: Mapping[str, Any]) -> str:
    """A digest of what labels are made of: all columns of the codebook, with how their cells are read, and who is a
    respondent."""
    literal = sorted(name for name, column in schema.columns.items() if getattr(column, "literal", False))
    who = [schema.name, schema.unit, schema.at_most if schema.unit != ROW else 1]
    made = [*who, _unlabelled(codebook.get("columns")), READING, literal, *_regrouped(schema)]
    return sha256(dumps(made, sort_keys=True, default=str).encode()).hexdigest()


def _unlabelled(columns: Any) -> Any:
    """The columns without the labels of levels, which change no code: a label may be mended between two pieces."""
    if not isinstance(columns, Mapping):
        return columns
    return {
        name: {k: v for k, v in dict(raw).items() if k not in ("labels", "concept")}
        for name, raw in columns.items()
    }


def _regrouped(schema: Schema) -> list[Any]:
    """How codes become levels where they are grouped, or compared without case or spacing, in the order of levels; and how
    numbers of a CSV file are written, where that is said."""
    told = [
        [name, list(column.levels), [list(each) for each in column.members], list(column.ignore)]
        for name, column in schema.columns.items()
        if isinstance(column, Levels) and (column.members or column.ignore)
    ]
    dialect = [schema.csv.decimal, schema.csv.thousands, schema.csv.encoding]
    read = [dialect] if schema.csv != PLAIN_CSV else []
    return [*([told] if told else []), *read]


def check_partition(partition: Partition | None, size: object, field: str) -> None:
    """A public size is that of the whole survey, and a piece's own is not public."""
    if partition is not None and size is not None:
        raise PlanError("a public size is that of the whole survey, not of a piece; remove it", field=field)


def check_moved(
    partition: Partition | None, change: Change, *, repair: Repair, others: Sequence[object]
) -> None:
    """By values and against replacing, only asks: their noise holds for a respondent who comes or goes, too."""
    if partition is None or not partition.is_by_values or change is not Change.REPLACE:
        return
    if repair.donors or repair.capped or repair.lines or others:
        raise PlanError(
            "a replaced answer can take a respondent out of a piece by values, and donors, models and tables of other "
            f"kinds are not proved for both; ask plainly, or protect {Change.ADD_REMOVE.value!r}",
            field="partition.by",
        )
