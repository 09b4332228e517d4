"""Operands as stored: NZ, batches, packed 4-bit elements; executed from files and verified."""

import ml_dtypes
import numpy as np
import pytest

import cubecore
from cubecore.dtypes import element_type
from cubecore.workflows.data.operands import Operands
from cubecore.workflows.data.stored_layout import (
    from_memory,
    from_nz,
    memory_bytes,
    stored_shape,
    to_nz,
)
from harness import lay_out


@pytest.mark.parametrize("shape", [(16, 16), (40, 30), (1, 65), (3, 17, 33)])
@pytest.mark.parametrize("c0", [8, 16, 32, 64])
def test_nz_is_fractals_column_by_column(shape, c0):
    values = np.arange(np.prod(shape), dtype=np.int32).reshape(shape)
    made = to_nz(values, c0)
    batch = shape[0] if len(shape) == 3 else 1
    assert made.shape == stored_shape(*shape[-2:], c0, nz=True, batch=batch)
    flat = values.reshape(-1, *shape[-2:])
    want = np.concatenate([lay_out(matrix, "NZ", (16, c0)) for matrix in flat])
    assert np.array_equal(made.reshape(-1), want)
    assert np.array_equal(from_nz(made, *shape[-2:]), values)


def test_two_4_bit_elements_share_a_byte_the_first_low():
    kind = element_type("int4")
    values = np.arange(-8, 8).astype(ml_dtypes.int4)
    packed = memory_bytes(values, kind)
    assert list(packed[:3]) == [0x98, 0xBA, 0xDC]
    assert np.array_equal(from_memory(packed, kind), values)


@pytest.mark.parametrize("a", ["float16", "float32", "int8", "int4"])
def test_a_batch_in_nz_from_arrays(a):
    kind = element_type(a)
    rng = np.random.default_rng(1)
    m, k, n = 32, 128, 64
    left, right = (
        rng.integers(-8, 8, (3, *shape)).astype(kind.numpy) for shape in ((m, k), (n, k))
    )
    operands = Operands(to_nz(left, kind.c0), right)
    ran = cubecore.run(
        m=m, n=n, k=k, a=a, batch=3, trans_b=True, format_a="NZ", format_c="NZ", operands=operands
    )
    assert ran.verified
    want = left.astype(np.float64) @ np.swapaxes(right, 1, 2).astype(np.float64)
    assert ran.c.shape == (3, 4, 2, 16, 16)
    assert np.array_equal(from_nz(ran.c, m, n), want)


@pytest.mark.parametrize(
    ("keys", "line"),
    [
        ({"format_a": "NZ", "m": 30}, "m must be a multiple of 16 for A in NZ"),
        ({"format_a": "NZ", "m": 48, "trans_a": True}, "m must be a multiple of 32 for A in NZ"),
        ({"format_b": "NZ", "k": 48}, "k must be a multiple of 32 for B in NZ"),
        ({"format_b": "NZ", "n": 80}, "n must be a multiple of 32 for B in NZ"),
    ],
)
@pytest.mark.parametrize("does", [cubecore.run, cubecore.plan, cubecore.time])
def test_an_nz_extent_that_is_not_aligned_names_the_seeds_table(keys, line, does):
    problem = {"m": 64, "n": 64, "k": 64, "a": "int8", **keys}
    ((axis, value),) = ((x, v) for x, v in keys.items() if x in "mnk")
    assert axis == line[0]
    with pytest.raises(cubecore.RequestError) as refused:
        does(problem)
    tail = f" (TCubeTiling structure, newer edition, table 1), got {value}; C0 of int8 is 32"
    assert str(refused.value) == line + tail


@pytest.mark.parametrize("keys", [{"hf32": True}, {}])
def test_float32_is_verified_with_its_own_rounding(keys):
    assert cubecore.run(m=40, n=33, k=70, a="float32", trans_a=True, **keys).verified


def test_hf32_rounds_before_it_multiplies():
    """1 + 2**-20 becomes 1 in HF32: the product differs from float32's by what was dropped."""
    a = np.full((16, 16), 1 + 2.0**-20, np.float32)
    b = np.eye(16, dtype=np.float32)
    plain = cubecore.run(m=16, n=16, k=16, a="float32", operands=Operands(a, b))
    rounded = cubecore.run(m=16, n=16, k=16, a="float32", hf32=True, operands=Operands(a, b))
    assert (plain.c == a).all()
    assert (rounded.c == 1).all()
    assert plain.verified
    assert rounded.verified
