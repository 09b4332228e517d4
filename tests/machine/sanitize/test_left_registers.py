"""Registers that vector instructions leave: who reads them must wait; right kernels and broken."""

import numpy as np
import pytest

from cubecore import kernel
from cubecore.isa.catalogue import instructions
from cubecore.isa.declare.instruction import Instruction
from cubecore.isa.declare.registers import LEFT, Registers
from frontends.kernels.test_kernel import line_of

A = np.arange(128, dtype=np.float32)


def load(core, a, dtype="float"):
    x, y = core.ubuf(dtype, 64), core.ubuf(dtype, 64)
    core.asc_copy_gm2ub(x, a.cast(dtype), 64 * x.dtype.size_bytes)
    core.asc_copy_gm2ub(y, a.cast(dtype) + 64, 64 * x.dtype.size_bytes)
    core.asc_sync()
    return x, y


@kernel
def squeezes(core, a, waits):
    """RSVD_CNT."""
    x, y = load(core, a, "uint32")
    z = core.ubuf("uint32", 64)
    core.asc_reduce(z, x, y, 1, 1, 1, 8, 8)
    if waits:
        core.asc_sync_notify("V", "S", 0)
        core.asc_sync_wait("V", "S", 0)
    core.asc_get_rsvd_count()


@kernel
def extremes(core, a, waits):
    """MAX_MIN_CNT."""
    x, y = load(core, a)
    core.asc_repeat_reduce_max_only_value(y, x, 64)
    if waits:
        core.asc_sync_notify("V", "S", 0)
        core.asc_sync_wait("V", "S", 0)
    core.asc_get_reduce_max_cnt()


@kernel
def selects(core, a, waits):
    """CMPMASK, all on V."""
    x, y = load(core, a)
    z = core.ubuf("float", 64)
    core.asc_gt(x, y, 1, 1, 1, 1, 8, 8, 8)
    if waits:
        core.asc_sync_pipe("V")
    core.asc_select(z, x, y, 1, 1, 1, 1, 8, 8, 8)


@kernel
def selects_again(core, a, waits):
    """CMPMASK is not replaced before it was read."""
    x, y = load(core, a)
    z = core.ubuf("float", 64)
    core.asc_gt(x, y, 1, 1, 1, 1, 8, 8, 8)
    core.asc_sync_pipe("V")
    core.asc_select(z, x, y, 1, 1, 1, 1, 8, 8, 8)
    if waits:
        core.asc_sync_pipe("V")
    core.asc_lt(x, y, 1, 1, 1, 1, 8, 8, 8)


CASES = [
    (squeezes, "race-raw", ("asc_reduce", "asc_get_rsvd_count"), "vreducev2", "RSVD_CNT"),
    (extremes, "race-raw", ("_only_value", "asc_get_reduce"), "vcmax", "MAX_MIN_CNT"),
    (selects, "race-raw", ("asc_gt", "asc_select"), "vcmp_gt", "CMPMASK"),
    (selects_again, "race-war", ("asc_select", "asc_lt"), "vsel", "CMPMASK"),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case[0].name)
@pytest.mark.parametrize("engine", ["fast", "reference"])
def test_pairs(case, engine):
    made, kind, lines, instruction, register = case
    assert made.using(engine=engine)[2](A, True).findings == ()
    run = made.using(engine=engine)[2](A, False)
    (finding,) = run.findings
    assert (finding.id, finding.count) == (kind, 2)
    earlier, later = finding.accesses
    assert (earlier.instruction, earlier.operand) == (instruction, register)
    found = [access.location.line for access in (earlier, later)]
    assert found == [line_of(made, text) for text in lines]
    assert later.memory == "the special registers"
    assert made.using(checks="memcheck,initcheck,synccheck")[1](A, False).findings == ()


def test_the_sentence():
    (finding,) = extremes[1](A, False).findings
    first, second = finding.accesses
    assert finding.message == (
        "get_max_min_cnt.MAX_MIN_CNT must read bytes [32, 48) of the special registers after "
        f"vcmax.MAX_MIN_CNT wrote them, got no order between V ({first.location}) and S "
        f"({second.location}); set_flag(V, S) after the write and wait_flag(V, S) before the read"
    )


def test_what_nobody_reads_may_be_left_twice():
    @kernel
    def twice(core, a):
        x, y = load(core, a)
        core.asc_repeat_reduce_max_only_value(y, x, 32)
        core.asc_repeat_reduce_max_only_value(y + 32, x, 32)

    assert twice[1](A).findings == ()


def test_a_vector_unit_that_stands_still_has_left_nothing():
    """The writer waits for a flag that is raised behind the reader: the flag is late."""

    @kernel
    def holds(core, a):
        x, y = load(core, a)
        core.asc_sync_wait("MTE2", "V", 1)
        core.asc_repeat_reduce_max_only_value(y, x, 64)
        core.asc_get_reduce_max_cnt()
        core.asc_sync_notify("MTE2", "V", 1)

    assert {f.id for f in holds[1](A).findings} == {"flag-late"}


def test_every_instruction_that_leaves_or_reads_a_register_names_it():
    """What changes or reads a register of `LEFT` is found by trying, not by the declaration."""
    for cls in instructions().values():
        leaves = cls.leaves is not Instruction.leaves
        assert bool(cls.register) >= (leaves or cls.reads_left), cls.name
        assert cls.register in {"", *LEFT}
    other = Registers(kept=1, extreme=(2, 3), merged=(4, 5, 6, 7), cmp_mask=8, stored_by_ar=9)
    for cls in instructions().values():
        if cls.result is not Instruction.result and not cls.declared:
            try:
                changed = cls().result(other) != cls().result(Registers())
            except TypeError:
                continue
            assert changed == bool(cls.register), cls.name
