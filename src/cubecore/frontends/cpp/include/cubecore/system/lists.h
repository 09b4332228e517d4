// Lists of tensors in global memory. Pages: ListTensorDesc, TensorDesc with its members. The list
// begins with the bytes from there to its pointers; descriptions are between: a dimension and an
// index of 4 B each, then 8 B for each extent.
#pragma once

#include "cubecore/basic/tensors.h"

namespace AscendC {

template <typename T>
class TensorDesc {
 public:
  void SetShapeAddr(uint64_t* shapePtr) { shape_ = shapePtr; }
  uint64_t GetDim() const { return dim_; }
  uint64_t GetIndex() const { return index_; }
  uint64_t GetShape(uint32_t offset) const { return shape_[offset]; }
  T* GetDataPtr() const { return data_; }
  GlobalTensor<T> GetDataObj() const {
    GlobalTensor<T> made;
    made.SetGlobalBuffer(data_);
    return made;
  }
  // Ours.
  void Take(uint64_t dim, uint64_t index, const uint64_t* extents, T* data) {
    dim_ = dim;
    index_ = index;
    data_ = data;
    if (shape_ != nullptr)
      for (uint64_t n = 0; n < dim; ++n) shape_[n] = extents[n];
  }

 private:
  uint64_t dim_ = 0, index_ = 0;
  uint64_t* shape_ = nullptr;
  T* data_ = nullptr;
};

class ListTensorDesc {
 public:
  ListTensorDesc() = default;
  ListTensorDesc(void* data, uint32_t length = 0xffffffff, uint32_t shapeSize = 0xffffffff) {
    Init(data, length, shapeSize);
  }
  void Init(void* data, uint32_t = 0xffffffff, uint32_t = 0xffffffff) {
    words_ = static_cast<const uint64_t*>(data);
  }
  template <typename T>
  void GetDesc(TensorDesc<T>& desc, uint32_t index) {
    const uint64_t* at = words_ + 1;
    for (uint32_t n = 0; n < index; ++n) at += 1 + Dim(at);
    desc.Take(Dim(at), at[0] >> 32, at + 1, GetDataPtr<T>(index));
  }
  template <typename T>
  T* GetDataPtr(uint32_t index) {
    return reinterpret_cast<T*>(words_[words_[0] / 8 + index]);
  }
  uint32_t GetSize() const {
    uint32_t size = 0;
    for (const uint64_t* at = words_ + 1; at < words_ + words_[0] / 8; at += 1 + Dim(at)) ++size;
    return size;
  }

 private:
  static uint64_t Dim(const uint64_t* at) { return at[0] & 0xffffffff; }

  const uint64_t* words_ = nullptr;
};

}  // namespace AscendC
