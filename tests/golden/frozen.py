"""Noise that repeats: the real samplers on bits that are counted out, and a stand-in where bits cannot be given.

OpenDP draws Laplace and Gaussian noise from a generator of its own. Their place takes noise of a like size, a few quarters
of the scale, in whole numbers. What is made under `frozen` is no release: whoever reads this file can take the noise off.
"""

import os
import secrets
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from fractions import Fraction
from hashlib import shake_256
from typing import Any
from unittest.mock import patch

from reticent.noise import gaussian, laplace

QUARTERS = (0, 1, -1, 2, -2, 3, -4, 6)
"""Noise in quarters of its scale."""

Bytes = Callable[[int], bytes]


def stream(seed: str) -> Bytes:
    """Bytes of SHAKE-256, another block at every call."""
    calls = 0

    def take(size: int) -> bytes:
        nonlocal calls
        calls += 1
        return shake_256(f"{seed}/{calls}".encode()).digest(size)

    return take


@contextmanager
def frozen(seed: str) -> Iterator[None]:
    """Within it every draw repeats: noise, draws of rows, and the key of a partition."""
    take = stream(seed)
    with (
        patch.object(os, "urandom", take),
        patch.object(secrets, "token_hex", lambda size: take(size).hex()),
        patch.object(laplace, "make_laplace", _maker(take)),
        patch.object(gaussian, "make_gaussian", _maker(take)),
    ):
        _forget()
        yield
    _forget()


def _maker(take: Bytes) -> Callable[..., Any]:
    """In place of OpenDP's: makes a function that adds noise to a number, or to each of a list."""

    def make(domain: object, metric: object, *, scale: float) -> Callable[[Any], Any]:
        def add(answer: int) -> int:
            return answer + round(Fraction(scale) * QUARTERS[take(1)[0] % len(QUARTERS)] / 4)

        return lambda given: [add(each) for each in given] if isinstance(given, list) else add(given)

    return make


def _forget() -> None:
    """OpenDP's measurements are kept by their scale; frozen ones must not outlive the test, nor real ones enter it."""
    for module in (laplace, gaussian):
        module._scalar.cache_clear()
        module._vector.cache_clear()
