"""Draw docs/howto/weights.svg: what the number of respondents in a bin does to the noise of a weighted count.

    python docs/howto/draw_weights.py

Computed: standard deviations of the noise at epsilon = 1 and smoothness 8, for a bin of 10,000 people with equal
base weights, by how many respondents it has; and the part of it that the largest weight alone would need.
"""

from fractions import Fraction
from math import sqrt
from pathlib import Path

import numpy as np

from reticent.noise.calibrate import lomax
from reticent.noise.families import Lomax
from reticent.prepare.strata import Strategy
from reticent.sensitivity.poststrata import closed_form

EPSILON, M, PEOPLE = Fraction(1), 8, Fraction(10_000)
RESPONDENTS = (1000, 300, 100, 50, 30, 20, 10, 0)
INK, SOFT, BLUE, ORANGE = "#1a1a1a", "#595959", "#0072B2", "#D55E00"
LEFT, TOP, LINE, WIDE = 150, 70, 30, 470


def spread(respondents: int) -> tuple[float, float]:
    """The noise for the largest weight now, and for the largest weight within a few steps."""
    bin_ = Strategy(name="bin", bins=(0,), totals=(PEOPLE,))
    unit = sqrt(float(Lomax(M).variance())) / float(lomax(epsilon=EPSILON, beta=EPSILON / M))
    smooth = float(closed_form(bin_, np.array([respondents]), beta=EPSILON / M))
    return unit * float(PEOPLE) / max(respondents, 1), unit * smooth


def text(x: float, y: float, words: str, *, size: int = 14, fill: str = INK, anchor: str = "start") -> str:
    return f'<text x="{x:g}" y="{y:g}" font-size="{size}" fill="{fill}" text-anchor="{anchor}">{words}</text>'


def bar(place: int, respondents: int) -> list[str]:
    now, near = spread(respondents)
    scale = WIDE / np.log10(spread(0)[1])
    y = TOP + place * LINE
    long, short = (float(np.log10(max(each, 1.0)) * scale) for each in (near, now))
    return [
        text(LEFT - 12, y + 15, f"{respondents:,}", anchor="end"),
        f'<rect x="{LEFT}" y="{y}" width="{long:.1f}" height="20" fill="{ORANGE}"/>',
        f'<rect x="{LEFT}" y="{y}" width="{short:.1f}" height="20" fill="{BLUE}"/>',
        text(LEFT + long + 8, y + 15, f"{near:,.0f}", fill=SOFT),
    ]


def drawing() -> str:
    bars = [piece for place, n in enumerate(RESPONDENTS) for piece in bar(place, n)]
    high = TOP + len(RESPONDENTS) * LINE + 16
    head = [
        text(20, 28, "Noise of a count at epsilon 1, by respondents in a bin of 10,000 people", size=16),
        text(20, 52, "blue: the largest weight now; orange: what it could become; log scale", fill=SOFT),
    ]
    body = "\n".join([*head, *bars])
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 720 {high}" font-family="sans-serif">\n'
        f'<rect width="720" height="{high}" fill="white"/>\n{body}\n</svg>\n'
    )


if __name__ == "__main__":
    Path(__file__).with_name("weights.svg").write_text(drawing(), encoding="utf-8")
