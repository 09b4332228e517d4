// Buffers of local memories that a pipe has given, and the accesses that leave the one they begin
// in, or the one that their tensor is of.
#pragma once

#include <stdint.h>

#include <set>
#include <tuple>
#include <unordered_set>
#include <vector>

namespace {

struct Extent {
  int64_t low, high;
};

// An operand of the next instruction whose tensor has an end of its own.
struct Held {
  uint32_t memory;
  int64_t base;
  Extent bytes;
};

class Buffers {
 public:
  bool any() const { return any_ || !held_.empty(); }

  // Takes bytes of a memory that may be used as one.
  void enter(uint32_t memory, Extent extent) {
    any_ = true;
    for (const Extent& each : all_[memory])
      if (each.low <= extent.low && extent.high <= each.high) return;
    all_[memory].push_back(extent);
  }

  // Takes an array, unless the kernel has addresses of its own, which may be the same bytes.
  void enter_array(uint32_t memory, Extent extent) {
    if (own_addresses_) return;
    has_arrays_ = true;
    enter(memory, extent);
  }
  void take_own_addresses() {
    own_addresses_ = true;
    if (!has_arrays_) return;
    has_arrays_ = false;
    forget();
  }

  void forget() {
    any_ = false;
    for (std::vector<Extent>& each : all_) each.clear();
    asked_.clear();
    held_.clear();
  }

  void hold(Held operand) { held_.push_back(operand); }
  void behind_instruction() { held_.clear(); }

  // The bytes of the tensor that an operand is of; else the longest buffer that an address lies
  // in, if none has all bytes of an access; else null. Operands that begin together are told apart
  // by no address: one tensor that has all bytes will do.
  const Extent* left_by(uint32_t memory, int64_t base, Extent touched) const {
    const Extent* found = nullptr;
    for (const Held& each : held_) {
      if (each.memory != memory || each.base != base) continue;
      if (holds(each.bytes, touched)) return nullptr;
      found = &each.bytes;
    }
    if (found != nullptr) return found;
    for (const Extent& each : all_[memory]) {
      if (base < each.low || base >= each.high) continue;
      if (holds(each, touched)) return nullptr;
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
  static bool holds(Extent extent, Extent touched) {
    return extent.low <= touched.low && touched.high <= extent.high;
  }

  bool any_ = false, own_addresses_ = false;
  std::vector<Extent> all_[8];  // by memory
  bool has_arrays_ = false;
  std::vector<Held> held_;
  std::unordered_set<uint64_t> asked_;
};

// Tensors and arrays that the kernels of a launch have made, which cores make alike.
class Arrays {
 public:
  // True the first time for bytes of a memory; a kernel with more than some takes others each time.
  bool is_new(uint32_t memory, Extent extent) {
    const Entry entry = {memory, extent.low, extent.high};
    Entry& recent = recent_[(extent.low >> 5 ^ memory) % RECENT];
    if (recent == entry) return false;
    recent = entry;
    return all_.size() < MOST && all_.insert(entry).second;
  }

 private:
  using Entry = std::tuple<uint32_t, int64_t, int64_t>;
  static constexpr size_t MOST = 512, RECENT = 64;
  std::set<Entry> all_;
  Entry recent_[RECENT] = {};
};

}  // namespace
