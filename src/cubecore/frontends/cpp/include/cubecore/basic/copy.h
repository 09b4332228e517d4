// Moves between global memory and UB or L1. Pages: "DataCopy（GM与UB连续数据搬运）" and its kin,
// DataCopyPad, SetPadValue(ISASI).
#pragma once

#include "cubecore/basic/params.h"
#include "cubecore/basic/tensors.h"
#include "cubecore/cube/copy.h"
#include "cubecore/seam/notes.h"
#include "cubecore/sync/queue.h"

namespace AscendC {

namespace detail {

constexpr const char* load_call(uint8_t mem) {
  return mem == 2 ? "asc_copy_gm2l1" : "asc_copy_gm2ub";
}

}  // namespace detail

// The length is a multiple of 32 B; of another the last bytes are not copied: DataCopyPad copies them.
template <typename T>
inline void DataCopy(const LocalTensor<T>& dst, const GlobalTensor<T>& src, const uint32_t count,
                     CUBECORE_AT) {
  const bool to_ub = dst.memory() == memory_of(TPosition::VECIN);
  const uint64_t bytes = cubecore::is_950 && to_ub
                             ? static_cast<uint64_t>(cubecore::bytes_of<PrimT<T>>(count))
                             : detail::copied_bytes<PrimT<T>>(count, to_ub, at);
  if (bytes == 0 && count != 0) return;
  cubecore::issue(detail::load_call(dst.memory()), at, dst.pointer(), src.pointer(), bytes);
}

// The length is a multiple of 32 B; of another the last bytes are not copied: DataCopyPad copies them.
template <typename T>
inline void DataCopy(const GlobalTensor<T>& dst, const LocalTensor<T>& src, const uint32_t count,
                     CUBECORE_AT) {
  detail::store_count(dst, src, count, at);
}

template <typename T>
inline void DataCopy(const LocalTensor<T>& dst, const LocalTensor<T>& src, const uint32_t count,
                     CUBECORE_AT) {
  detail::between(dst, src, count, at);
}

template <typename T>
inline void DataCopy(const LocalTensor<T>& dst, const GlobalTensor<T>& src,
                     const DataCopyParams& repeatParams, CUBECORE_AT) {
  if (cubecore::is_950 && dst.memory() == memory_of(TPosition::VECIN))
    detail::byte_runs("asc_copy_gm2ub", dst, src, repeatParams, at);
  else
    cubecore::issue(detail::load_call(dst.memory()), at, dst.pointer(), src.pointer(),
                    repeatParams.blockCount, repeatParams.blockLen, repeatParams.srcStride,
                    repeatParams.dstStride);
}

template <typename T>
inline void DataCopy(const GlobalTensor<T>& dst, const LocalTensor<T>& src,
                     const DataCopyParams& repeatParams, CUBECORE_AT) {
  detail::store_runs(dst, src, repeatParams, at);
}

template <typename T, typename U>
inline void DataCopy(const LocalTensor<T>& dst, const LocalTensor<U>& src,
                     const DataCopyParams& repeatParams, CUBECORE_AT) {
  detail::between_runs(dst, src, repeatParams, at);
}

// Page "DataCopy（L0C到UB数据搬运）": A2, A3 and 950 ignore the last parameter.
template <typename D, typename S>
inline void DataCopy(const D& dst, const S& src, const DataCopyParams& intriParams,
                     const DataCopyEnhancedParams&, CUBECORE_AT) {
  DataCopy(dst, src, intriParams, at);
}

// Page SetPadValue(ISASI): the value of later copies whose isPad is false.
template <typename T, TPosition pos = TPosition::MAX>
inline void SetPadValue(T paddingValue, CUBECORE_AT) {
  detail::CoreState& state = detail::core_state();
  state.pads = true;
  state.pad = detail::bits_of(paddingValue);
  cubecore::issue("asc_set_copy_pad_val", at, state.pad);
}

namespace detail {

// The instruction has no types of 64 bits, of which only 0 can be padded: halves, then.
template <typename T>
inline cubecore::Pointer halves(const T& tensor) {
  cubecore::Pointer pointer = tensor.pointer();
  if constexpr (sizeof(typename T::PrimType) == 8) pointer.type = cubecore::Element<int32_t>::name;
  return pointer;
}

// Page DataCopyPad: what isPad says is set for this copy alone. Without it and without
// SetPadValue the padding is what nobody knows: it is left as it was.
template <typename T, typename P>
inline void padded_load(const LocalTensor<T>& dst, const GlobalTensor<T>& src, const P& p,
                        bool isPad, uint8_t left, uint8_t right, uint64_t value, bool compact,
                        const cubecore::Where& at) {
  CoreState& state = core_state();
  if (isPad) cubecore::issue("asc_set_copy_pad_val", at, value);
  const uint8_t lanes = !(isPad || state.pads) ? 0 : sizeof(PrimT<T>) == 8 ? 2 : 1;
  if constexpr (cubecore::is_950) {
    const int64_t wide = sizeof(PrimT<T>) == 8 ? 4 : static_cast<int64_t>(sizeof(PrimT<T>));
    const int64_t length = p.blockLen;
    const int64_t whole = (length + (left + right) * lanes * wide + 31) / 32 * 32;
    cubecore::issue("asc_copy_gm2ub_align", at, halves(dst), halves(src), p.blockCount, p.blockLen,
                    static_cast<uint8_t>(left * lanes), static_cast<uint8_t>(right * lanes),
                    isPad || state.pads, 0, length + p.srcStride,
                    compact ? length : whole + p.dstStride * int64_t{32});
    if (isPad && state.pads) cubecore::issue("asc_set_copy_pad_val", at, state.pad);
    return;
  }
  cubecore::issue("asc_copy_gm2ub_align", at, halves(dst), halves(src), p.blockCount, p.blockLen,
                  static_cast<uint8_t>(left * lanes), static_cast<uint8_t>(right * lanes),
                  p.srcStride, p.dstStride);
  if (isPad && state.pads) cubecore::issue("asc_set_copy_pad_val", at, state.pad);
}

template <PaddingMode mode>
constexpr void require_padding() {
  static_assert(cubecore::is_950 || mode == PaddingMode::Normal,
                "DataCopyPad.mode must be PaddingMode::Normal on 2201, got Compact");
}

template <typename T, typename P>
inline void unpadded_store(const GlobalTensor<T>& dst, const LocalTensor<T>& src, const P& p,
                           bool compact, const cubecore::Where& at) {
  note_atomic<PrimT<T>>("DataCopyPad", at);
  if constexpr (cubecore::is_950) {
    const int64_t length = p.blockLen, whole = (length + 31) / 32 * 32;
    cubecore::issue("asc_copy_ub2gm_align", at, halves(dst), halves(src), p.blockCount, p.blockLen,
                    0, length + p.dstStride, compact ? length : whole + p.srcStride * int64_t{32});
  } else {
    cubecore::issue("asc_copy_ub2gm_align", at, halves(dst), halves(src), p.blockCount, p.blockLen,
                    0, 0, p.srcStride, p.dstStride);
  }
}

}  // namespace detail

// Gaps of UB are in blocks of 32 B, those of global memory in bytes.
// Of architecture 3510 alone: runs that follow each other in UB (PaddingMode::Compact).
template <typename T, PaddingMode mode = PaddingMode::Normal>
inline void DataCopyPad(const LocalTensor<T>& dst, const GlobalTensor<T>& src,
                        const DataCopyExtParams& p, const DataCopyPadExtParams<PrimT<T>>& pad,
                        CUBECORE_AT) {
  detail::require_padding<mode>();
  detail::padded_load(dst, src, p, pad.isPad, pad.leftPadding, pad.rightPadding,
                      detail::bits_of(pad.paddingValue), mode == PaddingMode::Compact, at);
}

template <typename T, PaddingMode mode = PaddingMode::Normal>
inline void DataCopyPad(const LocalTensor<T>& dst, const GlobalTensor<T>& src,
                        const DataCopyParams& p, const DataCopyPadParams& pad, CUBECORE_AT) {
  detail::require_padding<mode>();
  detail::padded_load(dst, src, p, pad.isPad, pad.leftPadding, pad.rightPadding, pad.paddingValue,
                      mode == PaddingMode::Compact, at);
}

template <typename T, PaddingMode mode = PaddingMode::Normal>
inline void DataCopyPad(const GlobalTensor<T>& dst, const LocalTensor<T>& src,
                        const DataCopyExtParams& p, CUBECORE_AT) {
  detail::require_padding<mode>();
  detail::unpadded_store(dst, src, p, mode == PaddingMode::Compact, at);
}

template <typename T, PaddingMode mode = PaddingMode::Normal>
inline void DataCopyPad(const GlobalTensor<T>& dst, const LocalTensor<T>& src,
                        const DataCopyParams& p, CUBECORE_AT) {
  detail::require_padding<mode>();
  detail::unpadded_store(dst, src, p, mode == PaddingMode::Compact, at);
}

// Without a page: public kernels call these over pointers, for elements of 64 bits as of 32.
template <typename T, typename P, typename Pad>
inline void DataCopyPadGm2UBImpl(T* dst, T* src, const P& params, const Pad& pad, CUBECORE_AT) {
  LocalTensor<T> to;
  GlobalTensor<T> from;
  to.Place(TPosition::VECIN, reinterpret_cast<int64_t>(dst), 0, nullptr);
  from.SetGlobalBuffer(src);
  DataCopyPad(to, from, params, pad, at);
}
template <typename T, typename P>
inline void DataCopyPadUB2GMImpl(T* dst, T* src, const P& params, CUBECORE_AT) {
  LocalTensor<T> from;
  GlobalTensor<T> to;
  from.Place(TPosition::VECOUT, reinterpret_cast<int64_t>(src), 0, nullptr);
  to.SetGlobalBuffer(dst);
  DataCopyPad(to, from, params, at);
}

template <typename T, bool enableSmallC0 = false>
inline void DataCopy(const LocalTensor<T>& dst, const GlobalTensor<T>& src, const Nd2NzParams& p,
                     CUBECORE_AT) {
  static_assert(cubecore::is_950 || !enableSmallC0,
                "DataCopy.enableSmallC0 must be false but on Ascend 950, got true");
  if constexpr (enableSmallC0) {
    using cubecore::named;
    if (p.ndNum == 0 || p.nValue == 0 || p.dValue == 0) return;
    constexpr uint64_t size = sizeof(PrimT<T>);
    detail::set_nz_para(p.ndNum, p.dstNzNStride, p.dstNzC0Stride,
                        p.dstNzMatrixStride * size / ONE_BLK_SIZE, at);
    cubecore::issue("copy_gm_to_cbuf_multi_nd2nz_v2", at, detail::as_bytes(dst),
                    detail::as_bytes(src), named("n_value", p.nValue), named("d_value", p.dValue),
                    named("loop1_src_stride", p.srcDValue * size),
                    named("loop4_src_stride", p.srcNdMatrixStride * size),
                    named("smallc0_en", true));
    return;
  }
  constexpr uint32_t width = ONE_BLK_SIZE / sizeof(PrimT<T>) * (std::is_same_v<T, int4b_t> ? 2 : 1);
  const uint32_t apart = p.dstNzNStride > 1 ? p.dstNzNStride : 1;
  if (p.ndNum > 0 && p.nValue > 0 && p.dValue > width && p.dstNzC0Stride % apart == 0)
    detail::note_stride("DataCopy", "dstNzC0Stride", (p.nValue - 1u) * apart + 1,
                        "columns of nValue rows", p.dstNzC0Stride, at);
  cubecore::issue("asc_copy_gm2l1_nd2nz", at, detail::as_bytes(dst), detail::as_bytes(src), p.ndNum,
                  p.nValue, p.dValue, p.srcNdMatrixStride, p.srcDValue, p.dstNzC0Stride,
                  p.dstNzNStride, p.dstNzMatrixStride);
}

#if __NPU_ARCH__ == 3510
// Page "DataCopy（UBToGM随路转换NZ2ND搬运）", of software: a store for each 16 columns of a matrix.
template <typename T>
inline void DataCopy(const GlobalTensor<T>& dst, const LocalTensor<T>& src,
                     const Nz2NdParamsFull& p, CUBECORE_AT) {
  constexpr uint32_t width = 16, square = width * width, bytes = width * sizeof(PrimT<T>);
  if (!cubecore::within("DataCopy", "ndNum", p.ndNum, 0, 4095, at) ||
      !cubecore::within("DataCopy", "nValue", p.nValue, 1, 8192, at) ||
      !cubecore::within("DataCopy", "dValue", p.dValue, 1, 8192, at) ||
      !cubecore::within("DataCopy", "srcNdMatrixStride", p.srcNdMatrixStride, 1, 512, at) ||
      !cubecore::within("DataCopy", "srcNStride", p.srcNStride, 0, 4096, at) ||
      !cubecore::within("DataCopy", "dstDStride", p.dstDStride, 1, 65535, at) ||
      !cubecore::within("DataCopy", "dstNdMatrixStride", p.dstNdMatrixStride, 1, 65535, at))
    return;
  if (p.dValue % width != 0)
    cubecore_refuse("Nz2NdParamsFull.dValue", "be a multiple of 16",
                    detail::Digits(p.dValue, "").text, &at);
  DataCopyExtParams rows;
  rows.blockLen = bytes;
  rows.dstStride = (int64_t{p.dstDStride} - width) * int64_t{sizeof(PrimT<T>)};
  constexpr uint32_t most = 4095;  // rows of a store
  for (uint32_t matrix = 0; matrix < p.ndNum; ++matrix)
    for (uint32_t column = 0; column < p.dValue / width; ++column)
      for (uint32_t row = 0; row < p.nValue; row += most) {
        rows.blockCount = static_cast<uint16_t>(p.nValue - row < most ? p.nValue - row : most);
        DataCopyPad<T, PaddingMode::Compact>(
            dst[matrix * p.dstNdMatrixStride + uint64_t{row} * p.dstDStride + column * width],
            src[matrix * p.srcNdMatrixStride * square + column * p.srcNStride * width +
                row * width],
            rows, at);
      }
}
#endif

namespace detail {

// The slices of a tensor one after another: where each begins, counted in elements.
class Slices {
 public:
  Slices(const SliceInfo* info, uint32_t dims, uint32_t elements)
      : info_(info), dims_(dims), burst_(elements) {
    for (uint32_t n = 0; n < dims_ && n < K_MAX_DIM; ++n) at_[n] = info_[n].startIndex;
  }
  bool More() const { return !done_; }
  uint64_t Start() const {
    uint64_t start = 0, unit = 1;
    for (uint32_t n = 0; n < dims_ && n < K_MAX_DIM; ++n) {
      start += at_[n] * unit;
      unit *= info_[n].shapeValue;
    }
    return start;
  }
  void Next() {
    for (uint32_t n = 0; n < dims_ && n < K_MAX_DIM; ++n) {
      at_[n] += info_[n].stride + (n == 0 ? burst_ : 1);
      if (at_[n] <= info_[n].endIndex) return;
      at_[n] = info_[n].startIndex;
    }
    done_ = true;
  }

