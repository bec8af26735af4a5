"""Pieces of a survey by a column: by the respondents' own answers, or by a lot that was drawn before the sample was.

By answers, a replaced one takes a respondent from piece to piece, and the two largest charges count. A lot that was
drawn over the frame is no answer: nobody changes piece, and the largest counts.
"""

from collections.abc import Sequence
from fractions import Fraction
from json import dumps

from reticent.errors import PlanError
from reticent.privacy.claim import Change
from reticent.privacy.ledger import ChargedPiece
from reticent.privacy.ledger.cuts import BEFORE, VALUES
from reticent.release.partition_section import Frame, Partition, PartitionSection
from reticent.schema import Schema
from reticent.schema.codebook import ROW
from reticent.schema.columns import Levels
from reticent.words import nearest


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
