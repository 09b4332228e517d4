"""How the fullest core walks its block of C, and what it loads on the way.

One tiling or a struct of arrays; the kernel's order is in `cubecore.tiling.cost`.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from cubecore.chips import Chip, costs
from cubecore.dtypes import ElementType
from cubecore.tiling.problem import Problem
from cubecore.tiling.rule_model import Case
from cubecore.tiling.rules_extents import ND_INNER_LIMIT
from cubecore.units import DATA_BLOCK_BYTES, ceil_div


@dataclass(frozen=True)
class Walk:
    """How the fullest core walks its block: extents, tiles, steps, chunks, passes over operands."""

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

    Counts are floats: exact up to 2**53, and products of extents near 2**31 do not overflow.
    """
    m = np.asarray(np.minimum(t.singleCoreM, t.M), dtype=float)
    n = np.asarray(np.minimum(t.singleCoreN, t.N), dtype=float)
    k = np.asarray(t.singleCoreK, dtype=float)
    m_tiles, n_tiles, k_steps = ceil_div(m, t.baseM), ceil_div(n, t.baseN), ceil_div(k, t.baseK)
    m_chunks, n_chunks = ceil_div(m_tiles, t.stepM), ceil_div(n_tiles, t.stepN)
    ka_chunks, kb_chunks = ceil_div(k_steps, t.stepKa), ceil_div(k_steps, t.stepKb)
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
        k_blocks=ceil_div(t.Ka, t.singleCoreK),
    )


@dataclass(frozen=True)
class Loads:
    """One operand's way into L1: transfers, their cycles with latency, the first, the bytes."""

    count: Any
    cycles: Any
    first_cycles: Any
    core_bytes: Any
    hbm_bytes: Any
    row_bytes: Any

    @property
    def mean_cycles(self) -> Any:
        """Cycles of one transfer with the part of its latency that the next cannot hide."""
        return self.cycles / self.count


def _distances(t: Any, w: Walk, case: Case) -> tuple[Any, Any]:
    """Return the bytes that all cores touch between two reads of a chunk of A, and of B."""
    k = w.k * w.k_blocks
    a_panels = case.a.bytes_of(w.m_blocks * np.minimum(t.stepM * t.baseM, w.m) * k)
    b_panels = case.b.bytes_of(w.n_blocks * np.minimum(t.stepN * t.baseN, w.n) * k)
    a_whole = case.a.bytes_of(k * t.M)
    b_whole = case.b.bytes_of(k * t.N)
    n_first = np.asarray(t.iterateOrder) == 1
    near = a_panels + b_panels
    return np.where(n_first, near, a_whole + b_panels), np.where(n_first, a_panels + b_whole, near)


def _miss_share(chip: Chip, passes: Any, distance: Any) -> Any:
    """Return the share of a core's loads of an operand that device memory serves."""
    again = 1 - np.exp(-distance / chip.l2_bytes) if chip.l2_bytes else 1.0
    return (1 + (passes - 1) * again) / passes


def _loads(
    case: Case,
    operand: str,
    *,
    grid: tuple[Any, Any],
    chunk: tuple[Any, Any],
    extent: tuple[Any, Any],
    passes: Any,
    distance: Any,
    k_blocks: Any,
) -> Loads:
    """Return the loads of an operand; pairs are (rows or columns of C, K), in elements.

    `k_blocks` is over how many cores K is split, `grid` is chunks per pass, `chunk` the first one's
    extents, `extent` the core's.
    """
    chip = case.chip
    kind = case.a if operand == "a" else case.b
    whole = case.problem.m if operand == "a" else case.problem.n
    stored = Stored.of(case.problem, operand)
    mean = (extent[0] / grid[0], extent[1] / grid[1])
    rows, row_bytes = stored.rows(kind, *mean)
    count = passes * grid[0] * grid[1]
    share = _miss_share(chip, passes, distance)
    near, far = chip.l2_latency_cycles or 0, chip.hbm_latency_cycles or 0
    exposed = (1 - (chip.gm_latency_overlap or 0)) * (near + share * (far - near))
    one = stored.transfer(chip, kind, rows, row_bytes, exposed=exposed)
    first = stored.transfer(chip, kind, *stored.rows(kind, *chunk), exposed=0)
    return Loads(
        count=count,
        cycles=count * one,
        first_cycles=first,
        core_bytes=kind.bytes_of(passes * extent[0] * extent[1]),
        hbm_bytes=kind.bytes_of(extent[1] * k_blocks * whole) * passes * share,
        row_bytes=row_bytes,
    )


