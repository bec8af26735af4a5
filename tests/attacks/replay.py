"""The replay: run a release on neighbours along one transcript of noisy answers, and compare all that is left.

If the calls to the noise are the same, with the same parameters, if the exact answers handed over are no further
apart than declared, and if the result is the same once the noisy answers are, then nothing escapes the noise.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from reticent.noise.source import Noise
from tests.doubles import Call, FrozenNoise
from tests.tables import Row

Release = Callable[[Sequence[Row], Noise], bytes]
"""What a release makes of rows and noise: everything visible."""


@dataclass(frozen=True)
class Run:
    """The calls made, what came back, and what was seen at the end."""

    calls: tuple[Call, ...]
    outputs: tuple[tuple[int, ...], ...]
    seen: bytes


def run(release: Release, rows: Sequence[Row], along: Sequence[tuple[int, ...]] = ()) -> Run:
    """One run, with its noisy answers taken from `along` where given."""
    noise = FrozenNoise(prescribed=along)
    seen = release(rows, noise)
    return Run(tuple(noise.calls), tuple(noise.outputs), seen)


def violations(one: Run, other: Run) -> list[str]:
    """In words, what tells two runs along one transcript apart; nothing if the release is sound."""
    if [call.parameters for call in one.calls] != [call.parameters for call in other.calls]:
        return ["other calls or other parameters"]
    found = [
        f"call {place} moved {a.distance(b)}, declared {a.sensitivity}"
        for place, (a, b) in enumerate(zip(one.calls, other.calls, strict=True))
        if a.distance(b) > a.sensitivity
    ]
    return found + (["something exact is visible"] if one.seen != other.seen else [])


def replay(release: Release, rows: Sequence[Row], neighbours: Sequence[Sequence[Row]]) -> list[str]:
    """The violations over all neighbours, both ways: along the transcript of either."""
    here = run(release, rows)
    found: list[str] = []
    for neighbour in neighbours:
        found += violations(here, run(release, neighbour, here.outputs))
        there = run(release, neighbour)
        found += violations(there, run(release, rows, there.outputs))
    return found
