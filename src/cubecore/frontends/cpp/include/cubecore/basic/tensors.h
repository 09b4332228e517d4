// LocalTensor and GlobalTensor: where data lies, its length and its type.
// Pages: "LocalTensor简介" and "GlobalTensor简介" with the pages of their members; ShapeInfo;
// TensorTrait.
#pragma once

#include <cstdio>
#include <initializer_list>

#include "cubecore/seam/enums.h"
#include "cubecore/seam/types.h"

namespace AscendC {

constexpr uint32_t K_MAX_SHAPE_DIM = 8;

// Page ShapeInfo.
struct ShapeInfo {
  ShapeInfo() = default;
  ShapeInfo(const uint8_t inputShapeDim, const uint32_t inputShape[],
            const uint8_t inputOriginalShapeDim, const uint32_t inputOriginalShape[],
            const DataFormat inputFormat)
      : shapeDim(inputShapeDim), originalShapeDim(inputOriginalShapeDim), dataFormat(inputFormat) {
    for (uint32_t n = 0; n < shapeDim; ++n) shape[n] = inputShape[n];
    for (uint32_t n = 0; n < originalShapeDim; ++n) originalShape[n] = inputOriginalShape[n];
  }
  ShapeInfo(const uint8_t inputShapeDim, const uint32_t inputShape[], const DataFormat inputFormat)
      : ShapeInfo(inputShapeDim, inputShape, inputShapeDim, inputShape, inputFormat) {}
  ShapeInfo(const uint8_t inputShapeDim, const uint32_t inputShape[])
      : ShapeInfo(inputShapeDim, inputShape, DataFormat::ND) {}

  uint8_t shapeDim = 0;
  uint8_t originalShapeDim = 0;
  uint32_t shape[K_MAX_SHAPE_DIM] = {};
  uint32_t originalShape[K_MAX_SHAPE_DIM] = {};
  DataFormat dataFormat = DataFormat::ND;
};

// Page ShapeInfo, GetShapeSize.
inline int GetShapeSize(const ShapeInfo& shapeInfo) {
  int size = 1;
  for (uint32_t n = 0; n < shapeInfo.shapeDim; ++n) size *= static_cast<int>(shapeInfo.shape[n]);
  return size;
}

namespace detail {

struct NoLayout {};

// Bytes of UB and L1 are given in blocks of 32 B.
constexpr uint32_t whole_blocks(uint64_t bytes) {
  return static_cast<uint32_t>((bytes + 31) / 32 * 32);
}
// Bytes in whole units of a memory, by which the addresses of its arrays are aligned.
constexpr uint64_t whole_units(uint8_t mem, uint64_t bytes) {
  constexpr uint64_t units[] = {1, 32, 32, 512, 512, 1024, 128, 128};
  return (bytes + units[mem] - 1) / units[mem] * units[mem];
}

}  // namespace detail

// Pages TensorTrait: a type with a layout, of which functions look at the type alone.
template <typename T, TPosition pos = TPosition::GM, typename LayoutType = detail::NoLayout>
struct TensorTrait {
  using LiteType = T;
  using LiteLayoutType = LayoutType;
  static constexpr TPosition tPos = pos;

  constexpr TensorTrait(const LayoutType& t = {}) : layout_(t) {}
  constexpr LayoutType& GetLayout() { return layout_; }
  constexpr const LayoutType& GetLayout() const { return layout_; }
  constexpr void SetLayout(const LayoutType& t) { layout_ = t; }
  constexpr decltype(auto) GetShape() const { return layout_.GetShape(); }
  constexpr decltype(auto) GetStride() const { return layout_.GetStride(); }

