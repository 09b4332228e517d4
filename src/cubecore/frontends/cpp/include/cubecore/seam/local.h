// Arrays in local memories, and raw pointers as operands. Pages: "C API", general notes (allocation
// by arrays), asc_get_phy_buf_addr. A pointer to a local memory is the address in it, at which the
// process has no memory: what a kernel loads or stores through one faults, and becomes a scalar
// access (runtime/local_pointers.h).
#pragma once

#include <cstdio>

#include "cubecore/cube/params.h"
#include "cubecore/sync/flags.h"
#include "cubecore/sync/queue.h"

// Structs of strides, by the names of the instruction's parameters.
struct asc_unary_config {
  uint16_t dst_block_stride = 1, src_block_stride = 1;
  uint16_t dst_repeat_stride = 8, src_repeat_stride = 8;
  uint8_t repeat = 1;
};

union asc_fill_value_config {
  uint64_t config = 0;
  struct {
    uint64_t repeat : 15, : 1, blk_num : 15, : 1, dst_gap : 15, : 17;
  };
};
struct asc_binary_config {
  uint8_t dst_block_stride = 1, src0_block_stride = 1, src1_block_stride = 1;
  uint8_t dst_repeat_stride = 8, src0_repeat_stride = 8, src1_repeat_stride = 8;
  uint8_t repeat = 1;
};

