"""Overlap of one core's pipes, chunk by chunk: a closer look at the tilings that rank first.

`pipe_overlap` has a formula for it, this a walk: every chunk is asked for when the scalar unit gets
to it, loaded once there is room in L1, moved to L0 and multiplied; a tile ends in fixpipe. All
tilings are walked at once. Tiles, steps and chunks of an operand cost as equal parts, but what the
first pass over an operand brings comes from device memory; the rest of a long walk goes on at
the pace of its latter half.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cubecore.aliases import Column
from cubecore.chips import costs
from cubecore.tiling.cost.closed_form import (
    clients_per_core,
    inner_pipes,
    start_cycles,
    written_back,
)
from cubecore.tiling.cost.pipe_overlap import head_waits, scalar_cycles
from cubecore.tiling.cost.tile_counts import tile_counts
from cubecore.tiling.cost.traffic import first_and_later_loads
from cubecore.tiling.rules.model import RuleCase

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]

FEW = 8
"""Chunks after which a walk goes on evenly."""
IN_MTE1, OF_STEP, OF_TILE = 5, 10, 6
"""Instructions of a base-K step in MTE1's queue, all of a step's, and a tile's besides."""
_OPERAND = (
    *("count", "passes", "single", "transfers", "first_cycles", "first_arrival", "first_served"),
    *("later_cycles", "later_arrival", "later_served"),
)
_SHARED = (
    *("swapped", "inner_tiles", "n_first", "tiles", "k_steps", "parts", "mte1", "m", "fix"),
    *("written", "double", "waits", "pause", "fetched", "clients", "hbm"),
)
COLUMNS = (*(f"{x}_{name}" for x in "ab" for name in _OPERAND), *_SHARED)
"""Values of a tiling that its walk needs."""


def chunk_columns(case: RuleCase) -> tuple[Column, ...]:
    """Return of tilings what a walk needs of them: `COLUMNS`, one after the other."""
    t, problem, chip = case.tiling, case.problem, case.chip
    w = tile_counts(t)
    pipes, _ = inner_pipes(case, w)
    values: list[Column] = []
    hbm: Column = 0.0
    read: Column = 0.0
    clients = clients_per_core(t, problem, chip)
    single = t.depthA1 <= t.stepM * t.stepKa, t.depthB1 <= t.stepN * t.stepKb
    for (passes, *both), alone in zip(first_and_later_loads(case, w), single, strict=True):
        first, later = both
        values += (passes * first.count, passes, alone, first.first_transfers)
        for one, times in ((first, 1), (later, passes - 1)):
            served = costs.hbm_cycles(chip, one.hbm_bytes, one.row_bytes)
            values += (
                one.mean_cycles,
                one.arrival_cycles,
                problem.batch * served / (one.count * clients),
            )
            hbm, read = hbm + times * served, read + times * one.hbm_bytes
    row = problem.c_type.bytes_of(w.n / w.n_tiles)
    out = written_back(case, problem.batch * read, row, w.k_blocks)
    n_first = np.equal(t.iterateOrder, 1)
    whole_a, whole_b = w.ka_chunks == 1, w.kb_chunks == 1
    swapped = whole_b & np.logical_not(whole_a & n_first)
    beside = np.equal(t.dbL0C, 2) | problem.shares_unit_flag
    double = np.equal(t.dbL0A, 2) & np.equal(t.dbL0B, 2)
    values += (swapped, np.where(n_first, w.n_tiles, w.m_tiles), n_first, w.tiles, w.k_steps)
    values += (np.maximum(w.ka_chunks, w.kb_chunks), pipes["MTE1"] / w.steps, pipes["M"] / w.steps)
    values += (pipes["FIX"] / w.tiles, out / (w.tiles * clients), double)
    rows = np.where(n_first, w.m_tiles, w.m_chunks) * w.n_tiles
    fetched = np.equal(rows, w.tiles) if problem.bias_type is not None else False
    values += (
        head_waits(case, w),
        np.logical_not(beside),
        fetched,
        clients_per_core(t, problem, chip),
        problem.batch * hbm + out,
    )
    return tuple(values)


def walked_cycles(case: RuleCase, columns: dict[str, Floats], most: int) -> Floats:
    """Return the cycles of tilings of template MDL, of which `columns` are those of `COLUMNS`.

    At most so many chunks of each are walked.
    """
    served = (case.chip.hbm_latency_cycles or 0) + columns["hbm"]
    cycles = columns["clients"] * _Walk(case, columns, most).cycles()
    return np.asarray(start_cycles(case.chip) + np.maximum(cycles, served))


