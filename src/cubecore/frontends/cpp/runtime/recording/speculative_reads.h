// Cores that go on behind a wait for others before it was executed, where no kernel can notice.
//
// Only a pointer into global memory would: so there is no access to it meanwhile, and a launch that
// has one ends, and runs again with cores that pause at each wait.
#pragma once

#include <sys/mman.h>

#include <utility>
#include <vector>

#include "recording/records.h"

namespace {

struct {
  std::vector<std::pair<uintptr_t, size_t>> arrays;  // pages of global memory that are open to all
  uintptr_t base = 0;
  size_t bytes = 0;  // 0: cores pause at each wait, and ask for each value
  bool shut = false;
  bool ran = false;  // a core has gone on behind a wait, or had a value ahead
} ahead;

void open_arrays(bool open) {
  for (auto [start, size] : ahead.arrays)
    mprotect(reinterpret_cast<void*>(start), size, open ? PROT_READ | PROT_WRITE : PROT_NONE);
}

// Leaves the arrays of a launch alone open: a pointer that leaves them is found between them.
void close_gaps(uintptr_t base, size_t bytes) {
  mprotect(reinterpret_cast<void*>(base), bytes, PROT_NONE);
  open_arrays(true);
}

void guard_for(const Core* core) {
  if (ahead.shut == core->ahead) return;
  ahead.shut = core->ahead;
  open_arrays(!ahead.shut);
}

// A core goes on: others ran meanwhile, perhaps.
void resume(Core* core) {
  current = core;
  guard_for(core);
}

// All that the core has issued was executed.
void caught_up(Core* core) {
  core->ahead = false;
  resume(core);
}

// Whether an access at an address is one that a core which went on may not have.
bool kept_from(uintptr_t address) { return ahead.shut && address - ahead.base < ahead.bytes; }

}  // namespace
