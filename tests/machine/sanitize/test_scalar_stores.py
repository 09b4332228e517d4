"""Stores of the scalar unit to UB, which pipes know behind a flag or a barrier of all pipes."""

from inspect import getsourcelines

import numpy as np
import pytest

from cubecore import kernel
from cubecore.frontends.tik.host.instance import Tik
from cubecore.frontends.tik.trace.language import Dprofile
from cubecore.frontends.tik.trace.run_options import TikOptions, run_with

HERE = "tests/machine/sanitize/test_scalar_stores.py"
X = np.arange(64, dtype=np.float32)
STORED = np.where(X == 3, 100, X).astype(np.float32)
LATE = ("late", "early")
RANDOM = [f"random:{seed}" for seed in range(12)]
RIGHT = ("flag", "all", "dsb", "by another pipe", "by the scalar unit")
WRONG = ("none", "set too early", "another pipe's", "one pipe's barrier", "the other way")


def line_of(function, text):
    """Return the number of the first line of a kernel's source that holds `text`."""
    lines, first = getsourcelines(function.function)
    return first + next(n for n, line in enumerate(lines) if text in line)


def hand(core, source, target, event=0):
    core.asc_sync_notify(source, target, event)
    core.asc_sync_wait(source, target, event)


def ordered(core, pipe, how):
    """Order `pipe` behind the scalar unit's store, or do what does not."""
    other = "MTE3" if pipe == "V" else "V"
    if how == "flag":
        hand(core, "S", pipe)
    elif how == "all":
        core.asc_sync()
    elif how == "dsb":
        core.asc_sync_data_barrier("DSB_UB")
    elif how == "by another pipe":
        hand(core, "S", other)
        hand(core, other, pipe)
    elif how == "by the scalar unit":
        hand(core, "S", other)
        hand(core, other, "S")
    elif how == "set too early":
        core.asc_sync_wait("S", pipe, 1)
    elif how == "another pipe's":
        hand(core, "S", other)
    elif how == "one pipe's barrier":
        core.asc_sync_pipe("PIPE_V")
        core.asc_sync_pipe("PIPE_MTE2")
        core.asc_sync_pipe("PIPE_MTE3")
    elif how == "the other way":
        hand(core, pipe, "S")


@kernel(outputs="z")
def stored(core, x, z, pipe, how):
    a, b = core.ubuf("float", 64), core.ubuf("float", 64)
    core.asc_copy_gm2ub(a, x, 256)
    core.asc_sync()
    if how == "set too early":
        core.asc_sync_notify("S", pipe, 1)
    core.store(a + 3, 100.0)
    assert core.load(a + 3) == 100.0
    ordered(core, pipe, how)
    if pipe == "V":
        core.asc_add_scalar(b, a, 0.0, 64)  # V
    elif pipe == "MTE2":
        core.asc_copy_gm2ub(a, x, 256)  # MTE2
    else:
        core.asc_copy_ub2gm(z, a, 256)  # MTE3
    core.asc_sync()
    if pipe != "MTE3":
        core.asc_copy_ub2gm(z, b if pipe == "V" else a, 256)


NEW = {"V": STORED, "MTE2": X, "MTE3": STORED}
OLD = {"V": X, "MTE2": STORED, "MTE3": X}


def ran(function, *given, **options):
    z = np.zeros(64, np.float32)
    run = function.using(**options)[1](X, z, *given)
    return z, [f"{finding.id}: {finding.message}" for finding in run.findings]


def race(pipe):
    line, there = line_of(stored, f"# {pipe}"), line_of(stored, "core.store")
    name, how, kind = {
        "V": ("vadds.src", "read", "raw"),
        "MTE2": ("copy_gm_to_ubuf.dst", "write", "waw"),
        "MTE3": ("copy_ubuf_to_gm.src", "read", "raw"),
    }[pipe]
    return (
        f"race-{kind}: {name} must {how} bytes [12, 16) of UB after store_scalar.dst wrote them, "
        f"got no order between S ({HERE}:{there} (stored)) and {pipe} ({HERE}:{line} (stored)); "
        f"set_flag(S, {pipe}) after the write and wait_flag(S, {pipe}) before the {how}"
    )


