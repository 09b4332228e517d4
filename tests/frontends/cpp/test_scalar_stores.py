"""SetValue of C++ kernels: pipes know it behind a flag, which automatic synchronisation sets."""

from functools import cache

import numpy as np
import pytest

from frontends.cpp.cpp_kernels import kernels, needs_compiler

pytestmark = needs_compiler
X = np.arange(64, dtype=np.float32)
NEW = np.where(X == 3, 100, X).astype(np.float32)
STORES = {
    "SetValue": "a.SetValue(3, 100.0f);",
    "operator()": "a(3) = 100.0f;",
    "changed": "a(3) += 97.0f;",
    "part of a tensor": "a[2].SetValue(1, 100.0f);",
    "an index's bits": "a.ReinterpretCast<uint32_t>().SetValue(3, 0x42c80000u);",
}
CONSUMERS = {
    "V": ("Adds(b, a, 0.0f, 64);", "vadds.src", "read", "raw", (NEW, X)),
    "MTE3": ("DataCopy(to, a, 64);", "copy_ubuf_to_gm.src", "read", "raw", (NEW, X)),
    "MTE2": ("DataCopy(a, from, 64);", "copy_gm_to_ubuf.dst", "write", "waw", (X, NEW)),
}
LEAVES = {
    "V": "DataCopy(to, b, 64);",
    "MTE3": "",
    "MTE2": "DataCopy(to, a, 64);",
}
FRAME = """
  GlobalTensor<float> from, to;
  from.SetGlobalBuffer((__gm__ float*)x);
  to.SetGlobalBuffer((__gm__ float*)z);
  LocalTensor<float> a(TPosition::VECCALC, 0, 64), b(TPosition::VECCALC, 256, 64);
  DataCopy(a, from, 64);
  PipeBarrier<PIPE_ALL>();
#line 100
  {store}
  {between}
#line 200
  {consumer}
  PipeBarrier<PIPE_ALL>();
  {leave}
"""
FLAG = "SetFlag<HardEvent::S_{0}>(0); WaitFlag<HardEvent::S_{0}>(0);"
RAW = {
    "V": "asc_add_scalar((__ubuf__ float*)256, (__ubuf__ float*)0, 0.0f, 64);",
    "MTE3": "asc_copy_ub2gm((__gm__ float*)z, (__ubuf__ float*)0, 256);",
    "MTE2": "asc_copy_gm2ub((__ubuf__ float*)0, (__gm__ float*)x, 256);",
}
ORDERS = ("program", "late", "early", "random:1", "random:2", "random:3")


def text_of(pipe, store="SetValue", between="", consumer=None):
    return FRAME.format(
        store=STORES[store],
        between=between,
        consumer=consumer or CONSUMERS[pipe][0],
        leave=LEAVES[pipe],
    )


BODIES = {
    **{f"{store} {pipe}": text_of(pipe, store) for store in STORES for pipe in CONSUMERS},
    **{f"flag {pipe}": text_of(pipe, between=FLAG.format(pipe)) for pipe in CONSUMERS},
    **{f"all {pipe}": text_of(pipe, between="PipeBarrier<PIPE_ALL>();") for pipe in CONSUMERS},
    **{f"raw {pipe}": text_of(pipe, consumer=RAW[pipe]) for pipe in CONSUMERS},
    **{
        f"raw flag {pipe}": text_of(pipe, between=FLAG.format(pipe), consumer=RAW[pipe])
        for pipe in CONSUMERS
    },
}
CLEAN = "DataCacheCleanAndInvalid<float, CacheLine::SINGLE_CACHE_LINE, DcciDst::CACHELINE_OUT>({});"
LOADS = "if (to.GetValue(5) != 5.0f) {\n  a.SetValue(40, 1.0f); }"
GLOBAL = {
    "MTE3 writes, S reads": (f"DataCopy(to, a, 64); {CLEAN.format('to')}\n#line 300\n{LOADS}", 2),
    "MTE2 reads, S writes": ("DataCopy(a, from, 64);\n#line 300\nfrom.SetValue(3, 3.0f);", 2),
    "S writes, MTE2 reads": (
        f"from.SetValue(3, 3.0f); {CLEAN.format('from')}\n#line 300\nDataCopy(a, from, 64);",
        2,
    ),
    "S writes, MTE3 writes": (
        f"to.SetValue(3, 3.0f); {CLEAN.format('to')}\n#line 300\nDataCopy(to, a, 64);",
        2,
    ),
    "S reads, MTE2 reads": (
        "DataCopy(a, from, 64);\n#line 300\nif (from.GetValue(3) != 3.0f) DataCopy(a, from, 64);",
        0,
    ),
    "S reads elsewhere": (
        f"DataCopy(to, a, 64);\n#line 300\nif (from.GetValue(3) != 3.0f) {CLEAN.format('to')}",
        0,
    ),
    "S writes past the data cache": (
        "WriteGmByPassDCache((__gm__ float*)x + 3, 3.0f);\n#line 300\nDataCopy(a, from, 64);",
        0,
    ),
}
GLOBAL_FRAME = """
  GlobalTensor<float> from, to;
  from.SetGlobalBuffer((__gm__ float*)x);
  to.SetGlobalBuffer((__gm__ float*)z);
  LocalTensor<float> a(TPosition::VECCALC, 0, 64);
  DataCopy(a, from, 64);
  PipeBarrier<PIPE_ALL>();
  {body}
  PipeBarrier<PIPE_ALL>();
  DataCopy(to, a, 64);
"""
BODIES |= {label: GLOBAL_FRAME.format(body=body) for label, (body, _) in GLOBAL.items()}
NAMES = {label: f"k{number}" for number, label in enumerate(BODIES)}


