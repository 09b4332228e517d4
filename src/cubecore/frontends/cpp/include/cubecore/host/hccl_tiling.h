// What host code hands to kernels for communication between chips, of which nothing is provided.
// Page of the high-level API: HCCL, "TilingData结构体".
#pragma once

#include <cstdint>

struct Mc2InitTiling {
  uint8_t reserved[64] = {};
};
struct Mc2CcTiling {
  uint8_t reserved[280] = {};
};
