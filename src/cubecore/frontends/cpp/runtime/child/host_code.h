// One instruction of the host that touches memory: how many bytes it reads or writes, and the same
// instruction for another address. Instructions of x86-64 with one operand in memory, as compilers
// make them of C++, and the copies and fills of strings.
#pragma once

#include <stdint.h>
#include <string.h>

namespace {

enum class Repeats : uint8_t { NOT, COPY, FILL };  // movs and stos

struct HostCode {
  uint8_t length = 0;     // 0: it is not known
  uint8_t mode_at = 0;    // where its ModRM is
  uint8_t behind_at = 0;  // where an immediate would be, behind its address
  uint8_t bytes = 0;      // that it touches
  bool reads = false, writes = false;
  Repeats repeats = Repeats::NOT;
  bool counted = false;  // a copy or a fill as often as a register says
};

#if defined(__x86_64__) && defined(__linux__)

class HostCodeReader {
 public:
  explicit HostCodeReader(const uint8_t* code) : code_(code) {}

  HostCode read() {
    prefixes();
    const uint8_t first = code_[at_];
    if (first == 0xc5 || first == 0xc4 || first == 0x62) {
      if (!vector_prefix(first)) return {};
    } else if (first == 0x0f) {
      map_ = 1, ++at_;
      if (code_[at_] == 0x38) map_ = 2, ++at_;
      if (code_[at_] == 0x3a) map_ = 3, ++at_;
    }
    op_ = code_[at_++];
    if (map_ == 0 && string_code()) return made_;
    const uint8_t mode = code_[at_];
    digit_ = mode >> 3 & 7;
    if (refused_ || mode >> 6 == 3) return {};
    made_.mode_at = at_;
    address();
    made_.behind_at = at_;
    if (!(map_ == 0 ? plain() : map_ == 1 ? second_map() : map_ == 2 ? third_map() : false))
      return {};
    made_.length = at_;
    return made_;
  }

 private:
  void prefixes() {
    for (;; ++at_) {
      const uint8_t next = code_[at_];
      if (next == 0x66)
        word_ = true;
      else if (next == 0xf2 || next == 0xf3)
        repeat_ = next;
      else if (next == 0x64 || next == 0x65 || next == 0x67)
        refused_ = true;
      else if (next != 0xf0 && next != 0x2e && next != 0x3e)
        break;
    }
    if ((code_[at_] & 0xf0) == 0x40) wide_ = (code_[at_++] & 8) != 0;
  }

  // The prefixes of instructions on vectors, with the map and the prefix that they stand for.
  bool vector_prefix(uint8_t first) {
    uint8_t last = code_[at_ + 1];
    on_vectors_ = true;
    if (first == 0xc4) {
      map_ = last & 0x1f;
      last = code_[at_ + 2];
      wide_ = (last & 0x80) != 0;
    } else if (first == 0x62) {
      map_ = last & 7;
      last = code_[at_ + 2];
      wide_ = (last & 0x80) != 0;
      const uint8_t third = code_[at_ + 3];
      if ((third & 0x17) != 0) return false;  // a mask, or one element for all
      vector_bytes_ = third >> 5 == 0 ? 16 : third >> 5 == 1 ? 32 : 64;
    } else {
      map_ = 1;
    }
    if (first != 0x62) vector_bytes_ = (last & 4) != 0 ? 32 : 16;
    constexpr uint8_t stands_for[] = {0, 0x66, 0xf3, 0xf2};
    const uint8_t prefix = stands_for[last & 3];
    word_ = prefix == 0x66;
    repeat_ = prefix == 0x66 ? 0 : prefix;
    at_ += first == 0xc5 ? 2 : first == 0xc4 ? 3 : 4;
    return map_ == 1 || map_ == 2;
  }

  // Bytes of an address behind its ModRM.
  void address() {
    const uint8_t mode = code_[at_] >> 6, base = code_[at_] & 7;
    ++at_;
    bool sized = mode == 0 && base == 5;
    if (base == 4) sized = (code_[at_++] & 7) == 5 && mode == 0;
    at_ += mode == 1 ? 1 : mode == 2 || sized ? 4 : 0;
  }

