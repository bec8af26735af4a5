"""Draw docs/theory/noise.svg and print the table of noise.md: five noises at epsilon = 1 and a bound of 1.

    python docs/theory/draw_noise.py

Nothing is simulated: densities and tails are the formulas of `reticent.noise.families` and the normal law.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

import altair as alt
from flint import arb

from reticent.noise import calibrate
from reticent.noise.families import Cauchy, Family, Laplace, Lomax, Student
from reticent.refine.quantiles import half_width

EPSILON, BETA = Fraction(1), Fraction(1, 8)
LEVELS = (Fraction(1, 2), Fraction(95, 100), Fraction(999, 1000))


@dataclass(frozen=True)
class Drawn:
    """One noise: its name, its tail P(|noise| > x) and its standard deviation, for a bound of 1."""

    name: str
    tail: Callable[[float], float]
    sd: float
    half_widths: tuple[float, ...]


def scaled(name: str, family: Family, a: Fraction) -> Drawn:
    size = float(a)
    widths = tuple(float(half_width(family, level=level)) / size for level in LEVELS)
    return Drawn(
        name, lambda x: float(family.tail(arb(x * size))), math.sqrt(float(family.variance())) / size, widths
    )


def gaussian() -> Drawn:
    """The limit of the discrete Gaussian at rho = epsilon^2/2, the zCDP that epsilon-DP implies: sd 1/epsilon."""
    sd = 1 / float(EPSILON)
    widths = tuple(
        float((arb(level.numerator) / level.denominator).erfinv()) * math.sqrt(2) * sd for level in LEVELS
    )
    return Drawn("Gaussian (zCDP, not 1-DP)", lambda x: math.erfc(x / (sd * math.sqrt(2))), sd, widths)


def noises() -> list[Drawn]:
    at = {"epsilon": EPSILON, "beta": BETA}
    return [
        gaussian(),
        scaled("Laplace (global bound)", Laplace(), EPSILON),
        scaled("Lomax, m = 8", Lomax(8), calibrate.lomax(**at)),
        scaled("Student, g = 4", Student(), calibrate.student4(**at)),
        scaled("Cauchy, gamma = 4", Cauchy(), calibrate.cauchy(gamma=Fraction(4), **at)),
    ]


def chart(drawn: list[Drawn]) -> alt.Chart:
    points = [10 ** (k / 60 - 1) for k in range(181)]
    rows = [
        {"noise": d.name, "x": x, "tail": tail} for d in drawn for x in points if (tail := d.tail(x)) > 1e-6
    ]
    names = [d.name for d in drawn]
    # Okabe and Ito's colours, and a dash for each, so that the lines differ without colour too.
    colour = alt.Scale(domain=names, range=["#56B4E9", "#000000", "#D55E00", "#009E73", "#CC79A7"])
    dash = alt.Scale(domain=names, range=[[2, 2], [1, 0], [8, 3], [8, 3, 2, 3], [4, 4]])
    return (
        alt.Chart(alt.Data(values=rows))
        .mark_line(strokeWidth=2)
        .encode(
            x=alt.X("x:Q", title="x, in units of the bound").scale(type="log", domain=[0.1, 100]),
            y=alt.Y("tail:Q", title="chance that the noise exceeds x").scale(type="log", domain=[1e-6, 1]),
            color=alt.Color("noise:N", title=None, sort=names).scale(colour),
            strokeDash=alt.StrokeDash("noise:N", title=None, sort=names).scale(dash),
        )
        .properties(
            width=560,
            height=340,
            title=alt.TitleParams(
                "Five noises at equal epsilon",
                subtitle="epsilon = 1, bound 1, beta = 1/8 for the last three; exact curves: no data, no runs, no error bars",
            ),
        )
        .configure(font="sans-serif")
    )


def table(drawn: list[Drawn]) -> str:
    lines = ["| noise | sd | 50 % | 95 % | 99.9 % |", "|---|---|---|---|---|"]
    lines += [
        f"| {d.name} | {d.sd:.3f} | " + " | ".join(f"{w:.3f}" for w in d.half_widths) + " |" for d in drawn
    ]
    return "\n".join(lines)


if __name__ == "__main__":
    chart(noises()).save(str(Path(__file__).with_name("noise.svg")))
    print(table(noises()))
