// Moves that end or begin in the Cube's memories. Pages:
// "DataCopy（L1ToBiasTable-Buffer数据搬运）", "DataCopy（L1ToFixpipe-Buffer数据搬运）",
// "DataCopy（L1ToGM连续数据搬运）" and its kin, "DataCopy（GMToL1随路转换-ND2NZ搬运）",
// "DataCopy（UBToL1连续数据搬运）" and its kin, "DataCopyL1ToUB（L1到UB数据搬运）".
#pragma once

#include <cstdio>

#include "cubecore/basic/params.h"
#include "cubecore/basic/tensors.h"
#include "cubecore/cube/params.h"
#include "cubecore/seam/notes.h"

namespace AscendC {
namespace detail {

// Runs whose struct counts 32 B, on architecture 3510, which counts bytes from head to head.
template <typename D, typename S>
inline void byte_runs(const char* call, const D& dst, const S& src, const DataCopyParams& p,
                      const cubecore::Where& at) {
  constexpr int64_t block = 32;
  cubecore::issue(call, at, dst.pointer(), src.pointer(), cubecore::named("n_burst", p.blockCount),
                  cubecore::named("len_burst", p.blockLen * block),
                  cubecore::named("src_stride", (p.blockLen + p.srcStride) * block),
                  cubecore::named("dst_stride", (p.blockLen + p.dstStride) * block));
}

// The register of copies to NZ on architecture 3510: how many matrices, and where rows, columns and
// matrices go, in steps of 32 B.
inline void set_nz_para(uint16_t matrices, uint16_t rows, uint16_t columns, uint64_t apart,
                        const cubecore::Where& at) {
  cubecore::issue("asc_set_gm2l1_nz_para", at,
                  matrices | uint64_t{rows} << 16 | uint64_t{columns} << 32 | apart << 48);
}

constexpr uint32_t ceil_of(uint64_t value, uint32_t unit) {
  return static_cast<uint32_t>((value + unit - 1) / unit);
}

template <typename S>
inline bool in_ub(const S& src) {
  return src.memory() == memory_of(TPosition::VECIN);
}

// Runs count 32 B of the source; half becomes float on the way to a tensor of float.
template <typename D, typename S>
inline void into_bias_table(const D& dst, const S& src, uint32_t runs, uint32_t blocks,
                            uint32_t src_gap, uint32_t dst_gap, const cubecore::Where& at) {
  constexpr bool widens = sizeof(typename S::PrimType) < sizeof(typename D::PrimType);
  if (runs == 0 || blocks == 0) return;
  cubecore::issue("asc_copy_l12bt", at, dst.pointer(), src.pointer(), widens, runs, blocks, src_gap,
                  dst_gap);
}

template <typename D, typename S>
inline void between_runs(const D& dst, const S& src, const DataCopyParams& p,
                         const cubecore::Where& at) {
  uint8_t to = dst.memory();
  if (to == memory_of(TPosition::C2)) {
    constexpr uint32_t wide = 2;  // the struct counts 64 B, but for the gap at the source
    into_bias_table(dst, src, p.blockCount, p.blockLen * wide, p.srcStride, p.dstStride * wide, at);
    return;
  }
  if (p.blockCount == 0 || p.blockLen == 0) return;
  if (cubecore::is_950 && to == memory_of(TPosition::A1) && in_ub(src)) {
    cubecore::issue("asc_copy_ub2l1", at, dst.pointer(), src.pointer(), p.blockCount, p.blockLen,
                    p.srcStride, p.dstStride);
    return;
  }
  cubecore::issue(to == memory_of(TPosition::C2PIPE2GM) ? "asc_copy_l12fb"
                  : to == memory_of(TPosition::CO1)     ? "asc_copy_l12l0c"
                                                        : "asc_copy_ub2ub",
                  at, dst.pointer(), src.pointer(), p.blockCount, p.blockLen, p.srcStride,
                  p.dstStride);
}

// The bytes of so many elements that a copy moves, whole blocks: a finding where some stay behind.
template <typename T>
inline uint64_t copied_bytes(uint32_t count, bool pads, const cubecore::Where& at) {
  const uint64_t bytes = static_cast<uint64_t>(cubecore::bytes_of<T>(count));
  const uint32_t rest = static_cast<uint32_t>(bytes % ONE_BLK_SIZE);
  if (rest == 0) return bytes;
  constexpr uint32_t each = 8 * ONE_BLK_SIZE / cubecore::Element<T>::bits;
  char said[160];
  std::snprintf(said, sizeof(said),
                "count must be a multiple of %u for %s (32 B), got %u: the last %u B are not "
                "copied%s",
                each, cubecore::Element<T>::word, count, rest,
                pads ? "; DataCopyPad copies them" : "");
  cubecore_finding("parameter", "DataCopy", said, &at);
  return bytes - rest;
}

template <typename D, typename S>
inline void between(const D& dst, const S& src, uint32_t count, const cubecore::Where& at) {
  using T = typename S::PrimType;
  uint8_t to = dst.memory();
  const uint64_t bytes = to == memory_of(TPosition::C2PIPE2GM)
                             ? static_cast<uint64_t>(cubecore::bytes_of<T>(count))
                             : copied_bytes<T>(count, false, at);
  if (bytes == 0 && count != 0) return;
  uint32_t blocks = static_cast<uint32_t>(bytes / 32);
  if (to == memory_of(TPosition::C2)) {
    into_bias_table(dst, src, 1, blocks, 0, 0, at);
  } else if (to == memory_of(TPosition::C2PIPE2GM)) {
    cubecore::issue("asc_copy_l12fb", at, dst.pointer(), src.pointer(), 1, ceil_of(bytes, 128), 0,
                    0);
  } else if (to == memory_of(TPosition::CO1)) {
    cubecore::issue("asc_copy_l12l0c", at, dst.pointer(), src.pointer(), 1, blocks, 0, 0);
  } else if (cubecore::is_950 && to == memory_of(TPosition::A1) && in_ub(src)) {
    cubecore::issue("asc_copy_ub2l1", at, dst.pointer(), src.pointer(), 1, blocks, 0, 0);
  } else {
    cubecore::issue("asc_copy_ub2ub", at, dst.pointer(), src.pointer(), bytes);
  }
}

// To global memory: whole blocks from UB, or from L1.
template <typename D, typename S>
inline void store_count(const D& dst, const S& src, uint32_t count, const cubecore::Where& at) {
  using T = typename S::PrimType;
  note_atomic<T>("DataCopy", at);
  const bool of_l1 = src.memory() == memory_of(TPosition::A1);
  const bool takes_all = cubecore::is_950 && !of_l1;
  const uint64_t bytes = takes_all ? static_cast<uint64_t>(cubecore::bytes_of<T>(count))
                                   : copied_bytes<T>(count, !of_l1, at);
  if (bytes == 0 && count != 0) return;
  if (of_l1)
    cubecore::issue("asc_copy_l12gm", at, dst.pointer(), src.pointer(), 1, bytes / 32, 0, 0);
  else
    cubecore::issue("asc_copy_ub2gm", at, dst.pointer(), src.pointer(), bytes);
}
template <typename D, typename S>
inline void store_runs(const D& dst, const S& src, const DataCopyParams& p,
                       const cubecore::Where& at) {
  note_atomic<typename S::PrimType>("DataCopy", at);
  const bool of_l1 = src.memory() == memory_of(TPosition::A1);
  if (cubecore::is_950 && !of_l1) {
    byte_runs("asc_copy_ub2gm", dst, src, p, at);
    return;
  }
  const char* call = of_l1 ? "asc_copy_l12gm" : "asc_copy_ub2gm";
  cubecore::issue(call, at, dst.pointer(), src.pointer(), p.blockCount, p.blockLen, p.srcStride,
                  p.dstStride);
}

// Two of 4 bits travel as a byte, of which the caller counts; floats of 8 bits travel as bytes, too.
template <typename T>
inline cubecore::Pointer as_bytes(const T& tensor) {
  cubecore::Pointer pointer = tensor.pointer();
  if constexpr (cubecore::Element<typename T::PrimType>::bits <= 8)
    pointer.type = cubecore::Element<int8_t>::name;
  return pointer;
}

}  // namespace detail

#if __NPU_ARCH__ == 3510
namespace detail {

// From an AIV's UB to its AIC's L1 in NZ: a copy for each 32 B of a row, or for each row where there
// are fewer. The library turns rows in UB that it takes for itself, at no documented address: what
// is not whole blocks needs that.
inline void into_nz(cubecore::Pointer dst, cubecore::Pointer src, uint32_t rows, int64_t row_bytes,
                    int64_t pitch, const Nd2NzParams& p, const cubecore::Where& at) {
  constexpr int64_t block = 32;
  if (row_bytes % block != 0 || pitch % block != 0) {
    char got[64];
    std::snprintf(got, sizeof(got), "%lld B, %lld B apart", static_cast<long long>(row_bytes),
                  static_cast<long long>(pitch));
    cubecore_refuse("Nd2NzParams", "have rows of whole 32 B that begin at multiples of 32 B", got,
                    &at);
  }
  const int64_t columns = row_bytes / block;
  const bool by_rows = rows < columns;
  const int64_t src_step = by_rows ? pitch : block, src_inner = by_rows ? block : pitch;
  const int64_t down = p.dstNzNStride * block, across = p.dstNzC0Stride * block;
  const int64_t dst_step = by_rows ? down : across, dst_inner = by_rows ? across : down;
  for (int64_t n = 0; n < (by_rows ? rows : columns); ++n) {
    cubecore::Pointer to = dst, from = src;
    to.address += n * dst_step;
    from.address += n * src_step;
    cubecore::issue("asc_copy_ub2l1", at, to, from, by_rows ? columns : rows, 1,
                    src_inner / block - 1, dst_inner / block - 1);
  }
}

inline bool in_range(const Nd2NzParams& p, const cubecore::Where& at) {
  return cubecore::within("DataCopy", "ndNum", p.ndNum, 1, 1, at) &&
         cubecore::within("DataCopy", "nValue", p.nValue, 1, 16384, at) &&
         cubecore::within("DataCopy", "dValue", p.dValue, 1, 65535, at) &&
         cubecore::within("DataCopy", "srcDValue", p.srcDValue, 1, 65535, at) &&
         cubecore::within("DataCopy", "dstNzC0Stride", p.dstNzC0Stride, 1, 16384, at) &&
         cubecore::within("DataCopy", "dstNzNStride", p.dstNzNStride, 1, 16384, at);
}

}  // namespace detail

// Page "DataCopy（UBToL1随路转换-ND2NZ搬运）": one matrix.
template <typename T>
inline void DataCopy(const LocalTensor<T>& dst, const LocalTensor<T>& src, const Nd2NzParams& p,
                     CUBECORE_AT) {
  constexpr int64_t size = sizeof(PrimT<T>);
  if (!detail::in_range(p, at)) return;
  detail::into_nz(dst.pointer(), src.pointer(), p.nValue, p.dValue * size, p.srcDValue * size, p,
                  at);
}

// Page "DataCopyPad（UBToL1非对齐数据搬运）": runs of UB that become rows; between the two copies a run
// begins every blockLen + dstStride bytes, as the rows must.
template <typename T>
inline void DataCopyPad(const LocalTensor<T>& dst, const LocalTensor<T>& src,
                        const DataCopyExtParams& dataCopyParams, const Nd2NzParams& p,
                        CUBECORE_AT) {
  constexpr int64_t size = sizeof(PrimT<T>), block = 32;
  const int64_t length = dataCopyParams.blockLen;
  if (!detail::in_range(p, at)) return;
  if (p.srcDValue * size != length + dataCopyParams.dstStride || p.dValue * size > length ||
      p.nValue > dataCopyParams.blockCount)
    cubecore_refuse("DataCopyPad.nd2nzParams", "take its rows from the runs, one from each",
                    "others", &at);
  const int64_t pitch = (length + block - 1) / block * block + dataCopyParams.srcStride * block;
  detail::into_nz(dst.pointer(), src.pointer(), p.nValue, p.dValue * size, pitch, p, at);
}

// From an AIC's L1 to the UB of one of its AIVs; the length is rounded down to 32 B.
template <typename T, uint8_t subBlockId = 0>
inline void DataCopyL1ToUB(const LocalTensor<T>& dst, const LocalTensor<T>& src,
                           const DataCopyParams& repeatParams, CUBECORE_AT) {
  static_assert(subBlockId <= 1, "DataCopyL1ToUB.subBlockId must be 0 or 1, got another");
  if (repeatParams.blockCount == 0 || repeatParams.blockLen == 0) return;
  cubecore::issue("asc_copy_l12ub", at, dst.pointer(), src.pointer(), subBlockId,
                  repeatParams.blockCount, repeatParams.blockLen, repeatParams.srcStride,
                  repeatParams.dstStride);
}
template <typename T, uint8_t subBlockId = 0>
inline void DataCopyL1ToUB(const LocalTensor<T>& dst, const LocalTensor<T>& src,
                           const uint32_t count, CUBECORE_AT) {
  const uint64_t bytes = detail::copied_bytes<PrimT<T>>(count, false, at);
  DataCopyL1ToUB<T, subBlockId>(
      dst, src, DataCopyParams(1, static_cast<uint16_t>(bytes / ONE_BLK_SIZE), 0, 0), at);
}
#endif

}  // namespace AscendC
