"""Copies of Ascend 950 by the class API, and SyncAll by pipes, against NumPy."""

import numpy as np
import pytest

import cubecore
from cubecore.errors import CubecoreError
from frontends.cpp.cpp_kernels import kernels, needs_compiler

pytestmark = needs_compiler
CHIP = "Ascend950PR_9589"
FRAME = """
  KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_AIV_ONLY);
  GlobalTensor<{T}> xg, zg;
  xg.SetGlobalBuffer((__gm__ {T}*)x);
  zg.SetGlobalBuffer((__gm__ {T}*)z);
  LocalTensor<{T}> a(TPosition::VECIN, 0, 4096);
  {body}
"""
ROWS = """
  DataCopy(a, xg, {count});
  PipeBarrier<PIPE_ALL>();
  DataCopy(zg, a, Nz2NdParamsFull{{{fields}}});
"""
FIVE = """
  NdDmaLoopInfo<5> loops{{1, 240, 120, 8, 24}, {1, 8, 16, 48, 144}, {8, 2, 3, 3, 5}, {}, {}};
  NdDmaParams<float, 5> params{loops, 0.0f};
  NdDmaDci();
  DataCopy<float, 5>(a, xg, params);
  PipeBarrier<PIPE_ALL>();
  DataCopy(zg, a, 720);
"""
PASSED_ON = """
  static constexpr SyncAllConfig config = {PIPE_MTE3, PIPE_MTE2};
  const uint32_t block = GetBlockIdx(), other = 1 - block;
  DataCopy(a, xg[block * 64], 64);
  SetFlag<HardEvent::MTE2_MTE3>(0);
  WaitFlag<HardEvent::MTE2_MTE3>(0);
  DataCopy(xg[128 + block * 64], a, 64);
  SYNC;
  DataCopy(a[64], xg[128 + other * 64], 64);
  SetFlag<HardEvent::MTE2_MTE3>(1);
  WaitFlag<HardEvent::MTE2_MTE3>(1);
  DataCopy(zg[block * 64], a[64], 64);
"""
BODIES = {
    "halves": ("half", ROWS.format(count=1024, fields="1, 32, 32, 1, 32, 32, 1")),
    "bytes": ("int8_t", ROWS.format(count=4096, fields="2, 5, 32, 3, 8, 80, 40")),
    "narrow": ("half", ROWS.format(count=1024, fields="1, 32, 24, 1, 32, 32, 1")),
    "five": ("float", FIVE),
    "passed_on": ("float", PASSED_ON.replace("SYNC", "SyncAll<true, config>()")),
    "not_passed_on": ("float", PASSED_ON.replace("SYNC", "")),
}


@pytest.fixture(scope="module")
def built():
    bodies = {name: FRAME.format(T=kind, body=body) for name, (kind, body) in BODIES.items()}
    return kernels(bodies, "GM_ADDR x, GM_ADDR z", chip=CHIP)


def test_fractals_leave_ub_as_rows(built):
    """The page's example, and two matrices of bytes with gaps on both sides."""
    x, z = np.arange(1024, dtype=np.float16), np.zeros((32, 32), np.float16)
    assert built.halves[1](x, z).findings == ()
    assert np.array_equal(z, x.reshape(2, 32, 16).transpose(1, 0, 2).reshape(32, 32))
    x, z = np.arange(4096).astype(np.int8), np.zeros(512, np.int8)
    assert built.bytes[1](x, z).findings == ()
    expected = np.zeros(512, np.int8)
    for matrix, row, column in np.ndindex(2, 5, 32):
        source = matrix * 768 + column // 16 * 128 + row * 16 + column % 16
        expected[matrix * 40 + row * 80 + column] = x[source]
    assert np.array_equal(z, expected)
    with pytest.raises(CubecoreError) as caught:
        built.narrow[1](x.view(np.float16), z.view(np.float16))
    need = "Nz2NdParamsFull.dValue must be a multiple of 16, got 24"
    assert str(caught.value).partition("): ")[2] == need


def test_a_copy_of_five_dimensions_permutes(built):
    x, z = np.arange(720, dtype=np.float32), np.zeros(720, np.float32)
    assert built.five[1](x, z).findings == ()
    turned = np.lib.stride_tricks.as_strided(
        x, (5, 3, 3, 2, 8), [4 * n for n in (24, 8, 120, 240, 1)]
    )
    assert np.array_equal(z.reshape(turned.shape), turned)


def test_cores_wait_by_the_pipes_that_are_named(built):
    x, z = np.arange(256, dtype=np.float32), np.zeros(128, np.float32)
    assert built.passed_on[2](x.copy(), z).findings == ()
    assert np.array_equal(z, np.concatenate([x[64:128], x[:64]]))
    found = {finding.id for finding in built.not_passed_on[2](x.copy(), z).findings}
    assert found == {"race-raw", "race-war"}


