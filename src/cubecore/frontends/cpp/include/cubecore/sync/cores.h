// Between cores, and what cores share. Pages: CrossCoreSetFlag(ISASI), CrossCoreWaitFlag(ISASI),
// SyncAll, SetAtomicAdd, SetAtomicMax, SetAtomicMin, SetAtomicType, SetAtomicNone,
// DataCacheCleanAndInvalid, DataSyncBarrier(ISASI).
#pragma once

#include <cstdio>

#include "cubecore/sync/queue.h"

namespace AscendC {

namespace detail {

constexpr const char* ARRIVALS[] = {"asc_sync_inter_arrive", "asc_sync_subblock_arrive",
                                    "asc_sync_block_arrive"};  // by mode

constexpr uint8_t OF_PARTS = 4;  // between an AIC and one of its AIVs

template <uint8_t modeId>
constexpr void require_mode() {
  static_assert(modeId <= 2 || (cubecore::is_950 && modeId == OF_PARTS),
                "the mode of a flag between cores must be 0, 1 or 2, or on Ascend 950 4, got "
                "another");
}

// Mode 2 is between an AIC and its AIVs, which only mix launches have both.
inline void require_heard(uint64_t mode, const cubecore::Where& at) {
  if (mode != 2 || cubecore_launch()->task == 2) return;
  cubecore_finding("flag-parameter", "CrossCoreSetFlag",
                   "mode 2 must be used in a mix launch, got a launch on one kind of cores; "
                   "nobody hears it",
                   &at);
}

}  // namespace detail

template <uint8_t modeId, pipe_t pipe>
inline void CrossCoreSetFlag(uint16_t flagId, CUBECORE_AT) {
  detail::require_mode<modeId>();
  if constexpr (modeId == detail::OF_PARTS) {
    cubecore::issue("asc_sync_intra_arrive", at, detail::pipe_word(pipe), flagId);
  } else {
    detail::require_heard(modeId, at);
    cubecore::issue(detail::ARRIVALS[modeId], at, detail::pipe_word(pipe), flagId);
  }
}

template <uint8_t modeId = 0, pipe_t pipe = PIPE_S>
inline void CrossCoreWaitFlag(uint16_t flagId, CUBECORE_AT) {
  detail::require_mode<modeId>();
  cubecore::issue(modeId == detail::OF_PARTS ? "asc_sync_intra_wait" : "asc_sync_inter_wait", at,
                  detail::pipe_word(pipe), flagId);
}

namespace detail {

// Flags that the page keeps for the library itself.
constexpr uint16_t ALL_AIVS = 11, ALL_AICS = 12, TO_AIC = 13, TO_AIVS = 14;

}  // namespace detail

namespace detail {

// Blocks that wait for others must run at once: a chip whose cores run several hangs.
inline void require_at_once(const char* call, const cubecore::Where& at) {
  const cubecore::Launch* launch = cubecore_launch();
  if (launch->blocks <= launch->at_once) return;
  char need[64];
  std::snprintf(need, sizeof(need), "be called by %lld blocks at most, which run at once",
                static_cast<long long>(launch->at_once));
  cubecore_refuse(call, need, Digits(static_cast<uint64_t>(launch->blocks), "").text, &at);
}

}  // namespace detail

template <bool isAIVOnly = true>
inline void SyncAll(CUBECORE_AT) {
  detail::require_at_once("SyncAll", at);
  detail::barrier(PIPE_ALL, at);
  const cubecore::Launch* launch = cubecore_launch();
  if (isAIVOnly || launch->task != 2) {
    uint16_t flag = launch->is_cube ? detail::ALL_AICS : detail::ALL_AIVS;
    if (launch->is_cube)
      CrossCoreSetFlag<0, PIPE_FIX>(flag, at);
    else
      CrossCoreSetFlag<0, PIPE_MTE3>(flag, at);
    CrossCoreWaitFlag(flag, at);
  } else if (launch->is_cube) {
    CrossCoreWaitFlag(detail::TO_AIC, at);
    CrossCoreSetFlag<0, PIPE_FIX>(detail::ALL_AICS, at);
    CrossCoreWaitFlag(detail::ALL_AICS, at);
    CrossCoreSetFlag<2, PIPE_FIX>(detail::TO_AIVS, at);
  } else {
    CrossCoreSetFlag<0, PIPE_MTE3>(detail::ALL_AIVS, at);
    CrossCoreWaitFlag(detail::ALL_AIVS, at);
    CrossCoreSetFlag<2, PIPE_MTE3>(detail::TO_AIC, at);
    CrossCoreWaitFlag(detail::TO_AIVS, at);
  }
}
#if __NPU_ARCH__ == 3510
struct SyncAllConfig {
  pipe_t triggerPipe;
  pipe_t waitPipe;
};
constexpr SyncAllConfig DEFAULT_SYNC_ALL_CONFIG = {PIPE_ALL, PIPE_ALL};

// One pipe of each AIV signals when it is done, and one waits; PIPE_ALL is a barrier, or a wait of
// the scalar unit.
template <bool isAIVOnly, const SyncAllConfig& config>
inline void SyncAll(CUBECORE_AT) {
  constexpr auto is_allowed = [](pipe_t pipe) {
    return pipe == PIPE_MTE2 || pipe == PIPE_MTE3 || pipe == PIPE_ALL;
  };
  static_assert(is_allowed(config.triggerPipe) && is_allowed(config.waitPipe),
                "SyncAllConfig's pipes must be PIPE_MTE2, PIPE_MTE3 or PIPE_ALL, got another");
  if (!isAIVOnly || cubecore_launch()->is_cube) {
    SyncAll<isAIVOnly>(at);
    return;
  }
  detail::require_at_once("SyncAll", at);
  constexpr bool all = config.triggerPipe == PIPE_ALL;
  if (all) detail::barrier(PIPE_ALL, at);
  CrossCoreSetFlag<0, all ? PIPE_MTE3 : config.triggerPipe>(detail::ALL_AIVS, at);
  CrossCoreWaitFlag<0, config.waitPipe == PIPE_ALL ? PIPE_S : config.waitPipe>(detail::ALL_AIVS,
                                                                              at);
}
#endif
// The form with workspaces, which the hardware's flags make unnecessary here.
template <bool isAIVOnly = true>
inline void SyncAll(const GlobalTensor<int32_t>&, const LocalTensor<int32_t>&,
                    const int32_t usedCores = 0, CUBECORE_AT) {
  (void)usedCores;
  SyncAll<isAIVOnly>(at);
}

namespace detail {

// The number of a type in the lists of calls below.
template <typename T>
constexpr int8_t atomic_type() {
  if constexpr (std::is_same_v<T, half>) return 1;
  if constexpr (std::is_same_v<T, bfloat16_t>) return 2;
  if constexpr (std::is_same_v<T, int8_t>) return 3;
  if constexpr (std::is_same_v<T, int16_t>) return 4;
  if constexpr (std::is_same_v<T, int32_t>) return 5;
  return 0;
}

#define CUBECORE_ATOMIC(NAME)                                                \
  constexpr const char* NAME##_calls[6] = {                                  \
      "asc_set_atomic_" #NAME "_float",  "asc_set_atomic_" #NAME "_float16", \
      "asc_set_atomic_" #NAME "_bfloat", "asc_set_atomic_" #NAME "_int8",    \
      "asc_set_atomic_" #NAME "_int16",  "asc_set_atomic_" #NAME "_int"};
CUBECORE_ATOMIC(add)
CUBECORE_ATOMIC(max)
CUBECORE_ATOMIC(min)
#undef CUBECORE_ATOMIC
constexpr const char* const* atomic_calls[] = {add_calls, max_calls, min_calls};

inline const char* atomic_call(uint8_t operation, int8_t type) {
  core_state().atomic = operation;
  core_state().atomic_type = type;
  return atomic_calls[operation][type];
}

}  // namespace detail

template <typename T>
inline void SetAtomicAdd(CUBECORE_AT) {
  cubecore::issue(detail::atomic_call(0, detail::atomic_type<T>()), at);
}
template <typename T>
inline void SetAtomicMax(CUBECORE_AT) {
  cubecore::issue(detail::atomic_call(1, detail::atomic_type<T>()), at);
}
template <typename T>
inline void SetAtomicMin(CUBECORE_AT) {
  cubecore::issue(detail::atomic_call(2, detail::atomic_type<T>()), at);
}
// The operation is the last that was set. Uncertain: before any, addition.
template <typename T>
inline void SetAtomicType(CUBECORE_AT) {
  const uint8_t last = detail::core_state().atomic;
  cubecore::issue(detail::atomic_call(last, detail::atomic_type<T>()), at);
}
inline void SetAtomicNone(CUBECORE_AT) {
  detail::core_state().atomic_type = -1;
  cubecore::issue("asc_set_atomic_none", at);
}
inline void DisableDmaAtomic(CUBECORE_AT) { SetAtomicNone(at); }

namespace detail {

inline void clean(bool single, bool ofUb, int64_t address, const cubecore::Where& at) {
  const char* const one = ofUb ? "asc_ub_dcci_single" : "asc_dcci_single";
  const char* const all = ofUb ? "asc_dcci_entire_ub" : "asc_dcci_entire_out";
  cubecore::issue(single ? one : all, at, cubecore::named("address", address));
  cubecore_flush(&at);
}

}  // namespace detail

template <typename T, CacheLine entireType, DcciDst dcciDst = DcciDst::CACHELINE_OUT>
inline void DataCacheCleanAndInvalid(const GlobalTensor<T>& dst, CUBECORE_AT) {
  detail::clean(entireType == CacheLine::SINGLE_CACHE_LINE, dcciDst == DcciDst::CACHELINE_UB,
                dst.address(0), at);
}
template <typename T>
inline void DataCachePreload(const GlobalTensor<uint64_t>&, const T) {}

// Pages SetNextTaskStart, WaitPreTaskEnd: sub-kernels that overlap; a launch here is one kernel.
template <pipe_t AIV_PIPE = PIPE_MTE3, pipe_t AIC_PIPE = PIPE_FIX, bool FORCE = false>
inline void SetNextTaskStart() {}
template <bool FORCE = false>
inline void WaitPreTaskEnd() {}

template <MemDsbT arg0 = MemDsbT::ALL>
inline void DataSyncBarrier(CUBECORE_AT) {
  cubecore::issue("asc_sync_data_barrier", at,
                  arg0 == MemDsbT::DDR  ? "DSB_DDR"
                  : arg0 == MemDsbT::UB ? "DSB_UB"
                                        : "DSB_ALL");
  cubecore_flush(&at);
}

}  // namespace AscendC
