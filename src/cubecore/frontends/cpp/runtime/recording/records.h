// What the runtime records, in the recorder's own numbers.
#pragma once

#include <stdint.h>

#include <vector>

#include "cubecore/seam/abi.h"
#include "recording/buffers.h"
#include "recording/order.h"
#include "recording/stretches.h"

using cubecore::Launch;
using cubecore::Where;

namespace {

constexpr uint32_t CAPACITY = 8192;
constexpr uint32_t MOST_ADDRESSES = CAPACITY * 8;
constexpr uint32_t MOST_READS = 4096;
constexpr uint32_t MOST_STEPS = 8;
constexpr uint32_t MOST_OPERANDS = 8;

// What one call issues: Python fills it in on a miss.
struct Step {
  uint32_t kind;
  uint32_t operands;
  uint32_t weighed;             // operands, and what is addressed by a register that is set before
  int32_t from[MOST_OPERANDS];  // which pointer of the call; -1: address 0
  uint32_t pipe;                // order.h's number
  uint32_t
      sync;  // 1 sets a flag, 2 waits, 3 a barrier; the mask: 4 count `event`, 5 by count, 6 not
  uint32_t far;  // writes global memory, or bytes of UB that are not known
  uint32_t source, target, event;
  uint32_t access[MOST_OPERANDS];                      // of UB: 1 reads, 2 writes, 0 neither
  uint32_t global_access[MOST_OPERANDS];               // of global memory, likewise
  uint32_t memory[MOST_OPERANDS];                      // abi.h's number, 0 if it is not known
  int64_t low[MOST_OPERANDS], high[MOST_OPERANDS];     // bytes, from the address on
  int64_t stride[MOST_OPERANDS], span[MOST_OPERANDS];  // from repeat to repeat; of a repeat
  uint32_t width;                                      // lanes of a repeat, else 0
};

struct Entry {
  uint32_t steps;
  uint32_t flags;
  uint32_t note;  // the number of a sentence that Python has for it
  Step step[MOST_STEPS];
};

constexpr uint32_t WAITS = 1, MASKED = 2, COUNTED = 4, SETS_MASK = 8, DROPPED = 16;
constexpr uint32_t NOTE = 64;

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

// The records of the core that runs, in pages that Python sees: it takes them at each question.
struct Records {
  uint32_t kinds[CAPACITY];
  uint32_t wheres[CAPACITY];
  int64_t addresses[MOST_ADDRESSES];
  struct {
    uint32_t behind, where;  // instructions of these records; the line
    uint64_t type;           // the address of its text
    int64_t address;
    uint64_t bits;
  } reads[MOST_READS];
};

struct {
  uint32_t count, addresses, reads;
} recorded = {};

Arrays arrays;  // of a launch
Records* records = nullptr;
Core* current = nullptr;

}  // namespace
