// Tiling keys of templates: what a header declares of a kernel's template parameters, and the key
// that their values have. Pages: the definition of template parameters, GET_TPL_TILING_KEY,
// ASCENDC_TPL_SEL_PARAM. A value's place among the declared ones is its part of the key, the first
// parameter's lowest.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "cubecore/host/device.h"
#include "cubecore/op_host/types.h"

enum : uint64_t {
  C_DT_FLOAT = ge::DT_FLOAT,
  C_DT_FLOAT16 = ge::DT_FLOAT16,
  C_DT_INT8 = ge::DT_INT8,
  C_DT_INT32 = ge::DT_INT32,
  C_DT_UINT8 = ge::DT_UINT8,
  C_DT_INT16 = ge::DT_INT16,
  C_DT_UINT16 = ge::DT_UINT16,
  C_DT_UINT32 = ge::DT_UINT32,
  C_DT_INT64 = ge::DT_INT64,
  C_DT_UINT64 = ge::DT_UINT64,
  C_DT_DOUBLE = ge::DT_DOUBLE,
  C_DT_BOOL = ge::DT_BOOL,
  C_DT_COMPLEX64 = ge::DT_COMPLEX64,
  C_DT_BF16 = ge::DT_BF16,
  C_DT_INT4 = ge::DT_INT4,
  C_DT_UINT1 = ge::DT_UINT1,
  C_DT_INT2 = ge::DT_INT2,
  C_DT_COMPLEX32 = ge::DT_COMPLEX32,
  C_DT_HIFLOAT8 = ge::DT_HIFLOAT8,
  C_DT_FLOAT8_E5M2 = ge::DT_FLOAT8_E5M2,
  C_DT_FLOAT8_E4M3FN = ge::DT_FLOAT8_E4M3FN,
  C_DT_FLOAT4_E2M1 = ge::DT_FLOAT4_E2M1,
  C_DT_FLOAT4_E1M2 = ge::DT_FLOAT4_E1M2
};
enum : uint64_t {
  C_FORMAT_NCHW = ge::FORMAT_NCHW,
  C_FORMAT_NHWC = ge::FORMAT_NHWC,
  C_FORMAT_ND = ge::FORMAT_ND,
  C_FORMAT_NC1HWC0 = ge::FORMAT_NC1HWC0,
  C_FORMAT_FRACTAL_Z = ge::FORMAT_FRACTAL_Z,
  C_FORMAT_NDHWC = ge::FORMAT_NDHWC,
  C_FORMAT_FRACTAL_NZ = ge::FORMAT_FRACTAL_NZ,
  C_FORMAT_NCDHW = ge::FORMAT_NCDHW,
  C_FORMAT_NDC1HWC0 = ge::FORMAT_NDC1HWC0,
  C_FORMAT_NCL = ge::FORMAT_NCL
};
enum : uint64_t { ASCENDC_TPL_UI_RANGE, ASCENDC_TPL_UI_LIST, ASCENDC_TPL_UI_MIX };
enum : uint64_t {
  ASCENDC_TPL_AIV_ONLY,
  ASCENDC_TPL_AIC_ONLY,
  ASCENDC_TPL_MIX_AIV_1_0,
  ASCENDC_TPL_MIX_AIC_1_0,
  ASCENDC_TPL_MIX_AIC_1_1,
  ASCENDC_TPL_MIX_AIC_1_2,
  ASCENDC_TPL_AICORE,
  ASCENDC_TPL_VECTORCORE,
  ASCENDC_TPL_MIX_AICORE,
  ASCENDC_TPL_MIX_VECTOR_CORE
};
enum : uint8_t {
  ASCENDC_TPL_1_BW = 1,
  ASCENDC_TPL_2_BW,
  ASCENDC_TPL_3_BW,
  ASCENDC_TPL_4_BW,
  ASCENDC_TPL_5_BW,
  ASCENDC_TPL_6_BW,
  ASCENDC_TPL_7_BW,
  ASCENDC_TPL_8_BW,
  ASCENDC_TPL_9_BW,
  ASCENDC_TPL_10_BW,
  ASCENDC_TPL_16_BW = 16
};

namespace cubecore::op_host {

enum class TemplateValue { Type, Number, Counted, Kernel, Deterministic, Struct };
constexpr uint64_t OF_TENSOR = 1ull << 32;  // the type or format of an input or output

// Values of ASCENDC_TPL_UI_*: ranges, then single ones.
inline std::vector<uint64_t> Listed(const std::vector<uint64_t>& given) {
  std::vector<uint64_t> found;
  if (given.empty()) return found;
  size_t ranges = given[0] == ASCENDC_TPL_UI_LIST || given.size() < 2 ? 0 : given[1];
  size_t at = given[0] == ASCENDC_TPL_UI_LIST ? 1 : 2;
  for (; ranges > 0 && at + 1 < given.size(); --ranges, at += 2)
    for (uint64_t value = given[at]; value <= given[at + 1]; ++value) found.push_back(value);
  found.insert(found.end(), given.begin() + std::min(at, given.size()), given.end());
  return found;
}

}  // namespace cubecore::op_host

