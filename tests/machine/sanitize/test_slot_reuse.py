"""A slot that one core fills again while another may still read it: a signal back is missing."""

import numpy as np
import pytest

import cubecore
from cubecore.errors import CubecoreError

SIZE = 1024
TURNS = 6
ORDERS = "program", "late", "early", "random:3"


def kernel(without="", order="program"):
    """Return a kernel whose AIC fills two slots by turns, and whose AIVs read them."""

    @cubecore.kernel(kind="mix", order=order)
    def rounds(core, x, z):
        if core.is_aic:
            tile = core.cbuf("half", SIZE)
            for turn in range(TURNS):
                core.asc_copy_gm2l1(tile, x + turn * SIZE, 2 * SIZE)
                core.asc_sync()
                if without != "free" and turn > 1:
                    core.asc_sync_block_wait("PIPE_MTE3", 2 + turn % 2)
                core.asc_copy_l12gm(z + turn % 2 * SIZE, tile, 1, SIZE // 16, 0, 0)
                core.asc_sync_block_arrive("PIPE_MTE3", turn % 2)
                core.asc_sync()
            return
        tile = core.ubuf("half", SIZE)
        for turn in range(TURNS):
            if without != "ready" or turn < TURNS - 1:
                core.asc_sync_block_wait("PIPE_S", turn % 2)
            core.asc_copy_gm2ub(tile, z + turn % 2 * SIZE, 2 * SIZE)
            if without != "free" and turn < TURNS - 2:
                core.asc_sync_block_arrive("PIPE_MTE2", 2 + turn % 2)
            core.asc_sync()

    return rounds


def found(without, order="program", engine="fast"):
    """Return what a launch finds, in whichever way it ends."""
    x, z = np.zeros(TURNS * SIZE, np.float16), np.zeros(2 * SIZE, np.float16)
    try:
        return kernel(without, order).using(engine=engine)[1](x, z).findings
    except CubecoreError as error:
        return error.findings


@pytest.mark.parametrize("order", ORDERS)
def test_slots_with_both_signals_are_clean(order):
    assert list(found("", order)) == []


@pytest.mark.parametrize("engine", ["fast", "reference"])
@pytest.mark.parametrize("order", ORDERS)
def test_a_slot_that_nobody_gives_back_is_written_before_it_was_read(order, engine):
    races = [finding for finding in found("free", order, engine) if "race" in finding.id]
    assert {race.id for race in races} == {"race-war"}
    (read, write), race = races[0].accesses, races[0]
    assert (read.how, write.how, write.pipe) == ("read", "write", "MTE3")
    assert race.core == "core 0 AIC"
    assert race.location == write.location
    assert race.message == (
        f"copy_cbuf_to_gm.dst must write bytes [{write.start}, {write.end}) of z after "
        f"copy_gm_to_ubuf.src of {read.core} read them, got no order between {read.core} (MTE2, "
        f"{read.location}) and core 0 AIC (MTE3, {write.location}); signal core 0 AIC after the "
        "read and wait there"
    )


@pytest.mark.parametrize("order", ORDERS)
def test_a_slot_that_is_read_without_its_signal_is_read_too_early(order):
    races = [finding for finding in found("ready", order) if "race" in finding.id]
    raw = [race for race in races if race.id == "race-raw"]
    assert raw
    assert all(race.core in {"core 0 AIV0", "core 0 AIV1"} for race in raw)


@cubecore.kernel
def adds(core, x, z, flagged):
    """Add a tile to itself, with or without a flag behind its load."""
    tile = core.ubuf("float", 64)
    core.asc_copy_gm2ub(tile, x, 256)
    if flagged:
        core.asc_sync_notify("PIPE_MTE2", "PIPE_V", 0)
        core.asc_sync_wait("PIPE_MTE2", "PIPE_V", 0)
    core.asc_add(tile, tile, tile, 64)
    core.asc_sync()
    core.asc_copy_ub2gm(z, tile, 256)


@pytest.mark.parametrize("order", ORDERS)
def test_orders_keep_the_findings_of_a_race(order):
    def ids(flagged):
        launch = adds.using(order=order)[1]
        run = launch(np.ones(64, np.float32), np.zeros(64, np.float32), flagged)
        return [finding.id for finding in run.findings if finding.check == "racecheck"]

    assert ids(flagged=True) == []
    assert ids(flagged=False) == ["race-raw", "race-raw", "race-waw"]


@cubecore.kernel
def runs_ahead(core, x, z):
    """Read a value without a flag, so that the scalar unit sets its own flag again too early."""
    tile, most = core.ubuf("float", 64), core.ubuf("float", 64)
    for _ in range(2):
        core.asc_copy_gm2ub(tile, x, 256)
        core.asc_sync_notify("PIPE_MTE2", "PIPE_V", 0)
        core.asc_sync_wait("PIPE_MTE2", "PIPE_V", 0)
        core.asc_add(most, tile, tile, 64)
        core.load(most)
        core.asc_sync_notify("PIPE_S", "PIPE_V", 0)
        core.asc_sync_wait("PIPE_S", "PIPE_V", 0)
        core.asc_add(tile, most, most, 64)
        core.asc_sync_notify("PIPE_V", "PIPE_MTE2", 0)
        core.asc_sync_wait("PIPE_V", "PIPE_MTE2", 0)
    core.asc_sync()
    core.asc_copy_ub2gm(z, tile, 256)


@pytest.mark.parametrize("order", ["late", "early"])
def test_a_deadlock_of_pipes_ends_with_the_race_that_led_to_it(order):
    with pytest.raises(CubecoreError) as caught:
        runs_ahead.using(order=order)[1](np.ones(64, np.float32), np.zeros(64, np.float32))
    race = next(found for found in caught.value.findings if found.id == "race-raw")
    assert str(caught.value).startswith("deadlock: core 0 AIV0: ")
    assert str(caught.value).endswith(f"; race-raw: {race.message}")
    assert race.message.startswith("scalar load.value must read bytes [256, 260) of UB after ")


@cubecore.kernel
def loop(core, x, given):
    """Load a tile in each round once the round before has read it."""
    tile = core.ubuf("float", 64)
    if given:
        core.asc_sync_notify("PIPE_V", "PIPE_MTE2", 0)
    for _ in range(3):
        core.asc_sync_wait("PIPE_V", "PIPE_MTE2", 0)
        core.asc_copy_gm2ub(tile, x, 256)
        core.asc_sync_notify("PIPE_MTE2", "PIPE_V", 0)
        core.asc_sync_wait("PIPE_MTE2", "PIPE_V", 0)
        core.asc_add(tile, tile, tile, 64)
        core.asc_sync_notify("PIPE_V", "PIPE_MTE2", 0)
    if given:
        core.asc_sync_wait("PIPE_V", "PIPE_MTE2", 0)


def test_a_deadlock_says_which_flag_was_never_set_before_the_loop():
    assert loop[1](np.ones(64, np.float32), 1).clean
    (finding,) = loop[1](np.ones(64, np.float32), 0).findings
    first = loop.function.__code__.co_firstlineno
    assert finding.id == "deadlock"
    assert finding.message.endswith(
        f"; flag V -> MTE2 0 was never set before the wait at {loop.place.file}:{first + 7} "
        "(loop): set it once before that wait, or before the loop around it"
    )
