"""Overlap of one core's pipes in the closed form.

A core is done when the last of three is: the first loads and then the tiles, with the waits for
chunks that come too late; all loads of MTE2 and then the last chunk's tiles; the scalar unit's
steps and then the last tile. One tiling or a struct of arrays; cycles, not rounded.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from cubecore.aliases import Column
from cubecore.chips import Chip, costs
from cubecore.tiling.cost.tile_counts import TileCounts
from cubecore.tiling.cost.traffic import OperandLoads
from cubecore.tiling.model.problem import Problem
from cubecore.tiling.rules.model import RuleCase

STEPS_QUEUED = 4
"""Base-K steps in a queue of 32 instructions: waits, loads, a Mmad and flags are about eight."""


@dataclass(frozen=True)
class Inner:
    """The work of one core on data in L1: its walk and the pipes' busy cycles."""

    case: RuleCase
    walk: TileCounts
    pipes: Mapping[str, Column]

    @cached_property
    def stage(self) -> Column:
        """MTE1 and the Cube, as the buffers of L0A and L0B let them overlap."""
        return self._stage(self.pipes["MTE1"])

    def _stage(self, mte1: Column) -> Column:
        t, w, m = self.case.tiling, self.walk, self.pipes["M"]
        double = np.equal(t.dbL0A, 2) & np.equal(t.dbL0B, 2)
        # The slower pipe runs through; the faster one adds its first or its last step.
        overlapped = np.maximum(mte1 + m / w.steps, m + mte1 / w.steps)
        return np.where(double, overlapped, mte1 + m + w.steps * head_waits(self.case, w))

    @cached_property
    def pause(self) -> Column:
        """Return the Cube's wait for fixpipe after a tile: one buffer of L0C, no unit flag."""
        beside = np.equal(self.case.tiling.dbL0C, 2) | self.case.problem.shares_unit_flag
        return np.where(beside, 0, self.pipes["FIX"] / self.walk.tiles)

    @cached_property
    def chain(self) -> Column:
        """From the first L1 block to the last write, if everything is in L1 when it is needed."""
        fix, tiles, stage = self.pipes["FIX"], self.walk.tiles, self.stage
        # The same of fixpipe behind the Cube, tile by tile.
        drained = np.maximum(stage + fix / tiles, fix + stage / tiles)
        return np.where(self.pause > 0, stage + fix, drained)

    @cached_property
    def last(self) -> Column:
        """The last base-K step and the last tile's write."""
        w = self.walk
        steps = (self.pipes["MTE1"] + self.pipes["M"]) / w.steps
        return steps + self.pipes["FIX"] / w.tiles

    def scalar(self, fill: Column) -> Column:
        """Return when the scalar unit has issued the last step; `fill` until the first loads end.

        It runs ahead, of the first loads too, by what the pipes' queues hold.
        """
        ahead = self.ahead
        return np.maximum(self.pipes["S"], fill + np.maximum(self.pipes["S"] - ahead, 0))

    @property
    def ahead(self) -> Column:
        """Cycles of the scalar unit that the pipes' queues hold."""
        return STEPS_QUEUED * self.pipes["S"] / self.walk.steps


@dataclass(frozen=True)
class Work(Inner):
    """The work of one core for one block of C, its loads included."""

    a: OperandLoads
    b: OperandLoads

    @cached_property
    def fill(self) -> Column:
        """Until the first chunks of A, then of B, are asked for and have arrived; both miss L2."""
        asked = scalar_cycles(self.case.problem, self.case.chip).load
        first = asked + np.maximum(self.a.first_cycles, asked) + self.b.first_cycles
        return first_loads(self.case.chip, first, self.a.first_transfers + self.b.first_transfers)

    @cached_property
    def stage(self) -> Column:
        """MTE1 and the Cube; MTE1 is slower as far as MTE2 fills L1 beside it."""
        m, mte1 = self.pipes["M"], self.pipes["MTE1"]
        # The share of the time for which MTE2 is at work.
        beside = self.pipes["MTE2"] / np.maximum(np.maximum(m, mte1), self.pipes["S"])
        share = self.case.chip.l1_to_l0_contention or 0
        return self._stage(mte1 * (1 + share * np.minimum(beside, 1)))

    @cached_property
    def waited_for(self) -> tuple[Column, Column]:
        """True if every chunk of A, and of B, is waited for: there is one buffer.

        NORM uses a block as soon as it is there: only one alone is waited for.
        """
        t = self.case.tiling
        if self.case.problem.template != "MDL":
            return t.depthA1 == 1, t.depthB1 == 1
        return t.depthA1 <= t.stepM * t.stepKa, t.depthB1 <= t.stepN * t.stepKb


