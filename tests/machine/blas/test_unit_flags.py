"""What the fast engine follows, and what it leaves to the reference engine.

Each case is the matmul kernel with an instruction before it, or with other parameters.
"""

from dataclasses import replace

import numpy as np
import pytest

from cubecore import Problem
from cubecore.chips import chip
from cubecore.dtypes import FLOAT16, FLOAT32
from cubecore.isa.cube.fixpipe import CopyMatrixCcToGm
from cubecore.isa.cube.fixpipe_registers import SetNdPara
from cubecore.isa.cube.mad import Mad
from cubecore.isa.declare.instruction import Instruction
from cubecore.isa.declare.scale_registers import SetAtomic, SetFpc, SetQuantPre
from cubecore.isa.program.launch import Launch
from cubecore.isa.program.tree import Issue, Location, Program
from cubecore.isa.scalar.control_registers import SetCtrl, SetHf32Mode
from cubecore.kernels.matmul.launch import matmul_launch
from cubecore.machine.engines import run_launch
from cubecore.machine.memory.buffers import GlobalMemory
from harness import make_operands, make_tiling
from kernels.broken import changed

A2 = chip("Ascend910B3")
HERE = Location("test_unit_flags.py", 1, "test")
PROBLEM = Problem(m=40, n=48, k=64, c="float16")
FIELDS = {"baseM": 32, "baseN": 48, "baseK": 32, "stepKa": 2, "stepKb": 2} | {
    "depthA1": 2,
    "depthB1": 2,
}


def kernel() -> Launch:
    return matmul_launch(PROBLEM, make_tiling(PROBLEM, **FIELDS), A2)


def led_by(launch: Launch, *templates: Instruction) -> Launch:
    """Return the launch with instructions before each core's own."""
    before = tuple(Issue(template, (), HERE) for template in templates)
    made: dict[Program, Program] = {}
    for program in launch.programs:
        made[program] = Program((*before, *program.body), program.slots, program.name)
    cores = [replace(core, program=made[core.program]) for core in launch.cores]
    return replace(launch, cores=tuple(cores))


def with_fields(kind: type[Instruction], **fields) -> Launch:
    def change(issue: Issue) -> Issue:
        if not isinstance(issue.template, kind):
            return issue
        return replace(issue, template=replace(issue.template, **fields))

    return changed(kernel(), change)


def outcome_of(launch: Launch, engine: str, c_holds: float = 0.0):
    """Run over a C that holds one value; return (engine, C, its map, messages)."""
    gm, bases, c = GlobalMemory(), {}, None
    operands = make_operands(PROBLEM)
    for spec in launch.tensors:
        if spec.output:
            values = np.full(spec.size_bytes // 2, c_holds, np.float16)
            c = tensor = gm.allocate_from(spec.name, values)
        else:
            tensor = gm.allocate_from(spec.name, operands[spec.name])
        bases[spec.name] = tensor.address
    outcome, ran_on = run_launch(launch, A2, gm, bases, engine)
    assert c is not None
    messages = [finding.message for finding in outcome.findings]
    return ran_on, c.buffer.data.copy(), c.buffer.valid.copy(), messages


def assert_same(launch: Launch, expected_engine: str) -> np.ndarray:
    fast, slow = (outcome_of(launch, engine, 5.0) for engine in ("fast", "reference"))
    assert (fast[0], slow[0]) == (expected_engine, "reference")
    assert np.array_equal(fast[1], slow[1])
    assert np.array_equal(fast[2], slow[2])
    assert fast[3] == slow[3]
    return fast[1]


FOLLOWED = {
    "atomic add": SetAtomic(operation="add", dtype=FLOAT16),
    "atomic max": SetAtomic(operation="max", dtype=FLOAT16),
    "atomic min": SetAtomic(operation="min", dtype=FLOAT16),
    "HF32, which half ignores": SetHf32Mode(enable=True),
    "a scale that no store takes": SetQuantPre(scale=0x3F800000),
    "scales that no store takes": SetFpc(scales_at=0),
    "infinities": SetCtrl(value=1 << 48),
    "one matrix": SetNdPara(nd_num=1, src_nd_stride=0, dst_nd_stride=0),
}


@pytest.mark.parametrize("name", FOLLOWED)
def test_a_register_is_followed(name):
    assert_same(led_by(kernel(), FOLLOWED[name]), "blas")


LEFT = {
    "an atomic of another type": SetAtomic(operation="add", dtype=FLOAT32),
    "several matrices": SetNdPara(nd_num=2, src_nd_stride=0, dst_nd_stride=0),
}


@pytest.mark.parametrize("name", LEFT)
def test_a_register_that_the_engine_does_not_model_leaves_it_to_the_reference_engine(name):
    assert_same(led_by(kernel(), LEFT[name]), "reference")


def test_an_atomic_sum_is_not_lost():
    plain = assert_same(kernel(), "blas").view(np.float16).astype(np.float64)
    launch = led_by(kernel(), SetAtomic(operation="add", dtype=FLOAT16))
    added = assert_same(launch, "blas").view(np.float16).astype(np.float64)
    assert np.array_equal(added, plain + 5)


CHANGED = {
    "a scale that nobody set": with_fields(CopyMatrixCcToGm, quant_pre="QF322B8_PRE"),
    "scales that nobody set": with_fields(CopyMatrixCcToGm, quant_pre="VQF322B8_PRE"),
    "NZ beyond the tensor": with_fields(CopyMatrixCcToGm, nz2nd_en=False, dst_stride=64),
}


@pytest.mark.parametrize("name", CHANGED)
def test_a_store_with_findings_is_left_to_the_reference_engine(name):
    assert_same(CHANGED[name], "reference")


SAME = {
    "mad with unit flag 2": with_fields(Mad, unit_flag=2),
    "mad with unit flag 3": with_fields(Mad, unit_flag=3),
    "fixpipe with unit flag 3": with_fields(CopyMatrixCcToGm, unit_flag=3),
    "K direction alignment of half": with_fields(Mad, k_direction_align=True),
}


@pytest.mark.parametrize("name", SAME)
def test_what_changes_no_value_stays_fast(name):
    assert np.array_equal(assert_same(SAME[name], "blas"), assert_same(kernel(), "blas"))
