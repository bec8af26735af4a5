"""Draws per second of every exact sampler, beside OpenDP's integer Laplace and Gaussian and NumPy's floating-point Laplace.

Run as `python -m bench.noise`. Processor time, best of three, system bits. What limits the exact vectorised draws is the
kernel's generator and the passes over words of 64 bits: Lomax reads m words a draw, Laplace about eight.
"""

import time
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np

from reticent.noise import cauchy, laplace
from reticent.noise import cauchy as student
from reticent.noise.bits import SystemBits, line
from reticent.noise.gaussian import _vector as opendp_gaussian
from reticent.noise.gaussian import discrete_table, draw_wide, rounded_table
from reticent.noise.laplace import add_laplace, add_laplace_many
from reticent.noise.selection import exponential, permute_and_flip
from reticent.noise.vector import draw_gaussian, draw_laplace, draw_lomax
from reticent.sensitivity.bounds import Global

BITS = SystemBits()
ONE = Global(bound=Fraction(1))
WHERE = line(Fraction(1, 3), scale=Fraction(30), grid=Fraction(1, 1000))
RNG = np.random.default_rng(0)


def _loop(draw: Callable[[], Any]) -> Callable[[int], Any]:
    return lambda n: [draw() for _ in range(n)]


def _cauchy(gamma: Fraction) -> Callable[[int], Any]:
    return _loop(lambda: cauchy.draw_steps(WHERE, gamma=gamma, bits=BITS))


THIRD = Fraction(3, 10)  # scale 10/3
SAMPLERS: list[tuple[str, int, Callable[[int], Any]]] = [
    ("numpy laplace (not private)", 10**6, lambda n: RNG.laplace(0, 10 / 3, n)),
    ("opendp laplace, one call", 10**5, lambda n: add_laplace_many([0] * n, sensitivity=ONE, epsilon=THIRD)),
    ("opendp laplace, call by call", 10**4, _loop(lambda: add_laplace(0, sensitivity=ONE, epsilon=THIRD))),
    ("opendp gaussian, sigma 4096", 10**4, lambda n: opendp_gaussian(4096.0)([0] * n)),
    ("opendp gaussian, sigma 1e6", 10**4, lambda n: opendp_gaussian(1e6)([0] * n)),
    ("exact gaussian, sigma 4096", 10**6, lambda n: discrete_table(4096.0).draw(n, BITS)),
    ("exact gaussian, sigma 1e6", 10**6, lambda n: draw_wide(n, sigma=1e6, bits=BITS)),
    ("the same by rejection", 10**5, lambda n: draw_gaussian(n, sigma=1e6, bits=BITS)),
    ("rounded normal, sigma 4096", 10**6, lambda n: rounded_table(4096.0).draw(n, BITS)),
    ("exact laplace, scale 10/3", 10**5, lambda n: draw_laplace(n, scale=Fraction(10, 3), bits=BITS)),
    ("exact laplace, scale 1e6", 10**5, lambda n: draw_laplace(n, scale=Fraction(10**6), bits=BITS)),
    (
        "exact lomax m=8, scale 30/0.001",
        10**5,
        lambda n: draw_lomax(n, m=8, scale=Fraction(30000), bits=BITS),
    ),
    ("exact lomax m=8, call by call", 10**4, _loop(lambda: laplace.draw_steps(WHERE, m=8, bits=BITS))),
    ("exact student, call by call", 10**4, _loop(lambda: student.draw_student_steps(WHERE, bits=BITS))),
    ("exact cauchy 4, call by call", 10**4, _cauchy(Fraction(4))),
    ("exact cauchy 5/2, call by call", 10**4, _cauchy(Fraction(5, 2))),
]

HARD = [0] * 99_999 + [10**300]
SELECTIONS: list[tuple[str, Callable[..., int]]] = [
    ("permute-and-flip of 100,000", permute_and_flip),
    ("exponential of 100,000", exponential),
]


def seconds(work: Callable[[], Any]) -> float:
    """Processor time of the best of three."""
    best = float("inf")
    for _ in range(3):
        start = time.process_time()
        work()
        best = min(best, time.process_time() - start)
    return best


PEERS = {
    "exact gaussian, sigma 4096": "opendp gaussian, sigma 4096",
    "rounded normal, sigma 4096": "opendp gaussian, sigma 4096",
    "exact gaussian, sigma 1e6": "opendp gaussian, sigma 1e6",
    "the same by rejection": "opendp gaussian, sigma 1e6",
    "exact laplace, scale 10/3": "opendp laplace, one call",
}
"""Which of OpenDP's samplers draws the same noise."""


def run() -> list[dict[str, Any]]:
    """One row per sampler: its name, how many draws were made, draws per second, and how many times OpenDP's that is."""
    rows: list[dict[str, Any]] = [
        {"name": name, "draws": n, "per_second": round(n / seconds(lambda d=draw, n=n: d(n)))}
        for name, n, draw in SAMPLERS
    ]
    speed = {row["name"]: row["per_second"] for row in rows}
    for row in rows:
        if row["name"] in PEERS:
            row["times_opendp"] = round(row["per_second"] / speed[PEERS[row["name"]]], 1)
    for name, mechanism in SELECTIONS:
        took = seconds(lambda m=mechanism: m(HARD, sensitivity=1, epsilon=Fraction(1), bits=BITS))
        rows.append({"name": name, "draws": 1, "per_second": round(1 / took, 1)})
    return rows


def main() -> None:
    """Print the table."""
    print(f"{'sampler':<36}{'draws':>10}{'draws per second':>20}{'times OpenDP':>14}")
    for row in run():
        ratio = row.get("times_opendp", "")
        print(f"{row['name']:<36}{row['draws']:>10,}{row['per_second']:>20,}{ratio:>14}")


if __name__ == "__main__":
    main()
