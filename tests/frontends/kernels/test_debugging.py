"""Debugging from Python: what kernels show, breaks, steps, watches, and what goes wrong."""

import os

import numpy as np
import pytest

import cubecore
from cubecore import KernelError, RequestError, kernel, vector_function
from cubecore.frontends.capi.printf import formatted
from cubecore.machine.debug.breakpoints import Break, Range
from frontends.kernels.test_kernel import line_of

HERE = os.path.relpath(__file__)


@kernel(outputs="c")
def scale(core, a, c):
    x, y = core.ubuf("float", 64), core.ubuf("float", 64)
    first = core.block_idx * 64
    for part in range(2):
        core.asc_copy_gm2ub(x, a + first + part * 32, 128)
        core.asc_sync()
        core.asc_mul_scalar(y, x, 2.0, 32)
        core.asc_sync()
        core.asc_copy_ub2gm(c + first + part * 32, y, 128)
        core.asc_sync()


@vector_function
def one_more(core, x, z):
    lanes, every = core.vector_float(), core.asc_create_mask_b32("PAT_ALL")
    core.asc_loadalign(lanes, x)
    core.asc_add_scalar(lanes, lanes, 1.0, every)
    core.dump(lanes, 4)
    core.asc_storealign(z, lanes, every)


@kernel(outputs="c", chip="Ascend950PR_9589")
def in_registers(core, a, c):
    x, y = core.ubuf("float", 64), core.ubuf("float", 64)
    core.asc_copy_gm2ub(x, a, 256)
    core.asc_sync()
    one_more(core, x, y)
    core.asc_sync()
    core.asc_copy_ub2gm(c, y, 256)


def arrays(blocks=1):
    return np.arange(blocks * 64, dtype=np.float32), np.zeros(blocks * 64, np.float32)


# --- what a kernel shows


@pytest.mark.parametrize(
    ("text", "values", "shown"),
    [
        ("%d|%i|%u", (-1, 2, 3), "-1|2|3"),
        ("%lld %hhu %#x %X", (1, 2, 255, 255), "1 2 0xff FF"),
        ("%5.2f|%-6d|%06.1f|%e", (3.14159, 42, 2.5, 1.0), " 3.14|42    |0002.5|1.000000e+00"),
        ("%s %c 100%%", ("text", "x"), "text x 100%"),
        ("%p", (4096,), "0x1000"),
        ("nothing", (), "nothing"),
    ],
)
def test_printf(text, values, shown):
    assert formatted(text, values) == shown


@pytest.mark.parametrize(
    ("text", "values", "line"),
    [
        ("%d", (), "printf must have a value for each of 1 conversions, got 0"),
        ("%n", (1,), "printf must have conversions among %d %i %u %x %f %e %g %s %c %p, got '%n'"),
        (
            "%d",
            ("x",),
            "printf of '%d' fails: %d format: a real number is required, not str",
        ),
    ],
)
def test_printf_that_does_not_fit(text, values, line):
    with pytest.raises(RequestError) as error:
        formatted(text, values)
    assert str(error.value) == line


def test_a_kernel_shows_what_it_holds(capsys):
    seen = []

    @kernel
    def shows(core, a):
        x = core.ubuf("float", 64)
        core.asc_copy_gm2ub(x, a, 32)
        seen.append(core.dump(x, (2, 8), name="x"))
        core.asc_dump_ubuf(x, 7, 4)
        core.asc_dump(a + 8, 1, 2)
        core.printf("%d at %p\n", 5, x + 2)

    a, _ = arrays()
    assert shows[1](a).findings == ()
    assert seen[0].written.tolist() == [[True] * 8, [False] * 8]
    assert (seen[0].values[0] == a[:8]).all()
    at = [f"{HERE}:{line_of(shows, text)} (shows)" for text in ("core.dump", "_ubuf", "_dump(")]
    assert capsys.readouterr().out.splitlines() == [
        f"core 0 AIV0: x at {at[0]}: 2 x 8 float32 in ND, UB [0, 64), 8 never written (?)",
        "  0 | 0 1 2 3 4 5 6 7",
        "  1 | ? ? ? ? ? ? ? ?",
        f"core 0 AIV0: desc 7 at {at[1]}: 4 float32 in ND, UB [0, 16)",
        "  0 | 0 1 2 3",
        f"core 0 AIV0: desc 1 at {at[2]}: 2 float32 in ND, a [32, 40)",
        "  0 | 8 9",
        "core 0 AIV0: 5 at 0x8",
    ]


def test_a_dump_that_is_refused_names_its_line():
    @kernel
    def outside(core):
        core.dump(core.ubuf("float", 64), (1000, 1000))

    @kernel
    def elsewhere(core):
        core.asc_dump_gm(core.ubuf("float", 64), 0, 1)

    for made, line in (
        (outside, "the view must stay inside UB (0 to 196608 B), got bytes [0, 4000000)"),
        (elsewhere, "asc_dump must be given a pointer into GM, got float32* 0 in UB"),
    ):
        with pytest.raises(KernelError) as error:
            made[1]()
        at = line_of(made, "dump")
        assert str(error.value) == f"{HERE}:{at} ({made.name}): {line}"


