// Products whose operands have a scale for each 32 values of K, of architecture 3510 alone. Pages:
// MmadMx, LoadData_2D_MX, "DataCopy（GMToL1随路转换-DN2NZ搬运）".
#pragma once

#include "cubecore/cube/copy.h"
#include "cubecore/cube/load_data.h"
#include "cubecore/cube/mmad.h"

namespace AscendC {

struct Dn2NzParams {
  uint16_t dnNum = 0, nValue = 0;
  uint32_t dValue = 0;
  uint64_t srcDnMatrixStride = 0, srcDValue = 0;
  uint16_t dstNzC0Stride = 0, dstNzNStride = 0;
  uint32_t dstNzMatrixStride = 0;
  CUBECORE_TAKES(dnNum, nValue, dValue, srcDnMatrixStride, srcDValue, dstNzC0Stride, dstNzNStride,
                 dstNzMatrixStride)
};

struct LoadData2DMxParams {
  uint16_t xStartPosition = 0, yStartPosition = 0;
  uint8_t xStep = 0, yStep = 0;
  uint16_t srcStride = 0, dstStride = 0;
  CUBECORE_TAKES(xStartPosition, yStartPosition, xStep, yStep, srcStride, dstStride)
};

// A matrix that is stored by columns goes to NZ. The distance between matrices counts elements, all
// other distances 32 B.
template <typename T, bool enableSmallC0 = false>
inline void DataCopy(const LocalTensor<T>& dst, const GlobalTensor<T>& src, const Dn2NzParams& p,
                     CUBECORE_AT) {
  using cubecore::named;
  if (p.dnNum == 0 || p.nValue == 0 || p.dValue == 0) return;
  constexpr uint64_t size = sizeof(PrimT<T>);
  detail::set_nz_para(p.dnNum, p.dstNzNStride, p.dstNzC0Stride,
                      p.dstNzMatrixStride * size / ONE_BLK_SIZE, at);
  cubecore::issue("copy_gm_to_cbuf_multi_dn2nz", at, detail::as_bytes(dst), detail::as_bytes(src),
                  named("n_value", p.nValue), named("d_value", p.dValue),
                  named("loop1_src_stride", p.srcDValue * size),
                  named("loop4_src_stride", p.srcDnMatrixStride * size),
                  named("smallc0_en", enableSmallC0));
}

// The scales of what lies at an address lie at a 16th of it, in a memory of their own.
template <typename T, typename S>
inline void LoadData(const LocalTensor<T>& dst, const LocalTensor<T>& src,
                     const LocalTensor<S>& srcMx, const LoadData2DParamsV2& loadDataParams,
                     const LoadData2DMxParams& p, CUBECORE_AT) {
  static_assert(std::is_same_v<PrimT<S>, fp8_e8m0_t>,
                "LoadData.srcMx must be of fp8_e8m0_t, got another type");
  using cubecore::named;
  LoadData(dst, src, loadDataParams, at);
  const bool left = dst.memory() == detail::in_l0a;
  cubecore::issue(left ? "load_cbuf_to_ca_mx" : "load_cbuf_to_cb_mx", at, srcMx.pointer(),
                  named("dst_at", dst.pointer().address / 16),
                  named("x_start_pos", p.xStartPosition), named("y_start_pos", p.yStartPosition),
                  named("x_step", p.xStep), named("y_step", p.yStep),
                  named("src_stride", p.srcStride), named("dst_stride", p.dstStride));
}

template <typename T, typename U, typename S>
inline void MmadMx(const LocalTensor<T>& dst, const LocalTensor<U>& fm,
                   const LocalTensor<S>& filter, const MmadParams& p, CUBECORE_AT) {
  using cubecore::named;
  cubecore::issue("asc_mmad_mx", at, dst.pointer(), fm.pointer(), filter.pointer(), p.m, p.k, p.n,
                  p.unitFlag, p.disableGemv, p.cmatrixSource, detail::starts_from_zero(p));
}
// C starts from the bias; cmatrixSource and cmatrixInitVal do not count.
template <typename T, typename U, typename S, typename V>
inline void MmadMx(const LocalTensor<T>& dst, const LocalTensor<U>& fm,
                   const LocalTensor<S>& filter, const LocalTensor<V>& bias, const MmadParams& p,
                   CUBECORE_AT) {
  cubecore::issue("MmadMx(C2)", at, dst.pointer(), fm.pointer(), filter.pointer(), bias.pointer(),
                  p.m, p.k, p.n, p.unitFlag, p.disableGemv);
}

}  // namespace AscendC
