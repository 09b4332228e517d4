// What automatic synchronisation puts before an instruction, and how an instruction is recorded.
#pragma once

#include "recording/calls.h"
#include "recording/lines.h"

namespace {

// True while a function of the C API issues: nothing is put before its instructions.
bool raw = false;

void push(Core* core, const Step& step, const int64_t* addresses, uint32_t where) {
  if (recorded.count + 1 > CAPACITY || recorded.addresses + MOST_OPERANDS > MOST_ADDRESSES)
    hand_over(core);
  records->kinds[recorded.count] = step.kind;
  records->wheres[recorded.count] = where;
  ++recorded.count;
  for (uint32_t operand = 0; operand < step.operands; ++operand) {
    int32_t from = step.pointers[operand];
    records->addresses[recorded.addresses++] = from < 0 ? 0 : addresses[from];
  }
}

// Records a read that the core answers itself.
void push_read(Core* core, const char* type, int64_t address, uint64_t bits, uint32_t where) {
  ++core->questions;
  if (recorded.reads == MOST_READS) hand_over(core);
  ahead.ran = true;
  records->reads[recorded.reads++] = {recorded.count, where, reinterpret_cast<uint64_t>(type),
                                      address, bits};
}

// The bytes that a step's operand may touch.
struct Reach {
  int64_t low, high;
};

Reach reach_of(const Core* core, const Step& step, uint32_t operand, const int64_t* addresses) {
  const int64_t base = addresses[step.pointers[operand]];
  const int64_t low = base + step.low[operand], high = base + step.high[operand];
  if (!core->mask.counts || step.width == 0) return {low, high};
  const int64_t repeats = (core->mask.count + step.width - 1) / step.width;
  if (repeats == 0) return {low, high};
  return {low, low + (repeats - 1) * step.stride[operand] + step.span[operand]};
}

// Drops what a step may write of the bytes that the core has of UB.
void drop_written(Core* core, const Step& step, const int64_t* addresses) {
  if (step.far != 0) return core->near.drop_all();
  for (uint32_t n = 0; n < step.operands; ++n) {
    if ((step.access[n] & order::WRITE) == 0) continue;
    if (step.pointers[n] < 0) return core->near.drop_all();
    const Reach reach = reach_of(core, step, n, addresses);
    core->near.drop(reach.low, reach.high);
  }
}

const char* const PIPE_WORDS[] = {"PIPE_S",    "PIPE_V",    "PIPE_M",  "PIPE_MTE1",
                                  "PIPE_MTE2", "PIPE_MTE3", "PIPE_FIX"};
const char* const BARRIER = "asc_sync_pipe";
const char* const NOTIFY = "asc_sync_notify";
const char* const WAIT = "asc_sync_wait";

uint64_t word_of(const char* text) { return reinterpret_cast<uint64_t>(text); }

void insert(Core* core, const char* call, const uint64_t* key, uint32_t words, const Where* at,
            uint32_t where) {
  const Entry* entry = entry_of(call, key, words, at);
  for (uint32_t n = 0; n < entry->steps; ++n) push(core, entry->step[n], nullptr, where);
}

// Orders `to` after `from`, as the compiler would; `answers` says that the other way round may come
// first.
void synchronise(Core* core, uint32_t from, uint32_t to, const Where* at, uint32_t where,
                 bool answers = true) {
  using cubecore::detail::INTEGER;
  using cubecore::detail::WORD;
  if (from == to) {
    uint64_t key[] = {WORD, word_of(PIPE_WORDS[from])};
    insert(core, BARRIER, key, 2, at, where);
    core->order->barrier(from);
    return;
  }
  uint32_t id = core->order->free_event(from, to);
  if (id == order::NONE && answers) {  // `from` waits for `to`, and knows of its waits
    synchronise(core, to, from, at, where, false);
    id = core->order->free_event(from, to);
  }
  if (id == order::NONE) id = order::EVENTS - 1;
  uint64_t key[] = {WORD, word_of(PIPE_WORDS[from]), WORD, word_of(PIPE_WORDS[to]), INTEGER, id};
  insert(core, NOTIFY, key, 6, at, where);
  insert(core, WAIT, key, 6, at, where);
  core->order->set(from, to, id);
  core->order->wait(from, to, id);
}

// What an access on pipe `to` must wait for.
void before(Core* core, uint32_t space, uint32_t to, Reach reach, bool writes, const Where* at,
            uint32_t where) {
  for (uint32_t from : {order::S, order::V, order::MTE2, order::MTE3})
    if (order::Order::pairs(from, to) &&
        core->order->conflicts(space, from, to, reach.low, reach.high, writes))
      synchronise(core, from, to, at, where);
}

void ordered(Core* core, const Step& step, const int64_t* addresses, const Where* at,
             uint32_t where) {
  order::Order& order = *core->order;
  if (step.sync == 1) order.set(step.source, step.target, step.event);
  if (step.sync == 2) order.wait(step.source, step.target, step.event);
  if (step.sync == 3) order.barrier(step.source);
  if (step.sync != 0 || step.pipe >= order::PIPES) return;
  auto each = [&](auto work) {
    for (uint32_t n = 0; n < step.weighed; ++n) {
      const uint32_t space = step.access[n] != 0 ? order::UB : order::GM;
      const uint32_t access = step.access[n] | step.global_access[n];
      if (access == 0 || step.pointers[n] < 0) continue;
      work(space, reach_of(core, step, n, addresses), (access & order::WRITE) != 0);
    }
  };
  if (!raw)
    each([&](uint32_t space, Reach reach, bool writes) {
      before(core, space, step.pipe, reach, writes, at, where);
    });
  order.begin(step.pipe);
  each([&](uint32_t space, Reach reach, bool writes) {
    order.enter(space, step.pipe, reach.low, reach.high, writes);
  });
}

}  // namespace
