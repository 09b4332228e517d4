// Quantisation. Pages of the high-level API: AscendQuant, AscendDequant.
#pragma once

#include "cubecore/basic/gather.h"
#include "cubecore/host/workspaces.h"
#include "cubecore/math/steps.h"

namespace AscendC {

struct AscendQuantConfig {
  uint32_t calcCount = 0;
  uint32_t offsetCount = 0;
  uint32_t scaleCount = 0;
  uint32_t workLocalSize = 0;
};
constexpr AscendQuantConfig ASCEND_QUANT_DEFAULT_CFG = {0, 0, 0, 0};

enum class DeQuantMode { DEQUANT_WITH_SINGLE_ROW, DEQUANT_WITH_MULTI_ROW };

struct DequantParams {
  uint32_t m;
  uint32_t n;
  uint32_t calCount;
};

namespace detail {

constexpr uint32_t QUANT_LANES = 128;  // elements of a turn are a multiple of them

// Temporaries of one type, all of one length.
template <typename C>
class Parts {
 public:
  Parts(const LocalTensor<uint8_t>& offered, uint32_t parts, const cubecore::Where& at)
      : given_(enough(offered, parts * QUANT_LANES * sizeof(C))),
        lanes_(given_.GetSize() / sizeof(C) / parts / QUANT_LANES * QUANT_LANES) {
    constexpr uint32_t repeats = QUANT_LANES * sizeof(C) / 256;
    if (lanes_ == 0)
      refuse_workspace("sharedTmpBuffer", parts * repeats * 256, given_.GetSize(), at);
  }
  LocalTensor<C> part(uint32_t index) const {
    return given_[index * lanes_ * static_cast<uint32_t>(sizeof(C))].template ReinterpretCast<C>();
  }
  uint32_t turn(uint32_t count) const { return lanes_ < count ? lanes_ : count; }