# --- where a launch stops


def test_a_break_by_name_number_and_line():
    a, c = arrays()
    copy = line_of(scale, "asc_copy_ub2gm")
    for where, stops in (
        ("asc_mul_scalar", [("vmuls", 5), ("vmuls", 14)]),
        ("vmuls", [("vmuls", 5), ("vmuls", 14)]),
        ("#3", [("set_mask_count", 3)]),
        (f":{copy}", [("copy_ubuf_to_gm", 8), ("copy_ubuf_to_gm", 17)]),
        (f"test_debugging.py:{copy}", [("copy_ubuf_to_gm", 8), ("copy_ubuf_to_gm", 17)]),
        (f"other.py:{copy}", []),
        ("asc_mul_scalar if part == 1 and src == 0", [("vmuls", 14)]),
        ("asc_mul_scalar if number > 20 or core.block_idx > 0", []),
    ):
        with cubecore.debug(scale, 1, a, c) as launch:
            launch.break_at(where)
            found = []
            while stop := launch.run():
                assert stop.reason == "break"
                found.append((stop.instruction.name, stop.number))
            assert found == stops, where
        assert launch.result.clean
        assert (c == 2 * a).all()


def test_steps_visit_every_instruction_of_every_core_in_order():
    a, c = arrays(2)
    with cubecore.debug(scale, 2, a, c) as launch:
        seen = []
        while stop := launch.step():
            seen.append((stop.core.id.sub, stop.number))
    assert seen == [(sub, n) for sub in (1, 2) for n in range(1, 19)]
    assert launch.result.issued == len(seen)
    with cubecore.debug(scale, 2, a, c) as launch:
        assert launch.step(20).number == 2
        launch.break_at("#4")
        assert launch.step(9).number == 4


def test_a_break_stands_before_its_instruction():
    a, c = arrays()
    with cubecore.debug(scale, 1, a, c) as launch:
        launch.break_at("asc_mul_scalar")
        assert launch.run().operands == {"dst": 256, "src": 0}
        assert launch.dump("y", 32).unwritten == 32
        assert (launch.dump("x", (4, 8)).values.reshape(-1) == a[:32]).all()
        assert (launch.dump("UB:0x0", 4, dtype="int32").values == a[:4].view(np.int32)).all()
        assert (launch.dump("a:8", 2, dtype="float").values == a[2:4]).all()
        assert launch.dump(launch.stop.variables["y"] + 4, 2).start == 272
        assert launch.evaluate("part * 10 + src") == 0
        assert "mask" not in launch.stop.about()
        assert launch.stop.about().splitlines()[:2] == [
            "  dst writes float32 at UB 256",
            "  src reads float32 at UB 0",
        ]
        launch.run()
        assert (launch.dump("y", 32).values == 2 * a[:32]).all()
        assert (c == 0).all()
    assert (c == 0).all()
    assert launch.result is None


@pytest.mark.parametrize(
    ("where", "lines"),
    [
        ("UB:0x100+4", ["dst writes", "src reads", "dst writes", "src reads"]),
        ("UB:256+4/w", ["dst writes", "dst writes"]),
        ("UB:256+4/r", ["src reads", "src reads"]),
        ("c:128+4", ["dst writes"]),
        ("a:0+256", ["src reads", "src reads"]),
        ("d:0+256", []),
    ],
)
def test_watches(where, lines):
    a, c = arrays()
    with cubecore.debug(scale, 1, a, c) as launch:
        launch.watch(where)
        found = []
        while stop := launch.run():
            assert stop.reason == "watch"
            found += [str(hit).partition(" [")[0] for hit in stop.hits]
    assert found == lines


def test_a_watch_has_old_and_new_bytes_where_they_meet():
    a, c = arrays()
    with cubecore.debug(scale, 1, a, c) as launch:
        launch.watch("UB:380+100/w")
        launch.run()
        stop = launch.run()
    (hit,) = stop.hits
    assert (hit.start, hit.end) == (380, 384)
    assert np.frombuffer(hit.old, np.float32)[0] == 2 * a[31]
    assert np.frombuffer(hit.new, np.float32)[0] == 2 * a[63]
    at = f"{HERE}:{line_of(scale, 'asc_mul_scalar')} (scale)"
    assert str(stop) == (
        f"watch: core 0 AIV0 #14 vmuls on V at {at}\n"
        "  dst writes [380, 384) of UB: 00 00 78 42 -> 00 00 fc 42"
    )


def test_the_scalar_unit_is_watched_too():
    @kernel
    def reads(core, a):
        core.asc_copy_gm2ub(core.ubuf("float", 64), a, 32)
        core.asc_sync()
        assert a[3] == 3

    with cubecore.debug(reads, 1, arrays()[0]) as launch:
        launch.watch("a:12+4")
        assert [str(h) for h in launch.run().hits] == ["src reads [12, 16) of a: 00 00 40 40"]
        assert [str(h) for h in launch.run().hits] == [
            "the scalar unit reads [12, 16) of a: 00 00 40 40"
        ]
        assert launch.run() is None


