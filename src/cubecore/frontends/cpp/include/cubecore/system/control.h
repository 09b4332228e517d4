// Bits of numbers and of the control register, and calls that tools look for. Pages: GetBitCount,
// CountLeadingZero, CountBitsCntSameAsSignBit, GetSFFValue, "接口变更说明" (their older names),
// GetCtrlSpr(ISASI), SetCtrlSpr(ISASI), ResetCtrlSpr(ISASI), SetSaturationFlag(ISASI),
// GetSaturationFlag(ISASI),
// SetStoreAtomicConfig(ISASI), GetStoreAtomicConfig(ISASI), Async, DumpAccChkPoint,
// MetricsProfStart, MetricsProfStop, GetProgramCounter(ISASI), GetICachePreloadStatus(ISASI).
#pragma once

#include "cubecore/seam/macros.h"
#include "cubecore/sync/cores.h"
#include "cubecore/system/prints.h"

namespace AscendC {

template <int countValue>
constexpr int64_t GetBitCount(uint64_t valueIn) {
  static_assert(countValue == 0 || countValue == 1, "GetBitCount must count 0 or 1, got another");
  return __builtin_popcountll(countValue == 1 ? valueIn : ~valueIn);
}
constexpr int64_t CountLeadingZero(uint64_t valueIn) {
  return valueIn == 0 ? 64 : __builtin_clzll(valueIn);
}
constexpr int64_t CountBitsCntSameAsSignBit(int64_t valueIn) {
  return valueIn == 0 || valueIn == -1 ? -1 : __builtin_clrsbll(valueIn);
}
template <int countValue>
constexpr int64_t GetSFFValue(uint64_t valueIn) {
  static_assert(countValue == 0 || countValue == 1, "GetSFFValue must find 0 or 1, got another");
  return __builtin_ffsll(static_cast<int64_t>(countValue == 1 ? valueIn : ~valueIn)) - 1;
}
template <int countValue>
constexpr int64_t ScalarGetCountOfValue(uint64_t valueIn) {
  return GetBitCount<countValue>(valueIn);
}
constexpr int64_t ScalarCountLeadingZero(uint64_t valueIn) { return CountLeadingZero(valueIn); }
template <int countValue>
constexpr int64_t ScalarGetSFFValue(uint64_t valueIn) {
  return GetSFFValue<countValue>(valueIn);
}

namespace detail {

// The bits of CTRL from one on, of which there are so many.
constexpr uint64_t control_bits(int8_t first, int8_t last) {
  return (~0ull >> (63 - (last - first))) << first;
}

}  // namespace detail

template <int8_t startBit, int8_t endBit>
inline int64_t GetCtrlSpr(CUBECORE_AT) {
  static_assert(0 <= startBit && startBit <= endBit && endBit <= 63,
                "GetCtrlSpr's bits must be in [0, 63], the first before the last, got others");
  uint64_t word = static_cast<uint64_t>(cubecore::ask(0, "asc_get_ctrl", at));
  return static_cast<int64_t>((word & detail::control_bits(startBit, endBit)) >> startBit);
}
template <int8_t startBit, int8_t endBit>
inline void SetCtrlSpr(int64_t value, CUBECORE_AT) {
  static_assert(0 <= startBit && startBit <= endBit && endBit <= 63,
                "SetCtrlSpr's bits must be in [0, 63], the first before the last, got others");
  constexpr uint64_t bits = detail::control_bits(startBit, endBit);
  uint64_t word = static_cast<uint64_t>(cubecore::ask(0, "asc_get_ctrl", at));
  cubecore::issue("asc_set_ctrl", at,
                  (word & ~bits) | (static_cast<uint64_t>(value) << startBit & bits));
}

#if __NPU_ARCH__ == 3510
// Bits as they are when a kernel starts: of those that the page has, CTRL[60] alone is set.
template <int8_t startBit, int8_t endBit>
inline void ResetCtrlSpr(CUBECORE_AT) {
  SetCtrlSpr<startBit, endBit>(startBit <= 60 && 60 <= endBit ? 1ll << (60 - startBit) : 0, at);
}
#endif

enum class SaturationMode : uint8_t { FLOAT, CAST };
// Conversions to integers wrap under CTRL[60:59] = 3. Uncertain on 2201, of which no page says it.
template <SaturationMode mode>
inline void SetSaturationFlag(bool enableSat, CUBECORE_AT) {
  if constexpr (mode == SaturationMode::FLOAT)
    SetCtrlSpr<48, 48>(!enableSat, at);
  else
    SetCtrlSpr<59, 60>(enableSat ? 2 : 3, at);
}
template <SaturationMode mode>
inline bool GetSaturationFlag(CUBECORE_AT) {
  if constexpr (mode == SaturationMode::FLOAT)
    return GetCtrlSpr<48, 48>(at) == 0;
  else
    return GetCtrlSpr<59, 60>(at) != 3;
}

template <AtomicDtype type, AtomicOp op>
inline void SetStoreAtomicConfig(CUBECORE_AT) {
  static_assert(op == AtomicOp::ATOMIC_SUM, "SetStoreAtomicConfig must add, got another operation");
  if constexpr (type == AtomicDtype::ATOMIC_NONE) SetAtomicNone(at);
  if constexpr (type == AtomicDtype::ATOMIC_F32) SetAtomicAdd<float>(at);
  if constexpr (type == AtomicDtype::ATOMIC_F16) SetAtomicAdd<half>(at);
  if constexpr (type == AtomicDtype::ATOMIC_S16) SetAtomicAdd<int16_t>(at);
  if constexpr (type == AtomicDtype::ATOMIC_S32) SetAtomicAdd<int32_t>(at);
  if constexpr (type == AtomicDtype::ATOMIC_S8) SetAtomicAdd<int8_t>(at);
  if constexpr (type == AtomicDtype::ATOMIC_BF16) SetAtomicAdd<bfloat16_t>(at);
}

// Uncertain: the numbers of maximum and minimum, of which the page names addition alone.
inline void GetStoreAtomicConfig(uint16_t& atomicType, uint16_t& atomicOp) {
  constexpr AtomicDtype types[] = {AtomicDtype::ATOMIC_F32,  AtomicDtype::ATOMIC_F16,
                                   AtomicDtype::ATOMIC_BF16, AtomicDtype::ATOMIC_S8,
                                   AtomicDtype::ATOMIC_S16,  AtomicDtype::ATOMIC_S32};
  const detail::CoreState& state = detail::core_state();
  const bool on = state.atomic_type >= 0;
  atomicType = static_cast<uint16_t>(on ? types[state.atomic_type] : AtomicDtype::ATOMIC_NONE);
  atomicOp = on ? state.atomic : 0;
}

enum class EngineType : int32_t { AIC = 1, AIV = 2 };
template <EngineType engine, auto funPtr, typename... Args>
inline void Async(Args... args) {
  if constexpr (engine == EngineType::AIC) {
    if ASCEND_IS_AIC
      funPtr(args...);
  } else {
    if ASCEND_IS_AIV
      funPtr(args...);
  }
}

template <typename Tensor>
inline void DumpAccChkPoint(const Tensor& tensor, uint32_t index, uint32_t countOff,
                            uint32_t dumpSize, CUBECORE_AT) {
  DumpTensor(tensor[countOff], index, dumpSize, at);
}
inline void MetricsProfStart() {}
inline void MetricsProfStop() {}
__attribute__((noinline)) inline int64_t GetProgramCounter() {
  return reinterpret_cast<int64_t>(__builtin_return_address(0));
}
constexpr int64_t GetICachePreloadStatus() { return 0; }

}  // namespace AscendC
