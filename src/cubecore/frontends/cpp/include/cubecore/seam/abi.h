// The seam between kernels and the recorder: what a header passes for each issue.
//
// A header calls `cubecore::issue("asc_add", at, dst, src0, src1, count)`. The runtime looks the
// name and everything but the addresses up in a table; only a miss asks Python for the instruction.
// Every function of the API ends in `CUBECORE_AT`, so that findings name the user's line.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <type_traits>

#include "cubecore_launch.h"

#define CUBECORE_AT \
  ::cubecore::Here at = {__builtin_FILE(), __builtin_FUNCTION(), __builtin_LINE()}

namespace cubecore {

#ifdef __NPU_ARCH__
constexpr bool is_950 = __NPU_ARCH__ == 3510;
#else
constexpr bool is_950 = false;  // host code, which runs on no chip
#endif

struct Where {
  const char* file;
  const char* function;
  uint32_t line;
};
// The place of a call, the last parameter of its function. A kernel's {} is never one.
struct Here : Where {
  constexpr Here(const char* file, const char* function, uint32_t line)
      : Where{file, function, line} {}
  constexpr Here(const Where& given) : Where(given) {}
};

// Thrown through the kernel of an AIC that has served its AIVs.
struct Done {};

enum class Mem : uint8_t { GM, UB, L1, L0A, L0B, L0C, BT, FB };
constexpr const char* MEMORY_LABELS[] = {"GM",  "UB",  "L1",        "L0A",
                                         "L0B", "L0C", "BiasTable", "Fixpipe"};
// Global memory for the scalar unit without its data cache.
constexpr uint8_t GM_PAST_CACHE = 0x80;

// The name of an element type, its word in C++, and its bits; specialised in types.h.
template <typename T>
struct Element {
  static constexpr const char* name = nullptr;
  static constexpr const char* word = "this type";
  static constexpr uint32_t bits = sizeof(T) * 8;
};

// An address in a memory, with the type of what lies there.
struct Pointer {
  Mem mem;
  const char* type;
  int64_t address;
};

// A parameter given by its name.
template <typename T>
struct Named {
  const char* name;
  T value;
};

template <typename T>
constexpr Named<T> named(const char* name, T value) {
  return {name, value};
}

}  // namespace cubecore

extern "C" {
// Records one call. `key` holds two words for each argument; `addresses` are the pointers' own.
void cubecore_issue(const char* call, const uint64_t* key, uint32_t words, const int64_t* addresses,
                    const cubecore::Where* at);
// The same for a call to which automatic synchronisation does not apply.
void cubecore_issue_raw(const char* call, const uint64_t* key, uint32_t words,
                        const int64_t* addresses, const cubecore::Where* at);
// Issues a call and returns what the scalar unit reads.
int64_t cubecore_ask(const char* call, const uint64_t* key, uint32_t words,
                     const int64_t* addresses, const cubecore::Where* at, uint32_t result);
// Reads `bytes` (1, 2, 4 or 8) as the scalar unit.
uint64_t cubecore_load(uint8_t mem, const char* type, int64_t address, const cubecore::Where* at);
// Reports a finding of this core and goes on.
void cubecore_finding(const char* kind, const char* subject, const char* message,
                      const cubecore::Where* at);
// Stops the launch with a sentence; `got` may have a second line, the remedy.
[[noreturn]] void cubecore_refuse(const char* subject, const char* need, const char* got,
                                  const cubecore::Where* at);
// The same for the size of a launch: a request that cannot be carried out.
[[noreturn]] void cubecore_refuse_size(const char* subject, const char* need, const char* got,
                                       const cubecore::Where* at);
void cubecore_print(const char* text);
// A core's kernel has returned: findings that no call of its brings are made.
void cubecore_ended();
// Tells the text of what a kernel threw, or the type of what is no std::exception; the launch
// stops.
void cubecore_thrown(const char* text, const char* type);
void cubecore_dump(uint8_t mem, const char* type, int64_t address, uint32_t desc, uint32_t count,
                   const uint32_t* shape, uint32_t dims, const cubecore::Where* at);
// Makes global memory what every issue so far left there.
void cubecore_flush(const cubecore::Where* at);
const cubecore::Launch* cubecore_launch();
// The address in global memory of a constant of the kernel's library; `otherwise` of anything else.
int64_t cubecore_constant(const void* pointer, int64_t otherwise);
// A word for each core that headers keep their own state in (`slot` 0 to 15).
void** cubecore_slot(uint32_t slot);
// Memory of the host that the parts of an AI Core share; its first call says how much.
uint8_t* cubecore_shared_buffer(uint64_t bytes);
// Says that bytes of UB are a buffer, which accesses that begin in it must not leave; all are
// forgotten together.
void cubecore_buffer(uint8_t mem, int64_t address, int64_t bytes);
// Says that bytes of a local memory are a tensor or an array, whose elements belong together.
void cubecore_array(uint8_t mem, int64_t address, int64_t bytes);
// An array whose accesses stay inside; not where a kernel has addresses of its own as well.
void cubecore_array_buffer(uint8_t mem, int64_t address, int64_t bytes);
void cubecore_own_addresses();
// Says that an operand of the next instruction, at `address` of a memory, is of a tensor in bytes
// [low, high), which it must not leave.
void cubecore_held(uint8_t mem, int64_t address, int64_t low, int64_t high);
void cubecore_forget_buffers();
void cubecore_mark(const cubecore::Where* at);
// Says that a library which is loaded may have pointers into UB.
void cubecore_points_into_ub();
// Says that a pointer to global memory is a workspace's: nobody needs what is left there.
void cubecore_workspace(const void* pointer);
// The line of the core's last call: of calls through a pointer, which bring no line.
const cubecore::Where* cubecore_last();
}

