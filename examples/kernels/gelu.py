"""GELU of float16 in its tanh form, computed in float32.

gelu(x) = x / (1 + exp(-2 sqrt(2 / pi) (x + 0.044715 x^3))), which is x times the logistic function:
the same as x / 2 * (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))), with one exponential and no tanh.

Every block (an AIV) takes an equal share in tiles of TILE elements, two buffers taking turns.
Shapes: x and y are [n], n a multiple of 16 times the blocks; the last tile of a share may be
shorter.
"""

import math

import numpy as np
from numpy.typing import NDArray

from cubecore import CoreHandle, Pointer, kernel

TILE = 8192
SLOTS = (0, 1)
CUBIC = 0.044715
STEEPNESS = -2 * math.sqrt(2 / math.pi)
Half = NDArray[np.float16]


@kernel(outputs="y", types={"x": "half", "y": "half"})
def gelu(core: CoreHandle, x: Pointer, y: Pointer, share: int) -> None:
    """Compute a share."""
    given, made = ([core.ubuf("half", TILE) for _ in SLOTS] for _ in range(2))
    wide, power = core.ubuf("float", TILE), core.ubuf("float", TILE)
    begin = core.block_idx * share
    for slot in SLOTS:
        core.asc_sync_notify("PIPE_V", "PIPE_MTE2", slot)
        core.asc_sync_notify("PIPE_MTE3", "PIPE_V", slot)
    for tile, first in enumerate(range(0, share, TILE)):
        slot, at, count = tile % 2, begin + first, min(TILE, share - first)
        core.asc_sync_wait("PIPE_V", "PIPE_MTE2", slot)
        core.asc_copy_gm2ub(given[slot], x + at, 2 * count)
        core.asc_sync_notify("PIPE_MTE2", "PIPE_V", slot)
        core.asc_sync_wait("PIPE_MTE2", "PIPE_V", slot)
        core.asc_sync_pipe("PIPE_V")
        core.asc_half2float(wide, given[slot], count)
        core.asc_sync_notify("PIPE_V", "PIPE_MTE2", slot)
        core.asc_sync_pipe("PIPE_V")
        core.asc_mul(power, wide, wide, count)
        core.asc_sync_pipe("PIPE_V")
        core.asc_mul_scalar(power, power, STEEPNESS * CUBIC, count)
        core.asc_sync_pipe("PIPE_V")
        core.asc_add_scalar(power, power, STEEPNESS, count)
        core.asc_sync_pipe("PIPE_V")
        core.asc_mul(power, power, wide, count)
        core.asc_sync_pipe("PIPE_V")
        core.asc_exp(power, power, count)
        core.asc_sync_pipe("PIPE_V")
        core.asc_add_scalar(power, power, 1.0, count)
        core.asc_sync_pipe("PIPE_V")
        core.asc_div(wide, wide, power, count)
        core.asc_sync_pipe("PIPE_V")
        core.asc_sync_wait("PIPE_MTE3", "PIPE_V", slot)
        core.asc_float2half_rn(made[slot], wide, count)
        core.asc_sync_notify("PIPE_V", "PIPE_MTE3", slot)
        core.asc_sync_wait("PIPE_V", "PIPE_MTE3", slot)
        core.asc_copy_ub2gm(y + at, made[slot], 2 * count)
        core.asc_sync_notify("PIPE_MTE3", "PIPE_V", slot)
    for slot in SLOTS:
        core.asc_sync_wait("PIPE_V", "PIPE_MTE2", slot)
        core.asc_sync_wait("PIPE_MTE3", "PIPE_V", slot)


KERNELS = (gelu,)


def inputs(n: int, seed: int = 1) -> tuple[Half]:
    """Return x, [n], with some values where the function is 0 or x itself."""
    rng = np.random.default_rng(seed)
    x = (3 * rng.standard_normal(n)).astype(np.float16)
    x[:4] = -60000, -12, 12, 60000
    return (x,)


def small() -> tuple[Half]:
    """Return an input that is quick to try: three tiles a block, the last a short one."""
    return inputs(2 * (2 * TILE + 48))


def launch(x: Half, blocks: int = 2) -> Half:
    """Return gelu(x)."""
    y = np.empty_like(x)
    gelu[blocks](x, y, x.size // blocks)
    return y


def reference(x: Half) -> NDArray[np.float64]:
    """Return gelu(x) in float64, by the hyperbolic tangent."""
    wide = x.astype(np.float64)
    return wide / 2 * (1 + np.tanh(-STEEPNESS / 2 * (wide + CUBIC * wide**3)))


def tolerance(x: Half) -> NDArray[np.float64]:
    """Return a bound: half a unit in the last place of float16, or of its smallest number.

    The exponent is a float32 of at most 90 where the result is not 0, so rounding it 5 times
    changes the result by 90 * 5 * 2^-24 of itself: a twentieth of the rounding to float16.
    """
    return np.maximum(np.abs(reference(x)) * 2.0**-11, 2.0**-25) * 1.1


def main() -> None:
    """Compute 2.6 million values on 40 blocks."""
    (x,) = inputs(40 * 8 * TILE)
    error = np.abs(launch(x, 40) - reference(x)) / tolerance(x)
    assert (error <= 1).all(), f"off by up to {error.max():.3g} times the tolerance"
    print(f"gelu of {x.size:,} values: the worst is off by {error.max():.2g} of its tolerance")


if __name__ == "__main__":
    main()
