"""Modes that a kernel sets: what it leaves on, what a count cuts short, events that are kept."""

import os

import numpy as np
import pytest

from cubecore import kernel

HERE = os.path.relpath(__file__)


def line_of(function, text):
    """Return the number of the first line of a kernel's source that holds `text`."""
    from inspect import getsourcelines

    lines, first = getsourcelines(function.function)
    return first + next(i for i, line in enumerate(lines) if text in line)


def said(findings):
    return [f"{f.id}: {f.message}" for f in findings]


@kernel(outputs="z")
def adding(core, z, off):
    x = core.ubuf("float", 64)
    core.asc_duplicate(x, 1.0, 64)
    core.asc_sync()
    core.asc_copy_ub2gm(z, x, 256)
    core.asc_sync()
    core.asc_set_atomic_add_float()
    core.asc_copy_ub2gm(z, x, 256)
    if off:
        core.asc_set_atomic_none()


def test_atomic_stores_are_off_at_the_end():
    z = np.zeros(64, np.float32)
    assert adding[1](z, 1).clean
    (finding,) = adding[1](z, 0).findings
    place = f"{HERE}:{line_of(adding, 'add_float')} (adding)"
    assert said([finding]) == [
        "mode-left: atomic add of float32 must be off at the end of the kernel, got on since "
        f"{place}; call asc_set_atomic_none"
    ]
    assert str(finding.location) == place
    assert (z == 2).all()
    assert adding.using(checks="memcheck,racecheck")[1](z, 0).clean


@kernel
def counting(core, end):
    x = core.ubuf("float", 256)
    core.asc_set_mask_count()
    core.asc_set_vector_mask(0, 200)
    core.asc_duplicate(x, 1.0, 1, 1, 8)
    if end == "norm":
        core.asc_set_mask_norm()
    elif end == "init":
        core.asc_init()
    elif end == "form":
        core.asc_sync()
        core.asc_relu(x, x, 64)


@pytest.mark.parametrize("end", ["norm", "init", "form"])
def test_counter_mode_is_off_at_the_end(end):
    """asc_set_mask_norm, asc_init, and a call with a count, which ends it."""
    assert said(counting[1](end).findings) == []


def test_counter_mode_that_is_left_on():
    assert said(counting[1]("").findings) == [
        "mode-left: counter mode must be off at the end of the kernel, got on since "
        f"{HERE}:{line_of(counting, 'set_mask_count')} (counting); call asc_set_mask_norm"
    ]


@kernel
def cutting(core, again, repeats):
    x, y = core.ubuf("float", 512), core.ubuf("float", 512)
    core.asc_duplicate(y, 0.0, 512)
    core.asc_sync()
    core.asc_set_mask_count()
    core.asc_set_vector_mask(0, 100)
    core.asc_duplicate(x, 1.0, 1, 1, 8)
    core.asc_sync()
    if again:
        core.asc_set_vector_mask(0, 100)
    core.asc_add(y, y, y, repeats, 1, 1, 1, 8, 8, 8)
    core.asc_set_mask_norm()


@pytest.mark.parametrize(("again", "repeats"), [(0, 1), (0, 2), (1, 8), (1, 1)])
def test_a_count_that_is_meant(again, repeats):
    """It was set for the instruction, or leaves out no whole repeat."""
    assert said(cutting[1](again, repeats).findings) == []


def test_a_count_that_was_another_instructions():
    used = line_of(cutting, "duplicate(x")
    assert said(cutting[1](0, 8).findings) == [
        "stale-count: vadd must run under a count that was set for it, got the count 100 that "
        f"vector_dup at {HERE}:{used} (cutting) ran under: 6 of its 8 repeats are left out; call "
        "asc_set_mask_norm, or asc_set_vector_mask first"
    ]


@kernel
def flagged(core, x, event):
    tile = core.ubuf("float", 64)
    core.asc_copy_gm2ub(tile, x, 256)
    core.asc_sync_notify("PIPE_MTE2", "PIPE_V", event)
    core.asc_sync_wait("PIPE_MTE2", "PIPE_V", event)


@pytest.mark.parametrize("event", range(8))
def test_events_that_the_libraries_keep(event):
    """Named if usecheck is asked for, by every launch: a kernel alone may use them."""
    x = np.ones(64, np.float32)
    assert flagged[1](x, event).clean
    wanted = [
        f"event-reserved: {name}.event_id must be below 6 beside the vendor's libraries, which "
        f"keep events 6 and 7, got {event}"
        for name in ("set_flag", "wait_flag")
    ]
    for _ in range(2):
        found = flagged.using(checks="usecheck")[1](x, event).findings
        assert said(found) == (wanted if event >= 6 else [])


@kernel(outputs="z")
def reading(core, z, clean, far):
    x = core.ubuf("int32", 64)
    core.asc_duplicate(x, 5, 64)
    core.asc_sync()
    core.asc_copy_ub2gm(z, x, 256)
    core.asc_copy_ub2gm(z + 128, x, 256)
    core.asc_sync()
    if clean:
        core.asc_dcci_single(z)
    core.printf("%d", z[200 if far else 3])


@pytest.mark.parametrize("far", [0, 1])
def test_a_scalar_reads_what_was_copied_behind_dcci(far, capsys):
    """The copy passes the scalar unit's data cache (C API, asc_dcci)."""
    z = np.zeros(256, np.int32)
    checked = reading.using(checks="racecheck")
    assert said(checked[1](z, 1, far).findings) == []
    place = f"{HERE}:{line_of(reading, '128, x' if far else '(z, x')} (reading)"
    if not far:
        assert said(checked[1](z, 0, far).findings) == [
            "stale-cache: a scalar read of global memory must come behind a dcci, got none since "
            f"copy_ubuf_to_gm at {place} wrote there past the data cache; call asc_dcci_single "
            "first"
        ]
    assert capsys.readouterr().out


