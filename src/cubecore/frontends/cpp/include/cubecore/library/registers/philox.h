// Random numbers by Philox4x32 (Salmon et al., 2011), as vector functions of 950 (reg/c_api.h
// includes it). Library page: PhiloxRandom.
#pragma once

#include "cubecore/reg/tensors.h"

namespace AscendC {

using PhiloxKey = uint32_t[2];
using PhiloxCounter = uint32_t[4];
struct PhiloxRandomParams {
  uint32_t stride;
  uint32_t row;
  uint32_t column;
};

namespace detail {

// A counter of 128 bits in each lane; `words` lanes of each of its four words.
class PhiloxLanes {
 public:
  using Words = Reg::RegTensor<uint32_t>;

  PhiloxLanes(const PhiloxCounter& counter, const cubecore::Here& at) : at_(at) {
    every_ = Reg::CreateMask<uint32_t>(at);
    for (int n = 0; n < 4; ++n) counter_[n] = counter[n];
  }

  // Lane i takes the counter plus the lane's offset.
  void begin(Words& offset) {
    Words first, next;
    Reg::Duplicate(first, counter_[0], at_);
    Reg::Add(words_[0], first, offset, every_, at_);
    Reg::MaskReg carry;
    Reg::Compare<uint32_t, CMPMODE::LT>(carry, words_[0], first, every_, at_);
    // A carry goes on where the word that it reaches is all ones, which all lanes have alike.
    bool goes_on = true;
    for (int n = 1; n < 4; ++n) {
      Reg::Duplicate(words_[n], counter_[n], at_);
      if (!goes_on) continue;
      Reg::Duplicate(next, counter_[n] + 1, at_);
      Reg::Select(words_[n], next, words_[n], carry, at_);
      goes_on = counter_[n] == 0xFFFFFFFFu;
    }
  }

  void round(uint32_t key0, uint32_t key1) {
    Words factor0, factor1, keys0, keys1, low0, high0, low1, high1;
    Reg::Duplicate(factor0, 0xD2511F53u, at_);
    Reg::Duplicate(factor1, 0xCD9E8D57u, at_);
    Reg::Duplicate(keys0, key0, at_);
    Reg::Duplicate(keys1, key1, at_);
    Reg::Mull(low0, high0, words_[0], factor0, every_, at_);
    Reg::Mull(low1, high1, words_[2], factor1, every_, at_);
    Reg::Xor(words_[0], high1, words_[1], every_, at_);
    Reg::Xor(words_[0], words_[0], keys0, every_, at_);
    Reg::Xor(words_[2], high0, words_[3], every_, at_);
    Reg::Xor(words_[2], words_[2], keys1, every_, at_);
    words_[1] = low1;
    words_[3] = low0;
  }

  // The four words of each lane, one lane behind the other: up to `count` of 256 elements.
  template <typename P>
  void store(P* to, uint32_t count) {
    if constexpr (std::is_same_v<P, float>)
      for (Words& word : words_) to_float(word);
    Words halves[4], whole[4];
    Reg::Interleave(halves[0], halves[2], words_[0], words_[2], at_);
    Reg::Interleave(halves[1], halves[3], words_[1], words_[3], at_);
    Reg::Interleave(whole[0], whole[1], halves[0], halves[1], at_);
    Reg::Interleave(whole[2], whole[3], halves[2], halves[3], at_);
    for (int n = 0; n < 4 && count > 0; ++n) {
      const Reg::MaskReg mask = Reg::UpdateMask<uint32_t>(count, at_);
      Reg::StoreAlign(reinterpret_cast<uint32_t*>(to) + 64 * n, whole[n], mask, at_);
    }
  }

 private:
  // The low 23 bits as a fraction of 1: those of a float in [1, 2), less 1.
  void to_float(Words& word) {
    Words bits;
    Reg::Duplicate(bits, 0x007FFFFFu, at_);
    Reg::And(word, word, bits, every_, at_);
    Reg::Duplicate(bits, 0x3F800000u, at_);
    Reg::Or(word, word, bits, every_, at_);
    auto& number = reinterpret_cast<Reg::RegTensor<float>&>(word);
    Reg::Adds(number, number, -1.0f, every_, at_);
  }

  const cubecore::Here at_;
  Reg::MaskReg every_;
  uint32_t counter_[4];
  Words words_[4];
};

// `count` elements, of which each `column` follow a gap of `gap` counters.
template <uint16_t Rounds, typename T>
inline void philox(const LocalTensor<T>& dst, const PhiloxKey& key, const PhiloxCounter& counter,
                   uint32_t count, uint32_t column, uint32_t gap, const cubecore::Here& at) {
  using P = PrimT<T>;
  static_assert(Rounds == 7 || Rounds == 10, "PhiloxRandom.Rounds must be 7 or 10");
  static_assert(std::is_same_v<P, uint32_t> || std::is_same_v<P, int32_t> ||
                    std::is_same_v<P, float>,
                "PhiloxRandom must make uint32_t, int32_t or float");
  cubecore::VectorFunction function{at};
  for (uint32_t first = 0; first < count; first += 256) {
    Reg::RegTensor<int32_t> lanes;
    Reg::Arange(lanes, static_cast<int32_t>(first / 4), at);
    auto& offset = reinterpret_cast<Reg::RegTensor<uint32_t>&>(lanes);
    if (gap != 0) {
      Reg::RegTensor<uint32_t> each, rows;
      const auto every = Reg::CreateMask<uint32_t>(at);
      Reg::Duplicate(each, column / 4, at);
      Reg::Div(rows, offset, each, every, at);
      Reg::Muls(rows, rows, gap, every, at);
      Reg::Add(offset, offset, rows, every, at);
    }
    PhiloxLanes words(counter, at);
    words.begin(offset);
    for (uint32_t n = 0; n < Rounds; ++n)
      words.round(key[0] + n * 0x9E3779B9u, key[1] + n * 0xBB67AE85u);
    words.store(lanes_of(dst, first), count - first < 256 ? count - first : 256);
  }
}

}  // namespace detail

template <uint16_t Rounds = 7, typename T>
inline void PhiloxRandom(const LocalTensor<T>& dstLocal, const PhiloxKey& philoxKey,
                         const PhiloxCounter& philoxCounter, uint16_t count, CUBECORE_AT) {
  detail::philox<Rounds>(dstLocal, philoxKey, philoxCounter, count, count, 0, at);
}
// Rows whose counters begin `stride` elements apart. Uncertain: they follow each other in dst.
template <uint16_t Rounds = 7, typename T>
inline void PhiloxRandom(const LocalTensor<T>& dstLocal, const PhiloxKey& philoxKey,
                         const PhiloxCounter& philoxCounter, const PhiloxRandomParams& params,
                         CUBECORE_AT) {
  if (params.column % 4 != 0 || params.stride % 4 != 0 || params.stride < params.column)
    cubecore_refuse("PhiloxRandom.params",
                    "have column and stride that are multiples of 4, and column at most stride",
                    "others", &at);
  detail::philox<Rounds>(dstLocal, philoxKey, philoxCounter, params.row * params.column,
                         params.column, (params.stride - params.column) / 4, at);
}

}  // namespace AscendC
