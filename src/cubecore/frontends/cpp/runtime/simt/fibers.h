// Stacks that threads of a block run on, and the switch between two of them.
//
// A thread that neither waits nor exchanges values leaves its stack to the next one, so that a
// block of such threads runs on one stack without a switch.
#pragma once

#include <stdint.h>
#include <sys/mman.h>
#include <ucontext.h>

#include <new>
#include <vector>

namespace {

constexpr size_t FIBER_BYTES = 64 << 10, FIBER_GUARD_BYTES = 4096;

}  // namespace

#if defined(__x86_64__) && defined(__linux__)

// Saves the registers that a call keeps on this stack, and goes on with those of another one.
extern "C" void cubecore_switch_stack(void** from, void* to);
asm(R"(
.text
.globl cubecore_switch_stack
.hidden cubecore_switch_stack
.type cubecore_switch_stack,@function
cubecore_switch_stack:
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp, (%rdi)
  movq %rsi, %rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  ret
.size cubecore_switch_stack,.-cubecore_switch_stack
)");

namespace {

struct Fiber {
  void* at = nullptr;
  char* pages = nullptr;

  // Makes the first switch to it call a function, which does not return.
  void begin(void (*body)()) {
    uintptr_t top = reinterpret_cast<uintptr_t>(pages) + FIBER_BYTES;
    uintptr_t* words = reinterpret_cast<uintptr_t*>(top - 64);
    for (int n = 0; n < 6; ++n) words[n] = 0;
    words[6] = reinterpret_cast<uintptr_t>(body);  // below it the stack is 8 off a multiple of 16
    words[7] = 0;
    at = words;
  }
};

inline void switch_to(Fiber& from, Fiber& to) { cubecore_switch_stack(&from.at, to.at); }

}  // namespace

#else

namespace {

struct Fiber {
  ucontext_t context;
  char* pages = nullptr;

  void begin(void (*body)()) {
    getcontext(&context);
    context.uc_stack.ss_sp = pages;
    context.uc_stack.ss_size = FIBER_BYTES;
    context.uc_link = nullptr;
    makecontext(&context, body, 0);
  }
};

inline void switch_to(Fiber& from, Fiber& to) { swapcontext(&from.context, &to.context); }

}  // namespace

#endif

namespace {

std::vector<Fiber*> idle_fibers;

Fiber* idle_fiber(void (*body)()) {
  if (!idle_fibers.empty()) {
    Fiber* held = idle_fibers.back();
    idle_fibers.pop_back();
    return held;
  }
  constexpr int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
  void* pages = mmap(nullptr, FIBER_BYTES, PROT_READ | PROT_WRITE, flags, -1, 0);
  if (pages == MAP_FAILED) throw std::bad_alloc();
  mprotect(pages, FIBER_GUARD_BYTES, PROT_NONE);
  Fiber* made = new Fiber;
  made->pages = static_cast<char*>(pages);
  made->begin(body);
  return made;
}

}  // namespace
