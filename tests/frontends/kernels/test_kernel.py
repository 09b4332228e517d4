"""Kernels in Python: launches, tensors, arrays, values, cores, and what an author gets wrong."""

import os
import signal
import time
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

import cubecore
from cubecore import KernelError, RequestError, Struct, kernel
from cubecore.errors import DeadlockError
from cubecore.frontends.capi.pointer import RuntimeInt
from cubecore.frontends.kernels.host_tensors import unbroken

ROOT = Path(__file__).resolve().parents[3]
HERE = os.path.relpath(__file__, ROOT)
ODD_LANES = 0x5555555555555555


def line_of(function, text):
    """Return the number of the first line of a function's source that holds `text`."""
    from inspect import getsourcelines

    lines, first = getsourcelines(getattr(function, "function", function))
    return first + next(i for i, line in enumerate(lines) if text in line)


def said(findings):
    return [f"{f.id}: {f.message}" for f in findings]


def load(core, dst, src, size):
    core.asc_copy_gm2ub(dst, src, size)
    core.asc_sync_notify("PIPE_MTE2", "PIPE_V", 0)
    core.asc_sync_wait("PIPE_MTE2", "PIPE_V", 0)


def store(core, dst, src, size):
    core.asc_sync_notify("PIPE_V", "PIPE_MTE3", 0)
    core.asc_sync_wait("PIPE_V", "PIPE_MTE3", 0)
    core.asc_copy_ub2gm(dst, src, size)


@kernel(outputs="c")
def add(core, a, b, c, count):
    x, y = core.ubuf("float", 1024), core.ubuf("float", 1024)
    first = core.block_idx * count
    core.asc_copy_gm2ub(y, b + first, count * 4)
    load(core, x, a + first, count * 4)
    core.asc_add(y, x, y, count)
    store(core, c + first, y, count * 4)


# --- launches and tensors


@pytest.mark.parametrize("blocks", [1, 2, 5, 40])
def test_every_block_adds_its_part(blocks):
    a, b = (np.arange(blocks * 64, dtype=np.float32) * n for n in (1, 2))
    c = np.full(blocks * 64, -1, np.float32)
    run = add[blocks](a, b, c, 64)
    assert run.findings == ()
    assert (c == 3 * a).all()
    assert (run.kernel, run.blocks, run.clean) == ("add", blocks, True)


def test_keywords_and_arrays_of_any_shape():
    a = np.ones((4, 16), np.float32)
    c = np.zeros((2, 32), np.float32)
    assert add[1](a, b=a, count=64, c=c).clean
    assert (c == 2).all()


def test_a_launch_on_more_cores_than_the_chip_has():
    a = np.ones(64, np.float32)
    with pytest.raises(RequestError) as error:
        add[41](a, a, a.copy(), 1)
    assert str(error.value) == "add[blocks] must be in [1, 40], the AIVs of Ascend910B3, got 41"
    with pytest.raises(RequestError, match=r"^add\[blocks\] must be in \[1, 48\], the AIVs of"):
        add.using(chip="Ascend910_9391")[99](a, a, a.copy(), 1)


def test_a_vector_kernel_needs_a_chip_with_aivs():
    with pytest.raises(RequestError) as error:
        add.using(chip="Ascend910A")[1](*np.zeros((3, 64), np.float32), 1)
    assert str(error.value) == ("add is a vector kernel; Ascend910A has no AIVs")


def test_arguments_that_do_not_fit():
    a = np.ones(64, np.float32)
    with pytest.raises(RequestError) as error:
        add[1](a, a)
    assert str(error.value) == ("add takes a, b, c, count: missing a required argument: 'c'")


@kernel(types={"a": "half"})
def typed(core, a):
    core.asc_copy_gm2ub(core.ubuf("half", 16), a, 32)


