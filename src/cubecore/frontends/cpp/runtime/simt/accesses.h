// What is wrong with accesses of threads: bounds, alignment, bytes that nobody wrote, races.
#pragma once

#include "simt/counts.h"
#include "simt/shadow.h"

namespace {

constexpr uint32_t UB_BYTES = 256 << 10, UB_GUARD_BYTES = 64 << 10;
constexpr uint32_t STAMP_END = 1u << 18;
constexpr uint32_t UB_POISON = 0xFF;
constexpr uint64_t LOW_ADDRESSES = 1ull << 32;
// Static and dynamic memory of UB: the system has 8 KB, and the data cache no less than 32 KB.
constexpr uint32_t UB_USABLE = UB_BYTES - (8 << 10) - (32 << 10);

struct Fence {
  uint64_t time = 0;
  uint32_t epoch = 0;
};

struct {
  std::vector<Region> arrays;  // of global memory, by address
  size_t last = 0, before = 0;
  Region ub;
  Written ub_read, ub_changed;  // by a function that vector code calls
  uint32_t static_bytes = 0, dynamic_at = 0, dynamic_bytes = 0;
  uint32_t stamp = 0, ub_stamp = 0;
  std::string library_name;
  uint64_t clock = 1;
  std::unordered_map<uint32_t, Fence> fences;        // by thread
  std::unordered_map<uint32_t, Fence> block_fences;  // by block
  std::vector<SimtFinding> findings;
  std::unordered_map<uint64_t, size_t> found;  // by kind and lines
  std::unordered_map<const void*, uint32_t> sites;  // where static memory lies
} memory;

uint32_t thread_id() { return block.number * MOST_THREADS + block.thread; }

// A finding of the thread that runs; null if its lines have had one of this kind.
SimtFinding* found_at(uint32_t kind, uint32_t code, uint32_t other) {
  const uint64_t key = mixed(mixed(kind + 1ull, code), other);
  auto [at, is_new] = memory.found.emplace(key, memory.findings.size());
  if (!is_new) {
    ++memory.findings[at->second].times;
    return nullptr;
  }
  memory.findings.push_back({});
  SimtFinding& made = memory.findings.back();
  made.kind = kind, made.code = code, made.other = other, made.times = 1;
  made.block = block.number, made.thread = block.thread;
  return &made;
}

void note_access(uint32_t kind, uint32_t code, uintptr_t at, uint32_t bytes, bool writes) {
  SimtFinding* made = found_at(kind, code, 0);
  if (made == nullptr) return;
  const bool in_ub = at - memory.ub.start < UB_BYTES + UB_GUARD_BYTES;
  made->in_ub = in_ub;
  const uintptr_t base = in_ub ? memory.ub.start : at < LOW_ADDRESSES ? 0 : block.core->launch.gm_base;
  made->address = static_cast<int64_t>(at - base);
  made->bytes = bytes, made->writes = writes | (at < LOW_ADDRESSES ? 2u : 0u);
}

struct Looked {
  uintptr_t at;
  uint32_t bytes, code;
  bool writes, atomic, is_volatile;
  bool cached = true;     // by the data cache of the core
  bool unaligned = false;  // of a type whose alignment is less than its size
  bool in_bytes = false;   // a part of a copy, of any alignment
  bool later_part = false;  // not the copy's first part
};

inline void count(const Looked& by, uint32_t in_ub) {
  if (!counts.on) return;
  const uint32_t kind = (by.atomic ? BY_ATOMIC : by.writes ? BY_STORE : 0u) | in_ub |
                        (by.cached && !by.is_volatile ? 0u : PAST_LINES) | (by.unaligned ? UNALIGNED : 0u);
  count_access(by.code, by.at, by.bytes, kind);
}

// Lines that a core has loaded, where kernels have fences: only these may see other blocks' data.
struct {
  bool follows = false;
  std::unordered_map<uint64_t, uint64_t> since;  // by core and line, when
  std::vector<uint64_t> dropped;                 // by core, when all lines were

