"""Kernels in lockstep against the reference engine: bytes, findings, counts, and when it ends."""

from pathlib import Path

import numpy as np
import pytest

import cubecore
from cubecore.errors import DeadlockError
from cubecore.frontends.source_locations import KernelError

FULL = 2**64 - 1


def both(kernel, blocks, arrays, *numbers, engine="lockstep", **options):
    """Run on both engines; require the same arrays, findings and count, and the engine's name."""
    runs, left = [], []
    for which in ("fast", "reference"):
        own = [array.copy() for array in arrays]
        runs.append(kernel.using(engine=which, **options)[blocks](*own, *numbers))
        left.append(own)
    fast, slow = runs
    assert slow.engine == "reference"
    assert fast.engine in engine.split()
    assert fast.findings == slow.findings
    assert fast.issued == slow.issued
    for one, other in zip(*left, strict=True):
        assert one.tobytes() == other.tobytes()
    return fast, left[0]


@cubecore.kernel(outputs="z")
def scaled_sum(core, x, y, z, tiles):
    a, b, c = (core.ubuf("half", 256) for _ in range(3))
    core.asc_set_vector_mask(FULL, FULL)
    for tile in range(tiles):
        at = (core.block_idx * tiles + tile) * 256
        if tile:
            core.asc_sync_wait("PIPE_V", "PIPE_MTE2", 0)
            core.asc_sync_wait("PIPE_MTE3", "PIPE_V", 1)
        core.asc_copy_gm2ub(a, x + at, 512)
        core.asc_copy_gm2ub(b, y, 512)
        core.asc_sync_notify("PIPE_MTE2", "PIPE_V", 0)
        core.asc_sync_wait("PIPE_MTE2", "PIPE_V", 0)
        core.asc_add(c, a, b, 2, 1, 1, 1, 8, 8, 8)
        core.asc_sync_pipe("PIPE_V")
        core.asc_mul_scalar(c, c, 3.0, 2, 1, 1, 8, 8)
        if tile < tiles - 1:
            core.asc_sync_notify("PIPE_V", "PIPE_MTE2", 0)
        core.asc_sync_notify("PIPE_V", "PIPE_MTE3", 0)
        core.asc_sync_wait("PIPE_V", "PIPE_MTE3", 0)
        core.asc_copy_ub2gm(z + at, c, 512)
        if tile < tiles - 1:
            core.asc_sync_notify("PIPE_MTE3", "PIPE_V", 1)


def inputs(blocks, tiles=3):
    rng = np.random.default_rng(blocks)
    x = rng.standard_normal(blocks * tiles * 256).astype(np.float16)
    y = rng.standard_normal(256).astype(np.float16)
    return x, y, np.zeros_like(x)


@pytest.mark.parametrize("blocks", [1, 2, 40])
def test_groups_of_any_size_leave_the_same(blocks):
    x, y, z = inputs(blocks)
    run, (_, _, z) = both(scaled_sum, blocks, (x, y, z), 3)
    assert run.clean
    wide = (x.reshape(-1, 256) + y).reshape(-1)  # each step rounds to half
    assert np.array_equal(z, (wide.astype(np.float32) * 3).astype(np.float16))


@cubecore.kernel(outputs="z")
def one_tile_of_two(core, x, z):
    """Load over the first of two tiles, or over the second, as the core's number says."""
    tiles, mine = core.ubuf("float", 128), core.block_idx
    core.asc_duplicate(tiles, 7.0, 128)
    core.asc_sync_pipe("PIPE_ALL")
    core.asc_copy_gm2ub(tiles + 64 * (mine % 2), x + 64 * mine, 256)
    core.asc_sync_pipe("PIPE_ALL")
    core.asc_copy_ub2gm(z + 128 * mine, tiles, 512)


def test_cores_at_other_local_addresses_are_no_group():
    x = np.arange(4 * 64, dtype=np.float32)
    run, (_, z) = both(one_tile_of_two, 4, (x, np.empty(512, np.float32)))
    wanted = np.full((4, 2, 64), 7, np.float32)
    wanted[np.arange(4), np.arange(4) % 2] = x.reshape(4, 64)
    assert run.clean
    assert np.array_equal(z, wanted.reshape(-1))


READ_BY_CORE: dict[int, list[int]] = {}


