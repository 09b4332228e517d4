"""Which call an output owes its bytes without a value: not one that stores zeros before a sum."""

import numpy as np

import cubecore
from frontends.cpp.cpp_kernels import needs_compiler

pytestmark = needs_compiler
TEXT = """#include "kernel_operator.h"
using namespace AscendC;
extern "C" __global__ __aicore__ void k(GM_ADDR x, GM_ADDR y) {
  KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_AIV_ONLY);
  GlobalTensor<float> yg;
  yg.SetGlobalBuffer((__gm__ float*)y, 64);
  LocalTensor<float> zeros(TPosition::VECCALC, 0, 64), ones(TPosition::VECCALC, 256, 64);
  if (GetBlockIdx() == 1) {
    Duplicate(zeros, 0.0f, 64);
    PipeBarrier<PIPE_ALL>();
    DataCopy(yg, zeros, 64);
    PipeBarrier<PIPE_ALL>();
  }
  SyncAll();
  if (GetBlockIdx() == 0) {
    Duplicate(ones, 1.0f, 8);
    PipeBarrier<PIPE_ALL>();
    SetAtomicAdd<float>();
    DataCopy(yg, ones, 64);
    SetAtomicNone();
  }
}
"""


def test_the_store_that_takes_unwritten_bytes_is_named():
    y = np.zeros(64, np.float32)
    run = cubecore.inline(TEXT, chip="Ascend910B3").k[2](np.zeros(64, np.float32), y)
    (found,) = run.findings
    assert found.text == (
        "output y: 224 of 256 B, bytes [32, 256), are stored from uninitialised memory by DataCopy "
        "(copy_ubuf_to_gm) at inline.cpp:19: it takes 256 B of UB[256, 512), of which Duplicate "
        "(vector_dup) at inline.cpp:16 fills 32 B; fill the rest there, or store less"
    )
