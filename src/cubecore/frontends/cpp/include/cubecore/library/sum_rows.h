// Sums of rows. Page of the high-level API: Sum.
#pragma once

#include "cubecore/math/steps.h"

namespace AscendC {

struct SumParams {
  uint32_t outter = 1;
  uint32_t inner;
  uint32_t n;
};

// Rows of a repeat or less are summed at once, longer ones one by one.
template <typename T, int32_t reduceDim = -1, bool isReuseSource = false, bool isBasicBlock = false>
inline void Sum(const LocalTensor<T>& dstTensor, const LocalTensor<T>& srcTensor,
                const LocalTensor<uint8_t>& sharedTmpBuffer, const SumParams& sumParams,
                CUBECORE_AT) {
  constexpr uint32_t lanes = detail::lanes_of<T>(), block = ONE_BLK_SIZE / sizeof(PrimT<T>);
  uint32_t rows = sumParams.outter, n = sumParams.n;
  if (sumParams.inner != (n + block - 1) / block * block)
    cubecore_refuse("Sum.inner", "be n up to a multiple of 32 B",
                    detail::Digits(sumParams.inner).text, &at);
  if (n <= lanes) {
    detail::set_lanes(n, at);
    for (uint32_t row = 0; row < rows; row += detail::MOST_TIMES) {
      uint32_t times = rows - row < detail::MOST_TIMES ? rows - row : detail::MOST_TIMES;
      detail::reduced("asc_repeat_reduce_sum", dstTensor[row], srcTensor[row * sumParams.inner],
                      static_cast<int32_t>(times), 1, 1,
                      static_cast<int32_t>(sumParams.inner / block), at);
    }
  } else {
    const LocalTensor<T> work = sharedTmpBuffer.template ReinterpretCast<T>();
    uint32_t needed = (n + lanes - 1) / lanes;
    if (work.GetSize() < needed)
      cubecore_refuse("Sum.sharedTmpBuffer", "hold an element for each repeat of a row",
                      detail::Digits(sharedTmpBuffer.GetSize(), " B").text, &at);
    for (uint32_t row = 0; row < rows; ++row) {
      detail::sum_through(dstTensor[row], srcTensor[row * sumParams.inner], work,
                          static_cast<int32_t>(n), at);
      detail::barrier(PIPE_V, at);
    }
  }
  detail::barrier(PIPE_V, at);
}
template <typename T, int32_t reduceDim = -1, bool isReuseSource = false, bool isBasicBlock = false>
inline void Sum(const LocalTensor<T>& dstTensor, const LocalTensor<T>& srcTensor,
                const SumParams& sumParams, CUBECORE_AT) {
  Sum(dstTensor, srcTensor, detail::free_memory(), sumParams, at);
}

}  // namespace AscendC
