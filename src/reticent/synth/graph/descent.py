"""Mirror descent with momentum: the least squares fit over all joint tables, by steps in the potentials.

A plain step takes the potentials along minus the slope of the loss in the marginals (Beck and Teboulle 2003; McKenna,
Sheldon and Miklau 2019). It multiplies large and small cells alike and never leaves the joint tables. Going on a
little in the direction of the last step (Nesterov 1983) saves most of the steps; where that goes up, we start anew
from the best place and without momentum, and where a plain step goes up, with shorter ones (O'Donoghue, Candes 2015).
"""

from collections.abc import Callable

import numpy as np

from reticent.synth.base import Floats

Marginals = Callable[[Floats], Floats]
LONG, SHORTER, FEWEST = 10.0, 0.5, 1e-9
LOOK_BACK = 10


class Descent:
    """Where we are: the best potentials so far, their marginals and their loss."""

    def __init__(self, marginals: Marginals, aims: Floats, weights: Floats, start: Floats) -> None:
        self._marginals, self._aims, self._weights = marginals, aims, weights
        self.at = start
        self._found = marginals(start)
        self.loss = self._loss(self._found)

    def _loss(self, found: Floats) -> float:
        away = found - self._aims
        return 0.5 * float(away @ (self._weights * away))

    def run(self, *, step: float, iterations: int, enough: float) -> None:
        """Go down by at most so many passes, or until ten of them win less than `enough`."""
        first, moment, last, since = step, 0, self.at, [self.loss]
        for _ in range(iterations):
            taken = self.at - step * self._weights * (self._found - self._aims)
            # Steps taken in a row reach further and further: 0, 1/4, 2/5, 3/6, ... of the last one on top.
            ahead = taken + moment / (moment + 3) * (taken - last)
            if self._accept(ahead):
                last, moment = taken, moment + 1
                since.append(self.loss)
            else:
                step *= 0.9 if moment else SHORTER
                moment, last = 0, self.at
            if step < FEWEST * first or _is_done(since, enough):
                return

    def _accept(self, potentials: Floats) -> bool:
        found = self._marginals(potentials)
        loss = self._loss(found)
        if not loss <= self.loss:
            return False
        self.at, self._found, self.loss = potentials, found, loss
        return True


def _is_done(losses: list[float], enough: float) -> bool:
    return len(losses) > LOOK_BACK and losses[-1 - LOOK_BACK] - losses[-1] < enough


def longest_step(total: float, weights: Floats) -> float:
    """A step that is usually short enough. 1 / (total x all weights) always is, and is timid."""
    return LONG / (total * float(np.sum(weights)))