  uint64_t key(uint32_t core, uintptr_t at) const {
    return static_cast<uint64_t>(core) << 48 | at >> LINE_BITS;
  }
  void load(uint32_t core, uintptr_t at, uint64_t now) {
    auto [found, is_new] = since.emplace(key(core, at), now);
    if (!is_new && core < dropped.size() && found->second < dropped[core]) found->second = now;
  }
  void drop(uint32_t core, uintptr_t at) { since.erase(key(core, at)); }
  void drop_all(uint32_t core, uint64_t now) {
    if (dropped.size() <= core) dropped.resize(core + 1, 0);
    dropped[core] = now;
  }
  // Whether a core may have a line from before a time.
  bool has(uint32_t core, uintptr_t at, uint64_t before) const {
    auto found = since.find(key(core, at));
    if (found == since.end() || found->second >= before) return false;
    return core >= dropped.size() || found->second >= dropped[core];
  }
} lines_of_cores;

uint32_t core_of_block(uint32_t number) {
  const int64_t cores = block.core->launch.at_once;
  return cores < 1 ? number : number % static_cast<uint32_t>(cores);
}

// Whether another thread released what it did before, and the thread that runs has seen that.
bool is_ordered(const Touch& other) {
  const uint64_t seen = block.all[block.thread].acquired;
  if (seen == 0) return false;
  auto fence = memory.fences.find(other.thread);
  if (fence != memory.fences.end() && seen > fence->second.time) return true;
  auto of_block = memory.block_fences.find(other.thread / MOST_THREADS);
  return of_block != memory.block_fences.end() && of_block->second.epoch > other.epoch &&
         seen > of_block->second.time;
}

struct Race {
  uint32_t kind, code, other_code, other_thread;
  uintptr_t at;
  uint32_t bytes;
  bool writes, other_writes;
};

void note_race(const Race& race) {
  SimtFinding* made = found_at(race.kind, race.code, race.other_code);
  if (made == nullptr) return;
  made->in_ub = race.at - memory.ub.start < UB_BYTES;
  made->address = static_cast<int64_t>(
      race.at - (made->in_ub ? memory.ub.start : block.core->launch.gm_base));
  made->bytes = race.bytes, made->writes = race.writes, made->other_writes = race.other_writes;
  made->other_block = race.other_thread / MOST_THREADS;
  made->other_thread = race.other_thread % MOST_THREADS;
}

// A store to bytes that another thread of the block has stored: a race unless it leaves them as they
// are. That shows when the thread stores again or stops: g++ calls the hook of what a copy reads
// behind the hook of what it writes. Blocks that store to one place overlap, whatever they store.
struct PendingStore {
  Race race;
  uint8_t was[32];
};
std::vector<PendingStore> pending_stores;

void settle_stores() {
  for (const PendingStore& each : pending_stores)
    if (memcmp(each.was, reinterpret_cast<const void*>(each.race.at), each.race.bytes) != 0)
      note_race(each.race);
  pending_stores.clear();
}

__attribute__((noinline)) void race(const Touch& other, uint32_t other_code, bool other_writes,
                                    const Looked& by) {
  const uint32_t code = by.code, bytes = by.bytes;
  const uintptr_t at = by.at;
  const bool writes = by.writes;
  const bool across = other.thread / MOST_THREADS != block.number;
  if (!across && other.epoch != (block.epoch & 0xFFF)) return;
  const bool ordered = is_ordered(other);
  const uint32_t core = core_of_block(block.number);
  const bool is_stale =
      ordered && across && !writes && by.cached && !by.atomic && !by.is_volatile &&
      core != core_of_block(other.thread / MOST_THREADS) &&
      lines_of_cores.has(core, at, block.all[block.thread].acquired);
  if (ordered && !is_stale) return;
  const uint32_t kind = is_stale ? SIMT_STALE : across ? SIMT_BLOCK_RACE : SIMT_RACE;
  const Race found = {kind, code, other_code, static_cast<uint32_t>(other.thread), at, bytes, writes, other_writes};
  if (across || !writes || !other_writes || by.atomic || other.atomic || bytes > sizeof(PendingStore::was))
    return note_race(found);
  if (!pending_stores.empty() && pending_stores.back().race.at == at) return;
  pending_stores.push_back({found, {}});
  memcpy(pending_stores.back().was, reinterpret_cast<const void*>(at), bytes);
}

inline void touch_cell(Cell& cell, uint32_t mask, uint32_t stamp, const Looked& by) {
  const uint32_t me = thread_id(), epoch = block.epoch & 0xFFF;
  Touch& write = cell.write;
  const bool relaxed = by.atomic || by.is_volatile;
  if (write.stamp == stamp && (write.mask & mask) != 0 && write.thread != me &&
      !(relaxed && (write.atomic || !by.writes)))
    race(write, cell.write_code, true, by);
  Touch& read = cell.read;
  if (by.writes) {
    if (read.stamp == stamp && (read.mask & mask) != 0 &&
        (read.thread != me || read.threads || read.blocks))
      race(read, cell.read_code, false, by);
    write = {stamp, epoch, me, mask, relaxed, 0, 0};
    cell.write_code = by.code;
    return;
  }
  if (by.is_volatile) return;
  if (read.stamp != stamp) {
    read = {stamp, epoch, me, mask, 0, 0, 0};
  } else if (read.thread == me && read.epoch == epoch) {
    read.mask |= mask;
    return;
  } else {
    const bool same_block = read.thread / MOST_THREADS == block.number;
    const bool threads = same_block && read.epoch == epoch, blocks = read.blocks || !same_block;
    const uint64_t masks = threads ? read.mask | mask : mask;
    read = {stamp, epoch, me, masks, 0, threads, blocks};
  }
  cell.read_code = by.code;
}

inline void touch_region(Region& region, uint32_t stamp, const Looked& by) {
  uint64_t from = by.at - region.start;
  uint32_t left = by.bytes;
  while (left != 0) {
    Page& page = region.page(from);
    const uint32_t low = from % PAGE_BYTES;
    const uint32_t part = std::min(left, PAGE_BYTES - low);
    if ((low | part) % 4 != 0) page.refine();
    page.open();
    const uint32_t step = page.by_bytes ? 1 : 4;
    for (uint32_t n = 0; n < part; n += step)
      touch_cell(*page.at(low + n), page.by_bytes ? 1 : 15, stamp, by);
    from += part, left -= part;
  }
}

Region* array_of(uintptr_t at) {
  auto holds = [&](size_t n) {
    return n < memory.arrays.size() && at - memory.arrays[n].start <
                                           memory.arrays[n].end - memory.arrays[n].start;
  };
  if (holds(memory.last)) return &memory.arrays[memory.last];
  if (holds(memory.before)) {
    std::swap(memory.last, memory.before);
    return &memory.arrays[memory.last];
  }
  auto behind = std::upper_bound(memory.arrays.begin(), memory.arrays.end(), at,
                                 [](uintptr_t value, const Region& each) { return value < each.start; });
  if (behind == memory.arrays.begin()) return nullptr;
  const size_t number = static_cast<size_t>(behind - memory.arrays.begin()) - 1;
  if (!holds(number)) return nullptr;
  memory.before = memory.last;
  memory.last = number;
  return &memory.arrays[number];
}

inline bool is_aligned(const Looked& by) {
  return by.in_bytes || by.bytes > 16 || (by.bytes & (by.bytes - 1)) != 0 || by.at % by.bytes == 0;
}

// The host itself cannot make a wide access that is not aligned: the thread ends there.
__attribute__((noinline)) void misaligned(const Looked& by) {
  note_access(SIMT_MISALIGNED, by.code, by.at, by.bytes, by.writes);
  if (by.bytes > 8 && !by.unaligned) end_thread();
}

// Whether an access stays in the last page of an array, so that the host can make it.
bool is_behind_array(const Looked& by) {
  auto behind = std::upper_bound(memory.arrays.begin(), memory.arrays.end(), by.at,
                                 [](uintptr_t value, const Region& each) { return value < each.start; });
  if (behind == memory.arrays.begin()) return false;
  const uintptr_t page = 4096, end = (behind - 1)->end;
  return by.at + by.bytes <= (end + page - 1) / page * page;
}

bool is_allocated(uint64_t at, uint32_t bytes) {
  if (!block.is_grid) return at + bytes <= UB_USABLE;
  return at + bytes <= memory.static_bytes ||
         (at >= memory.dynamic_at && at + bytes <= memory.dynamic_at + memory.dynamic_bytes);
}

__attribute__((noinline)) void in_ub(const Looked& by) {
  count(by, OF_UB);
  const uint64_t at = by.at - memory.ub.start;
  if (at + by.bytes > UB_BYTES) {
    note_access(SIMT_OUT_OF_BOUNDS, by.code, by.at, by.bytes, by.writes);
    end_thread();
  }
  if (!is_allocated(at, by.bytes)) {
    note_access(SIMT_OUT_OF_BOUNDS, by.code, by.at, by.bytes, by.writes);
  } else if (!by.writes || by.atomic) {
    if (!memory.ub.written.has(at, by.bytes))
      note_access(SIMT_UNINITIALISED, by.code, by.at, by.bytes, by.writes);
  }
  if (!is_aligned(by)) misaligned(by);
  if (by.writes) memory.ub.written.add(at, by.bytes);
  if (!block.is_grid) {
    if (by.writes) memory.ub_changed.add(at, by.bytes);
    if (!by.writes || by.atomic) memory.ub_read.add(at, by.bytes);
  }
  touch_region(memory.ub, memory.ub_stamp, by);
}

// Sees that another thread may have released something.
inline void acquire() { block.all[block.thread].acquired = ++memory.clock; }

// The byte behind an address: one that vector code has put in a struct counts from UB's start.
inline uintptr_t host_of(const void* at) {
  const uintptr_t address = reinterpret_cast<uintptr_t>(at);
  return address < UB_BYTES && threads_ub != 0 ? threads_ub + address : address;
}

void ask_marks(Region& array, uint64_t part);

inline void look(const Looked& by) {
  if (by.writes && !by.later_part && !pending_stores.empty()) settle_stores();
  if (by.at - memory.ub.start < UB_BYTES + UB_GUARD_BYTES) return in_ub(by);
  const bool low = by.at < LOW_ADDRESSES;
  if (!low && by.at - block.core->launch.gm_base >= gm_bytes) return;  // its own stack, constants
  Region* array = low ? nullptr : array_of(by.at);
  if (array == nullptr || by.at + by.bytes > array->end) {
    note_access(SIMT_OUT_OF_BOUNDS, by.code, by.at, by.bytes, by.writes);
    if (!by.writes && is_behind_array(by)) return;
    end_thread();
  }
  count(by, 0);
  if (!is_aligned(by)) misaligned(by);
  const uint64_t at = by.at - array->start;
  if (!array->parts.empty()) {
    for (uint64_t from = at, left = by.bytes; left != 0;) {
      const uint32_t low = from % MARKS_BYTES;
      const uint32_t bytes = static_cast<uint32_t>(std::min<uint64_t>(left, MARKS_BYTES - low));
      Written& part = array->parts[from >> MARKS_BITS];
      if (part.state == Written::UNKNOWN) ask_marks(*array, from >> MARKS_BITS);
      if ((!by.writes || by.atomic) && !part.has(low, bytes)) {
        note_access(SIMT_UNINITIALISED, by.code, by.at, by.bytes, by.writes);
        if (!by.writes) break;
      }
      if (by.writes) part.add(low, bytes);
      from += bytes, left -= bytes;
    }
  }
  touch_region(*array, memory.stamp, by);
  if (lines_of_cores.follows && !by.writes && by.cached && !by.is_volatile)
    lines_of_cores.load(core_of_block(block.number), by.at, memory.clock);
}

// A thread that looks at one word again and again gives way to those that may change it.
constexpr uint32_t MOST_SPINS = 64;
inline void spin(const void* at) {
  Thread& thread = block.all[block.thread];
  if (thread.spun != at) {
    thread.spun = at, thread.spins = 0;
  } else if (++thread.spins >= MOST_SPINS) {
    thread.spins = 0;
    thread.code = reinterpret_cast<uintptr_t>(at);
    leave(State::LOOKS_AGAIN);
  }
}

inline void access_at(const void* at, uint32_t bytes, bool writes, bool is_volatile, void* code,
                      bool unaligned = false, bool in_bytes = false, bool later_part = false) {
  const uintptr_t address = host_of(at);
  if (is_volatile) acquire();
  look({address, bytes, code_of(code), writes, false, is_volatile, true, unaligned, in_bytes,
        later_part});
  if (is_volatile && !writes) spin(at);
}

// An access of many bytes, as maps of what is written take it: a word of them at once.
inline void range_at(const void* at, size_t bytes, bool writes, void* code, bool begun = false) {
  constexpr size_t MOST = 32;
  const bool unaligned = bytes != 0 && reinterpret_cast<uintptr_t>(at) % bytes != 0;
  const char* from = static_cast<const char*>(at);
  for (size_t n = 0; n < bytes; n += MOST)
    access_at(from + n, static_cast<uint32_t>(std::min(bytes - n, MOST)), writes, false, code, unaligned,
              bytes > MOST, begun || n != 0);
}

void inactive_lane(uint32_t thread, uint32_t lane) {
  const uint32_t running = block.thread;
  block.thread = thread;
  SimtFinding* made = found_at(SIMT_LANE, code_of(reinterpret_cast<void*>(block.all[thread].code)), 0);
  if (made != nullptr) made->number = lane;
  block.thread = running;
}

}  // namespace

