// Words of the API: positions, pipes, events, modes. Pages: TPosition, SetFlag-WaitFlag(ISASI),
// Cast, Compare, Select, SetMaskNorm and the tables of the functions that take them.
#pragma once

#include <cstdint>

// Pipes that have a number of their own, in its order; and events, each from a pipe to another.
#define CUBECORE_PIPES(WRITE) WRITE(S) WRITE(V) WRITE(M) WRITE(MTE1) WRITE(MTE2) WRITE(MTE3)
#define CUBECORE_EVENTS(WRITE)                                                                    \
  WRITE(MTE2, MTE1) WRITE(MTE1, MTE2) WRITE(MTE1, M) WRITE(M, MTE1) WRITE(MTE2, V)                \
  WRITE(V, MTE2) WRITE(MTE3, V) WRITE(V, MTE3) WRITE(M, V) WRITE(V, M) WRITE(V, V)                \
  WRITE(MTE3, MTE1) WRITE(MTE1, MTE3) WRITE(MTE1, V) WRITE(MTE2, M) WRITE(M, MTE2)                \
  WRITE(V, MTE1) WRITE(M, FIX) WRITE(FIX, M) WRITE(MTE3, MTE2) WRITE(MTE2, MTE3) WRITE(S, V)      \
  WRITE(V, S) WRITE(S, MTE2) WRITE(MTE2, S) WRITE(S, MTE3) WRITE(MTE3, S) WRITE(MTE2, FIX)        \
  WRITE(FIX, MTE2) WRITE(FIX, S) WRITE(M, S) WRITE(FIX, MTE3) WRITE(MTE1, FIX)                    \
  WRITE(FIX, MTE1) WRITE(FIX, FIX) WRITE(MTE1, S) WRITE(S, M) WRITE(S, MTE1) WRITE(S, FIX)
#define CUBECORE_ENUMERATOR(PIPE) PIPE_##PIPE,
enum pipe_t : uint8_t { CUBECORE_PIPES(CUBECORE_ENUMERATOR) PIPE_ALL, PIPE_FIX = 10 };
#undef CUBECORE_ENUMERATOR

enum event_t : uint8_t {
  EVENT_ID0 = 0,
  EVENT_ID1,
  EVENT_ID2,
  EVENT_ID3,
  EVENT_ID4,
  EVENT_ID5,
  EVENT_ID6,
  EVENT_ID7,
};

enum pad_t : uint8_t { PAD_NONE = 0 };
#if __NPU_ARCH__ == 3510
enum ascMutexExecuteMode { ASC_LOCK_BLOCK, ASC_LOCK_NON_BLOCK };
#endif

