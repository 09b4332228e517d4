// Loads of the Cube's operands. Pages: "LoadData（2D矩阵搬运）", "LoadData（GMToL1-2D矩阵搬运）",
// "LoadData（卷积数据搬运）", LoadDataWithTranspose, LoadDataWithSparse, Fill, SetFmatrix,
// SetLoadDataPaddingValue, SetLoadDataRepeat, SetLoadDataBoundary; on 950 LoadDataWithStride,
// SetLoadDataRepeatWithStride, "LoadData（GMToL1-2D矩阵搬运V2）".
#pragma once

#include "cubecore/basic/tensors.h"
#include "cubecore/cube/params.h"

namespace AscendC {

namespace detail {

constexpr uint8_t in_l0a = memory_of(TPosition::A2), in_l0b = memory_of(TPosition::B2),
                  in_l1 = memory_of(TPosition::A1);

// Fractals move whole: 16-bit integers as halves, which the instruction knows.
template <typename T>
inline cubecore::Pointer fractals(const T& tensor) {
  cubecore::Pointer pointer = tensor.pointer();
  if constexpr (std::is_same_v<typename T::PrimType, int16_t> ||
                std::is_same_v<typename T::PrimType, uint16_t>)
    pointer.type = cubecore::Element<half>::name;
  return pointer;
}

}  // namespace detail

template <typename T>
inline void LoadData(const LocalTensor<T>& dst, const LocalTensor<T>& src,
                     const LoadData2DParams& p, CUBECORE_AT) {
  if (!cubecore::within("LoadData", "addrMode", p.addrMode, 0, 1, at)) return;
  using cubecore::named;
  bool left = dst.memory() == detail::in_l0a;
  if (!p.ifTranspose) {
    cubecore::issue(left ? "load_cbuf_to_ca" : "load_cbuf_to_cb", at, detail::fractals(dst),
                    detail::fractals(src), p.startIndex, p.repeatTimes, p.srcStride, p.dstGap,
                    named("decrement", p.addrMode != 0));
    return;
  }
  if (cubecore::Element<PrimT<T>>::bits != 16)
    cubecore_refuse("LoadData2DParams.ifTranspose", "be false but for elements of 16 bits", "true",
                    &at);
  cubecore::issue(left ? "asc_copy_l12l0a_trans" : "asc_copy_l12l0b_trans", at, dst.pointer(),
                  src.pointer(), p.startIndex, p.repeatTimes, p.srcStride, p.dstGap,
                  named("decrement", p.addrMode != 0));
}

template <typename T>
inline void LoadData(const LocalTensor<T>& dst, const GlobalTensor<T>& src,
                     const LoadData2DParams& p, CUBECORE_AT) {
  if (!cubecore::within("LoadData", "addrMode", p.addrMode, 0, 1, at)) return;
  uint8_t mem = dst.memory();
  cubecore::issue(mem == detail::in_l0a   ? "load_gm_to_ca"
                  : mem == detail::in_l0b ? "load_gm_to_cb"
                                          : "load_gm_to_cbuf",
                  at, detail::fractals(dst), detail::fractals(src), p.startIndex, p.repeatTimes,
                  p.srcStride, p.dstGap, cubecore::named("decrement", p.addrMode != 0));
}

// Page LoadData_2D_V2: not of 2201.
template <typename T>
inline void LoadData(const LocalTensor<T>& dst, const LocalTensor<T>& src,
                     const LoadData2DParamsV2& p, CUBECORE_AT) {
  using cubecore::named;
  if (!cubecore::is_950)
    cubecore_refuse("LoadData", "take LoadData2DParams on architecture 2201", "LoadData2DParamsV2",
                    &at);
  constexpr const char* calls[2][2] = {{"load_cbuf_to_cb_v2", "load_cbuf_to_cb_v2_transpose"},
                                       {"load_cbuf_to_ca_v2", "load_cbuf_to_ca_v2_transpose"}};
  cubecore::issue(calls[dst.memory() == detail::in_l0a][p.ifTranspose], at, dst.pointer(),
                  src.pointer(), named("m_start_position", p.mStartPosition),
                  named("k_start_position", p.kStartPosition), named("m_step", p.mStep),
                  named("k_step", p.kStep), named("src_stride", p.srcStride),
                  named("dst_stride", p.dstStride));
}

#if __NPU_ARCH__ == 3510
// Page "LoadData（GMToL1-2D矩阵搬运V2）": mStep fractals in a row for each 32 B of K.
template <typename T>
inline void LoadData(const LocalTensor<T>& dst, const GlobalTensor<T>& src,
                     const LoadData2DParamsV2& p, CUBECORE_AT) {
  if (p.ifTranspose)
    cubecore_refuse("LoadData2DParamsV2.ifTranspose", "be false for a load from GM", "true", &at);
  if (!cubecore::within("LoadData", "mStep", p.mStep, 0, 255, at) ||
      !cubecore::within("LoadData", "kStep", p.kStep, 0, 255, at) || p.mStep == 0 || p.kStep == 0)
    return;
  const int64_t first = int64_t{p.kStartPosition} * p.srcStride + p.mStartPosition;
  for (int64_t k = 0; k < p.kStep; ++k) {
    cubecore::Pointer to = dst.pointer(), from = src.pointer();
    to.address += k * p.dstStride * BYTE_PER_FRACTAL;
    from.address += (first + k * p.srcStride) * BYTE_PER_FRACTAL;
    cubecore::issue("asc_copy_gm2l1", at, to, from, p.mStep * BYTE_PER_FRACTAL);
  }
}
#endif

template <typename T>
inline void LoadDataWithTranspose(const LocalTensor<T>& dst, const LocalTensor<T>& src,
                                  const LoadData2dTransposeParams& p, CUBECORE_AT) {
  if (!cubecore::within("LoadDataWithTranspose", "addrMode", p.addrMode, 0, 1, at)) return;
  using cubecore::named;
  constexpr uint32_t unit = cubecore::steps_of_square(cubecore::Element<PrimT<T>>::bits);
  cubecore::issue(
      dst.memory() == detail::in_l0a ? "asc_copy_l12l0a_trans" : "asc_copy_l12l0b_trans", at,
      dst.pointer(), src.pointer(), p.startIndex * unit, p.repeatTimes, p.srcStride * unit,
      p.dstGap, named("decrement", p.addrMode != 0), named("dst_frac_gap", p.dstFracGap));
}
#if __NPU_ARCH__ == 3510
template <typename T>
inline void LoadDataWithTranspose(const LocalTensor<T>& dst, const LocalTensor<T>& src,
                                  const LoadData2dTransposeParamsV2& p, CUBECORE_AT) {
  if (!cubecore::within("LoadDataWithTranspose", "addrMode", p.addrMode, 0, 1, at)) return;
  cubecore::issue("asc_copy_l12l0b_trans", at, dst.pointer(), src.pointer(), p.startIndex,
                  p.repeatTimes, p.srcStride, p.dstGap, p.dstFracGap, p.srcFracGap,
                  cubecore::named("decrement", p.addrMode != 0));
}
#endif

template <typename T, typename U>
inline void LoadDataWithSparse(const LocalTensor<T>& dst, const LocalTensor<T>& src,
                               const LocalTensor<U>& idx, const LoadData2DParams& p, CUBECORE_AT) {
  static_assert(std::is_same_v<PrimT<T>, int8_t> && std::is_same_v<PrimT<U>, uint8_t>,
                "LoadDataWithSparse must load int8_t by an index of uint8_t, got another type");
  cubecore::Pointer index = idx.pointer();
  index.type = cubecore::Element<int8_t>::name;  // as the instruction has it
  cubecore::issue("asc_copy_l12l0b_sparse", at, dst.pointer(), src.pointer(), index, p.startIndex,
                  p.repeatTimes);
}

inline void SetFmatrix(uint16_t l1H, uint16_t l1W, const uint8_t padList[4],
                       const FmatrixMode& fmatrixMode, CUBECORE_AT) {
  cubecore::issue(
      fmatrixMode == FmatrixMode::FMATRIX_LEFT ? "asc_set_l13d_fmatrix" : "asc_set_l13d_fmatrix_b",
      at, l1H, l1W, padList[0], padList[1], padList[2], padList[3]);
}
// No page has them; public kernels call them before loads of LoadData3DParamsV2Pro.
inline void Load3DSetFMatrixCal(uint16_t l1H, uint16_t l1W, const uint8_t padList[4], CUBECORE_AT) {
  SetFmatrix(l1H, l1W, padList, FmatrixMode::FMATRIX_LEFT, at);
}
inline void Load3DSetFMatrixBCal(uint16_t l1H, uint16_t l1W, const uint8_t padList[4],
                                 CUBECORE_AT) {
  SetFmatrix(l1H, l1W, padList, FmatrixMode::FMATRIX_RIGHT, at);
}

template <typename T>
inline void SetLoadDataPaddingValue(const T padValue, CUBECORE_AT) {
  cubecore::issue("asc_set_l13d_padding", at, detail::bits_of(padValue));
}

#if __NPU_ARCH__ == 3510
inline void SetLoadDataRepeat(const LoadDataRepeatParam& p, CUBECORE_AT) {
  cubecore::issue("set_l3d_rpt_v2", at, p.repeatStride, p.repeatTime, p.repeatMode, p.dstStride);
}
inline void SetLoadDataRepeatWithStride(const LoadDataRepeatParamWithStride& p, CUBECORE_AT) {
  cubecore::issue("set_l3d_rpt_v2", at, p.repeatStride, p.repeatTime, p.repeatMode, p.dstStride);
}
#else
inline void SetLoadDataRepeat(const LoadDataRepeatParam& p, CUBECORE_AT) {
  cubecore::issue("asc_set_l13d_rpt", at, p.repeatStride, p.repeatTime, p.repeatMode);
}
#endif

inline void SetLoadDataBoundary(uint32_t boundaryValue, CUBECORE_AT) {
  cubecore::issue("asc_set_l13d_size", at, boundaryValue);
}

namespace detail {

// Numbers that no struct holds twice: those of V2 and what V2Pro packs.
struct Window {
  uint16_t k, m, k_at, m_at;
  uint8_t stride_w, stride_h, filter_w, filter_h, dilation_w, dilation_h;
  bool wide, high, transpose, right;
  uint16_t channels;
};

inline void load_window(bool left, const cubecore::Pointer& dst, const cubecore::Pointer& src,
                        const Window& w, const cubecore::Where& at) {
  bool nothing = w.channels == 0 || w.k == 0 || w.m == 0 || (w.filter_w == 0 && !w.wide) ||
                 (w.filter_h == 0 && !w.high);
  if (nothing || !cubecore::within("LoadData", "mStartPt", w.m_at, 0, 32767, at)) return;
#if __NPU_ARCH__ == 3510
  const char* name = left ? "img2colv2_cbuf_to_ca_v2" : "img2colv2_cbuf_to_cb_v2";
#else
  const char* name = left ? "img2colv2_cbuf_to_ca" : "img2colv2_cbuf_to_cb";
#endif
  cubecore::issue(name, at, dst, src, w.k, w.m, w.k_at, w.m_at, w.stride_w, w.stride_h, w.filter_w,
                  w.filter_h, w.dilation_w, w.dilation_h, w.wide, w.high, left && w.transpose,
                  w.right, w.channels);
}

}  // namespace detail

template <typename T, const IsResetLoad3dConfig& defaultConfig = IS_RESER_LOAD3D_DEFAULT_CONFIG>
inline void LoadData(const LocalTensor<T>& dst, const LocalTensor<T>& src,
                     const LoadData3DParamsV2<PrimT<T>>& p, CUBECORE_AT) {
  if (p.l1H == 0 || p.l1W == 0) return;
  if constexpr (defaultConfig.isSetFMatrix)
    SetFmatrix(p.l1H, p.l1W, p.padList,
               p.fMatrixCtrl ? FmatrixMode::FMATRIX_RIGHT : FmatrixMode::FMATRIX_LEFT, at);
  if constexpr (defaultConfig.isSetPadding) SetLoadDataPaddingValue(p.padValue, at);
  detail::load_window(dst.memory() == detail::in_l0a, dst.pointer(), src.pointer(),
                      {p.kExtension, p.mExtension, p.kStartPt, p.mStartPt, p.strideW, p.strideH,
                       p.filterW, p.filterH, p.dilationFilterW, p.dilationFilterH, p.filterSizeW,
                       p.filterSizeH, p.enTranspose, p.fMatrixCtrl, p.channelSize},
                      at);
}

#if __NPU_ARCH__ == 3510
template <typename T, const IsResetLoad3dConfig& defaultConfig = IS_RESER_LOAD3D_DEFAULT_CONFIG>
inline void LoadDataWithStride(const LocalTensor<T>& dst, const LocalTensor<T>& src,
                               const LoadData3DParamsV2<PrimT<T>>& p, CUBECORE_AT) {
  LoadData<T, defaultConfig>(dst, src, p, at);
}
#endif

template <typename T>
inline void LoadData(const LocalTensor<T>& dst, const LocalTensor<T>& src,
                     const LoadData3DParamsV2Pro& p, CUBECORE_AT) {
  auto part = [](uint64_t word, uint32_t shift) { return static_cast<uint16_t>(word >> shift); };
  auto byte = [](uint64_t word, uint32_t shift) { return static_cast<uint8_t>(word >> shift); };
  uint64_t e = p.extConfig, f = p.filterConfig;
  detail::load_window(dst.memory() == detail::in_l0a, dst.pointer(), src.pointer(),
                      {part(e, 0), part(e, 16), part(e, 32), part(e, 48), byte(f, 0), byte(f, 8),
                       byte(f, 16), byte(f, 24), byte(f, 32), byte(f, 40), p.filterSizeW,
                       p.filterSizeH, p.enTranspose, p.fMatrixCtrl, p.channelSize},
                      at);
}

template <typename T>
inline void Fill(const LocalTensor<T>& dst, const InitConstValueParams<PrimT<T>>& p, CUBECORE_AT) {
  uint8_t mem = dst.memory();
  cubecore::issue(mem == detail::in_l0a   ? "asc_fill_l0a"
                  : mem == detail::in_l0b ? "asc_fill_l0b"
                                          : "asc_fill_l1",
                  at, dst.pointer(), detail::bits_of(p.initValue), p.repeatTimes, p.blockNum,
                  p.dstGap);
}
template <typename T>
inline void InitConstValue(const LocalTensor<T>& dst, const InitConstValueParams<PrimT<T>>& p,
                           CUBECORE_AT) {
  Fill(dst, p, at);
}

}  // namespace AscendC
