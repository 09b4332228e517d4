"""The catalogue's rows of the earlier AI Cores: their own instructions, and who else is theirs."""

from typing import Any

from cubecore.dtypes import element_type
from cubecore.isa.declare.instruction import Mem

_SCALARS = (
    *("int8", "uint8", "int16", "uint16", "float16", "int32", "uint32", "float32"),
    *("int64", "uint64"),
)
WORD = element_type("float32")
BIT = (0, 1)
BURSTS = {"n_burst": (1, 4095), "len_burst": (1, 65535)}
BURSTS |= {"src_gap": (0, 65535), "dst_gap": (0, 65535)}
HOME = dict.fromkeys(
    (
        *("copy_matrix_cc_to_ubuf", "copy_ubuf_to_matrix_cc"),
        *("copy_cbuf_to_ubuf", "copy_ubuf_to_cbuf"),
        *("vconcat", "vextract", "vrpsort16", "vmrgsort4_proposals"),
        *("vrpac", "vaadd", "viou", "rpn_cor", "rpn_cor_diag", "set_rpn_cor_ir", "set_rpn_offset"),
        *("img2col_cbuf_to_ca", "img2col_cbuf_to_cb", "img2col_cbuf_to_ub", "col2img"),
        "broadcast_ub_to_cc",
    ),
    "Ascend910A",
) | {"v4dtrans": "Ascend310P3"}
"""The chip that an instruction is tried on where 2201 has not got it."""

LATE = ("v4dtrans",)
"""Instructions of the last one of the earlier architectures alone."""

_PLACES = {"height": (1, 32767), "width": (1, 32767), "repeat": (0, 255)}
_PLACES |= {f"pad_{side}": (0, 255) for side in ("left", "right", "top", "bottom")}
_PLACES |= {f"fetch_filter_{axis}": (0, 255) for axis in "wh"}
_PLACES |= {f"left_top_{axis}": (-255, 32767) for axis in "wh"}
_PLACES |= {f"stride_{axis}": (1, 63) for axis in "wh"}
_PLACES |= {f"{word}filter_{axis}": (1, 255) for axis in "wh" for word in ("", "dilation_")}
_COLUMNS = _PLACES | {"c1_index": (0, 4095), "jump_offset": (0, 127), "repeat_mode": BIT}
_COLUMNS |= {"pad_value": (0, 65535)}
HALF = element_type("float16")

