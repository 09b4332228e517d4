// Integer divisions without a result, which a chip's scalar unit does not stop at: the quotient is
// 0, the remainder the dividend, and the launch has a finding. Hosts that do not trap do the same.
#pragma once

#include <signal.h>
#include <ucontext.h>

#include "recording/records.h"

namespace {

struct Divided {
  uint32_t count;
  uint32_t core;
  Where last;
};

Divided divided = {};  // of the first core that did

#if defined(__x86_64__) && defined(__linux__)

// The bytes of a div or idiv at `code`, 0 of another instruction; `bits` are those of its result.
inline size_t division_bytes(const uint8_t* code, uint32_t* bits) {
  const uint8_t* at = code;
  bool narrow = false, wide = false;
  for (; *at == 0x66 || *at == 0x3e || *at == 0x2e; ++at) narrow = narrow || *at == 0x66;
  if ((*at & 0xf0) == 0x40) wide = (*at++ & 8) != 0;
  if (*at != 0xf6 && *at != 0xf7) return 0;
  *bits = *at == 0xf6 ? 8 : wide ? 64 : narrow ? 16 : 32;
  ++at;
  const uint8_t form = *at++, mode = form >> 6, base = form & 7;
  if ((form >> 3 & 7) < 6) return 0;
  bool sized = mode == 0 && base == 5;
  if (mode != 3 && base == 4) sized = (*at++ & 7) == 5 && mode == 0;
  if (mode == 1) at += 1;
  if (mode == 2 || sized) at += 4;
  return static_cast<size_t>(at - code);
}

inline bool goes_on_behind_division(void* context) {
  if (current == nullptr) return false;
  auto& registers = static_cast<ucontext_t*>(context)->uc_mcontext.gregs;
  uint32_t bits = 0;
  size_t bytes = division_bytes(reinterpret_cast<const uint8_t*>(registers[REG_RIP]), &bits);
  if (bytes == 0) return false;
  uint64_t low = static_cast<uint64_t>(registers[REG_RAX]);
  uint64_t high = static_cast<uint64_t>(registers[REG_RDX]);
  if (bits == 8) {
    low = (low & ~0xffffull) | (low & 0xff) << 8;
  } else if (bits == 16) {
    high = (high & ~0xffffull) | (low & 0xffff);
    low &= ~0xffffull;
  } else {
    high = bits == 32 ? low & 0xffffffff : low;
    low = 0;
  }
  registers[REG_RAX] = static_cast<greg_t>(low);
  registers[REG_RDX] = static_cast<greg_t>(high);
  registers[REG_RIP] += static_cast<greg_t>(bytes);
  if (divided.count == 0) {
    divided.core = current->number;
    divided.last = current->last;
  }
  ++divided.count;
  return true;
}

#else

inline bool goes_on_behind_division(void*) { return false; }

#endif

}  // namespace
