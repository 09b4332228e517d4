// Steps of the vendor's library over raw pointers, which public kernels call. No page has them:
// their parameters and meaning are those of the functions of their names over tensors.
#pragma once

#include "cubecore/basic/copy.h"
#include "cubecore/basic/reduce.h"
#include "cubecore/seam/local.h"

namespace AscendC {
namespace detail {

// A tensor of the unified buffer from a pointer on.
template <typename T>
inline LocalTensor<T> local_at(T* start) {
  int64_t address = cubecore::operand(cubecore::Mem::UB, start).address;
  uint64_t most = memory_bytes(static_cast<uint8_t>(cubecore::Mem::UB));
  uint64_t left = static_cast<uint64_t>(address) < most ? most - static_cast<uint64_t>(address) : 0;
  return LocalTensor<T>(TPosition::VECCALC, static_cast<uint32_t>(address),
                        static_cast<uint32_t>(left / sizeof(T)));
}
template <typename T>
inline GlobalTensor<T> global_at(T* start) {
  GlobalTensor<T> made;
  made.SetGlobalBuffer(start);
  return made;
}

}  // namespace detail

template <typename T>
inline void DataCopyUB2GMImpl(T* dst, T* src, const DataCopyParams& params, CUBECORE_AT) {
  DataCopy(detail::global_at(dst), detail::local_at(src), params, at);
}
template <typename T, typename S>
inline void DuplicateImpl(T* dst, S value, int32_t count, CUBECORE_AT) {
  Duplicate(detail::local_at(dst), static_cast<T>(value), count, at);
}
template <typename T>
inline void DuplicateIntrinsicsImpl(T* dst, T value, uint8_t repeat, uint16_t dstBlkStride,
                                    uint8_t dstRepStride, CUBECORE_AT) {
  cubecore::issue_raw("asc_duplicate", at, cubecore::operand(cubecore::Mem::UB, dst),
                      cubecore::plain(value), repeat, dstBlkStride, dstRepStride);
}
#define CUBECORE_BLOCK_STEP(NAME, CALL)                                                       \
  template <typename T>                                                                       \
  inline void NAME##IntrinsicsImpl(T* dst, T* src, int32_t repeat, int32_t dstRepStride,      \
                                   int32_t srcBlkStride, int32_t srcRepStride, CUBECORE_AT) { \
    detail::reduced(CALL, detail::local_at(dst), detail::local_at(src), repeat, dstRepStride, \
                    srcBlkStride, srcRepStride, at);                                          \
  }
CUBECORE_BLOCK_STEP(BlockReduceMax, "asc_datablock_reduce_max")
CUBECORE_BLOCK_STEP(BlockReduceMin, "asc_datablock_reduce_min")
CUBECORE_BLOCK_STEP(BlockReduceSum, "asc_datablock_reduce_sum")
#undef CUBECORE_BLOCK_STEP

}  // namespace AscendC