@pytest.mark.parametrize(
    ("given", "line"),
    [
        (np.ones(16, np.float32), "a must be of float16, got float32"),
        (
            np.ones((4, 8), np.float16)[:, ::2],
            "a must be contiguous, its last axis innermost, got strides of (16, 4) B for shape "
            "(4, 4); pass np.ascontiguousarray of it",
        ),
        (np.ones(4, np.complex64), "a must be of a type that the chip has, got complex64"),
        (
            np.ones(4),
            "a must be of a type that the chip has, got float64; convert it first, as with "
            "a.astype(np.float32)",
        ),
        ([1, 2], "a must be a NumPy, DLPack or torch array, or a number, got list"),
        (
            np.ones(4, ml_dtypes.int4),
            "a must be of 8 bits or more, got int4; pack two to a byte in a uint8 array, and cast "
            "the pointer",
        ),
    ],
)
def test_tensors_that_are_refused(given, line):
    with pytest.raises(RequestError) as error:
        typed[1](given)
    assert str(error.value) == line


def test_an_array_that_may_not_be_written():
    a = np.ones(64, np.float32)
    c = np.zeros(64, np.float32)
    c.flags.writeable = False
    with pytest.raises(RequestError) as error:
        add[1](a, a, c, 64)
    assert str(error.value) == "c must be writable, got a read-only array that the kernel writes"
    a.flags.writeable = False
    assert add[1](a, a, np.zeros(64, np.float32), 64).clean


@kernel(types={"a": "bfloat16"})
def double(core, a):
    x, y = core.ubuf("bfloat16", 128), core.ubuf("float", 128)
    load(core, x, a, 256)
    core.asc_bfloat162float(y, x, 64)
    core.asc_sync_pipe("V")
    core.asc_add(y, y, y, 64)
    core.asc_sync_pipe("V")
    core.asc_float2bfloat16_rn(x, y, 64)
    store(core, a, x, 128)


def test_bfloat16_and_dlpack():
    a = np.arange(128).astype(ml_dtypes.bfloat16)
    assert double[1](a).clean
    assert (a[:64] == 2 * np.arange(64)).all()
    assert (a[64:] == np.arange(64, 128)).all()

    class Exported:
        def __init__(self, array):
            self.array = array

        def __dlpack__(self, **keywords):
            return self.array.__dlpack__(**keywords)

        def __dlpack_device__(self):
            return self.array.__dlpack_device__()

    a, c = np.arange(64, dtype=np.float32), np.zeros(64, np.float32)
    assert add[1](Exported(a), a, Exported(c), 64).clean
    assert (c == 2 * a).all()


def test_torch_tensors():
    torch = pytest.importorskip("torch")
    a, c = torch.arange(64, dtype=torch.float32), torch.zeros(64)
    assert add[1](a, a, c, 64).clean
    assert torch.equal(c, 2 * a)
    with pytest.raises(RequestError, match=r"^a must be contiguous"):
        add[1](torch.ones(8, 8).T, a, c, 64)
    with pytest.raises(RequestError, match=r"^a must be on the CPU, got a tensor on meta$"):
        add[1](torch.empty(64, device="meta"), a, c, 64)


def test_torch_tensors_of_types_that_numpy_lacks():
    torch = pytest.importorskip("torch")
    a = torch.arange(128).to(torch.bfloat16).requires_grad_()
    assert double[1](a).clean
    assert torch.equal(a[:64].detach(), 2 * torch.arange(64).to(torch.bfloat16))
    with pytest.raises(RequestError, match=r"^a must be of bfloat16, got float16$"):
        double[1](torch.ones(128, dtype=torch.float16))
    with pytest.raises(RequestError, match=r"^a must be of a type that the chip has"):
        add[1](torch.ones(64, dtype=torch.complex64), a, a, 64)
    for name in ("bfloat16", "float16", "int8", "float8_e4m3fn"):
        assert cubecore.Problem(m=64, n=64, k=64, a=getattr(torch, name)).a == name


def test_an_output_that_is_not_written_whole():
    a, c = np.ones(64, np.float32), np.zeros(64, np.float32)
    assert said(add[1](a, a, c, 32).findings) == [
        "uninitialised: c must be written whole, got 128 of 256 B never written or written from "
        "uninitialised memory, the first at byte 128"
    ]


# --- seed 003: the mask


