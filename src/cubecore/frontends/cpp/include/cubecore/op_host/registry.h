// What the files of an op_host register. Pages: OP_ADD, IMPL_OP, IMPL_OP_OPTILING,
// IMPL_OP_INFERSHAPE, OpImplRegister (namespace gert), REGISTER_OP_AICORE_CONFIG.
#pragma once

#include <functional>

#include "cubecore/op_host/definition.h"

namespace cubecore::op_host {

// The functions of an operator, from its definition and from its implementations.
struct Operator {
  const ops::OpDef* definition = nullptr;  // there as long as its library
  std::function<ge::graphStatus(gert::TilingContext*)> tiling;
  std::function<ge::graphStatus(gert::TilingParseContext*)> parse;
  std::function<std::shared_ptr<void>()> compile_info;
  std::function<ge::graphStatus(gert::InferShapeContext*)> infer_shape;
  std::function<ge::graphStatus(gert::InferDataTypeContext*)> infer_type;
  std::vector<int32_t> valued;  // inputs whose values the functions read
};

Operator& operator_of(const char* type);

// True while a file registers some of whose functions refuse: it takes the place of no other.
inline bool& refusing() {
  static bool now = false;
  return now;
}
template <typename F, typename V>
inline void put(F& place, V function) {
  if (!refusing() || !place) place = function;
}

void add(const char* type, const ops::OpDef* definition);

template <typename Definition>
struct Added {
  explicit Added(const char* type) { add(type, new Definition(type)); }
};

}  // namespace cubecore::op_host

namespace gert {

class OpExecuteContext;

enum class TilingPlacement { TILING_ON_HOST, TILING_ON_AICPU };

class OpImplRegisterV2 {
 public:
  using InferShapeFunc = ge::graphStatus (*)(InferShapeContext*);
  using InferTypeFunc = ge::graphStatus (*)(InferDataTypeContext*);
  using TilingFunc = ge::graphStatus (*)(TilingContext*);

  explicit OpImplRegisterV2(const char* type) : own_(cubecore::op_host::operator_of(type)) {}
  OpImplRegisterV2& InferShape(InferShapeFunc function) {
    cubecore::op_host::put(own_.infer_shape, function);
    return *this;
  }
  template <typename F>
  OpImplRegisterV2& InferShapeRange(F) {
    return *this;
  }
  template <typename F>
  OpImplRegisterV2& InferFormat(F) {
    return *this;
  }
  // What the framework alone calls.
  template <typename F>
  OpImplRegisterV2& GenSimplifiedKey(F) {
    return *this;
  }
  template <typename... F>
  OpImplRegisterV2& OpExecuteFunc(F...) {
    return *this;
  }
  OpImplRegisterV2& InferDataType(InferTypeFunc function) {
    cubecore::op_host::put(own_.infer_type, function);
    return *this;
  }
  OpImplRegisterV2& InferOutDataTypeSameWithFirstInput() {
    own_.infer_type = [](InferDataTypeContext* context) {
      return context->SetOutputDataType(0, context->GetInputDataType(0));
    };
    return *this;
  }
  OpImplRegisterV2& Tiling(TilingFunc function, size_t = 2048) {
    cubecore::op_host::put(own_.tiling, function);
    return *this;
  }
  template <typename T, typename F>
  OpImplRegisterV2& TilingParse(F function) {
    const auto parse = [function](TilingParseContext* context) { return function(context); };
    cubecore::op_host::put(own_.parse, parse);
    const auto made = [] { return std::shared_ptr<void>(std::make_shared<T>()); };
    cubecore::op_host::put(own_.compile_info, made);
    return *this;
  }
  OpImplRegisterV2& InputsDataDependency(std::initializer_list<int32_t> inputs) {
    own_.valued.insert(own_.valued.end(), inputs);
    return *this;
  }
  OpImplRegisterV2& TilingInputsDataDependency(std::initializer_list<int32_t> inputs) {
    return InputsDataDependency(inputs);
  }
  OpImplRegisterV2& TilingInputsDataDependency(std::initializer_list<int32_t> inputs,
                                               std::initializer_list<TilingPlacement>) {
    return InputsDataDependency(inputs);
  }
  OpImplRegisterV2& HostInputs(std::initializer_list<int32_t>) { return *this; }
  OpImplRegisterV2& OutputShapeDependOnCompute(std::initializer_list<int32_t>) { return *this; }
  template <typename... V>
  OpImplRegisterV2& PrivateAttr(V...) {
    return *this;
  }

 private:
  cubecore::op_host::Operator& own_;
};
using OpImplRegister = OpImplRegisterV2;

}  // namespace gert

#define CUBECORE_JOINED_(A, B) A##B
#define CUBECORE_JOINED(A, B) CUBECORE_JOINED_(A, B)
#define OP_ADD(TYPE, ...)                                                         \
  [[maybe_unused]] static const ::cubecore::op_host::Added<TYPE> CUBECORE_JOINED( \
      cubecore_added_##TYPE, __COUNTER__)(#TYPE)
#define IMPL_OP(TYPE)                                                                            \
  [[maybe_unused]] static const auto CUBECORE_JOINED(cubecore_implemented_##TYPE, __COUNTER__) = \
      ::gert::OpImplRegisterV2(#TYPE)
#define IMPL_OP_OPTILING(TYPE) IMPL_OP(TYPE)
#define IMPL_OP_INFERSHAPE(TYPE) IMPL_OP(TYPE)
#define IMPL_OP_INFERDATATYPE(TYPE) IMPL_OP(TYPE)
#define DEVICE_IMPL_OP_OPTILING(TYPE) IMPL_OP(TYPE)
#define REGISTER_OP_AICORE_CONFIG(...)
