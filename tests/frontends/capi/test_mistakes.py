"""What an author gets wrong in a call or a launch: one sentence, and nothing done in silence."""

import json
import os
from inspect import getsourcelines

import numpy as np
import pytest

from cubecore import DeadlockError, KernelError, RequestError, Struct, kernel
from cubecore.workflows.scripts.script import run_script
from workflows.command import FOUND, cli

HERE = os.path.relpath(__file__)


def refused(body, *arguments, **options):
    """Return what a launch of `body` is refused with, without the place in front."""
    with pytest.raises(KernelError) as error:
        kernel(**options)(body)[1](*arguments)
    first = getsourcelines(body)[1]
    place, sentence = str(error.value).split(f" ({body.__name__}): ", 1)
    file, line = place.rsplit(":", 1)
    assert file == HERE
    assert int(line) > first
    return sentence


def floats(count=64):
    return np.arange(count, dtype=np.float32)


# --- launches


def double(core, x, y):
    tile = core.ubuf("float", 64)
    core.asc_copy_gm2ub(tile, x, 256)
    core.asc_sync()
    core.asc_add(tile, tile, tile, 64)
    core.asc_sync()
    core.asc_copy_ub2gm(y, tile, 256)


READ_ONLY = floats()
READ_ONLY.flags.writeable = False
BOTH = floats(96)


@pytest.mark.parametrize(
    ("options", "given", "line"),
    [
        ({"scratch": "y"}, (BOTH[:64], BOTH[:64]), "y must share no memory with x, got the same"),
        ({"scratch": "x"}, (BOTH[:64], BOTH[:64]), "y must share no memory with x, got the same"),
        ({}, (BOTH[:64], BOTH[32:]), "y must share no memory with x, got some of its bytes; pass"),
        ({"outputs": "y"}, (floats(), READ_ONLY), "y must be writable, got a read-only array"),
        ({"scratch": "y"}, (floats(), READ_ONLY), "y must be writable, got a read-only array"),
        ({"outputs": "y"}, (floats(), 3), "y must be an array, got 3"),
        ({"types": {"y": "float"}}, (floats(), None), "y must be an array, got None"),
        ({"checks": ["memcheck"]}, (), "checks must be text, got ['memcheck']"),
        ({"chip": 910}, (), "chip must be text, got 910"),
        ({"settings": "ub_bytes=1"}, (), "settings must map the chip's fields to values, got"),
    ],
)
def test_launches_that_are_refused(options, given, line):
    with pytest.raises(RequestError) as error:
        kernel(**options)(double)[1](*given)
    assert str(error.value).startswith(line)


@pytest.mark.parametrize("outputs", [(), "x", "y", ("x", "y")])
@pytest.mark.parametrize("engine", ["fast", "reference"])
def test_an_array_that_is_given_twice_is_one_tensor(engine, outputs):
    x = floats()
    run = kernel(engine=engine, outputs=outputs)(double)[1](x, x)
    if outputs == ("x", "y"):  # it begins unwritten: what is read is unknown
        assert [f.id for f in run.findings] == ["uninitialised"] * 2
    else:
        assert run.clean
        assert (x == 2 * floats()).all()


@pytest.mark.parametrize("engine", ["fast", "reference"])
def test_accesses_to_an_array_that_is_given_twice_race(engine):
    x = floats()

    @kernel(engine=engine)
    def meet(core, x, y):
        tile = core.ubuf("float", 64)
        core.asc_copy_gm2ub(tile, x, 256)
        core.asc_copy_ub2gm(y, core.ubuf("float", 64), 256)

    assert [f.id for f in meet[1](x, x).findings] == ["race-war", "uninitialised", "uninitialised"]


def test_a_launch_without_blocks():
    made = kernel(double)
    with pytest.raises(RequestError) as error:
        made(floats(), floats())
    assert str(error.value) == "double needs a number of blocks: double[blocks](...)"


