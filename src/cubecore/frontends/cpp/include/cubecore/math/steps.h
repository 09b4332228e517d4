// Steps of vector instructions in turns over a workspace: functions of the high-level API are made
// of them. A step is an instruction with a barrier behind it, so that the next reads its result.
// Page: each function's own ("sharedTmpBuffer", and the form without it, which takes free memory).
#pragma once

#include "cubecore/basic/compare.h"
#include "cubecore/basic/convert.h"
#include "cubecore/seam/macros.h"

namespace AscendC {

namespace detail {

using Floats = LocalTensor<float>;

constexpr uint32_t LANES = 64;             // float elements of a repeat
constexpr uint32_t MOST_TEMPORARIES = 10;  // of a function, with those of conversions

// Bytes of a workspace with which every function works: a repeat of each temporary.
constexpr uint32_t LEAST_WORKSPACE = MOST_TEMPORARIES * 256;

class Steps {
 public:
  Steps(uint32_t count, const cubecore::Where& at) : count_(static_cast<int32_t>(count)), at_(at) {}

  template <typename T>
  void add(const LocalTensor<T>& d, const LocalTensor<T>& a, const LocalTensor<T>& b) const {
    Add(d, a, b, count_, at_);
    wait();
  }
  template <typename T>
  void sub(const LocalTensor<T>& d, const LocalTensor<T>& a, const LocalTensor<T>& b) const {
    Sub(d, a, b, count_, at_);
    wait();
  }
  template <typename T>
  void mul(const LocalTensor<T>& d, const LocalTensor<T>& a, const LocalTensor<T>& b) const {
    Mul(d, a, b, count_, at_);
    wait();
  }
  template <typename T>
  void div(const LocalTensor<T>& d, const LocalTensor<T>& a, const LocalTensor<T>& b) const {
    Div(d, a, b, count_, at_);
    wait();
  }
  template <typename T>
  void min(const LocalTensor<T>& d, const LocalTensor<T>& a, const LocalTensor<T>& b) const {
    Min(d, a, b, count_, at_);
    wait();
  }
  template <typename T>
  void max(const LocalTensor<T>& d, const LocalTensor<T>& a, const LocalTensor<T>& b) const {
    Max(d, a, b, count_, at_);
    wait();
  }
  template <typename T, typename S>
  void adds(const LocalTensor<T>& d, const LocalTensor<T>& a, S value) const {
    Adds(d, a, static_cast<T>(value), count_, at_);
    wait();
  }
  template <typename T, typename S>
  void muls(const LocalTensor<T>& d, const LocalTensor<T>& a, S value) const {
    Muls(d, a, static_cast<T>(value), count_, at_);
    wait();
  }
  template <typename T, typename S>
  void mins(const LocalTensor<T>& d, const LocalTensor<T>& a, S value) const {
    Mins(d, a, static_cast<T>(value), count_, at_);
    wait();
  }
  template <typename T, typename S>
  void maxs(const LocalTensor<T>& d, const LocalTensor<T>& a, S value) const {
    Maxs(d, a, static_cast<T>(value), count_, at_);
    wait();
  }
  template <typename T>
  void abs(const LocalTensor<T>& d, const LocalTensor<T>& a) const {
    Abs(d, a, count_, at_);
    wait();
  }
  void exp(const Floats& d, const Floats& a) const {
    AscendC::Exp(d, a, count_, at_);
    wait();
  }
  void ln(const Floats& d, const Floats& a) const {
    Ln(d, a, count_, at_);
    wait();
  }
  void sqrt(const Floats& d, const Floats& a) const {
    Sqrt(d, a, count_, at_);
    wait();
  }
  template <typename T>
  void fill(const LocalTensor<T>& d, T value) const {
    Duplicate(d, value, count_, at_);
    wait();
  }
  template <typename T, typename U>
  void cast(const LocalTensor<T>& d, const LocalTensor<U>& a, RoundMode mode) const {
    Cast(d, a, mode, static_cast<uint32_t>(count_), at_);
    wait();
  }
  // What is left of a float by rounding it to `bfloat16_t`, 8 bits; `packed` is scratch.
  void shorten(const Floats& d, const Floats& a, const Floats& packed) const {
    auto narrow = packed.template ReinterpretCast<bfloat16_t>();
    cast(narrow, a, RoundMode::CAST_RINT);
    cast(d, narrow, RoundMode::CAST_NONE);
  }
  // The first twelve bits of a float: the rest, `a` less these, has twelve as well. `d` is not `a`.
  void first_half(const Floats& d, const Floats& a) const {
    fill(d.template ReinterpretCast<int32_t>(), int32_t(0xfffff000));
    And(bits(d), bits(a), bits(d), 2 * count_, at_);
    wait();
  }
  // All bits where `a`, which has no sign, is a finite number; none elsewhere.
  void finite_bits(const Floats& d, const Floats& a) const {
    const auto whole = d.template ReinterpretCast<int32_t>();
    adds(whole, a.template ReinterpretCast<int32_t>(), -0x7f800000);
    signs(d, d);
  }
  // All bits where `a` is less than `value`, none elsewhere; either where it is no number.
  void below(const Floats& d, const Floats& a, float value) const {
    adds(d, a, -value);
    signs(d, d);
  }
  void masked(const Floats& d, const Floats& a, const Floats& mask) const {
    And(bits(d), bits(a), bits(mask), 2 * count_, at_);
    wait();
  }
  // The bits of `a` that the mask has not; `scratch` is none of the others.
  void without(const Floats& d, const Floats& a, const Floats& mask, const Floats& scratch) const {
    Not(bits(scratch), bits(mask), 2 * count_, at_);
    wait();
    masked(d, a, scratch);
  }
  // a where the mask has all bits, b where it has none; `d` may be a, `scratch` is none of the others.
  void choose(const Floats& d, const Floats& mask, const Floats& a, const Floats& b,
              const Floats& scratch) const {
    without(scratch, b, mask, scratch);
    masked(d, a, mask);
    either(d, d, scratch);
  }
  void halve(const LocalTensor<int32_t>& d, const LocalTensor<int32_t>& a) const {
    ShiftRight(d, a, 1, count_, at_);
    wait();
  }
  // d + b * scale
  void axpy(const Floats& d, const Floats& b, float scale) const {
    Axpy(d, b, scale, count_, at_);
    wait();
  }
  // d + a * b
  void mla(const Floats& d, const Floats& a, const Floats& b) const {
    MulAddDst(d, a, b, count_, at_);
    wait();
  }
  // value - a
  void rsubs(const Floats& d, const Floats& a, float value) const {
    muls(d, a, -1.0f);
    adds(d, d, value);
  }
  template <typename T, typename S>
  void clamp(const LocalTensor<T>& d, const LocalTensor<T>& a, S low, S high) const {
    mins(d, a, high);
    maxs(d, d, low);
  }
  // |a| with the sign of `x`, for an `a` without a sign; `scratch` is none of the others.
  void copy_sign(const Floats& d, const Floats& a, const Floats& x, const Floats& scratch) const {
    sign_bits(scratch, x);
    either(d, a, scratch);
  }
  // 1 with the sign of x; `d` is not `x`.
  void signed_one(const Floats& d, const Floats& x, const Floats& scratch) const {
    sign_bits(d, x);
    fill(scratch, 1.0f);
    either(d, d, scratch);
  }
  // A polynomial in x by Horner's rule, its highest coefficient first; `d` is not `x`.
  template <uint32_t terms>
  void polynomial(const Floats& d, const Floats& x, const float (&coefficients)[terms]) const {
    fill(d, coefficients[0]);
    for (uint32_t n = 1; n < terms; ++n) {
      mul(d, d, x);
      adds(d, d, coefficients[n]);
    }
  }
  // The sign of each element: -1, 0 or 1.
  void sign(const Floats& d, const Floats& a) const {
    constexpr float huge = 0x1p126f;
    muls(d, a, huge);
    maxs(d, d, -1.0f);
    mins(d, d, 1.0f);
    muls(d, d, huge);
    maxs(d, d, -1.0f);
    mins(d, d, 1.0f);
  }

