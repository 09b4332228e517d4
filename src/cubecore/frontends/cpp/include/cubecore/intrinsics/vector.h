// Built-in vector functions that public kernels call over raw pointers, with a number of repeats
// and strides in blocks. Pages: the C API's of the same instructions; names and orders are those of
// public kernels.
#pragma once

#include "cubecore/basic/convert.h"
#include "cubecore/basic/reduce.h"
#include "cubecore/intrinsics/common.h"

#define CUBECORE_UNARY(name, call)                                                               \
  template <typename D, typename S>                                                              \
  inline void name(D* dst, S* src, uint8_t repeat, uint16_t dstBlockStride,                      \
                   uint16_t srcBlockStride, uint16_t dstRepeatStride, uint16_t srcRepeatStride,  \
                   CUBECORE_AT) {                                                                \
    using cubecore::Mem;                                                                         \
    cubecore::issue_raw(call, at, cubecore::operand(Mem::UB, dst),                               \
                        cubecore::operand(Mem::UB, src), repeat, dstBlockStride, srcBlockStride, \
                        dstRepeatStride, srcRepeatStride);                                       \
  }
CUBECORE_EACH(Unary, CUBECORE_UNARY(name, "name"))

#define CUBECORE_CONVERT(name, mode) \
  CUBECORE_UNARY(name, (AscendC::detail::cast_call<D, S>(AscendC::RoundMode::mode)))
#define CUBECORE_CONVERTS(name)         \
  CUBECORE_CONVERT(name, CAST_NONE)     \
  CUBECORE_CONVERT(name##r, CAST_RINT)  \
  CUBECORE_CONVERT(name##f, CAST_FLOOR) \
  CUBECORE_CONVERT(name##c, CAST_CEIL)  \
  CUBECORE_CONVERT(name##a, CAST_ROUND) \
  CUBECORE_CONVERT(name##z, CAST_TRUNC)
CUBECORE_CONVERT(vconv_f162f32, CAST_NONE)
CUBECORE_CONVERT(vconv_bf162f32, CAST_NONE)
CUBECORE_CONVERT(vconv_s162f16, CAST_NONE)
CUBECORE_CONVERT(vconv_s162f32, CAST_NONE)
CUBECORE_CONVERT(vconv_s322f32, CAST_NONE)
CUBECORE_CONVERTS(vconv_f322f16)
CUBECORE_CONVERTS(vconv_f322bf16)
CUBECORE_CONVERTS(vconv_f322s16)
CUBECORE_CONVERTS(vconv_f322s32)
CUBECORE_CONVERTS(vconv_f162s32)
#undef CUBECORE_CONVERTS
#undef CUBECORE_CONVERT
#undef CUBECORE_UNARY

#define CUBECORE_SCALAR(name)                                                                      \
  template <typename T, typename V>                                                                \
  inline void name(T* dst, T* src, V value, uint8_t repeat, uint16_t dstBlockStride,               \
                   uint16_t srcBlockStride, uint16_t dstRepeatStride, uint16_t srcRepeatStride,    \
                   CUBECORE_AT) {                                                                  \
    using cubecore::Mem;                                                                           \
    cubecore::issue_raw(#name, at, cubecore::operand(Mem::UB, dst),                                \
                        cubecore::operand(Mem::UB, src), cubecore::plain(static_cast<T>(value)),   \
                        repeat, dstBlockStride, srcBlockStride, dstRepeatStride, srcRepeatStride); \
  }
CUBECORE_SCALAR(vadds)
CUBECORE_SCALAR(vmuls)
CUBECORE_SCALAR(vmaxs)
CUBECORE_SCALAR(vmins)
#undef CUBECORE_SCALAR

// Sums, largest and smallest values of each block, a repeat's behind one another.
#define CUBECORE_GROUPS(name)                                                                     \
  template <typename T>                                                                           \
  inline void name(T* dst, T* src, uint8_t repeat, uint16_t dstRepeatStride,                      \
                   uint16_t srcBlockStride, uint16_t srcRepeatStride, CUBECORE_AT) {              \
    using cubecore::Mem;                                                                          \
    cubecore::issue_raw(#name, at, cubecore::operand(Mem::UB, dst),                               \
                        cubecore::operand(Mem::UB, src), repeat, dstRepeatStride, srcBlockStride, \
                        srcRepeatStride);                                                         \
  }
CUBECORE_GROUPS(vcgadd)
CUBECORE_GROUPS(vcgmax)
CUBECORE_GROUPS(vcgmin)
#undef CUBECORE_GROUPS
// The largest or smallest value of each repeat and its place, or one of them.
enum class Order_t : uint8_t { VALUE_INDEX, INDEX_VALUE, ONLY_VALUE, ONLY_INDEX };
#define CUBECORE_EXTREME(name, largest)                                                         \
  template <typename D, typename S>                                                             \
  inline void name(D* dst, S* src, uint8_t repeat, uint16_t dstRepeatStride,                    \
                   uint16_t srcBlockStride, uint16_t srcRepeatStride, Order_t order,            \
                   CUBECORE_AT) {                                                               \
    using cubecore::Mem;                                                                        \
    constexpr AscendC::ReduceOrder orders[] = {                                                 \
        AscendC::ReduceOrder::ORDER_VALUE_INDEX, AscendC::ReduceOrder::ORDER_INDEX_VALUE,       \
        AscendC::ReduceOrder::ORDER_ONLY_VALUE, AscendC::ReduceOrder::ORDER_ONLY_INDEX};        \
    cubecore::issue_raw(                                                                        \
        AscendC::detail::extreme_call(largest, orders[static_cast<uint8_t>(order)]), at,        \
        cubecore::operand(Mem::UB, reinterpret_cast<S*>(dst)), cubecore::operand(Mem::UB, src), \
        repeat, dstRepeatStride, srcBlockStride, srcRepeatStride);                              \
  }
CUBECORE_EXTREME(vcmax, true)
CUBECORE_EXTREME(vcmin, false)
#undef CUBECORE_EXTREME

namespace AscendC {

// Without a page: public kernels call these in the place of vcgmax and vcgadd.
template <typename T>
inline void BlockReduceMaxIntrinsicsImpl(T* dst, T* src, uint8_t repeat, uint16_t dstRepStride,
                                         uint16_t srcBlkStride, uint16_t srcRepStride,
                                         CUBECORE_AT) {
  vcgmax(dst, src, repeat, dstRepStride, srcBlkStride, srcRepStride, at);
}
template <typename T>
inline void BlockReduceSumIntrinsicsImpl(T* dst, T* src, uint8_t repeat, uint16_t dstRepStride,
                                         uint16_t srcBlkStride, uint16_t srcRepStride,
                                         CUBECORE_AT) {
  vcgadd(dst, src, repeat, dstRepStride, srcBlkStride, srcRepStride, at);
}

}  // namespace AscendC

template <typename D, typename S>
inline void vbrcb(D* dst, S* src, uint16_t dstBlockStride, uint16_t dstRepeatStride, uint8_t repeat,
                  CUBECORE_AT) {
  using cubecore::Mem;
  cubecore::issue_raw("vbrcb", at, cubecore::operand(Mem::UB, dst), cubecore::operand(Mem::UB, src),
                      dstBlockStride, dstRepeatStride, repeat);
}