def test_the_mask_example_of_the_seed():
    """asc_set_vector_mask takes the high word first; lanes that are off keep what dst held."""

    @kernel
    def masked(core, a, c, high, low):
        src0, src1, dst = (core.ubuf(a.dtype, 128) for _ in range(3))
        core.asc_copy_gm2ub(src1, a, 256)
        core.asc_copy_gm2ub(dst, c, 256)
        load(core, src0, a, 256)
        config = cubecore.capi.asc_binary_config()
        config.dst_block_stride = config.src0_block_stride = config.src1_block_stride = 1
        config.dst_repeat_stride = config.src0_repeat_stride = config.src1_repeat_stride = 8
        core.asc_set_vector_mask(high, low)
        core.asc_add(dst, src0, src1, config)
        store(core, c, dst, 256)

    a, c = np.arange(1, 129, dtype=np.int16), np.full(128, -7, np.int16)
    assert masked[1](a, c, ODD_LANES, ODD_LANES).clean
    assert (c[::2] == 2 * a[::2]).all()
    assert (c[1::2] == -7).all()
    a, c = np.arange(1, 65, dtype=np.int32), np.full(64, -7, np.int32)
    assert masked[1](a, c, 0, ODD_LANES).clean
    assert (c[::2] == 2 * a[::2]).all()
    assert (c[1::2] == -7).all()


def test_a_count_leaves_its_mask_behind():
    @kernel
    def stale(core, a):
        x = core.ubuf("float", 128)
        load(core, x, a, 512)
        core.asc_add(x, x, x, 100)
        core.asc_sync_pipe("V")
        core.asc_add(x, x, x, 1, 1, 1, 1, 8, 8, 8)

    (finding,) = stale[1](np.ones(128, np.float32)).findings
    left, ran = line_of(stale, "x, 100)"), line_of(stale, "8, 8, 8)")
    assert said([finding]) == [
        "stale-mask: vadd must run under a mask that was set for it, got the count 100 that "
        f"asc_add left at {HERE}:{left} (stale); call asc_set_vector_mask first"
    ]
    assert finding.location.line == ran


# --- seed 003: arrays


def declare(build, **options):
    """Launch a kernel that declares something, and return its findings."""

    @kernel(kind=options.pop("kind", "vector"), **options)
    def declaring(core):
        build(core)

    return declaring[1]().findings


class Buffers(Struct):
    src = ("float", 1024)
    dst = ("half", 128)


class Nested(Struct):
    inner = Buffers


def test_arrays_and_structs_lie_one_behind_another():
    seen = []

    def build(core):
        src, dst = core.ubuf("float", 1000), core.ubuf("half", 3)
        buffers = core.ubuf(Buffers())
        seen.extend([src.address, dst.address, buffers.src.address, buffers.dst.address])
        assert buffers.dst.dtype.name == "float16"

    assert declare(build) == ()
    assert seen == [0, 4000, 4032, 4032 + 4096]


def test_arrays_of_every_memory_are_aligned_for_its_instructions():
    def build(core):
        for name, align in (("cbuf", 32), ("ca", 512), ("cb", 512), ("cc", 1024), ("biasbuf", 128)):
            space = getattr(core, name)
            assert space("int8", 1).address == 0
            assert space("int8", 1).address == align

    assert declare(build, kind="cube") == ()


@pytest.mark.parametrize(
    ("build", "line"),
    [
        (
            lambda core: core.ubuf("float", 8, 8),
            "an array of float32 must have one length, got [8][8]",
        ),
        (
            lambda core: core.ubuf("float", (8, 8)),
            "an array of float32 must have one length, got [(8, 8)]",
        ),
        (lambda core: core.ubuf("float"), "an array of float32 must have one length, got none"),
        (
            lambda core: core.ubuf(core.ubuf("float", 8), 8),
            "an array in UB must be of an element type, got an array",
        ),
        (lambda core: core.ubuf(float, 8), "an array in UB must be of an element type, got float"),
        (
            lambda core: core.ubuf(Buffers(), 32),
            "an array must not hold structs that hold arrays, got Buffers[32]",
        ),
        (
            lambda core: core.ubuf(Buffers),
            "Buffers is a struct type; declare an object of it; write Buffers()",
        ),
        (
            lambda core: core.ubuf(Nested()),
            "Nested.inner must be an array of numbers, got Buffers",
        ),
        (
            lambda core: core.ubuf("float", core.asc_get_block_num() * 8),
            "an array's length must be known when the kernel is compiled, got 8 from get_block_num"
            "; make it a constant of the module, or of a function that makes the kernel, at its "
            "largest value",
        ),
        (
            lambda core: core.ubuf("float", 0),
            "an array's length must be a whole number above 0, got 0",
        ),
        (
            lambda core: core.ubuf("float", 1.5),
            "an array's length must be a whole number above 0, got 1.5",
        ),
        (
            lambda core: (core.ubuf("float", 40000), core.ubuf("half", 40000)),
            "arrays in UB must fit 196352 B, got 240000 B",
        ),
    ],
)
def test_arrays_that_the_compiler_does_not_take(build, line):
    with pytest.raises(KernelError) as error:
        declare(build)
    assert str(error.value).endswith(f" (<lambda>): {line}")
    assert str(error.value).startswith(f"{HERE}:")


