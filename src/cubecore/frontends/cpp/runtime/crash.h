// A crash leaves its last words in a page that the parent process shares.
#pragma once

#include <signal.h>
#include <stdlib.h>
#include <ucontext.h>
#include <unistd.h>

#include "ahead.h"
#include "division.h"

namespace {

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
constexpr int RAN_AHEAD = 1000;  // in the place of a signal's number

[[noreturn]] void run_again() {
  box->signal = RAN_AHEAD;
  _exit(0);
}

// Before something is shown, which happens once.
void before_output() {
  if (ahead.ran) run_again();
  ahead.bytes = 0;
}

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
  if (number == SIGFPE && goes_on_behind_division(context)) return;
  if (kept_from(reinterpret_cast<uintptr_t>(info->si_addr))) run_again();
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

}  // extern "C"
