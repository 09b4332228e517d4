// Constants of the kernel's libraries, which lie in global memory on the chip: Python puts a copy
// there when one is first used.
#pragma once

#include <dlfcn.h>

#include <vector>

#include "child/exchange.h"
#include "child/libraries.h"
#include "recording/lines.h"

namespace {

struct Constant {
  uintptr_t start;
  uint64_t bytes;  // 0: of no constant
  int64_t address;
};

std::vector<Constant> constants;

int64_t constant_at(uintptr_t pointer, int64_t otherwise) {
  for (const Constant& each : constants)
    if (pointer - each.start < each.bytes)
      return each.address + static_cast<int64_t>(pointer - each.start);
  Dl_info library = {};
  if (dladdr(reinterpret_cast<const void*>(pointer), &library) == 0) return otherwise;
  const uintptr_t base = reinterpret_cast<uintptr_t>(library.dli_fbase);
  Message question(CONSTANT, current->number);
  question.text(file_of(library)).word(pointer - base).where(&current->last);
  Command& answer = asked(current, question);
  Constant found = {};
  found.start = base + answer.word();
  found.bytes = answer.word();
  found.address = static_cast<int64_t>(answer.word());
  if (found.bytes == 0) return otherwise;
  constants.push_back(found);
  return found.address + static_cast<int64_t>(pointer - found.start);
}

}  // namespace
