// What op_hosts of public operator repositories take from their common package: logs and checks,
// arithmetic, and inference of shapes. No page has these names; the meaning is the one that those
// op_hosts need. Uncertain: a quotient by 0 is 0.
#pragma once

#include <iostream>
#include <sstream>
#include <string>
#include <type_traits>
#include <vector>

#include "cubecore/op_host/all.h"

#ifndef OPBASE_API
#define OPBASE_API  // a word of the package's own build
#endif

namespace cubecore::op_host {

template <typename N, typename... A>
inline void Log(int level, const N&, const char* format, const A&... values) {
  AlogRecord(OP, DLOG_TYPE_DEBUG, level, format, values...);
}
template <typename N, typename... A>
inline void Log(int level, const N& name, const std::string& format, const A&... values) {
  Log(level, name, format.c_str(), values...);
}
// Words alone, without the name of what they are about.
inline void Log(int level, const char* words) {
  AlogRecord(OP, DLOG_TYPE_DEBUG, level, "%s", words);
}
inline void Log(int level, const std::string& words) { Log(level, words.c_str()); }
template <typename N, typename... A>
inline void OpLogSub(int, int level, const N& name, const char* format, const A&... values) {
  Log(level, name, format, values...);
}
// A check that failed, with the names and values that its caller gives.
template <typename... A>
inline void Failed(const char* what, const A&... words) {
  std::cerr << what;
  ((std::cerr << ' ' << words), ...);
  std::cerr << std::endl;
}

}  // namespace cubecore::op_host

using cubecore::op_host::OpLogSub;

#define OP_LOGD(...) ::cubecore::op_host::Log(DLOG_DEBUG, __VA_ARGS__)
#define OP_LOGI(...) ::cubecore::op_host::Log(DLOG_INFO, __VA_ARGS__)
#define OP_LOGW(...) ::cubecore::op_host::Log(DLOG_WARN, __VA_ARGS__)
#define OP_LOGE(...) ::cubecore::op_host::Log(DLOG_ERROR, __VA_ARGS__)
#define OP_LOGE_WITHOUT_REPORT(...) OP_LOGE(__VA_ARGS__)
#define OP_EVENT(...) OP_LOGI(__VA_ARGS__)
#define CUBE_INNER_ERR_REPORT(...) OP_LOGE(__VA_ARGS__)
#define VECTOR_INNER_ERR_REPORT_TILIING(...) OP_LOGE(__VA_ARGS__)
#define VECTOR_INNER_ERR_REPORT_TILING(...) OP_LOGE(__VA_ARGS__)
#define VECTOR_INFER_SHAPE_INNER_ERR_REPORT(...) OP_LOGE(__VA_ARGS__)
#define OP_CHECK_IF(CONDITION, LOG, ...) \
  do {                                   \
    if (CONDITION) {                     \
      LOG;                               \
      __VA_ARGS__;                       \
    }                                    \
  } while (false)
#define OP_TILING_CHECK(CONDITION, LOG, ...) OP_CHECK_IF(CONDITION, LOG, __VA_ARGS__)
#define OP_LOGE_IF(CONDITION, RESULT, NAME, ...) \
  OP_CHECK_IF(CONDITION, OP_LOGE(NAME, __VA_ARGS__), return RESULT)
