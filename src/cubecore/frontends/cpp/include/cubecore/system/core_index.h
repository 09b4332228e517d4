// Who a core is. Pages: GetBlockIdx, GetBlockNum, GetSubBlockIdx(ISASI), GetSubBlockNum(ISASI),
// GetTaskRatio, InitSocState, GetUBSizeInBytes, GetDataBlockSizeInBytes, GetArchVersion.
#pragma once

#include "cubecore/basic/tensors.h"

namespace AscendC {

// An AIV of a mix launch counts its sub-cores; the AIC of a block does not.
inline int64_t GetBlockIdx() {
  const cubecore::Launch* launch = cubecore_launch();
  return launch->block * launch->parts + launch->part;
}
inline int64_t GetBlockNum() { return cubecore_launch()->blocks; }
inline int64_t GetSubBlockIdx() { return cubecore_launch()->part; }
inline int64_t GetSubBlockIdxImpl() { return GetSubBlockIdx(); }  // no page has it
inline int64_t GetSubBlockNum() { return cubecore_launch()->parts; }
inline int64_t GetTaskRatio() { return cubecore_launch()->parts; }
inline int64_t GetTaskRation() { return GetTaskRatio(); }  // without a page: an earlier spelling
inline void InitSocState() {}
inline uint32_t GetUBSizeInBytes() { return static_cast<uint32_t>(cubecore_launch()->ub_bytes); }
inline uint32_t GetRuntimeUBSize() { return static_cast<uint32_t>(cubecore_launch()->ub_bytes); }
constexpr int32_t GetDataBlockSizeInBytes() { return 32; }
// Uncertain: the page says that %x shows the version, and has no value.
inline void GetArchVersion(uint32_t& coreVersion) { coreVersion = 0x2201; }

}  // namespace AscendC

inline int64_t get_block_num() { return AscendC::GetBlockNum(); }
inline int64_t get_block_idx() {
  return cubecore_launch()->block * cubecore_launch()->parts + cubecore_launch()->part;
}
inline int64_t get_subblockid() { return AscendC::GetSubBlockIdx(); }
inline int64_t get_subblockdim() { return AscendC::GetSubBlockNum(); }

// The builtin words for a block's index and for the number of blocks, in the place of calls.
struct cubecore_block_index {
  operator int64_t() const { return get_block_idx(); }
};
struct cubecore_block_number {
  operator int64_t() const { return get_block_num(); }
};
constexpr cubecore_block_index block_idx{};
constexpr cubecore_block_number block_num{};
