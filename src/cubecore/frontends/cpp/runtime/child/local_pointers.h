// Accesses of UB by plain pointers: they fault, and become a scalar load or store each.
//
// An address in UB is a number that no process has memory at. The instruction of the host that
// faults is made again for a few bytes beside it: before it runs they are loaded from UB, and
// behind it they are stored there. Both take place on the core's own stack, where it may ask.
#pragma once

#include <signal.h>
#include <sys/mman.h>
#include <ucontext.h>

#include <algorithm>
#include <unordered_map>

#include "child/host_code.h"
#include "recording/lines.h"

namespace {

bool local_pointers = false;  // a library that was loaded may have some
uintptr_t threads_ub = 0;     // where threads have UB, while some run that may have such pointers

constexpr uint64_t LOCAL_END = 1ull << 32;  // the host's own addresses are above
constexpr size_t MOST_BYTES = 64;           // of one access

bool has_local_address(uint64_t address) {
  return (local_pointers || threads_ub != 0) && current != nullptr && current->launch.is_cube == 0 &&
         address < LOCAL_END;
}

// Loads and stores bytes as the widest elements that lie in them aligned.
template <typename F>
void each_element(int64_t address, size_t bytes, F work) {
  static const char* const types[] = {"uint8", "uint16", "uint32", "uint64"};
  for (size_t at = 0; at < bytes;) {
    uint32_t power = 3;
    while ((address + static_cast<int64_t>(at)) % (1 << power) != 0 || at + (1u << power) > bytes)
      --power;
    work(types[power], address + static_cast<int64_t>(at), at, size_t{1} << power);
    at += size_t{1} << power;
  }
}

void load_bytes(int64_t address, uint8_t* to, size_t bytes) {
  if (threads_ub != 0) {
    memcpy(to, reinterpret_cast<const void*>(threads_ub + static_cast<uint64_t>(address)), bytes);
    return;
  }
  constexpr uint8_t ub = static_cast<uint8_t>(cubecore::Mem::UB);
  each_element(address, bytes, [&](const char* type, int64_t from, size_t at, size_t size) {
    const uint64_t bits = cubecore_load(ub, type, from, &current->last);
    memcpy(to + at, &bits, size);
  });
}

void store_bytes(int64_t address, const uint8_t* from, size_t bytes) {
  if (threads_ub != 0) {
    memcpy(reinterpret_cast<void*>(threads_ub + static_cast<uint64_t>(address)), from, bytes);
    return;
  }
  constexpr uint8_t ub = static_cast<uint8_t>(cubecore::Mem::UB);
  each_element(address, bytes, [&](const char* type, int64_t to, size_t at, size_t size) {
    uint64_t bits = 0;
    memcpy(&bits, from + at, size);
    cubecore::store_bits(ub, type, to, bits, current->last);
  });
}

#if defined(__x86_64__) && defined(__linux__)

constexpr uint8_t STOP = 0xcc;

void jump(uint8_t* from, uint64_t to) {
  constexpr uint8_t indirect[] = {0xff, 0x25, 0, 0, 0, 0};  // to the address behind itself
  memcpy(from, indirect, sizeof(indirect));
  memcpy(from + sizeof(indirect), &to, sizeof(to));
}

// Whether an instruction lies in the library of the kernel that runs.
bool in_kernel(uint64_t code) {
  Dl_info of_code = {}, of_kernel = {};
  dladdr(reinterpret_cast<const void*>(code), &of_code);
  dladdr(reinterpret_cast<const void*>(current->entry), &of_kernel);
  return of_code.dli_fbase == of_kernel.dli_fbase;
}

// Pages that instructions are made in, and the bytes that these touch. Each instruction has its own
// part, which stays.
struct Workshop {
  static constexpr size_t BYTES = 1 << 20, PART_BYTES = 64;
  uint8_t* pages = nullptr;  // null where there may be none: all ends as a crash
  size_t used = 0;

