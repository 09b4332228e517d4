"""Blocks that wait for each other by notices, and blocks that take turns on the cores."""

from functools import cache

import numpy as np
import pytest

from cubecore.errors import CubecoreError, DeadlockError
from frontends.cpp.cpp_kernels import kernels, needs_compiler

pytestmark = needs_compiler
HEAD = """
  TPipe pipe;
  TBuf<TPosition::VECCALC> buf;
  pipe.InitBuffer(buf, 4096);
  LocalTensor<int32_t> t = buf.Get<int32_t>();
  LocalTensor<int32_t> ub = t[512];
  GlobalTensor<int32_t> g, sync;
  g.SetGlobalBuffer((__gm__ int32_t*)x);
  sync.SetGlobalBuffer((__gm__ int32_t*)notices);
  int32_t me = GetBlockIdx();
"""
ADD = """
  DataCopy(t, g, 8); PipeBarrier<PIPE_ALL>();
  Muls(t, t, 10, 8); PipeBarrier<PIPE_V>();
  Adds(t, t, me + 1, 8); PipeBarrier<PIPE_ALL>();
  DataCopy(g, t, 8); PipeBarrier<PIPE_ALL>();
"""
BODIES = {
    "chained": f"if (me > 0) IBWait(sync, ub, me - 1, 0); {ADD} IBSet(sync, ub, me, 0);",
    "unchained": "if (me > 0 && me != 2) IBWait(sync, ub, me - 1, 0);\n"
    f"{ADD} IBSet(sync, ub, me, 0);",
    "unset": "if (me == 1) IBWait(sync, ub, 0, 3); else IBSet(sync, ub, 0, 2);",
    "ascending": "InitDetermineComputeWorkspace(sync, ub);\n"
    f"for (int n = 0; n < 2; ++n) {{ WaitPreBlock(sync, ub); {ADD} NotifyNextBlock(sync, ub); }}",
    "unannounced": "InitDetermineComputeWorkspace(sync, ub);\n"
    f"{{ if (me != 2) WaitPreBlock(sync, ub); {ADD} NotifyNextBlock(sync, ub); }}",
    "grouped": """
      GroupBarrier<PipeMode::MTE3_MODE> bar((__gm__ uint8_t*)notices, 2, 3);
      Duplicate(t, me + 5, 8); PipeBarrier<PIPE_ALL>();
      if (me < 2) { DataCopy(g[me * 8], t, 8); bar.Arrive(me); return; }
      bar.Wait(me - 2);
      DataCopy(t, g, 16); PipeBarrier<PIPE_ALL>();
      DataCopy(g[me * 16], t, 16);
    """,
    "turns": """
      Duplicate(t, me * 1000 + (int32_t)GetBlockNum(), 8); PipeBarrier<PIPE_ALL>();
      DataCopy(g[me * 8], t, 8);
    """,
    "together": "SyncAll();",
}
WORKSPACE = 64 * 1024


@cache
def compiled():
    bodies = {name: HEAD + body for name, body in BODIES.items()}
    return kernels(bodies, "GM_ADDR x, GM_ADDR notices")


def run(name, blocks, elements):
    x = np.zeros(elements, np.int32)
    return x, compiled()[name][blocks](x, np.zeros(WORKSPACE, np.uint8))


def test_each_block_waits_for_the_one_before():
    x, run_ = run("chained", 6, 8)
    assert run_.findings == ()
    assert x.tolist() == [123456] * 8


def test_a_missing_wait_is_a_race():
    _, run_ = run("unchained", 6, 8)
    assert {finding.id for finding in run_.findings} >= {"race-raw"}


def test_a_notice_that_is_never_sent():
    with pytest.raises(DeadlockError, match=r"core 0 AIV1 waits for flag \d+ at inline.cpp:"):
        run("unset", 2, 8)


def test_blocks_in_ascending_order_round_after_round():
    x, run_ = run("ascending", 4, 8)
    assert run_.findings == ()
    assert x.tolist() == [12341234] * 8
    _, run_ = run("unannounced", 4, 8)
    assert {finding.id for finding in run_.findings} >= {"race-raw"}


def test_some_wait_for_all_of_a_group():
    x, run_ = run("grouped", 5, 80)
    assert run_.findings == ()
    assert x[32:].reshape(3, 2, 8).tolist() == [[[5] * 8, [6] * 8]] * 3


def test_more_blocks_than_cores_take_turns():
    x, run_ = run("turns", 100, 800)
    assert run_.findings == ()
    assert x[::8].tolist() == [1000 * block + 100 for block in range(100)]
    one = run("turns", 1, 8)[1].issued
    assert run_.issued == 20 * (3 * one + 2) + 20 * (2 * one + 1)  # a barrier between two blocks


def test_blocks_that_take_turns_cannot_wait_for_each_other():
    run("together", 40, 8)
    for name, call in (("together", "SyncAll"), ("chained", "a wait for other blocks")):
        with pytest.raises(CubecoreError) as caught:
            run(name, 41, 8)
        need = f"{call} must be called by 40 blocks at most, which run at once, got 41"
        assert str(caught.value).endswith(need)