@kernel
def dynamic(core, count, width=64):
    core.ubuf("float", 64)
    core.ubuf("float", count if count > 64 else width * 2)


@pytest.mark.parametrize(
    ("arguments", "got"),
    [
        ((128,), "128 from the argument count"),
        ((np.int64(128),), "128 from the argument count"),
        ((8,), "128 from the argument width"),
        ((8, 32), "64 from the argument width"),
    ],
    ids=str,
)
def test_an_array_is_not_as_long_as_a_launch_says(arguments, got):
    """C API general notes: an array's length is a constant of the compiler."""
    with pytest.raises(KernelError) as error:
        dynamic[1](*arguments)
    assert str(error.value) == (
        f"{HERE}:{line_of(dynamic, 'if count')} (dynamic): an array's length must be known when "
        f"the kernel is compiled, got {got}; make it a constant of the module, or of a function "
        "that makes the kernel, at its largest value"
    )


def test_a_launch_says_where_an_address_lies():
    @kernel(outputs="z")
    def placed(core, x, z, at):
        tile = core.ubuf.at("float", at)
        load(core, tile, x, 256)
        core.asc_sync()
        core.asc_copy_ub2gm(z, tile, 256)

    x, z = np.arange(64, dtype=np.float32), np.zeros(64, np.float32)
    assert placed[1](x, z, 4096).clean
    assert np.array_equal(x, z)


def test_arrays_are_for_910b_and_910c():
    with pytest.raises(
        KernelError, match="an array in a local memory must be on a 910B, 910C or 950"
    ):
        declare(lambda core: core.ubuf("float", 8), chip="Ascend310P3")
    for on in ("Ascend910_9391", "Ascend950PR_9599"):
        assert declare(lambda core: core.ubuf("float", 8), chip=on) == ()


@pytest.mark.parametrize("on", ["Ascend310P3", "KirinX90", "Kirin9030"])
@pytest.mark.parametrize(
    "build", [lambda core: core.ubuf("float", 8), lambda core: core.ubuf(Buffers())]
)
def test_no_array_is_on_another_chip(build, on):
    with pytest.raises(KernelError, match=f"an array in a local memory must be on .* got {on}$"):
        declare(build, chip=on)


def test_a_struct_of_arrays_is_arrays_beside_a_physical_address():
    findings = declare(lambda core: (core.ubuf(Buffers()), core.ubuf.at("float", 0)))
    assert [line.partition(":")[0] for line in said(findings)] == ["mixed-allocation"]


def test_an_array_in_a_struct_has_one_length():
    class Flat(Struct):
        src = ("float", 64, 2)

    with pytest.raises(KernelError, match=r"must have one length, got \[64\]\[2\]$"):
        declare(lambda core: core.ubuf(Flat()))


def test_arrays_and_physical_addresses_are_the_same_bytes():
    """Seed 003's last example: src0 and src1 start at one address."""

    @kernel
    def mixed(core, a, c):
        src0 = core.ubuf.at("float", core.asc_get_phy_buf_addr(0))
        src1 = core.ubuf("float", 64)
        load(core, src0, a, 256)
        core.asc_add(src1, src1, src0, 64)
        store(core, c, src1, 256)

    a, c = np.arange(64, dtype=np.float32), np.zeros(64, np.float32)
    (finding,) = mixed[1](a, c).findings
    assert (c == 2 * a).all()
    assert said([finding]) == [
        "mixed-allocation: UB must be used by arrays or by asc_get_phy_buf_addr, got both; arrays "
        "lie from address 0 on, so that both may be the same bytes"
    ]
    assert finding.location.line == line_of(mixed, 'core.ubuf("float", 64)')


