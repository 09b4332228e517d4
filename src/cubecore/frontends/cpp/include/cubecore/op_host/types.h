// Types of host code: element types, formats, states, texts. Pages (basic data types and
// interfaces, namespace ge): DataType, Format, GetSizeByDataType, GetPrimaryFormat, AscendString,
// TypeUtils, graphStatus.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "cubecore/host/workspaces.h"

namespace ge {

using char_t = char;
using graphStatus = uint32_t;
constexpr graphStatus GRAPH_FAILED = 0xFFFFFFFF, GRAPH_SUCCESS = 0, GRAPH_NOT_CHANGED = 1343242304,
                      GRAPH_PARAM_INVALID = 50331649, GRAPH_NODE_WITHOUT_CONST_INPUT = 50331648;
constexpr graphStatus SUCCESS = 0, FAILED = 0xFFFFFFFF;
constexpr int64_t UNKNOWN_DIM = -1, UNKNOWN_DIM_NUM = -2;
constexpr int64_t kDataTypeSizeBitOffset = 1000;

enum DataType {
  DT_FLOAT = 0,
  DT_FLOAT16 = 1,
  DT_INT8 = 2,
  DT_INT32 = 3,
  DT_UINT8 = 4,
  DT_INT16 = 6,
  DT_UINT16 = 7,
  DT_UINT32 = 8,
  DT_INT64 = 9,
  DT_UINT64 = 10,
  DT_DOUBLE = 11,
  DT_BOOL = 12,
  DT_STRING = 13,
  DT_DUAL_SUB_INT8 = 14,
  DT_DUAL_SUB_UINT8 = 15,
  DT_COMPLEX64 = 16,
  DT_COMPLEX128 = 17,
  DT_QINT8 = 18,
  DT_QINT16 = 19,
  DT_QINT32 = 20,
  DT_QUINT8 = 21,
  DT_QUINT16 = 22,
  DT_RESOURCE = 23,
  DT_STRING_REF = 24,
  DT_DUAL = 25,
  DT_VARIANT = 26,
  DT_BF16 = 27,
  DT_BFLOAT16 = DT_BF16,
  DT_UNDEFINED = 28,
  DT_INT4 = 29,
  DT_UINT1 = 30,
  DT_INT2 = 31,
  DT_UINT2 = 32,
  DT_COMPLEX32 = 33,
  DT_HIFLOAT8 = 34,
  DT_FLOAT8_E5M2 = 35,
  DT_FLOAT8_E4M3FN = 36,
  DT_FLOAT8_E8M0 = 37,
  DT_FLOAT6_E3M2 = 38,
  DT_FLOAT6_E2M3 = 39,
  DT_FLOAT4_E2M1 = 40,
  DT_FLOAT4_E1M2 = 41,
  DT_MAX
};

enum Format {
  FORMAT_NCHW = 0,
  FORMAT_NHWC = 1,
  FORMAT_ND = 2,
  FORMAT_NC1HWC0 = 3,
  FORMAT_FRACTAL_Z = 4,
  FORMAT_NC1C0HWPAD = 5,
  FORMAT_NHWC1C0 = 6,
  FORMAT_FSR_NCHW = 7,
  FORMAT_FRACTAL_DECONV = 8,
  FORMAT_C1HWNC0 = 9,
  FORMAT_NC1HWC0_C04 = 12,
  FORMAT_FRACTAL_Z_C04 = 13,
  FORMAT_CHWN = 14,
  FORMAT_HWCN = 16,
  FORMAT_NC1KHKWHWC0 = 17,
  FORMAT_C1HWNCoC0 = 25,
  FORMAT_MD = 26,
  FORMAT_NDHWC = 27,
  FORMAT_FRACTAL_ZZ = 28,
  FORMAT_FRACTAL_NZ = 29,
  FORMAT_NCDHW = 30,
  FORMAT_DHWCN = 31,
  FORMAT_NDC1HWC0 = 32,
  FORMAT_FRACTAL_Z_3D = 33,
  FORMAT_CN = 34,
  FORMAT_NC = 35,
  FORMAT_DHWNC = 36,
  FORMAT_FRACTAL_Z_3D_TRANSPOSE = 37,
  FORMAT_FRACTAL_ZN_LSTM = 38,
  FORMAT_FRACTAL_Z_G = 39,
  FORMAT_RESERVED = 40,
  FORMAT_ALL = 41,
  FORMAT_NULL = 42,
  FORMAT_ND_RNN_BIAS = 43,
  FORMAT_FRACTAL_ZN_RNN = 44,
  FORMAT_NYUV = 45,
  FORMAT_NYUV_A = 46,
  FORMAT_NCL = 47,
  FORMAT_FRACTAL_NZ_C0_16 = 50,
  FORMAT_FRACTAL_NZ_C0_32 = 51,
  FORMAT_MAX = 0xFF
};

// Bits of an element; 0 for types of other things.
inline int BitsOf(DataType type) {
  switch (type) {
    case DT_UINT1:
      return 1;
    case DT_INT2:
    case DT_UINT2:
      return 2;
    case DT_INT4:
    case DT_FLOAT4_E2M1:
    case DT_FLOAT4_E1M2:
      return 4;
    case DT_FLOAT6_E3M2:
    case DT_FLOAT6_E2M3:
      return 6;
    case DT_INT8:
    case DT_UINT8:
    case DT_BOOL:
    case DT_QINT8:
    case DT_QUINT8:
    case DT_HIFLOAT8:
    case DT_FLOAT8_E5M2:
    case DT_FLOAT8_E4M3FN:
    case DT_FLOAT8_E8M0:
      return 8;
    case DT_FLOAT16:
    case DT_BF16:
    case DT_INT16:
    case DT_UINT16:
    case DT_QINT16:
    case DT_QUINT16:
      return 16;
    case DT_FLOAT:
    case DT_INT32:
    case DT_UINT32:
    case DT_QINT32:
    case DT_COMPLEX32:
      return 32;
    case DT_INT64:
    case DT_UINT64:
    case DT_DOUBLE:
    case DT_COMPLEX64:
    case DT_RESOURCE:
      return 64;
    case DT_COMPLEX128:
      return 128;
    default:
      return 0;
  }
}

// Bytes of an element; of a type below 8 bits its bits added to 1000; -1 for types of other things.
inline int GetSizeByDataType(DataType type) {
  int bits = BitsOf(type);
  if (bits == 0) return -1;
  return bits < 8 ? static_cast<int>(kDataTypeSizeBitOffset) + bits : bits / 8;
}
inline int64_t GetSizeInBytes(int64_t count, DataType type) {
  int bits = BitsOf(type);
  return bits == 0 || count < 0 ? -1 : (count * bits + 7) / 8;
}
inline int32_t GetPrimaryFormat(int32_t format) { return format & 0xFF; }
inline int32_t GetSubFormat(int32_t format) { return (format & 0xFFFF00) >> 8; }

class AscendString {
 public:
  AscendString() = default;
  AscendString(const char* text) : text_(text == nullptr ? "" : text) {}
  AscendString(const std::string& text) : text_(text) {}
  const char* GetString() const { return text_.c_str(); }
  size_t GetLength() const { return text_.size(); }
  bool operator<(const AscendString& other) const { return text_ < other.text_; }
  bool operator==(const AscendString& other) const { return text_ == other.text_; }
  bool operator!=(const AscendString& other) const { return text_ != other.text_; }