  bool string_code() {
    if (op_ != 0xa4 && op_ != 0xa5 && op_ != 0xaa && op_ != 0xab) return false;
    made_.repeats = op_ < 0xa8 ? Repeats::COPY : Repeats::FILL;
    made_.bytes = (op_ & 1) == 0 ? 1 : element();
    made_.counted = repeat_ != 0;
    made_.length = refused_ ? 0 : at_;
    return true;
  }

  uint8_t element() const { return wide_ ? 8 : word_ ? 2 : 4; }

  bool reads(uint8_t bytes, uint8_t immediate = 0) { return takes(bytes, true, false, immediate); }
  bool writes(uint8_t bytes, uint8_t immediate = 0) { return takes(bytes, false, true, immediate); }
  bool changes(uint8_t bytes, uint8_t immediate = 0) { return takes(bytes, true, true, immediate); }
  bool takes(uint8_t bytes, bool reads, bool writes, uint8_t immediate) {
    made_.bytes = bytes;
    made_.reads = reads;
    made_.writes = writes;
    at_ += immediate;
    return true;
  }

  // Instructions of one byte.
  bool plain() {
    const uint8_t bytes = (op_ & 1) == 0 ? 1 : element();
    const uint8_t immediate = bytes == 1 ? 1 : word_ ? 2 : 4;
    if (op_ < 0x40 && (op_ & 7) < 4) {  // add, or, adc, sbb, and, sub, xor, cmp
      return (op_ & 2) != 0 || op_ >= 0x38 ? reads(bytes) : changes(bytes);
    }
    switch (op_) {
      case 0x63:
        return reads(4);
      case 0x69:
        return reads(element(), word_ ? 2 : 4);
      case 0x6b:
        return reads(element(), 1);
      case 0x80:
      case 0x81:
        return digit_ == 7 ? reads(bytes, immediate) : changes(bytes, immediate);
      case 0x83:
        return digit_ == 7 ? reads(bytes, 1) : changes(bytes, 1);
      case 0x84:
      case 0x85:
        return reads(bytes);
      case 0x86:
      case 0x87:
        return changes(bytes);
      case 0x88:
      case 0x89:
        return writes(bytes);
      case 0x8a:
      case 0x8b:
        return reads(bytes);
      case 0xc0:
      case 0xc1:
        return changes(bytes, 1);
      case 0xc6:
      case 0xc7:
        return writes(bytes, immediate);
      case 0xd0:
      case 0xd1:
      case 0xd2:
      case 0xd3:
        return changes(bytes);
      case 0xf6:
      case 0xf7:
        if (digit_ < 2) return reads(bytes, immediate);
        return digit_ < 4 ? changes(bytes) : reads(bytes);
      case 0xfe:
        return changes(1);
      case 0xff:
        return digit_ < 2 ? changes(element()) : digit_ == 6 && reads(8);
      default:
        return false;
    }
  }

  // Bytes of a vector, or of the one element that a prefix names.
  uint8_t vector() const { return repeat_ == 0xf3 ? 4 : repeat_ == 0xf2 ? 8 : vector_bytes_; }
  uint8_t integers() const { return word_ || repeat_ != 0 ? vector_bytes_ : 8; }
  uint8_t half() const { return static_cast<uint8_t>(vector_bytes_ / 2); }

