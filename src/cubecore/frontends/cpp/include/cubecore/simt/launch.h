// Calls of threads: a kernel's, on all blocks, and a function's, which vector code starts.
// Pages: SIMT and mixed programming, kernel configuration, asc_vf_call.
#pragma once

#include <tuple>
#include <utility>

#include "cubecore/seam/entry.h"
#include "cubecore/simt/record.h"

namespace cubecore {
template <Mem mem, typename T>
struct Array;
}

namespace cubecore::simt {

constexpr uint64_t LOW_ADDRESSES = 1ull << 32;  // those of local memories

template <typename F>
inline Call call_of(const F& thread, bool takes_structs = false) {
  return {[](const void* context) { (*static_cast<const F*>(context))(); }, &thread, takes_structs};
}

template <typename F>
inline void run_grid(const F& thread) {
  const Call call = call_of(thread);
  cubecore_simt_grid(&call);
}

// Enters a kernel of threads, whose arguments are words.
template <typename... P, size_t... N>
inline void enter_with(void (*kernel)(P...), const uint64_t* words, std::index_sequence<N...>) {
  (void)words;
  std::tuple<std::decay_t<P>...> held(argument_of<std::decay_t<P>>(words[N])...);
  run_grid([&] { std::apply(kernel, held); });
}
template <typename... P>
inline void enter(void (*kernel)(P...), const uint64_t* words) {
  guarded([&] { enter_with(kernel, words, std::index_sequence_for<P...>{}); });
}

// What vector code passes, as threads see it: an address in UB is one of the memory that they have.
template <typename T>
inline T for_threads(const T& value) {
  if constexpr (std::is_pointer_v<T>) {
    const uint64_t address = reinterpret_cast<uint64_t>(value);
    return address < LOW_ADDRESSES ? reinterpret_cast<T>(cubecore_simt_pointer(address)) : value;
  } else {
    return value;
  }
}
template <Mem mem, typename T>
inline T* for_threads(const Array<mem, T>& array) {
  return for_threads(array.pointer);
}

template <typename... P, typename... A>
inline void call_block(void (*function)(P...), const dim3& threads, const Where& at, A&&... given) {
  std::tuple<std::decay_t<P>...> held(static_cast<std::decay_t<P>>(for_threads(given))...);
  auto thread = [&] { std::apply(function, held); };
  const Call call = call_of(thread, (std::is_class_v<std::decay_t<P>> || ...));
  cubecore_simt_block(&call, &threads, &at);
}

// Static memory of a block, one for each declaration; dynamic memory, as the launch gives it.
template <typename T>
inline T& fixed(const void* site) {
  return *static_cast<T*>(cubecore_simt_static(site, sizeof(T), alignof(T)));
}
template <typename T>
inline T* dynamic() {
  return static_cast<T*>(cubecore_simt_dynamic());
}

template <typename... T>
struct FirstOf {
  using type = void;
};
template <typename T, typename... R>
struct FirstOf<T, R...> {
  using type = T;
};
template <typename... T>
using First = typename FirstOf<T...>::type;
template <typename T>
constexpr bool is_dimensions = std::is_same_v<std::decay_t<T>, dim3>;

}  // namespace cubecore::simt
