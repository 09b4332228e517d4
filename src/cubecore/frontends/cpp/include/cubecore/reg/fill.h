// Fills of tensors by registers, of the element types that 2201's instruction lacks. Page Duplicate.
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

}  // namespace detail
}  // namespace AscendC
