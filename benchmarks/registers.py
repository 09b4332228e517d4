"""Vector functions of Ascend 950 in C++: the cost of recording them, and of an addition.

Prints one JSON object. `entry_ns`: CPU nanoseconds of the kernel's process for each call on
registers that it records, in functions of 250 trips; the least of some launches, as others only add
to it. `add`: lanes a CPU second of an addition in registers on 950 over those of the same
kernel by `Add` on A2, both with the usual checks; the median of pairs that take turns.
"""

import json
import statistics
from typing import Any

import numpy as np
from cpp import ratio
from targets import against, arguments

import cubecore

TARGETS = {"entry_ns": 30.0, "add": 1.0}
CHIPS = {"2201": "Ascend910B3", "3510": "Ascend950PR_9589"}
CALLS, ENTRIES = 2000, 1001
"""Vector functions of the kernel that records, and calls on registers of each."""
RECORDED = """#include "kernel_operator.h"
#include <time.h>
using namespace AscendC;
static int64_t spent() {
  timespec now;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return now.tv_sec * 1000000000ll + now.tv_nsec;
}
extern "C" __global__ __vector__ void recorded(GM_ADDR z, uint32_t calls) {
  GlobalTensor<int64_t> zg;
  zg.SetGlobalBuffer((__gm__ int64_t*)z);
  __ubuf__ float* a = (__ubuf__ float*)0;
  __ubuf__ float* b = (__ubuf__ float*)65536;
  __ubuf__ float* c = (__ubuf__ float*)131072;
  const int64_t before = spent();
  for (uint32_t call = 0; call < calls; ++call) __VEC_SCOPE__ {
    Reg::RegTensor<float> x, y;
    Reg::MaskReg mask = Reg::CreateMask<float>();
    for (uint16_t trip = 0; trip < 250; ++trip) {
      Reg::LoadAlign(x, a + call % 6 * 64 + trip * 64);
      Reg::LoadAlign(y, b + call % 6 * 64 + trip * 64);
      Reg::Add(x, x, y, mask);
      Reg::StoreAlign(c + call % 6 * 64 + trip * 64, x, mask);
    }
  }
  zg.SetValue(0, spent() - before);
  DataCacheCleanAndInvalid<int64_t, CacheLine::ENTIRE_DATA_CACHE>(zg);
}
"""
BLOCKS, TILES, TILE = 32, 16, 4096
ADDED = """#include "kernel_operator.h"
using namespace AscendC;
constexpr uint32_t TILES = 16, TILE = 4096;
#if __NPU_ARCH__ == 3510
__simd_vf__ inline void add(__ubuf__ float* x, __ubuf__ float* y, __ubuf__ float* z) {
  Reg::RegTensor<float> a, b;
  Reg::MaskReg mask = Reg::CreateMask<float>();
  for (uint16_t trip = 0; trip < TILE / 64; ++trip) {
    Reg::LoadAlign(a, x + trip * 64);
    Reg::LoadAlign(b, y + trip * 64);
    Reg::Add(a, a, b, mask);
    Reg::StoreAlign(z + trip * 64, a, mask);
  }
}
#endif
extern "C" __global__ __aicore__ void added(GM_ADDR x, GM_ADDR y, GM_ADDR z) {
  KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_AIV_ONLY);
  TPipe pipe;
  TQue<QuePosition::VECIN, 2> inX, inY;
  TQue<QuePosition::VECOUT, 2> out;
  GlobalTensor<float> xg, yg, zg;
  xg.SetGlobalBuffer((__gm__ float*)x);
  yg.SetGlobalBuffer((__gm__ float*)y);
  zg.SetGlobalBuffer((__gm__ float*)z);
  pipe.InitBuffer(inX, 2, TILE * 4);
  pipe.InitBuffer(inY, 2, TILE * 4);
  pipe.InitBuffer(out, 2, TILE * 4);
  for (uint32_t tile = 0; tile < TILES; ++tile) {
    const uint32_t at = (GetBlockIdx() * TILES + tile) * TILE;
    auto a = inX.AllocTensor<float>();
    DataCopy(a, xg[at], TILE);
    inX.EnQue(a);
    auto b = inY.AllocTensor<float>();
    DataCopy(b, yg[at], TILE);
    inY.EnQue(b);
    a = inX.DeQue<float>();
    b = inY.DeQue<float>();
    auto c = out.AllocTensor<float>();
#if __NPU_ARCH__ == 3510
    add((__ubuf__ float*)a.GetPhyAddr(), (__ubuf__ float*)b.GetPhyAddr(),
        (__ubuf__ float*)c.GetPhyAddr());
#else
    Add(c, a, b, TILE);
#endif
    inX.FreeTensor(a);
    inY.FreeTensor(b);
    out.EnQue(c);
    c = out.DeQue<float>();
    DataCopy(zg[at], c, TILE);
    out.FreeTensor(c);
  }
}
"""


def entry_ns(repeats: int) -> float:
    """Return the least CPU of recording a call."""
    kernel = cubecore.inline(RECORDED, chip=CHIPS["3510"]).recorded.using(checks="none")
    taken = np.zeros(8, np.int64)
    found = []
    for _ in range(repeats):
        kernel[1](taken, CALLS)
        found.append(taken[0] / (CALLS * ENTRIES))
    return float(min(found))


def addition(repeats: int) -> float:
    """Return the lanes a CPU second of 950 over those of A2."""
    x = np.arange(BLOCKS * TILES * TILE, dtype=np.float32)
    z = np.zeros_like(x)
    works = []
    for arch in ("2201", "3510"):
        kernel = cubecore.inline(ADDED, chip=CHIPS[arch]).added
        works.append(lambda kernel=kernel: kernel[BLOCKS](x, x, z))
        works[-1]()
        assert (z == 2 * x).all()
    return statistics.median(ratio(1, *works) for _ in range(repeats))


def main() -> None:
    repeats = arguments(__doc__ or "", repeats=7).parse_args().repeats
    figures: dict[str, Any] = {"entry_ns": entry_ns(repeats), "add": addition(repeats)}
    shown = {
        name: against(value, TARGETS[name], least=name == "add") for name, value in figures.items()
    }
    print(json.dumps(shown, indent=1))


if __name__ == "__main__":
    main()
