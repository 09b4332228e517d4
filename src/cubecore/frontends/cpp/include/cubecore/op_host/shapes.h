// Shapes and tensors as host code sees them. Pages (namespace gert): Shape, StorageShape,
// ExpandDimsType, StorageFormat, Tensor, TensorData, CompileTimeTensorDesc, Range.
#pragma once

#include <initializer_list>

#include "cubecore/op_host/types.h"

namespace gert {

class Shape {
 public:
  static constexpr size_t kMaxDimNum = 25;
  static constexpr int64_t kInvalidDimValue = INT64_MIN;

  Shape() = default;
  Shape(const std::initializer_list<int64_t>& dims) {
    for (int64_t dim : dims) AppendDim(dim);
  }
  bool operator==(const Shape& other) const {
    if (count_ != other.count_) return false;
    for (size_t n = 0; n < count_; ++n)
      if (dims_[n] != other.dims_[n]) return false;
    return true;
  }
  bool operator!=(const Shape& other) const { return !(*this == other); }
  int64_t GetShapeSize() const {
    int64_t size = 1;
    for (size_t n = 0; n < count_; ++n) size *= dims_[n];
    return size;
  }
  bool IsScalar() const { return count_ == 0; }
  void SetScalar() { count_ = 0; }
  size_t GetDimNum() const { return count_; }
  void SetDimNum(size_t count) {
    for (size_t n = count_; n < count && n < kMaxDimNum; ++n) dims_[n] = 0;
    count_ = count < kMaxDimNum ? count : kMaxDimNum;
  }
  int64_t GetDim(size_t index) const {
    return index < kMaxDimNum ? dims_[index] : kInvalidDimValue;
  }
  const int64_t& operator[](size_t index) const { return dims_[index]; }
  int64_t& operator[](size_t index) { return dims_[index]; }
  void SetDim(size_t index, int64_t value) {
    if (index < kMaxDimNum) dims_[index] = value;
  }
  Shape& AppendDim(int64_t value) {
    if (count_ < kMaxDimNum) dims_[count_++] = value;
    return *this;
  }

 private:
  size_t count_ = 0;
  int64_t dims_[kMaxDimNum] = {};
};

// Elements from index to index of each dimension, where a tensor is a view of another one.
class Stride {
 public:
  Stride() = default;
  Stride(const std::initializer_list<int64_t>& strides) : strides_(strides) {}
  size_t GetDimNum() const { return strides_.GetDimNum(); }
  int64_t GetStride(size_t index) const { return strides_.GetDim(index); }

 private:
  Shape strides_;
};

class StorageShape {
 public:
  StorageShape() = default;
  StorageShape(const std::initializer_list<int64_t>& origin,
               const std::initializer_list<int64_t>& storage)
      : origin_(origin), storage_(storage) {}
  const Shape& GetOriginShape() const { return origin_; }
  const Shape& GetStorageShape() const { return storage_; }
  const Shape& GetShape() const { return storage_; }  // that of a view
  Shape& MutableOriginShape() { return origin_; }
  Shape& MutableStorageShape() { return storage_; }
  bool operator==(const StorageShape& other) const {
    return origin_ == other.origin_ && storage_ == other.storage_;
  }

 private:
  Shape origin_, storage_;
};

enum TensorPlacement { kOnDeviceHbm, kOnHost, kFollowing, kOnDeviceP2p, kTensorPlacementEnd };

class StorageFormat {
 public:
  StorageFormat() = default;
  explicit StorageFormat(ge::Format format) : origin_(format), storage_(format) {}
  ge::Format GetOriginFormat() const { return origin_; }
  ge::Format GetStorageFormat() const { return storage_; }

 private:
  ge::Format origin_ = ge::FORMAT_ND, storage_ = ge::FORMAT_ND;
};

class CompileTimeTensorDesc {
 public:
  ge::DataType GetDataType() const { return type; }
  ge::Format GetOriginFormat() const { return format.GetOriginFormat(); }
  ge::Format GetStorageFormat() const { return format.GetStorageFormat(); }
  const StorageFormat& GetFormat() const { return format; }

  ge::DataType type = ge::DT_UNDEFINED;
  StorageFormat format;
};

// A tensor: its values are there for inputs that the operator's shapes or tiling depend on.
class Tensor {
 public:
  const Shape& GetOriginShape() const { return shape.GetOriginShape(); }
  const Shape& GetStorageShape() const { return shape.GetStorageShape(); }
  const StorageShape& GetShape() const { return shape; }
  ge::DataType GetDataType() const { return desc.type; }
  ge::Format GetOriginFormat() const { return desc.GetOriginFormat(); }
  ge::Format GetStorageFormat() const { return desc.GetStorageFormat(); }
  const StorageFormat& GetFormat() const { return desc.format; }
  int64_t GetShapeSize() const { return shape.GetStorageShape().GetShapeSize(); }
  size_t GetSize() const {
    return static_cast<size_t>(ge::GetSizeInBytes(GetShapeSize(), desc.type));
  }
  TensorPlacement GetPlacement() const { return kOnHost; }
  template <typename T>
  const T* GetData() const {
    return static_cast<const T*>(data);
  }
  const void* GetAddr() const { return data; }

  StorageShape shape;
  CompileTimeTensorDesc desc;
  const void* data = nullptr;
};

// The least and the largest of something.
template <typename T>
class Range {
 public:
  Range() = default;
  Range(T* least, T* most) : least_(least), most_(most) {}
  explicit Range(T* same) : Range(same, same) {}
  const T* GetMin() const { return least_; }
  const T* GetMax() const { return most_; }
  T* GetMin() { return least_; }
  T* GetMax() { return most_; }
  void SetMin(T* least) { least_ = least; }
  void SetMax(T* most) { most_ = most; }

 private:
  T *least_ = nullptr, *most_ = nullptr;
};

}  // namespace gert
