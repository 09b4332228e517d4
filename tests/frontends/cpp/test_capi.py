"""The C API in C++: written from the declarations, every name compiles, arrays obey their rules."""

import numpy as np
import pytest

import cubecore
from cubecore import CubecoreError
from cubecore.frontends.capi.calls.binding import forms
from cubecore.frontends.cpp.toolchain.generated.capi_header import calls, names
from cubecore.isa.catalogue import spellings
from frontends.cpp.cpp_kernels import needs_compiler

pytestmark = needs_compiler

ADD = """#include "c_api/asc_simd.h"
extern "C" __global__ __aicore__ void add(__gm__ float* x, __gm__ float* y, __gm__ float* z,
                                          uint32_t n) {
  __ubuf__ float a[1024], d;
  __ubuf__ float b[1024];
  uint32_t begin = asc_get_block_idx() * n;
  BODY
}
"""
LOADED = """
  asc_copy_gm2ub(a, x + begin, 4 * n);
  asc_copy_gm2ub_sync(b, y + begin, 4 * n);
"""
STORED = "asc_copy_ub2gm_sync(z + begin, a, 4 * n);"
FORMS = (
    "asc_add_sync(a, a, b, n);",
    "asc_set_vector_mask(~0ull, ~0ull); asc_add(a, a, b, n / 64, 1, 1, 1, 8, 8, 8); asc_sync();",
    "asc_set_vector_mask(~0ull, ~0ull); asc_binary_config c; c.repeat = n / 64;"
    " asc_add(a, a, b, c); asc_sync_pipe(PIPE_ALL);",
    "asc_add(a, a, b, n); asc_sync_notify(PIPE_V, PIPE_MTE3, EVENT_ID1);"
    " asc_sync_wait(PIPE_V, PIPE_MTE3, EVENT_ID1);",
)


def launched(body, n=1024):
    module = cubecore.inline(ADD.replace("BODY", body).replace("a[1024], d", "a[1024]"))
    rng = np.random.default_rng(4)
    x, y = (rng.standard_normal(2 * n).astype(np.float32) for _ in range(2))
    z = np.zeros_like(x)
    return module.add[2](x, y, z, n), x, y, z


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.thinned(2)
def test_an_addition_in_each_form(form):
    run, x, y, z = launched(LOADED + form + STORED)
    assert run.findings == ()
    assert np.array_equal(z, x + y)


SELECTED = """
  set_vector_mask(~0ull, ~0ull);
  for (uint32_t at = 0; at < n; at += 64) {
    vcmp_lt(a + at, b + at, 1, 1, 1, 1, 8, 8, 8);
    asc_sync_pipe(PIPE_V);
    vsel(a + at, a + at, b + at, 1, 1, 1, 1, 8, 8, 8);
    asc_sync_pipe(PIPE_V);
  }
  asc_sync();
"""
KEPT = """
  __ubuf__ uint32_t* words = (__ubuf__ uint32_t*)(float*)a;
  vreducev2(words, words, nullptr, n / 64, 1, 7, 8, 8);
  asc_sync();
"""


@pytest.mark.sweep
def test_an_operand_that_is_not_read_may_be_null():
    run, x, _, z = launched(LOADED + KEPT + STORED)
    assert run.findings == ()
    assert np.array_equal(z, x)


def test_instructions_that_no_header_writes_are_called_by_their_own_names():
    run, x, y, z = launched(LOADED + SELECTED + STORED)
    assert run.findings == ()
    assert np.array_equal(z, np.minimum(x, y))


def test_a_wait_left_out_is_a_race_at_both_lines():
    run, *_ = launched(LOADED + "asc_add(a, a, b, n);\n" + STORED)
    (race,) = [f for f in run.findings if f.id == "race-raw"]
    assert {access.location.line for access in race.accesses} == {10, 11}


def test_every_name_of_the_c_api_is_a_function():
    wanted = {
        name
        for name in spellings()
        if name.startswith("asc_") and any("2201" in f.kind.archs for f in forms(name, "2201"))
    }
    by_hand = {"asc_get_phy_buf_addr", "asc_get_block_idx", "asc_get_block_num", "asc_dcci_single"}
    by_hand |= {"asc_set_copy_pad_val", "asc_sync_data_barrier"}
    by_hand |= {f"asc_dcci_entire_{where}" for where in ("all", "ub", "out", "atomic")}
    assert wanted == {*names("2201")} | by_hand
    assert {f"{name}_sync" for name in ("asc_add", "asc_mmad")} <= {
        name for name, _ in calls("2201")
    }


