"""In pairs: the kernel that is right, and the same kernel broken, which `run` must not pass."""

from dataclasses import replace
from importlib import import_module

import numpy as np
import pytest

import cubecore
from cubecore.isa.cube.fixpipe import CopyMatrixCcToGm
from cubecore.isa.cube.mad import CopyCbufToBt, Mad
from cubecore.isa.declare.instruction import Mem
from cubecore.isa.mte.copies import (
    CopyGmToCbufMultiNd2Nz,
    LoadCbufToCa,
    LoadCbufToCaTranspose,
    LoadCbufToCb,
    LoadCbufToCbTranspose,
)
from cubecore.isa.scalar.control_registers import ScalarWork
from cubecore.isa.scalar.sync import Sync
from cubecore.kernels.matmul.launch import matmul_launch
from cubecore.tiling.model.problem import Problem
from harness import A2, make_tiling
from kernels.broken import changed, leaves
from parts import stride

HALF = Problem(m=50, n=70, k=100, a="float16", bias="float32")
INT8 = Problem(m=50, n=70, k=100, a="int8", bias="int32", trans_a=True, trans_b=True)
WALK = dict(  # noqa: C408 - fields of a tiling read better so
    baseM=32, baseN=32, baseK=32, depthA1=2, depthB1=2, dbL0A=2, dbL0B=2, dbL0C=2, iterateOrder=1
)
COPIES = (
    CopyGmToCbufMultiNd2Nz,
    LoadCbufToCa,
    LoadCbufToCb,
    LoadCbufToCaTranspose,
    LoadCbufToCbTranspose,
    CopyCbufToBt,
    CopyMatrixCcToGm,
    Mad,
)
USED = {
    "half": (HALF, (LoadCbufToCa, LoadCbufToCbTranspose)),
    "int8": (INT8, (LoadCbufToCaTranspose, LoadCbufToCb)),
}
both = pytest.mark.parametrize("problem", [HALF, INT8], ids=["half", "int8"])


def kinds_of(problem):
    """Return the classes of copies and products that the kernel of a problem issues."""
    found = leaves(matmul_launch(problem, make_tiling(problem, **WALK), A2))
    return sorted({type(leaf.template) for leaf in found} & set(COPIES), key=lambda c: c.__name__)


each_kind = pytest.mark.parametrize(
    ("problem", "kind"),
    [(problem, kind) for problem in (HALF, INT8) for kind in kinds_of(problem)],
    ids=lambda x: getattr(x, "__name__", None) or x.a,
)


@pytest.fixture
def run_changed(monkeypatch):
    """Return a function that runs a problem with its launch changed."""
    module = import_module("cubecore.workflows.run")

    def run(problem, change):
        def launch(*args):
            return changed(matmul_launch(*args), change)

        monkeypatch.setattr(module, "matmul_launch", launch)
        with np.errstate(all="ignore"):
            return cubecore.run(problem, tiling=make_tiling(problem, **WALK))

    return run


def assert_caught(answer):
    assert not answer.verified
    assert answer.findings or answer.verification.worst > 1


@both
def test_the_right_kernel_is_verified(run_changed, problem):
    answer = run_changed(problem, lambda leaf: leaf)
    assert answer.verified
    assert answer.findings == ()


@each_kind
@pytest.mark.thinned(3)
def test_a_kernel_without_one_kind_of_instruction_is_not(run_changed, problem, kind):
    def drop(leaf):
        return None if isinstance(leaf.template, kind) else leaf

    assert_caught(run_changed(problem, drop))


@each_kind
@pytest.mark.parametrize("place", [0, 1], ids=["destination", "source"])
@pytest.mark.thinned(4)
def test_an_address_32_bytes_off_is_not_verified(run_changed, problem, kind, place):
    def shift(leaf):
        if not isinstance(leaf.template, kind):
            return leaf
        at = list(leaf.addresses)
        at[place] = at[place] + 32
        return replace(leaf, addresses=tuple(at))

    assert_caught(run_changed(problem, shift))


SHRUNK = [
    (CopyGmToCbufMultiNd2Nz, "d_value"),
    (CopyGmToCbufMultiNd2Nz, "n_value"),
    (Mad, "m"),
    (Mad, "k"),
    (Mad, "n"),
    (CopyMatrixCcToGm, "m_size"),
    (CopyMatrixCcToGm, "n_size"),
]


@both
@pytest.mark.parametrize(("kind", "field"), SHRUNK, ids=lambda x: getattr(x, "__name__", x))
@pytest.mark.thinned(3)
def test_an_extent_that_is_one_short_is_not_verified(run_changed, problem, kind, field):
    def shrink(leaf):
        if not isinstance(leaf.template, kind) or getattr(leaf.template, field) == 1:
            return leaf
        template = replace(leaf.template, **{field: getattr(leaf.template, field) - 1})
        return replace(leaf, template=template)

    assert_caught(run_changed(problem, shrink))


@pytest.mark.parametrize("name", USED)
def test_one_fractal_too_few_is_not_verified(run_changed, name):
    problem, kinds = USED[name]

    def shrink(leaf):
        if not isinstance(leaf.template, kinds) or leaf.template.repeat == 1:
            return leaf
        return replace(leaf, template=replace(leaf.template, repeat=leaf.template.repeat - 1))

    assert_caught(run_changed(problem, shrink))


@both
@pytest.mark.parametrize("mem", [Mem.L0A, Mem.L0B, Mem.L0C, Mem.L1], ids=lambda m: m.label)
def test_a_reader_of_the_other_buffer_is_not_verified(run_changed, problem, mem):
    """Whoever reads a doubled buffer takes the half that was filled for another step."""
    half = {
        Mem.L0A: A2.l0a_bytes // 2,
        Mem.L0B: A2.l0b_bytes // 2,
        Mem.L0C: A2.l0c_bytes // 2,
        Mem.L1: 32 * 32 * problem.a_type.size_bytes,
    }[mem]

    def swap(leaf):
        at = list(leaf.addresses)
        for place, operand in enumerate(leaf.template.operands()):
            if operand.mem is mem and operand.access.reads and not operand.access.writes:
                at[place] = (at[place] + half) % (2 * half)
        return replace(leaf, addresses=tuple(at))

    assert_caught(run_changed(problem, swap))


class Reached:
    """A sink that keeps which leaves a walk comes by."""

    def __init__(self):
        self.leaves = set()

    def handler(self, issue):
        return lambda *_: self.leaves.add(id(issue))


@both
@pytest.mark.thinned(2)
def test_every_single_leaf_that_is_reached_is_needed(run_changed, problem):
    """One leaf of the tree dropped at a time: no instruction is idle, and no loss unnoticed.

    K has more chunks than buffers, so that no buffer holds by luck what was not loaded. Without
    the sweeps, one leaf of three.
    """
    launch = matmul_launch(problem, make_tiling(problem, **WALK), A2)
    reached = Reached()
    (core,) = launch.cores
    core.program.run(reached, core.addresses({t.name: 0 for t in launch.tensors}))
    unnoticed = []
    tried = [
        (number, leaf)
        for number, leaf in enumerate(leaves(launch))
        if not isinstance(leaf.template, Sync | ScalarWork) and id(leaf) in reached.leaves
    ]
    for number, leaf in tried[:: stride()]:
        count = iter(range(10_000))

        def drop(leaf, count=count, number=number):
            return None if next(count) == number else leaf

        if run_changed(problem, drop).verified:
            unnoticed.append(f"{leaf.template} at {leaf.location}")
    assert not unnoticed
