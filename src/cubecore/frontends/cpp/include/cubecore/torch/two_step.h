// Calls of operators in two steps: one tells the workspace and makes an executor, one runs it.
// Pages: two-phase calls of aclnn (aclOpExecutor), aclCreateTensor, aclCreateScalar and its like.
#pragma once

#include <tuple>
#include <utility>

#include "cubecore/host/acl_types.h"
#include "cubecore/torch/aclnn.h"

using aclnnStatus = int32_t;

// A tensor as an operator is given it: a view of memory of the device.
struct aclTensor {
  at::Tensor tensor;
};
struct aclOpExecutor {
  std::string call;
};

namespace cubecore::glue {

inline c10::ScalarType scalar_type(aclDataType type) {
  switch (type) {
    case ACL_FLOAT: return c10::ScalarType::Float;
    case ACL_FLOAT16: return c10::ScalarType::Half;
    case ACL_INT8: return c10::ScalarType::Char;
    case ACL_INT16: return c10::ScalarType::Short;
    case ACL_INT32: return c10::ScalarType::Int;
    case ACL_INT64: return c10::ScalarType::Long;
    case ACL_UINT8: return c10::ScalarType::Byte;
    case ACL_DOUBLE: return c10::ScalarType::Double;
    case ACL_BOOL: return c10::ScalarType::Bool;
    case ACL_COMPLEX64: return c10::ScalarType::ComplexFloat;
    case ACL_COMPLEX128: return c10::ScalarType::ComplexDouble;
    case ACL_BF16: return c10::ScalarType::BFloat16;
    default: throw c10::Error(c10::str("aclCreateTensor: a binding has no tensors of type ", type));
  }
}

// Arguments as they are written for the operator: those of a list one by one.
template <typename T>
const T& plain(const T& given) {
  return given;
}
inline at::Tensor plain(const aclTensor* given) {
  return given == nullptr ? at::Tensor() : given->tensor;
}
inline at::Tensor plain(aclTensor* given) { return plain(static_cast<const aclTensor*>(given)); }

// The first step: the last two of `given` take the bytes of the workspace and the executor. The
// operator's workspace is made where it runs, so that no bytes of it are asked for.
template <typename T, size_t... N>
aclnnStatus prepared(const char* name, const T& given, std::index_sequence<N...>) {
  Writer out;
  (out.Add(plain(std::get<N>(given))), ...);
  constexpr size_t count = sizeof...(N);
  *std::get<count>(given) = 0;
  *std::get<count + 1>(given) =
      new aclOpExecutor{c10::str("operator ", name, ' ', count, ' ', out.text)};
  return 0;
}
template <typename... A>
aclnnStatus prepared(const char* name, const A&... given) {
  static_assert(sizeof...(A) > 2, "a workspace's size and an executor come last");
  return prepared(name, std::make_tuple(given...), std::make_index_sequence<sizeof...(A) - 2>());
}
// The second step. An executor runs once.
inline aclnnStatus run_prepared(const char* name, aclOpExecutor* executor) {
  if (executor == nullptr) throw c10::Error(c10::str(name, " needs the executor of its first step"));
  const std::string call = std::move(executor->call);
  delete executor;
  ask(call);
  return 0;
}

}  // namespace cubecore::glue

inline aclTensor* aclCreateTensor(const int64_t* sizes, uint64_t rank, aclDataType type,
                                  const int64_t* strides, int64_t offset, aclFormat,
                                  const int64_t*, uint64_t, void* data) {
  const c10::ScalarType kind = ::cubecore::glue::scalar_type(type);
  std::vector<int64_t> extents(sizes, sizes + rank), steps(rank, 1);
  for (size_t n = rank; n-- > 1;) steps[n - 1] = steps[n] * extents[n];
  if (strides != nullptr) steps.assign(strides, strides + rank);
  int64_t reach = 1;
  for (size_t n = 0; n < rank; ++n) reach += extents[n] == 0 ? 0 : (extents[n] - 1) * steps[n];
  auto storage = std::make_shared<at::Tensor::Storage>();
  storage->data = static_cast<uint8_t*>(data) + offset * c10::elementSize(kind);
  storage->bytes = static_cast<size_t>(reach) * c10::elementSize(kind);
  at::Tensor whole(std::move(storage), {reach}, kind);
  return new aclTensor{whole.as_strided(extents, steps)};
}
inline aclnnStatus aclDestroyTensor(const aclTensor* tensor) {
  delete tensor;
  return 0;
}
inline aclIntArray* aclCreateIntArray(const int64_t* values, uint64_t size) {
  return new std::vector<int64_t>(values, values + size);
}
inline aclFloatArray* aclCreateFloatArray(const float* values, uint64_t size) {
  return new std::vector<float>(values, values + size);
}
inline aclBoolArray* aclCreateBoolArray(const bool* values, uint64_t size) {
  return new std::vector<bool>(values, values + size);
}
inline aclTensorList* aclCreateTensorList(const aclTensor* const* values, uint64_t size) {
  std::vector<at::Tensor> all;
  for (uint64_t n = 0; n < size; ++n) all.push_back(values[n]->tensor);
  return new std::vector<at::Tensor>(std::move(all));
}
inline aclScalar* aclCreateScalar(void* value, aclDataType type) {
  switch (type) {
    case ACL_FLOAT: return new at::Scalar(*static_cast<float*>(value));
    case ACL_DOUBLE: return new at::Scalar(*static_cast<double*>(value));
    case ACL_BOOL: return new at::Scalar(*static_cast<bool*>(value));
    case ACL_INT32: return new at::Scalar(*static_cast<int32_t*>(value));
    case ACL_INT64: return new at::Scalar(*static_cast<int64_t*>(value));
    default: throw c10::Error(c10::str("aclCreateScalar: a binding has no scalars of type ", type));
  }
}
template <typename T>
aclnnStatus aclDestroyIntArray(const T* values) {
  delete values;
  return 0;
}
template <typename T>
aclnnStatus aclDestroyFloatArray(const T* values) {
  return aclDestroyIntArray(values);
}
template <typename T>
aclnnStatus aclDestroyBoolArray(const T* values) {
  return aclDestroyIntArray(values);
}
template <typename T>
aclnnStatus aclDestroyTensorList(const T* values) {
  return aclDestroyIntArray(values);
}
template <typename T>
aclnnStatus aclDestroyScalar(const T* value) {
  return aclDestroyIntArray(value);
}
