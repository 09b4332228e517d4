// Moves of the tensor API whose sources are feature maps. Pages: "Copy（GM到L1数据搬运）",
// "Copy（L1到L0A数据搬运）".
#pragma once

#include "cubecore/cube/load_data.h"
#include "cubecore/te/load.h"

namespace AscendC::Te {

template <typename T>
struct Img2ColParams {
  uint16_t mExtension = 0;
  uint16_t kExtension = 0;
  uint8_t padList[4] = {0, 0, 0, 0};
  uint8_t strideW = 1, strideH = 1, filterW = 1, filterH = 1, dilationFilterW = 1,
          dilationFilterH = 1;
  bool filterSizeW = false, filterSizeH = false, transpose = false, fMatrixCtrl = false;
  T padValue = T(0);
};

namespace detail {

template <typename T>
inline constexpr bool is_map = std::is_same_v<pattern_of<T>, NC1HWC0LayoutPtn>;
template <size_t axis, typename T>
constexpr int64_t size_of(const T& tensor) {
  return number(std::get<axis>(tensor.Shape()));
}
template <size_t axis, typename T>
constexpr int64_t step_of(const T& tensor) {
  return number(std::get<axis>(tensor.Stride()));
}

// A map into L1 as parts of C0 channels: H x W pixels are rows of a matrix in NZ.
template <typename D, typename S>
inline void map_to_l1(const D& dst, const S& src, const Where& at) {
  using T = element_of<S>;
  using From = pattern_of<S>;
  static_assert(std::is_same_v<T, element_of<D>>, "Copy.dst must have the type of src");
  constexpr bool by_pixels = std::is_same_v<From, NHWCLayoutPtn>;
  if constexpr (is_map<S>) {
    const int64_t row = blocks<T>(size_of<3>(src) * step_of<3>(src));
    for (int64_t n = 0; n < size_of<0>(src); ++n)
      for (int64_t part = 0; part < size_of<1>(src); ++part) {
        cubecore::Pointer to = dst.operand(), from = src.operand();
        to.address += cubecore::bytes_of<T>(n * step_of<0>(dst) + part * step_of<1>(dst));
        from.address += cubecore::bytes_of<T>(n * step_of<0>(src) + part * step_of<1>(src));
        cubecore::issue_raw("copy_gm_to_cbuf", at, to, from, named("n_burst", size_of<2>(src)),
                            named("len_burst", row),
                            named("src_gap", blocks<T>(step_of<2>(src)) - row),
                            named("dst_gap", blocks<T>(step_of<2>(dst)) - row));
      }
  } else {
    static_assert(by_pixels || std::is_same_v<From, NCHWLayoutPtn>,
                  "Copy to NC1HWC0 must take NC1HWC0, NHWC or NCHW, got another pattern");
    constexpr size_t channels = by_pixels ? 3 : 1;
    const int64_t pixels = size_of<2>(dst) * size_of<3>(dst);
    into_blocks(dst, src, pixels, size_of<channels>(src), step_of<by_pixels ? 2 : 1>(src),
                blocks<T>(step_of<1>(dst)), !by_pixels, at);
  }
}

// The windows of a filter over a map of L1 become rows of L0A.
template <typename D, typename S, typename P>
inline void windows_to_l0a(const D& dst, const S& src, const P& p, const Where& at) {
  using T = element_of<D>;
  static_assert(D::location::memory == cubecore::Mem::L0A &&
                    std::is_same_v<pattern_of<D>, NZLayoutPtn>,
                "Copy of windows must have a dst in L0A in NZ");
  static_assert(std::is_same_v<P, Img2ColParams<T>>,
                "Copy.params must be Img2ColParams of dst's type");
  if (p.mExtension == 0 || p.kExtension == 0) return;
  if (size_of<0>(src) != 1)
    cubecore_refuse("Copy.src", "have an N of 1",
                    AscendC::detail::Digits(static_cast<uint64_t>(size_of<0>(src)), "").text, &at);
  const auto side = p.fMatrixCtrl ? FmatrixMode::FMATRIX_RIGHT : FmatrixMode::FMATRIX_LEFT;
  AscendC::SetFmatrix(static_cast<uint16_t>(size_of<2>(src)),
                      static_cast<uint16_t>(size_of<3>(src)), p.padList, side, at);
  AscendC::SetLoadDataPaddingValue(p.padValue, at);
  LoadDataRepeatParam every;
  every.dstStride = static_cast<uint16_t>(fractals<T>(stride<1, 1>(dst)));
  AscendC::SetLoadDataRepeat(every, at);
  AscendC::detail::load_window(
      true, dst.operand(), src.operand(),
      {p.kExtension, p.mExtension, 0, 0, p.strideW, p.strideH, p.filterW, p.filterH,
       p.dilationFilterW, p.dilationFilterH, p.filterSizeW, p.filterSizeH, p.transpose,
       p.fMatrixCtrl, static_cast<uint16_t>(size_of<1>(src) * size_of<4>(src))},
      at);
}

}  // namespace detail

}  // namespace AscendC::Te