def serial_cycles(case: RuleCase, w: TileCounts) -> Column:
    """Return what a Mmad takes more that waits for the one before onto the same small tile."""
    return np.where(_are_serial(case, w), _head_beyond_queue(case.chip), 0)


def head_waits(case: RuleCase, w: TileCounts) -> Column:
    """Return what a Mmad takes more whose operands come late, beyond `serial_cycles`."""
    return np.where(_are_serial(case, w), 0, _head_beyond_queue(case.chip))


def _are_serial(case: RuleCase, w: TileCounts) -> Column:
    t = case.tiling
    small = costs.are_dependent(np.minimum(t.baseM, w.m), np.minimum(t.baseN, w.n))
    return small & np.greater(w.k_steps, 1)


def _head_beyond_queue(chip: Chip) -> float:
    return (chip.mad_head_cycles or 0) - (chip.mad_queued_cycles or 0)


def first_loads(chip: Chip, busy: Column, transfers: Column) -> Column:
    """Return when the first chunks, `transfers` in all, have arrived; they miss L2."""
    latency = chip.hbm_latency_cycles or 0
    exposed = (1 - (chip.gm_latency_overlap or 0)) * latency
    return busy + (transfers - 1) * exposed + latency


@dataclass(frozen=True, slots=True)
class ScalarCycles:
    """The scalar unit's cycles for a base-K step, a load of L1, a tile of C."""

    step: int
    load: int
    tile: int


def scalar_cycles(problem: Problem, chip: Chip) -> ScalarCycles:
    """Return the scalar unit's cycles for each part of a kernel; IBSHARE's are NORM's."""
    template = "MDL" if problem.template == "MDL" else "NORM"
    tables = chip.scalar_step_cycles, chip.scalar_load_cycles, chip.scalar_tile_cycles
    step, load, tile = ((table or {}).get(template, 0) for table in tables)
    return ScalarCycles(step, load, tile)


def busy_cycles(work: Work) -> tuple[Column, Column]:
    """Return the cycles of a block of C, and those after its last loads: the last chunk's tiles."""
    a, b, pipes = work.a, work.b, work.pipes
    # Three ends: of the chain with its waits, of the loads with the last chunk's work, of the
    # scalar unit's issue with the last tile.
    rest = work.chain / np.maximum(a.count, b.count)
    loaded = pipes["MTE2"] + np.maximum(a.hidden_cycles, b.hidden_cycles) + _idle(work) + rest
    busy = np.maximum(work.fill + work.chain + _waits(work, 0), loaded)
    arrival = np.maximum(a.arrival_cycles, b.arrival_cycles)
    busy = np.maximum(busy, _last_load(work) + arrival + rest)
    issued = work.scalar(work.fill) + work.last + _waits(work, work.ahead)
    return np.maximum(busy, issued), rest


def _last_load(work: Work) -> Column:
    """Return when the scalar unit asks for the last chunk: as the last but one is begun."""
    a, b, w = work.a, work.b, work.walk
    scalar = scalar_cycles(work.case.problem, work.case.chip)
    chunks = np.maximum(a.count, b.count)
    first = scalar.load * (a.count + b.count)
    return np.where(chunks > 1, work.pipes["S"] - 2 * w.steps / chunks * scalar.step, first)


