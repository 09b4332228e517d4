// Sizes of workspaces, as host programs ask for them. Pages: Get...MaxMinTmpSize and
// Get...TmpBufferFactorSize of each function of the high-level API; TensorShape.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <vector>

namespace AscendC {

class TensorShape {
 public:
  TensorShape() = default;
  TensorShape(std::initializer_list<int64_t> dims) : dims_(dims) {}
  explicit TensorShape(const std::vector<int64_t>& dims) : dims_(dims) {}
  size_t GetDimNum() const { return dims_.size(); }
  int64_t GetDim(size_t index) const { return dims_[index]; }
  std::vector<int64_t> GetDims() const { return dims_; }
  int64_t GetShapeSize() const {
    int64_t size = 1;
    for (int64_t dim : dims_) size *= dim;
    return size;
  }

 private:
  std::vector<int64_t> dims_;
};

// Axes that are reduced, from the first on.
enum class ReducePattern : uint32_t { AR = 0, RA = 1 };

}  // namespace AscendC

namespace ge {
using Shape = AscendC::TensorShape;
}

namespace cubecore {

// Ten temporaries of a repeat at least; more than the whole tensor ten times helps nothing.
inline void workspace(const AscendC::TensorShape& shape, uint32_t& most, uint32_t& least) {
  constexpr uint64_t unit = 10 * 256;
  least = unit;
  most = static_cast<uint32_t>((shape.GetShapeSize() + 63) / 64 * unit);
  if (most < least) most = least;
}

}  // namespace cubecore

// The platform may stand before the shape; what lies between shape and sizes does not matter here.
#define CUBECORE_WORKSPACE(NAME)                                                                   \
  inline bool Get##NAME##MaxMinTmpSize(const TensorShape& shape, uint32_t, bool, uint32_t& most,   \
                                       uint32_t& least) {                                          \
    cubecore::workspace(shape, most, least);                                                       \
    return true;                                                                                   \
  }                                                                                                \
  template <typename P>                                                                            \
  inline bool Get##NAME##MaxMinTmpSize(const P&, const TensorShape& shape, uint32_t, bool,         \
                                       uint32_t& most, uint32_t& least) {                          \
    cubecore::workspace(shape, most, least);                                                       \
    return true;                                                                                   \
  }                                                                                                \
  inline void Get##NAME##TmpBufferFactorSize(uint32_t typeSize, uint32_t& live, uint32_t& extra) { \
    live = 40 / (typeSize == 0 ? 1 : typeSize);                                                    \
    extra = 10 * 256;                                                                              \
  }

