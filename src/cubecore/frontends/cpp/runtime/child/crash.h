// A crash leaves its last words in a page that the parent process shares.
#pragma once

#include <signal.h>
#include <stdlib.h>
#include <ucontext.h>
#include <unistd.h>

#include <exception>

#include "child/division.h"
#include "child/local_pointers.h"
#include "recording/speculative_reads.h"

namespace {

// Where a crash leaves its last words: a page that the parent process shares.
Box* box = nullptr;
constexpr uint64_t NO_ADDRESS = ~0ull;

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

template <size_t size>
void put(char (&to)[size], const char* text) {
  size_t n = 0;
  for (; text != nullptr && n + 1 < size && text[n] != 0; ++n) to[n] = text[n];
  to[n] = 0;
}

// Says which core is where.
void last_words() {
  box->core = ~0u;
  if (current == nullptr) return;
  box->core = current->number;
  box->line = current->last.line;
  put(box->file, current->last.file);
  put(box->function, current->last.function);
}

// Ends the process; the processes that it has begun are its own until the parent kills it.
[[noreturn]] void end(int number) {
  box->signal = number;
  last_words();
  close(box->pipe);
  while (true) pause();
}

void on_signal(int number, siginfo_t* info, void* context) {
  if (number == SIGFPE && goes_on_behind_division(context)) return;
  if (number == SIGTRAP && goes_on_with_access(context)) return;
  const uintptr_t fault = reinterpret_cast<uintptr_t>(info->si_addr);
  if (number == SIGSEGV && info->si_code != SI_KERNEL && begins_access(context, fault)) return;
  if (kept_from(fault)) run_again();
  const bool unknown = number == SIGSEGV && info->si_code == SI_KERNEL;
  box->address = unknown ? NO_ADDRESS : reinterpret_cast<uint64_t>(info->si_addr);
  box->stack = stack_of(context);
  end(number == SIGSEGV && !unknown && has_local_address(fault) ? BY_POINTER : number);
}

[[noreturn]] void on_terminate() {
  try {
    if (std::current_exception() != nullptr) std::rethrow_exception(std::current_exception());
  } catch (const std::exception& error) {
    put(box->said, error.what());
  } catch (...) {
    put(box->said, "an exception that nothing catches");
  }
  end(TERMINATED);
}

void guard() {
  stack_t alternate = {};
  alternate.ss_size = 1 << 16;
  alternate.ss_sp = malloc(alternate.ss_size);
  sigaltstack(&alternate, nullptr);
  struct sigaction action = {};
  action.sa_sigaction = on_signal;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK;
  for (int number : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGSYS, SIGXCPU})
    sigaction(number, &action, nullptr);
  action.sa_flags = SA_SIGINFO | SA_NODEFER;  // on the core's stack
  sigaction(SIGTRAP, &action, nullptr);
  std::set_terminate(on_terminate);
  atexit(last_words);
}

}  // namespace
