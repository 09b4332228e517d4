// Flags between pipes and barriers within one. Pages: SetFlag-WaitFlag(ISASI), PipeBarrier(ISASI),
// AllocEventID, ReleaseEventID, FetchEventID, TQueSync.
#pragma once

#include "cubecore/basic/tensors.h"
#include "cubecore/seam/enums.h"
#include "cubecore/sync/queue.h"

namespace AscendC {

namespace detail {

constexpr const char* pipe_word(pipe_t pipe) {
  switch (pipe) {
#define CUBECORE_CASE(PIPE) \
  case PIPE_##PIPE:         \
    return "PIPE_" #PIPE;
    CUBECORE_PIPES(CUBECORE_CASE)
    CUBECORE_CASE(FIX)
#undef CUBECORE_CASE
#undef CUBECORE_PIPES
    default:
      return "PIPE_ALL";
  }
}

struct Pair {
  pipe_t from, to;
};

#define CUBECORE_PAIR(FROM, TO) {PIPE_##FROM, PIPE_##TO},
constexpr Pair PAIRS[] = {CUBECORE_EVENTS(CUBECORE_PAIR)};
#undef CUBECORE_PAIR
#undef CUBECORE_EVENTS

constexpr Pair pair_of(HardEvent event) { return PAIRS[static_cast<uint8_t>(event)]; }

constexpr HardEvent event_of(pipe_t from, pipe_t to) {
  for (uint8_t n = 0; n < static_cast<uint8_t>(HardEvent::MAX); ++n)
    if (PAIRS[n].from == from && PAIRS[n].to == to) return static_cast<HardEvent>(n);
  return HardEvent::MAX;
}

// Judges the event of a kernel's own call (sync/queue.h).
void judge_event(const char* call, pipe_t from, pipe_t to, int64_t id, const cubecore::Where& at);

inline void raise_flag(HardEvent event, int32_t id, const cubecore::Where& at) {
  Pair pair = pair_of(event);
  cubecore::issue("asc_sync_notify", at, pipe_word(pair.from), pipe_word(pair.to), id);
}

inline void await_flag(HardEvent event, int32_t id, const cubecore::Where& at) {
  Pair pair = pair_of(event);
  cubecore::issue("asc_sync_wait", at, pipe_word(pair.from), pipe_word(pair.to), id);
}

inline void barrier(pipe_t pipe, const cubecore::Where& at) {
  cubecore::issue("asc_sync_pipe", at, pipe_word(pipe));
}

}  // namespace detail

template <HardEvent event>
inline void SetFlag(int32_t eventID, CUBECORE_AT) {
  detail::judge_event("SetFlag", detail::pair_of(event).from, detail::pair_of(event).to, eventID,
                      at);
  detail::raise_flag(event, eventID, at);
}

template <HardEvent event>
inline void WaitFlag(int32_t eventID, CUBECORE_AT) {
  detail::judge_event("WaitFlag", detail::pair_of(event).from, detail::pair_of(event).to, eventID,
                      at);
  detail::await_flag(event, eventID, at);
}

template <pipe_t pipe>
inline void PipeBarrier(CUBECORE_AT) {
  detail::barrier(pipe, at);
}

// Page "TQueSync模板参数".
template <pipe_t src, pipe_t dst>
class TQueSync {
 public:
  void SetFlag(TEventID id, CUBECORE_AT) { detail::raise_flag(detail::event_of(src, dst), id, at); }
  void WaitFlag(TEventID id, CUBECORE_AT) {
    detail::await_flag(detail::event_of(src, dst), id, at);
  }
};

}  // namespace AscendC

// The built-in forms, whose pipes are arguments.
inline void set_flag(pipe_t from, pipe_t to, int32_t id, CUBECORE_AT) {
  AscendC::detail::judge_event("set_flag", from, to, id, at);
  cubecore::issue("asc_sync_notify", at, AscendC::detail::pipe_word(from),
                  AscendC::detail::pipe_word(to), id);
}
inline void wait_flag(pipe_t from, pipe_t to, int32_t id, CUBECORE_AT) {
  AscendC::detail::judge_event("wait_flag", from, to, id, at);
  cubecore::issue("asc_sync_wait", at, AscendC::detail::pipe_word(from),
                  AscendC::detail::pipe_word(to), id);
}
inline void pipe_barrier(pipe_t pipe, CUBECORE_AT) { AscendC::detail::barrier(pipe, at); }
