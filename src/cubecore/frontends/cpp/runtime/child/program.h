// A host program: its kernels, its main, and its memory for transfers.
#pragma once

#include <setjmp.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <algorithm>
#include <unordered_set>
#include <vector>

#include "cubecore/host/device.h"
#include "recording/records.h"

// A kernel of a host program, as its file says.
struct Registration {
  const char* name;
  const char* kind;
  const char* file;
  uint32_t line;
  uint32_t auto_sync;
};

namespace {

std::vector<Registration> registered;
std::unordered_set<void*> host_memory;

}  // namespace

extern "C" {

void cubecore_register(const char* name, const char* kind, const char* file, uint32_t line,
                       bool auto_sync) {
  registered.push_back(Registration{name, kind, file, line, auto_sync});
}

// Where a program's exit(code) leads: its calls are linked to __wrap_exit.
static jmp_buf leaving;
static bool inside = false;
static int exit_code = 0;

[[noreturn]] void __wrap_exit(int code) {
  if (!inside || current != nullptr) exit(code);
  exit_code = code;
  longjmp(leaving, 1);
}

// A program's own path, for which it looks at /proc/self/exe: that is the interpreter's here.
static const char* program_path = nullptr;

ssize_t __wrap_readlink(const char* path, char* buffer, size_t size) {
  if (program_path == nullptr || strcmp(path, "/proc/self/exe") != 0)
    return readlink(path, buffer, size);
  size_t length = std::min(strlen(program_path), size);
  memcpy(buffer, program_path, length);
  return static_cast<ssize_t>(length);
}

void* cubecore_host_memory(size_t size) {
  void* made = malloc(size);
  if (made != nullptr) host_memory.insert(made);
  return made;
}

bool cubecore_free_host(void* pointer) {
  if (pointer == nullptr) return true;
  if (host_memory.erase(pointer) == 0) return false;
  free(pointer);
  return true;
}

}  // extern "C"

namespace {

// Runs a program's main to its end, or to its exit; returns its code.
int started(int (*program)(int, char**), int count, char** words) {
  program_path = count > 0 ? words[0] : nullptr;
  if (setjmp(leaving) == 0) {
    inside = true;
    exit_code = program(count, words);
  }
  inside = false;
  return exit_code & 0xFF;
}

}  // namespace
