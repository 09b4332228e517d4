// The recorder of C++ kernels: compiled once on the user's machine, for a process of its own.
//
// Kinds, source locations and addresses are recorded in the recorder's own numbers. A call is
// looked up by its name and parameters (`Table`); Python is asked on a miss, when the records are
// full, when a value is needed, and at the end. A core that Python has no answer for does not go
// on.

#define CUBECORE_FIXED  // a thread's indices are constants for threads alone

#include <cxxabi.h>
#include <stdio.h>
#include <stdlib.h>

#include <initializer_list>
#include <algorithm>
#include <new>
#include <string>

#include "child/constants.h"
#include "child/crash.h"
#include "child/prints.h"
#include "child/serve.h"
#include "recording/calls.h"
#include "recording/lines.h"
#include "recording/records.h"
#include "recording/sync.h"
#include "recording/vector_functions.h"
#include "simt/run.h"

namespace {

// Tells a text of a core: its kind, up to three parts, and the count that stands in the mask.
void told(Core* core, uint32_t what, uint32_t where, const char* first = nullptr,
          const char* second = nullptr, const char* third = nullptr) {
  Message question(TEXT, core->number);
  question.word(what).word(where).word(core->stale).word(core->stale_note);
  asked(core, question.text(first).text(second).text(third));
}

void told_numbers(Core* core, uint32_t what, uint32_t where,
                  std::initializer_list<int64_t> numbers) {
  std::string text;
  for (int64_t each : numbers) text += std::to_string(each) + ' ';
  told(core, what, where, text.c_str());
}

// Asks whether an instruction leaves a buffer, where it may under some mask.
void judge_buffers(Core* core, const Step& step, const int64_t* addresses, uint32_t where) {
  constexpr int64_t ANYWHERE = 1ll << 32;
  for (uint32_t n = 0; n < step.operands; ++n) {
    const uint32_t memory = step.memory[n];
    if (memory == 0 || step.pointers[n] < 0 || step.high[n] - step.low[n] >= ANYWHERE) continue;
    const Reach reach = reach_of(core, step, n, addresses);
    const int64_t base = addresses[step.pointers[n]];
    const Extent* left = core->buffers.left_by(memory, base, {reach.low, reach.high});
    if (left == nullptr || !core->buffers.is_new(step.kind, n, base)) continue;
    told_numbers(core, TELLS_BUFFER, where, {step.kind, n, base, left->low, left->high});
  }
}

// Issues a known body whose operands lie from a base on.
void issue_function(Core* core, const KnownFunction& known, int64_t base, const Where* at) {
  std::vector<int64_t> addresses;
  for (int64_t start : known.starts) addresses.push_back(base + start);
  const Step& step = known.entry.step[0];
  const uint32_t where = number_of(at);
  if (core->order != nullptr) ordered(core, step, addresses.data(), at, where);
  push(core, step, addresses.data(), where);
  if (core->near.holds_any()) drop_written(core, step, addresses.data());
  if (core->buffers.any()) {
    judge_buffers(core, step, addresses.data(), where);
    core->buffers.behind_instruction();
  }
}

// A type as it is written, by the name that the compiler has for it.
std::string written(const char* type) {
  if (type == nullptr) return "unknown";
  int failed = 0;
  char* name = abi::__cxa_demangle(type, nullptr, nullptr, &failed);
  std::string found = failed == 0 ? name : type;
  free(name);
  return found;
}

}  // namespace

