"""Compiled loops for a private median: the public steps in stretches of one score, and a choice among them.

The values are whole steps, sorted, from -1 (below the range) to one above its top.
"""

import numpy as np

from reticent.smallcells.kernel import Floats, Whole, compiled
from reticent.smallcells.matching import Words, below


@compiled
def keep(parts: Whole, kept: int, begin: int, end: int, far: int, top: int) -> int:
    """Put down what a stretch has in 0 .. top, if anything; how many there are now."""
    parts[0, kept], parts[1, kept], parts[2, kept] = max(begin, 0), min(end, top), far
    return kept + 1 if parts[0, kept] <= parts[1, kept] else kept


@compiled
def balances(z: Whole, low: int, high: int) -> Whole:
    """Stretches of low .. high with one g(s) = #(z < s) - #(z > s): where they begin, where they end, and g; `z` is sorted."""
    size, count, begin, i = len(z), 0, low, 0
    parts = np.empty((3, 2 * size + 1), np.int64)
    while i <= size:
        end = z[i] - 1 if i < size else high  # up to the next value: i below, the others above
        if begin <= end:
            parts[0, count], parts[1, count], parts[2, count] = begin, end, 2 * i - size
            count += 1
        if i == size:
            break
        j = i
        while j < size and z[j] == z[i]:
            j += 1
        parts[0, count], parts[1, count], parts[2, count] = z[i], z[i], i + j - size
        count, begin, i = count + 1, z[i] + 1, j
    return parts[:, :count]


@compiled
def stretches(z: Whole, top: int, widen: int) -> Whole:
    """The steps 0 .. top in stretches of one score: where each begins and ends, and how far it is from balance.

    g does not fall. At r the distance is max(0, -g(r + widen), g(r - widen)): what lies below balance is moved down by
    `widen`, what lies above it up, and all between is as good as balance.
    """
    old = balances(z, -1 - widen, top + 1 + widen)
    parts = np.empty((3, old.shape[1] + 2), np.int64)
    kept, middle, is_past = 0, 0, False
    for s in range(old.shape[1]):
        begin, end, off = old[0, s], old[1, s], old[2, s]
        if off < 0:
            kept = keep(parts, kept, begin - widen, end - widen, -off, top)
            middle = end - widen + 1
        if off > 0:
            if not is_past:
                kept = keep(parts, kept, middle, begin + widen - 1, 0, top)
                is_past = True
            kept = keep(parts, kept, begin + widen, end + widen, off, top)
    if not is_past:
        kept = keep(parts, kept, middle, top, 0, top)
    return parts[:, :kept]


@compiled
def choose(parts: Whole, decay: Floats, word: np.uint64) -> int:
    """The stretch that a uniform number with these 64 digits falls on, or -1 where they do not decide.

    Stretches count with their length times e^(-rate far); `decay` holds that power, 0 beyond its end.
    """
    count, best, total = parts.shape[1], parts[2, 0], 0.0
    for i in range(count):
        best = min(best, parts[2, i])
    upto = np.empty(count)
    for i in range(count):
        far = parts[2, i] - best
        total += float(parts[1, i] - parts[0, i] + 1) * decay[far] if far < len(decay) else 0.0
        upto[i] = total
    margin = 2.0**-36 + count * 2.0**-50
    low = float(word) * 2.0**-64 * total * (1.0 - margin)
    high = (float(word) + 1.0) * 2.0**-64 * total * (1.0 + margin)
    i = 0
    while i < count - 1 and upto[i] < high:
        i += 1
    if i > 0 and (word == np.uint64(0) or upto[i - 1] * (1.0 + margin) > low):
        return -1
    return i if i == count - 1 or high <= upto[i] * (1.0 - margin) else -1


@compiled
def choose_all(
    steps: Whole, starts: Whole, top: int, widen: int, decay: Floats, words: Words, out: Whole
) -> None:
    """A step for every cell from three words each; -1 where they do not decide. `steps` is sorted in each cell."""
    for g in range(len(out)):
        parts = stretches(steps[starts[g] : starts[g + 1]], top, widen)
        i, out[g] = choose(parts, decay, words[3 * g]), -1
        if i >= 0:
            place, at = below(parts[1, i] - parts[0, i] + 1, words[3 * g + 1 : 3 * g + 3], int(np.int64(0)))
            out[g] = parts[0, i] + place if at >= 0 else -1
