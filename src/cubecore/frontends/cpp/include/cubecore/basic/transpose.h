// Matrices turned round in UB. Pages: Transpose, TransDataTo5HD.
#pragma once

#include "cubecore/basic/compare.h"

namespace AscendC {

constexpr int32_t NCHW_CONV_ADDR_LIST_SIZE = 16;

enum class TransposeType : uint8_t {
  TRANSPOSE_TYPE_NONE,
  TRANSPOSE_NZ2ND_0213,
  TRANSPOSE_NZ2NZ_0213,
  TRANSPOSE_NZ2NZ_012_WITH_N,
  TRANSPOSE_NZ2ND_012_WITH_N,
  TRANSPOSE_NZ2ND_012_WITHOUT_N,
  TRANSPOSE_NZ2NZ_012_WITHOUT_N,
  TRANSPOSE_ND2ND_ONLY,
  TRANSPOSE_ND_UB_GM,
  TRANSPOSE_GRAD_ND_UB_GM,
  TRANSPOSE_ND2ND_B16,
  TRANSPOSE_NCHW2NHWC,
  TRANSPOSE_NHWC2NCHW,
  TRANSPOSE_ND2ND_021,
  TRANSPOSE_ND2ND_102,
  TRANSPOSE_ND2ND_210,
  TRANSPOSE_ND2NZ_WITH_INTLV
};

struct TransposeParamsExt {
  uint16_t nSize = 0, cSize = 0, hSize = 0, wSize = 0;
  TransposeType transposeType = TransposeType::TRANSPOSE_ND2ND_B16;
  CUBECORE_TAKES(nSize, cSize, hSize, wSize, transposeType)
};

struct TransDataTo5HDParams {
  bool dstHighHalf = false;
  bool srcHighHalf = false;
  uint8_t repeatTimes = 1;
  uint16_t dstRepStride = 0;
  uint16_t srcRepStride = 0;
  constexpr CUBECORE_TAKES(dstHighHalf, srcHighHalf, repeatTimes, dstRepStride, srcRepStride)
};

template <typename T>
inline void Transpose(const LocalTensor<T>& dst, const LocalTensor<T>& src, CUBECORE_AT) {
  cubecore::Pointer to = dst.pointer(), from = src.pointer();
  to.type = from.type = "uint16";
  cubecore::issue("asc_transpose", at, to, from);
}

namespace detail {

inline void set_va(int32_t number, const uint64_t* at_, const cubecore::Where& at) {
  cubecore::issue("asc_set_va_reg", at, cubecore::named("va", number),
                  cubecore::named("address0", at_[0]), cubecore::named("address1", at_[1]),
                  cubecore::named("address2", at_[2]), cubecore::named("address3", at_[3]),
                  cubecore::named("address4", at_[4]), cubecore::named("address5", at_[5]),
                  cubecore::named("address6", at_[6]), cubecore::named("address7", at_[7]));
}

}  // namespace detail

// Addresses of sixteen blocks each; four VA registers hold them.
template <typename T>
inline void TransDataTo5HD(const uint64_t dstList[NCHW_CONV_ADDR_LIST_SIZE],
                           const uint64_t srcList[NCHW_CONV_ADDR_LIST_SIZE],
                           const TransDataTo5HDParams& p, CUBECORE_AT) {
  constexpr uint32_t size = sizeof(PrimT<T>);
  static_assert(size == 1 || size == 2 || size == 4,
                "TransDataTo5HD must take elements of 8, 16 or 32 bits, got others");
  detail::set_va(0, dstList, at);
  detail::set_va(1, dstList + 8, at);
  detail::set_va(2, srcList, at);
  detail::set_va(3, srcList + 8, at);
  constexpr const char* call = size == 2 ? "asc_transto5hd_b16" : "asc_transto5hd_b32";
  if constexpr (size == 1)
    cubecore::issue("asc_transto5hd_b8", at, 0, 2, p.repeatTimes, p.dstRepStride, p.srcRepStride,
                    p.dstHighHalf, p.srcHighHalf);
  else
    cubecore::issue(call, at, 0, 2, p.repeatTimes, p.dstRepStride, p.srcRepStride);
}
template <typename T>
inline void TransDataTo5HD(const LocalTensor<T> (&dstList)[NCHW_CONV_ADDR_LIST_SIZE],
                           const LocalTensor<T> (&srcList)[NCHW_CONV_ADDR_LIST_SIZE],
                           const TransDataTo5HDParams& p, CUBECORE_AT) {
  uint64_t to[NCHW_CONV_ADDR_LIST_SIZE], from[NCHW_CONV_ADDR_LIST_SIZE];
  for (int32_t n = 0; n < NCHW_CONV_ADDR_LIST_SIZE; ++n) {
    to[n] = dstList[n].GetPhyAddr();
    from[n] = srcList[n].GetPhyAddr();
  }
  TransDataTo5HD<T>(to, from, p, at);
}
template <typename T>
inline void TransDataTo5HD(const LocalTensor<uint64_t>& dst, const LocalTensor<uint64_t>& src,
                           const TransDataTo5HDParams& p, CUBECORE_AT) {
  uint64_t to[NCHW_CONV_ADDR_LIST_SIZE], from[NCHW_CONV_ADDR_LIST_SIZE];
  for (uint32_t n = 0; n < NCHW_CONV_ADDR_LIST_SIZE; ++n) {
    to[n] = dst.GetValue(n, at);
    from[n] = src.GetValue(n, at);
  }
  TransDataTo5HD<T>(to, from, p, at);
}

// No page has it; public kernels call it with pointers.
template <typename T>
inline void TransDataTo5HDImpl(T* const (&dstList)[NCHW_CONV_ADDR_LIST_SIZE],
                               T* const (&srcList)[NCHW_CONV_ADDR_LIST_SIZE],
                               const TransDataTo5HDParams& p, CUBECORE_AT) {
  uint64_t to[NCHW_CONV_ADDR_LIST_SIZE], from[NCHW_CONV_ADDR_LIST_SIZE];
  for (int32_t n = 0; n < NCHW_CONV_ADDR_LIST_SIZE; ++n) {
    to[n] = reinterpret_cast<uint64_t>(dstList[n]);
    from[n] = reinterpret_cast<uint64_t>(srcList[n]);
  }
  TransDataTo5HD<T>(to, from, p, at);
}

}  // namespace AscendC

