// Quantised elements as numbers. Page of the high-level API: AscendAntiQuant.
#pragma once

#include "cubecore/library/quant.h"

namespace AscendC {

struct AntiQuantShapeInfo {
  uint32_t offsetHeight{0};
  uint32_t offsetWidth{0};
  uint32_t scaleHeight{0};
  uint32_t scaleWidth{0};
};

namespace detail {

// The type that AscendAntiQuant works in: half, and float for bfloat16_t.
template <typename D>
using AntiType = std::conditional_t<std::is_same_v<D, bfloat16_t>, float, half>;

// Elements [begin, begin + turn) of src, in the type of the work; `half` is room for the way.
template <typename C, typename S>
inline void widen(const LocalTensor<C>& x, const LocalTensor<S>& src, const LocalTensor<C>& by_way,
                  const Steps& steps) {
  if constexpr (std::is_same_v<C, half>) {
    steps.cast(x, src, RoundMode::CAST_NONE);
  } else {
    const LocalTensor<half> way = by_way.template ReinterpretCast<half>();
    steps.cast(way, src, RoundMode::CAST_NONE);
    steps.cast(x, way, RoundMode::CAST_NONE);
  }
}
template <typename D, typename C>
inline void narrow(const LocalTensor<D>& dst, const LocalTensor<C>& x, const Steps& steps) {
  if constexpr (!std::is_same_v<D, C>) steps.cast(dst, x, RoundMode::CAST_RINT);
}
// Where the work of a turn ends: in dst itself where the types agree.
template <typename D, typename C>
inline LocalTensor<C> place_of(const LocalTensor<D>& dst, const LocalTensor<C>& x) {
  if constexpr (std::is_same_v<D, C>)
    return dst;
  else
    return x;
}

struct Groups {
  uint32_t height, width;
};
template <typename D>
inline Groups groups_of(const LocalTensor<D>& factor, uint32_t height, uint32_t width,
                        uint32_t columns, bool transposed, uint32_t rows) {
  if (height != 0 && width != 0) return {height, width};
  ShapeInfo shape = factor.GetShapeInfo();
  if (shape.shapeDim == 2) return {shape.shape[0], shape.shape[1]};
  uint32_t across = transposed ? rows : columns;
  uint32_t groups = across == 0 ? 1 : factor.GetSize() / across;
  return transposed ? Groups{rows, groups} : Groups{groups, columns};
}

// src [k, n], factors [groups, n]: a row of factors for each group of rows.
template <typename D, typename S>
inline void antiquant_rows(const LocalTensor<D>& dst, const LocalTensor<S>& src,
                           const LocalTensor<D>* offset, const LocalTensor<D>& scale,
                           const LocalTensor<uint8_t>& given, uint32_t k, uint32_t groups,
                           const cubecore::Where& at) {
  using C = AntiType<PrimT<D>>;
  uint32_t n = src.GetSize() / k, size = (k + groups - 1) / groups;
  Parts<C> parts(given, 2, at);
  for (uint32_t row = 0; row < k; ++row) {
    uint32_t from = row / size * n;
    for (uint32_t done = 0; done < n;) {
      uint32_t turn = parts.turn(n - done);
      Steps steps(turn, at);
      const LocalTensor<D> to = dst[row * n + done];
      const LocalTensor<C> x = place_of(to, parts.part(0)), room = parts.part(1);
      widen(x, src[row * n + done], room, steps);
      if (offset != nullptr) steps.add(x, x, as_type<C>((*offset)[from + done], room, steps));
      steps.mul(x, x, as_type<C>(scale[from + done], room, steps));
      narrow(to, x, steps);
      done += turn;
    }
  }
}

// src [n, k], factors [n, groups]: a number for each group of a row's elements. Numbers are
// spread over blocks, 16 at a time.
template <typename D, typename S>
inline void antiquant_columns(const LocalTensor<D>& dst, const LocalTensor<S>& src,
                              const LocalTensor<D>* offset, const LocalTensor<D>& scale,
                              const LocalTensor<uint8_t>& given, uint32_t k, uint32_t groups,
                              const cubecore::Where& at) {
  using C = AntiType<PrimT<D>>;
  constexpr uint32_t once = 16, block = ONE_BLK_SIZE / sizeof(C), lanes = 256 / sizeof(C);
  uint32_t size = k / groups, numbers = src.GetSize() / size;
  Parts<C> parts(given, 5, at);
  const LocalTensor<C> copy = parts.part(2);
  const LocalTensor<C> spread[] = {parts.part(3), parts.part(4)};
  for (uint32_t first = 0; first < numbers; first += once) {
    uint32_t some = numbers - first < once ? numbers - first : once;
    Steps all(once, at), steps(some, at);
    for (uint32_t which = offset == nullptr ? 1 : 0; which < 2; ++which) {
      all.fill(copy, C(0.0f));
      const LocalTensor<D> from = (which == 0 ? *offset : scale)[first];
      if constexpr (std::is_same_v<PrimT<D>, C>)
        steps.muls(copy, from, 1.0f);
      else
        steps.cast(copy, from, RoundMode::CAST_NONE);
      cubecore::issue("asc_brcb", at, plain(spread[which]), plain(copy), 1, 8, once / 8);
      barrier(PIPE_V, at);
    }
    for (uint32_t number = 0; number < some; ++number) {
      for (uint32_t done = 0; done < size;) {
        uint32_t turn = parts.turn(size - done), begin = (first + number) * size + done;
        Steps part(turn, at);
        const LocalTensor<D> to = dst[begin];
        const LocalTensor<C> x = place_of(to, parts.part(0));
        widen(x, src[begin], parts.part(1), part);
        BinaryRepeatParams same(1, 1, 0, 8, 8, 0);
        for (uint32_t which = offset == nullptr ? 1 : 0; which < 2; ++which) {
          const LocalTensor<C> by = spread[which][number * block];
          for (uint32_t lane = 0; lane < turn; lane += lanes) {
            uint64_t some_lanes = turn - lane < lanes ? turn - lane : lanes;
            if (which == 0)
              Add(x[lane], x[lane], by, some_lanes, 1, same, at);
            else
              Mul(x[lane], x[lane], by, some_lanes, 1, same, at);
          }
          barrier(PIPE_V, at);
        }
        narrow(to, x, part);
        done += turn;
      }
    }
  }
  ResetMask(at);
}

template <bool isTranspose, typename D, typename S>
inline void antiquant(const LocalTensor<D>& dst, const LocalTensor<S>& src,
                      const LocalTensor<D>* offset, const LocalTensor<D>& scale,
                      const LocalTensor<uint8_t>& given, uint32_t k,
                      const AntiQuantShapeInfo& shape, const cubecore::Where& at) {
  if (k == 0 || src.GetSize() % k != 0)
    cubecore_refuse("AscendAntiQuant.k", "divide src's size", Digits(k).text, &at);
  uint32_t n = src.GetSize() / k;
  Groups found =
      groups_of(scale, shape.scaleHeight, shape.scaleWidth, isTranspose ? k : n, isTranspose, n);
  uint32_t groups = isTranspose ? found.width : found.height;
  if (groups == 0 || k % groups != 0)
    cubecore_refuse("AscendAntiQuant.scale", "have a number of groups that divides k",
                    Digits(groups).text, &at);
  if constexpr (isTranspose)
    antiquant_columns(dst, src, offset, scale, given, k, groups, at);
  else
    antiquant_rows(dst, src, offset, scale, given, k, groups, at);
}

template <typename D, typename S>
inline void antiquant_by(const LocalTensor<D>& dst, const LocalTensor<S>& src, const D* offset,
                         const D scale, const LocalTensor<uint8_t>& given,
                         const cubecore::Where& at) {
  using C = AntiType<PrimT<D>>;
  Parts<C> parts(given, 2, at);
  for (uint32_t done = 0, count = src.GetSize(); done < count;) {
    uint32_t turn = parts.turn(count - done);
    Steps steps(turn, at);
    const LocalTensor<D> to = dst[done];
    const LocalTensor<C> x = place_of(to, parts.part(0));
    widen(x, src[done], parts.part(1), steps);
    if (offset != nullptr) steps.adds(x, x, static_cast<float>(*offset));
    steps.muls(x, x, static_cast<float>(scale));
    narrow(to, x, steps);
    done += turn;
  }
}

}  // namespace detail

template <typename InputDataType, typename OutputDataType, bool isTranspose>
inline void AscendAntiQuant(const LocalTensor<OutputDataType>& dst,
                            const LocalTensor<InputDataType>& src,
                            const LocalTensor<OutputDataType>& offset,
                            const LocalTensor<OutputDataType>& scale,
                            const LocalTensor<uint8_t>& sharedTmpBuffer, const uint32_t k,
                            const AntiQuantShapeInfo& shapeInfo = {}, CUBECORE_AT) {
  detail::antiquant<isTranspose>(dst, src, &offset, scale, sharedTmpBuffer, k, shapeInfo, at);
}
template <typename InputDataType, typename OutputDataType, bool isTranspose>
inline void AscendAntiQuant(const LocalTensor<OutputDataType>& dst,
                            const LocalTensor<InputDataType>& src,
                            const LocalTensor<OutputDataType>& scale,
                            const LocalTensor<uint8_t>& sharedTmpBuffer, const uint32_t k,
                            const AntiQuantShapeInfo& shapeInfo = {}, CUBECORE_AT) {
  const LocalTensor<OutputDataType>* none = nullptr;
  detail::antiquant<isTranspose>(dst, src, none, scale, sharedTmpBuffer, k, shapeInfo, at);
}
template <typename InputDataType, typename OutputDataType, bool isTranspose>
inline void AscendAntiQuant(const LocalTensor<OutputDataType>& dst,
                            const LocalTensor<InputDataType>& src,
                            const LocalTensor<OutputDataType>& offset,
                            const LocalTensor<OutputDataType>& scale, const uint32_t k,
                            const AntiQuantShapeInfo& shapeInfo = {}, CUBECORE_AT) {
  detail::antiquant<isTranspose>(dst, src, &offset, scale, detail::free_memory(), k, shapeInfo, at);
}
template <typename InputDataType, typename OutputDataType, bool isTranspose>
inline void AscendAntiQuant(const LocalTensor<OutputDataType>& dst,
                            const LocalTensor<InputDataType>& src, const OutputDataType offset,
                            const OutputDataType scale, const LocalTensor<uint8_t>& sharedTmpBuffer,
                            const uint32_t, const AntiQuantShapeInfo& = {}, CUBECORE_AT) {
  detail::antiquant_by(dst, src, &offset, scale, sharedTmpBuffer, at);
}
template <typename InputDataType, typename OutputDataType, bool isTranspose>
inline void AscendAntiQuant(const LocalTensor<OutputDataType>& dst,
                            const LocalTensor<InputDataType>& src, const OutputDataType scale,
                            const LocalTensor<uint8_t>& sharedTmpBuffer, const uint32_t,
                            const AntiQuantShapeInfo& = {}, CUBECORE_AT) {
  const OutputDataType* none = nullptr;
  detail::antiquant_by(dst, src, none, scale, sharedTmpBuffer, at);
}
template <typename InputDataType, typename OutputDataType, bool isTranspose>
inline void AscendAntiQuant(const LocalTensor<OutputDataType>& dst,
                            const LocalTensor<InputDataType>& src, const OutputDataType offset,
                            const OutputDataType scale, const uint32_t,
                            const AntiQuantShapeInfo& = {}, CUBECORE_AT) {
  detail::antiquant_by(dst, src, &offset, scale, detail::free_memory(), at);
}

}  // namespace AscendC
