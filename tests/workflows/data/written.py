"""Numbers of codes, and what C holds of a sum: arithmetic of its own, by the formats' pages."""

import ml_dtypes
import numpy as np
from numpy.typing import NDArray

from cubecore.tiling.model.problem import Problem

LARGEST = {
    "float16": 65504.0,
    "bfloat16": float(ml_dtypes.finfo("bfloat16").max),
    "float8_e4m3fn": 448.0,
    "hifloat8": 32768.0,
}
"""What a result that is too large becomes."""
_PREFIXES = ((0b1100000, 4), (0b1000000, 3), (0b0100000, 2), (0b0010000, 1), (0b0001000, 0))
"""The least code of each width of hifloat8's exponent."""
_WHOLE = 5
"""Bits of exponent and mantissa together, where the exponent takes two bits or more."""


def hifloat8() -> NDArray[np.float64]:
    """Return the number of each code."""
    made = np.empty(256)
    for code in range(128):
        width = next((width for least, width in _PREFIXES if code >= least), None)
        if width is None:
            made[code] = 2.0 ** (code - 23) if code else 0.0
            continue
        left = {0: 3, 1: 3, 2: 3, 3: 2, 4: 1}[width]
        field, mantissa = code >> left & (1 << width) - 1, code & (1 << left) - 1
        size = (field | 1 << (width - 1)) if width else 0
        negative = width and field >> (width - 1)
        made[code] = 2.0 ** (-size if negative else size) * (1 + mantissa / (1 << left))
    made[0b1101111] = np.inf
    made[128:] = -made[:128]
    made[128] = np.nan
    return made


NUMBERS = {
    "hifloat8": hifloat8(),
    "float4_e1m2": np.array([(code & 7) / 4 * (-1) ** (code >> 3) for code in range(16)]),
}
"""The numbers of types whose arrays hold codes."""


def coded(values: NDArray[np.float32], kind: str) -> NDArray[np.uint8]:
    """Return the codes of the nearest numbers, of two the one away from zero."""
    table = NUMBERS[kind]
    codes = np.flatnonzero(np.isfinite(table) & ~np.signbit(table))
    codes = codes[np.argsort(table[codes])]
    steps = table[codes]
    wide = np.minimum(np.abs(values.astype(np.float64)), steps[-1])
    above = np.minimum(np.searchsorted(steps, wide), steps.size - 1)
    below = np.maximum(above - 1, 0)
    up = steps[above] - wide <= wide - steps[below]
    found = codes[np.where(up, above, below)]
    sign = np.signbit(values) & ~((found == 0) & (kind == "hifloat8"))
    return (found + sign * (table.size // 2)).astype(np.uint8)


def numbers(values: NDArray, kind: str) -> NDArray:
    """Return the numbers of codes; other values as they are."""
    return NUMBERS[kind][values] if kind in NUMBERS else values


def short_float32(values: NDArray[np.float32], bits: int) -> NDArray[np.float32]:
    """Return numbers with a mantissa of some bits, rounded to the nearest, of two the even one."""
    fraction, exponent = np.frexp(values.astype(np.float64))
    return np.ldexp(np.rint(np.ldexp(fraction, bits + 1)), exponent - bits - 1).astype(np.float32)


def written(sums: NDArray, problem: Problem, scales: NDArray | None) -> NDArray:
    """Return the elements that C holds of sums, float32 or whole numbers in int32's range."""
    epilogue, kind = problem.epilogue, problem.c
    made = np.maximum(sums, 0) if epilogue.relu else sums
    with np.errstate(all="ignore"):
        if scales is not None:
            kept = np.asarray(scales, np.float32).view(np.uint32) >> 13 << 13
            made = made.astype(np.float32) * kept.view(np.float32)
        if kind == "int8":
            whole = np.clip(np.rint(np.where(np.isnan(made), 0, made)), -256, 255)
            made = np.clip(whole + epilogue.offset, -128, 127)
        elif kind in LARGEST:
            largest = LARGEST[kind]
            made = np.where(np.isnan(made), np.float32(0), np.clip(made, -largest, largest))
        return coded(made, kind) if kind in NUMBERS else made.astype(problem.c_type.numpy)
