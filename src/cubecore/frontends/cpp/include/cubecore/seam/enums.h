// Words of the API: positions, pipes, events, modes. Pages: TPosition, SetFlag-WaitFlag(ISASI),
// Cast, Compare, Select, SetMaskNorm and the tables of the functions that take them.
#pragma once

#include <cstdint>

enum pipe_t : uint8_t {
  PIPE_S = 0,
  PIPE_V,
  PIPE_M,
  PIPE_MTE1,
  PIPE_MTE2,
  PIPE_MTE3,
  PIPE_ALL,
  PIPE_FIX = 10,
};

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

enum class HardEvent : uint8_t {
  MTE2_MTE1,
  MTE1_MTE2,
  MTE1_M,
  M_MTE1,
  MTE2_V,
  V_MTE2,
  MTE3_V,
  V_MTE3,
  M_V,
  V_M,
  V_V,
  MTE3_MTE1,
  MTE1_MTE3,
  MTE1_V,
  MTE2_M,
  M_MTE2,
  V_MTE1,
  M_FIX,
  FIX_M,
  MTE3_MTE2,
  MTE2_MTE3,
  S_V,
  V_S,
  S_MTE2,
  MTE2_S,
  S_MTE3,
  MTE3_S,
  MTE2_FIX,
  FIX_MTE2,
  FIX_S,
  M_S,
  FIX_MTE3,
  MTE1_FIX,
  FIX_MTE1,
  FIX_FIX,
  MTE1_S,
  S_M,
  S_MTE1,
  S_FIX,
  MAX,
};

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
