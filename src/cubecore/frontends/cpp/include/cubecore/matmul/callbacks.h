// Functions of the user's own in the place of a Matmul object's moves. Page MatmulCallBackFunc.
#pragma once

#include "cubecore/basic/tensors.h"
#include "cubecore/matmul/call.h"

namespace cubecore {

// A move that a function makes: which operand, the block's place among blocks and its extents.
struct OwnMove {
  int64_t operand, to, row, column, rows, columns, from, object, tiling, data;
};
constexpr int64_t OWN_MOVE_FACTS = sizeof(OwnMove) / sizeof(int64_t);

// Makes the moves that the program of a call, or of all that an AIC serves, comes to.
template <typename F>
inline void make_own_moves(int64_t more, const Where& at, const F& make) {
  for (; more != 0; more = matmul(MM_GO_ON, nullptr, 0, at)) {
    OwnMove move;
    for (int64_t n = 0; n < OWN_MOVE_FACTS; ++n)
      reinterpret_cast<int64_t*>(&move)[n] = matmul(MM_FACT, nullptr, n, at);
    make(move);
  }
}

}  // namespace cubecore

namespace AscendC {

// Uncertain: parameters of a store are not documented enough to call one.
template <void (*DataCopyOut)(const void*, const LocalTensor<int8_t>&, const void*, const uint64_t,
                              const uint64_t) = nullptr,
          void (*CopyA1)(const LocalTensor<int8_t>&, const void*, int, int, int, int,
                         const uint64_t, const uint64_t) = nullptr,
          void (*CopyB1)(const LocalTensor<int8_t>&, const void*, int, int, int, int,
                         const uint64_t, const uint64_t) = nullptr>
struct MatmulCallBackFunc {
  static constexpr bool stores = DataCopyOut != nullptr;
  static constexpr bool loads = CopyA1 != nullptr || CopyB1 != nullptr;
  static constexpr int32_t bits =
      (CopyA1 != nullptr ? cubecore::MM_OWN_A : 0) | (CopyB1 != nullptr ? cubecore::MM_OWN_B : 0);

  static void Make(const cubecore::OwnMove& move) {
    const uint64_t l1 = detail::memory_bytes(static_cast<uint8_t>(cubecore::Mem::L1));
    const LocalTensor<int8_t> to(TPosition::A1, static_cast<uint32_t>(move.to),
                                 static_cast<uint32_t>(l1 - static_cast<uint64_t>(move.to)));
    const void* from = reinterpret_cast<const void*>(cubecore_launch()->gm_base + move.from);
    auto call = [&](auto function) {
      function(to, from, static_cast<int>(move.row), static_cast<int>(move.column),
               static_cast<int>(move.rows), static_cast<int>(move.columns),
               static_cast<uint64_t>(move.tiling), static_cast<uint64_t>(move.data));
    };
    if constexpr (CopyA1 != nullptr) {
      if (move.operand == cubecore::MM_A) call(CopyA1);
    }
    if constexpr (CopyB1 != nullptr) {
      if (move.operand == cubecore::MM_B) call(CopyB1);
    }
  }
};

// What a function for C is told, as the page has it.
struct DataCopyOutParams {
  uint16_t cBurstNum = 0, burstLen = 0, srcStride = 0;
  uint32_t dstStride = 0;
  uint16_t oriNSize = 0;
  bool enUnitFlag = false;
  uint64_t quantScalar = 0, cbufWorkspaceAddr = 0;
};

}  // namespace AscendC
