// Prints that a kernel writes without AscendC's name: the C library's calls are linked to these.
#pragma once

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <memory>

#include "recording/records.h"

extern "C" {

static int printed(const char* format, va_list values) {
  if (current == nullptr) return vprintf(format, values);  // host code's
  char* text = nullptr;
  int size = vasprintf(&text, format, values);
  if (size < 0) return size;
  std::unique_ptr<char, void (*)(void*)> held(text, free);
  cubecore_print(text);
  return size;
}

int __wrap_printf(const char* format, ...) {
  va_list values;
  va_start(values, format);
  int size = printed(format, values);
  va_end(values);
  return size;
}

int __wrap___printf_chk(int, const char* format, ...) {
  va_list values;
  va_start(values, format);
  int size = printed(format, values);
  va_end(values);
  return size;
}

int __wrap_puts(const char* text) { return __wrap_printf("%s\n", text); }

int __wrap_putchar(int letter) {
  __wrap_printf("%c", letter);
  return letter;
}

}  // extern "C"
