// Calls of operators from bindings: an aclnn function runs the operator of the project under test.
// Pages: the operator call of Ascend Extension for PyTorch (EXEC_NPU_CMD), its streams.
#pragma once

#include "cubecore/torch/glue.h"

using aclIntArray = const std::vector<int64_t>;
using aclFloatArray = const std::vector<float>;
using aclBoolArray = const std::vector<bool>;
using aclScalar = const c10::Scalar;
using aclTensorList = const std::vector<at::Tensor>;

inline aclIntArray* ConvertType(at::IntArrayRef values) {
  return new std::vector<int64_t>(values.begin(), values.end());
}
inline const at::Tensor& ConvertType(const at::Tensor& tensor) { return tensor; }
inline aclScalar* ConvertType(const at::Scalar& value) { return new at::Scalar(value); }
inline aclScalar* ConvertTensorToAclScaler(const at::Tensor& tensor) {
  return new at::Scalar(tensor.item());
}

namespace cubecore::glue {

template <typename... A>
void run_operator(const char* name, const A&... arguments) {
  Writer out;
  (out.Add(arguments), ...);
  ask(c10::str("operator ", name, ' ', sizeof...(A), ' ', out.text));
}

}  // namespace cubecore::glue

#define EXEC_NPU_CMD(API, ...) ::cubecore::glue::run_operator(#API, ##__VA_ARGS__)
#define EXEC_NPU_CMD_V1 EXEC_NPU_CMD

namespace c10_npu {

struct NPUStream {
  void* stream(bool = true) const { return nullptr; }
  operator void*() const { return nullptr; }
};
inline NPUStream getCurrentNPUStream(int = -1) { return {}; }
inline NPUStream getDefaultNPUStream(int = -1) { return {}; }
struct NPUGuard {
  template <typename T>
  explicit NPUGuard(const T&) {}
};

}  // namespace c10_npu

namespace at_npu::native {

// A command that is given to a queue runs at once.
struct OpCommand {
  template <typename F>
  static void RunOpApi(const std::string&, F body) {
    body();
  }
  template <typename F>
  static void RunOpApiV2(const std::string&, F body, bool = false) {
    body();
  }
  OpCommand& Name(const std::string&) { return *this; }
  template <typename F>
  OpCommand& SetCustomHandler(F body) {
    body();
    return *this;
  }
  void Run() {}
};

}  // namespace at_npu::native
