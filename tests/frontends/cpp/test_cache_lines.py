"""Lines of the scalar unit's data cache, in C++ kernels: findings, and values in late order.

Each wrong kernel stands beside the right one, with a dcci of the line or 64 B between the cores.
"""

import numpy as np
import pytest

from frontends.cpp.cpp_kernels import kernel, needs_compiler

pytestmark = needs_compiler

HEAD = """GlobalTensor<int32_t> g, h; LocalTensor<int32_t> t(TPosition::VECIN, 0, 64);
g.SetGlobalBuffer((__gm__ int32_t*)x, 64); h.SetGlobalBuffer((__gm__ int32_t*)y, 64);
const int b = GetBlockIdx();
Duplicate(t, 100, 64); PipeBarrier<PIPE_ALL>();
"""
FIRST = 9
"""The line of a body's first statement behind the head."""
COPY = "DataCopy(g, t, 64); PipeBarrier<PIPE_ALL>();"
SIGNAL = "CrossCoreSetFlag<0, PIPE_MTE3>(0); CrossCoreWaitFlag(0);"
OLD = list(range(64))
NEW = [100] * 64
CORES = ["core 0 AIV0", "core 0 AIV1"]


def clean(at=0, tensor="g", of="OUT"):
    """Return a dcci for the line of an element."""
    kind = f"<int32_t, CacheLine::SINGLE_CACHE_LINE, DcciDst::CACHELINE_{of}>"
    return f"DataCacheCleanAndInvalid{kind}({tensor}[{at}]);"


ALL = "DataCacheCleanAndInvalid<int32_t, CacheLine::ENTIRE_DATA_CACHE>(g);"


def run(*statements, blocks=1, **options):
    """Run a kernel of one statement a line; return its findings, and what it leaves in x and y."""
    made = kernel(HEAD + "\n".join(statements), "GM_ADDR x, GM_ADDR y", **options)
    x, y = np.arange(64, dtype=np.int32), np.zeros(64, np.int32)
    ran = made[blocks](x, y)
    return [f"{f.location.line - FIRST} {f.id}: {f.message}" for f in ran.findings], x, y


def where(number):
    return f"inline.cpp:{FIRST + number} (k)"


def old_read(line, copied):
    return (
        f"{line} stale-cache: a scalar read of global memory must come behind a dcci, got none "
        f"since copy_ubuf_to_gm at {where(copied)} wrote there past the data cache; call "
        "asc_dcci_single first"
    )


def old_store(line, copied, whose="past the data cache ", holds="it holds"):
    return (
        f"{line} stale-cache: store_scalar_gm must store behind a dcci, got none since "
        f"copy_ubuf_to_gm{'' if whose else ' of ' + CORES[0]} at {where(copied)} wrote "
        f"{whose}into the same 64 B, which {holds} as they were before and writes back; call "
        "asc_dcci_single first"
    )


LOADS = (
    "h.SetValue(0, g.GetValue(0)); h.SetValue(1, g.GetValue(20)); h.SetValue(2, g.GetValue(63));"
)


@pytest.mark.thinned(7)
@pytest.mark.parametrize(
    ("cleaned", "fresh"),
    [
        ("", ()),
        (clean(), (0,)),
        (clean(5), (0,)),
        (clean(20) + clean(48), (1, 2)),
        (clean(0, of="UB"), ()),
        (ALL, (0, 1, 2)),
        (clean() + clean(16) + clean(48), (0, 1, 2)),
    ],
)
def test_dcci_of_a_line_cleans_that_line_alone(cleaned, fresh):
    before = "g.GetValue(0) + g.GetValue(20) + g.GetValue(63);"
    wanted = [OLD[at] for at in (0, 20, 63)]
    for number in fresh:
        wanted[number] = 100
    for order in ("program", "late"):
        found, x, y = run(before, COPY, cleaned, LOADS, order=order)
        assert found == ([] if len(fresh) == 3 else [old_read(3, 1)])
        assert y[:3].tolist() == ([100] * 3 if order == "program" else wanted)
        assert x.tolist() == NEW


def test_the_values_of_lines_that_were_never_held_are_fresh():
    """Pages ask for a dcci before the first read, too, as hardware may have loaded the line."""
    found, _, y = run(COPY, "h.SetValue(0, g.GetValue(5));", order="late")
    assert (found, y[0]) == ([old_read(1, 0)], 100)


@pytest.mark.sweep
@pytest.mark.parametrize("order", ["program", "late"])
def test_a_store_into_an_old_line_takes_old_bytes_back(order):
    for held, cleaned, right in [
        (3, "", False),
        (3, clean(), True),
        (3, ALL, True),
        (17, "", True),
    ]:
        found, x, _ = run(f"g.GetValue({held});", COPY, cleaned, "g.SetValue(4, 0);", order=order)
        assert found == ([] if right else [old_store(3, 1)])
        line = OLD[:16] if order == "late" and not right else NEW[:16]
        assert x.tolist() == [*line[:4], 0, *line[5:], *NEW[16:]]


