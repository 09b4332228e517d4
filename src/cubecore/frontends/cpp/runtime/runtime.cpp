// The recorder of C++ kernels: compiled once on the user's machine, loaded into the child process.
//
// Each core has buffers of kinds, source locations and addresses, in the recorder's own numbers. A
// call is looked up by its name and parameters (`Table`); Python is asked on a miss, when a buffer
// is full, when a value is needed, and at the end. Python answers a code: 0, or stop.

#include <cxxabi.h>
#include <stdio.h>
#include <stdlib.h>

#include <new>
#include <string>
#include <typeinfo>

#include "ahead.h"
#include "calls.h"
#include "crash.h"
#include "launches.h"
#include "lines.h"
#include "prints.h"
#include "program.h"
#include "records.h"
#include "sync.h"

namespace {

void noted(Core* core, const Entry* entry, uint32_t where) {
  int code = python.text(core->number, NOTE + entry->note, nullptr, nullptr, nullptr, where);
  resume(core);
  if (code != 0) stop();
}

// The type of what is being caught, as it is written.
std::string thrown_type() {
  const std::type_info* type = abi::__cxa_current_exception_type();
  if (type == nullptr) return "unknown";
  int failed = 0;
  char* name = abi::__cxa_demangle(type->name(), nullptr, nullptr, &failed);
  std::string written = failed == 0 ? name : type->name();
  free(name);
  return written;
}

}  // namespace