def test_flags_between_cores_are_stopped_at():
    @kernel(kind="mix")
    def tells(core):
        if core.is_aic:
            core.asc_sync_block_wait("S", 1)
        else:
            core.asc_sync_block_arrive("MTE3", 1)

    with cubecore.debug(tells, 1) as launch:
        seen = []
        while stop := launch.step():
            seen.append(stop.instruction.name)
    assert seen == ["wait_flag_dev", "ffts_cross_core_sync", "ffts_cross_core_sync"]
    assert launch.result.clean


def test_findings_are_those_of_a_run_without_it():
    @kernel(outputs="c")
    def races(core, a, c):
        x = core.ubuf("float", 64)
        core.asc_copy_gm2ub(x, a, 256)
        core.asc_copy_ub2gm(c, x, 256)

    plain = races[1](*arrays()).findings
    with cubecore.debug(races, 1, *arrays()) as launch:
        launch.watch("UB:0+4")
        while launch.step():
            pass
    assert launch.result.findings == plain != ()


# --- what goes wrong


@pytest.mark.parametrize(
    ("make", "text", "line"),
    [
        (
            Break.of,
            "asc_ad",
            "a break must be an instruction, #NUMBER or FILE:LINE, got 'asc_ad'; did you mean "
            "asc_and?",
        ),
        (Break.of, "#0", "a break must count instructions from #1, got #0"),
        (Range.of, "UB", "a watch must be MEMORY:START+BYTES, such as UB:0x100+64, got 'UB'"),
        (
            Range.of,
            "UB:q+1",
            "a watch must be MEMORY:START+BYTES, such as UB:0x100+64, got 'UB:q+1'",
        ),
        (
            Range.of,
            "UB:1+0",
            "a watch must be MEMORY:START+BYTES, such as UB:0x100+64, got 'UB:1+0'",
        ),
        (
            Range.of,
            "GM:0+1",
            "a watch must name a tensor of global memory, such as c:0+64, got 'GM:0+1'",
        ),
    ],
)
def test_words_that_are_refused(make, text, line):
    with pytest.raises(RequestError) as error:
        make(text)
    assert str(error.value) == line


def test_what_a_launch_refuses():
    a, c = arrays()
    launch = cubecore.debug(scale, 1, a, c)

    def refused(act):
        with pytest.raises(RequestError) as error:
            act()
        return str(error.value)

    assert refused(lambda: launch.dump("x", 1)) == ("the launch has not started: run or step first")
    launch.step()
    assert refused(lambda: launch.dump("z", 1)) == (
        "cannot evaluate 'z': NameError: name 'z' is not defined"
    )
    assert refused(lambda: launch.dump("first", 1)) == "'first' must be a pointer, got RuntimeInt"
    assert refused(lambda: launch.dump("UB:0", 1)) == ("a dump of UB:0 needs an element type")
    assert refused(lambda: launch.dump("z:0", 1, dtype="half")) == (
        "an address must begin with a memory or a tensor (a, c), got 'z'"
    )
    assert refused(lambda: launch.dump("UB:z", 1)) == "an address must be a number, got 'z'"
    launch.close()
    assert refused(launch.run) == ("the launch has ended or was closed")
    launch.close()
    assert (c == 0).all()


def test_an_error_of_the_kernel_comes_out_of_run():
    @kernel
    def fails(core):
        core.asc_sync()
        raise ValueError("wrong")

    launch = cubecore.debug(fails, 1)
    launch.step()
    with pytest.raises(KernelError, match=r"\(fails\): the kernel raised Value"):
        launch.run()
    with pytest.raises(RequestError):
        launch.run()


def test_a_condition_that_cannot_be_computed():
    a, c = arrays()
    launch = cubecore.debug(scale, 1, a, c)
    launch.break_at("asc_mul_scalar if nothing > 1")
    with pytest.raises(KernelError) as error:
        launch.run()
    assert str(error.value).endswith(
        "cannot evaluate 'nothing > 1': NameError: name 'nothing' is not defined"
    )


def test_a_break_in_a_vector_function_stops_before_it_and_lanes_are_shown(capsys):
    a, c = arrays()
    line = line_of(one_more, "add_scalar")
    with cubecore.debug(in_registers, 1, a, c) as launch:
        launch.break_at(f"{HERE}:{line}")
        stop = launch.run()
        assert stop.instruction.name == "vector_function"
        assert stop.location.line == line_of(in_registers, "one_more")
        assert launch.run() is None
    assert (c == a + 1).all()
    shown = f"core 0 AIV0: at {HERE}:{line_of(one_more, 'dump')} (one_more): 4 float32 in ND, "
    assert capsys.readouterr().out == f"{shown}a register [0, 256)\n  0 | 1 2 3 4\n"
