// A call of a Matmul object, as the recorder takes it (matmul_object/call.py has the same fields).
#pragma once

#include "cubecore/seam/abi.h"
#include "cubecore_tcubetiling.h"

namespace cubecore {

enum MatmulOperand { MM_A, MM_B, MM_BIAS, MM_SCALE, MM_C, MM_OPERANDS };
enum MatmulBits : int32_t {
  MM_COMPUTES = 1,
  MM_STORES = 2,
  MM_ANSWERS = 4,
  MM_SUMS_ON = 8,
  MM_IN_SEQUENCE = 16,
  MM_SHARED = 32,  // one product for all clients
  MM_EACH = 64,    // an answer for each tile
  MM_ALONE = 128,  // a tile out of its order
  MM_PART = 256,   // of baseK columns of A alone
  MM_OWN_A = 512,  // moved by functions of the user's own
  MM_OWN_B = 1024
};
// What the recorder is asked: to run a call on this AIC, to send it to the AIC, to wait for an
// answer, to serve the AIVs of the block, to free what a core holds, for scratch memory, to go on
// behind a move of the user's own, for the facts of such a move.
enum MatmulAsk : uint32_t {
  MM_RUN,
  MM_SEND,
  MM_AWAIT,
  MM_SERVE,
  MM_FREE,
  MM_SCRATCH,
  MM_GO_ON,
  MM_FACT
};

struct MatmulCall {
  const char* types[4];  // of A, B, C and bias, empty without
  int64_t at[MM_OPERANDS];
  uint64_t scale;    // the word of SetQuantScalar
  uint64_t user[2];  // of SetUserDefInfo and SetSelfDefineData
  AscendC::tiling::TCubeTiling tiling;
  int32_t org[5];  // M, N, Ka, Kb, and the N of C or 0
  int32_t single[3];
  int32_t trans[2];
  int32_t formats[3];  // 0 ND, 1 NZ, 3 ND with rows of whole blocks
  int32_t template_;   // 0 NORM, 1 MDL, 2 IBSHARE
  int32_t unit_flag;
  int32_t preload;
  int32_t hf32;
  int32_t quantises;  // 1 with one scale, 2 with one for each column
  int32_t atomic;
  int32_t bits;
  int32_t first, tiles;  // which tiles; 0: all
  int32_t k_first;       // of a part of K by itself, with MM_PART: its first column of A
  int32_t channel_split;
  int32_t object;  // which one of a kernel's
  int32_t batches;
  int32_t each[MM_OPERANDS];     // how many matrices of a batch each tensor has
  int64_t strides[MM_OPERANDS];  // bytes from one to the next
};

}  // namespace cubecore

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
