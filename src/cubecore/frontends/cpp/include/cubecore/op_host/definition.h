// The registration of an operator: inputs, outputs, attributes, chips. Pages: OpDef, OpParamDef,
// OpAttrDef, OpAICoreDef, OpAICoreConfig, OpMC2Def, OP_ADD. Bodies that use containers stand in
// compiled/bodies.h, which one file of the library includes: they are most of what a definition
// compiles to.
#pragma once

#include <utility>

#include "cubecore/op_host/contexts.h"

extern template class std::vector<ge::DataType>;
extern template class std::vector<ge::Format>;

namespace ops {

enum Option { IGNORE = 0, OPTIONAL = 1, REQUIRED = 2, DYNAMIC = 3, VIRTUAL = 4 };
enum class FollowType { ALL = 0, DTYPE = 1, FORMAT = 2, SHAPE = 3, INVALID_TYPE };
enum class DependScope { ALL = 0, TILING = 1, INVALID_SCOPE };
enum class ScalarType : uint32_t {
  UINT64 = 0,
  INT64 = 1,
  UINT32 = 2,
  INT32 = 3,
  UINT16 = 4,
  INT16 = 5,
  UINT8 = 6,
  INT8 = 7,
  FLOAT32 = 8,
  FLOAT16 = 9,
  INVALID_DTYPE
};
enum class FormatCheckOption { DEFAULT = 0, STRICT = 1, MAX };

union ScalarNum {
  uint64_t value_u64;
  int64_t value_i64;
  float value_f32;
  ScalarNum() : value_u64(0) {}
  explicit ScalarNum(uint64_t value) : value_u64(value) {}
  explicit ScalarNum(int64_t value) : value_i64(value) {}
  explicit ScalarNum(float value) : value_f32(value) {}
};

struct ScalarVar {
  ScalarType scalar_type = ScalarType::INVALID_DTYPE;
  ScalarNum scalar_num;
  ScalarVar() = default;
  template <typename T>
  ScalarVar(ScalarType type, T value) : scalar_type(type) {
    if constexpr (std::is_floating_point_v<T>)
      scalar_num = ScalarNum(static_cast<float>(value));
    else
      scalar_num = ScalarNum(static_cast<int64_t>(value));
  }
};

class OpParamDef {
 public:
  explicit OpParamDef(const char* name) : name(name) {}
  OpParamDef& ParamType(Option option) { return Set(kind, option); }
  OpParamDef& DataType(std::vector<ge::DataType> listed) { return Set(types, std::move(listed)); }
  OpParamDef& DataTypeList(std::vector<ge::DataType> listed) {
    free_types = true;
    return Set(types, std::move(listed));
  }
  OpParamDef& DataTypeForBinQuery(std::vector<ge::DataType>) { return *this; }
  OpParamDef& Format(std::vector<ge::Format> listed) { return Set(formats, std::move(listed)); }
  OpParamDef& FormatList(std::vector<ge::Format> listed) { return Set(formats, std::move(listed)); }
  OpParamDef& FormatForBinQuery(std::vector<ge::Format>) { return *this; }
  OpParamDef& UnknownShapeFormat(std::vector<ge::Format>) { return *this; }
  OpParamDef& ValueDepend(Option, DependScope = DependScope::ALL) { return Set(valued, true); }
  OpParamDef& Scalar() { return Set(valued, true); }
  OpParamDef& ScalarList() { return Set(valued, true); }
  OpParamDef& To(ge::DataType) { return *this; }
  OpParamDef& To(const char*) { return *this; }
  OpParamDef& IgnoreContiguous() { return *this; }
  OpParamDef& AutoContiguous() { return *this; }
  OpParamDef& OutputShapeDependOnCompute() { return Set(computed, true); }
  OpParamDef& Version(uint32_t) { return *this; }
  OpParamDef& Comment(const char*) { return *this; }
  OpParamDef& Follow(const char* other, FollowType what = FollowType::ALL) {
    if (what == FollowType::ALL || what == FollowType::DTYPE) type_of = other;
    if (what == FollowType::ALL || what == FollowType::SHAPE) shape_of = other;
    return *this;
  }
  OpParamDef& InitValue(uint64_t value) { return Zeroed(value == 0); }
  OpParamDef& InitValue(const ScalarVar& value) { return Zeroed(IsZero(value)); }
  OpParamDef& InitValue(const std::vector<ScalarVar>& values) {
    bool zero = true;
    for (const ScalarVar& value : values) zero = zero && IsZero(value);
    return Zeroed(zero);
  }

