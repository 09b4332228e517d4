// C = A B^T on Ascend 950 in MX: the AIVs quantise floats to float8 and make their scales.
//
// Every AI Core multiplies TILE rows of A by all TILE rows of B. AIV0 takes A's rows and AIV1 those
// of B: in registers each 32 values of a row get one power of two as their scale, and become
// float8_e4m3fn in units of it. Values and scales go from UB to L1 in the layouts that the Cube
// reads, and never leave the AI Core. All of it is in the C API.
//
//   AIV   e = floor(log2(largest of 32)) - 8; scale 2^e as float8_e8m0, values x 2^-e as float8
//   AIC   C = sum over K of (scale values) (scale values)^T
//
// A is [TILE times the blocks, K], B is [TILE, K], float; C is [TILE times the blocks, TILE],
// float. Run it with
//   cubecore run mx_matmul_950.cpp --chip Ascend950PR_9589 --blocks 2 --arg a=a.npy --arg b=b.npy
//     --out-arg c=float32:128x64:c.npy

#include "kernel_operator.h"

constexpr uint32_t TILE = 64, K = 256;
constexpr uint32_t SHARED = 32;        // values of a row with one scale
constexpr uint32_t PAIR = 2 * SHARED;  // values of a register of floats: those of two scales
constexpr uint32_t PAIRS = K / PAIR;
constexpr uint32_t EDGE = 16;    // rows of a fractal
constexpr uint32_t LARGEST = 8;  // the exponent of the largest numbers of float8_e4m3fn
constexpr int16_t FRACTION = 23;  // bits of a float behind its exponent

// Addresses in L1 of what an AIV hands over, a matrix's values and behind them its scales; and in
// UB, where the floats come first.
constexpr uint32_t SCALES = TILE * K, MATRIX = SCALES + TILE * K / SHARED;
constexpr uint32_t QUANTISED = 4 * TILE * K, SCALED = 5 * TILE * K;

// The exponent of the largest lane, less that of the largest float8, at least 0: in every lane.
__simd_callee__ inline void scale_of(vector_uint32_t& code, vector_uint32_t& factor,
                                     vector_float& size, vector_bool& mask, vector_bool& every) {
  vector_float largest;
  asc_reduce_max(largest, size, mask);
  asc_duplicate(largest, largest, every);
  asc_shiftright_scalar(code, (vector_uint32_t&)largest, FRACTION, every);
  asc_max_scalar(code, code, LARGEST, every);
  asc_add_scalar(code, code, 0u - LARGEST, every);
  asc_mul_scalar(factor, code, ~0u, every);  // the power of two that undoes it
  asc_add_scalar(factor, factor, 254u, every);
  asc_shiftleft_scalar(factor, factor, FRACTION, every);
}

// Quantises TILE rows; the scales of two neighbours of a row stand together.
__simd_vf__ inline void quantise_rows(__ubuf__ float* x, __ubuf__ uint32_t* values,
                                      __ubuf__ uint16_t* scales) {
  vector_bool every = asc_create_mask_b32(PAT_ALL), one = asc_create_mask_b32(PAT_VL32), other;
  asc_not(other, one, every);
  vector_float row, size, scaled;
  vector_uint32_t code, next, factor, factor_next;
  vector_fp8_e4m3fn_t small;
  for (uint16_t number = 0; number < TILE; ++number) {
    for (uint16_t pair = 0; pair < PAIRS; ++pair) {
      asc_loadalign(row, x + number * K + pair * PAIR);
      asc_abs(size, row, every);
      scale_of(code, factor, size, one, every);
      scale_of(next, factor_next, size, other, every);
      asc_select(factor, factor, factor_next, one);
      asc_mul(scaled, row, (vector_float&)factor, every);
      asc_float2e4m3_rn_sat(small, scaled, every);
      asc_storealign_pack_quarter(values + (number * K + pair * PAIR) / 4,
                                  (vector_uint32_t&)small, every);
      asc_shiftleft_scalar(next, next, 8, every);
      asc_or(code, code, next, every);
      asc_storealign_1st(scales + pair * TILE + number, (vector_uint16_t&)code);
    }
  }
}