@pytest.mark.parametrize(
    ("body", "line"),
    [
        (3, "a kernel must be a function, got 3"),
        (
            lambda: None,
            "<lambda> must take the core and then named parameters, got ()",
        ),
        (
            lambda core, *rest: (core, rest),
            "<lambda> must take the core and then named parameters, got (core, *rest)",
        ),
    ],
)
def test_what_is_no_kernel(body, line):
    with pytest.raises(RequestError) as error:
        kernel(body)
    assert str(error.value) == line


# --- calls


def test_a_size_that_is_no_whole_number_of_blocks():
    """The C API divides the size by 32; what is left over is not copied."""

    def copies(core, x):
        tile = core.ubuf("float", 32)
        for _ in range(2):
            core.asc_copy_gm2ub(tile, x, 100)
            core.asc_sync()
        core.asc_copy_gm2ub_align(tile, x, 100)

    run = kernel(copies)[1](floats())
    assert [(f.id, f.message, f.count) for f in run.findings] == [
        (
            "parameter",
            "asc_copy_gm2ub.size must be a multiple of 32 B, got 100: the last 4 B are not "
            "copied; asc_copy_gm2ub_align copies them",
            2,
        )
    ]
    assert kernel(checks="initcheck")(copies)[1](floats()).clean


class Plain(Struct):
    tile = "float"


class Pair(Struct):
    first = ("float", 8)
    second = ("half", 16)

    def pointers(self):
        return [self.first, self.second]


class Three(Pair):
    third = ("float", 8)


def test_structs_with_methods_and_of_structs():
    """A struct's arrays are its memory's; the author's object is not touched."""
    own, places = Three(), []

    @kernel(kind="mix")
    def declares(core):
        if core.is_aiv:
            core.asc_sync_block_wait("PIPE_S", 0)
            pairs = core.ubuf(own), core.ubuf(own)
        else:
            core.asc_sync_block_arrive("PIPE_FIX", 0)
            pairs = core.cbuf(own), core.cbuf(own)
        places.append([str(p) for pair in pairs for p in (*pair.pointers(), pair.third)])

    assert declares[1]().clean
    for found, mem in zip(places, ("L1", "UB", "UB"), strict=True):
        kinds = ("float32", "float16", "float32") * 2
        assert found == [f"{kind}* {32 * at} in {mem}" for at, kind in enumerate(kinds)]
    assert own.third == ("float", 8)


def declarations():
    def text_address(core, _):
        core.ubuf.at("float", "0")

    yield text_address, "an address in UB must be a whole number, got '0'"

    def other_way_round(core, _):
        core.ubuf.at(0, "float")

    yield other_way_round, "a pointer into UB must be of an element type, got 0"

    def no_type(_, x):
        x.cast(4)

    yield no_type, "a pointer must be of an element type, got 4"

    def no_length(core, _):
        core.ubuf(Plain())

    yield (
        no_length,
        "Plain.tile must be an array of numbers, got 'float'; declare it as (\"float\", 1024)",
    )

    def long_as_another(core, _):
        core.ubuf("float", core.ubuf("float", 8))

    yield (
        long_as_another,
        "an array's length must be a whole number above 0, got float32* 0 in UB",
    )