PARTNERS = """#include "kernel_operator.h"
using namespace AscendC;
extern "C" __global__ __mix__(1, 2) void k(GM_ADDR x, GM_ADDR z) {
  KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_MIX_AIC_1_2);
  GlobalTensor<half> xg, zg;
  xg.SetGlobalBuffer((__gm__ half*)x);
  zg.SetGlobalBuffer((__gm__ half*)z);
  LocalTensor<half> l1(TPosition::A1, 0, 2048), a(TPosition::VECIN, 0, 4096);
  LocalTensor<half> back(TPosition::VECIN, 8192, 2048);
  const uint32_t part = GetSubBlockIdx();
  if ASCEND_IS_AIV {
    DataCopy(a, xg[part * 1024], 1024);
    SetFlag<HardEvent::MTE2_MTE3>(0);
    WaitFlag<HardEvent::MTE2_MTE3>(0);
    if (part == 0)
      DataCopy(l1, a, Nd2NzParams(1, ROWS, COLUMNS, 0, 64, 8, 1, 0));
    else
      DataCopyPad(l1[1024], a, DataCopyExtParams(8, 96, 1, 0, 0),
                  Nd2NzParams(1, 8, 48, 0, 48, 8, 1, 0));
    CrossCoreSetFlag<4, PIPE_MTE3>(1);
    CrossCoreWaitFlag<4, PIPE_MTE3>(2);
    DataCopy(zg[part * 512], back, 512);
  }
  if ASCEND_IS_AIC {
    CrossCoreWaitFlag<4, PIPE_MTE1>(1);
    CrossCoreWaitFlag<4, PIPE_MTE1>(17);
    DataCopyL1ToUB(back, l1, 512);
    DataCopyL1ToUB<half, 1>(back, l1[1024], DataCopyParams(2, 12, 0, 0));
    DataCopyL1ToUB<half, 1>(back[384], l1[1024], 128);
    CrossCoreSetFlag<4, PIPE_MTE1>(2);
    CrossCoreSetFlag<4, PIPE_MTE1>(18);
  }
}
"""


def partners(rows, columns):
    text = PARTNERS.replace("ROWS", str(rows)).replace("COLUMNS", str(columns))
    x, z = np.arange(2048, dtype=np.float16), np.zeros(1024, np.float16)
    return x, z, cubecore.inline(text, chip=CHIP).k[1](x, z)


def test_rows_of_ub_become_fractals_of_l1_and_come_back():
    """Eight rows of 64 halves from AIV0, and of 48 with a gap of 32 B from AIV1."""
    x, z, run = partners(8, 64)
    assert [finding.message for finding in run.findings] == []
    assert np.array_equal(z[:512], x[:512].reshape(8, 4, 16).transpose(1, 0, 2).ravel())
    nz = x[1024 : 1024 + 512].reshape(8, 4, 16)[:, :3].transpose(1, 0, 2).ravel()
    assert np.array_equal(z[512:], np.concatenate([nz, nz[:128]]))


@pytest.mark.sweep
def test_rows_that_are_no_whole_blocks_are_refused():
    with pytest.raises(CubecoreError) as caught:
        partners(8, 24)
    need = "Nd2NzParams must have rows of whole 32 B that begin at multiples of 32 B"
    assert str(caught.value).partition("): ")[2] == f"{need}, got 48 B, 128 B apart"


SMALL = """#include "kernel_operator.h"
using namespace AscendC;
extern "C" __global__ __mix__(1, 2) void k(GM_ADDR x, GM_ADDR z) {
  KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_MIX_AIC_1_2);
  GlobalTensor<half> xg, zg;
  xg.SetGlobalBuffer((__gm__ half*)x);
  zg.SetGlobalBuffer((__gm__ half*)z);
  LocalTensor<half> l1(TPosition::A1, 0, 128), back(TPosition::VECIN, 0, 128);
  if ASCEND_IS_AIC {
    DataCopy<half, true>(l1, xg, Nd2NzParams(2, 5, 3, 40, 7, 1, 1, 64));
    SetFlag<HardEvent::MTE2_MTE1>(0);
    WaitFlag<HardEvent::MTE2_MTE1>(0);
    DataCopyL1ToUB(back, l1, 32);
    DataCopyL1ToUB(back[64], l1[64], 32);
    CrossCoreSetFlag<4, PIPE_MTE1>(2);
  } else if (GetSubBlockIdx() == 0) {
    CrossCoreWaitFlag<4, PIPE_MTE3>(2);
    DataCopy(zg, back, 32);
    DataCopy(zg[32], back[64], 32);
  }
}
"""


def test_rows_of_four_elements_follow_each_other():
    """Two matrices of 5 rows of 3: a row is filled up to 4, a matrix up to 32 B."""
    x, z = np.arange(1, 81, dtype=np.float16), np.ones((2, 8, 4), np.float16)
    run = cubecore.inline(SMALL, chip=CHIP).k[1](x, z)
    assert [finding.message for finding in run.findings] == []
    expected = np.zeros((2, 8, 4), np.float16)
    for matrix, row, column in np.ndindex(2, 5, 3):
        expected[matrix, row, column] = x[matrix * 40 + row * 7 + column]
    assert np.array_equal(z, expected)
