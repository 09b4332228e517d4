"""The catalogue's rows of fixpipe, of its scales, and of how stores combine."""

from typing import Any

from cubecore.dtypes import element_type
from cubecore.isa.declare.instruction import Mem

WORD = element_type("float32")
MASK_64 = 2**64 - 1
BIT = (0, 1)
TILE = {"src_type": WORD, "n_size": 16, "m_size": 16, "src_stride": 16}

EXAMPLES: dict[str, dict[str, Any]] = {
    "copy_matrix_cc_to_gm": TILE | {"dst_stride": 32},
    "copy_matrix_cc_to_gm_v2": TILE | {"dst_stride": 256},
    "copy_matrix_cc_to_cbuf": TILE | {"dst_stride": 16},
    "copy_matrix_cc_to_cbuf_v2": TILE | {"dst_stride": 256},
    "set_nd_para_v2": {"nd_num": 1, "src_nd_stride": 1, "dst_nd_stride": 1},
    "set_channel_para": {"config": 1 << 48},
    "set_relu_alpha": {"config": 0x3F800000},
    "set_quant_post": {"config": 0x3F800000},
    "copy_cbuf_to_fbuf": {"len_burst": 1},
    "set_nd_para": {"nd_num": 1, "src_nd_stride": 1, "dst_nd_stride": 1},
    "set_quant_pre": {"scale": 0x3F800000},
    "set_fpc": {"scales_at": 0},
    "set_atomic": {"operation": "add"},
}

OPERANDS: dict[str, dict[str, tuple[Mem, int]]] = {
    "copy_matrix_cc_to_gm": {"dst": (Mem.GM, 1), "src": (Mem.L0C, 64), "scales": (Mem.FB, 128)},
    "copy_matrix_cc_to_gm_v2": {"dst": (Mem.GM, 1), "src": (Mem.L0C, 64), "scales": (Mem.FB, 128)},
    "copy_matrix_cc_to_cbuf": {"dst": (Mem.L1, 32), "src": (Mem.L0C, 64), "scales": (Mem.FB, 128)},
    "copy_matrix_cc_to_cbuf_v2": {"dst": (Mem.L1, 32), "src": (Mem.L0C, 64)}
    | {"scales": (Mem.FB, 128)},
    "copy_cbuf_to_fbuf": {"dst": (Mem.FB, 128), "src": (Mem.L1, 32)},
}
"""Alignment: seed 003, table 1; scales at multiples of 128 B (asc-devkit, DataCopy to Fixpipe)."""

_FIXPIPE = {"n_size": (1, 4095), "m_size": (1, 65535), "relu_pre": (0, 2)} | {
    "dst_stride": (1, 2**32 - 1),
    "src_stride": (0, 65535),
}
_BYTE = (0, 255)
_LATE = {"nz2nd_en": BIT, "nz2dn_en": BIT, "nd_num": (1, 65535), "row_stride": (0, 65535)} | {
    "src_nd_stride": (0, 65535),
    "dst_nd_stride": (0, 2**32 - 1),
    **dict.fromkeys(("clip_relu_pre", "eltwise_op", "eltwise_antq_en"), _BYTE),
    **dict.fromkeys(("clip_relu_post", "c0_pad_en", "broadcast_en"), BIT),
    "relu_post": (0, 2),
}
RANGES: dict[str, dict[str, tuple[int, int]]] = {
    "copy_matrix_cc_to_gm": _FIXPIPE
    | {"nz2nd_en": BIT, "channel_split": BIT, "nd_num": (1, 65535)}
    | {"src_nd_stride": (0, 65535), "dst_nd_stride": (0, 2**32 - 1)},
    "copy_matrix_cc_to_gm_v2": _FIXPIPE | _LATE | {"channel_split": BIT},
    "copy_matrix_cc_to_cbuf_v2": _FIXPIPE | _LATE | {"channel_split": (0, 0)},
    "set_nd_para_v2": {"nd_num": (1, 65535), "src_nd_stride": (0, 65535)}
    | {"dst_nd_stride": (1, 2**32 - 1)},
    "set_channel_para": {"config": (0, MASK_64)},
    "set_relu_alpha": {"config": (0, MASK_64)},
    "set_quant_post": {"config": (0, MASK_64)},
    "copy_matrix_cc_to_cbuf": _FIXPIPE,
    "copy_cbuf_to_fbuf": {"n_burst": (1, 4095), "len_burst": (1, 65535)}
    | {"src_stride": (0, 65535), "dst_stride": (0, 65535)},
    "set_nd_para": {"nd_num": (1, 65535), "src_nd_stride": (0, 512), "dst_nd_stride": (0, 65535)},
    "set_quant_pre": {"scale": (0, MASK_64)},
    "set_fpc": {"relu_at": (0, 65535), "scales_at": (0, 65535), "reset_unit_flags": BIT},
}