@pytest.mark.thinned(4)
@pytest.mark.parametrize("order", ["program", "late"])
@pytest.mark.parametrize("write", [COPY, "WriteGmByPassDCache((__gm__ int32_t*)x + 2, 100);"])
def test_what_is_written_past_a_changed_line_is_overwritten(write, order):
    name = "copy_ubuf_to_gm" if write == COPY else "store_scalar_gm"
    for cleaned, right in [("", False), (clean(), True), (clean(16), False), (ALL, True)]:
        found, x, _ = run("g.SetValue(4, 7);", cleaned, write, order=order)
        assert found == (
            []
            if right
            else [
                f"2 stale-cache: {name} must write global memory behind a dcci, got none since the "
                f"scalar unit's store at {where(0)} to the same 64 B, which the data cache writes "
                "back over it; call asc_dcci_single first"
            ]
        )
        assert x[2] == (2 if order == "late" and not right else 100)


@pytest.mark.sweep
def test_a_copy_beside_a_changed_line_is_none_of_its_business():
    assert run("g.SetValue(4, 7);", "DataCopy(g[16], t, 16);")[0] == []
    assert run("g.SetValue(4, 7);", "DataCopy(t, g[8], 8);", "g.SetValue(5, 8);")[0] == []
    rows = "DataCopyParams p(2, 1, 0, 3); DataCopy(g, t, p);"  # 32 B of each 128
    assert run("g.SetValue(20, 7);", rows)[0] == []


@pytest.mark.sweep
def test_the_scalar_unit_reads_its_own_stores():
    for order in ("program", "late"):
        found, _, y = run("g.SetValue(4, 7);", "h.SetValue(0, g.GetValue(4) + 1);", order=order)
        assert (found, y[0]) == ([], 8)
        found, _, y = run(COPY, "g.SetValue(4, 7);", "h.SetValue(0, g(4) + 1);", order=order)
        assert (found, y[0]) == ([], 8)


ENGINES = [("fast", "program"), ("reference", "program"), ("fast", "late")]


def held(line, store):
    return (
        f"{line} stale-cache: a scalar read of global memory must come behind a dcci, got none "
        f"since {store} wrote there, and the data cache has held these 64 B since before; call "
        "asc_dcci_single first"
    )


@pytest.mark.thinned(3)
@pytest.mark.parametrize(("engine", "order"), ENGINES)
def test_a_held_line_is_old_behind_another_cores_copy(engine, order):
    load, copy = "if (b == 1) g.GetValue(3);", f"if (b == 0) {{ {COPY} }}"
    then = "if (b == 1) {{ {} h.SetValue(0, g.GetValue(5)); }}"
    copied = f"copy_ubuf_to_gm of {CORES[0]} at {where(2)}"
    for first, cleaned, right in [
        (load, "", False),
        (load, clean(16), False),
        (load, clean(), True),
        ("", "", True),
    ]:
        steps = first, SIGNAL, copy, SIGNAL, then.format(cleaned)
        found, _, y = run(*steps, blocks=2, engine=engine, order=order)
        assert found == ([] if right else [held(4, copied)])
        assert y[0] == (5 if order == "late" and not right else 100)


@pytest.mark.thinned(3)
@pytest.mark.parametrize(("engine", "order"), ENGINES)
def test_another_core_reads_a_store_behind_dcci_and_a_signal(engine, order):
    read = "if (b == 1) h.SetValue(0, g.GetValue(3));"
    copy = "if (b == 1) { DataCopy(t, g, 16); PipeBarrier<PIPE_ALL>(); DataCopy(h, t, 16); }"
    for use, subject, at in [
        (read, "a scalar read of global memory must come", 0),
        (copy, "copy_gm_to_ubuf must read global memory", 3),
    ]:
        for cleaned, right in [("", False), (clean(), True), (clean(16), False)]:
            steps = f"if (b == 0) {{ g.SetValue(3, 7); {cleaned} }}", SIGNAL, use
            found, x, y = run(*steps, blocks=2, engine=engine, order=order)
            unclean = (
                f"2 stale-cache: {subject} behind a dcci by {CORES[0]}, got none between its "
                f"scalar unit's store at {where(0)} and its signal; call asc_dcci_single behind "
                "the store"
            )
            assert found == ([] if right else [unclean])
            assert (x[3], y[at]) == (7, 3 if order == "late" and not right else 7)


