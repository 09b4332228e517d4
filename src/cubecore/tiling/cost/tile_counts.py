"""The walk of the matmul kernel in numbers: tiles, steps, chunks and passes of a block of C.

`OperandWalk` is the one statement of how a core goes over an operand: the kernel's streams
(`kernels.matmul.chunk_stream`) issue their loads by it, and `TileCounts` prices them by it. The
kernel's order is in `tiling.cost.closed_form`.

One tiling or a struct of arrays, whose fields may have any shapes that broadcast.
"""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal, get_args

import numpy as np

from cubecore.aliases import Column
from cubecore.tiling.model.tcubetiling import Tilings
from cubecore.units import ceil_div, floats

Level = Literal["core", "outer", "inner", "step"]
LEVELS: tuple[Level, ...] = get_args(Level)
"""The levels for which a chunk stays in L1: the core, a chunk of an outer or inner axis, of K."""


def _where(condition: Column | bool, one: Column, other: Column) -> Column:
    """Return one or the other, number by number where there are several."""
    if condition is True or condition is False:
        return one if condition else other
    return np.where(condition, one, other)


@dataclass(frozen=True)
class OperandWalk:
    """A core's way over A or B: `extent` elements along its own axis in tiles of `base`.

    A chunk has `step` tiles and `step_k` of `k_steps` base-K steps. `outer` says that the operand's
    axis is the outer one of the tiling's order. Tiles are walked chunk by chunk along an axis only
    where a chunk of the operand holds all of K.
    """

    extent: Column
    base: Column
    step: Column
    k_steps: Column
    step_k: Column
    outer: Column | bool

    @cached_property
    def tiles(self) -> Column:
        """Tiles along the operand's own axis."""
        return ceil_div(self.extent, self.base)

    @cached_property
    def k_chunks(self) -> Column:
        """Chunks along K."""
        return ceil_div(self.k_steps, self.step_k)

    @cached_property
    def chunks(self) -> Column:
        """Chunks along the own axis; tiles where K is cut."""
        return _where(self.k_chunks == 1, ceil_div(self.tiles, self.step), self.tiles)

    def passes(self, other: "OperandWalk") -> Column:
        """Return how often all of it is loaded beside the `other` operand.

        A chunk with all of K is loaded for each of the other's chunks, but once where it lies
        outside or is the only one; parts of K are loaded for each of the other's tiles.
        """
        # This is the answer to where L1's reuse comes from, and all of it: a chunk with all of K is
        # reused while the other axis runs inside of it, parts of K only within one tile.
        once = _where(self.outer | (self.chunks == 1), 1, other.chunks)
        return _where(self.k_chunks == 1, once, other.tiles)

    @property
    def level(self) -> Level:
        """The level for which a chunk stays, of one tiling."""
        if self.k_chunks > 1:
            return "step"
        if self.chunks == 1:
            return "core"
        return "outer" if self.outer else "inner"

    def by_block(self) -> "OperandWalk":
        """Return the walk in chunks of one base block, as NORM and IBSHARE load."""
        return replace(self, step=1, step_k=1)


class TileCounts:
    """The walk of the fullest core: sizes, tiles, steps, chunks, passes over operands.

    `m`, `n` and `k` are elements; `m_blocks`, `n_blocks` and `k_blocks` count cores along an axis.
    Counts are floats: exact up to 2**53, and matmuls of sizes near 2**31 do not overflow. What
    nobody asks for is not computed.
    """

    def __init__(self, tiling: Tilings) -> None:
        t = self._t = tiling
        self.m = floats(np.minimum(t.singleCoreM, t.M))
        self.n = floats(np.minimum(t.singleCoreN, t.N))
        self.k = floats(t.singleCoreK)
        self.k_steps: Column = ceil_div(self.k, t.baseK)
        m_first = np.equal(t.iterateOrder, 1)
        self.a = OperandWalk(self.m, t.baseM, t.stepM, self.k_steps, t.stepKa, m_first)
        n_first = np.logical_not(m_first)
        self.b = OperandWalk(self.n, t.baseN, t.stepN, self.k_steps, t.stepKb, n_first)
        self.m_tiles, self.n_tiles = self.a.tiles, self.b.tiles

    @cached_property
    def tiles(self) -> Column:
        """Tiles of C."""
        return self.m_tiles * self.n_tiles

    @cached_property
    def steps(self) -> Column:
        """Mmads: base-K steps over all tiles."""
        return self.tiles * self.k_steps

    @cached_property
    def m_blocks(self) -> Column:
        """Cores along M."""
        return ceil_div(self._t.M, self._t.singleCoreM)

    @cached_property
    def n_blocks(self) -> Column:
        """Cores along N."""
        return ceil_div(self._t.N, self._t.singleCoreN)

    @cached_property
    def k_blocks(self) -> Column:
        """Cores along K."""
        return ceil_div(np.minimum(self._t.Ka, self._t.Kb), self._t.singleCoreK)


def tile_counts(t: Tilings) -> TileCounts:
    """Return the walk of the fullest core of `t`, one tiling or many; all fields positive."""
    return TileCounts(t)
