// Values of bindings that need no torch: element types, lists, numbers, options of tensors.
// Page: PyTorch's C++ API, namespaces at, c10 and torch.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <iostream>
#include <limits>
#include <map>
#include <memory>
#include <numeric>
#include <optional>
#include <sstream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <unordered_map>
#include <utility>
#include <vector>

namespace cubecore::glue {

// The expression that makes values without a name: they end with it. A constructor has it as its
// last argument, so that it ends as they do.
class Expression {
 public:
  Expression() : ended_(std::make_shared<bool>(false)) {}
  Expression(const Expression&) = delete;
  ~Expression() { *ended_ = true; }
  const std::shared_ptr<bool>& ended() const { return ended_; }

 private:
  std::shared_ptr<bool> ended_;
};

}  // namespace cubecore::glue

namespace c10 {

enum class ScalarType : int8_t {
  Byte, Char, Short, Int, Long, Half, Float, Double, ComplexHalf, ComplexFloat, ComplexDouble,
  Bool, QInt8, QUInt8, QInt32, BFloat16, Undefined
};
enum class DeviceType : int8_t { CPU, CUDA, PrivateUse1, NPU = PrivateUse1 };
enum class Layout : int8_t { Strided };
enum class MemoryFormat : int8_t { Contiguous, Preserve, ChannelsLast, ChannelsLast3d };
using DeviceIndex = int8_t;
constexpr Layout kStrided = Layout::Strided;
constexpr DeviceType kCPU = DeviceType::CPU, kPrivateUse1 = DeviceType::PrivateUse1;
constexpr DeviceType kCUDA = DeviceType::CUDA;

constexpr ScalarType kByte = ScalarType::Byte, kUInt8 = ScalarType::Byte;
constexpr ScalarType kChar = ScalarType::Char, kInt8 = ScalarType::Char;
constexpr ScalarType kShort = ScalarType::Short, kInt16 = ScalarType::Short;
constexpr ScalarType kInt = ScalarType::Int, kInt32 = ScalarType::Int, kUInt = ScalarType::Int;
constexpr ScalarType kLong = ScalarType::Long, kInt64 = ScalarType::Long;
constexpr ScalarType kHalf = ScalarType::Half, kFloat16 = ScalarType::Half;
constexpr ScalarType kFloat = ScalarType::Float, kFloat32 = ScalarType::Float;
constexpr ScalarType kDouble = ScalarType::Double, kFloat64 = ScalarType::Double;
constexpr ScalarType kBool = ScalarType::Bool;
constexpr ScalarType kBFloat16 = ScalarType::BFloat16, kBFloat = ScalarType::BFloat16;
constexpr ScalarType kComplexFloat = ScalarType::ComplexFloat;

inline int64_t elementSize(ScalarType type) {
  constexpr int64_t sizes[] = {1, 1, 2, 4, 8, 2, 4, 8, 4, 8, 16, 1, 1, 1, 4, 2, 0};
  return sizes[static_cast<int>(type)];
}
inline const char* toString(ScalarType type) {
  constexpr const char* names[] = {"Byte",        "Char",         "Short",         "Int",
                                   "Long",        "Half",         "Float",         "Double",
                                   "ComplexHalf", "ComplexFloat", "ComplexDouble", "Bool",
                                   "QInt8",       "QUInt8",       "QInt32",        "BFloat16",
                                   "Undefined"};
  return names[static_cast<int>(type)];
}
inline bool isFloatingType(ScalarType type) {
  return type == kHalf || type == kFloat || type == kDouble || type == kBFloat16;
}
inline bool isIntegralType(ScalarType type, bool with_bool = false) {
  return static_cast<int>(type) <= static_cast<int>(kLong) || (with_bool && type == kBool);
}
inline std::ostream& operator<<(std::ostream& out, ScalarType type) {
  return out << toString(type);
}

// What a binding cannot go on with; the caller is told its text.
struct Error : std::runtime_error {
  using std::runtime_error::runtime_error;
};

template <typename... A>
std::string str(const A&... parts) {
  std::ostringstream out;
  (out << ... << parts);
  return out.str();
}

template <typename T>
using optional = std::optional<T>;
using std::nullopt;
using nullopt_t = std::nullopt_t;

// Elements that something else owns. PyTorch's reads whatever has come in the place of those that
// have ended; this one refuses them.
template <typename T>
class ArrayRef {
 public:
  ArrayRef() = default;
  ArrayRef(const T& one) : data_(&one), size_(1) {}
  ArrayRef(const T* data, size_t size) : data_(data), size_(size) {}
  ArrayRef(const T* begin, const T* end) : data_(begin), size_(end - begin) {}
  template <typename A>
  ArrayRef(const std::vector<T, A>& values) : data_(values.data()), size_(values.size()) {}
  template <size_t N>
  ArrayRef(const std::array<T, N>& values) : data_(values.data()), size_(N) {}
  template <size_t N>
  ArrayRef(const T (&values)[N]) : data_(values), size_(N) {}
  ArrayRef(const std::initializer_list<T>& values, const cubecore::glue::Expression& maker = {})
      : data_(values.begin()), size_(values.size()), ended_(maker.ended()) {}
  template <typename A>
  ArrayRef(std::vector<T, A>&& values, const cubecore::glue::Expression& maker = {})
      : data_(values.data()), size_(values.size()), ended_(maker.ended()) {}