 private:
  LayoutType layout_;
};
template <typename T, TPosition pos, typename LayoutType>
constexpr auto MakeTensorTrait(const LayoutType& t) {
  return TensorTrait<T, pos, LayoutType>(t);
}
template <typename T>
struct is_tensorTrait : std::false_type {};
template <typename T, TPosition pos, typename LayoutType>
struct is_tensorTrait<TensorTrait<T, pos, LayoutType>> : std::true_type {};

namespace detail {
template <typename T>
struct Plain {
  using type = T;
};
template <typename T, TPosition pos, typename L>
struct Plain<TensorTrait<T, pos, L>> {
  using type = T;
};
}  // namespace detail

template <typename T>
using PrimT = typename detail::Plain<T>::type;

namespace detail {

// The result of a form for pointers to functions, which take no defaults: its count's type is only
// deduced, so that each call with the type itself prefers the form with a default.
template <typename T, typename Count>
using Exactly = std::enable_if_t<std::is_same_v<T, Count>>;

template <typename T>
inline uint64_t bits_of(T value) {
  uint64_t bits = 0;
  std::memcpy(&bits, &value, sizeof(T));
  return bits;
}

template <typename T>
inline T value_of(uint64_t bits) {
  T value;
  std::memcpy(&value, &bits, sizeof(T));
  return value;
}

template <typename T>
inline void store(uint8_t mem, int64_t address, T value, const cubecore::Where& at) {
  constexpr const char* type = sizeof(T) == 1   ? "uint8"
                               : sizeof(T) == 2 ? "uint16"
                               : sizeof(T) == 4 ? "uint32"
                                                : "uint64";
  cubecore::store_bits(mem, type, address, bits_of(value), at);
}

// An element that the scalar unit reads and writes: used as a reference to it is.
template <typename T>
class Cell {
 public:
  Cell(uint8_t mem, int64_t address, cubecore::Where at) : mem_(mem), address_(address), at_(at) {}
  operator T() const {
    return value_of<T>(cubecore_load(mem_, cubecore::Element<T>::name, address_, &at_));
  }
  // A half becomes the numbers that it becomes itself.
  template <typename H = T, std::enable_if_t<cubecore::is_half<H>, int> = 0>
  operator float() const {
    return static_cast<T>(*this);
  }
  template <typename V>
  Cell& operator=(V value) {
    store<T>(mem_, address_, static_cast<T>(value), at_);
    return *this;
  }
  Cell& operator=(const Cell& other) { return *this = static_cast<T>(other); }
#define CUBECORE_CHANGED(ASSIGNS, SIGN)                              \
  template <typename V>                                              \
  Cell& operator ASSIGNS(V value) {                                  \
    return *this = static_cast<T>(static_cast<T>(*this) SIGN value); \
  }
  CUBECORE_CHANGED(+=, +)
  CUBECORE_CHANGED(-=, -)
  CUBECORE_CHANGED(*=, *)
  CUBECORE_CHANGED(/=, /)
  CUBECORE_CHANGED(%=, %)
  CUBECORE_CHANGED(&=, &)
  CUBECORE_CHANGED(|=, |)
  CUBECORE_CHANGED(^=, ^)
  CUBECORE_CHANGED(<<=, <<)
  CUBECORE_CHANGED(>>=, >>)
#undef CUBECORE_CHANGED
  Cell& operator++() { return *this += 1; }
  Cell& operator--() { return *this -= 1; }
  T operator++(int) {
    const T before = *this;
    *this = before + 1;
    return before;
  }
  T operator--(int) {
    const T before = *this;
    *this = before - 1;
    return before;
  }