 private:
  std::string text_;
};

inline const char* NameOf(DataType type) {
  static constexpr struct {
    DataType type;
    const char* name;
  } names[] = {
      {DT_FLOAT, "DT_FLOAT"},   {DT_FLOAT16, "DT_FLOAT16"},  {DT_INT8, "DT_INT8"},
      {DT_INT32, "DT_INT32"},   {DT_UINT8, "DT_UINT8"},      {DT_INT16, "DT_INT16"},
      {DT_UINT16, "DT_UINT16"}, {DT_UINT32, "DT_UINT32"},    {DT_INT64, "DT_INT64"},
      {DT_UINT64, "DT_UINT64"}, {DT_DOUBLE, "DT_DOUBLE"},    {DT_BOOL, "DT_BOOL"},
      {DT_BF16, "DT_BF16"},     {DT_INT4, "DT_INT4"},        {DT_COMPLEX64, "DT_COMPLEX64"},
      {DT_STRING, "DT_STRING"}, {DT_UINT1, "DT_UINT1"},      {DT_COMPLEX32, "DT_COMPLEX32"},
      {DT_QINT8, "DT_QINT8"},   {DT_HIFLOAT8, "DT_HIFLOAT8"},
      {DT_FLOAT8_E5M2, "DT_FLOAT8_E5M2"}, {DT_FLOAT8_E4M3FN, "DT_FLOAT8_E4M3FN"},
      {DT_FLOAT8_E8M0, "DT_FLOAT8_E8M0"}, {DT_FLOAT4_E2M1, "DT_FLOAT4_E2M1"},
      {DT_FLOAT4_E1M2, "DT_FLOAT4_E1M2"}};
  for (const auto& each : names)
    if (each.type == type) return each.name;
  return "DT_UNDEFINED";
}

// An operator of a graph, which checks of support ask: none has one here, so that its functions
// refuse where they are called.
class TensorDesc {
 public:
  Shape GetShape() const;
  Shape GetOriginShape() const;
  Format GetFormat() const;
  Format GetOriginFormat() const;
  DataType GetDataType() const;
};
class Operator {
 public:
  AscendString GetName() const;
  TensorDesc GetInputDesc(uint32_t index) const;
  TensorDesc GetInputDescByName(const char* name) const;
  TensorDesc GetOutputDesc(uint32_t index) const;
  TensorDesc GetOutputDescByName(const char* name) const;
  template <typename Value>
  graphStatus GetAttr(const char* name, Value& value) const;
};

class TypeUtils {
 public:
  static bool GetDataTypeLength(DataType type, uint32_t& length) {
    int bits = BitsOf(type);
    if (bits < 8) return false;
    length = static_cast<uint32_t>(bits / 8);
    return true;
  }
  static std::string DataTypeToSerialString(DataType type) { return NameOf(type); }
  static AscendString DataTypeToAscendString(DataType type) { return AscendString(NameOf(type)); }
  static std::string FormatToSerialString(Format format) {
    static constexpr struct {
      Format format;
      const char* name;
    } names[] = {
        {FORMAT_ND, "ND"}, {FORMAT_NCHW, "NCHW"}, {FORMAT_NHWC, "NHWC"},
        {FORMAT_NC1HWC0, "NC1HWC0"}, {FORMAT_NDHWC, "NDHWC"}, {FORMAT_NCDHW, "NCDHW"},
        {FORMAT_HWCN, "HWCN"}, {FORMAT_NCL, "NCL"}, {FORMAT_FRACTAL_Z, "FRACTAL_Z"},
        {FORMAT_CHWN, "CHWN"}, {FORMAT_DHWCN, "DHWCN"}, {FORMAT_NC, "NC"},
        {FORMAT_FRACTAL_NZ, "FRACTAL_NZ"}};
    for (const auto& each : names)
      if (each.format == GetPrimaryFormat(format)) return each.name;
    return "RESERVED";
  }
  static AscendString FormatToAscendString(Format format) {
    return AscendString(FormatToSerialString(format));
  }
};

}  // namespace ge
