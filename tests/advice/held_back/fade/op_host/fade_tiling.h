#pragma once
#include "register/tilingdata_base.h"
namespace optiling {
BEGIN_TILING_DATA_DEF(FadeTiling)
  TILING_DATA_FIELD_DEF(uint32_t, share);
  TILING_DATA_FIELD_DEF(uint32_t, tile);
  TILING_DATA_FIELD_DEF(uint32_t, held);
END_TILING_DATA_DEF;
REGISTER_TILING_DATA_CLASS(Fade, FadeTiling)
}
