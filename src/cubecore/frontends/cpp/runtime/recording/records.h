// What the runtime records, in the recorder's own numbers.
#pragma once

#include <stdint.h>

#include <vector>

#include "cubecore/seam/abi.h"
#include "cubecore_records.h"
#include "recording/buffers.h"
#include "recording/order.h"
#include "recording/stretches.h"

using cubecore::Launch;
using cubecore::Where;

namespace {

struct Entry {
  uint32_t steps;
  uint32_t flags;
  uint32_t note;  // the number of a sentence that Python has for it
  Step step[MOST_STEPS];
};

// The mask, as far as it says how many elements an instruction takes: by its count, or not.
struct Mask {
  bool counts = false;
  int64_t count = UINT32_MAX;  // all bits are on at first

  void follow(const Step& step) {
    if (step.sync == 4) count = step.event;
    if (step.sync == 5 || step.sync == 6) counts = step.sync == 5;
  }
};

}  // namespace

struct Stack;
namespace {
struct OpenFunction;
}

// An access of UB by a plain pointer: the instruction of the host, the address behind it, as that
// behind a call, or behind the kernel's call of what it is in, and its frame.
struct PointerAccess {
  uintptr_t code = 0, line = 0, frame = 0;  // 0 while there is none
  uint64_t address = 0;
};

struct Core {
  uint32_t number;
  uint32_t stale;  // a count stands in the mask: 1 + the line that left it
  uint32_t stale_note;
  Launch launch;
  Where last;
  PointerAccess access;
  void* slots[16];
  OpenFunction* function = nullptr;  // of registers, once there was one
  uint64_t questions = 0;            // that it asked, or answered itself
  Mask mask;
  order::Order* order;  // of automatic synchronisation, else null
  Stretches near;
  Buffers buffers;
  uintptr_t top;  // the frame that the kernel's own lie below
  bool ahead;     // it went on behind a wait that was not executed yet
  Stack* stack;
  void (*entry)(const uint64_t*);
  const uint64_t* arguments;
  std::vector<uint64_t> words;
  std::vector<uint64_t> workspaces;  // host addresses, each once
};

namespace {

struct {
  uint32_t count, addresses, reads;
} recorded = {};

Arrays arrays;  // of a launch
Records* records = nullptr;
Core* current = nullptr;
uint64_t gm_bytes = 0;  // of addresses in global memory

}  // namespace