@cache
def compiled(*, c_api):
    texts = {NAMES[label]: text for label, text in BODIES.items() if label[:3] != "raw" or c_api}
    return kernels(texts, "GM_ADDR x, GM_ADDR z")


def run(label, auto_sync=True, **options):
    """Return a launch's result, what it found, and the number of its instructions."""
    z = np.zeros(64, np.float32)
    kernel = compiled(c_api="chip" not in options)[NAMES[label]]
    done = kernel.changed(auto_sync=auto_sync).using(**options)[1](X, z)
    return z, [f"{found.id}: {found.message}" for found in done.findings], done.issued


def race(label, pipe):
    _, subject, how, kind, _ = CONSUMERS[pipe]
    file, name = "inline.cpp", NAMES[label]
    return (
        f"race-{kind}: {subject} must {how} bytes [12, 16) of UB after store_scalar.dst wrote "
        f"them, got no order between S ({file}:100 ({name})) and {pipe} ({file}:200 ({name})); "
        f"set_flag(S, {pipe}) after the write and wait_flag(S, {pipe}) before the {how}"
    )


@pytest.mark.thinned(3)
@pytest.mark.parametrize("pipe", CONSUMERS)
@pytest.mark.parametrize("store", STORES)
def test_the_compiler_orders_a_store_or_it_races(store, pipe):
    label = f"{store} {pipe}"
    z, found, issued = run(label)
    assert found == []
    assert np.array_equal(z, CONSUMERS[pipe][4][0])
    _, found, plain = run(label, auto_sync=False)
    assert found == [race(label, pipe)]
    assert issued - plain == 2


@pytest.mark.parametrize("pipe", CONSUMERS)
@pytest.mark.parametrize("engine", ["reference", "lockstep"])
def test_engines_find_the_same(pipe, engine):
    label = f"SetValue {pipe}"
    assert run(label, engine=engine)[1] == []
    assert run(label, engine=engine, auto_sync=False)[1] == [race(label, pipe)]


@pytest.mark.parametrize("pipe", CONSUMERS)
@pytest.mark.parametrize("how", ["flag", "all"])
def test_a_flag_or_a_barrier_of_all_needs_nothing_more(how, pipe):
    z, found, issued = run(f"{how} {pipe}")
    assert found == []
    assert np.array_equal(z, CONSUMERS[pipe][4][0])
    assert run(f"{how} {pipe}", auto_sync=False)[1:] == ([], issued)


@pytest.mark.parametrize("pipe", CONSUMERS)
def test_the_c_api_is_never_ordered_behind_a_store(pipe):
    assert run(f"raw {pipe}")[1] == [race(f"raw {pipe}", pipe)]
    assert run(f"raw flag {pipe}")[1] == []


@pytest.mark.thinned(6)
@pytest.mark.parametrize("pipe", CONSUMERS)
@pytest.mark.parametrize("order", ORDERS)
def test_other_orders_show_a_store_that_nothing_orders(order, pipe):
    new, old = CONSUMERS[pipe][4]
    for label, options in (
        (f"SetValue {pipe}", {}),
        (f"changed {pipe}", {}),
        (f"flag {pipe}", {"auto_sync": False}),
        (f"all {pipe}", {"auto_sync": False}),
    ):
        assert np.array_equal(run(label, order=order, **options)[0], new)
    for label, options in (
        (f"SetValue {pipe}", {"auto_sync": False}),
        (f"changed {pipe}", {"auto_sync": False}),
        (f"raw {pipe}", {}),
    ):
        z = run(label, order=order, **options)[0]
        if order in {"late", "early"}:
            assert np.array_equal(z, old)
        else:
            assert np.array_equal(z, new) or (np.array_equal(z, old) and order != "program")


@pytest.mark.parametrize("label", GLOBAL)
def test_accesses_of_global_tensors_are_ordered_as_well(label):
    z, found, issued = run(label)
    assert found == []
    assert np.array_equal(z, X)
    z, found, plain = run(label, auto_sync=False)
    assert np.array_equal(z, X)
    assert issued - plain == GLOBAL[label][1]
    assert [one[:8] for one in found] == {
        "MTE3 writes, S reads": ["race-raw"],
        "MTE2 reads, S writes": ["race-war"],
    }.get(label, [])


@pytest.mark.sweep
def test_architecture_3510_orders_it_as_well():
    for pipe in CONSUMERS:
        label, chip = f"SetValue {pipe}", "Ascend950PR_9599"
        assert run(label, chip=chip)[1] == []
        assert run(f"flag {pipe}", chip=chip, auto_sync=False)[1] == []
        assert run(label, chip=chip, auto_sync=False)[1] != []
