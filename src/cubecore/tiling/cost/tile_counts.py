"""Tile counts: tiles, steps, chunks and passes of the fullest core's block of C.

The kernel's order is in `tiling.cost.closed_form`.

One tiling or a struct of arrays, whose fields may have any shapes that broadcast.
"""

from functools import cached_property

import numpy as np

from cubecore.aliases import Column
from cubecore.tiling.model.tcubetiling import Tilings
from cubecore.units import ceil_div, floats


class TileCounts:
    """The walk of the fullest core: sizes, tiles, steps, chunks, passes over operands.

    `m`, `n` and `k` are elements; `m_blocks`, `n_blocks` and `k_blocks` count cores along an axis.
    Counts are floats: exact up to 2**53, and matmuls of sizes near 2**31 do not overflow. Tiles
    are walked chunk by chunk along an axis only where a chunk of the operand holds all of K. What
    nobody asks for is not computed.
    """

    def __init__(self, tiling: Tilings) -> None:
        self._t = tiling
        self.m = floats(np.minimum(tiling.singleCoreM, tiling.M))
        self.n = floats(np.minimum(tiling.singleCoreN, tiling.N))
        self.k = floats(tiling.singleCoreK)
        self.m_tiles: Column = ceil_div(self.m, tiling.baseM)
        self.n_tiles: Column = ceil_div(self.n, tiling.baseN)
        self.k_steps: Column = ceil_div(self.k, tiling.baseK)

    @cached_property
    def tiles(self) -> Column:
        """Tiles of C."""
        return self.m_tiles * self.n_tiles

    @cached_property
    def steps(self) -> Column:
        """Mmads: base-K steps over all tiles."""
        return self.tiles * self.k_steps

    @cached_property
    def ka_chunks(self) -> Column:
        """Chunks of A along K."""
        return ceil_div(self.k_steps, self._t.stepKa)

    @cached_property
    def kb_chunks(self) -> Column:
        """Chunks of B along K."""
        return ceil_div(self.k_steps, self._t.stepKb)

    @cached_property
    def m_chunks(self) -> Column:
        """Chunks of A along M."""
        in_steps = ceil_div(self.m_tiles, self._t.stepM)
        return np.where(self.ka_chunks == 1, in_steps, self.m_tiles)

    @cached_property
    def n_chunks(self) -> Column:
        """Chunks of B along N."""
        in_steps = ceil_div(self.n_tiles, self._t.stepN)
        return np.where(self.kb_chunks == 1, in_steps, self.n_tiles)

    @property
    def _n_first(self) -> Column:
        return np.equal(self._t.iterateOrder, 1)

    @cached_property
    def a_passes(self) -> Column:
        """Return the number of times A is loaded."""
        once = np.where(self._n_first | (self.m_chunks == 1), 1, self.n_chunks)
        return np.where(self.ka_chunks == 1, once, self.n_tiles)

    @cached_property
    def b_passes(self) -> Column:
        """Return the number of times B is loaded."""
        once = np.where(np.logical_not(self._n_first) | (self.n_chunks == 1), 1, self.m_chunks)
        return np.where(self.kb_chunks == 1, once, self.m_tiles)

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
