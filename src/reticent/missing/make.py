"""Masks by name, for trials."""

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import numpy as np

from reticent.errors import PlanError
from reticent.missing.chances import Flags
from reticent.missing.make_driven import Codes, DrivenMask, Rng, asked_of, mar, mcar, mnar
from reticent.missing.make_own import quantile, self_masking
from reticent.missing.make_together import clustered

HALVINGS = 16


class Maker(Protocol):
    """Codes, a rate and a generator in; a mask out."""

    def __call__(
        self,
        values: Codes,
        rate: float,
        rng: Rng,
        *,
        nominal: Sequence[int] = (),
        asked: Flags | None = None,
    ) -> DrivenMask: ...


def _mcar(
    values: Codes, rate: float, rng: Rng, *, nominal: Sequence[int] = (), asked: Flags | None = None
) -> DrivenMask:
    rows, columns = values.shape
    return DrivenMask(mask=mcar((rows, columns), rate, rng).mask & asked_of(values, asked))


def _clustered(
    values: Codes,
    rate: float,
    rng: Rng,
    *,
    nominal: Sequence[int] = (),
    asked: Flags | None = None,
    correlation: float = 0.6,
) -> DrivenMask:
    rows, columns = values.shape
    return clustered(rows, [rate] * columns, rng, correlation=correlation, asked=asked)


MAKERS: Mapping[str, Maker] = {
    "mcar": _mcar,
    "mar": mar,
    "mnar": mnar,
    "self-masking": self_masking,
    "quantile": quantile,
    "clustered": _clustered,
}
"""`like` is not among them: a real mask has its own rates."""


def make(name: str, values: Codes, rate: float, rng: Rng, **options: Any) -> DrivenMask:
    """The mask of this name."""
    if name not in MAKERS:
        raise PlanError(f"no mask is called {name[:40]!r}; there are {', '.join(MAKERS)}.", field="mask")
    return MAKERS[name](values, rate, rng, **options)


def rate_leaving(name: str, values: Codes, share: float, *, seed: int, **options: Any) -> float:
    """The rate at which this mask, drawn from `seed`, leaves `share` of the rows complete, to about 1e-5.

    One seed draws the same lots at every rate, so the complete rows fall as the rate rises.
    """
    low, high = 0.0, 1.0
    for _ in range(HALVINGS):
        rate = (low + high) / 2
        made = make(name, values, rate, np.random.default_rng(seed), **options)
        too_few = float(np.mean(~made.mask.any(axis=1))) < share
        low, high = (low, rate) if too_few else (rate, high)
    return (low + high) / 2
