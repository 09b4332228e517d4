// A call of a Matmul object, as the recorder takes it.
#pragma once

#include "cubecore/seam/abi.h"
#include "cubecore_matmul_call.h"

extern "C" {
int64_t cubecore_matmul(uint32_t what, const void* call, uint32_t bytes, uint32_t types,
                        int64_t number, const cubecore::Where* at);
}

namespace cubecore {

// Asks for what concerns a call, or no call in particular.
inline int64_t matmul(MatmulAsk what, const MatmulCall* call, int64_t number, const Where& at) {
  const bool given = call != nullptr;
  return cubecore_matmul(what, call, given ? sizeof(*call) : 0, given ? 4 : 0, number, &at);
}

}  // namespace cubecore