EXAMPLES: dict[str, dict[str, Any]] = {
    "copy_matrix_cc_to_ubuf": {"src_type": WORD, "dst_type": WORD, "n_burst": 1, "len_burst": 1},
    "copy_ubuf_to_matrix_cc": {"dtype": WORD, "n_burst": 1, "len_burst": 1},
    "copy_cbuf_to_ubuf": {"n_burst": 2, "len_burst": 3},
    "copy_ubuf_to_cbuf": {"n_burst": 2, "len_burst": 3},
    "vconcat": {"dtype": WORD, "repeat": 2, "mode": 4},
    "vextract": {"dtype": WORD, "repeat": 2, "mode": 4},
    "vrpsort16": {"dtype": WORD, "repeat": 2},
    "vmrgsort4_proposals": {"dtype": WORD, "element_length_0": 4, "element_length_1": 4}
    | {"element_length_2": 4, "element_length_3": 4},
    "store_scalar": {"dtype": WORD, "value": 0x3F800000},
    "store_scalar_gm": {"dtype": WORD, "value": 0x3F800000},
    "store_kept": {},
    "store_merged": {},
    "vrpac": {"dtype": WORD, "repeat": 2},
    "vaadd": {"dtype": WORD, "repeat": 2},
    "viou": {"dtype": WORD, "repeat": 2},
    "rpn_cor": {"repeat": 2},
    "rpn_cor_diag": {},
    "set_rpn_cor_ir": {"value": 3},
    "set_rpn_offset": {"value": 0},
    **{
        key: {"dtype": HALF, "height": 4, "width": 4}
        for key in ("img2col_cbuf_to_ca", "img2col_cbuf_to_cb", "img2col_cbuf_to_ub", "col2img")
    },
    "broadcast_ub_to_cc": {"dtype": WORD, "n_burst": 1, "len_burst": 1},
    "v4dtrans": {"dtype": HALF, "hw_size": 16, "c_size": 16},
}
OPERANDS: dict[str, dict[str, tuple[Mem, int]]] = {
    "copy_matrix_cc_to_ubuf": {"dst": (Mem.UB, 32), "src": (Mem.L0C, 64)},
    "copy_ubuf_to_matrix_cc": {"dst": (Mem.L0C, 64), "src": (Mem.UB, 32)},
    "copy_cbuf_to_ubuf": {"dst": (Mem.UB, 32), "src": (Mem.L1, 32)},
    "copy_ubuf_to_cbuf": {"dst": (Mem.L1, 32), "src": (Mem.UB, 32)},
    "vconcat": {"dst": (Mem.UB, 32), "src": (Mem.UB, 32)},
    "vextract": {"dst": (Mem.UB, 32), "src": (Mem.UB, 32)},
    "vrpsort16": {"dst": (Mem.UB, 32), "src": (Mem.UB, 32)},
    "vmrgsort4_proposals": {"dst": (Mem.UB, 32), **{f"src{i}": (Mem.UB, 16) for i in range(4)}},
    "store_scalar": {"dst": (Mem.UB, 4)},
    "store_scalar_gm": {"dst": (Mem.GM, 4)},
    "store_kept": {"dst": (Mem.UB, 32)},
    "store_merged": {"dst": (Mem.UB, 32)},
    "vrpac": {"dst": (Mem.UB, 32), "src": (Mem.UB, 32)},
    **{
        key: {"dst": (Mem.UB, 32), "src0": (Mem.UB, 32), "src1": (Mem.UB, 32)}
        for key in ("vaadd", "viou")
    },
    "rpn_cor": {"matrix": (Mem.UB, 32), "vector": (Mem.UB, 32)},
    "rpn_cor_diag": {"matrix": (Mem.UB, 32), "dst": (Mem.UB, 32)},
    "img2col_cbuf_to_ca": {"dst": (Mem.L0A, 512), "src": (Mem.L1, 32)},
    "img2col_cbuf_to_cb": {"dst": (Mem.L0B, 512), "src": (Mem.L1, 32)},
    "img2col_cbuf_to_ub": {"dst": (Mem.UB, 32), "src": (Mem.L1, 32)},
    "col2img": {"dst": (Mem.UB, 32), "src": (Mem.UB, 32)},
    "broadcast_ub_to_cc": {"dst": (Mem.L0C, 64), "src": (Mem.UB, 32)},
    "v4dtrans": {"dst": (Mem.UB, 32), "src": (Mem.UB, 32)},
}
RANGES: dict[str, dict[str, tuple[int, int]]] = {
    "copy_matrix_cc_to_ubuf": {"n_burst": (1, 4095), "len_burst": (1, 65535), "relu": BIT}
    | {"src_gap": (0, 65535), "dst_gap": (0, 65535), "scale": (0, 2**32 - 1)},
    "copy_ubuf_to_matrix_cc": {"n_burst": (1, 4095), "len_burst": (1, 65535)}
    | {"src_gap": (0, 65535), "dst_gap": (0, 65535)},
    "copy_cbuf_to_ubuf": BURSTS,
    "copy_ubuf_to_cbuf": BURSTS,
    "vconcat": {"repeat": (0, 255), "mode": (0, 5)},
    "vextract": {"repeat": (0, 255), "mode": (0, 5)},
    "vrpsort16": {"repeat": (0, 255)},
    "vmrgsort4_proposals": {f"element_length_{i}": (0, 4095) for i in range(4)}
    | {"if_exhausted_suspension": BIT, "valid_bit": (3, 15)},
    "store_scalar": {"value": (-(2**63), 2**64 - 1)},
    "store_scalar_gm": {"value": (-(2**63), 2**64 - 1), "cached": (0, 1)},
    **{key: {"repeat": (0, 255)} for key in ("vrpac", "vaadd", "viou")},
    "rpn_cor": {"repeat": (0, 255), "matrix_stride": (0, 255), "vector_stride": (0, 255)},
    "set_rpn_cor_ir": {"value": (0, 65535)},
    "set_rpn_offset": {"value": (0, 2**32 - 1)},
    **dict.fromkeys(("img2col_cbuf_to_ca", "img2col_cbuf_to_cb", "img2col_cbuf_to_ub"), _COLUMNS),
    "col2img": _PLACES,
    "broadcast_ub_to_cc": dict.fromkeys(("n_burst", "len_burst"), (1, 255))
    | dict.fromkeys(("src_gap", "dst_gap"), (0, 255)),
    "v4dtrans": {"chw2hwc": BIT, "hw_size": (1, 4095), "c_size": (1, 4095)},
}
TYPES: dict[tuple[str, str], tuple[str, ...]] = {
    ("copy_matrix_cc_to_ubuf", "src_type"): ("float32", "int32", "float16"),
    ("copy_matrix_cc_to_ubuf", "dst_type"): ("float32", "int32", "float16"),
    ("copy_ubuf_to_matrix_cc", "dtype"): ("float32", "int32", "float16"),
    ("copy_cbuf_to_ubuf", "block"): ("datablock",),
    ("copy_ubuf_to_cbuf", "block"): ("datablock",),
    **{
        (name, "dtype"): ("float16", "float32")
        for name in (
            *("vconcat", "vextract", "vrpsort16", "vmrgsort4_proposals"),
            *("vrpac", "vaadd", "viou", "col2img"),
        )
    },
    **{(name, "number"): ("int64",) for name in ("store_kept", "store_merged")},
    **{(name, "word"): ("uint16",) for name in ("rpn_cor", "rpn_cor_diag")},
    **{(f"img2col_cbuf_to_{to}", "dtype"): ("int8", "uint8", "float16") for to in ("ca", "ub")},
    ("img2col_cbuf_to_cb", "dtype"): ("float16",),
    ("broadcast_ub_to_cc", "dtype"): ("float32", "int32", "float16"),
    ("v4dtrans", "dtype"): (
        *("int8", "uint8", "int16", "uint16", "float16", "int32", "uint32", "float32"),
    ),
    ("store_scalar", "dtype"): _SCALARS,
    ("store_scalar_gm", "dtype"): _SCALARS,
}
ORACLES = {
    "copy_matrix_cc_to_ubuf": "isa/mte/test_copies_joined_core.py::test_fractals_to_the_unified_buffer",
    "copy_ubuf_to_matrix_cc": "isa/mte/test_copies_joined_core.py::test_fractals_from_the_unified_buffer",
    "copy_cbuf_to_ubuf": "isa/mte/test_copies_joined_core.py::test_blocks_between_local_memories",
    "copy_ubuf_to_cbuf": "isa/mte/test_copies_joined_core.py::test_blocks_between_local_memories",
    "vconcat": "isa/vector/permute/test_region_proposals.py::test_components",
    "vextract": "isa/vector/permute/test_region_proposals.py::test_components",
    "vrpsort16": "isa/vector/permute/test_region_proposals.py::test_groups_are_sorted",
    "vmrgsort4_proposals": "isa/vector/permute/test_region_proposals.py::test_queues_are_merged",
    "store_scalar": "isa/mte/test_copies_joined_core.py::test_a_scalar_in_memory",
    "store_scalar_gm": "isa/mte/test_copies_joined_core.py::test_a_scalar_in_global_memory",
    "store_kept": "isa/mte/test_copies_joined_core.py::test_registers_in_memory",
    "store_merged": "isa/mte/test_copies_joined_core.py::test_registers_in_memory",
    "vrpac": "isa/vector/permute/test_region_suppression.py::test_areas",
    "viou": "isa/vector/permute/test_region_suppression.py::test_areas_in_common",
    "vaadd": "isa/vector/permute/test_region_suppression.py::test_sums_of_areas",
    **dict.fromkeys(
        ("rpn_cor", "rpn_cor_diag", "set_rpn_cor_ir"),
        "isa/vector/permute/test_region_suppression.py::test_proposals_are_suppressed_group_by_group",
    ),
    "set_rpn_offset": "isa/vector/permute/test_region_suppression.py::test_areas",
    **dict.fromkeys(
        ("img2col_cbuf_to_ca", "img2col_cbuf_to_cb", "img2col_cbuf_to_ub"),
        "isa/mte/test_load3d_v1.py::test_columns_of_a_map",
    ),
    "col2img": "isa/mte/test_load3d_v1.py::test_columns_add_up_to_a_map",
    "broadcast_ub_to_cc": "isa/mte/test_copies_joined_core.py::test_pieces_to_every_row_of_a_fractal",
    "v4dtrans": "isa/mte/test_load3d_v1.py::test_matrices_are_transposed",
}

