// Moves of the tensor API to the Cube's memories. Pages: "Copy（GM到L1数据搬运）",
// "Copy（L1到L0A数据搬运）", "Copy（L1到L0B数据搬运）", "Copy（L1到L0ScaleA数据搬运）",
// "Copy（L1到L0ScaleB数据搬运）", "Copy（L1到BiasTable数据搬运）", "Copy（L1到Fixpipe数据搬运）".
#pragma once

#include "cubecore/te/atoms.h"

namespace AscendC::Te::detail {

using cubecore::named;
using cubecore::Where;

// Where a matrix's parts go in L1, in units of 32 B, as MTE2_NZ_PARA holds it.
inline void set_nz(int64_t rowStride, int64_t columnStride, const Where& at) {
  uint64_t word =
      1 | static_cast<uint64_t>(rowStride) << 16 | static_cast<uint64_t>(columnStride) << 32;
  cubecore::issue_raw("asc_set_gm2l1_nz_para", at, word);
}

// A plain matrix into blocks of 32 B by rows x columns; `turned` if L1's rows are not its own.
template <typename D, typename S>
inline void into_blocks(const D& dst, const S& src, int64_t rows, int64_t columns, int64_t pitch,
                        int64_t columnStride, bool turned, const Where& at) {
  using T = element_of<S>;
  constexpr int64_t pack = in_byte<T>;
  set_nz(1, columnStride, at);
  if (turned && pack > 1)
    cubecore_refuse("Copy.src", "have elements of 8 bits or more to be transposed", "4 bits", &at);
  cubecore::issue_raw(turned ? "copy_gm_to_cbuf_multi_dn2nz" : "copy_gm_to_cbuf_multi_nd2nz_v2", at,
                      whole_bytes(dst), whole_bytes(src), named("n_value", rows),
                      named("d_value", columns / pack),
                      named("loop1_src_stride", pitch / pack * wide<T>()));
}

// Runs of blocks, `pitch` blocks from one to the next on both sides.
template <typename D, typename S>
inline void block_runs(const D& dst, const S& src, int64_t runs, int64_t length, int64_t srcPitch,
                       int64_t dstPitch, const Where& at) {
  if (runs == 0 || length == 0) return;
  bool dense = srcPitch == length && dstPitch == length;
  cubecore::issue_raw("copy_gm_to_cbuf", at, whole_bytes(dst), whole_bytes(src),
                      named("n_burst", dense ? int64_t{1} : runs),
                      named("len_burst", dense ? runs * length : length),
                      named("src_gap", dense ? int64_t{0} : srcPitch - length),
                      named("dst_gap", dense ? int64_t{0} : dstPitch - length));
}

template <typename T>
constexpr int64_t blocks(int64_t elements) {
  return cubecore::bytes_of<T>(elements) / 32;
}

// Pairs of scales move as words of 16 bits: a row of blocks holds 16 of the other axis.
template <typename D, typename S>
inline void scales_into_l1(const D& dst, const S& src, int64_t pairs, int64_t others, int64_t pitch,
                           int64_t columnStride, bool by_pairs, const Where& at) {
  cubecore::Pointer to = dst.operand(), from = src.operand();
  to.type = from.type = cubecore::Element<int16_t>::name;
  set_nz(1, columnStride / 32, at);
  cubecore::issue_raw(by_pairs ? "copy_gm_to_cbuf_multi_nd2nz_v2" : "copy_gm_to_cbuf_multi_dn2nz",
                      at, to, from, named("n_value", pairs), named("d_value", others),
                      named("loop1_src_stride", pitch));
}

template <typename D, typename S>
inline void gm_to_l1(const D& dst, const S& src, const Where& at) {
  using T = element_of<S>;
  using From = pattern_of<S>;
  using To = pattern_of<D>;
  static_assert(std::is_same_v<T, element_of<D>>, "Copy.dst must have the type of src");
  constexpr bool nz = std::is_same_v<To, NZLayoutPtn>, zn = std::is_same_v<To, ZNLayoutPtn>;
  if constexpr (std::is_same_v<From, ScaleANDLayoutPtn>) {
    scales_into_l1(dst, src, total<1>(src) / 2, total<0>(src), stride<0, 1>(src), stride<0, 1>(dst),
                   false, at);
  } else if constexpr (std::is_same_v<From, ScaleADNLayoutPtn>) {
    scales_into_l1(dst, src, extent<1, 1>(src), total<0>(src), stride<1, 1>(src), stride<0, 1>(dst),
                   true, at);
  } else if constexpr (std::is_same_v<From, ScaleBDNLayoutPtn>) {
    scales_into_l1(dst, src, total<0>(src) / 2, total<1>(src), stride<1, 1>(src), stride<1, 1>(dst),
                   false, at);
  } else if constexpr (std::is_same_v<From, ScaleBNDLayoutPtn>) {
    scales_into_l1(dst, src, extent<0, 1>(src), total<1>(src), stride<0, 1>(src), stride<1, 1>(dst),
                   true, at);
  } else if constexpr (std::is_same_v<From, To> && Std::is_one_of_v<To, NZLayoutPtn, NNLayoutPtn>) {
    block_runs(dst, src, extent<1, 1>(src), blocks<T>(extent<0, 1>(src) * stride<0, 1>(src)),
               blocks<T>(stride<1, 1>(src)), blocks<T>(stride<1, 1>(dst)), at);
  } else if constexpr (std::is_same_v<From, To> && Std::is_one_of_v<To, ZNLayoutPtn, ZZLayoutPtn>) {
    block_runs(dst, src, extent<0, 1>(src), blocks<T>(extent<1, 1>(src) * stride<1, 1>(src)),
               blocks<T>(stride<0, 1>(src)), blocks<T>(stride<0, 1>(dst)), at);
  } else if constexpr ((nz || zn) && plain_matrix<S>) {
    const bool rows = stored_by_rows(src);
    const int64_t m = total<0>(src), n = total<1>(src);
    const int64_t pitch = rows ? stride<0, 1>(src) : stride<1, 1>(src);
    const int64_t between = blocks<T>(nz ? stride<1, 1>(dst) : stride<0, 1>(dst));
    into_blocks(dst, src, nz ? m : n, nz ? n : m, pitch, between, rows != nz, at);
  } else if constexpr (plain_matrix<S> && plain_matrix<D>) {
    const bool rows = stored_by_rows(src);
    const int64_t count = rows ? total<0>(src) : total<1>(src);
    const int64_t length = blocks<T>(rows ? total<1>(src) : total<0>(src));
    if (count == 1)
      block_runs(dst, src, 1, length, length, length, at);
    else
      block_runs(dst, src, count, length, blocks<T>(rows ? stride<0, 1>(src) : stride<1, 1>(src)),
                 blocks<T>(rows ? stride<0, 1>(dst) : stride<1, 1>(dst)), at);
  } else {
    static_assert(nz && zn, "Copy from GM to L1 must have a pair of patterns of its page");
  }
}

// Fractals of 512 B that a number of elements takes.
template <typename T>
constexpr int64_t fractals(int64_t elements) {
  return cubecore::bytes_of<T>(elements) / 512;
}

// A window of L1's fractals: the axis `rows` runs inside fractals by 16, the other by C0.
template <typename D, typename S>
inline void into_l0(const D& dst, const S& src, const Where& at) {
  using T = element_of<S>;
  constexpr bool left = D::location::memory == cubecore::Mem::L0A;
  constexpr bool nz = std::is_same_v<pattern_of<S>, NZLayoutPtn>;
  static_assert(nz || std::is_same_v<pattern_of<S>, ZNLayoutPtn>,
                "Copy from L1 to L0 must take NZ or ZN, got another pattern");
  constexpr size_t rows = nz ? 0 : 1, columns = 1 - rows;
  constexpr bool turned = nz != left;
  const int64_t srcStride = fractals<T>(stride<columns, 1>(src));
  const int64_t dstStride = fractals<T>(left ? stride<1, 1>(dst) : stride<0, 1>(dst));
  const char* call = left ? (turned ? "load_cbuf_to_ca_v2_transpose" : "load_cbuf_to_ca_v2")
                          : (turned ? "load_cbuf_to_cb_v2_transpose" : "load_cbuf_to_cb_v2");
  if constexpr (turned) {
    // Whole squares: what the target's fractals hold.
    const int64_t down = total<rows>(dst), across = total<columns>(dst);
    const int64_t edge = Std::max(int64_t{16}, int64_t{Te::C0_ELEMENT<T>});
    const int64_t high = (down + edge - 1) / edge * edge / 16;
    const int64_t wide_ = (across + edge - 1) / edge * edge / int64_t{Te::C0_ELEMENT<T>};
    cubecore::issue_raw(call, at, dst.operand(), src.operand(), named("m_step", high),
                        named("k_step", wide_), named("src_stride", srcStride),
                        named("dst_stride", dstStride));
  } else {
    cubecore::issue_raw(call, at, dst.operand(), src.operand(),
                        named("m_step", extent<rows, 1>(dst)),
                        named("k_step", extent<columns, 1>(dst)), named("src_stride", srcStride),
                        named("dst_stride", dstStride));
  }
}

// Scales: the page divides the values' address by 16.
template <size_t axis, typename D, typename S>
inline void into_l0_scales(const char* call, const D& dst, const S& src, const Where& at) {
  const int64_t place = static_cast<int64_t>(reinterpret_cast<uint64_t>(dst.Data().Get()));
  cubecore::issue_raw(
      call, at, src.operand(), named("dst_at", place), named("x_step", extent<axis, 1>(dst)),
      named("y_step", extent<1 - axis, 1>(dst)), named("src_stride", stride<axis, 1>(src) / 32),
      named("dst_stride", stride<axis, 1>(dst) / 32));
}

template <typename D, typename S>
inline void into_bias(const D& dst, const S& src, const Where& at) {
  const int64_t bytes = cubecore::bytes_of<element_of<S>>(src.Size());
  cubecore::issue_raw("copy_cbuf_to_bt", at, dst.operand(), src.operand(),
                      named("len_burst", (bytes + 31) / 32),
                      named("conv_control", cubecore::Element<element_of<S>>::bits == 16));
}
template <typename D, typename S>
inline void into_fixpipe_buffer(const D& dst, const S& src, const Where& at) {
  const int64_t bytes = cubecore::bytes_of<element_of<S>>(src.Size());
  cubecore::issue_raw("copy_cbuf_to_fbuf_v2", at, dst.operand(), src.operand(),
                      named("len_burst", (bytes + 63) / 64));
}

}  // namespace AscendC::Te::detail
