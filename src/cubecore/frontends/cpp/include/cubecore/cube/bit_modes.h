// Loads of the Cube's operands by packed parameters, of architecture 3510 alone. Pages:
// LoadData_2D_BitMode, LoadData_3D_BitMode, SetFmatrixBitMode. Fields lie from the low bits up in
// the order of the pages' tables.
#pragma once

#include "cubecore/cube/load_data.h"

#define CUBECORE_FIELD(NAME, WORD, FIELD, TYPE)                \
  void Set##NAME(TYPE FIELD##_) { WORD##BitMode.FIELD = FIELD##_; } \
  TYPE Get##NAME() const { return static_cast<TYPE>(WORD##BitMode.FIELD); }
#define CUBECORE_WORD(STRUCT, NAME) \
  union {                           \
    uint64_t NAME = 0;              \
    STRUCT NAME##BitMode;           \
  };

namespace AscendC {

struct Load2DBitModeConfig0 {
  uint64_t mStartPosition : 16, kStartPosition : 16, mStep : 8, kStep : 8;
};
struct Load2DBitModeConfig1 {
  uint64_t srcStride : 16, dstStride : 16;
};
struct Load2DBitModeParam {
  CUBECORE_WORD(Load2DBitModeConfig0, config0)
  CUBECORE_WORD(Load2DBitModeConfig1, config1)
  bool ifTranspose = false;

  Load2DBitModeParam() = default;
  Load2DBitModeParam(const LoadData2DParamsV2& p) : ifTranspose(p.ifTranspose) {
    SetMStartPosition(p.mStartPosition);
    SetKStartPosition(p.kStartPosition);
    SetMStep(p.mStep);
    SetKStep(p.kStep);
    SetSrcStride(p.srcStride);
    SetDstStride(p.dstStride);
  }
  CUBECORE_FIELD(MStartPosition, config0, mStartPosition, uint32_t)
  CUBECORE_FIELD(KStartPosition, config0, kStartPosition, uint32_t)
  CUBECORE_FIELD(MStep, config0, mStep, uint16_t)
  CUBECORE_FIELD(KStep, config0, kStep, uint16_t)
  CUBECORE_FIELD(SrcStride, config1, srcStride, int32_t)
  CUBECORE_FIELD(DstStride, config1, dstStride, uint16_t)
  uint64_t GetConfig0() const { return config0; }
  uint64_t GetConfig1() const { return config1; }
};

struct Load3DBitModeConfig0 {
  uint64_t kStep : 16, mStep : 16, kPos : 16, mPos : 16;
};
struct Load3DBitModeConfig1 {
  uint64_t strideW : 6, strideH : 6, Wk : 8, Hk : 8, dilationW : 8, dilationH : 8, filterW : 1,
      filterH : 1, transpose : 1, fmatrixCtrl : 1, sizeChannel : 16;
};
struct Load3DBitModeParam {
  CUBECORE_WORD(Load3DBitModeConfig0, config0)
  CUBECORE_WORD(Load3DBitModeConfig1, config1)

  Load3DBitModeParam() = default;
  template <typename T>
  Load3DBitModeParam(const LoadData3DParamsV2<T>& p) {
    config0BitMode = {p.kExtension, p.mExtension, p.kStartPt, p.mStartPt};
    config1BitMode = {p.strideW,         p.strideH,         p.filterW,     p.filterH,
                      p.dilationFilterW, p.dilationFilterH, p.filterSizeW, p.filterSizeH,
                      p.enTranspose,     p.fMatrixCtrl,     p.channelSize};
  }
  CUBECORE_FIELD(KExtension, config0, kStep, uint16_t)
  CUBECORE_FIELD(MExtension, config0, mStep, uint16_t)
  CUBECORE_FIELD(KStartPt, config0, kPos, uint16_t)
  CUBECORE_FIELD(MStartPt, config0, mPos, uint16_t)
  CUBECORE_FIELD(StrideW, config1, strideW, uint8_t)
  CUBECORE_FIELD(StrideH, config1, strideH, uint8_t)
  CUBECORE_FIELD(FilterW, config1, Wk, uint8_t)
  CUBECORE_FIELD(FilterH, config1, Hk, uint8_t)
  CUBECORE_FIELD(DilationFilterW, config1, dilationW, uint8_t)
  CUBECORE_FIELD(DilationFilterH, config1, dilationH, uint8_t)
  CUBECORE_FIELD(FilterSizeW, config1, filterW, bool)
  CUBECORE_FIELD(FilterSizeH, config1, filterH, bool)
  CUBECORE_FIELD(Transpose, config1, transpose, bool)
  CUBECORE_FIELD(FmatrixCtrl, config1, fmatrixCtrl, bool)
  CUBECORE_FIELD(ChannelSize, config1, sizeChannel, uint16_t)
  uint64_t GetConfig0() const { return config0; }
  uint64_t GetConfig1() const { return config1; }
};

struct SetFMatrixBitModeConfig0 {
  uint64_t l1H : 16, l1W : 16, padList0 : 8, padList1 : 8, padList2 : 8, padList3 : 8;
};
struct SetFMatrixBitModeParams {
  CUBECORE_WORD(SetFMatrixBitModeConfig0, config0)