#define OP_CHECK_NULL_WITH_CONTEXT(CONTEXT, POINTER)                                        \
  OP_CHECK_IF((POINTER) == nullptr, OP_LOGE((CONTEXT)->GetNodeName(), #POINTER " is null"), \
              return ge::GRAPH_FAILED)
#define OPS_CHECK_NULL_WITH_CONTEXT(CONTEXT, POINTER) OP_CHECK_NULL_WITH_CONTEXT(CONTEXT, POINTER)
#define OPS_CHECK_NULL_WITH_CONTEXT_RET(CONTEXT, POINTER, RESULT)                           \
  OP_CHECK_IF((POINTER) == nullptr, OP_LOGE((CONTEXT)->GetNodeName(), #POINTER " is null"), \
              return RESULT)
#define CUBECORE_FAILED(...) ::cubecore::op_host::Failed(__VA_ARGS__)
#define OP_LOGE_FOR_INVALID_CONFIG_WITH_REASON(...) CUBECORE_FAILED("configuration:", __VA_ARGS__)
#define OP_LOGE_FOR_INVALID_DTYPE(...) CUBECORE_FAILED("type:", __VA_ARGS__)
#define OP_LOGE_FOR_INVALID_DTYPE_WITH_REASON(...) CUBECORE_FAILED("type:", __VA_ARGS__)
#define OP_LOGE_FOR_INVALID_DTYPES_WITH_REASON(...) CUBECORE_FAILED("types:", __VA_ARGS__)
#define OP_LOGE_FOR_INVALID_FORMAT(...) CUBECORE_FAILED("format:", __VA_ARGS__)
#define OP_LOGE_FOR_INVALID_FORMATS_WITH_REASON(...) CUBECORE_FAILED("formats:", __VA_ARGS__)
#define OP_LOGE_FOR_INVALID_LISTSIZE(...) CUBECORE_FAILED("size of a list:", __VA_ARGS__)
#define OP_LOGE_FOR_INVALID_SHAPE(...) CUBECORE_FAILED("shape:", __VA_ARGS__)
#define OP_LOGE_FOR_INVALID_SHAPE_WITH_REASON(...) CUBECORE_FAILED("shape:", __VA_ARGS__)
#define OP_LOGE_FOR_INVALID_SHAPES_WITH_REASON(...) CUBECORE_FAILED("shapes:", __VA_ARGS__)
#define OP_LOGE_FOR_INVALID_SHAPEDIM(...) CUBECORE_FAILED("axes:", __VA_ARGS__)
#define OP_LOGE_FOR_INVALID_SHAPEDIM_WITH_REASON(...) CUBECORE_FAILED("axes:", __VA_ARGS__)
#define OP_LOGE_FOR_INVALID_SHAPEDIMS_WITH_REASON(...) CUBECORE_FAILED("axes:", __VA_ARGS__)
#define OP_LOGE_FOR_INVALID_SHAPESIZE(...) CUBECORE_FAILED("elements:", __VA_ARGS__)
#define OP_LOGE_FOR_INVALID_SHAPESIZE_WITH_REASON(...) CUBECORE_FAILED("elements:", __VA_ARGS__)
#define OP_LOGE_FOR_INVALID_SHAPESIZES_WITH_REASON(...) CUBECORE_FAILED("elements:", __VA_ARGS__)
#define OP_LOGE_FOR_INVALID_TENSORNUM(...) CUBECORE_FAILED("tensors:", __VA_ARGS__)
#define OP_LOGE_FOR_INVALID_TENSORNUMS_WITH_REASON(...) CUBECORE_FAILED("tensors:", __VA_ARGS__)
#define OP_LOGE_FOR_INVALID_VALUE(...) CUBECORE_FAILED("value:", __VA_ARGS__)
#define OP_LOGE_FOR_INVALID_VALUE_WITH_REASON(...) CUBECORE_FAILED("value:", __VA_ARGS__)
#define OP_LOGE_FOR_INVALID_VALUES_WITH_REASON(...) CUBECORE_FAILED("values:", __VA_ARGS__)
#define OP_LOGE_WITH_INVALID_ATTR(...) CUBECORE_FAILED("attribute:", __VA_ARGS__)
#define OP_LOGE_WITH_INVALID_ATTR_SIZE(...) CUBECORE_FAILED("attribute's size:", __VA_ARGS__)
#define OP_LOGE_WITH_INVALID_INPUT(...) CUBECORE_FAILED("input:", __VA_ARGS__)
#define OP_LOGE_WITH_INVALID_INPUT_DTYPE(...) CUBECORE_FAILED("input's type:", __VA_ARGS__)

namespace Ops::Base {

template <typename T, typename U>
constexpr std::common_type_t<T, U> FloorDiv(T value, U divisor) {
  using R = std::common_type_t<T, U>;
  return divisor == 0 ? R(0) : static_cast<R>(value) / static_cast<R>(divisor);
}
template <typename T, typename U>
constexpr std::common_type_t<T, U> CeilDiv(T value, U divisor) {
  using R = std::common_type_t<T, U>;
  if (divisor == 0) return R(0);
  R whole = static_cast<R>(value) / static_cast<R>(divisor);
  return whole + (static_cast<R>(value) % static_cast<R>(divisor) != 0 ? R(1) : R(0));
}
template <typename T, typename U>
constexpr std::common_type_t<T, U> CeilAlign(T value, U unit) {
  return CeilDiv(value, unit) * unit;
}
template <typename T, typename U>
constexpr std::common_type_t<T, U> FloorAlign(T value, U unit) {
  return FloorDiv(value, unit) * unit;
}

// Facts of a context's chip; the sizes are those that the package has.
#define CUBECORE_SIZE_OF_CHIP(NAME, VALUE) \
  template <typename C>                    \
  inline uint32_t NAME(const C*) {         \
    return VALUE;                          \
  }
CUBECORE_SIZE_OF_CHIP(GetUbBlockSize, 32)
CUBECORE_SIZE_OF_CHIP(GetVRegSize, 256)
CUBECORE_SIZE_OF_CHIP(GetCacheLineSize, 256)
CUBECORE_SIZE_OF_CHIP(GetSectorCacheLineSize, 128)
CUBECORE_SIZE_OF_CHIP(GetNddmaDcacheSize, 8192)
CUBECORE_SIZE_OF_CHIP(GetSimtMaxThreadNum, 2048)
CUBECORE_SIZE_OF_CHIP(GetSimtMaxDCacheSize, 131072)
#undef CUBECORE_SIZE_OF_CHIP
template <typename C>
inline platform_ascendc::PlatformAscendC chip_of(C* context) {
  return platform_ascendc::PlatformAscendC(context->GetPlatformInfo());
}
template <typename C>
inline bool IsRegbaseSocVersion(C* context) {
  return chip_of(context).GetCurNpuArch() == platform_ascendc::NpuArch::DAV_3510;
}
template <typename C>
inline uint32_t GetAivCoreNum(C* context) {
  return chip_of(context).GetCoreNumAiv();
}
template <typename C>
inline uint32_t GetAicCoreNum(C* context) {
  return chip_of(context).GetCoreNumAic();
}
template <typename C>
inline uint32_t GetUbSize(C* context) {
  uint64_t bytes = 0;
  chip_of(context).GetCoreMemSize(platform_ascendc::CoreMemType::UB, bytes);
  return static_cast<uint32_t>(bytes);
}
template <typename C>
inline uint32_t GetWorkspaceSize(C* context) {
  return chip_of(context).GetLibApiWorkSpaceSize();
}

// An unknown rank is one axis of -2, an unknown extent -1.
inline bool IsUnknownRank(const gert::Shape& shape) {
  return shape.GetDimNum() == 1 && shape.GetDim(0) == -2;
}
inline void SetUnknownRank(gert::Shape& shape) { shape = {-2}; }
inline bool IsUnknownShape(const gert::Shape& shape) {
  for (size_t n = 0; n < shape.GetDimNum(); ++n)
    if (shape.GetDim(n) == -1) return true;
  return false;
}
inline void SetUnknownShape(int64_t rank, gert::Shape& shape) {
  shape = {};
  for (int64_t n = 0; n < rank; ++n) shape.AppendDim(-1);
}
// A template, as headers of the package define functions of the same name beside it.
template <typename S>
inline const S& EnsureNotScalar(const S& shape) {
  static const S one = {1};
  return shape.IsScalar() ? one : shape;
}

inline std::string ToString(const gert::Shape& shape) {
  std::string text = "[";
  for (size_t n = 0; n < shape.GetDimNum(); ++n)
    text += (n == 0 ? "" : ", ") + std::to_string(shape.GetDim(n));
  return text + "]";
}
inline std::string ToString(const gert::StorageShape* shape) {
  return shape == nullptr ? "null" : ToString(shape->GetStorageShape());
}
inline std::string ToString(ge::DataType type) {
  return ge::TypeUtils::DataTypeToSerialString(type);
}
inline std::string ToString(ge::Format format) {
  return ge::TypeUtils::FormatToSerialString(format);
}
template <typename T>
inline std::string ToString(const std::vector<T>& values) {
  std::ostringstream text;
  text << '[';
  for (size_t n = 0; n < values.size(); ++n) text << (n == 0 ? "" : ", ") << values[n];
  text << ']';
  return text.str();
}

// NumPy's rule; false where two extents differ and neither is 1.
inline bool BroadcastShape(const gert::Shape* first, const gert::Shape* second, gert::Shape* out) {
  size_t a = first->GetDimNum(), b = second->GetDimNum(), rank = a > b ? a : b;
  gert::Shape made;
  for (size_t n = 0; n < rank; ++n) {
    int64_t own = n + a < rank ? 1 : first->GetDim(n + a - rank);
    int64_t other = n + b < rank ? 1 : second->GetDim(n + b - rank);
    if (own != other && own != 1 && other != 1) return false;
    made.AppendDim(own == 1 ? other : own);
  }
  *out = made;
  return true;
}

inline ge::graphStatus InferShape4Elewise(gert::InferShapeContext* context) {
  const gert::Shape* in = context->GetInputShape(0);
  gert::Shape* out = context->GetOutputShape(0);
  OP_CHECK_NULL_WITH_CONTEXT(context, in);
  OP_CHECK_NULL_WITH_CONTEXT(context, out);
  *out = *in;
  return ge::GRAPH_SUCCESS;
}
// Of so many inputs, or of all.
inline ge::graphStatus InferShape4Broadcast(gert::InferShapeContext* context, size_t count) {
  gert::Shape* out = context->GetOutputShape(0);
  gert::Shape made;
  OP_CHECK_NULL_WITH_CONTEXT(context, out);
  for (size_t n = 0; n < count && context->GetInputShape(n) != nullptr; ++n)
    if (!BroadcastShape(&made, context->GetInputShape(n), &made)) return ge::GRAPH_FAILED;
  *out = made;
  return ge::GRAPH_SUCCESS;
}
inline ge::graphStatus InferShape4Broadcast(gert::InferShapeContext* context) {
  return InferShape4Broadcast(context, SIZE_MAX);
}
inline bool IsFloatEqual(float a, float b) { return std::fabs(a - b) <= 1.1920929e-07f; }

// The values of an input that the op_host depends on.
template <typename T, typename C>
inline bool GetConstInt(C* context, size_t index, T& value) {
  const gert::Tensor* tensor = context->GetInputTensor(index);
  if (tensor == nullptr || tensor->GetAddr() == nullptr || tensor->GetShapeSize() < 1) return false;
  value = static_cast<T>(tensor->GetDataType() == ge::DT_INT64 ? *tensor->GetData<int64_t>()
                                                               : *tensor->GetData<int32_t>());
  return true;
}
template <typename T>
inline void GetValueToShape(const gert::Tensor* tensor, gert::Shape& shape) {
  shape = {};
  for (int64_t n = 0; n < tensor->GetShapeSize(); ++n)
    shape.AppendDim(static_cast<int64_t>(tensor->GetData<T>()[n]));
}
template <typename C>
inline bool GetConstIntToShape(C* context, size_t index, gert::Shape& shape) {
  const gert::Tensor* tensor = context->GetInputTensor(index);
  if (tensor == nullptr || tensor->GetAddr() == nullptr) return false;
  if (tensor->GetDataType() == ge::DT_INT64)
    GetValueToShape<int64_t>(tensor, shape);
  else
    GetValueToShape<int32_t>(tensor, shape);
  return true;
}

}  // namespace Ops::Base
