// Functions that make tensors, and the names by which bindings call what stands here.
// Page: PyTorch's C++ API: tensor creation; TORCH_CHECK.
#pragma once

#include "cubecore/torch/tensor.h"

namespace at {

inline Tensor empty(IntArrayRef sizes, const TensorOptions& options = {}) {
  return Tensor::Make(sizes.vec(), options.dtype().toScalarType());
}
inline Tensor empty(IntArrayRef sizes, const TensorOptions& options, MemoryFormat) {
  return empty(sizes, options);
}
inline Tensor empty_like(const Tensor& like) {
  return Tensor::Make(like.sizes().vec(), like.scalar_type());
}
inline Tensor empty_like(const Tensor& like, const TensorOptions& options,
                         std::optional<MemoryFormat> = {}) {
  return Tensor::Make(like.sizes().vec(), options.dtype().toScalarType());
}
inline Tensor empty_like(const Tensor& like, MemoryFormat) { return empty_like(like); }
inline Tensor empty_strided(IntArrayRef sizes, IntArrayRef, const TensorOptions& options = {}) {
  return empty(sizes, options);
}
inline Tensor full(IntArrayRef sizes, const Scalar& value, const TensorOptions& options = {}) {
  Tensor made = empty(sizes, options);
  return made.fill_(value);
}
inline Tensor zeros(IntArrayRef sizes, const TensorOptions& options = {}) {
  return full(sizes, 0, options);
}
inline Tensor ones(IntArrayRef sizes, const TensorOptions& options = {}) {
  return full(sizes, 1, options);
}
inline Tensor full_like(const Tensor& like, const Scalar& value) {
  Tensor made = empty_like(like);
  return made.fill_(value);
}
inline Tensor full_like(const Tensor& like, const Scalar& value, const TensorOptions& options) {
  Tensor made = empty_like(like, options);
  return made.fill_(value);
}
inline Tensor zeros_like(const Tensor& like) { return full_like(like, 0); }
inline Tensor zeros_like(const Tensor& like, const TensorOptions& options) {
  return full_like(like, 0, options);
}
inline Tensor ones_like(const Tensor& like) { return full_like(like, 1); }
inline Tensor scalar_tensor(const Scalar& value, const TensorOptions& options = {}) {
  return full({}, value, options);
}
template <typename T, std::enable_if_t<std::is_arithmetic_v<T>, int> = 0>
Tensor tensor(T value, const TensorOptions& options = {}) {
  return full({}, value, options);
}
template <typename T>
Tensor tensor(const std::vector<T>& values, const TensorOptions& options = {}) {
  Tensor made = empty({static_cast<int64_t>(values.size())}, options);
  for (size_t n = 0; n < values.size(); ++n) made.select(0, n).fill_(values[n]);
  return made;
}
template <typename T>
Tensor tensor(std::initializer_list<T> values, const TensorOptions& options = {}) {
  return tensor(std::vector<T>(values), options);
}
inline TensorOptions dtype(ScalarType type) { return TensorOptions(type); }
inline TensorOptions dtype(TypeMeta type) { return TensorOptions(type); }
inline TensorOptions device(Device device) { return TensorOptions(device); }

// The shape of an operation on two shapes, as broadcasting has it.
inline std::vector<int64_t> infer_size(IntArrayRef one, IntArrayRef other) {
  std::vector<int64_t> made(std::max(one.size(), other.size()), 1);
  for (size_t n = 1; n <= made.size(); ++n) {
    const int64_t a = n <= one.size() ? one[one.size() - n] : 1;
    const int64_t b = n <= other.size() ? other[other.size() - n] : 1;
    if (a != b && a != 1 && b != 1) throw Error(str("shapes ", one, " and ", other));
    made[made.size() - n] = a == 1 ? b : a;
  }
  return made;
}
template <typename A, typename B>
int64_t ceil_div(A value, B by) {
  return (value + by - 1) / by;
}
struct NoGradGuard {};
struct AutoDispatchBelowADInplaceOrView {};
struct AutoDispatchBelowAutograd {};

}  // namespace at

namespace torch {

using namespace at;
using Dtype = at::ScalarType;
using at::IntArrayRef;
using TensorList = at::TensorList;

}  // namespace torch

namespace at::native {}
namespace torch::autograd {}

#define TORCH_CHECK(COND, ...)                                                            \
  do {                                                                                    \
    if (!(COND)) throw ::c10::Error(::c10::str("" #COND " does not hold: ", ##__VA_ARGS__)); \
  } while (false)
#define TORCH_CHECK_VALUE TORCH_CHECK
#define TORCH_CHECK_NOT_IMPLEMENTED TORCH_CHECK
#define TORCH_INTERNAL_ASSERT TORCH_CHECK
#define AT_ASSERTM TORCH_CHECK
#define TORCH_CHECK_EQ(A, B) TORCH_CHECK((A) == (B))
#define TORCH_CHECK_NE(A, B) TORCH_CHECK((A) != (B))
#define TORCH_CHECK_GE(A, B) TORCH_CHECK((A) >= (B))
#define TORCH_CHECK_GT(A, B) TORCH_CHECK((A) > (B))
#define TORCH_CHECK_LE(A, B) TORCH_CHECK((A) <= (B))
#define TORCH_CHECK_LT(A, B) TORCH_CHECK((A) < (B))
#define AT_ERROR(...) throw ::c10::Error(::c10::str(__VA_ARGS__))
#define TORCH_WARN(...) ((void)0)
#define TORCH_WARN_ONCE(...) ((void)0)
#define C10_UNUSED [[maybe_unused]]
#define C10_NODISCARD [[nodiscard]]
#define TORCH_API
