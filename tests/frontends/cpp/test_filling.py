"""usecheck: what a copy filled in beyond its data, and results that depend on it."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from frontends.cpp.cpp_kernels import cli, kernel, needs_compiler

pytestmark = needs_compiler
ENGINES = pytest.mark.parametrize("engine", ["fast", "reference"])
PARAMETERS = "GM_ADDR x, GM_ADDR y, GM_ADDR w"
BEFORE = """\
template <HardEvent event> __aicore__ inline void order() { SetFlag<event>(0); WaitFlag<event>(0); }
__aicore__ inline void step() { PipeBarrier<PIPE_V>(); }
"""
FRAME = """\
    GlobalTensor<float> xg, yg, wg;
    xg.SetGlobalBuffer((__gm__ float*)x, 1024);
    yg.SetGlobalBuffer((__gm__ float*)y, 1024);
    wg.SetGlobalBuffer((__gm__ float*)w, 1024);
    LocalTensor<float> a(TPosition::VECCALC, 0, 1024), b(TPosition::VECCALC, 4096, 1024);
    LocalTensor<float> c(TPosition::VECCALC, 8192, 1024), e(TPosition::VECCALC, 12288, 1024);
    const uint32_t at = GetBlockIdx() * 128;
{load}
    order<HardEvent::MTE2_V>();
{compute}
    order<HardEvent::V_MTE3>();
{store}
"""
ROWS = "    DataCopyPad(a, xg[at], DataCopyExtParams(16, 4, 0, 0, 0), {false, 0, 0, 0.0f});"
"""16 rows of 4 B, each in a block of its own, at line 14; 28 B of each block are filling."""
PACKED = ROWS.replace("16, 4,", "1, 64,")
VALUE = ROWS.replace("{false, 0, 0, 0.0f}", "{true, 0, 7, 0.0f}")
TAIL = ROWS.replace("16, 4,", "1, 20,")
ADD = "    Adds(b, a, 1.0f, 16);"
STORE = "    DataCopy(yg[at], b, 16);"
PACK = "    DataCopyPad(yg[at], b, DataCopyExtParams(2, 4, 0, 0, 0));"
FIRST = "    DataCopyPad(yg[at], b, DataCopyExtParams(1, 4, 0, 0, 0));"
REMEDY = "leave them out by the count or mask, load rows side by side, or pad with a value"


def launched(
    load: str, compute: str, store: str, blocks: int = 1, checks: str = "all", **options: Any
) -> list[tuple[str, str, int]]:
    """Return the ids, sentences (without the place's function) and counts of findings."""
    body = FRAME.format(load=load, compute=compute, store=store)
    made = kernel(body, PARAMETERS, BEFORE, checks=checks, **options)
    x = np.arange(1024, dtype=np.float32)
    run = made[blocks](x, np.zeros(1024, np.float32), np.zeros(1024, np.float32))
    place = str(made.place)
    assert " (k)" in place
    return [(f.id, f.message.replace(" (k)", ""), f.count) for f in run.findings]


def filled(
    subject: str, size: int, behind: str, stored: int = 0, by: str = "copy_ubuf_to_gm"
) -> str:
    """Return the sentence on filling of the copy at line 14, stored at another line."""
    said = f"{subject} must read data, got {size} B of filling that copy_gm_to_ubuf_align"
    said += f" (inline.cpp:14) put behind {behind}"
    if stored:
        said += f", of which results are stored by {by} (inline.cpp:{stored})"
    return f"{said}; {REMEDY}"


@pytest.mark.thinned(4)
@ENGINES
@pytest.mark.parametrize("checks", ["all", "usecheck"])
def test_results_of_filling_that_are_stored_are_found(engine: str, checks: str) -> None:
    said = [("filling-read", filled("vadds.src", 56, "runs of 4 B", 18), 1)]
    assert launched(ROWS, ADD, STORE, checks=checks, engine=engine) == said
    assert launched(PACKED, ADD, STORE, checks=checks, engine=engine) == []
    assert launched(ROWS, ADD, STORE, checks="usual", engine=engine) == []


@pytest.mark.sweep
@ENGINES
def test_results_of_filling_that_stay_behind_are_nothing(engine: str) -> None:
    """A whole block is computed, and its data alone are stored: the usual way of a tail."""
    assert launched(ROWS, ADD, PACK, engine=engine) == []
    one = "    DataCopyPad(yg[at], b, DataCopyExtParams(1, {}, 0, 0, 0));"
    assert launched(TAIL, "    Adds(b, a, 1.0f, 8);", one.format(20), engine=engine) == []
    by = "copy_ubuf_to_gm_align"
    said = [("filling-read", filled("vadds.src", 4, "a run of 20 B", 18, by), 1)]
    assert launched(TAIL, "    Adds(b, a, 1.0f, 8);", one.format(24), engine=engine) == said


@ENGINES
def test_padding_with_a_value_is_data(engine: str) -> None:
    assert launched(VALUE, ADD, STORE, engine=engine) == []


@pytest.mark.thinned(2)
@ENGINES
def test_filling_that_is_written_over_is_data(engine: str) -> None:
    over = "    uint64_t mask[2] = {0xE0, 0}; Duplicate(a, 0.0f, mask, 1, 1, 8); step();\n"
    assert (
        launched(TAIL, over + "    Adds(b, a, 1.0f, 8);", STORE[:-4] + "8);", engine=engine) == []
    )
    few = over.replace("0xE0", "0xC0")
    said = [("filling-read", filled("vadds.src", 4, "a run of 20 B", 19), 1)]
    assert (
        launched(TAIL, few + "    Adds(b, a, 1.0f, 8);", STORE[:-4] + "8);", engine=engine) == said
    )


SUM = "    WholeReduceSum(b, a, {count}, 1, 1, 1, 8);"


@pytest.mark.sweep
@ENGINES
def test_lanes_that_are_taken_together_with_filling_are_found_where_they_are_read(
    engine: str,
) -> None:
    assert launched(TAIL, SUM.format(count=5), FIRST, engine=engine) == []
    said = [("filling-read", filled("vcadd.src", 12, "a run of 20 B"), 1)]
    assert launched(TAIL, SUM.format(count=8), FIRST, engine=engine) == said


@pytest.mark.thinned(2)
@ENGINES
def test_the_first_reader_of_filling_is_named(engine: str) -> None:
    more = "    Adds(c, a, 1.0f, 16); step(); Mul(e, c, c, 16); step(); Exp(b, e, 16);"
    said = [("filling-read", filled("vadds.src", 56, "runs of 4 B", 18), 1)]
    assert launched(ROWS, more, STORE, engine=engine) == said
    summed = "    Adds(c, a, 1.0f, 8); step(); WholeReduceSum(b, c, 8, 1, 1, 1, 8);"
    said = [("filling-read", filled("vcadd.src", 28, "runs of 4 B"), 1)]
    assert launched(ROWS, summed, FIRST, engine=engine) == said


@pytest.mark.sweep
@ENGINES
def test_elements_that_are_picked_from_among_filling_are_data(engine: str) -> None:
    pick = """\
    uint64_t kept = 0;
    GatherMask(c, a, 3, false, 0, {{1, 2, 8, 0}}, kept); step();
    GatherMask(e, c, {pattern}, false, 0, {{1, 1, 8, 0}}, kept); step();
    Adds(b, e, 1.0f, 8);"""
    store = "    DataCopy(yg[at], b, 8);"
    assert launched(ROWS, pick.format(pattern=1), store, engine=engine) == []
    said = [("filling-read", filled("vadds.src", 32, "runs of 4 B", 21), 1)]
    assert launched(ROWS, pick.format(pattern=2), store, engine=engine) == said


@pytest.mark.sweep
@ENGINES
def test_a_broadcast_passes_filling_on(engine: str) -> None:
    tail = "    Brcb(b, a, 1, {1, 8});"
    store = "    DataCopy(yg[at], b, 40);"
    assert launched(TAIL, tail, store, engine=engine) == []
    said = [("filling-read", filled("vbrcb.src", 32, "a run of 20 B", 18), 1)]
    assert launched(TAIL, tail, store.replace("40", "48"), engine=engine) == said


BACK = """\
    PipeBarrier<PIPE_ALL>();
    DataCopy(wg[at], a, 16);
    PipeBarrier<PIPE_ALL>();
    DataCopy(c, wg[at], 16);
    PipeBarrier<PIPE_ALL>();
    {}"""


@pytest.mark.thinned(2)
@ENGINES
@pytest.mark.parametrize("scratch", [(), ("w",)])
def test_filling_goes_through_a_workspace(engine: str, scratch: tuple[str, ...]) -> None:
    whole = {"engine": engine, "scratch": scratch}
    never = BACK.format("Duplicate(b, 1.0f, 16);")
    assert launched(ROWS, never, STORE, **whole) == []
    said = [("filling-read", filled("vadds.src", 56, "runs of 4 B", 23), 1)]
    assert launched(ROWS, BACK.format("Adds(b, c, 1.0f, 16);"), STORE, **whole) == said
    assert launched(PACKED, BACK.format("Adds(b, c, 1.0f, 16);"), STORE, **whole) == []


@pytest.mark.sweep
@ENGINES
def test_results_of_filling_in_a_workspace_are_nothing_until_they_are_stored(engine: str) -> None:
    store = "    DataCopy(wg[at], b, 16);"
    assert launched(ROWS, ADD, store, engine=engine, scratch="w") == []
    said = [("filling-read", filled("vadds.src", 56, "runs of 4 B", 18), 1)]
    assert launched(ROWS, ADD, store, engine=engine) == said


@pytest.mark.sweep
@ENGINES
def test_each_core_counts(engine: str) -> None:
    said = [("filling-read", filled("vadds.src", 56, "runs of 4 B", 18), 4)]
    assert launched(ROWS, ADD, STORE, blocks=4, engine=engine) == said
    place = "    Adds(a, a, 1.0f, 16);", "    DataCopy(yg[at], a, 16);"
    assert launched(ROWS, *place, blocks=4, engine=engine) == said
    said = [("filling-read", filled("vcadd.src", 12, "a run of 20 B"), 4)]
    sum_in_place = "    WholeReduceSum(a, a, 8, 1, 1, 1, 8); Adds(b, a, 1.0f, 1);"
    assert [
        one for one in launched(TAIL, sum_in_place, FIRST, 4, engine=engine) if "fill" in one[0]
    ] == said


@pytest.mark.sweep
@ENGINES
def test_cores_that_differ_are_judged_each(engine: str) -> None:
    tail = TAIL.replace("1, 20,", "1, GetBlockIdx() == 3 ? 20u : 32u,")
    add = "    Adds(b, a, 1.0f, 8);"
    said = [("filling-read", filled("vadds.src", 12, "a run of 20 B", 18), 1)]
    assert launched(tail, add, STORE[:-4] + "8);", blocks=4, engine=engine) == said
    through = BACK.replace(", 16);", ", 8);").format("Adds(b, c, 1.0f, 8);")
    said = [("filling-read", filled("vadds.src", 12, "a run of 20 B", 23), 1)]
    assert launched(tail, through, STORE[:-4] + "8);", blocks=4, engine=engine) == said


@pytest.mark.parametrize("order", ["late", "early", "random:3"])
def test_other_orders_find_the_same(order: str) -> None:
    said = [("filling-read", filled("vadds.src", 56, "runs of 4 B", 18), 1)]
    assert launched(ROWS, ADD, STORE, order=order) == said
    assert launched(PACKED, ADD, STORE, order=order) == []


@ENGINES
def test_uninitialised_bytes_beside_filling_are_still_found(engine: str) -> None:
    (one,) = launched(TAIL, "    Adds(b, a, 1.0f, 12);", FIRST, engine=engine)
    said = "vadds.src must be initialised in UB, got 4 of 64 elements never written, first"
    assert one == ("uninitialised", f"{said} repeat 0, lane 8", 1)


@pytest.mark.sweep
@ENGINES
def test_the_copies_of_another_architecture_fill_alike(engine: str) -> None:
    on = {"engine": engine, "chip": "Ascend950PR_9589"}
    by = "copy_ubuf_to_gm_v2"
    said = filled("vadds.src", 56, "runs of 4 B", 18, by).replace("_align (", "_align_v2 (")
    assert launched(ROWS, ADD, STORE, **on) == [("filling-read", said, 1)]
    assert launched(PACKED, ADD, STORE, **on) == []
    assert launched(VALUE, ADD, STORE, **on) == []


PROGRAM = """\
#include "acl/acl.h"
#include "kernel_operator.h"
using namespace AscendC;
__global__ __aicore__ void load(GM_ADDR x, GM_ADDR w) {
  GlobalTensor<float> xg, wg;
  xg.SetGlobalBuffer((__gm__ float*)x, 64);
  wg.SetGlobalBuffer((__gm__ float*)w, 64);
  LocalTensor<float> a(TPosition::VECCALC, 0, 64);
  DataCopyPad(a, xg, DataCopyExtParams(1, 20, 0, 0, 0), {false, 0, 0, 0.0f});
  PipeBarrier<PIPE_ALL>();
  DataCopy(wg, a, 8);
}
__global__ __aicore__ void add(GM_ADDR w, GM_ADDR y) {
  GlobalTensor<float> yg, wg;
  yg.SetGlobalBuffer((__gm__ float*)y, 64);
  wg.SetGlobalBuffer((__gm__ float*)w, 64);
  LocalTensor<float> a(TPosition::VECCALC, 0, 64), b(TPosition::VECCALC, 256, 64);
  DataCopy(a, wg, 8);
  PipeBarrier<PIPE_ALL>();
  Adds(b, a, 1.0f, 8);
  PipeBarrier<PIPE_ALL>();
  DataCopyPad(yg, b, DataCopyExtParams(1, COUNT * 4, 0, 0, 0));
}
int main() {
  aclInit(nullptr);
  aclrtSetDevice(0);
  aclrtStream stream;
  aclrtCreateStream(&stream);
  float host[64] = {};
  void *x, *w, *y;
  for (void** each : {&x, &w, &y}) aclrtMalloc(each, 256, ACL_MEM_MALLOC_HUGE_FIRST);
  aclrtMemcpy(x, 256, host, 256, ACL_MEMCPY_HOST_TO_DEVICE);
  load<<<1, nullptr, stream>>>((GM_ADDR)x, (GM_ADDR)w);
  add<<<1, nullptr, stream>>>((GM_ADDR)w, (GM_ADDR)y);
  aclrtSynchronizeStream(stream);
  return 0;
}
"""


@pytest.mark.sweep
def test_filling_goes_from_a_programs_launch_to_the_next(tmp_path: Path) -> None:
    (tmp_path / "p.asc").write_text(PROGRAM.replace("COUNT", "8"))
    code, out, _ = cli(tmp_path, "run", "p.asc", "--checks", "all", "--json")
    (found,) = json.loads(out)["findings"]
    said = "vadds.src must read data, got 12 B of filling that copy_gm_to_ubuf_align"
    said += " (p.asc:9 (load)) put behind a run of 20 B, of which results are stored by"
    assert (code, found["id"]) == (1, "filling-read")
    assert found["message"] == f"{said} copy_ubuf_to_gm_align (p.asc:22 (add)); {REMEDY}"
    assert cli(tmp_path, "run", "p.asc")[0] == 0
    (tmp_path / "p.asc").write_text(PROGRAM.replace("COUNT", "5"))
    assert cli(tmp_path, "run", "p.asc", "--checks", "all")[0] == 0
