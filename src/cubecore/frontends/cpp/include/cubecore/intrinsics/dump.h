// Prints of memory by raw pointers. Page asc_dump.
#pragma once

#include "cubecore/seam/local.h"

namespace cubecore {

template <typename T>
inline void dump_raw(Mem declared, T* input, uint32_t desc, uint32_t count, const Where& at) {
  Pointer from = operand(declared, input);
  cubecore_dump(static_cast<uint8_t>(from.mem), from.type, from.address, desc, count, nullptr, 0,
                &at);
}

}  // namespace cubecore

template <typename T>
inline void asc_dump_gm(T* input, uint32_t desc, uint32_t dump_size, CUBECORE_AT) {
  cubecore::dump_raw(cubecore::Mem::GM, input, desc, dump_size, at);
}
template <typename T>
inline void asc_dump_ubuf(T* input, uint32_t desc, uint32_t dump_size, CUBECORE_AT) {
  cubecore::dump_raw(cubecore::Mem::UB, input, desc, dump_size, at);
}
template <typename T>
inline void asc_dump_l1buf(T* input, uint32_t desc, uint32_t dump_size, CUBECORE_AT) {
  cubecore::dump_raw(cubecore::Mem::L1, input, desc, dump_size, at);
}
template <typename T>
inline void asc_dump_cbuf(T* input, uint32_t desc, uint32_t dump_size, CUBECORE_AT) {
  cubecore::dump_raw(cubecore::Mem::L0C, input, desc, dump_size, at);
}
// Of a local pointer C++ does not know the memory: UB is taken.
template <typename T>
inline void asc_dump(T* input, uint32_t desc, uint32_t dump_size, CUBECORE_AT) {
  cubecore::dump_raw(cubecore::Mem::GM, input, desc, dump_size, at);
}