 private:
  const SliceInfo* info_;
  uint32_t dims_, burst_;
  uint64_t at_[K_MAX_DIM] = {};
  bool done_ = false;
};

// Whether the slices of a tensor lie in its shape, each a length of whole blocks.
inline bool in_shape(const SliceInfo* info, uint32_t dims, uint32_t burst,
                     const cubecore::Where& at) {
  bool right =
      cubecore::within("DataCopy", "burstLen of both slices", info->burstLen, burst, burst, at);
  for (uint32_t n = 0; n < dims; ++n) {
    const SliceInfo& each = info[n];
    if (each.shapeValue != 0)
      right &= cubecore::within("DataCopy", "endIndex", each.endIndex, 0, each.shapeValue - 1, at);
    right &= cubecore::within("DataCopy", "startIndex", each.startIndex, 0, each.endIndex, at);
  }
  return right;
}

template <typename D, typename S, typename Copy>
inline void sliced(const D& dst, const S& src, const SliceInfo* to, const SliceInfo* from,
                   uint32_t dims, uint32_t bits, const cubecore::Where& at, const Copy& copy) {
  if (!cubecore::within("DataCopy", "dimValue", dims, 1, K_MAX_DIM, at) ||
      !cubecore::within("DataCopy", "burstLen", from[0].burstLen, 1, 65535, at) ||
      !in_shape(from, dims, from[0].burstLen, at) || !in_shape(to, dims, from[0].burstLen, at))
    return;
  uint32_t elements = from[0].burstLen * 256 / bits;
  Slices targets(to, dims, to[0].burstLen * 256 / bits), sources(from, dims, elements);
  for (; sources.More() && targets.More(); sources.Next(), targets.Next())
    copy(dst[static_cast<uint32_t>(targets.Start())], src[static_cast<uint32_t>(sources.Start())],
         from[0].burstLen * 32);
}

}  // namespace detail

// Page "DataCopy（GM与UB切片数据搬运）": slice by slice, each as one block.
template <typename T>
inline void DataCopy(const LocalTensor<T>& dst, const GlobalTensor<T>& src,
                     const SliceInfo dstSliceInfo[], const SliceInfo srcSliceInfo[],
                     const uint32_t dimValue = 1, CUBECORE_AT) {
  detail::sliced(dst, src, dstSliceInfo, srcSliceInfo, dimValue, cubecore::Element<PrimT<T>>::bits,
                 at, [&](const auto& to, const auto& from, uint32_t bytes) {
                   cubecore::issue("asc_copy_gm2ub_align", at, to.pointer(), from.pointer(),
                                   cubecore::named("n_burst", 1),
                                   cubecore::named("len_burst", bytes));
                 });
}
template <typename T>
inline void DataCopy(const GlobalTensor<T>& dst, const LocalTensor<T>& src,
                     const SliceInfo dstSliceInfo[], const SliceInfo srcSliceInfo[],
                     const uint32_t dimValue = 1, CUBECORE_AT) {
  detail::sliced(dst, src, dstSliceInfo, srcSliceInfo, dimValue, cubecore::Element<PrimT<T>>::bits,
                 at, [&](const auto& to, const auto& from, uint32_t bytes) {
                   cubecore::issue("asc_copy_ub2gm_align", at, to.pointer(), from.pointer(),
                                   cubecore::named("n_burst", 1),
                                   cubecore::named("len_burst", bytes));
                 });
}

}  // namespace AscendC
