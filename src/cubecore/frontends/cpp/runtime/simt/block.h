// Threads of a block: which of them runs, and what the others wait for.
//
// Threads run one after another, each until it ends or waits. A warp's threads that wait for each
// other go on together once no other thread of the warp can run: those at the lowest address of the
// code first, so that branches come together where they join.
#pragma once

#include <string.h>

#include <algorithm>
#include <vector>

#include "cubecore/seam/types.h"
#include "cubecore/simt/record.h"
#include "recording/records.h"
#include "simt/fibers.h"

extern "C" {
dim3 cubecore_threadIdx, cubecore_blockIdx, cubecore_blockDim, cubecore_gridDim;
uint32_t cubecore_thread_number = 0;
bool cubecore_first_thread = true, cubecore_simt_saturates = false;
}

namespace {

void settle_stores();

using cubecore::simt::Lane;
using cubecore::simt::Warp;

constexpr uint32_t WARP = 32, MOST_THREADS = 2048;

enum class State : uint8_t { FRESH, READY, LOOKS_AGAIN, AT_WARP, AT_BARRIER, DONE };

struct Thread {
  State state = State::FRESH;
  Fiber* fiber = nullptr;
  uintptr_t code = 0;  // where it waits
  Warp what = Warp::ACTIVE;
  Lane type = Lane::BITS;
  uint64_t value = 0, result = 0;
  int32_t argument = 0, width = 0;
  uint32_t spins = 0;         // looks at a word that another thread is to change
  const void* spun = nullptr;  // that word
  uint64_t acquired = 0;      // when it last saw what others had released
};

// The block that runs, and the call that it is of.
struct {
  bool runs = false;        // user code of threads: accesses are looked at
  bool is_grid = false;     // a kernel of threads, else a function that vector code calls
  const cubecore::simt::Call* call = nullptr;
  Core* core = nullptr;
  uint32_t threads = 0, number = 0, blocks = 1;
  uint32_t next = 0, end = 0;  // the fresh threads of the warp that runs
  uint32_t thread = 0;         // that runs
  uint32_t epoch = 0;          // barriers behind it
  uint64_t yields = 0;
  Fiber home;
  Fiber* fiber = nullptr;  // that runs
  std::vector<Thread> all = std::vector<Thread>(MOST_THREADS);
} block;

void set_thread(uint32_t number) {
  block.thread = cubecore_thread_number = number;
  const dim3& size = cubecore_blockDim;
  cubecore_threadIdx = dim3(number % size.x, number / size.x % size.y, number / size.x / size.y);
}

// The first function on a fiber: fresh threads, one after another.
void run_fresh() {
  while (true) {
    while (block.next < block.end) {
      set_thread(block.next++);
      block.call->thread(block.call->context);
      settle_stores();
      cubecore_first_thread = false;
      block.all[block.thread].state = State::DONE;
    }
    block.runs = false;
    Fiber* own = block.fiber;
    idle_fibers.push_back(own);
    switch_to(*own, block.home);
    block.runs = true;
  }
}

// Goes on with a thread that waited, or with fresh ones, until one waits or all have ended.
void go_on_with(Fiber* fiber) {
  block.fiber = fiber;
  block.runs = true;
  switch_to(block.home, *fiber);
  block.runs = false;
}

// Leaves the thread that runs in a state; it goes on when it is ready again.
void leave(State state) {
  settle_stores();
  Thread& thread = block.all[block.thread];
  const uint32_t number = block.thread;
  thread.state = state;
  thread.fiber = block.fiber;
  cubecore_first_thread = false;
  block.runs = false;
  switch_to(*thread.fiber, block.home);
  set_thread(number);
  block.runs = true;
}

// Ends the thread that runs where it is.
[[noreturn]] void end_thread() {
  settle_stores();
  block.all[block.thread].state = State::DONE;
  Fiber* own = block.fiber;
  own->begin(run_fresh);
  idle_fibers.push_back(own);
  block.runs = false;
  Fiber lost;
  switch_to(lost, block.home);
  __builtin_unreachable();
}

float lane_number(Lane type, uint64_t bits) {
  const uint32_t low = static_cast<uint32_t>(bits);
  if (type == Lane::HALF) return cubecore::widened(static_cast<uint16_t>(bits), 5, 10);
  return cubecore::float_of(low);
}

uint64_t lane_bits(Lane type, float number) {
  if (type == Lane::HALF) return cubecore::narrowed<5, 10>(number);
  return cubecore::float_bits(number);
}

uint64_t reduced(Warp what, Lane type, uint64_t one, uint64_t other) {
  if (type == Lane::INT32 || type == Lane::UINT32) {
    const uint32_t a = static_cast<uint32_t>(one), b = static_cast<uint32_t>(other);
    const bool less = type == Lane::INT32 ? static_cast<int32_t>(a) < static_cast<int32_t>(b) : a < b;
    if (what == Warp::ADD) return static_cast<uint32_t>(a + b);
    return (what == Warp::MAX) == less ? b : a;
  }
  const float a = lane_number(type, one), b = lane_number(type, other);
  if (what == Warp::ADD) return lane_bits(type, a + b);
  if (a != a) return one;  // a NaN stays one
  if (b != b) return other;
  return (what == Warp::MAX) == (a < b) ? other : one;
}

// Sums and the like over active lanes: pairs of neighbours first, as the hardware halves (page
// asc_reduce_add).
uint64_t reduced_lanes(Warp what, Lane type, const Thread* lanes, uint32_t active) {
  uint64_t values[WARP];
  uint32_t has = active;
  for (uint32_t lane = 0; lane < WARP; ++lane)
    if (active >> lane & 1) values[lane] = lanes[lane].value;
  for (uint32_t step = 1; step < WARP; step *= 2)
    for (uint32_t lane = 0; lane < WARP; lane += 2 * step) {
      const bool right = has >> (lane + step) & 1;
      if (!right) continue;
      values[lane] = has >> lane & 1 ? reduced(what, type, values[lane], values[lane + step])
                                     : values[lane + step];
      has |= 1u << lane;
    }
  return values[0];
}

// The lane that a lane's value comes from.
int32_t source_lane(const Thread& thread, int32_t lane) {
  const int32_t width = thread.width, first = lane / width * width, last = first + width - 1;
  const int32_t by = thread.argument;
  switch (thread.what) {
    case Warp::SHUFFLE:
      return first + (by % width + width) % width;
    case Warp::UP:
      return lane - by < first ? lane : lane - by;
    case Warp::DOWN:
      return lane + by > last ? lane : lane + by;
    default:
      return (lane ^ by) > last ? lane : lane ^ by;
  }
}

void inactive_lane(uint32_t thread, uint32_t lane);
void begin_warp_counts();
void end_warp_counts(uint32_t warp);

// Gives the lanes of a group what they asked for together.
void exchange(uint32_t first, uint32_t active) {
  Thread* lanes = &block.all[first];
  const Thread& one = lanes[__builtin_ctz(active)];
  uint32_t votes = 0;
  for (uint32_t lane = 0; lane < WARP; ++lane)
    if ((active >> lane & 1) && lanes[lane].value != 0) votes |= 1u << lane;
  uint64_t all = 0;
  if (one.what == Warp::ALL)
    all = votes == active;
  else if (one.what == Warp::ANY)
    all = votes != 0;
  else if (one.what == Warp::BALLOT)
    all = votes;
  else if (one.what == Warp::ACTIVE)
    all = active;
  else if (one.what >= Warp::ADD)
    all = reduced_lanes(one.what, one.type, lanes, active);
  for (uint32_t lane = 0; lane < WARP; ++lane) {
    if (!(active >> lane & 1)) continue;
    Thread& thread = lanes[lane];
    thread.result = all;
    if (one.what <= Warp::XOR) {
      const int32_t from = source_lane(thread, static_cast<int32_t>(lane));
      const bool there = from >= 0 && from < static_cast<int32_t>(WARP) && (active >> from & 1);
      if (!there) inactive_lane(first + lane, static_cast<uint32_t>(from));
      thread.result = there ? lanes[from].value : ~0ull;
    }
    thread.state = State::READY;
  }
}

// Runs a warp until each of its threads has ended, waits for the block or looks again at a word.
void run_warp(uint32_t first, uint32_t behind, bool fresh) {
  begin_warp_counts();
  block.next = fresh ? first : behind;
  block.end = behind;
  while (block.next < block.end) go_on_with(idle_fiber(run_fresh));
  while (true) {
    bool ran = false;
    for (uint32_t n = first; n < behind; ++n) {
      if (block.all[n].state != State::READY) continue;
      ran = true;
      go_on_with(block.all[n].fiber);
    }
    if (ran) continue;
    uintptr_t lowest = UINTPTR_MAX;
    for (uint32_t n = first; n < behind; ++n)
      if (block.all[n].state == State::AT_WARP) lowest = std::min(lowest, block.all[n].code);
    if (lowest == UINTPTR_MAX) break;
    uint32_t active = 0;
    for (uint32_t n = first; n < behind; ++n)
      if (block.all[n].state == State::AT_WARP && block.all[n].code == lowest)
        active |= 1u << (n - first);
    exchange(first, active);
  }
  end_warp_counts(first / WARP);
}

}  // namespace
