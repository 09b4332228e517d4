// A tensor of bindings that need no torch: memory of the device, with a type, sizes and strides.
// Page: PyTorch's C++ API, at::Tensor. Nothing is computed with it but copies and conversions.
#pragma once

#include <memory>

#include "acl/acl.h"
#include "cubecore/torch/values.h"

namespace at {

using namespace c10;

// The elements of a tensor by their indices, as the host reads and writes them.
template <typename T, size_t N>
class TensorAccessor {
 public:
  TensorAccessor(T* data, const int64_t* sizes, const int64_t* strides)
      : data_(data), sizes_(sizes), strides_(strides) {}
  int64_t size(int64_t axis) const { return sizes_[axis]; }
  int64_t stride(int64_t axis) const { return strides_[axis]; }
  T* data() const { return data_; }
  decltype(auto) operator[](int64_t index) const {
    T* at = data_ + index * strides_[0];
    if constexpr (N == 1)
      return static_cast<T&>(*at);
    else
      return TensorAccessor<T, N - 1>(at, sizes_ + 1, strides_ + 1);
  }

 private:
  T* data_;
  const int64_t *sizes_, *strides_;
};

// An integer that the host reads from a tensor, as for a size of a result: no tensor itself, so that
// no result is made of it.
class HostInteger {
 public:
  explicit HostInteger(int64_t value) : value_(value) {}
  Scalar item() const { return Scalar(value_); }
  template <typename T>
  T item() const {
    return static_cast<T>(value_);
  }

 private:
  int64_t value_;
};

class Tensor {
 public:
  struct Storage {
    uint8_t* data = nullptr;
    size_t bytes = 0;
    ~Storage() {
      if (owned && data != nullptr) aclrtFree(data);
    }
    bool owned = false;
  };

  Tensor() = default;
  Tensor(std::shared_ptr<Storage> storage, std::vector<int64_t> sizes, ScalarType type)
      : storage_(std::move(storage)), sizes_(std::move(sizes)), type_(type) {
    strides_ = Rows(sizes_);
  }
  // A new tensor, whose memory nobody has written.
  static Tensor Make(std::vector<int64_t> sizes, ScalarType type) {
    auto storage = std::make_shared<Storage>();
    int64_t count = 1;
    for (int64_t size : sizes) {
      if (size < 0) throw Error(c10::str("a tensor of the size ", size));
      count *= size;
    }
    storage->bytes = static_cast<size_t>(count * elementSize(type));
    storage->owned = true;
    if (storage->bytes != 0 &&
        aclrtMalloc(reinterpret_cast<void**>(&storage->data), storage->bytes, 0) != ACL_SUCCESS)
      throw Error(c10::str("no memory of the device for ", storage->bytes, " B"));
    return Tensor(std::move(storage), std::move(sizes), type);
  }

  bool defined() const { return storage_ != nullptr; }
  int64_t dim() const { return static_cast<int64_t>(sizes_.size()); }
  int64_t ndimension() const { return dim(); }
  IntArrayRef sizes() const { return sizes_; }
  IntArrayRef sym_sizes() const { return sizes_; }
  IntArrayRef strides() const { return strides_; }
  int64_t size(int64_t axis) const { return sizes_.at(Axis(axis)); }
  int64_t stride(int64_t axis) const { return strides_.at(Axis(axis)); }
  int64_t numel() const {
    int64_t count = 1;
    for (int64_t size : sizes_) count *= size;
    return count;
  }
  int64_t storage_offset() const { return offset_; }
  ScalarType scalar_type() const { return type_; }
  TypeMeta dtype() const { return type_; }
  int64_t element_size() const { return elementSize(type_); }
  int64_t itemsize() const { return element_size(); }
  size_t nbytes() const { return static_cast<size_t>(numel() * element_size()); }
  Device device() const { return device_; }
  int64_t get_device() const { return 0; }
  Layout layout() const { return kStrided; }
  TensorOptions options() const { return TensorOptions(type_).device(device_); }
  bool is_cpu() const { return device_.is_cpu(); }
  bool is_cuda() const { return false; }
  bool is_npu() const { return device_.is_privateuseone(); }
  bool is_privateuseone() const { return device_.is_privateuseone(); }
  bool is_floating_point() const { return isFloatingType(type_); }
  bool is_complex() const { return type_ == kComplexFloat; }
  bool requires_grad() const { return false; }
  bool has_storage() const { return defined(); }
  bool is_contiguous(MemoryFormat = MemoryFormat::Contiguous) const {
    return numel() < 2 || strides_ == Rows(sizes_);
  }
  bool is_same(const Tensor& other) const { return data_ptr() == other.data_ptr(); }

