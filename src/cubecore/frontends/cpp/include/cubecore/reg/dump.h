// Prints of registers: the calls before them are made on UB as it stands. Page asc_dump.
#pragma once

#include "cubecore/intrinsics/dump.h"
#include "cubecore/reg/issue.h"

template <typename T, typename U>
inline void asc_dump_reg(const AscendC::Reg::RegTensor<U>& input, uint32_t desc,
                         uint32_t dump_size, CUBECORE_AT) {
  constexpr const char* type = cubecore::Element<T>::name;
  cubecore_dump_register(input.value, type, desc, dump_size, &at);
}
template <typename T, typename U>
inline void asc_dump(const AscendC::Reg::RegTensor<U>& input, uint32_t desc, uint32_t dump_size,
                     CUBECORE_AT) {
  asc_dump_reg<T>(input, desc, dump_size, at);
}
