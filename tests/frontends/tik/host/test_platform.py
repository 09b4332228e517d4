"""What TIK programs ask their platform, views that public programs cut, and a UB that is full."""

import numpy as np
import pytest

from cubecore.errors import RequestError
from cubecore.frontends.tik.host.instance import Tik
from cubecore.frontends.tik.host.program import program_session
from cubecore.frontends.tik.trace.language import Dprofile

GM, UB = "global", "local.UB"
V310P = Dprofile("v200", "aic")
CHIPS = ("Ascend310", "Ascend910A", "Ascend310P3", "Ascend910B3")
# By the digest's table of chips (6): which calls each of CHIPS has, in their order.
SUPPORT = [
    ("tik.set_atomic_add", "", "0111"),
    ("tik.set_atomic_add", "float32", "0111"),
    ("tik.set_atomic_add", "float16", "0011"),
    ("tik.set_atomic_add", "int16", "0011"),
    ("tik.set_atomic_add", "int32", "0001"),
    ("tik.set_atomic_add", "uint32", "0000"),
    ("tik.vreduce", "float16", "0011"),
    ("tik.vdiv", "float32", "0111"),
    ("tik.vconv", "s322f32", "0111"),
    ("tik.vconv", "f322s32r", "0111"),
    ("tik.vconv", "f322f16", "1111"),
    ("tik.load2dv1", "", "1111"),
    ("te.lang.cce.vlog", "float32", "0111"),
    ("te.lang.cce.cast_to", "f322f16", "1111"),
    ("te.lang.cce.vexp", "float32", "0111"),
    ("tik.vgatherb", "", "0001"),
    ("tik.vbitsort32", "", "0000"),
]


@pytest.mark.parametrize(("call", "dtype", "wanted"), SUPPORT)
def test_a_program_learns_what_its_chip_has(call, dtype, wanted):
    with program_session():
        from tbe.common.platform import api_check_support, set_current_compile_soc_info

        got = []
        for chip in CHIPS:
            set_current_compile_soc_info(chip)
            got.append(api_check_support(call, dtype) if dtype else api_check_support(call))
    assert "".join(str(int(found)) for found in got) == wanted


def test_what_older_programs_import_is_there():
    with program_session():
        from te.platform import CceProductParams
        from te.platform.cce_conf import CceProductParams as SameAgain

        names: dict[str, object] = {}
        exec("from te.utils.op_utils import *", names)
        import tbe

        with tbe.common.context.op_context.OpContext("dynamic") as context:
            assert context.get_build_type() is not None
    assert CceProductParams is SameAgain
    assert names["math"].floor(2.5) == 2


def run(t, x, y, body, values):
    body(t)
    t.BuildCCE("k", [x], [y])
    ran = t.launch({"x": values})
    assert ran.findings == ()
    return ran.outputs["y"]


def test_vreducev2_has_no_stride_unit_before_its_last_two():
    t, values = Tik(V310P), np.arange(128, dtype=np.float16)
    x, y = t.Tensor("float16", (128,), GM, "x"), t.Tensor("float16", (16,), GM, "y")
    held, kept = t.Tensor("float16", (128,), UB, "held"), t.Tensor("float16", (128,), UB, "kept")

    def body(t):
        t.data_move(held, x, 0, 1, 8, 0, 0)
        t.vec_dup(128, kept, 0, 1, 8)
        t.vreducev2(32, kept, held, 1, 1, 1, 0, 0, None, "counter")
        t.data_move(y, kept, 0, 1, 1, 0, 0)

    assert run(t, x, y, body, values).tolist() == list(range(0, 32, 2))


@pytest.mark.parametrize("free", [0, 32])
def test_a_register_reaches_a_scalar_where_a_program_uses_all_of_ub(free):
    t, values = Tik(V310P), np.arange(128, dtype=np.float16)
    x, y = t.Tensor("float16", (128,), GM, "x"), t.Tensor("float16", (32,), GM, "y")
    held, kept = t.Tensor("float16", (128,), UB, "held"), t.Tensor("float16", (128,), UB, "kept")
    note = t.Tensor("int32", (8,), UB, "note")
    left = 262144 - 256 - 256 - 32 - free
    rest = t.Tensor("float16", (left // 2,), UB, "rest")

    def body(t):
        count = t.Scalar("uint32", "count")
        t.data_move(held, x, 0, 1, 8, 0, 0)
        t.vec_dup(16, rest[left // 2 - 16], 5.0, 1, 8)
        t.vec_dup(8, note, 0, 1, 8)
        t.vreduce(128, kept, held, 3, 1, 1, 8, 0, 0, count)
        note[0].set_as(count)
        t.data_move(y, note, 0, 1, 1, 0, 0)
        t.data_move(y[16], rest[left // 2 - 16], 0, 1, 1, 0, 0)

    got = run(t, x, y, body, values)
    assert got[:16].view(np.int32).tolist() == [32, 0, 0, 0, 0, 0, 0, 0]
    assert got[16:].tolist() == [5.0] * 16


def test_what_is_cut_off_an_element_counts_from_it():
    t, values = Tik(V310P), np.arange(64, dtype=np.float32)
    x, y = t.Tensor("float32", (64,), GM, "x"), t.Tensor("float32", (24,), GM, "y")
    ub = t.Tensor("float32", (64,), UB, "ub")

    def body(t):
        at = t.Scalar("int32", "at", 16)
        t.data_move(ub, x, 0, 1, 8, 0, 0)
        t.data_move(y, ub[8][8:], 0, 1, 1, 0, 0)
        t.data_move(y[8], ub[at][8], 0, 1, 1, 0, 0)
        t.data_move(y[16], ub[at].reinterpret_cast_to("float16")[32], 0, 1, 1, 0, 0)

    got = run(t, x, y, body, values)
    assert got.tolist() == [*range(16, 24), *range(24, 32), *range(32, 40)]


def test_an_element_at_a_known_place_has_none():
    t = Tik(V310P)
    ub = t.Tensor("float32", (64,), UB, "ub")
    with pytest.raises(RequestError, match="an element of ub cannot be indexed"):
        ub[8][8]
