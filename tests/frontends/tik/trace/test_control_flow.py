"""TIK's control flow beyond loops and branches, and what public programs rely on; plain Python."""

import collections

import numpy as np
import pytest

from cubecore.errors import RequestError
from cubecore.frontends.tik.host.instance import Tik
from cubecore.frontends.tik.host.program import program_session
from cubecore.frontends.tik.host.shape_util import axis_check, compare_tensor_dict_key
from cubecore.frontends.tik.trace.language import Dprofile

GM, UB, L1 = "global", "local.UB", "local.L1"
V310, V310P = Dprofile("v100", "mini"), Dprofile("v200", "aic")


def traced(body, target=V310P, count=8, **feeds):
    """Run a kernel of one core that notes int32 numbers in `ub`; return them."""
    t = Tik(target)
    out, ub = t.Tensor("int32", (count,), GM, "out"), t.Tensor("int32", (count,), UB, "ub")
    t.vec_dup(count, ub, 0, 1, 8)
    body(t, ub)
    t.data_move(out, ub, 0, 1, count // 8, 0, 0)
    t.BuildCCE("k", [], [out])
    ran = t.launch(feeds)
    assert ran.findings == ()
    return ran.outputs["out"].tolist()


def counter(t, ub):
    """Return a function that adds 1 to an element of ub."""

    def count(place):
        ub[place].set_as(t.Scalar("int32", init_value=ub[place]) + 1)

    return count


# --- leaving

NEST = ("before", "if", "elif", "else", "after")


def plain(where):
    """What the loops below count, in Python's own words."""
    seen = [0] * 8
    for _i in range(3):
        for j in range(5):
            seen[0] += 1
            if where == "before" and j == 2:
                break
            if j == 1:
                seen[1] += 1
                if where == "if":
                    break
                seen[2] += 1
            elif j == 3:
                seen[3] += 1
                if where == "elif":
                    break
                seen[4] += 1
            else:
                if where == "else" and j == 4:
                    break
                seen[5] += 1
            seen[6] += 1
            if where == "after" and j == 2:
                break
        seen[7] += 1
    return seen


@pytest.mark.parametrize("where", NEST)
def test_a_break_leaves_the_innermost_loop_only(where):
    def body(t, ub):
        count = counter(t, ub)
        with t.for_range(0, 3), t.new_stmt_scope():
            with t.for_range(0, 5) as j:
                count(0)
                if where == "before":
                    with t.if_scope(j == 2):
                        t.tik_break()
                with t.if_scope(j == 1):
                    count(1)
                    if where == "if":
                        t.tik_break()
                    count(2)
                with t.elif_scope(j == 3):
                    count(3)
                    if where == "elif":
                        t.tik_break()
                    count(4)
                with t.else_scope():
                    if where == "else":
                        with t.if_scope(j == 4):
                            t.tik_break()
                    count(5)
                count(6)
                if where == "after":
                    with t.if_scope(j == 2):
                        t.tik_break()
            count(7)

    assert traced(body) == plain(where)


def test_a_return_ends_the_kernel_on_its_core():
    t = Tik(V310P)
    out = t.Tensor("int32", (3 * 8,), GM, "out")
    with t.for_range(0, 3, block_num=3) as block:
        ub = t.Tensor("int32", (8,), UB, "ub")
        t.vec_dup(8, ub, block + 1, 1, 8)
        with t.for_range(0, 4) as i:
            with t.if_scope((i == block) & (block > 0)):
                t.data_move(out[block * 8], ub, 0, 1, 1, 0, 0)
                t.tik_return()
            t.vec_adds(8, ub, ub, 10, 1, 8, 8)
        t.data_move(out[block * 8], ub, 0, 1, 1, 0, 0)
    t.BuildCCE("k", [], [out])
    ran = t.launch({})
    assert ran.findings == ()
    assert ran.outputs["out"].reshape(3, 8)[:, 0].tolist() == [41, 12, 23]


def test_a_break_needs_a_loop():
    with pytest.raises(RequestError, match="tik_break is outside a for_range"):
        Tik(V310).tik_break()


# --- scalars in arrays


def test_an_array_of_scalars_is_indexed_by_expressions():
    def body(t, ub):
        array = t.ScalarArray("int32", 5, init_value=[3, 1, 4, 1, 5])
        with t.for_range(0, 5) as i:
            array[i].set_as(array[4 - i] * 10 + array[0])
        array[1] = 7
        with t.for_range(0, 5) as i:
            ub[i].set_as(array[i])
        ub[5].set_as(len(array))

    values = [3, 1, 4, 1, 5]
    for i in range(5):
        values[i] = values[4 - i] * 10 + values[0]
    values[1] = 7
    assert traced(body)[:6] == [*values, 5]


def test_an_array_of_scalars_ends():
    array = Tik(V310).ScalarArray("int32", 2)
    with pytest.raises(RequestError, match=r"index of a ScalarArray must be in \[-2, 2\), got 2"):
        array[2]


# --- cores that meet


@pytest.mark.parametrize("meets", [True, False])
def test_cores_read_behind_a_barrier_what_others_wrote(meets):
    t = Tik(V310P)
    out = t.Tensor("int32", (8,), GM, "out", is_atomic_add=True)
    total = t.Tensor("int32", (4 * 8,), GM, "total")
    with t.for_range(0, 4, block_num=4) as block:
        ub, seen = (t.Tensor("int32", (8,), UB, name) for name in ("ub", "seen"))
        t.vec_dup(8, ub, block + 1, 1, 8)
        t.set_atomic_add(4)
        t.data_move(out, ub, 0, 1, 1, 0, 0)
        t.set_atomic_add(0)
        if meets:
            t.block_barrier(t.Tensor("int64", (16,), GM, "work", is_workspace=True))
        t.data_move(seen, out, 0, 1, 1, 0, 0)
        t.data_move(total[block * 8], seen, 0, 1, 1, 0, 0)
    t.BuildCCE("k", [], [out, total])
    ran = t.launch({})
    if meets:
        assert ran.findings == ()
        assert ran.outputs["total"].tolist() == [10] * 32
    else:
        assert {f.id for f in ran.findings} & {"race-raw", "race-war"}


# --- what is never reached, and other habits of public programs


def test_a_branch_that_is_never_taken_is_not_checked():
    def body(t, ub):
        narrow = t.Tensor("int32", (8,), UB, "narrow")
        with t.if_scope(False):
            t.vec_dup(0, narrow[8], 5, 0, 8)
            t.data_move(narrow, None, 0, 0, 0, 0, 0)
            t.Scalar("int32", "s").set_as(narrow[9])
            ub[0] = 9
        with t.elif_scope(True):
            ub[1] = 3
        with t.else_scope():
            t.matmul(narrow, narrow, narrow, 0, 0, 0)

    assert traced(body)[:3] == [0, 3, 0]


def test_names_repeat():
    t = Tik(V310)
    first, second = (t.Tensor("int32", (8,), GM, "x") for _ in range(2))
    out = t.Tensor("int32", (8,), GM, "out")
    a, b = (t.Tensor("int32", (8,), UB, "a") for _ in range(2))
    t.data_move(a, first, 0, 1, 1, 0, 0)
    t.data_move(b, second, 0, 1, 1, 0, 0)
    t.vec_sub(8, a, a, b, 1, 8, 8, 8)
    t.data_move(out, a, 0, 1, 1, 0, 0)
    t.BuildCCE("k", (first, second), out)
    eight = np.arange(8, dtype=np.int32)
    assert t.launch({"x": eight, "x#2": 3 * eight}).outputs["out"].tolist() == (-2 * eight).tolist()


def test_a_tensor_is_no_list():
    x = Tik(V310).Tensor("int32", (8,), GM, "x")
    with pytest.raises(RequestError, match="tensor x cannot be iterated; index its elements"):
        list(x)


def test_a_symbolic_size_takes_half_of_what_is_free():
    def body(t, ub):
        n = t.Scalar("int32", init_value=8)
        part = t.Tensor("int32", (n, 2), UB, "part")
        assert part.buffer.size_bytes >= (t.trace.buffers.capacity[part.mem] - 32) // 2 - 32
        t.vec_dup(8, part, 6, 2, 1)
        with t.for_range(0, n / 2.0) as i:
            ub[i].set_as(part[i * 2.0])

    assert traced(body) == [6] * 4 + [0] * 4


def test_local_memories_exchange_blocks():
    t = Tik(V310)
    x, y = (t.Tensor("int16", (64,), GM, name) for name in ("x", "y"))
    ub, l1 = t.Tensor("int16", (64,), UB, "ub"), t.Tensor("int16", (256,), L1, "l1")
    t.data_move(ub, x, 0, 1, 4, 0, 0)
    t.data_move(l1, ub, 0, 2, 2, 0, 1)
    t.data_move(ub, l1[48], 0, 2, 1, 0, 2)
    t.data_move(ub[32], l1, 0, 1, 1, 0, 0)
    t.data_move(y, ub, 0, 1, 4, 0, 0)
    t.BuildCCE("k", [x], [y])
    ran = t.launch({"x": np.arange(64, dtype=np.int16)})
    assert ran.findings == ()
    blocks = np.arange(64).reshape(4, 16)
    l1_blocks = [blocks[0], blocks[1], None, blocks[2], blocks[3]]
    want = np.concatenate([l1_blocks[3], blocks[1], l1_blocks[0], l1_blocks[4]])
    assert np.array_equal(ran.outputs["y"], want)


def test_older_names_are_there_while_a_program_runs():
    with program_session():
        assert collections.Iterable is collections.abc.Iterable
        assert vars(np)["int"] is int
    assert not hasattr(collections, "Iterable")
    assert not hasattr(np, "int")


def test_shape_utilities():
    assert axis_check(4, -1) == 3
    assert axis_check(4, [-1, 0, 3]) == [0, 3]
    with pytest.raises(RuntimeError, match=r"axis must be in \[-2, 2\), got 2"):
        axis_check(2, 2)
    compare_tensor_dict_key({"shape": (1, 2)}, {"shape": [1, 2]}, "shape")
    with pytest.raises(RuntimeError, match="dtype must agree, got float16 and int8"):
        compare_tensor_dict_key({"dtype": "float16"}, {"dtype": "int8"}, "dtype")


def test_an_element_is_a_number_in_expressions():
    def body(t, ub):
        ub[0] = 5
        with t.if_scope(ub[0] > 4):
            ub[1].set_as(t.Scalar("int32", init_value=ub[0]) * 3)
        with t.if_scope(ub[0] <= 4):
            ub[2] = 1
        with t.for_range(ub[0], 7) as i:
            ub[i] = i
        shifted = ub[4]
        zero = t.Scalar("int32", init_value=0)
        ub[3].set_as(shifted[zero + 2])
        assert (shifted.offset, ub[zero:].offset.is_float) == (4, False)

    assert traced(body) == [5, 15, 0, 6, 0, 5, 6, 0]


def test_bytes_move_whatever_they_are_called():
    t = Tik(V310)
    x, y = t.Tensor("float16", (16,), GM, "x"), t.Tensor("int8", (32,), GM, "y")
    ub = t.Tensor("bool", (32,), UB, "ub")
    t.data_move(ub, x, 0, 1, 1, 0, 0)
    t.data_move(y, ub, 0, 1, 1, 0, 0)
    t.BuildCCE("k", [x], [y])
    values = np.arange(16, dtype=np.float16)
    assert t.launch({"x": values}).outputs["y"].tobytes() == values.tobytes()
    assert (t.d_profiling.get_aicore_num(), ub.dtype) == (2, "int8")