def least_cycles(case: RuleCase, columns: dict[str, Floats]) -> Floats:
    """Return cycles that no walk of the tilings falls below: those of their busiest pipe."""
    v = columns
    steps = v["tiles"] * v["k_steps"]
    mte2: Column = 0.0
    scalar: Column = 0.0
    one = scalar_cycles(case.problem, case.chip)
    for x in "ab":
        share = 1 / v[f"{x}_passes"]
        mean = share * v[f"{x}_first_cycles"] + (1 - share) * v[f"{x}_later_cycles"]
        mte2 = mte2 + v[f"{x}_count"] * mean
        scalar = scalar + v[f"{x}_count"] * one.load
    scalar = scalar + steps * one.step + v["tiles"] * one.tile
    busiest = np.maximum(np.maximum(mte2, scalar), steps * np.maximum(v["m"], v["mte1"]))
    return np.asarray(start_cycles(case.chip) + v["clients"] * busiest)


@dataclass
class _Operand:
    """An operand's chunks: in which parts of the walk one is asked for, and one is waited for.

    `cycles`, `arrival` and `served` are those of what is asked for in each part.
    """

    cycles: Floats
    arrival: Floats
    served: Floats
    work: Floats
    single: Mask
    asks: Mask
    waits: Mask
    ready: Floats


