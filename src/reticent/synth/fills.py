"""What is done about silent cells before the noise: each row is filled from itself and from what was released."""

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Protocol

import numpy as np

from reticent.errors import PlanError
from reticent.privacy.convert import PLACES, zcdp_to_epsilon
from reticent.schema import Number
from reticent.synth.base import Conditional, Counts, FitTask, Floats, MissingMethod, Spend, SynthNoise
from reticent.synth.domain import Axis, Domain, bins
from reticent.synth.marginals.study import plain
from reticent.synth.network import Network, lines, simplex
from reticent.synth.spending import Accountant, rho_within

PAGE = "proofs/synth/fills.md"
WEIGHTED_PAGE = "proofs/synth/marginals/weighted.md"
SHARE = Fraction(1, 2)
PAID = (MissingMethod.MEAN, MissingMethod.MODEL)
_STEP = Fraction(1, 10**PLACES)


class NetworkMethod(Protocol):
    """Whatever can fit a network to available cells: any synthesizer."""

    def fit(self, task: FitTask) -> Network: ...


def prepared(task: FitTask, *, model: NetworkMethod, share: Fraction = SHARE) -> FitTask:
    """The task with the rows that a synthesizer shall see under its strategy, and what may still be spent on them.

    Guarantee   a synthesizer run on these rows with what is left keeps the promise of `task.spend` as a whole.
    Adjacency   `task.spend.neighbours`.
    Theorem     rows mapped one by one, given what was released, have stability one; adaptive composition.
    Proof       proofs/synth/fills.md
    Assumes     what is handed a `Spend` spends it through an `Accountant`; `task.counts` maps rows one by one.
    Keeps back  the rows, how many are complete, and which cells were filled.
    """
    counts, domain, missing, noise = task.counts, task.domain, task.missing, task.noise
    if missing is MissingMethod.COMPLETE:
        return replace(task, counts=counts.complete())
    if missing is MissingMethod.RANDOM:
        return replace(task, counts=counts.filled(even_fills(domain), noise.bits))
    if missing not in PAID:
        return task
    first, left = parts(task.spend, share)
    if missing is MissingMethod.MEAN:
        fills = mean_fills(counts, domain, first, noise)
        task.step("columns for filling")
    else:
        network = model.fit(replace(task, missing=MissingMethod.AVAILABLE, spend=first))
        fills = model_fills(network)
    return replace(task, counts=counts.filled(fills, noise.bits), spend=left)


def after_filling(spend: Spend, missing: MissingMethod, share: Fraction) -> Spend:
    """What a method still has to spend once the strategy has taken its share."""
    return parts(spend, share)[1] if missing in PAID else spend


def parts(spend: Spend, share: Fraction) -> tuple[Spend, Spend]:
    """What is spent first and what after: together never more than `spend`.

    Pure epsilon is cut in two, and so is rho. With a delta the rho behind it is: each part is an epsilon at the same delta
    whose rho is not above its part.
    """
    if not 0 < share < 1:
        raise PlanError("the share for filling lies between 0 and 1", field="share")
    if spend.is_pure or spend.rho:
        return _scaled(spend, share), _scaled(spend, 1 - share)
    rho = rho_within(spend.epsilon, spend.delta)
    first = _spend_of(share * rho, spend)
    return first, _spend_of(rho - rho_within(first.epsilon, first.delta), spend)


def _scaled(spend: Spend, share: Fraction) -> Spend:
    return replace(spend, epsilon=share * spend.epsilon, rho=share * spend.rho)


def _spend_of(rho: Fraction, spend: Spend) -> Spend:
    """The largest epsilon at the same delta that stands for at most `rho`."""
    if rho < _STEP:
        raise PlanError("it is too small to be cut in two; use a larger one.", field="epsilon")
    epsilon = zcdp_to_epsilon(rho=rho, delta=spend.delta)
    while rho_within(epsilon, spend.delta) > rho:  # the epsilon was rounded up
        epsilon -= _STEP
    return replace(spend, epsilon=epsilon)


