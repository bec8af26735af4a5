"""Read the `[partition]` section of a plan: into which pieces a survey is cut, and which one this release reads.

Who is in which piece by lot follows from a key that the ledger draws and keeps; a plan holds none. With fixed sizes
every cut into pieces of those sizes is equally likely; or each respondent falls into a piece on their own. Pieces
by a column are in `partition_values`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from hashlib import sha256
from itertools import accumulate, pairwise
from json import dumps
from typing import Any

from reticent.answer.base import Answer, Estimate, Interval
from reticent.decimals import read_decimal
from reticent.engine.lots import BITS
from reticent.errors import PlanError
from reticent.prepare.donors import Repair
from reticent.privacy.claim import Change
from reticent.privacy.ledger import ChargedPiece
from reticent.privacy.ledger.cuts import CHANCE, FIXED
from reticent.query.kinds import Count, CrossTabulation, Derived, Query, Total
from reticent.release.partition_section import Partition, PartitionSection
from reticent.release.partition_values import by_column
from reticent.schema import Schema
from reticent.schema.codebook import ROW
from reticent.schema.reading import READING
from reticent.tomlfile import fill
from reticent.words import nearest

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
    made = [*who, codebook.get("columns"), READING, literal]
    return sha256(dumps(made, sort_keys=True, default=str).encode()).hexdigest()


def check_partition(partition: Partition | None, query: Query, size: int | None, field: str) -> None:
    """A public size is that of the whole survey, and a piece's own is not public."""
    if partition is not None and size is not None and not isinstance(query, Derived):
        raise PlanError("a public size is that of the whole survey, not of a piece; remove it", field=field)


def check_moved(
    partition: Partition | None, change: Change, *, repair: Repair, others: Sequence[object]
) -> None:
    """By values and against replacing, only asks: their noise holds for a respondent who comes or goes, too."""
    if partition is None or not partition.is_by_values or change is not Change.REPLACE:
        return
    if repair.donors or repair.lines or others:
        raise PlanError(
            "a replaced answer can take a respondent out of a piece by values, and donors, models and tables of other "
            f"kinds are not proved for both; ask plainly, or protect {Change.ADD_REMOVE.value!r}",
            field="partition.by",
        )


def scaled(answer: Answer, query: Query, partition: Partition | None) -> Answer:
    """The answer as it speaks of the whole survey: counts, totals and tables multiplied, quotients as they are."""
    if partition is None or not isinstance(query, Count | Total | CrossTabulation):
        return answer
    return replace(answer, estimates=tuple(_scaled(each, partition.scale) for each in answer.estimates))


def _scaled(estimate: Estimate, scale: Fraction) -> Estimate:
    def interval(level: Fraction) -> Interval:
        low, high = estimate.interval(level)
        return low * scale, high * scale

    within = estimate.sampling
    factor = float(scale)
    return replace(
        estimate,
        value=estimate.value * scale,
        interval=interval,
        noise_sd=None if estimate.noise_sd is None else estimate.noise_sd * factor,
        sampling=None if within is None else lambda effect: within(effect) * factor * factor,
    )
