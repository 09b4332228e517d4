// How Python enters a kernel: from 64-bit words to the parameters of a function.
#pragma once

#include <cxxabi.h>

#include <exception>
#include <typeinfo>
#include <utility>

#include "cubecore/seam/types.h"

namespace cubecore {

template <typename T>
inline T argument_of(uint64_t word) {
  if constexpr (std::is_pointer_v<T>) {
    return reinterpret_cast<T>(word);
  } else if constexpr (sizeof(T) <= 8 &&
                       (std::is_arithmetic_v<T> || is_half<T> || std::is_enum_v<T>)) {
    T value;
    std::memcpy(&value, &word, sizeof(T));
    return value;
  } else {
    return *reinterpret_cast<T*>(word);
  }
}

// False of what no array's type is named after: such pointers take any array.
template <typename T>
constexpr bool has_array_type = !std::is_void_v<T> && !std::is_same_v<T, double> &&
                                !std::is_same_v<T, bool> && !std::is_same_v<T, char>;

// A letter for each parameter, with the bytes or the element type behind it.
template <typename T>
constexpr char* described(char* text) {
  const char* type = "";
  if constexpr (std::is_pointer_v<T>) {
    *text++ = 'p';
    using Pointee = std::remove_cv_t<std::remove_pointer_t<T>>;
    if constexpr (has_array_type<Pointee>)
      if (Element<Pointee>::name != nullptr) type = Element<Pointee>::name;
  } else if constexpr (std::is_same_v<T, bool>) {
    *text++ = 'b';
  } else if constexpr (is_real<T>) {
    *text++ = 'f';
    type = std::is_same_v<T, double> ? "float64" : Element<T>::name;
  } else if constexpr (std::is_integral_v<T> || std::is_enum_v<T>) {
    *text++ = std::is_unsigned_v<T> ? 'u' : 'i';
    *text++ = static_cast<char>('0' + sizeof(T));
  } else {
    *text++ = 's';
    uint32_t size = sizeof(T), digits = 1;
    while (size / digits >= 10) digits *= 10;
    for (; digits != 0; digits /= 10) *text++ = static_cast<char>('0' + size / digits % 10);
  }
  while (*type != 0) *text++ = *type++;
  *text++ = ';';
  return text;
}

template <typename... P, size_t... N>
inline void invoke(void (*kernel)(P...), const uint64_t* words, std::index_sequence<N...>) {
  (void)words;
  kernel(argument_of<std::decay_t<P>>(words[N])...);
}

// Runs a kernel to its end; one that throws does not go on from where Python is told.
template <typename F>
inline void guarded(const F& work) {
  try {
    try {
      work();
    } catch (const Done&) {
    }
    cubecore_ended();
  } catch (const std::exception& error) {
    cubecore_thrown(error.what(), nullptr);
  } catch (...) {
    const std::type_info* type = abi::__cxa_current_exception_type();
    cubecore_thrown(nullptr, type == nullptr ? nullptr : type->name());
  }
}

template <typename... P>
inline void cubecore_enter(void (*kernel)(P...), const uint64_t* words) {
  guarded([&] { invoke(kernel, words, std::index_sequence_for<P...>{}); });
}

template <size_t size>
struct Text {
  char letters[size];
};

// The text from which Python takes an entry's parameters: a mark to find it by, and the letters.
template <size_t size, typename... P>
constexpr auto cubecore_signature_of(const char (&mark)[size], void (*)(P...)) {
  Text<size + 64 * sizeof...(P)> text{};
  char* end = text.letters;
  for (const char* letter = mark; *letter != 0; ++letter) *end++ = *letter;
  ((end = described<std::decay_t<P>>(end)), ...);
  return text;
}

}  // namespace cubecore
