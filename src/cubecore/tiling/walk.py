"""How the fullest core walks its block of C; the kernel's order is in `cubecore.tiling.cost`.

One tiling or a struct of arrays, whose fields may have any shapes that broadcast.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from cubecore.units import ceil_div


@dataclass(frozen=True)
class Walk:
    """How the fullest core walks its block: extents, tiles, steps, chunks, passes over operands.

    `m`, `n` and `k` are elements; `m_blocks`, `n_blocks` and `k_blocks` count cores along an axis.
    """

    m: Any
    n: Any
    k: Any
    m_tiles: Any
    n_tiles: Any
    k_steps: Any
    m_chunks: Any
    n_chunks: Any
    ka_chunks: Any
    kb_chunks: Any
    a_passes: Any
    b_passes: Any
    m_blocks: Any
    n_blocks: Any
    k_blocks: Any

    @property
    def tiles(self) -> Any:
        """Tiles of C."""
        return self.m_tiles * self.n_tiles

    @property
    def steps(self) -> Any:
        """Mmads: base-K steps over all tiles."""
        return self.tiles * self.k_steps


def walk(t: Any) -> Walk:
    """Return the walk of the fullest core of `t`, one tiling or many; all fields positive.

    Counts are floats: exact up to 2**53, and products of extents near 2**31 do not overflow. Tiles
    are walked chunk by chunk along an axis only where a chunk of the operand holds all of K.
    """
    m = np.asarray(np.minimum(t.singleCoreM, t.M), dtype=float)
    n = np.asarray(np.minimum(t.singleCoreN, t.N), dtype=float)
    k = np.asarray(t.singleCoreK, dtype=float)
    m_tiles, n_tiles, k_steps = ceil_div(m, t.baseM), ceil_div(n, t.baseN), ceil_div(k, t.baseK)
    ka_chunks, kb_chunks = ceil_div(k_steps, t.stepKa), ceil_div(k_steps, t.stepKb)
    m_chunks = np.where(ka_chunks == 1, ceil_div(m_tiles, t.stepM), m_tiles)
    n_chunks = np.where(kb_chunks == 1, ceil_div(n_tiles, t.stepN), n_tiles)
    n_first = np.asarray(t.iterateOrder) == 1
    once_a = np.where(n_first | (m_chunks == 1), 1, n_chunks)
    once_b = np.where(~n_first | (n_chunks == 1), 1, m_chunks)
    return Walk(
        m=m,
        n=n,
        k=k,
        m_tiles=m_tiles,
        n_tiles=n_tiles,
        k_steps=k_steps,
        m_chunks=m_chunks,
        n_chunks=n_chunks,
        ka_chunks=ka_chunks,
        kb_chunks=kb_chunks,
        a_passes=np.where(ka_chunks == 1, once_a, n_tiles),
        b_passes=np.where(kb_chunks == 1, once_b, m_tiles),
        m_blocks=ceil_div(t.M, t.singleCoreM),
        n_blocks=ceil_div(t.N, t.singleCoreN),
        k_blocks=ceil_div(np.minimum(t.Ka, t.Kb), t.singleCoreK),
    )