_RELATIONS = ("eq", "ne", "lt", "le", "gt", "ge")
_310 = [
    "copy_gm_to_cbuf",
    "copy_gm_to_ubuf",
    "copy_ubuf_to_gm",
    "copy_ubuf_to_ubuf",
    "load_cbuf_to_ca",
    "load_cbuf_to_cb",
    "load_cbuf_to_ca_transpose",
    "load_cbuf_to_cb_transpose",
    "mad",
    "set_flag",
    "wait_flag",
    "pipe_barrier",
    "set_vector_mask",
    "set_mask_norm",
    "store_scalar",
    "store_scalar_gm",
    "store_kept",
    "store_merged",
    "ffts_cross_core_sync",
    "wait_flag_dev",
    "vadd",
    "vsub",
    "vmul",
    "vmax",
    "vmin",
    "vand",
    "vor",
    "vmla",
    "vmadd",
    "vmaddrelu",
    "vabs",
    "vexp",
    "vln",
    "vrec",
    "vrsqrt",
    "vsqrt",
    "vrelu",
    "vnot",
    "vcopy",
    "vector_dup",
    "vadds",
    "vmuls",
    "vmaxs",
    "vmins",
    "vaxpy",
    "vshl",
    "vshr",
    "vsel",
    "set_cmpmask",
    "get_cmpmask",
    "set_deqscale",
    "vconv_deq",
    "vcadd",
    "vcmax",
    "vcmin",
    "vcgadd",
    "vcgmax",
    "vcgmin",
    "vcpadd",
    "vtranspose",
    "set_va_reg_sb",
    "scatter_vnchwconv_b16",
    "scatter_vnchwconv_b32",
    "scatter_vnchwconv_b8",
    "vconv_f162f32",
    "vconv_f322f16",
    "vconv_f162s32",
    "vconv_f162s8",
    "vconv_f162u8",
    "vconv_s82f16",
    "vconv_u82f16",
]
_310 += [f"{kind}_{r}" for kind in ("vcmp", "vcmpv") for r in _RELATIONS]
_910 = ["vdiv", "vconv_f322s32", "vconv_s322f32", "set_atomic"]
_310P = [
    "set_mask_count",
    "vsel_tensor",
    "vsel_scalar",
    "vreduce",
    "vreducev2",
    "get_rsvd_cnt",
    "vgather",
]
_310P += ["vconv_f162s16", "vconv_s162f16", *(f"vcmpvs_{r}" for r in _RELATIONS)]
EARLIER: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(_310, ("m100", "1001", "2002")),
    **dict.fromkeys(_910, ("1001", "2002")),
    **dict.fromkeys(_310P, ("2002",)),
}
"""Architectures before 2201 (spec/tik.md, sections 4 and 6): from 310, from 910, from 310P on."""
