// Copies with the size of their target: 0, or an error and no copy. As annex K of ISO/IEC 9899:2011
// has them; snprintf_s takes the size and then the most characters.
#pragma once

#include <cerrno>
#include <cstdarg>
#include <cstdio>
#include <cstring>

using errno_t = int;
#ifndef EOK
#define EOK 0
#endif

inline errno_t memcpy_s(void* to, size_t most, const void* from, size_t count) {
  if (to == nullptr || from == nullptr) return EINVAL;
  if (count > most) return ERANGE;
  std::memcpy(to, from, count);
  return EOK;
}
inline errno_t memmove_s(void* to, size_t most, const void* from, size_t count) {
  if (to == nullptr || from == nullptr) return EINVAL;
  if (count > most) return ERANGE;
  std::memmove(to, from, count);
  return EOK;
}
inline errno_t memset_s(void* to, size_t most, int value, size_t count) {
  if (to == nullptr) return EINVAL;
  if (count > most) return ERANGE;
  std::memset(to, value, count);
  return EOK;
}
inline errno_t strcpy_s(char* to, size_t most, const char* from) {
  return memcpy_s(to, most, from, from == nullptr ? 0 : std::strlen(from) + 1);
}
inline int vsnprintf_s(char* to, size_t most, size_t count, const char* format, va_list values) {
  size_t room = count + 1 < most ? count + 1 : most;
  int written = std::vsnprintf(to, room, format, values);
  return written < 0 || static_cast<size_t>(written) >= room ? -1 : written;
}
inline int sprintf_s(char* to, size_t most, const char* format, ...) {
  va_list values;
  va_start(values, format);
  int written = std::vsnprintf(to, most, format, values);
  va_end(values);
  return written < 0 || static_cast<size_t>(written) >= most ? -1 : written;
}
inline int snprintf_s(char* to, size_t most, size_t count, const char* format, ...) {
  va_list values;
  va_start(values, format);
  int written = vsnprintf_s(to, most, count, format, values);
  va_end(values);
  return written;
}
