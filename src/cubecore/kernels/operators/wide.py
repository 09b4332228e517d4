"""Tiles to float32 and back: how an operator computes in float32 whatever its elements are."""

from cubecore.dtypes import ElementType
from cubecore.isa.program.expr import Expr
from cubecore.kernels.operators.tile import Tile

_TO_FLOAT = {
    "float16": "vconv_f162f32",
    "bfloat16": "vconv_bf162f32",
    "int32": "vconv_s322f32",
}
FROM_FLOAT = {"float16": "vconv_f322f16", "bfloat16": "vconv_f322bf16"}
"""The conversions from float32 to each type."""


def widened(tile: Tile, wide: int, source: Expr, dtype: ElementType) -> None:
    """Bring a tile of `dtype` to float32."""
    if dtype.name == "float32":
        _copied(tile, Expr(wide), source, dtype)
    else:
        tile.convert(
            _TO_FLOAT[dtype.name], Expr(wide), source, into_bytes=4, source_bytes=dtype.size_bytes
        )


def narrowed(tile: Tile, into: Expr, wide: int, dtype: ElementType) -> None:
    """Bring a tile of float32 to `dtype`."""
    if dtype.name == "float32":
        _copied(tile, into, Expr(wide), dtype)
    else:
        tile.convert(
            FROM_FLOAT[dtype.name], into, Expr(wide), into_bytes=dtype.size_bytes, source_bytes=4
        )


def quantised(tile: Tile, into: Expr, wide: int, scratch: int) -> None:
    """Bring a tile of float32 to int8, in the range of which it is, by way of `scratch` of half."""
    # Float to int8 by way of int32 (which rounds to an integer) and half, as there is no direct
    # conversion; half holds all integers of 8 bits.
    source, half = Expr(wide), Expr(scratch)
    tile.convert("vconv_f322s32", source, source, into_bytes=4, source_bytes=4)
    tile.convert("vconv_s322f32", source, source, into_bytes=4, source_bytes=4)
    tile.convert("vconv_f322f16", half, source, into_bytes=2, source_bytes=4)
    tile.convert("vconv_f162s8", into, half, into_bytes=1, source_bytes=2)


def _copied(tile: Tile, into: Expr, source: Expr, dtype: ElementType) -> None:
    for one in tile.stretches():
        fields = {"dst_repeat_stride": one.apart, "src_repeat_stride": one.apart}
        fields |= {"value": 0, "repeat": one.repeats}
        tile.issue("vadds", one.lanes, [into + one.at, source + one.at], {"dtype": dtype, **fields})
    tile.barrier()