#define CUBECORE_CODE __builtin_return_address(0)
#define CUBECORE_HOOK(NAME, BYTES, WRITES, VOLATILE, UNALIGNED)                       \
  void __tsan_##NAME(void* at) {                                                      \
    if (block.runs) access_at(at, BYTES, WRITES, VOLATILE, CUBECORE_CODE, UNALIGNED); \
  }
#define CUBECORE_HOOKS(BYTES)                                    \
  CUBECORE_HOOK(read##BYTES, BYTES, false, false, false)         \
  CUBECORE_HOOK(write##BYTES, BYTES, true, false, false)         \
  CUBECORE_HOOK(volatile_read##BYTES, BYTES, false, true, false) \
  CUBECORE_HOOK(volatile_write##BYTES, BYTES, true, true, false)
#define CUBECORE_UNALIGNED(BYTES)                                         \
  CUBECORE_HOOK(unaligned_read##BYTES, BYTES, false, false, true)         \
  CUBECORE_HOOK(unaligned_write##BYTES, BYTES, true, false, true)         \
  CUBECORE_HOOK(unaligned_volatile_read##BYTES, BYTES, false, true, true) \
  CUBECORE_HOOK(unaligned_volatile_write##BYTES, BYTES, true, true, true)

// The compiler calls these before each access of user code (-fsanitize=thread); no library of its
// own has a part in it.
extern "C" {
CUBECORE_HOOKS(1)
CUBECORE_HOOKS(2)
CUBECORE_HOOKS(4)
CUBECORE_HOOKS(8)
CUBECORE_HOOKS(16)
CUBECORE_UNALIGNED(2)
CUBECORE_UNALIGNED(4)
CUBECORE_UNALIGNED(8)
CUBECORE_UNALIGNED(16)
void __tsan_init() {}
void __tsan_func_entry(void*) {}
void __tsan_func_exit() {}
void __tsan_read_range(void* at, size_t bytes) {
  if (block.runs) range_at(at, bytes, false, CUBECORE_CODE);
}
void __tsan_write_range(void* at, size_t bytes) {
  if (block.runs) range_at(at, bytes, true, CUBECORE_CODE);
}
void __tsan_vptr_update(void**, void*) {}
void __tsan_vptr_read(void**) {}

// Calls of these stand for copies of structs, behind the hooks of the same (g++) or without any
// (clang), and are the user's own.
#define CUBECORE_COPY(NAME)                                                             \
  void* __wrap_##NAME(void* to, const void* from, size_t bytes) {                       \
    if (!block.runs) return NAME(to, from, bytes);                                      \
    range_at(from, bytes, false, CUBECORE_CODE, true);                                  \
    range_at(to, bytes, true, CUBECORE_CODE, true);                                     \
    NAME(reinterpret_cast<void*>(host_of(to)), reinterpret_cast<void*>(host_of(from)), bytes); \
    return to;                                                                          \
  }
CUBECORE_COPY(memcpy)
CUBECORE_COPY(memmove)
#undef CUBECORE_COPY
void* __wrap_memset(void* to, int value, size_t bytes) {
  if (!block.runs) return memset(to, value, bytes);
  range_at(to, bytes, true, CUBECORE_CODE);
  memset(reinterpret_cast<void*>(host_of(to)), value, bytes);
  return to;
}
}
