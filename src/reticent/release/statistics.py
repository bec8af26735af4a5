"""The statistics of a release, and the weights to known totals that some of them use: made, and told."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from reticent.answer.choose_bins import Weighed
from reticent.answer.parts import Answer
from reticent.engine.wants import Aggregate
from reticent.plan.plan import Plan
from reticent.plan.statistics import Statistics, claim_of_bins, claim_of_parts
from reticent.privacy.claim import Claim
from reticent.release.asks import book_of, evaluate_sampled, ran_as_planned, rings_of, wants_of, weigh_plan
from reticent.release.copies import tally_copies
from reticent.release.document import answers_section, weights_section
from reticent.release.models import NO_MODELS, Modelled, ModelsResult
from reticent.release.product import Document, PlanRun, Producer, ReleasedSection, Result
from reticent.release.sampling import Sampled


@dataclass(frozen=True, slots=True, kw_only=True)
class StatisticsResult(Result):
    """The answer to every statistic by its name, and the bins that weighted ones use."""

    plan: Plan
    answers: Mapping[str, Answer] = field(repr=False)
    weighed: Weighed | None = None
    sampled: Sampled | None = None

    @property
    def epsilon(self) -> Fraction:
        bins = self.weighed.epsilon if self.weighed else Fraction(0)
        bought = self.sampled.epsilon if self.sampled else Fraction(0)
        return sum((answer.epsilon for answer in self.answers.values()), start=bins + bought)

    @property
    def is_as_planned(self) -> bool:
        return ran_as_planned(self.plan, self.answers)

    @property
    def claims(self) -> Sequence[Claim]:
        ran = ((route, self.answers[route.statistic.name].parts) for route in self.plan.routes)
        found = (claim_of_parts(route, parts, self.plan.change) for route, parts in ran)
        bought = self.sampled.claims if self.sampled else ()
        return [*(claim for claim in found if claim is not None), *bought]

    @property
    def ground_claims(self) -> Sequence[Claim]:
        bins = claim_of_bins(self.weighed.parts, self.plan.change) if self.weighed else None
        return [bins] if bins else []

    def grounds(self) -> dict[str, Any]:
        sampling = self.sampled.section() if self.sampled else {}
        return {**weights_section(self.plan, self.weighed), **sampling}

    def document(self) -> dict[str, Any]:
        return {"statistics": answers_section(self.plan, self.answers, self.sampled)}


class StatisticsProducer(Producer[Statistics]):
    """Answers every statistic, in order, from aggregates of one pass over the rows."""

    __slots__ = ()

    @property
    def steps(self) -> int:
        """One for each statistic, and one for each bound of a column that donors fill."""
        return len(self.asked.asks) + len(rings_of(self.plan))

    def check(self) -> None:
        wants_of(self.plan)

    def wants(self) -> Sequence[Aggregate]:
        return wants_of(self.plan)

    def run(self, on: PlanRun) -> StatisticsResult:
        """Copies first, where rows are filled several times; then bounds, bins and answers."""
        modelled = _modelled(on)
        copied = tally_copies(on.plan, on.engine, on.lot, modelled, bits=on.bits) if modelled.fits else None
        book = book_of(on.plan, on.tallies, step=on.step)
        weighed = weigh_plan(on.plan, on.tallies, on.noise)
        made = evaluate_sampled(
            on.plan,
            on.tallies,
            on.noise,
            step=on.step,
            book=book,
            weighed=weighed,
            copied=copied,
        )
        return StatisticsResult(plan=on.plan, answers=made.answers, weighed=weighed, sampled=made.sampled)


def _modelled(on: PlanRun) -> Modelled:
    """The models that have filled rows, if any."""
    return next((done.modelled for done in on.results if isinstance(done, ModelsResult)), NO_MODELS)


def _estimates(answer: Document) -> list[dict[str, Any]]:
    return list(answer["estimates"])


STATISTICS = ReleasedSection(rows=_estimates)
