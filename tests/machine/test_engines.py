"""Both engines on programs by hand: the fast one may fall back, it may not differ."""

from dataclasses import replace

import numpy as np
import pytest

from cubecore.dtypes import element_type
from cubecore.isa.cube.fixpipe import CopyMatrixCcToGm
from cubecore.isa.cube.mad import CopyCbufToBt, Mad
from cubecore.isa.mte.copies import (
    CopyGmToCbufMultiNd2Nz,
    LoadCbufToCa,
    LoadCbufToCbTranspose,
)
from cubecore.isa.program.expr import Expr
from cubecore.isa.program.launch import CoreProgram, Launch, TensorSpec
from cubecore.kernels.build.builder import Builder
from machine.agreement import assert_agree

HALF, SINGLE = element_type("float16"), element_type("float32")
BIT_PATTERNS = element_type("uint16")


# --- programs by hand: one 16 x 16 x 16 product on each core

SIZE = 16
BYTES = SIZE * SIZE * 2
FILL = CopyGmToCbufMultiNd2Nz(
    dtype=HALF, n_value=SIZE, d_value=SIZE, src_d_value=SIZE, dst_nz_c0_stride=SIZE
)
PRODUCT = Mad(a_type=HALF, b_type=HALF, c_type=SINGLE, m=SIZE, k=SIZE, n=SIZE)
STORE = CopyMatrixCcToGm(
    src_type=SINGLE, n_size=SIZE, m_size=SIZE, dst_stride=SIZE, src_stride=SIZE, nz2nd_en=True
)


def by_hand(write, cores=1, **inputs):
    """Return a launch of `cores` cores; core i's slots point at its own part of each tensor."""
    builder = Builder("by_hand")
    names = [*inputs, "c"]
    slots = {name: builder.slot(name) for name in names}
    write(builder, slots)
    program = builder.finish()
    sizes = {name: values.nbytes for name, values in inputs.items()} | {"c": 1024 * cores}
    tensors = tuple(TensorSpec(name, sizes[name], output=name == "c") for name in names)
    placed = tuple(
        CoreProgram(
            core, program, {slots[name]: (name, core * sizes[name] // cores) for name in names}
        )
        for core in range(cores)
    )
    return Launch(tensors, placed)


def halves(*shape, seed=0):
    return np.random.default_rng(seed).integers(-8, 9, shape).astype(np.float16)


def multiply(b, a, right, c, fill=FILL, product=PRODUCT, store=True):
    """Issue one product of the matrices at two global addresses, stored at a third."""
    b.issue(fill, 0, a)
    b.issue(fill, 1024, right)
    b.issue(LoadCbufToCa(repeat=1), 0, 0)
    b.issue(LoadCbufToCbTranspose(dtype=HALF, repeat=1), 0, 1024)
    b.issue(product, 0, 0, 0)
    if store:
        b.issue(STORE, c, 0)


def test_a_product_by_hand_is_the_same_on_both_engines():
    operands = {"a": halves(2, SIZE, SIZE), "b": halves(2, SIZE, SIZE, seed=1)}

    def write(b, slots):
        multiply(b, *(slots[name] for name in ("a", "b", "c")))

    assert assert_agree(by_hand(write, cores=2, **operands), operands) == "blas"


def test_a_pointer_kept_in_a_scalar_is_each_cores_own():
    operands = {"a": halves(2, SIZE, SIZE), "b": halves(2, SIZE, SIZE, seed=1)}

    def write(b, slots):
        pointer = b.scalar("pointer", slots["a"])
        multiply(b, pointer.value, slots["b"], slots["c"])

    assert_agree(by_hand(write, cores=2, **operands), operands)


def test_a_branch_over_a_slot_is_taken_by_each_core_for_itself():
    operands = {"a": halves(2, SIZE, SIZE), "b": halves(2, SIZE, SIZE, seed=1)}

    def write(b, slots):
        first, second, c = (Expr.of(slots[name]) for name in ("a", "b", "c"))
        for odd in b.choose((first // BYTES) % 2, "==", 1):
            multiply(b, second if odd else first, second, c)

    assert_agree(by_hand(write, cores=2, **operands), operands)


def test_halves_moved_as_bit_patterns_are_still_halves():
    operands = {"a": halves(SIZE, SIZE), "b": halves(SIZE, SIZE, seed=1)}

    def write(b, slots):
        fill = replace(FILL, dtype=BIT_PATTERNS)
        multiply(b, *(slots[name] for name in ("a", "b", "c")), fill=fill)

    assert_agree(by_hand(write, **operands), operands)


@pytest.mark.sweep
def test_the_last_of_two_stores_to_one_place_stays():
    """The first is the sum of many products and takes longer."""
    count = 3000
    operands = {"a": halves(count, SIZE, SIZE), "b": halves(SIZE, SIZE, seed=1)}

    def write(b, slots):
        left, right, c = (Expr.of(slots[name]) for name in ("a", "b", "c"))
        multiply(b, left, right, c)
        with b.loop("i", count) as i:
            adding = replace(PRODUCT, c_matrix_init_val=False)
            multiply(b, left + (i * 7 % count) * BYTES, right, c, product=adding, store=False)
        b.issue(STORE, c, 0)
        multiply(b, left, right, c)

    assert_agree(by_hand(write, **operands), operands)


def test_a_bias_of_another_type_is_read_as_its_bits():
    operands = {"a": halves(SIZE, SIZE), "b": halves(SIZE, SIZE, seed=1)}
    operands["bias"] = np.full(SIZE, 3, np.int32)

    def write(b, slots):
        row = CopyGmToCbufMultiNd2Nz(
            dtype=element_type("int32"),
            n_value=1,
            d_value=SIZE,
            src_d_value=SIZE,
            dst_nz_c0_stride=1,
        )
        b.issue(row, 4096, slots["bias"])
        b.issue(CopyCbufToBt(src_type=element_type("int32"), len_burst=2), 0, 4096)
        b.issue(FILL, 0, slots["a"])
        b.issue(FILL, 1024, slots["b"])
        b.issue(LoadCbufToCa(repeat=1), 0, 0)
        b.issue(LoadCbufToCbTranspose(dtype=HALF, repeat=1), 0, 1024)
        with_bias = replace(PRODUCT, c_matrix_init_val=False, c_matrix_source=True)
        b.issue(with_bias, 0, 0, 0, 0)
        b.issue(STORE, slots["c"], 0)

    assert_agree(by_hand(write, **operands), operands)