extern "C" {

void cubecore_issue(const char* call, const uint64_t* key, uint32_t words, const int64_t* addresses,
                    const Where* at) {
  Core* core = current;
  core->last = *at;
  const Entry* entry = entry_of(call, key, words, at);
  uint32_t where = number_of(at);
  if (entry->flags & (MASKED | COUNTED | SETS_MASK | DROPPED)) {
    if ((entry->flags & DROPPED) || ((entry->flags & MASKED) && core->stale != 0))
      told(core, TELLS_NOTE + entry->note, where);
    if (entry->flags & COUNTED) {
      core->stale = 1 + where;
      core->stale_note = entry->note;
    }
    if (entry->flags & SETS_MASK) core->stale = 0;
  }
  for (uint32_t n = 0; n < entry->steps; ++n) {
    const Step& step = entry->step[n];
    core->mask.follow(step);
    if (core->order != nullptr) ordered(core, step, addresses, at, where);
    push(core, step, addresses, where);
    if (core->near.holds_any()) drop_written(core, step, addresses);
    if (core->buffers.any()) judge_buffers(core, step, addresses, where);
  }
  if (core->buffers.any()) core->buffers.behind_instruction();
  if (entry->flags & WAITS) at_wait(core);
}

void cubecore_issue_raw(const char* call, const uint64_t* key, uint32_t words,
                        const int64_t* addresses, const Where* at) {
  raw = true;
  cubecore_issue(call, key, words, addresses, at);
  raw = false;
}

int64_t cubecore_ask(const char* call, const uint64_t* key, uint32_t words,
                     const int64_t* addresses, const Where* at, uint32_t result) {
  cubecore_issue(call, key, words, addresses, at);
  Core* core = current;
  const Entry* entry = entry_of(call, key, words, at);
  Message question(ASK, core->number);
  return static_cast<int64_t>(asked(core, question.word(entry->step[0].kind).word(result)).word());
}

uint64_t cubecore_load(uint8_t mem, const char* type, int64_t address, const Where* at) {
  Core* core = current;
  core->last = *at;
  uint32_t where = number_of(at);
  const bool in_ub = mem == static_cast<uint8_t>(cubecore::Mem::UB);
  if (core->order != nullptr && (in_ub || mem == static_cast<uint8_t>(cubecore::Mem::GM)))
    before(core, in_ub ? order::UB : order::GM, order::S, {address, address + 8}, false, at, where);
  uint64_t bits = 0;
  if (in_ub && ahead.bytes != 0 && core->near.read(type, address, &bits)) {
    push_read(core, type, address, bits, where);
    return bits;
  }
  int64_t wanted = in_ub && ahead.bytes != 0 ? core->near.wanted(type, address) : 0;
  Message question(LOAD, core->number);
  question.word(mem).word(static_cast<uint64_t>(address)).word(where);
  question.word(reinterpret_cast<uint64_t>(type)).word(static_cast<uint64_t>(wanted)).text(type);
  Command& answer = asked(core, question);
  bits = answer.word();
  const int64_t size = static_cast<int64_t>(answer.word()),
                low = static_cast<int64_t>(answer.word());
  const size_t count = answer.word();
  if (in_ub) core->near.keep(type, address, size, low, answer.raw(count), count);
  caught_up(core);
  return bits;
}

static void told_at(uint32_t what, const Where* at, const char* first, const char* second = nullptr,
                    const char* third = nullptr) {
  Core* core = current;
  uint32_t where = 0;
  if (at != nullptr) {
    core->last = *at;
    where = number_of(at);
  }
  told(core, what, where, first, second, third);
}

void cubecore_finding(const char* kind, const char* subject, const char* message, const Where* at) {
  told_at(TELLS_FINDING, at, kind, subject, message);
}

void cubecore_refuse_size(const char* subject, const char* need, const char* got, const Where* at) {
  told_at(TELLS_SIZE, at, subject, need, got);
  abort();  // nobody answers
}

void cubecore_refuse(const char* subject, const char* need, const char* got, const Where* at) {
  if (current == nullptr) {  // host code: an assertion of its own
    fprintf(stderr, "%s:%u: %s must %s, got %s\n", at->file, at->line, subject, need, got);
    abort();
  }
  told_at(TELLS_REFUSAL, at, subject, need, got);
  abort();  // nobody answers
}

void cubecore_ended() {
  if (divided.count == 0 || divided.core != current->number) return;
  const Where at = divided.last;
  divided = {};
  const char* sentence =
      "a divisor must not be 0, and INT_MIN must not be divided by -1, got such "
      "a division behind this line; its quotient is 0 here";
  const Where* where = at.file == nullptr ? nullptr : &at;
  told_at(TELLS_FINDING, where, "parameter", "an integer division", sentence);
}

void cubecore_thrown(const char* text, const char* type) {
  const bool issued = current->last.file != nullptr;
  const uint32_t where = issued ? number_of(&current->last) : ~0u;
  const std::string of_type = text == nullptr ? "an object of type " + written(type) : text;
  told(current, TELLS_THROWN, where, of_type.c_str());
}

void cubecore_print(const char* text) {
  if (current == nullptr)
    fputs(text, stdout);
  else
    before_output(), told_at(TELLS_PRINT, nullptr, text);
}

void cubecore_flush(const Where* at) {
  Core* core = current;
  told_at(TELLS_FLUSH, at, nullptr);
  caught_up(core);
}

void cubecore_dump(uint8_t mem, const char* type, int64_t address, uint32_t desc, uint32_t count,
                   const uint32_t* shape, uint32_t dims, const Where* at) {
  before_output();
  Core* core = current;
  core->last = *at;
  uint32_t flat[1] = {count};
  const uint32_t* extents = dims == 0 ? flat : shape;
  if (dims == 0) dims = 1;
  uint32_t where = number_of(at);
  Message question(DUMP, core->number);
  question.word(mem).word(static_cast<uint64_t>(address)).word(desc).word(where).text(type);
  asked(core, question.word(dims).raw(extents, dims * sizeof(extents[0])));
}

// Asks for what a Matmul object does (cubecore/matmul/call.h): a call begins with `types` texts.
int64_t cubecore_matmul(uint32_t what, const void* call, uint32_t bytes, uint32_t types,
                        int64_t number, const Where* at) {
  Core* core = current;
  core->last = *at;
  uint32_t where = number_of(at);
  Message question(MATMUL, core->number);
  question.word(what).word(where).word(static_cast<uint64_t>(number)).word(bytes).raw(call, bytes);
  for (uint32_t n = 0; n < types; ++n) question.text(static_cast<const char* const*>(call)[n]);
  core->near.drop_all();
  return static_cast<int64_t>(asked(core, question).word());
}

cubecore::RegisterBlock* cubecore_registers() {
  Core* core = current;
  if (core->function == nullptr) core->function = new OpenFunction{};
  return &core->function->block;
}

void cubecore_begin_vector_function(const Where* at) {
  cubecore::RegisterBlock& block = *cubecore_registers();
  if (block.depth++ != 0) return;
  OpenFunction& open = *current->function;
  open.begin = *at;
  block.values = block.ar = block.counted = cubecore::UNWRITTEN, block.variables = 0;
  block.by_values = block.is_call = false;
  block.next = open.first();
  block.end = open.first() + open.entries.size();
  open.key.clear();
  open.questions = current->questions;
}

bool cubecore_call_vector_function(const Where* at, const uint64_t* key, uint32_t words) {
  Core* core = current;
  cubecore::RegisterBlock& block = *cubecore_registers();
  OpenFunction& open = *core->function;
  const bool is_all = block.depth == 0 || (block.is_call && block.next == open.first());
  if (is_all) {
    const std::vector<uint64_t> of(key, key + words);
    auto found = known_calls.find(text_of(of));
    if (found != known_calls.end()) {
      issue_function(core, *found->second.function, found->second.base,
                     block.depth == 0 ? at : &open.begin);
      return true;
    }
    cubecore_begin_vector_function(at);
    open.key = of;
    return false;
  }
  cubecore_begin_vector_function(at);
  return false;
}

void cubecore_more_registers(const Where* at) {
  OpenFunction& open = *current->function;
  if (open.block.depth == 0)
    cubecore_refuse("a call on registers", "stand in a vector function",
                    "one outside of any\ncall a function with __simd_vf__, or put it in __VEC_SCOPE__",
                    at);
  const size_t used = open.entries.size();
  open.entries.resize(used == 0 ? FIRST_ENTRIES : 2 * used);
  open.block.next = open.first() + used;
  open.block.end = open.first() + open.entries.size();
}

void cubecore_end_vector_function() {
  Core* core = current;
  OpenFunction& open = *core->function;
  if (--open.block.depth != 0) return;
  RegisterEntry *first = open.first(), *last = open.block.next;
  open.block.next = open.block.end = nullptr;  // a call behind it is outside
  if (first == last) return;
  if (open.block.ar != cubecore::UNWRITTEN) open.block.is_ar_clear = false;
  // Where values decide what is accessed, that lies on no side of any base.
  const int64_t base = open.block.by_values ? 0 : rebased(first, last);
  const uint64_t questions = core->questions;
  const KnownFunction* known = known_function(core, first, last, &open.begin);
  open.questions += core->questions - questions;
  keep_call(core, known, base);
  issue_function(core, *known, base, &open.begin);
}

// Prints a register as the calls so far leave it; they are made again when the function ends.
void cubecore_dump_register(uint32_t value, const char* type, uint32_t desc, uint32_t count,
                            const Where* at) {
  before_output();
  Core* core = current;
  core->last = *at;
  cubecore::RegisterBlock& block = *cubecore_registers();
  if (block.depth == 0) cubecore_more_registers(at);
  OpenFunction& open = *core->function;
  Message question(DUMP_REGISTER, core->number);
  question.word(desc).word(number_of(at)).where(at).text(type).word(count).word(value);
  put_entries(question, open.first(), static_cast<size_t>(block.next - open.first()));
  asked(core, question);
}

int64_t cubecore_constant(const void* pointer, int64_t otherwise) {
  return constant_at(reinterpret_cast<uintptr_t>(pointer), otherwise);
}

const Launch* cubecore_launch() { return &current->launch; }

void** cubecore_slot(uint32_t slot) { return &current->slots[slot]; }

// What it holds first is not 0, as the page of the SSBuffer says.
uint8_t* cubecore_shared_buffer(uint64_t bytes) {
  static std::unordered_map<int64_t, std::vector<uint8_t>> buffers;
  return buffers.try_emplace(current->launch.block, bytes, 0xa5).first->second.data();
}

void cubecore_buffer(uint8_t mem, int64_t address, int64_t bytes) {
  current->buffers.enter(mem, {address, address + bytes});
}

void cubecore_array(uint8_t mem, int64_t address, int64_t bytes) {
  Core* core = current;
  if (core == nullptr || !arrays.is_new(mem, {address, address + bytes})) return;
  told_numbers(core, TELLS_ARRAY, 0, {mem, address, address + bytes});
}

void cubecore_array_buffer(uint8_t mem, int64_t address, int64_t bytes) {
  current->buffers.enter_array(mem, {address, address + bytes});
}

void cubecore_own_addresses() {
  if (current != nullptr) current->buffers.take_own_addresses();
}

void cubecore_held(uint8_t mem, int64_t address, int64_t low, int64_t high) {
  current->buffers.hold({mem, address, {low, high}});
}

void cubecore_forget_buffers() { current->buffers.forget(); }

void cubecore_points_into_ub() { local_pointers = true; }

void cubecore_mark(const Where* at) { current->last = *at; }

void cubecore_workspace(const void* pointer) {
  std::vector<uint64_t>& known = current->workspaces;
  const uint64_t address = reinterpret_cast<uint64_t>(pointer);
  if (std::find(known.begin(), known.end(), address) == known.end()) known.push_back(address);
}

const Where* cubecore_last() { return &current->last; }
}
