"""Pointers into UB: what they load and store is the scalar unit's, as by GetValue and SetValue."""

import platform
from functools import cache

import numpy as np
import pytest

from cubecore.errors import CubecoreError
from frontends.cpp.cpp_kernels import kernel, kernels, needs_compiler

pytestmark = [
    needs_compiler,
    pytest.mark.skipif(platform.machine() != "x86_64", reason="accesses are emulated on x86-64"),
]
X = np.arange(64, dtype=np.float32)
NEW = np.where(X == 3, 100, X).astype(np.float32)
BEFORE = "struct Header { float first[3]; float last; }; struct Wide { float all[24]; };"
STORES = {
    "an index": "p[3] = 100.0f;",
    "a sum": "*(p + 3) = 100.0f;",
    "changed": "p[3] += 97.0f;",
    "a member": "((__ubuf__ Header*)p)->last = 100.0f;",
    "bits": "((__ubuf__ uint32_t*)p)[3] = 0x42c80000u;",
    "a number": "*(__ubuf__ float*)12 = 100.0f;",
    "halves": "((__ubuf__ uint16_t*)p)[7] = 0x42c8; ((__ubuf__ uint16_t*)p)[6] = 0;",
}
CONSUMERS = {
    "V": ("Adds(b, a, 0.0f, 64);", "vadds.src", "read", "raw", (NEW, X)),
    "MTE3": ("DataCopy(to, a, 64);", "copy_ubuf_to_gm.src", "read", "raw", (NEW, X)),
    "MTE2": ("DataCopy(a, from, 64);", "copy_gm_to_ubuf.dst", "write", "waw", (X, NEW)),
}
LEAVES = {"V": "DataCopy(to, b, 64);", "MTE3": "", "MTE2": "DataCopy(to, a, 64);"}
FRAME = """
  GlobalTensor<float> from, to;
  from.SetGlobalBuffer((__gm__ float*)x);
  to.SetGlobalBuffer((__gm__ float*)z);
  LocalTensor<float> a(TPosition::VECCALC, 0, 64), b(TPosition::VECCALC, 256, 64);
  __ubuf__ float* p = (__ubuf__ float*)a.GetPhyAddr();
  DataCopy(a, from, 64);
  PipeBarrier<PIPE_ALL>();
#line 100
  {first}
  {between}
#line 200
  {then}
  PipeBarrier<PIPE_ALL>();
  {leave}
"""
FLAG = "SetFlag<HardEvent::{0}>(0); WaitFlag<HardEvent::{0}>(0);"
READS = {
    "V": ("Adds(a, a, 1.0f, 64);", "vadds.dst", X + 1),
    "MTE2": ("DataCopy(a, from[64], 64);", "copy_gm_to_ubuf.dst", X + 64),
}
READ = """float one = p[5], other = *(__ubuf__ float*)24;
  for (int n = 0; n < 8; ++n) b.SetValue(n, n % 2 == 0 ? one : other);"""


def stored(store, pipe, between=""):
    return FRAME.format(
        first=STORES[store], between=between, then=CONSUMERS[pipe][0], leave=LEAVES[pipe]
    )


def read(pipe, between=""):
    return FRAME.format(
        first=READS[pipe][0], between=between, then=READ, leave="DataCopy(to, b, 8);"
    )


COPIES = {
    "a struct": (
        "*(__ubuf__ Wide*)p = *(__ubuf__ Wide*)(p + 40);",
        np.concatenate([X[40:64], X[24:]]),
    ),
    "a struct of the process": (
        "Wide w; for (int n = 0; n < 24; ++n) w.all[n] = n + 7; *(__ubuf__ Wide*)p = w;",
        np.concatenate([X[7:31], X[24:]]),
    ),
    "to the process": (
        "Wide w = *(__ubuf__ Wide*)(p + 8); for (int n = 0; n < 24; ++n) p[n] = w.all[23 - n];",
        np.concatenate([X[31:7:-1], X[24:]]),
    ),
    "a loop": ("for (int n = 0; n < 64; ++n) p[n] = p[n] * p[n];", X * X),
    "bytes": ("for (int n = 0; n < 8; ++n) ((__ubuf__ int8_t*)p)[n] = 0;", np.where(X < 2, 0, X)),
    "longs": (
        "for (int n = 0; n < 4; ++n) ((__ubuf__ uint64_t*)p)[n] = ((__ubuf__ uint64_t*)p)[n + 8];",
        np.concatenate([X[16:24], X[8:]]),
    ),
    "the first address": (
        "*(__ubuf__ float*)0 += 5.0f; p[1] = *(__ubuf__ float*)nullptr + *(__ubuf__ float*)0;",
        np.where(X == 0, 5, np.where(X == 1, 10, X)),
    ),
    "a condition": ("if (p[9] == 9.0f && p[0] < p[1]) p[8] = -1.0f;", np.where(X == 8, -1, X)),
    "a struct in UB": (
        "__ubuf__ Header h{}; h.last = 2.0f; h.first[1] = h.last + 1.0f;",
        np.where(X == 3, 2, np.where(X == 1, 3, X)),
    ),
}
WRONG = {
    "beyond UB, stored": (
        "p[60000] = 1.0f;",
        "store_scalar.dst must stay inside UB (0 to 196608 B), got bytes [240000, 240004)",
    ),
    "beyond UB, loaded": (
        "p[3] = p[60000];",
        "the scalar value must stay inside UB (0 to 196608 B), got bytes [240000, 240004)",
    ),
    "unwritten": ("p[3] = p[1000];", "the scalar value must be initialised in UB, got 4000"),
}