  const T* begin() const { return data(); }
  const T* end() const { return data() + size_; }
  const T* data() const {
    if (ended_ && *ended_)
      throw Error("an ArrayRef is used after the expression that made its values, where these are "
                  "gone; keep them in a std::vector");
    return data_;
  }
  size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  const T& operator[](size_t at) const { return data()[at]; }
  const T& at(size_t at) const {
    if (at >= size_) throw Error(str("index ", at, " of a list of ", size_));
    return data()[at];
  }
  const T& front() const { return at(0); }
  const T& back() const { return at(size_ - 1); }
  std::vector<T> vec() const { return std::vector<T>(begin(), end()); }
  ArrayRef slice(size_t from) const { return slice(from, size_ - from); }
  ArrayRef slice(size_t from, size_t count) const {
    ArrayRef part = *this;
    part.data_ = data() + from, part.size_ = count;
    return part;
  }
  bool equals(ArrayRef other) const {
    return size_ == other.size_ && std::equal(begin(), end(), other.begin());
  }
  operator std::vector<T>() const { return vec(); }

 private:
  const T* data_ = nullptr;
  size_t size_ = 0;
  std::shared_ptr<const bool> ended_;
};
template <typename T>
bool operator==(ArrayRef<T> one, ArrayRef<T> other) {
  return one.equals(other);
}
template <typename T>
bool operator!=(ArrayRef<T> one, ArrayRef<T> other) {
  return !one.equals(other);
}
template <typename T>
std::ostream& operator<<(std::ostream& out, ArrayRef<T> values) {
  out << '[';
  for (size_t n = 0; n < values.size(); ++n) out << (n ? ", " : "") << values[n];
  return out << ']';
}
using IntArrayRef = ArrayRef<int64_t>;
using OptionalIntArrayRef = std::optional<IntArrayRef>;
using string_view = std::string_view;
template <typename T, unsigned N = 8>
using SmallVector = std::vector<T>;
using SymInt = int64_t;

class Scalar {
 public:
  Scalar() = default;
  template <typename T, std::enable_if_t<std::is_arithmetic_v<T>, int> = 0>
  Scalar(T value) {
    if constexpr (std::is_same_v<T, bool>)
      kind_ = 'b', whole_ = value;
    else if constexpr (std::is_integral_v<T>)
      kind_ = 'i', whole_ = static_cast<int64_t>(value);
    else
      kind_ = 'f', real_ = value;
  }
  bool isBoolean() const { return kind_ == 'b'; }
  bool isIntegral(bool with_bool = false) const {
    return kind_ == 'i' || (with_bool && kind_ == 'b');
  }
  bool isFloatingPoint() const { return kind_ == 'f'; }
  ScalarType type() const { return isBoolean() ? kBool : isFloatingPoint() ? kDouble : kLong; }
  template <typename T>
  T to() const {
    return isFloatingPoint() ? static_cast<T>(real_) : static_cast<T>(whole_);
  }
  double toDouble() const { return to<double>(); }
  float toFloat() const { return to<float>(); }
  int64_t toLong() const { return to<int64_t>(); }
  int toInt() const { return to<int>(); }
  bool toBool() const { return to<bool>(); }