  void* data_ptr() const {
    return defined() ? storage_->data + offset_ * element_size() : nullptr;
  }
  template <typename T>
  T* data_ptr() const {
    return static_cast<T*>(data_ptr());
  }
  template <typename T, size_t N>
  TensorAccessor<T, N> accessor() const {
    if (dim() != static_cast<int64_t>(N))
      throw Error(c10::str("accessor of ", N, " dimensions of a tensor of ", dim()));
    return TensorAccessor<T, N>(data_ptr<T>(), sizes_.data(), strides_.data());
  }
  const void* const_data_ptr() const { return data_ptr(); }
  void* mutable_data_ptr() const { return data_ptr(); }
  template <typename T>
  T* data() const {
    return data_ptr<T>();
  }

  // Views.
  Tensor as_strided(IntArrayRef sizes, IntArrayRef strides, int64_t offset = 0) const {
    Tensor made = *this;
    made.sizes_ = sizes.vec(), made.strides_ = strides.vec(), made.offset_ = offset;
    return made;
  }
  Tensor view(IntArrayRef sizes) const { return contiguous().Shaped(sizes); }
  Tensor reshape(IntArrayRef sizes) const { return contiguous().Shaped(sizes); }
  Tensor view_as(const Tensor& other) const { return view(other.sizes_); }
  Tensor flatten(int64_t from = 0, int64_t to = -1) const {
    size_t first = Axis(from), last = Axis(to);
    std::vector<int64_t> sizes(sizes_.begin(), sizes_.begin() + first);
    int64_t joined = 1;
    for (size_t axis = first; axis <= last; ++axis) joined *= sizes_[axis];
    sizes.push_back(joined);
    sizes.insert(sizes.end(), sizes_.begin() + last + 1, sizes_.end());
    return view(sizes);
  }
  Tensor transpose(int64_t one, int64_t other) const {
    Tensor made = *this;
    std::swap(made.sizes_.at(Axis(one)), made.sizes_.at(Axis(other)));
    std::swap(made.strides_.at(Axis(one)), made.strides_.at(Axis(other)));
    return made;
  }
  Tensor t() const { return dim() < 2 ? *this : transpose(0, 1); }
  Tensor permute(IntArrayRef axes) const {
    Tensor made = *this;
    for (size_t n = 0; n < axes.size(); ++n) {
      made.sizes_[n] = sizes_.at(Axis(axes[n]));
      made.strides_[n] = strides_.at(Axis(axes[n]));
    }
    return made;
  }
  Tensor unsqueeze(int64_t axis) const {
    Tensor made = *this;
    size_t at = axis < 0 ? axis + sizes_.size() + 1 : axis;
    made.sizes_.insert(made.sizes_.begin() + at, 1);
    made.strides_.insert(made.strides_.begin() + at, 1);
    return made;
  }
  Tensor squeeze(int64_t axis) const {
    Tensor made = *this;
    if (size(axis) != 1) return made;
    made.sizes_.erase(made.sizes_.begin() + Axis(axis));
    made.strides_.erase(made.strides_.begin() + Axis(axis));
    return made;
  }
  Tensor squeeze() const {
    Tensor made = *this;
    for (int64_t axis = dim() - 1; axis >= 0; --axis) made = made.squeeze(axis);
    return made;
  }
  Tensor narrow(int64_t axis, int64_t from, int64_t count) const {
    Tensor made = *this;
    made.offset_ += from * stride(axis);
    made.sizes_.at(Axis(axis)) = count;
    return made;
  }
  Tensor slice(int64_t axis, int64_t from, int64_t to, int64_t step = 1) const {
    if (to > size(axis)) to = size(axis);
    Tensor made = narrow(axis, from, (to - from + step - 1) / step);
    made.strides_.at(Axis(axis)) *= step;
    return made;
  }
  Tensor select(int64_t axis, int64_t at) const {
    if (at < 0) at += size(axis);
    Tensor made = narrow(axis, at, 1);
    made.sizes_.erase(made.sizes_.begin() + Axis(axis));
    made.strides_.erase(made.strides_.begin() + Axis(axis));
    return made;
  }
  Tensor operator[](int64_t at) const { return select(0, at); }
  Tensor expand(IntArrayRef sizes) const {
    Tensor made = *this;
    size_t more = sizes.size() - sizes_.size();
    made.sizes_ = sizes.vec();
    made.strides_.assign(sizes.size(), 0);
    for (size_t n = 0; n < sizes_.size(); ++n) {
      if (sizes[n + more] == -1) made.sizes_[n + more] = sizes_[n];
      if (sizes_[n] != 1) made.strides_[n + more] = strides_[n];
    }
    return made;
  }
  Tensor expand_as(const Tensor& other) const { return expand(other.sizes_); }