  bool open() {
    if (pages != nullptr) return true;
    void* got = mmap(nullptr, BYTES, PROT_READ | PROT_WRITE | PROT_EXEC,
                     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (got == MAP_FAILED) return false;
    pages = static_cast<uint8_t*>(got);
    used = MOST_BYTES;
    pages[used] = STOP;
    used += PART_BYTES;
    return true;
  }
  uint8_t* operand() const { return pages; }
  uint8_t* begin() const { return pages + MOST_BYTES; }  // where an access begins, on its stack
  bool holds(uint64_t address) const {
    return pages != nullptr && address - reinterpret_cast<uint64_t>(pages) < BYTES;
  }
  uint8_t* part() {
    if (used + PART_BYTES > BYTES) used = MOST_BYTES + PART_BYTES, made.clear();
    used += PART_BYTES;
    return pages + used - PART_BYTES;
  }

  struct Made {
    HostCode host_code;
    uint8_t* part;
    bool of_kernel;  // not of C's library, whose functions lead back to the kernel's call
  };
  std::unordered_map<uint64_t, Made> made;  // by the address of the instruction that it is of

  const Made& made_of(uint64_t code) {
    auto found = made.find(code);
    if (found != made.end()) return found->second;
    const uint8_t* bytes = reinterpret_cast<const uint8_t*>(code);
    Made one = {HostCodeReader(bytes).read(), nullptr, in_kernel(code)};
    if (one.host_code.length != 0 && one.host_code.repeats == Repeats::NOT) {
      one.part = part();
      uint8_t* end = one.part + moved(bytes, one.host_code, one.part, operand());
      if (one.host_code.writes)
        *end = STOP;
      else
        jump(end, code + one.host_code.length);
    }
    return made[code] = one;
  }
} workshop;

greg_t& register_of(void* context, int number) {
  return static_cast<ucontext_t*>(context)->uc_mcontext.gregs[number];
}

// A fault at an address of UB: the access begins on the core's own stack.
bool begins_access(void* context, uint64_t address) {
  if (!has_local_address(address) || !workshop.open()) return false;
  greg_t& code = register_of(context, REG_RIP);
  const Workshop::Made& made = workshop.made_of(static_cast<uint64_t>(code));
  if (made.host_code.length == 0) return false;
  const auto at = static_cast<uintptr_t>(code);
  const auto top = reinterpret_cast<const uintptr_t*>(register_of(context, REG_RSP));
  current->access = {at, made.of_kernel ? at + 1 : *top,
                     static_cast<uintptr_t>(register_of(context, REG_RBP)), address};
  const bool stores = made.host_code.writes && !made.host_code.reads;
  code = reinterpret_cast<greg_t>(stores ? made.part : workshop.begin());
  return true;
}

// What a pointer's register says of bytes: of UB, or of the process.
void read_any(uint64_t address, uint8_t* to, size_t bytes) {
  if (address < LOCAL_END)
    load_bytes(static_cast<int64_t>(address), to, bytes);
  else
    memcpy(to, reinterpret_cast<const void*>(address), bytes);
}

void write_any(uint64_t address, const uint8_t* from, size_t bytes) {
  if (address < LOCAL_END)
    store_bytes(static_cast<int64_t>(address), from, bytes);
  else
    memcpy(reinterpret_cast<void*>(address), from, bytes);
}

// A copy or a fill of elements, one after another.
void repeat(void* context, const HostCode& host_code) {
  greg_t &to = register_of(context, REG_RDI), &from = register_of(context, REG_RSI);
  greg_t& left = register_of(context, REG_RCX);
  for (; !host_code.counted || left != 0; --left) {
    uint8_t element[8];
    memcpy(element, &register_of(context, REG_RAX), sizeof(element));
    if (host_code.repeats == Repeats::COPY) {
      read_any(static_cast<uint64_t>(from), element, host_code.bytes);
      from += host_code.bytes;
    }
    write_any(static_cast<uint64_t>(to), element, host_code.bytes);
    to += host_code.bytes;
    if (!host_code.counted) return;
  }
}

// A stop in the workshop, on the core's own stack: before what loads, or behind what stores.
bool goes_on_with_access(void* context) {
  greg_t& code = register_of(context, REG_RIP);
  const uint64_t stop = static_cast<uint64_t>(code) - 1;
  if (!workshop.holds(stop)) return false;
  const PointerAccess access = current->access;
  const HostCode host_code = workshop.made_of(access.code).host_code;
  const int64_t address = static_cast<int64_t>(access.address);
  const bool is_string = host_code.repeats != Repeats::NOT;
  uint8_t bytes[MOST_BYTES];
  if (!is_string && stop == reinterpret_cast<uint64_t>(workshop.begin())) {
    load_bytes(address, bytes, host_code.bytes);
    memcpy(workshop.operand(), bytes, host_code.bytes);  // behind what other cores did meanwhile
    code = reinterpret_cast<greg_t>(workshop.made_of(access.code).part);
    if (!host_code.writes) current->access = {};
    return true;
  }
  if (is_string) {
    repeat(context, host_code);
  } else {
    memcpy(bytes, workshop.operand(), host_code.bytes);
    store_bytes(address, bytes, host_code.bytes);
  }
  code = static_cast<greg_t>(access.code + host_code.length);
  current->access = {};
  return true;
}

#else

bool begins_access(void*, uint64_t) { return false; }
bool goes_on_with_access(void*) { return false; }

#endif

}  // namespace