# --- values and indices


def test_values_read_from_memory_steer_a_kernel():
    @kernel
    def steered(core, counts, a):
        n = counts[core.block_idx]
        x = core.ubuf("float", 64)
        if n:
            load(core, x, a + core.block_idx * 64, 256)
            core.asc_add_scalar(x, x, float(n), n)
            store(core, a + core.block_idx * 64, x, 256)

    a, counts = np.zeros(256, np.float32), np.array([3, 0, 64, 1], np.int32)
    assert steered[4](counts, a).clean
    for block, n in enumerate(counts):
        part = a[64 * block : 64 * (block + 1)]
        assert (part[:n] == n).all()
        assert (part[n:] == 0).all()


def test_a_value_from_ub_needs_its_flag():
    @kernel
    def read(core, a, waits):
        x = core.ubuf("float", 8)
        core.asc_copy_gm2ub(x, a, 32)
        if waits:
            core.asc_sync_notify("MTE2", "S", 0)
            core.asc_sync_wait("MTE2", "S", 0)
        assert x[3] == 1.5

    a = np.full(8, 1.5, np.float32)
    assert read[1](a, True).clean
    (finding,) = read[1](a, False).findings
    assert finding.id == "race-raw"
    assert finding.location.line == line_of(read, "assert x[3]")