@cubecore.kernel
def reads_again(core, x, turns):
    """Read a place again and again, each time behind a copy to it."""
    tile, read = core.ubuf("int32", 8), READ_BY_CORE.setdefault(core.block_idx, [])
    read.clear()
    for turn in range(turns):
        core.asc_copy_gm2ub(tile, x + 8 * (core.block_idx * turns + turn), 32)
        core.asc_sync_pipe("PIPE_ALL")
        read.append(int(core.load(tile)))
        read.append(int(core.load(tile)))


def test_a_value_is_read_behind_what_was_recorded_before():
    x = np.arange(3 * 5 * 8, dtype=np.int32)
    for engine in ("fast", "reference"):
        assert reads_again.using(engine=engine)[3](x, 5).clean
        wanted = np.repeat(x[::8].reshape(3, 5), 2, axis=1)
        assert [READ_BY_CORE[n] for n in range(3)] == wanted.tolist()


def test_checks_that_are_off_change_nothing():
    both(scaled_sum, 3, inputs(3), 3, checks="none")


def test_a_core_with_another_tail_is_a_group_of_its_own():
    @cubecore.kernel(outputs="z")
    def tailed(core, x, z, length):
        a = core.ubuf("half", 256)
        start = core.asc_get_block_idx() * 256
        assert core.asc_get_block_num() == 5
        count = min(256, length - start)
        core.asc_copy_gm2ub(a, x + start, 2 * count)
        core.asc_sync()
        core.asc_add_scalar(a, a, 1.0, count)
        core.asc_sync()
        core.asc_copy_ub2gm(z + start, a, 2 * count)

    x = np.arange(256 * 4 + 48, dtype=np.float16)
    run, (_, z) = both(tailed, 5, (x, np.zeros_like(x)), x.size)
    assert run.clean
    assert np.array_equal(z, x + np.float16(1))


def test_a_race_is_every_cores():
    @cubecore.kernel(outputs="z")
    def racing(core, x, z):
        a = core.ubuf("half", 128)
        at = core.block_idx * 128
        core.asc_copy_gm2ub(a, x + at, 256)
        core.asc_copy_ub2gm(z + at, a, 256)

    x = np.arange(1024, dtype=np.float16)
    run, _ = both(racing, 8, (x, np.zeros_like(x)))
    assert [finding.id for finding in run.findings] == ["race-raw"]
    assert run.findings[0].count == 8


def test_what_every_core_does_wrong_is_found_in_lockstep():
    @cubecore.kernel(outputs="z")
    def wrong(core, x, z):
        a, b = core.ubuf("half", 256), core.ubuf("half", 256)
        at = core.block_idx * 256
        core.asc_sync_wait("PIPE_MTE2", "PIPE_V", 9)  # no such event
        core.asc_sync_notify("PIPE_M", "PIPE_FIX", 1)  # no such pair on an AIV
        core.asc_set_vector_mask(FULL, FULL)
        core.asc_copy_gm2ub(a, x + at, 512)
        core.asc_sync()
        core.asc_add(b, a, a, 300, 1, 1, 1, 8, 8, 8)  # too many repeats
        core.asc_add(b, a, b, 2, 1, 1, 1, 8, 8, 8)  # never written
        core.asc_add(b, a, a + 128, 2, 1, 1, 1, 8, 8, 8)  # behind the array
        core.asc_sync()
        core.asc_add(a, a + 16, a, 2, 1, 1, 1, 8, 8, 8)  # overlaps
        core.asc_sync()
        core.asc_add(b + 4, a, a, 1, 1, 1, 1, 8, 8, 8)  # misaligned
        core.asc_sync_notify("PIPE_V", "PIPE_MTE3", 0)  # left set
        core.asc_copy_ub2gm(z + at, b, 512)

    x = np.arange(2048, dtype=np.float16)
    run, _ = both(wrong, 8, (x, np.zeros_like(x)))
    assert {finding.count for finding in run.findings} == {8}
    kinds = {finding.id for finding in run.findings}
    assert kinds >= {"flag-parameter", "flag-pair", "parameter", "uninitialised", "overlap"}
    assert kinds >= {"misaligned", "race-raw", "flag-leaked", "out-of-bounds"}