namespace AscendC {

CUBECORE_WORKSPACE(Acos)
CUBECORE_WORKSPACE(Acosh)
CUBECORE_WORKSPACE(Asin)
CUBECORE_WORKSPACE(Asinh)
CUBECORE_WORKSPACE(Atan)
CUBECORE_WORKSPACE(Atanh)
CUBECORE_WORKSPACE(Axpy)
CUBECORE_WORKSPACE(Ceil)
CUBECORE_WORKSPACE(Clamp)
CUBECORE_WORKSPACE(Cos)
CUBECORE_WORKSPACE(Cosh)
CUBECORE_WORKSPACE(Digamma)
CUBECORE_WORKSPACE(Erf)
CUBECORE_WORKSPACE(Erfc)
CUBECORE_WORKSPACE(Exp)
CUBECORE_WORKSPACE(Floor)
CUBECORE_WORKSPACE(Fmod)
CUBECORE_WORKSPACE(GeGLU)
CUBECORE_WORKSPACE(ReGlu)
CUBECORE_WORKSPACE(SwiGLU)
CUBECORE_WORKSPACE(Frac)
CUBECORE_WORKSPACE(Lgamma)
CUBECORE_WORKSPACE(Log)
CUBECORE_WORKSPACE(Log10)
CUBECORE_WORKSPACE(Log2)
CUBECORE_WORKSPACE(Rint)
CUBECORE_WORKSPACE(Round)
CUBECORE_WORKSPACE(Sigmoid)
CUBECORE_WORKSPACE(Sign)
CUBECORE_WORKSPACE(Sin)
CUBECORE_WORKSPACE(Sinh)
CUBECORE_WORKSPACE(Tan)
CUBECORE_WORKSPACE(Tanh)
CUBECORE_WORKSPACE(Trunc)
CUBECORE_WORKSPACE(Xor)
#undef CUBECORE_WORKSPACE

// Pages GetHypotMaxMinTmpSize, GetHypotTmpBufferFactorSize: registers hold all of it.
inline void GetHypotMaxMinTmpSize(const TensorShape&, const uint32_t, const bool,
                                  uint32_t& maxValue, uint32_t& minValue) {
  maxValue = minValue = 0;
}
inline void GetHypotTmpBufferFactorSize(const uint32_t, uint32_t& maxLiveNodeCount,
                                        uint32_t& extraBuf) {
  maxLiveNodeCount = extraBuf = 0;
}
// Page GetGeluMaxMinTmpSize.
inline uint32_t GetGeluMaxTmpSize(const TensorShape& srcShape, const uint32_t) {
  uint32_t most = 0, least = 0;
  cubecore::workspace(srcShape, most, least);
  return most;
}
inline uint32_t GetGeluMinTmpSize(const TensorShape&, const uint32_t) { return 10 * 256; }
inline void GetGeluMaxMinTmpSize(const TensorShape& shape, const uint32_t, uint32_t& most,
                                 uint32_t& least) {
  cubecore::workspace(shape, most, least);
}
// Page GetSwiGLUMaxMinTmpSize: the sizes come before isReuseSource.
inline void GetSwiGLUMaxMinTmpSize(const TensorShape& srcShape, const uint32_t, uint32_t& maxValue,
                                   uint32_t& minValue, const bool) {
  cubecore::workspace(srcShape, maxValue, minValue);
}
// Pages GetSwishTmpSize, GetSiluTmpSize.
inline void GetSwishTmpSize(const TensorShape& srcShape, const uint32_t, const bool,
                            uint32_t& maxValue, uint32_t& minValue) {
  cubecore::workspace(srcShape, maxValue, minValue);
}
inline void GetSiluTmpSize(const TensorShape& srcShape, const uint32_t, const bool,
                           uint32_t& maxValue, uint32_t& minValue) {
  cubecore::workspace(srcShape, maxValue, minValue);
}
// Page GetPowerMaxMinTmpSize: the shape of a scalar is 1.
inline void GetPowerMaxMinTmpSize(const TensorShape& base, const TensorShape& by, bool, uint32_t,
                                  bool, uint32_t& most, uint32_t& least) {
  cubecore::workspace(base.GetShapeSize() < by.GetShapeSize() ? by : base, most, least);
}
// Pages GetArangeMaxMinTmpSize, GetBroadCastMaxMinTmpSize, GetSelectMaxMinTmpSize, GetSortTmpSize,
// GetConcatTmpSize.
inline void GetArangeMaxMinTmpSize(uint32_t& most, uint32_t& least) { most = least = 0; }
inline void GetArithProgressionMaxMinTmpSize(uint32_t& most, uint32_t& least) { most = least = 0; }
template <typename P>
inline void GetBroadCastMaxMinTmpSize(const P&, const TensorShape&, const TensorShape& dst,
                                      uint32_t typeSize, const bool, uint32_t& most,
                                      uint32_t& least) {
  uint32_t rows = dst.GetDimNum() > 1 ? static_cast<uint32_t>(dst.GetDim(0)) : 1, block = 32;
  uint32_t columns = static_cast<uint32_t>(dst.GetShapeSize()) / (rows == 0 ? 1 : rows);
  uint32_t width = (columns * typeSize + block - 1) / block + 1;  // a row in blocks, and its own
  least = block / (typeSize == 0 ? 1 : typeSize) * width * block;
  most = (rows + 15) / 16 * 16 * width * block;
  if (most < least) most = least;
}
inline void GetSelectMaxMinTmpSize(const TensorShape& src0, const TensorShape& src1, const uint32_t,
                                   const TensorShape&, const uint32_t, const bool, uint32_t& most,
                                   uint32_t& least) {
  const TensorShape& tensor = src0.GetShapeSize() < src1.GetShapeSize() ? src1 : src0;
  size_t dims = tensor.GetDimNum();
  uint32_t columns = dims == 0 ? 0 : static_cast<uint32_t>(tensor.GetDim(dims - 1));
  most = least = (columns + 127) / 128 * 544;  // bits and halves of a row
}
// Pages GetAscendQuantMaxMinTmpSize, GetAscendDequantMaxMinTmpSize, GetAscendAntiQuantMaxMinTmpSize
// and those of TmpBufferFactorSize: five temporaries at most.
inline void GetAscendQuantMaxMinTmpSize(const TensorShape& srcShape, const uint32_t,
                                        uint32_t& maxValue, uint32_t& minValue) {
  cubecore::workspace(srcShape, maxValue, minValue);
}
inline void GetAscendQuantTmpBufferFactorSize(uint32_t& maxLiveNodeCount, uint32_t& extraBuf) {
  maxLiveNodeCount = 2;
  extraBuf = 10 * 256;
}
inline void GetAscendDequantMaxMinTmpSize(const TensorShape& srcShape, const uint32_t,
                                          uint32_t& maxValue, uint32_t& minValue) {
  cubecore::workspace(srcShape, maxValue, minValue);
}
inline void GetAscendDequantTmpBufferFactorSize(const TensorShape&, uint32_t& maxLiveNodeCount,
                                                uint32_t& extraBuf) {
  maxLiveNodeCount = 2;
  extraBuf = 10 * 256;
}
// `D` is TensorDataType, which kernels do not have.
template <typename D>
inline uint32_t GetAscendAntiQuantMaxTmpSize(const TensorShape& srcShape, const TensorShape&, bool,
                                             D, D) {
  uint32_t most = 0, least = 0;
  cubecore::workspace(srcShape, most, least);
  return most;
}
template <typename D>
inline uint32_t GetAscendAntiQuantMinTmpSize(const TensorShape&, const TensorShape&, bool, D, D) {
  return 10 * 256;
}
template <typename D>
inline void GetAscendAntiQuantMaxMinTmpSize(const TensorShape& srcShape,
                                            const TensorShape& scaleShape, bool isTranspose, D from,
                                            D to, uint32_t& maxValue, uint32_t& minValue) {
  maxValue = GetAscendAntiQuantMaxTmpSize(srcShape, scaleShape, isTranspose, from, to);
  minValue = GetAscendAntiQuantMinTmpSize(srcShape, scaleShape, isTranspose, from, to);
}
template <typename D>
inline void GetAscendAntiQuantTmpBufferFactorSize(const TensorShape&, const TensorShape&, bool, D,
                                                  D, uint32_t& maxLiveNodeCount,
                                                  uint32_t& extraBuf) {
  maxLiveNodeCount = 20;
  extraBuf = 10 * 256;
}
// Page GetSumMaxMinTmpSize: an element for each repeat of a row.
inline void GetSumMaxMinTmpSize(const uint32_t n, const uint32_t typeSize, const bool,
                                uint32_t& most, uint32_t& least) {
  most = least = (n * typeSize + 255) / 256 * typeSize / 32 * 32 + 32;
}
template <typename P>
inline uint32_t GetSortTmpSize(const P&, const uint32_t elemCount, const uint32_t) {
  return elemCount * 8;
}
template <typename P>
inline uint32_t GetConcatTmpSize(const P&, const uint32_t, const uint32_t) {
  return 0;
}
inline void GetCumSumMaxMinTmpSize(const TensorShape& shape, uint32_t, bool isLastAxis, bool,
                                   uint32_t& most, uint32_t& least) {
  cubecore::workspace(shape, most, least);
  if (!isLastAxis || shape.GetDimNum() == 0) return;
  uint32_t inner = static_cast<uint32_t>(shape.GetDim(shape.GetDimNum() - 1));
  least = most = 68 * ((inner + 7) / 8 * 8) + 32;  // columns of eight rows, those rows, offsets
}

// Page GetSelectMaxMinTmpSize: one of the two alone, and former names.
#define CUBECORE_SELECTS(NAME, RESULT)                                                 \
  inline uint32_t NAME(const TensorShape& src0Shape, const TensorShape& src1Shape,     \
                       const uint32_t srcTypeSize, const TensorShape& maskShape,       \
                       const uint32_t maskTypeSize, const bool isReuseMask) {          \
    uint32_t most = 0, least = 0;                                                      \
    GetSelectMaxMinTmpSize(src0Shape, src1Shape, srcTypeSize, maskShape, maskTypeSize, \
                           isReuseMask, most, least);                                  \
    return RESULT;                                                                     \
  }
CUBECORE_SELECTS(GetSelectMaxTmpSize, most)
CUBECORE_SELECTS(GetSelectMinTmpSize, least)
CUBECORE_SELECTS(GetSelectWithBytesMaskMaxTmpSize, most)
CUBECORE_SELECTS(GetSelectWithBytesMaskMinTmpSize, least)
#undef CUBECORE_SELECTS
inline void GetSelectWithBytesMaskMaxMinTmpSize(const TensorShape& src0Shape,
                                                const TensorShape& src1Shape,
                                                const uint32_t srcTypeSize,
                                                const TensorShape& maskShape,
                                                const uint32_t maskTypeSize, const bool isReuseMask,
                                                uint32_t& maxValue, uint32_t& minValue) {
  GetSelectMaxMinTmpSize(src0Shape, src1Shape, srcTypeSize, maskShape, maskTypeSize, isReuseMask,
                         maxValue, minValue);
}

// Page GetPowerTmpBufferFactorSize.
inline void GetPowerTmpBufferFactorSize(const bool, const bool, const bool, const uint32_t typeSize,
                                        uint32_t& maxLiveNodeCount, uint32_t& extraBuffer) {
  maxLiveNodeCount = 40 / (typeSize == 0 ? 1 : typeSize);
  extraBuffer = 10 * 256;
}

}  // namespace AscendC
