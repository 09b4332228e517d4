// The chip as host code asks for it. Pages: PlatformAscendC with its members,
// PlatformAscendCManager. A program learns the chip of its run (CUBECORE_CHIP, --chip).
#pragma once

#include <cstdint>

#include "cubecore/host/device.h"

namespace platform_ascendc {

enum class CoreMemType { L0_A, L0_B, L0_C, L1, L2, UB, HBM, FB, BT, RESERVED };
enum class SocVersion {
  ASCEND910 = 0,
  ASCEND910B,
  ASCEND310P,
  ASCEND310B,
  ASCEND910_93,
  ASCEND910_95,
  ASCEND950,
  KIRINX90,
  RESERVED_VERSION = 99999
};
enum class NpuArch {
  DAV_1001 = 1001,
  DAV_2002 = 2002,
  DAV_2201 = 2201,
  DAV_3002 = 3002,
  DAV_3102 = 3102,
  DAV_3510 = 3510,
  DAV_5102 = 5102,
  DAV_RESV = 0xFFFF
};

class PlatformAscendC {
 public:
  PlatformAscendC() = default;
  template <typename Info>
  explicit PlatformAscendC(Info*) {}

  uint32_t GetCoreNum() const { return GetCoreNumAiv(); }
  uint32_t GetCoreNumAic() const { return Asked(0); }
  uint32_t GetCoreNumAiv() const { return Asked(1); }
  uint32_t GetCoreNumVector() const { return 0; }
  SocVersion GetSocVersion() const {
    return GetCurNpuArch() == NpuArch::DAV_3510 ? SocVersion::ASCEND950 : SocVersion::ASCEND910B;
  }
  NpuArch GetCurNpuArch() const { return static_cast<NpuArch>(cubecore::chip_architecture()); }
  void GetCoreMemSize(const CoreMemType& memType, uint64_t& size) const {
    size = cubecore_host(cubecore::CHIP, 2 + static_cast<uint64_t>(memType), 0, nullptr, nullptr,
                         nullptr);
  }
  void GetCoreMemBw(const CoreMemType& memType, uint64_t& bandwidth) const {
    bandwidth = memType == CoreMemType::L2 ? 110 : 32;
  }
  uint32_t GetLibApiWorkSpaceSize() const { return 16u << 20; }
  uint32_t GetResGroupBarrierWorkSpaceSize() const { return 0; }
  uint32_t GetResCubeGroupWorkSpaceSize() const { return 0; }
  uint32_t CalcTschNumBlocks(uint32_t sliceNum, uint32_t aicCoreNum, uint32_t aivCoreNum) const {
    return CalcTschBlockDim(sliceNum, aicCoreNum, aivCoreNum);
  }
  uint32_t CalcTschBlockDim(uint32_t sliceNum, uint32_t aicCoreNum, uint32_t aivCoreNum) const {
    if (aicCoreNum == 0 || aivCoreNum == 0 || aicCoreNum > aivCoreNum) return sliceNum;
    uint32_t ratio = aivCoreNum / aicCoreNum;
    return (sliceNum + ratio - 1) / ratio;
  }

 private:
  static uint32_t Asked(uint64_t fact) {
    return static_cast<uint32_t>(cubecore_host(cubecore::CHIP, fact, 0, nullptr, nullptr, nullptr));
  }
};

class PlatformAscendCManager {
 public:
  static PlatformAscendC* GetInstance() {
    static PlatformAscendC own;
    return &own;
  }
  // The name says which chip a program is for; it runs on the chip that it is told to.
  static PlatformAscendC* GetInstance(const char*) { return GetInstance(); }
};

}  // namespace platform_ascendc
