// Loops around copies between global memory and UB, of architecture 3510 alone. Pages:
// SetLoopModePara, ResetLoopModePara.
#pragma once

#include "cubecore/basic/copy.h"

namespace AscendC {

enum class DataCopyMVType : uint8_t { UB_TO_OUT = 0, OUT_TO_UB = 1 };
struct LoopModeParams {
  uint32_t loop1Size = 0, loop2Size = 0;
  uint64_t loop1SrcStride = 0, loop1DstStride = 0, loop2SrcStride = 0, loop2DstStride = 0;
};

// Strides are in bytes.
inline void SetLoopModePara(const LoopModeParams& loopParams, DataCopyMVType type, CUBECORE_AT) {
  const LoopModeParams& p = loopParams;
  const bool loads = type == DataCopyMVType::OUT_TO_UB;
  cubecore::issue(loads ? "asc_set_gm2ub_loop_size" : "asc_set_ub2gm_loop_size", at,
                  cubecore::named("loop1_size", p.loop1Size),
                  cubecore::named("loop2_size", p.loop2Size));
  cubecore::issue(loads ? "asc_set_gm2ub_loop1_stride" : "asc_set_ub2gm_loop1_stride", at,
                  cubecore::named("loop1_src_stride", p.loop1SrcStride),
                  cubecore::named("loop1_dst_stride", p.loop1DstStride));
  cubecore::issue(loads ? "asc_set_gm2ub_loop2_stride" : "asc_set_ub2gm_loop2_stride", at,
                  cubecore::named("loop2_src_stride", p.loop2SrcStride),
                  cubecore::named("loop2_dst_stride", p.loop2DstStride));
}

inline void ResetLoopModePara(DataCopyMVType type, CUBECORE_AT) {
  SetLoopModePara({1, 1, 0, 0, 0, 0}, type, at);
}

}  // namespace AscendC