 private:
  const LocalTensor<uint8_t> given_;
  uint32_t lanes_;
};

// A tensor as another type: itself, or converted into `room`.
template <typename C, typename T>
inline LocalTensor<C> as_type(const LocalTensor<T>& from, const LocalTensor<C>& room,
                              const Steps& steps) {
  if constexpr (std::is_same_v<PrimT<T>, C>) {
    return from.template ReinterpretCast<C>();
  } else {
    steps.cast(room, from, RoundMode::CAST_NONE);
    return room;
  }
}

// In half, as the page says: src * scale + offset, each rounded, and the nearest int8. A row of
// `width` elements takes the same factors as the next; `factors(x, steps, begin)` applies them.
template <typename T, typename Factors>
inline void quantize(const LocalTensor<int8_t>& dst, const LocalTensor<T>& src,
                     const Parts<half>& parts, uint32_t width, uint32_t count,
                     const cubecore::Where& at, const Factors& factors) {
  static_assert(std::is_same_v<PrimT<T>, float> || std::is_same_v<PrimT<T>, half>,
                "AscendQuant must take half or float, got another type");
  for (uint32_t row = 0; row < count; row += width) {
    uint32_t end = count - row < width ? count - row : width;
    for (uint32_t done = 0; done < end;) {
      uint32_t turn = parts.turn(end - done);
      Steps steps(turn, at);
      const LocalTensor<half> x = parts.part(0);
      factors(steps, x, as_type<half>(src[row + done], x, steps), done);
      steps.cast(dst[row + done], x, RoundMode::CAST_RINT);
      done += turn;
    }
  }
}
template <typename T>
inline void quantize(const LocalTensor<int8_t>& dst, const LocalTensor<T>& src,
                     const LocalTensor<uint8_t>& given, float scale, float offset, uint32_t count,
                     const cubecore::Where& at) {
  quantize(dst, src, Parts<half>(given, 1, at), count, count, at,
           [&](const auto& steps, const auto& x, const auto& from, uint32_t) {
             steps.muls(x, from, scale);
             steps.adds(x, x, offset);
           });
}
template <typename T, typename Add>
inline void quantize_channels(const LocalTensor<int8_t>& dst, const LocalTensor<T>& src,
                              const LocalTensor<uint8_t>& given, const LocalTensor<T>& scale,
                              uint32_t channels, uint32_t count, const cubecore::Where& at,
                              const Add& add) {
  if (channels == 0) cubecore_refuse("AscendQuant.scaleCount", "be above 0", "0", &at);
  Parts<half> parts(given, 2, at);
  quantize(dst, src, parts, channels, count, at,
           [&](const auto& steps, const auto& x, const auto& from, uint32_t begin) {
             const LocalTensor<half> room = parts.part(1);
             steps.mul(x, from, as_type<half>(scale[begin], room, steps));
             add(steps, x, room, begin);
           });
}

// A number of each row in float, as factors of int32: the low words of uint64, bfloat16, float.
template <typename S>
inline Floats factors(const LocalTensor<S>& scale, const Floats& room, const Steps& steps,
                      uint32_t count, const cubecore::Where& at) {
  if constexpr (std::is_same_v<PrimT<S>, uint64_t>) {
    auto words = scale.template ReinterpretCast<uint32_t>();
    cubecore::issue("asc_set_mask_count", at);
    set_mask(0, 2 * count, at);
    cubecore::issue("vreducev2", at, plain(room), plain(words), plain(words), 1, 1, 1, 8, 0);
    cubecore::issue("asc_set_mask_norm", at);
    ResetMask(at);
    barrier(PIPE_V, at);
    return room;
  } else {
    return as_type<float>(scale, room, steps);
  }
}

template <DeQuantMode mode, typename D>
inline DequantParams dequant_rows(const DequantParams& p, const cubecore::Where& at) {
  constexpr uint32_t block = ONE_BLK_SIZE / sizeof(PrimT<D>);
  if (p.calCount == 0 || p.calCount > p.n || p.n % 8 != 0) {
    const char* need = p.n % 8 != 0 ? "have a multiple of 32 B in a row of srcTensor"
                                    : "have calCount between 1 and n";
    cubecore_refuse("AscendDequant.params", need, Digits(p.n % 8 != 0 ? p.n : p.calCount).text,
                    &at);
  }
  bool rows = mode == DeQuantMode::DEQUANT_WITH_SINGLE_ROW && p.m == 1 && p.calCount % block == 0 &&
              p.n % p.calCount == 0;
  return rows ? DequantParams{p.n / p.calCount, p.calCount, p.calCount} : p;
}

// In float, row by row: src * scale(begin). `scale(steps, begin, count)` makes the factors of a
// turn once for all rows; `times` multiplies by them.
template <DeQuantMode mode, typename D, typename Scale>
inline void dequantize(const LocalTensor<D>& dst, const LocalTensor<int32_t>& src,
                       const LocalTensor<uint8_t>& given, const DequantParams& params,
                       const cubecore::Where& at, const Scale& scale) {
  using P = PrimT<D>;
  static_assert(std::is_same_v<P, float> || cubecore::is_half<P>,
                "AscendDequant must make half, bfloat16_t or float, got another type");
  constexpr uint32_t block = ONE_BLK_SIZE / sizeof(P);
  DequantParams p = dequant_rows<mode, D>(params, at);
  uint32_t stride = (p.n + block - 1) / block * block;
  Parts<float> parts(given, 2, at);
  const Floats x = parts.part(0);
  for (uint32_t done = 0; done < p.calCount;) {
    uint32_t turn = parts.turn(p.calCount - done);
    Steps steps(turn, at);
    auto times = scale(steps, parts.part(1), done, turn);
    for (uint32_t row = 0; row < p.m; ++row) {
      const LocalTensor<D> to = dst[row * stride + done];
      steps.cast(x, src[row * p.n + done], RoundMode::CAST_NONE);
      if constexpr (std::is_same_v<P, float>) {
        times(steps, to, x);
      } else {
        times(steps, x, x);
        steps.cast(to, x, RoundMode::CAST_RINT);
      }
    }
    done += turn;
  }
}
template <DeQuantMode mode, typename D, typename S>
inline void dequantize_channels(const LocalTensor<D>& dst, const LocalTensor<int32_t>& src,
                                const LocalTensor<S>& scale, const LocalTensor<uint8_t>& given,
                                const DequantParams& params, const cubecore::Where& at) {
  dequantize<mode>(dst, src, given, params, at,
                   [&](const auto& steps, const auto& room, uint32_t begin, uint32_t turn) {
                     const Floats by = factors(scale[begin], room, steps, turn, at);
                     return [by](const auto& s, const auto& d, const auto& x) { s.mul(d, x, by); };
                   });
}
template <DeQuantMode mode, typename D>
inline void dequantize_by(const LocalTensor<D>& dst, const LocalTensor<int32_t>& src, float scale,
                          const LocalTensor<uint8_t>& given, const DequantParams& params,
                          const cubecore::Where& at) {
  dequantize<mode>(
      dst, src, given, params, at, [scale](const auto&, const auto&, uint32_t, uint32_t) {
        return [scale](const auto& s, const auto& d, const auto& x) { s.muls(d, x, scale); };
      });
}

}  // namespace detail

// --- AscendQuant

// The forms with a workspace and without one; PARAMETERS and ARGUMENTS are in parentheses.
#define CUBECORE_BARE(...) __VA_ARGS__
#define CUBECORE_QUANT(PARAMETERS, ARGUMENTS)                                                    \
  template <typename T, bool isReuseSource = false,                                              \
            const AscendQuantConfig& config = ASCEND_QUANT_DEFAULT_CFG>                          \
  inline void AscendQuant(const LocalTensor<int8_t>& dstTensor, const LocalTensor<T>& srcTensor, \
                          CUBECORE_BARE PARAMETERS, CUBECORE_AT) {                               \
    AscendQuant<T, isReuseSource, config>(dstTensor, srcTensor, detail::free_memory(),           \
                                          CUBECORE_BARE ARGUMENTS, at);                          \
  }
#define CUBECORE_QUANT_WITH(PARAMETERS)                                                          \
  template <typename T, bool isReuseSource = false,                                              \
            const AscendQuantConfig& config = ASCEND_QUANT_DEFAULT_CFG>                          \
  inline void AscendQuant(const LocalTensor<int8_t>& dstTensor, const LocalTensor<T>& srcTensor, \
                          const LocalTensor<uint8_t>& sharedTmpBuffer, CUBECORE_BARE PARAMETERS, \
                          CUBECORE_AT)

CUBECORE_QUANT_WITH((const float scale, const float offset, const uint32_t calCount)) {
  detail::quantize(dstTensor, srcTensor, sharedTmpBuffer, scale, offset, calCount, at);
}
CUBECORE_QUANT_WITH((const float scale, const float offset)) {
  detail::quantize(dstTensor, srcTensor, sharedTmpBuffer, scale, offset, srcTensor.GetSize(), at);
}
CUBECORE_QUANT((const float scale, const float offset, const uint32_t calCount),
               (scale, offset, calCount))
CUBECORE_QUANT((const float scale, const float offset), (scale, offset))
CUBECORE_QUANT_WITH((const LocalTensor<T>& scaleTensor, const T offset, const uint32_t scaleCount,
                     const uint32_t calCount)) {
  detail::quantize_channels(dstTensor, srcTensor, sharedTmpBuffer, scaleTensor, scaleCount,
                            calCount, at,
                            [&](const auto& steps, const auto& x, const auto&, uint32_t) {
                              steps.adds(x, x, static_cast<float>(offset));
                            });
}
CUBECORE_QUANT_WITH((const LocalTensor<T>& scaleTensor, const LocalTensor<T>& offsetTensor,
                     const uint32_t scaleCount, const uint32_t offsetCount,
                     const uint32_t calCount)) {
  if (offsetCount != scaleCount)
    cubecore_refuse("AscendQuant.offsetCount", "be scaleCount", detail::Digits(offsetCount).text,
                    &at);
  detail::quantize_channels(
      dstTensor, srcTensor, sharedTmpBuffer, scaleTensor, scaleCount, calCount, at,
      [&](const auto& steps, const auto& x, const auto& room, uint32_t from) {
        steps.add(x, x, detail::as_type<half>(offsetTensor[from], room, steps));
      });
}
CUBECORE_QUANT_WITH((const LocalTensor<T>& scaleTensor, const T offset)) {
  AscendQuant<T>(dstTensor, srcTensor, sharedTmpBuffer, scaleTensor, offset, scaleTensor.GetSize(),
                 srcTensor.GetSize(), at);
}
CUBECORE_QUANT_WITH((const LocalTensor<T>& scaleTensor, const LocalTensor<T>& offsetTensor)) {
  AscendQuant<T>(dstTensor, srcTensor, sharedTmpBuffer, scaleTensor, offsetTensor,
                 scaleTensor.GetSize(), offsetTensor.GetSize(), srcTensor.GetSize(), at);
}
CUBECORE_QUANT((const LocalTensor<T>& scaleTensor, const T offset, const uint32_t scaleCount,
                const uint32_t calCount),
               (scaleTensor, offset, scaleCount, calCount))
CUBECORE_QUANT((const LocalTensor<T>& scaleTensor, const LocalTensor<T>& offsetTensor,
                const uint32_t scaleCount, const uint32_t offsetCount, const uint32_t calCount),
               (scaleTensor, offsetTensor, scaleCount, offsetCount, calCount))
CUBECORE_QUANT((const LocalTensor<T>& scaleTensor, const T offset), (scaleTensor, offset))
CUBECORE_QUANT((const LocalTensor<T>& scaleTensor, const LocalTensor<T>& offsetTensor),
               (scaleTensor, offsetTensor))
#undef CUBECORE_QUANT
#undef CUBECORE_QUANT_WITH
#undef CUBECORE_BARE

// --- AscendDequant

#define CUBECORE_DEQUANT(SCALE, HOW)                                                             \
  template <typename dstT, typename scaleT,                                                      \
            DeQuantMode mode = DeQuantMode::DEQUANT_WITH_SINGLE_ROW>                             \
  inline void AscendDequant(                                                                     \
      const LocalTensor<dstT>& dstTensor, const LocalTensor<int32_t>& srcTensor, SCALE deqScale, \
      const LocalTensor<uint8_t>& sharedTmpBuffer, DequantParams params, CUBECORE_AT) {          \
    detail::HOW<mode>(dstTensor, srcTensor, deqScale, sharedTmpBuffer, params, at);              \
  }                                                                                              \
  template <typename dstT, typename scaleT,                                                      \
            DeQuantMode mode = DeQuantMode::DEQUANT_WITH_SINGLE_ROW>                             \
  inline void AscendDequant(const LocalTensor<dstT>& dstTensor,                                  \
                            const LocalTensor<int32_t>& srcTensor, SCALE deqScale,               \
                            DequantParams params, CUBECORE_AT) {                                 \
    detail::HOW<mode>(dstTensor, srcTensor, deqScale, detail::free_memory(), params, at);        \
  }
CUBECORE_DEQUANT(const LocalTensor<scaleT>&, dequantize_channels)
CUBECORE_DEQUANT(const scaleT, dequantize_by)
#undef CUBECORE_DEQUANT

// The forms before: all of srcTensor as one row.
template <typename dstT, typename scaleT, DeQuantMode mode = DeQuantMode::DEQUANT_WITH_SINGLE_ROW>
inline void AscendDequant(const LocalTensor<dstT>& dstTensor, const LocalTensor<int32_t>& srcTensor,
                          const LocalTensor<scaleT>& deqScale,
                          const LocalTensor<uint8_t>& sharedTmpBuffer, const uint32_t calCount,
                          CUBECORE_AT) {
  detail::dequantize_channels<mode>(dstTensor, srcTensor, deqScale, sharedTmpBuffer,
                                    DequantParams{1, srcTensor.GetSize(), calCount}, at);
}
template <typename dstT, typename scaleT, DeQuantMode mode = DeQuantMode::DEQUANT_WITH_SINGLE_ROW>
inline void AscendDequant(const LocalTensor<dstT>& dstTensor, const LocalTensor<int32_t>& srcTensor,
                          const LocalTensor<scaleT>& deqScale,
                          const LocalTensor<uint8_t>& sharedTmpBuffer, CUBECORE_AT) {
  AscendDequant<dstT, scaleT, mode>(dstTensor, srcTensor, deqScale, sharedTmpBuffer,
                                    deqScale.GetSize(), at);
}
template <typename dstT, typename scaleT, DeQuantMode mode = DeQuantMode::DEQUANT_WITH_SINGLE_ROW>
inline void AscendDequant(const LocalTensor<dstT>& dstTensor, const LocalTensor<int32_t>& srcTensor,
                          const LocalTensor<scaleT>& deqScale, const uint32_t calCount,
                          CUBECORE_AT) {
  AscendDequant<dstT, scaleT, mode>(dstTensor, srcTensor, deqScale, detail::free_memory(), calCount,
                                    at);
}
template <typename dstT, typename scaleT, DeQuantMode mode = DeQuantMode::DEQUANT_WITH_SINGLE_ROW>
inline void AscendDequant(const LocalTensor<dstT>& dstTensor, const LocalTensor<int32_t>& srcTensor,
                          const LocalTensor<scaleT>& deqScale, CUBECORE_AT) {
  AscendDequant<dstT, scaleT, mode>(dstTensor, srcTensor, deqScale, detail::free_memory(),
                                    deqScale.GetSize(), at);
}

}  // namespace AscendC
