// Host programs: launches from a program's own main, and what it asks of the device.
// Pages: the launch operator `<<<blocks, l2ctrl, stream>>>`; acl calls.
#pragma once

#include "cubecore/entry.h"
#include "cubecore/keywords.h"

extern "C" {
// What the program asks: 0 launch, 1 memory of `a` bytes, 2 `b` bytes at `a` were written, 3 `a`
// is given back.
uint64_t cubecore_host(uint32_t what, uint64_t a, uint64_t b, const char* text,
                       int (*entry)(const uint64_t*), const void* context);
}

namespace cubecore {

enum Ask : uint32_t { LAUNCH, ALLOCATE, WRITTEN, FREE };

template <typename T, typename... R>
constexpr T first_of(T value, R...) {
  return value;
}

template <typename F>
inline void launched(const char* name, int64_t blocks, const F& body) {
  auto entry = +[](const uint64_t* context) -> int {
    return guarded([&] { (*reinterpret_cast<const F*>(context))(); });
  };
  cubecore_host(LAUNCH, static_cast<uint64_t>(blocks), 0, name, entry, &body);
}

inline int started(int (*program)(), int, char**) { return program(); }
inline int started(int (*program)(int, char**), int count, char** words) {
  return program(count, words);
}
inline int started(int (*program)(int, const char**), int count, char** words) {
  return program(count, const_cast<const char**>(words));
}

}  // namespace cubecore

#define CUBECORE_LAUNCH(NAME, CONFIG, ARGUMENTS) \
  ::cubecore::launched(#NAME, ::cubecore::first_of CONFIG, [&] { NAME ARGUMENTS; })
