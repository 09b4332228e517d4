"""An instruction that is not made still says which of its operands begin outside of a memory."""

import numpy as np
import pytest

import cubecore


@cubecore.kernel
def masked(core, x, past, lanes):
    """Add a tile under a mask of some lanes, at an address within UB or past it."""
    core.asc_set_vector_mask(0, lanes)
    tile = core.ubuf.at("float", 196608 + 256 if past else 0)
    core.asc_copy_gm2ub(core.ubuf.at("float", 0), x, 256)
    core.asc_sync()
    core.asc_add(tile, core.ubuf.at("float", 0), core.ubuf.at("float", 0), 1, 1, 1, 1, 8, 8, 8)


@pytest.mark.parametrize("engine", ["fast", "reference"])
def test_an_instruction_without_an_active_lane_names_an_address_past_ub(engine):
    def found(past, lanes):
        run = masked.using(engine=engine)[1](np.ones(64, np.float32), past, lanes)
        return [(one.id, one.message) for one in run.findings]

    no_lane = ("parameter", "vadd: the vector mask must have an active lane, got all lanes off")
    outside = (
        "out-of-bounds",
        "vadd.dst must start inside UB (0 to 196608 B), got address 196864",
    )
    assert found(past=False, lanes=255) == []
    assert found(past=False, lanes=0) == [no_lane]
    assert found(past=True, lanes=0) == [no_lane, outside]
