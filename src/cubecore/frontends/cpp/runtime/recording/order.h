// Automatic synchronisation of a vector core: which accesses of UB, and of global memory, are
// ordered, and what must be put between two that are not. Page: "关键特性说明" of 核内同步
// (--cce-auto-sync on 2201): between vector instructions, and between the scalar unit and V, MTE2
// and MTE3, both ways.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

namespace order {

constexpr uint32_t S = 0, V = 1, M = 2, MTE1 = 3, MTE2 = 4, MTE3 = 5, FIX = 6, PIPES = 7;
constexpr uint32_t EVENTS = 8, NONE = EVENTS;
constexpr uint32_t READ = 1, WRITE = 2;
constexpr size_t MOST_ACCESSES = 4096;
constexpr size_t FEW_ACCESSES = 64;
constexpr uint32_t UB = 0, GM = 1, SPACES = 2;  // whose addresses are compared

struct Access {
  uint64_t time;
  int64_t low, high;
  bool writes;
};

// Clocks of a core's pipes: `known_[q][p]` instructions of p, its waits among them, are complete
// before q goes on.
class Order {
 public:
  void set(uint32_t from, uint32_t to, uint32_t id) {
    Event& event = events_[from][to][id % EVENTS];
    event.up = true;
    for (uint32_t p = 0; p < PIPES; ++p) event.known[p] = known_[from][p];
    event.known[from] = count_[from];
  }
  void wait(uint32_t from, uint32_t to, uint32_t id) {
    Event& event = events_[from][to][id % EVENTS];
    event.up = false;
    event.waited = ++count_[to];
    for (uint32_t p = 0; p < PIPES; ++p)
      if (event.known[p] > known_[to][p]) known_[to][p] = event.known[p];
  }
  void barrier(uint32_t pipe) {
    for (uint32_t q = 0; q < PIPES; ++q)
      for (uint32_t p = 0; p < PIPES; ++p)
        if (pipe == PIPES || (p == pipe && q == pipe)) known_[q][p] = count_[p];
  }
  // An event whose last wait is behind `from`, the last ones first: kernels take the first. NONE if
  // every one may still be waited for.
  uint32_t free_event(uint32_t from, uint32_t to) const {
    for (uint32_t id = EVENTS; id-- > 0;) {
      const Event& event = events_[from][to][id];
      if (!event.up && event.waited <= known_[from][to]) return id;
    }
    return NONE;
  }
  // True if an access on `to` must wait for one on `from`: one of the last, which are not known.
  bool conflicts(uint32_t space, uint32_t from, uint32_t to, int64_t low, int64_t high,
                 bool writes) const {
    const std::vector<Access>& made = accesses_[space][from];
    for (size_t n = made.size(); n-- > 0 && made[n].time > known_[to][from];)
      if (made[n].low < high && low < made[n].high && (writes || made[n].writes)) return true;
    return false;
  }
  void begin(uint32_t pipe) { ++count_[pipe]; }
  void enter(uint32_t space, uint32_t pipe, int64_t low, int64_t high, bool writes) {
    std::vector<Access>& own = accesses_[space][pipe];
    own.push_back(Access{count_[pipe], low, high, writes});
    if (own.size() < std::max(trim_[space][pipe], FEW_ACCESSES)) return;
    uint64_t least = count_[pipe];
    for (uint32_t q : {S, V, MTE2, MTE3})
      if ((q != pipe || pipe == V) && known_[q][pipe] < least && pairs(pipe, q))
        least = known_[q][pipe];
    size_t kept = 0;
    for (const Access& each : own)
      if (each.time > least) own[kept++] = each;
    own.resize(kept);
    if (kept > MOST_ACCESSES) {  // one that covers all: more may be put in between than is needed
      Access all = own[0];
      for (const Access& each : own) {
        all.low = each.low < all.low ? each.low : all.low;
        all.high = each.high > all.high ? each.high : all.high;
        all.writes = all.writes || each.writes;
        all.time = each.time;
      }
      own.assign(1, all);
      kept = 1;
    }
    trim_[space][pipe] = 2 * kept + FEW_ACCESSES;
  }
  // True if the compiler orders `to` after `from`.
  static bool pairs(uint32_t from, uint32_t to) {
    if (from == V && to == V) return true;
    return (from == S) != (to == S);
  }

 private:
  struct Event {
    bool up = false;
    uint64_t waited = 0;  // the wait's number on its pipe
    uint64_t known[PIPES] = {};
  };

  uint64_t count_[PIPES] = {};
  uint64_t known_[PIPES][PIPES] = {};
  Event events_[PIPES][PIPES][EVENTS];
  std::vector<Access> accesses_[SPACES][PIPES];
  size_t trim_[SPACES][PIPES] = {};
};

}  // namespace order
