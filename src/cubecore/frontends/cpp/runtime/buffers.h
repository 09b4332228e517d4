// Buffers of UB that a pipe has given, and the accesses that leave the one they begin in.
#pragma once

#include <stdint.h>

#include <unordered_set>
#include <vector>

namespace {

struct Extent {
  int64_t low, high;
};

class Buffers {
 public:
  bool any() const { return !all_.empty(); }

  // Takes bytes that may be used as one.
  void enter(Extent extent) {
    for (const Extent& each : all_)
      if (each.low <= extent.low && extent.high <= each.high) return;
    all_.push_back(extent);
  }

  void forget() {
    all_.clear();
    asked_.clear();
  }

  // The longest buffer that an address lies in, if none has all bytes of an access; else null.
  const Extent* left_by(int64_t base, Extent touched) const {
    const Extent* found = nullptr;
    for (const Extent& each : all_) {
      if (base < each.low || base >= each.high) continue;
      if (each.low <= touched.low && touched.high <= each.high) return nullptr;
      if (found == nullptr || found->high - found->low < each.high - each.low) found = &each;
    }
    return found;
  }

  // True the first time for an operand of an instruction at an address.
  bool is_new(uint32_t kind, uint32_t operand, int64_t base) {
    const uint64_t place = static_cast<uint64_t>(base) << 3 | operand;
    return asked_.insert(place << 32 | kind).second;
  }

 private:
  std::vector<Extent> all_;
  std::unordered_set<uint64_t> asked_;
};

}  // namespace