@pytest.mark.parametrize("core", [0, 2])
def test_what_one_core_does_wrong_is_that_cores(core):
    """Bytes that only one of the tensors' cores has written: others find them written."""

    @cubecore.kernel(outputs="z")
    def part(core, x, z):
        a = core.ubuf("half", 128)
        core.asc_copy_gm2ub(a, x + core.block_idx * 128, 256)
        core.asc_sync()
        core.asc_copy_ub2gm(z + core.block_idx * 128, a, 256)

    x = np.arange(512, dtype=np.float16)
    run, _ = both(part, 4, (x, np.zeros(512 - 128 * (core == 2), np.float16)))
    assert len(run.findings) == (core == 2)


@pytest.mark.parametrize("short", [1, 63])
def test_a_core_that_leaves_its_tensor_reaches_what_lies_behind_in_lockstep(short):
    @cubecore.kernel(outputs="z")
    def whole_blocks(core, x, z):
        a, b = core.ubuf("float", 64), core.ubuf("float", 64)
        at = core.block_idx * 64
        core.asc_set_vector_mask(0, FULL)
        core.asc_copy_gm2ub(a, x + at, 256)
        core.asc_sync()
        core.asc_add(b, a, a, 1, 1, 1, 1, 8, 8, 8)  # of nobody's bytes on the last core
        core.asc_sync()
        core.asc_copy_ub2gm(z + at, b, 256)
        core.asc_sync()
        core.asc_copy_gm2ub(a, z + at, 256)

    x = np.arange(8 * 64 - short, dtype=np.float32)
    run, (_, z) = both(whole_blocks, 8, (x, np.zeros_like(x)))
    assert np.array_equal(z, 2 * x)
    assert {"out-of-bounds", "uninitialised"} <= {finding.id for finding in run.findings}
    assert {(finding.count, finding.core) for finding in run.findings} == {(1, "core 3 AIV1")}


def test_bytes_that_two_cores_write_are_those_of_their_turns():
    @cubecore.kernel
    def meeting(core, x, z):
        a = core.ubuf("half", 128)
        core.asc_copy_gm2ub(a, x + core.block_idx * 128, 256)
        core.asc_sync()
        core.asc_copy_ub2gm(z + core.block_idx * 64, a, 256)

    x = np.arange(512, dtype=np.float16)
    run, _ = both(meeting, 4, (x, np.zeros_like(x)))
    assert [finding.id for finding in run.findings] == ["race-waw"]
    both(meeting, 4, (x, np.zeros_like(x)), checks="none")


def test_a_core_that_reads_what_another_one_writes_goes_in_its_turn():
    @cubecore.kernel
    def shifting(core, x):
        a = core.ubuf("half", 128)
        core.asc_copy_gm2ub(a, x + core.block_idx * 128, 256)
        core.asc_sync()
        core.asc_copy_ub2gm(x + (core.block_idx + 1) * 128, a, 256)

    run, _ = both(shifting, 3, (np.arange(1024, dtype=np.float16),))
    assert run.findings


def test_values_are_read_by_every_core_in_lockstep():
    heard = []

    @cubecore.kernel(outputs="z")
    def reading(core, x, z):
        a = core.ubuf("int32", 64)
        at = core.block_idx * 64
        core.asc_copy_gm2ub(a, x + at, 256)
        core.asc_sync()
        heard.append((int(core.block_idx), int(a[1]), int((x + at)[2])))
        core.asc_set_vector_mask(0, FULL)
        core.asc_add_scalar(a, a, 1, 1, 1, 1, 8, 8)
        core.asc_sync()
        core.asc_copy_ub2gm(z + at, a, 256)

    x = np.arange(4 * 64, dtype=np.int32)
    run, (_, z) = both(reading, 4, (x, np.zeros_like(x)))
    assert run.clean
    assert np.array_equal(z, x + 1)
    assert sorted(heard) == sorted(2 * [(n, 64 * n + 1, 64 * n + 2) for n in range(4)])


