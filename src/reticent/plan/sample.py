"""Read the `[sample]` section of a plan: how the survey was drawn, and what its promise is worth to the whole frame.

It changes what can be said of a release, never what a ledger of the sample charges. Everything that is run on one
sample is composed first and amplified once.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from pydantic import Field

from reticent.answer.statistic import Statistic
from reticent.answer.weighting import Weighting
from reticent.errors import PlanError
from reticent.exact import read_decimal
from reticent.files import Section, fill
from reticent.plan.partition import Frame, Partition
from reticent.privacy.claim import Change, Claim, compose
from reticent.privacy.sampling import SamplingDesign, amplify, design_of
from reticent.schema import Schema

LOT_SECRET = (
    "for this release alone, while nobody knows who is in which piece and nothing is released from the others"
)
DRAW_SECRET = (
    "for this release alone, while nobody knows who was drawn, and if the draw did not look at the rows"
)
BOTH_SECRET = (
    "for this release alone, while nobody knows who was drawn or who is in which piece, if neither draw looked at the "
    "rows, and while nothing is released from the other pieces"
)
PIECE_SECRET = (
    "for this release alone among those of its piece, while nobody knows who was drawn, and if the draw did not look at "
    "the rows; it holds beside releases of other pieces"
)


class SampleSection(Section):
    """The `[sample]` section: privacy amplification by sampling.

    **Keys**

    - `design`: the sampling design.
    - `frame`: how many people it was drawn from.
    - `rate`: the chance of each, where each was taken on their own.
    """

    design: str
    frame: int | None = Field(default=None, ge=1, le=2**50)
    rate: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class FrameSample:
    """A design that has a theorem, and the share of the frame that it draws."""

    design: SamplingDesign
    rate: Fraction


def read_sample(
    raw: Mapping[str, Any] | None, schema: Schema, change: Change, partition: Partition | None
) -> FrameSample | None:
    """How the survey was drawn; None where the plan does not say."""
    if raw is None:
        return None
    section = fill(SampleSection, raw, error=PlanError, at="sample")
    try:
        design = design_of(section.design)
    except PlanError as problem:
        raise PlanError(str(problem.args[0]), field="sample.design") from None
    strata = [name for name, column in schema.columns.items() if column.role == "stratum"]
    if strata:
        raise PlanError(
            f"{strata[0]} is a stratum of the design in the codebook, so this is no {design.value} sample; stratified "
            "sampling is not amplified",
            field="sample.design",
        )
    units = [name for name, column in schema.columns.items() if column.role == "psu"]
    if units:
        raise PlanError(
            f"{units[0]} is a primary sampling unit in the codebook, so respondents were drawn together and this is no "
            f"{design.value} sample; cluster sampling is not amplified",
            field="sample.design",
        )
    _check_change(design, change, partition)
    return FrameSample(design=design, rate=_rate(section, design, schema))


def _check_change(design: SamplingDesign, change: Change, partition: Partition | None) -> None:
    if design is SamplingDesign.SIMPLE and change is not Change.REPLACE:
        raise PlanError(
            f"a sample of fixed size goes with {Change.REPLACE.value!r}; protect that, or say 'poisson'",
            field="sample.design",
        )
    if design is SamplingDesign.POISSON and change is not Change.ADD_REMOVE:
        raise PlanError(
            f"a sample of random size goes with {Change.ADD_REMOVE.value!r}; protect that",
            field="sample.design",
        )
    if partition is not None and partition.frame is not None:
        raise PlanError(
            "the pieces of the frame say how their samples were drawn; remove this section", field="sample"
        )
    if (
        partition is not None
        and not partition.is_by_values
        and partition.is_fixed != (design is SamplingDesign.SIMPLE)
    ):
        raise PlanError(
            "sample and pieces are drawn in different ways, and no theorem covers both; draw both with fixed sizes, or "
            "both one by one",
            field="sample.design",
        )


def _rate(section: SampleSection, design: SamplingDesign, schema: Schema) -> Fraction:
    """Of fixed size: public sizes of sample and frame. One by one: the chance."""
    if design is SamplingDesign.SIMPLE:
        if section.frame is None or section.rate is not None or schema.sample_size is None:
            raise PlanError(
                "needs the public size of the frame here and survey.sample_size in the codebook, and no rate",
                field="sample.frame",
            )
        if section.frame < schema.sample_size:
            raise PlanError("is smaller than the sample", field="sample.frame")
        return Fraction(schema.sample_size, section.frame)
    rate = read_decimal(section.rate)
    if rate is None or not 0 < rate <= 1 or section.frame is not None:
        raise PlanError(
            "needs the chance with which each was drawn, a decimal up to 1, and no frame", field="sample.rate"
        )
    return rate


def check_sample(
    sample: FrameSample | None, asks: Sequence[Statistic], weighting: Weighting | None, schema: Schema
) -> None:
    """Base weights that differ say that some were likelier to be drawn than others."""
    if sample is None:
        return
    base = [weighting.column] if weighting is not None and weighting.column else []
    base += [ask.query.weight for ask in asks if ask.query.weight and ask.query.weight in schema.coded]
    if base and schema.coded[base[0]].high > 1:
        raise PlanError(
            f"{base[0]} is a base weight, so some were likelier to be drawn than others, and that is not amplified; "
            "claim the guarantee of the sample itself",
            field="sample",
        )


def frame_claims(
    claims: Iterable[Claim], change: Change, partition: Partition | None, sample: FrameSample | None
) -> tuple[tuple[str, Claim], ...]:
    """What has to stay secret, and the claim: to the survey a piece was drawn from, and to the frame of the sample."""
    whole = tuple(claims)
    if partition is not None and partition.is_by_values:
        partition = None  # nobody is in it by chance
    if not (partition or sample) or compose(whole).measure not in ("pure", "approximate"):
        return ()
    if partition is not None and partition.frame is not None:
        return _frame_pieces(whole, partition.frame)
    found = []
    if partition is not None and sample is None:
        design = SamplingDesign.SIMPLE if partition.is_fixed else SamplingDesign.POISSON
        if design is SamplingDesign.SIMPLE or change is Change.ADD_REMOVE:
            found.append((LOT_SECRET, amplify(whole, rate=partition.share, design=design, change=change)))
    if sample is not None:
        rate = sample.rate * (partition.share if partition else 1)
        secret = BOTH_SECRET if partition else DRAW_SECRET
        found.append((secret, amplify(whole, rate=rate, design=sample.design, change=change)))
    return tuple(found)


def _frame_pieces(claims: tuple[Claim, ...], frame: Frame) -> tuple[tuple[str, Claim], ...]:
    """Of a frame cut before the draw: to the piece's own people, and to all if their piece is secret too.

    Guarantee   the returned claims, each while what it names stays secret.
    Adjacency   one respondent's answers replaced, in a frame whose cut did not look at answers.
    Theorem     THEORY 5.1 within a piece of the frame, and 5.2 over the pieces.
    Proof       proofs/privacy/pieces.md
    Assumes     the cut and the draws are by lot and look at no answer; sizes are public.
    Keeps back  who was drawn, and for the second claim who is in which piece.
    """
    own = amplify(claims, rate=frame.rate, design=SamplingDesign.SIMPLE, change=Change.REPLACE)
    alone = amplify(claims, rate=frame.share, design=SamplingDesign.SIMPLE, change=Change.REPLACE)
    return (PIECE_SECRET, own), (BOTH_SECRET, alone)
