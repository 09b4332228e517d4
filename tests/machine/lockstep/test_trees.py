"""Trees of vector work in lockstep against the reference engine, for groups of any size."""

import itertools

import numpy as np
import pytest

from cubecore.dtypes import element_type
from cubecore.isa.catalogue import instruction_named
from cubecore.isa.declare.instruction import Mem
from cubecore.isa.program.expr import Expr, Var
from cubecore.isa.program.launch import CoreProgram, Launch, TensorSpec
from cubecore.isa.program.tree import LoadScalar, Location
from cubecore.isa.scalar.sync import PipeBarrier, SetFlag, WaitFlag
from cubecore.isa.vector.common.mask import SetVectorMask
from cubecore.kernels.build.builder import Builder
from cubecore.machine.engines import run_launch
from cubecore.machine.memory.buffers import GlobalMemory
from harness import A2

FLOAT, INT = element_type("float32"), element_type("int32")
TRIPS, BLOCK = 3, 1024
ROW = {"n_burst": 1, "len_burst": BLOCK // 32, "src_gap": 0, "dst_gap": 0}


def flags(b, *pipes):
    for src, dst in itertools.pairwise(pipes):
        b.issue(SetFlag(src=src, dst=dst, event_id=0))
        b.issue(WaitFlag(src=src, dst=dst, event_id=0))


def program(*, barrier=True, loads=False):
    """x * 2 + 1, block by block; without the barrier the second step may overtake the first."""
    b = Builder("doubled")
    x, z = b.slot("x"), b.slot("z")
    b.issue(SetVectorMask(mask_high=2**64 - 1, mask_low=2**64 - 1))
    if loads:
        found = Var("found", 99)
        b.issue(instruction_named("copy_gm_to_ubuf")(**ROW), 0, Expr.of(x))
        b.issue(PipeBarrier(on="ALL"))
        b.append(LoadScalar(found, Mem.UB, INT, Expr(0), Location("tree", 1, "test")))
    with b.loop("t", TRIPS) as t:
        b.issue(instruction_named("copy_gm_to_ubuf")(**ROW), 0, Expr.of(x) + t * BLOCK)
        flags(b, "MTE2", "V")
        b.issue(instruction_named("vadd")(dtype=FLOAT, repeat=4), 2048, 0, 0)
        if barrier:
            b.issue(PipeBarrier(on="V"))
        one = int(np.float32(1).view(np.uint32))
        b.issue(instruction_named("vadds")(dtype=FLOAT, repeat=4, value=one), 2048, 2048)
        flags(b, "V", "MTE3")
        b.issue(instruction_named("copy_ubuf_to_gm")(**ROW), Expr.of(z) + t * BLOCK, 2048)
        b.issue(PipeBarrier(on="ALL"))
    return b.finish(), (x, z)


def run(tree, cores, x, engine, overlap=0):
    made, slots = tree
    gm = GlobalMemory()
    held = gm.place("x", x), gm.allocate("z", x.nbytes)
    bases = {"x": held[0].address, "z": held[1].address}
    size = TRIPS * BLOCK
    programs = tuple(
        CoreProgram(
            n // 2,
            made,
            {slots[0]: ("x", n * size), slots[1]: ("z", n * (size - overlap))},
            1 + n % 2,
        )
        for n in range(cores)
    )
    specs = TensorSpec("x", x.nbytes), TensorSpec("z", x.nbytes, output=True)
    outcome, ran = run_launch(Launch(specs, programs), A2, gm, bases, engine)
    written = held[1].buffer.valid.copy()
    return ran, outcome, np.where(written, held[1].buffer.data, 0), written


def assert_alike(tree, cores, x, engine, overlap=0):
    fast, slow = (run(tree, cores, x, which, overlap) for which in ("fast", "reference"))
    assert (fast[0], slow[0]) == (engine, "reference")
    assert fast[1] == slow[1]
    assert np.array_equal(fast[2], slow[2])
    assert np.array_equal(fast[3], slow[3])
    return fast


def values(cores):
    return np.random.default_rng(cores).random(cores * TRIPS * BLOCK // 4).astype(np.float32)


@pytest.mark.parametrize("cores", [1, 2, 40])
def test_groups_of_any_size_leave_the_same(cores):
    x = values(cores)
    _, outcome, data, written = assert_alike(program(), cores, x, "lockstep")
    assert outcome.findings == ()
    assert written.all()
    assert np.array_equal(data.view(np.float32), x * 2 + np.float32(1))


def test_a_race_is_the_reference_engines():
    _, outcome, _, _ = assert_alike(program(barrier=False), 3, values(3), "reference")
    assert {finding.id for finding in outcome.findings} == {"race-raw", "race-waw"}


def test_cores_that_write_the_same_bytes_are_the_reference_engines():
    _, outcome, _, _ = assert_alike(program(), 2, values(2), "reference", overlap=BLOCK)
    assert [finding.id for finding in outcome.findings] == ["race-waw"]


@pytest.mark.parametrize(("differ", "engine"), [(False, "lockstep"), (True, "reference")])
def test_a_value_is_read_together_where_all_cores_read_the_same(differ, engine):
    x = values(2)
    x[TRIPS * BLOCK // 4] = x[0] + differ
    assert_alike(program(loads=True), 2, x, engine)
