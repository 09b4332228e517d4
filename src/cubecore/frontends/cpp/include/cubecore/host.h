// Host programs: launches from a program's own main, and what it asks of the device.
// Pages: the launch operator `<<<blocks, l2ctrl, stream>>>`; acl calls.
#pragma once

#include "cubecore/device.h"
#include "cubecore/entry.h"
#include "cubecore/keywords.h"

extern "C" {
void cubecore_register(const char* name, const char* kind, const char* file, uint32_t line,
                       bool auto_sync);
}

namespace cubecore {

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

// A kernel of a program's files: its kind, and where it is written.
struct Registered {
  Registered(const char* name, const char* kind, const char* file, uint32_t line, bool auto_sync) {
    cubecore_register(name, kind, file, line, auto_sync);
  }
};

}  // namespace cubecore

#define CUBECORE_LAUNCH(NAME, CONFIG, ARGUMENTS) \
  ::cubecore::launched(#NAME, ::cubecore::first_of CONFIG, [&] { NAME ARGUMENTS; })
