// The recorder of C++ kernels: compiled once on the user's machine, loaded into the child process.
//
// Each core has buffers of kinds, source locations and addresses, in the recorder's own numbers. A
// call is looked up by its name and parameters (`Table`); Python is asked on a miss, when a buffer
// is full, when a value is needed, and at the end. Python answers a code: 0, or stop.

#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>
#include <unistd.h>

#include <new>
#include <string>
#include <unordered_map>
#include <vector>

#include "cubecore/abi.h"
#include "launches.h"
#include "order.h"

using cubecore::Launch;
using cubecore::Where;

namespace {

constexpr uint32_t CAPACITY = 8192;
constexpr uint32_t MOST_ADDRESSES = CAPACITY * 8;
constexpr uint32_t MOST_STEPS = 8;
constexpr uint32_t MOST_OPERANDS = 8;

// What one call issues: Python fills it in on a miss.
struct Step {
  uint32_t kind;
  uint32_t operands;
  int32_t from[MOST_OPERANDS];  // which pointer of the call; -1: address 0
  uint32_t pipe;                // order.h's number
  uint32_t
      sync;  // 1 sets a flag, 2 waits, 3 a barrier; the mask: 4 count `event`, 5 by count, 6 not
  uint32_t source, target, event;
  uint32_t access[MOST_OPERANDS];                      // of UB: 1 reads, 2 writes, 0 neither
  int64_t low[MOST_OPERANDS], high[MOST_OPERANDS];     // bytes, from the address on
  int64_t stride[MOST_OPERANDS], span[MOST_OPERANDS];  // from repeat to repeat; of a repeat
  uint32_t width;                                      // lanes of a repeat, else 0
};

struct Entry {
  uint32_t steps;
  uint32_t flags;
  uint32_t note;  // the number of a sentence that Python has for it
  Step step[MOST_STEPS];
};

constexpr uint32_t AT_ONCE = 1, MASKED = 2, COUNTED = 4, SETS_MASK = 8, DROPPED = 16;
constexpr uint32_t NOTE = 64;

}  // namespace

// Shared with Python (bridge.py has the same fields in the same order).
struct Core {
  uint32_t number;
  uint32_t count;
  uint32_t addresses_used;
  uint32_t stale;  // a count stands in the mask: 1 + the line that left it
  uint32_t stale_note;
  uint32_t* kinds;
  uint32_t* wheres;
  int64_t* addresses;
  Launch launch;
  Where last;
  void* slots[16];
  order::Order* order;  // of automatic synchronisation, else null
};

typedef int (*OnMiss)(const char* call, const uint64_t* key, uint32_t words, uint32_t pointers,
                      const Where* at, Entry* entry);
typedef int (*OnWhere)(const char* file, const char* function, uint32_t line);
typedef int (*OnPause)(uint32_t core);
typedef int (*OnAsk)(uint32_t core, uint32_t kind, uint32_t result, int64_t* answer);
typedef int (*OnLoad)(uint32_t core, uint32_t mem, const char* type, int64_t address,
                      uint32_t where, uint64_t* answer);
typedef int (*OnText)(uint32_t core, uint32_t what, const char* first, const char* second,
                      const char* third, uint32_t where);
typedef int (*OnDump)(uint32_t core, uint32_t mem, const char* type, int64_t address, uint32_t desc,
                      const uint32_t* shape, uint32_t dims, uint32_t where);

struct Callbacks {
  OnMiss miss;
  OnWhere where;
  OnPause pause;
  OnAsk ask;
  OnLoad load;
  OnText text;
  OnDump dump;
};

// A kernel of a host program, as its file says.
struct Registration {
  const char* name;
  const char* kind;
  const char* file;
  uint32_t line;
  uint32_t auto_sync;
};

typedef int (*OnHost)(uint32_t what, uint64_t a, uint64_t b, const char* text, uint64_t entry,
                      uint64_t context, uint64_t* answer);

namespace {

Callbacks python;
OnHost host = nullptr;
Core* current = nullptr;
std::vector<Registration> registered;

struct Known {
  uint64_t hash;
  const char* call;
  uint32_t words;
  uint64_t* key;
  Entry entry;
};

// Open addressing; entries never move, so that pointers to them stay.
struct Table {
  std::vector<Known*> cells = std::vector<Known*>(1024, nullptr);
  size_t used = 0;

  Known* find(uint64_t hash, const char* call, const uint64_t* key, uint32_t words) const {
    size_t mask = cells.size() - 1;
    for (size_t at = hash & mask;; at = (at + 1) & mask) {
      Known* known = cells[at];
      if (known == nullptr) return nullptr;
      if (known->hash == hash && known->call == call && known->words == words &&
          memcmp(known->key, key, words * sizeof(uint64_t)) == 0)
        return known;
    }
  }

