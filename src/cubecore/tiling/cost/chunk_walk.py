"""Overlap of one core's pipes, chunk by chunk: a closer look at the tilings that rank first.

`pipe_overlap` has a formula for it, this a walk: every chunk is asked for when the scalar unit gets
to it, loaded once there is room in L1, moved to L0 and multiplied; a tile ends in fixpipe. All
tilings are walked at once. Chunks and tiles cost in proportion to their size: the last one of an
axis is shorter. What the first pass over an operand brings comes from device memory; the rest of a
long walk goes on at the pace of its latter half.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy import add, copyto, maximum, minimum, multiply, putmask, subtract
from numpy.typing import NDArray

from cubecore.tiling.cost.chunk_columns import OPERAND, Floats, mean
from cubecore.tiling.cost.closed_form import start_cycles
from cubecore.tiling.cost.pipe_overlap import scalar_cycles
from cubecore.tiling.rules.model import RuleCase

Mask = NDArray[np.bool_]

LEAST = 1e-3
"""The smallest part of a walk whose pace is looked at."""
MANY = 8
"""Passes over an operand of which the first one hardly counts."""
FEW = 8
"""Chunks after which a walk goes on evenly."""
IN_MTE1, OF_STEP, OF_TILE = 5, 10, 6
"""Instructions of a base-K step in MTE1's queue, all of a step's, and a tile's besides."""


def walked_cycles(case: RuleCase, columns: dict[str, Floats], most: int) -> Floats:
    """Return the cycles of tilings of template MDL, of which `columns` are those of `COLUMNS`.

    At most so many chunks of each are walked.
    """
    served = (case.chip.hbm_latency_cycles or 0) + columns["hbm"]
    cycles = columns["clients"] / columns["turns"] * _Walk(case, columns, most).cycles()
    return np.asarray(start_cycles(case.chip) + np.maximum(cycles, served))