def test_what_is_computed_from_a_runtime_value_is_one_too():
    n = RuntimeInt(12, "there")
    for value in (n + 1, 1 + n, n * 2, n // 5, n % 5, -n, n << 1, 100 - n, n & 4):
        assert isinstance(value, RuntimeInt)
        assert value.origin == "there"
    assert [n + 1, 100 - n, n // 5, n % 5, n << 1] == [13, 88, 2, 2, 24]
    assert n / 8 == 1.5
    assert not isinstance(n == 12, RuntimeInt)


def test_pointers_count_elements():
    def build(core):
        p = core.ubuf("half", 64)
        assert (p + 16).address == p[16:].address == 32
        assert (p[16:] - 8).address == 16
        q = p.cast("float")
        assert (q + 1).address == 4
        with pytest.raises(RequestError, match=r"must be of the form p\[n:\], got p\[2:4\]$"):
            p[2:4]
        with pytest.raises(RequestError, match=r"^a distance in int4 must be even, got 3"):
            p.cast("int4") + 3

    assert declare(build) == ()


def test_registers_that_the_scalar_unit_reads():
    out = []

    @kernel
    def largest(core, a):
        x, y = core.ubuf("float", 64), core.ubuf("float", 64)
        load(core, x, a, 256)
        core.asc_repeat_reduce_max_value_index(y, x, 64)
        core.asc_sync_notify("V", "S", 0)
        core.asc_sync_wait("V", "S", 0)
        bits, index = core.asc_get_reduce_max_cnt()
        out.append((np.uint32(bits).view(np.float32), index))

    a = np.arange(64, dtype=np.float32) % 37
    assert largest[1](a).clean
    assert out == [(36.0, 36)]


# --- mix launches


@kernel(kind="mix", outputs="c")
def handed(core, a, c, told):
    """AIV 0 of each core copies A to C, AIV 1 doubles it there."""
    if core.is_aic:
        return
    n = core.block_idx // core.asc_get_sub_block_num() * 64
    x = core.ubuf("float", 64)
    if core.asc_get_sub_block_id() == 0:
        core.asc_copy_gm2ub(x, a + n, 256)
        core.asc_sync_notify("MTE2", "MTE3", 0)
        core.asc_sync_wait("MTE2", "MTE3", 0)
        core.asc_copy_ub2gm(c + n, x, 256)
    if told:
        core.asc_sync_subblock_arrive("PIPE_MTE3", 3)
        core.asc_sync_subblock_wait("PIPE_S", 3)
    if core.asc_get_sub_block_id() == 1:
        load(core, x, c + n, 256)
        core.asc_add(x, x, x, 64)
        store(core, c + n, x, 256)


def test_the_parts_of_an_ai_core_take_turns():
    a, c = np.arange(128, dtype=np.float32), np.zeros(128, np.float32)
    assert handed[2](a, c, True).clean
    assert (c == 2 * a).all()


@kernel(kind="mix")
def first_halves(core):
    """The AIVs send if `block_idx` counts blocks, which in a mix kernel it does not."""
    if core.is_aic:
        core.asc_sync_block_wait("PIPE_S", 3)
    elif core.block_idx < core.block_num:
        core.asc_sync_block_arrive("PIPE_MTE3", 3)


def test_a_core_that_nobody_signals_is_named_with_its_flag_and_line():
    with pytest.raises(DeadlockError) as caught:
        first_halves[2]()
    line = first_halves.function.__code__.co_firstlineno + 4
    assert str(caught.value) == (
        "deadlock, no core sends a signal: core 1 AIC waits for flag 3 at "
        f"{first_halves.place.file}:{line} (first_halves), which no core has sent"
    )


def test_parts_that_do_not_wait_for_each_other():
    a, c = np.arange(128, dtype=np.float32), np.zeros(128, np.float32)
    found = handed[2](a, c, False).findings
    assert [f.id for f in found] == ["race-raw", "race-waw"]
    assert "got no order between core 0 AIV0 (MTE3" in found[0].message
    assert found[0].accesses[0].memory == "c"


def test_who_a_core_is():
    seen = {}

    def body(core):
        seen[core._core.id] = (
            core.is_aic,
            core.asc_get_block_idx(),
            core.asc_get_block_num(),
            core.asc_get_sub_block_id(),
            core.asc_get_sub_block_num(),
        )

    kernel(kind="mix")(body)[2]()
    assert {str(i): v for i, v in seen.items()} == {
        "core 0 AIC": (True, 0, 2, 0, 1),
        "core 0 AIV0": (False, 0, 2, 0, 2),
        "core 0 AIV1": (False, 1, 2, 1, 2),
        "core 1 AIC": (True, 1, 2, 0, 1),
        "core 1 AIV0": (False, 2, 2, 0, 2),
        "core 1 AIV1": (False, 3, 2, 1, 2),
    }
    seen.clear()
    kernel(kind="mix_1_1")(body)[2]()
    assert {str(i): v for i, v in seen.items()} == {
        "core 0 AIC": (True, 0, 2, 0, 1),
        "core 0 AIV0": (False, 0, 2, 0, 1),
        "core 1 AIC": (True, 1, 2, 0, 1),
        "core 1 AIV0": (False, 1, 2, 0, 1),
    }
    seen.clear()
    kernel(body)[3]()
    assert {str(i): v[1:3] for i, v in seen.items()} == {
        "core 0 AIV0": (0, 3),
        "core 0 AIV1": (1, 3),
        "core 1 AIV0": (2, 3),
    }


def test_a_part_knows_where_it_is_behind_a_wait_of_another():
    """The AICs wait before any AIV has begun; AIVs still count those of their own launch."""
    seen = []

    @kernel(kind="mix")
    def counted(core):
        if core.is_aic:
            core.asc_sync_block_wait("PIPE_FIX", 1)
        else:
            seen.append((core.asc_get_sub_block_num(), core.asc_get_sub_block_id()))
            core.asc_sync_block_arrive("PIPE_MTE2", 1)

    assert counted[2]().clean
    assert sorted(seen) == [(2, 0), (2, 0), (2, 1), (2, 1)]


# --- what an author gets wrong


def test_a_loop_without_end_stops_at_the_limit():
    @kernel
    def endless(core):
        while True:
            core.asc_sync_pipe("V")

    with pytest.raises(KernelError) as error:
        endless.using(limit=1000)[1]()
    assert str(error.value) == (
        f"{HERE}:{line_of(endless, 'asc_sync_pipe')} (endless): the kernel issued more than 1,000 "
        "instructions; check its loops, or raise `limit` (of judge: --instructions)"
    )


@pytest.fixture
def takes_ctrl_c():
    """Take Ctrl-C as Python does, also where the tests run in the background of a shell."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("takes_ctrl_c")
def test_a_ctrl_c_while_arrays_are_written_comes_behind_the_last():
    done = []

    def write():
        with unbroken():
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(0.01)
            done.append("the last")

    with pytest.raises(KeyboardInterrupt):
        write()
    assert done == ["the last"]
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_a_read_only_array_that_is_written_leaves_the_others_as_they_were():
    @kernel
    def both(core, a, c):
        x = core.ubuf("float", 8)
        core.asc_duplicate(x, 1.0, 8)
        core.asc_sync()
        core.asc_copy_ub2gm(a, x, 32)
        core.asc_copy_ub2gm(c, x, 32)

    a, c = np.zeros((2, 8), np.float32)
    c.flags.writeable = False
    with pytest.raises(RequestError) as error:
        both[1](a, c)
    assert str(error.value) == ("c must be writable, got a read-only array that the kernel writes")
    assert not a.any()


def test_a_loop_that_polls_memory_stops_too():
    @kernel
    def polls(_core, a):
        while a[0] == 0:
            pass

    with pytest.raises(KernelError) as error:
        polls.using(limit=50)[1](np.zeros(8, np.int32))
    assert str(error.value).startswith(
        f"{HERE}:{line_of(polls, 'a[0]')} (polls): the kernel issued"
    )


def test_an_exception_in_a_kernel_shows_the_authors_line_first():
    @kernel
    def fails(core):
        divide(core.block_idx)

    def divide(n):
        return 1 // n

    with pytest.raises(KernelError) as error:
        fails[1]()
    assert str(error.value) == (
        f"{HERE}:{line_of(divide, '1 // n')} (divide): the kernel raised ZeroDivisionError: "
        "integer division or modulo by zero"
    )
    assert isinstance(error.value.__cause__, ZeroDivisionError)


def test_a_wrong_call_shows_the_authors_line_first():
    @kernel
    def wrong(core):
        core.asc_addd(1, 2)

    with pytest.raises(KernelError) as error:
        wrong[1]()
    assert str(error.value) == (
        f"{HERE}:{line_of(wrong, 'asc_addd')} (wrong): asc_addd must be a name of the C API that "
        "an instruction has, got none; did you mean asc_add?"
    )
    assert error.value.to_json()["kind"] == "KernelError"


def test_nothing_is_written_when_a_kernel_fails():
    @kernel
    def half_way(core, a):
        x = core.ubuf("float", 64)
        load(core, x, a, 256)
        core.asc_add(x, x, x, 64)
        store(core, a, x, 256)
        raise KeyboardInterrupt

    a = np.ones(64, np.float32)
    with pytest.raises(KeyboardInterrupt):
        half_way[1](a)
    assert (a == 1).all()


@pytest.mark.parametrize(
    ("options", "line"),
    [
        ({"kind": "matrix"}, "kind must be vector, cube, mix, mix_1_1, got 'matrix'"),
        ({"outputs": "z"}, "body has no parameter z after the core"),
        ({"scratch": "z"}, "body has no parameter z after the core"),
        ({"outputs": "a", "scratch": ("a",)}, "a must be an output or scratch, got both"),
        ({"types": {"a": "floot"}}, "a must be an element type ("),
    ],
)
def test_a_kernel_that_is_declared_wrongly(options, line):
    def body(core, a):
        """Nothing."""

    with pytest.raises(RequestError) as error:
        kernel(**options)(body)
    assert str(error.value).startswith(line)


@pytest.mark.parametrize("engine", ["fast", "reference"])
def test_scratch_starts_unwritten_and_need_not_be_written_whole(engine):
    """Here 256 B of it are written, and as many, or more, are read."""

    @kernel(outputs="c", scratch="w", engine=engine)
    def through(core, a, c, w, read):
        x = core.ubuf("float", 128)
        core.asc_copy_gm2ub_sync(x, a, 256)
        core.asc_copy_ub2gm_sync(w, x, 256)
        core.asc_copy_gm2ub_sync(x, w, read)
        core.asc_copy_ub2gm_sync(c, x, 256)

    a, c, w = np.arange(64, dtype=np.float32), np.zeros(64, np.float32), np.zeros(128, np.float32)
    assert through[1](a, c, w, 256).clean
    assert (c == a).all()
    assert (w[:64] == a).all()
    assert w[64:].view(np.uint8).tolist() == [0xFF] * 256  # what nobody wrote
    more = through[1](a, c, w, 288).findings
    assert more == ()  # a copy of what is unwritten is unwritten, and nobody uses it
    (finding,) = kernel(scratch="a")(_added).using(engine=engine)[1](a).findings
    assert finding.message == (
        "vadd.src0 must be initialised in UB, got 64 of 64 elements never written, first repeat 0, "
        "lane 0"
    )


def test_a_kernel_with_other_outputs_and_scratch():
    def load(core, a, w):
        x = core.ubuf("float", 64)
        core.asc_copy_gm2ub_sync(x, a, 128)
        core.asc_copy_ub2gm_sync(w, x, 256)

    made, a, w = kernel(load), np.ones(64, np.float32), np.ones(64, np.float32)
    left = "w must hold what was written, got 128 of 256 B copied from uninitialised memory,"
    first = " the first at byte 128"
    whole = "w must be written whole, got 128 of 256 B never written or written from uninitialised"
    for marks, lines in (
        ({}, [left + first]),
        ({"scratch": "w"}, []),
        ({"outputs": ["w"]}, [f"{whole} memory,{first}"]),
        ({"outputs": (), "scratch": ()}, [left + first]),
    ):
        assert [f.message for f in made.using(**marks)[1](a, w).findings] == lines
    for marks, line in (
        ({"scratch": "aa"}, "scratch must name a parameter of load (a, w), got aa;"),
        ({"outputs": "w", "scratch": "w"}, "w must be an output or scratch, got both"),
        ({"outputs": 1}, "outputs and scratch must name parameters, got 1"),
    ):
        with pytest.raises(RequestError) as error:
            made.using(**marks)
        assert str(error.value).startswith(line)


def _added(core, a):
    x, y = core.ubuf("float", 64), core.ubuf("float", 64)
    core.asc_duplicate_sync(y, 1.0, 64)
    core.asc_copy_gm2ub_sync(x, a, 256)
    core.asc_add_sync(y, x, y, 64)


@pytest.mark.parametrize(
    ("option", "line"),
    [
        (
            {"chips": "Ascend910B3"},
            "an option must be chip, settings, checks, limit, order, trace or engine, got 'chips'; "
            "did you mean chip?",
        ),
        ({"engine": "gpu"}, "engine must be fast, blas, lockstep or reference, got 'gpu'"),
        ({"limit": 0}, "limit must be a whole number above 0, got 0"),
        ({"limit": True}, "limit must be a whole number above 0, got True"),
        ({"limit": "9"}, "limit must be a whole number above 0, got '9'"),
    ],
)
def test_an_option_that_there_is_not(option, line):
    for make in (add.using, kernel):
        with pytest.raises(RequestError) as error:
            make(**option)(lambda _: None)
        assert str(error.value) == line


def test_checks_can_be_switched_off():
    a, c = np.arange(128, dtype=np.float32), np.zeros(128, np.float32)
    assert handed.using(checks="memcheck,initcheck,synccheck")[2](a, c, False).clean


def test_a_call_from_one_place_is_bound_by_its_arguments():
    @kernel(outputs="z", types={"z": "float32"})
    def filled(core, z):
        wide, narrow = core.ubuf("float", 64), core.ubuf("half", 128)
        core.asc_set_vector_mask(2**64 - 1, 2**64 - 1)
        for number, value in enumerate((0.0, -0.0, 0, 1.5, True, -0.0)):
            core.asc_sync()
            core.asc_duplicate(wide, value, 1, 1, 8)
            core.asc_sync()
            core.asc_copy_ub2gm(z + 64 * number, wide, 256)
        for which in (wide, narrow, wide):
            core.asc_sync()
            core.asc_duplicate(which, 2.0, 1, 1, 8)
        core.asc_sync()
        for call in (core.asc_add, core.asc_sub):
            call(wide, wide, wide, 1, 1, 1, 1, 8, 8, 8)
            core.asc_sync()
        core.asc_copy_ub2gm(z + 64 * 6, wide, 256)

    z = np.zeros(7 * 64, np.float32)
    assert filled[1](z).findings == ()
    left = z.reshape(7, 64)[:, 5]
    assert left.tobytes() == np.array([0.0, -0.0, 0, 1.5, 1, -0.0, 0], np.float32).tobytes()