def _waits(work: Work, spare: Column) -> Column:
    """Return for how long MTE1 waits for chunks that come late by more than `spare` cycles.

    All of them do where there is one buffer. MTE2 asks for B's next chunk first: where B has one
    buffer, A's next chunk is behind it in MTE2's queue and comes as late, in one buffer or in two;
    two that come together wait for one latency. Of two buffers one is loaded ahead: a chunk of the
    seldom loaded operand delays the next one of the other, and what is in L1 lasts for a chunk's
    share of the time only; where both are loaded along K, A's chunk is asked for before B's, and
    two of A's are there. Beyond its own load and latency nothing waits for the seldom loaded one.
    Template MDL: blocks of NORM are small.
    """
    a, b, w = work.a, work.b, work.walk
    # Three estimates: `single` where an operand has one buffer, `waits` where the seldom loaded
    # operand delays the other, `both` where each chunk of either waits; the last bounds the sum.
    alone_a, alone_b = work.waited_for
    single = np.where(alone_a, (a.count - 1) * np.maximum(a.arrival_cycles - spare, 0), 0)
    single = single + np.where(alone_b, (b.count - 1) * np.maximum(b.arrival_cycles - spare, 0), 0)
    if work.case.problem.template != "MDL":
        return single
    behind = np.logical_and(alone_b, np.logical_not(alone_a)) & (b.count <= a.count)
    single = single + np.where(behind, (b.count - 1) * a.mean_cycles, 0)
    a_often = a.count > b.count
    rarely, often = np.minimum(a.count, b.count), np.maximum(a.count, b.count)
    quick = np.where(a_often, a.mean_cycles, b.mean_cycles)
    slow = np.where(a_often, b.mean_cycles, a.mean_cycles)
    lead = np.maximum(work.chain, work.pipes["S"]) / often - quick
    two = a_often & (w.a.k_chunks > 1) & (w.b.k_chunks > 1) & (often >= 2 * rarely)
    wait = slow + np.where(a_often, a.hidden_cycles, b.hidden_cycles) - np.where(two, 2, 1) * lead
    wait = np.where(np.where(a_often, alone_a, alone_b), slow, wait)
    wait = np.clip(wait, 0, slow + np.where(a_often, b.hidden_cycles, a.hidden_cycles))
    apart = (often == rarely) | np.where(a_often, alone_b, alone_a)
    waits = single + np.where(apart, 0, (rarely - 1) * np.maximum(wait - spare, 0))
    turns = np.where(np.where(a_often, alone_a, alone_b), 0, _turns(work, spare))
    waits = np.maximum(waits, turns)
    both = (rarely - 1) * np.maximum(a.mean_cycles + b.arrival_cycles - spare, 0)
    both = both + (a.count - rarely) * np.maximum(a.arrival_cycles - spare, 0)
    both = both + (b.count - rarely) * np.maximum(b.arrival_cycles - spare, 0)
    return np.where(alone_a & alone_b, both, np.minimum(waits, both))


def _turns(work: Work, spare: Column) -> Column:
    """Return for how long MTE1 waits where two buffers of the often loaded operand take turns.

    A buffer is loaded, waits for the latency and is used up before it is loaded again: two chunks
    take at least as long as that, with their part of the other operand's later loads.
    """
    a, b = work.a, work.b
    a_often = a.count > b.count
    often = np.maximum(a.count, b.count)
    quick = np.where(a_often, a.arrival_cycles, b.arrival_cycles)
    again = np.where(a_often, b.cycles - b.mean_cycles, a.cycles - a.mean_cycles)
    late = in_turn(quick, again - work.chain, often)
    return np.maximum(often - 2, 0) * np.maximum(late - spare, 0)


def in_turn(quick: Column, rest: Column, often: Column) -> Column:
    """Return how late a chunk is where two buffers take turns; below 0 if it is not.

    `quick` is its arrival, `rest` what the other's later loads take longer than the work.
    """
    return np.minimum((quick + rest / often) / 2, quick)


def _idle(work: Work) -> Column:
    """Return for how long MTE2 finds no free buffer while fixpipe empties the only one of L0C.

    It loads one chunk meanwhile. Template MDL.
    """
    if work.case.problem.template != "MDL":
        return 0
    a, b, tiles = work.a, work.b, work.walk.tiles
    often = np.maximum(a.count, b.count)
    quick = np.where(a.count > b.count, a.mean_cycles, b.mean_cycles)
    over = np.clip(work.pause + work.stage / often - quick, 0, work.pause)
    return np.where(often >= tiles, (tiles - 1) * over, 0)
