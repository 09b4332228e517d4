"""The C API's words: pipes, events, types, and structs of parameters.

``from cubecore import capi`` brings them.
"""

from types import SimpleNamespace

from cubecore.isa.cube.mmad_params import MmadParams

PIPE_S, PIPE_V, PIPE_M = "S", "V", "M"
PIPE_MTE1, PIPE_MTE2, PIPE_MTE3 = "MTE1", "MTE2", "MTE3"
PIPE_FIX, PIPE_ALL = "FIX", "ALL"
EVENT_ID0, EVENT_ID1, EVENT_ID2, EVENT_ID3, EVENT_ID4, EVENT_ID5, EVENT_ID6, EVENT_ID7 = range(8)
ASC_LOCK_BLOCK, ASC_LOCK_NON_BLOCK = 0, 1
VA0, VA1, VA2, VA3, VA4, VA5, VA6, VA7 = range(8)
half, float_t, bfloat16_t = "float16", "float32", "bfloat16"
int8_t, int16_t, int32_t, int64_t = "int8", "int16", "int32", "int64"
uint8_t, uint16_t, uint32_t, uint64_t = "uint8", "uint16", "uint32", "uint64"


class asc_unary_config(SimpleNamespace):  # noqa: N801 - the vendor's name
    """Strides of an instruction with one source; fields not set keep their defaults."""

    dst_block_stride: int
    src_block_stride: int
    dst_repeat_stride: int
    src_repeat_stride: int
    repeat: int


class asc_binary_config(SimpleNamespace):  # noqa: N801 - the vendor's name
    """Strides of an instruction with two sources; fields not set keep their defaults."""

    dst_block_stride: int
    src0_block_stride: int
    src1_block_stride: int
    dst_repeat_stride: int
    src0_repeat_stride: int
    src1_repeat_stride: int
    repeat: int


class asc_fill_value_config(SimpleNamespace):  # noqa: N801 - the vendor's name
    """Runs of a fill; fields not set keep their defaults."""

    repeat: int
    blk_num: int
    dst_gap: int


class asc_l13d_fmatrix_config(SimpleNamespace):  # noqa: N801 - the vendor's name
    """The feature map that a 3D load expands, and its padding."""

    l1_height: int
    l1_width: int
    padding_left_size: int
    padding_right_size: int
    padding_top_size: int
    padding_bottom_size: int


class asc_load3d_v2_config(SimpleNamespace):  # noqa: N801 - the vendor's name
    """The repetition of a 3D load: stride, times and mode."""

    rpt_stride: int
    rpt_time: int
    rpt_mode: int


__all__ = [
    "ASC_LOCK_BLOCK",
    "ASC_LOCK_NON_BLOCK",
    "EVENT_ID0",
    "EVENT_ID1",
    "EVENT_ID2",
    "EVENT_ID3",
    "EVENT_ID4",
    "EVENT_ID5",
    "EVENT_ID6",
    "EVENT_ID7",
    "PIPE_ALL",
    "PIPE_FIX",
    "PIPE_M",
    "PIPE_MTE1",
    "PIPE_MTE2",
    "PIPE_MTE3",
    "PIPE_S",
    "PIPE_V",
    "VA0",
    "VA1",
    "VA2",
    "VA3",
    "VA4",
    "VA5",
    "VA6",
    "VA7",
    "MmadParams",
    "asc_binary_config",
    "asc_fill_value_config",
    "asc_l13d_fmatrix_config",
    "asc_load3d_v2_config",
    "asc_unary_config",
    "bfloat16_t",
    "float_t",
    "half",
    "int8_t",
    "int16_t",
    "int32_t",
    "int64_t",
    "uint8_t",
    "uint16_t",
    "uint32_t",
    "uint64_t",
]
