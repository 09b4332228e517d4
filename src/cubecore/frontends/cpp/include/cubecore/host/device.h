// What a host program asks of the device, through the runtime.
#pragma once

#include <cstddef>
#include <cstdint>

extern "C" {
// What the program asks: 0 launch, 1 memory of `a` bytes, 2 `b` bytes at `a` were written, 3 `a`
// is given back, 4 the fact `a` about the chip: 0 its AICs, 1 its AIVs, 2 on the bytes of a memory, 99 its
// architecture;
// 5 launches have the tiling key `a`, 6 they are 0 of their own kind, 1 of cube, 2 of vector;
// 7 the program cannot go on, for the reason `text`; 8 a line of an op_host's answer;
// 9 a tiling for the calls `text`, to be written into `b` bytes at `a`; 10 `b` bytes at `a` are
// read; 12 `text` is said to the caller of a binding, whose answer is written at `a`.
uint64_t cubecore_host(uint32_t what, uint64_t a, uint64_t b, const char* text,
                       void (*entry)(const uint64_t*), const void* context);

// Memory of the host, for transfers; false if `pointer` is none of it.
void* cubecore_host_memory(size_t size);
bool cubecore_free_host(void* pointer);
}

namespace cubecore {

enum Ask : uint32_t {
  LAUNCH,
  ALLOCATE,
  WRITTEN,
  FREE,
  CHIP,
  KEY_OF_TILING,
  KERNEL_MODE,
  REFUSED,
  ANSWER,
  MATMUL_TILING,
  READ,
  ABSENT,
  GLUE
};

// Says that host code asked for an attribute (0) or an input (1) that it does not get, which may be
// what it fails on next.
inline void absent(uint64_t kind, uint64_t index) {
  cubecore_host(ABSENT, kind, index, nullptr, nullptr, nullptr);
}

// Ends the program with a sentence.
[[noreturn]] inline void refused(const char* sentence) {
  cubecore_host(REFUSED, 0, 0, sentence, nullptr, nullptr);
  __builtin_unreachable();
}

// The chip's architecture, and the name of its family.
inline uint64_t chip_architecture() { return cubecore_host(CHIP, 99, 0, nullptr, nullptr, nullptr); }
inline const char* soc_family() { return chip_architecture() == 3510 ? "Ascend950" : "Ascend910B"; }

}  // namespace cubecore
