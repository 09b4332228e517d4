"""The time of a matmul kernel's launch, without its trees."""

from collections.abc import Mapping, Sequence
from itertools import product
from typing import TYPE_CHECKING, Any

from cubecore.chips import costs
from cubecore.chips.model import Chip
from cubecore.isa.declare.registers import Registers
from cubecore.isa.program.expr import Var
from cubecore.isa.program.tree import Issue, Node
from cubecore.kernels.matmul.clock.accesses import AccessTree, TileShape, access_launch
from cubecore.kernels.matmul.clock.core_pipes import CorePipes, Rings
from cubecore.kernels.matmul.clock.loads import ChunkQueue, Load, Mte2
from cubecore.kernels.matmul.clock.steady import Steady
from cubecore.kernels.matmul.clock.walk import TileWork, compute_tile
from cubecore.kernels.matmul.clock.work import (
    IssueCycles,
    NotEveryInstruction,
    TileMove,
    move_of,
    step,
    transfers,
)
from cubecore.kernels.matmul.launch import settings_of
from cubecore.kernels.matmul.plan import MatmulPlan, matmul_plan
from cubecore.lazy_dataclass import dataclass
from cubecore.tiling.model.problem import Problem
from cubecore.tiling.model.tcubetiling import TCubeTiling
from cubecore.timing.memory.global_accesses import cost_of
from cubecore.timing.memory.l2_reuse import MemoryShare
from cubecore.timing.memory.launch_traffic import launch_start, launch_traffic, memory_parts
from cubecore.timing.memory.memory_port import MemoryPort
from cubecore.units import ceil_div

if TYPE_CHECKING:
    from cubecore.kernels.matmul.chunk_stream import ChunkOrder

MOST_STEPS = 4000
"""Base-K steps of a core that are walked; beyond, the trees are, which skip more of what recurs."""
_FRESH = Registers()
MOST_TILES = 100_000
"""Tiles of a core that are listed, walked or not."""


@dataclass(frozen=True, slots=True)
class LaunchTime:
    """The end of a launch, and the work of its slowest cores' pipes.

    `waited` are the cycles for which nothing but device memory was waited for.
    """

    cycles: int
    start: int
    pipes: Mapping[str, int]
    waited: int


def launch_time(
    problem: Problem, tiling: TCubeTiling, chip: Chip, limit: int | None = None
) -> LaunchTime | None:
    """Return when the kernel that `tiling` implies ends; None where its tree has to be walked.

    Once a group of cores ends behind `limit`, no other one is walked: the answer is then some cycle
    behind it, by which the launch has not ended.
    """
    if not is_known(problem, chip) or _tiles(tiling) > MOST_TILES:
        return None
    plan = matmul_plan(problem, tiling, chip)
    try:
        launch, kinds = access_launch(plan)
        traffic = launch_traffic(launch, chip)
        start = launch_start(launch.kind, chip)
        trees = {kind.program: kind for kind in kinds}
        launch_cycles = chip.require("launch_cycles", "timing")
        ends = []
        for number, (group, part) in enumerate(
            zip(traffic.groups, memory_parts(traffic), strict=True)
        ):
            # One core stands for its group: each has the same tree, and an equal part of memory.
            memory = MemoryPort(chip, part, traffic.written_back, start)
            kind = trees[group.program]
            ends.append(_CoreTime(plan, memory, traffic.shares(number), start).of(kind.trees))
            if limit is not None and ends[-1].end + launch_cycles > limit:
                break
    except NotEveryInstruction:
        return None
    last = max(ends, key=lambda core: core.end)
    cycles = last.end + launch_cycles
    pipes = {"M": last.m.busy, "MTE1": last.mte1.busy, "MTE2": last.mte2.busy, "FIX": last.fix.busy}
    return LaunchTime(cycles, start, pipes, last.mte2.waited)


def is_known(problem: Problem, chip: Chip) -> bool:
    """True if the walk knows the kernel's instructions."""
    p = problem
    plain = p.template == "MDL" and not p.shares_unit_flag and not p.mx
    return plain and not p.scales_columns and not chip.unknown_costs


