"""Scalar reads that the runtime answers: nothing that a launch leaves tells them from others."""

import random

import numpy as np
import pytest

import cubecore
from cubecore.errors import CubecoreError
from cubecore.frontends.cpp.launch import kernels as launches
from cubecore.frontends.cpp.launch.recording.bridge import Bridge
from cubecore.frontends.cpp.wire import Asks
from cubecore.workflows.scripts.script import times_of
from frontends.cpp.cpp_kernels import EXAMPLES, kernels, needs_compiler
from frontends.cpp.example_cases import BLOCKS, CASES, small

pytestmark = needs_compiler
PARAMETERS = "GM_ADDR x, GM_ADDR z"
HEAD = """
GlobalTensor<int32_t> xg, zg;
xg.SetGlobalBuffer((__gm__ int32_t*)x);
zg.SetGlobalBuffer((__gm__ int32_t*)z + BEGIN);
LocalTensor<int32_t> a(TPosition::VECCALC, 0, 256), b(TPosition::VECCALC, 1024, 256),
    c(TPosition::VECCALC, 2048, 256);
DataCopy(a, xg[256 * GetBlockIdx()], 256);
Duplicate(b, 7, 256);
int32_t total = 0;
for (int32_t n = 0; n < 24; ++n) {
"""
END = """
}
SetFlag<HardEvent::S_V>(0);
WaitFlag<HardEvent::S_V>(0);
Duplicate(a, total, 8);
SetFlag<HardEvent::V_MTE3>(0);
WaitFlag<HardEvent::V_MTE3>(0);
DataCopy(zg, a, 256);
"""
PLACES = ("n", "255 - n", "n * 7 + 3 & 255", "total & 255", "n / 3")
MORE = {"n": "n", "t": "abc", "u": "abc", "p": PLACES, "k": range(24), "m": range(1, 9)}
STATEMENTS = (
    *["total += {t}.GetValue({p});"] * 2,
    *["for (int32_t i = 0; i < 4 * {m}; ++i) total += {t}.GetValue(i + {k});"] * 3,
    *["for (int32_t i = 99; i > 9; i -= {m}) {{ if ({t}.GetValue(i) > 8) Adds({u}, {u}, 1, 8); }}"]
    * 2,
    "for (int32_t i = 0; i < 4 * {m}; ++i) {t}.SetValue(i, {u}.GetValue(i) + i);",
    *["if ({t}.GetValue({p}) & 1) Adds({u}[8 * {k}], {t}[8 * {k}], 1, 8 * {m});"] * 2,
    "{t}.SetValue({p}, total);",
    "{t}.SetValue({p}, {t}.GetValue({p}) + 1);",
    "total += {t}.ReinterpretCast<uint16_t>().GetValue({p});",
    "total += static_cast<int32_t>({t}.ReinterpretCast<half>().GetValue({p})) & 15;",
    "Muls({t}[8 * {k}], {u}[8 * {k}], 3, 8 * {m});",
    "Adds({t}, {u}, 1, 8 * {m}, 3, {{1, 1, 8, 8}});",
    "Duplicate({t}, total, 8 * {m}, 2, 2, 8);",
    "SetMaskCount(); SetVectorMask<int32_t, MaskMode::COUNTER>(0, 8 * {m} + 64);"
    " Adds<int32_t, false>({t}, {u}, 1, 1, 1, {{1, 1, 8, 8}}); SetMaskNorm(); ResetMask();",
    "DataCopy({t}[8 * {k}], xg[8 * {k}], 8 * {m});",
    "DataCopy({t}[8 * {k}], {u}[8 * {k}], 8 * {m});",
    "DataCopy(zg, {t}, 8 * {m});",
    "PipeBarrier<PIPE_ALL>();",
    "total += zg.GetValue({k});",
    "if (n == {m}) SyncAll();",
    "if (n == {m}) total += GetBlockIdx();",
)

BEGINS = ("256 * GetBlockIdx()", "128 * GetBlockIdx()", "256 * (GetBlockIdx() + 1)")
MEET = (False, True, False)
"""Where a core's share of 256 elements of z begins, and whether shares meet."""


