// Mutexes between pipes, of architecture 3510. Pages: Mutex(ISASI), Lock, Unlock, AllocMutexID,
// ReleaseMutexID.
#pragma once

#include "cubecore/sync/queue.h"

namespace AscendC {

using MutexID = uint8_t;

// 28 to 31 are the system's (page Mutex).
inline MutexID AllocMutexID(CUBECORE_AT) {
  constexpr uint32_t own = 28;
  uint32_t& taken = detail::core_state().mutexes;
  for (uint32_t id = 0; id < own; ++id) {
    if (taken >> id & 1) continue;
    taken |= 1u << id;
    return static_cast<MutexID>(id);
  }
  cubecore_finding("events-used-up", "AllocMutexID",
                   "a core must have at most 28 mutexes in use, got 29", &at);
  return own - 1;
}
inline void ReleaseMutexID(MutexID id) { detail::core_state().mutexes &= ~(1u << id); }

class Mutex {
 public:
  template <pipe_t pipe>
  static void Lock(MutexID id, CUBECORE_AT) {
    cubecore::issue("lock", at, cubecore::named("on", detail::pipe_word(pipe)),
                    cubecore::named("mutex_id", id));
  }
  template <pipe_t pipe>
  static void Unlock(MutexID id, CUBECORE_AT) {
    cubecore::issue("unlock", at, cubecore::named("on", detail::pipe_word(pipe)),
                    cubecore::named("mutex_id", id));
  }
};

}  // namespace AscendC