extern "C" {

void cubecore_bind(const Callbacks* callbacks) { python = *callbacks; }

// Numbers of calls and lines are those of one launch.
void cubecore_reset() {
  table = Table();
  canonical_calls = Table();
  lines.assign(4096, NO_LINE);
  lines_used = 0;
  current = nullptr;
}

Core* cubecore_core(uint32_t number) {
  Core* made = new Core{};
  made->number = number;
  made->kinds = new uint32_t[CAPACITY];
  made->wheres = new uint32_t[CAPACITY];
  made->addresses = new int64_t[MOST_ADDRESSES];
  return made;
}

// Gives back what a core has no use for when its kernel has ended.
void cubecore_done(Core* core) {
  delete[] core->kinds;
  delete[] core->wheres;
  delete[] core->addresses;
  delete core->order;
  core->kinds = core->wheres = nullptr;
  core->addresses = nullptr;
  core->order = nullptr;
}

// Runs a kernel on a core: 0, or 1 when it was stopped, 2 when it threw, 3 with a text.
int cubecore_run(Core* core, int (*entry)(const uint64_t*), const uint64_t* arguments) {
  resume(core);
  core->top = reinterpret_cast<uintptr_t>(__builtin_frame_address(0));
  raw = false;
  if (core->launch.auto_sync != 0) core->order = new order::Order();
  return entry(arguments);
}

void cubecore_issue(const char* call, const uint64_t* key, uint32_t words, const int64_t* addresses,
                    uint32_t pointers, const Where* at) {
  Core* core = current;
  core->last = *at;
  const Entry* entry = entry_of(call, key, words, pointers, at);
  uint32_t where = number_of(at);
  if (entry->flags & (MASKED | COUNTED | SETS_MASK | DROPPED)) {
    if ((entry->flags & DROPPED) || ((entry->flags & MASKED) && core->stale != 0))
      noted(core, entry, where);
    if (entry->flags & COUNTED) {
      core->stale = 1 + where;
      core->stale_note = entry->note;
    }
    if (entry->flags & SETS_MASK) core->stale = 0;
  }
  for (uint32_t n = 0; n < entry->steps; ++n) {
    const Step& step = entry->step[n];
    if (core->order != nullptr) ordered(core, step, addresses, at, where);
    if (core->count + 1 > CAPACITY || core->addresses_used + MOST_OPERANDS > MOST_ADDRESSES)
      hand_over(core);
    push(core, step, addresses, where);
  }
  if (entry->flags & WAITS) at_wait(core);
}

void cubecore_issue_raw(const char* call, const uint64_t* key, uint32_t words,
                        const int64_t* addresses, uint32_t pointers, const Where* at) {
  raw = true;
  cubecore_issue(call, key, words, addresses, pointers, at);
  raw = false;
}

int64_t cubecore_ask(const char* call, const uint64_t* key, uint32_t words,
                     const int64_t* addresses, uint32_t pointers, const Where* at,
                     uint32_t result) {
  cubecore_issue(call, key, words, addresses, pointers, at);
  Core* core = current;
  const Entry* entry = entry_of(call, key, words, pointers, at);
  int64_t answer = 0;
  int code = python.ask(core->number, entry->step[0].kind, result, &answer);
  resume(core);
  if (code != 0) stop();
  return answer;
}

uint64_t cubecore_load(uint8_t mem, const char* type, int64_t address, const Where* at) {
  Core* core = current;
  core->last = *at;
  uint64_t answer = 0;
  uint32_t where = number_of(at);
  if (core->order != nullptr && mem == static_cast<uint8_t>(cubecore::Mem::UB))
    before(core, order::S, address, address + 8, false, at, where);
  int code = python.load(core->number, mem, type, address, where, &answer);
  caught_up(core);
  if (code != 0) stop();
  return answer;
}

static void told(uint32_t what, const char* first, const char* second, const char* third,
                 const Where* at) {
  Core* core = current;
  uint32_t where = 0;
  if (at != nullptr) {
    core->last = *at;
    where = number_of(at);
  }
  int code = python.text(core->number, what, first, second, third, where);
  resume(core);
  if (code != 0) stop();
}

void cubecore_finding(const char* kind, const char* subject, const char* message, const Where* at) {
  told(0, kind, subject, message, at);
}

void cubecore_refuse(const char* subject, const char* need, const char* got, const Where* at) {
  if (current == nullptr) {  // host code: an assertion of its own
    fprintf(stderr, "%s:%u: %s must %s, got %s\n", at->file, at->line, subject, need, got);
    abort();
  }
  told(1, subject, need, got, at);
  stop();
}

void cubecore_ended() {
  if (divided.count == 0 || divided.core != current->number) return;
  const Where at = divided.last;
  divided = {};
  const char* sentence =
      "a divisor must not be 0, and INT_MIN must not be divided by -1, got such "
      "a division behind this line; its quotient is 0 here";
  told(0, "parameter", "an integer division", sentence, at.file == nullptr ? nullptr : &at);
}

void cubecore_thrown(const char* text) {
  uint32_t where = ~0u;  // nothing was issued yet
  try {
    if (current->last.file != nullptr) where = number_of(&current->last);
  } catch (const cubecore::Stop&) {
  }
  const std::string of_type = text == nullptr ? "an object of type " + thrown_type() : text;
  python.text(current->number, 6, of_type.c_str(), nullptr, nullptr, where);
}

void cubecore_print(const char* text) {
  if (current == nullptr)
    fputs(text, stdout);
  else
    before_output(), told(2, text, nullptr, nullptr, nullptr);
}

void cubecore_flush(const Where* at) {
  Core* core = current;
  told(4, nullptr, nullptr, nullptr, at);
  caught_up(core);
}

void cubecore_dump(uint8_t mem, const char* type, int64_t address, uint32_t desc, uint32_t count,
                   const uint32_t* shape, uint32_t dims, const Where* at) {
  before_output();
  Core* core = current;
  core->last = *at;
  uint32_t flat[1] = {count};
  int code = python.dump(core->number, mem, type, address, desc, dims == 0 ? flat : shape,
                         dims == 0 ? 1 : dims, number_of(at));
  resume(core);
  if (code != 0) stop();
}

// Asks for what a Matmul object does (cubecore/matmul/call.h).
int64_t cubecore_matmul(uint32_t what, const void* call, int64_t number, const Where* at) {
  Core* core = current;
  core->last = *at;
  int64_t answer = 0;
  int code = python.matmul(core->number, what, call, number, number_of(at), &answer);
  resume(core);
  if (code != 0) stop();
  return answer;
}

const Launch* cubecore_launch() { return &current->launch; }

void** cubecore_slot(uint32_t slot) { return &current->slots[slot]; }

void cubecore_mark(const Where* at) { current->last = *at; }

const Where* cubecore_last() { return &current->last; }
}
