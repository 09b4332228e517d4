// What a block of machine code does, from its bytes: operations, divisions, calls of C's mathematics.
//
// Nothing is disassembled: x86-64's operations have four bytes on average, a division is found by
// its opcode, and a call by its target. Other hosts have four operations a block.
#pragma once

#include <dlfcn.h>
#include <link.h>
#include <stdint.h>
#include <string.h>

#include <algorithm>

namespace {

struct BlockOperations {
  uint32_t operations = 4, divisions = 0, functions = 0;
};

constexpr uint32_t MOST_BLOCK_BYTES = 4096, OPERATION_BYTES = 4, HOOK_BYTES = 12;

#if defined(__x86_64__) && defined(__linux__)

constexpr uint32_t CALL_BYTES = 5;

uintptr_t call_target(const uint8_t* call) {
  int32_t by = 0;
  memcpy(&by, call + 1, sizeof(by));
  return reinterpret_cast<uintptr_t>(call) + CALL_BYTES + static_cast<intptr_t>(by);
}

// The name of the function that an entry of the table of linked functions goes on with: by the
// library's relocations, as the function itself may have another name. Null if it is none.
const char* linked(const void* code, uintptr_t entry) {
  const uint8_t* at = reinterpret_cast<const uint8_t*>(entry);
  if (memcmp(at, "\xF3\x0F\x1E\xFA", 4) == 0) at += 4;
  if (*at == 0xF2) ++at;
  if (at[0] != 0xFF || at[1] != 0x25) return nullptr;
  int32_t by = 0;
  memcpy(&by, at + 2, sizeof(by));
  const uintptr_t slot = reinterpret_cast<uintptr_t>(at) + 6 + static_cast<intptr_t>(by);
  Dl_info of = {};
  link_map* map = nullptr;
  if (dladdr1(code, &of, reinterpret_cast<void**>(&map), RTLD_DL_LINKMAP) == 0) return nullptr;
  const Elf64_Sym* symbols = nullptr;
  const Elf64_Rela* jumps = nullptr;
  const char* names = nullptr;
  size_t bytes = 0;
  for (const Elf64_Dyn* each = map->l_ld; each->d_tag != DT_NULL; ++each) {
    if (each->d_tag == DT_SYMTAB) symbols = reinterpret_cast<const Elf64_Sym*>(each->d_un.d_ptr);
    if (each->d_tag == DT_STRTAB) names = reinterpret_cast<const char*>(each->d_un.d_ptr);
    if (each->d_tag == DT_JMPREL) jumps = reinterpret_cast<const Elf64_Rela*>(each->d_un.d_ptr);
    if (each->d_tag == DT_PLTRELSZ) bytes = each->d_un.d_val;
  }
  for (size_t n = 0; n < bytes / sizeof(Elf64_Rela); ++n)
    if (map->l_addr + jumps[n].r_offset == slot)
      return names + symbols[ELF64_R_SYM(jumps[n].r_info)].st_name;
  return nullptr;
}

// The series that a function of mathematics evaluates; none where it only rounds or compares.
uint32_t series_of(const char* name) {
  static const char* const by_series[] = {"sin", "cos",    "tan",    "asin", "acos",  "atan", "exp",
                                          "log", "pow",    "erf",    "cbrt", "hypot", "j0",   "j1",
                                          "jn",  "lgamma", "tgamma", "y0",   "y1",    "yn"};
  for (const char* each : by_series)
    if (strncmp(name, each, strlen(each)) == 0) return strncmp(name, "sincos", 6) == 0 ? 2 : 1;
  return 0;
}

// The end of the machine code that an address lies in, of the library at a base.
uintptr_t code_end(const void* base, uintptr_t address) {
  const uintptr_t start = reinterpret_cast<uintptr_t>(base);
  const Elf64_Ehdr* head = static_cast<const Elf64_Ehdr*>(base);
  const Elf64_Phdr* parts = reinterpret_cast<const Elf64_Phdr*>(start + head->e_phoff);
  for (uint32_t n = 0; n < head->e_phnum; ++n) {
    const uintptr_t from = start + parts[n].p_vaddr, end = from + parts[n].p_filesz;
    if (parts[n].p_type == PT_LOAD && address >= from && address < end) return end;
  }
  return address;
}

// The block that begins behind the call of the hook which returns to an address.
BlockOperations operations_behind(const void* address) {
  const uint8_t* begin = static_cast<const uint8_t*>(address);
  BlockOperations made;
  if (begin[-static_cast<int>(CALL_BYTES)] != 0xE8) return made;
  const uintptr_t hook = call_target(begin - CALL_BYTES);
  Dl_info own = {};
  if (dladdr(address, &own) == 0) return made;
  const uintptr_t start = reinterpret_cast<uintptr_t>(begin);
  const uintptr_t left = code_end(own.dli_fbase, start) - start;
  const uint32_t most = static_cast<uint32_t>(std::min<uintptr_t>(left, MOST_BLOCK_BYTES));
  uint32_t bytes = 0, hooks = 0;
  while (bytes + CALL_BYTES <= most) {
    const uint8_t* at = begin + bytes;
    if (*at == 0xE8) {
      const uintptr_t target = call_target(at);
      if (target == hook) break;
      Dl_info of = {};
      // The target of what is no call lies in no library, or not in this one.
      const bool is_call =
          dladdr(reinterpret_cast<void*>(target), &of) != 0 && of.dli_fbase == own.dli_fbase;
      const char* name = is_call ? linked(address, target) : nullptr;
      if (name != nullptr) made.functions += series_of(name);
      hooks += name != nullptr && strncmp(name, "__tsan_", 7) == 0;
      bytes += is_call ? CALL_BYTES : 1;
      continue;
    }
    // div and idiv of a register, of 4 or 8 bytes.
    made.divisions += *at == 0xF7 && at[1] >= 0xF0;
    ++bytes;
  }
  const uint32_t own_bytes = bytes > hooks * HOOK_BYTES ? bytes - hooks * HOOK_BYTES : 0;
  made.operations = 1 + own_bytes / OPERATION_BYTES;
  return made;
}

#else

BlockOperations operations_behind(const void*) { return {}; }

#endif

}  // namespace
