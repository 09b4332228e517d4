// Host programs: launches from a program's own main, and what it asks of the device.
// Pages: the launch operator `<<<blocks, l2ctrl, stream>>>`; acl calls.
#pragma once

#include <string>
#include <tuple>
#include <utility>

#include "cubecore/host/device.h"
#include "cubecore/seam/entry.h"
#include "cubecore/seam/keywords.h"
#include "cubecore/simt/launch.h"

extern "C" {
void cubecore_register(const char* name, const char* kind, const char* file, uint32_t line,
                       bool auto_sync);
// Names a launch, so that it is found in the library of the other part.
bool cubecore_known(const char* key, void (*entry)(const uint64_t*));
}

namespace cubecore {

// A struct as host code passes it: itself, or a pointer to it.
template <typename T>
struct HostStruct {
  HostStruct(const T& given) : value(given) {}
  HostStruct(const T* given) : value(*given) {}
  operator const T&() const { return value; }

  T value;
};

// What host code passes for a kernel's parameter: any pointer for a pointer.
template <typename T>
struct FromHost {
  using type = std::conditional_t<std::is_class_v<T> && !is_half<T>, HostStruct<T>, T>;
};
template <typename T>
struct FromHost<T*> {
  using type = const void*;
};

// The words between `<<<` and `>>>`: three of a kernel of cores, with the bytes of UB that it takes
// dynamically, or four of a kernel of threads.
template <bool threads>
struct LaunchConfig {
  int64_t blocks;
  dim3 grid, block;
  uint64_t dynamic_bytes;

  // The launch as Python reads it behind the kernel's name.
  std::string text(const char* name) const {
    std::string said = name;
    const uint64_t numbers[] = {threads, grid.x,  grid.y,  grid.z,
                                block.x, block.y, block.z, dynamic_bytes};
    for (uint64_t each : numbers) said += '\t' + std::to_string(each);
    return said;
  }
};
template <typename B>
inline LaunchConfig<false> launch_config(B blocks) {
  return {static_cast<int64_t>(blocks), {}, {}, 0};
}
template <typename B, typename D>
inline LaunchConfig<false> launch_config(B blocks, D dynamic) {
  uint64_t bytes = 0;
  if constexpr (std::is_integral_v<D>) bytes = static_cast<uint64_t>(dynamic);
  return {static_cast<int64_t>(blocks), {}, {}, bytes};
}
template <typename B, typename D, typename S>
inline LaunchConfig<false> launch_config(B blocks, D dynamic, S) {
  return launch_config(blocks, dynamic);
}
template <typename S>
inline LaunchConfig<true> launch_config(dim3 grid, dim3 block, uint64_t dynamic, S) {
  const int64_t blocks = static_cast<int64_t>(grid.x) * grid.y * grid.z;
  return {blocks, grid, block, dynamic};
}

// A number for a parameter that it does not fit as it is: a null pointer written 0.
template <typename T>
struct Loose {
  T value;
  template <typename U>
  operator U*() const {
    return reinterpret_cast<U*>(static_cast<uint64_t>(value));
  }
  template <typename U, std::enable_if_t<std::is_arithmetic_v<U>, int> = 0>
  operator U() const {
    return static_cast<U>(value);
  }
};
// A pointer to a struct, for a parameter that is the struct.
template <typename T>
struct Pointed {
  T* at;
  operator const T&() const { return *at; }
  template <typename U, std::enable_if_t<std::is_convertible_v<T*, U*>, int> = 0>
  operator U*() const {
    return at;
  }
};
// A pointer to anything, for a parameter that points to bytes or elements.
struct Untyped {
  const void* at;
  template <typename U>
  operator U*() const {
    return static_cast<U*>(const_cast<void*>(at));
  }
};
template <typename T>
inline decltype(auto) loosely(T& value) {
  if constexpr (std::is_integral_v<T>)
    return Loose<T>{value};
  else if constexpr (std::is_pointer_v<T> && std::is_void_v<std::remove_pointer_t<T>>)
    return Untyped{value};
  else if constexpr (std::is_pointer_v<T> && std::is_class_v<std::remove_pointer_t<T>>)
    return Pointed<std::remove_pointer_t<T>>{value};
  else
    return (value);
}

// One launch of a file: a kernel's body and the types of its arguments. Both parts of a mix kernel
// have it, each in a library of its own.
template <int line, bool threads, typename F, typename... A>
struct KernelLaunch {
  struct Held {
    const F* body;
    std::tuple<A...>* arguments;
  };

  static void Enter(const uint64_t* context) {
    const Held& held = *reinterpret_cast<const Held*>(context);
    const auto called = [&] {
      std::apply(
          [&](A&... arguments) {
            if constexpr (std::is_invocable_v<const F&, A&...>)
              (*held.body)(arguments...);
            else
              (*held.body)(loosely(arguments)...);
          },
          *held.arguments);
    };
    guarded([&] {
      if constexpr (threads)
        simt::run_grid(called);
      else
        called();
    });
  }
  static const char* Name() { return __PRETTY_FUNCTION__; }
  static inline const bool known = cubecore_known(Name(), &Enter);
};

// Arguments are taken where the launch is written, since the other part has other globals.
template <int line, bool threads, typename F>
struct Launcher {
  const char* name;
  LaunchConfig<threads> config;
  F body;

  template <typename... A>
  void operator()(A... arguments) const {
    using Made = KernelLaunch<line, threads, F, A...>;
    std::tuple<A...> held(std::move(arguments)...);
    typename Made::Held context{&body, &held};
    (void)Made::known;
    cubecore_host(LAUNCH, static_cast<uint64_t>(config.blocks), 0, config.text(name).c_str(),
                  &Made::Enter, &context);
  }
};
template <int line, bool threads, typename F>
inline Launcher<line, threads, F> launcher(const char* name, LaunchConfig<threads> config, F body) {
  return {name, config, body};
}

// A kernel of a program's files: its kind, and where it is written.
struct Registered {
  Registered(const char* name, const char* kind, const char* file, uint32_t line, bool auto_sync) {
    cubecore_register(name, kind, file, line, auto_sync);
  }
};

// Programs are looked through for it: it says for which chips their kernels were compiled.
#define CUBECORE_TEXT(WORD) #WORD
#define CUBECORE_TEXT_OF(WORD) CUBECORE_TEXT(WORD)
[[gnu::used]] static const char architecture[] =
    "cubecore's architecture " CUBECORE_TEXT_OF(__NPU_ARCH__);
#undef CUBECORE_TEXT_OF
#undef CUBECORE_TEXT

}  // namespace cubecore

#define CUBECORE_LAUNCH(NAME, CONFIG, ARGUMENTS)                           \
  ::cubecore::launcher<__LINE__>(                                          \
      #NAME, ::cubecore::launch_config CONFIG,                             \
      [&](auto&&... cubecore_each) -> decltype((NAME)(cubecore_each...)) { \
        return (NAME)(cubecore_each...);                                   \
      }) ARGUMENTS