 private:
  void wait() const { barrier(PIPE_V, at_); }
  static LocalTensor<uint16_t> bits(const Floats& a) {
    return a.template ReinterpretCast<uint16_t>();
  }
  // The sign of each element in all of its bits.
  void signs(const Floats& d, const Floats& a) const {
    ShiftRight(d.template ReinterpretCast<int32_t>(), a.template ReinterpretCast<int32_t>(), 31,
               count_, at_);
    wait();
  }
  // The sign of each element as the bit that it is; `d` is not `a`.
  void sign_bits(const Floats& d, const Floats& a) const {
    fill(d, -0.0f);
    And(bits(d), bits(a), bits(d), 2 * count_, at_);
    wait();
  }
  void either(const Floats& d, const Floats& a, const Floats& b) const {
    Or(bits(d), bits(a), bits(b), 2 * count_, at_);
    wait();
  }

  int32_t count_;
  cubecore::Where at_;
};

// The memory that no buffer has, for the forms without a workspace.
inline LocalTensor<uint8_t> free_memory() {
  LocalTensor<uint8_t> found;
  take_free<uint8_t, TPosition::LCM>(found);
  return found;
}

// A workspace as it is given or, where that is less than our own steps need, the memory that no
// buffer has: the vendor's steps may need less.
inline LocalTensor<uint8_t> enough(const LocalTensor<uint8_t>& given, uint32_t bytes) {
  const CoreState& state = core_state();
  bool unknown = state.pipe == nullptr || state.used[static_cast<uint8_t>(cubecore::Mem::UB)] == 0;
  if (given.GetSize() >= bytes || unknown) return given;
  const LocalTensor<uint8_t> free = free_memory();
  return free.GetSize() >= bytes ? free : given;
}

[[noreturn]] inline void refuse_workspace(const char* subject, uint32_t bytes, uint32_t got,
                                          const cubecore::Where& at) {
  char need[64];
  std::snprintf(need, sizeof(need), "have %u B or more", bytes);
  cubecore_refuse(subject, need, Digits(got, " B").text, &at);
}
// A workspace of so many bytes; the refusal of less calls it `subject`.
inline LocalTensor<uint8_t> required(const char* subject, const LocalTensor<uint8_t>& offered,
                                     uint32_t bytes, const cubecore::Where& at) {
  const LocalTensor<uint8_t> given = enough(offered, bytes);
  if (given.GetSize() < bytes) refuse_workspace(subject, bytes, given.GetSize(), at);
  return given;
}

// Memory for temporaries, all of one length.
class Workspace {
 public:
  Workspace(const LocalTensor<uint8_t>& offered, uint32_t temporaries, const cubecore::Where& at) {
    const LocalTensor<uint8_t> given = enough(offered, temporaries * 256);
    start_ = static_cast<uint32_t>(given.GetPhyAddr());
    uint32_t lanes = given.GetSize() / 4 / (temporaries == 0 ? 1 : temporaries);
    lanes_ = lanes / LANES * LANES;
    if (lanes_ == 0 && temporaries != 0)
      refuse_workspace("sharedTmpBuffer", temporaries * 256, given.GetSize(), at);
  }
  // Elements of a turn, of `count` that are left.
  uint32_t turn(uint32_t count) const { return lanes_ != 0 && lanes_ < count ? lanes_ : count; }
  Floats floats(uint32_t index) const {
    return Floats(TPosition::VECCALC, start_ + index * lanes_ * 4, lanes_);
  }

