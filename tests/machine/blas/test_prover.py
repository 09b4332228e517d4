"""The fast engine against the reference engine, which is the definition."""

import os
from dataclasses import replace

import numpy as np
import pytest

from cubecore import Problem
from cubecore.chips import chip
from cubecore.errors import RequestError
from cubecore.isa.cube.fixpipe import CopyMatrixCcToGm
from cubecore.isa.cube.mad import Mad
from cubecore.isa.mte.copies import CopyGmToCbufMultiNd2Nz, LoadCbufToCa, LoadCbufToCb
from cubecore.isa.program.launch import Launch
from cubecore.isa.program.tree import Issue
from cubecore.kernels.matmul.launch import matmul_launch
from cubecore.machine.engines import run_launch
from cubecore.machine.memory.buffers import GlobalMemory
from harness import as_stored, make_operands, make_tiling
from kernels.broken import changed
from kernels.cases import (
    FORMATS,
    KINDS,
    QUANTISED,
    brief,
    draw_operands,
    draw_problem,
    draw_tiling,
    make,
)
from machine.agreement import answer, assert_agree
from parts import part, strided

A2 = chip("Ascend910B3")


def sweep(seed: int, count: int, largest: int) -> None:
    print(f"seed {seed}")
    for number in range(count):
        rng = np.random.default_rng([seed, number])
        problem = draw_problem(rng, largest)
        tiling = draw_tiling(rng, problem)
        operands = as_stored(problem, draw_operands(rng, problem))
        told = f"{problem}\n{brief(tiling)}"
        assert assert_agree(matmul_launch(problem, tiling, A2), operands, told) == "blas", told


def test_whatever_the_kernel_carries_is_proven_and_agrees_to_the_bit_on_whole_numbers():
    sweep(int.from_bytes(os.urandom(4), "little"), part(80), 120)


@pytest.mark.sweep
def test_many_more_are_proven_and_agree():
    sweep(int.from_bytes(os.urandom(4), "little"), 1500, 300)


@pytest.mark.parametrize("number", strided(range(len(KINDS + QUANTISED)), 2))
@pytest.mark.thinned(9)
def test_every_kind_is_proven(number):
    """In a batch, with ragged tiles, in every format by turns."""
    kind = {"trans_a": False, "trans_b": False} | (KINDS + QUANTISED)[number]
    rng = np.random.default_rng(number)
    problem = make(kind, 49, 65, 80, batch=2, **FORMATS[number % len(FORMATS)])
    tiling = draw_tiling(rng, problem)
    operands = as_stored(problem, draw_operands(rng, problem))
    told = f"{problem}\n{brief(tiling)}"
    assert assert_agree(matmul_launch(problem, tiling, A2), operands, told) == "blas", told


SHAPE = {"m": 80, "n": 96, "k": 112}
FIELDS = {
    "baseM": 32,
    "baseN": 48,
    "baseK": 32,
    "stepKa": 2,
    "stepKb": 2,
    "depthA1": 4,
    "depthB1": 4,
    "dbL0A": 2,
    "dbL0B": 2,
    "dbL0C": 2,
}


def broken(change) -> tuple[Launch, dict]:
    problem = Problem(**SHAPE, trans_b=True)
    launch = matmul_launch(problem, make_tiling(problem, **FIELDS), A2)
    return changed(launch, change), make_operands(problem)


def shifted(kind, operand: int, distance: int):
    def change(issue: Issue) -> Issue:
        if not isinstance(issue.template, kind):
            return issue
        at = list(issue.addresses)
        at[operand] = at[operand] + distance
        return replace(issue, addresses=tuple(at))

    return change


def resized(kind, **fields):
    def change(issue: Issue) -> Issue:
        if not isinstance(issue.template, kind):
            return issue
        return replace(issue, template=replace(issue.template, **fields))

    return change


def without(kind):
    return lambda issue: None if isinstance(issue.template, kind) else issue


