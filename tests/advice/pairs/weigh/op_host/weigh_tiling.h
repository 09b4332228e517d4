#pragma once
#include "register/tilingdata_base.h"
namespace optiling {
BEGIN_TILING_DATA_DEF(WeighTiling)
  TILING_DATA_FIELD_DEF(uint32_t, share);
  TILING_DATA_FIELD_DEF(uint32_t, tile);
  TILING_DATA_FIELD_DEF(uint32_t, part);
END_TILING_DATA_DEF;
REGISTER_TILING_DATA_CLASS(Weigh, WeighTiling)
}
