"""The minimum of a tilted log loss, by Newton's steps in doubles."""

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Whole = NDArray[np.int64]

ROUNDS = 60


def minimum(x: Floats, label: Whole, count: Whole, *, ridge: float, tilt: Floats) -> Floats:
    """The B, a line for each class, that minimises log loss + ridge |B|^2/2 + tilt'B.

    With one line there are two classes, and the line is the score of the second. The objective is strongly convex, so
    halved Newton steps go down until nothing is left to gain.
    """
    b = np.zeros_like(tilt)
    value = _value(b, x, label, count, ridge, tilt)
    for _ in range(ROUNDS):
        slope, curve = _slope_and_curve(b, x, label, count, ridge, tilt)
        step = np.linalg.solve(curve, slope.ravel()).reshape(b.shape)
        gain = float((slope * step).sum())
        size = 1.0
        while size > 1e-10:
            tried = b - size * step
            reached = _value(tried, x, label, count, ridge, tilt)
            if reached <= value - 0.25 * size * gain:
                break
            size /= 2
        else:
            break
        b, value = tried, reached
        if gain < 1e-18 * ridge:
            break
    return b


def _scores(b: Floats, x: Floats) -> Floats:
    scores = x @ b.T
    return np.column_stack([np.zeros(len(x)), scores]) if len(b) == 1 else scores


def _value(b: Floats, x: Floats, label: Whole, count: Whole, ridge: float, tilt: Floats) -> float:
    scores = _scores(b, x)
    top = scores.max(axis=1)
    total = top + np.log(np.exp(scores - top[:, None]).sum(axis=1))
    loss = total - scores[np.arange(len(x)), label]
    return float(count @ loss + ridge * (b * b).sum() / 2 + (tilt * b).sum())


def _slope_and_curve(
    b: Floats, x: Floats, label: Whole, count: Whole, ridge: float, tilt: Floats
) -> tuple[Floats, Floats]:
    scores = _scores(b, x)
    chance = np.exp(scores - scores.max(axis=1, keepdims=True))
    chance /= chance.sum(axis=1, keepdims=True)
    excess = chance.copy()
    excess[np.arange(len(x)), label] -= 1.0
    first = 1 if len(b) == 1 else 0
    chance, excess = chance[:, first:], excess[:, first:]
    slope = (excess * count[:, None]).T @ x + ridge * b + tilt
    k, p = b.shape
    curve = ridge * np.eye(k * p)
    for i in range(k):
        for j in range(k):
            weight = count * chance[:, i] * ((i == j) - chance[:, j])
            curve[i * p : (i + 1) * p, j * p : (j + 1) * p] += (x * weight[:, None]).T @ x
    return slope, curve