@dataclass(frozen=True)
class Stored:
    """How A or B lies in global memory: ND rows of `pitch` elements, or NZ pieces of all `pitch`.

    `k_inner` says that the stored rows run along K; `pitch` is the length of an ND row, or the
    rows of an NZ matrix.
    """

    k_inner: bool
    nz: bool
    pitch: int

    @staticmethod
    def of(problem: Problem, operand: str) -> "Stored":
        """Return how the operand is stored."""
        k_inner = not problem.trans_a if operand == "a" else problem.trans_b
        nz = getattr(problem, f"format_{operand}") == "NZ"
        whole = problem.m if operand == "a" else problem.n
        return Stored(k_inner, nz, problem.k if k_inner != nz else whole)

    def rows(self, kind: ElementType, own: Any, k: Any) -> tuple[Any, Any]:
        """Return (rows, bytes of a row) of one transfer of `own` x `k` elements."""
        outer, inner = (own, k) if self.k_inner else (k, own)
        if self.nz:
            return inner / kind.c0, outer * DATA_BLOCK_BYTES
        return outer, kind.bytes_of(inner * 8) / 8

    def transfer(
        self, chip: Chip, kind: ElementType, rows: Any, row_bytes: Any, *, exposed: Any
    ) -> Any:
        """Return MTE2's cycles to bring one chunk, with what is exposed of a transfer's latency.

        Where rows are further apart than one transfer can stride, the chunk comes row by row.
        """
        pitch_bytes = self.pitch * DATA_BLOCK_BYTES if self.nz else kind.bytes_of(self.pitch)
        if self.pitch <= ND_INNER_LIMIT:
            return costs.gm_to_l1_cycles(chip, rows, row_bytes, pitch_bytes) + exposed
        return rows * (costs.gm_to_l1_cycles(chip, 1, row_bytes, pitch_bytes) + exposed)


def longest_row_bytes(problem: Problem, operand: str) -> int:
    """Return the most bytes of an operand that lie in one run in global memory."""
    stored = Stored.of(problem, operand)
    kind = problem.a_type if operand == "a" else problem.b_type
    return int(stored.pitch * DATA_BLOCK_BYTES if stored.nz else kind.bytes_of(stored.pitch))


def loads(case: Case, w: Walk) -> tuple[Loads, Loads]:
    """Return the loads of A and of B on the fullest core."""
    t = case.tiling
    far_a, far_b = _distances(t, w, case)
    if case.problem.template == "MDL":
        step_m, step_n, step_ka, step_kb = t.stepM, t.stepN, t.stepKa, t.stepKb
        a_grid, b_grid = (w.m_chunks, w.ka_chunks), (w.n_chunks, w.kb_chunks)
    else:
        step_m = step_n = step_ka = step_kb = 1
        a_grid, b_grid = (w.m_tiles, w.k_steps), (w.n_tiles, w.k_steps)
    a = _loads(
        case,
        "a",
        grid=a_grid,
        chunk=(np.minimum(step_m * t.baseM, w.m), np.minimum(step_ka * t.baseK, w.k)),
        extent=(w.m, w.k),
        passes=w.a_passes,
        distance=far_a,
        k_blocks=w.k_blocks,
    )
    b = _loads(
        case,
        "b",
        grid=b_grid,
        chunk=(np.minimum(step_n * t.baseN, w.n), np.minimum(step_kb * t.baseK, w.k)),
        extent=(w.n, w.k),
        passes=w.b_passes,
        distance=far_b,
        k_blocks=w.k_blocks,
    )
    return a, b
