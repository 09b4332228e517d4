// What SIMT code and the runtime share: dimensions, a thread's indices, and what a thread asks for.
// Page: SIMT programming, built-in variables and types.
#pragma once

#include "cubecore/seam/abi.h"

struct dim3 {
  unsigned int x, y, z;
  constexpr dim3(unsigned int x = 1, unsigned int y = 1, unsigned int z = 1) : x(x), y(y), z(z) {}
};

namespace cce {  // public kernels name it so, too
using ::dim3;
}

namespace cubecore::simt {

// Runs one thread of a call: a function of the user's with its arguments.
struct Call {
  void (*thread)(const void* context);
  const void* context;
  bool takes_structs;  // which may hold addresses in UB, as vector code has them
};

enum class Warp : uint32_t { SHUFFLE, UP, DOWN, XOR, ALL, ANY, BALLOT, ACTIVE, ADD, MAX, MIN };
// The types of reductions.
enum class Lane : uint32_t { BITS, INT32, UINT32, FLOAT, HALF };
enum class Access : uint32_t { CACHED, PAST_CACHE };

}  // namespace cubecore::simt

// A thread's indices: the runtime sets them when the thread goes on, so that the thread itself sees
// constants.
#ifndef CUBECORE_FIXED
#define CUBECORE_FIXED const
#endif

// Calls at which lanes wait stay where they are in the text: what the compiler joins, moves or copies
// would have other lanes at it (GCC has options for that, thread_flags.py).
#ifdef __clang__
#define CUBECORE_TOGETHER __attribute__((convergent, noduplicate, nomerge))
#else
#define CUBECORE_TOGETHER
#endif

extern "C" {
extern CUBECORE_FIXED dim3 cubecore_threadIdx, cubecore_blockIdx, cubecore_blockDim,
    cubecore_gridDim;
extern CUBECORE_FIXED uint32_t cubecore_thread_number;  // of its block
extern CUBECORE_FIXED bool cubecore_simt_saturates;  // conversions that may
extern bool cubecore_first_thread;             // of a call: it says the call's bounds

// Runs a kernel of threads on all blocks, or a function on one block.
void cubecore_simt_grid(const cubecore::simt::Call* call);
void cubecore_simt_block(const cubecore::simt::Call* call, const dim3* threads,
                         const cubecore::Where* at);
// Says the most threads that a function runs on, and its registers a thread (0: by the threads).
void cubecore_simt_bounds(uint32_t threads, uint32_t registers);
CUBECORE_TOGETHER uint64_t cubecore_simt_warp(cubecore::simt::Warp what, cubecore::simt::Lane type,
                                              uint64_t value, int32_t argument, int32_t width);
CUBECORE_TOGETHER void cubecore_simt_barrier();
void cubecore_simt_fence(bool of_grid);
// Begins an atomic access, and stores its result; nothing else runs in between.
uint64_t cubecore_simt_atomic(const void* at, uint32_t bytes);
// The old value of the last atomic access, where it is used: the compiler drops the call elsewhere.
__attribute__((const)) uint64_t cubecore_simt_old_value(uint64_t bits);
void cubecore_simt_atomic_value();
bool cubecore_simt_runs();  // a thread, not vector code
void cubecore_simt_atomic_store(void* at, uint32_t bytes, uint64_t bits);
// Accesses with a cache hint.
void cubecore_simt_load(const void* at, void* to, uint32_t bytes, cubecore::simt::Access how);
void cubecore_simt_store(void* at, const void* from, uint32_t bytes, cubecore::simt::Access how);
void cubecore_simt_drop_line(const void* at);  // of the data cache; all lines for null
// Static memory of a block, by its declaration, and dynamic memory.
void* cubecore_simt_static(const void* site, uint64_t bytes, uint64_t alignment);
void* cubecore_simt_dynamic();
// Where UB lies for threads: a byte of it, or an address in it as vector code has it.
void* cubecore_simt_pointer(uint64_t address);
bool cubecore_simt_in_ub(const void* pointer);
bool cubecore_simt_in_gm(const void* pointer);
// Ends the launch where an assertion fails.
[[noreturn]] void cubecore_simt_assert(const char* condition, const cubecore::Where* at);
}
