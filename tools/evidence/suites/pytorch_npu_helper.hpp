// What bindings of operators include where the suites build them: a call of an operator hands its
// arguments to Python, which runs the operator of the project under test.
#pragma once

#include <torch/extension.h>

#include <string>
#include <vector>

using aclIntArray = const std::vector<int64_t>;
using aclScalar = const at::Scalar;

namespace cubecore_suite {

namespace py = pybind11;

inline py::object Given(const at::Tensor& tensor) {
  return tensor.defined() ? py::cast(tensor) : py::none();
}
inline py::object Given(at::TensorList tensors) {
  py::list made;
  for (const at::Tensor& tensor : tensors) made.append(Given(tensor));
  return made;
}
inline py::object Given(const std::vector<at::Tensor>& tensors) {
  return Given(at::TensorList(tensors));
}
inline py::object Given(const at::Scalar& value) {
  if (value.isBoolean()) return py::cast(value.to<bool>());
  if (value.isIntegral(false)) return py::cast(value.to<int64_t>());
  return py::cast(value.to<double>());
}
inline py::object Given(const at::Scalar* value) { return Given(*value); }
inline py::object Given(at::ScalarType type) { return py::cast(at::toString(type)); }
inline py::object Given(const char* text) { return py::cast(std::string(text)); }
inline py::object Given(std::nullptr_t) { return py::none(); }
inline py::object Given(aclIntArray* values) {
  return values == nullptr ? py::object(py::none()) : py::cast(*values);
}
template <typename T>
py::object Given(at::ArrayRef<T> values) {
  py::list made;
  for (const T& value : values) made.append(Given(value));
  return made;
}
template <typename T>
py::object Given(const std::vector<T>& values) {
  py::list made;
  for (const T value : values) made.append(py::cast(value));
  return made;
}
template <typename T>
py::object Given(const c10::optional<T>& value) {
  return value.has_value() ? Given(*value) : py::object(py::none());
}
template <typename T, std::enable_if_t<std::is_arithmetic_v<T> ||
                                           std::is_same_v<T, std::string>, int> = 0>
py::object Given(const T& value) {
  return py::cast(value);
}

template <typename... A>
void Call(const char* name, const A&... arguments) {
  py::list given;
  (given.append(Given(arguments)), ...);
  py::module_::import("cubecore_suite").attr("call")(name, given);
}

}  // namespace cubecore_suite

inline aclIntArray* ConvertType(at::IntArrayRef values) {
  return new std::vector<int64_t>(values.begin(), values.end());
}
inline at::Scalar* ConvertTensorToAclScaler(const at::Tensor& tensor) {
  return new at::Scalar(tensor.item());
}

#define EXEC_NPU_CMD(API, ...) ::cubecore_suite::Call(#API, __VA_ARGS__)