@pytest.mark.parametrize("times", [[2, 2, 5], [3, 1, 3, 1, 3, 1], [1, 2, 3, 4, 5, 6, 7]])
def test_cores_that_part_go_on_in_groups_and_no_kernel_runs_twice(times):
    ran = []

    @cubecore.kernel(outputs="z")
    def steered(core, x, z):
        a = core.ubuf("int32", 64)
        at = core.block_idx * 64
        core.asc_copy_gm2ub(a, x + at, 256)
        core.asc_sync()
        core.asc_set_vector_mask(0, FULL)
        turns = int(a[0])
        ran.append((int(core.block_idx), turns))
        for _ in range(turns):
            core.asc_add_scalar(a, a, 1, 1, 1, 1, 8, 8)
            core.asc_sync_pipe("PIPE_V")
        core.asc_sync()
        core.asc_copy_ub2gm(z + at, a, 256)

    x = np.repeat(np.array(times, np.int32), 64)
    run, (_, z) = both(steered, len(times), (x, np.zeros_like(x)))
    assert run.clean
    assert np.array_equal(z, 2 * x)
    assert sorted(ran) == sorted(2 * list(enumerate(times)))


@pytest.mark.parametrize("blocks", [2, 4, 7])
def test_cores_that_read_what_their_neighbours_wrote_stay_together(blocks):
    @cubecore.kernel
    def ring(core, x):
        a, size = core.ubuf("half", 128), 128 * blocks
        at = core.block_idx * 128
        core.asc_copy_gm2ub(a, x + at, 256)
        core.asc_sync()
        core.asc_sync_inter_arrive("PIPE_MTE2", 0)
        core.asc_sync_inter_wait("PIPE_S", 0)
        core.asc_copy_ub2gm(x + (at + 128) % size, a, 256)
        core.asc_sync_inter_arrive("PIPE_MTE3", 1)
        core.asc_sync_inter_wait("PIPE_S", 1)
        core.asc_copy_gm2ub(a, x + (at + 256) % size, 256)
        core.asc_sync()

    x = np.arange(128 * blocks, dtype=np.float16)
    run, (z,) = both(ring, blocks, (x,))
    assert run.clean
    assert np.array_equal(z, np.roll(x, 128))


def test_a_core_that_reads_what_all_others_wrote_waits_for_all():
    @cubecore.kernel
    def summed(core, x, parts, y, waits):
        a, b = core.ubuf("float", 64), core.ubuf("float", 64)
        core.asc_copy_gm2ub(a, x + core.block_idx * 64, 256)
        core.asc_sync()
        core.asc_copy_ub2gm(parts + core.block_idx * 64, a, 256)
        core.asc_sync_inter_arrive("PIPE_MTE3", 0)
        if waits:
            core.asc_sync_inter_wait("PIPE_S", 0)
        core.asc_sync()
        core.asc_set_vector_mask(0, FULL)
        for block in range(core.block_num):
            core.asc_copy_gm2ub(b, parts + block * 64, 256)
            core.asc_sync()
            core.asc_add(a, a, b, 1, 1, 1, 1, 8, 8, 8)
            core.asc_sync()
        core.asc_copy_ub2gm(y + core.block_idx * 64, a, 256)

    x = np.arange(6 * 64, dtype=np.float32)
    run, (_, _, y) = both(summed, 6, (x, x * 0, x * 0), 1)
    assert run.clean
    assert np.array_equal(y, (x.reshape(6, 64) + x.reshape(6, 64).sum(axis=0)).ravel())
    run, _ = both(summed, 6, (x, x * 0, x * 0), 0)
    assert {finding.id for finding in run.findings} == {"race-raw", "race-war", "flag-leaked"}