// A template parameter as it is declared, or as a combination has it.
struct ParamStruct {
  ParamStruct(const char* name, cubecore::op_host::TemplateValue kind, uint8_t bits,
              std::vector<uint64_t> given)
      : name(name),
        kind(kind),
        bits(bits),
        vals(kind == cubecore::op_host::TemplateValue::Counted ? cubecore::op_host::Listed(given)
                                                               : std::move(given)) {}
  bool Has(uint64_t value) const {
    bool free = !vals.empty() && vals[0] >= cubecore::op_host::OF_TENSOR;
    return free || std::find(vals.begin(), vals.end(), value) != vals.end();
  }

  const char* name;
  cubecore::op_host::TemplateValue kind;
  uint8_t bits;
  std::vector<uint64_t> vals;
};
using TilingDeclareParams = std::vector<ParamStruct>;
using TilingSelectParams = std::vector<std::vector<ParamStruct>>;

namespace cubecore::op_host {

// A value as the kernel's template takes it.
inline std::string TemplateText(const ParamStruct& one, uint64_t value) {
  static const std::map<uint64_t, const char*> types = {
      {C_DT_FLOAT, "float"},     {C_DT_FLOAT16, "half"},    {C_DT_INT8, "int8_t"},
      {C_DT_INT32, "int32_t"},   {C_DT_UINT8, "uint8_t"},   {C_DT_INT16, "int16_t"},
      {C_DT_UINT16, "uint16_t"}, {C_DT_UINT32, "uint32_t"}, {C_DT_INT64, "int64_t"},
      {C_DT_UINT64, "uint64_t"}, {C_DT_DOUBLE, "double"},   {C_DT_BOOL, "bool"},
      {C_DT_BF16, "bfloat16_t"}, {C_DT_INT4, "int4b_t"}};
  auto found = types.find(value);
  if (one.kind == TemplateValue::Type && found != types.end()) return found->second;
  return std::to_string(value);
}

inline const char* KindOf(const std::vector<ParamStruct>& combination) {
  for (const ParamStruct& one : combination) {
    if (one.kind != TemplateValue::Kernel || one.vals.empty()) continue;
    uint64_t kind = one.vals[0];
    if (kind == ASCENDC_TPL_AIV_ONLY || kind == ASCENDC_TPL_MIX_AIV_1_0) return "vector";
    if (kind == ASCENDC_TPL_AIC_ONLY || kind == ASCENDC_TPL_MIX_AIC_1_0) return "cube";
    return kind == ASCENDC_TPL_MIX_AIC_1_1 ? "mix_1_1" : "mix";
  }
  return "";
}

inline bool Fits(const std::vector<ParamStruct>& combination, const TilingDeclareParams& declared,
                 const std::vector<uint64_t>& values) {
  for (const ParamStruct& one : combination)
    for (size_t n = 0; n < declared.size(); ++n)
      if (std::string(declared[n].name) == one.name && !one.Has(values[n])) return false;
  return true;
}

inline std::string Named(const TilingDeclareParams& declared, const std::vector<uint64_t>& values) {
  std::string text;
  for (size_t n = 0; n < declared.size(); ++n) {
    text += (n == 0 ? "" : ", ") + std::string(declared[n].name);
    if (n < values.size()) text += " " + TemplateText(declared[n], values[n]);
  }
  return text;
}

}  // namespace cubecore::op_host

namespace AscendC {

// Says the values to Python, which names the kernel's instance by them.
inline uint64_t EncodeTilingKey(const TilingDeclareParams& declared,
                                const TilingSelectParams& combinations,
                                const std::vector<uint64_t>& values) {
  using namespace cubecore::op_host;
  auto refuse = [](const std::string& text) {
    cubecore::refused(("GET_TPL_TILING_KEY must " + text).c_str());
  };
  if (values.size() != declared.size())
    refuse("take " + std::to_string(declared.size()) + " values (" + Named(declared, {}) +
           "), got " + std::to_string(values.size()));
  uint64_t key = 0;
  uint32_t at = 0;
  std::string text;
  for (size_t n = 0; n < declared.size(); ++n) {
    const ParamStruct& one = declared[n];
    if (!one.Has(values[n]))
      refuse("take a declared value of " + std::string(one.name) + ", got " +
             TemplateText(one, values[n]));
    auto place = std::find(one.vals.begin(), one.vals.end(), values[n]) - one.vals.begin();
    bool counted = one.kind == TemplateValue::Counted;
    if (at < 64) key |= (counted ? static_cast<uint64_t>(place) : values[n]) << at;
    at += one.bits;
    text += (n == 0 ? "" : ",") + TemplateText(one, values[n]);
  }
  const char* kind = "";
  bool fits = combinations.empty();
  for (const auto& combination : combinations) {
    if (fits || !Fits(combination, declared, values)) continue;
    fits = true;
    kind = KindOf(combination);
  }
  if (!fits) refuse("take values of an ASCENDC_TPL_ARGS_SEL, got " + Named(declared, values));
  std::string line = "template\t" + std::to_string(key) + "\t" + kind + "\t" + text;
  cubecore_host(cubecore::ANSWER, 0, 0, line.c_str(), nullptr, nullptr);
  return key;
}

}  // namespace AscendC

