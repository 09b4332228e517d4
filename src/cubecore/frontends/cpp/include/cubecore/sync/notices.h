// Vector cores that wait for notices of others in global memory. Pages: IBSet, IBWait,
// InitDetermineComputeWorkspace, WaitPreBlock, NotifyNextBlock; GroupBarrier with its members;
// ReadGmByPassDCache(ISASI), WriteGmByPassDCache(ISASI).
#pragma once

#include "cubecore/sync/cores.h"
#include "cubecore/system/core_index.h"

namespace AscendC {

namespace detail {

constexpr int64_t NOTICE_BYTES = 32;

// On an AIC nothing happens. Uncertain: MTE3 brings a notice behind all that it was given before.
inline void notify(int64_t address, const cubecore::Where& at) {
  if (cubecore_launch()->is_cube) return;
  cubecore::issue("notify_blocks", at, cubecore::named("on", "MTE3"),
                  cubecore::named("flag_id", address / NOTICE_BYTES));
}
inline void await(int64_t address, const cubecore::Where& at) {
  if (cubecore_launch()->is_cube) return;
  require_at_once("a wait for other blocks", at);
  cubecore::issue("await_block", at, cubecore::named("flag_id", address / NOTICE_BYTES));
}

// Where the notice of a core on an event lies.
template <bool isAIVOnly>
inline int64_t notice(const GlobalTensor<int32_t>& gmWorkspace, int32_t blockIdx, int32_t eventID) {
  int64_t cores = GetBlockNum() * (isAIVOnly ? 1 : 2);
  return gmWorkspace.address(0) + (cores * eventID + blockIdx) * NOTICE_BYTES;
}

}  // namespace detail

template <bool isAIVOnly = true>
inline void IBSet(const GlobalTensor<int32_t>& gmWorkspace, const LocalTensor<int32_t>&,
                  int32_t blockIdx, int32_t eventID, CUBECORE_AT) {
  detail::notify(detail::notice<isAIVOnly>(gmWorkspace, blockIdx, eventID), at);
}
template <bool isAIVOnly = true>
inline void IBWait(const GlobalTensor<int32_t>& gmWorkspace, const LocalTensor<int32_t>&,
                   int32_t blockIdx, int32_t eventID, CUBECORE_AT) {
  detail::await(detail::notice<isAIVOnly>(gmWorkspace, blockIdx, eventID), at);
}

// Blocks in ascending order, round after round: the first waits for the last of the round before.
// Uncertain: a wait and a notice both wait for all pipes of their core.
inline void InitDetermineComputeWorkspace(GlobalTensor<int32_t>&, LocalTensor<int32_t>&) {
  detail::core_state().rounds = 0;
}
inline void WaitPreBlock(GlobalTensor<int32_t>& gmWorkspace, LocalTensor<int32_t>&, CUBECORE_AT) {
  int64_t block = GetBlockIdx(), before = (block == 0 ? GetBlockNum() : block) - 1;
  bool first = block == 0 && detail::core_state().rounds == 0;
  detail::barrier(PIPE_ALL, at);
  if (!first) detail::await(gmWorkspace.address(0) + before * detail::NOTICE_BYTES, at);
  ++detail::core_state().rounds;
}
inline void NotifyNextBlock(GlobalTensor<int32_t>& gmWorkspace, LocalTensor<int32_t>&,
                            CUBECORE_AT) {
  detail::barrier(PIPE_ALL, at);
  detail::notify(gmWorkspace.address(0) + GetBlockIdx() * detail::NOTICE_BYTES, at);
}

enum class PipeMode : uint8_t { SCALAR_MODE = 0, MTE3_MODE = 1, MAX };

template <PipeMode pipeMode>
class GroupBarrier {
  static_assert(pipeMode == PipeMode::MTE3_MODE,
                "GroupBarrier.pipeMode must be MTE3_MODE, got another");

 public:
  GroupBarrier(uint8_t* groupWorkspace, uint32_t arriveSizeIn, uint32_t waitSizeIn, CUBECORE_AT)
      : start_(cubecore::gm_address(groupWorkspace)), arrive_(arriveSizeIn), wait_(waitSizeIn) {
    if (start_ % 512 != 0)
      cubecore_refuse("GroupBarrier.groupWorkspace", "be a multiple of 512 B", "another", &at);
  }
  void Arrive(uint32_t arriveIndex, CUBECORE_AT) {
    Require("GroupBarrier.Arrive's index", arriveIndex, arrive_, at);
    detail::notify(start_ + arriveIndex * detail::NOTICE_BYTES, at);
  }
  void Wait(uint32_t waitIndex, CUBECORE_AT) {
    Require("GroupBarrier.Wait's index", waitIndex, wait_, at);
    for (uint32_t n = 0; n < arrive_; ++n) detail::await(start_ + n * detail::NOTICE_BYTES, at);
  }
  uint64_t GetWorkspaceLen() const { return wait_ * 512ull; }

 private:
  static void Require(const char* what, uint32_t index, uint32_t size, const cubecore::Where& at) {
    if (index < size) return;
    char need[40];
    std::snprintf(need, sizeof(need), "be below %u", size);
    cubecore_refuse(what, need, detail::Digits(index, "").text, &at);
  }

  int64_t start_;
  uint32_t arrive_, wait_;
};

template <typename T>
inline T ReadGmByPassDCache(const T* addr, CUBECORE_AT) {
  return detail::value_of<T>(
      cubecore_load(cubecore::GM_PAST_CACHE, cubecore::Element<T>::name,
                    cubecore::gm_address(addr), &at));
}
template <typename T>
inline void WriteGmByPassDCache(T* addr, T value, CUBECORE_AT) {
  detail::store<T>(cubecore::GM_PAST_CACHE, cubecore::gm_address(addr), value, at);
}

}  // namespace AscendC