 private:
  uint32_t start_ = 0, lanes_ = 0;
};

// A function of one tensor in float: `body(steps, dst, src, temporaries)` makes `dst` out of `src`.
// `dst` may be `src` until it is written. Half goes through float.
template <uint32_t temporaries, typename T, typename Body>
inline void of_one(const LocalTensor<T>& dst, const LocalTensor<T>& src,
                   const LocalTensor<uint8_t>& given, uint32_t count, const cubecore::Where& at,
                   const Body& body) {
  static_assert(std::is_same_v<PrimT<T>, float> || std::is_same_v<PrimT<T>, half>,
                "a function of the high-level API must take half or float, got another type");
  constexpr bool casts = std::is_same_v<PrimT<T>, half>;
  static_assert(temporaries + (casts ? 2 : 0) <= MOST_TEMPORARIES);
  Workspace work(given, temporaries + (casts ? 2 : 0), at);
  Floats own[temporaries + 1];
  for (uint32_t n = 0; n < temporaries; ++n) own[n] = work.floats(n);
  for (uint32_t done = 0; done < count;) {
    uint32_t turn = work.turn(count - done);
    Steps steps(turn, at);
    if constexpr (casts) {
      Floats from = work.floats(temporaries), to = work.floats(temporaries + 1);
      steps.cast(from, src[done], RoundMode::CAST_NONE);
      body(steps, to, from, own);
      steps.cast(dst[done], to, RoundMode::CAST_RINT);
    } else {
      body(steps, dst[done], src[done], own);
    }
    done += turn;
  }
}

// A function of two tensors in float, as `of_one`.
template <uint32_t temporaries, typename T, typename Body>
inline void of_two(const LocalTensor<T>& dst, const LocalTensor<T>& src0,
                   const LocalTensor<T>& src1, const LocalTensor<uint8_t>& given, uint32_t count,
                   const cubecore::Where& at, const Body& body) {
  constexpr bool casts = std::is_same_v<PrimT<T>, half>;
  static_assert(temporaries + (casts ? 3 : 0) <= MOST_TEMPORARIES);
  Workspace work(given, temporaries + (casts ? 3 : 0), at);
  Floats own[temporaries + 1];
  for (uint32_t n = 0; n < temporaries; ++n) own[n] = work.floats(n);
  for (uint32_t done = 0; done < count;) {
    uint32_t turn = work.turn(count - done);
    Steps steps(turn, at);
    if constexpr (casts) {
      Floats a = work.floats(temporaries), b = work.floats(temporaries + 1);
      Floats to = work.floats(temporaries + 2);
      steps.cast(a, src0[done], RoundMode::CAST_NONE);
      steps.cast(b, src1[done], RoundMode::CAST_NONE);
      body(steps, to, a, b, own);
      steps.cast(dst[done], to, RoundMode::CAST_RINT);
    } else {
      body(steps, dst[done], src0[done], src1[done], own);
    }
    done += turn;
  }
}

}  // namespace detail

// The forms of a function of one tensor: with and without a workspace, with and without a count.
// BODY(steps, d, x, t) makes d out of x with temporaries t. Behind it are the template's parameters.
#define CUBECORE_FORMS(NAME, TEMPORARIES, BODY, ...)                                             \
  template <__VA_ARGS__>                                                                         \
  inline void NAME(const LocalTensor<T>& dst, const LocalTensor<T>& src,                         \
                   const LocalTensor<uint8_t>& sharedTmpBuffer, const uint32_t calCount,         \
                   CUBECORE_AT) {                                                                \
    detail::of_one<TEMPORARIES>(dst, src, sharedTmpBuffer, calCount, at, BODY);                  \
  }                                                                                              \
  template <__VA_ARGS__>                                                                         \
  inline void NAME(const LocalTensor<T>& dst, const LocalTensor<T>& src,                         \
                   const LocalTensor<uint8_t>& sharedTmpBuffer, CUBECORE_AT) {                   \
    NAME<T, isReuseSource>(dst, src, sharedTmpBuffer, src.GetSize(), at);                        \
  }                                                                                              \
  template <__VA_ARGS__>                                                                         \
  inline void NAME(const LocalTensor<T>& dst, const LocalTensor<T>& src,                         \
                   const uint32_t calCount, CUBECORE_AT) {                                       \
    NAME<T, isReuseSource>(dst, src, detail::free_memory(), calCount, at);                       \
  }                                                                                              \
  template <__VA_ARGS__, typename Count>                                                         \
  inline detail::Exactly<uint32_t, Count> NAME(                                                  \
      const LocalTensor<T>& dst, const LocalTensor<T>& src, const Count calCount) {              \
    NAME<T, isReuseSource>(dst, src, calCount, *cubecore_last());                                \
  }                                                                                              \
  template <__VA_ARGS__>                                                                         \
  inline void NAME(const LocalTensor<T>& dst, const LocalTensor<T>& src, CUBECORE_AT) {          \
    NAME<T, isReuseSource>(dst, src, detail::free_memory(), src.GetSize(), at);                  \
  }
#define CUBECORE_OF_ONE(NAME, TEMPORARIES, BODY) \
  CUBECORE_FORMS(NAME, TEMPORARIES, BODY, typename T, bool isReuseSource = false)
// A function whose pages have ways to compute it, of Ascend 950: cubecore has one for all.
#define CUBECORE_OF_WAYS(NAME, TEMPORARIES, BODY, DEFAULT, FIRST, SECOND)                 \
  enum class NAME##Algo { FIRST = 0, SECOND };                                            \
  struct NAME##Config {                                                                   \
    NAME##Algo algo = NAME##Algo::FIRST;                                                  \
  };                                                                                      \
  constexpr NAME##Config DEFAULT = {};                                                    \
  CUBECORE_FORMS(NAME, TEMPORARIES, BODY, typename T, bool isReuseSource = false,         \
                 const NAME##Config& config = DEFAULT)

}  // namespace AscendC
