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
  int64_t GetShapeSize() const {
    int64_t size = 1;
    for (int64_t dim : dims_) size *= dim;
    return size;
  }

 private:
  std::vector<int64_t> dims_;
};

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
CUBECORE_WORKSPACE(Erf)
CUBECORE_WORKSPACE(Erfc)
CUBECORE_WORKSPACE(Exp)
CUBECORE_WORKSPACE(Floor)
CUBECORE_WORKSPACE(Fmod)
CUBECORE_WORKSPACE(Frac)
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

// Page GetPowerMaxMinTmpSize: the shape of a scalar is 1.
inline void GetPowerMaxMinTmpSize(const TensorShape& base, const TensorShape& by, bool, uint32_t,
                                  bool, uint32_t& most, uint32_t& least) {
  cubecore::workspace(base.GetShapeSize() < by.GetShapeSize() ? by : base, most, least);
}
inline void GetCumSumMaxMinTmpSize(const TensorShape& shape, uint32_t, bool, bool, uint32_t& most,
                                   uint32_t& least) {
  cubecore::workspace(shape, most, least);
}

}  // namespace AscendC
