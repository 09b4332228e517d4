"""Stores to global memory by pointers of C++ kernels, which no instruction tells."""

import numpy as np
import pytest

from frontends.cpp.cpp_kernels import cli, kernel, needs_compiler

pytestmark = needs_compiler

FIRST = 5
"""The line of a body's first statement."""

STORED = """GlobalTensor<float> g, h; LocalTensor<float> t(TPosition::VECIN, 0, 64);
g.SetGlobalBuffer((__gm__ float*)w, 64); h.SetGlobalBuffer((__gm__ float*)y, 64);
for (int n = 0; n < 64; ++n) {store}
{clean}
DataCopy(t, g, 64);
SetFlag<HardEvent::MTE2_V>(0); WaitFlag<HardEvent::MTE2_V>(0);
Adds(t, t, 1.0f, 64);
SetFlag<HardEvent::V_MTE3>(0); WaitFlag<HardEvent::V_MTE3>(0);
DataCopy(h, t, 64);
{late}
"""
POINTER, SET = "((__gm__ float*)w)[n] = n;", "g.SetValue(n, n);"
LINE = "DataCacheCleanAndInvalid<float, CacheLine::SINGLE_CACHE_LINE>(g[{}]);"
WHOLE = "DataCacheCleanAndInvalid<float, CacheLine::ENTIRE_DATA_CACHE>(g);"
LINES = "".join(LINE.format(16 * n) for n in range(4))
CLEANED = [
    (POINTER, WHOLE, ""),
    (POINTER, LINES, ""),
    (POINTER, "asc_dcci_entire_out();", ""),
    (POINTER, "for (int n = 0; n < 64; n += 16) asc_dcci_single((__gm__ float*)w + n);", ""),
    (SET, WHOLE, ""),
    ("st_dev((float)n, (__gm__ float*)w + n, 0);", "", ""),
]
LEFT = [(POINTER, "", ""), (POINTER, "", WHOLE), (POINTER, LINE.format(0), ""), (SET, "", WHOLE)]


def stored(store, clean, late, **options):
    """Return the findings of a copy behind scalar stores, and what came of it."""
    body = STORED.format(store=store, clean=clean, late=late)
    made = kernel(body, "GM_ADDR w, GM_ADDR y", **options)
    w, y = np.zeros(64, np.float32), np.zeros(64, np.float32)
    ran = made.changed(outputs=("y",), scratch=("w",))[1](w, y)
    return [f"{f.id} {f.location.line - FIRST}: {f.message}" for f in ran.findings], y


@pytest.mark.thinned(6)
@pytest.mark.parametrize(("store", "clean", "late"), CLEANED)
def test_a_copy_reads_what_the_scalar_unit_stored_behind_dcci(store, clean, late):
    for order in ("program", "late"):
        found, y = stored(store, clean, late, order=order)
        assert found == []
        assert np.array_equal(y, np.arange(64) + 1)


@pytest.mark.thinned(4)
@pytest.mark.parametrize(("store", "clean", "late"), LEFT)
def test_a_copy_before_dcci_reads_around_the_data_cache(store, clean, late):
    pointer = (
        "copy_gm_to_ubuf.src must be read behind a dcci, got none since a pointer stored to w, "
        "which is in the data cache; call asc_dcci_single first"
    )
    unit = (
        "copy_gm_to_ubuf must read global memory behind a dcci, got none since the scalar unit's "
        "store at inline.cpp:7 (k), which is in the data cache; call asc_dcci_single first"
    )
    message = pointer if store == POINTER else unit
    assert stored(store, clean, late)[0] == [f"stale-cache 4: {message}"]


def test_the_scalar_unit_reads_what_a_pointer_stored():
    body = "((__gm__ float*)w)[3] = 7; GlobalTensor<float> g; g.SetGlobalBuffer((__gm__ float*)w);"
    body += "((__gm__ float*)y)[0] = g.GetValue(3);"
    made = kernel(body, "GM_ADDR w, GM_ADDR y").changed(scratch=("w",))
    w, y = np.zeros(64, np.float32), np.zeros(64, np.float32)
    assert made[1](w, y).findings == ()
    assert y[0] == 7


@pytest.mark.sweep
def test_memory_that_nothing_stored_to_stays_uninitialised_beside_lines_that_were():
    half = POINTER.replace("w)[n]", "w)[n / 2]")
    (found,), _ = stored(half, WHOLE, "")
    assert found.startswith(
        "uninitialised 6: vadds.src must be initialised in UB, got 32 of 64 elements never written"
    )


