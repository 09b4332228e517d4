// Quantisation of rows by vector functions of 950 (reg/c_api.h includes it). Library pages:
// Quantize, Dequantize, AntiQuantize and their Get...MaxMinTmpSize.
#pragma once

#include "cubecore/host/workspaces.h"
#include "cubecore/library/quant.h"
#include "cubecore/reg/tensors.h"

namespace AscendC {

#define CUBECORE_POLICIES(NAME) \
  enum class NAME##Policy : int32_t { PER_TENSOR, PER_CHANNEL, PER_TOKEN, PER_GROUP };
CUBECORE_POLICIES(Quantize)
CUBECORE_POLICIES(Dequantize)
CUBECORE_POLICIES(AntiQuantize)
#undef CUBECORE_POLICIES

struct QuantizeConfig {
  QuantizePolicy policy;
  bool hasOffset;
  RoundMode roundMode = RoundMode::CAST_RINT;
  int32_t kDim = 1;
};
struct DequantizeConfig {
  DequantizePolicy policy;
  bool hasOffset = false;
  int32_t kDim = 1;
};
struct AntiQuantizeConfig {
  AntiQuantizePolicy policy;
  bool hasOffset;
  int32_t kDim = 1;
};
struct QuantizeParams {
  uint32_t m;
  uint32_t n;
  uint32_t groupSize = 0;
};
using DequantizeParams = QuantizeParams;
using AntiQuantizeParams = QuantizeParams;

// Nothing lies outside of registers here.
#define CUBECORE_NO_WORKSPACE(NAME)                                                               \
  inline void Get##NAME##MaxMinTmpSize(const TensorShape&, const uint32_t, uint32_t& maxValue,     \
                                       uint32_t& minValue) {                                      \
    maxValue = minValue = 0;                                                                      \
  }                                                                                               \
  inline void Get##NAME##TmpBufferFactorSize(uint32_t, uint32_t& maxLiveNodeCount,                \
                                             uint32_t& extraBuf) {                                \
    maxLiveNodeCount = extraBuf = 0;                                                              \
  }
CUBECORE_NO_WORKSPACE(Quantize)
CUBECORE_NO_WORKSPACE(Dequantize)
#undef CUBECORE_NO_WORKSPACE
template <typename D>
inline void GetAntiQuantizeMaxMinTmpSize(const TensorShape&, const TensorShape&, bool, D, D,
                                         uint32_t& maxValue, uint32_t& minValue) {
  maxValue = minValue = 0;
}

