// Macros of operator projects, and small helpers. Pages: "Kernel-Tiling" with its macros,
// "设置Kernel类型", "Tiling模板编程", GetUserWorkspace, GetSysWorkSpacePtr, CeilDivision, Nop,
// ICachePreLoad, GetSystemCycle(ISASI), PopStackBuffer.
#pragma once

#include <cxxabi.h>

#include <algorithm>
#include <string>
#include <tuple>
#include <type_traits>
#include <typeinfo>

#include "cubecore/sync/pipe.h"
#include "cubecore/te/integers.h"

#define KERNEL_TASK_TYPE_DEFAULT(TYPE)
// The key may be any constant, so that the compiler says its value.
#define KERNEL_TASK_TYPE(KEY, TYPE)                                      \
  ({                                                                     \
    [[gnu::used]] static constexpr ::cubecore::TypeOfKey cubecore_type = \
        ::cubecore::type_of_key(KEY, #TYPE, __func__);                   \
  })

#define TILING_KEY_IS(KEY) (cubecore_launch()->tiling_key == static_cast<uint64_t>(KEY))
#define TILING_KEY_VAR (cubecore_launch()->tiling_key)
#define TILING_KEY_LIST(...)

#define REGISTER_TILING_DEFAULT(STRUCT) using cubecore_tiling_default [[maybe_unused]] = STRUCT
#define REGISTER_TILING_FOR_TILINGKEY(CONDITION, STRUCT)
#define REGISTER_NONE_TILING
#define GET_TILING_DATA_WITH_STRUCT(STRUCT, NAME, FROM) \
  STRUCT NAME;                                          \
  ::cubecore::copied(&NAME, FROM)
#define GET_TILING_DATA(NAME, FROM) GET_TILING_DATA_WITH_STRUCT(cubecore_tiling_default, NAME, FROM)
#define GET_TILING_DATA_MEMBER(STRUCT, MEMBER, NAME, FROM) \
  decltype(STRUCT::MEMBER) NAME;                           \
  ::cubecore::copied(&NAME, &reinterpret_cast<const STRUCT*>(FROM)->MEMBER)
#define GET_TILING_DATA_PTR_WITH_STRUCT(STRUCT, NAME, FROM) \
  STRUCT* NAME = ::cubecore::tiling_struct<STRUCT>(FROM)
#define COPY_TILING_WITH_STRUCT(STRUCT, FROM, NAME) \
  STRUCT* NAME = ::cubecore::tiling_struct<STRUCT>(FROM)
#define COPY_TILING_WITH_ARRAY(TYPE, COUNT, FROM, NAME) \
  const TYPE(*NAME)[COUNT] = reinterpret_cast<const TYPE(*)[COUNT]>(FROM)

#define ASCENDC_TPL_ARGS_DECL(...)
#define ASCENDC_TPL_SEL(...)
#define ASCENDC_TPL_SEL_PARAM(...)

// Without a page: printing is always on.
#define ENABLE_PRINTF()

#define likely(CONDITION) __builtin_expect(!!(CONDITION), 1)
#define unlikely(CONDITION) __builtin_expect(!!(CONDITION), 0)

#ifndef CUBECORE_PART  // host code is of neither core
#define CUBECORE_PART 0
#endif
#define ASCEND_IS_AIC constexpr(CUBECORE_PART == 1)
#define ASCEND_IS_AIV constexpr(CUBECORE_PART == 2)
#define ASCEND_IS_NOT_AIC constexpr(CUBECORE_PART != 1)
#define ASCEND_IS_NOT_AIV constexpr(CUBECORE_PART != 2)
#define ASC_IS_AIC constexpr(CUBECORE_PART == 1)
#define ASC_IS_AIV constexpr(CUBECORE_PART == 2)

namespace cubecore {

// A struct of tiling data by its address, or itself (the example of COPY_TILING_WITH_STRUCT).
template <typename T, typename From>
inline T* tiling_struct(From* from) {
  return reinterpret_cast<T*>(const_cast<std::remove_const_t<From>*>(from));
}
template <typename T>
inline T* tiling_struct(const T& from) {
  return const_cast<T*>(&from);
}

// What compile/kinds.py reads in a library: the type of an entry's kernel for a tiling key.
struct TypeOfKey {
  char mark[24], type[40], entry[128];
  uint64_t key;
};
constexpr TypeOfKey type_of_key(uint64_t key, const char* type, const char* entry) {
  TypeOfKey made = {"cubecore type of key", {}, {}, key};
  for (size_t n = 0; n + 1 < sizeof(made.type) && type[n] != 0; ++n) made.type[n] = type[n];
  for (size_t n = 0; n + 1 < sizeof(made.entry) && entry[n] != 0; ++n) made.entry[n] = entry[n];
  return made;
}

template <typename T>
inline void copied(T* to, const void* from, CUBECORE_AT) {
  const Launch* launch = cubecore_launch();
  if (reinterpret_cast<uint64_t>(from) == launch->tiling && launch->tiling_bytes < sizeof(T)) {
    int state = 0;
    std::string name = abi::__cxa_demangle(typeid(T).name(), nullptr, nullptr, &state);
    name = name.substr(name.rfind(':') + 1);
    std::string need = "have the " + std::to_string(sizeof(T)) + " B of " + name;
    std::string got = std::to_string(launch->tiling_bytes) +
                      " B\nhost and kernel need the same struct of tiling data";
    cubecore_refuse("tiling data", need.c_str(), got.c_str(), &at);
  }
  std::memcpy(static_cast<void*>(to), from, sizeof(T));
}

}  // namespace cubecore

namespace AscendC {

constexpr int32_t MIX = 0, AIC = 1, AIV = 2;
// The part that is compiled, for which public tests assign another: that changes nothing.
struct CoreType {
  constexpr operator int32_t() const { return CUBECORE_PART; }
  constexpr const CoreType& operator=(int32_t) const { return *this; }
};
constexpr CoreType g_coreType{};
// What public tests call to choose a part; no page has it.
inline void SetGCoreType(int32_t) {}

// What public kernels compare g_coreType with.
constexpr int32_t AIC_TYPE = 1, AIV_TYPE = 2;

// Bytes of a core's memories, by the names of public kernels; an architecture's chips share them.
#ifndef __NPU_HOST__  // where public op_hosts have names of their own
constexpr uint32_t TOTAL_L1_SIZE = 512 * 1024, TOTAL_L0A_SIZE = 64 * 1024;
constexpr uint32_t TOTAL_L0B_SIZE = 64 * 1024,
                   TOTAL_L0C_SIZE = (cubecore::is_950 ? 256 : 128) * 1024;
constexpr uint32_t TOTAL_UB_SIZE = (cubecore::is_950 ? 256 : 192) * 1024;
// Without what mix launches keep of UB.
constexpr uint32_t TOTAL_VEC_LOCAL_SIZE = TOTAL_UB_SIZE - 8 * 1024;

// Pages "SIMD BuiltIn关键字" and "NPU架构版本": what kernels may use. On 3510 the options of the
// vendor's compiler that give up 6 KB and 2 KB more of UB change nothing here.
constexpr uint64_t BISHENG_VF_STACK = 0, ASC_UB_RESERVE = 0;
constexpr uint64_t ASC_UB_SIZE =
    cubecore::is_950 ? 248 * 1024 + BISHENG_VF_STACK + ASC_UB_RESERVE : 192 * 1024 - 256;
constexpr uint64_t ASC_L1_SIZE = 512 * 1024 - (cubecore::is_950 ? 0 : 256);
constexpr uint64_t ASC_L0A_SIZE = 64 * 1024, ASC_L0B_SIZE = 64 * 1024;
constexpr uint64_t ASC_L0C_SIZE = (cubecore::is_950 ? 256 : 128) * 1024;
constexpr uint64_t ASC_BT_SIZE = (cubecore::is_950 ? 4 : 1) * 1024;
#endif

// Sizes of elements, and numbers of temporaries, by the names of public kernels.
constexpr uint32_t B8_BYTE_SIZE = 1, B16_BYTE_SIZE = 2, B32_BYTE_SIZE = 4, B64_BYTE_SIZE = 8;
constexpr uint32_t TWO_OF_STACK_BUFFER = 2, THREE_OF_STACK_BUFFER = 3;

struct TrueType {
  static constexpr bool value = true;
};
struct FalseType {
  static constexpr bool value = false;
};
template <bool condition, typename A, typename B>
using Conditional = std::conditional<condition, A, B>;
template <typename A, typename B>
struct IsSameType {
  static constexpr bool value = std::is_same_v<A, B>;
};

inline uint8_t* GetUserWorkspace(uint8_t* workspace) {
  cubecore_workspace(workspace);
  return workspace;
}
// Of an operator project the framework's own, else as the kernel has set it.
inline uint8_t* GetSysWorkSpacePtr() {
  uint8_t* given = detail::core_state().workspace;
  return given != nullptr ? given : reinterpret_cast<uint8_t*>(cubecore_launch()->workspace);
}
inline void SetSysWorkspace(uint8_t* workspace) {
  cubecore_workspace(workspace);
  detail::core_state().workspace = workspace;
}
inline void SetSysWorkSpace(uint8_t* workspace) { SetSysWorkspace(workspace); }
// Without a page, as public kernels call it.
inline void SetSysWorkspaceForce(uint8_t* workspace) { SetSysWorkspace(workspace); }
template <typename T, typename U>
constexpr T CeilDivision(T value, U divisor) {
  return static_cast<T>((value + divisor - 1) / divisor);
}
// Other names of the same, which kernels define for themselves as well: theirs come first.
#define CUBECORE_ROUNDED(NAME, RESULT)                                               \
  template <typename T, typename U, typename... None>                                \
  constexpr T NAME(T value, U unit, None...) {                                       \
    static_assert(sizeof...(None) == 0, #NAME " must have two arguments, got more"); \
    return static_cast<T>(RESULT);                                                   \
  }
CUBECORE_ROUNDED(CeilDiv, CeilDivision(value, unit))
CUBECORE_ROUNDED(ConstCeil, CeilDivision(value, unit))
CUBECORE_ROUNDED(DivCeil, (value + unit - 1) / unit)
CUBECORE_ROUNDED(CeilAlign, (value + unit - 1) / unit * unit)
CUBECORE_ROUNDED(AlignUp, (value + unit - 1) / unit * unit)
#undef CUBECORE_ROUNDED
namespace detail {
// Any number, by a conversion that is worse than every one between numbers.
struct AnyNumber {
  int64_t value;
  template <typename T, typename = std::enable_if_t<std::is_integral_v<T> || std::is_enum_v<T>>>
  constexpr AnyNumber(T number) : value(static_cast<int64_t>(number)) {}
};
}  // namespace detail
// Kernels' functions of this name round to 32 bytes as well: theirs come first, of whatever types.
constexpr int64_t Align(detail::AnyNumber value, detail::AnyNumber unit) {
  return CeilDivision(value.value, unit.value) * unit.value;
}
// No page has it; public kernels divide numbers so.
template <typename T, typename U, typename... None>
constexpr std::enable_if_t<std::is_integral_v<T> && std::is_integral_v<U> && sizeof...(None) == 0,
                           std::common_type_t<T, U>>
Ceil(T value, U divisor, None...) {
  return divisor == 0 ? value : (value + divisor - 1) / divisor;
}
template <uint32_t = 0>
inline void Nop() {}
inline void ICachePreLoad(int64_t) {}
inline void PRELOAD(int64_t) {}  // without a page: likewise
inline int64_t GetSystemCycle() { return 0; }

namespace detail {

// The memory that no buffer has.
template <typename T, TPosition pos>
inline void take_free(LocalTensor<T>& found) {
  constexpr uint8_t mem = memory_of(pos);
  const CoreState& state = core_state();
  uint64_t most = memory_bytes(mem), bytes = state.used[mem] < most ? most - state.used[mem] : 0;
  found.Place(pos, static_cast<int64_t>(state.used[mem]),
              static_cast<uint32_t>(bytes / sizeof(PrimT<T>)), nullptr);
}

}  // namespace detail

template <typename T, TPosition pos>
inline bool PopStackBuffer(LocalTensor<T>& popLocal) {
  detail::core_state().popped = true;
  detail::take_free<T, pos>(popLocal);
  return true;
}

// Page ScalarCast: from float to half or an integer.
template <typename T, typename U, RoundMode roundMode>
inline U ScalarCast(T value) {
  float x = static_cast<float>(value);
  if constexpr (cubecore::is_real<U>) return static_cast<U>(x);
  float rounded = x;
  if constexpr (roundMode == RoundMode::CAST_FLOOR) rounded = __builtin_floorf(x);
  if constexpr (roundMode == RoundMode::CAST_CEIL) rounded = __builtin_ceilf(x);
  if constexpr (roundMode == RoundMode::CAST_TRUNC) rounded = __builtin_truncf(x);
  if constexpr (roundMode == RoundMode::CAST_ROUND) rounded = __builtin_roundf(x);
  if constexpr (roundMode == RoundMode::CAST_RINT || roundMode == RoundMode::CAST_NONE)
    rounded = __builtin_rintf(x);
  return static_cast<U>(rounded);
}

inline bfloat16_t ToBfloat16(const float& value) { return bfloat16_t(value); }
inline float ToFloat(const bfloat16_t& value) { return static_cast<float>(value); }
template <typename T>
inline float ToFloat(const std::common_type_t<T>& value) {  // of a type that the call names
  return ToFloat(value);
}
// No page has these two; public kernels of 950 call them on what GetValue returns.
inline float ToFloat(const fp8_e5m2_t& value) {  // the upper byte of a half
  return static_cast<float>(__builtin_bit_cast(half, static_cast<uint16_t>(value.bits << 8)));
}
inline float ToFloat(const fp8_e4m3fn_t& value) {
  int size = value.bits & 0x7f, exponent = size >> 3, fraction = size & 7;
  float found = size == 0x7f ? __builtin_nanf("")
                             : __builtin_ldexpf(static_cast<float>(fraction + (exponent ? 8 : 0)),
                                                (exponent ? exponent : 1) - 10);
  return value.bits & 0x80 ? -found : found;
}

}  // namespace AscendC

using AscendC::g_coreType;  // kernels name them both ways
using AscendC::GetSysWorkSpacePtr;
using AscendC::GetUserWorkspace;

// No page has it; public kernels copy arrays of tiling data so, which are whole words of 64 bits.
inline void copy_data_align64(uint8_t* to, const uint8_t* from, size_t bytes) {
  std::memcpy(to, from, bytes);
}

// The least and the most of two numbers, as kernels name them without a namespace; std's come
// first.
template <typename T, typename U, typename... None,
          typename = std::enable_if_t<std::is_arithmetic_v<T> && std::is_arithmetic_v<U>>>
constexpr std::common_type_t<T, U> min(T a, U b, None...) {
  static_assert(sizeof...(None) == 0, "min must have two arguments, got more");
  return a < b ? a : b;
}
template <typename T, typename U, typename... None,
          typename = std::enable_if_t<std::is_arithmetic_v<T> && std::is_arithmetic_v<U>>>
constexpr std::common_type_t<T, U> max(T a, U b, None...) {
  static_assert(sizeof...(None) == 0, "max must have two arguments, got more");
  return a < b ? b : a;
}
