// What the runtime records, and what it asks of Python: the mirror of bridge.py.
#pragma once

#include <stdint.h>

#include "cubecore/abi.h"
#include "order.h"

using cubecore::Launch;
using cubecore::Where;

namespace {

constexpr uint32_t CAPACITY = 8192;
constexpr uint32_t MOST_ADDRESSES = CAPACITY * 8;
constexpr uint32_t MOST_STEPS = 8;
constexpr uint32_t MOST_OPERANDS = 8;

// What one call issues: Python fills it in on a miss.
struct Step {
  uint32_t kind;
  uint32_t operands;
  int32_t from[MOST_OPERANDS];  // which pointer of the call; -1: address 0
  uint32_t pipe;                // order.h's number
  uint32_t
      sync;  // 1 sets a flag, 2 waits, 3 a barrier; the mask: 4 count `event`, 5 by count, 6 not
  uint32_t source, target, event;
  uint32_t access[MOST_OPERANDS];                      // of UB: 1 reads, 2 writes, 0 neither
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

}  // namespace

// Shared with Python (bridge.py has the same fields in the same order).
struct Core {
  uint32_t number;
  uint32_t count;
  uint32_t addresses_used;
  uint32_t stale;  // a count stands in the mask: 1 + the line that left it
  uint32_t stale_note;
  uint32_t* kinds;
  uint32_t* wheres;
  int64_t* addresses;
  Launch launch;
  Where last;
  void* slots[16];
  order::Order* order;  // of automatic synchronisation, else null
  uintptr_t top;        // the frame that the kernel's own lie below
  bool ahead;           // it went on behind a wait that was not executed yet
};

typedef int (*OnMiss)(const char* call, const uint64_t* key, uint32_t words, uint32_t pointers,
                      const Where* at, Entry* entry);
typedef int (*OnWhere)(const Where* at, const char* library, const uint64_t* trail, uint32_t depth);
typedef int (*OnPause)(uint32_t core);
typedef int (*OnAsk)(uint32_t core, uint32_t kind, uint32_t result, int64_t* answer);
typedef int (*OnLoad)(uint32_t core, uint32_t mem, const char* type, int64_t address,
                      uint32_t where, uint64_t* answer);
typedef int (*OnText)(uint32_t core, uint32_t what, const char* first, const char* second,
                      const char* third, uint32_t where);
typedef int (*OnDump)(uint32_t core, uint32_t mem, const char* type, int64_t address, uint32_t desc,
                      const uint32_t* shape, uint32_t dims, uint32_t where);

typedef int (*OnMatmul)(uint32_t core, uint32_t what, const void* call, int64_t number,
                        uint32_t where, int64_t* answer);

struct Callbacks {
  OnMiss miss;
  OnWhere where;
  OnPause pause;
  OnAsk ask;
  OnLoad load;
  OnText text;
  OnDump dump;
  OnMatmul matmul;
};

namespace {

Callbacks python;
Core* current = nullptr;

[[noreturn]] void stop() { throw cubecore::Stop{}; }

}  // namespace