 private:
  uint8_t mem_;
  int64_t address_;
  cubecore::Where at_;
};

}  // namespace detail

// Where a tensor lies, for SetAddr; page TensorTrait, "更多样例". The order of its fields is ours,
// and so is a signed address: what lies before a memory is seen as such.
struct TBuffAddr {
  int64_t bufferAddr = 0;
  uint32_t dataLen = 0;
  uint8_t logicPos = static_cast<uint8_t>(TPosition::VECCALC);
  void* bufferHandle = nullptr;
};

template <typename T>
class LocalTensor;

namespace detail {

template <typename T>
struct IsLocal : std::false_type {};
template <typename T>
struct IsLocal<LocalTensor<T>> : std::true_type {};
template <typename T>
inline constexpr bool is_local = IsLocal<T>::value;

// Says that a scalar access leaves its tensor's buffer.
inline void say_outside(const char* call, int64_t first, int64_t size, uint8_t mem, int64_t low,
                        int64_t high, const cubecore::Where& at) {
  using number = long long;
  char text[200];
  std::snprintf(text, sizeof text,
                "an element must lie inside its buffer of %lld B, bytes [%lld, %lld) of %s, got "
                "bytes [%lld, %lld)",
                number(high - low), number(low), number(high), cubecore::MEMORY_LABELS[mem],
                number(first), number(first + size));
  cubecore_finding("out-of-bounds", call, text, &at);
}

enum class Sign : uint8_t { ADD, SUB, MUL, DIV, AND, OR, LT, GT, LE, GE, EQ, NE };

// Two whole tensors with an operator between them, until it is known where the result goes.
template <typename T, Sign sign>
struct Whole {
  LocalTensor<T> src0, src1;
  cubecore::Where at;
};

}  // namespace detail

template <typename T>
class LocalTensor {
 public:
  using PrimType = PrimT<T>;

  // The second tensor of an operator, and its line.
  struct Operand {
    Operand(const LocalTensor& tensor, CUBECORE_AT) : tensor(tensor), at(at) {}
    const LocalTensor& tensor;
    cubecore::Where at;
  };
#define CUBECORE_SIGN(SIGN, NAME)                                                    \
  friend detail::Whole<T, detail::Sign::NAME> operator SIGN(const LocalTensor& src0, \
                                                            const Operand& src1) {   \
    return {src0, src1.tensor, src1.at};                                             \
  }
  CUBECORE_SIGN(+, ADD)
  CUBECORE_SIGN(-, SUB)
  CUBECORE_SIGN(*, MUL)
  CUBECORE_SIGN(/, DIV)
  CUBECORE_SIGN(&, AND)
  CUBECORE_SIGN(|, OR)
  CUBECORE_SIGN(<, LT)
  CUBECORE_SIGN(>, GT)
  CUBECORE_SIGN(<=, LE)
  CUBECORE_SIGN(>=, GE)
  CUBECORE_SIGN(==, EQ)
  CUBECORE_SIGN(!=, NE)
#undef CUBECORE_SIGN
  template <typename U, detail::Sign sign>
  void operator=(const detail::Whole<U, sign>& made) const {
    whole(*this, made);
  }

  LocalTensor() = default;
  // Page "LocalTensor构造函数": a position, a byte address and a number of elements.
  LocalTensor(TPosition pos, uint32_t addr, uint32_t tileSize) {
    cubecore_own_addresses();
    Place(pos, addr, tileSize, nullptr);
    Bound();
  }
  explicit LocalTensor(const TBuffAddr& address) { SetAddr(address); }

