"""Launches whose arrays have sizes alone: the same instructions, and no memory."""

import mmap

import numpy as np
import pytest

import cubecore
from cubecore.errors import CubecoreError
from cubecore.frontends.kernels.blank_launch import recorded_share
from cubecore.frontends.kernels.session import ScriptSession
from cubecore.frontends.launch_timing import launch_of
from frontends.cpp.cpp_kernels import kernel, needs_compiler

pytestmark = needs_compiler

TILES = """  LocalTensor<float> t(TPosition::VECIN, 0, TILE);
  GlobalTensor<float> xg, yg;
  xg.SetGlobalBuffer((__gm__ float*)x);
  yg.SetGlobalBuffer((__gm__ float*)y);
  uint32_t own = tiles + (GetBlockIdx() + 1 == GetBlockNum() ? TAIL : 0);
  for (uint32_t i = 0; i < own; ++i) {
    uint64_t at = ((uint64_t)GetBlockIdx() * tiles + i) * TILE;
    DataCopy(t, xg[at], TILE);
    PipeBarrier<PIPE_ALL>();
    Adds(t, t, 1.0f, TILE);
    PipeBarrier<PIPE_ALL>();
    DataCopy(yg[at], t, TILE);
    PipeBarrier<PIPE_ALL>();
  }
"""
PARAMETERS = "GM_ADDR x, GM_ADDR y, uint32_t tiles"


def tiles(tail=0, tile=512):
    return kernel(
        TILES, PARAMETERS, f"constexpr uint32_t TILE = {tile}, TAIL = {tail};", trace=True
    )


def launched(made, x, y, count, **options):
    session = ScriptSession(**options)
    with session.collecting():
        return made[16](x, y, count)


@pytest.mark.parametrize("tail", [0, 3])
def test_cores_that_record_alone_take_the_time_of_those_that_execute(tail):
    """All of them, and some, of which the others are told by their distance."""
    made, size = tiles(tail), (16 * 8 + tail) * 512
    x, y = np.ones(size, np.float32), np.zeros(size, np.float32)
    plain = launched(made, x, y, 8)
    assert (y == 2).all()
    expected = cubecore.time_kernel(plain).timeline
    y[:] = 0
    for sampled in (0, 3):
        run = launched(made, x, y, 8, blank=True, sampled=sampled)
        assert not y.any()
        assert len(run.traces) == (6 if sampled else 16)
        timed = cubecore.time_kernel(run).timeline
        assert (timed.cycles, timed.issued) == (expected.cycles, expected.issued)


def test_arrays_may_be_larger_than_the_machine():
    """64 GiB each: a page of them is never touched."""
    flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | 0x4000
    x, y = (np.frombuffer(mmap.mmap(-1, 1 << 36, flags=flags), np.float32) for _ in range(2))
    run = launched(tiles(), x, y, (1 << 34) // (16 * 512) // 4096, blank=True)
    assert run.issued == 16 * 512 * 9
    assert {tensor.buffer.size_bytes for _, tensor in run.tensors} == {1 << 36}


def test_an_overflow_of_a_local_memory_is_told_by_the_record():
    made, size = tiles(tile=65536), 16 * 65536
    x, y = np.ones(size, np.float32), np.zeros(size, np.float32)
    (first, *others) = launched(made, x, y, 1, blank=True).findings
    assert first.id == "out-of-bounds"
    assert first.text == (
        "DataCopy (copy_gm_to_ubuf) at inline.cpp:12: dst must stay inside UB "
        "(0 to 196608 B), got bytes [0, 262144)"
    )
    assert {each.id for each in others} == {"out-of-bounds"}


def test_cores_unlike_each_other_are_not_told_from_some():
    body = TILES.replace("tiles + (", "(GetBlockIdx() & 7) + tiles + (")
    made = kernel(body, PARAMETERS, "constexpr uint32_t TILE = 512, TAIL = 0;", trace=True)
    x = np.ones(16 * 16 * 512, np.float32)
    run = launched(made, x, x.copy(), 8, blank=True, sampled=3)
    with pytest.raises(CubecoreError) as caught:
        launch_of(run)
    assert str(caught.value) == "k has cores unlike each other, and only some of them were run"


def test_values_that_a_kernel_reads_are_0_and_told_where_it_fails():
    """One that gives a call what it does not take, by a value of UB."""
    body = TILES.replace("Adds(t, t, 1.0f, TILE)", "Adds(t, t, 1.0f, (int32_t)t.GetValue(0) - 1)")
    made = kernel(body, PARAMETERS, "constexpr uint32_t TILE = 512, TAIL = 0;", trace=True)
    x = np.ones(16 * 512, np.float32)
    with pytest.raises(CubecoreError, match=r"^.*it depends on values that it reads: "):
        launched(made, x, x.copy(), 1, blank=True)


@pytest.mark.parametrize("sampled", [0, 3])
def test_a_launch_that_is_cut_tells_its_share_by_what_it_has_stored(sampled):
    """A quarter of the tiles of each core, or a little more, whichever records the most."""
    made, size = tiles(), 16 * 512 * 512
    x, y = np.ones(size, np.float32), np.zeros(size, np.float32)
    whole = launched(made, x, y, 512, blank=True)
    assert not whole.cut
    cores = 6 if sampled else 16
    limit = 8 * cores * 9 * 128
    run = launched(made, x, y, 512, blank=True, sampled=sampled, options={"limit": limit})
    assert run.cut
    assert {len(trace) for trace in run.traces.values()} == {9 * 128}
    assert recorded_share(run) == 0.25
    part, every = (cubecore.time_kernel(each).timeline.us for each in (run, whole))
    assert part / recorded_share(run) == pytest.approx(every, rel=0.2)
