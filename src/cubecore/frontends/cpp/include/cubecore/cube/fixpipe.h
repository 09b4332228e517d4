// Out of L0C. Pages: "Fixpipe（L0C到GM数据搬运）", "Fixpipe（L0C到L1数据搬运）",
// "Fixpipe（L0C到UB数据搬运）", "L0C Buffer到UB双目标模式",
// "DataCopy（L0C到GM数据搬运）", "DataCopy（L0C到L1数据搬运）", SetFixPipeConfig,
// SetFixpipeNz2ndFlag, SetFixpipePreQuantFlag; the order of FixpipeParams' burst: public kernels.
#pragma once

#include <string>

#include "cubecore/basic/tensors.h"
#include "cubecore/cube/params.h"
#include "cubecore/seam/notes.h"
#include "cubecore/sync/flags.h"

namespace AscendC {

// One matrix has no next one, whatever its distance.
inline void SetFixpipeNz2ndFlag(uint16_t ndNum, uint16_t srcNdStride, uint32_t dstNdStride,
                                CUBECORE_AT) {
  if (cubecore::is_950 && ndNum == 1 && dstNdStride == 0) dstNdStride = 1;
  cubecore::issue(cubecore::is_950 ? "asc_set_l0c2gm_nz2nd" : "asc_set_l0c_copy_params", at, ndNum,
                  srcNdStride, dstNdStride);
}
// Without a page: public kernels give the three values as one word, 16 bits each.
inline void SetNdParaImpl(uint64_t config, CUBECORE_AT) {
  SetFixpipeNz2ndFlag(config & 0xFFFF, config >> 16 & 0xFFFF, config >> 32 & 0xFFFF, at);
}

inline void SetFixpipePreQuantFlag(uint64_t config, CUBECORE_AT) {
  cubecore::issue("asc_set_l0c_copy_prequant", at, config);
}

template <typename T>
inline void SetFixPipeConfig(const LocalTensor<T>& reluPre, const LocalTensor<T>& quantPre,
                             bool isUnitFlag = false, CUBECORE_AT) {
  cubecore::issue("asc_set_l0c2gm_config", at, reluPre.GetPhyAddr(), quantPre.GetPhyAddr(),
                  isUnitFlag);
}

// A tensor of CO1 only takes the unit flags down.
template <typename T, bool setRelu = false>
inline void SetFixPipeConfig(const LocalTensor<T>& preData, bool isUnitFlag = false, CUBECORE_AT) {
  static_assert(!setRelu, "SetFixPipeConfig.setRelu must be false, got true");
  bool scales = preData.memory() == memory_of(TPosition::C2PIPE2GM);
  cubecore::issue("asc_set_l0c2gm_config", at, 0, scales ? preData.GetPhyAddr() : 0, isUnitFlag);
}

namespace detail {

struct Outlet {
  uint16_t n, m;
  uint32_t dst_stride;
  uint16_t src_stride;
  uint8_t unit_flag;
  QuantMode_t quant;
  uint8_t relu;
  bool split, rows, columns = false;
  uint8_t dual = 0;   // targets of L0C to UB: one, by rows, by columns
  bool part = false;  // the AIV of one target
};

// The first of the modes that make a type of another; -1 for none. One with a scale is followed by
// that with a scale for each column.
template <typename D, typename S>
constexpr int first_mode() {
  if (sizeof(D) == 1) return std::is_same_v<S, float> ? QF322B8_PRE : REQ8;
  if (std::is_same_v<S, D>) return NoQuant;
  if (std::is_same_v<S, float> && std::is_same_v<D, half>) return F322F16;
  if (std::is_same_v<S, float> && std::is_same_v<D, bfloat16_t>) return F322BF16;
  if (std::is_same_v<S, int32_t> && std::is_same_v<D, half>) return DEQF16;
  return -1;
}

// The mode of a move of 2201 where it fits the types. Another is a finding; the move is then
// made in the mode without a scale that the types have, or not at all.
template <typename D, typename S>
inline bool judge_mode(const char* call, QuantMode_t& mode, const cubecore::Where& at) {
  if (!(std::is_same_v<S, float> || std::is_same_v<S, int32_t>) || std::is_same_v<D, int4b_t>)
    return true;
  constexpr int first = first_mode<D, S>();
  constexpr QuantMode_t one = static_cast<QuantMode_t>(first < 0 ? NoQuant : first);
  constexpr QuantMode_t each = static_cast<QuantMode_t>(one + 1);
  constexpr bool scales = one > F322BF16;
  if (first >= 0 && (mode == one || (scales && mode == each))) return true;
  char said[160];
  const char *from = cubecore::Element<S>::word, *to = cubecore::Element<D>::word;
  if (first < 0)
    std::snprintf(said, sizeof(said), "dst must be of a type that fixpipe makes of %s, got %s",
                  from, to);
  else
    std::snprintf(said, sizeof(said), "quantPre must be %s%s%s for %s to %s, got %s",
                  cubecore::quant_word(one), scales ? " or " : "",
                  scales ? cubecore::quant_word(each) : "", from, to, cubecore::quant_word(mode));
  cubecore_finding("parameter", call, said, &at);
  mode = one;
  return first >= 0 && !scales;
}

// Rows, or columns of fractals, that a move of 2201 writes over each other (page Fixpipe).
template <typename D>
inline void note_outlet(const char* api, const Outlet& o, const cubecore::Where& at) {
  if (o.rows) {
    if (o.m > 1) note_stride(api, "dstStride", o.n, "rows of nSize elements", o.dst_stride, at);
    return;
  }
  constexpr uint32_t elements = sizeof(D) == 1 ? 32 : 16;  // of a row of a column of fractals
  const uint32_t width = o.split ? 8 : elements;
  const uint32_t bytes = width * static_cast<uint32_t>(sizeof(D));
  if (o.n > width)
    note_stride(api, "dstStride", o.m * bytes / ONE_BLK_SIZE, "columns of mSize rows",
                o.dst_stride, at);
}

template <typename D, typename S>
inline void out_of_l0c(const char* api, const D& dst, const S& src, Outlet o,
                       const cubecore::Where& at) {
  if (o.n == 0 || o.m == 0) return;
  if constexpr (!cubecore::is_950)
    if (!judge_mode<typename D::PrimType, typename S::PrimType>(api, o.quant, at)) return;
  if constexpr (!cubecore::is_950) note_outlet<typename D::PrimType>(api, o, at);
  cubecore::Pointer to = dst.pointer();
  if (to.mem == cubecore::Mem::GM) note_atomic<typename D::PrimType>(api, at);
  const char* call = to.mem == cubecore::Mem::GM ? "asc_copy_l0c2gm" : "asc_copy_l0c2l1";
  if constexpr (cubecore::is_950) {
    using cubecore::named;
    const bool to_ub = to.mem == cubecore::Mem::UB;
    auto issued = [&](const auto&... more) {
      cubecore::issue(to_ub ? "asc_copy_l0c2ub" : call, at, to, src.pointer(), named("n_size", o.n), named("m_size", o.m),
                      named("dst_stride", o.dst_stride), named("src_stride", o.src_stride),
                      named("unit_flag", o.unit_flag),
                      named("quant_pre", cubecore::quant_word(o.quant)), named("relu_pre", o.relu),
                      named("channel_split", o.split), named("nz2nd_en", o.rows), more...);
    };
    if (to_ub)
      issued(named("nz2dn_en", o.columns), named("dual_dst_ctl", o.dual),
             named("sub_blockid", o.part));
    else
      o.columns ? issued(named("nz2dn_en", true)) : issued();
    return;
  }
  cubecore::issue(call, at, to, src.pointer(), o.n, o.m, o.dst_stride, o.src_stride, o.unit_flag,
                  cubecore::quant_word(o.quant), o.relu, o.split, o.rows);
}

// Without rows the structs count 32 B, and the instruction of architecture 3510 elements.
template <typename D>
constexpr uint32_t stride_of(uint32_t stride, bool rows) {
  return rows || !cubecore::is_950 ? stride
                                   : stride * (ONE_BLK_SIZE / sizeof(typename D::PrimType));
}

// Registers, as the struct says, and the move.
template <typename D, typename S>
inline void fixpipe(const D& dst, const S& src, const FixpipeParamsV220& p, bool rows,
                    const cubecore::Where& at) {
  if (p.ndNum == 0 || p.nSize == 0 || p.mSize == 0) return;
  if (cubecore::one_scale(p.quantPre)) SetFixpipePreQuantFlag(p.deqScalar, at);
  constexpr uint32_t unit = cubecore::is_950 ? 16 : 1;  // of src_nd_stride: fractals here
  if (rows) SetFixpipeNz2ndFlag(p.ndNum, p.srcNdStride * unit, p.dstNdStride, at);
  out_of_l0c("Fixpipe", dst, src,
             {p.nSize, p.mSize, stride_of<D>(p.dstStride, rows), p.srcStride, p.unitFlag,
              p.quantPre, static_cast<uint8_t>(p.reluEn), p.isChannelSplit, rows},
             at);
}

// The scales go from L1 to the start of the Fixpipe buffer, behind earlier moves and before the
// next.
template <typename S>
inline void take_scales(const LocalTensor<S>& scales, uint16_t n, const cubecore::Where& at) {
  static_assert(std::is_same_v<PrimT<S>, uint64_t>,
                "Fixpipe.cbufWorkspace must be of uint64_t, got another type");
  constexpr uint32_t held = cubecore::is_950 ? 8 : 16;  // of 64 B, or of 128 B
  LocalTensor<uint64_t> buffer(TPosition::C2PIPE2GM, 0, n);
  barrier(PIPE_FIX, at);
  cubecore::issue("asc_copy_l12fb", at, buffer.pointer(), scales.pointer(), 1,
                  (n + held - 1) / held, 0, 0);
  barrier(PIPE_FIX, at);
  SetFixPipeConfig(buffer, false, at);
}

#if __NPU_ARCH__ != 3510
// Bursts of older kernels as a tile: a burst is a column of fractals, 32 B by 32 B.
template <typename T, typename U>
inline FixpipeParamsV220 as_tile(const FixpipeParams<U>& old, const cubecore::Where& at) {
  constexpr uint32_t row_bytes = 16 * sizeof(PrimT<U>);
  FixpipeParamsV220 p;
  const Nz2NdParams& nd = old.nz2ndParams;
  p.mSize = static_cast<uint16_t>(old.burstLen * 32u / row_bytes);
  const uint32_t src_stride = (p.mSize + 15u) / 16 * 16 + old.srcStride * 16u;
  const uint64_t dst_stride =
      nd.nz2ndEn ? old.dstStride
                 : old.burstLen * sizeof(PrimT<T>) / sizeof(PrimT<U>) + uint64_t{old.dstStride};
  bool right = cubecore::within("Fixpipe", "cburstNum", old.cburstNum, 0, 4095, at);
  if (old.cburstNum > 1) {
    right &= cubecore::within("Fixpipe", "srcStride from head to head", src_stride, 0, 65535, at);
    right &= cubecore::within("Fixpipe", "dstStride from head to head", dst_stride, 0, ~0u, at);
  }
  p.nSize = nd.nz2ndEn ? nd.originalNSize : static_cast<uint16_t>(old.cburstNum * 16);
  p.srcStride = static_cast<uint16_t>(src_stride);
  p.dstStride = static_cast<uint32_t>(dst_stride);
  p.quantPre = old.quantParams.quantPre;
  p.deqScalar = old.quantParams.deqScalar;
  p.ndNum = nd.ndNum;
  p.srcNdStride = nd.srcNdStride;
  p.dstNdStride = nd.dstNdStride;
  p.reluEn = old.reluEn;
  p.unitFlag = old.unitFlag;
  if (!right) p.nSize = 0;  // nothing moves
  return p;
}

#endif

constexpr bool by_rows(const FixpipeConfig& config) {
  return config.format == CO2Layout::ROW_MAJOR;
}

}  // namespace detail

template <typename T, typename U, const FixpipeConfig& config = CFG_ROW_MAJOR>
inline void Fixpipe(const GlobalTensor<T>& dst, const LocalTensor<U>& src,
                    const FixpipeParamsV220& intriParams, CUBECORE_AT) {
  detail::fixpipe(dst, src, intriParams, detail::by_rows(config), at);
}
template <typename T, typename U, const FixpipeConfig& config = CFG_ROW_MAJOR, typename S>
inline void Fixpipe(const GlobalTensor<T>& dst, const LocalTensor<U>& src,
                    const LocalTensor<S>& cbufWorkspace, const FixpipeParamsV220& intriParams,
                    CUBECORE_AT) {
  detail::take_scales(cbufWorkspace, intriParams.nSize, at);
  detail::fixpipe(dst, src, intriParams, detail::by_rows(config), at);
}
// To L1 a tile stays NZ.
template <typename T, typename U, const FixpipeConfig& config = CFG_ROW_MAJOR>
inline void Fixpipe(const LocalTensor<T>& dst, const LocalTensor<U>& src,
                    const FixpipeParamsV220& intriParams, CUBECORE_AT) {
  detail::fixpipe(dst, src, intriParams, false, at);
}
template <typename T, typename U, const FixpipeConfig& config = CFG_ROW_MAJOR, typename S>
inline void Fixpipe(const LocalTensor<T>& dst, const LocalTensor<U>& src,
                    const LocalTensor<S>& cbufWorkspace, const FixpipeParamsV220& intriParams,
                    CUBECORE_AT) {
  detail::take_scales(cbufWorkspace, intriParams.nSize, at);
  detail::fixpipe(dst, src, intriParams, false, at);
}
#if __NPU_ARCH__ == 3510
namespace detail {

// The configuration says whether a tensor is UB's.
inline void require_target(const char* call, cubecore::Pointer to, bool to_ub,
                           const cubecore::Where& at) {
  if ((to.mem == cubecore::Mem::UB) == to_ub) return;
  cubecore_refuse((std::string(call) + ".config").c_str(),
                  to_ub ? "have isToUB false where dst is not in UB" : "have isToUB for a dst in UB",
                  to_ub ? "true" : "false", &at);
}

// Strides count elements. Matrices by columns are written one by one.
template <CO2Layout format, typename D, typename S>
inline void fixpipe_3510(const D& dst, const S& src, const FixpipeParamsArch3510<format>& p,
                         const cubecore::Where& at) {
  constexpr bool rows = format == CO2Layout::ROW_MAJOR, columns = format == CO2Layout::COLUMN_MAJOR;
  if (p.nSize == 0 || p.mSize == 0) return;
  if (cubecore::one_scale(p.quantPre)) SetFixpipePreQuantFlag(p.deqScalar, at);
  const Outlet o = {p.nSize,    p.mSize,  p.dstStride,      p.srcStride, p.unitFlag,
                    p.quantPre, p.reluEn, p.isChannelSplit, rows,        columns,
                    p.dualDstCtl, p.subBlockId};
  if constexpr (columns) {
    cubecore::issue("asc_set_l0c2gm_channel_para", at, uint64_t{p.params.srcNzC0Stride} << 48);
    for (uint32_t n = 0; n < p.params.dnNum; ++n)
      out_of_l0c("Fixpipe", dst[n * p.params.dstDnMatrixStride],
                 src[n * p.params.srcNzMatrixStride * 16], o, at);
    return;
  }
  if constexpr (rows) {
    if (p.params.ndNum == 0) return;
    SetFixpipeNz2ndFlag(p.params.ndNum, p.params.srcNdStride, p.params.dstNdStride, at);
  }
  out_of_l0c("Fixpipe", dst, src, o, at);
}

}  // namespace detail

// `D` is a tensor of global memory, of L1, or with isToUB of an AIV's UB.
template <typename T, typename U, const FixpipeConfig& config = CFG_ROW_MAJOR,
          template <typename> typename D>
inline void Fixpipe(const D<T>& dst, const LocalTensor<U>& src,
                    const FixpipeParamsArch3510<config.format>& intriParams, CUBECORE_AT) {
  detail::require_target("Fixpipe", dst.pointer(), config.isToUB, at);
  detail::fixpipe_3510(dst, src, intriParams, at);
}
template <typename T, typename U, const FixpipeConfig& config = CFG_ROW_MAJOR,
          template <typename> typename D>
inline void Fixpipe(const D<T>& dst, const LocalTensor<U>& src,
                    const LocalTensor<uint64_t>& cbufWorkspace,
                    const FixpipeParamsArch3510<config.format>& intriParams, CUBECORE_AT) {
  detail::require_target("Fixpipe", dst.pointer(), config.isToUB, at);
  detail::take_scales(cbufWorkspace, intriParams.nSize, at);
  detail::fixpipe_3510(dst, src, intriParams, at);
}
#else
template <typename T, typename U>
inline void Fixpipe(const GlobalTensor<T>& dst, const LocalTensor<U>& src,
                    const FixpipeParams<U>& intriParams, CUBECORE_AT) {
  detail::fixpipe(dst, src, detail::as_tile<T>(intriParams, at), intriParams.nz2ndParams.nz2ndEn,
                  at);
}
template <typename T, typename U>
inline void Fixpipe(const LocalTensor<T>& dst, const LocalTensor<U>& src,
                    const FixpipeParams<U>& intriParams, CUBECORE_AT) {
  detail::fixpipe(dst, src, detail::as_tile<T>(intriParams, at), false, at);
}
template <typename T, typename U, typename S>
inline void Fixpipe(const GlobalTensor<T>& dst, const LocalTensor<U>& src,
                    const LocalTensor<S>& cbufWorkspace, const FixpipeParams<U>& intriParams,
                    CUBECORE_AT) {
  FixpipeParamsV220 tile = detail::as_tile<T>(intriParams, at);
  detail::take_scales(cbufWorkspace, tile.nSize, at);
  detail::fixpipe(dst, src, tile, intriParams.nz2ndParams.nz2ndEn, at);
}
template <typename T, typename U, typename S>
inline void Fixpipe(const LocalTensor<T>& dst, const LocalTensor<U>& src,
                    const LocalTensor<S>& cbufWorkspace, const FixpipeParams<U>& intriParams,
                    CUBECORE_AT) {
  FixpipeParamsV220 tile = detail::as_tile<T>(intriParams, at);
  detail::take_scales(cbufWorkspace, tile.nSize, at);
  detail::fixpipe(dst, src, tile, false, at);
}

#endif

namespace detail {

// Uncertain: a field that the page has for other chips alone.
template <typename D>
inline Outlet outlet(const DataCopyCO12DstParams& p, const cubecore::Where& at) {
  cubecore::within("DataCopy", "clipReluPre", p.clipReluPre, 0, 0, at);
  cubecore::within("DataCopy", "eltWiseOp", p.eltWiseOp, 0, 0, at);
  return {p.nSize,     p.mSize,        stride_of<D>(p.dstStride, p.nz2ndEn),
          p.srcStride, p.unitFlag,     p.quantPre,
          p.reluPre,   p.channelSplit, p.nz2ndEn};
}

}  // namespace detail

template <typename T, typename U>
inline void DataCopy(const GlobalTensor<T>& dst, const LocalTensor<U>& src,
                     const DataCopyCO12DstParams& intriParams, CUBECORE_AT) {
  detail::out_of_l0c("DataCopy", dst, src, detail::outlet<GlobalTensor<T>>(intriParams, at), at);
}
template <typename T, typename U>
inline void DataCopy(const LocalTensor<T>& dst, const LocalTensor<U>& src,
                     const DataCopyCO12DstParams& intriParams, CUBECORE_AT) {
  detail::out_of_l0c("DataCopy", dst, src, detail::outlet<LocalTensor<T>>(intriParams, at), at);
}

}  // namespace AscendC
