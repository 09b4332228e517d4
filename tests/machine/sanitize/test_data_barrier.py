"""asc_sync_data_barrier: which accesses it orders, in every order of the queues."""

import numpy as np
import pytest

from cubecore.chips import chip
from cubecore.dtypes import element_type
from cubecore.isa.catalogue import instruction_named
from cubecore.isa.program.topology import CoreId
from cubecore.isa.program.tree import Location
from cubecore.isa.scalar.sync import Dsb
from cubecore.machine.execute.scheduler import Task, run
from cubecore.machine.finding_kinds import CHECKS
from cubecore.machine.memory.buffers import GlobalMemory
from cubecore.timing.pipes.queues import NAMES

A2 = chip("Ascend910B3")
INT16 = element_type("int16")
FIRST = {
    # an access of one pipe and what must be ordered behind it: (issues, its memories)
    "MTE2": ("copy_gm_to_ubuf", {"DSB_ALL", "DSB_DDR", "DSB_UB"}),
    "V": ("vnot", {"DSB_ALL", "DSB_UB"}),
}


def messages(first: str, barrier: str | None, order: str) -> tuple[list[str], bytes]:
    """What is found and stored when `first` writes UB and MTE3 stores it behind the barrier."""
    gm = GlobalMemory()
    source = gm.allocate_from("source", np.arange(64, dtype=np.int16))
    target = gm.allocate("target", 128)

    def body(core):
        def issue(name, addresses, line, **params):
            template = instruction_named(name)(**params)
            core.record(template, addresses, Location("kernel.py", line, ""))

        issue("copy_gm_to_ubuf", (0, source.address), 1, n_burst=1, len_burst=4)
        if first == "V":
            issue("pipe_barrier", (), 2, on="ALL")
            issue("set_vector_mask", (), 3, mask_high=0, mask_low=2**64 - 1)
            issue("vnot", (0, 0), 4, dtype=INT16)
        if barrier:
            issue("dsb", (), 5, memory=barrier)
        issue("copy_ubuf_to_gm", (target.address, 0), 6, n_burst=1, len_burst=4)

    tasks = [Task(CoreId(0, 1), body)]
    outcome = run(A2, gm, tasks, checks=frozenset(CHECKS), order=order)
    return [f.id for f in outcome.findings], target.buffer.data.tobytes()


@pytest.mark.parametrize("first", FIRST)
@pytest.mark.parametrize("barrier", [None, "DSB_ALL", "DSB_DDR", "DSB_UB"])
def test_what_a_barrier_orders(first, barrier):
    """A barrier that is for another memory leaves the race, and the late order shows it."""
    _, enough = FIRST[first]
    expected = np.arange(64, dtype=np.int16)
    expected = ~expected if first == "V" else expected
    found, stored = messages(first, barrier, "program")
    assert stored == expected.tobytes()
    late = messages(first, barrier, "late")[1]
    if barrier in enough:
        assert found == []
        assert late == expected.tobytes()
    else:
        assert found == ["race-raw"]
        assert late != expected.tobytes()


def test_every_pipe_is_one_of_those_that_some_barrier_completes():
    assert set(Dsb(memory="DSB_ALL").pipes) == set(NAMES)
    assert set(Dsb(memory="DSB_DDR").pipes) == {"S", "MTE1", "MTE2", "MTE3", "FIX"}
    assert set(Dsb(memory="DSB_UB").pipes) == {"S", "V", "MTE2", "MTE3"}