class _Walk:
    """The walk of some tilings; all times are columns."""

    def __init__(self, case: RuleCase, v: dict[str, Floats], most: int) -> None:
        self.v, self.chip, self.count = v, case.chip, len(v["tiles"])
        self.scalar = scalar_cycles(case.problem, case.chip)
        self.issue = case.chip.scalar_issue_cycles or 0
        self.slack = case.chip.hbm_slack_cycles or 0
        self.whole = v["tiles"] * v["parts"]
        self.walked = int(min(self.whole.max(), most))
        self.s, self.mte2, self.done, self.busy = (np.zeros(self.count) for _ in range(4))

    def _operands(self) -> list[_Operand]:
        """Return the operand whose chunks are asked for first, and the other."""
        v, swapped = self.v, self.v["swapped"].astype(bool)
        at = np.arange(self.walked + 1)[:, np.newaxis]
        tile = at // v["parts"]
        outer = np.floor(tile / v["inner_tiles"]) == 0
        inner = tile % v["inner_tiles"] == 0
        n_first = v["n_first"].astype(bool)
        first = {"a": np.where(n_first, inner, outer), "b": np.where(n_first, outer, inner)}
        operands = []
        for x, y in ("ab", "ba"):
            fields = {
                name: np.where(swapped, v[f"{y}_{name}"], v[f"{x}_{name}"]) for name in _OPERAND
            }
            operands.append(self._operand(fields, np.where(swapped, first[y], first[x])))
        return operands

    def _operand(self, v: dict[str, Floats], first: Mask) -> _Operand:
        at = np.arange(self.walked + 1)[:, np.newaxis]
        number = np.floor((at * v["count"] + 0.5) / self.whole)
        begins = np.ones((self.walked, self.count), dtype=bool)
        begins[1:] = number[1:-1] > number[:-2]
        single = v["single"].astype(bool)
        asks = begins & (single | (number[:-1] + 1 < v["count"]))
        ahead = np.ceil(self.whole / v["count"]).astype(np.int64)
        coming = np.minimum(at[:-1] + np.where(single, 0, ahead), self.walked)
        fresh = (v["passes"] == 1) | np.take_along_axis(first, coming, axis=0)
        cycles, arrival, served = (
            np.where(fresh, v[f"first_{name}"], v[f"later_{name}"])
            for name in ("cycles", "arrival", "served")
        )
        work = np.where(asks, self.scalar.load + self.issue * (2 + v["transfers"]), 0)
        return _Operand(cycles, arrival, served, work, single, asks, begins, np.zeros(self.count))

    def _load(self, one: _Operand, i: int, asks: Mask, free: Floats | float) -> Floats:
        """Load a chunk where it is asked for; return when it is there."""
        ready = np.maximum(np.maximum(self.s, free), self.mte2)
        turn = np.maximum(self.busy, ready - self.slack)
        start = np.maximum(turn, ready)
        turn += one.served[i]
        done: Floats = np.maximum(np.maximum(start + one.arrival[i], turn), self.done)
        np.copyto(self.busy, turn, where=asks)
        np.copyto(self.mte2, start + one.cycles[i], where=asks)
        np.copyto(self.done, done, where=asks)
        return done

    def _asked_ahead(self) -> list[_Operand]:
        """Return the operands, the first chunk asked for where there are two buffers."""
        operands = self._operands()
        for one in operands:
            ahead = np.logical_not(one.single)
            self.s = self.s + np.where(ahead, self.scalar.load, 0)
            one.ready = self._load(one, 0, ahead, 0.0)
        return operands

    def cycles(self) -> Floats:
        """Return the cycles of a block of C."""
        v, count = self.v, self.count
        operands = self._asked_ahead()
        g = v["k_steps"] / v["parts"]
        t1, tm, fix_cycles = v["mte1"], v["m"], v["fix"]
        double, pause = v["double"].astype(bool), v["pause"].astype(bool)
        chip = self.chip
        serial = np.where(double, 0.0, tm + v["waits"])
        depth = chip.pipe_queue_depth or 32
        contention = chip.l1_to_l0_contention or 0
        step = self.scalar.step + OF_STEP * self.issue
        tile = self.scalar.tile + OF_TILE * self.issue
        at = np.arange(self.walked)[:, np.newaxis] % v["parts"]
        begins, ends = at == 0, at == v["parts"] - 1
        mte1, m, fix, free_c, before = (np.zeros(count) for _ in range(5))
        ends_at = np.zeros((self.walked, count))
        pace = np.maximum(t1, tm)
        back, last = np.where(double, pace, 0), np.where(double, tm, 0)
        together = pace + serial
        part, queued = g * together, depth / IN_MTE1 * together
        steps, multiplied, twice = g * step, g * tm, 2 * pace
        fetches = [row if row.any() else None for row in begins & v["fetched"].astype(bool)]
        begun, written = np.where(begins, tile, 0), np.where(ends, v["written"], 0)
        waited = [np.any(one.waits, axis=1) for one in operands]
        for i in range(self.walked):
            self.s = self.s + begun[i]
            start = np.maximum(mte1, m - back)
            for one, any_waits in zip(operands, waited, strict=True):
                if not any_waits[i]:
                    continue
                self.s = self.s + one.work[i]
                done = self._load(one, i, one.asks[i], mte1)
                ready = np.where(one.single, done, one.ready)
                start = np.where(one.waits[i], np.maximum(start, ready), start)
                np.copyto(one.ready, done, where=one.asks[i])
            start = _once_free(np.maximum(start, self.s), m, fetches[i])
            beside = np.minimum(np.maximum((self.mte2 - start) / part, 0), 1)
            move = t1 * (1 + contention * beside)
            begin = np.maximum(np.maximum(m, start + move), np.where(begins[i], free_c, 0))
            self.s = self.s + steps
            end = np.maximum(start + g * (move + serial) + last, self.s + move + tm)
            m = end = np.maximum(begin + multiplied, end)
            ahead = np.maximum(start + g * move, end - twice + move)
            mte1 = np.where(double, ahead, end - tm)
            self.s = np.maximum(self.s, np.maximum(mte1, end - pace) - queued)
            stored = np.maximum(np.maximum(fix, m), self.s) + fix_cycles
            before = np.where(ends[i], fix, before)
            fix = np.where(ends[i], stored, fix)
            free_c = np.where(pause, fix, before)
            self.busy = self.busy + written[i]
            ends_at[i] = np.maximum(np.where(ends[i], fix, m), self.s)
        return self._whole(ends_at)

    def _whole(self, ends_at: Floats) -> Floats:
        """Return when everything is done: what is left goes on at the pace of the latter half."""
        columns, parts = np.arange(self.count), self.v["parts"]
        tiles = np.maximum(self.walked // (2 * parts), 1)
        whole_tiles = tiles * parts <= self.walked - FEW
        last = np.minimum(self.whole, self.walked)
        over = np.where(whole_tiles, tiles * parts, self.walked // 2)
        reached = ends_at[last.astype(np.int64) - 1, columns]
        early = np.maximum(last - over, 1)
        pace = (reached - ends_at[early.astype(np.int64) - 1, columns]) / np.maximum(
            last - early, 1
        )
        rest = self.whole - last
        return np.asarray(reached + np.where(rest > 0, rest * pace, 0))


def _once_free(start: Floats, multiplied: Floats, fetches: Mask | None) -> Floats:
    """Return when moves start where they wait for the table of the bias, which Mmads read."""
    return start if fetches is None else np.where(fetches, np.maximum(start, multiplied), start)
