// Calls of SIMT code: a kernel's blocks, or a function's threads that vector code starts; and what
// threads ask for.
#pragma once

#include <algorithm>
#include <map>

#include "child/exchange.h"
#include "recording/lines.h"
#include "simt/accesses.h"
#include "simt/atomic_hooks.h"

namespace {

constexpr uint64_t MOST_IDLE_ROUNDS = 10000;
constexpr uint32_t DEFAULT_THREADS = 1024;

[[noreturn]] void refuse_call(const char* subject, const char* need, const std::string& got,
                              bool of_size = true) {
  block.runs = false;
  threads_ub = 0;
  const auto refuse = of_size ? cubecore_refuse_size : cubecore_refuse;
  refuse(subject, need, got.c_str(), &current->last);
}

// Maps the bytes that UB is for threads: with a guard behind it, so that what leaves it is found.
void open_ub() {
  if (memory.ub.start != 0) return;
  void* pages = mmap(nullptr, UB_BYTES + UB_GUARD_BYTES, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (pages == MAP_FAILED) throw std::bad_alloc();
  memory.ub.start = reinterpret_cast<uintptr_t>(pages);
  memory.ub.end = memory.ub.start + UB_BYTES;
}

void begin_call(const cubecore::simt::Call* call, Core* core);

// Begins a call: asks for what is written of UB and of global memory. Other cores may run
// meanwhile, with calls of their own; from there to its end the call is alone.
void begin_with_memory(const cubecore::simt::Call* call, bool is_grid) {
  Core* core = current;
  open_ub();
  Message question(SIMT_BEGINS, core->number);
  question.word(is_grid);
  Command& answer = asked(core, question);
  block.is_grid = is_grid;
  cubecore_simt_saturates = !is_grid;
  begin_call(call, core);
  const uint64_t base = core->launch.gm_base;
  for (Region& each : memory.arrays) each.drop();
  memory.arrays.clear();
  for (uint64_t left = answer.word(); left != 0; --left) {
    memory.arrays.emplace_back();
    Region& made = memory.arrays.back();
    made.start = base + answer.word();
    made.end = base + answer.word();
    const uint64_t bytes = made.end - made.start;
    if (answer.word() == Written::ALL) continue;
    made.parts.resize((bytes + MARKS_BYTES - 1) / MARKS_BYTES);
    for (Written& each : made.parts) each.state = Written::UNKNOWN;
  }
  memory.last = memory.before = 0;
  memory.ub.written.begin(Written::SOME, UB_BYTES);
  if (block.is_grid) return;
  memory.ub_read.begin(Written::SOME, UB_BYTES);
  memory.ub_changed.begin(Written::SOME, UB_BYTES);
  const size_t bytes = answer.word();
  memset(reinterpret_cast<void*>(memory.ub.start + bytes), UB_POISON, UB_BYTES - bytes);
  memcpy(reinterpret_cast<void*>(memory.ub.start), answer.raw(bytes), bytes);
  memcpy(memory.ub.written.bits.data(), answer.raw((bytes + 7) / 8), (bytes + 7) / 8);
}

// Asks which bytes of a part of an array are written. Its answer comes at once: no other core runs.
void ask_marks(Region& array, uint64_t number) {
  Core* core = block.core;
  const uint64_t from = number << MARKS_BITS;
  const uint64_t bytes = std::min<uint64_t>(MARKS_BYTES, array.end - array.start - from);
  Message question(SIMT_MARKS, core->number);
  question.word(array.start - core->launch.gm_base + from).word(bytes);
  Command& answer = asked(core, question);
  Written& part = array.parts[number];
  part.begin(static_cast<Written::State>(answer.word()), bytes);
  if (part.state == Written::SOME)
    memcpy(part.bits.data(), answer.raw((bytes + 7) / 8), (bytes + 7) / 8);
  if (part.state == Written::NONE) part.state = Written::SOME;
}

void find_library(const cubecore::simt::Call* call) {
  Dl_info found = {};
  if (dladdr(reinterpret_cast<const void*>(call->thread), &found) == 0) return;
  library = reinterpret_cast<uintptr_t>(found.dli_fbase);
  memory.library_name = file_of(found);
}

uint32_t next_stamp(uint32_t stamp, bool of_ub) {
  if (++stamp < STAMP_END) return stamp;
  if (of_ub) memory.ub.drop();
  for (size_t n = 0; !of_ub && n < memory.arrays.size(); ++n) memory.arrays[n].drop();
  return 1;
}

// The threads of a block that wait for the others go on together.
void pass_barrier() {
  uint32_t waiting = 0, ended = 0, first = MOST_THREADS, other = MOST_THREADS;
  uint64_t seen = 0;
  for (uint32_t n = 0; n < block.threads; ++n) {
    const Thread& thread = block.all[n];
    if (thread.state == State::DONE) {
      ++ended;
      if (other == MOST_THREADS) other = n;
      continue;
    }
    ++waiting;
    if (first == MOST_THREADS) first = n;
    if (thread.code != block.all[first].code && other == MOST_THREADS) other = n;
    seen = std::max(seen, thread.acquired);
  }
  if (other != MOST_THREADS) {
    const Thread &one = block.all[first], &two = block.all[other];
    const bool is_over = two.state == State::DONE;
    const uint32_t code = code_of(reinterpret_cast<void*>(one.code));
    block.thread = first;
    SimtFinding* made = found_at(
        SIMT_BARRIER, code, is_over ? 0 : code_of(reinterpret_cast<void*>(two.code)));
    if (made != nullptr) {
      made->other_thread = other, made->other_writes = is_over;
      made->number = is_over ? ended : waiting;
      made->bytes = block.threads;
    }
  }
  ++block.epoch;
  for (uint32_t n = 0; n < block.threads; ++n) {
    Thread& thread = block.all[n];
    if (thread.state != State::AT_BARRIER) continue;
    thread.state = State::READY;
    thread.acquired = seen;
    thread.spun = nullptr;
  }
}

// Runs all threads of one block to their ends.
void run_block() {
  block.epoch = 0;
  for (uint32_t n = 0; n < block.threads; ++n) block.all[n] = Thread();
  bool fresh = true;
  uint64_t idle = 0;
  while (true) {
    uint32_t waiting = 0, looking = 0;
    for (uint32_t first = 0; first < block.threads; first += WARP) {
      const uint32_t behind = std::min(first + WARP, block.threads);
      if (fresh || std::any_of(&block.all[first], &block.all[behind - 1] + 1, [](const Thread& each) {
            return each.state == State::READY;
          }))
        run_warp(first, behind, fresh);
    }
    fresh = false;
    for (uint32_t n = 0; n < block.threads; ++n) {
      waiting += block.all[n].state == State::AT_BARRIER;
      if (block.all[n].state != State::LOOKS_AGAIN) continue;
      ++looking;
      block.all[n].state = State::READY;
    }
    if (looking != 0 && ++idle > MOST_IDLE_ROUNDS) {
      block.runs = false;
      refuse_call("a thread", "see a word change that it reads again and again",
                  "no thread that changes it\nblocks run in any order, and the threads of a warp "
                  "wait for each other: a thread cannot wait for another block, or for its warp",
                  false);
    }
    if (looking != 0) continue;
    count_epoch(waiting != 0);
    if (waiting == 0) return;
    idle = 0;
    pass_barrier();
  }
}

void require_threads(const dim3& size) {
  const uint64_t threads = static_cast<uint64_t>(size.x) * size.y * size.z;
  if (threads == 0 || threads > MOST_THREADS)
    refuse_call("the threads of a block", "be 1 to 2048", std::to_string(threads));
  block.threads = static_cast<uint32_t>(threads);
}

void begin_call(const cubecore::simt::Call* call, Core* core) {
  block.call = call;
  block.core = core;
  find_library(call);
  memory.findings.clear();
  memory.found.clear();
  memory.fences.clear();
  memory.block_fences.clear();
  lines_of_cores.since.clear();
  lines_of_cores.dropped.clear();
  cubecore_first_thread = true;
  const int64_t most = block.is_grid ? std::max<int64_t>(core->launch.at_once, 1) : 1;
  begin_counts(core->launch.counts != 0, static_cast<uint32_t>(most));
}

// Tells what a call has done: findings, the bytes that it wrote.
void end_call() {
  Core* core = block.core;
  Message question(SIMT_ENDS, core->number);
  question.word(number_of(&core->last)).text(memory.library_name.c_str());
  question.word(block.is_grid).word(block.threads).word(block.blocks);
  question.word(memory.findings.size());
  question.raw(memory.findings.data(), memory.findings.size() * sizeof(SimtFinding));
  count_atomics();
  question.word(static_cast<uint64_t>(core->launch.block));
  question.word(static_cast<uint64_t>(core->launch.at_once));
  question.word(counts.on ? counts.cores.size() : 0);
  if (counts.on) question.raw(counts.cores.data(), counts.cores.size() * sizeof(ThreadCounts));
  size_t changed = 0;
  for (const Region& each : memory.arrays)
    for (const Written& part : each.parts) changed += part.changed;
  question.word(changed);
  for (const Region& each : memory.arrays) {
    for (size_t n = 0; n < each.parts.size(); ++n) {
      if (!each.parts[n].changed) continue;
      const uint64_t from = n << MARKS_BITS;
      const size_t bytes = (std::min<uint64_t>(MARKS_BYTES, each.end - each.start - from) + 7) / 8;
      question.word(each.start - core->launch.gm_base + from).word(bytes);
      question.raw(each.parts[n].bits.data(), bytes);
    }
  }
  if (!block.is_grid) {
    question.raw(memory.ub_read.bits.data(), UB_BYTES / 8);
    question.raw(memory.ub_changed.bits.data(), UB_BYTES / 8);
    const char* bytes = reinterpret_cast<const char*>(memory.ub.start);
    std::string values;
    for (uint32_t n = 0; n < UB_BYTES; ++n)
      if (memory.ub_changed.has(n, 1)) values += bytes[n];
    question.raw(values.data(), values.size());
  }
  asked(core, question);
  cubecore_first_thread = true;
}

}  // namespace

extern "C" {

// The first core of the launch runs all blocks, in their order; the others have nothing to do.
void cubecore_simt_grid(const cubecore::simt::Call* call) {
  Core* core = current;
  const Launch& launch = core->launch;
  if (launch.block != 0) {
    Message question(SIMT_SHARE, core->number);
    if (counts.on) asked(core, question.word(static_cast<uint64_t>(launch.block)));
    return;
  }
  begin_with_memory(call, true);
  auto size = [](const uint64_t (&of)[3]) {
    return dim3(static_cast<uint32_t>(of[0]), static_cast<uint32_t>(of[1]),
                static_cast<uint32_t>(of[2]));
  };
  cubecore_gridDim = size(launch.grid);
  cubecore_blockDim = size(launch.threads);
  require_threads(cubecore_blockDim);
  const dim3& grid = cubecore_gridDim;
  block.blocks = grid.x * grid.y * grid.z;
  memory.static_bytes = 0;
  memory.dynamic_bytes = static_cast<uint32_t>(launch.dynamic_bytes);
  memory.dynamic_at = (UB_USABLE - std::min(memory.dynamic_bytes, UB_USABLE)) / 128 * 128;
  memory.stamp = next_stamp(memory.stamp, false);
  memory.sites.clear();
  for (uint32_t n = 0; n < block.blocks; ++n) {
    block.number = n;
    memory.ub_stamp = next_stamp(memory.ub_stamp, true);
    cubecore_blockIdx = dim3(n % grid.x, n / grid.x % grid.y, n / grid.x / grid.y);
    memory.ub.written.begin(Written::SOME, UB_BYTES);
    memset(reinterpret_cast<void*>(memory.ub.start), UB_POISON, memory.static_bytes);
    memset(reinterpret_cast<void*>(memory.ub.start + memory.dynamic_at), UB_POISON,
           memory.dynamic_bytes);
    begin_block_counts(core_of_block(n));
    run_block();
  }
  end_call();
}

void cubecore_simt_block(const cubecore::simt::Call* call, const dim3* threads, const Where* at) {
  Core* core = current;
  core->last = *at;
  begin_with_memory(call, false);
  cubecore_gridDim = dim3(static_cast<uint32_t>(core->launch.blocks));
  cubecore_blockDim = *threads;
  require_threads(*threads);
  block.blocks = 1;
  memory.stamp = next_stamp(memory.stamp, false);
  memory.ub_stamp = next_stamp(memory.ub_stamp, true);
  block.number = 0;
  cubecore_blockIdx = dim3(static_cast<uint32_t>(core->launch.block));
  begin_block_counts(0);
  threads_ub = call->takes_structs ? memory.ub.start : 0;
  run_block();
  threads_ub = 0;
  core->near.drop_all();
  end_call();
}

void cubecore_simt_bounds(uint32_t threads, uint32_t registers) {
  if (!block.runs)
    refuse_call("a function of threads",
                "be started by <<<grid, block, bytes, stream>>> or asc_vf_call",
                "a launch or call without a number of threads");
  // Page "kernel configuration": registers a thread by the most threads of a function.
  uint32_t most = threads != 0 ? threads : DEFAULT_THREADS;
  std::string need = threads != 0 ? ", as its launch bounds say" : ", as it has no __launch_bounds__";
  std::string remedy = "raise __launch_bounds__, up to 2048: above 1024 a thread has 16 registers";
  if (registers != 0) {
    most = registers <= 16 ? 2048 : registers <= 32 ? 1024 : registers <= 64 ? 512 : 256;
    need = ", as each has " + std::to_string(registers) + " registers";
    remedy = "lower __maxnreg__: 2048 threads have 16 registers each, 1024 have 32, 512 have 64";
  }
  if (block.threads <= most) return;
  refuse_call("the threads of a block", ("be at most " + std::to_string(most) + need).c_str(),
              std::to_string(block.threads) + "\n" + remedy);
}

uint64_t cubecore_simt_warp(Warp what, Lane type, uint64_t value, int32_t argument, int32_t width) {
  Thread& thread = block.all[block.thread];
  thread.what = what, thread.type = type, thread.value = value;
  thread.argument = argument, thread.width = width < 1 || width > 32 ? 32 : width;
  thread.code = reinterpret_cast<uintptr_t>(__builtin_return_address(0));
  leave(State::AT_WARP);
  return block.all[block.thread].result;
}

void cubecore_simt_barrier() {
  block.all[block.thread].code = reinterpret_cast<uintptr_t>(__builtin_return_address(0));
  leave(State::AT_BARRIER);
}

void cubecore_simt_fence(bool of_grid) {
  lines_of_cores.follows = true;
  const Fence now = {++memory.clock, block.epoch & 0xFFF};
  memory.fences[thread_id()] = now;
  if (of_grid) memory.block_fences[block.number] = now;
}

uint64_t cubecore_simt_atomic(const void* at, uint32_t bytes) {
  acquire();
  at = reinterpret_cast<const void*>(host_of(at));
  look({reinterpret_cast<uintptr_t>(at), bytes, code_of(__builtin_return_address(0)), true, true, false});
  spin(at);
  uint64_t bits = 0;
  memcpy(&bits, at, bytes);
  return bits;
}

uint64_t cubecore_simt_old_value(uint64_t bits) {
  if (block.runs && counts.on && counts.atomic != nullptr) ++counts.atomic->used;
  return bits;
}

void cubecore_simt_atomic_store(void* at, uint32_t bytes, uint64_t bits) {
  memcpy(reinterpret_cast<void*>(host_of(at)), &bits, bytes);
}

void cubecore_simt_load(const void* at, void* to, uint32_t bytes, cubecore::simt::Access how) {
  const uintptr_t from = host_of(at);
  look({from, bytes, code_of(__builtin_return_address(0)), false, false, false,
        how == cubecore::simt::Access::CACHED});
  memcpy(to, reinterpret_cast<const void*>(from), bytes);
}

void cubecore_simt_store(void* at, const void* from, uint32_t bytes, cubecore::simt::Access how) {
  const uintptr_t to = host_of(at);
  look({to, bytes, code_of(__builtin_return_address(0)), true, false, false,
        how == cubecore::simt::Access::CACHED});
  memcpy(reinterpret_cast<void*>(to), from, bytes);
}

void cubecore_simt_drop_line(const void* at) {
  const uint32_t core = core_of_block(block.number);
  if (at == nullptr)
    lines_of_cores.drop_all(core, ++memory.clock);
  else
    lines_of_cores.drop(core, reinterpret_cast<uintptr_t>(at));
}

bool cubecore_simt_runs() { return block.runs; }

void cubecore_simt_atomic_value() {
  if (block.runs) found_at(SIMT_ATOMIC_VALUE, code_of(__builtin_return_address(0)), 0);
}

void* cubecore_simt_static(const void* site, uint64_t bytes, uint64_t alignment) {
  auto [at, is_new] = memory.sites.emplace(site, 0);
  if (is_new) {
    const uint64_t unit = std::max<uint64_t>(alignment, 32);
    at->second = static_cast<uint32_t>((memory.static_bytes + unit - 1) / unit * unit);
    const uint64_t end = at->second + bytes;
    if (end > memory.dynamic_at)
      refuse_call("the static and dynamic memory of a block",
                  "be at most 221184 B (256 KB without 8 KB of the system and 32 KB of the data cache)",
                  std::to_string(end + memory.dynamic_bytes) + " B");
    memory.static_bytes = static_cast<uint32_t>(end);
  }
  return reinterpret_cast<void*>(memory.ub.start + at->second);
}

void* cubecore_simt_dynamic() {
  return reinterpret_cast<void*>(memory.ub.start + memory.dynamic_at);
}

void* cubecore_simt_pointer(uint64_t address) {
  open_ub();
  return reinterpret_cast<void*>(memory.ub.start + address);
}

bool cubecore_simt_in_ub(const void* pointer) {
  return reinterpret_cast<uintptr_t>(pointer) - memory.ub.start < UB_BYTES;
}

bool cubecore_simt_in_gm(const void* pointer) {
  return reinterpret_cast<uintptr_t>(pointer) - current->launch.gm_base < gm_bytes;
}

void cubecore_simt_assert(const char* condition, const Where* at) {
  block.runs = false;
  threads_ub = 0;
  std::string got = std::string(condition) + " is false in thread " + std::to_string(block.thread) +
                    " of block " + std::to_string(block.number);
  cubecore_refuse("an assertion", "hold", got.c_str(), at);
}
}