def rounds(core, x, z, turns, missing):
    """AIVs ask their AIC for a tile after another; `missing` is left out."""
    size = 1024
    if core.is_aic:
        tile = core.cbuf("half", size)
        for turn in range(turns):
            if missing != "free" and turn > 1:
                core.asc_sync_block_wait("PIPE_MTE3", 1)
            at = (core.block_idx * turns + turn) * size
            core.asc_copy_gm2l1(tile, x + at, 2 * size)
            core.asc_sync()
            to = z + (core.block_idx * 2 + turn % 2) * size
            core.asc_copy_l12gm(to, tile, 1, size // 16, 0, 0)
            core.asc_sync()
            if missing != "ready":
                core.asc_sync_block_arrive("PIPE_MTE3", 0)
        return
    tile = core.ubuf("half", size)
    for turn in range(turns):
        if missing != "ready":
            core.asc_sync_block_wait("PIPE_S", 0)
        core.asc_copy_gm2ub(tile, z + (core.block_idx // 2 * 2 + turn % 2) * size, 2 * size)
        core.asc_sync()
        if missing != "free" and turn < turns - 2:
            core.asc_sync_block_arrive("PIPE_MTE2", 1)


@pytest.mark.parametrize("blocks", [1, 3])
@pytest.mark.parametrize("missing", ["", "free", "ready"])
def test_a_mix_kernel_stays_together_if_a_signal_is_missing_too(blocks, missing):
    kernel = cubecore.kernel(kind="mix")(rounds)
    x = np.arange(blocks * 5 * 1024).astype(np.float16)
    z = np.zeros(blocks * 2 * 1024, np.float16)
    run, _ = both(kernel, blocks, (x, z), 5, missing)
    assert {finding.id for finding in run.findings} == {
        "": set(), "free": {"race-war"}, "ready": {"race-raw", "race-war"}
    }[missing]  # fmt: skip


def test_a_kernel_that_fails_behind_a_wait_is_heard_after_what_comes_before():
    @cubecore.kernel
    def failing(core, x):
        core.asc_sync_inter_arrive("PIPE_S", 0)
        core.asc_sync_inter_wait("PIPE_S", 0)
        core.asc_sync_inter_wait("PIPE_S", 1)
        core.asc_add(x, x, x, 64)

    for engine in ("fast", "reference"):
        with pytest.raises(DeadlockError, match="waits for flag 1"):
            failing.using(engine=engine)[2](np.zeros(64, np.float32))


def test_what_a_kernel_itself_reports_is_kept():
    @cubecore.kernel(outputs="z")
    def stale(core, x, z):
        a = core.ubuf("half", 128)
        core.asc_copy_gm2ub(a, x + core.block_idx * 128, 256)
        core.asc_sync()
        core.asc_add_scalar(a, a, 1.0, 128)
        core.asc_sync_pipe("PIPE_V")
        core.asc_add_scalar(a, a, 1.0, 1, 1, 1, 8, 8)
        core.asc_sync()
        core.asc_copy_ub2gm(z + core.block_idx * 128, a, 256)

    x = np.arange(256, dtype=np.float16)
    run, _ = both(stale, 2, (x, np.zeros_like(x)))
    assert [finding.id for finding in run.findings] == ["stale-mask"]


def test_an_exception_names_the_users_line():
    @cubecore.kernel
    def failing(core, x):
        core.asc_copy_gm2ub(core.ubuf("half", 128), x, 256)
        raise ValueError("no more")

    with pytest.raises(KernelError) as caught:
        failing[4](np.zeros(128, np.float16))
    assert "ValueError: no more" in str(caught.value)
    assert Path(__file__).name in str(caught.value)


def test_a_long_kernel_is_executed_in_parts():
    @cubecore.kernel(outputs="z")
    def long(core, x, z):
        a = core.ubuf("int32", 64)
        at = core.block_idx * 64
        core.asc_copy_gm2ub(a, x + at, 256)
        core.asc_sync()
        core.asc_set_vector_mask(0, FULL)
        for _ in range(5000):
            core.asc_add_scalar(a, a, 1, 1, 1, 1, 8, 8)
            core.asc_sync_pipe("PIPE_V")
        core.asc_sync()
        core.asc_copy_ub2gm(z + at, a, 256)

    x = np.arange(128, dtype=np.int32)
    run, (_, z) = both(long, 2, (x, np.zeros_like(x)))
    assert run.clean
    assert np.array_equal(z, x + 5000)


def test_registers_that_values_leave_differ_from_core_to_core():
    @cubecore.kernel(outputs="z")
    def chosen(core, x, z):
        a, b, c = (core.ubuf("half", 128) for _ in range(3))
        at = core.block_idx * 128
        core.asc_set_vector_mask(FULL, FULL)
        core.asc_copy_gm2ub(a, x + at, 256)
        core.asc_duplicate(b, 64.0, 1, 1, 8)
        core.asc_sync()
        core.asc_repeat_reduce_max_value_index(c, a, 1, 1, 1, 8)
        core.asc_lt(a, b, 1, 1, 1, 1, 8, 8, 8)
        core.asc_sync()
        core.asc_select(c, a, b, 1, 1, 1, 1, 8, 8, 8)
        core.asc_sync()
        core.asc_copy_ub2gm(z + at, c, 256)

    x = np.random.default_rng(3).permutation(512).astype(np.float16)
    run, (_, z) = both(chosen, 4, (x, np.zeros_like(x)))
    assert run.clean
    assert np.array_equal(z, np.minimum(x, np.float16(64)))


def test_a_result_that_nobody_reads_is_found():
    @cubecore.kernel(outputs="z")
    def sums(core, x, z, wrong):
        a, b = core.ubuf("half", 128), core.ubuf("half", 128)
        core.asc_set_vector_mask(FULL, FULL)
        for turn in range(3):
            at = (core.block_idx * 3 + turn) * 128
            core.asc_copy_gm2ub(a, x + at, 256)
            core.asc_copy_gm2ub(b, x + at, 256)
            core.asc_sync()
            to = b if wrong else a
            core.asc_add(to, a, b, 1, 1, 1, 1, 8, 8, 8)
            core.asc_sync()
            core.asc_copy_ub2gm(z + at, a, 256)
            core.asc_sync()

    x = np.arange(768, dtype=np.float16)
    run, (_, z) = both(sums, 2, (x, np.zeros_like(x)), False, checks="all")
    assert run.clean
    assert np.array_equal(z, 2 * x)
    run, (_, z) = both(sums, 2, (x, np.zeros_like(x)), True, checks="all")
    assert {(f.id, f.instruction, f.count) for f in run.findings} == {("unread", "vadd", 4)}
    assert np.array_equal(z, x)
    assert both(sums, 2, (x, np.zeros_like(x)), True)[0].clean  # it is on if asked for


def test_a_result_that_some_cores_gather_is_judged_core_by_core():
    @cubecore.kernel(outputs="z", types={"x": "float", "at": "uint32"})
    def gathered(core, x, at, z):
        a, b, c = (core.ubuf("float", 64) for _ in range(3))
        where = core.ubuf("uint32", 64)
        core.asc_set_vector_mask(0, FULL)
        core.asc_copy_gm2ub(a, x + core.block_idx * 64, 256)
        core.asc_copy_gm2ub(where, at + core.block_idx * 64, 256)
        core.asc_sync()
        for _ in range(2):
            core.asc_add(b, a, a, 1, 1, 1, 1, 8, 8, 8)
            core.asc_sync()
            core.asc_gather(c, a, where, 64)
            core.asc_sync()
            core.asc_set_vector_mask(0, FULL)
            core.asc_copy_ub2gm(z + core.block_idx * 64, c, 256)
            core.asc_sync()

    x = np.arange(128, dtype=np.float32)
    for second, sums in ((np.arange(64) * 4, 0), (np.arange(64) * 4 + 256, 1)):
        at = np.concatenate([np.arange(64) * 4 + 256, second]).astype(np.uint32)
        arrays = (x, at, np.zeros_like(x))
        run, (_, _, z) = both(gathered, 2, arrays, checks="all")
        assert [f.core for f in run.findings] == ([] if sums else ["core 0 AIV1"])
        assert np.array_equal(z[64:], (1 + sums) * x[64:])


@pytest.mark.parametrize("shared", [0, 1])
@pytest.mark.parametrize("held", [0, 1])
def test_what_cores_share_is_seen_behind_a_deadlock_of_their_pipes(shared, held):
    @cubecore.kernel(outputs="z")
    def stuck(core, x, z, shared, held):
        a = core.ubuf("float", 64)
        mine = core.block_idx * 64
        core.asc_copy_gm2ub(a, x + mine, 256)
        core.asc_sync()
        core.asc_sync_wait("PIPE_V", "PIPE_MTE3", 0)
        if held:  # by the wait, while others go on
            core.asc_copy_ub2gm(z + (shared == 0) * mine, a, 256)
        core.asc_sync_wait("PIPE_MTE3", "S", 0)
        core.asc_sync_notify("PIPE_MTE3", "PIPE_V", 0)
        core.asc_sync_wait("PIPE_MTE3", "PIPE_V", 0)
        core.asc_sync_notify("PIPE_V", "PIPE_MTE3", 0)
        core.asc_copy_ub2gm(z + (shared == 0 or held) * mine, a, 256)

    x = np.arange(4 * 64, dtype=np.float32)
    run, _ = both(stuck, 4, (x, np.zeros_like(x)), shared, held)
    assert "flag-unmet" in {finding.id for finding in run.findings}