namespace detail {

enum class Factoring { tensor, channel, token, rows_of_group, columns_of_group };

constexpr Factoring factoring_of(int32_t policy, int32_t kDim) {
  return policy == 3 ? (kDim == 0 ? Factoring::rows_of_group : Factoring::columns_of_group)
                     : static_cast<Factoring>(policy);
}

template <typename D, Reg::SatMode sat, RoundMode rounding, typename S>
inline Reg::RegTensor<D> cast_lanes(const Reg::RegTensor<S>& of, const Reg::MaskReg& mask,
                                    const cubecore::Here& at) {
  static constexpr Reg::CastTrait trait = {Reg::RegLayout::ZERO, sat, Reg::MaskMergeMode::ZEROING,
                                           rounding};
  Reg::RegTensor<D> made;
  Reg::Cast<D, S, trait>(made, of, mask, at);
  return made;
}

// 64 elements, or one of them in all lanes, as floats.
template <typename P>
inline Reg::RegTensor<float> as_floats(const Reg::RegTensor<P>& of, const Reg::MaskReg& mask,
                                       const cubecore::Here& at) {
  if constexpr (std::is_same_v<P, float>)
    return of;
  else if constexpr (std::is_same_v<P, int32_t>)
    return cast_lanes<float, Reg::SatMode::NO_SAT, RoundMode::CAST_RINT>(of, mask, at);
  else if constexpr (std::is_same_v<P, int8_t>)
    return as_floats(
        cast_lanes<int32_t, Reg::SatMode::NO_SAT, RoundMode::CAST_NONE>(of, mask, at), mask, at);
  else
    return cast_lanes<float, Reg::SatMode::NO_SAT, RoundMode::CAST_NONE>(of, mask, at);
}
template <typename P>
inline Reg::RegTensor<float> floats_at(P* from, const Reg::MaskReg& mask,
                                       const cubecore::Here& at) {
  Reg::RegTensor<P> of;
  if constexpr (sizeof(P) == 8) {  // the low words of uint64_t
    Reg::RegTensor<float> low, high;
    Reg::LoadAlign<float, Reg::LoadDist::DIST_DINTLV_B32>(low, high,
                                                          reinterpret_cast<float*>(from), at);
    return low;
  } else {
    constexpr Reg::LoadDist dist = sizeof(P) == 1   ? Reg::LoadDist::DIST_UNPACK4_B8
                                   : sizeof(P) == 2 ? Reg::LoadDist::DIST_UNPACK_B16
                                                    : Reg::LoadDist::DIST_NORM;
    Reg::LoadAlign<P, dist>(of, from, at);
    return as_floats(of, mask, at);
  }
}
template <typename P>
inline Reg::RegTensor<float> one_float_at(P* from, const Reg::MaskReg& mask,
                                          const cubecore::Here& at) {
  static_assert(sizeof(P) == 2 || sizeof(P) == 4,
                "scale and offset of a token or a group must be half, bfloat16_t or float");
  Reg::RegTensor<P> of;
  Reg::LoadAlign<P, sizeof(P) == 2 ? Reg::LoadDist::DIST_BRC_B16 : Reg::LoadDist::DIST_BRC_B32>(
      of, from, at);
  return as_floats(of, mask, at);
}

template <RoundMode rounding, typename P>
inline void store_floats(P* to, const Reg::RegTensor<float>& of, const Reg::MaskReg& mask,
                         const cubecore::Here& at) {
  static_assert(cubecore::Element<P>::bits >= 8,
                "Quantize must make int8_t, hifloat8_t, fp8_e5m2_t or fp8_e4m3fn_t in cubecore, "
                "got a type of 4 bits");
  if constexpr (std::is_same_v<P, float>) {
    Reg::StoreAlign(to, of, mask, at);
  } else if constexpr (cubecore::is_half<P>) {
    const auto made = cast_lanes<P, Reg::SatMode::NO_SAT, RoundMode::CAST_RINT>(of, mask, at);
    Reg::StoreAlign<P, Reg::StoreDist::DIST_PACK_B32>(to, made, mask, at);
  } else if constexpr (std::is_same_v<P, int8_t>) {  // by way of int16_t, which rounds, and half
    const auto whole = cast_lanes<int16_t, Reg::SatMode::SAT, rounding>(of, mask, at);
    const auto every = Reg::CreateMask<int16_t>(at);
    const auto halves =
        cast_lanes<half, Reg::SatMode::NO_SAT, RoundMode::CAST_RINT>(whole, every, at);
    const auto made = cast_lanes<P, Reg::SatMode::SAT, RoundMode::CAST_RINT>(halves, every, at);
    Reg::StoreAlign<P, Reg::StoreDist::DIST_PACK4_B32>(to, made, mask, at);
  } else {
    const auto made = cast_lanes<P, Reg::SatMode::SAT, rounding>(of, mask, at);
    Reg::StoreAlign<P, Reg::StoreDist::DIST_PACK4_B32>(to, made, mask, at);
  }
}

// The factors of the elements of a row: a number, or elements of a tensor.
template <Factoring by, typename S>
class FactorsOfRows {
 public:
  FactorsOfRows(const S& given, const QuantizeParams& params, const cubecore::Here& at)
      : given_(given), params_(params), at_(at) {
    if constexpr (!is_local<S>) Reg::Duplicate(whole_, static_cast<float>(given), at);
  }
  Reg::RegTensor<float> of(uint32_t row, uint32_t column, const Reg::MaskReg& mask) const {
    if constexpr (!is_local<S>) {
      return whole_;
    } else if constexpr (by == Factoring::channel) {
      return floats_at(lanes_of(given_, column), mask, at_);
    } else if constexpr (by == Factoring::rows_of_group) {
      const uint32_t from = row / params_.groupSize * params_.n + column;
      return floats_at(lanes_of(given_, from), mask, at_);
    } else if constexpr (by == Factoring::columns_of_group) {
      const uint32_t groups = (params_.n + params_.groupSize - 1) / params_.groupSize;
      const uint32_t from = row * groups + column / params_.groupSize;
      return one_float_at(lanes_of(given_, from), mask, at_);
    } else {
      return one_float_at(lanes_of(given_, by == Factoring::token ? row : 0), mask, at_);
    }
  }

 private:
  const S& given_;
  const QuantizeParams params_;
  const cubecore::Here at_;
  Reg::RegTensor<float> whole_;
};

// In float, 64 columns at a time and as many as a group has: `call(x, row, column, mask)`.
template <Factoring by, RoundMode rounding, typename D, typename T, typename F>
inline void of_rows(const char* name, const LocalTensor<D>& dst, const LocalTensor<T>& src,
                    const QuantizeParams& p, const cubecore::Here& at, const F& call) {
  constexpr bool grouped = by == Factoring::rows_of_group || by == Factoring::columns_of_group;
  if (grouped && (p.groupSize == 0 || p.groupSize % 32 != 0))
    cubecore_refuse(name, "have a groupSize that is a multiple of 32", Digits(p.groupSize).text,
                    &at);
  if (p.n * sizeof(PrimT<T>) % ONE_BLK_SIZE != 0 || p.n * sizeof(PrimT<D>) % ONE_BLK_SIZE != 0)
    cubecore_refuse(name, "have n elements in whole blocks of 32 B", Digits(p.n).text, &at);
  for (uint32_t row = 0; row < p.m; ++row) {
    for (uint32_t column = 0; column < p.n;) {
      uint32_t lanes = p.n - column < 64 ? p.n - column : 64;
      if constexpr (by == Factoring::columns_of_group) {
        const uint32_t left = p.groupSize - column % p.groupSize;
        if (left < lanes) lanes = left;
      }
      const uint32_t from = row * p.n + column;
      uint32_t left = lanes;
      const Reg::MaskReg mask = Reg::UpdateMask<float>(left, at);
      auto x = floats_at(lanes_of(src, from), mask, at);
      call(x, row, column, mask);
      store_floats<rounding>(lanes_of(dst, from), x, mask, at);
      column += lanes;
    }
  }
}

}  // namespace detail