PARTED = """GlobalTensor<float> g, h; LocalTensor<float> t(TPosition::VECIN, 0, 64);
g.SetGlobalBuffer((__gm__ float*)x); h.SetGlobalBuffer((__gm__ float*)z);
const int block = GetBlockIdx();
Duplicate(t, 1.0f, 64);
((__gm__ float*)z)[768 + block] = block + 1;
PipeBarrier<PIPE_ALL>();
DataCopy(h[64 * block], t, 64);
((__gm__ float*)z)[832 + block] = g.GetValue(0);
PipeBarrier<PIPE_ALL>();
if (block == 1) Adds(t, t, 1.0f, 64);
PipeBarrier<PIPE_ALL>();
DataCopy(h[256 + 64 * block], t, 64);
g.GetValue(1);
((__gm__ float*)z)[896 + block] = g.GetValue(2);
DataCopy(h[512 + 64 * {last}], t, 64);
"""
"""Cores of which one parts from the others between reads of values; `last` may be one block."""


@pytest.mark.thinned(4)
@pytest.mark.parametrize(("last", "races"), [("block", False), ("0", True)])
@pytest.mark.parametrize("outputs", [(), ("z",)])
def test_stores_by_pointers_stay_where_cores_part(last, races, outputs):
    made = kernel(PARTED.format(last=last), "GM_ADDR x, GM_ADDR z").changed(outputs=outputs)
    x, z = np.arange(64, dtype=np.float32) + 7, np.zeros(1024, np.float32)
    ran = made[4](x, z)
    assert any(f.id.startswith("race") for f in ran.findings) == races
    stored = [z[at : at + 4].tolist() for at in (768, 832, 896)]
    assert stored == [[1, 2, 3, 4], [7] * 4, [9] * 4]
    assert np.array_equal(z[:512].reshape(8, 64)[:, 0], [1, 1, 1, 1, 1, 2, 1, 1])


@pytest.mark.sweep
def test_what_an_instruction_leaves_uninitialised_is_no_store_of_a_pointer():
    body = """LocalTensor<half> t(TPosition::VECIN, 0, 64); GlobalTensor<half> g;
g.SetGlobalBuffer((__gm__ half*)x);
SetAtomicAdd<half>();
DataCopy(g, t, 64);
SetAtomicNone();"""
    (found,) = kernel(body)[1](np.ones(128, np.float16)).findings
    assert found.message == (
        "x must hold what was written, got 128 of 256 B copied from uninitialised memory, the "
        "first at byte 0"
    )


PADDED = """#include "kernel_operator.h"
#include "acl/acl.h"
using namespace AscendC;
__global__ __vector__ void padded(GM_ADDR w, GM_ADDR z) {
  GlobalTensor<float> between, to;
  between.SetGlobalBuffer((__gm__ float*)w);
  to.SetGlobalBuffer((__gm__ float*)z);
  LocalTensor<float> t(TPosition::VECIN, 0, 64), u(TPosition::VECIN, 256, 64);
  Duplicate(t, 1.0f, 32);
  PipeBarrier<PIPE_ALL>();
  DataCopy(between, t, 64);
  PipeBarrier<PIPE_ALL>();
  DataCopy(u, between, 64);
  PipeBarrier<PIPE_ALL>();
  Adds(u, u, 1.0f, 32);
  PipeBarrier<PIPE_ALL>();
  DataCopy(to, u, 32);
}
int main() {
  float z[32];
  uint8_t *a, *b;
  aclrtMalloc((void**)&a, 256, ACL_MEM_MALLOC_HUGE_FIRST);
  aclrtMalloc((void**)&b, 128, ACL_MEM_MALLOC_HUGE_FIRST);
  padded<<<1, nullptr, nullptr>>>(a, b);
  aclrtMemcpy(z, 128, b, 128, ACL_MEMCPY_DEVICE_TO_HOST);
  return z[31] == 2 ? 0 : 3;
}
"""


@pytest.mark.sweep
def test_padding_that_a_program_copies_through_global_memory(tmp_path):
    (tmp_path / "padded.asc").write_text(PADDED)
    code, out, err = cli(tmp_path, "run", "padded.asc")
    assert (code, err) == (0, "")
    assert "findings none" in out
