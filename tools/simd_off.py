"""Run a command as on a plain processor: no vector units beyond what every machine of this kind has.

    python tools/simd_off.py python -m pytest tests/noise

NumPy, OpenBLAS, Numba and the C library choose their code by the processor, and the last bits of logarithms, exponentials
and sums differ with it. What passes both ways does not rest on those bits.
"""

import os
import platform
import sys

from numpy._core._multiarray_umath import __cpu_dispatch__

OLDEST = {"x86_64": "Prescott", "AMD64": "Prescott", "aarch64": "ARMV8", "arm64": "ARMV8"}
"""The first kernels of OpenBLAS for each kind of machine."""


def plain() -> dict[str, str]:
    """The environment that switches them off."""
    wanted = {
        "NPY_DISABLE_CPU_FEATURES": " ".join(__cpu_dispatch__),
        "NUMBA_CPU_NAME": "generic",
        "NUMBA_CPU_FEATURES": "",
        "GLIBC_TUNABLES": "glibc.cpu.hwcaps=-AVX2,-AVX512F,-FMA,-FMA4",
    }
    core = OLDEST.get(platform.machine())
    return {**wanted, "OPENBLAS_CORETYPE": core} if core else wanted


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    os.execvpe(sys.argv[1], sys.argv[1:], {**os.environ, **plain()})
