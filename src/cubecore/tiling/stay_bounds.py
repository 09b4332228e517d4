"""Lower bounds of what stays in L1: the last level of the solver's search.

What a way of A or of B costs in a pass, and its first chunk, is exact; how many passes there are,
and what L2 still has of them, follows from both ways and the order. The bound leaves out how one
operand's chunks wait for the other's, and for L0C.
"""

from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from cubecore.chips import costs
from cubecore.tiling.bounds import BlockBounds, Bound, Pass, hidden_cycles, launch_bound
from cubecore.tiling.candidates import Columns, Ints
from cubecore.tiling.overlap import first_loads
from cubecore.tiling.rule_model import Case
from cubecore.tiling.stays import STAY_FIELDS, Ways
from cubecore.tiling.traffic import chunks, miss_share
from cubecore.tiling.walk import walk


@dataclass(frozen=True)
class Cut:
    """One operand's ways, a row each: whether K is whole, chunks along its axis and in a pass.

    A pass takes MTE2 `cycles`, `late` more from device memory, which takes `memory`; the first
    chunk `first` in `transfers`. `alone` says that every chunk is waited for. `again` are passes
    where the other axis goes first in chunks and K is not whole, `all_bytes` and `step_bytes` what
    all cores touch of the operand and of one chunk's rows of it.
    """

    whole: Any
    along: Any
    count: Any
    cycles: Any
    late: Any
    memory: Any
    first: Any
    transfers: Any
    alone: Any
    again: Any
    step_bytes: Any

    @staticmethod
    def of(case: Case, ways: Ways) -> "Cut":
        """Return it for the ways of an operand."""
        t, is_a = ways.columns, ways.operand == "a"
        judged = Case(t, case.problem, case.chip)
        w = walk(t)
        cut = chunks(judged, w, ways.operand)
        step, step_k, depth = (getattr(t, name) for name in STAY_FIELDS[ways.operand])
        kind = case.a if is_a else case.b
        base, extent, blocks = (t.baseM, w.m, w.m_blocks) if is_a else (t.baseN, w.n, w.n_blocks)
        k_bytes = w.k * w.k_blocks * (kind.bits / 8)
        memory = costs.hbm_cycles(case.chip, (t.M if is_a else t.N) * k_bytes, cut.mean.row_bytes)
        reading = Pass.of(case.chip, cut.count, cut.mean, memory, cut.size_bytes)
        whole = (w.ka_chunks if is_a else w.kb_chunks) == 1
        values = (
            whole,
            w.m_chunks if is_a else w.n_chunks,
            cut.count,
            reading.cycles,
            reading.late,
            reading.memory,
            cut.first_cycles(case.chip),
            cut.first.count,
            depth <= (step * step_k if case.problem.template == "MDL" else 1),
            np.where(whole, 1.0, w.n_tiles if is_a else w.m_tiles),
            blocks * np.minimum(step * base, extent) * k_bytes,
        )
        rows = len(t)
        return Cut(*(x if np.shape(x) == (rows,) else np.broadcast_to(x, rows) for x in values))

    def least(self) -> tuple[Any, Any]:
        """Return MTE2's and device memory's cycles with the fewest passes."""
        return Pass(self.cycles, self.late, self.memory).least(self.again, 0)

    def take(self, rows: Ints) -> "Cut":
        """Return some rows."""
        return Cut(*(getattr(self, f.name)[rows] for f in fields(self)))


def stay_bounds(
    case: Case, bounds: BlockBounds, columns: Columns, a: Cut, b: Cut
) -> tuple[Bound, Bound]:
    """Return a bound for each pair of ways, M first and N first; all rows correspond."""
    chip, k = case.chip, columns.singleCoreK * -(-columns.Ka // columns.singleCoreK)
    a_all, b_all = columns.M * (case.a.bits / 8) * k, columns.N * (case.b.bits / 8) * k
    fill = first_loads(chip, a.first + b.first, a.transfers + b.transfers)
    issued = np.maximum(bounds.scalar, fill + np.maximum(bounds.scalar - bounds.ahead, 0))
    beside = np.maximum(fill + bounds.chain, issued + bounds.last)
    hidden = hidden_cycles(chip)
    near = miss_share(chip, a.step_bytes + b.step_bytes)
    totals = []
    for n_first in (False, True):
        a_passes = a.again if n_first else np.where(a.whole & (a.along > 1), b.along, a.again)
        b_passes = np.where(b.whole & (b.along > 1), a.along, b.again) if n_first else b.again
        a_missing = near if n_first else miss_share(chip, a_all + b.step_bytes)
        b_missing = miss_share(chip, a.step_bytes + b_all) if n_first else near
        a_cycles, a_memory = Pass(a.cycles, a.late, a.memory).times(a_passes, a_missing)
        b_cycles, b_memory = Pass(b.cycles, b.late, b.memory).times(b_passes, b_missing)
        a_count, b_count = a_passes * a.count, b_passes * b.count
        rest = bounds.chain / np.maximum(a_count, b_count)
        waits = np.where(a.alone, (1 - 1 / a_count) * (a_cycles + a_count * hidden), 0)
        waits = waits + np.where(b.alone, (1 - 1 / b_count) * (b_cycles + b_count * hidden), 0)
        waits = waits - np.where(a.alone & b.alone, np.minimum(a_count, b_count) - 1, 0) * hidden
        loaded = a_cycles + b_cycles + bounds.other + hidden + rest
        busy = np.maximum(np.maximum(beside, fill + bounds.chain + waits), loaded)
        totals.append(launch_bound(case, columns, busy, a_memory + b_memory, rest))
    return totals[0], totals[1]


def way_bounds(
    case: Case, bounds: BlockBounds, columns: Columns, own: Cut, other: tuple[Any, Any, Any]
) -> Bound:
    """Return a bound for each way of one operand with the least of the other; rows correspond.

    `other` is the least of the other operand's MTE2 cycles, first chunk and memory cycles.
    """
    chip = case.chip
    cycles, first, memory = other
    fill = first_loads(chip, own.first + first, own.transfers + 1)
    hidden = hidden_cycles(chip)
    own_cycles, own_memory = own.least()
    count = own.again * own.count
    waits = np.where(own.alone, (1 - 1 / count) * (own_cycles + count * hidden), 0)
    busy = np.maximum(fill + bounds.chain + waits, own_cycles + cycles + bounds.other + hidden)
    return launch_bound(case, columns, busy, own_memory + memory, 0)
