// Complex numbers in pairs of registers, part by part. Pages: RegTensor, complex32/complex64, Add,
// Sub, Mul, Div, Adds, Muls, Abs, Duplicate. The unit's own software for them is closed: what is here
// rounds after each step in the type of the parts.
#pragma once

#include <cstring>

#include "cubecore/reg/moves.h"

namespace AscendC {
namespace Reg {
namespace detail {

inline constexpr MaskMergeMode ZEROED = MaskMergeMode::ZEROING;

// Steps on parts, all under one mask.
template <typename P>
struct Parts {
  using Part = RegTensor<P>;
  const MaskReg& mask;
  const Here& at;
  Part of(const char* name, const Part& a, const Part& b) const {
    Part made;
    lanes<ZEROED>(name, made, mask, at, a, b);
    return made;
  }
  Part times(const Part& a, P value) const {
    Part made;
    with_scalar<ZEROED>("Muls", made, mask, at, value, a);
    return made;
  }
  // a * b and c * d, added or subtracted.
  Part products(const char* name, const Part& a, const Part& b, const Part& c,
                const Part& d) const {
    return of(name, of("Mul", a, b), of("Mul", c, d));
  }
};

template <typename U, typename... R>
inline void complex_lanes(const char* name, U& dst, const MaskReg& mask, const Here& at,
                          const R&... sources) {
  using P = decltype(typename U::ActualT().real);
  if constexpr (sizeof...(R) == 2 && (std::is_same_v<R, U> && ...)) {
    auto of_two = [&](const U& a, const U& b) {
      const Parts<P> steps{mask, at};
      const auto &ar = a.part(0), &ai = a.part(1), &br = b.part(0), &bi = b.part(1);
      if (!std::strcmp(name, "Add") || !std::strcmp(name, "Sub")) {
        const auto real = steps.of(name, ar, br), imag = steps.of(name, ai, bi);
        dst.part(0) = real, dst.part(1) = imag;
      } else if (!std::strcmp(name, "Mul")) {
        const auto real = steps.products("Sub", ar, br, ai, bi);
        const auto imag = steps.products("Add", ar, bi, ai, br);
        dst.part(0) = real, dst.part(1) = imag;
      } else if (!std::strcmp(name, "Div")) {
        const auto norm = steps.products("Add", br, br, bi, bi);
        const auto real = steps.of("Div", steps.products("Add", ar, br, ai, bi), norm);
        const auto imag = steps.of("Div", steps.products("Sub", ai, br, ar, bi), norm);
        dst.part(0) = real, dst.part(1) = imag;
      } else {
        cubecore_refuse(name, "take numbers that are not complex", "complex ones", &at);
      }
    };
    of_two(sources...);
  } else {
    cubecore_refuse(name, "take numbers that are not complex", "complex ones", &at);
  }
}

template <typename U, typename... R>
inline void complex_with_scalar(const char* name, U& dst, const MaskReg& mask, const Here& at,
                                typename U::ActualT value, const R&... sources) {
  using P = decltype(value.real);
  if constexpr (sizeof...(R) == 0) {  // Duplicate
    with_scalar<ZEROED>(name, dst.part(0), mask, at, value.real);
    with_scalar<ZEROED>(name, dst.part(1), mask, at, value.imag);
  } else {
    auto of_one = [&](const U& a) {
      const Parts<P> steps{mask, at};
      if (!std::strcmp(name, "Adds")) {
        RegTensor<P> made[2];
        with_scalar<ZEROED>(name, made[0], mask, at, value.real, a.part(0));
        with_scalar<ZEROED>(name, made[1], mask, at, value.imag, a.part(1));
        dst.part(0) = made[0], dst.part(1) = made[1];
      } else if (!std::strcmp(name, "Muls")) {
        const auto real = steps.of("Sub", steps.times(a.part(0), value.real),
                                   steps.times(a.part(1), value.imag));
        const auto imag = steps.of("Add", steps.times(a.part(0), value.imag),
                                   steps.times(a.part(1), value.real));
        dst.part(0) = real, dst.part(1) = imag;
      } else {
        cubecore_refuse(name, "take numbers that are not complex", "complex ones", &at);
      }
    };
    of_one(sources...);
  }
}

// Real and imaginary parts lie in turn in memory.
template <typename U>
inline RegisterEntry& load_parts(const char* mode, U& dst, const volatile void* from,
                                 const Here& at) {
  using Bits = typename U::Bits;
  RegTensor<Bits> stored[2];
  const auto bytes = static_cast<const volatile char*>(from);
  for (int n = 0; n < 2; ++n) load(mode, stored[n], bytes + n * int{VECTOR_REG_WIDTH}, at);
  RegisterEntry& entry = entry_of("DeInterleave", type_of<RegTensor<Bits>>(), at);
  read(entry, stored[0], stored[1]);
  made(entry, dst.reg[0], dst.reg[1]);
  return entry;
}
template <typename U>
inline RegisterEntry& store_parts(const char* mode, volatile void* to, const U& src,
                                  const MaskReg& mask, const Here& at) {
  using Bits = typename U::Bits;
  RegTensor<Bits> stored[2];
  reordered("Interleave", type_of<RegTensor<Bits>>(), stored[0], stored[1], src.reg[0], src.reg[1],
            at);
  MaskReg masks[2] = {mask, mask};
  if (mask.value != 0) Interleave<Bits>(masks[0], masks[1], mask, mask, at);
  const auto bytes = static_cast<volatile char*>(to);
  store(mode, bytes, stored[0], masks[0], at);
  return store(mode, bytes + VECTOR_REG_WIDTH, stored[1], masks[1], at);
}

}  // namespace detail

template <typename T = DefaultType, auto mode = MaskMergeMode::ZEROING, typename P>
inline void Abs(RegTensor<P>& dst, const RegTensor<Complex<P>, RegTraitNumTwo>& src,
                const MaskReg& mask, CUBECORE_AT) {
  const detail::Parts<P> steps{mask, at};
  const auto square =
      steps.products("Add", src.part(0), src.part(0), src.part(1), src.part(1));
  detail::lanes<mode>("Sqrt", dst, mask, at, square);
}

}  // namespace Reg
}  // namespace AscendC
