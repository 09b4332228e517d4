// Hypot, a vector function of 950 (reg/c_api.h includes it). Page Hypot.
#pragma once

#include "cubecore/library/registers/quantize.h"

namespace AscendC {

namespace detail {

// sqrt(x^2 + y^2) as the larger by sqrt(1 + q^2), with q the quotient of the smaller by it: no
// square leaves the range of floats. The quotient has neither 0 nor a subnormal divisor, for which
// the unit's plain division has no number: q of such is taken by the least that it divides by, and
// adds nothing. An infinity is the result even where the other is no number.
inline Reg::RegTensor<float> hypotenuse(Reg::RegTensor<float>& x, Reg::RegTensor<float>& y,
                                        const Reg::MaskReg& mask, const cubecore::Here& at) {
  constexpr float largest = 0x1.fffffep127f, least = 0x1p-126f;
  constexpr float infinite = __builtin_huge_valf();
  Reg::RegTensor<float> larger, smaller, by;
  Reg::MaskReg endless, other;
  Reg::Abs(x, x, mask, at);
  Reg::Abs(y, y, mask, at);
  Reg::Compares<float, CMPMODE::EQ>(endless, x, infinite, mask, at);
  Reg::Compares<float, CMPMODE::EQ>(other, y, infinite, mask, at);
  Reg::MaskOr(endless, endless, other, mask, at);
  Reg::Max(larger, x, y, mask, at);
  Reg::Min(smaller, x, y, mask, at);
  Reg::Mins(smaller, smaller, largest, mask, at);
  Reg::Mins(by, larger, largest, mask, at);
  Reg::Maxs(by, by, least, mask, at);
  Reg::Div(by, smaller, by, mask, at);
  Reg::Mul(by, by, by, mask, at);
  Reg::Adds(by, by, 1.0f, mask, at);
  Reg::Sqrt(by, by, mask, at);
  Reg::Mul(by, by, larger, mask, at);
  Reg::Duplicate(larger, infinite, mask, at);
  Reg::Select(by, larger, by, endless, at);
  return by;
}

}  // namespace detail

template <typename T, bool isReuseSource = false>
inline void Hypot(const LocalTensor<T>& dstTensor, const LocalTensor<T>& src0Tensor,
                  const LocalTensor<T>& src1Tensor, const uint32_t calCount, CUBECORE_AT) {
  static_assert(cubecore::is_half<PrimT<T>> || std::is_same_v<PrimT<T>, float>,
                "Hypot must take half, bfloat16_t or float, got another type");
  cubecore::VectorFunction function{at};
  for (uint32_t first = 0, left = calCount; left > 0; first += detail::LANES) {
    const Reg::MaskReg mask = Reg::UpdateMask<float>(left, at);
    auto x = detail::floats_at(detail::lanes_of(src0Tensor, first), mask, at);
    auto y = detail::floats_at(detail::lanes_of(src1Tensor, first), mask, at);
    const auto made = detail::hypotenuse(x, y, mask, at);
    detail::store_floats<RoundMode::CAST_RINT>(detail::lanes_of(dstTensor, first), made, mask, at);
  }
}
template <typename T, bool isReuseSource = false>
inline void Hypot(const LocalTensor<T>& dstTensor, const LocalTensor<T>& src0Tensor,
                  const LocalTensor<T>& src1Tensor, CUBECORE_AT) {
  Hypot(dstTensor, src0Tensor, src1Tensor, src0Tensor.GetSize(), at);
}
template <typename T, bool isReuseSource = false>
inline void Hypot(const LocalTensor<T>& dstTensor, const LocalTensor<T>& src0Tensor,
                  const LocalTensor<T>& src1Tensor, const LocalTensor<uint8_t>&,
                  const uint32_t calCount, CUBECORE_AT) {
  Hypot(dstTensor, src0Tensor, src1Tensor, calCount, at);
}
template <typename T, bool isReuseSource = false>
inline void Hypot(const LocalTensor<T>& dstTensor, const LocalTensor<T>& src0Tensor,
                  const LocalTensor<T>& src1Tensor, const LocalTensor<uint8_t>&, CUBECORE_AT) {
  Hypot(dstTensor, src0Tensor, src1Tensor, src0Tensor.GetSize(), at);
}

}  // namespace AscendC
