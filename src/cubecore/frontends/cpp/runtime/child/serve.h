// The process's work: it waits for commands, and answers each with one message.
#pragma once

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#if defined(__linux__)
#include <sys/prctl.h>
#endif

#include <mutex>

#include "child/crash.h"
#include "child/launches.h"
#include "child/program.h"
#include "recording/lines.h"
#include "recording/sync.h"
#include "recording/vector_functions.h"

namespace {

std::vector<Core*> cores;

Message done() { return Message(DONE, HOST_CODE); }

// The first function on a core's stack; it does not return.
void core_body() {
  Core* core = current;
  resume(core);
  core->top = reinterpret_cast<uintptr_t>(__builtin_frame_address(0));
  raw = false;
  if (core->launch.auto_sync != 0) core->order = new order::Order();
  core->entry(core->arguments);
  delete core->order;
  core->order = nullptr;
  free_stacks.push_back(core->stack);
  Message ended(ENDED, core->number);
  ended.word(core->workspaces.size());
  for (uint64_t each : core->workspaces) ended.word(each);
  ended.send();
  core->workspaces.clear();
  current = nullptr;
  setcontext(scheduler);
}

// A core begins a kernel: its words lie at an address, or come with the command.
void enter(Core* core) {
  core->entry = reinterpret_cast<void (*)(const uint64_t*)>(command.word());
  core->arguments = reinterpret_cast<const uint64_t*>(command.word());
  memcpy(&core->launch, command.raw(sizeof(Launch)), sizeof(Launch));
  size_t count = command.word();
  for (size_t n = 0; n < count; ++n) core->words.push_back(command.word());
  if (count != 0) core->arguments = core->words.data();
  core->stack = stack_for_core();
  ucontext_t& context = core->stack->context;
  getcontext(&context);
  context.uc_stack.ss_sp = core->stack->pages;
  context.uc_stack.ss_size = STACK_BYTES;
  context.uc_link = nullptr;
  makecontext(&context, core_body, 0);
}

Core* core_of(uint64_t number) {
  while (cores.size() <= number) {
    cores.push_back(new Core{});
    cores.back()->number = static_cast<uint32_t>(cores.size() - 1);
  }
  return cores[number];
}

void go_on(Core* core) {
  ucontext_t here;
  ucontext_t* outer = scheduler;
  scheduler = &here;
  current = core;
  swapcontext(&here, &core->stack->context);
  scheduler = outer;
}

void tell_symbol() {
  bool copies = command.word() != 0;
  const std::string path = command.text(), symbol = command.text();
  void* found = loaded(path.c_str(), symbol.c_str(), copies);
  done().word(reinterpret_cast<uint64_t>(found)).text(found == nullptr ? dlerror() : "").send();
}

void place() {
  size_t size = command.word();
  void* made = aligned_alloc(64, (size + 64) / 64 * 64);
  if (made != nullptr) memcpy(made, command.raw(size), size);
  done().word(reinterpret_cast<uint64_t>(made)).send();
}

void start() {
  auto program = reinterpret_cast<int (*)(int, char**)>(command.word());
  std::vector<std::string> words(command.word());
  std::vector<char*> texts;
  for (std::string& each : words) texts.push_back((each = command.text()).data());
  texts.push_back(nullptr);
  int code = started(program, static_cast<int>(words.size()), texts.data());
  fflush(nullptr);
  Message(ENDED, HOST_CODE).word(static_cast<uint64_t>(code)).send();
}

// Numbers of calls and lines are those of one launch.
void reset() {
  table = Table();
  canonical_calls = Table();
  forget_functions();
  lines.assign(4096, NO_LINE);
  lines_used = 0;
  arrays = Arrays();
  for (Core* core : cores) delete core;
  cores.clear();
}

void tell_kernels() {
  Message answer = done();
  answer.word(registered.size());
  for (const Registration& each : registered)
    answer.text(each.name).text(each.kind).text(each.file).word(each.line).word(each.auto_sync);
  first_of_other_part = launches.size();  // those known from here on are the other part's
  answer.send();
}

// Takes where global memory is, whether cores may go on ahead, and the pages of its arrays.
void take_arrays() {
  ahead.base = command.word();
  const size_t bytes = command.word();
  ahead.bytes = command.word() != 0 ? bytes : 0;
  ahead.arrays.clear();
  for (size_t left = command.word(); left != 0; --left) {
    const uintptr_t start = command.word();
    ahead.arrays.emplace_back(start, command.word());
  }
  close_gaps(ahead.base, bytes);
}

// Does what is told, until the host code's question is answered.
void serve() {
  while (true) {
    command.read();
    switch (command.word()) {
      case ANSWER: {
        uint64_t number = command.word();
        if (number == HOST_CODE) return;
        go_on(core_of(number));
        break;
      }
      case ENTER: {
        Core* core = core_of(command.word());
        enter(core);
        go_on(core);
        break;
      }
      case SYMBOL:
        tell_symbol();
        break;
      case PLACE:
        place();
        break;
      case START:
        start();
        break;
      case AHEAD:
        take_arrays();
        done().send();
        break;
      case RESET:
        reset();
        done().send();
        break;
      case PAIRED:
        done().word(reinterpret_cast<uint64_t>(in_other_part(command.word()))).send();
        break;
      case KERNELS:
        tell_kernels();
        break;
    }
  }
}

std::mutex one_question;

// The process's own group, limits and end: with its parent.
void confine(uint64_t parent, uint64_t memory) {
  rlimit none = {0, 0};
  setrlimit(RLIMIT_CORE, &none);
#if defined(__linux__)
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  prctl(PR_SET_CHILD_SUBREAPER, 1);  // what it has begun stays below it
  if (static_cast<uint64_t>(getppid()) != parent) _exit(0);
  if (FILE* state = fopen("/proc/self/statm", "r")) {
    unsigned long pages = 0;
    if (fscanf(state, "%lu", &pages) == 1) {
      rlim_t most = pages * static_cast<rlim_t>(sysconf(_SC_PAGESIZE)) + memory;
      rlimit all = {most, most};
      setrlimit(RLIMIT_AS, &all);
    }
    fclose(state);
  }
#else
  (void)parent, (void)memory;
#endif
}

void* mapped(int file, size_t size, uint64_t at) {
#if defined(MAP_FIXED_NOREPLACE)
  int flags = MAP_SHARED | (at == 0 ? 0 : MAP_FIXED_NOREPLACE);
#else
  int flags = MAP_SHARED;
#endif
  void* wanted = reinterpret_cast<void*>(at);
  void* got = mmap(wanted, size, PROT_READ | PROT_WRITE, flags, file, 0);
  close(file);
  if (got != MAP_FAILED && (at == 0 || got == wanted)) return got;
  fprintf(stderr, "cannot map memory of the launch: %s\n", strerror(errno));
  _exit(1);
}

}  // namespace

