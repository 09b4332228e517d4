// Words of the language that C++ does not know: address spaces and attributes.
// Page: SIMD-BuiltIn keywords. `[aicore]` and `<<<>>>` are rewritten before the compiler sees them.
#pragma once

#define __aicore__
#define __global__
#define __host_aicore__
#define __host__
#define __gm__
#define __ubuf__
#define __local_mem__
#define __cbuf__
#define __ca__
#define __cb__
#define __cc__
#define __fbuf__
#define __biasbuf__
#define __ssbuf__
#define __vector__
#define __cube__
#define __mix__(...)
#define __simd_callee__
#define __simd_vf__
#define __no_simd_vf_fusion__
#define __simt_vf__
#define __simt_callee__
#define __callee__
#define __launch_bounds__(...)
#define __maxnreg__(...)
#define LAUNCH_BOUND(...)
#define __inout_pipe__(...)
#define __in_pipe__(...)
#define __out_pipe__(...)
#define __BLOCK_LOCAL__
#define __WORKGROUP_LOCAL__
#define __check_sync_alias__
#define __sync_alias__
#define __sync_noalias__
#define __schedmode__(...)
#define __kfc_workspace__
#define __tiling_data_ptr__
#define GM_ADDR uint8_t*
#define ASC_ALWAYS_INLINE inline
#define __forceinline__ __attribute__((unused))
// A compiler of the host needs minutes for a kernel that is one function.
#define always_inline unused
#define __bf16 bfloat16_t
#define __fp16 half