// The built-in functions below these, as public kernels call them. Page: asc_set_va_reg.
enum ub_addr8_t : uint8_t { VA0, VA1, VA2, VA3, VA4, VA5, VA6, VA7 };

template <typename T>
inline void asc_set_va_reg(ub_addr8_t addr, T* const* src_array, CUBECORE_AT) {
  uint64_t addresses[8];
  for (int32_t n = 0; n < 8; ++n) addresses[n] = reinterpret_cast<uint64_t>(src_array[n]);
  AscendC::detail::set_va(addr, addresses, at);
}
inline void set_va_reg_sb(ub_addr8_t va, const uint64_t* addresses, CUBECORE_AT) {
  AscendC::detail::set_va(va, addresses, at);
}
inline void scatter_vnchwconv_b16(ub_addr8_t dst, ub_addr8_t src, uint8_t repeat,
                                  uint16_t dstStride, uint16_t srcStride, CUBECORE_AT) {
  cubecore::issue("asc_transto5hd_b16", at, static_cast<int>(dst), static_cast<int>(src), repeat,
                  dstStride, srcStride);
}
inline void scatter_vnchwconv_b32(ub_addr8_t dst, ub_addr8_t src, uint8_t repeat,
                                  uint16_t dstStride, uint16_t srcStride, CUBECORE_AT) {
  cubecore::issue("asc_transto5hd_b32", at, static_cast<int>(dst), static_cast<int>(src), repeat,
                  dstStride, srcStride);
}
