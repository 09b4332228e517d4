"""The catalogue's rows of the Cube's registers, and of what moves beside its main path."""

from typing import Any

from cubecore.dtypes import element_type
from cubecore.isa.declare.instruction import Mem
from isa import rows_3510

HALF = element_type("float16")
BIT = (0, 1)
_FILLS = {"create_ca_matrix": Mem.L0A, "create_cb_matrix": Mem.L0B, "create_cbuf_matrix": Mem.L1}
_FRACTALS = {"load_gm_to_ca": Mem.L0A, "load_gm_to_cb": Mem.L0B, "load_gm_to_cbuf": Mem.L1}
_IMG2COL = {"img2colv2_cbuf_to_ca": Mem.L0A, "img2colv2_cbuf_to_cb": Mem.L0B}
_WINDOW = {"k_extension": 16, "m_extension": 16}
_MAP = {"l1_height": (1, 32767), "l1_width": (1, 32767)} | dict.fromkeys(
    (f"padding_{side}_size" for side in ("left", "right", "top", "bottom")), (0, 255)
)
FP4 = element_type("float4_e2m1fn")
_MX_LOADS = {"load_cbuf_to_ca_mx": Mem.L0A_MX, "load_cbuf_to_cb_mx": Mem.L0B_MX}
_IMAGES = {
    "load_image_gray": (),
    "load_image_rgb": ("swaps", "first_dropped"),
    "load_image_yuv": ("swaps",),
}
"""Loads of images by format, and what they switch."""
HOME = rows_3510.HOME | dict.fromkeys(
    (
        *(*_MX_LOADS, "mad_mx", "copy_matrix_cc_to_gm_v2", "copy_matrix_cc_to_cbuf_v2"),
        *("set_nd_para_v2", "set_channel_para", "set_relu_alpha", "set_quant_post"),
    ),
    "Ascend950PR_9599",
)
"""Instructions of architecture 3510 alone, and the chip that they are tried on."""
EXAMPLES: dict[str, dict[str, Any]] = {
    "set_mmad_direction": {"first": "m"},
    "set_lrelu_alpha": {"alpha": 0x3F000000},
    "get_l0c2gm_prequant": {},
    "get_l0c2gm_relu": {},
    "get_l0c2gm_unitflag": {},
    "dsb": {"memory": "DSB_ALL"},
    "load_cbuf_to_cb_sp": {"repeat": 1},
    **{
        name: {"dst_at": 0, "x_step": 1, "y_step": 1, "src_stride": 1, "dst_stride": 1}
        for name in _MX_LOADS
    },
    "mad_mx": {"a_type": FP4, "b_type": FP4, "m": 16, "k": 64, "n": 16}
    | {"c_matrix_init_val": False, "c_matrix_source": True},
    **{name: {"dtype": HALF, "channel_size": 16} | _WINDOW for name in _IMG2COL},
    "set_fmatrix": {"l1_height": 8, "l1_width": 8},
    "set_fmatrix_b": {"l1_height": 8, "l1_width": 8},
    "set_l3d_padding": {"config": 0},
    "set_l3d_rpt": {},
    "set_l3d_size": {"value": 0},
    "mad_sp": {"m": 16, "k": 16, "n": 16, "c_matrix_init_val": False, "c_matrix_source": True},
    **{name: {"repeat": 1} for name in _FRACTALS},
    "copy_cbuf_to_gm": {"n_burst": 1, "len_burst": 1},
    "copy_cbuf_to_matrix_cc": {"src_type": HALF, "dst_type": HALF, "n_burst": 1, "len_burst": 1},
    "copy_gm_to_cbuf_pad": {"mode": 1, "n_burst": 1, "len_burst": 1},
    **{name: {"dtype": HALF, "bits": 0, "repeat": 1, "blk_num": 1} for name in _FILLS},
    **{key: {"dtype": HALF, "rows": 2, "columns": 2, "image_columns": 2} for key in _IMAGES},
    **rows_3510.EXAMPLES,
}
_ALIGN = {Mem.L0A: 512, Mem.L0B: 512, Mem.L1: 32}
OPERANDS: dict[str, dict[str, tuple[Mem, int]]] = {
    **{name: {"dst": (mem, _ALIGN[mem]), "src": (Mem.GM, 1)} for name, mem in _FRACTALS.items()},
    "copy_cbuf_to_gm": {"dst": (Mem.GM, 1), "src": (Mem.L1, 32)},
    **{name: {"dst": (mem, 512), "src": (Mem.L1, 32)} for name, mem in _IMG2COL.items()},
    **{name: {"src": (Mem.L1, 32), "dst": (mem, 1)} for name, mem in _MX_LOADS.items()},
    "mad_mx": {"c": (Mem.L0C, 1024), "a": (Mem.L0A, 512), "b": (Mem.L0B, 512)}
    | {"bias": (Mem.BT, 128), "scale_a": (Mem.L0A_MX, 1), "scale_b": (Mem.L0B_MX, 1)},
    "load_cbuf_to_cb_sp": {"dst": (Mem.L0B, 512), "src": (Mem.L1, 32), "index": (Mem.L1, 32)}
    | {"index_dst": (Mem.L0B_INDEX, 1)},
    "mad_sp": {"c": (Mem.L0C, 1024), "a": (Mem.L0A, 512), "b": (Mem.L0B, 512)}
    | {"bias": (Mem.BT, 128), "index": (Mem.L0B_INDEX, 1)},
    "copy_cbuf_to_matrix_cc": {"dst": (Mem.L0C, 64), "src": (Mem.L1, 32)},
    "copy_gm_to_cbuf_pad": {"dst": (Mem.L1, 32), "src": (Mem.GM, 1)},
    **{name: {"dst": (mem, _ALIGN[mem])} for name, mem in _FILLS.items()},
    **{name: {"dst": (Mem.L1, 32), "src": (Mem.GM, 1)} for name in _IMAGES},
    "load_image_yuv": {"dst": (Mem.L1, 32), "src": (Mem.GM, 2), "chroma": (Mem.GM, 2)},
    **rows_3510.OPERANDS,
}
"""Alignment: seed 003, table 1."""
_U16 = (0, 65535)
_BURSTS = {"n_burst": (1, 4095), "len_burst": (1, 65535), "src_gap": _U16, "dst_gap": _U16}
_LOAD = {"start_index": _U16, "repeat": (0, 255), "src_stride": _U16, "dst_gap": _U16}
_U15 = (0, 32767)
_HALF_BITS = (-(2**15), 2**16 - 1)
RANGES: dict[str, dict[str, tuple[int, int]]] = {
    **{name: _LOAD | {"decrement": BIT} for name in _FRACTALS},
    "copy_cbuf_to_gm": _BURSTS,
    **{
        name: {"k_extension": (1, 65535), "m_extension": (1, 65535), "channel_size": (1, 65535)}
        | {"k_start_pt": _U16, "m_start_pt": _U16, "stride_w": (1, 63), "stride_h": (1, 63)}
        | dict.fromkeys(("filter_w", "filter_h"), (1, 255))
        | dict.fromkeys(("dilation_filter_w", "dilation_filter_h"), (1, 255))
        | dict.fromkeys(("filter_size_w", "filter_size_h", "transpose", "f_matrix_ctrl"), BIT)
        for name in _IMG2COL
    },
    "set_fmatrix": _MAP,
    "set_fmatrix_b": _MAP,
    "set_l3d_padding": {"config": (-(2**15), 2**64 - 1)},
    "set_l3d_rpt": {"rpt_stride": _U16, "rpt_time": (0, 255), "rpt_mode": BIT},
    "set_l3d_size": {"value": (0, 2**32 - 1)},
    **{
        name: {"dst_at": _U16, "x_start_pos": _U16, "y_start_pos": _U16, "src_stride": _U16}
        | {"x_step": (0, 255), "y_step": (0, 255), "dst_stride": _U16}
        for name in _MX_LOADS
    },
    "mad_mx": dict.fromkeys("mkn", (0, 4095))
    | {"c_matrix_init_val": BIT, "c_matrix_source": BIT, "disable_gemv": BIT},
    "load_cbuf_to_cb_sp": {"start_index": _U16, "repeat": (0, 255)},
    "mad_sp": dict.fromkeys("mkn", (0, 4095)) | {"c_matrix_init_val": BIT, "c_matrix_source": BIT},
    "copy_cbuf_to_matrix_cc": _BURSTS,
    "copy_gm_to_cbuf_pad": _BURSTS | {"mode": (1, 8)},
    **{
        name: {"bits": (0, 2**32 - 1), "repeat": _U15, "blk_num": _U15, "dst_gap": _U15}
        for name in _FILLS
    },
    "set_lrelu_alpha": {"alpha": (0, 2**32 - 1)},
    **{
        name: dict.fromkeys(("rows", "columns", "image_columns"), (2, 4095))
        | dict.fromkeys(("first_row", "first_column"), (0, 4095))
        | {f"pad_{side}": (0, 32) for side in ("top", "bottom", "left", "right")}
        | {f"mean_{n}": (0, 255) for n in range(3)}
        | {f"{word}_{n}": _HALF_BITS for word in ("pad", "minimum", "factor") for n in range(3)}
        | {"pad_mode": (0, 3), "one_row": BIT, "channel_mode": BIT, "channel_value": _HALF_BITS}
        | dict.fromkeys(switches, BIT)
        for name, switches in _IMAGES.items()
    },
    **rows_3510.RANGES,
}
WORDS: dict[tuple[str, str], tuple[str | int, ...]] = {
    ("mad_sp", "unit_flag"): (0, 2, 3),
    ("mad_mx", "unit_flag"): (0, 2, 3),
    ("set_mmad_direction", "first"): ("m", "n"),
    ("dsb", "memory"): ("DSB_ALL", "DSB_DDR", "DSB_UB"),
    ("load_image_rgb", "pixel"): ("RGB888", "XRGB8888"),
    **rows_3510.WORDS,
}
_TO_L0C = ("float16", "bfloat16", "float32", "int32", "uint32")
TYPES: dict[tuple[str, str], tuple[str, ...]] = {
    **{(name, "block"): ("fractal",) for name in _FRACTALS},
    ("copy_cbuf_to_gm", "block"): ("datablock",),
    ("img2colv2_cbuf_to_ca", "dtype"): (
        *("int4", "uint8", "int8", "float16", "bfloat16", "uint32", "int32", "float32"),
    ),
    ("img2colv2_cbuf_to_cb", "dtype"): ("float16", "bfloat16", "uint32", "int32", "float32"),
    **{(name, "block"): ("datablock",) for name in _MX_LOADS},
    **{
        ("mad_mx", f"{x}_type"): ("float4_e2m1fn", "float4_e1m2", "float8_e4m3fn", "float8_e5m2")
        for x in "ab"
    },
    ("load_cbuf_to_cb_sp", "block"): ("fractal",),
    ("load_cbuf_to_cb_sp", "index_block"): ("index fractal",),
    ("copy_cbuf_to_matrix_cc", "src_type"): _TO_L0C,
    ("copy_cbuf_to_matrix_cc", "dst_type"): _TO_L0C,
    **{
        (name, "dtype"): (
            *("int16", "uint16", "float16", "bfloat16", "int32", "uint32", "float32"),
        )
        for name in _FILLS
    },
    **{(name, "dtype"): ("int8", "float16") for name in _IMAGES},
    **rows_3510.TYPES,
}
PREPARED = rows_3510.PREPARED | dict.fromkeys(_IMG2COL, ("set_fmatrix",))
"""What must be issued before an instruction, by examples of its own."""
ORACLES: dict[str, str] = {
    "set_mmad_direction": "isa/scalar/test_control_registers.py::test_the_direction_changes_no_value",
    "set_lrelu_alpha": "isa/scalar/test_control_registers.py::test_leaky_relu",
    "get_l0c2gm_prequant": "isa/scalar/test_control_registers.py::test_what_set_fpc_left_is_read_back",
    "get_l0c2gm_relu": "isa/scalar/test_control_registers.py::test_what_set_fpc_left_is_read_back",
    "get_l0c2gm_unitflag": "isa/scalar/test_control_registers.py::test_what_set_fpc_left_is_read_back",
    **dict.fromkeys(
        _FRACTALS, "isa/mte/test_copies_side_paths.py::test_fractals_from_global_memory"
    ),
    **dict.fromkeys(_MX_LOADS, "isa/cube/test_mad_mx.py::test_scales_to_l0"),
    "mad_mx": "isa/cube/test_mad_mx.py::test_products_of_scaled_matrices",
    **dict.fromkeys(_IMAGES, "isa/mte/test_load_image.py::test_images_in_l1"),
    "load_cbuf_to_cb_sp": "isa/cube/test_mad_sparse.py::test_fractals_and_their_indices",
    "mad_sp": "isa/cube/test_mad_sparse.py::test_products_of_sparse_matrices",
    **dict.fromkeys(
        (*_IMG2COL, "set_fmatrix", "set_l3d_padding"),
        "isa/mte/test_load3d.py::test_windows_of_the_expanded_matrix",
    ),
    "set_fmatrix_b": "isa/mte/test_load3d.py::test_the_map_of_the_right_matrix",
    "set_l3d_rpt": "isa/mte/test_load3d.py::test_repeated_windows",
    "set_l3d_size": "isa/mte/test_load3d.py::test_l1_begins_anew_at_the_boundary",
    "copy_cbuf_to_gm": "isa/mte/test_copies_side_paths.py::test_runs_from_l1_to_global_memory",
    "copy_cbuf_to_matrix_cc": "isa/mte/test_copies_side_paths.py::test_runs_from_l1_to_l0c",
    "copy_gm_to_cbuf_pad": "isa/mte/test_copies_side_paths.py::test_padded_and_cut_blocks",
    **dict.fromkeys(_FILLS, "isa/mte/test_fill.py::test_blocks_are_filled"),
    "dsb": "machine/sanitize/test_data_barrier.py::test_what_a_barrier_orders",
    **rows_3510.ORACLES,
}