  std::string name, type_of, shape_of;
  Option kind = REQUIRED;
  std::vector<ge::DataType> types;
  std::vector<ge::Format> formats;
  bool free_types = false, valued = false, computed = false;
  int init = 0;  // 1 with zeros, 2 with another value

 private:
  template <typename T, typename U>
  OpParamDef& Set(T& to, U value) {
    to = std::move(value);
    return *this;
  }
  OpParamDef& Zeroed(bool zero) { return Set(init, zero ? 1 : 2); }
  static bool IsZero(const ScalarVar& value) { return value.scalar_num.value_u64 == 0; }
};

class OpAttrDef {
 public:
  explicit OpAttrDef(const char* name) : name(name) {}
  OpAttrDef& AttrType(Option option) {
    return Set("", [&] { required = option == REQUIRED; });
  }
  OpAttrDef& Bool() { return Typed("bool"); }
  OpAttrDef& Bool(bool value) { return Typed("bool", value); }
  OpAttrDef& Float() { return Typed("float"); }
  OpAttrDef& Float(float value) { return Typed("float", value); }
  OpAttrDef& Int() { return Typed("int"); }
  OpAttrDef& Int(int64_t value) { return Typed("int", value); }
  OpAttrDef& String() { return Typed("str"); }
  OpAttrDef& String(const char* value) { return Typed("str", value); }
  OpAttrDef& ListBool() { return Typed("list_bool"); }
  OpAttrDef& ListBool(std::vector<bool> values) { return Listed("list_bool", values); }
  OpAttrDef& ListFloat() { return Typed("list_float"); }
  OpAttrDef& ListFloat(std::vector<float> values) { return Listed("list_float", values); }
  OpAttrDef& ListInt() { return Typed("list_int"); }
  OpAttrDef& ListInt(std::vector<int64_t> values) { return Listed("list_int", values); }
  OpAttrDef& ListListInt() { return Typed("list_list_int"); }
  OpAttrDef& ListListInt(std::vector<std::vector<int64_t>>) {
    return Set("list_list_int", [&] { has_value = true; });
  }
  OpAttrDef& Version(uint32_t) { return *this; }
  OpAttrDef& Comment(const char*) { return *this; }
  bool IsRequired() const { return required; }

  std::string name, type, value;
  bool required = true, has_value = false;

 private:
  template <typename F>
  OpAttrDef& Set(const char* kind, const F& change) {
    if (*kind != 0) type = kind;
    change();
    return *this;
  }
  OpAttrDef& Typed(const char* kind) {
    return Set(kind, [] {});
  }
  template <typename T>
  OpAttrDef& Typed(const char* kind, T given) {
    return Set(kind, [&] { Keep(given); });
  }
  template <typename T>
  OpAttrDef& Listed(const char* kind, const std::vector<T>& given) {
    return Set(kind, [&] {
      has_value = true;
      value.clear();
      for (T each : given) {
        if (!value.empty()) value += ' ';
        value += Text(each);
      }
    });
  }
  template <typename T>
  void Keep(T given) {
    has_value = true;
    value = Text(given);
  }
  template <typename T>
  static std::string Text(T given) {
    std::ostringstream out;
    out.precision(17);
    out << given;
    return out.str();
  }
};

// Parameters by name, in the order in which they were named first.
template <typename T>
class Named {
 public:
  T& operator()(const char* name);
  std::deque<T> all;
};

class OpAICoreConfig {
 public:
  OpAICoreConfig();
  explicit OpAICoreConfig(const char*) : OpAICoreConfig() {}
  OpAICoreConfig(const OpAICoreConfig&);
  ~OpAICoreConfig();
  OpParamDef& Input(const char* name) { return inputs(name); }
  OpParamDef& Output(const char* name) { return outputs(name); }
  OpAICoreConfig& DynamicCompileStaticFlag(bool) { return *this; }
  OpAICoreConfig& DynamicFormatFlag(bool) { return *this; }
  OpAICoreConfig& DynamicRankSupportFlag(bool) { return *this; }
  OpAICoreConfig& DynamicShapeSupportFlag(bool) { return *this; }
  OpAICoreConfig& NeedCheckSupportFlag(bool) { return *this; }
  OpAICoreConfig& PrecisionReduceFlag(bool) { return *this; }
  OpAICoreConfig& ExtendCfgInfo(const char* key, const char* value);