  // Copies.
  Tensor contiguous(MemoryFormat = MemoryFormat::Contiguous) const {
    return is_contiguous() ? *this : clone();
  }
  Tensor clone(std::optional<MemoryFormat> = {}) const {
    Tensor made = Make(sizes_, type_);
    return made.copy_(*this);
  }
  Tensor to(ScalarType type, bool = false, bool = false) const {
    if (type == type_) return *this;
    Tensor made = Make(sizes_, type);
    return made.copy_(*this);
  }
  Tensor to(TypeMeta type) const { return to(type.toScalarType()); }
  Tensor to(const TensorOptions& options, bool = false, bool = false) const {
    return to(options.dtype().toScalarType()).On(options.device());
  }
  Tensor to(Device device, bool = false) const { return On(device); }
  Tensor to(DeviceType device) const { return On(Device(device)); }
  Tensor to(Device device, ScalarType type) const { return to(type).On(device); }
  Tensor cpu() const { return On(Device(kCPU)); }
  Tensor npu() const { return On(Device()); }
  Tensor detach() const { return *this; }
  Tensor alias() const { return *this; }
  Tensor toType(ScalarType type) const { return to(type); }
  Tensor new_empty(IntArrayRef sizes) const { return Make(sizes.vec(), type_); }
  Tensor new_empty(IntArrayRef sizes, const TensorOptions& options) const {
    return Make(sizes.vec(), options.dtype().toScalarType());
  }
  Tensor new_zeros(IntArrayRef sizes) const {
    Tensor made = new_empty(sizes);
    return made.zero_();
  }
  const Tensor& copy_(const Tensor& from, bool = false) const;
  Tensor& copy_(const Tensor& from, bool = false) {
    static_cast<const Tensor*>(this)->copy_(from);
    return *this;
  }
  Tensor& fill_(const Scalar& value);
  Tensor& zero_() { return fill_(0); }
  Scalar item() const;
  template <typename T>
  T item() const {
    return item().to<T>();
  }
  // Sizes that depend on values; of integers and truth values alone.
  HostInteger sum() const {
    int64_t total = 0;
    EachInteger([&](int64_t one) { total += one; });
    return HostInteger(total);
  }
  HostInteger max() const { return Extreme([](int64_t a, int64_t b) { return a > b; }); }
  HostInteger min() const { return Extreme([](int64_t a, int64_t b) { return a < b; }); }

 private:
  static std::vector<int64_t> Rows(const std::vector<int64_t>& sizes) {
    std::vector<int64_t> strides(sizes.size(), 1);
    for (size_t n = sizes.size(); n-- > 1;) strides[n - 1] = strides[n] * (sizes[n] ? sizes[n] : 1);
    return strides;
  }
  size_t Axis(int64_t axis) const {
    int64_t at = axis < 0 ? axis + dim() : axis;
    if (at < 0 || at >= dim())
      throw Error(c10::str("axis ", axis, " of a tensor of ", dim(), " axes"));
    return static_cast<size_t>(at);
  }
  Tensor On(Device device) const {
    Tensor made = *this;
    made.device_ = device;
    return made;
  }
  Tensor Shaped(IntArrayRef sizes) const {
    Tensor made = *this;
    made.sizes_ = sizes.vec();
    int64_t known = 1, free = -1;
    for (size_t n = 0; n < sizes.size(); ++n) {
      if (sizes[n] == -1)
        free = static_cast<int64_t>(n);
      else
        known *= sizes[n];
    }
    if (free >= 0 && known != 0) made.sizes_[free] = numel() / known;
    if (made.numel() != numel())
      throw Error(c10::str("a tensor of ", numel(), " elements has no shape ", sizes));
    made.strides_ = Rows(made.sizes_);
    return made;
  }
  template <typename F>
  void Each(F use) const {
    std::vector<int64_t> at(sizes_.size(), 0);
    for (int64_t count = numel(); count > 0; --count) {
      int64_t place = offset_;
      for (size_t n = 0; n < at.size(); ++n) place += at[n] * strides_[n];
      use(storage_->data + place * element_size());
      for (size_t n = at.size(); n-- > 0;) {
        if (++at[n] < sizes_[n]) break;
        at[n] = 0;
      }
    }
  }
  template <typename F>
  void EachInteger(F use) const;
  template <typename F>
  HostInteger Extreme(F beats) const {
    std::optional<int64_t> best;
    EachInteger([&](int64_t one) {
      if (!best || beats(one, *best)) best = one;
    });
    if (!best) throw Error(c10::str("the largest or smallest element of an empty tensor"));
    return HostInteger(*best);
  }
  void Written() const {
    if (defined() && storage_->bytes != 0)
      cubecore_host(cubecore::WRITTEN, reinterpret_cast<uint64_t>(storage_->data), storage_->bytes,
                    nullptr, nullptr, nullptr);
  }

