// Structs of tiling data as host code declares them. Pages: BEGIN_TILING_DATA_DEF,
// TILING_DATA_FIELD_DEF, TILING_DATA_FIELD_DEF_ARR, TILING_DATA_FIELD_DEF_STRUCT,
// END_TILING_DATA_DEF, REGISTER_TILING_DATA_CLASS.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#ifdef __NPU_HOST__
namespace cubecore {

// Structs whose fields go elsewhere, which SetDataPtr names: they are there when the struct ends,
// or the tiling function.
void set_elsewhere(const void* fields, void* to, size_t bytes);
void put(const void* fields);

}  // namespace cubecore

namespace optiling {

// Any struct of tiling data, for functions that take one (page "TilingData结构定义").
class TilingDef {
 public:
  TilingDef(void* fields, size_t bytes) : fields_(fields), bytes_(bytes) {}
  size_t GetDataSize() const { return bytes_; }
  void SaveToBuffer(void* to, size_t most) const {
    std::memcpy(to, fields_, most < bytes_ ? most : bytes_);
  }
  void SetDataPtr(void* to) { ::cubecore::set_elsewhere(fields_, to, bytes_); }

 private:
  void* fields_;
  size_t bytes_;
};

}  // namespace optiling

using optiling::TilingDef;

#define CUBECORE_ELSEWHERE(NAME)                                                     \
  operator ::optiling::TilingDef&() {                                                \
    static thread_local ::optiling::TilingDef made(nullptr, 0);                      \
    return made = {this, sizeof(*this)};                                             \
  }                                                                                  \
  void SetDataPtr(void* to) { ::cubecore::set_elsewhere(this, to, sizeof(*this)); }  \
  ~NAME() { ::cubecore::put(this); }
#else
#define CUBECORE_ELSEWHERE(NAME)
#endif

#define BEGIN_TILING_DATA_DEF(NAME)                             \
  struct NAME {                                                 \
    CUBECORE_ELSEWHERE(NAME)                                    \
    size_t GetDataSize() const { return sizeof(*this); }        \
    void SaveToBuffer(void* to, size_t most) const {            \
      std::memcpy(to, static_cast<const void*>(this),           \
                  most < sizeof(*this) ? most : sizeof(*this)); \
    }
#define TILING_DATA_FIELD_DEF(TYPE, NAME)       \
  TYPE NAME = {};                               \
  void set_##NAME(TYPE value) { NAME = value; } \
  TYPE get_##NAME() const { return NAME; }
#define TILING_DATA_FIELD_DEF_ARR(TYPE, COUNT, NAME)                               \
  TYPE NAME[COUNT] = {};                                                           \
  void set_##NAME(const TYPE* values) { std::memcpy(NAME, values, sizeof(NAME)); } \
  TYPE* get_##NAME() { return NAME; }
#define TILING_DATA_FIELD_DEF_STRUCT(TYPE, NAME) TYPE NAME = {};
#define END_TILING_DATA_DEF \
  }                         \
  ;
#define REGISTER_TILING_DATA_CLASS(OPERATOR, NAME) \
  using cubecore_tiling_of_##OPERATOR [[maybe_unused]] = NAME;
