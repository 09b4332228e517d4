// The built-in sums that public kernels call over raw pointers. No page has them: their parameters
// are those of WholeReduceSum and, behind them, whether the sum of all repeats goes to a register
// that get_acc_val reads in the place of `dst`. The register's sum passes through memory here.
#pragma once

#include "cubecore/basic/reduce.h"

namespace AscendC {
namespace detail {

// The sum of all repeats, left where GetAccVal reads it: in the memory that no buffer has, else in
// the last bytes of UB.
template <typename T>
inline void accumulate(const cubecore::Pointer& src, int32_t times, int32_t srcBlkStride,
                       int32_t srcRepStride, const cubecore::Where& at) {
  constexpr uint8_t ub = static_cast<uint8_t>(cubecore::Mem::UB);
  constexpr uint64_t lanes = ONE_REPEAT_BYTE_SIZE / sizeof(T);
  if (core_state().counts)
    times = static_cast<int32_t>((core_state().mask_low + lanes - 1) / lanes);
  uint64_t bytes = (static_cast<uint64_t>(times) * sizeof(T) + 31) / 32 * 32 + 32;
  uint64_t most = memory_bytes(ub) / 32 * 32, used = core_state().used[ub];
  if (used + bytes > most)
    found_full("vcadd", "the buffers and the sums of repeats", most, used + bytes, at);
  LocalTensor<T> sums(TPosition::VECCALC, static_cast<uint32_t>(most - bytes),
                      static_cast<uint32_t>(times));
  cubecore::issue("asc_repeat_reduce_sum", at, sums.pointer(), src, times, 1, srcBlkStride,
                  srcRepStride);
  LocalTensor<T> sum = sums;
  if (times > 1) {
    barrier(PIPE_V, at);
    sum = LocalTensor<T>(TPosition::VECCALC, static_cast<uint32_t>(most - 32), 32 / sizeof(T));
    sum_through(sum, sums, sums, times, at);
  }
  core_state().sum = sum.element(0);
}

}  // namespace detail
}  // namespace AscendC

template <typename D, typename T>
inline void vcadd(D* dst, T* src, int32_t times, int32_t dstRepStride, int32_t srcBlkStride,
                  int32_t srcRepStride, bool mode = false, CUBECORE_AT) {
  cubecore::Pointer from = cubecore::operand(cubecore::Mem::UB, src);
  if (mode)
    AscendC::detail::accumulate<T>(from, times, srcBlkStride, srcRepStride, at);
  else
    cubecore::issue("asc_repeat_reduce_sum", at, cubecore::operand(cubecore::Mem::UB, dst), from,
                    times, dstRepStride, srcBlkStride, srcRepStride);
}
template <typename T>
inline void vcadd(std::nullptr_t, T* src, int32_t times, int32_t dstRepStride, int32_t srcBlkStride,
                  int32_t srcRepStride, bool mode, CUBECORE_AT) {
  vcadd(static_cast<T*>(nullptr), src, times, dstRepStride, srcBlkStride, srcRepStride, mode, at);
}
inline int64_t get_acc_val(CUBECORE_AT) { return AscendC::GetAccVal(at); }
