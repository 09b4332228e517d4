// Communication between chips, as host code names it: what it is told is taken, what it asks for
// ends the program. Pages of the high-level API: HCCL, "HCCL Tiling侧接口".
#pragma once

#include "cubecore/host/hccl_tiling.h"
#include "cubecore/op_host/all.h"

using HcclComm = void*;
enum HcclResult { HCCL_SUCCESS = 0 };

namespace AscendC {

class Mc2CcTilingConfig {
 public:
  Mc2CcTilingConfig(const std::string&, uint32_t, const std::string&, uint32_t = 0, uint8_t = 0,
                    uint8_t = 0, uint8_t = 0) {}
  uint32_t SetOpType(uint32_t) { return 0; }
  uint32_t SetGroupName(const std::string&) { return 0; }
  uint32_t SetAlgConfig(const std::string&) { return 0; }
  uint32_t SetReduceType(uint32_t, uint8_t = 0, uint8_t = 0) { return 0; }
  uint32_t SetStepSize(uint8_t) { return 0; }
  uint32_t SetSkipLocalRankCopy(uint8_t) { return 0; }
  uint32_t SetSkipBufferWindowCopy(uint8_t) { return 0; }
  uint32_t SetDebugMode(uint8_t) { return 0; }
  uint32_t SetCommBlockNum(uint16_t) { return 0; }
  uint32_t SetQueueNum(uint16_t) { return 0; }
  uint32_t SetCommEngine(uint8_t) { return 0; }
  template <typename T>
  uint32_t GetTiling(T&) {
    cubecore::refused(
        "Mc2CcTilingConfig::GetTiling is not provided: nothing communicates between chips here; "
        "leave the call out");
  }
};

}  // namespace AscendC
