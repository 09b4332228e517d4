"""A wait that nothing meets names the event of the same pipes that is set instead."""

import numpy as np

import cubecore


def load(core, x, z, *, awaited):
    a = core.ubuf("float", 64)
    core.asc_copy_gm2ub(a, x, 256)
    core.asc_sync_notify("PIPE_MTE2", "PIPE_V", 2)
    core.asc_sync_wait("PIPE_MTE2", "PIPE_V", awaited)
    core.asc_add(a, a, a, 64)
    core.asc_sync_notify("PIPE_V", "PIPE_MTE3", 0)
    core.asc_sync_wait("PIPE_V", "PIPE_MTE3", 0)
    core.asc_copy_ub2gm(z, a, 256)


@cubecore.kernel(outputs="z")
def waits_for_another_event(core, x, z):
    load(core, x, z, awaited=1)


@cubecore.kernel(outputs="z")
def waits_for_that_event(core, x, z):
    load(core, x, z, awaited=2)


def test_the_event_that_is_set_is_named():
    x, z = np.ones(64, np.float32), np.zeros(64, np.float32)
    first, *_ = waits_for_another_event[1](x, z).findings
    line = load.__code__.co_firstlineno
    file = first.location.file
    assert (first.id, first.event, first.other_event.event) == ("flag-unmet", 1, 2)
    assert first.other_event.where.line == line + 3
    assert first.text == (
        f"asc_sync_wait (wait_flag) at {file}:{line + 4} waits for event 1 of MTE2 -> V, which "
        f"nothing sets before it; asc_sync_notify at {file}:{line + 3} sets event 2: wait for "
        "event 2 here, or set event 1 there"
    )


def test_the_event_that_is_meant_is_clean():
    x, z = np.ones(64, np.float32), np.zeros(64, np.float32)
    assert waits_for_that_event[1](x, z).findings == ()
    assert (z == 2).all()
