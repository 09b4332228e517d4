"""What leaves the array that its pointer was counted from, and what stays inside."""

import numpy as np
import pytest

from cubecore import Struct, kernel

A = np.arange(256, dtype=np.float32)


def found(function, *arguments, checks="memcheck"):
    """Return what memcheck says of a kernel on one block."""
    run = kernel(function).using(checks=checks)[1](*arguments)
    return [f"{f.id}: {f.message}" for f in run.findings]


def outside(who, array, got, mem="UB"):
    low, high = array
    return (
        f"out-of-bounds: {who} must stay inside its array, bytes [{low}, {high}) of {mem}, got "
        f"bytes [{got[0]}, {got[1]})"
    )


@pytest.mark.parametrize(
    ("shift", "count", "got"), [(0, 64, None), (8, 56, None), (8, 64, (32, 288)), (0, 65, (0, 260))]
)
def test_a_count_of_elements(shift, count, got):
    def adds(core, _):
        x = core.ubuf("float", 64)
        core.ubuf("float", 8)
        y = core.ubuf("float", 128)
        core.asc_add(y, x + shift, y, count)

    wanted = [] if got is None else [outside("vadd.src0", (0, 256), got)]
    assert found(adds, A) == wanted


@pytest.mark.parametrize(
    ("repeat", "mask", "got"),
    [(2, 2**64 - 1, None), (3, 2**64 - 1, (2048, 2816)), (3, 1, None), (3, 2**63, (2300, 2816))],
)
def test_repeats_and_lanes(repeat, mask, got):
    """The third repeat is outside but for what the mask lets through: its first lane's block."""

    def adds(core, _):
        y, x = core.ubuf("float", 512), core.ubuf("float", 136)
        core.asc_set_vector_mask(0, mask)
        core.asc_abs(y, x, repeat, 1, 1, 8, 8)

    wanted = [] if got is None else [outside("vabs.src", (2048, 2592), got)]
    assert found(adds, A) == wanted


def test_copies_casts_and_negative_steps():
    def moves(core, a):
        core.ubuf("half", 16)
        x = core.ubuf("half", 32)
        core.asc_copy_gm2ub(x.cast("float"), a, 64)
        core.asc_copy_gm2ub(x.cast("float") + 8, a, 64)
        core.asc_copy_gm2ub(x - 16, a, 64)
        core.asc_copy_gm2ub((x + 32)[-16:], a, 32)

    assert found(moves, A) == [
        outside("copy_gm_to_ubuf.dst", (32, 96), (64, 128)),
        outside("copy_gm_to_ubuf.dst", (32, 96), (0, 64)),
    ]


def test_the_padding_behind_an_array_is_its_own():
    def moves(core, a):
        x, _ = core.ubuf("float", 5), core.ubuf("float", 8)
        core.asc_copy_gm2ub(x, a, 32)
        core.asc_copy_gm2ub(x, a, 64)

    assert found(moves, A) == [outside("copy_gm_to_ubuf.dst", (0, 32), (0, 64))]


def test_arrays_of_a_struct_are_arrays():
    class Pair(Struct):
        x = ("float", 8)
        y = ("float", 8)

    def moves(core, a):
        pair = core.ubuf(Pair())
        core.asc_copy_gm2ub(pair.x, a, 64)
        core.asc_copy_gm2ub(pair.y, a, 32)

    assert found(moves, A) == [outside("copy_gm_to_ubuf.dst", (0, 32), (0, 64))]


def test_values_that_the_scalar_unit_reads():
    def reads(core, a):
        x, y = core.ubuf("float", 8), core.ubuf("float", 8)
        core.asc_copy_gm2ub(x, a, 32)
        core.asc_copy_gm2ub(y, a, 32)
        assert x[7] == 7
        assert x[8] == 0

    assert found(reads, A) == [outside("scalar load.src", (0, 32), (32, 36))]


def test_what_has_no_array():
    """Physical addresses and global memory have none."""

    def moves(core, a):
        core.asc_copy_gm2ub(core.ubuf.at("float", 0), a, 512)

    assert found(moves, A) == []


def test_it_belongs_to_memcheck():
    def moves(core, a):
        core.asc_copy_gm2ub(core.ubuf("float", 8), a, 64)

    assert len(found(moves, A, checks="memcheck")) == 1
    assert found(moves, A, checks="racecheck,initcheck,synccheck") == []


def test_in_every_order_and_once_for_a_line():
    def moves(core, a):
        x = core.ubuf("float", 8)
        for _ in range(3):
            core.asc_copy_gm2ub(x, a, 64)
            core.asc_sync()

    for order in ("program", "late", "random:3"):
        run = kernel(moves).using(order=order, checks="memcheck")[1](A)
        assert [(f.id, f.count) for f in run.findings] == [("out-of-bounds", 3)]


def test_what_steers_is_judged_and_what_is_steered_is_not():
    def merges(core, a, length):
        x, merged = core.ubuf("float", 16), core.ubuf("float", 64)
        core.asc_copy_gm2ub(x, a, 64)
        core.asc_copy_gm2ub(merged, a, 256)
        core.asc_sync()
        kept = core.ubuf("uint32", 8)
        core.asc_reduce(kept, x.cast("uint32"), x.cast("uint32"), 1, 1, length, 8, 8)

    got = [f for f in found(merges, A, 1) if f.startswith("out-of")]
    assert got == [outside("vreducev2.src0", (0, 64), (0, 252))]