#undef ASCENDC_TPL_ARGS_DECL
#undef ASCENDC_TPL_SEL
#undef ASCENDC_TPL_SEL_PARAM
#define CUBECORE_TPL(NAME, KIND, BITS, ...)                               \
  ParamStruct {                                                           \
    NAME, ::cubecore::op_host::TemplateValue::KIND, BITS, { __VA_ARGS__ } \
  }
#define ASCENDC_TPL_INPUT(INDEX) (::cubecore::op_host::OF_TENSOR + (INDEX))
#define ASCENDC_TPL_OUTPUT(INDEX) (::cubecore::op_host::OF_TENSOR + (INDEX))
#define ASCENDC_TPL_DTYPE_DECL(NAME, ...) CUBECORE_TPL(#NAME, Number, 8, __VA_ARGS__)
#define ASCENDC_TPL_DATATYPE_DECL(NAME, ...) CUBECORE_TPL(#NAME, Type, 8, __VA_ARGS__)
#define ASCENDC_TPL_FORMAT_DECL(NAME, ...) CUBECORE_TPL(#NAME, Number, 8, __VA_ARGS__)
#define ASCENDC_TPL_UINT_DECL(NAME, BITS, ...) CUBECORE_TPL(#NAME, Counted, BITS, __VA_ARGS__)
#define ASCENDC_TPL_BOOL_DECL(NAME, ...) CUBECORE_TPL(#NAME, Number, 1, __VA_ARGS__)
#define ASCENDC_TPL_KERNEL_TYPE_DECL(NAME, ...) CUBECORE_TPL(#NAME, Number, 8, __VA_ARGS__)
#define ASCENDC_TPL_DTYPE_SEL(NAME, ...) CUBECORE_TPL(#NAME, Number, 8, __VA_ARGS__)
#define ASCENDC_TPL_DATATYPE_SEL(NAME, ...) CUBECORE_TPL(#NAME, Type, 8, __VA_ARGS__)
#define ASCENDC_TPL_FORMAT_SEL(NAME, ...) CUBECORE_TPL(#NAME, Number, 8, __VA_ARGS__)
#define ASCENDC_TPL_UINT_SEL(NAME, ...) CUBECORE_TPL(#NAME, Counted, 0, __VA_ARGS__)
#define ASCENDC_TPL_BOOL_SEL(NAME, ...) CUBECORE_TPL(#NAME, Number, 1, __VA_ARGS__)
#define ASCENDC_TPL_KERNEL_TYPE_SEL(...) CUBECORE_TPL("kernel_type", Kernel, 8, __VA_ARGS__)
#define ASCENDC_TPL_DETERMINISTIC_SEL(...) CUBECORE_TPL("", Deterministic, 1, __VA_ARGS__)
#define ASCENDC_TPL_TILING_STRUCT_SEL(...) CUBECORE_TPL("", Struct, 0, 0)
#define ASCENDC_TPL_SHARED_KERNEL_TYPE_SEL(NAME, ...) CUBECORE_TPL(#NAME, Kernel, 8, __VA_ARGS__)
#define ASCENDC_TPL_ARGS_DECL(NAME, ...) \
  [[maybe_unused]] static const TilingDeclareParams g_tilingDeclareParams { __VA_ARGS__ }
#define ASCENDC_TPL_ARGS_SEL(...) {__VA_ARGS__}
#define ASCENDC_TPL_SEL(...) \
  [[maybe_unused]] static const TilingSelectParams g_tilingSelectParams { __VA_ARGS__ }
#define GET_TPL_TILING_KEY(...) \
  AscendC::EncodeTilingKey(g_tilingDeclareParams, g_tilingSelectParams, {__VA_ARGS__})
#define ASCENDC_TPL_SEL_PARAM(CONTEXT, ...) (CONTEXT)->SetTilingKey(GET_TPL_TILING_KEY(__VA_ARGS__))
