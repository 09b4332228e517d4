// Register instructions as the runtime takes them: one entry each, in the block of their core.
//
// A register is a value's number, so that a copy of it costs nothing; an instruction makes new
// values. The entries of a vector function are handed over when it ends, as one instruction.
#pragma once

#include <cstring>
#include <type_traits>

#include "cubecore/seam/abi.h"
#include "cubecore/simt/launch.h"

namespace cubecore {

// Python reads these bytes as they are (launch/recording/vector_functions.py).
struct RegisterEntry {
  const char* operation;
  const char* type;    // of the lanes
  const char* source;  // of the lanes that a conversion reads
  const char* mode;    // a distribution, a pattern, a comparison, the words of a conversion
  const char* file;
  int64_t address;  // in UB
  uint64_t scalar;  // its bits
  uint32_t results[2], sources[3], mask;
  uint32_t variable;  // of the register that is loaded or stored
  uint32_t line;
};
static_assert(sizeof(RegisterEntry) == 88, "hashed in whole words");

// The counter of a loop, and the loop around it.
struct LoopCounter;
// The number of a value that no call has made: of registers until they are written. 0 is no value.
constexpr uint32_t UNWRITTEN = 1;

// The open vector function of a core, if `depth` is above 0.
//
// `ar` and `counted` are the values of AR and of what the last squeeze has counted. `by_values`: the
// bytes that some calls access are not known. `is_ar_clear`: AR was cleared outside, and not used yet.
// `is_call`: asc_vf_call began it, and its function is all that is in it.
struct RegisterBlock {
  RegisterEntry* next = nullptr;
  RegisterEntry* end = nullptr;
  uint32_t values = UNWRITTEN, variables = 0, depth = 0;
  uint32_t ar = UNWRITTEN, counted = UNWRITTEN;
  bool by_values = false, is_ar_clear = false, is_call = false;
  const LoopCounter* innermost = nullptr;
};

}  // namespace cubecore

extern "C" {
// A core's block stays where it is, and a core its kernel's: a function may keep the pointer.
__attribute__((const)) cubecore::RegisterBlock* cubecore_registers();
void cubecore_more_registers(const cubecore::Where* at);
void cubecore_begin_vector_function(const cubecore::Where* at);
// Begins one by what it is called with; returns true if it was issued at once, as it is known.
bool cubecore_call_vector_function(const cubecore::Where* at, const uint64_t* key, uint32_t words);
void cubecore_end_vector_function();
void cubecore_dump_register(uint32_t value, const char* type, uint32_t desc, uint32_t count,
                            const cubecore::Where* at);
}

namespace cubecore {

// A vector function while it runs: the outermost one is issued when it ends.
class VectorFunction {
 public:
  explicit VectorFunction(Where at) { cubecore_begin_vector_function(&at); }
  // A function with __simd_vf__ hangs on its arguments alone: a call that was met before is issued
  // without its body. `body` stands for the function.
  template <typename... A>
  VectorFunction(Where at, const char* body, const A&... arguments) {
    if constexpr (((std::is_arithmetic_v<A> || std::is_enum_v<A> || std::is_pointer_v<A>)&&...)) {
      uint64_t key[1 + sizeof...(A)] = {reinterpret_cast<uint64_t>(body)};
      uint64_t* next = key;
      (memcpy(++next, &arguments, sizeof(A)), ...);
      is_known_ = cubecore_call_vector_function(&at, key, 1 + sizeof...(A));
    } else {
      cubecore_begin_vector_function(&at);
    }
  }
  ~VectorFunction() {
    if (!is_known_) cubecore_end_vector_function();
  }
  VectorFunction(const VectorFunction&) = delete;
  bool is_known() const { return is_known_; }

 private:
  bool is_known_ = false;
};

inline RegisterEntry& register_entry(const char* operation, const char* type, const Where& at) {
  RegisterBlock& block = *cubecore_registers();
  if (block.next == block.end) cubecore_more_registers(&at);
  RegisterEntry& entry = *block.next++;
  // Field by field: at -O1 a whole one is made on the stack and copied.
  entry.operation = operation;
  entry.type = entry.source = type;
  entry.mode = "";
  entry.file = at.file;
  entry.address = 0;
  entry.scalar = 0;
  entry.results[0] = entry.results[1] = 0;
  entry.sources[0] = entry.sources[1] = entry.sources[2] = 0;
  entry.mask = entry.variable = 0;
  entry.line = at.line;
  return entry;
}

// Stands in the body of a loop whose function updates address registers (rewriting/scanner.py).
struct LoopCounter {
  const LoopCounter* outer;
  int64_t value;

  template <typename T>
  explicit LoopCounter(const T& counter)
      : outer(cubecore_registers()->innermost), value(static_cast<int64_t>(counter)) {
    cubecore_registers()->innermost = this;
  }
  ~LoopCounter() { cubecore_registers()->innermost = outer; }
  LoopCounter(const LoopCounter&) = delete;
};

inline uint32_t new_register() { return ++cubecore_registers()->values; }

}  // namespace cubecore

#define __VEC_SCOPE__                                                                            \
  if (::cubecore::VectorFunction cubecore_vector_function{                                       \
          ::cubecore::Where{__builtin_FILE(), __builtin_FUNCTION(), __builtin_LINE()}};          \
      true)

namespace cubecore {
// Its functions have the name of the call, which findings print.
struct VectorCall {
  Where at;
  // With dimensions first it runs threads.
  template <auto function, typename D, typename... A>
  std::enable_if_t<simt::is_dimensions<D>> asc_vf_call(D&& threads, A&&... arguments) const {
    simt::call_block(function, threads, at, static_cast<A&&>(arguments)...);
  }
  template <auto function, typename... A>
  std::enable_if_t<!simt::is_dimensions<simt::First<A...>>> asc_vf_call(A&&... arguments) const {
    VectorFunction cubecore_vector_function{at};
    cubecore_registers()->is_call = cubecore_registers()->depth == 1;
    function(static_cast<A&&>(arguments)...);
  }
};
}  // namespace cubecore

namespace AscendC {
// Older, without a page: as asc_vf_call.
template <auto function, typename... A>
inline void VF_CALL(A&&... arguments) {
  const ::cubecore::VectorCall call{*cubecore_last()};
  call.template asc_vf_call<function>(static_cast<A&&>(arguments)...);
}
}  // namespace AscendC

// Calls a vector function by its name, at its own line: asc_vf_call<Body>(x, n) is
// VectorCall{...}.template asc_vf_call<Body>(x, n). Page: asc_vf_call.
#define asc_vf_call                                                                        \
  ::cubecore::VectorCall{                                                                  \
      ::cubecore::Where{__builtin_FILE(), __builtin_FUNCTION(), __builtin_LINE()}}         \
      .template asc_vf_call
