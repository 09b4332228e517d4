"""Rows that start off a boundary, against a walk over every row by hand."""

import random
from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType

import pytest

from cubecore.chips import chip, costs
from cubecore.isa.declare.instruction import GlobalTraffic
from cubecore.isa.mte.copies import CopyGmToCbufMultiNd2Nz
from cubecore.isa.program.expr import Expr, Var
from cubecore.kernels.matmul.launch import matmul_launch
from cubecore.tiling.cost.closed_form import predict
from cubecore.tiling.model.problem import Problem
from cubecore.tiling.model.tcubetiling import TCubeTiling
from cubecore.tiling.solver.solver import solve
from cubecore.timing.launch import time_launch
from cubecore.timing.memory.row_alignment import off_cycles
from timing.clock import HALF, ROUND, busy, clock_of, issue

TABLE = {"128": 0.5, "64": 1.0, "32": 1.25, "16": 2.0}
OFF = replace(ROUND, gm_to_l1_misaligned_block_cycles=MappingProxyType(TABLE))
SLOT, I, J = Var("x", 0), Var("i", 1), Var("j", 2)


def row_cycles(start: int, size: int, table: Mapping[str, float] = TABLE) -> float:
    """A row that reaches over a 256 B boundary which it does not start on: each 32 B of it."""
    if start % 256 == 0 or start // 256 == (start + size - 1) // 256:
        return 0.0
    at = next(b for b in (128, 64, 32, 16, 1) if start % b == 0)
    return -(-size // 32) * table[str(max(at, 16))]


def test_every_start_and_length():
    rng = random.Random(7)
    for start in range(0, 512, 2):
        size = rng.choice([32, 64, 96, 128, 160, 256, 288, 640, 1024, rng.randint(1, 700)])
        assert costs.row_start_cycles(OFF, start, size) == pytest.approx(row_cycles(start, size))


@pytest.mark.parametrize(("step", "pitch"), [(640, 12288), (512, 12288), (96, 512), (640, 12290)])
def test_a_leaf_has_the_mean_of_where_its_loops_lead(step, pitch):
    """Sixteen rows 640 B long from slot + i * step, i of any size; unequal rows cost elsewhere."""
    traffic = GlobalTraffic(16 * 640, 640, writes=False, pitch_bytes=pitch)
    address = Expr.of(SLOT) + Expr.of(I) * step + Expr.of(J) * 4096
    for slot in (0, 64, 128, 1280):
        each = [row_cycles(slot + i * step, 640) for i in range(256)]
        wanted = round(16 * sum(each) / 256) if pitch % 256 == 0 else 0
        assert off_cycles(traffic, address, {SLOT: slot}, OFF) == wanted


def test_a_load_is_longer_by_it():
    """8 rows of 640 B, off a 256 B boundary by 128 B or not: 8 x 20 x 0.5 cycles."""
    nd2nz = CopyGmToCbufMultiNd2Nz(
        dtype=HALF, n_value=8, d_value=320, src_d_value=6144, dst_nz_c0_stride=8
    )

    def cycles(first: int) -> int:
        return busy(clock_of(issue(nd2nz, 0, first), on=OFF))["MTE2"]

    assert cycles(640) - cycles(0) == cycles(128) - cycles(256) == 80
    assert cycles(1280) == cycles(0)


@pytest.mark.parametrize("columns", [256, 320, 288, 384])
def test_cores_whose_shares_start_otherwise_are_timed_apart(columns):
    """Eight cores with a block of B's columns each: every row of K starts where its block does."""
    soc = replace(chip("Ascend910B3"), hbm_bytes_per_second=10**15, hbm_latency_cycles=5)
    k, cores = 4096, 8
    plain = replace(soc, gm_to_l1_misaligned_block_cycles=MappingProxyType({}))
    problem = Problem(chip=soc.name, m=16, n=columns * cores, k=k, cores=cores)
    planned = solve(problem, soc, 1).best.tiling
    shares = {"usedCoreNum": cores, "singleCoreM": 16, "singleCoreN": columns, "singleCoreK": k}
    blocks = {"baseM": 16, "baseN": columns, "baseK": 32, "stepM": 1, "stepN": 1, "dbL0C": 1}
    steps = {"stepKa": 4, "stepKb": 4, "depthA1": 8, "depthB1": 8, "dbL0A": 2, "dbL0B": 2}
    launch = matmul_launch(problem, replace(planned, **shares, **blocks, **steps), soc)
    fast, slow = (
        {
            core: group.busy_cycles["MTE2"]
            for group in time_launch(launch, on).groups
            for core in group.cores
        }
        for on in (plain, soc)
    )
    table = soc.gm_to_l1_misaligned_block_cycles
    for core in range(cores):
        wanted = k * row_cycles(core * columns * 2, columns * 2, table)
        assert slow[core] - fast[core] == pytest.approx(wanted, rel=0.02, abs=300)
    assert len({slow[core] for core in range(cores)}) == len(
        {row_cycles(core * columns * 2, columns * 2) for core in range(cores)}
    )


def closed(problem: Problem, tiling: TCubeTiling, table: dict[str, float]) -> int:
    soc = replace(chip(problem.chip), gm_to_l1_misaligned_block_cycles=MappingProxyType(table))
    return predict(tiling, problem, soc).pipes["MTE2"]


@pytest.mark.parametrize(
    ("columns", "base"), [(512, 256), (320, 320), (960, 320), (640, 160), (288, 288), (1152, 144)]
)
def test_the_closed_form_has_the_slowest_core(columns, base):
    """B's columns in blocks of `base`: the mean over a core's blocks, or where its one begins."""
    k, cores = 1024, 8
    problem = Problem(chip="Ascend910B3", m=16, n=columns * cores, k=k, cores=cores)
    planned = solve(problem, chip(problem.chip), 1).best.tiling
    shares = {"usedCoreNum": cores, "singleCoreM": 16, "singleCoreN": columns, "singleCoreK": k}
    blocks = {"baseM": 16, "baseN": base, "baseK": 32, "stepM": 1, "stepN": 1, "dbL0C": 1}
    steps = {"stepKa": 4, "stepKb": 4, "depthA1": 8, "depthB1": 8, "iterateOrder": 0}
    tiling = replace(planned, **shares, **blocks, **steps)
    found = closed(problem, tiling, TABLE) - closed(problem, tiling, {})
    each = [
        sum(row_cycles((core * columns + at) * 2, base * 2) for at in range(0, columns, base))
        for core in range(cores)
    ]
    if columns // base > 1:  # blocks are taken to start anywhere
        each = [sum(row_cycles(i * base * 2, base * 2) for i in range(128)) / 128 * columns / base]
    assert found == pytest.approx(k * max(each), rel=0.01, abs=2)