def whole(body, pipe="MTE3"):
    return FRAME.format(
        first=body, between=FLAG.format(f"S_{pipe}"), then=CONSUMERS[pipe][0], leave=""
    )


BODIES = {
    **{f"{store} {pipe}": stored(store, pipe) for store in STORES for pipe in CONSUMERS},
    **{f"flag {pipe}": stored("an index", pipe, FLAG.format(f"S_{pipe}")) for pipe in CONSUMERS},
    **{f"read {pipe}": read(pipe) for pipe in READS},
    **{f"read flag {pipe}": read(pipe, FLAG.format(f"{pipe}_S")) for pipe in READS},
    **{label: whole(body) for label, (body, _) in {**COPIES, **WRONG}.items()},
    "unknown": whole('__asm__ volatile("fildl (%0)" : : "r"(p));'),
}
NAMES = {label: f"k{number}" for number, label in enumerate(BODIES)}


@cache
def compiled():
    texts = {NAMES[label]: text for label, text in BODIES.items()}
    return kernels(texts, "GM_ADDR x, GM_ADDR z", BEFORE)


def run(label, auto_sync=True, **options):
    """Return a launch's result, what it found, and the number of its instructions."""
    z = np.zeros(64, np.float32)
    made = compiled()[NAMES[label]].changed(auto_sync=auto_sync).using(**options)
    done = made[1](np.arange(128, dtype=np.float32), z)
    return z, [f"{found.id}: {found.message}" for found in done.findings], done.issued


def race(label, pipe, span=(12, 16)):
    _, subject, how, kind, _ = CONSUMERS[pipe]
    file, name = "inline.cpp", NAMES[label]
    return (
        f"race-{kind}: {subject} must {how} bytes [{span[0]}, {span[1]}) of UB after "
        f"store_scalar.dst wrote them, got no order between S ({file}:100 ({name})) and {pipe} "
        f"({file}:200 ({name})); set_flag(S, {pipe}) after the write and wait_flag(S, {pipe}) "
        f"before the {how}"
    )


@pytest.mark.thinned(4)
@pytest.mark.parametrize("pipe", CONSUMERS)
@pytest.mark.parametrize("store", STORES)
def test_a_store_is_ordered_by_the_compiler_or_it_races(store, pipe):
    label = f"{store} {pipe}"
    z, found, issued = run(label)
    assert found == []
    assert np.array_equal(z, CONSUMERS[pipe][4][0])
    _, found, plain = run(label, auto_sync=False)
    assert found == [race(label, pipe, (14, 16) if store == "halves" else (12, 16))]
    assert issued - plain == 2


@pytest.mark.parametrize("pipe", CONSUMERS)
def test_a_flag_is_all_that_a_store_needs(pipe):
    z, found, issued = run(f"flag {pipe}")
    assert found == []
    assert np.array_equal(z, CONSUMERS[pipe][4][0])
    assert run(f"flag {pipe}", auto_sync=False)[1:] == ([], issued)


@pytest.mark.parametrize("pipe", CONSUMERS)
@pytest.mark.parametrize("order", ["late", "early"])
def test_other_orders_show_a_store_that_nothing_orders(order, pipe):
    new, old = CONSUMERS[pipe][4]
    assert np.array_equal(run(f"an index {pipe}", order=order)[0], new)
    assert np.array_equal(run(f"flag {pipe}", auto_sync=False, order=order)[0], new)
    assert np.array_equal(run(f"an index {pipe}", auto_sync=False, order=order)[0], old)


@pytest.mark.parametrize("pipe", READS)
def test_a_load_waits_for_what_wrote_its_bytes(pipe):
    _, writer, values = READS[pipe]
    z, found, issued = run(f"read {pipe}")
    assert found == []
    assert np.array_equal(z[:2], values[5:7])
    z, found, plain = run(f"read {pipe}", auto_sync=False)
    name = NAMES[f"read {pipe}"]
    assert found == [
        f"race-raw: scalar load.value must read bytes [20, 24) of UB after {writer} wrote them, "
        f"got no order between {pipe} (inline.cpp:100 ({name})) and S (inline.cpp:200 ({name})); "
        f"set_flag({pipe}, S) after the write and wait_flag({pipe}, S) before the read"
    ]
    assert issued - plain == 2
    z, found, _ = run(f"read flag {pipe}", auto_sync=False)
    assert found == []
    assert np.array_equal(z[:2], values[5:7])


@pytest.mark.parametrize("label", COPIES)
def test_any_access_of_a_kernel_is_followed(label):
    z, found, _ = run(label, auto_sync=False)
    assert found == []
    assert np.array_equal(z, COPIES[label][1])


@pytest.mark.parametrize("label", WRONG)
def test_wrong_addresses_are_findings(label):
    _, found, _ = run(label)
    assert [said.partition(": ")[2] for said in found] == [WRONG[label][1]]


def test_an_access_that_is_not_followed_names_the_functions_that_are():
    with pytest.raises(CubecoreError) as caught:
        run("unknown")
    assert str(caught.value).endswith(
        "the kernel ended with an unsupported access to byte 0 of UB on core 0 AIV0; "
        "use GetValue and SetValue"
    )


def test_a_null_pointer_of_a_kernel_without_such_pointers_ends_it():
    made = kernel("LocalTensor<float> a(TPosition::VECCALC, 0, 64); *(volatile int*)0 = 1;")
    with pytest.raises(CubecoreError) as caught:
        made[1](X)
    assert str(caught.value).endswith(
        "the kernel ended with an access to address 0x0 on core 0 AIV0"
    )
