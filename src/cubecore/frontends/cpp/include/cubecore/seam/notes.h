// What a call does that is allowed and seldom meant: notes of the sanitizer. Pages: "高维切分",
// SetAtomicAdd.
#pragma once

#include "cubecore/sync/queue.h"

namespace AscendC {

namespace detail {

// Says a note of a call unless it was among the last: loops repeat it.
inline void note(const char* kind, const char* call, const char* said, const cubecore::Where& at) {
  CoreState& state = core_state();
  for (const cubecore::Where& last : state.noted)
    if (last.line == at.line && last.file == at.file && last.function == call) return;
  state.noted[state.notes++ % CoreState::NOTED] = {at.file, call, at.line};
  cubecore_finding(kind, call, said, &at);
}

// Whether later repeats write into the blocks of an earlier one: `blocks` of them, with strides of
// blocks. Repeats at one address add up or are overwritten at will.
constexpr bool rows_meet(uint32_t times, uint32_t blocks, uint32_t block, uint32_t repeat) {
  if (repeat == 0 || block == 0) return false;
  for (uint32_t apart = 1; apart < times && apart * repeat <= (blocks - 1) * block; ++apart)
    if (apart * repeat % block == 0) return true;
  return false;
}

// The lanes of a repeat up to the last that the mask has, of `most`.
inline uint32_t masked_lanes(uint32_t most) {
  const uint64_t high = core_state().mask_high, low = core_state().mask_low;
  const uint32_t above = high != 0 ? 64 : 0;
  const uint64_t bits = high != 0 ? high : low;
  if (bits == 0) return 0;
  const uint32_t lanes = above + 64 - static_cast<uint32_t>(__builtin_clzll(bits));
  return lanes < most ? lanes : most;
}

constexpr int32_t MOST_REPEATS = 255;

// A note of a vector call without repeats. In counter mode the count says how many there are.
inline void note_none(const char* call, int64_t times, const cubecore::Where& at) {
  if (times > 0 || core_state().counts) return;
  char said[96];
  std::snprintf(said, sizeof(said),
                "repeatTime must be at least 1 to compute something, got %lld%s",
                static_cast<long long>(times), times == 0 ? " (a uint8_t holds 256 as 0)" : "");
  note("no-repeat", call, said, at);
}

// A note of a stride of the result, which has to be at least `least` for `of`.
inline void note_stride(const char* call, const char* name, uint64_t least, const char* of,
                        uint64_t stride, const cubecore::Where& at) {
  if (stride >= least) return;
  char said[128];
  std::snprintf(said, sizeof(said), "%s must be at least %llu for %s, got %llu: they overlap",
                name, static_cast<unsigned long long>(least), of,
                static_cast<unsigned long long>(stride));
  note("rows-overlap", call, said, at);
}

// The notes of a reduction, whose repeats an int holds; more than 255 are a finding.
inline void judge_repeats(const char* call, int64_t times, int64_t stride,
                          const cubecore::Where& at) {
  note_none(call, times, at);
  if (times > 1 && stride == 0 && !core_state().counts)
    note_stride(call, "dstRepStride", 1, "the results of several repeats", 0, at);
  if (times <= MOST_REPEATS) return;
  char said[64];
  std::snprintf(said, sizeof(said), "repeatTime must be at most %d, got %lld", MOST_REPEATS,
                static_cast<long long>(times));
  cubecore_finding("parameter", call, said, &at);
}

// The bytes of `T` that a repeat writes, gaps left out, of lanes of the wider of two types.
template <typename T, typename U>
inline uint32_t masked_bytes() {
  constexpr uint32_t wide = sizeof(T) > sizeof(U) ? sizeof(T) : sizeof(U);
  return masked_lanes(256 / (wide < 2 ? 2 : wide)) * static_cast<uint32_t>(sizeof(T));
}

// Blocks of the result in one place: a finding where a repeat writes several (page "高维切分").
inline void judge_block_stride(const char* call, uint32_t bytes, const cubecore::Where& at) {
  if (bytes > ONE_BLK_SIZE && !core_state().counts)
    cubecore_finding("parameter", call,
                     "dstBlkStride must be at least 1 for repeats of several blocks, got 0", &at);
}

// Notes of the repeats of a vector call to `T` from `U` under a mask that is set: none, or such
// that meet.
template <typename T, typename U = T>
inline void note_repeats(const char* call, uint32_t times, uint32_t block, uint32_t repeat,
                         const cubecore::Where& at) {
  note_none(call, times, at);
  if (block == 0) judge_block_stride(call, masked_bytes<T, U>(), at);
  if (times < 2 || repeat == 0 || repeat >= 8 * block || core_state().counts) return;
  const uint32_t blocks = (masked_bytes<T, U>() + 31) / 32;
  if (blocks == 0 || !rows_meet(times, blocks, block, repeat)) return;
  char said[128];
  std::snprintf(said, sizeof(said),
                "dstRepStride must be at least %u for repeats that write %u blocks, got %u: they "
                "overlap",
                (blocks - 1) * block + 1, blocks, repeat);
  note("rows-overlap", call, said, at);
}

// A note of an atomic store whose element type is another than the copy's.
template <typename T>
inline void note_atomic(const char* call, const cubecore::Where& at) {
  const int8_t type = core_state().atomic_type;
  if (type < 0) return;
  constexpr const char* words[] = {"float", "half", "bfloat16_t", "int8_t", "int16_t", "int32_t"};
  constexpr bool same[] = {std::is_same_v<T, float>,
                           std::is_same_v<T, half>,
                           std::is_same_v<T, bfloat16_t>,
                           std::is_integral_v<T> && sizeof(T) == 1,
                           std::is_integral_v<T> && sizeof(T) == 2,
                           std::is_integral_v<T> && sizeof(T) == 4};
  if (same[type]) return;
  char said[112];
  std::snprintf(said, sizeof(said), "an atomic store of %s must be set for %s, got %s",
                cubecore::Element<T>::word, cubecore::Element<T>::word, words[type]);
  note("atomic-type", call, said, at);
}

}  // namespace detail

}  // namespace AscendC

// Of a loop of a vector function that the unit does not run by itself: the scanner finds them
// (rewriting/vector_loops.py).
namespace cubecore {

inline void software_loop(const char* got, const Where& at) {
  char said[224];
  std::snprintf(said, sizeof(said),
                "it must have the form for (uint16_t i = 0; i < n; ++i), without jumps, to be a "
                "hardware loop, got %s; it runs as a software loop, whose extra time is not "
                "counted",
                got);
  AscendC::detail::note("vf-loop", "loop", said, at);
}

}  // namespace cubecore
