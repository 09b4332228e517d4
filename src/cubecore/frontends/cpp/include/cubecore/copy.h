// Moves between global memory and UB or L1. Pages: "DataCopy（GM与UB连续数据搬运）" and its kin,
// DataCopyPad, SetPadValue(ISASI).
#pragma once

#include "cubecore/params.h"
#include "cubecore/tensors.h"

namespace AscendC {

namespace detail {

constexpr const char* load_call(uint8_t mem) {
  return mem == 2 ? "asc_copy_gm2l1" : "asc_copy_gm2ub";
}

}  // namespace detail

template <typename T>
inline void DataCopy(const LocalTensor<T>& dst, const GlobalTensor<T>& src, const uint32_t count,
                     CUBECORE_AT) {
  cubecore::issue(detail::load_call(dst.memory()), at, dst.pointer(), src.pointer(),
                  cubecore::bytes_of<PrimT<T>>(count));
}

template <typename T>
inline void DataCopy(const GlobalTensor<T>& dst, const LocalTensor<T>& src, const uint32_t count,
                     CUBECORE_AT) {
  cubecore::issue("asc_copy_ub2gm", at, dst.pointer(), src.pointer(),
                  cubecore::bytes_of<PrimT<T>>(count));
}

template <typename T>
inline void DataCopy(const LocalTensor<T>& dst, const LocalTensor<T>& src, const uint32_t count,
                     CUBECORE_AT) {
  cubecore::issue("asc_copy_ub2ub", at, dst.pointer(), src.pointer(),
                  cubecore::bytes_of<PrimT<T>>(count));
}

template <typename T>
inline void DataCopy(const LocalTensor<T>& dst, const GlobalTensor<T>& src,
                     const DataCopyParams& repeatParams, CUBECORE_AT) {
  cubecore::issue(detail::load_call(dst.memory()), at, dst.pointer(), src.pointer(),
                  repeatParams.blockCount, repeatParams.blockLen, repeatParams.srcStride,
                  repeatParams.dstStride);
}

template <typename T>
inline void DataCopy(const GlobalTensor<T>& dst, const LocalTensor<T>& src,
                     const DataCopyParams& repeatParams, CUBECORE_AT) {
  cubecore::issue("asc_copy_ub2gm", at, dst.pointer(), src.pointer(), repeatParams.blockCount,
                  repeatParams.blockLen, repeatParams.srcStride, repeatParams.dstStride);
}

template <typename T>
inline void DataCopy(const LocalTensor<T>& dst, const LocalTensor<T>& src,
                     const DataCopyParams& repeatParams, CUBECORE_AT) {
  cubecore::issue("asc_copy_ub2ub", at, dst.pointer(), src.pointer(), repeatParams.blockCount,
                  repeatParams.blockLen, repeatParams.srcStride, repeatParams.dstStride);
}

}  // namespace AscendC
