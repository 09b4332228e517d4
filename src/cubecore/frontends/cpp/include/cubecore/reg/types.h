// Registers as values. Pages: RegTensor, MaskReg, AddrReg, UnalignRegForLoad, UnalignRegForStore, and
// "数据类型定义" of the C API's registers.
#pragma once

#include <type_traits>

#include "cubecore/reg/record.h"
#include "cubecore/seam/types.h"

namespace AscendC {
namespace Reg {

struct RegTrait {
  int REG_NUM;
};
inline constexpr RegTrait RegTraitNumOne = {1};
inline constexpr RegTrait RegTraitNumTwo = {2};
struct DefaultType {};

enum class MaskMergeMode { ZEROING, MERGING, UNKNOWN };
enum class PostLiteral { POST_MODE_NORMAL, POST_MODE_UPDATE };

// Kernels read a register as another type by a cast of its reference: all have one layout.
template <typename T, const RegTrait& trait = RegTraitNumOne>
struct RegTensor {
  using ActualT = T;
  uint32_t value = cubecore::UNWRITTEN, variable;

  RegTensor() : variable(++cubecore_registers()->variables) {}
  RegTensor(const RegTensor& other)
      : value(other.value), variable(++cubecore_registers()->variables) {}
  // A cast in C is another view of the same register.
  template <typename O>
  explicit RegTensor(const RegTensor<O, trait>& other)
      : value(other.value), variable(other.variable) {}
  RegTensor& operator=(const RegTensor& other) {
    value = other.value;
    return *this;
  }
};

// A pair of registers with 64 lanes of 64 bits: `half(0)` has the lower 32 of them. The unit keeps
// their low words in one register and their high words in the other, and calls on it are software;
// `reg` has those words, which are parted and joined where they are asked for (reg/pairs.h). A cast
// of the whole pair to one register has no value: `value` is never written.
template <typename T>
struct RegTensor<T, RegTraitNumTwo> {
  static_assert(cubecore::Element<T>::bits == 64,
                "a pair of registers (RegTraitNumTwo) must be of int64_t, uint64_t, complex32 or "
                "complex64");
  using ActualT = T;
  uint32_t value = cubecore::UNWRITTEN, variable = 0;

  struct Words {
    RegTensor* pair;
    RegTensor<uint32_t> word[2];
    uint32_t of[2] = {0, 0}, parted[2] = {0, 0};
    RegTensor<uint32_t>& operator[](int n);
    void join();
  } reg{this};

  RegTensor() = default;
  RegTensor(const RegTensor& other) { *this = other; }
  RegTensor& operator=(const RegTensor& other) {
    for (int n = 0; n < 2; ++n) halves_[n] = other.half(n);
    return *this;
  }
  RegTensor<T>& half(int n) {
    reg.join();
    return halves_[n];
  }
  const RegTensor<T>& half(int n) const { return const_cast<RegTensor*>(this)->half(n); }

 private:
  RegTensor<T> halves_[2];
};
// Complex numbers: `reg[0]` has their real parts and `reg[1]` the imaginary ones, as bits.
template <typename P>
struct RegTensor<Complex<P>, RegTraitNumTwo> {
  using ActualT = Complex<P>;
  using Bits = std::conditional_t<sizeof(P) == 2, uint16_t, uint32_t>;
  uint32_t value = cubecore::UNWRITTEN, variable = 0;  // as of other pairs
  RegTensor<Bits> reg[2];

  RegTensor<P>& part(int n) { return reinterpret_cast<RegTensor<P>&>(reg[n]); }
  const RegTensor<P>& part(int n) const { return reinterpret_cast<const RegTensor<P>&>(reg[n]); }
};

template <typename U>
inline constexpr bool is_pair = false;
template <typename T>
inline constexpr bool is_pair<RegTensor<T, RegTraitNumTwo>> = !cubecore::is_complex<T>;
template <typename U>
inline constexpr bool is_complex_pair = false;
template <typename P>
inline constexpr bool is_complex_pair<RegTensor<Complex<P>, RegTraitNumTwo>> = true;

struct MaskReg {
  uint32_t value = cubecore::UNWRITTEN, variable;

  MaskReg() : variable(++cubecore_registers()->variables) {}
  MaskReg(const MaskReg& other)
      : value(other.value), variable(++cubecore_registers()->variables) {}
  MaskReg& operator=(const MaskReg& other) {
    value = other.value;
    return *this;
  }
};

namespace detail {
// For calls without a mask: all lanes.
inline MaskReg all_lanes() {
  MaskReg mask;
  mask.value = 0;
  return mask;
}
}  // namespace detail

// The buffer of an unaligned stream. Moves are direct here: the calls are recorded to be checked.
struct UnalignReg {
  uint32_t variable = ++cubecore_registers()->variables;
};
using UnalignRegForLoad = UnalignReg;
using UnalignRegForStore = UnalignReg;

// An offset, which was given in elements of a type.
struct AddrReg {
  int64_t bytes = 0;
};
template <typename P>
inline P* operator+(P* pointer, const AddrReg& offset) {
  return reinterpret_cast<P*>(reinterpret_cast<uint64_t>(pointer) + offset.bytes);
}

}  // namespace Reg
namespace MicroAPI = Reg;

constexpr uint32_t VECTOR_REG_WIDTH = 256;
constexpr uint32_t GetVecLen() { return VECTOR_REG_WIDTH; }
}  // namespace AscendC

using vector_bool = AscendC::Reg::MaskReg;
using vector_half = AscendC::Reg::RegTensor<half>;
using vector_bfloat16_t = AscendC::Reg::RegTensor<bfloat16_t>;
using vector_float = AscendC::Reg::RegTensor<float>;
using vector_int8_t = AscendC::Reg::RegTensor<int8_t>;
using vector_uint8_t = AscendC::Reg::RegTensor<uint8_t>;
using vector_int16_t = AscendC::Reg::RegTensor<int16_t>;
using vector_uint16_t = AscendC::Reg::RegTensor<uint16_t>;
using vector_int32_t = AscendC::Reg::RegTensor<int32_t>;
using vector_uint32_t = AscendC::Reg::RegTensor<uint32_t>;
using vector_int64_t = AscendC::Reg::RegTensor<int64_t>;
using vector_uint64_t = AscendC::Reg::RegTensor<uint64_t>;
using vector_hifloat8_t = AscendC::Reg::RegTensor<hifloat8_t>;
using vector_fp8_e4m3fn_t = AscendC::Reg::RegTensor<fp8_e4m3fn_t>;
using vector_fp8_e5m2_t = AscendC::Reg::RegTensor<fp8_e5m2_t>;
using vector_fp8_e8m0_t = AscendC::Reg::RegTensor<fp8_e8m0_t>;
using vector_fp4x2_e2m1_t = AscendC::Reg::RegTensor<fp4x2_e2m1_t>;
using vector_fp4x2_e1m2_t = AscendC::Reg::RegTensor<fp4x2_e1m2_t>;
using vector_int4x2_t = AscendC::Reg::RegTensor<int4x2_t>;
constexpr uint32_t asc_get_vf_len() { return AscendC::VECTOR_REG_WIDTH; }
