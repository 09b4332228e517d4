"""Costs of the instructions of a block of C, by the shape of a tile and of a base-K step.

Costs are those of the templates that the kernel issues.
"""

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple

from cubecore.chips.model import Chip
from cubecore.isa.declare.instruction import GlobalTraffic, Instruction
from cubecore.isa.declare.registers import Registers
from cubecore.isa.program.expr import Expr, Var
from cubecore.isa.program.tree import Branch, Issue, Loop, Node
from cubecore.isa.scalar.control_registers import ScalarWork
from cubecore.isa.scalar.sync import PipeBarrier
from cubecore.kernels.build.builder import Builder
from cubecore.kernels.matmul.accesses import TileShape
from cubecore.kernels.matmul.block import product
from cubecore.kernels.matmul.chunk_stream import Slot
from cubecore.kernels.matmul.l1_to_l0 import Mover
from cubecore.kernels.matmul.operand import BaseBlock, OperandPlan
from cubecore.kernels.matmul.plan import MatmulPlan
from cubecore.timing.memory.global_accesses import cost_of
from cubecore.timing.tiles.stages import BaseKStep, IssueCycles, L0Move, NotEveryInstruction


@lru_cache(maxsize=16384)
def moves(plan: OperandPlan, tile: BaseBlock, chip: Chip) -> tuple[L0Move, ...]:
    """Return the moves of a base block into L0."""
    # The kernel's own mover writes the moves of one base block at address 0; their costs are read
    # off the tree. So the clock cannot disagree with the kernel on what is issued.
    builder = Builder("moves")
    zero = Expr(0)
    Mover(builder, plan).move(zero, Slot(zero, 0).at, zero, zero, tile)
    moves_of_tile: list[L0Move] = []
    for node in builder.finish().body:
        if not isinstance(node, Loop):
            moves_of_tile.append(_move(node, chip))
        elif len(node.body) == 1:
            moves_of_tile.append(_move(node.body[0], chip)._replace(times=node.trips.const))
        else:
            moves_of_tile += [_move(leaf, chip) for leaf in node.body] * node.trips.const
    return tuple(moves_of_tile)


def _move(leaf: Node, chip: Chip) -> L0Move:
    """Return a move of MTE1, or a barrier behind moves that may overlap."""
    assert isinstance(leaf, Issue), "moves are leaves or loops of leaves"
    if isinstance(leaf.template, PipeBarrier):
        return L0Move(0, 0, 0, 0)
    return move_of(leaf.template, chip)


def move_of(template: Instruction, chip: Chip) -> L0Move:
    """Return what a move of MTE1 takes."""
    cost = cost_of(template, chip)
    contention: float = chip.require("l1_to_l0_contention", "timing")
    return L0Move(1, cost.busy, cost.busy + round(cost.busy * contention), cost.idle_head)


class Transfers(NamedTuple):
    """Transfers of MTE2: how many times each, its cycles, and what it asks of global memory."""

    issue: Issue
    times: int
    busy: int
    traffic: GlobalTraffic


def transfers(body: Sequence[Node], values: Mapping[Var, int], chip: Chip) -> list[Transfers]:
    """Return the transfers that a part of a program issues where its variables are `values`."""
    listed: list[Transfers] = []
    for node in body:
        if isinstance(node, Branch):
            side = node.then if node.condition.at(values) else node.otherwise
            listed += transfers(side, values, chip)
        elif isinstance(node, Loop):
            for one in transfers(node.body, values, chip):
                listed.append(one._replace(times=one.times * node.trips.const))
            # Transfers of several kinds in a loop alternate, which `EqualLoads` cannot say.
            if len(node.body) > 1:
                raise NotEveryInstruction
        elif isinstance(node, Issue):
            cost = cost_of(node.template, chip)
            if cost.traffic is not None:
                listed.append(Transfers(node, 1, cost.busy, cost.traffic))
    return listed


def issue_cycles(plan: MatmulPlan) -> IssueCycles:
    """Return the scalar unit's cycles of a kernel."""
    issue: int = plan.chip.require("scalar_issue_cycles", "timing")
    works = (ScalarWork(step=plan.step, part=part) for part in ("step", "load", "tile"))
    return IssueCycles(issue, *(issue + cost_of(work, plan.chip).busy for work in works))


def step(
    plan: MatmulPlan, registers: Registers, shape: TileShape, k: int, barrier: bool
) -> BaseKStep:
    """Return what a step along K of a tile costs."""
    chip, m, n = plan.chip, shape.m, shape.n
    a = BaseBlock(m, plan.a.multiplied(k), plan.a.chunk(shape.chunk_m, 0))
    b = BaseBlock(n, plan.b.multiplied(k), plan.b.chunk(shape.chunk_n, 0))
    template: Instruction = product(plan, m, k, n, biased=False, first=True, final=False)
    cost = cost_of(template.resolved(registers), chip)
    return BaseKStep(
        moves(plan.a, a, chip), moves(plan.b, b, chip), cost.busy, cost.idle_head, barrier
    )