extern "C" {

uint64_t cubecore_host(uint32_t what, uint64_t a, uint64_t b, const char* text,
                       void (*entry)(const uint64_t*), const void* context) {
  std::lock_guard<std::mutex> held(one_question);
  Message(HOST, HOST_CODE)
      .word(what)
      .word(a)
      .word(b)
      .text(text)
      .word(reinterpret_cast<uint64_t>(entry))
      .word(reinterpret_cast<uint64_t>(context))
      .send();
  Core* core = current;
  serve();
  current = core;
  uint64_t answer = command.word();
  size_t size = command.word();
  if (size != 0) memcpy(reinterpret_cast<void*>(a), command.raw(size), size);
  return answer;
}

// Words: the pipes, the pages of the exchange, global memory's with their address and size, how
// much memory there may be beside them, and the parent's number.
int cubecore_main(char** words) {
  uint64_t numbers[8];
  for (int n = 0; n < 8; ++n) numbers[n] = strtoull(words[n], nullptr, 10);
  pipes.commands = static_cast<int>(numbers[0]);
  pipes.answers = static_cast<int>(numbers[1]);
  fcntl(pipes.commands, F_SETFD, FD_CLOEXEC);
  fcntl(pipes.answers, F_SETFD, FD_CLOEXEC);
  pthread_atfork(nullptr, nullptr, [] { pipes.forked = true; });
  struct Pages {
    union {
      Box box;
      char page[BOX_BYTES];
    };
    Records records;
  };
  Pages* pages = static_cast<Pages*>(mapped(static_cast<int>(numbers[2]), sizeof(Pages), 0));
  box = &pages->box;
  box->pipe = pipes.answers;
  records = &pages->records;
  gm_bytes = numbers[5];
  if (gm_bytes != 0) mapped(static_cast<int>(numbers[3]), gm_bytes, numbers[4]);
  guard();
  confine(numbers[7], numbers[6]);
  done().send();
  serve();
  return 0;
}

}  // extern "C"