def test_every_function_compiles():
    flags = dict.fromkeys(("asc_sync_notify", "asc_sync_wait"), "PIPE_V, PIPE_MTE3, EVENT_ID1")
    lines = [
        f"{name}({flags.get(name) or ', '.join('p' if is_one else '1' for is_one in pointers)});"
        for name, pointers in calls("2201")
        if not name.endswith("_sync")
    ]
    assert len(lines) > 300
    body = "float* p = nullptr; if (n == 1) {\n" + "\n".join(lines) + "\n}"
    text = ADD.replace("BODY", body).replace("a[1024], d", "a[1024]")
    assert [p.name for p in cubecore.inline(text).add.parameters] == ["x", "y", "z", "n"]


def refused(work) -> str:
    with pytest.raises(CubecoreError) as caught:
        work()
    return str(caught.value)


WRONG = {
    "__ubuf__ float big[50000];": ("inline.cpp:7 (add): an array must fit 196352 B, got 208192 B"),
    "asc_add(a, x, b, n);": (
        "inline.cpp:7 (add): asc_add.src0 must point into UB, got float32* 0 in GM; "
    ),
}


@pytest.mark.thinned(2)
@pytest.mark.parametrize("body", WRONG)
def test_a_wrong_pointer_or_array_is_refused(body):
    assert refused(lambda: launched(body)).startswith(WRONG[body])


SEED_003 = """#include "c_api/asc_simd.h"
constexpr uint32_t src_len = 1024;
constexpr uint32_t dst_len = 128;
struct UbBuff {
    float src[src_len];
    float dst[dst_len];
};
#define DOUBLED(SRC, DST)                 \\
  asc_copy_gm2ub_sync(SRC, x, 4 * n);     \\
  asc_add_sync(DST, SRC, SRC, n);         \\
  asc_copy_ub2gm_sync(z, DST, 4 * n);
#define KERNEL(NAME) extern "C" __global__ __aicore__ void \\
  NAME(__gm__ float* x, __gm__ float* z, uint32_t n)
KERNEL(direct) {
  __ubuf__ float src[src_len];
  __ubuf__ float dst[dst_len];
  DOUBLED(src, dst)
}
KERNEL(wrapped) {
  __ubuf__ UbBuff buff{}; // written out
  DOUBLED(buff.src, buff.dst)
}
KERNEL(mixed) {
  __ubuf__ float* src0 = (__ubuf__ float*)asc_get_phy_buf_addr(0);
  __ubuf__ float src1[src_len];
  DOUBLED(src0, src1)
}
KERNEL(between) {
  BODY
}
"""
"""Seed 003's examples of arrays, in its own text; the semicolon behind the struct is ours."""


@pytest.mark.sweep
def test_the_arrays_of_seed_003():
    module = cubecore.inline(SEED_003.replace("BODY", ""))
    x = np.arange(128, dtype=np.float32)
    for kernel in (module.direct, module.wrapped):
        z = np.zeros(128, np.float32)
        assert kernel[1](x, z, 128).findings == ()
        assert np.array_equal(z, 2 * x)


def test_arrays_and_physical_addresses_are_the_same_bytes():
    module = cubecore.inline(SEED_003.replace("BODY", ""))
    x, z = np.arange(128, dtype=np.float32), np.zeros(128, np.float32)
    (finding,) = module.mixed[1](x, z, 128).findings
    assert np.array_equal(z, 2 * x)
    assert str(finding.location) == "inline.cpp:25 (mixed)"
    assert (finding.id, finding.message) == (
        "mixed-allocation",
        "array: UB must be used by arrays or by asc_get_phy_buf_addr, got both; arrays lie from "
        "address 0 on, so that both may be the same bytes",
    )


@pytest.mark.parametrize(
    ("declared", "line"),
    [
        (
            "__ubuf__ UbBuff buff[32];",
            "an array in a local memory must be of an element type, got an array of structs",
        ),
        (
            "__ubuf__ float buff[src_len][dst_len];",
            "an array must have one length, got [src_len][dst_len]",
        ),
        (
            "uint32_t result_len = n; __ubuf__ float buff[result_len];",
            "an array's length must be known when the kernel is compiled, got result_len",
        ),
        (
            "__ubuf__ UbBuff buff;",
            "a struct in a local memory must be constructed, got no {} behind its name",
        ),
        ("__ubuf__ float buff[0];", "an array's length must be a whole number above 0, got 0"),
    ],
)
def test_arrays_that_seed_003_excludes(declared, line):
    found = refused(lambda: cubecore.inline(SEED_003.replace("BODY", declared)).between)
    assert found == f"inline.cpp:29: {line}"