  // Instructions of two bytes, the first of them 0x0f.
  bool second_map() {
    if (op_ >= 0x40 && op_ < 0x50) return reads(element());
    if (op_ >= 0x90 && op_ < 0xa0) return !on_vectors_ && writes(1);
    if (op_ >= 0x51 && op_ < 0x60 && op_ != 0x5a) return reads(vector());
    if ((op_ >= 0x60 && op_ < 0x6e) || (op_ >= 0x74 && op_ < 0x77)) return reads(integers());
    switch (op_) {
      case 0x10:
        return reads(vector());
      case 0x11:
        return writes(vector());
      case 0x12:
        return reads(repeat_ == 0xf3 ? vector_bytes_ : 8);
      case 0x16:
        return reads(repeat_ == 0xf3 ? vector_bytes_ : 8);
      case 0x13:
      case 0x17:
      case 0xd6:
        return writes(8);
      case 0x14:
      case 0x15:
      case 0x28:
        return reads(vector_bytes_);
      case 0x29:
      case 0x2b:
        return writes(vector_bytes_);
      case 0x2a:
        return reads(repeat_ == 0 ? 8 : wide_ ? 8 : 4);
      case 0x2c:
      case 0x2d:
        return reads(repeat_ == 0 ? word_ ? 16 : 8 : vector());
      case 0x2e:
      case 0x2f:
        return reads(word_ ? 8 : 4);
      case 0x5a:
        return reads(repeat_ == 0 && !word_ ? half() : vector());
      case 0x6e:
        return reads(wide_ ? 8 : 4);
      case 0x6f:
        return reads(integers());
      case 0x70:
        return reads(integers(), 1);
      case 0x7e:
        return repeat_ == 0xf3 ? reads(8) : writes(wide_ ? 8 : 4);
      case 0x7f:
        return writes(integers());
      case 0xaf:
      case 0xb8:
      case 0xbc:
      case 0xbd:
        return reads(element());
      case 0xb0:
      case 0xb1:
      case 0xc0:
      case 0xc1:
        return changes((op_ & 1) == 0 ? 1 : element());
      case 0xb6:
      case 0xbe:
        return reads(1);
      case 0xb7:
      case 0xbf:
        return reads(2);
      case 0xba:
        return digit_ == 4 ? reads(element(), 1) : digit_ > 4 && changes(element(), 1);
      case 0xc2:
        return reads(vector(), 1);
      case 0xc3:
        return writes(wide_ ? 8 : 4);
      case 0xc4:
        return reads(2, 1);
      case 0xc6:
        return reads(vector_bytes_, 1);
      case 0xc7:
      case 0xd7:
      case 0xf7:
      case 0xff:
        return false;
      case 0xe6:
        return reads(repeat_ == 0xf3 ? half() : vector_bytes_);
      case 0xe7:
        return writes(integers());
      case 0xf0:
        return reads(vector_bytes_);
      default:
        return op_ > 0xd0 && reads(integers());
    }
  }

  // Instructions behind 0x0f 0x38: what compilers of newer processors make.
  bool third_map() {
    if (op_ == 0x18) return reads(4);  // one element for all
    if (op_ == 0xf0 || op_ == 0xf1)    // bytes the other way round
      return op_ == 0xf0 ? reads(element()) : writes(element());
    const uint8_t shares[] = {2, 4, 8, 2, 4, 2};  // of a vector, to wider elements
    const uint8_t row = op_ & 0xf0, number = op_ & 0xf;
    if ((row == 0x20 || row == 0x30) && number < 6)
      return reads(static_cast<uint8_t>(vector_bytes_ / shares[number]));
    return word_ && (op_ < 0x0c || (op_ > 0x1b && op_ < 0x42)) && reads(vector_bytes_);
  }

  const uint8_t* code_;
  HostCode made_;
  uint8_t at_ = 0, map_ = 0, op_ = 0, digit_ = 0, repeat_ = 0, vector_bytes_ = 16;
  bool word_ = false, wide_ = false, refused_ = false, on_vectors_ = false;
};

// The same instruction with its operand at `operand`, near `to`, which it is written to; the bytes
// of it.
size_t moved(const uint8_t* code, const HostCode& host_code, uint8_t* to, const void* operand) {
  const size_t before = host_code.mode_at;
  const size_t behind = static_cast<size_t>(host_code.length - host_code.behind_at);
  const size_t length = before + 1 + sizeof(int32_t) + behind;
  memcpy(to, code, before);
  to[before] = static_cast<uint8_t>((code[before] & 0x38) | 5);  // counted from its end
  const int32_t distance =
      static_cast<int32_t>(static_cast<const uint8_t*>(operand) - (to + length));
  memcpy(to + before + 1, &distance, sizeof(distance));
  memcpy(to + before + 1 + sizeof(distance), code + host_code.behind_at, behind);
  return length;
}

#endif

}  // namespace
