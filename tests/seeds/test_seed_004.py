"""The printed example of TIK's matmul (seed 004), word for word, against NumPy."""

import inspect

import numpy as np
import pytest

from cubecore.isa.declare.instruction import Mem
from seeds.tik_matmul import A2, CHIPS, built, instance, issued

EXAMPLE = """\
from tbe import tik
tik_instance = tik.Tik()
# Define the tensors.
a_gm = tik_instance.Tensor("int8", [2, 32, 32], name='a_gm', scope=tik.scope_gm)
b_gm = tik_instance.Tensor("int8", [2, 160, 32], name='b_gm', scope=tik.scope_gm)
# For matmul, m = 30. The fixpipe instruction deletes invalid data from dst_l1out. Therefore, set the m dimension of dst_gm to 30.
dst_gm = tik_instance.Tensor("int32", [10, 30, 16], name='dst_gm', scope=tik.scope_gm)
a_l1 = tik_instance.Tensor("int8", [2, 32, 32], name='a_l1', scope=tik.scope_cbuf)
b_l1 = tik_instance.Tensor("int8", [2, 160, 32], name='b_l1', scope=tik.scope_cbuf)
dst_l1out = tik_instance.Tensor("int32", [10, 32, 16], name='dst_l1out', scope=tik.scope_cbuf_out)
# Move data to the source operand.
tik_instance.data_move(a_l1, a_gm, 0, 1, 64, 0, 0)
tik_instance.data_move(b_l1, b_gm, 0, 1, 320, 0, 0)
# Perform matmul. The m, k, and n arguments are 30, 64, and 160, respectively. The m dimension of dst_l1out is a multiple of 16 and rounded up to 32.
tik_instance.matmul(dst_l1out, a_l1, b_l1, 30, 64, 160)
# Move data to dst_gm, where burst_len = 30 * 16 * dst_l1out_dtype_size//32 = 60.
tik_instance.fixpipe(dst_gm, dst_l1out, 10, 60, 0, 0, extend_params={"relu": True})
tik_instance.BuildCCE(kernel_name="matmul", inputs=[a_gm, b_gm], outputs=[dst_gm])
"""  # noqa: E501 - the seed's own lines
WITHOUT_RELU = EXAMPLE.replace('"relu": True', '"relu": False')
A_GM, B_GM, DST_GM = (2, 32, 32), (2, 160, 32), (10, 30, 16)
MINUS_ONES, ONES = np.full(A_GM, -1, np.int8), np.full(B_GM, 1, np.int8)


def product(a, b):
    """Return A @ B, [30, 160] as [10, 30, 16], from a's [K1, M, K0] and b's [K1, N, K0]."""
    whole = np.einsum("kmx,knx->mn", a.astype(np.int64), b.astype(np.int64))
    return whole[:30].reshape(30, 10, 16).transpose(1, 0, 2)


def drawn():
    rng = np.random.default_rng(4)
    return (rng.integers(-128, 128, shape).astype(np.int8) for shape in (A_GM, B_GM))


def launched(kernel, a, b):
    """Return the output of a launch that has no finding."""
    result = kernel.launch({"a_gm": a, "b_gm": b})
    assert result.findings == ()
    return result.outputs["dst_gm"]


@pytest.mark.parametrize("chip", CHIPS)
def test_the_printed_program(tmp_path, chip):
    kernel = built(tmp_path, EXAMPLE, chip)
    assert launched(kernel, MINUS_ONES, ONES).tolist() == np.zeros(DST_GM, int).tolist()
    a, b = drawn()
    got = launched(kernel, a, b)
    assert got.dtype == np.int32
    assert np.array_equal(got, np.maximum(product(a, b), 0))
    assert 0 < (got == 0).mean() < 1


@pytest.mark.parametrize("chip", CHIPS)
def test_the_printed_program_without_relu(tmp_path, chip):
    """64 products of -1 and 1 are -64, and only ReLU makes them the 0 that is printed."""
    kernel = built(tmp_path, WITHOUT_RELU, chip)
    assert launched(kernel, MINUS_ONES, ONES).tolist() == np.full(DST_GM, -64).tolist()
    a, b = drawn()
    assert np.array_equal(launched(kernel, a, b), product(a, b))