namespace cubecore {

// C API, general notes: arrays and asc_get_phy_buf_addr give the same addresses.
inline void judge_allocation(uint8_t array_memory, bool physical, const Where& at) {
  auto& state = AscendC::detail::core_state();
  bool both = state.array_memory != 0 && state.physical;
  if (array_memory != 0 && state.array_memory == 0) state.array_memory = array_memory;
  state.physical |= physical;
  if (physical) cubecore_own_addresses();
  if (both || state.array_memory == 0 || !state.physical) return;
  char message[160];
  snprintf(message, sizeof message,
           "%s must be used by arrays or by asc_get_phy_buf_addr, got both; arrays lie from "
           "address 0 on, so that both may be the same bytes",
           MEMORY_LABELS[state.array_memory]);
  cubecore_finding("mixed-allocation", "array", message, &at);
}

inline void* physical_address(uint64_t offset, const Where& at) {
  judge_allocation(0, true, at);
  return reinterpret_cast<void*>(offset);
}

// What arrays of a memory have taken: one behind another from address 0 on.
inline int64_t array_address(Mem mem, uint64_t bytes, const Where& at) {
  uint8_t number = static_cast<uint8_t>(mem);
  judge_allocation(number, false, at);
  uint64_t& used = AscendC::detail::core_state().used[number];
  uint64_t start = AscendC::detail::whole_units(number, used);
  uint64_t most = AscendC::detail::memory_bytes(number);
  if (start + bytes > most) AscendC::detail::refuse_memory("an array", most, start + bytes, at);
  used = start + bytes;
  const int64_t address = static_cast<int64_t>(start);
  cubecore_array(number, address, static_cast<int64_t>(bytes));
  cubecore_array_buffer(number, address, static_cast<int64_t>(bytes));
  return address;
}

// An array's pointer that knows its memory, of which the tensor API makes tensors (page
// MakeMemPtr).
template <Mem mem, typename T>
struct Array {
  T* pointer;
  operator T*() const { return pointer; }
  template <typename O, std::enable_if_t<!std::is_same_v<O, T>, int> = 0>
  explicit operator O*() const {
    return reinterpret_cast<O*>(pointer);
  }
  explicit operator uint64_t() const { return reinterpret_cast<uint64_t>(pointer); }
  Array operator+(int64_t count) const { return {pointer + count}; }
};
template <Mem mem, typename T>
using ArrayOf = std::conditional_t<is_950, Array<mem, T>, T*>;
template <Mem mem, typename T>
inline T* plain_pointer(Array<mem, T> array) {
  return array.pointer;
}
template <typename T>
inline T* plain_pointer(T* pointer) {
  return pointer;
}
template <typename T>
inline const T& plain_pointer(const T& other) {  // another variable of an array's name
  return other;
}

template <Mem mem, typename T, uint64_t length>
inline ArrayOf<mem, T> local_array(CUBECORE_AT) {
  static_assert(length > 0, "an array's length must be a whole number above 0, got 0");
  static_assert(Element<T>::name != nullptr,
                "an array in a local memory must be of an element type, got an array of structs");
  uint64_t bytes = (length * Element<T>::bits + 7) / 8;
  return {reinterpret_cast<T*>(array_address(mem, bytes, at))};
}

// `extern __ubuf__ T x[]`: what the launch asks for dynamically, behind what is static by then. All
// such names are the same memory.
template <Mem mem, typename T>
inline ArrayOf<mem, T> dynamic_array(CUBECORE_AT) {
  int64_t& start = AscendC::detail::core_state().dynamic_at;
  if (start < 0) start = array_address(mem, cubecore_launch()->dynamic_bytes, at);
  return {reinterpret_cast<T*>(start)};
}

// A struct of arrays, written NAME{}: its members lie one behind another, as C++ lays them out.
template <typename T>
inline T& local_struct(Mem mem, CUBECORE_AT) {
  static_assert(std::is_class_v<T>, "{} in a local memory must follow a struct, got a number");
  static_assert(std::is_trivially_copyable_v<T>,
                "a struct in a local memory must hold numbers and arrays alone, got more");
  return *reinterpret_cast<T*>(array_address(mem, sizeof(T), at));
}

// An object without {}: a number is the scalar unit's, a struct is not constructed by itself.
template <typename T>
struct Unconstructed {
  static_assert(!std::is_class_v<T> || Element<T>::name != nullptr,
                "a struct in a local memory must be constructed, got no {} behind its name");
  using type = T;
};

// A local address is a small number; the host's own addresses are far above.
constexpr uint64_t LOCAL_END = 1ull << 32;

template <typename T>
inline Pointer operand(Mem declared, T* pointer) {
  uint64_t raw = reinterpret_cast<uint64_t>(pointer);
  using E = Element<std::remove_cv_t<T>>;
  const char* type = "uint8";
  if constexpr (!std::is_void_v<T>)
    if constexpr (E::name != nullptr) type = E::name;
  if (raw >= LOCAL_END) return {Mem::GM, type, gm_address(pointer)};
  return {declared == Mem::GM ? Mem::UB : declared, type, static_cast<int64_t>(raw)};
}
template <Mem mem, typename T>
inline Pointer operand(Mem declared, Array<mem, T> array) {
  return operand(declared, array.pointer);
}
// An operand that its instruction does not read may be nullptr: the one before it stands for it.
template <typename A, typename B>
A given(A operand, B) {
  return operand;
}
template <typename B>
B given(std::nullptr_t, B before) {
  return before;
}
inline Pointer operand(Mem declared, uint64_t address) {
  return operand(declared, reinterpret_cast<uint8_t*>(address));
}

// An argument that is no operand: pipes become words.
template <typename T>
inline auto plain(const T& value) {
  if constexpr (std::is_same_v<T, pipe_t>)
    return AscendC::detail::pipe_word(value);
  else if constexpr (std::is_same_v<T, QuantMode_t>)
    return quant_word(value);
#if __NPU_ARCH__ == 3510
  else if constexpr (std::is_same_v<T, QuantMode_post>)
    return post_word(value);
#endif
  else if constexpr (is_half<T>)
    return static_cast<float>(value);
  else if constexpr (std::is_enum_v<T>)
    return static_cast<int64_t>(value);
  else if constexpr (std::is_class_v<T> && std::is_convertible_v<T, int64_t>)
    return static_cast<int64_t>(value);  // a number that its type holds
  else
    return value;
}

namespace detail {

template <>
struct Words<asc_unary_config> {
  static constexpr uint32_t count = 10;
};
template <>
struct Words<asc_binary_config> {
  static constexpr uint32_t count = 14;
};

inline void put(Key& key, const asc_unary_config& c) {
  put(key, named("dst_block_stride", c.dst_block_stride));
  put(key, named("src_block_stride", c.src_block_stride));
  put(key, named("dst_repeat_stride", c.dst_repeat_stride));
  put(key, named("src_repeat_stride", c.src_repeat_stride));
  put(key, named("repeat", c.repeat));
}
inline void put(Key& key, const asc_binary_config& c) {
  put(key, named("dst_block_stride", c.dst_block_stride));
  put(key, named("src0_block_stride", c.src0_block_stride));
  put(key, named("src1_block_stride", c.src1_block_stride));
  put(key, named("dst_repeat_stride", c.dst_repeat_stride));
  put(key, named("src0_repeat_stride", c.src0_repeat_stride));
  put(key, named("src1_repeat_stride", c.src1_repeat_stride));
  put(key, named("repeat", c.repeat));
}

}  // namespace detail
}  // namespace cubecore
