"""Draw docs/howto/donors.svg: what one respondent can move without and with donors, and what that costs.

    python docs/howto/draw_donors.py

The left half is a sketch. The bars on the right are computed: standard deviations of the noise of a count at
epsilon = 1, for a public bound of 1 and for the busiest donor serving as many recipients as the label says.
"""

from fractions import Fraction
from math import sqrt
from pathlib import Path

from reticent.answer.parts import plan_part
from reticent.noise.calibrate import lomax
from reticent.noise.families import Lomax
from reticent.sensitivity.bounds import Global, smooth_bound, straight

EPSILON, M = Fraction(1), 8
INK, SOFT, BLUE, ORANGE, PALE = "#1a1a1a", "#595959", "#0072B2", "#D55E00", "#F6D9C6"
DONORS, RECIPIENTS = ("A", "B", "C"), ("x", "y", "z")


def noise(hub: int) -> float:
    """Standard deviation of the noise of a count when the busiest donor serves `hub` recipients."""
    beta = EPSILON / M
    bound = smooth_bound(straight(base=Fraction(1 + hub), slope=Fraction(1)), beta).bound
    return float(bound / lomax(epsilon=EPSILON, beta=beta)) * sqrt(float(Lomax(M).variance()))


def bars() -> list[tuple[str, float]]:
    public = plan_part("count", bound=Global(bound=Fraction(1)), grid=Fraction(1), epsilon=EPSILON).sd
    assumed = [(f"donors; the busiest serves {hub}", noise(hub)) for hub in (5, 20)]
    return [("no repair", public), ("donors; nobody is missing", noise(0)), *assumed]


def text(x: float, y: float, words: str, *, size: int = 14, fill: str = INK, anchor: str = "start") -> str:
    return f'<text x="{x:g}" y="{y:g}" font-size="{size}" fill="{fill}" text-anchor="{anchor}">{words}</text>'


def person(x: float, y: float, name: str, *, moved: bool, silent: bool) -> str:
    """A circle for who answered, a dashed square for who did not; shaded where the answer changes."""
    look = f'fill="{PALE if moved else "white"}" stroke="{ORANGE if moved else INK}" stroke-width="2"'
    shape = (
        f'<rect x="{x - 15:g}" y="{y - 15:g}" width="30" height="30" stroke-dasharray="4 3" {look}/>'
        if silent
        else f'<circle cx="{x:g}" cy="{y:g}" r="16" {look}/>'
    )
    return shape + text(x, y + 5, name, anchor="middle")


def arrow(x1: float, y1: float, x2: float, y2: float, colour: str) -> str:
    return (
        f'<line x1="{x1:g}" y1="{y1:g}" x2="{x2:g}" y2="{y2:g}" stroke="{colour}" stroke-width="2" '
        f'marker-end="url(#tip-{colour[1:]})"/>'
    )


def sketch(x: float, title: str, said: str, *, filled: bool) -> list[str]:
    """Three donors above, three recipients below; A's answer serves all three when gaps are filled."""
    made = [text(x, 66, title, size=15)]
    tops = {name: x + 24 + 62 * place for place, name in enumerate(DONORS)}
    ends = {name: x + 24 + 62 * place for place, name in enumerate(RECIPIENTS)}
    if filled:
        made += [arrow(tops["A"], 116, ends[name], 172, ORANGE) for name in RECIPIENTS]
    made += [person(at, 100, name, moved=name == "A", silent=False) for name, at in tops.items()]
    made += [person(at, 190, name, moved=filled, silent=True) for name, at in ends.items()]
    return [*made, text(x, 240, said, fill=ORANGE)]


def chart(x: float) -> list[str]:
    rows, widest = bars(), 150
    most = max(sd for _, sd in rows)
    made = [text(x, 66, "Noise of a count at ε = 1 (standard deviation)", size=15)]
    for place, (label, sd) in enumerate(rows):
        y, width = 100 + 40 * place, widest * sd / most
        made.append(text(x, y - 7, label, size=13, fill=SOFT))
        made.append(f'<rect x="{x:g}" y="{y - 2:g}" width="{width:.1f}" height="12" fill="{BLUE}"/>')
        made.append(text(x + width + 8, y + 9, f"{sd:.1f}", size=13))
    return made


def figure() -> str:
    tip = (
        f'<marker id="tip-{ORANGE[1:]}" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" '
        f'orient="auto"><path d="M0 0 L8 4 L0 8 z" fill="{ORANGE}"/></marker>'
    )
    parts = [
        text(16, 30, "One donor's answer stands in several rows", size=18),
        *sketch(16, "No repair", "A leaves: one row goes", filled=False),
        *sketch(236, "Gaps filled by donors", "A leaves: one row goes, three change", filled=True),
        *chart(500),
    ]
    return (
        '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 820 262" font-family="Helvetica, Arial, sans-serif" '
        'role="img" aria-label="Without repair a respondent who leaves takes one row along. With donors the rows '
        'filled from that respondent change too, so more noise is needed.">'
        f'<defs>{tip}</defs><rect width="820" height="262" fill="white"/>{"".join(parts)}</svg>\n'
    )


if __name__ == "__main__":
    Path(__file__).with_name("donors.svg").write_text(figure(), encoding="utf-8")
    for label, sd in bars():
        print(f"{label}: {sd:.2f}")