@pytest.mark.thinned(3)
@pytest.mark.parametrize(("engine", "order"), ENGINES)
def test_cores_share_no_line(engine, order):
    store, cleaned = "h.SetValue({} * b, b + 1);", clean(0, "h")
    first = CORES[1] if order == "late" else CORES[0]  # the last core is the first one there
    shared = (
        "0 stale-cache: store_scalar_gm must have its 64 B of the data cache alone, got "
        f"store_scalar_gm of {first} at {where(0)} in the same ones and no order between the "
        "cores: lines are written back whole; keep what cores write 64 B apart"
    )
    for apart, dcci in [(1, ""), (1, cleaned), (16, ""), (20, cleaned)]:
        found, _, y = run(store.format(apart) + dcci, blocks=2, engine=engine, order=order)
        assert found == ([] if apart >= 16 else [shared])
        lost = order == "late" and apart == 1 and not dcci
        assert (y[0], y[apart]) == (0 if lost else 1, 2)


@pytest.mark.thinned(3)
@pytest.mark.parametrize(("engine", "order"), ENGINES)
def test_cores_share_a_line_behind_dcci_and_a_signal(engine, order):
    unclean = (
        f"2 stale-cache: store_scalar_gm must store behind a dcci by {CORES[0]}, got none between "
        f"its scalar unit's store at {where(0)} to the same 64 B and its signal; call "
        "asc_dcci_single behind the store"
    )
    for dcci, right in [("", False), (clean(0, "h"), True)]:
        steps = (
            f"if (b == 0) {{ h.SetValue(0, 1); {dcci} }}",
            SIGNAL,
            "if (b == 1) h.SetValue(1, 2);",
        )
        found, _, y = run(*steps, blocks=2, engine=engine, order=order)
        assert found == ([] if right else [unclean])
        assert y[:2].tolist() == [0 if order == "late" and not right else 1, 2]
    steps = "if (b == 0) h.SetValue(0, 1);", SIGNAL, "if (b == 1) DataCopy(h[8], t, 8);"
    (found,), _, y = run(*steps, blocks=2, engine=engine) if order == "program" else ([""], 0, 0)
    assert found == (
        ""
        if order == "late"
        else unclean.replace(
            "store_scalar_gm must store", "copy_ubuf_to_gm must write global memory"
        )
    )


@pytest.mark.sweep
@pytest.mark.parametrize(("engine", "order"), ENGINES)
def test_a_line_that_another_core_copied_into_takes_old_bytes_back(engine, order):
    load, copy = "if (b == 1) g.GetValue(3);", f"if (b == 0) {{ {COPY} }}"
    for cleaned, right in [("", False), (clean(), True)]:
        steps = load, SIGNAL, copy, SIGNAL, f"if (b == 1) {{ {cleaned} g.SetValue(3, 5); }}"
        found, x, _ = run(*steps, blocks=2, engine=engine, order=order)
        wrong = [old_store(4, 2, "", "the data cache holds")]
        assert found == ([] if right else wrong)
        line = OLD if order == "late" and not right else NEW
        assert x[:16].tolist() == [*line[:3], 5, *line[4:16]]


@pytest.mark.sweep
@pytest.mark.parametrize("engine", ["fast", "reference"])
def test_a_copy_and_another_cores_store_share_no_line(engine):
    steps = "if (b == 0) DataCopy(g[8], t, 8);", "else g.SetValue({}, 5);"
    assert run(steps[0], steps[1].format(16), blocks=2, engine=engine)[0] == []
    assert run(steps[0], steps[1].format(1), blocks=2, engine=engine)[0] == [
        "1 stale-cache: store_scalar_gm must have its 64 B of the data cache alone, got "
        f"copy_ubuf_to_gm of {CORES[0]} at {where(0)} in the same ones and no order between the "
        "cores: lines are written back whole; keep what cores write 64 B apart"
    ]


def test_what_a_pointer_stores_is_in_the_line_that_is_held():
    for order in ("program", "late"):
        pointer = "((__gm__ int32_t*)x)[3] = g.GetValue(3) + 40;"
        found, x, y = run(
            pointer, "h.SetValue(0, g.GetValue(3));", "g.SetValue(4, 9);", order=order
        )
        assert (found, x[:6].tolist(), y[0]) == ([], [0, 1, 2, 43, 9, 5], 43)


@pytest.mark.sweep
def test_a_core_that_takes_blocks_in_turns_begins_each_with_a_clean_cache():
    body = """GlobalTensor<int32_t> g; g.SetGlobalBuffer((__gm__ int32_t*)x);
LocalTensor<int32_t> t(TPosition::VECIN, 0, 16);
const int b = GetBlockIdx();
if (b >= 40) g.SetValue(16 * b, g.GetValue(16 * (b - 40)) + 1);
Duplicate(t, b, 16); PipeBarrier<PIPE_ALL>();
if (b < 40) { g.GetValue(16 * b); DataCopy(g[16 * b], t, 16); PipeBarrier<PIPE_ALL>(); }"""
    for order in ("program", "late"):
        x = np.zeros(80 * 16, np.int32)
        assert kernel(body, order=order)[80](x).findings == ()
        assert x[40 * 16 :: 16].tolist() == [b + 1 for b in range(40)]