// Quantises a matrix of floats, and puts it into L1.
__aicore__ inline void quantise(__gm__ float* matrix, uint64_t to) {
  __ubuf__ float* x = (__ubuf__ float*)0;
  __ubuf__ uint8_t* values = (__ubuf__ uint8_t*)QUANTISED;
  __ubuf__ uint8_t* scales = (__ubuf__ uint8_t*)SCALED;
  asc_copy_gm2ub(x, matrix, 4 * TILE * K);
  asc_sync_notify(PIPE_MTE2, PIPE_V, 0);
  asc_sync_wait(PIPE_MTE2, PIPE_V, 0);
  quantise_rows(x, (__ubuf__ uint32_t*)values, (__ubuf__ uint16_t*)scales);
  asc_sync_notify(PIPE_V, PIPE_MTE3, 0);
  asc_sync_wait(PIPE_V, PIPE_MTE3, 0);
  // NZ: pieces of 32 values, each column of them row by row. Of scales a fractal is two of 16
  // rows, and those of 16 rows follow each other.
  for (uint32_t column = 0; column < K / SHARED; ++column)
    asc_copy_ub2l1((__cbuf__ uint8_t*)(to + column * TILE * SHARED), values + column * SHARED, TILE,
                   1, K / SHARED - 1, 0);
  for (uint32_t pair = 0; pair < PAIRS; ++pair)
    asc_copy_ub2l1((__cbuf__ uint8_t*)(to + SCALES + pair * 2 * EDGE), scales + pair * 2 * TILE,
                   TILE / EDGE, 1, 0, PAIRS - 1);
  asc_sync_intra_arrive(PIPE_MTE3, 0);
}

// Multiplies what both AIVs have put into L1.
__aicore__ inline void multiply(__gm__ float* c) {
  using Values = __cbuf__ fp8_e4m3fn_t*;
  using Scales = __cbuf__ fp8_e8m0_t*;
  __ca__ fp8_e4m3fn_t* left = (__ca__ fp8_e4m3fn_t*)0;
  __cb__ fp8_e4m3fn_t* right = (__cb__ fp8_e4m3fn_t*)0;
  __cc__ float* total = (__cc__ float*)0;
  constexpr uint32_t rows = TILE / EDGE, depth = K / SHARED;
  asc_sync_intra_wait(PIPE_MTE1, 0);
  asc_sync_intra_wait(PIPE_MTE1, 16);
  asc_copy_l12l0a(left, (Values)0, 0, 0, rows, depth, rows, rows);
  asc_copy_l12l0b(right, (Values)MATRIX, 0, 0, rows, depth, rows, rows);
  asc_copy_l12l0a_mx((uint64_t)left / 16, (Scales)SCALES, 0, 0, rows, PAIRS, PAIRS, PAIRS);
  asc_copy_l12l0b_mx((uint64_t)right / 16, (Scales)(MATRIX + SCALES), 0, 0, rows, PAIRS, PAIRS,
                     PAIRS);
  asc_sync_notify(PIPE_MTE1, PIPE_M, 0);
  asc_sync_wait(PIPE_MTE1, PIPE_M, 0);
  asc_mmad_mx(total, left, right, TILE, K, TILE, 0, false, false, true);
  asc_sync_notify(PIPE_M, PIPE_FIX, 0);
  asc_sync_wait(PIPE_M, PIPE_FIX, 0);
  asc_set_l0c2gm_nz2nd(1, 0, 1);
  asc_copy_l0c2gm(c, total, TILE, TILE, TILE, TILE, 0, 0, 0, QuantMode_t::NoQuant, 0, false, true,
                  QuantMode_post::NoConv, 0, false, 0, false, false, false, false);
}

extern "C" __global__ __mix__(1, 2) void mx_matmul_950(GM_ADDR a, GM_ADDR b, GM_ADDR c) {
  if ASC_IS_AIC {
    multiply((__gm__ float*)c + asc_get_block_idx() * TILE * TILE);
  }
  if ASC_IS_AIV {
    const int64_t ai_core = asc_get_block_idx() / asc_get_sub_block_num();
    if (asc_get_sub_block_id() == 0)
      quantise((__gm__ float*)a + ai_core * TILE * K, 0);
    else
      quantise((__gm__ float*)b, MATRIX);
  }
}