  void enter(Known* known) {
    if (2 * ++used > cells.size()) {
      std::vector<Known*> old(cells.size() * 2, nullptr);
      old.swap(cells);
      for (Known* each : old)
        if (each != nullptr) place(each);
    }
    place(known);
  }

  void place(Known* known) {
    size_t mask = cells.size() - 1, at = known->hash & mask;
    while (cells[at] != nullptr) at = (at + 1) & mask;
    cells[at] = known;
  }
};

Table table;

// Libraries that are loaded once for each core have literals of their own: equal texts count as one
// when a call is met for the first time.
std::unordered_map<std::string, const char*> texts;

uint64_t canonical(uint64_t pointer) {
  const char* text = reinterpret_cast<const char*>(pointer);
  auto found = texts.emplace(text, text);
  return reinterpret_cast<uint64_t>(found.first->second);
}

Table canonical_calls;

struct Line {
  const char* file;
  const char* function;  // one line of a template is several functions
  uint32_t line;
  uint32_t number;
};

std::vector<Line> lines(4096, Line{nullptr, nullptr, 0, 0});
size_t lines_used = 0;

[[noreturn]] void stop() { throw cubecore::Stop{}; }

uint64_t mixed(uint64_t hash, uint64_t word) {
  hash = (hash ^ word) * 0x9E3779B97F4A7C15ull;
  return hash ^ (hash >> 29);
}

Line* cell_of(const char* file, const char* function, uint32_t line) {
  size_t mask = lines.size() - 1;
  uint64_t names = reinterpret_cast<uint64_t>(file) ^ reinterpret_cast<uint64_t>(function);
  size_t at = mixed(names, line) & mask;
  while (lines[at].file != nullptr &&
         (lines[at].file != file || lines[at].function != function || lines[at].line != line))
    at = (at + 1) & mask;
  return &lines[at];
}

uint32_t number_of(const Where* at) {
  Line* found = cell_of(at->file, at->function, at->line);
  if (found->file != nullptr) return found->number;
  Core* own = current;
  int number = python.where(at->file, at->function, at->line);
  current = own;
  if (number < 0) stop();
  *found = Line{at->file, at->function, at->line, static_cast<uint32_t>(number)};
  if (2 * ++lines_used > lines.size()) {
    std::vector<Line> old(lines.size() * 2, Line{nullptr, nullptr, 0, 0});
    old.swap(lines);
    for (const Line& each : old)
      if (each.file != nullptr) *cell_of(each.file, each.function, each.line) = each;
  }
  return static_cast<uint32_t>(number);
}

// Hands over what was recorded; another core may run in between.
void hand_over(Core* core) {
  int code = python.pause(core->number);
  current = core;
  if (code != 0) stop();
}

uint64_t hash_of(const char* call, const uint64_t* key, uint32_t words) {
  uint64_t hash = mixed(0, reinterpret_cast<uint64_t>(call));
  for (uint32_t n = 0; n < words; ++n) hash = mixed(hash, key[n]);
  return hash;
}

const Entry* canonical_entry(const char* call, const uint64_t* key, uint32_t words,
                             uint32_t pointers, const Where* at) {
  const char* name = reinterpret_cast<const char*>(canonical(reinterpret_cast<uint64_t>(call)));
  std::vector<uint64_t> own(key, key + words);
  for (uint32_t n = 0; n < words; n += 2) {
    uint64_t tag = own[n] & 0xF;
    if (tag == cubecore::detail::POINTER || tag == cubecore::detail::WORD)
      own[n + 1] = canonical(own[n + 1]);
    if (own[n] >> 8) own[n] = (own[n] & 0xFF) | canonical(own[n] >> 8) << 8;
  }
  uint64_t hash = hash_of(name, own.data(), words);
  if (Known* known = canonical_calls.find(hash, name, own.data(), words)) return &known->entry;
  Known* made = new Known{hash, name, words, new uint64_t[words + 1], Entry{}};
  memcpy(made->key, own.data(), words * sizeof(uint64_t));
  Core* core = current;
  int code = python.miss(name, own.data(), words, pointers, at, &made->entry);
  current = core;
  if (code != 0) stop();
  canonical_calls.enter(made);
  return &made->entry;
}

const Entry* entry_of(const char* call, const uint64_t* key, uint32_t words, uint32_t pointers,
                      const Where* at) {
  uint64_t hash = hash_of(call, key, words);
  if (Known* known = table.find(hash, call, key, words)) return &known->entry;
  Known* made = new Known{hash, call, words, new uint64_t[words + 1], Entry{}};
  memcpy(made->key, key, words * sizeof(uint64_t));
  made->entry = *canonical_entry(call, key, words, pointers, at);
  table.enter(made);
  return &made->entry;
}

// True while a function of the C API issues: nothing is put before its instructions.
bool raw = false;

void push(Core* core, const Step& step, const int64_t* addresses, uint32_t where) {
  core->kinds[core->count] = step.kind;
  core->wheres[core->count] = where;
  ++core->count;
  for (uint32_t operand = 0; operand < step.operands; ++operand) {
    int32_t from = step.from[operand];
    core->addresses[core->addresses_used++] = from < 0 ? 0 : addresses[from];
  }
}

const char* const PIPE_WORDS[] = {"PIPE_S",    "PIPE_V",    "PIPE_M",  "PIPE_MTE1",
                                  "PIPE_MTE2", "PIPE_MTE3", "PIPE_FIX"};
const char* const BARRIER = "asc_sync_pipe";
const char* const NOTIFY = "asc_sync_notify";
const char* const WAIT = "asc_sync_wait";

uint64_t word_of(const char* text) { return reinterpret_cast<uint64_t>(text); }

void insert(Core* core, const char* call, const uint64_t* key, uint32_t words, const Where* at,
            uint32_t where) {
  const Entry* entry = entry_of(call, key, words, 0, at);
  if (core->count + entry->steps > CAPACITY) hand_over(core);
  for (uint32_t n = 0; n < entry->steps; ++n) push(core, entry->step[n], nullptr, where);
}

// Orders `to` after `from`, as the compiler would.
void synchronise(Core* core, uint32_t from, uint32_t to, const Where* at, uint32_t where) {
  using cubecore::detail::INTEGER;
  using cubecore::detail::WORD;
  if (from == to) {
    uint64_t key[] = {WORD, word_of(PIPE_WORDS[from])};
    insert(core, BARRIER, key, 2, at, where);
    core->order->barrier(from);
    return;
  }
  uint32_t id = core->order->free_event(from, to);
  uint64_t key[] = {WORD, word_of(PIPE_WORDS[from]), WORD, word_of(PIPE_WORDS[to]), INTEGER, id};
  insert(core, NOTIFY, key, 6, at, where);
  insert(core, WAIT, key, 6, at, where);
  core->order->set(from, to, id);
  core->order->wait(from, to, id);
}

// What an access of UB on pipe `to` must wait for.
void before(Core* core, uint32_t to, int64_t low, int64_t high, bool writes, const Where* at,
            uint32_t where) {
  for (uint32_t from : {order::S, order::V, order::MTE2, order::MTE3})
    if (order::Order::pairs(from, to) && core->order->conflicts(from, to, low, high, writes))
      synchronise(core, from, to, at, where);
}

void ordered(Core* core, const Step& step, const int64_t* addresses, const Where* at,
             uint32_t where) {
  order::Order& order = *core->order;
  if (step.sync == 1) order.set(step.source, step.target, step.event);
  if (step.sync == 2) order.wait(step.source, step.target, step.event);
  if (step.sync == 3) order.barrier(step.source);
  if (step.sync == 4) order.count = step.event;
  if (step.sync == 5 || step.sync == 6) order.counts = step.sync == 5;
  if (step.sync != 0 || step.pipe >= order::PIPES) return;
  int64_t repeats =
      order.counts && step.width != 0 ? (order.count + step.width - 1) / step.width : 0;
  auto each = [&](auto work) {
    for (uint32_t n = 0; n < step.operands; ++n) {
      if (step.access[n] == 0 || step.from[n] < 0) continue;
      int64_t base = addresses[step.from[n]], low = base + step.low[n], high = base + step.high[n];
      if (repeats != 0) high = low + (repeats - 1) * step.stride[n] + step.span[n];
      work(low, high, (step.access[n] & order::WRITE) != 0);
    }
  };
  if (!raw)
    each([&](int64_t low, int64_t high, bool writes) {
      before(core, step.pipe, low, high, writes, at, where);
    });
  order.begin(step.pipe);
  each([&](int64_t low, int64_t high, bool writes) { order.enter(step.pipe, low, high, writes); });
}

void noted(Core* core, const Entry* entry, uint32_t where) {
  int code = python.text(core->number, NOTE + entry->note, nullptr, nullptr, nullptr, where);
  current = core;
  if (code != 0) stop();
}

// Where a crash leaves its last words: a page that the parent process shares.
struct Box {
  int32_t signal;
  uint32_t core;
  uint64_t address;
  uint64_t stack;
  uint32_t line;
  char file[1024];
};

Box* box = nullptr;

uint64_t stack_of(void* context) {
  ucontext_t* state = static_cast<ucontext_t*>(context);
#if defined(__x86_64__) && defined(__linux__)
  return static_cast<uint64_t>(state->uc_mcontext.gregs[REG_RSP]);
#elif defined(__aarch64__) && defined(__linux__)
  return state->uc_mcontext.sp;
#else
  (void)state;
  return 0;
#endif
}

// Says which core is where.
void last_words() {
  if (box == nullptr || current == nullptr) return;
  box->core = current->number;
  box->line = current->last.line;
  const char* file = current->last.file;
  for (int n = 0; file != nullptr && n < 1023 && file[n] != 0; ++n) box->file[n] = file[n];
}

void on_signal(int number, siginfo_t* info, void* context) {
  if (box != nullptr) {
    box->signal = number;
    box->address = reinterpret_cast<uint64_t>(info->si_addr);
    box->stack = stack_of(context);
  }
  last_words();
  _exit(128 + number);
}

}  // namespace