@pytest.mark.parametrize("pipe", ["V", "MTE2", "MTE3"])
@pytest.mark.parametrize("engine", ["reference", "lockstep"])
@pytest.mark.parametrize("how", RIGHT)
def test_what_orders_a_store_makes_it_known(pipe, engine, how):
    z, found = ran(stored, pipe, how, engine=engine)
    assert found == []
    assert np.array_equal(z, NEW[pipe])


@pytest.mark.parametrize("pipe", ["V", "MTE2", "MTE3"])
@pytest.mark.parametrize("engine", ["reference", "lockstep"])
@pytest.mark.parametrize("how", WRONG)
def test_a_store_that_nothing_orders_races(pipe, engine, how):
    _, found = ran(stored, pipe, how, engine=engine)
    assert found == [race(pipe)]


@pytest.mark.thinned(3)
@pytest.mark.parametrize("pipe", ["V", "MTE2", "MTE3"])
@pytest.mark.parametrize("order", [*LATE, *RANDOM])
def test_other_orders_show_what_nothing_orders(pipe, order):
    for how in RIGHT:
        assert np.array_equal(ran(stored, pipe, how, order=order)[0], NEW[pipe])
    for how in WRONG:
        z, _ = ran(stored, pipe, how, order=order)
        if order in LATE:
            assert np.array_equal(z, OLD[pipe])
        assert np.array_equal(z, OLD[pipe]) or np.array_equal(z, NEW[pipe])


@pytest.mark.parametrize("pipe", ["V", "MTE2", "MTE3"])
def test_some_random_order_shows_it(pipe):
    seen = [ran(stored, pipe, "none", order=order)[0] for order in RANDOM]
    assert any(np.array_equal(z, OLD[pipe]) for z in seen)
    assert any(np.array_equal(z, NEW[pipe]) for z in seen)


@kernel(outputs="z")
def read_before(core, x, z, answered):
    a, b = core.ubuf("float", 64), core.ubuf("float", 64)
    core.asc_copy_gm2ub(a, x, 256)
    core.asc_sync()
    core.asc_add_scalar(b, a, 0.0, 64)
    if answered:
        hand(core, "V", "S")
    core.store(a + 3, 100.0)
    core.asc_sync()
    core.asc_copy_ub2gm(z, b, 256)


def test_a_store_waits_for_what_reads_there_before():
    for engine in ("reference", "lockstep"):
        assert ran(read_before, 1, engine=engine)[1] == []
        assert [said[:8] for said in ran(read_before, 0, engine=engine)[1]] == ["race-war"]
    for order in ("program", *LATE, *RANDOM):
        assert np.array_equal(ran(read_before, 1, order=order)[0], X)
    assert np.array_equal(ran(read_before, 0, order="early")[0], STORED)


@kernel(outputs="z")
def read_alone(core, x, z):
    """A read of the scalar unit is over before anything is issued behind it."""
    a = core.ubuf("float", 64)
    core.asc_copy_gm2ub(a, x, 256)
    core.asc_sync()
    assert core.load(a + 3) == 3
    core.asc_add_scalar(a, a, 0.0, 64)
    core.asc_sync()
    core.asc_copy_ub2gm(z, a, 256)


@kernel(outputs="z")
def own_values(core, x, z):
    """The scalar unit sees its own stores, the last of each byte, and writes anew."""
    a = core.ubuf("float", 64)
    core.asc_copy_gm2ub(a, x, 256)
    core.asc_sync()
    for _ in range(3):
        core.store(a + 3, core.load(a + 3) + 1)
    b = core.ubuf("float", 8)
    core.store(b, core.load(a + 3))  # nothing else was written there
    assert core.load(b) == 6
    hand(core, "S", "MTE3")
    core.asc_copy_ub2gm(z, a, 256)