def calls():
    def text(core, x):
        core.asc_copy_gm2ub(core.ubuf("float", 64), x, "256")

    yield text, "asc_copy_gm2ub.size must be an integer, got '256'"

    def fraction(core, x):
        core.asc_copy_gm2ub(core.ubuf("float", 64), x, 4 * 64 / 1)

    yield fraction, "asc_copy_gm2ub.size must be an integer, got 256.0"

    def event(core, _):
        core.asc_sync_notify("PIPE_MTE2", "PIPE_V", "EVENT_ID0")

    yield event, "asc_sync_notify.event_id must be an integer, got 'EVENT_ID0'"

    def negative(core, _):
        tile = core.ubuf("float", 64)
        core.asc_add(tile, tile, tile, -4)

    yield negative, "asc_add.count must be 0 or more, got -4"

    def nothing(core, _):
        core.asc_duplicate(core.ubuf("float", 64), None, 64)

    yield nothing, "asc_duplicate.value must be a number, got None"

    def word(core, _):
        core.asc_duplicate(core.ubuf("float", 64), "1.5", 64)

    yield word, "asc_duplicate.value must be a number, got '1.5'"

    def no_number(core, _):
        core.asc_duplicate(core.ubuf("int32", 64), float("nan"), 64)

    yield no_number, "asc_duplicate.value must be an integer for int32, got nan"

    def address(core, x):
        core.asc_copy_gm2ub(core.asc_get_phy_buf_addr(0), x, 256)

    yield (
        address,
        "asc_copy_gm2ub.dst must be a pointer into UB, got 0; core.ubuf.at(type, "
        "address) makes one of an address",
    )

    def short(core, _):
        core.add(1, 2)

    yield (
        short,
        "the kernel raised AttributeError: a core has no add; did you mean asc_add?",
    )

    def half_way(_, x):
        x + 1.5

    yield half_way, "a distance in float32 must be a whole number of elements, got 1.5"

    def sum_of_two(_, x):
        x + x

    yield (
        sum_of_two,
        "a distance in float32 must be a whole number of elements, got float32* 512 in GM",
    )

    def stores(_, x):
        x[3] = 4.0

    yield (
        stores,
        "a pointer's element must be stored by an instruction, got an assignment; asc_duplicate "
        "and a copy, say",
    )

    def walks(_, x):
        list(x)

    yield (
        walks,
        "the kernel raised TypeError: 'Pointer' object is not iterable",
    )


@pytest.mark.parametrize(("body", "line"), [*declarations(), *calls()])
def test_calls_that_are_refused(body, line):
    assert refused(body, floats()) == line


def test_a_value_outside_of_its_tensor():
    def reads(core, x):
        core.ubuf("float", 8)
        assert x[64] == 0
        assert (x - 200)[0] == 0

    run = kernel(reads)[1](floats())
    assert [(f.id, f.message) for f in run.findings] == [
        ("out-of-bounds", "the scalar value must stay inside x (0 to 256 B), got bytes [256, 260)"),
        (
            "out-of-bounds",
            "the scalar value must stay inside x (0 to 256 B), got bytes [-800, -796),"
            " before the first byte of x",
        ),
    ]


# --- what a run had found


@pytest.mark.parametrize("engine", ["fast", "reference"])
def test_uninitialised_bytes_in_a_tensor_that_is_no_output(engine):
    @kernel(engine=engine, scratch="w")
    def leaks(core, x, w):
        tile = core.ubuf("float", 32)
        core.asc_copy_ub2gm(w, tile, 128)
        core.asc_copy_ub2gm(x + 16, tile, 128)

    run = leaks[1](floats(), floats())
    assert [(f.id, f.message) for f in run.findings] == [
        (
            "uninitialised",
            "x must hold what was written, got 128 of 256 B copied from uninitialised memory, the "
            "first at byte 64",
        )
    ]
    assert leaks.using(checks="memcheck")[1](floats(), floats()).clean


def test_a_read_of_unwritten_bytes_has_their_place():
    def adds(core, x):
        tile, other = core.ubuf("half", 128), core.ubuf("half", 128)
        core.asc_copy_gm2ub(tile, x, 96)
        core.asc_sync()
        core.asc_add(other, tile, tile, 100)

    for finding in kernel(adds)[1](floats()).findings:
        (access,) = finding.accesses
        assert (access.how, access.pipe, access.memory) == ("read", "V", "UB")
        assert (access.start, access.end) == (96, 200)


def test_offsets_that_nobody_has_written():
    def gathers(core, x):
        tile, offsets, made = (core.ubuf(kind, 64) for kind in ("float", "uint32", "float"))
        core.asc_copy_gm2ub(tile, x, 256)
        core.asc_sync()
        core.asc_gather(made, tile, offsets, 64)

    assert [f"{f.id}: {f.message}" for f in kernel(gathers)[1](floats()).findings] == [
        "uninitialised: vgather.offset must be initialised in UB, got 64 of 64 elements never "
        "written, first repeat 0, lane 0",
        "parameter: vgather: the offsets must be multiples of 4 B, got 4294967295 at [0, 0]",
    ]


