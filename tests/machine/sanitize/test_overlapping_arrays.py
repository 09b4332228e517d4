"""Arrays of Python kernels at addresses that share bytes, and the arrays of a launch themselves."""

import os
from pathlib import Path

import numpy as np
import pytest

from cubecore import kernel
from cubecore.isa.declare.instruction import Mem
from cubecore.machine.memory.local_arrays import LocalArrays

ENGINES = ("lockstep", "reference")
HERE = os.path.relpath(__file__)


def line_of(text: str) -> int:
    lines = Path(__file__).read_text().splitlines()
    return next(number for number, line in enumerate(lines, 1) if text in line)


def added(engine, at, waits):
    """Return what is found in a sum of 256 floats at 0 and of as many at an address."""

    @kernel(kind="vector", engine=engine)
    def add(core, x, y, z):
        a, b, c = (core.ubuf.at("float", address) for address in (0, at, 8192))
        core.asc_copy_gm2ub(a, x, 1024)
        if waits:
            core.asc_sync_pipe("MTE2")
        core.asc_copy_gm2ub(b, y, 1024)
        core.asc_sync_notify("MTE2", "V", 0)
        core.asc_sync_wait("MTE2", "V", 0)
        core.asc_add(c, a, b, 256)
        core.asc_sync_notify("V", "MTE3", 0)
        core.asc_sync_wait("V", "MTE3", 0)
        core.asc_copy_ub2gm(z, c, 1024)

    run = add[1](*(np.full(256, value, np.float32) for value in range(3)))
    return [f"{one.id}: {one.message}" for one in run.findings]


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("waits", [False, True])
@pytest.mark.parametrize("overlap", [32, 256, 512, 0])
def test_two_arrays_at_addresses(engine, waits, overlap):
    first, second, read = (
        line_of(text) for text in ("gm2ub(a, x, 1024)", "gm2ub(b, y, 1024)", "add(c, a, b, 256)")
    )
    at = 1024 - overlap
    assert added(engine, at, waits) == (
        [
            f"array-overwritten: copy_gm_to_ubuf.dst (MTE2, {HERE}:{second} (add)) must not "
            f"overwrite bytes [{at}, 1024) of UB before vadd.src0 (V, {HERE}:{read} (add)) has "
            f"read the result of copy_gm_to_ubuf.dst (MTE2, {HERE}:{first} (add)) there, got "
            f"arrays in bytes [0, 1024) and [{at}, {at + 1024}) that share [{at}, 1024); move one "
            "of them, as no barrier fixes it"
        ]
        if overlap
        else []
    )


@pytest.mark.parametrize("engine", ENGINES)
def test_a_tile_that_two_copies_fill(engine):
    @kernel(kind="vector", engine=engine)
    def shifted(core, x, z):
        tile, out = core.ubuf.at("float", 0), core.ubuf.at("float", 8192)
        core.asc_copy_gm2ub(tile, x, 1024)
        core.asc_sync_pipe("MTE2")
        core.asc_copy_gm2ub(tile + 192, x + 192, 1024)
        core.asc_sync_notify("MTE2", "V", 0)
        core.asc_sync_wait("MTE2", "V", 0)
        core.asc_add(out, tile, tile, 448)
        core.asc_sync_notify("V", "MTE3", 0)
        core.asc_sync_wait("V", "MTE3", 0)
        core.asc_copy_ub2gm(z, out, 1792)

    x, z = np.arange(448, dtype=np.float32), np.zeros(448, np.float32)
    assert shifted[1](x, z).findings == ()
    assert np.array_equal(z, 2 * x)


def test_arrays_share_bytes_in_part_or_lie_within_each_other():
    arrays = LocalArrays()
    for low, high in ((0, 1024), (512, 1024), (1024, 2048), (0, 1024), (64, 64)):
        arrays.declare(Mem.UB, low, high)
    assert arrays.partial(Mem.UB) == 0
    arrays.declare(Mem.L1, 512, 1536)
    assert (arrays.partial(Mem.UB), arrays.declares(Mem.L1), arrays.declares(Mem.L0A)) == (0, 1, 0)
    arrays.declare(Mem.UB, 992, 1056)
    assert arrays.partial(Mem.UB) == 1
    assert arrays.holders(Mem.UB, 992, 1024) == {(0, 1024), (512, 1024), (992, 1056)}
    assert arrays.holders(Mem.UB, 1000, 1100) == frozenset()


def test_of_many_arrays_none_is_told_apart():
    arrays = LocalArrays()
    for low in range(0, 200 * 32, 32):
        arrays.declare(Mem.UB, low, low + 48)
    assert arrays.partial(Mem.UB) == 0
