// The Matmul object: MatmulType says of A, B, C and the bias where each lies, in which layout, and
// of which type; Matmul takes four of them and a MatmulConfig. REGIST_MATMUL_OBJ makes the object
// known to the AIC, and Init gives it the tiling. SetOrgShape sets the shape of the whole matrices,
// SetSingleShape that of this core's block. SetTail sets the shape of this core's block where it is
// smaller at an edge than SetSingleShape or the tiling says: without it a block at the edge reads
// and writes past the matrices. SetTensorA and SetTensorB give A and B, from global memory or UB,
// and whether they are transposed. SetBias gives the bias row, and ClearBias or DisableBias takes it
// away. SetQuantScalar and SetQuantVector give the scales of an 8-bit result. IterateAll computes
// the whole block and stores it. Iterate computes one tile of C at a call, and GetTensorC stores
// it; IterateBatch and IterateNBatch compute several matrices at a call. WaitIterateAll and
// WaitGetTensorC wait for calls that were made without waiting. SetWorkspace gives the memory for
// results that are fetched later, and SetLocalWorkspace that for conversions. SetHF32 lets float32
// be multiplied as HF32. SetBatchNum sets the matrices of A and B of a batch. SetUserDefInfo and
// SetSelfDefineData pass data to functions of the user's own, which MatmulCallBackFunc names. End
// closes the object.
#pragma once

#include "cubecore/matmul/registration.h"
