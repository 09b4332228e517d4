"""Moves into L0 as the closed form counts them, against those that the kernel issues."""

from itertools import product

import pytest

from cubecore.chips import chip
from cubecore.dtypes import element_type
from cubecore.isa.program.expr import Expr
from cubecore.isa.program.tree import Loop
from cubecore.isa.scalar.sync import PipeBarrier
from cubecore.kernels.build.builder import Builder
from cubecore.kernels.matmul.chunk_stream import Slot
from cubecore.kernels.matmul.l1_to_l0 import Mover
from cubecore.kernels.matmul.operand import BaseBlock
from cubecore.kernels.matmul.plan import matmul_plan
from cubecore.tiling.cost.l0_moves import moves
from cubecore.tiling.cost.tile_counts import tile_counts
from cubecore.tiling.model.problem import Problem
from cubecore.tiling.model.tcubetiling import FIELDS, TCubeTiling
from cubecore.tiling.rules.model import RuleCase

EXTENTS = (1, 16, 17, 32, 40, 48, 80)
LENGTHS = (16, 32, 160)


def tiling_of(m, n, k, step):
    """Return a core's whole block as one tile, in chunks that have room for `step` of them."""
    one = dict.fromkeys(FIELDS, 1) | {"M": m, "N": n, "Ka": k, "Kb": k}
    one |= {"singleCoreM": m, "singleCoreN": n, "singleCoreK": k, "baseM": m, "baseN": n}
    return TCubeTiling(**one | {"baseK": k, "stepM": step, "stepN": step, "isBias": 0})


def issued(plan, operand, extent, k, rows):
    """Return the instructions that move a base block, and the barriers behind them."""
    builder = Builder("moves")
    zero, operand_plan = Expr(0), getattr(plan, operand)
    block = BaseBlock(extent, k, operand_plan.chunk(rows, k))
    Mover(builder, operand_plan).move(zero, Slot(zero, 0).at, zero, zero, block)
    leaves = []
    for node in builder.finish().body:
        leaves += list(node.body) * node.trips.const if isinstance(node, Loop) else [node]
    barriers = sum(isinstance(leaf.template, PipeBarrier) for leaf in leaves)
    return len(leaves) - barriers, barriers


@pytest.mark.parametrize("operand", "ab")
@pytest.mark.parametrize("name", ["Ascend910B1", "Ascend950PR_9589"])
@pytest.mark.parametrize("kind", ["float16", "float32", "int8"])
def test_moves_are_those_that_the_kernel_issues(kind, name, operand):
    """Blocks of any extent and length, alone in L1 or beside others, transposed or not."""
    there = chip(name)
    for extent, k, step, transposed in product(EXTENTS, LENGTHS, (1, 2), (False, True)):
        if step > 1 and extent * element_type(kind).bits % 256:
            continue  # blocks of a chunk that begin inside a piece of C0 lie apart
        keys = {"trans_a": transposed} if operand == "a" else {"trans_b": not transposed}
        m, n = (extent, 16) if operand == "a" else (16, extent)
        problem = Problem(m=m, n=n, k=k, a=kind, b=kind, chip=name, **keys)
        tiling = tiling_of(m, n, k, step)
        counted = moves(RuleCase(tiling, problem, there), tile_counts(tiling), operand)
        plan = matmul_plan(problem, tiling, there)
        made = issued(plan, operand, extent, k, step * extent)
        assert (1 + counted.more, counted.alone) == made, (extent, k, step, transposed)