  void SetAddr(const TBuffAddr& address) {
    address_ = address;
    Hold(0, 0);
  }
  // From a byte of its memory on, so many elements.
  void InitBuffer(uint32_t bufferOffset, uint32_t bufferSize) {
    address_.bufferAddr = bufferOffset;
    Hold(0, 0);
    SetSize(bufferSize);
  }
  uint64_t GetPhyAddr() const { return static_cast<uint64_t>(address_.bufferAddr); }
  uint64_t GetPhyAddr(const uint32_t offset) const {
    return static_cast<uint64_t>(element(offset));
  }
  PrimType GetValue(const uint32_t index, CUBECORE_AT) const {
    Judge("GetValue", index, at);
    return detail::value_of<PrimType>(
        cubecore_load(memory(), cubecore::Element<PrimType>::name, element(index), &at));
  }
  template <typename V>
  void SetValue(const uint32_t index, const V value, CUBECORE_AT) const {
    Judge("SetValue", index, at);
    detail::store<PrimType>(memory(), element(index), static_cast<PrimType>(value), at);
  }
  detail::Cell<PrimType> operator()(const uint32_t offset, CUBECORE_AT) const {
    Judge("operator()", offset, at);
    return {memory(), element(offset), at};
  }
  template <typename CAST_T>
  LocalTensor<CAST_T> ReinterpretCast() const {
    LocalTensor<CAST_T> made;
    made.address_ = address_;
    made.held_low_ = held_low_;
    made.held_high_ = held_high_;
    made.held_at_ = held_at_;
    made.bounded_ = bounded_;
    return made;
  }
  LocalTensor operator[](const uint32_t offset) const {
    LocalTensor made = *this;
    const int64_t left = GetLength() - cubecore::bytes_of<PrimType>(offset);
    made.address_.bufferAddr = element(offset);
    made.held_at_ += made.address_.bufferAddr - address_.bufferAddr;
    made.address_.dataLen = left > 0 ? static_cast<uint32_t>(left) : 0;
    return made;
  }
  template <typename T1>
  void SetAddrWithOffset(LocalTensor<T1>& src, uint32_t offset) {
    address_.bufferAddr = static_cast<int64_t>(src.GetPhyAddr(offset));
    address_.logicPos = src.address_.logicPos;
    Hold(src.held_low_, src.held_high_);
    bounded_ = src.bounded_;
  }
  int32_t GetPosition() const { return static_cast<int32_t>(address_.logicPos); }
  void SetSize(const uint32_t size) {
    SetBufferLen(static_cast<uint32_t>(cubecore::bytes_of<PrimType>(size)));
  }
  uint32_t GetSize() const {
    return static_cast<uint32_t>(address_.dataLen * 8ull / cubecore::Element<PrimType>::bits);
  }
  uint32_t GetLength() const { return address_.dataLen; }
  void SetBufferLen(uint32_t dataLen) {
    address_.dataLen = dataLen;
    // A kernel that lengthens a tensor means to reach on.
    if (bounded_ && End() > held_high_) held_high_ = End();
  }
  void SetUserTag(const TTagType tag) { tag_ = tag; }
  TTagType GetUserTag() const { return tag_; }
  void SetShapeInfo(const ShapeInfo& shapeInfo) { shape_ = new ShapeInfo(shapeInfo); }
  ShapeInfo GetShapeInfo() const { return shape_ == nullptr ? ShapeInfo() : *shape_; }
  void Print(CUBECORE_AT) const { Print(GetSize(), at); }
  void Print(uint32_t len, CUBECORE_AT) const {
    cubecore_dump(memory(), cubecore::Element<PrimType>::name, address_.bufferAddr, 0, len, nullptr,
                  0, &at);
  }

  // Ours: what the headers need.
  uint8_t memory() const { return memory_of(static_cast<TPosition>(address_.logicPos)); }
  int64_t element(int64_t index) const {
    return address_.bufferAddr + cubecore::bytes_of<PrimType>(index);
  }
  cubecore::Pointer pointer() const {
    if (bounded_ ? Holds() : Strays(address_.bufferAddr))
      cubecore_held(memory(), address_.bufferAddr, held_low_, held_high_);
    return {static_cast<cubecore::Mem>(memory()), cubecore::Element<PrimType>::name,
            address_.bufferAddr};
  }
  void Place(TPosition position, int64_t address, uint32_t size, void* handle) {
    address_.logicPos = static_cast<uint8_t>(position);
    address_.bufferAddr = address;
    address_.bufferHandle = handle;
    SetSize(size);
    Hold(0, 0);
  }
  // The tensor's buffer: an access that begins elsewhere is a finding, unless the kernel itself has
  // set the address.
  void Hold(int64_t low, int64_t high) {
    held_low_ = low;
    held_high_ = high;
    held_at_ = address_.bufferAddr;
    bounded_ = false;
  }
  void* handle() const { return address_.bufferHandle; }
  // The tensor's bytes are an array of their own.
  void Declare() const { cubecore_array(memory(), address_.bufferAddr, GetLength()); }
  // The same, and its length, in whole units of its memory, is all that an access to it may touch:
  // the kernel has placed it itself, so that no pipe knows of a buffer.
  void Bound() {
    Declare();
    if (GetLength() == 0) return;
    Hold(address_.bufferAddr, End());
    bounded_ = true;
  }
  // Bytes from the tensor's start to the end of its buffer, or its own where no buffer is known; a
  // tensor without a size has no end.
  int64_t Room() const {
    if (Holds()) return held_high_ - address_.bufferAddr;
    return address_.dataLen != 0 ? address_.dataLen : INT64_MAX;
  }

