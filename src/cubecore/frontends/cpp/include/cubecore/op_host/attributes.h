// Attributes as host code reads them. Pages (namespace gert): ContinuousVector,
// TypedContinuousVector, ContinuousVectorVector, RuntimeAttrs.
#pragma once

#include <cstring>
#include <deque>
#include <sstream>
#include <type_traits>

#include "cubecore/host/device.h"
#include "cubecore/op_host/types.h"

namespace gert {

class ContinuousVector {
 public:
  size_t GetSize() const { return size; }
  size_t GetCapacity() const { return size; }
  const void* GetData() const { return data; }
  void* MutableData() { return data; }

  size_t size = 0;
  void* data = nullptr;
};

template <typename T>
class TypedContinuousVector : public ContinuousVector {
 public:
  const T* GetData() const { return static_cast<const T*>(data); }
  T* MutableData() { return static_cast<T*>(data); }
};

class ContinuousVectorVector {
 public:
  size_t GetSize() const { return rows.size(); }
  const ContinuousVector* Get(size_t index) const {
    return index < rows.size() ? &rows[index] : nullptr;
  }

  std::deque<ContinuousVector> rows;
};

class RuntimeAttrs {
 public:
  template <typename T>
  const T* GetAttrPointer(size_t index) const {
    if (index >= values.size() || values[index].held.empty()) {
      cubecore::absent(0, index);
      return nullptr;
    }
    const Value& value = values[index];
    if constexpr (std::is_same_v<T, char>) {
      return value.held.data();
    } else if constexpr (std::is_base_of_v<ContinuousVector, T>) {
      return static_cast<const T*>(static_cast<const ContinuousVector*>(value.list.get()));
    } else if constexpr (std::is_same_v<T, ContinuousVectorVector>) {
      return value.lists.get();
    } else {
      return reinterpret_cast<const T*>(value.held.data());
    }
  }
  const int64_t* GetInt(size_t index) const { return GetAttrPointer<int64_t>(index); }
  const float* GetFloat(size_t index) const { return GetAttrPointer<float>(index); }
  const bool* GetBool(size_t index) const { return GetAttrPointer<bool>(index); }
  const char* GetStr(size_t index) const { return GetAttrPointer<char>(index); }
  const TypedContinuousVector<int64_t>* GetListInt(size_t index) const {
    return GetAttrPointer<TypedContinuousVector<int64_t>>(index);
  }
  const TypedContinuousVector<float>* GetListFloat(size_t index) const {
    return GetAttrPointer<TypedContinuousVector<float>>(index);
  }
  const ContinuousVectorVector* GetListListInt(size_t index) const {
    return GetAttrPointer<ContinuousVectorVector>(index);
  }
  size_t GetAttrNum() const { return values.size(); }

  // A value's bytes; of a list those of its elements.
  struct Value {
    std::vector<char> held;
    std::unique_ptr<TypedContinuousVector<int64_t>> list;
    std::unique_ptr<ContinuousVectorVector> lists;
  };
  std::deque<Value> values;
};

}  // namespace gert
