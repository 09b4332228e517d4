"""The fast engine against the reference engine, which is the definition."""

import os
from dataclasses import replace

import numpy as np
import pytest

from cubecore import Problem
from cubecore.chips import chip
from cubecore.errors import RequestError
from cubecore.isa.cube import Mad
from cubecore.isa.fixpipe import CopyMatrixCcToGm
from cubecore.isa.launch import Launch
from cubecore.isa.moves import CopyGmToCbufMultiNd2Nz, LoadCbufToCa, LoadCbufToCb
from cubecore.isa.program import Issue
from cubecore.kernels.matmul import matmul_launch
from cubecore.machine.engines import run_launch
from cubecore.machine.memory import GlobalMemory
from harness import as_stored, make_operands, make_tiling
from kernels.broken import changed
from kernels.cases import brief, draw_operands, draw_problem, draw_tiling

A2 = chip("Ascend910B3")


def both(launch: Launch, operands: dict) -> list[tuple]:
    """Run a launch on both engines; give (C's bytes, its initialised map, findings, engine)."""
    answers = []
    for engine in ("fast", "reference"):
        gm, bases, c = GlobalMemory(), {}, None
        for spec in launch.tensors:
            if spec.output:
                c = gm.allocate(spec.name, spec.size_bytes, zeroed=spec.zeroed)
            tensor = c if spec.output else gm.place(spec.name, operands[spec.name])
            bases[spec.name] = tensor.address
        outcome, ran_on = run_launch(launch, A2, gm, bases, engine)
        findings = [(f.id, f.message, f.count) for f in outcome.findings]
        answers.append((c.buffer.data, c.buffer.valid, findings, ran_on, outcome.issued))
    return answers


def assert_agree(problem, tiling, operands):
    launch = matmul_launch(problem, tiling, A2)
    fast, slow = both(launch, as_stored(problem, operands))
    told = f"{problem}\n{brief(tiling)}"
    assert (fast[3], slow[3]) == ("fast", "reference"), told
    assert np.array_equal(fast[1], slow[1]), told
    written = slow[1] == 1
    assert np.array_equal(fast[0][written], slow[0][written]), told
    assert fast[2] == slow[2] == []
    assert fast[4] == slow[4], told


def sweep(seed: int, count: int, largest: int) -> None:
    print(f"seed {seed}")
    for number in range(count):
        rng = np.random.default_rng([seed, number])
        problem = draw_problem(rng, largest)
        assert_agree(problem, draw_tiling(rng, problem), draw_operands(rng, problem))


def test_both_engines_agree_to_the_bit_on_whole_numbers():
    sweep(int.from_bytes(os.urandom(4), "little"), 60, 120)


@pytest.mark.sweep
def test_both_engines_agree_on_many_more():
    sweep(int.from_bytes(os.urandom(4), "little"), 1500, 300)


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


def broken(change) -> tuple[list[tuple], Problem]:
    problem = Problem(**SHAPE, trans_b=True)
    tiling = make_tiling(problem, **FIELDS)
    launch = changed(matmul_launch(problem, tiling, A2), change)
    return both(launch, make_operands(problem)), problem


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
def test_a_broken_kernel_gives_the_same_answer_on_both(name):
    (fast, slow), _ = broken(BROKEN[name])
    assert fast[2] == slow[2]
    assert np.array_equal(fast[1], slow[1])
    assert np.array_equal(fast[0][fast[1] == 1], slow[0][slow[1] == 1])
    assert fast[4] == slow[4]


@pytest.mark.parametrize("name", ["L0A is left", "B is never loaded", "parameters out of range"])
def test_a_kernel_with_findings_is_left_to_the_reference_engine(name):
    (fast, slow), _ = broken(BROKEN[name])
    assert fast[3] == "reference"
    assert slow[2]


def test_an_operand_that_is_the_output_too_is_left_to_the_reference_engine():
    problem = Problem(m=16, n=16, k=16, c="float16")
    launch = matmul_launch(problem, make_tiling(problem, baseM=16, baseN=16, baseK=16), A2)
    (core,) = launch.cores
    into_a = {v: ("a", o) if name == "c" else (name, o) for v, (name, o) in core.slots.items()}
    launch = replace(launch, cores=(replace(core, slots=into_a),))
    fast, slow = both(launch, make_operands(problem))
    assert fast[3] == slow[3] == "reference"


def test_another_engine_is_refused():
    with pytest.raises(RequestError) as caught:
        run_launch(Launch((), ()), A2, GlobalMemory(), {}, "quick")
    assert str(caught.value) == "engine must be fast or reference, got 'quick'"
