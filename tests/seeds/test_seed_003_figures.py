"""The C API's general notes (seed 003): its figures 1 to 3, and its mask examples in C."""

import math

import numpy as np
import pytest

import cubecore
from cubecore import KernelError, capi, kernel
from frontends.cpp.cpp_kernels import needs_compiler

OLD = -7
EVERY_LANE = 2**64 - 1


def unary(call, values, mask=(EVERY_LANE, EVERY_LANE), **fields):
    """Run a call of one source with an asc_unary_config over a dst full of OLD."""

    @kernel(outputs="z")
    def launch(core, x, old, z):
        src, dst = core.ubuf(x.dtype, len(values)), core.ubuf(x.dtype, len(values))
        core.asc_copy_gm2ub(src, x, values.nbytes)
        core.asc_copy_gm2ub(dst, old, values.nbytes)
        core.asc_sync()
        config = capi.asc_unary_config()
        for name, value in fields.items():
            setattr(config, name, value)
        core.asc_set_vector_mask(*mask)
        getattr(core, call)(dst, src, config)
        core.asc_sync()
        core.asc_copy_ub2gm(z, dst, values.nbytes)

    z = np.zeros_like(values)
    assert launch[1](values, np.full_like(values, OLD), z).clean
    return z


CONTIGUOUS = {"dst_block_stride": 1, "src_block_stride": 1} | {
    "dst_repeat_stride": 8,
    "src_repeat_stride": 8,
}


def close(found, values, kind):
    """Compare with e**x of the standard library, rounded to the type."""
    wanted = np.array([math.exp(x) for x in values.tolist()]).astype(kind)
    np.testing.assert_array_max_ulp(found, wanted, 1)


def test_figure_1_exp_of_the_eight_blocks_of_an_iteration():
    values = (np.arange(128) / 64).astype(np.float32)
    found = unary("asc_exp", values, repeat=1, **CONTIGUOUS)
    close(found[:64], values[:64], np.float32)
    assert (found[64:] == OLD).all()


def test_figure_2_exp_in_two_iterations():
    """2 * 8 * 32 B = 512 B, of half 256 elements."""
    values = (np.arange(384) / 64).astype(np.float16)
    found = unary("asc_exp", values, repeat=2, **CONTIGUOUS)
    close(found[:256], values[:256], np.float16)
    assert (found[256:] == OLD).all()


def test_figure_3_abs_of_float_under_a_mask_bit_by_bit():
    values = np.arange(-64, 0).astype(np.float32)
    bits = 0b1011_0001 | 1 << 63
    found = unary("asc_abs", values, mask=(0, bits), repeat=1, **CONTIGUOUS)
    for lane, value in enumerate(values.tolist()):
        assert found[lane] == (-value if bits >> lane & 1 else OLD)


@pytest.mark.parametrize("operand", ["dst", "src"])
def test_a_call_of_one_source_has_two_data_block_strides(operand):
    """dst_block_stride and src_block_stride, each its own operand's."""
    values = -np.arange(1, 129).astype(np.float32)
    fields = CONTIGUOUS | {f"{operand}_block_stride": 2}
    found = unary("asc_abs", values, repeat=1, **fields).reshape(16, 8)
    blocks = -values.reshape(16, 8)
    if operand == "dst":
        assert np.array_equal(found[::2], blocks[:8])
        assert (found[1::2] == OLD).all()
    else:
        assert np.array_equal(found[:8], blocks[::2])
        assert (found[8:] == OLD).all()


@pytest.mark.parametrize("name", ["src0_block_stride", "src1_block_stride"])
def test_a_call_of_one_source_has_no_stride_of_two(name):
    with pytest.raises(KernelError, match=name):
        unary("asc_abs", np.ones(128, np.float32), **{name: 1})


UNITS = {"asc_repeat_reduce_sum": 4, "asc_pair_reduce_sum": 128, "asc_datablock_reduce_sum": 32}
"""Bytes that dst_repeat_stride counts, as each call's own page says, of float."""


@pytest.mark.parametrize("call", UNITS)
@pytest.mark.parametrize("stride", [1, 2])
def test_a_calls_own_unit_goes_first(call, stride):
    @kernel(outputs="z")
    def launch(core, x, old, z):
        src, dst = core.ubuf("float", 128), core.ubuf("float", 128)
        core.asc_copy_gm2ub(src, x, 512)
        core.asc_copy_gm2ub(dst, old, 512)
        core.asc_sync()
        core.asc_set_vector_mask(EVERY_LANE, EVERY_LANE)
        getattr(core, call)(dst, src, 2, stride, 1, 8)
        core.asc_sync()
        core.asc_copy_ub2gm(z, dst, 512)

    x, z = np.repeat(np.float32([1, 2]), 64), np.zeros(128, np.float32)
    assert launch[1](x, np.full_like(x, OLD), z).clean
    values = sorted(set(z[z != OLD].tolist()))
    first, second = (int(np.flatnonzero(z == v)[0]) for v in values)
    assert values[1] == 2 * values[0]
    assert (second - first) * 4 == stride * UNITS[call]


MASKED = """#include "c_api/asc_simd.h"
extern "C" __global__ __aicore__ void masked(__gm__ TYPE* x, __gm__ TYPE* z) {
  __ubuf__ TYPE src0[COUNT];
  __ubuf__ TYPE src1[COUNT];
  __ubuf__ TYPE dst[COUNT];
  asc_copy_gm2ub_sync(src0, x, 256);
  asc_copy_gm2ub_sync(src1, x, 256);
  asc_copy_gm2ub_sync(dst, z, 256);
  uint64_t mask[] = {6148914691236517205, 6148914691236517205};
  asc_binary_config config;
  config.dst_block_stride = 1;
  config.src0_block_stride = 1;
  config.src1_block_stride = 1;
  config.dst_repeat_stride = 8;
  config.src0_repeat_stride = 8;
  config.src1_repeat_stride = 8;
  asc_set_vector_mask(HIGH, mask[0]);
  asc_add(dst, src0, src1, config);
  asc_sync();
  asc_copy_ub2gm_sync(z, dst, 256);
}
"""


@needs_compiler
@pytest.mark.parametrize(("kind", "high"), [("int16", "mask[1]"), ("int32", "0")])
def test_the_mask_examples_in_c(kind, high):
    """1 to N plus 1 to N: 2, 6, 10 in the even places, the odd ones left as they were."""
    count = 256 // np.dtype(kind).itemsize
    text = MASKED.replace("TYPE", f"{kind}_t").replace("COUNT", str(count)).replace("HIGH", high)
    x, z = np.arange(1, count + 1, dtype=kind), np.full(count, OLD, kind)
    assert cubecore.inline(text).masked[1](x, z).findings == ()
    assert z[::2].tolist() == list(range(2, 2 * count, 4))
    assert (z[1::2] == OLD).all()
