"""What racecheck and synccheck say of a recorded trace: what they say of the run itself."""

import numpy as np
import pytest

import cubecore
from cubecore.machine.memory.buffers import GlobalMemory
from cubecore.machine.sanitizer.findings import CHECKS
from cubecore.machine.sanitizer.trace import trace_findings

FULL = 2**64 - 1
ORDERED = frozenset({"racecheck", "synccheck"})


@cubecore.kernel(outputs="z", trace=True)
def doubled(core, x, z, missing):
    a, b = core.ubuf("half", 128), core.ubuf("half", 128)
    for turn in range(2):
        core.asc_set_vector_mask(FULL, FULL >> turn)
        core.asc_copy_gm2ub(a, x + 128 * turn, 256)
        if missing != "notify":
            core.asc_sync_notify("PIPE_MTE2", "PIPE_V", 0)
        if missing != "flags":
            core.asc_sync_wait("PIPE_MTE2", "PIPE_V", 0)
        core.asc_duplicate(b, 0.0, 1, 1, 8)
        if missing != "barrier":
            core.asc_sync_pipe("PIPE_V")
        core.asc_add(b, a, a, 1, 1, 1, 1, 8, 8, 8)
        core.asc_sync_notify("PIPE_V", "PIPE_MTE3", 0)
        core.asc_sync_wait("PIPE_V", "PIPE_MTE3", 0)
        core.asc_copy_ub2gm(z + 128 * turn, b, 256)
        if missing != "back":
            core.asc_sync_notify("PIPE_MTE3", "PIPE_MTE2", 1)
            core.asc_sync_wait("PIPE_MTE3", "PIPE_MTE2", 1)


@pytest.mark.parametrize("missing", ["", "flags", "notify", "barrier", "back"])
def test_a_trace_is_judged_as_its_run_is(missing):
    x = np.ones(256, np.float16)
    run = doubled[1](x, np.zeros(256, np.float16), missing)
    (core,) = run.traces
    gm = GlobalMemory()
    for _, tensor in run.tensors:
        assert gm.allocate(tensor.name, tensor.buffer.size_bytes).address == tensor.address
    found = trace_findings(run.traces[core], core, gm, frozenset(CHECKS))
    expected = tuple(f for f in run.findings if f.check in ORDERED)
    assert found == expected
    assert bool(found) == bool(missing)
