// Bytes of UB around values that a core has read: answers bring them, so that it reads nearby
// values without asking. What it issues meanwhile drops the bytes that it may write.
#pragma once

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <algorithm>
#include <vector>

namespace {

constexpr size_t MOST_STRETCHES = 4;
constexpr int64_t LEAST_WANTED = 64, MOST_WANTED = 8192, GROWTH = 8;
constexpr uint32_t WORTH = 4;  // reads of a stretch that make the next one there longer

class Stretches {
 public:
  bool holds_any() const { return holds_any_; }

  // Whether the bytes of a value are there; its bits.
  bool read(const char* type, int64_t address, uint64_t* bits) {
    if (!holds_any_) return false;
    for (Stretch& each : all_) {
      if (each.type != type || address < each.low || each.high - address < each.size) continue;
      if (address % each.size != 0) return false;
      *bits = 0;
      memcpy(bits, each.bytes.data() + (address - each.begin), static_cast<size_t>(each.size));
      ++each.reads;
      return true;
    }
    return false;
  }

  // How many bytes from an address on to ask for: more where those of before were read, and none
  // where they were not, or where nothing but this value was asked for.
  int64_t wanted(const char* type, int64_t address) const {
    const Stretch* last = near(type, address);
    if (last == nullptr || address == last->asked) return 0;
    if (last->reads == 0) return last->wanted == 0 ? LEAST_WANTED : 0;
    return last->reads < WORTH ? last->wanted : std::min(GROWTH * last->wanted, MOST_WANTED);
  }

  // Keeps the bytes from `low` on that came with a value of so many bytes.
  void keep(const char* type, int64_t address, int64_t size, int64_t low, const char* bytes,
            size_t count) {
    const int64_t asked_for = wanted(type, address);
    Stretch* to = const_cast<Stretch*>(near(type, address));
    if (to == nullptr && all_.size() < MOST_STRETCHES)
      to = &all_.emplace_back();
    else if (to == nullptr)
      to = &all_[next_++ % MOST_STRETCHES];
    to->type = type;
    to->size = size;
    to->asked = address;
    to->wanted = asked_for;
    to->reads = 0;
    to->begin = to->low = low;
    to->high = low + static_cast<int64_t>(count);
    to->bytes.assign(bytes, bytes + count);
    holds_any_ = holds_any_ || count != 0;
  }

  // Drops what may be written; the longer part of what is left stays.
  void drop(int64_t low, int64_t high) {
    for (Stretch& each : all_) {
      if (each.low >= high || low >= each.high) continue;
      if (low - each.low > each.high - high)
        each.high = low;
      else
        each.low = std::min(high, each.high);
    }
  }

  void drop_all() {
    for (Stretch& each : all_) each.low = each.high;
    holds_any_ = false;
  }

 private:
  struct Stretch {
    const char* type;
    int64_t size;           // of a value
    int64_t asked, wanted;  // the last address, and how many bytes from there on
    int64_t begin;          // of the bytes
    int64_t low, high;      // those that still hold
    uint32_t reads;
    std::vector<char> bytes;
  };

  // The stretch at an address, or just before or behind it.
  const Stretch* near(const char* type, int64_t address) const {
    for (const Stretch& each : all_)
      if (each.type == type &&
          std::abs(address - each.asked) <= 2 * std::max(each.wanted, LEAST_WANTED))
        return &each;
    return nullptr;
  }

  std::vector<Stretch> all_;
  size_t next_ = 0;
  bool holds_any_ = false;
};

}  // namespace