  std::shared_ptr<Storage> storage_;
  std::vector<int64_t> sizes_, strides_;
  int64_t offset_ = 0;
  ScalarType type_ = kFloat;
  Device device_;
};

// Elements on the host, as the widest numbers that hold them.
inline double read_element(const uint8_t* at, ScalarType type) {
  const auto as = [&](auto value) {
    std::memcpy(&value, at, sizeof(value));
    return static_cast<double>(value);
  };
  switch (type) {
    case kByte: return as(uint8_t{});
    case kChar: return as(int8_t{});
    case kShort: return as(int16_t{});
    case kInt: return as(int32_t{});
    case kLong: return as(int64_t{});
    case kFloat: return as(float{});
    case kDouble: return as(double{});
    case kBool: return *at != 0;
    case kHalf: {
      uint16_t bits;
      std::memcpy(&bits, at, 2);
      return aclFloat16ToFloat(bits);
    }
    case kBFloat16: {
      uint32_t bits = 0;
      std::memcpy(reinterpret_cast<uint8_t*>(&bits) + 2, at, 2);
      float value;
      std::memcpy(&value, &bits, 4);
      return value;
    }
    default: throw Error(str("elements of the type ", type));
  }
}
inline void write_element(uint8_t* at, ScalarType type, double value) {
  const auto as = [&](auto made) { std::memcpy(at, &made, sizeof(made)); };
  switch (type) {
    case kByte: return as(static_cast<uint8_t>(value));
    case kChar: return as(static_cast<int8_t>(value));
    case kShort: return as(static_cast<int16_t>(value));
    case kInt: return as(static_cast<int32_t>(value));
    case kLong: return as(static_cast<int64_t>(value));
    case kFloat: return as(static_cast<float>(value));
    case kDouble: return as(value);
    case kBool: return as(static_cast<uint8_t>(value != 0));
    case kHalf: return as(aclFloatToFloat16(static_cast<float>(value)));
    case kBFloat16: {
      float single = static_cast<float>(value);
      uint32_t bits;
      std::memcpy(&bits, &single, 4);
      if (single == single) bits += 0x7FFF + (bits >> 16 & 1);
      return as(static_cast<uint16_t>(bits >> 16));
    }
    default: throw Error(str("elements of the type ", type));
  }
}

template <typename F>
void Tensor::EachInteger(F use) const {
  if (isFloatingType(type_) || is_complex())
    throw Error(str("sum(), max() and min() in a binding are for integers, got ", type_));
  Each([&](const uint8_t* at) {
    if (type_ == kLong) {
      int64_t whole;
      std::memcpy(&whole, at, 8);
      use(whole);
    } else {
      use(static_cast<int64_t>(read_element(at, type_)));
    }
  });
}
inline const Tensor& Tensor::copy_(const Tensor& from, bool) const {
  if (from.numel() != numel() && from.numel() != 1)
    throw Error(str("copy_ of ", from.numel(), " elements to ", numel()));
  std::vector<const uint8_t*> places;
  from.Each([&](const uint8_t* at) { places.push_back(at); });
  size_t number = 0;
  const bool same = from.type_ == type_;
  Each([&](uint8_t* at) {
    const uint8_t* source = places[places.size() == 1 ? 0 : number++];
    if (same)
      std::memcpy(at, source, element_size());
    else
      write_element(at, type_, read_element(source, from.type_));
  });
  Written();
  return *this;
}
inline Tensor& Tensor::fill_(const Scalar& value) {
  Each([&](uint8_t* at) { write_element(at, type_, value.toDouble()); });
  Written();
  return *this;
}
inline Scalar Tensor::item() const {
  if (numel() != 1) throw Error(str("item() of a tensor of ", numel(), " elements"));
  const auto* at = static_cast<const uint8_t*>(data_ptr());
  if (type_ == kLong) {
    int64_t whole;
    std::memcpy(&whole, at, 8);
    return Scalar(whole);
  }
  const double value = read_element(at, type_);
  if (type_ == kBool) return Scalar(value != 0);
  return isFloatingType(type_) ? Scalar(value) : Scalar(static_cast<int64_t>(value));
}

using TensorList = ArrayRef<Tensor>;

}  // namespace at