_MODES = (
    *("F322F16", "F322BF16", "DEQF16", "VDEQF16"),
    *("QF322B8_PRE", "VQF322B8_PRE", "REQ8", "VREQ8"),
)
_LATE_MODES = (
    *(
        "NoQuant",
        *_MODES,
        "QF322FP8_PRE",
        "VQF322FP8_PRE",
        "QF322HIF8_PRE",
        "VQF322HIF8_PRE",
        "QF322HIF8_PRE_HYBRID",
        "VQF322HIF8_PRE_HYBRID",
        "QS322BF16_PRE",
        "VQS322BF16_PRE",
    ),
    *("QF322F16_PRE", "VQF322F16_PRE", "QF322BF16_PRE", "VQF322BF16_PRE"),
    *("QF322F32_PRE", "VQF322F32_PRE"),
)
_POST_MODES = (
    "NoConv",
    *(
        f"{many}{source}2{result}_POST"
        for source in ("QS16", "QF16")
        for result in ("B8", "S4", "S16")
        for many in ("", "V")
    ),
)
WORDS: dict[tuple[str, str], tuple[str | int, ...]] = {
    ("copy_matrix_cc_to_gm", "unit_flag"): (0, 2, 3),
    **{
        (f"copy_matrix_cc_to_{target}_v2", field): words
        for target in ("gm", "cbuf")
        for field, words in {
            "unit_flag": (0, 2, 3),
            "l2_cache_ctl": (0, 1, 2, 4),
            "quant_post": _POST_MODES,
            "quant_pre": _LATE_MODES,
        }.items()
    },
    ("copy_matrix_cc_to_cbuf", "unit_flag"): (0, 2, 3),
    ("copy_matrix_cc_to_gm", "quant_pre"): ("NoQuant", *_MODES),
    ("copy_matrix_cc_to_cbuf", "quant_pre"): (
        "NoQuant",
        *_MODES,
        *("QF322B4_PRE", "VQF322B4_PRE", "REQ4", "VREQ4"),
    ),
    ("set_atomic", "operation"): ("none", "add", "max", "min"),
}

TYPES: dict[tuple[str, str], tuple[str, ...]] = {
    ("copy_matrix_cc_to_gm", "src_type"): ("float32", "int32", "float16"),
    ("copy_matrix_cc_to_gm_v2", "src_type"): ("float32", "int32"),
    ("copy_matrix_cc_to_cbuf", "src_type"): ("float32", "int32", "float16"),
    ("copy_matrix_cc_to_cbuf_v2", "src_type"): ("float32", "int32"),
    ("copy_cbuf_to_fbuf", "word"): ("uint64",),
    ("set_atomic", "dtype"): ("float32", "float16", "int16", "int32", "int8", "bfloat16"),
}

ORACLES: dict[str, str] = {
    "copy_matrix_cc_to_gm": "isa/cube/test_fixpipe.py::test_nz_to_nd",
    "copy_matrix_cc_to_gm_v2": "isa/cube/test_fixpipe_3510.py::test_every_conversion",
    "copy_matrix_cc_to_cbuf": "isa/cube/test_fixpipe_quantisation.py::test_tiles_to_l1",
    "copy_matrix_cc_to_cbuf_v2": "isa/cube/test_fixpipe_3510.py::test_every_conversion_to_l1",
    "set_nd_para_v2": "isa/cube/test_fixpipe_3510.py::test_several_matrices",
    "set_channel_para": "isa/cube/test_fixpipe_3510.py::test_columns",
    "set_quant_post": "isa/cube/test_fixpipe_post.py::test_second_conversion",
    "set_relu_alpha": "isa/cube/test_fixpipe_3510.py::test_leaky_relu",
    "copy_cbuf_to_fbuf": "isa/cube/test_fixpipe_quantisation.py::test_l1_to_fixpipe_buffer",
    "set_nd_para": "isa/cube/test_fixpipe.py::test_nz_to_nd_of_several_matrices",
    "set_quant_pre": "isa/cube/test_fixpipe_quantisation.py::test_tiles_to_l1",
    "set_fpc": "isa/cube/test_fixpipe_quantisation.py::test_tiles_to_l1",
    "set_atomic": "isa/declare/test_scale_registers.py::test_stores_of_l0c_combine",
}
