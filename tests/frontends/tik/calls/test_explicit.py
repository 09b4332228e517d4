"""TIK's explicit style and its high-precision forms, against NumPy."""

import numpy as np
import pytest

from cubecore.errors import RequestError
from cubecore.frontends.tik.host.instance import Tik
from cubecore.frontends.tik.host.vendor_modules import provided
from cubecore.frontends.tik.trace.language import Dprofile

GM, UB, L1, L0A, L0B, L0C = "global", "local.UB", "local.L1", "local.L0A", "local.L0B", "local.L0C"


def test_fractals_and_products_by_hand():
    """a as zZ [1, 2, 16, 16], b as nZ [2, 1, 16, 16]; twice onto the same sum, drained as half."""
    t = Tik(Dprofile("v100", "cloud"))
    a, b = (t.Tensor("float16", (2, 16, 16), GM, name) for name in ("a", "b"))
    c = t.Tensor("float16", (16, 16), GM, "c")
    a_l1, b_l1 = (t.Tensor("float16", (2, 16, 16), L1, f"{name}_l1") for name in ("a", "b"))
    a_l0 = t.Tensor("float16", (2, 16, 16), L0A, "a_l0")
    b_l0 = t.Tensor("float16", (2, 16, 16), L0B, "b_l0")
    total = t.Tensor("float32", (16, 16), L0C, "total")
    half = t.Tensor("float16", (16, 16), UB, "half")
    t.data_move(a_l1, a, 0, 1, 32, 0, 0)
    t.data_move(b_l1, b, 0, 1, 32, 0, 0)
    t.load2dv1(a_l0, a_l1, 0, 2, 1, 0)
    t.load2dv1(b_l0, b_l1, 0, 2, 1, 0)
    t.mmad(total, a_l0, b_l0, 16, 32, 16, 0)
    t.mmad(total, a_l0, b_l0, 16, 32, 16, 1)
    t.data_move(half, total, 0, 1, 1, 0, 0, 2)
    t.data_move(c, half, 0, 1, 16, 0, 0)
    t.BuildCCE("k", [a, b], [c])
    rng = np.random.default_rng(0)
    feeds = {name: rng.integers(-4, 5, (2, 16, 16)).astype(np.float16) for name in ("a", "b")}
    ran = t.launch(feeds)
    assert ran.findings == ()
    product = np.einsum("kmx,knx->mn", feeds["a"].astype(float), feeds["b"].astype(float))
    assert np.array_equal(ran.outputs["c"], np.maximum(2 * product, 0))
    with pytest.raises(RequestError, match="mmad must take dst in L0C, a in L0A and b in L0B, got"):
        t.mmad(total, b_l0, a_l0, 16, 32, 16, 0)
    wide = t.Tensor("int8", (512,), a_l0.scope, "wide")
    with pytest.raises(RequestError, match=r"load2dv1\.if_transpose must be False but for 16-bit"):
        t.load2dv1(wide, a_l1, 0, 1, 1, 0, True)
    with pytest.raises(RequestError, match="load2dv1 must move L1 to L0A or L0B, got L1 to UB"):
        t.load2dv1(half, a_l1, 0, 1, 1, 0)


def test_fractals_are_transposed_on_their_way():
    t = Tik(Dprofile("v100", "cloud"))
    a, b = (t.Tensor("float16", (4, 16, 16), GM, name) for name in ("a", "b"))
    c = t.Tensor("float32", (16, 16), GM, "c")
    a_l1, b_l1 = (t.Tensor("float16", (4, 16, 16), L1, name) for name in ("a_l1", "b_l1"))
    a_l0, b_l0 = t.Tensor("float16", (512,), L0A, "a_l0"), t.Tensor("float16", (1024,), L0B, "b_l0")
    total, ub = t.Tensor("float32", (256,), L0C, "total"), t.Tensor("float32", (256,), UB, "ub")
    t.data_move(a_l1, a, 0, 1, 64, 0, 0)
    t.data_move(b_l1, b, 0, 1, 64, 0, 0)
    t.load2dv1(a_l0, a_l1, 1, 2, 2, 0, True)
    t.load2dv2(b_l0, b_l1, 0, 2, 1, 1, 0)
    t.load2dv1(b_l0[256], b_l1[3 * 256], 0, 1, 1, 0)
    t.mmad(total, a_l0, b_l0, 16, 32, 16, 0)
    t.data_move(ub, total, 0, 1, 1, 0, 0)
    t.data_move(c, ub, 0, 1, 32, 0, 0)
    t.BuildCCE("k", [a, b], [c])
    rng = np.random.default_rng(5)
    feeds = {name: rng.integers(-4, 5, (4, 16, 16)).astype(np.float16) for name in ("a", "b")}
    ran = t.launch(feeds)
    assert ran.findings == ()
    left = np.concatenate([feeds["a"][1].T, feeds["a"][3].T], axis=1).astype(float)
    right = np.concatenate([feeds["b"][0], feeds["b"][3]], axis=1).astype(float)
    assert np.array_equal(ran.outputs["c"], left @ right.T)


