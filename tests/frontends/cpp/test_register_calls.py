"""Each name of the C API on registers does in Python kernels what it does in C."""

import numpy as np
import pytest

import cubecore
from cubecore.isa.vector.registers.c_api.names import c_names
from frontends.cpp.cpp_kernels import kernels, needs_compiler
from frontends.cpp.register_calls import END, bodies, c_text, image, python_function

pytestmark = needs_compiler
CHIP = "Ascend950PR_9589"
BODIES = bodies()
SILENT = {"LocalMemBar", "ClearSpr", "LoadUnAlignPre", "StoreUnAlignPost"}
"""Instructions that change nothing that a body shows."""
KERNEL = """
  __ubuf__ uint8_t* u = (__ubuf__ uint8_t*)0;
  asc_copy_gm2ub((__ubuf__ void*)u, (__gm__ void*)x, END);
  SetFlag<HardEvent::MTE2_V>(0); WaitFlag<HardEvent::MTE2_V>(0);
  switch (which) {
CASES
  }
  SetFlag<HardEvent::V_MTE3>(0); WaitFlag<HardEvent::V_MTE3>(0);
  asc_copy_ub2gm((__gm__ void*)z, (__ubuf__ void*)u, END);
"""


FIRST = tuple({each.row.operation: each for each in reversed(BODIES)}.values())
"""The first overload of each instruction."""


def in_c(chosen):
    cases = "\n".join(f"case {n}: {each.name}(u); break;" for n, each in enumerate(chosen))
    body = KERNEL.replace("CASES", cases).replace("END", str(END))
    parameters, before = "GM_ADDR x, GM_ADDR z, int32_t which", "".join(map(c_text, chosen))
    return kernels({"k": body}, parameters, before=before, chip=CHIP, auto_sync=False).k


def in_python(each):
    function = cubecore.vector_function(python_function(each))

    @cubecore.kernel(outputs="z", chip=CHIP)
    def kernel(core, x, z):
        u = core.ubuf.at("uint8", 0)
        core.asc_copy_gm2ub(u, x, END)
        core.asc_sync_notify("PIPE_MTE2", "PIPE_V", 0)
        core.asc_sync_wait("PIPE_MTE2", "PIPE_V", 0)
        function(core, u)
        core.asc_sync_notify("PIPE_V", "PIPE_MTE3", 0)
        core.asc_sync_wait("PIPE_V", "PIPE_MTE3", 0)
        core.asc_copy_ub2gm(z, u, END)

    return kernel


def findings(run):
    return sorted((found.id, found.message.split(" ")[0]) for found in run.findings)


def test_the_table_has_all_names_that_the_header_declares():
    assert len(c_names()) > 580
    assert {each.row.name for each in BODIES} == set(c_names())


@pytest.mark.parametrize(
    "chosen",
    [FIRST, pytest.param(BODIES, marks=pytest.mark.sweep)],
    ids=["one of each instruction", "all"],
)
def test_every_overload_leaves_the_bytes_and_the_findings_of_c(chosen):
    x, differing, compiled = image(), [], in_c(chosen)
    for number, each in enumerate(chosen):
        wanted, got = np.zeros(END, np.uint8), np.zeros(END, np.uint8)
        runs = compiled[1](x, wanted, number), in_python(each)[1](x, got)
        changed = not np.array_equal(got, x) or each.row.operation in SILENT
        same = np.array_equal(wanted, got) and findings(runs[0]) == findings(runs[1])
        if not (same and changed):
            differing.append((each.row.name, each.row.kinds, *map(findings, runs)))
    assert differing == []
