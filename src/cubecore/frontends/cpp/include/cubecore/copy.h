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

// Page SetPadValue(ISASI).
template <typename T, TPosition pos = TPosition::MAX>
inline void SetPadValue(T paddingValue, CUBECORE_AT) {
  cubecore::issue("asc_set_copy_pad_val", at, detail::bits_of(paddingValue));
}

// Gaps of UB are in blocks of 32 B, those of global memory in bytes.
template <typename T>
inline void DataCopyPad(const LocalTensor<T>& dst, const GlobalTensor<T>& src,
                        const DataCopyExtParams& p, const DataCopyPadExtParams<PrimT<T>>& pad,
                        CUBECORE_AT) {
  if (pad.isPad) SetPadValue(pad.paddingValue, at);
  cubecore::issue("asc_copy_gm2ub_align", at, dst.pointer(), src.pointer(), p.blockCount,
                  p.blockLen, pad.isPad ? pad.leftPadding : uint8_t{0},
                  pad.isPad ? pad.rightPadding : uint8_t{0}, p.srcStride, p.dstStride);
}

template <typename T>
inline void DataCopyPad(const LocalTensor<T>& dst, const GlobalTensor<T>& src,
                        const DataCopyParams& p, const DataCopyPadParams& pad, CUBECORE_AT) {
  if (pad.isPad) cubecore::issue("asc_set_copy_pad_val", at, pad.paddingValue);
  cubecore::issue("asc_copy_gm2ub_align", at, dst.pointer(), src.pointer(), p.blockCount,
                  p.blockLen, pad.isPad ? pad.leftPadding : uint8_t{0},
                  pad.isPad ? pad.rightPadding : uint8_t{0}, p.srcStride, p.dstStride);
}

template <typename T>
inline void DataCopyPad(const GlobalTensor<T>& dst, const LocalTensor<T>& src,
                        const DataCopyExtParams& p, CUBECORE_AT) {
  cubecore::issue("asc_copy_ub2gm_align", at, dst.pointer(), src.pointer(), p.blockCount,
                  p.blockLen, 0, 0, p.srcStride, p.dstStride);
}

template <typename T>
inline void DataCopyPad(const GlobalTensor<T>& dst, const LocalTensor<T>& src,
                        const DataCopyParams& p, CUBECORE_AT) {
  cubecore::issue("asc_copy_ub2gm_align", at, dst.pointer(), src.pointer(), p.blockCount,
                  p.blockLen, 0, 0, p.srcStride, p.dstStride);
}

template <typename T>
inline void DataCopy(const LocalTensor<T>& dst, const GlobalTensor<T>& src, const Nd2NzParams& p,
                     CUBECORE_AT) {
  cubecore::issue("asc_copy_gm2l1_nd2nz", at, dst.pointer(), src.pointer(), p.ndNum, p.nValue,
                  p.dValue, p.srcNdMatrixStride, p.srcDValue, p.dstNzC0Stride, p.dstNzNStride,
                  p.dstNzMatrixStride);
}

}  // namespace AscendC