def even_fills(domain: Domain) -> tuple[Conditional, ...]:
    """Every answer alike. Nothing is read for it."""
    return tuple(_fill(place, axis, np.ones(axis.answers)) for place, axis in enumerate(domain.axes))


def mean_fills(counts: Counts, domain: Domain, spend: Spend, noise: SynthNoise) -> tuple[Conditional, ...]:
    """Numbers get the cell of their noisy mean, categories a draw from their noisy histogram, of available cells."""
    view = plain(domain, MissingMethod.AVAILABLE)
    places = range(len(domain.axes))
    tables = [view.table(t, (p,)) for t, p in zip(counts.count([(p,) for p in places]), places, strict=True)]
    accountant = Accountant(spend=spend, noise=noise)
    noisy = accountant.measure(tables, amount=accountant.total)
    shares = [_shares(each.cells[: axis.answers]) for each, axis in zip(noisy, domain.axes, strict=True)]
    return tuple(
        _fill(place, axis, _at_mean(share, axis, domain) if _is_number(axis, domain) else share)
        for place, (axis, share) in enumerate(zip(domain.axes, shares, strict=True))
    )


def _is_number(axis: Axis, domain: Domain) -> bool:
    return isinstance(domain.schema.coded[axis.column], Number)


def _shares(cells: Floats) -> Floats:
    made = simplex(cells, max(float(cells.sum()), 1.0))
    return np.asarray(made / made.sum())


def _at_mean(shares: Floats, axis: Axis, domain: Domain) -> Floats:
    """All mass on the cell that holds the mean."""
    starts, widths = bins(axis, domain.schema)
    mean = float(shares @ (starts + (widths - 1) / 2))
    cell = int(np.clip(np.searchsorted(starts, np.floor(mean + 0.5), side="right") - 1, 0, axis.answers - 1))
    return np.asarray(np.eye(axis.answers)[cell])


def model_fills(network: Network) -> tuple[Conditional, ...]:
    """A network's own steps, in its order, with no chance of silence or of not having been asked."""
    axes = network.domain.axes
    return tuple(
        _fill(step.place, axes[step.place], step.table[..., : axes[step.place].answers], step.given)
        for step in network.steps
    )


def _fill(place: int, axis: Axis, answers: Floats, given: Sequence[int] = ()) -> Conditional:
    chances = lines(answers)
    spare = np.zeros((*chances.shape[:-1], axis.size - axis.answers))
    return Conditional(place=place, given=tuple(given), table=np.concatenate([chances, spare], axis=-1))


def filling(missing: MissingMethod) -> tuple[tuple[str, str], ...]:
    """What a claim rests on besides, where rows are mapped before they are counted, or counted with missing answers apart."""
    if missing is MissingMethod.WEIGHTED:
        return (("answered cells, weighted by who answers", WEIGHTED_PAGE),)
    mapped = (MissingMethod.COMPLETE, MissingMethod.RANDOM, *PAID)
    return (("rows filled one by one", PAGE),) if missing in mapped else ()


def check_spend(
    missing: MissingMethod, spend: Spend, share: Fraction = SHARE, *, is_weighed: bool = False
) -> None:
    """Refuse an amount that cannot be spent, or not in two parts where the strategy needs two.

    `is_weighed` says that the method can weigh answered cells by who answers.
    """
    if spend.rho and (spend.epsilon or spend.delta):
        raise PlanError("has two units; give epsilon and delta, or rho alone", field="rho")
    if spend.rho < 0 or (not spend.rho and spend.epsilon <= 0) or not 0 <= spend.delta < 1:
        raise PlanError("epsilon or rho is positive, and delta from 0 up below 1", field="epsilon")
    if missing in PAID:
        parts(spend, share)
    elif spend.delta:
        rho_within(spend.epsilon, spend.delta)
    if missing is MissingMethod.WEIGHTED and not is_weighed:
        raise PlanError(
            f"{missing.value!r} weighs tables of pairs, and goes with mst, aim and pairs alone; use "
            f"{MissingMethod.AVAILABLE.value!r} or another",
            field="missing",
        )
