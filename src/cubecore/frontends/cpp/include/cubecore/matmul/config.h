// Configurations of Matmul objects. Pages: MatmulConfig, GetNormalConfig, GetMDLConfig,
// GetSpecialMDLConfig, GetIBShareNormConfig, GetBasicConfig, GetMMConfig, GetMatmulApiTiling,
// "Matmul模板参数" (MatmulApiStaticTiling).
#pragma once

#include "cubecore/matmul/types.h"
#include "cubecore_tcubetiling.h"

namespace AscendC {

enum class BatchMode : uint32_t {
  NONE = 0,
  BATCH_LESS_THAN_L1,
  BATCH_LARGE_THAN_L1,
  SINGLE_LARGE_THAN_L1
};
enum class BatchOutMode : uint32_t { SINGLE_BATCH = 0, MULTI_BATCH, DYNAMIC, DEFAULT };
enum class IterateOrder : uint32_t { ORDER_M = 0, ORDER_N, UNDEF };
enum class ScheduleType : uint32_t { INNER_PRODUCT = 0, OUTER_PRODUCT, N_BUFFER_33 };
enum IterateMode : uint8_t {
  ITERATE_MODE_NORMAL = 1,
  ITERATE_MODE_ALL = 2,
  ITERATE_MODE_BATCH = 4,
  ITERATE_MODE_N_BATCH = 8,
  ITERATE_MODE_DEFAULT = 255
};
enum class MatmulConfigMode : uint32_t {
  CONFIG_NORM,
  CONFIG_MDL,
  CONFIG_SPECIALMDL,
  CONFIG_IBSHARE
};

// In the order of the page's table.
struct MatmulConfig {
  bool doNorm = false;
  bool doBasicBlock = false;
  bool doMultiDataLoad = false;
  uint32_t basicM = 0, basicN = 0, basicK = 0;
  bool intrinsicsCheck = false;
  bool isNBatch = false;
  bool enVecND2NZ = false;
  bool doSpecialBasicBlock = false;
  uint32_t doMTE2Preload = 0;
  uint32_t singleCoreM = 0, singleCoreN = 0, singleCoreK = 0;
  uint32_t stepM = 0, stepN = 0;
  uint32_t baseMN = 0, singleCoreMN = 0;
  bool enUnitFlag = true;
  bool isPerTensor = false;
  bool hasAntiQuantOffset = false;
  bool doIBShareNorm = false;
  bool doSpecialMDL = false;
  bool enableInit = true;
  BatchMode batchMode = BatchMode::NONE;
  bool enableEnd = true;
  bool enableGetTensorC = true;
  bool enableSetOrgShape = true;
  bool enableSetBias = true;
  bool enableSetTail = true;
  bool enableQuantVector = true;
  bool enableSetDefineData = true;
  uint8_t iterateMode = ITERATE_MODE_DEFAULT;
  bool enableReuse = true;
  bool enableUBReuse = true;
  bool enableL1CacheUB = false;
  bool intraBlockPartSum = false;
  IterateOrder iterateOrder = IterateOrder::UNDEF;
  ScheduleType scheduleType = ScheduleType::INNER_PRODUCT;
  bool enableDoubleCache = false;
  bool isBiasBatch = true;
  bool enableStaticPadZeros = false;
  bool isPartialOutput = false;
  bool enableMixDualMaster = false;
  bool isA2B2Shared = false;
  bool isEnableChannelSplit = false;
  bool enableKdimReorderLoad = false;
  bool isCO1Shared = false;
  uint32_t sharedCO1BufferSize = 64 * 1024;
  BatchOutMode bmmOutMode = BatchOutMode::SINGLE_BATCH;
  bool enableL1BankConflictOptimise = false;
  bool enableRelu = false;
};

constexpr MatmulConfig GetNormalConfig(
    const bool intrinsicsLimit = false, const bool batchLoop = false, const bool isVecND2NZ = false,
    const BatchMode bmmMode = BatchMode::BATCH_LESS_THAN_L1, const bool isMsgReuse = true,
    const IterateOrder iterateOrder = IterateOrder::UNDEF,
    const ScheduleType scheduleType = ScheduleType::INNER_PRODUCT, const bool enUnitFlag = true,
    const bool enableMixDualMaster = false,
    const BatchOutMode bmmOutMode = BatchOutMode::SINGLE_BATCH) {
  MatmulConfig made;
  made.doNorm = true;
  made.intrinsicsCheck = intrinsicsLimit;
  made.isNBatch = batchLoop;
  made.enVecND2NZ = isVecND2NZ;
  made.batchMode = bmmMode;
  made.enableReuse = isMsgReuse;
  made.iterateOrder = iterateOrder;
  made.scheduleType = scheduleType;
  made.enUnitFlag = enUnitFlag;
  made.enableMixDualMaster = enableMixDualMaster;
  made.bmmOutMode = bmmOutMode;
  return made;
}

constexpr MatmulConfig GetMDLConfig(const bool intrinsicsLimit = false,
                                    const bool batchLoop = false, const uint32_t doMTE2Preload = 0,
                                    const bool isVecND2NZ = false, bool isPerTensor = false,
                                    bool hasAntiQuantOffset = false, const bool enUnitFlag = false,
                                    const bool isMsgReuse = true, const bool enableUBReuse = true,
                                    const bool enableL1CacheUB = false,
                                    const bool enableMixDualMaster = false,
                                    const bool enableKdimReorderLoad = false) {
  MatmulConfig made;
  made.doMultiDataLoad = true;
  made.intrinsicsCheck = intrinsicsLimit;
  made.isNBatch = batchLoop;
  made.doMTE2Preload = doMTE2Preload;
  made.enVecND2NZ = isVecND2NZ;
  made.isPerTensor = isPerTensor;
  made.hasAntiQuantOffset = hasAntiQuantOffset;
  made.enUnitFlag = enUnitFlag;
  made.enableReuse = isMsgReuse;
  made.enableUBReuse = enableUBReuse;
  made.enableL1CacheUB = enableL1CacheUB;
  made.enableMixDualMaster = enableMixDualMaster;
  made.enableKdimReorderLoad = enableKdimReorderLoad;
  return made;
}

constexpr MatmulConfig GetSpecialMDLConfig(const bool intrinsicsLimit = false,
                                           const bool batchLoop = false,
                                           const uint32_t doMTE2Preload = 0,
                                           const bool isVecND2NZ = false, bool isPerTensor = false,
                                           bool hasAntiQuantOffset = false) {
  MatmulConfig made = GetMDLConfig(intrinsicsLimit, batchLoop, doMTE2Preload, isVecND2NZ,
                                   isPerTensor, hasAntiQuantOffset);
  made.doMultiDataLoad = false;
  made.doSpecialMDL = true;
  return made;
}

constexpr MatmulConfig GetIBShareNormConfig(const bool intrinsicsLimit = false,
                                            const bool batchLoop = false,
                                            const bool isVecND2NZ = false,
                                            const BatchMode bmmMode = BatchMode::BATCH_LESS_THAN_L1,
                                            const bool isDoubleCache = false,
                                            const bool enUnitFlag = true) {
  MatmulConfig made = GetNormalConfig(intrinsicsLimit, batchLoop, isVecND2NZ, bmmMode);
  made.doIBShareNorm = true;
  made.enableDoubleCache = isDoubleCache;
  made.enUnitFlag = enUnitFlag;
  return made;
}

constexpr MatmulConfig GetBasicConfig(const uint32_t basicM, const uint32_t basicN,
                                      const uint32_t basicK, const bool intrinsicsLimit = false,
                                      const bool batchLoop = false,
                                      const BatchMode bmmMode = BatchMode::BATCH_LESS_THAN_L1) {
  MatmulConfig made = GetNormalConfig(intrinsicsLimit, batchLoop, false, bmmMode);
  made.doNorm = false;
  made.doBasicBlock = true;
  made.basicM = basicM;
  made.basicN = basicN;
  made.basicK = basicK;
  return made;
}

constexpr MatmulConfig GetSpecialBasicConfig(
    const uint32_t basicM, const uint32_t basicN, const uint32_t basicK, const uint32_t singleCoreM,
    const uint32_t singleCoreN, const uint32_t singleCoreK, const uint32_t stepM,
    const uint32_t stepN, const bool intrinsicsLimit = false, const bool batchLoop = false,
    const BatchMode bmmMode = BatchMode::BATCH_LESS_THAN_L1) {
  MatmulConfig made = GetBasicConfig(basicM, basicN, basicK, intrinsicsLimit, batchLoop, bmmMode);
  made.doBasicBlock = false;
  made.doSpecialBasicBlock = true;
  made.singleCoreM = singleCoreM;
  made.singleCoreN = singleCoreN;
  made.singleCoreK = singleCoreK;
  made.stepM = stepM;
  made.stepN = stepN;
  made.baseMN = basicM * basicN;
  made.singleCoreMN = singleCoreM * singleCoreN;
  return made;
}

struct MatmulShapeParams {
  uint32_t singleCoreM = 0, singleCoreN = 0, singleCoreK = 0;
  uint32_t basicM = 0, basicN = 0, basicK = 0;
};
struct MatmulQuantParams {
  bool isPerTensor = false;
  bool hasAntiQuantOffset = false;
};
struct MatmulBatchParams {
  bool isNBatch = false;
  BatchMode batchMode = BatchMode::BATCH_LESS_THAN_L1;
  bool isBiasBatch = true;
  BatchOutMode bmmOutMode = BatchOutMode::SINGLE_BATCH;
};
// Without a page: public kernels give it to GetMMConfig.
struct MatmulBiasParams {
  bool enableSetBias = true;
};
struct MatmulFuncParams {
  bool intrinsicsLimit = false;
  bool enVecND2NZ = false;
  bool enableDoubleCache = false;
  bool enableL1CacheUB = false;
  uint32_t doMTE2Preload = 0;
  IterateOrder iterateOrder = IterateOrder::UNDEF;
  ScheduleType scheduleType = ScheduleType::INNER_PRODUCT;
  bool enableReuse = true;
  bool enableUBReuse = true;
  bool isPartialOutput = false;
  bool isA2B2Shared = false;
  bool isEnableChannelSplit = false;
  bool enableKdimReorderLoad = false;
  bool enableL1BankConflictOptimise = false;
};

namespace detail {

constexpr void put_params(MatmulConfig& made, const MatmulShapeParams& p) {
  made.singleCoreM = p.singleCoreM;
  made.singleCoreN = p.singleCoreN;
  made.singleCoreK = p.singleCoreK;
  made.basicM = p.basicM;
  made.basicN = p.basicN;
  made.basicK = p.basicK;
}
constexpr void put_params(MatmulConfig& made, const MatmulQuantParams& p) {
  made.isPerTensor = p.isPerTensor;
  made.hasAntiQuantOffset = p.hasAntiQuantOffset;
}
constexpr void put_params(MatmulConfig& made, const MatmulBatchParams& p) {
  made.isNBatch = p.isNBatch;
  made.batchMode = p.batchMode;
  made.isBiasBatch = p.isBiasBatch;
  made.bmmOutMode = p.bmmOutMode;
}
constexpr void put_params(MatmulConfig& made, const MatmulBiasParams& p) {
  made.enableSetBias = p.enableSetBias;
}
constexpr void put_params(MatmulConfig& made, const MatmulFuncParams& p) {
  made.intrinsicsCheck = p.intrinsicsLimit;
  made.enVecND2NZ = p.enVecND2NZ;
  made.enableDoubleCache = p.enableDoubleCache;
  made.enableL1CacheUB = p.enableL1CacheUB;
  made.doMTE2Preload = p.doMTE2Preload;
  made.iterateOrder = p.iterateOrder;
  made.scheduleType = p.scheduleType;
  made.enableReuse = p.enableReuse;
  made.enableUBReuse = p.enableUBReuse;
  made.isPartialOutput = p.isPartialOutput;
  made.isA2B2Shared = p.isA2B2Shared;
  made.isEnableChannelSplit = p.isEnableChannelSplit;
  made.enableKdimReorderLoad = p.enableKdimReorderLoad;
  made.enableL1BankConflictOptimise = p.enableL1BankConflictOptimise;
}

}  // namespace detail

template <MatmulConfigMode configMode, typename... ArgTypes>
inline constexpr MatmulConfig GetMMConfig(ArgTypes&&... args) {
  MatmulConfig made = configMode == MatmulConfigMode::CONFIG_MDL          ? GetMDLConfig()
                      : configMode == MatmulConfigMode::CONFIG_SPECIALMDL ? GetSpecialMDLConfig()
                      : configMode == MatmulConfigMode::CONFIG_IBSHARE    ? GetIBShareNormConfig()
                                                                          : GetNormalConfig();
  (detail::put_params(made, args), ...);
  return made;
}

constexpr MatmulConfig CFG_NORM = GetNormalConfig();
constexpr MatmulConfig CFG_MDL = GetMDLConfig();
constexpr MatmulConfig CFG_IBSHARE_NORM = GetIBShareNormConfig();
constexpr MatmulConfig MM_CFG_BB = GetBasicConfig(128, 128, 128);

// A tiling of which some fields are constants; those at -1 are the run's.
struct MatmulApiStaticTiling {
  int32_t usedCoreNum = -1;
  int32_t M = -1, N = -1, Ka = -1, Kb = -1;
  int32_t singleCoreM = -1, singleCoreN = -1, singleCoreK = -1;
  int32_t baseM = -1, baseN = -1, baseK = -1;
  int32_t depthA1 = -1, depthB1 = -1;
  int32_t stepM = -1, stepN = -1, stepKa = -1, stepKb = -1;
  int32_t isBias = -1;
  int32_t transLength = -1;
  int32_t iterateOrder = -1;
  int32_t dbL0A = -1, dbL0B = -1, dbL0C = -1;
  int32_t shareMode = -1, shareL1Size = -1, shareL0CSize = -1, shareUbSize = -1;
  int32_t batchM = -1, batchN = -1, singleBatchM = -1, singleBatchN = -1;
  int32_t mxTypePara = -1;
  MatmulConfig cfg;
};

namespace detail {

constexpr const MatmulConfig& config_of(const MatmulConfig& config) { return config; }
constexpr const MatmulConfig& config_of(const MatmulApiStaticTiling& tiling) { return tiling.cfg; }

// Takes over the constants of a static tiling.
inline void take_constants(tiling::TCubeTiling&, const MatmulConfig&) {}
inline void take_constants(tiling::TCubeTiling& to, const MatmulApiStaticTiling& from) {
#define CUBECORE_CONSTANT(NAME) \
  if (from.NAME >= 0) to.NAME = from.NAME
  CUBECORE_CONSTANT(singleCoreM);
  CUBECORE_CONSTANT(singleCoreN);
  CUBECORE_CONSTANT(singleCoreK);
  CUBECORE_CONSTANT(baseM);
  CUBECORE_CONSTANT(baseN);
  CUBECORE_CONSTANT(baseK);
  CUBECORE_CONSTANT(depthA1);
  CUBECORE_CONSTANT(depthB1);
  CUBECORE_CONSTANT(stepM);
  CUBECORE_CONSTANT(stepN);
  CUBECORE_CONSTANT(stepKa);
  CUBECORE_CONSTANT(stepKb);
  CUBECORE_CONSTANT(dbL0A);
  CUBECORE_CONSTANT(dbL0B);
  CUBECORE_CONSTANT(dbL0C);
  CUBECORE_CONSTANT(iterateOrder);
  CUBECORE_CONSTANT(isBias);
#undef CUBECORE_CONSTANT
}

}  // namespace detail

namespace detail {

constexpr int64_t L0_BYTES = 64 * 1024, L0C_BYTES = 128 * 1024;

constexpr int32_t twice_if(int64_t bytes, int64_t most) { return 2 * bytes <= most ? 2 : 1; }

// The fields that follow from constant extents: as much of K as L1 takes twice.
template <class A, class B>
constexpr void follow(MatmulApiStaticTiling& t, int64_t l1Size) {
  int64_t a = cubecore::bytes_of<A>(int64_t{t.baseM} * t.baseK);
  int64_t b = cubecore::bytes_of<B>(int64_t{t.baseN} * t.baseK);
  t.dbL0A = twice_if(a, L0_BYTES);
  t.dbL0B = twice_if(b, L0_BYTES);
  t.dbL0C = twice_if(int64_t{t.baseM} * t.baseN * 4, L0C_BYTES);
  t.stepM = t.stepN = 1;
  int32_t all = (t.singleCoreK + t.baseK - 1) / t.baseK, steps = all;
  while (steps > 1 && 2 * steps * (a + b) + t.baseN * 4 > l1Size) --steps;
  t.stepKa = t.stepKb = steps;
  t.depthA1 = t.depthB1 = 2 * steps * (a + b) + t.baseN * 4 > l1Size ? steps : 2 * steps;
}

}  // namespace detail

// The extents of the configuration become constants. With all of them, so does what follows from
// them; else all other fields stay the run's.
template <class A_TYPE, class B_TYPE, class C_TYPE, class BIAS_TYPE>
constexpr MatmulApiStaticTiling GetMatmulApiTiling(const MatmulConfig& mmCFG,
                                                   int32_t l1Size = 512 * 1024) {
  MatmulApiStaticTiling made;
  made.cfg = mmCFG;
  if (mmCFG.basicM != 0) made.baseM = static_cast<int32_t>(mmCFG.basicM);
  if (mmCFG.basicN != 0) made.baseN = static_cast<int32_t>(mmCFG.basicN);
  if (mmCFG.basicK != 0) made.baseK = static_cast<int32_t>(mmCFG.basicK);
  if (mmCFG.singleCoreM != 0) made.singleCoreM = static_cast<int32_t>(mmCFG.singleCoreM);
  if (mmCFG.singleCoreN != 0) made.singleCoreN = static_cast<int32_t>(mmCFG.singleCoreN);
  if (mmCFG.singleCoreK != 0) made.singleCoreK = static_cast<int32_t>(mmCFG.singleCoreK);
  if (made.baseM > 0 && made.baseN > 0 && made.baseK > 0 && made.singleCoreK > 0)
    detail::follow<typename A_TYPE::T, typename B_TYPE::T>(made, l1Size);
  return made;
}

}  // namespace AscendC

using AscendC::BatchMode;
using AscendC::BatchOutMode;
using AscendC::CFG_IBSHARE_NORM;
using AscendC::CFG_MDL;
using AscendC::CFG_NORM;
using AscendC::GetBasicConfig;
using AscendC::GetIBShareNormConfig;
using AscendC::GetMatmulApiTiling;
using AscendC::GetMDLConfig;
using AscendC::GetMMConfig;
using AscendC::GetNormalConfig;
using AscendC::GetSpecialMDLConfig;
using AscendC::IterateMode;
using AscendC::IterateOrder;
using AscendC::MatmulApiStaticTiling;
using AscendC::MatmulBatchParams;
using AscendC::MatmulBiasParams;
using AscendC::MatmulConfig;
using AscendC::MatmulConfigMode;
using AscendC::MatmulFuncParams;
using AscendC::MatmulQuantParams;
using AscendC::MatmulShapeParams;
using AscendC::MM_CFG_BB;
using AscendC::ScheduleType;