def _tiles(t: TCubeTiling) -> int:
    return int(ceil_div(t.singleCoreM, t.baseM) * ceil_div(t.singleCoreN, t.baseN))


def _cut(total: int, block: int) -> list[int]:
    """Return the lengths of the blocks of `total`."""
    whole, tail = divmod(total, block)
    return [block] * whole + [tail] * (tail > 0)


@dataclass(frozen=True, slots=True)
class TileTurn:
    """A tile in the walk over a block: its work, and the operands whose chunks begin and end.

    `kind` is the same for tiles that are alike. `copy` brings a part of a bias to its table, which
    several tiles may need: it is free behind the one that `frees` it.
    """

    kind: int
    enters: tuple[int, ...]
    releases: tuple[int, ...]
    work: TileWork
    copy: TileMove | None
    frees: bool


class _CoreTime:
    """Walks the blocks of a core of a group."""

    def __init__(
        self, plan: MatmulPlan, memory: MemoryPort, shares: Mapping[Issue, MemoryShare], start: int
    ) -> None:
        self._plan, self._memory, self._shares, self._start = plan, memory, shares, start
        chip = plan.chip
        self._overlap = 1.0 - chip.require("gm_latency_overlap", "timing")
        self._scalars = IssueCycles.of(plan)
        depth: int = chip.require("pipe_queue_depth", "timing")
        mte2 = Mte2(memory, depth, self._scalars.issue, self._scalars.load)
        self._core = CorePipes(self._scalars, depth, mte2, start)
        self._registers = _FRESH
        t = plan.tiling
        self._rings = Rings([0] * t.dbL0A, [0] * t.dbL0B, [0] * t.dbL0C)
        self._free: dict[str, list[int]] = {}
        self._has_bias = False
        self._tiles: dict[TileShape, TileWork] = {}
        self._orders: dict[str, tuple[ChunkOrder, list[list[list[Load]]]]] = {}
        self._walked = 0

    def of(self, trees: Sequence[AccessTree]) -> CorePipes:
        """Return the core at the end of all its blocks."""
        core, plan, rings = self._core, self._plan, self._rings
        for setting in settings_of(plan.problem):
            # The kernel's settings come first, one after another, and change what later templates
            # cost.
            core.time += self._scalars.issue + cost_of(setting, plan.chip).busy
            self._registers = setting.apply(self._registers)
        before = None
        for tree in trees:
            # A block of another shape has its buffers elsewhere in L1.
            if before is not None and not before.share.lies_as(tree.share):
                self._settle()
            self._block(tree)
            before = tree
        # The kernel takes down every flag that it raised; waits for them are its last instructions.
        up = [(core.m, rings.l0c), (core.mte1, rings.l0a), (core.mte1, rings.l0b)]
        for pipe, ring in up:
            for at in ring:
                core.waited(pipe, at)
        self._await_l1()
        if self._has_bias:
            core.waited(core.mte1, rings.table)
        if plan.problem.split_k:
            core.time += self._scalars.issue
        return core

    def _await_l1(self) -> None:
        """Let MTE2 wait until all of L1 is let go."""
        core, row = self._core, [self._rings.row] if self._has_bias else []
        for at in (*self._free["a"], *self._free["b"], *row):
            core.time = core.mte2.waited_for(core.time, at)

    def _settle(self) -> None:
        """Let MTE2 wait until all of L1 is read: a block's buffers lie elsewhere (`settle`)."""
        core, rings = self._core, self._rings
        self._await_l1()
        core.time, at = core.mte2.raised(core.time)
        core.waited(core.mte1, at)
        for free in self._free.values():
            free[:] = [core.raised(core.mte1) for _ in free]
        if self._has_bias:
            rings.row = core.raised(core.mte1)

    def _block(self, tree: AccessTree) -> None:
        """Walk a block of C, for each matrix of the batch."""
        core, rings = self._core, self._rings
        self._tiles, self._orders = {}, {}
        # The first block raises all flags of free buffers; later ones find them up.
        if not self._free:
            for pipe, ring in ((core.fix, rings.l0c), (core.m, rings.l0a), (core.m, rings.l0b)):
                ring[:] = [core.raised(pipe) for _ in ring]
            for name in "ab":
                buffers = range(tree.streams[name].buffers)
                self._free[name] = [core.raised(core.mte1) for _ in buffers]
        if tree.bias is not None and not self._has_bias:
            rings.row, rings.table = core.raised(core.mte1), core.raised(core.m)
            self._has_bias = True
        rings.at_a = rings.at_b = rings.at_c = 0
        for _ in range(tree.share.batches):
            self._matrix(tree, rings, self._free)

    # --- one matrix

    def _matrix(self, tree: AccessTree, rings: Rings, free: dict[str, list[int]]) -> None:
        core = self._core
        a, b = chunks = [self._chunks(tree, name, free[name]) for name in "ab"]
        levels = [tree.streams[name].level for name in "ab"]
        if tree.bias is not None:
            self._load_bias(tree, rings)
        for chunk, level in zip(chunks, levels, strict=True):
            core.time = chunk.start(core.time)
            if level == "core":
                core.acquire(chunk)
        lengths, row_of = self._rows(tree, levels)
        # Rows of tiles recur, tiles within a row, and steps within a tile: each level skips what it
        # can.
        steady = Steady(core, rings, a, b, lengths)
        number = 0
        while number < len(lengths):
            if len(lengths) - number > 1:
                number += steady.skipped(number)
            if number < len(lengths):
                self._row(row_of[lengths[number]], rings, a, b)
            number += 1
        for chunk, level in zip(chunks, levels, strict=True):
            if level == "core":
                core.release(chunk)
        if tree.bias is not None:
            rings.row = core.raised(core.mte1)

    def _load_bias(self, tree: AccessTree, rings: Rings) -> None:
        """Load the row of a bias, which stays in L1."""
        # Rows of a bias that travel in parts, or anew for each matrix, are left to the tree.
        if not tree.row or tree.share.batches > 1:
            raise NotEveryInstruction
        core, loads = self._core, self._timed(tree.row, {}, 0)
        core.time, at = core.mte2.chunk(core.time, rings.row, loads, 0)
        core.waited(core.mte1, at)

    def _row(self, turns: list[TileTurn], rings: Rings, a: ChunkQueue, b: ChunkQueue) -> None:
        """Walk the tiles of a chunk of the outer axis."""
        core, chunks = self._core, (a, b)
        steady = Steady(core, rings, a, b, [turn.kind for turn in turns])
        number = 0
        while number < len(turns):
            if len(turns) - number > 1:
                number += steady.skipped(number)
            if number >= len(turns):
                break
            turn = turns[number]
            for index in turn.enters:
                core.acquire(chunks[index])
            if turn.copy is not None:
                core.waited(core.mte1, rings.table)
                core.copy_to_table(turn.copy)
            self._walked += compute_tile(core, rings, turn.work, a, b)
            if turn.frees:
                rings.table = core.raised(core.m)
            for index in turn.releases:
                core.release(chunks[index])
            number += 1
            if self._walked > MOST_STEPS:
                raise NotEveryInstruction
        steady.finish()

    def _rows(
        self, tree: AccessTree, levels: Sequence[str]
    ) -> tuple[list[int], dict[int, list[TileTurn]]]:
        """Return the lengths of the outer axis' chunks, and the tiles of one of each length."""
        t, share = self._plan.tiling, tree.share
        m_chunks, n_chunks = _cut(share.m, t.stepM * t.baseM), _cut(share.n, t.stepN * t.baseN)
        m_first = t.iterateOrder == 1
        if m_first:
            outer, inner, bases, order = m_chunks, n_chunks, (t.baseM, t.baseN), (0, 1)
        else:
            outer, inner, bases, order = n_chunks, m_chunks, (t.baseN, t.baseM), (1, 0)
        # Operands whose chunk begins and ends with the outer or the inner axis; those that stay for
        # all of the core were acquired before.
        stays = [
            [index] if levels[index] == name else []
            for index, name in zip(order, ("outer", "inner"), strict=True)
        ]
        turn_of: dict[tuple[Any, ...], TileTurn] = {}

        def row(outer_length: int) -> list[TileTurn]:
            turns: list[TileTurn] = []
            lengths = _cut(outer_length, bases[0])
            for j, inner_length in enumerate(inner):
                columns = _cut(inner_length, bases[1])
                for x, y in product(range(len(lengths)), range(len(columns))):
                    first, last = x == y == 0, x == len(lengths) - 1 and y == len(columns) - 1
                    begins, ends = first and j == 0, last and j == len(inner) - 1
                    tile, chunk = (lengths[x], columns[y]), (outer_length, inner_length)
                    # With M outside each tile of a row has other columns; with N outside one part
                    # of the bias serves a column of tiles.
                    fetches = tree.bias is not None and (m_first or y == 0)
                    frees = tree.bias is not None and not m_first and y == len(columns) - 1
                    key = *tile, *chunk, first, last, begins, ends, fetches, frees
                    # Tiles that are alike share one object: what recurs is seen by comparing
                    # numbers.
                    if key not in turn_of:
                        enters = stays[0] * begins + stays[1] * first
                        released = stays[1] * last + stays[0] * ends
                        if not m_first:
                            tile, chunk = tile[::-1], chunk[::-1]
                        shape = TileShape(*tile, *chunk)
                        work = self._tile(tree, shape)
                        copy = self._copy(tree, shape.n) if fetches else None
                        around = tuple(enters), tuple(released)
                        turn_of[key] = TileTurn(len(turn_of), *around, work, copy, frees)
                    turns.append(turn_of[key])
            return turns

        return outer, {length: row(length) for length in set(outer)}

    def _copy(self, tree: AccessTree, n: int) -> TileMove:
        assert tree.bias is not None, "a tile with a bias"
        return move_of(tree.bias.copying(n), self._plan.chip)

    def _tile(self, tree: AccessTree, shape: TileShape) -> TileWork:
        if shape not in self._tiles:
            self._tiles[shape] = self._make_tile(tree, shape)
        return self._tiles[shape]

    def _make_tile(self, tree: AccessTree, shape: TileShape) -> TileWork:
        plan = self._plan
        lengths = _cut(tree.share.k, plan.tiling.baseK)
        barrier = len(lengths) > 1 and bool(costs.are_dependent(shape.m, shape.n))
        step_of = {k: step(plan, self._registers, shape, k, barrier) for k in set(lengths)}
        issue = tree.stores[shape]
        template = issue.template.resolved(self._registers)
        cost = cost_of(template, plan.chip)
        assert cost.traffic is not None, "a store"
        request = self._memory.request(cost.traffic, self._shares[issue])
        steps = tuple([step_of[k] for k in lengths])
        frees = tree.bias is not None and plan.tiling.iterateOrder == 1
        return TileWork(steps, cost.busy, cost.idle_head, request, frees)

    # --- loads

    def _chunks(self, tree: AccessTree, name: str, free: list[int]) -> ChunkQueue:
        """Return the chunks of an operand, none loaded yet."""
        stream, t = tree.streams[name], self._plan.tiling
        steps = (t.stepKa if name == "a" else t.stepKb) if stream.level == "step" else 0
        if name not in self._orders:
            order = stream.order()
            kinds = [self._loads(tree, name, *one) for one in order.firsts]
            self._orders[name] = order, [[kinds[x] for x in row] for row in order.patterns]
        order, loads = self._orders[name]
        mte2, ahead = self._core.mte2, stream.ahead
        return ChunkQueue(mte2, free, order, loads, ahead=ahead, steps=steps)

    def _loads(self, tree: AccessTree, name: str, r: int, k: int, level: int) -> list[Load]:
        return self._timed(tree.bodies[name], tree.streams[name].variables(r, k), level)

    def _timed(self, body: Sequence[Node], values: Mapping[Var, int], level: int) -> list[Load]:
        loads = []
        for one in transfers(body, values, self._plan.chip):
            share = self._shares[one.issue]
            request = self._memory.request(one.traffic, share, level)
            asked = one.busy + request.more_cycles
            latency = request.latency_cycles
            loads.append(
                Load(one.times, asked + int(self._overlap * latency), asked + latency, request)
            )
        return loads