@pytest.mark.parametrize("order", ["program", *LATE, *RANDOM[:3]])
def test_the_scalar_unit_sees_its_own_stores(order):
    z, found = ran(own_values, order=order)
    assert found == []
    assert np.array_equal(z, np.where(X == 3, 6, X))
    z, found = ran(read_alone, order=order)
    assert found == []
    assert np.array_equal(z, X)


@kernel(outputs="z", kind="vector")
def signalled(core, x, z, how):
    """A signal and the wait for it order what its pipe has done, and no store of the core's."""
    a, b = core.ubuf("float", 64), core.ubuf("float", 64)
    core.asc_copy_gm2ub(a, x, 256)
    core.asc_sync()
    core.store(a + 3, 100.0)
    if how == "flag":
        hand(core, "S", "MTE3")
    core.asc_sync_inter_arrive("PIPE_MTE3", 0)
    core.asc_sync_inter_wait("PIPE_S", 0)
    core.asc_add_scalar(b, a, 0.0, 64)
    core.asc_sync()
    core.asc_copy_ub2gm(z + 64 * core.block_idx, b, 256)


@pytest.mark.parametrize("engine", ["reference", "lockstep"])
@pytest.mark.parametrize(("how", "wanted"), [("flag", []), ("none", ["race-raw"])])
def test_signals_between_cores_carry_stores_that_their_pipe_knows(engine, how, wanted):
    z = np.zeros(128, np.float32)
    run = signalled.using(engine=engine)[2](X, z, how)
    assert [finding.id for finding in run.findings] == wanted
    assert [finding.count for finding in run.findings] == [2] * len(wanted)


@kernel(outputs="z", kind="vector")
def locked(core, x, z, with_mutex):
    a = core.ubuf("float", 64)
    core.asc_copy_gm2ub(a, x, 256)
    core.asc_sync()
    if with_mutex:
        core.asc_lock("PIPE_S", 0)
    core.store(a + 3, 100.0)
    if with_mutex:
        core.asc_unlock("PIPE_S", 0)
        core.asc_lock("PIPE_MTE3", 0)
    core.asc_copy_ub2gm(z, a, 256)
    if with_mutex:
        core.asc_unlock("PIPE_MTE3", 0)


@pytest.mark.parametrize("order", ["program", *LATE, *RANDOM[:3]])
def test_a_mutex_hands_a_store_over(order):
    options = {"chip": "Ascend950PR_9599", "order": order}
    z, found = ran(locked, 1, **options)
    assert found == []
    assert np.array_equal(z, STORED)
    z, found = ran(locked, 0, **options)
    assert [said[:8] for said in found] == ["race-raw"]
    assert order not in LATE or np.array_equal(z, X)


@pytest.mark.parametrize("consumer", ["V", "MTE3", "MTE2"])
@pytest.mark.parametrize("order", ["program", *LATE, *RANDOM[:3]])
def test_tik_orders_a_store_itself(consumer, order):
    t = Tik(Dprofile("v100", "mini"))
    x, z = (t.Tensor("float32", (64,), "global", name) for name in "xz")
    held, out = (t.Tensor("float32", (64,), "local.UB", name) for name in ("held", "out"))
    t.data_move(held, x, 0, 1, 8, 0, 0)
    with t.for_range(0, 2) as turn:
        held[3 + turn].set_as(99.0)
    value = t.Scalar("float32")
    value.set_as(held[3])
    held[3].set_as(value + 1.0)
    held[4].set_as(4.0)
    if consumer == "V":
        t.vec_adds(64, out, held, 0.0, 1, 8, 8)
    elif consumer == "MTE2":
        t.data_move(held, x, 0, 1, 8, 0, 0)
    t.data_move(z, out if consumer == "V" else held, 0, 1, 8, 0, 0)
    t.BuildCCE("k", [x], [z])
    with run_with(TikOptions(order=order)):
        done = t.launch({"x": X})
    assert done.findings == ()
    assert np.array_equal(done.outputs["z"], NEW[consumer])
