// Images from global memory to L1. Pages: LoadImageToLocal, SetAippFunctions.
#pragma once

#include "cubecore/basic/tensors.h"

namespace AscendC {

// YUV420SP's chroma lies in a plane of its own.
enum class AippInputFormat : uint8_t {
  YUV420SP_U8 = 0,
  XRGB8888_U8 = 1,
  RGB888_U8 = 4,
  YUV400_U8 = 9,
};

template <typename T>
struct AippPaddingParams {
  uint32_t paddingMode = 0;
  T paddingValueCh0 = 0;
  T paddingValueCh1 = 0;
  T paddingValueCh2 = 0;
  T paddingValueCh3 = 0;
};

struct AippSwapParams {
  bool isSwapRB = false;
  bool isSwapUV = false;
  bool isSwapAX = false;
};

struct AippSingleLineParams {
  bool isSingleLineCopy = false;
};

struct AippDataTypeConvParams {
  uint8_t dtcMeanCh0{0};
  uint8_t dtcMeanCh1{0};
  uint8_t dtcMeanCh2{0};
  half dtcMinCh0{0};
  half dtcMinCh1{0};
  half dtcMinCh2{0};
  half dtcVarCh0{1.0};
  half dtcVarCh1{1.0};
  half dtcVarCh2{1.0};
  uint32_t dtcRoundMode{0};
};

template <typename T>
struct AippChannelPaddingParams {
  uint32_t cPaddingMode = 0;
  T cPaddingValue = 0;
};

struct AippColorSpaceConvParams {
  bool isEnableCsc = false;
  int16_t cscMatrixR0C0 = 0;
  int16_t cscMatrixR0C1 = 0;
  int16_t cscMatrixR0C2 = 0;
  int16_t cscMatrixR1C0 = 0;
  int16_t cscMatrixR1C1 = 0;
  int16_t cscMatrixR1C2 = 0;
  int16_t cscMatrixR2C0 = 0;
  int16_t cscMatrixR2C1 = 0;
  int16_t cscMatrixR2C2 = 0;
  uint8_t cscBiasIn0 = 0;
  uint8_t cscBiasIn1 = 0;
  uint8_t cscBiasIn2 = 0;
  uint8_t cscBiasOut0 = 0;
  uint8_t cscBiasOut1 = 0;
  uint8_t cscBiasOut2 = 0;
};

template <typename T>
struct AippParams {
  AippPaddingParams<T> paddingParams;
  AippSwapParams swapParams;
  AippSingleLineParams singleLineParams;
  AippDataTypeConvParams dtcParams;
  AippChannelPaddingParams<T> cPaddingParams;
  AippColorSpaceConvParams cscParams;
};

struct LoadImageToLocalParams {
  uint16_t horizSize = 0;
  uint16_t vertSize = 0;
  uint16_t horizStartPos = 0;
  uint16_t vertStartPos = 0;
  uint16_t srcHorizSize = 0;
  uint8_t topPadSize = 0;
  uint8_t botPadSize = 0;
  uint16_t leftPadSize = 0;
  uint16_t rightPadSize = 0;
  uint8_t sid = 0;
};

namespace detail {

// What SetAippFunctions leaves on a core; values of the type in L1 as bits.
struct Image {
  cubecore::Pointer pixels, chroma;
  AippInputFormat format;
  const char* type = nullptr;  // in L1; none before SetAippFunctions
  uint32_t pad_mode;
  uint64_t pad[3];
  AippSwapParams swap;
  bool one_row;
  AippDataTypeConvParams convert;
  uint32_t channel_mode;
  uint64_t channel_value;
};

inline Image& image() {
  void** slot = cubecore_slot(1);
  if (*slot == nullptr) *slot = new Image();
  return *static_cast<Image*>(*slot);
}

template <typename U>
inline void set_image(cubecore::Pointer pixels, cubecore::Pointer chroma, AippInputFormat format,
                      const AippParams<U>& config, const cubecore::Where& at) {
  if (config.cscParams.isEnableCsc)
    cubecore_refuse("SetAippFunctions", "leave isEnableCsc false",
                    "true; its formulas are pictures that the public pages lack", &at);
  const auto& pad = config.paddingParams;
  image() = {pixels,
             chroma,
             format,
             cubecore::Element<U>::name,
             pad.paddingMode,
             {bits_of(pad.paddingValueCh0), bits_of(pad.paddingValueCh1),
              bits_of(pad.paddingValueCh2)},
             config.swapParams,
             config.singleLineParams.isSingleLineCopy,
             config.dtcParams,
             config.cPaddingParams.cPaddingMode,
             bits_of(config.cPaddingParams.cPaddingValue)};
}

template <typename... More>
inline void load_image(const char* name, const cubecore::Where& at, const cubecore::Pointer& dst,
                       const LoadImageToLocalParams& p, More... more) {
  using cubecore::named;
  const Image& from = image();
  const AippDataTypeConvParams& c = from.convert;
  cubecore::issue(
      name, at, dst, from.pixels, more..., named("rows", p.vertSize), named("columns", p.horizSize),
      named("first_row", p.vertStartPos), named("first_column", p.horizStartPos),
      named("image_columns", p.srcHorizSize), named("pad_top", p.topPadSize),
      named("pad_bottom", p.botPadSize), named("pad_left", p.leftPadSize),
      named("pad_right", p.rightPadSize), named("pad_mode", from.pad_mode),
      named("pad_0", from.pad[0]), named("pad_1", from.pad[1]), named("pad_2", from.pad[2]),
      named("one_row", from.one_row), named("mean_0", c.dtcMeanCh0), named("mean_1", c.dtcMeanCh1),
      named("mean_2", c.dtcMeanCh2), named("minimum_0", bits_of(c.dtcMinCh0)),
      named("minimum_1", bits_of(c.dtcMinCh1)), named("minimum_2", bits_of(c.dtcMinCh2)),
      named("factor_0", bits_of(c.dtcVarCh0)), named("factor_1", bits_of(c.dtcVarCh1)),
      named("factor_2", bits_of(c.dtcVarCh2)), named("channel_mode", from.channel_mode),
      named("channel_value", from.channel_value));
}

}  // namespace detail

template <typename T, typename U>
inline void SetAippFunctions(const GlobalTensor<T>& src0, AippInputFormat format,
                             AippParams<U> config, CUBECORE_AT) {
  if (format == AippInputFormat::YUV420SP_U8)
    cubecore_refuse("SetAippFunctions", "have the plane of U and V of a YUV420SP image",
                    "one tensor", &at);
  detail::set_image(src0.pointer(), src0.pointer(), format, config, at);
}
template <typename T, typename U>
inline void SetAippFunctions(const GlobalTensor<T>& src0, const GlobalTensor<T>& src1,
                             AippInputFormat format, AippParams<U> config, CUBECORE_AT) {
  detail::set_image(src0.pointer(), src1.pointer(), format, config, at);
}

template <typename T>
inline void LoadImageToLocal(const LocalTensor<T>& dst,
                             const LoadImageToLocalParams& loadDataParams, CUBECORE_AT) {
  const detail::Image& from = detail::image();
  if (from.type == nullptr)
    cubecore_refuse("LoadImageToLocal", "follow a SetAippFunctions", "none", &at);
  if (from.type != cubecore::Element<T>::name)
    cubecore_refuse("LoadImageToLocal.dst", "have the type of SetAippFunctions' config",
                    cubecore::Element<T>::name, &at);
  const cubecore::Pointer to = dst.pointer();
  using cubecore::named;
  if (from.format == AippInputFormat::YUV400_U8)
    detail::load_image("load_image_gray", at, to, loadDataParams);
  else if (from.format == AippInputFormat::YUV420SP_U8)
    detail::load_image("load_image_yuv", at, to, loadDataParams, from.chroma,
                       named("swaps", from.swap.isSwapUV));
  else
    detail::load_image(
        "load_image_rgb", at, to, loadDataParams, named("swaps", from.swap.isSwapRB),
        named("pixel", from.format == AippInputFormat::RGB888_U8 ? "RGB888" : "XRGB8888"),
        named("first_dropped", from.swap.isSwapAX));
}

}  // namespace AscendC
