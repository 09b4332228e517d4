"""The kernel of template MDL as stages, and with them the time of its launch without trees.

The stages are read off the kernel's own parts: its streams say which chunk is loaded when, its
movers and templates what is issued. `timing.tiles` walks them.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise, product
from typing import Any

from cubecore.chips import costs
from cubecore.chips.model import Chip
from cubecore.isa.declare.registers import Registers
from cubecore.isa.program.expr import Var
from cubecore.isa.program.tree import Issue, Node
from cubecore.kernels.matmul.accesses import AccessTree, TileShape, access_launch
from cubecore.kernels.matmul.launch import settings_of
from cubecore.kernels.matmul.plan import MatmulPlan, matmul_plan
from cubecore.kernels.matmul.stage_costs import issue_cycles, move_of, step, transfers
from cubecore.tiling.cost.tile_counts import Level
from cubecore.tiling.model.problem import Problem
from cubecore.tiling.model.tcubetiling import TCubeTiling
from cubecore.timing.memory.global_accesses import cost_of
from cubecore.timing.memory.l2_reuse import MemoryShare
from cubecore.timing.memory.launch_traffic import launch_start, launch_traffic, memory_parts
from cubecore.timing.memory.memory_port import MemoryPort
from cubecore.timing.tiles.core_walk import walk_core
from cubecore.timing.tiles.stages import (
    BlockStages,
    ChunkStages,
    CoreStages,
    L0Move,
    Load,
    NotEveryInstruction,
    TileTurn,
    TileWork,
)
from cubecore.units import ceil_div

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
        trees = {kind.program: kind.trees for kind in kinds}
        launch_cycles = chip.require("launch_cycles", "timing")
        ends = []
        for number, (group, part) in enumerate(
            zip(traffic.groups, memory_parts(traffic), strict=True)
        ):
            # One core stands for its group: each has the same tree, and an equal part of memory.
            memory = MemoryPort(chip, part, traffic.written_back, start)
            stages = _core_stages(plan, memory, traffic.shares(number), trees[group.program])
            ends.append(walk_core(stages, memory, start))
            if limit is not None and ends[-1].end + launch_cycles > limit:
                break
    except NotEveryInstruction:
        return None
    last = max(ends, key=lambda core: core.end)
    cycles = last.end + launch_cycles
    pipes = {"M": last.m.busy, "MTE1": last.mte1.busy, "MTE2": last.mte2.busy, "FIX": last.fix.busy}
    return LaunchTime(cycles, start, pipes, last.mte2.waited)


def is_known(problem: Problem, chip: Chip) -> bool:
    """True if stages say all of the kernel's instructions."""
    p = problem
    plain = p.template == "MDL" and not p.shares_unit_flag and not p.mx
    return plain and not p.scales_columns and not chip.unknown_costs


def _tiles(t: TCubeTiling) -> int:
    return int(ceil_div(t.singleCoreM, t.baseM) * ceil_div(t.singleCoreN, t.baseN))


def _cut(total: int, block: int) -> list[int]:
    """Return the lengths of the blocks of `total`."""
    whole, tail = divmod(total, block)
    return [block] * whole + [tail] * (tail > 0)


def _core_stages(
    plan: MatmulPlan,
    memory: MemoryPort,
    shares: Mapping[Issue, MemoryShare],
    trees: Sequence[AccessTree],
) -> CoreStages:
    """Return the stages of the blocks with these accesses, which have `shares` in `memory`."""
    t, registers, settings = plan.tiling, Registers(), []
    for setting in settings_of(plan.problem):
        # What is set changes what later templates cost.
        settings.append(cost_of(setting, plan.chip).busy)
        registers = setting.apply(registers)
    # A block of another shape has its buffers elsewhere in L1.
    apart = [not before.share.lies_as(tree.share) for before, tree in pairwise(trees)]
    blocks = [
        _BlockWriter(plan, memory, shares, registers, tree).written(lies_apart)
        for tree, lies_apart in zip(trees, [False, *apart], strict=True)
    ]
    return CoreStages(
        scalars=issue_cycles(plan),
        depth=plan.chip.require("pipe_queue_depth", "timing"),
        l0a=t.dbL0A,
        l0b=t.dbL0B,
        l0c=t.dbL0C,
        settings=settings,
        blocks=blocks,
        resets=plan.problem.split_k,
    )