def body(seed):
    """Return a kernel's body; of some the cores' shares meet."""
    rng = random.Random(seed)
    lines = [
        line.format(**{name: rng.choice(of) for name, of in MORE.items()})
        for line in rng.choices(STATEMENTS, k=rng.randint(3, 9))
    ]
    begin = BEGINS[seed % 3]
    return HEAD.replace("BEGIN", begin) + "\n".join(lines) + END


def left(kernel, blocks, *given):
    """Return all that a launch leaves: its error, or bytes, findings, counts, cycles and traces."""
    try:
        run = kernel.using(trace=True)[blocks](*given)
    except CubecoreError as error:
        return str(error), error.findings
    cycles = times_of(run.kernel, (run,), 0).longest.timeline.cycles
    arrays = [one.tobytes() for one in given if isinstance(one, np.ndarray)]
    traces = [(bytes(one.kinds), bytes(one.addresses)) for one in run.traces.values()]
    return arrays, run.findings, run.issued, cycles, traces


class Everything(set):
    """Stands for the files of all kernels."""

    def __rand__(self, other):
        return other


@pytest.fixture
def both(monkeypatch):
    """Return what launches with and without reading ahead; what they leave must be equal.

    What cores leave that `race` for bytes of global memory depends on which of them pause. It
    returns how many reads Python answered in each, and whether the first ran again.
    """
    asked, answer = [], Bridge._answers[Asks.LOAD]
    monkeypatch.setitem(
        Bridge._answers, Asks.LOAD, lambda *given: asked.append(1) or answer(*given)
    )

    def launched(kernel, blocks, *given, race=False):
        found = []
        for waiting in (set(), Everything()):
            asked.clear()
            monkeypatch.setattr(launches, "_PAUSING", waiting)
            copies = {id(one): one.copy() for one in given if isinstance(one, np.ndarray)}
            own = (copies.get(id(one), one) for one in given)
            found.append((left(kernel, blocks, *own), len(asked), bool(waiting)))
        (ahead, few, again), (plain, all_, _) = found
        assert race or ahead == plain
        return few, all_, again

    return launched


def numbers(seed):
    return np.random.default_rng(seed).integers(-50, 300, 4 * 256).astype(np.int32)


@pytest.mark.sweep
@pytest.mark.parametrize(
    "first", [0, *(pytest.param(n, marks=pytest.mark.sweep) for n in range(3, 150, 3))]
)
@pytest.mark.parametrize("auto_sync", [True, False])
def test_random_kernels_leave_the_same(first, auto_sync, both):
    seeds = range(first, first + 3)
    module = kernels({f"k{seed}": body(seed) for seed in seeds}, PARAMETERS, auto_sync=auto_sync)
    total = np.zeros(2, int)
    for seed in seeds:
        x, z = numbers(seed), np.zeros(4 * 256, np.int32)
        for out, race in ((z, MEET[seed % 3]), (x, True)):
            kernel = module[f"k{seed}"].using(limit=20_000)
            few, all_, again = both(kernel, 3, x, out, race=race)
            if again and not race:
                assert isinstance(left(kernel, 3, x.copy(), out.copy())[0], str), (
                    "it passes its limit"
                )
            total += few, all_
    assert first or total[0] < total[1]


@pytest.mark.parametrize(
    "case",
    [
        pytest.param(case, id=case[1], marks=() if "histogram" in case else pytest.mark.sweep)
        for case in CASES
    ],
)
def test_examples_leave_the_same(case, both):
    file, name = case
    few, all_, again = both(
        cubecore.load(EXAMPLES / f"{file}.cpp")[name], BLOCKS, *small(*case).arguments
    )
    assert not again
    assert few == all_ or 8 * few <= all_


