"""The scales of a block of an MX matmul, and its values times them."""

from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Literal

import numpy as np
from numpy.lib.stride_tricks import as_strided

from cubecore.arrays import Array
from cubecore.isa.cube.mad_mx import SHARED
from cubecore.machine.memory.buffers import GlobalTensor

WORD_BYTES = 2
"""A pair of scales: they are stored, and travel, in pairs."""
PAIR = WORD_BYTES * SHARED
"""Values of K that a pair of scales belongs to."""
_ONE, _NAN, _FAR = 127, 255, 32
"""Codes of 1 and of NaN; from 2**-32 to 2**32 scales leave room in float32 for any product."""


@dataclass(frozen=True, slots=True)
class Scales:
    """Pairs of scales of r rows of an operand, for each core of a group.

    `offset` counts words from the tensor's start for the first core; core i's lie `distances[i]`
    bytes further, the next row's `to_r` words, the next pair's along K `to_k`. Of an axis with one
    entry the distance is 0.
    """

    tensor: GlobalTensor
    offset: int
    distances: tuple[int, ...]
    r: int
    pairs: int
    to_r: int
    to_k: int

    def joined(self, other: "Scales", axis: Literal["r", "k"]) -> "Scales | None":
        """Return both as one, if `other` are those that follow along the axis; else None."""
        if self.tensor is not other.tensor or self.distances != other.distances:
            return None
        # Two rectangles of pairs become one if they have the same extent and step across, and if
        # the gap between their starts is what the next row or column of the first would be at.
        rows, columns = (
            ((s.r, s.to_r) for s in (self, other)),
            ((s.pairs, s.to_k) for s in (self, other)),
        )
        (along, next_along), (across, next_across) = (
            (rows, columns) if axis == "r" else (columns, rows)
        )
        (count, step), (more, next_step) = along, next_along
        gap = other.offset - self.offset
        if count == 1:
            step = gap
        if across != next_across or step <= 0 or gap != count * step:
            return None
        if more > 1 and next_step != step:
            return None
        if axis == "r":
            return replace(self, r=count + more, to_r=step)
        return replace(self, pairs=count + more, to_k=step)

    def part(self, first: int, count: int) -> "Scales":
        """Return those of `count` rows from `first` on."""
        to_r = self.to_r if count > 1 else 0
        return replace(self, offset=self.offset + first * self.to_r, r=count, to_r=to_r)

    def values(self, core: int) -> Array:
        """Return one core's scales, [r, scales of a row]; float64 where float32 is too narrow."""
        # A view of [rows, pairs, 2 B] straight on the tensor's bytes, then one look-up per code. A
        # scale is a power of 2 of 8 bits; products with those near 1 stay exact in float32.
        start = self.offset * WORD_BYTES + self.distances[core]
        strides = (self.to_r * WORD_BYTES, self.to_k * WORD_BYTES, 1)
        shape = (self.r, self.pairs, WORD_BYTES)
        data = self.tensor.buffer.data[start:]
        codes = as_strided(data, shape, strides, writeable=False).reshape(self.r, -1)
        near = (codes >= _ONE - _FAR) & (codes <= _ONE + _FAR) | (codes == _NAN)
        return _powers(narrow=bool(near.all()))[codes]

    def scaled(self, values: Array, core: int) -> Array:
        """Return [r, K]: `values` times their scales, zeros times scales behind them."""
        scales = self.values(core)
        padded = np.zeros((self.r, self.pairs * PAIR), scales.dtype)
        padded[:, : values.shape[1]] = values
        by_scale = padded.reshape(*scales.shape, SHARED)
        by_scale *= scales[:, :, None]
        return padded


@lru_cache(maxsize=2)
def _powers(*, narrow: bool) -> Array:
    """Return what each code of a scale means."""
    powers = np.ldexp(1.0, np.arange(_NAN + 1) - _ONE)
    powers[_NAN] = np.nan
    return powers.astype(np.float32) if narrow else powers