@dataclass(eq=False)
class _BlockWriter:
    """Writes the stages of a block of C whose accesses are `tree`."""

    plan: MatmulPlan
    memory: MemoryPort
    shares: Mapping[Issue, MemoryShare]
    registers: Registers
    tree: AccessTree

    def __post_init__(self) -> None:
        self._overlap = 1.0 - self.plan.chip.require("gm_latency_overlap", "timing")
        self._works: dict[TileShape, TileWork] = {}

    def written(self, lies_apart: bool) -> BlockStages:
        """Return the stages; `lies_apart` as they have it.

        Raises
        ------
        NotEveryInstruction
            If a row of a bias travels in parts, or anew for each matrix.
        """
        # One block of the kernel's tree of accesses says which loads there are and where a store
        # goes; the rest of the stages follows from the tiling, in the order of `BlockTree`.
        tree, bias = self.tree, None
        if tree.bias is not None:
            if not tree.row or tree.share.batches > 1:
                raise NotEveryInstruction
            bias = self._loads(tree.row, {}, 0)
        a, b = self._chunks("a"), self._chunks("b")
        rows, turns = self._rows(a.level, b.level)
        return BlockStages((a, b), rows, turns, tree.share.batches, bias, lies_apart)

    # --- tiles

    def _rows(self, *levels: Level) -> tuple[list[int], dict[int, list[TileTurn]]]:
        """Return the lengths of the outer axis' chunks, and the tiles of one of each length.

        `levels` are those for which chunks of A and of B stay.
        """
        t, tree = self.plan.tiling, self.tree
        m_chunks = _cut(tree.share.m, t.stepM * t.baseM)
        n_chunks = _cut(tree.share.n, t.stepN * t.baseN)
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
                        work = self._work(shape)
                        copy = self._copy(shape.n) if fetches else None
                        around = tuple(enters), tuple(released)
                        turn_of[key] = TileTurn(len(turn_of), *around, work, copy, frees)
                    turns.append(turn_of[key])
            return turns

        return outer, {length: row(length) for length in set(outer)}

    def _copy(self, n: int) -> L0Move:
        assert self.tree.bias is not None, "a tile with a bias"
        return move_of(self.tree.bias.copying(n), self.plan.chip)

    def _work(self, shape: TileShape) -> TileWork:
        if shape not in self._works:
            self._works[shape] = self._work_of(shape)
        return self._works[shape]

    def _work_of(self, shape: TileShape) -> TileWork:
        plan, tree = self.plan, self.tree
        lengths = _cut(tree.share.k, plan.tiling.baseK)
        barrier = len(lengths) > 1 and bool(costs.are_dependent(shape.m, shape.n))
        step_of = {k: step(plan, self.registers, shape, k, barrier) for k in set(lengths)}
        issue = tree.stores[shape]
        cost = cost_of(issue.template.resolved(self.registers), plan.chip)
        assert cost.traffic is not None, "a store"
        request = self.memory.request(cost.traffic, self.shares[issue])
        steps = tuple([step_of[k] for k in lengths])
        frees = tree.bias is not None and plan.tiling.iterateOrder == 1
        return TileWork(steps, cost.busy, cost.idle_head, request, frees)

    # --- loads

    def _chunks(self, name: str) -> ChunkStages:
        """Return the chunks of an operand."""
        stream, t = self.tree.streams[name], self.plan.tiling
        order, body = stream.order(), self.tree.bodies[name]
        kinds = [self._loads(body, stream.variables(r, k), level) for r, k, level in order.firsts]
        return ChunkStages(
            order=order,
            loads=[[kinds[kind] for kind in row] for row in order.patterns],
            buffers=stream.buffers,
            level=stream.level,
            ahead=stream.ahead,
            steps=(t.stepKa if name == "a" else t.stepKb) if stream.level == "step" else 0,
        )

    def _loads(self, body: Sequence[Node], values: Mapping[Var, int], level: int) -> list[Load]:
        """Return the loads of a part of the tree where its variables are `values`."""
        loads = []
        for one in transfers(body, values, self.plan.chip):
            request = self.memory.request(one.traffic, self.shares[one.issue], level)
            asked, latency = one.busy + request.more_cycles, request.latency_cycles
            hidden = int(self._overlap * latency)
            loads.append(Load(one.times, asked + hidden, asked + latency, request))
        return loads
