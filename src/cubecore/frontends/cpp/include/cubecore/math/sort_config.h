// How Sort of 950 sorts, in kernels and in host code. Pages: Sort, GetSortMaxMinTmpSize.
#pragma once

#include <cstdint>

namespace AscendC {

enum class SortType { RADIX_SORT, MERGE_SORT };
// Host code says with the last two which tensors of indices there are.
struct SortConfig {
  SortType type = SortType::RADIX_SORT;
  bool isDescend = false;
  bool hasSrcIndex = false;
  bool hasDstIndex = false;
};
inline constexpr SortConfig DEFAULT_SORT_CONFIG = {SortType::RADIX_SORT, false};

}  // namespace AscendC

namespace cubecore {

// Of so many elements: their keys in words of 32 bits, and their places before and after a pass.
constexpr uint64_t sort_bytes(uint64_t count, uint64_t element_bytes) {
  return (count + 63) / 64 * 256 * ((element_bytes > 4 ? 2 : 1) + 2);
}

}  // namespace cubecore
