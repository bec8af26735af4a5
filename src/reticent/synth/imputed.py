"""Impute first, then synthesize: rows completed by a private model of its own, at a share of the amount that the plan says.

The document's third strategy with any model and at any split. Each row is completed from itself and from what the model
released, so that what comes afterwards sees as many rows as there were.
"""

from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, cast

from reticent.errors import PlanError, nearest
from reticent.noise.bits import Bits
from reticent.privacy.claim import Claim
from reticent.synth.base import (
    Counts,
    Effort,
    FitTask,
    Foretold,
    MissingMethod,
    Model,
    NoisyTraining,
    Spend,
    SynthesisMethod,
    in_brief,
)
from reticent.synth.domain import Domain
from reticent.synth.fills import model_fills, parts
from reticent.synth.learned.model import LearnedModel
from reticent.synth.network import Network

IMPUTERS = ("independent", "privbayes", "mst", "aim", "chain", "kamino", "kamino-i")
"""Methods whose models can complete a row from its own answers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ImputeFirst:
    """A model of the available answers fills every row; another synthesizer learns from the filled rows.

    Parameters
    ----------
    imputer : whose model completes the rows
    method : what learns from them
    share : the share of the amount that the imputer spends
    """

    imputer: SynthesisMethod
    method: SynthesisMethod
    share: Fraction

    @property
    def name(self) -> str:
        return self.method.name

    def check(self, domain: Domain, missing: MissingMethod, spend: Spend) -> None:
        first, left = parts(spend, self.share)
        self.imputer.check(domain, MissingMethod.AVAILABLE, first)
        self.method.check(domain, MissingMethod.COMPLETE, left)

    @property
    def both(self) -> tuple[tuple[SynthesisMethod, MissingMethod], ...]:
        """What is fitted, and what each does about missing values."""
        return (self.imputer, MissingMethod.AVAILABLE), (self.method, MissingMethod.COMPLETE)

    def claim(self, domain: Domain, missing: MissingMethod, spend: Spend) -> Claim:
        """That of the method for the whole amount, resting on both models and on rows filled one by one."""
        claims = [each.claim(domain, strategy, spend) for each, strategy in self.both]
        return replace(
            claims[1], rests_on=tuple(dict.fromkeys(page for claim in claims for page in claim.rests_on))
        )

    def rounds(self, domain: Domain) -> int:
        return self.imputer.rounds(domain) + self.method.rounds(domain)

    def brief(self) -> "ImputeFirst":
        """The same with one step of whatever learns in steps."""
        return replace(self, imputer=in_brief(self.imputer), method=in_brief(self.method))

    def effort(self, domain: Domain, missing: MissingMethod) -> Effort | None:
        """Of both fits, one after the other."""
        told = [each.effort(domain, way) for each, way in self.both if isinstance(each, Foretold)]
        found = [each for each in told if each is not None]
        return (
            None
            if not found
            else Effort(
                megabytes=max(each.megabytes for each in found),
                seconds=sum(each.seconds for each in found),
                seconds_each=sum(each.seconds_each for each in found),
                held=3 if isinstance(self.imputer, NoisyTraining) else 2,
            )
        )

    def step_noise(self, domain: Domain, missing: MissingMethod, spend: Spend) -> float:
        """The larger of both, each with its part of the amount; 0 where none learns by steps."""
        pairs = zip(self.both, parts(spend, self.share), strict=True)
        found = [
            each.step_noise(domain, way, part)
            for (each, way), part in pairs
            if isinstance(each, NoisyTraining)
        ]
        return max(found, default=0.0)

    def fit(self, task: FitTask) -> Model:
        """Fit the imputer to available answers, complete every row from itself, fit the method to the completed rows.

        Guarantee   that of `spend`, for the model and all that is drawn from it.
        Adjacency   `spend.neighbours`.
        Theorem     rows mapped one by one, given what was released, have stability one; adaptive composition.
        Proof       proofs/synth/imputed.md
        Assumes     both methods keep their promises; `counts` maps rows one by one.
        Keeps back  the rows, and which cells were filled.
        """
        first, left = parts(task.spend, self.share)
        model = self.imputer.fit(replace(task, missing=MissingMethod.AVAILABLE, spend=first))
        rows = completed(task.counts, model, task.noise.bits)
        made = self.method.fit(replace(task, counts=rows, missing=MissingMethod.COMPLETE, spend=left))
        claim = self.claim(task.domain, task.missing, task.spend)
        return cast(Model, replace(cast(Any, made), claim=claim))


def completed(counts: Counts, model: Model, bits: Bits) -> Counts:
    """The rows with missing cells drawn from a released model, each row from itself."""
    if isinstance(model, Network):
        return counts.filled(model_fills(model), bits)
    if not isinstance(model, LearnedModel):
        raise PlanError("cannot complete rows; use another model to impute with", field="impute_model")
    for fill in model.fills():
        counts = counts.redrawn(fill, bits)
    return counts


def imputing(
    method: SynthesisMethod, missing: MissingMethod, imputer: SynthesisMethod | None, share: Fraction | None
) -> SynthesisMethod:
    """The method with the imputation that a plan asks for: another model, or another share of the amount."""
    if imputer is None and share is None:
        return method
    if missing not in (MissingMethod.MEAN, MissingMethod.MODEL):
        raise PlanError(
            f"goes with missing = {MissingMethod.MEAN.value!r} or {MissingMethod.MODEL.value!r} alone, which pay for filling",
            field="impute_share" if imputer is None else "impute_model",
        )
    if share is not None and not 0 < share < 1:
        raise PlanError("the share for filling lies between 0 and 1", field="impute_share")
    if imputer is None:
        return cast(SynthesisMethod, replace(cast(Any, method), share=share))
    if missing is MissingMethod.MEAN:
        raise PlanError("a mean needs no model; use missing = 'impute-model'", field="impute_model")
    if imputer.name not in IMPUTERS:
        known = ", ".join(IMPUTERS)
        raise PlanError(f"is one of {known}{nearest(imputer.name, IMPUTERS)}", field="impute_model")
    return ImputeFirst(imputer=imputer, method=method, share=Fraction(1, 2) if share is None else share)