@pytest.mark.parametrize("call", ["data_move", "tensor_mov"])
def test_a_product_is_added_to_what_came_from_ub(call):
    """UB to L0C, one fractal of each pair, and a product of ones of 16 on top."""
    t = Tik(Dprofile("v100", "cloud"))
    x, y = (t.Tensor("float32", (4, 16, 16), GM, name) for name in ("x", "y"))
    ub, back = (t.Tensor("float32", (4, 16, 16), UB, name) for name in ("ub", "back"))
    one = t.Tensor("float16", (16, 16), UB, "one")
    l1 = t.Tensor("float16", (1, 16, 16), "local.L1", "l1")
    dst = t.Tensor("float32", (2, 16, 16), "local.L1OUT", "dst")
    t.data_move(ub, x, 0, 1, 128, 0, 0)
    t.vec_dup(128, one, 1.0, 2, 8)
    t.data_move(l1, one, 0, 1, 16, 0, 0)
    if call == "data_move":
        t.data_move(dst, ub, 0, 2, 1, 1, 0)
    else:
        t.tensor_mov(dst, ub, "m", 2, 1, 0, 1)
    t.matmul(dst, l1, l1, 16, 16, 16, init_l1out=False)
    t.data_move(back, dst, 0, 1, 2, 0, 0)
    t.data_move(y, back, 0, 1, 64, 0, 0)
    t.data_move(y[512:], ub, 0, 1, 64, 0, 0)
    t.BuildCCE("k", [x], [y])
    values = np.random.default_rng(2).integers(-9, 9, (4, 16, 16)).astype(np.float32)
    ran = t.launch({"x": values})
    assert ran.findings == ()
    assert np.array_equal(ran.outputs["y"][0], values[0] + 16)
    assert np.array_equal(ran.outputs["y"][1], values[2])


def test_ub_to_l0c_keeps_the_type():
    t = Tik(Dprofile("v100", "cloud"))
    ub = t.Tensor("float16", (256,), UB, "ub")
    dst = t.Tensor("float32", (256,), "local.L0C", "dst")
    with pytest.raises(RequestError) as caught:
        t.data_move(dst, ub, 0, 1, 1, 0, 0)
    assert str(caught.value).partition(": ")[2] == (
        "data_move.src must have dst's type float32, got float16"
    )


def test_modules_of_the_kit():
    with provided():
        from te import tvm
        from te.lang import cce
        from te.utils.op_utils import REQUIRED_ATTR_LIST_LIST_INT, REQUIRED_INPUT, check_op_params
        from te.utils.shape_util import shape_refine

        @check_op_params(REQUIRED_INPUT, REQUIRED_ATTR_LIST_LIST_INT)
        def kept(value):
            return value

        assert kept(7) == 7
        axis = tvm.thread_axis("blockIdx.x")
        for absent in (shape_refine, cce.vadd, axis):
            with pytest.raises(RequestError, match="is not supported: it needs the vendor"):
                absent(1)


def moved(mode, to_l0c=False):
    """Move blocks of 32 B with a gap between them, and every other one back."""
    t = Tik(Dprofile("v100", "cloud"))
    x, y = (t.Tensor("float16", (8, 16), GM, name) for name in ("x", "y"))
    ub = t.Tensor("float16", (8, 16), UB, "ub")
    if to_l0c:
        t.tensor_mov(t.Tensor("float16", (256,), "local.L1OUT", "z"), ub, mode, 1, 1, 0, 0)
    t.tensor_mov(ub, x, mode, 4, 1, 0, 1)
    t.tensor_mov(y, ub, mode, 4, 1, 1, 0)
    t.BuildCCE("k", [x], [y])
    values = np.arange(128, dtype=np.float16).reshape(8, 16)
    return t.launch({"x": values}).outputs["y"][::2], values[::2]


@pytest.mark.parametrize("mode", ["", "v"])
def test_blocks_move_between_global_memory_and_ub(mode):
    got, wanted = moved(mode)
    assert np.array_equal(got, wanted)


def test_mode_v_moves_blocks_between_global_memory_and_ub_alone():
    with pytest.raises(RequestError) as caught:
        moved("v", to_l0c=True)
    assert str(caught.value).partition(": ")[2] == (
        'tensor_mov.block_mode must be "m" from L1OUT, "v" or "" between global memory and UB, "" '
        "elsewhere, got 'v'"
    )
