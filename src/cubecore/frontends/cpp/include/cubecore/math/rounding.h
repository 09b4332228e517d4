// Rounding and clamping. Pages: Ceil, Floor, Trunc, Round, Rint, Frac, Sign, ClampMax, ClampMin,
// and the forms of Axpy and Xor with a workspace.
#pragma once

#include "cubecore/math/steps.h"

namespace AscendC {

namespace detail {

template <RoundMode mode>
struct Rounded {
  void operator()(const Steps& steps, const Floats& d, const Floats& x, const Floats*) const {
    steps.cast(d, x, mode);
  }
};

struct Fraction {
  void operator()(const Steps& steps, const Floats& d, const Floats& x, const Floats* t) const {
    steps.cast(t[0], x, RoundMode::CAST_TRUNC);
    steps.sub(d, x, t[0]);
  }
};

struct SignOf {
  void operator()(const Steps& steps, const Floats& d, const Floats& x, const Floats*) const {
    steps.sign(d, x);
  }
};

}  // namespace detail

CUBECORE_OF_ONE(Ceil, 0, detail::Rounded<RoundMode::CAST_CEIL>())
CUBECORE_OF_ONE(Floor, 0, detail::Rounded<RoundMode::CAST_FLOOR>())
CUBECORE_OF_ONE(Trunc, 0, detail::Rounded<RoundMode::CAST_TRUNC>())
// Page Round: the nearest integer, and the even one of two.
CUBECORE_OF_ONE(Round, 0, detail::Rounded<RoundMode::CAST_RINT>())
CUBECORE_OF_ONE(Rint, 0, detail::Rounded<RoundMode::CAST_RINT>())
CUBECORE_OF_ONE(Frac, 1, detail::Fraction())
CUBECORE_OF_ONE(Sign, 0, detail::SignOf())

#define CUBECORE_CLAMP(NAME, CALL)                                                       \
  template <typename T, bool isReuseSource = false>                                      \
  inline void NAME(const LocalTensor<T>& dst, const LocalTensor<T>& src,                 \
                   const LocalTensor<uint8_t>& sharedTmpBuffer, const T scalar,          \
                   const uint32_t calCount, CUBECORE_AT) {                               \
    (void)sharedTmpBuffer;                                                               \
    CALL(dst, src, scalar, static_cast<int32_t>(calCount), at);                          \
    detail::barrier(PIPE_V, at);                                                         \
  }                                                                                      \
  template <typename T, bool isReuseSource = false>                                      \
  inline void NAME(const LocalTensor<T>& dst, const LocalTensor<T>& src, const T scalar, \
                   const uint32_t calCount, CUBECORE_AT) {                               \
    CALL(dst, src, scalar, static_cast<int32_t>(calCount), at);                          \
    detail::barrier(PIPE_V, at);                                                         \
  }
CUBECORE_CLAMP(ClampMax, Mins)
CUBECORE_CLAMP(ClampMin, Maxs)
#undef CUBECORE_CLAMP

template <typename T, typename U, bool isReuseSource = false>
inline void Axpy(const LocalTensor<T>& dst, const LocalTensor<U>& src, const U scalarValue,
                 const LocalTensor<uint8_t>&, const uint32_t calCount, CUBECORE_AT) {
  Axpy(dst, src, scalarValue, static_cast<int32_t>(calCount), at);
  detail::barrier(PIPE_V, at);
}

// Exclusive or: what either has, but not both.
template <typename T, bool isReuseSource = false>
inline void Xor(const LocalTensor<T>& dst, const LocalTensor<T>& src0, const LocalTensor<T>& src1,
                const LocalTensor<uint8_t>& sharedTmpBuffer, const uint32_t calCount, CUBECORE_AT) {
  static_assert(sizeof(PrimT<T>) == 2, "Xor must take int16_t or uint16_t, got another type");
  detail::Workspace work(sharedTmpBuffer, 1, at);
  LocalTensor<T> both = work.floats(0).template ReinterpretCast<T>();
  for (uint32_t done = 0; done < calCount;) {
    uint32_t turn = work.turn((calCount - done + 1) / 2) * 2;
    turn = turn < calCount - done ? turn : calCount - done;
    int32_t count = static_cast<int32_t>(turn);
    And(both, src0[done], src1[done], count, at);
    detail::barrier(PIPE_V, at);
    Not(both, both, count, at);
    Or(dst[done], src0[done], src1[done], count, at);
    detail::barrier(PIPE_V, at);
    And(dst[done], dst[done], both, count, at);
    detail::barrier(PIPE_V, at);
    done += turn;
  }
}
template <typename T, bool isReuseSource = false>
inline void Xor(const LocalTensor<T>& dst, const LocalTensor<T>& src0, const LocalTensor<T>& src1,
                const LocalTensor<uint8_t>& sharedTmpBuffer, CUBECORE_AT) {
  Xor<T, isReuseSource>(dst, src0, src1, sharedTmpBuffer, src0.GetSize(), at);
}
template <typename T, bool isReuseSource = false>
inline void Xor(const LocalTensor<T>& dst, const LocalTensor<T>& src0, const LocalTensor<T>& src1,
                const uint32_t calCount, CUBECORE_AT) {
  Xor<T, isReuseSource>(dst, src0, src1, detail::free_memory(), calCount, at);
}
template <typename T, bool isReuseSource = false>
inline void Xor(const LocalTensor<T>& dst, const LocalTensor<T>& src0, const LocalTensor<T>& src1,
                CUBECORE_AT) {
  Xor<T, isReuseSource>(dst, src0, src1, detail::free_memory(), src0.GetSize(), at);
}

}  // namespace AscendC
