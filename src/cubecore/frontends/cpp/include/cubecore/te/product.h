// Products and moves out of L0C of the tensor API, and Copy and Mmad themselves. Pages: Mmad,
// "Copy（L0C到GM数据搬运）", quant_pre, relu_pre, f32_channel_split, batch_copy.
#pragma once

#include "cubecore/te/images.h"

namespace AscendC::Te {

namespace detail {

template <typename S, typename D>
constexpr const char* conversion(bool scaled, bool column, bool hybrid) {
  constexpr bool sums = std::is_same_v<S, int32_t>;
  constexpr bool bytes = std::is_same_v<D, int8_t> || std::is_same_v<D, uint8_t>;
  if (!scaled) {
    if (std::is_same_v<S, D>) return "NoQuant";
    if (!sums && std::is_same_v<D, half>) return "F322F16";
    if (!sums && std::is_same_v<D, bfloat16_t>) return "F322BF16";
    return nullptr;
  }
  if (hybrid) return nullptr;
  if (sums && bytes) return column ? "VREQ8" : "REQ8";
  if (sums && std::is_same_v<D, half>) return column ? "VDEQF16" : "DEQF16";
  if (sums && std::is_same_v<D, bfloat16_t>) return column ? "VQS322BF16_PRE" : "QS322BF16_PRE";
  if (sums) return nullptr;
  if (bytes) return column ? "VQF322B8_PRE" : "QF322B8_PRE";
  if (std::is_same_v<D, fp8_e4m3fn_t>) return column ? "VQF322FP8_PRE" : "QF322FP8_PRE";
  if (std::is_same_v<D, hifloat8_t>) return column ? "VQF322HIF8_PRE" : "QF322HIF8_PRE";
  if (std::is_same_v<D, half>) return column ? "VQF322F16_PRE" : "QF322F16_PRE";
  if (std::is_same_v<D, bfloat16_t>) return column ? "VQF322BF16_PRE" : "QF322BF16_PRE";
  if (std::is_same_v<D, float>) return column ? "VQF322F32_PRE" : "QF322F32_PRE";
  return nullptr;
}

// The matrix that a target is: elements from one stored row, column or column of fractals to the
// next. The pixels of a map are rows, its channels columns.
struct Target {
  int64_t m, n, pitch;
  bool rows;
};
template <typename D>
constexpr Target target_of(const D& dst) {
  using P = pattern_of<D>;
  if constexpr (Std::is_one_of_v<P, NHWCLayoutPtn, NCHWLayoutPtn, NC1HWC0LayoutPtn>) {
    constexpr bool by_pixels = std::is_same_v<P, NHWCLayoutPtn>;
    constexpr size_t h = by_pixels ? 1 : 2, c = by_pixels ? 3 : 1;
    int64_t channels = size_of<c>(dst);
    if constexpr (is_map<D>) channels *= size_of<4>(dst);
    return {size_of<h>(dst) * size_of<h + 1>(dst), channels, step_of<by_pixels ? 2 : 1>(dst),
            by_pixels};
  } else {
    const bool rows = !std::is_same_v<P, NZLayoutPtn> && stored_by_rows(dst);
    return {total<0>(dst), total<1>(dst), rows ? stride<0, 1>(dst) : stride<1, 1>(dst), rows};
  }
}

// A tile of L0C to global memory; NZ where the target has fractals or parts of channels.
template <typename Trait, typename D, typename S>
inline void out_of_l0c(const D& dst, const S& src, const FixpipeParams& p, const char* quant,
                       const Where& at) {
  constexpr CopyL0C2GMTrait trait = Trait::value;
  using P = pattern_of<D>;
  constexpr bool fractal = Std::is_one_of_v<P, NZLayoutPtn, NC1HWC0LayoutPtn>;
  static_assert(fractal || plain_matrix<D> || Std::is_one_of_v<P, NHWCLayoutPtn, NCHWLayoutPtn>,
                "Copy from L0C must have a target of its page");
  if (quant == nullptr)
    cubecore_refuse("Copy.dst", "have a type that fixpipe converts to", "another", &at);
  const auto [m, n, pitch, rows] = target_of(dst);
  if (rows)
    cubecore::issue_raw("set_nd_para_v2", at, named("nd_num", 1), named("src_nd_stride", 0),
                        named("dst_nd_stride", 1));
  else if (!fractal)
    cubecore::issue_raw("set_channel_para", at, uint64_t{1} << 48);
  if (n == 0 || m == 0) return;
  cubecore::issue_raw("copy_matrix_cc_to_gm_v2", at, dst.operand(), src.operand(),
                      named("n_size", n), named("m_size", m), named("dst_stride", pitch),
                      named("src_stride", stride<1, 1>(src) / 16), named("unit_flag", p.unitFlag),
                      named("quant_pre", quant), named("relu_pre", trait.enableRelu ? 1 : 0),
                      named("channel_split", trait.enableChannelSplit), named("nz2nd_en", rows),
                      named("nz2dn_en", !fractal && !rows));
}

// The scales of columns go to the start of the Fixpipe buffer, between two barriers.
template <typename Q>
inline void take_scales(const Q& scales, const Where& at) {
  static_assert(std::is_same_v<element_of<Q>, uint64_t>,
                "Copy.quant must be of uint64_t, got another type");
  const int64_t bytes = cubecore::bytes_of<uint64_t>(scales.Size());
  cubecore::Pointer buffer{cubecore::Mem::FB, cubecore::Element<uint64_t>::name, 0};
  AscendC::detail::barrier(PIPE_FIX, at);
  cubecore::issue_raw("copy_cbuf_to_fbuf_v2", at, buffer, scales.operand(),
                      named("len_burst", (bytes + 63) / 64));
  AscendC::detail::barrier(PIPE_FIX, at);
  cubecore::issue_raw("asc_set_l0c2gm_config", at, 0, 0, 0);
}

template <typename Atom, typename D, typename S>
inline void copy(const Atom& atom, const D& dst, const S& src, const Where& at) {
  using O = typename Atom::operation;
  if constexpr (batched<S> && batched<D>) {
    const int64_t count = number(std::get<0>(src.Shape()));
    for (int64_t n = 0; n < count; ++n) copy(atom, one_of_batch(dst, n), one_of_batch(src, n), at);
  } else if constexpr (std::is_same_v<O, CopyGM2L1> && is_map<D>) {
    map_to_l1(dst, src, at);
  } else if constexpr (std::is_same_v<O, CopyGM2L1>) {
    gm_to_l1(dst, src, at);
  } else if constexpr (std::is_same_v<O, CopyL12L0A> && is_map<S>) {
    windows_to_l0a(dst, src, bound<Img2ColParams<element_of<D>>>(atom.held), at);
  } else if constexpr (Std::is_one_of_v<O, CopyL12L0A, CopyL12L0B>) {
    into_l0(dst, src, at);
  } else if constexpr (std::is_same_v<O, CopyL12L0ScaleA>) {
    into_l0_scales<0>("load_cbuf_to_ca_mx", dst, src, at);
  } else if constexpr (std::is_same_v<O, CopyL12L0ScaleB>) {
    into_l0_scales<1>("load_cbuf_to_cb_mx", dst, src, at);
  } else if constexpr (std::is_same_v<O, CopyL12BT>) {
    into_bias(dst, src, at);
  } else if constexpr (std::is_same_v<O, CopyL12FB>) {
    into_fixpipe_buffer(dst, src, at);
  } else if constexpr (std::is_same_v<O, CopyL0C2GM>) {
    using Trait = typename Atom::trait;
    constexpr const char* quant = conversion<element_of<S>, element_of<D>>(false, false, false);
    out_of_l0c<Trait>(dst, src, bound<FixpipeParams>(atom.held), quant, at);
  } else if constexpr (std::is_same_v<O, CopyL0C2UB>) {
    cubecore_refuse("CopyL0C2UB",
                    "be another way: the UB of an AIV and the L0C of its AIC are "
                    "memories of two cores here",
                    "it", &at);
  } else {
    using Trait = typename Atom::trait;
    O::template Copy<typename Trait::TraitType, Trait::value>(dst, src);
  }
}

}  // namespace detail

template <typename Traits, typename... Held, typename D, typename S>
inline void Copy(const CopyAtom<Traits, Held...>& atomCopy, const D& dst, const S& src,
                 CUBECORE_AT) {
  detail::copy(atomCopy, dst, src, at);
}

// The last argument: a scale or a tensor of scales; a coordinate for an operation of the kernel's.
template <typename Traits, typename... Held, typename D, typename S, typename Q>
inline void Copy(const CopyAtom<Traits, Held...>& atomCopy, const D& dst, const S& src,
                 const Q& quant, CUBECORE_AT) {
  using O = typename Traits::operation;
  using Trait = typename Traits::trait;
  if constexpr (std::is_same_v<O, CopyL0C2GM>) {
    constexpr bool column = !std::is_arithmetic_v<Q>;
    constexpr bool hybrid = Trait::value.roundMode == RoundMode::HYBRID;
    if constexpr (column)
      detail::take_scales(quant, at);
    else
      cubecore::issue_raw("asc_set_l0c_copy_prequant", at, static_cast<uint64_t>(quant));
    constexpr const char* mode =
        detail::conversion<detail::element_of<S>, detail::element_of<D>>(true, column, hybrid);
    detail::out_of_l0c<Trait>(dst, src, detail::bound<FixpipeParams>(atomCopy.held), mode, at);
  } else {
    O::template Copy<typename Trait::TraitType, Trait::value>(dst, src, quant);
  }
}

// What Call of an atom does.
template <typename Traits, typename... Held, typename... T>
inline void run(const CopyAtom<Traits, Held...>& atom, const T&... tensors) {
  Copy(atom, tensors...);
}

namespace detail {

// What the kernel's own numbers leave out, the tensors' shapes say.
template <typename Atom, typename C, typename A, typename B>
constexpr MmadParams numbers_of(const Atom& atom, const C& c, const A& a, const B&) {
  if (binds<MmadParams>(atom.held)) return bound<MmadParams>(atom.held);
  return {static_cast<uint16_t>(total<0>(c)), static_cast<uint16_t>(total<1>(c)),
          static_cast<uint16_t>(total<1>(a))};
}

}  // namespace detail

template <typename Traits, typename... Held, typename C, typename A, typename B>
inline void Mmad(const MmadAtom<Traits, Held...>& atomMmad, const C& dst, const A& fm,
                 const B& filter, CUBECORE_AT) {
  using cubecore::named;
  constexpr MmadTrait trait = Traits::trait::value;
  const MmadParams p = detail::numbers_of(atomMmad, dst, fm, filter);
  cubecore::issue_raw(
      trait.mmadType == MmadType::MX ? "asc_mmad_mx" : "asc_mmad", at, dst.operand(), fm.operand(),
      filter.operand(), named("m", p.m), named("k", p.k), named("n", p.n),
      named("unit_flag", p.unitFlag), named("disable_gemv", trait.disableGemv),
      named("c_matrix_source", trait.cmatrixSource), named("c_matrix_init_val", p.cmatrixInitVal));
}

template <typename Traits, typename... Held, typename C, typename A, typename B, typename V>
inline void Mmad(const MmadAtom<Traits, Held...>& atomMmad, const C& dst, const A& fm,
                 const B& filter, const V& bias, CUBECORE_AT) {
  using cubecore::named;
  constexpr MmadTrait trait = Traits::trait::value;
  static_assert(trait.mmadType == MmadType::NORMAL,
                "Mmad must have no bias of its own with MX, got one");
  const MmadParams p = detail::numbers_of(atomMmad, dst, fm, filter);
  cubecore::issue_raw("Mmad(C2)", at, dst.operand(), fm.operand(), filter.operand(), bias.operand(),
                      named("m", p.m), named("k", p.k), named("n", p.n),
                      named("unit_flag", p.unitFlag), named("disable_gemv", trait.disableGemv),
                      named("a_layout", "NZ"));
}

template <typename Traits, typename... Held, typename... T>
inline void run(const MmadAtom<Traits, Held...>& atom, const T&... tensors) {
  Mmad(atom, tensors...);
}

}  // namespace AscendC::Te
