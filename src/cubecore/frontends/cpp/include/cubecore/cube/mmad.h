// Products of the Cube. Pages: Mmad, MmadWithSparse, SetHF32Mode, SetHF32TransMode,
// SetMMColumnMajor-SetMMRowMajor; "接口变更说明" (SetMMLayoutTransform).
#pragma once

#include "cubecore/basic/tensors.h"
#include "cubecore/cube/params.h"

namespace AscendC {

namespace detail {

constexpr bool starts_from_zero(const MmadParams& p) { return p.cmatrixInitVal && !p.isBias; }

}  // namespace detail

template <typename T, typename U, typename S>
inline void Mmad(const LocalTensor<T>& dst, const LocalTensor<U>& fm, const LocalTensor<S>& filter,
                 const MmadParams& p, CUBECORE_AT) {
  cubecore::issue("asc_mmad", at, dst.pointer(), fm.pointer(), filter.pointer(), p.m, p.k, p.n,
                  p.unitFlag, p.kDirectionAlign, p.cmatrixSource, detail::starts_from_zero(p));
}

// C starts from the bias, which lies in C2 or in CO1; cmatrixSource and cmatrixInitVal do not
// count.
template <typename T, typename U, typename S, typename V>
inline void Mmad(const LocalTensor<T>& dst, const LocalTensor<U>& fm, const LocalTensor<S>& filter,
                 const LocalTensor<V>& bias, const MmadParams& p, CUBECORE_AT) {
  cubecore::issue(bias.memory() == memory_of(TPosition::CO1) ? "Mmad(CO1)" : "Mmad(C2)", at,
                  dst.pointer(), fm.pointer(), filter.pointer(), bias.pointer(), p.m, p.k, p.n,
                  p.unitFlag, p.kDirectionAlign,
                  cubecore::named("a_layout", cubecore::is_950 ? "NZ" : "ZZ"));
}

template <typename T, typename U>
inline void MmadWithSparse(const LocalTensor<T>& dst, const LocalTensor<U>& fm,
                           const LocalTensor<U>& filter, const MmadParams& p, CUBECORE_AT) {
  static_assert(std::is_same_v<PrimT<T>, int32_t> && std::is_same_v<PrimT<U>, int8_t>,
                "MmadWithSparse must multiply int8_t into int32_t, got another type");
  cubecore::issue("asc_mmad_sparse", at, dst.pointer(), fm.pointer(), filter.pointer(), p.m, p.k,
                  p.n, p.unitFlag, p.cmatrixSource, detail::starts_from_zero(p));
}

inline void SetHF32Mode(HF32Mode mode, CUBECORE_AT) {
  cubecore::issue(mode == HF32Mode::ENABLE ? "asc_enable_hf32" : "asc_set_fp32_mode", at);
}
inline void SetHF32Mode(bool mode, CUBECORE_AT) {
  SetHF32Mode(mode ? HF32Mode::ENABLE : HF32Mode::DISABLE, at);
}
inline void SetHF32TransMode(HF32TransMode mode, CUBECORE_AT) {
  cubecore::issue("asc_enable_hf32_trans", at, mode == HF32TransMode::NEAREST_ZERO ? 1 : 0);
}
inline void SetHF32TransMode(bool mode, CUBECORE_AT) {
  SetHF32TransMode(mode ? HF32TransMode::NEAREST_ZERO : HF32TransMode::NEAREST_EVEN, at);
}
inline void SetMMColumnMajor(CUBECORE_AT) { cubecore::issue("asc_set_mmad_direction_m", at); }
inline void SetMMRowMajor(CUBECORE_AT) { cubecore::issue("asc_set_mmad_direction_n", at); }
inline void SetMMLayoutTransform(bool mmLayoutMode, CUBECORE_AT) {
  mmLayoutMode ? SetMMRowMajor(at) : SetMMColumnMajor(at);
}

}  // namespace AscendC