FRAME = """
GlobalTensor<int32_t> xg, zg;
xg.SetGlobalBuffer((__gm__ int32_t*)x);
zg.SetGlobalBuffer((__gm__ int32_t*)z);
LocalTensor<int32_t> a(TPosition::VECCALC, 0, 256), b(TPosition::VECCALC, 1024, 256);
DataCopy(a, xg, 256);
int32_t first = a.GetValue(64), second = a.GetValue(73);
PipeBarrier<PIPE_ALL>();
BETWEEN
PipeBarrier<PIPE_ALL>();
int32_t got = GOT;
Duplicate(b, first + second + got, 8);
PipeBarrier<PIPE_ALL>();
DataCopy(zg[8], b, 8);
"""
COUNT = (
    "SetMaskCount(); SetVectorMask<int32_t, MaskMode::COUNTER>(0, 74);"
    "Adds<int32_t, false>(a, a, 1, 1, REPEAT, {1, 1, 8, 8}); SetMaskNorm(); ResetMask();"
)
BETWEEN = {
    "nothing": ("", lambda x: x[73], 2),
    "store": ("a.SetValue(73, 5);", lambda _: 5, 3),
    "stores_nearby": ("a.SetValue(72, 5); a.SetValue(74, 5);", lambda x: x[73], 3),
    "vector": ("Adds(a[64], a[64], 1, 16);", lambda x: x[73] + 1, 3),
    "vector_nearby": ("Adds(a[64], a[64], 1, 8);", lambda x: x[73], 2),
    "repeats": ("Adds(a[64], a[64], 1, 8, 2, {1, 1, 1, 1});", lambda x: x[73] + 1, 3),
    "lanes": (
        "uint64_t m[2] = {512, 0}; Adds(a[64], a[64], 1, m, 1, {1, 1, 8, 8});",
        lambda x: x[73] + 1,
        3,
    ),
    "count": (COUNT.replace("REPEAT", "1"), lambda x: x[73] + 1, 3),
    "count_alone": (COUNT.replace("REPEAT", "0"), lambda x: x[73] + 1, 3),
    "count_by_control": (
        COUNT.replace("REPEAT", "1")
        .replace("SetMaskCount()", "SetCtrlSpr<56, 56>(1)")
        .replace("SetMaskNorm()", "SetCtrlSpr<56, 56>(0)"),
        lambda x: x[73] + 1,
        3,
    ),
    "copy": ("DataCopy(a[64], xg[8], 16);", lambda x: x[17], 3),
    "copy_in_ub": ("DataCopy(a[64], a[16], 16);", lambda x: x[25], 3),
    "by_values": (
        "uint64_t kept; GatherMask(a[64], a[128], 1, false, 0, {1, 1, 8, 8}, kept);",
        lambda x: x[146],
        3,
    ),
    "signals": ("SyncAll();", lambda x: x[73], 3),
    "other_type": (
        "second += a.ReinterpretCast<uint16_t>().GetValue(147);",
        lambda x: x[73] + (int(x[73]) >> 16 & 0xFFFF),
        3,
    ),
}
BODIES = {
    name: FRAME.replace("BETWEEN", line).replace("GOT", "a.GetValue(73)")
    for name, (line, _, _) in BETWEEN.items()
}
OWN_COPY = "DataCopy(zg, a, 8); second += a.GetValue(73) - second;"
BODIES["own_copy"] = FRAME.replace("BETWEEN", OWN_COPY).replace("GOT", "((__gm__ int32_t*)z)[3]")
PRINT, LOOP = 'printf("%d", a.GetValue(74));', "while (a.GetValue(second++ & 127) < 999);"
BODIES["printed"] = FRAME.replace("BETWEEN", PRINT).replace("GOT", "first")
BODIES["endless"] = FRAME.replace("BETWEEN", LOOP).replace("GOT", "first")
BODIES["raced"] = """
GlobalTensor<int32_t> xg, zg;
xg.SetGlobalBuffer((__gm__ int32_t*)x + 256 * GetBlockIdx());
zg.SetGlobalBuffer((__gm__ int32_t*)z + 256 * (GetBlockIdx() + 1));
LocalTensor<int32_t> a(TPosition::VECCALC, 0, 256);
DataCopy(a, xg, 256);
int32_t total = 0;
for (int32_t n = 0; n < 16; ++n) total += a.GetValue(n);
if (total > 0) Duplicate(a, total, 256);
PipeBarrier<PIPE_ALL>();
DataCopy(zg, a, 256);
"""


