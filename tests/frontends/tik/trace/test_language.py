"""TIK's language: traced once, run on cores; against plain Python."""

from pathlib import Path

import numpy as np
import pytest

from cubecore.errors import RequestError
from cubecore.frontends.tik.host.instance import Tik
from cubecore.frontends.tik.host.program import run_program
from cubecore.frontends.tik.trace.language import Dprofile
from cubecore.frontends.tik.trace.values import all_of, any_of, negate
from cubecore.timing.launch import time_launch

GM, UB = "global", "local.UB"
V310 = Dprofile("v100", "mini")
V310P = Dprofile("v200", "aic")


def scalars(body, dtype="int32", count=8, target=V310P, **inputs):
    """Run a kernel of one core that writes `count` elements of UB by set_as."""
    t = Tik(target)
    out, ub = t.Tensor(dtype, (count,), GM, "out"), t.Tensor(dtype, (count,), UB, "ub")
    given = {n: t.Tensor(str(v.dtype), v.shape, GM, n) for n, v in inputs.items()}
    lanes = 256 // np.dtype(dtype).itemsize
    t.vec_dup(min(lanes, count), ub, 0, 1, 8)
    body(t, ub, *given.values())
    t.data_move(out, ub, 0, 1, -(-count * np.dtype(dtype).itemsize // 32), 0, 0)
    t.BuildCCE("k", list(given.values()), [out])
    ran = t.launch(inputs)
    assert ran.findings == ()
    return ran.outputs["out"].tolist()


def test_a_body_runs_once_in_python_and_names_may_be_rebound():
    times = []

    def body(t, ub):
        offset = 0
        with t.for_range(0, 4) as i:
            times.append(1)
            offset += i * 2
            ub[offset].set_as(i + 10)
        ub[1].set_as(5)

    assert scalars(body) == [10, 5, 11, 0, 12, 0, 13, 0]
    assert times == [1]


def test_a_scalar_changes_as_the_program_runs():
    def body(t, ub):
        a, b = t.Scalar("int32", init_value=0), t.Scalar("int32", init_value=1)
        c = t.Scalar("int32")
        with t.for_range(0, 8) as i:
            ub[i].set_as(a)
            c.set_as(a + b)
            a.set_as(b)
            b.set_as(c)

    assert scalars(body) == [0, 1, 1, 2, 3, 5, 8, 13]


def test_bounds_are_read_once():
    def body(t, ub):
        n = t.Scalar("int32", init_value=3)
        with t.for_range(1, n) as i:
            n.set_as(7)
            ub[i].set_as(n)

    assert scalars(body) == [0, 7, 7, 0, 0, 0, 0, 0]


def test_branches_and_conditions():
    def body(t, ub):
        with t.for_range(0, 8) as i:
            with t.if_scope(i == 0):
                ub[i].set_as(100)
            with t.elif_scope(all_of(i > 2, i != 4)):
                ub[i].set_as(i * i)
            with t.elif_scope(any_of(i == 1, negate(i < 4))):
                ub[i].set_as(-i)
            with t.else_scope(), t.if_scope((i > 1) & (i < 3)):
                ub[i].set_as(i // 2 + i % 2 + 7)

    assert scalars(body) == [100, -1, 8, 9, -4, 25, 36, 49]


def test_python_conditions_stay_python():
    def body(t, ub):
        with t.if_scope(True):
            ub[0].set_as(1)
        with t.if_scope(False):
            ub[1].set_as(1)
        with t.else_scope():
            ub[2].set_as(1)
        with t.for_range(2, 2):
            ub[3].set_as(1)

    assert scalars(body)[:4] == [1, 0, 1, 0]


def test_integers_wrap_to_the_scalars_width():
    def body(t, ub):
        for place, (dtype, value) in enumerate([("int8", 130), ("uint8", -1), ("uint16", 65537)]):
            ub[place].set_as(t.Scalar(dtype, init_value=t.Scalar("int32", init_value=value)))

    assert scalars(body)[:3] == [-126, 255, 1]


def test_elements_of_memory_become_scalars():
    numbers = np.array([5, -3, 2, 9, 0, 0, 0, 0], np.int32)
    halves = np.array([1.5, -2.0] + [0] * 14, np.float16)

    def body(t, ub, numbers_gm, halves_gm):
        x, h = t.Tensor("int32", (8,), UB, "x"), t.Tensor("float16", (16,), UB, "h")
        t.data_move(x, numbers_gm, 0, 1, 1, 0, 0)
        t.data_move(h, halves_gm, 0, 1, 1, 0, 0)
        total = t.Scalar("int32", init_value=0)
        with t.for_range(0, 4) as i:
            total.set_as(total + t.Scalar("int32", init_value=x[i]))
        ub[0].set_as(total)
        direct = t.Scalar("int32", init_value=numbers_gm[3])
        ub[1].set_as(direct)
        bits = t.Scalar("uint16", init_value=h[0])
        ub[2].set_as(bits)
        half = t.Scalar("float16", init_value=h[1])
        ub[3].set_as(t.Scalar("int32", init_value=half * 2.5))
        ub[4] = x[1]

    got = scalars(body, numbers_gm=numbers, halves_gm=halves)
    assert got[:5] == [13, 9, 0x3E00, -5, -3]


def test_an_array_of_scalars_and_the_scalar_unit():
    def body(t, ub):
        array = t.ScalarArray("int32", 3, "a", [4, 5, 6])
        array[1].set_as(array[0] * 2)
        least, largest = t.Scalar("int32"), t.Scalar("int32")
        t.scalar_min(least, array[1], array[2])
        t.scalar_max(largest, array[1], array[2])
        ones = t.Scalar("int32")
        t.scalar_countbit1(ones, t.Scalar("int64", init_value=255))
        root = t.Scalar("float32")
        t.scalar_sqrt(root, 49.0)
        whole = t.Scalar("int32")
        t.scalar_conv("round", whole, root / 2)
        for place, value in enumerate([least, largest, ones, whole]):
            ub[place].set_as(value)

    assert scalars(body)[:4] == [6, 8, 8, 4]


def test_blocks_are_dealt_to_cores():
    t = Tik(Dprofile("v100", "mini"))
    out = t.Tensor("int32", (7 * 8,), GM, "out")
    with t.for_range(0, 7, block_num=7) as block:
        ub = t.Tensor("int32", (8,), UB, "ub")
        t.vec_dup(8, ub, t.Scalar("int32", init_value=block * block), 1, 8)
        t.data_move(out[block * 8], ub, 0, 1, 1, 0, 0)
    t.BuildCCE("k", [], [out])
    assert t.kernel.blocks == t.kernel.chip.aic_count == 2
    (got,) = t.tikdb.start_debug({})
    assert got.reshape(7, 8).tolist() == [[b * b] * 8 for b in range(7)]


def test_atomic_outputs_start_at_zero():
    t = Tik(V310P)
    out = t.Tensor("float32", (8,), GM, "out", is_atomic_add=True)
    with t.for_range(0, 5, block_num=5) as block:
        ub = t.Tensor("float32", (8,), UB, "ub")
        t.vec_dup(8, ub, t.Scalar("float32", init_value=block + 1), 1, 8)
        t.set_atomic_add(1)
        t.data_move(out, ub, 0, 1, 1, 0, 0)
        t.set_atomic_add(0)
    t.BuildCCE("k", [], [out])
    ran = t.launch({})
    assert ran.findings == ()
    assert ran.outputs["out"].tolist() == [15.0] * 8


@pytest.mark.parametrize("on", [1, 2])
def test_an_atomic_mode_that_is_left_on(on):
    """Cores from one on turn it on; the statement that does so is named."""
    t = Tik(V310P)
    out = t.Tensor("float32", (8,), GM, "out", is_atomic_add=True)
    with t.for_range(0, 3, block_num=3) as block:
        ub = t.Tensor("float32", (8,), UB, "ub")
        t.vec_dup(8, ub, 1.0, 1, 8)
        t.set_atomic_add(0)
        with t.if_scope(block >= on):
            t.set_atomic_add(1)
        t.data_move(out, ub, 0, 1, 1, 0, 0)
    t.BuildCCE("k", [], [out])
    found = [f for f in t.launch({}).findings if f.id == "mode-left"]
    assert [(f.count, f.core[:6]) for f in found] == [(3 - on, f"core {on}")]
    where = found[0].location
    text = Path(__file__).read_text().splitlines()[where.line - 1]
    assert text.strip() == "t.set_atomic_add(1)"
    assert found[0].message == (
        "atomic add of float32 must be off at the end of the kernel, got on since "
        f"{where}; call set_atomic_add(0)"
    )


def test_memory_is_a_stack_and_threads_multiply():
    t = Tik(V310)
    whole = 253_952
    with t.new_stmt_scope():
        t.Tensor("int8", (whole,), UB, "x")
    with t.new_stmt_scope():
        t.Tensor("int8", (whole // 2,), UB, "x")
        t.Tensor("int8", (whole // 2,), UB, "y")
    with t.for_range(0, 4, thread_num=2):
        t.Tensor("int8", (whole // 2,), UB, "x")
        with pytest.raises(RequestError, match=r"got 254016 B; the largest are x 253952 B, y 64 B"):
            t.Tensor("int8", (1,), UB, "y")


def test_the_slicing_example():
    t = Tik(V310)
    a = t.Tensor("float16", (2, 4), UB, "A")
    places = {
        "A[0]": (a[0], 0, (1,)),
        "A[0:]": (a[0:], 0, (8,)),
        "A[2:5]": (a[2:5], 2, (3,)),
        "A[-1]": (a[-1], 7, (1,)),
        "A[0, 1]": (a[0, 1], 1, (1, 1)),
        "A[0:, 1]": (a[0:, 1], 1, (2, 1)),
        "A[1, 1:3]": (a[1, 1:3], 5, (1, 2)),
        "A[0:][1]": (a[0:][1], 1, (1,)),
        "reshape": (a.reshape((4, 2))[1, 1], 3, (1, 1)),
        "bits": (a.reinterpret_cast_to("int32"), 0, (2, 2)),
    }
    for text, (view, start, shape) in places.items():
        assert (view.start.constant, view.shape) == (start, shape), text


def program_of(tmp_path, text):
    path = tmp_path / "program.py"
    path.write_text(f"from te import tik\nt = tik.Tik()\n{text}")
    return str(path)


# ruff: noqa: E501 - whole lines
REFUSED = [
    ("x = t.Scalar('int32', init_value=1)\nif x > 0: pass", 4, "a Python if, and, or, not or chained comparison cannot test a value of the kernel; use if_scope, tik.all, tik.any or tik.negate"),
    ("with t.else_scope(): pass", 3, "else_scope does not follow an if_scope at the same level"),
    ("with t.for_range(3, 1): pass", 3, "for_range.endt must be at least begint = 3, got 1"),
    ("with t.for_range(0, 2, block_num=2):\n  with t.for_range(0, 2, block_num=2): pass", 4, "for_range.block_num must be above 1 in at most one loop, got two loops"),
    ("with t.for_range(0, 2, block_num=65536): pass", 3, "for_range.block_num must be in [1, 65535], got 65536"),
    ("with t.new_stmt_scope():\n  x = t.Tensor('int32', (8,), tik.scope_ubuf, 'x')\nt.vec_dup(1, x, 0, 1, 8)", 5, "tensor x is used after the end of its scope"),
    ("t.Scalar('int4')", 3, "Scalar.dtype must be one of int8, uint8, int16, uint16, float16, int32, uint32, float32, int64, uint64, got 'int4'"),
    ("g = t.Tensor('int32', (8,), tik.scope_gm, 'g')\nt.Scalar('int32', 's').set_as(g[0])", 4, "s.set_as must read an element in UB on Ascend310, got GM"),
    ("x = t.Tensor('int8', (32,), tik.scope_ubuf, 'x')\nt.data_move(x, x, 0, 0, 1, 0, 0)", 4, "data_move.n_burst must be in [1, 4095], got 0"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "line", "message"), REFUSED)
def test_refusals_name_the_line(tmp_path, text, line, message):
    with pytest.raises(RequestError) as caught:
        run_program(program_of(tmp_path, text))
    assert str(caught.value) == f"program.py:{line}: {message}"


def assert_here(error, message):
    """Hold an error to a whole line that begins with a place in this file."""
    place, _, rest = str(error).partition(": ")
    assert place.startswith(("test_language.py", "tests/frontends/"))
    assert rest == message


FEEDS = [
    ({}, "input 'x' has no feed"),
    ({"y": np.zeros(8, np.int32)}, "a feed must name an input (x), got 'y'"),
    ({"x": np.zeros(8, np.int8)}, "feed 'x' must be of int32, got int8"),
    ({"x": np.zeros(9, np.int32)}, "feed 'x' must have shape (8,), got (9,)"),
]


@pytest.mark.parametrize(("feed", "message"), FEEDS)
def test_feeds_are_judged(feed, message):
    t = Tik(V310)
    x = t.Tensor("int32", (8,), GM, "x")
    t.BuildCCE("k", [x], [])
    with pytest.raises(RequestError) as caught:
        t.tikdb.start_debug(feed)
    assert_here(caught.value, message)


def moved(t, rows):
    """Issue a sum that uses its buffers again and again."""
    x, out = t.Tensor("float16", (rows * 128,), GM, "x"), t.Tensor("float16", (128,), GM, "out")
    total, part = t.Tensor("float16", (128,), UB, "total"), t.Tensor("float16", (128,), UB, "part")
    t.vec_dup(128, total, 0.0, 1, 8)
    for row in range(rows):
        t.data_move(part, x[row * 128], 0, 1, 8, 0, 0)
        t.vec_add(128, total, total, part, 1, 8, 8, 8)
    t.data_move(out, total, 0, 1, 8, 0, 0)
    t.BuildCCE("k", [x], [out])
    return x, out


def test_what_is_inserted_leaves_no_race_and_without_it_there_is_one():
    values = np.random.default_rng(0).integers(-4, 5, 20 * 128).astype(np.float16)
    t = Tik(V310P)
    moved(t, 20)
    ran = t.launch({"x": values})
    assert ran.findings == ()
    assert np.array_equal(ran.outputs["out"], values.reshape(20, 128).sum(axis=0))
    bare = Tik(V310P)
    with bare.new_stmt_scope(disable_sync=True):
        moved(bare, 20)
    assert {f.id for f in bare.launch({"x": values}).findings} >= {"race-raw", "race-war"}


def test_a_kernel_on_a2_is_timed():
    from cubecore.frontends.tik.trace.target import Platform

    Platform.soc = "Ascend910B3"
    t = Tik()
    Platform.soc = "Ascend310"
    moved(t, 4)
    assert time_launch(t.kernel.default_launch(), t.kernel.chip).cycles > 0


def test_the_cube_and_the_vector_unit_are_apart_on_a2():
    from cubecore.frontends.tik.trace.target import Platform

    Platform.soc = "Ascend910B3"
    t = Tik()
    Platform.soc = "Ascend310"
    g = t.Tensor("int8", (32,), GM, "g")
    t.data_move(t.Tensor("int8", (32,), UB, "u"), g, 0, 1, 1, 0, 0)
    t.data_move(t.Tensor("int8", (32,), "local.L1", "l"), g, 0, 1, 1, 0, 0)
    with pytest.raises(RequestError) as caught:
        t.BuildCCE("k", [g], [])
    assert_here(
        caught.value,
        "a TIK kernel on Ascend910B3 must use the Cube's memories or UB, which separate cores have, "
        "got L1 and UB; set Ascend310, Ascend310P or Ascend910 as the target",
    )


def test_the_free_part_of_a_memory():
    t = Tik(V310)
    assert t.get_available_buffer_size(UB) == 253952
    t.Tensor("float16", (100,), UB, "x")
    assert t.get_available_buffer_size(UB) == 253952 - 224  # whole blocks of 32 B
    with t.new_stmt_scope():
        t.Tensor("float16", (128,), UB, "y")
        assert t.get_available_buffer_size(UB) == 253952 - 224 - 256
    assert t.get_available_buffer_size(UB) == 253952 - 224
    assert t.get_available_buffer_size("local.L1") == 1024 * 1024
    with pytest.raises(RequestError) as caught:
        t.get_available_buffer_size(GM)
    assert str(caught.value).partition(": ")[2] == (
        "get_available_buffer_size.scope must be a local scope such as tik.scope_ubuf, got 'global'"
    )