extern "C" {

void cubecore_bind(const Callbacks* callbacks) { python = *callbacks; }

void cubecore_bind_host(OnHost callback) { host = callback; }

// Numbers of calls and lines are those of one launch.
void cubecore_reset() {
  table = Table();
  canonical_calls = Table();
  lines.assign(4096, Line{nullptr, nullptr, 0, 0});
  lines_used = 0;
  current = nullptr;
}

uint64_t cubecore_host(uint32_t what, uint64_t a, uint64_t b, const char* text,
                       int (*entry)(const uint64_t*), const void* context) {
  uint64_t answer = 0;
  if (host(what, a, b, text, reinterpret_cast<uint64_t>(entry), reinterpret_cast<uint64_t>(context),
           &answer) != 0)
    stop();
  current = nullptr;
  return answer;
}

void cubecore_register(const char* name, const char* kind, const char* file, uint32_t line,
                       bool auto_sync) {
  registered.push_back(Registration{name, kind, file, line, auto_sync});
}

// The n-th kernel of the program; null behind the last.
const Registration* cubecore_registered(uint32_t n) {
  return n < registered.size() ? &registered[n] : nullptr;
}

// Where a program's exit(code) leads: its calls are linked to __wrap_exit.
static jmp_buf leaving;
static bool inside = false;
static int exit_code = 0;

[[noreturn]] void __wrap_exit(int code) {
  if (!inside || current != nullptr) exit(code);
  exit_code = code;
  longjmp(leaving, 1);
}

int cubecore_start(int (*program)(int, char**), int count, char** words) {
  if (setjmp(leaving) != 0) {
    inside = false;
    return exit_code & 0xFF;
  }
  try {
    inside = true;
    int code = program(count, words);
    inside = false;
    return code & 0xFF;
  } catch (const cubecore::Stop&) {
    return -1;
  }
}

void cubecore_guard(void* page) {
  box = static_cast<Box*>(page);
  stack_t alternate = {};
  alternate.ss_size = 1 << 16;
  alternate.ss_sp = malloc(alternate.ss_size);
  sigaltstack(&alternate, nullptr);
  struct sigaction action = {};
  action.sa_sigaction = on_signal;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK;
  for (int number : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGTRAP, SIGSYS, SIGXCPU})
    sigaction(number, &action, nullptr);
  atexit(last_words);
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
  current = core;
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
  if (entry->flags & AT_ONCE) hand_over(core);
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
  current = core;
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
  current = core;
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
  current = core;
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

void cubecore_thrown(const char* text) {
  uint32_t where = ~0u;  // nothing was issued yet
  try {
    if (current->last.file != nullptr) where = number_of(&current->last);
  } catch (const cubecore::Stop&) {
  }
  python.text(current->number, 6, text, nullptr, nullptr, where);
}

void cubecore_print(const char* text) {
  if (current == nullptr)
    fputs(text, stdout);
  else
    told(2, text, nullptr, nullptr, nullptr);
}

void cubecore_flush(const Where* at) { told(4, nullptr, nullptr, nullptr, at); }

void cubecore_dump(uint8_t mem, const char* type, int64_t address, uint32_t desc, uint32_t count,
                   const uint32_t* shape, uint32_t dims, const Where* at) {
  Core* core = current;
  core->last = *at;
  uint32_t flat[1] = {count};
  int code = python.dump(core->number, mem, type, address, desc, dims == 0 ? flat : shape,
                         dims == 0 ? 1 : dims, number_of(at));
  current = core;
  if (code != 0) stop();
}

const Launch* cubecore_launch() { return &current->launch; }

void** cubecore_slot(uint32_t slot) { return &current->slots[slot]; }

void cubecore_mark(const Where* at) { current->last = *at; }

const Where* cubecore_last() { return &current->last; }
}
