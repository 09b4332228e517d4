// The buffer that the parts of an AI Core share, of architecture 3510 alone. Page:
// GetSsbufBaseAddr. It lies at address 0 of its own, which here is memory of the host: the scanner
// makes a call of `ssbuffer_cast` of `reinterpret_cast<__ssbuf__ T*>`.
#pragma once

#include "cubecore/seam/abi.h"

namespace AscendC {
namespace detail {

constexpr size_t SSBUFFER_BYTES = 3072;  // of a mix launch; otherwise each part has a third

// Uncertain: accesses beyond its end, those that nothing orders, and those by a pointer taken before a
// wait are not found.
// What the parts leave in it is there once their flags are waited for: the core goes on when what it
// has issued so far is through.
inline uint8_t* ssbuffer(CUBECORE_AT) {
  cubecore_flush(&at);
  const cubecore::Launch* launch = cubecore_launch();
  const int64_t third = launch->task == 2 ? 0 : launch->part;
  return cubecore_shared_buffer(SSBUFFER_BYTES) + third * (SSBUFFER_BYTES / 3);
}

}  // namespace detail

inline void* GetSsbufBaseAddr(CUBECORE_AT) { return detail::ssbuffer(at); }

}  // namespace AscendC

namespace cubecore {

// An address in the buffer becomes a pointer; a pointer stays one.
template <typename P, typename A>
inline P ssbuffer_cast(A address, CUBECORE_AT) {
  if constexpr (std::is_pointer_v<A>)
    return reinterpret_cast<P>(address);
  else
    return reinterpret_cast<P>(AscendC::detail::ssbuffer(at) + static_cast<uint64_t>(address));
}

}  // namespace cubecore
