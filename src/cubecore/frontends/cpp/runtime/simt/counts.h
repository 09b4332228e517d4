// What the threads of each core do, counted for a rough time: lines of global memory, rows of UB's
// banks, operations. Nothing is counted unless the launch is to be timed.
//
// Lanes of a warp run one after another, so an access of the warp is gathered from its lanes: the
// n-th access of each lane from one place in the code. A warp's accesses are counted when it stops.
#pragma once

#include <unordered_map>

#include "simt/block.h"
#include "simt/operations.h"

namespace {

constexpr uint32_t LINE_BITS = 7;  // lines of 128 B
constexpr uint32_t MOST_TURNS = 1024;  // of a place: those behind count as these do on average
// UB: 16 banks of 32 B rows, two banks a group; threads see parts of 8 B, by which accesses of other
// rows conflict, also across the banks of a group (asc-devkit, bank conflicts of 3510).
constexpr uint32_t PART_BITS = 3, PARTS = 32, ROW_BITS = 8;
constexpr uint32_t PIECE_BYTES = 8;  // the most that a lane accesses at once
constexpr uint32_t CACHE_LINES = 1024;

// Bits of an access; a load of global memory through the cache has none.
enum AccessBits : uint8_t { BY_STORE = 1, BY_ATOMIC = 2, OF_UB = 4, PAST_LINES = 8, UNALIGNED = 16 };

struct WarpAccess {
  uint32_t lanes = 0;
  uint32_t round = 0;
  uint8_t kind = 0;
  uint16_t bytes = 0;
  uintptr_t at[WARP];
};

// A place in the code: accesses of memory, or a block of operations.
struct Place {
  uint32_t code = 0, stamp = 0, used = 0, most = 0;
  bool is_block = false;
  BlockOperations holds;
  uint64_t beyond = 0;
  uint32_t turns[WARP] = {};
  std::vector<WarpAccess> accesses;
};

struct Chain {
  uint32_t misses = 0, hits = 0;
  bool less(const Chain& other) const {
    return misses != other.misses ? misses < other.misses : hits < other.hits;
  }
};

struct LineAtomics {
  uint32_t all = 0, used = 0;
};

struct {
  bool on = false;
  uint32_t stamp = 0;
  ThreadCounts* core = nullptr;  // of the block that runs
  std::vector<ThreadCounts> cores;
  std::vector<Place> places = std::vector<Place>(4096);
  std::vector<Place*> active;
  uint32_t last_code[WARP], round[WARP];
  std::vector<bool> missed;  // by round
  std::vector<Chain> chains = std::vector<Chain>(MOST_THREADS / WARP);
  std::vector<std::vector<uint64_t>> caches;  // of cores: a line by its lowest bits
  std::unordered_map<uint64_t, LineAtomics> atomics;
  LineAtomics* atomic = nullptr;  // of the last one, if it was on global memory
} counts;

uintptr_t library = 0;  // that the user's code lies in

uint32_t code_of(const void* address) {
  return static_cast<uint32_t>(reinterpret_cast<uintptr_t>(address) - library);
}

void begin_counts(bool on, uint32_t cores) {
  counts.on = on;
  if (!on) return;
  counts.cores.assign(cores, ThreadCounts{});
  counts.caches.assign(cores, {});
  counts.atomics.clear();
  counts.atomic = nullptr;
  for (Place& each : counts.places) each.stamp = each.code = 0, each.is_block = false;
  counts.stamp = 0;
}

void begin_block_counts(uint32_t number) {
  if (!counts.on) return;
  const uint32_t core = number % static_cast<uint32_t>(counts.cores.size());
  counts.core = &counts.cores[core];
  ++counts.core->calls;
  if (counts.caches[core].empty()) counts.caches[core].assign(CACHE_LINES, 0);
  for (Chain& each : counts.chains) each = {};
}

void begin_warp_counts() {
  if (!counts.on) return;
  ++counts.stamp;
  counts.active.clear();
  memset(counts.last_code, 0, sizeof(counts.last_code));
  memset(counts.round, 0, sizeof(counts.round));
}

Place& place_of(uint32_t code) {
  uint32_t at = (code * 2654435761u) >> 20;
  // A full table would have as many places as a large program has: the last one stands for the rest.
  for (uint32_t tries = 0; tries < 4095 && counts.places[at].code != code; ++tries) {
    if (counts.places[at].code == 0) {
      counts.places[at].code = code;
      break;
    }
    at = (at + 1) & 4095;
  }
  Place& found = counts.places[at];
  if (found.stamp != counts.stamp) {
    found.stamp = counts.stamp;
    found.used = found.most = 0, found.beyond = 0;
    memset(found.turns, 0, sizeof(found.turns));
    counts.active.push_back(&found);
  }
  return found;
}

// Notes an access of the lane that runs.
void count_access(uint32_t code, uintptr_t at, uint32_t bytes, uint32_t kind) {
  const uint32_t lane = block.thread % WARP;
  // A load at an address of the code that is no later begins another trip of a loop: loads of one
  // trip overlap, those of the next wait.
  if ((kind & (BY_STORE | OF_UB)) == 0) {
    if (code <= counts.last_code[lane]) ++counts.round[lane];
    counts.last_code[lane] = code;
  }
  if (kind & BY_ATOMIC) {
    counts.atomic = kind & OF_UB ? nullptr : &counts.atomics[at >> LINE_BITS];
    if (counts.atomic != nullptr) ++counts.atomic->all;
  }
  Place& place = place_of(code);
  const uint32_t turn = place.turns[lane]++;
  if (turn >= MOST_TURNS) {
    ++place.beyond;
    return;
  }
  if (turn >= place.accesses.size()) place.accesses.resize(turn + 1);
  WarpAccess& access = place.accesses[turn];
  if (turn >= place.used) {
    place.used = turn + 1;
    access.lanes = 0;
    access.round = counts.round[lane];
    access.kind = static_cast<uint8_t>(kind);
    access.bytes = static_cast<uint16_t>(bytes);
  }
  access.lanes |= 1u << lane;
  access.at[lane] = at;
}

// Rows that the fullest part of UB's banks gives one after another.
uint32_t rows_of(const WarpAccess& access, uint32_t offset) {
  uint32_t count[PARTS] = {}, most = 1;
  uintptr_t seen[PARTS][WARP];
  for (uint32_t lane = 0; lane < WARP; ++lane) {
    if (!(access.lanes >> lane & 1)) continue;
    const uintptr_t at = access.at[lane] + offset, row = at >> ROW_BITS;
    const uint32_t part = at >> PART_BITS & (PARTS - 1);
    const bool merges = !(access.kind & BY_ATOMIC);
    bool is_new = true;
    for (uint32_t n = 0; merges && n < count[part]; ++n) is_new &= seen[part][n] != row;
    if (!is_new) continue;
    seen[part][count[part]++] = row;
    most = std::max(most, count[part]);
  }
  return most;
}

// Distinct lines of an access; those that the cache lacks, where it holds what is loaded.
uint32_t lines_of(const WarpAccess& access, uint32_t offset, uint32_t bytes, uint32_t* missing) {
  uintptr_t lines[2 * WARP];
  uint32_t count = 0;
  for (uint32_t lane = 0; lane < WARP; ++lane) {
    if (!(access.lanes >> lane & 1)) continue;
    const uintptr_t at = access.at[lane] + offset;
    for (uintptr_t line = at >> LINE_BITS; line <= (at + bytes - 1) >> LINE_BITS; ++line) {
      bool is_new = true;
      for (uint32_t n = count; n > 0 && is_new; --n) is_new = lines[n - 1] != line;
      if (is_new) lines[count++] = line;
    }
  }
  std::vector<uint64_t>& cache = counts.caches[counts.core - counts.cores.data()];
  *missing = 0;
  for (uint32_t n = 0; n < count; ++n) {
    uint64_t& held = cache[lines[n] % CACHE_LINES];
    *missing += held != lines[n];
    if (!(access.kind & PAST_LINES)) held = lines[n];
  }
  return count;
}

void count_warp_access(const WarpAccess& access, double share) {
  uint32_t piece = std::min<uint32_t>(access.bytes, PIECE_BYTES);
  if (access.kind & UNALIGNED) piece = std::min<uint32_t>(access.bytes / 2, 4);
  for (uint32_t offset = 0; offset < access.bytes; offset += piece) {
    if (access.kind & OF_UB) {
      counts.core->ub_accesses += share;
      counts.core->ub_rows += share * rows_of(access, offset);
      continue;
    }
    uint32_t missing = 0;
    const uint32_t lines = lines_of(access, offset, piece, &missing);
    counts.core->accesses += share;
    counts.core->lines += share * lines;
    // A store goes through the cache.
    const bool stores = access.kind & (BY_STORE | BY_ATOMIC);
    counts.core->traffic += share * (stores ? lines : missing);
    if (access.kind & BY_STORE) continue;
    if (counts.missed.size() <= access.round) counts.missed.resize(access.round + 1);
    if (missing != 0) counts.missed[access.round] = true;
  }
}

// Counts what a warp has done since it went on.
void end_warp_counts(uint32_t warp) {
  if (!counts.on) return;
  counts.missed.clear();
  for (Place* each : counts.active) {
    if (each->is_block) {
      counts.core->operations += static_cast<double>(each->most) * each->holds.operations;
      counts.core->divisions += static_cast<double>(each->most) * each->holds.divisions;
      counts.core->functions += static_cast<double>(each->most) * each->holds.functions;
      continue;
    }
    uint64_t noted = 0;
    for (uint32_t n = 0; n < each->used; ++n)
      noted += static_cast<uint32_t>(__builtin_popcount(each->accesses[n].lanes));
    const double share = noted == 0 ? 1 : 1 + static_cast<double>(each->beyond) / static_cast<double>(noted);
    for (uint32_t n = 0; n < each->used; ++n) count_warp_access(each->accesses[n], share);
  }
  Chain& chain = counts.chains[warp];
  for (bool missed : counts.missed) ++(missed ? chain.misses : chain.hits);
  counts.active.clear();
}

// The threads of a block have come together, or ended: the longest chain of loads counts.
void count_epoch(bool at_barrier) {
  if (!counts.on) return;
  Chain longest;
  for (Chain& each : counts.chains) {
    if (longest.less(each)) longest = each;
    each = {};
  }
  counts.core->miss_rounds += longest.misses;
  counts.core->hit_rounds += longest.hits;
  counts.core->barriers += at_barrier;
}

// The cycles that atomics on the busiest line keep all others waiting, as numbers of atomics.
void count_atomics() {
  LineAtomics most;
  for (const auto& [line, each] : counts.atomics)
    if (each.all + each.used > most.all + most.used) most = each;
  for (ThreadCounts& each : counts.cores) each.line_atomics = most.all, each.line_results = most.used;
}

// A block of operations begins; lanes of a warp that take other ways add to its time.
void count_operations(const void* address) {
  Place& place = place_of(code_of(address));
  if (!place.is_block) place.is_block = true, place.holds = operations_behind(address);
  const uint32_t turns = ++place.turns[block.thread % WARP];
  place.most = std::max(place.most, turns);
}

}  // namespace

// The compiler calls this where a block of operations begins (-fsanitize-coverage=trace-pc).
extern "C" void __sanitizer_cov_trace_pc() {
  if (block.runs && counts.on) count_operations(__builtin_return_address(0));
}