class Refusing:
    """An array of another library that cannot be handed over."""

    def __dlpack__(self, **_):
        raise ValueError("not from here")

    def __dlpack_device__(self):
        return 1, 0


@pytest.mark.parametrize(
    ("given", "line"),
    [
        (Refusing(), "x must be an array that NumPy can view, got not from here"),
        (
            np.ma.masked_array(floats(), mask=False),
            "x must be an array without a mask, got a masked array; pass filled() of it",
        ),
    ],
)
def test_tensors_of_others(given, line):
    with pytest.raises(RequestError) as error:
        kernel(double)[1](given, floats())
    assert str(error.value) == line


def test_a_loop_that_only_prints_stops_too(capsys):
    @kernel
    def prints(core):
        while True:
            core.printf("again")

    with pytest.raises(KernelError) as error:
        prints.using(limit=3)[1]()
    assert "(prints): the kernel issued more than 3 instructions" in str(error.value)
    assert capsys.readouterr().out == "core 0 AIV0: again\n" * 3


STUCK = """
import numpy as np
import cubecore

@cubecore.kernel(kind="mix")
def stuck(core, x):
    if core.is_aiv:
        tile = core.ubuf("float", 64)
        core.asc_add(tile, tile, tile, 64)
        core.asc_sync_block_wait("PIPE_S", 3)

stuck[1](np.zeros(64, np.float32))
"""


def test_a_place_is_named_from_the_working_directory(tmp_path, monkeypatch):
    (tmp_path / "below").mkdir()
    (tmp_path / "stuck.py").write_text(STUCK)
    monkeypatch.chdir(tmp_path / "below")
    with pytest.raises(DeadlockError) as error:
        run_script("../stuck.py")
    assert f"AIV0 waits for flag 3 at {tmp_path}/stuck.py:10 (stuck)" in str(error.value)


def test_a_deadlock_tells_what_was_found_before_it(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "stuck.py").write_text(STUCK)
    with pytest.raises(DeadlockError) as error:
        run_script("stuck.py")
    assert [f.id for f in error.value.findings] == ["uninitialised"] * 2 + ["deadlock"] * 2
    result = cli("run", "stuck.py", "--sarif", "stuck.sarif")
    assert result.code == FOUND
    (run,) = json.loads((tmp_path / "stuck.sarif").read_bytes())["runs"]
    assert [r["ruleId"] for r in run["results"]] == ["uninitialised"] * 2 + ["deadlock"] * 2
    first, second, *rest = result.err.splitlines()
    assert first == (
        "deadlock, no core sends a signal: core 0 AIV0 waits for flag 3 at stuck.py:10 (stuck), "
        "which no core has sent; core 0 AIV1 waits for flag 3 at stuck.py:10 (stuck), which no "
        "core has sent"
    )
    assert second == "Findings: 1"
    assert [line.split(":")[0].strip() for line in rest] == [
        "uninitialised",
        "1 finding follows from it (uninitialised)",
    ]


@pytest.mark.parametrize("order", ["late", "early", "random:1"])
def test_a_deadlock_of_pipes_in_another_order(order):
    @kernel(order=order)
    def waits(core):
        core.asc_sync_wait("PIPE_MTE2", "PIPE_V", 0)

    with pytest.raises(DeadlockError) as error:
        waits[1]()
    (finding,) = error.value.findings
    assert (finding.id, finding.core) == ("flag-unmet", "core 0 AIV0")
    waits_at = f"V waits at {finding.location} for flag MTE2 -> V 0"
    assert str(error.value) == f"deadlock: core 0 AIV0: {waits_at}"
    assert finding.message == f"{waits_at}, which no set_flag sets"