namespace cubecore {

namespace detail {

enum Tag : uint64_t { POINTER = 1, INTEGER = 2, REAL = 3, WORD = 4, NATURAL = 5 };

// How many words an argument takes: two, but for structs of parameters.
template <typename T>
struct Words {
  static constexpr uint32_t count = 2;
};

struct Key {
  uint64_t* words;
  int64_t* addresses;
  uint32_t used = 0;
  uint32_t pointers = 0;
};

inline void put(Key& key, const Pointer& pointer, uint64_t name = 0) {
  key.words[key.used++] = POINTER | (static_cast<uint64_t>(pointer.mem) << 4) | (name << 8);
  key.words[key.used++] = reinterpret_cast<uint64_t>(pointer.type);
  key.addresses[key.pointers++] = pointer.address;
}

inline void put(Key& key, const char* word, uint64_t name = 0) {
  key.words[key.used++] = WORD | (name << 8);
  key.words[key.used++] = reinterpret_cast<uint64_t>(word);
}

template <typename T, std::enable_if_t<std::is_arithmetic_v<T> || std::is_enum_v<T>, int> = 0>
inline void put(Key& key, T value, uint64_t name = 0) {
  if constexpr (std::is_floating_point_v<T>) {
    double real = static_cast<double>(value);
    key.words[key.used++] = REAL | (name << 8);
    std::memcpy(&key.words[key.used++], &real, 8);
  } else {
    constexpr bool natural = std::is_same_v<T, uint64_t> || std::is_same_v<T, unsigned long long>;
    key.words[key.used++] = (natural ? NATURAL : INTEGER) | (name << 8);
    key.words[key.used++] = static_cast<uint64_t>(static_cast<int64_t>(value));
  }
}

template <typename T>
inline void put(Key& key, const Named<T>& parameter) {
  put(key, parameter.value, reinterpret_cast<uint64_t>(parameter.name));
}

}  // namespace detail

template <typename... A>
inline void issue(const char* call, const Where& at, const A&... arguments) {
  uint64_t words[(detail::Words<A>::count + ... + 1)];
  int64_t addresses[sizeof...(A) + 1];
  detail::Key key{words, addresses};
  (put(key, arguments), ...);  // found by the key's namespace
  cubecore_issue(call, words, key.used, addresses, &at);
}

template <typename... A>
inline void issue_raw(const char* call, const Where& at, const A&... arguments) {
  uint64_t words[(detail::Words<A>::count + ... + 1)];
  int64_t addresses[sizeof...(A) + 1];
  detail::Key key{words, addresses};
  (put(key, arguments), ...);  // found by the key's namespace
  cubecore_issue_raw(call, words, key.used, addresses, &at);
}

template <typename... A>
inline int64_t ask(uint32_t result, const char* call, const Where& at, const A&... arguments) {
  uint64_t words[(detail::Words<A>::count + ... + 1)];
  int64_t addresses[sizeof...(A) + 1];
  detail::Key key{words, addresses};
  (put(key, arguments), ...);  // found by the key's namespace
  return cubecore_ask(call, words, key.used, addresses, &at, result);
}

// The scalar unit writes one element: of global memory by its data cache, or past it.
inline void store_bits(uint8_t mem, const char* type, int64_t address, uint64_t bits,
                       const Where& at) {
  const bool past = mem == GM_PAST_CACHE;
  const Pointer pointer{static_cast<Mem>(past ? 0 : mem), type, address};
  if (past)
    issue("store_scalar_gm", at, pointer, bits, named("cached", 0));
  else
    issue(mem == 0 ? "store_scalar_gm" : "store_scalar", at, pointer, bits);
}

// Whether a field of a call's parameters is in its range; one outside of it is a finding.
inline bool within(const char* call, const char* field, uint64_t value, uint64_t least,
                   uint64_t most, const Where& at) {
  if (least <= value && value <= most) return true;
  char said[112];
  auto wide = [](uint64_t number) { return static_cast<unsigned long long>(number); };
  if (least == most)
    std::snprintf(said, sizeof(said), "%s must be %llu, got %llu", field, wide(least), wide(value));
  else
    std::snprintf(said, sizeof(said), "%s must be in [%llu, %llu], got %llu", field, wide(least),
                  wide(most), wide(value));
  cubecore_finding("parameter", call, said, &at);
  return false;
}

constexpr int MOST_GM_BITS = 40;  // a library is loaded further from global memory

inline int64_t gm_address(const void* pointer) {
  const uint64_t address = reinterpret_cast<uint64_t>(pointer) - cubecore_launch()->gm_base;
  const int64_t found = static_cast<int64_t>(address);
  return address >> MOST_GM_BITS == 0 ? found : cubecore_constant(pointer, found);
}

}  // namespace cubecore