// x * scale + offset.
template <const QuantizeConfig& config, typename D, typename T, typename S, typename O>
inline void Quantize(const LocalTensor<D>& dstTensor, const LocalTensor<T>& srcTensor,
                     const S& scale, const O& offset, const QuantizeParams& params, CUBECORE_AT) {
  constexpr auto by = detail::factoring_of(static_cast<int32_t>(config.policy), config.kDim);
  cubecore::VectorFunction function{at};
  const detail::FactorsOfRows<by, S> scales(scale, params, at);
  const detail::FactorsOfRows<by, O> offsets(offset, params, at);
  detail::of_rows<by, config.roundMode>(
      "Quantize", dstTensor, srcTensor, params, at,
      [&](auto& x, uint32_t row, uint32_t column, const Reg::MaskReg& mask) {
        Reg::Mul(x, x, scales.of(row, column, mask), mask, at);
        if constexpr (config.hasOffset) Reg::Add(x, x, offsets.of(row, column, mask), mask, at);
      });
}
template <const QuantizeConfig& config, typename D, typename T, typename S, typename O>
inline void Quantize(const LocalTensor<D>& dstTensor, const LocalTensor<T>& srcTensor,
                     const LocalTensor<uint8_t>&, const S& scale, const O& offset,
                     const QuantizeParams& params, CUBECORE_AT) {
  Quantize<config>(dstTensor, srcTensor, scale, offset, params, at);
}

// x * scale.
template <const DequantizeConfig& config, typename D, typename T, typename S, typename O>
inline void Dequantize(const LocalTensor<D>& dstTensor, const LocalTensor<T>& srcTensor,
                       const S& scale, const O&, const DequantizeParams& params, CUBECORE_AT) {
  static_assert(!config.hasOffset, "Dequantize.hasOffset must be false, got true");
  constexpr auto by = detail::factoring_of(static_cast<int32_t>(config.policy), config.kDim);
  cubecore::VectorFunction function{at};
  const detail::FactorsOfRows<by, S> scales(scale, params, at);
  detail::of_rows<by, RoundMode::CAST_RINT>(
      "Dequantize", dstTensor, srcTensor, params, at,
      [&](auto& x, uint32_t row, uint32_t column, const Reg::MaskReg& mask) {
        Reg::Mul(x, x, scales.of(row, column, mask), mask, at);
      });
}
template <const DequantizeConfig& config, typename D, typename T, typename S, typename O>
inline void Dequantize(const LocalTensor<D>& dstTensor, const LocalTensor<T>& srcTensor,
                       const S& scale, const O& offset, const LocalTensor<uint8_t>&,
                       const DequantizeParams& params, CUBECORE_AT) {
  Dequantize<config>(dstTensor, srcTensor, scale, offset, params, at);
}

// (x + offset) * scale.
template <const AntiQuantizeConfig& config, typename D, typename T, typename S, typename O>
inline void AntiQuantize(const LocalTensor<D>& dstTensor, const LocalTensor<T>& srcTensor,
                         const S& scale, const O& offset, const AntiQuantizeParams& params,
                         CUBECORE_AT) {
  constexpr auto by = detail::factoring_of(static_cast<int32_t>(config.policy), config.kDim);
  cubecore::VectorFunction function{at};
  const detail::FactorsOfRows<by, S> scales(scale, params, at);
  const detail::FactorsOfRows<by, O> offsets(offset, params, at);
  detail::of_rows<by, RoundMode::CAST_RINT>(
      "AntiQuantize", dstTensor, srcTensor, params, at,
      [&](auto& x, uint32_t row, uint32_t column, const Reg::MaskReg& mask) {
        if constexpr (config.hasOffset) Reg::Add(x, x, offsets.of(row, column, mask), mask, at);
        Reg::Mul(x, x, scales.of(row, column, mask), mask, at);
      });
}
template <const AntiQuantizeConfig& config, typename D, typename T, typename S, typename O>
inline void AntiQuantize(const LocalTensor<D>& dstTensor, const LocalTensor<T>& srcTensor,
                         const S& scale, const O& offset, const LocalTensor<uint8_t>&,
                         const AntiQuantizeParams& params, CUBECORE_AT) {
  AntiQuantize<config>(dstTensor, srcTensor, scale, offset, params, at);
}

}  // namespace AscendC