def test_its_debugger_gives_the_printed_result(tmp_path):
    (printed,) = built(tmp_path, EXAMPLE).tikdb.start_debug({"a_gm": MINUS_ONES, "b_gm": ONES})
    assert printed.tolist() == np.zeros(DST_GM, int).tolist()


def test_its_kernel_is_what_buildcce_names(tmp_path):
    made = built(tmp_path, EXAMPLE).kernel
    assert (made.name, made.chip.name, made.blocks) == ("matmul", "Ascend310", 1)
    assert [tensor.name for tensor in made.inputs] == ["a_gm", "b_gm"]
    assert [tensor.name for tensor in made.outputs] == ["dst_gm"]
    assert made.others == ()


TENSORS = {
    "a_gm": ("int8", A_GM, Mem.GM),
    "b_gm": ("int8", B_GM, Mem.GM),
    "dst_gm": ("int32", DST_GM, Mem.GM),
    "a_l1": ("int8", (2, 32, 32), Mem.L1),
    "b_l1": ("int8", (2, 160, 32), Mem.L1),
    "dst_l1out": ("int32", (10, 32, 16), Mem.L0C),
}


@pytest.mark.parametrize("name", TENSORS)
def test_its_tensors(name):
    names = {}
    with instance("Ascend310"):
        exec(EXAMPLE, names)
    tensor = names[name]
    assert (tensor.dtype, tensor.shape, tensor.mem) == TENSORS[name]
    a_l1, b_l1 = (names[n].address.constant for n in ("a_l1", "b_l1"))
    assert a_l1 + 2 * 32 * 32 <= b_l1 or b_l1 + 2 * 160 * 32 <= a_l1


@pytest.mark.parametrize("chip", CHIPS)
def test_its_calls(tmp_path, chip):
    """data_move of 64 and 320 blocks, matmul of 30, 64, 160, fixpipe of 10 x 60 blocks."""
    kernel = built(tmp_path, EXAMPLE, chip)
    moves = issued(kernel, "copy_gm_to_cbuf")
    bursts = [(move.n_burst, move.len_burst, move.src_gap, move.dst_gap) for move in moves]
    assert bursts == [(1, 64, 0, 0), (1, 320, 0, 0)]
    (one,) = issued(kernel, "mad")
    assert (one.m, one.k, one.n) == (30, 64, 160)
    assert 30 * 16 * 4 // 32 == 60
    if chip == A2:
        (fixpipe,) = issued(kernel, "copy_matrix_cc_to_gm")
        assert (fixpipe.n_size, fixpipe.m_size, fixpipe.dst_stride) == (160, 30, 60)
        assert fixpipe.relu_pre
    else:
        (convert,) = issued(kernel, "copy_matrix_cc_to_ubuf")
        (store,) = issued(kernel, "copy_ubuf_to_gm")
        assert (convert.n_burst, convert.relu) == (10, True)
        assert (store.n_burst, store.len_burst, store.dst_gap) == (10, 60, 0)


def test_its_rows_of_padding_are_dropped(tmp_path):
    """Rows 30 and 31 of a are poison; what they give is not among the 30 rows of dst_gm."""
    a = np.full(A_GM, 1, np.int8)
    a[:, 30:] = 127
    got = launched(built(tmp_path, WITHOUT_RELU), a, ONES)
    assert got.tolist() == np.full(DST_GM, 64).tolist()


def test_a_tensor_of_another_layout_is_another_product(tmp_path):
    a, b = drawn()
    row_major = np.ascontiguousarray(a.transpose(1, 0, 2)).reshape(A_GM)
    got = launched(built(tmp_path, WITHOUT_RELU), row_major, b)
    assert not np.array_equal(got, product(a, b))


def test_the_prototype():
    with instance("Ascend310") as (_, t):
        signature = inspect.signature(t.matmul)
    assert list(signature.parameters) == ["dst", "a", "b", "m", "k", "n", "init_l1out"]
    needed = [p.name for p in signature.parameters.values() if p.default is p.empty]
    assert needed == ["dst", "a", "b", "m", "k", "n"]
    assert signature.parameters["init_l1out"].default is True