@dataclass
class _Operand:
    """An operand's chunks: in which parts of the walk one is asked for, and one is waited for.

    `loads` are the cycles of what is asked for in each part, those until it is there, and those of
    device memory; `first` the same of the first chunk, `behind` of that of a later block of C, for
    which there is room at `freed`.
    """

    first: Sequence[Floats]
    behind: Sequence[Floats]
    loads: Sequence[Floats]
    work: Floats
    single: Mask
    asks: Mask
    waits: Mask
    ready: Floats
    freed: Floats
    odd: Mask


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
        self.block = v["tiles"] * v["parts"]
        self.whole = v["turns"] * self.block
        self.walked = int(min(self.whole.max(), most))
        # Clocks, each a time per tiling: the scalar unit, MTE2's next free cycle, the last data in
        # L1, device memory. Below, those of MTE1, M and FIX, of the L0C buffer that is written
        # next, and of the store before the last one.
        self.s, self.mte2, self.done, self.busy = (np.zeros(self.count) for _ in range(4))
        self.mte1, self.m, self.fix, self.free_c, self.before = np.zeros((5, self.count))
        # Scratch columns: every step of the walk overwrites them.
        self.ready, self.turn, self.start, self.move, self.moved = np.empty((5, self.count))
        self.end, self.begin = np.empty((2, self.count))
        self._set_paces(depth=chip.pipe_queue_depth or 32, slowed=chip.l1_to_l0_contention or 0)
        self._set_turns()
        # Place of a part in its tile: the first takes up a buffer of L0C, the last lets fixpipe
        # begin.
        at = self.at - v["parts"] * np.floor(self.at / v["parts"])
        first, self.ends = at == 0, at == v["parts"] - 1
        self.begins = list(first.astype(float))
        self._set_sizes()
        # None spares a masked operation where no tiling has such a part; most walks have none at
        # all.
        self.fetches = [row if row.any() else None for row in first & v["fetched"].astype(bool)]
        self.any_ends = np.any(self.ends, axis=1).tolist()
        self.begun = list((self.scalar.tile + OF_TILE * self.issue) * first)
        self.written = list(v["written"] * self.ends)
        self.ends_at = np.zeros((self.walked, self.count))

    def _set_paces(self, *, depth: int, slowed: float) -> None:
        """Set what a part's steps take, each pipe by itself and all one after another."""
        v = self.v
        g = v["k_steps"] / v["parts"]
        double, t1, tm = v["double"].astype(bool), v["mte1"], v["m"]
        self.single, self.pause = np.logical_not(double), v["pause"].astype(bool)
        # With one buffer of L0A or L0B moves and products take turns: the product and the wait for
        # its operands come on top of the moves.
        serial = np.where(double, 0.0, tm + v["waits"])
        self.pace = np.maximum(t1, tm)
        self.back = np.where(double, self.pace, 0)
        self.slowed = slowed * t1
        # MTE1 is slowed while MTE2 fills L1: by how much, per cycle of MTE2 still to go at a part's
        # start.
        self.slower = self.slowed / (g * (self.pace + serial))
        self.serial, self.last = serial, np.where(double, tm, 0)
        self.step = self.scalar.step + OF_STEP * self.issue
        # The scalar unit runs ahead of MTE1 by what its queue holds, in base-K steps.
        self.queued = depth / IN_MTE1 * (self.pace + serial)

    def _set_turns(self) -> None:
        """Set where each part is in its block of C, and which ones begin a later block."""
        at = np.arange(float(self.walked))[:, np.newaxis]
        self.turns: list[Mask | None] = [None] * self.walked
        self.several = bool(np.any(self.v["turns"] > 1))
        if self.several:
            turn = np.minimum(np.floor(at / self.block), self.v["turns"] - 1)
            at = at - turn * self.block
            self.later = turn > 0
            begins = self.later & (at == 0)
            self.turns = [row if row.any() else None for row in begins]
            self._set_settling()
        self.at = at

    def _set_settling(self) -> None:
        """Set where a core's second block is the shorter one, and the loads for it wait for L1.

        Where other cores' blocks are alike, the slower of both is walked.
        """
        v = self.v
        size = v["a_next_size"] * v["b_next_size"]
        loads = sum(v[f"{x}_count"] * mean(v, "cycles", f"{x}_", "next") for x in "ab")
        # The shorter second block gains this much if nothing waits. Its buffers lie elsewhere in
        # L1, so that loads wait until all of the first block is read: walked only where that costs
        # more.
        gained = (1 - size) * np.maximum(loads, self.block * v["k_steps"] / v["parts"] * self.pace)
        early = {x: np.logical_not(v[f"{x}_single"]) & (v[f"{x}_count"] % 2 == 0) for x in "ab"}
        waits = sum(v[f"{x}_next_arrival"] * early[x] for x in "ab")
        self.settles = (size < 1) & ((v["evenly"] == 0) | (waits > gained))
        names = (f"{x}_next_{y}" for x in "ab" for y in ("size", "tile"))
        sizes = {n: np.where(self.settles, v[n], 1.0) for n in names}
        self.v = v | sizes

    def _set_sizes(self) -> None:
        """Set the sizes of tiles and of parts over the mean ones, and the steps of each part.

        `weight` is the time of a part over that of one of a whole tile, as far as that can be told
        of what has not been walked; `weights` is that of all parts.
        """
        v = self.v
        tile = np.floor(self.at / v["parts"])
        outer = np.floor(tile / v["inner_tiles"])
        inner = tile - outer * v["inner_tiles"]
        n_first = v["n_first"].astype(bool)
        # Parts are chunks along K of the operand that has more of them; the last of an axis has
        # what is left (count - (count - 1) * size, over the mean).
        more_of_a = v["a_k_chunks"] >= v["b_k_chunks"]
        size, count = (
            np.where(more_of_a, v[f"a_{n}"], v[f"b_{n}"]) for n in ("k_chunk", "k_chunks")
        )
        part = np.where(self.ends, count - (count - 1) * size, size)
        self.weight, self.weights = part, v["parts"]
        self.tile = np.ones_like(tile)
        each_move: Floats = v["mte1"] - v["to_l0a"] - v["to_l0b"]
        # A tile's size is the product of its sizes along M and N; moves scale with one axis each,
        # products and stores with both.
        for x, y, number in (("a", "b", (outer, inner)), ("b", "a", (inner, outer))):
            last = np.where(n_first, *number) == v[f"{x}_tiles"] - 1
            whole, tail = v[f"{x}_tile"], _last_size(v, f"{x}_tile")
            size = np.where(last, tail, whole)
            if self.several:
                size *= np.where(self.later, v[f"{x}_next_tile"], 1.0)
            self.tile *= size
            size *= v[f"to_l0{x}"]
            each_move = add(size, each_move, out=size)
            shorter = self._tail_weight(x, y, tail / whole)
            self.weights = self.weights * (v[f"{x}_tiles"] - 1 + shorter)
            self.weight = self.weight * np.where(last, shorter, 1.0)
        self.weights = self.weights * v["turns"]
        steps = v["k_steps"] / v["parts"] * part
        self.moves, self.issues = list(steps), list(steps * self.step)
        self.each_move = list(each_move)
        self.part = list(part * self.tile)
        steps = steps * self.tile
        self.products, self.serials = list(steps * v["m"]), list(steps * self.serial)
        self.stores = list(v["fix"] * self.tile)

    def _tail_weight(self, x: str, y: str, size: Floats) -> Floats:
        """Return the time of a tile that is the last along an operand's axis over a whole one's."""
        v = self.v
        x_cycles, y_cycles = (
            v[f"{z}_count"] * mean(v, "cycles", f"{z}_") / v["tiles"] for z in (x, y)
        )
        computed = v["k_steps"] * self.pace
        whole = np.maximum(x_cycles + y_cycles, computed)
        return np.asarray(np.maximum(x_cycles * size + y_cycles, computed * size) / whole)

    def _operands(self) -> list[_Operand]:
        """Return the operand whose chunks are asked for first, and the other."""
        v, swapped = self.v, self.v["swapped"].astype(bool)
        inner = swapped ^ v["n_first"].astype(bool)
        operands = []
        for x, y, by_inner in (("a", "b", inner), ("b", "a", ~inner)):
            fields = {
                name: np.where(swapped, v[f"{y}_{name}"], v[f"{x}_{name}"])
                for name in OPERAND
                if self.several or not name.startswith("next")
            }
            operands.append(self._operand(self._mixed(fields), by_inner))
        return operands

    def _mixed(self, v: dict[str, Floats]) -> dict[str, Floats]:
        """Return the fields with the mean of all passes for each where a walk sees few of many."""
        period = self.v["inner_tiles"] * self.v["parts"]
        # A walk that ends within the first pass would take every chunk for one that L2 does not
        # hold: with many passes the mean of all is nearer.
        few = (self.whole > self.walked) & (2 * period > self.walked) & (v["passes"] >= MANY)
        alone = (self.v["turns"] > 1) & (self.block >= self.walked)
        mixed = dict(v)
        for name in ("cycles", "arrival", "served"):
            first = v[f"first_{name}"]
            if alone.any():
                first = np.where(alone, (first + v[f"next_{name}"]) / 2, first)
            later = v[f"later_{name}"]
            of_all = later + (first - later) / v["passes"]
            mixed[f"first_{name}"] = np.where(few, of_all, first)
            mixed[f"later_{name}"] = np.where(few, of_all, later)
        return mixed

    def _operand(self, v: dict[str, Floats], by_inner: Mask) -> _Operand:
        """Return the operand of these fields, which the inner tiles read or the outer ones."""
        at = self.at
        # The chunk that a part reads; half a chunk more keeps rounding from the edges of floor.
        number = np.floor((at * v["count"] + 0.5) / self.block)
        begins = np.ones((self.walked, self.count), dtype=bool)
        begins[1:] = number[1:] > number[:-1]
        if self.several:
            begins |= at == 0
        single = v["single"].astype(bool) & (v["count"] > 1)  # what stays is loaded at the start
        # Where there are two buffers the next chunk is asked for as the one before is begun, so the
        # last chunk asks for none.
        asks = begins & (single | (number + 1 < v["count"]))
        ahead = np.where(single, 0.0, np.ceil(self.block / v["count"]))
        tile = np.floor(np.minimum(at + ahead, self.walked) / self.v["parts"])
        turn = np.floor(tile / self.v["inner_tiles"])
        # L2 may hold what was loaded before: the outer axis' chunk for all inner tiles but the
        # first, the inner axis' operand from the second turn on.
        fresh = np.where(by_inner, turn * self.v["inner_tiles"] == tile, turn == 0)
        fresh |= v["passes"] == 1
        coming = number + np.where(single, 0.0, 1.0)
        row = np.floor(coming / v["k_chunks"])
        size = _size(v, "k_chunk", coming - row * v["k_chunks"])
        by_tile = np.where(by_inner, turn, tile - turn * self.v["inner_tiles"])
        by_chunk = row - np.floor(row / v["chunks"]) * v["chunks"]
        # Along the own axis chunks are counted by tiles if K is cut, as then a chunk is one tile
        # high.
        size *= _size(v, "chunk", np.where(v["k_chunks"] > 1, by_tile, by_chunk))
        names = "cycles", "arrival", "served"
        firsts, later = (tuple(v[f"{x}_{n}"] for n in names) for x in ("first", "later"))
        began, first_size = firsts, v["k_chunk"] * v["chunk"]
        first = behind = _sized(firsts, first_size)
        if self.several:
            following = tuple(v[f"next_{n}"] for n in names)
            began = tuple(
                np.where(self.later, y, x) for x, y in zip(firsts, following, strict=True)
            )
            size *= np.where(self.later, v["next_size"], 1.0)
            behind = _sized(following, first_size * v["next_size"])
        loads = _sized([np.where(fresh, x, y) for x, y in zip(began, later, strict=True)], size)
        work = asks * (self.scalar.load + self.issue * (2 + v["transfers"]))
        ready, freed = np.zeros((2, self.count))
        odd = v["count"] % 2 == 1
        return _Operand(first, behind, loads, work, single, asks, begins, ready, freed, odd)

    def _load(self, load: Iterable[Floats], asks: Mask, freed: Floats) -> Floats:
        """Load a chunk where it is asked for; return when it is there."""
        cycles, arrival, served = load
        ready, turn, start = self.ready, self.turn, self.begin
        # A load waits for the scalar unit, a free buffer and MTE2; device memory may have been at
        # work for it up to `slack` cycles before.
        maximum(self.s, freed, out=ready)
        maximum(ready, self.mte2, out=ready)
        subtract(ready, self.slack, out=turn)
        maximum(turn, self.busy, out=turn)
        maximum(turn, ready, out=start)
        add(turn, served, out=turn)
        done: Floats = add(start, arrival)
        maximum(done, turn, out=done)
        # MTE2 completes in order: nothing is there before what was asked for earlier.
        maximum(done, self.done, out=done)
        add(start, cycles, out=start)
        # Tilings that ask for nothing here keep their clocks.
        putmask(self.busy, asks, turn)
        putmask(self.mte2, asks, start)
        putmask(self.done, asks, done)
        return done

    def _asked_ahead(self) -> list[_Operand]:
        """Return the operands, first chunks asked for where there are two buffers or they stay."""
        operands = self._operands()
        self._ask(operands, [one.first for one in operands], np.True_)
        return operands

    def _ask_behind(self, operands: Sequence[_Operand], begins: Mask) -> None:
        """Ask for the first chunks of later blocks of C where these begin.

        They go to the first buffer, in which the last one of an odd number was.
        """
        for one in operands:
            putmask(one.freed, self.settles | one.odd, self.mte1)
        self._ask(operands, [one.behind for one in operands], begins)

    def _ask(
        self,
        operands: Sequence[_Operand],
        loads: Sequence[Sequence[Floats]],
        begins: Mask | np.bool_,
    ) -> None:
        """Ask for first chunks, A's and then B's."""
        asked = [begins & np.logical_not(one.single) for one in operands]
        swapped = self.v["swapped"].astype(bool)
        first, other = operands
        for of_first in (np.logical_not(swapped), swapped):
            load = [np.where(of_first, x, y) for x, y in zip(*loads, strict=True)]
            asks = np.where(of_first, *asked)
            freed = np.where(of_first, first.freed, other.freed)
            self.s += np.where(asks, self.scalar.load, 0)
            there = self._load(load, asks, freed)
            putmask(first.ready, asks & of_first, there)
            putmask(other.ready, asks & ~of_first, there)

    def cycles(self) -> Floats:
        """Return the cycles of a block of C."""
        operands = self._asked_ahead()
        waited = [np.any(one.waits, axis=1).tolist() for one in operands]
        for i in range(self.walked):
            begins = self.turns[i]
            if begins is not None:
                self._ask_behind(operands, begins)
            self.s += self.begun[i]
            # Two buffers of L0: moves of this part may begin while the last product of the part
            # before runs.
            subtract(self.m, self.back, out=self.start)
            maximum(self.start, self.mte1, out=self.start)
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
        done = self._load([row[i] for row in one.loads], one.asks[i], self.mte1)
        if self.several:
            putmask(one.freed, one.waits[i], self.mte1)
        # With one buffer the part waits for what it has just asked for, else for what was asked for
        # ahead.
        copyto(self.ready, one.ready)
        putmask(self.ready, one.single, done)
        maximum(self.ready, self.start, out=self.ready)
        putmask(self.start, one.waits[i], self.ready)
        putmask(one.ready, one.asks[i], done)

    def _fill_l0(self, i: int) -> None:
        """Move a part's blocks into L0, slower while MTE2 loads."""
        start, move, moved = self.start, self.move, self.moved
        maximum(start, self.s, out=start)
        fetches = self.fetches[i]
        if fetches is not None:  # moves wait for the table of the bias, which Mmads read
            putmask(start, fetches, maximum(start, self.m))
        # Contention: as long as MTE2 is busy beyond this start, spread over the part's moves, at
        # most the full factor.
        subtract(self.mte2, start, out=move)
        maximum(move, 0.0, out=move)
        multiply(move, self.slower, out=move)
        np.divide(move, self.part[i], out=move)
        minimum(move, self.slowed, out=move)
        add(move, self.each_move[i], out=move)
        multiply(move, self.moves[i], out=moved)
        add(moved, start, out=moved)

    def _multiply(self, i: int) -> None:
        """Multiply a part's blocks, beside the moves of later ones."""
        m, mte1, begin, end = self.m, self.mte1, self.begin, self.end
        add(self.start, self.move, out=begin)
        maximum(begin, m, out=begin)
        # A tile's first product waits for its buffer of L0C; `begins` is 0 elsewhere.
        multiply(self.free_c, self.begins[i], out=end)
        maximum(begin, end, out=begin)
        begin += self.products[i]
        self.s += self.issues[i]
        # No product ends before the scalar unit has issued it and its operands were moved.
        add(self.s, self.v["m"], out=end)
        end += self.move
        maximum(end, begin, out=end)
        add(self.serials[i], self.moved, out=begin)
        begin += self.last
        maximum(end, begin, out=m)
        # MTE1 is at most two steps ahead of M with two buffers of L0; with one it is free as the
        # last product begins.
        subtract(m, self.pace, out=end)
        subtract(end, self.pace, out=mte1)
        mte1 += self.move
        maximum(mte1, self.moved, out=mte1)
        subtract(m, self.v["m"], out=begin)
        putmask(mte1, self.single, begin)
        maximum(end, mte1, out=end)
        # A full queue holds up the scalar unit: what it issues next starts no earlier than MTE1 is
        # near.
        end -= self.queued
        maximum(self.s, end, out=self.s)
        maximum(m, self.s, out=self.ends_at[i])

    def _store(self, i: int) -> None:
        """Store the tiles that end, and let go of their places in L0C."""
        ends, stored = self.ends[i], self.end
        maximum(self.fix, self.ends_at[i], out=stored)
        stored += self.stores[i]
        # Of two buffers of L0C the next tile takes the one whose store was the last but one;
        # `pause` marks the tilings that have one buffer.
        putmask(self.before, ends, self.fix)
        putmask(self.fix, ends, stored)
        copyto(self.free_c, self.before)
        putmask(self.free_c, self.pause, self.fix)
        self.busy += self.written[i]
        putmask(self.ends_at[i], ends, self.fix)

    def _whole(self, ends_at: Floats) -> Floats:
        """Return when everything is done: what is left goes on at the pace of the latter half."""
        columns, parts = np.arange(self.count), self.v["parts"]
        # The pace is measured over whole tiles where the walk has enough of them: a part of one
        # would count its store or leave it out.
        tiles = np.maximum(self.walked // (2 * parts), 1)
        whole_tiles = tiles * parts <= self.walked - FEW
        last = np.minimum(self.whole, self.walked)
        over = np.where(whole_tiles, tiles * parts, self.walked // 2)
        reached = ends_at[last.astype(np.int64) - 1, columns]
        early = np.maximum(last - over, 1).astype(np.int64) - 1
        done = np.cumsum(self.weight, axis=0)
        by_last = done[last.astype(np.int64) - 1, columns]
        since = np.maximum(by_last - done[early, columns], LEAST)
        pace = (reached - ends_at[early, columns]) / since
        rest = np.maximum(self.weights - by_last, 0)
        return np.asarray(reached + np.where(self.whole > last, rest * pace, 0))


def _sized(load: Sequence[Floats], size: Floats) -> tuple[Floats, ...]:
    """Return the cycles, arrival and service of a load that is so many times as large."""
    cycles, arrival, served = load
    return cycles * size, arrival + (size - 1) * cycles, served * size


def _last_size(v: dict[str, Floats], name: str) -> Floats:
    """Return the size over the mean of the last tile or chunk of an axis."""
    size, count = v[name], v[f"{name}s"]
    return np.asarray(count - (count - 1) * size)


def _size(v: dict[str, Floats], name: str, number: Floats) -> Floats:
    """Return the size over the mean of tiles or chunks of an axis, by their number on it."""
    return np.where(number == v[f"{name}s"] - 1, _last_size(v, name), v[name])
