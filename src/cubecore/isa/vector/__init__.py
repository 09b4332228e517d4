"""The Vector unit's instructions; importing this package declares them."""

from cubecore.isa.vector import (
    binary,
    compare,
    convert,
    dequantise,
    fill,
    forms,
    fused,
    gather,
    gather_mask,
    mask,
    moves,
    reduce,
    select,
    sort,
    transpose,
    unary,
)

__all__ = [
    "binary",
    "compare",
    "convert",
    "dequantise",
    "fill",
    "forms",
    "fused",
    "gather",
    "gather_mask",
    "mask",
    "moves",
    "reduce",
    "select",
    "sort",
    "transpose",
    "unary",
]
