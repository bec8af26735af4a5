"""Vector units can be switched off, and what tests say of bits does not change with them."""

import subprocess
import sys
from pathlib import Path

import numpy as np

from tests.noise import test_attacks as attacks

ROOT = Path(__file__).resolve().parents[1]

CHILD = """
from numpy._core._multiarray_umath import __cpu_dispatch__, __cpu_features__
from tests.noise.test_attacks import HOLES
print([each for each in __cpu_dispatch__ if __cpu_features__[each]])
print([int(hole(naive(0.0, 1.0, 4000)).sum()) for naive, hole in HOLES.items()])
"""


def test_the_holes_of_naive_noise_lie_where_they_lie_without_vector_units() -> None:  # covers T01
    """A child as on a plain processor: nothing is switched on, and no output of the naive samplers at 0 is called a hole."""
    command = [sys.executable, "tools/simd_off.py", sys.executable, "-c", CHILD]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout.splitlines()) == (0, ["[]", "[0, 0]"])


def test_a_last_bit_is_enough_to_call_everything_a_hole() -> None:
    """Naive twin: the same question asked with a logarithm that is off by one bit, as another processor's may be."""
    y = attacks.inverse_cdf(0.0, 1.0, 4000)
    assert not attacks.HOLES[attacks.inverse_cdf](y).any()
    off = np.nextafter(y, np.inf)
    assert attacks.HOLES[attacks.inverse_cdf](off).mean() > 0.3