def test_a_scalar_reads_what_nobody_of_the_core_wrote():
    @kernel
    def plain(core, x):
        core.printf("%d", x[3])

    assert plain[1](np.arange(64, dtype=np.int32)).clean


@kernel
def of_a_line(core, x, z, lines):
    """Read four lines, copy over them, clean the first ones, and read them again."""
    t = core.ubuf("int32", 64)
    total = sum(core.load(x + 16 * n) for n in range(4))
    core.asc_duplicate(t, 100, 64)
    core.asc_sync()
    core.asc_copy_ub2gm(x, t, 256)
    core.asc_sync()
    for n in range(lines):
        core.asc_dcci_single(x + 16 * n + 3)
    for n in range(4):
        core.store(z + n, core.load(x + 16 * n))
    core.store(z + 4, total)


@pytest.mark.parametrize("order", ["program", "late", "early"])
@pytest.mark.parametrize("lines", [0, 1, 4])
def test_dcci_of_a_line_cleans_that_line_alone(lines, order):
    """DataCacheCleanAndInvalid, SINGLE_CACHE_LINE; the values of a device in late order."""
    x, z = np.arange(64, dtype=np.int32), np.zeros(16, np.int32)
    found = said(of_a_line.using(order=order)[1](x, z, lines).findings)
    place = f"{HERE}:{line_of(of_a_line, 'ub2gm')} (of_a_line)"
    assert found == [
        "stale-cache: a scalar read of global memory must come behind a dcci, got none since "
        f"copy_ubuf_to_gm at {place} wrote there past the data cache; call asc_dcci_single first"
    ] * (lines < 4)
    stale = [0, 16, 32, 48] if order == "late" else [100] * 4
    assert z[:5].tolist() == [100] * lines + stale[lines:] + [96]
    assert np.array_equal(x, np.full(64, 100))


@kernel
def into_an_old_line(core, x, clean):
    t = core.ubuf("int32", 64)
    core.load(x + 3)
    core.asc_duplicate(t, 100, 64)
    core.asc_sync()
    core.asc_copy_ub2gm(x, t, 256)
    core.asc_sync()
    if clean == 1:
        core.asc_dcci_single(x)
    elif clean == 2:
        core.asc_dcci_entire_out()
    elif clean == 3:
        core.asc_ub_dcci_single(core.ubuf("int32", 16))
    core.store(x + 4, 0)


@pytest.mark.parametrize("order", ["program", "late"])
@pytest.mark.parametrize("clean", [0, 1, 2, 3])
def test_a_store_into_an_old_line_takes_old_bytes_back(clean, order):
    x = np.arange(64, dtype=np.int32)
    found = said(into_an_old_line.using(order=order)[1](x, clean).findings)
    place = f"{HERE}:{line_of(into_an_old_line, 'ub2gm')} (into_an_old_line)"
    right = clean in {1, 2}
    assert found == [
        f"stale-cache: store_scalar_gm must store behind a dcci, got none since copy_ubuf_to_gm at "
        f"{place} wrote past the data cache into the same 64 B, which it holds as they were before "
        "and writes back; call asc_dcci_single first"
    ] * (not right)
    line = [*range(16)] if order == "late" and not right else [100] * 16
    assert x.tolist() == [*line[:4], 0, *line[5:], *[100] * 48]


@kernel
def over_a_changed_line(core, z, far, clean):
    t = core.ubuf("int32", 64)
    core.asc_duplicate(t, 100, 64)
    core.asc_sync()
    core.store(z + 4, 7)
    if clean:
        core.asc_dcci_single(z)
    core.asc_copy_ub2gm(z + 8 + 8 * far, t, 32)


def test_a_copy_over_a_changed_line_is_overwritten():
    place = f"{HERE}:{line_of(over_a_changed_line, 'store(')} (over_a_changed_line)"
    for far, clean in ((0, 0), (1, 0), (0, 1)):
        ran = over_a_changed_line[1](np.zeros(64, np.int32), far, clean)
        assert said(ran.findings) == [
            "stale-cache: copy_ubuf_to_gm must write global memory behind a dcci, got none since "
            f"the scalar unit's store at {place} to the same 64 B, which the data cache writes "
            "back over it; call asc_dcci_single first"
        ] * (not far and not clean)


@kernel
def shared(core, z, apart, clean):
    core.store(z + core.block_idx * apart, core.block_idx + 1)
    if clean:
        core.asc_dcci_entire_out()


@pytest.mark.parametrize("clean", [0, 1])
@pytest.mark.parametrize("engine", ["fast", "reference"])
def test_cores_keep_their_stores_a_line_apart(engine, clean):
    place = f"{HERE}:{line_of(shared, 'store(')} (shared)"
    for apart in (1, 8, 16):
        z = np.zeros(64, np.int32)
        ran = shared.using(engine=engine)[3](z, apart, clean)
        assert z[[0, apart, 2 * apart]].tolist() == [1, 2, 3]
        sentence = (
            "stale-cache: store_scalar_gm must have its 64 B of the data cache alone, got "
            "store_scalar_gm of core 0 AIV0 at {} in the same ones and no order between the "
            "cores: lines are written back whole; keep what cores write 64 B apart"
        )
        assert said(ran.findings) == [sentence.format(place)] * (apart < 16)