BROKEN = {
    "A is never loaded": without(LoadCbufToCa),
    "B is never loaded": without(LoadCbufToCb),
    "L1 is never filled": without(CopyGmToCbufMultiNd2Nz),
    "nothing is multiplied": without(Mad),
    "nothing is stored": without(CopyMatrixCcToGm),
    "A's fractals lie one further": shifted(LoadCbufToCa, 0, 512),
    "A's fractals come from one further": shifted(LoadCbufToCa, 1, 512),
    "B comes misaligned": shifted(LoadCbufToCb, 1, 16),
    "L0A is left": shifted(LoadCbufToCa, 0, 1 << 16),
    "global memory is left": shifted(CopyGmToCbufMultiNd2Nz, 1, 2 * 80 * 112),
    "rows are missing": resized(CopyGmToCbufMultiNd2Nz, n_value=7),
    "columns are missing": resized(CopyGmToCbufMultiNd2Nz, d_value=9),
    "K is longer than what was loaded": resized(Mad, k=48),
    "nothing is accumulated": resized(Mad, c_matrix_init_val=True),
    "the start was never written": resized(Mad, c_matrix_init_val=False, c_matrix_source=False),
    "C is stored one element further": shifted(CopyMatrixCcToGm, 0, 4),
    "C is stored half": resized(CopyMatrixCcToGm, n_size=8),
    "C comes from elsewhere": shifted(CopyMatrixCcToGm, 1, 1024),
    "C's columns lie closer": resized(CopyMatrixCcToGm, src_stride=16),
    "parameters out of range": resized(Mad, k=5000),
}


@pytest.mark.parametrize("name", BROKEN)
@pytest.mark.thinned(3)
def test_a_broken_kernel_gives_the_same_answer_on_both(name):
    assert_agree(*broken(BROKEN[name]), name)


@pytest.mark.parametrize("name", ["L0A is left", "B is never loaded", "parameters out of range"])
def test_a_kernel_with_findings_is_left_to_the_reference_engine(name):
    assert assert_agree(*broken(BROKEN[name])) == "reference"
    assert answer(*broken(BROKEN[name]), "reference").findings


def test_an_operand_that_is_the_output_too_is_left_to_the_reference_engine():
    problem = Problem(m=16, n=16, k=16, c="float16")
    launch = matmul_launch(problem, make_tiling(problem, baseM=16, baseN=16, baseK=16), A2)
    (core,) = launch.cores
    into_a = {v: ("a", o) if name == "c" else (name, o) for v, (name, o) in core.slots.items()}
    launch = replace(launch, cores=(replace(core, slots=into_a),))
    assert assert_agree(launch, make_operands(problem)) == "reference"


def run(problem: Problem, operands: dict, **fields: int) -> np.ndarray:
    """Return C, after both engines have agreed on it and the fast one has proven it."""
    launch = matmul_launch(problem, make_tiling(problem, **fields), A2)
    flat = as_stored(problem, operands)
    assert assert_agree(launch, flat) == "blas"
    c = answer(launch, flat, "fast").data
    return c.view(problem.c_type.numpy).reshape(problem.m, problem.n)


def test_float32_is_rounded_to_hf32_first():
    """Of a number from 8192 to 16383 HF32 keeps 12 bits: it becomes a multiple of 4."""
    rng = np.random.default_rng(5)
    problem = Problem(m=20, n=18, k=40, a="float32", b="float32", hf32=True, trans_a=True)
    a = rng.integers(8192, 16384, (40, 20)).astype(np.float32)
    b = rng.integers(-1, 2, (40, 18)).astype(np.float32)
    rounded = np.rint(a.astype(np.float64).T / 4) * 4
    c = run(problem, {"a": a, "b": b})
    assert (c == rounded @ b).all()
    assert (c != a.astype(np.float64).T @ b).any()


def test_int8_sums_that_may_leave_int32_are_clamped_after_each_mad():
    """Ones, then minus ones, over K = 64 in base blocks of 32, on a bias near the limit."""
    a = np.ones((16, 64), np.int8)
    a[:, 32:] = -1
    operands = {"a": a, "b": np.ones((64, 16), np.int8)}
    operands["bias"] = np.full(16, 2**31 - 5, np.int32)
    problem = Problem(m=16, n=16, k=64, a="int8", b="int8", bias="int32")
    assert (run(problem, operands, baseK=32) == 2**31 - 1 - 32).all()
    assert (run(problem, operands, baseK=64) == 2**31 - 5).all()


def test_another_engine_is_refused():
    with pytest.raises(RequestError) as caught:
        run_launch(Launch((), ()), A2, GlobalMemory(), {}, "quick")
    assert str(caught.value) == "engine must be fast, blas, lockstep or reference, got 'quick'"
