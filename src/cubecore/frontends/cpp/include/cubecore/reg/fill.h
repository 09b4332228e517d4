// Fills of tensors by registers, of the element types that 2201's instructions lack. Pages
// Duplicate, CreateVecIndex.
#pragma once

#include "cubecore/reg/indexed.h"

namespace AscendC {
namespace detail {

template <typename T, typename S>
void filled_by_registers(const LocalTensor<T>& dst, const S& value, uint32_t count,
                         const cubecore::Here& at) {
  using P = PrimT<T>;
  cubecore::VectorFunction function{at};
  auto* to = reinterpret_cast<P*>(dst.GetPhyAddr());
  Reg::RegTensor<P> filled;
  Reg::Duplicate(filled, static_cast<P>(value), at);
  while (count > 0) {
    const Reg::MaskReg mask = Reg::UpdateMask<P>(count, at);
    Reg::StoreAlign<P, Reg::PostLiteral::POST_MODE_UPDATE>(to, filled,
                                                           VECTOR_REG_WIDTH / sizeof(P), mask, at);
  }
}

template <typename T, typename S>
void counted_by_registers(const LocalTensor<T>& dst, const S& first, uint32_t count,
                          const cubecore::Here& at) {
  using P = PrimT<T>;
  constexpr uint32_t lanes = VECTOR_REG_WIDTH / sizeof(P);
  cubecore::VectorFunction function{at};
  auto* to = reinterpret_cast<P*>(dst.GetPhyAddr());
  P next = static_cast<P>(first);
  while (count > 0) {
    Reg::RegTensor<P> counted;
    Reg::Arange(counted, next, at);
    const Reg::MaskReg mask = Reg::UpdateMask<P>(count, at);
    Reg::StoreAlign<P, Reg::PostLiteral::POST_MODE_UPDATE>(to, counted, lanes, mask, at);
    next = static_cast<P>(next + static_cast<P>(lanes));
  }
}

}  // namespace detail
}  // namespace AscendC
