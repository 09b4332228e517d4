// Sums of all elements up to each. Page CumSum.
#pragma once

#include "cubecore/basic/gather.h"
#include "cubecore/math/steps.h"

namespace AscendC {

enum class CumSumAlgorithm { CUMSUM_ALGORITHM_LINEBYLINE = 0, CUMSUM_ALGORITHM_SKLANSKY = 1 };
struct CumSumConfig {
  bool isLastAxis{true};
  bool isReuseSource{false};
  bool outputLastRow{false};
  CumSumAlgorithm algorithm{CumSumAlgorithm::CUMSUM_ALGORITHM_LINEBYLINE};
};
struct CumSumInfo {
  uint32_t outter{0};
  uint32_t inner{0};
};
constexpr CumSumConfig defaultCumSumConfig = {};

namespace detail {

constexpr uint32_t CUMSUM_ROWS = 8;  // of float: a block

// The bytes that sums along rows of so many elements take: columns of eight rows, those rows in
// float, and offsets.
constexpr uint32_t cumsum_bytes(uint32_t inner) {
  return (2 * CUMSUM_ROWS + 1) * 4 * ((inner + 7) / 8 * 8) + 32;
}

// Numbers from 0 on, so far apart.
inline void count_up(const LocalTensor<int32_t>& dst, int32_t step, uint32_t count,
                     const cubecore::Where& at) {
  CreateVecIndex(dst, 0, count, at);
  barrier(PIPE_V, at);
  Muls(dst, dst, step, static_cast<int32_t>(count), at);
  barrier(PIPE_V, at);
}

// Along the last axis: eight rows become columns, are added up, and become rows again.
template <typename T, const CumSumConfig& config>
inline void sums_of_rows(const LocalTensor<T>& dst, const LocalTensor<T>& lastRow,
                         const LocalTensor<T>& src, const LocalTensor<uint8_t>& offered,
                         const CumSumInfo& info, const cubecore::Where& at) {
  constexpr bool casts = std::is_same_v<PrimT<T>, half>;
  const uint32_t inner = info.inner, whole = (inner + 7) / 8 * 8, block = CUMSUM_ROWS * whole;
  const LocalTensor<uint8_t> given =
      required("CumSum.sharedTmpBuffer", offered, cumsum_bytes(inner), at);
  const Floats columns = given.template ReinterpretCast<float>(), rows = columns[block];
  const auto down = rows[block].template ReinterpretCast<int32_t>(), across = down[8];
  const auto from_row = down.template ReinterpretCast<uint32_t>();
  const auto from_column = across.template ReinterpretCast<uint32_t>();
  const Steps eight(CUMSUM_ROWS, at), all(inner, at);
  for (uint32_t first = 0; first < info.outter; first += CUMSUM_ROWS) {
    uint32_t left = info.outter - first, count = left < CUMSUM_ROWS ? left : CUMSUM_ROWS;
    Steps held(count * inner, at), side(count, at);
    Floats from, to;
    if constexpr (casts) {
      from = to = rows;
      held.cast(rows, src[first * inner], RoundMode::CAST_NONE);
    } else {
      from = src[first * inner];
      to = dst[first * inner];
    }
    count_up(down, static_cast<int32_t>(inner * 4), CUMSUM_ROWS, at);
    for (uint32_t n = 0; n < inner; ++n) {
      Gather(columns[n * CUMSUM_ROWS], from, from_row, 0, count, at);
      barrier(PIPE_V, at);
      eight.adds(down, down, 4);
      if (n != 0)
        side.add(columns[n * CUMSUM_ROWS], columns[(n - 1) * CUMSUM_ROWS],
                 columns[n * CUMSUM_ROWS]);
    }
    count_up(across, CUMSUM_ROWS * 4, inner, at);
    for (uint32_t n = 0; n < count; ++n) {
      Gather(to[n * inner], columns, from_column, 0, inner, at);
      barrier(PIPE_V, at);
      all.adds(across, across, 4);
    }
    if constexpr (casts) held.cast(dst[first * inner], rows, RoundMode::CAST_RINT);
  }
  if constexpr (config.outputLastRow)
    all.adds(lastRow, dst[(info.outter - 1) * inner], PrimT<T>(0.0f));
}

}  // namespace detail

// Row by row in float: half adds up what is not rounded yet.
template <typename T, const CumSumConfig& config = defaultCumSumConfig>
inline void CumSum(const LocalTensor<T>& dst, const LocalTensor<T>& lastRow,
                   const LocalTensor<T>& src, const LocalTensor<uint8_t>& sharedTmpBuffer,
                   const CumSumInfo& info, CUBECORE_AT) {
  if constexpr (config.isLastAxis) {
    detail::sums_of_rows<T, config>(dst, lastRow, src, sharedTmpBuffer, info, at);
    return;
  }
  constexpr bool casts = std::is_same_v<PrimT<T>, half>;
  detail::Workspace work(sharedTmpBuffer, 2, at);
  detail::Floats sum = work.floats(0), row = work.floats(1);
  for (uint32_t left = 0; left < info.inner;) {
    uint32_t turn = work.turn(info.inner - left);
    detail::Steps steps(turn, at);
    for (uint32_t n = 0; n < info.outter; ++n) {
      LocalTensor<T> from = src[n * info.inner + left], to = dst[n * info.inner + left];
      if constexpr (casts) {
        steps.cast(n == 0 ? sum : row, from, RoundMode::CAST_NONE);
        if (n != 0) steps.add(sum, sum, row);
        steps.cast(to, sum, RoundMode::CAST_RINT);
      } else {
        if (n == 0)
          steps.adds(to, from, 0.0f);
        else
          steps.add(to, dst[(n - 1) * info.inner + left], from);
      }
    }
    if constexpr (config.outputLastRow) {
      LocalTensor<T> last = dst[(info.outter - 1) * info.inner + left];
      steps.adds(lastRow[left], last, PrimT<T>(0.0f));
    }
    left += turn;
  }
}
template <typename T, const CumSumConfig& config = defaultCumSumConfig>
inline void CumSum(const LocalTensor<T>& dst, const LocalTensor<T>& lastRow,
                   const LocalTensor<T>& src, const CumSumInfo& info, CUBECORE_AT) {
  CumSum<T, config>(dst, lastRow, src, detail::free_memory(), info, at);
}

}  // namespace AscendC
