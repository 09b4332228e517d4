"""An instruction that leaves a memory is not made, and so orders nothing, in whichever order."""

import numpy as np
import pytest

import cubecore

ORDERS = ("program", "late", "early", "random:3")
UB = 196608


def filled(order, size):
    """Copy into UB, perhaps past its end, over what was filled there without a flag."""

    @cubecore.kernel(order=order, checks="memcheck,racecheck")
    def filling(core, x):
        tile = core.ubuf("float", 64)
        core.asc_duplicate(tile, 1.0, 64)
        core.asc_copy_gm2ub(tile, x, size)

    return filling[1](np.zeros(size // 4, np.float32)).findings


@pytest.mark.parametrize("order", ORDERS)
def test_a_copy_past_the_end_races_with_nothing(order):
    size = UB + 256
    (finding,) = filled(order, size)
    assert finding.message == (
        "copy_gm_to_ubuf.dst must stay inside its array, bytes [0, 256) of UB, "
        f"got bytes [0, {size})"
    )


@pytest.mark.parametrize("order", ORDERS)
def test_a_copy_inside_races(order):
    (finding,) = filled(order, 256)
    assert finding.id == "race-waw"


@pytest.mark.parametrize("order", ORDERS)
def test_a_copy_far_past_its_tensor_is_not_made(order):
    """Global memory behind the tensor ends, too: what UB has is not raced for."""

    @cubecore.kernel(order=order, checks="memcheck,racecheck")
    def reading(core, x):
        tile = core.ubuf("float", 64)
        core.asc_duplicate(tile, 1.0, 64)
        core.asc_copy_gm2ub(tile, x + (1 << 30), 256)

    assert {finding.id for finding in reading[1](np.zeros(64, np.float32)).findings} == {
        "out-of-bounds"
    }