  SetFMatrixBitModeParams() = default;
  template <typename T>
  SetFMatrixBitModeParams(const LoadData3DParamsV2<T>& p) {
    SetL1H(p.l1H);
    SetL1W(p.l1W);
    SetPadList(p.padList);
  }
  CUBECORE_FIELD(L1H, config0, l1H, uint16_t)
  CUBECORE_FIELD(L1W, config0, l1W, uint16_t)
  void SetPadList(const uint8_t padList[PAD_SIZE]) {
    config0BitMode.padList0 = padList[0];
    config0BitMode.padList1 = padList[1];
    config0BitMode.padList2 = padList[2];
    config0BitMode.padList3 = padList[3];
  }
  uint64_t GetConfig0() const { return config0; }
};

#undef CUBECORE_FIELD
#undef CUBECORE_WORD

inline void SetFmatrix(const SetFMatrixBitModeParams& param, const FmatrixMode& fmatrixMode,
                       CUBECORE_AT) {
  const auto& p = param.config0BitMode;
  const uint8_t padding[PAD_SIZE] = {p.padList0, p.padList1, p.padList2, p.padList3};
  SetFmatrix(param.GetL1H(), param.GetL1W(), padding, fmatrixMode, at);
}

namespace detail {

template <TPosition Dst, TPosition Src>
inline void require_positions(uint8_t dst, const cubecore::Where& at) {
  static_assert(Src == TPosition::A1 || Src == TPosition::B1,
                "LoadData.Src must be TPosition::A1 or B1, got another");
  static_assert(Dst == TPosition::A2 || Dst == TPosition::B2,
                "LoadData.Dst must be TPosition::A2 or B2, got another");
  if (memory_of(Dst) != dst)
    cubecore_refuse("LoadData.Dst", "be the position of dst", "that of the other operand", &at);
}

}  // namespace detail

template <TPosition Dst, TPosition Src, typename T>
inline void LoadData(const LocalTensor<T>& dst, const LocalTensor<T>& src,
                     const Load2DBitModeParam& p, CUBECORE_AT) {
  detail::require_positions<Dst, Src>(dst.memory(), at);
  LoadData2DParamsV2 plain;
  plain.mStartPosition = p.GetMStartPosition();
  plain.kStartPosition = p.GetKStartPosition();
  plain.mStep = p.GetMStep();
  plain.kStep = p.GetKStep();
  plain.srcStride = p.GetSrcStride();
  plain.dstStride = p.GetDstStride();
  plain.ifTranspose = p.ifTranspose;
  LoadData(dst, src, plain, at);
}

// The map's size and its padding are those of the last SetFmatrix.
template <TPosition Dst, TPosition Src, typename T>
inline void LoadData(const LocalTensor<T>& dst, const LocalTensor<T>& src,
                     const Load3DBitModeParam& p, CUBECORE_AT) {
  detail::require_positions<Dst, Src>(dst.memory(), at);
  detail::load_window(
      dst.memory() == detail::in_l0a, dst.pointer(), src.pointer(),
      {p.GetKExtension(), p.GetMExtension(), p.GetKStartPt(), p.GetMStartPt(), p.GetStrideW(),
       p.GetStrideH(), p.GetFilterW(), p.GetFilterH(), p.GetDilationFilterW(),
       p.GetDilationFilterH(), p.GetFilterSizeW(), p.GetFilterSizeH(), p.GetTranspose(),
       p.GetFmatrixCtrl(), p.GetChannelSize()},
      at);
}

}  // namespace AscendC
