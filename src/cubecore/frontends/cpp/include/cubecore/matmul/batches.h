// Batches of a Matmul object. Pages: IterateBatch, the layouts of MatmulType.
#pragma once

#include "cubecore/matmul/call.h"
#include "cubecore/matmul/types.h"
#include "cubecore/seam/types.h"

namespace AscendC {

// No page has it: how the matrices of a tensor lie, as elements from row to row (0 where the
// tensor's own width says it), from matrix to matrix, and from `group` matrices to the next.
struct MatrixLayout {
  int32_t pitch;
  int64_t next;
  int64_t group, next_group;

  // The first element of a matrix, where they are `stride` elements apart if that is not 0.
  int64_t start(int64_t number, int64_t stride) const {
    if (stride != 0) return number * stride;
    return number / group * next_group + number % group * next;
  }
};

inline MatrixLayout layout_of(LayoutMode layout, int32_t b, int32_t s, int32_t n, int32_t g,
                              int32_t d, int64_t matrix) {
  int32_t row = n * g * d;
  int64_t all = 1ll << 40;
  switch (layout) {
    case LayoutMode::BSNGD:
      return {row, d, n * g, static_cast<int64_t>(s) * row};
    case LayoutMode::SBNGD:
      return {b * row, d, all, 0};
    case LayoutMode::BNGS1S2:
      return {d, static_cast<int64_t>(s) * d, all, 0};
    default:
      return {0, matrix, all, 0};
  }
}

// Of A (operand 0) or B (1), as a tiling and the extents of a call say it.
template <class TYPE>
MatrixLayout layout_of(const tiling::TCubeTiling& t, const int32_t (&org)[5], int operand) {
  if (operand == 0)
    return layout_of(TYPE::layout, t.ALayoutInfoB, t.ALayoutInfoS, t.ALayoutInfoN, t.ALayoutInfoG,
                     t.ALayoutInfoD, static_cast<int64_t>(org[0]) * org[2]);
  return layout_of(TYPE::layout, t.BLayoutInfoB, t.BLayoutInfoS, t.BLayoutInfoN, t.BLayoutInfoG,
                   t.BLayoutInfoD, static_cast<int64_t>(org[1]) * org[3]);
}

// No page has it: lets a call compute so many matrices of A and of B, `strides` elements apart
// where that is not 0 (of A, B and C), else as the layouts of the tiling have them.
template <class A_TYPE, class B_TYPE, class C_TYPE, class BIAS_TYPE>
void set_batch(cubecore::MatmulCall& call, int32_t batch_a, int32_t batch_b,
               const uint32_t (&strides)[3], bool bias_batch) {
  using namespace cubecore;
  const tiling::TCubeTiling& t = call.tiling;
  call.batches = batch_a > batch_b ? batch_a : batch_b;
  MatrixLayout a = layout_of<A_TYPE>(t, call.org, 0), b = layout_of<B_TYPE>(t, call.org, 1);
  MatrixLayout c =
      layout_of(C_TYPE::layout, t.CLayoutInfoB, t.CLayoutInfoS1, t.CLayoutInfoN, t.CLayoutInfoG,
                t.CLayoutInfoS2,
                static_cast<int64_t>(call.org[0]) * (call.org[4] != 0 ? call.org[4] : call.org[1]));
  if (c.pitch != 0)
    call.org[4] = c.pitch;
  else if (call.org[4] == 0)
    call.org[4] = call.org[1];
  if (a.pitch != 0) call.org[call.trans[0] ? 0 : 2] = a.pitch;
  if (b.pitch != 0) call.org[call.trans[1] ? 3 : 1] = b.pitch;
  if (strides[0] != 0) a.next = strides[0];
  if (strides[1] != 0) b.next = strides[1];
  if (strides[2] != 0) c.next = strides[2];
  call.each[MM_A] = batch_a;
  call.each[MM_B] = batch_b;
  call.each[MM_BIAS] = bias_batch ? call.batches : 0;
  call.each[MM_C] = call.batches;
  call.strides[MM_A] = bytes_of<typename A_TYPE::T>(a.next);
  call.strides[MM_B] = bytes_of<typename B_TYPE::T>(b.next);
  call.strides[MM_BIAS] = bytes_of<typename BIAS_TYPE::T>(call.single[1]);
  call.strides[MM_C] = bytes_of<typename C_TYPE::T>(c.next);
}

}  // namespace AscendC
