"""Feature maps in the tensor API of Ascend 950: into L1, and windows of them into L0A."""

import numpy as np
import pytest

from frontends.cpp.cpp_kernels import kernels, needs_compiler

pytestmark = needs_compiler
CHIP = "Ascend950PR_9589"
BEFORE = """
#include "tensor_api/tensor.h"
using namespace AscendC::Te;
constexpr uint32_t H = 5, W = 7, C = 32, K = 3 * 2 * C, N = 32, OUT_H = 3, M = OUT_H * 8;
template <typename In, typename Out>
inline void convolve(GM_ADDR x, GM_ADDR w, GM_ADDR z, const In& in, const Out& out, uint16_t m) {
  KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_AIC_ONLY);
  __cbuf__ half l1[C * H * W];
  __cbuf__ half l1w[K * N];
  __ca__ half l0a[32 * K];
  __cb__ half l0b[K * N];
  __cc__ float l0c[32 * N];
  auto map = MakeTensor(MakeMemPtr(l1), MakeFrameLayout<NC1HWC0LayoutPtn>(1, C / 16, H, W, 16));
  auto filters = MakeTensor(MakeMemPtr(l1w), MakeFrameLayout<NZLayoutPtn, half>(K, N));
  auto left = MakeTensor(MakeMemPtr(l0a), MakeFrameLayout<NZLayoutPtn, half>(M, K));
  auto right = MakeTensor(MakeMemPtr(l0b), MakeFrameLayout<ZNLayoutPtn, half>(K, N));
  auto sums = MakeTensor(MakeMemPtr(l0c), MakeFrameLayout<NZLayoutPtn>(M, N));
  Copy(MakeCopy(CopyGM2L1{}), map, MakeTensor(MakeMemPtr((__gm__ half*)x), in));
  Copy(MakeCopy(CopyGM2L1{}), filters,
       MakeTensor(MakeMemPtr((__gm__ half*)w), MakeFrameLayout<NDExtLayoutPtn>(K, N)));
  PipeBarrier<PIPE_ALL>();
  Img2ColParams<half> params;
  params.mExtension = m;
  params.kExtension = K;
  params.filterH = 3;
  params.filterW = 2;
  params.strideH = 2;
  params.padList[0] = params.padList[1] = params.padList[2] = params.padList[3] = 1;
  params.padValue = 2;
  Copy(MakeCopy(CopyL12L0A{}, CopyL12L0ATraitDefault{}).with(params), left, map);
  Copy(MakeCopy(CopyL12L0B{}), right, filters);
  PipeBarrier<PIPE_ALL>();
  Mmad(MakeMmad(MmadOperation{}).with(AscendC::Te::MmadParams(M, N, K, 0, true)), sums, left,
       right);
  PipeBarrier<PIPE_ALL>();
  Copy(MakeCopy(CopyL0C2GM{}), MakeTensor(MakeMemPtr((__gm__ float*)z), out), sums);
}
"""
LAYOUTS = {  # of both maps, and their axes (parts, channels, rows, columns) as stored
    "parts": (
        "MakeFrameLayout<NC1HWC0LayoutPtn>(1, C / 16, H, W, 16)",
        "MakeFrameLayout<NC1HWC0LayoutPtn>(1, N / 16, OUT_H, 8, 16)",
        (0, 2, 3, 1),
    ),
    "pixels": (
        "MakeFrameLayout<NHWCLayoutPtn>(1, H, W, C)",
        "MakeFrameLayout<NHWCLayoutPtn>(1, OUT_H, 8, N)",
        (2, 3, 0, 1),
    ),
    "channels": (
        "MakeFrameLayout<NCHWLayoutPtn>(1, C, H, W)",
        "MakeFrameLayout<NCHWLayoutPtn>(1, N, OUT_H, 8)",
        (0, 1, 2, 3),
    ),
}


@pytest.fixture(scope="module")
def built():
    bodies = {name: f"convolve(x, w, z, {row[0]}, {row[1]}, M);" for name, row in LAYOUTS.items()}
    bodies["none"] = f"convolve(x, w, z, {LAYOUTS['parts'][0]}, {LAYOUTS['parts'][1]}, 0);"
    return kernels(bodies, "GM_ADDR x, GM_ADDR w, GM_ADDR z", BEFORE, chip=CHIP)


@pytest.mark.parametrize("name", LAYOUTS)
def test_a_convolution_of_a_padded_map(built, name):
    """Filters of 3 x 2 over 5 x 7 pixels and a border of twos; K is 16 channels of each pixel."""
    rng = np.random.default_rng(5)
    pixels = rng.integers(-4, 5, (32, 5, 7)).astype(np.float16)
    filters = rng.integers(-4, 5, (2, 3, 2, 16, 32)).astype(np.float16)
    order = LAYOUTS[name][2]
    z = np.zeros(32 * 24, np.float32)
    stored = np.ascontiguousarray(pixels.reshape(2, 16, 5, 7).transpose(order))
    run = getattr(built, name)[1](stored, filters, z)
    assert [finding.message for finding in run.findings] == []
    padded = np.pad(pixels.astype(np.float32), ((0, 0), (1, 1), (1, 1)), constant_values=2)
    parts = padded.reshape(2, 16, 7, 9)
    expected = np.zeros((32, 3, 8), np.float32)
    for row, column in np.ndindex(3, 8):
        window = parts[:, :, 2 * row : 2 * row + 3, column : column + 2]
        expected[:, row, column] = np.einsum("pchw,phwcn->n", window, filters.astype(np.float32))
    assert np.array_equal(z, expected.reshape(2, 16, 3, 8).transpose(order).ravel())


def test_no_windows_leave_l0a_unwritten(built):
    x, w = np.zeros(1120, np.float16), np.zeros(6144, np.float16)
    run = built.none[1](x, w, np.zeros((24, 32), np.float32))
    assert "uninitialised" in {finding.id for finding in run.findings}
