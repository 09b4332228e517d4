"""What only the run of a TIK program knows: inputs, sizes, repeats, registers; against NumPy."""

import numpy as np
import pytest

from cubecore.errors import RequestError
from cubecore.frontends.tik.host.instance import Tik
from cubecore.frontends.tik.trace.language import Dprofile

GM, UB = "global", "local.UB"
V310, CLOUD, V310P = Dprofile("v100", "mini"), Dprofile("v100", "cloud"), Dprofile("v200", "aic")
RNG = np.random.default_rng(61)


def reduced(call, values, mask, repeats, *more, target=V310P):
    """Run a reduction of all repeats; `repeats` may be a number that the launch gives."""
    t = Tik(target)
    dtype = str(values.dtype)
    x, y = t.Tensor(dtype, values.shape, GM, "x"), t.Tensor(dtype, (16,), GM, "y")
    held, out = t.Tensor(dtype, values.shape, UB, "held"), t.Tensor(dtype, (16,), UB, "out")
    work = t.Tensor(dtype, (2 * 4096,), UB, "work")
    times, inputs, feeds = repeats, [x], {"x": values}
    if isinstance(repeats, str):
        times = t.InputScalar("int32", "times")
        inputs, feeds = [x, times], {"x": values, "times": np.int32(int(repeats))}
    t.data_move(held, x, 0, 1, values.nbytes // 32, 0, 0)
    t.vec_dup(16, out, 0.0, 1, 8)
    getattr(t, call)(mask, out, held, work, times, 8, *more)
    t.data_move(y, out, 0, 1, 16 * values.itemsize // 32, 0, 0)
    t.BuildCCE("k", inputs, [y])
    ran = t.launch(feeds)
    assert ran.findings == ()
    return ran.outputs["y"]


@pytest.mark.parametrize("dtype", ["float16", "float32"])
@pytest.mark.parametrize("repeats", [1, 3, 130, 255, 300, "1", "3", "64", "130", "255"])
@pytest.mark.thinned(3)
def test_reductions_of_all_repeats(dtype, repeats):
    lanes = 256 // np.dtype(dtype).itemsize
    values = RNG.integers(-2, 3, lanes * int(repeats)).astype(dtype)
    mask = lanes - 3
    active = values.reshape(-1, lanes)[:, :mask]
    assert reduced("vec_reduce_add", values, mask, repeats)[0] == active.sum(dtype=np.float64)
    assert reduced("vec_reduce_max", values, mask, repeats)[0] == active.max()
    assert reduced("vec_reduce_min", values, mask, repeats)[0] == active.min()


def test_no_repeats_reduce_nothing():
    assert reduced("vec_reduce_add", np.ones(128, np.float16), 128, "0")[0] == 0


@pytest.mark.parametrize("dtype", ["float16", "float32"])
@pytest.mark.parametrize("repeats", [1, 2, 70, "5"])
@pytest.mark.parametrize(
    ("call", "rule"), [("vec_reduce_max", np.argmax), ("vec_reduce_min", np.argmin)]
)
def test_where_the_extreme_lane_is(call, rule, dtype, repeats):
    lanes = 256 // np.dtype(dtype).itemsize
    values = RNG.integers(-40, 40, lanes * int(repeats)).astype(dtype)  # with equal ones
    got = reduced(call, values, lanes, repeats, True)
    place = rule(values)
    assert got[0] == values[place]
    assert got.view(f"uint{8 * values.itemsize}")[1] == place


def test_counts_of_kept_elements_and_of_merged_queues():
    t = Tik(V310P)
    values = RNG.integers(0, 100, 128).astype(np.float16)
    x, y = t.Tensor("float16", (128,), GM, "x"), t.Tensor("int32", (8,), GM, "y")
    held, kept = t.Tensor("float16", (128,), UB, "held"), t.Tensor("float16", (128,), UB, "kept")
    bits, notes = t.Tensor("uint16", (16,), UB, "bits"), t.Tensor("int32", (8,), UB, "notes")
    limit = t.Tensor("float16", (128,), UB, "limit")
    t.data_move(held, x, 0, 1, 8, 0, 0)
    t.vec_dup(8, notes, 0, 1, 8)
    t.vec_dup(16, bits, 0, 1, 8)
    t.vec_dup(128, limit, 50.0, 1, 8)
    t.vec_cmpv_gt(bits, held, limit, 1, 8, 8)
    count = t.Scalar("uint32", "count")
    t.vreduce(128, kept, held, bits, 1, 1, 8, 1, 0, count, "counter")
    notes[0].set_as(count)
    lists, merged = t.Tensor("float16", (16, 8), UB, "lists"), t.Tensor("float16", (16, 8), UB, "m")
    t.vec_dup(128, lists, 0.0, 1, 8)
    for row in range(8):
        lists[row, 4].set_as(t.Scalar("float16", init_value=80.0 - row))
        lists[8 + row, 4].set_as(t.Scalar("float16", init_value=79.5 - row))
    array = t.ScalarArray("int32", 4, "array", 0)
    taken = t.vmrgsort4(merged, [lists, lists[8, 0]], [4, 8], True, 3, 1, array)
    scalars = [t.Scalar("int64") for _ in range(4)]
    t.mov_vmrgsort4_sr_to_scalar(scalars, taken)
    for place in range(2):
        notes[1 + place].set_as(array[place])
        notes[3 + place].set_as(scalars[place])
    t.data_move(y, notes, 0, 1, 1, 0, 0)
    t.BuildCCE("k", [x], [y])
    ran = t.launch({"x": values})
    assert ran.findings == ()
    got = ran.outputs["y"].tolist()
    assert got[0] == (values > 50).sum()
    assert got[1:5] == [4, 3, 4, 3]  # 80, 79.5, 79, 78.5, 78, 77.5, 77: the first queue is empty


@pytest.mark.parametrize("rows", [1, 7, 40])
def test_a_size_that_the_launch_gives(rows):
    t = Tik(V310P)
    rows_in = t.InputScalar("int32", "rows")
    x, y = t.Tensor("float16", (40, 16), GM, "x"), t.Tensor("float16", (40, 16), GM, "y")
    one = t.Tensor("float16", (rows_in, 16), UB, "one")
    two = t.Tensor("float16", (rows_in * 16,), UB, "two")
    last = t.Tensor("float16", (1024,), UB, "last")
    t.data_move(one, x, 0, rows_in, 1, 0, 0)
    t.vec_dup(128, last, 2.0, 8, 8)
    t.vec_adds(16, two, one, 1.0, rows_in, 1, 1)
    t.vec_mul(16, two, two, last, rows_in, 1, 1, 0)
    t.data_move(y, two, 0, rows_in, 1, 0, 0)
    t.BuildCCE("k", [x, rows_in], [y])
    given = RNG.integers(-9, 9, (40, 16)).astype(np.float16)
    ran = t.launch({"x": given, "rows": np.int32(rows)})
    assert [f.id for f in ran.findings if f.id != "uninitialised"] == []
    assert np.array_equal(ran.outputs["y"][:rows], (given[:rows] + 1) * 2)


def test_a_size_that_the_launch_gives_and_that_does_not_fit():
    t = Tik(V310P)
    rows = t.InputScalar("int32", "rows")
    t.Tensor("float16", (rows, 128), UB, "large")
    behind = t.Tensor("float16", (128,), UB, "behind")
    y = t.Tensor("float16", (128,), GM, "y")
    t.vec_dup(128, behind, 1.0, 1, 8)
    t.data_move(y, behind, 0, 1, 8, 0, 0)
    t.BuildCCE("k", [rows], [y])
    assert t.launch({"rows": np.int32(1000)}).findings == ()
    (found, *_) = t.launch({"rows": np.int32(1024)}).findings
    assert found.message == (
        "vector_dup.dst must stay inside UB (0 to 262144 B), got bytes [262144, 262400)"
    )


def test_an_element_beside_a_number_is_its_value():
    t = Tik(V310)
    x, y = t.Tensor("int32", (8,), GM, "x"), t.Tensor("int32", (8,), GM, "y")
    held, out = t.Tensor("int32", (8,), UB, "held"), t.Tensor("int32", (8,), UB, "out")
    t.data_move(held, x, 0, 1, 1, 0, 0)
    t.vec_dup(8, out, 0, 1, 8)
    with t.if_scope(held[0] == 5):
        out[0].set_as(t.Scalar("int32", init_value=1))
    with t.if_scope(held[1] != held[2]):
        out[1].set_as(t.Scalar("int32", init_value=1))
    with t.if_scope(held[1] == held[3]):
        out[2].set_as(t.Scalar("int32", init_value=1))
    t.data_move(y, out, 0, 1, 1, 0, 0)
    t.BuildCCE("k", [x], [y])
    got = t.launch({"x": np.array([5, 7, 8, 7, 0, 0, 0, 0], np.int32)}).outputs["y"]
    assert got.tolist()[:3] == [1, 1, 1]
    assert (held == out) is False
    assert held != out
    assert {held: 1}[held] == 1


def test_one_index_into_a_view_of_rows_counts_from_the_tensor():
    t = Tik(V310)
    held = t.Tensor("int32", (4, 8), UB, "held")
    rows = held[2, :]
    assert rows.offset == 16
    assert rows[16].offset == 16
    assert rows[3:].offset == 3
    assert rows[0, 3].offset == 19
    assert rows.reshape((8,))[3].offset == 19
    assert held[[1, 2]].offset == 10


def test_outputs_where_an_input_lies():
    t = Tik(V310)
    x, y = t.Tensor("int32", (16,), GM, "x"), t.Tensor("int32", (16,), GM, "y")
    held = t.Tensor("int32", (8,), UB, "held")
    for _ in range(2):
        t.data_move(held, x, 0, 1, 1, 0, 0)
        t.vec_adds(8, held, held, 1, 1, 8, 8)
        t.data_move(y, held, 0, 1, 1, 0, 0)
    t.BuildCCE("k", [x], [y])
    given = np.arange(16, dtype=np.int32)
    assert t.launch({"x": given}).outputs["y"][:8].tolist() == list(range(1, 9))
    got = t.launch({"x": given}, inplace={"y": "x"}).outputs["y"]
    assert got.tolist() == [*range(2, 10), *range(8, 16)]
    with pytest.raises(RequestError) as caught:
        t.launch({"x": given}, inplace={"z": "x"})
    assert "inplace 'z' must name an output (y), got another name" in str(caught.value)
    with pytest.raises(RequestError) as caught:
        t.launch({"x": given}, inplace={"y": "z"})
    assert "inplace 'z' must name an input (x), got another name" in str(caught.value)


@pytest.mark.parametrize(("target", "count"), [(V310P, 200), (CLOUD, 128)])
def test_the_mask_counts_elements_where_the_chip_can(target, count):
    t = Tik(target)
    x, y = t.Tensor("float16", (256,), GM, "x"), t.Tensor("float16", (256,), GM, "y")
    held, out = t.Tensor("float16", (256,), UB, "held"), t.Tensor("float16", (256,), UB, "out")
    t.data_move(held, x, 0, 1, 16, 0, 0)
    t.vec_dup(128, out, 0.0, 2, 8)
    mask = 200 if target is V310P else 128  # ignored there: a plain mask of one repeat
    t.vadds(mask, out, held, 1.0, 1, 1, 1, 8, 8, mask_mode="counter")
    t.data_move(y, out, 0, 1, 16, 0, 0)
    t.BuildCCE("k", [x], [y])
    given = RNG.integers(0, 9, 256).astype(np.float16)
    want = np.where(np.arange(256) < count, given + 1, 0)
    assert np.array_equal(t.launch({"x": given}).outputs["y"], want)


def test_copies_of_bits_and_gathers_by_count():
    t = Tik(V310P)
    x, y = t.Tensor("float16", (256,), GM, "x"), t.Tensor("float16", (256,), GM, "y")
    at = t.Tensor("int32", (256,), GM, "at")
    held, out = t.Tensor("float16", (256,), UB, "held"), t.Tensor("float16", (256,), UB, "out")
    offsets = t.Tensor("int32", (256,), UB, "offsets")
    t.data_move(held, x, 0, 1, 16, 0, 0)
    t.data_move(offsets, at, 0, 1, 32, 0, 0)
    t.vcopy(256, out, held, 1, 1, 1, 8, 8, "counter")
    t.vgather(100, out, held, offsets, 1, 8, 0, 0, "counter")
    t.data_move(y, out, 0, 1, 16, 0, 0)
    t.BuildCCE("k", [x, at], [y])
    given = RNG.permutation(256).astype(np.float16)
    places = RNG.integers(0, 256, 256).astype(np.int32)
    ran = t.launch({"x": given, "at": places * 2})
    assert ran.findings == ()
    want = given.copy()
    want[:100] = given[places[:100]]
    assert np.array_equal(ran.outputs["y"], want)
