// Numbers of the lines that issue: a line, its function, and the calls that lead there.
#pragma once

#include <dlfcn.h>

#include <vector>

#include "child/libraries.h"
#include "recording/calls.h"

namespace {

constexpr uint32_t MOST_FRAMES = 24;

// Return addresses from the innermost frame out, by frame pointers: everything is compiled with
// them. A frame of a library that was not ends the walk.
struct Trail {
  uint64_t hash = 0;
  uint32_t depth = 0;
  uintptr_t address[MOST_FRAMES];

  void enter(uintptr_t code) {
    address[depth] = code;
    hash = mixed(hash, address[depth++]);
  }
  void walk(uintptr_t frame, uintptr_t top) {
    while (depth < MOST_FRAMES && frame < top) {
      const uintptr_t* words = reinterpret_cast<const uintptr_t*>(frame);
      enter(words[1]);
      if (words[0] <= frame || words[0] % sizeof(uintptr_t) != 0) return;
      frame = words[0];
    }
  }
};

struct Line {
  const char* file;
  const char* function;  // one line of a template is several functions
  uint32_t line;
  uint32_t number;
  uint64_t trail;
};

constexpr Line NO_LINE = {nullptr, nullptr, 0, 0, 0};

std::vector<Line> lines(4096, NO_LINE);
size_t lines_used = 0;

Line* cell_of(const char* file, const char* function, uint32_t line, uint64_t trail) {
  size_t mask = lines.size() - 1;
  uint64_t names = reinterpret_cast<uint64_t>(file) ^ reinterpret_cast<uint64_t>(function);
  size_t at = mixed(names ^ trail, line) & mask;
  while (lines[at].file != nullptr && (lines[at].file != file || lines[at].function != function ||
                                       lines[at].line != line || lines[at].trail != trail))
    at = (at + 1) & mask;
  return &lines[at];
}

// Asks Python: addresses are those in the kernel's library, and the runtime's own are left out.
uint32_t asked_number(const Where* at, const Trail& trail, bool by_pointer) {
  Dl_info own = {}, found = {};
  dladdr(reinterpret_cast<const void*>(&asked_number), &own);
  const char* library = nullptr;
  uint64_t frames[MOST_FRAMES];
  uint32_t depth = 0;
  for (uint32_t n = 0; n < trail.depth; ++n) {
    if (dladdr(reinterpret_cast<const void*>(trail.address[n]), &found) == 0) continue;
    if (found.dli_fbase == own.dli_fbase) continue;
    if (library == nullptr) library = file_of(found);
    frames[depth++] = trail.address[n] - reinterpret_cast<uintptr_t>(found.dli_fbase);
  }
  Message question(WHERE, current->number);
  question.where(at).word(by_pointer).text(library).word(depth);
  question.raw(frames, depth * sizeof(frames[0]));
  return static_cast<uint32_t>(asked(current, question).word());
}

__attribute__((noinline)) uint32_t new_line(const Where* at, const Trail& trail,
                                            const Where* near = nullptr) {
  uint32_t number = asked_number(near == nullptr ? at : near, trail, near != nullptr);
  *cell_of(at->file, at->function, at->line, trail.hash) =
      Line{at->file, at->function, at->line, number, trail.hash};
  if (2 * ++lines_used > lines.size()) {
    std::vector<Line> old(lines.size() * 2, NO_LINE);
    old.swap(lines);
    for (const Line& each : old)
      if (each.file != nullptr) *cell_of(each.file, each.function, each.line, each.trail) = each;
  }
  return number;
}

// The line of a pointer's access is where its instruction is: Python finds it, else `near`.
__attribute__((noinline)) uint32_t number_of_access(const Where* near) {
  static const Where by_pointer = {"", "", 0};
  Trail trail;
  trail.enter(current->access.line);
  trail.walk(current->access.frame, current->top);
  Line* found = cell_of(by_pointer.file, by_pointer.function, 0, trail.hash);
  return found->file != nullptr ? found->number : new_line(&by_pointer, trail, near);
}

uint32_t number_of(const Where* at) {
  if (current->access.code != 0) return number_of_access(at);
  Trail trail;
  trail.walk(reinterpret_cast<uintptr_t>(__builtin_frame_address(0)), current->top);
  Line* found = cell_of(at->file, at->function, at->line, trail.hash);
  return found->file != nullptr ? found->number : new_line(at, trail);
}

}  // namespace
