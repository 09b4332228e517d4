"""Run a C++ example with the compiler of the ziglang package, as where no other compiler is.

Start it with a PATH without compilers, as `make zig` does.
"""

import sys
import time
from pathlib import Path

import numpy as np

import cubecore
from cubecore.frontends.cpp.toolchain.compiler import compiler

EXAMPLE = Path(__file__).parents[2] / "examples" / "cpp" / "vector_add.cpp"
SHARE = 4096


def main() -> int:
    """Compile, run and compare; return 0 if the sums are right."""
    if not compiler().is_zig:
        print(f"PATH must have no compiler, got {compiler().version()}", file=sys.stderr)
        return 2
    x = np.arange(2 * SHARE, dtype=np.float32)
    z, start = np.zeros_like(x), time.monotonic()
    cubecore.load(EXAMPLE).add_queued[2](x, x, z, SHARE)
    right = bool((z == 2 * x).all())
    spent = time.monotonic() - start
    print(f"{EXAMPLE.name}: {compiler().version()}, {spent:.0f} s, {'right' if right else 'WRONG'}")
    return 0 if right else 1


if __name__ == "__main__":
    sys.exit(main())