@pytest.fixture(scope="module")
def module():
    return kernels(BODIES, PARAMETERS)


def result(kernel, x):
    z = np.zeros_like(x)
    assert kernel[1](x, z).findings == ()
    return z[8]


@pytest.mark.thinned(3)
@pytest.mark.parametrize("name", BETWEEN)
def test_a_value_is_what_was_written_last(name, module, both):
    x, (_, wanted, asks) = numbers(1), BETWEEN[name]
    assert result(module[name], x) == x[64] + x[73] + wanted(x)
    few, all_, again = both(module[name], 1, x, np.zeros_like(x))
    assert (few, all_, again) == (asks, all_, False)


def test_a_pointer_sees_what_came_before_a_value(module, both):
    x = numbers(2)
    assert result(module["own_copy"], x) == x[64] + x[73] + x[3]
    assert not both(module["own_copy"], 1, x, np.zeros_like(x))[2]


def test_what_is_printed_is_printed_once(module, monkeypatch, capfd):
    x, again = numbers(3), set()
    monkeypatch.setattr(launches, "_PAUSING", again)
    assert result(module["printed"], x) == 2 * x[64] + x[73]
    assert again
    assert capfd.readouterr().out == f"core 0 AIV0: {x[74]}\n"


def test_reads_count_as_instructions(module, both):
    endless = module["endless"].using(limit=1_000)
    few, all_, again = both(endless, 1, numbers(4), np.zeros(4 * 256, np.int32))
    assert again
    assert few > all_ > 900


def test_a_value_that_another_core_changes_is_asked_for(module, both):
    x = numbers(8)
    assert both(module["raced"], 3, x, x)[2]
    assert not both(module["raced"], 3, x, np.zeros_like(x))[2]


@pytest.mark.sweep
def test_long_rows_are_asked_for_seldom(both):
    text = FRAME.replace("BETWEEN", "for (int32_t n = 0; n < 256; ++n) second += a.GetValue(n);")
    few, all_, _ = both(
        kernels({"k": text.replace("GOT", "0")}, PARAMETERS).k, 2, numbers(5), numbers(6)
    )
    assert 20 * few < all_


@pytest.mark.sweep
def test_elements_are_copied_one_by_one_by_cores_that_differ():
    """Values of which most come once, of 1 to 4 bytes, with zeros of both signs among them."""
    body = """
      LocalTensor<{type}> from(TPosition::VECCALC, 0, 256), to(TPosition::VECCALC, 2048, 256);
      GlobalTensor<{type}> gx, gy;
      gx.SetGlobalBuffer((__gm__ {type}*)x + GetBlockIdx() * 256);
      gy.SetGlobalBuffer((__gm__ {type}*)y + GetBlockIdx() * 256);
      DataCopy(from, gx, 256);
      for (int n = 0; n < 256; ++n) {{
        if (n == 128) SetMaskCount();
        to.SetValue(255 - n, from.GetValue(n));
      }}
      SetMaskNorm();
      DataCopy(gy, to, 256);
      PipeBarrier<PIPE_ALL>();
      for (int n = 0; n < 16; ++n) gy.SetValue(n, gx.GetValue(n));
      DataCacheCleanAndInvalid<{type}, CacheLine::ENTIRE_DATA_CACHE>(gy);
    """
    types = {"half": np.float16, "float": np.float32, "int8_t": np.int8, "uint32_t": np.uint32}
    bodies = {f"copy_{name}": body.format(type=name) for name in types}
    module = kernels(bodies, "GM_ADDR x, GM_ADDR y")
    for name, of in types.items():
        x = (np.random.default_rng(5).standard_normal((3, 256)) * 99).astype(of)
        x[:, ::7], x[:, 1::9] = 0, -np.zeros(1, of)
        x[2] = x[1]
        y = np.zeros_like(x)
        assert getattr(module, f"copy_{name}")[3](x, y).findings == ()
        expected = np.hstack([x[:, :16], x[:, ::-1][:, 16:]])
        assert y.tobytes() == expected.tobytes()