  Named<OpParamDef> inputs, outputs;
  std::map<std::string, std::string> extended;
};

using InferShapeFunction = ge::graphStatus (*)(gert::InferShapeContext*);
using InferTypeFunction = ge::graphStatus (*)(gert::InferDataTypeContext*);
using TilingFunction = ge::graphStatus (*)(gert::TilingContext*);

class OpAICoreDef {
 public:
  OpAICoreDef& SetTiling(TilingFunction function) {
    tiling = function;
    return *this;
  }
  template <typename F>
  OpAICoreDef& SetCheckSupport(F) {
    return *this;
  }
  template <typename F>
  OpAICoreDef& SetOpSelectFormat(F) {
    return *this;
  }
  template <typename F>
  OpAICoreDef& SetOpSupportInfo(F) {
    return *this;
  }
  template <typename F>
  OpAICoreDef& SetOpSpecInfo(F) {
    return *this;
  }
  template <typename F>
  OpAICoreDef& SetParamGeneralize(F) {
    return *this;
  }
  OpAICoreDef& LaunchWithZeroEleOutputTensors(bool) { return *this; }
  OpAICoreDef& AddConfig(const char* chip);
  OpAICoreDef& AddConfig(const char* chip, OpAICoreConfig& config);

  TilingFunction tiling = nullptr;
  std::vector<std::pair<std::string, OpAICoreConfig>> configs;
};

class OpMC2Def {
 public:
  OpMC2Def& HcclGroup(const char*) { return *this; }
  OpMC2Def& HcclGroup(std::vector<const char*>) { return *this; }
};

class OpAICPUDef {
 public:
  template <typename... A>
  OpAICPUDef& OpInfo(A...) {
    return *this;
  }
};

class OpDef {
 public:
  explicit OpDef(const char* type);
  ~OpDef();
  OpParamDef& Input(const char* name) { return inputs(name); }
  OpParamDef& Output(const char* name) { return outputs(name); }
  OpAttrDef& Attr(const char* name) { return attributes(name); }
  OpDef& Comment(const char*) { return *this; }
  template <typename C>
  OpDef& Comment(C, const char*) {
    return *this;
  }
  OpDef& SetInferShape(InferShapeFunction function) {
    infer_shape = function;
    return *this;
  }
  template <typename F>
  OpDef& SetInferShapeRange(F) {
    return *this;
  }
  OpDef& SetInferDataType(InferTypeFunction function) {
    infer_type = function;
    return *this;
  }
  OpDef& FormatMatchMode(FormatCheckOption) { return *this; }
  OpDef& EnableFallBack() { return *this; }
  OpAICoreDef& AICore() { return core; }
  OpAICPUDef& AICPU() { return cpu; }
  OpMC2Def& MC2() { return mc2; }

  std::string type;
  Named<OpParamDef> inputs, outputs;
  Named<OpAttrDef> attributes;
  OpAICoreDef core;
  OpAICPUDef cpu;
  OpMC2Def mc2;
  InferShapeFunction infer_shape = nullptr;
  InferTypeFunction infer_type = nullptr;
};

}  // namespace ops
