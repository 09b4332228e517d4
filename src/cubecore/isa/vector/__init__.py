"""The Vector unit's instructions; importing this package declares them."""

from cubecore.isa.vector import binary, convert, dequantise, fill, fused, mask, reduce, unary

__all__ = ["binary", "convert", "dequantise", "fill", "fused", "mask", "reduce", "unary"]
