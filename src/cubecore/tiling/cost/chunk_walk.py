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
    """The walk of some tilings; all times are columns.

    Every step writes into columns that are there already: making new ones takes as long as filling
    them, and a masked assignment is several times faster than a masked operation.
    """

    def __init__(self, case: RuleCase, v: dict[str, Floats], most: int) -> None:
        chip = case.chip
        self.v, self.count = v, len(v["tiles"])
        self.scalar = scalar_cycles(case.problem, chip)
        self.issue = chip.scalar_issue_cycles or 0
        self.slack = chip.hbm_slack_cycles or 0
        self.whole = v["tiles"] * v["parts"]
        self.walked = int(min(self.whole.max(), most))
        self.s, self.mte2, self.done, self.busy = (np.zeros(self.count) for _ in range(4))
        self.mte1, self.m, self.fix, self.free_c, self.before = np.zeros((5, self.count))
        self.ready, self.turn, self.start, self.move, self.moved = np.empty((5, self.count))
        self.end, self.begin = np.empty((2, self.count))
        self._set_paces(depth=chip.pipe_queue_depth or 32, slowed=chip.l1_to_l0_contention or 0)
        at = np.arange(float(self.walked))[:, np.newaxis]
        at = at - v["parts"] * np.floor(at / v["parts"])
        first, self.ends = at == 0, at == v["parts"] - 1
        self.begins = first.astype(float)
        self.fetches = [row if row.any() else None for row in first & v["fetched"].astype(bool)]
        self.any_ends = np.any(self.ends, axis=1).tolist()
        self.begun = (self.scalar.tile + OF_TILE * self.issue) * self.begins
        self.written = v["written"] * self.ends
        self.ends_at = np.zeros((self.walked, self.count))

    def _set_paces(self, *, depth: int, slowed: float) -> None:
        """Set what a part's steps take, each pipe by itself and all one after another."""
        v = self.v
        self.g = v["k_steps"] / v["parts"]
        double, t1, tm = v["double"].astype(bool), v["mte1"], v["m"]
        self.single, self.pause = np.logical_not(double), v["pause"].astype(bool)
        serial = np.where(double, 0.0, tm + v["waits"])
        self.pace = np.maximum(t1, tm)
        self.back = np.where(double, self.pace, 0)
        self.slowed = slowed * t1
        self.slower = self.slowed / (self.g * (self.pace + serial))
        self.behind = self.g * serial + np.where(double, tm, 0)
        self.steps = self.g * (self.scalar.step + OF_STEP * self.issue)
        self.multiplied = self.g * tm
        self.queued = depth / IN_MTE1 * (self.pace + serial)

    def _operands(self) -> list[_Operand]:
        """Return the operand whose chunks are asked for first, and the other."""
        v, swapped = self.v, self.v["swapped"].astype(bool)
        inner = swapped ^ v["n_first"].astype(bool)
        operands = []
        for x, y, by_inner in (("a", "b", inner), ("b", "a", ~inner)):
            fields = {
                name: np.where(swapped, v[f"{y}_{name}"], v[f"{x}_{name}"]) for name in _OPERAND
            }
            operands.append(self._operand(fields, by_inner))
        return operands

    def _operand(self, v: dict[str, Floats], by_inner: Mask) -> _Operand:
        """Return the operand of these fields, which the inner tiles read or the outer ones."""
        at = np.arange(float(self.walked))[:, np.newaxis]
        number = np.floor((at * v["count"] + 0.5) / self.whole)
        begins = np.ones((self.walked, self.count), dtype=bool)
        begins[1:] = number[1:] > number[:-1]
        single = v["single"].astype(bool)
        asks = begins & (single | (number + 1 < v["count"]))
        ahead = np.where(single, 0.0, np.ceil(self.whole / v["count"]))
        tile = np.floor(np.minimum(at + ahead, self.walked) / self.v["parts"])
        turn = np.floor(tile / self.v["inner_tiles"])
        fresh = np.where(by_inner, turn * self.v["inner_tiles"] == tile, turn == 0)
        fresh |= v["passes"] == 1
        cycles, arrival, served = (
            np.where(fresh, v[f"first_{name}"], v[f"later_{name}"])
            for name in ("cycles", "arrival", "served")
        )
        work = asks * (self.scalar.load + self.issue * (2 + v["transfers"]))
        return _Operand(cycles, arrival, served, work, single, asks, begins, np.zeros(self.count))

    def _load(self, one: _Operand, i: int, asks: Mask) -> Floats:
        """Load a chunk where it is asked for; return when it is there."""
        ready, turn, start = self.ready, self.turn, self.begin
        np.maximum(self.s, self.mte1, out=ready)
        np.maximum(ready, self.mte2, out=ready)
        np.subtract(ready, self.slack, out=turn)
        np.maximum(turn, self.busy, out=turn)
        np.maximum(turn, ready, out=start)
        np.add(turn, one.served[i], out=turn)
        done: Floats = np.add(start, one.arrival[i])
        np.maximum(done, turn, out=done)
        np.maximum(done, self.done, out=done)
        np.add(start, one.cycles[i], out=start)
        np.putmask(self.busy, asks, turn)
        np.putmask(self.mte2, asks, start)
        np.putmask(self.done, asks, done)
        return done

    def _asked_ahead(self) -> list[_Operand]:
        """Return the operands, the first chunk asked for where there are two buffers."""
        operands = self._operands()
        for one in operands:
            ahead = np.logical_not(one.single)
            self.s += np.where(ahead, self.scalar.load, 0)
            one.ready = self._load(one, 0, ahead)
        return operands

    def cycles(self) -> Floats:
        """Return the cycles of a block of C."""
        operands = self._asked_ahead()
        waited = [np.any(one.waits, axis=1).tolist() for one in operands]
        for i in range(self.walked):
            self.s += self.begun[i]
            np.subtract(self.m, self.back, out=self.start)
            np.maximum(self.start, self.mte1, out=self.start)
            for one, any_waits in zip(operands, waited, strict=True):
                if any_waits[i]:
                    self._await(one, i)
            self._fill_l0(i)
            self._multiply(i)
            if self.any_ends[i]:
                self._store(i)
        return self._whole(self.ends_at)

    def _await(self, one: _Operand, i: int) -> None:
        """Ask for an operand's next chunk, and let moves wait for the one that they read."""
        self.s += one.work[i]
        done = self._load(one, i, one.asks[i])
        np.copyto(self.ready, one.ready)
        np.putmask(self.ready, one.single, done)
        np.maximum(self.ready, self.start, out=self.ready)
        np.putmask(self.start, one.waits[i], self.ready)
        np.putmask(one.ready, one.asks[i], done)

    def _fill_l0(self, i: int) -> None:
        """Move a part's blocks into L0, slower while MTE2 loads."""
        start, move, moved = self.start, self.move, self.moved
        np.maximum(start, self.s, out=start)
        fetches = self.fetches[i]
        if fetches is not None:  # moves wait for the table of the bias, which Mmads read
            np.putmask(start, fetches, np.maximum(start, self.m))
        np.subtract(self.mte2, start, out=move)
        np.maximum(move, 0.0, out=move)
        np.multiply(move, self.slower, out=move)
        np.minimum(move, self.slowed, out=move)
        np.add(move, self.v["mte1"], out=move)
        np.multiply(move, self.g, out=moved)
        np.add(moved, start, out=moved)

    def _multiply(self, i: int) -> None:
        """Multiply a part's blocks, beside the moves of later ones."""
        m, mte1, begin, end = self.m, self.mte1, self.begin, self.end
        np.add(self.start, self.move, out=begin)
        np.maximum(begin, m, out=begin)
        np.multiply(self.free_c, self.begins[i], out=end)
        np.maximum(begin, end, out=begin)
        begin += self.multiplied
        self.s += self.steps
        np.add(self.s, self.v["m"], out=end)
        end += self.move
        np.maximum(end, begin, out=end)
        np.add(self.moved, self.behind, out=begin)
        np.maximum(end, begin, out=m)
        np.subtract(m, self.pace, out=end)
        np.subtract(end, self.pace, out=mte1)
        mte1 += self.move
        np.maximum(mte1, self.moved, out=mte1)
        np.subtract(m, self.v["m"], out=begin)
        np.putmask(mte1, self.single, begin)
        np.maximum(end, mte1, out=end)
        end -= self.queued
        np.maximum(self.s, end, out=self.s)
        np.maximum(m, self.s, out=self.ends_at[i])

    def _store(self, i: int) -> None:
        """Store the tiles that end, and let go of their places in L0C."""
        ends, stored = self.ends[i], self.end
        np.maximum(self.fix, self.ends_at[i], out=stored)
        stored += self.v["fix"]
        np.putmask(self.before, ends, self.fix)
        np.putmask(self.fix, ends, stored)
        np.copyto(self.free_c, self.before)
        np.putmask(self.free_c, self.pause, self.fix)
        self.busy += self.written[i]
        np.putmask(self.ends_at[i], ends, self.fix)

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