 private:
  char kind_ = 'i';
  int64_t whole_ = 0;
  double real_ = 0;
};

struct Device {
  Device(DeviceType type = kPrivateUse1, DeviceIndex index = 0) : type_(type), index_(index) {}
  Device(const std::string& text) : Device(text.substr(0, 3) == "cpu" ? kCPU : kPrivateUse1) {}
  DeviceType type() const { return type_; }
  DeviceIndex index() const { return index_; }
  bool has_index() const { return true; }
  bool is_cpu() const { return type_ == kCPU; }
  bool is_cuda() const { return false; }
  bool is_privateuseone() const { return type_ == kPrivateUse1; }
  std::string str() const { return type_ == kCPU ? "cpu" : "npu:0"; }
  bool operator==(const Device& other) const { return type_ == other.type_; }
  bool operator!=(const Device& other) const { return type_ != other.type_; }

 private:
  DeviceType type_;
  DeviceIndex index_;
};
inline std::ostream& operator<<(std::ostream& out, const Device& device) {
  return out << device.str();
}

// An element type, which compares with its number.
struct TypeMeta {
  TypeMeta(ScalarType type = kFloat) : type_(type) {}
  operator ScalarType() const { return type_; }
  ScalarType toScalarType() const { return type_; }
  size_t itemsize() const { return elementSize(type_); }
  std::string name() const { return toString(type_); }

 private:
  ScalarType type_;
};
inline bool operator==(TypeMeta one, TypeMeta other) {
  return one.toScalarType() == other.toScalarType();
}
inline bool operator!=(TypeMeta one, TypeMeta other) { return !(one == other); }
inline bool operator==(TypeMeta one, ScalarType other) { return one.toScalarType() == other; }
inline bool operator!=(TypeMeta one, ScalarType other) { return one.toScalarType() != other; }
inline ScalarType typeMetaToScalarType(TypeMeta type) { return type.toScalarType(); }

class TensorOptions {
 public:
  TensorOptions() = default;
  TensorOptions(ScalarType type) : type_(type) {}
  TensorOptions(TypeMeta type) : type_(type.toScalarType()) {}
  TensorOptions(Device device) : device_(device) {}
  TensorOptions(DeviceType device) : device_(device) {}
  TensorOptions(MemoryFormat) {}
  TensorOptions dtype(ScalarType type) const { return With(type, device_); }
  TensorOptions dtype(TypeMeta type) const { return With(type.toScalarType(), device_); }
  TensorOptions dtype(std::optional<ScalarType> type) const {
    return With(type.value_or(type_), device_);
  }
  TensorOptions device(Device device) const { return With(type_, device); }
  TensorOptions device(DeviceType device, DeviceIndex = 0) const { return With(type_, device); }
  TensorOptions device(std::optional<Device> device) const {
    return With(type_, device.value_or(device_));
  }
  TensorOptions layout(Layout) const { return *this; }
  TensorOptions requires_grad(bool) const { return *this; }
  TensorOptions pinned_memory(bool) const { return *this; }
  TensorOptions memory_format(MemoryFormat) const { return *this; }
  TypeMeta dtype() const { return type_; }
  Device device() const { return device_; }

 private:
  static TensorOptions With(ScalarType type, Device device) {
    TensorOptions made(type);
    made.device_ = device;
    return made;
  }
  ScalarType type_ = kFloat;
  Device device_;
};

// Guards of a device: there is one.
struct DeviceGuard {
  explicit DeviceGuard(Device) {}
};
struct OptionalDeviceGuard {
  OptionalDeviceGuard() = default;
  template <typename T>
  explicit OptionalDeviceGuard(const T&) {}
};

}  // namespace c10
