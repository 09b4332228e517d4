// Built-in functions of the Cube core that public kernels call over raw pointers. Pages: the CCE
// intrinsics' "矩阵输入搬运"; the C API's of the same instructions; names and orders are those of
// public kernels.
#pragma once

#include "cubecore/cube/fixpipe.h"
#include "cubecore/cube/load_data.h"
#include "cubecore/intrinsics/common.h"

enum addr_cal_mode_t : uint8_t { inc = 0, dec = 1 };

// From global memory to L1, in fractals.
#define CUBECORE_ND2NZ(name)                                                                   \
  template <typename D, typename S>                                                            \
  inline void name(D* dst, S* src, uint8_t, uint16_t ndNum, uint16_t nValue, uint16_t dValue,  \
                   uint16_t srcNdMatrixStride, uint16_t srcDValue, uint16_t dstNzC0Stride,     \
                   uint16_t dstNzNStride, uint16_t dstNzMatrixStride, CUBECORE_AT) {           \
    cubecore::issue_raw("asc_copy_gm2l1_nd2nz", at, cubecore::operand(cubecore::Mem::L1, dst), \
                        cubecore::operand(cubecore::Mem::GM, src), ndNum, nValue, dValue,      \
                        srcNdMatrixStride, srcDValue, dstNzC0Stride, dstNzNStride,             \
                        dstNzMatrixStride);                                                    \
  }
CUBECORE_ND2NZ(copy_gm_to_cbuf_multi_nd2nz_b8)
CUBECORE_ND2NZ(copy_gm_to_cbuf_multi_nd2nz_b16)
CUBECORE_ND2NZ(copy_gm_to_cbuf_multi_nd2nz_b32s)
#undef CUBECORE_ND2NZ

namespace cubecore {

template <typename D, typename S>
inline void load_fractals(bool left, D* dst, S* src, uint16_t index, uint8_t repeat,
                          uint16_t stride, uint16_t gap, bool transpose, addr_cal_mode_t mode,
                          const Where& at) {
  Mem mem = left ? Mem::L0A : Mem::L0B;
  Pointer to = operand(mem, dst), from = operand(Mem::L1, src);
  if (transpose)
    issue_raw(left ? "asc_copy_l12l0a_trans" : "asc_copy_l12l0b_trans", at, to, from, index, repeat,
              stride, gap, named("decrement", mode == dec));
  else
    issue_raw(left ? "load_cbuf_to_ca" : "load_cbuf_to_cb", at, to, from, index, repeat, stride,
              gap, named("decrement", mode == dec));
}

}  // namespace cubecore

template <typename D, typename S>
inline void load_cbuf_to_ca(D* dst, S* src, uint16_t baseIdx, uint8_t repeat, uint16_t srcStride,
                            uint16_t dstGap, uint8_t, bool transpose, addr_cal_mode_t mode,
                            CUBECORE_AT) {
  cubecore::load_fractals(true, dst, src, baseIdx, repeat, srcStride, dstGap, transpose, mode, at);
}
template <typename D, typename S>
inline void load_cbuf_to_cb(D* dst, S* src, uint16_t baseIdx, uint8_t repeat, uint16_t srcStride,
                            uint16_t dstGap, uint8_t, bool transpose, addr_cal_mode_t mode,
                            CUBECORE_AT) {
  cubecore::load_fractals(false, dst, src, baseIdx, repeat, srcStride, dstGap, transpose, mode, at);
}

#define CUBECORE_TRANSPOSED(name, call, memory)                                               \
  template <typename D, typename S>                                                           \
  inline void name(D* dst, S* src, uint16_t index, uint8_t repeat, uint16_t srcStride,        \
                   uint16_t dstGap, addr_cal_mode_t mode, uint16_t dstFracGap, CUBECORE_AT) { \
    constexpr uint32_t unit = cubecore::steps_of_square(cubecore::Element<S>::bits);          \
    cubecore::issue_raw(call, at, cubecore::operand(cubecore::Mem::memory, dst),              \
                        cubecore::operand(cubecore::Mem::L1, src), index * unit, repeat,      \
                        srcStride * unit, dstGap, cubecore::named("decrement", mode == dec),  \
                        cubecore::named("dst_frac_gap", dstFracGap));                         \
  }
CUBECORE_TRANSPOSED(load_cbuf_to_ca_transpose, "asc_copy_l12l0a_trans", L0A)
CUBECORE_TRANSPOSED(load_cbuf_to_cb_transpose, "asc_copy_l12l0b_trans", L0B)
#undef CUBECORE_TRANSPOSED

// A fill of L1: the word holds repeats, blocks of 32 B and the gap between repeats, 16 bits each.
template <typename T>
inline void create_cbuf_matrix(T* dst, uint64_t config, uint64_t value, CUBECORE_AT) {
  cubecore::issue_raw("asc_fill_l1", at, cubecore::operand(cubecore::Mem::L1, dst), value,
                      config & 0xFFFF, config >> 16 & 0xFFFF, config >> 32 & 0xFFFF);
}
template <typename C, typename A, typename B>
inline void mad(C* c, A* a, B* b, uint16_t m, uint16_t k, uint16_t n, uint8_t unitFlag,
                bool kDirectionAlign, bool cmatrixSource, bool cmatrixInitVal, CUBECORE_AT) {
  using cubecore::Mem;
  cubecore::issue_raw("asc_mmad", at, cubecore::operand(Mem::L0C, c),
                      cubecore::operand(Mem::L0A, a), cubecore::operand(Mem::L0B, b), m, k, n,
                      unitFlag, kDirectionAlign, cmatrixSource, cmatrixInitVal);
}
template <typename D, typename S>
inline void copy_matrix_cc_to_gm(D* dst, S* src, uint8_t, uint16_t nSize, uint16_t mSize,
                                 uint32_t dstStride, uint16_t srcStride, uint8_t unitFlag,
                                 QuantMode_t quantPre, uint8_t reluPre, bool channelSplit,
                                 bool nz2ndEn, CUBECORE_AT) {
  using cubecore::Mem;
  cubecore::issue_raw("asc_copy_l0c2gm", at, cubecore::operand(Mem::GM, dst),
                      cubecore::operand(Mem::L0C, src), nSize, mSize, dstStride, srcStride,
                      unitFlag, cubecore::quant_word(quantPre), reluPre, channelSplit, nz2ndEn);
}
inline void set_nd_para(uint64_t config, CUBECORE_AT) { AscendC::SetNdParaImpl(config, at); }
inline void set_padding(uint64_t value, CUBECORE_AT) {
  AscendC::SetLoadDataPaddingValue<uint64_t>(value, at);
}