  // Without a page: public kernels set the position of a tensor here.
  TBuffAddr address_;

 private:
  template <typename>
  friend class LocalTensor;
  int64_t End() const {
    return address_.bufferAddr +
           static_cast<int64_t>(detail::whole_units(memory(), address_.dataLen));
  }
  // True if the bytes that the tensor must not leave are known: nobody has set its address since.
  bool Holds() const { return held_high_ != 0 && held_at_ == address_.bufferAddr; }
  bool Strays(int64_t address) const {
    return Holds() && (address < held_low_ || address >= held_high_);
  }
  void Judge(const char* call, uint32_t index, const cubecore::Where& at) const {
    if (Strays(element(index)))
      detail::say_outside(call, element(index), sizeof(PrimType), memory(), held_low_,
                             held_high_, at);
  }

  int64_t held_low_ = 0, held_high_ = 0, held_at_ = 0;
  bool bounded_ = false;  // each access is judged by what is held, not the first byte alone
  TTagType tag_ = 0;
  const ShapeInfo* shape_ = nullptr;  // of a process that ends with the launch
};

template <typename T>
class GlobalTensor {
 public:
  using PrimType = PrimT<T>;

  GlobalTensor() = default;
  void SetGlobalBuffer(PrimType* buffer, uint64_t bufferSize) {
    buffer_ = buffer;
    size_ = bufferSize;
  }
  void SetGlobalBuffer(PrimType* buffer) { buffer_ = buffer; }
  PrimType* GetPhyAddr() const { return buffer_; }
  PrimType* GetPhyAddr(const uint64_t offset) const { return host(offset); }
  PrimType GetValue(const uint64_t offset, CUBECORE_AT) const {
    return detail::value_of<PrimType>(
        cubecore_load(0, cubecore::Element<PrimType>::name, address(offset), &at));
  }
  detail::Cell<PrimType> operator()(const uint64_t offset, CUBECORE_AT) const {
    return {0, address(offset), at};
  }
  template <typename V>
  void SetValue(const uint64_t offset, V value, CUBECORE_AT) {
    detail::store<PrimType>(0, address(offset), static_cast<PrimType>(value), at);
  }
  uint64_t GetSize() const { return size_; }
  GlobalTensor operator[](const uint64_t offset) const {
    GlobalTensor made = *this;
    made.buffer_ = host(offset);
    made.size_ = offset < size_ ? size_ - offset : 0;
    return made;
  }
  void SetShapeInfo(const ShapeInfo& shapeInfo) { shape_ = new ShapeInfo(shapeInfo); }
  ShapeInfo GetShapeInfo() const { return shape_ == nullptr ? ShapeInfo() : *shape_; }
  template <CacheRwMode rwMode = CacheRwMode::RW>
  void SetL2CacheHint(CacheMode) {}
  template <typename CAST_T>
  GlobalTensor<CAST_T> ReinterpretCast() const {
    GlobalTensor<CAST_T> made;
    made.SetGlobalBuffer(
        reinterpret_cast<PrimT<CAST_T>*>(buffer_),
        size_ * cubecore::Element<PrimType>::bits / cubecore::Element<PrimT<CAST_T>>::bits);
    return made;
  }

  // Ours: what the headers need.
  int64_t address(int64_t index) const { return cubecore::gm_address(host(index)); }
  cubecore::Pointer pointer() const {
    return {cubecore::Mem::GM, cubecore::Element<PrimType>::name, cubecore::gm_address(buffer_)};
  }

 private:
  PrimType* host(int64_t index) const {
    return reinterpret_cast<PrimType*>(reinterpret_cast<uint64_t>(buffer_) +
                                       static_cast<uint64_t>(cubecore::bytes_of<PrimType>(index)));
  }

  PrimType* buffer_ = nullptr;
  uint64_t size_ = 0;
  const ShapeInfo* shape_ = nullptr;  // of a process that ends with the launch
};

}  // namespace AscendC