namespace AscendC {

using ::event_t;
using ::pad_t;
using ::pipe_t;
using TEventID = int8_t;

enum class TPosition : uint8_t {
  GM,
  A1,
  A2,
  B1,
  B2,
  C1,
  C2,
  CO1,
  CO2,
  VECIN,
  VECOUT,
  VECCALC,
  LCM = VECCALC,
  SPM,
  SHM = SPM,
  TSCM,
  C2PIPE2GM,
  C2PIPE2LOCAL,
  MAX,
};
using QuePosition = TPosition;

enum class Hardware : uint8_t { GM, UB, L1, L0A, L0B, L0C, BIAS, FIXBUF, MAX };

#define CUBECORE_ENUMERATOR(FROM, TO) FROM##_##TO,
enum class HardEvent : uint8_t { CUBECORE_EVENTS(CUBECORE_ENUMERATOR) MAX };
#undef CUBECORE_ENUMERATOR

enum class RoundMode : uint8_t {
  CAST_NONE,
  CAST_RINT,
  CAST_FLOOR,
  CAST_CEIL,
  CAST_ROUND,
  CAST_TRUNC,
  CAST_ODD,
  CAST_HYBRID,
  CAST_EVEN,
  CAST_ZERO,
  CAST_UNKNOWN,
  UNKNOWN,
};

enum class CMPMODE : uint8_t { LT, GT, EQ, LE, GE, NE };
enum class SELMODE : uint8_t { VSEL_CMPMASK_SPR, VSEL_TENSOR_SCALAR_MODE, VSEL_TENSOR_TENSOR_MODE };
enum class MaskMode : uint8_t { NORMAL, COUNTER };
enum class ReduceOrder : uint8_t {
  ORDER_VALUE_INDEX,
  ORDER_INDEX_VALUE,
  ORDER_ONLY_VALUE,
  ORDER_ONLY_INDEX,
};
enum class ReduceMode : uint8_t { REDUCE_MAX, REDUCE_MIN, REDUCE_SUM };
enum class CacheMode : uint8_t {
  CACHE_MODE_DISABLE,
  CACHE_MODE_NORMAL,
  CACHE_MODE_LAST,
  CACHE_MODE_PERSISTENT
};
enum class CacheRwMode : uint8_t { READ, WRITE, RW };
enum class CacheLine : uint64_t { SINGLE_CACHE_LINE, ENTIRE_DATA_CACHE };
enum class DcciDst : uint64_t { CACHELINE_ALL, CACHELINE_UB, CACHELINE_OUT, CACHELINE_ATOMIC };
enum class MemDsbT : uint64_t { ALL, DDR, UB, SEQ };
enum class BlockMode : uint8_t {
  BLOCK_MODE_NORMAL,
  BLOCK_MODE_MATRIX,
  BLOCK_MODE_VECTOR,
  BLOCK_MODE_SMALL_CHANNEL,
  BLOCK_MODE_DEPTHWISE
};
enum class DataFormat : uint8_t {
  ND,
  NZ,
  NCHW,
  NC1HWC0,
  NHWC,
  NCDHW,
  NDC1HWC0,
  FRACTAL_NZ,
  FRACTAL_Z_3D = FRACTAL_NZ  // as page TransData numbers it
};
enum class AtomicDtype : uint8_t {
  ATOMIC_NONE,
  ATOMIC_F32,
  ATOMIC_F16,
  ATOMIC_S16,
  ATOMIC_S32,
  ATOMIC_S8,
  ATOMIC_BF16
};
enum class AtomicOp : uint8_t { ATOMIC_SUM };
enum class DeqScale : uint8_t { DEQ_NONE, DEQ, VDEQ, DEQ8, VDEQ8, DEQ16, VDEQ16 };
enum class PaddingMode : uint8_t { Normal, Compact };

using TTagType = int32_t;

constexpr uint32_t ONE_BLK_SIZE = 32;
constexpr uint32_t ONE_REPEAT_BYTE_SIZE = 256;
constexpr uint32_t ONE_BLK_FLOAT_NUM = 8;  // no page has it
constexpr int32_t MAX_REPEAT_TIMES = 255;  // without a page: signed, as public kernels take it
constexpr uint16_t DEFAULT_DATA_COPY_NBURST = 1, DEFAULT_DATA_COPY_STRIDE = 0;
constexpr uint32_t DEFAULT_BLK_NUM = 8;
constexpr uint8_t DEFAULT_BLK_STRIDE = 1;
constexpr uint8_t DEFAULT_REPEAT_STRIDE = 8;
constexpr uint8_t HALF_DEFAULT_REPEAT_STRIDE = 4;
constexpr int32_t BRCB_BROADCAST_NUMBER = 8;  // elements that a repeat of Brcb spreads (page Brcb)
constexpr uint64_t MASK_PLACEHOLDER = 0;

// The memory of a position (page TPosition, its second table).
constexpr uint8_t memory_of(TPosition position) {
  switch (position) {
    case TPosition::GM:
      return 0;
    case TPosition::A1:
    case TPosition::B1:
    case TPosition::C1:
    case TPosition::TSCM:
    case TPosition::SPM:
      return 2;
    case TPosition::A2:
      return 3;
    case TPosition::B2:
      return 4;
    case TPosition::CO1:
      return 5;
    case TPosition::C2:
      return 6;
    case TPosition::C2PIPE2GM:
    case TPosition::C2PIPE2LOCAL:
      return 7;
    default:
      return 1;
  }
}

}  // namespace AscendC
