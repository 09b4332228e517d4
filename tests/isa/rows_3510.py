"""The catalogue's rows of moves that architecture 3510 has of its own."""

from typing import Any

from cubecore.dtypes import element_type
from cubecore.isa.declare.instruction import Mem

HALF = element_type("float16")
GM, L1, L0A, L0B, UB, FB = Mem.GM, Mem.L1, Mem.L0A, Mem.L0B, Mem.UB, Mem.FB
TO_NZ = ("copy_gm_to_cbuf_multi_nd2nz_v2", "copy_gm_to_cbuf_multi_dn2nz")
WINDOWS = {"load_cbuf_to_ca_v2": L0A, "load_cbuf_to_cb_v2": L0B}
TURNED = {f"{name}_transpose": mem for name, mem in WINDOWS.items()}
COPIES = {"copy_gm_to_ubuf_v2": (UB, GM), "copy_ubuf_to_gm_v2": (GM, UB)}
IMG2COL = {"img2colv2_cbuf_to_ca_v2": L0A, "img2colv2_cbuf_to_cb_v2": L0B}
ALIGNED = {"copy_gm_to_ubuf_align_v2": (UB, GM), "copy_ubuf_to_gm_align_v2": (GM, UB)}
LOOPS = {
    f"set_{part}_{way}": part
    for way in ("outtoub", "ubtoout", "outtol1")
    for part in ("loop_size", "loop1_stride", "loop2_stride")
}
OPERATIONS = ["add", "sub", "max", "min", "exch", "cas", "and", "or", "xor", "inc", "dec"]
NAMES = (
    *("set_mte2_nz_para", *TO_NZ, *WINDOWS, *TURNED, *COPIES, "copy_cbuf_to_fbuf_v2"),
    *(*IMG2COL, "set_l3d_rpt_v2", *ALIGNED, *LOOPS, "set_pad_val_outtoub", "set_fp8_mode"),
    *("copy_gm_to_cbuf_align_v2", "set_pad_val_outtol1", "store_dev"),
    *("copy_gm_to_ubuf_nd", "copy_gm_to_ubuf_ndim", "set_ndim_pad_count", "set_ndim_pad_value"),
    *(ATOMICS := tuple(f"scalar_atomic_{name}" for name in OPERATIONS)),
    *(DIMENSIONS := tuple(f"set_ndim_loop{n}_stride" for n in range(5))),
)
HOME = dict.fromkeys(NAMES, "Ascend950PR_9599")
_WINDOW = {"m_step": 1, "k_step": 1, "src_stride": 1, "dst_stride": 1}
EXAMPLES: dict[str, dict[str, Any]] = {
    "set_mte2_nz_para": {"config": 1 | 1 << 16 | 16 << 32},
    **{
        name: {"dtype": HALF, "loop1_src_stride": 32, "n_value": 1, "d_value": 16} for name in TO_NZ
    },
    **dict.fromkeys(WINDOWS, _WINDOW),
    **{name: {"dtype": HALF} | _WINDOW for name in TURNED},
    **{name: {"n_burst": 1, "len_burst": 32} for name in COPIES},
    "copy_cbuf_to_fbuf_v2": {"len_burst": 1},
    **{
        name: {"dtype": HALF, "channel_size": 16, "k_extension": 16, "m_extension": 16}
        for name in IMG2COL
    },
    "set_l3d_rpt_v2": {"dst_stride": 1},
    "copy_gm_to_ubuf_nd": {"dtype": HALF, "size0": 16},
    "copy_gm_to_ubuf_ndim": {"dtype": HALF, "loop0_size": 1},
    **{name: {"dst_stride": 1, "src_stride": 1} for name in DIMENSIONS},
    **{name: {"dtype": element_type("uint32"), "value": 1} for name in ATOMICS},
    "scalar_atomic_cas": {"dtype": element_type("uint32"), "value": 1, "compare": 2},
    "store_dev": {"dtype": element_type("int32"), "value": 7},
    "set_ndim_pad_count": {},
    "set_ndim_pad_value": {"pad_value": 0},
    **{name: {"dtype": HALF, "n_burst": 1, "len_burst": 32} for name in ALIGNED},
    **{
        name: {"loop1_size": 1, "loop2_size": 1}
        if part == "loop_size"
        else {f"{part[:5]}_{side}_stride": 0 for side in ("src", "dst")}
        for name, part in LOOPS.items()
    },
    "copy_gm_to_cbuf_align_v2": {"dtype": HALF, "n_burst": 1, "len_burst": 2},
    "set_pad_val_outtoub": {"pad_val": 0},
    "set_pad_val_outtol1": {"pad_val": 0},
    "set_fp8_mode": {},
}
_ALIGN = {GM: 1, UB: 32}
OPERANDS: dict[str, dict[str, tuple[Mem, int]]] = {
    **{name: {"dst": (L1, 32), "src": (GM, 1)} for name in TO_NZ},
    **{name: {"dst": (mem, 512), "src": (L1, 32)} for name, mem in (WINDOWS | TURNED).items()},
    **{
        name: {"dst": (dst, _ALIGN[dst]), "src": (src, _ALIGN[src])}
        for name, (dst, src) in (COPIES | ALIGNED).items()
    },
    **{name: {"dst": (mem, 512), "src": (L1, 32)} for name, mem in IMG2COL.items()},
    "copy_cbuf_to_fbuf_v2": {"dst": (FB, 64), "src": (L1, 32)},
    "copy_gm_to_cbuf_align_v2": {"dst": (L1, 32), "src": (GM, 1)},
    "copy_gm_to_ubuf_nd": {"dst": (UB, 32), "src": (GM, 1)},
    "copy_gm_to_ubuf_ndim": {"dst": (UB, 32), "src": (GM, 1)},
    **{name: {"dst": (GM, 4)} for name in (*ATOMICS, "store_dev")},
}
"""Alignment: seed 003, table 1, and the general notes' memories of 3510."""
_U16, _BIT, _FAR, _NEAR = (0, 65535), (0, 1), (0, 2**40 - 1), (0, 2**21 - 1)
_PADS = {"left_padding_num": (0, 32), "right_padding_num": (0, 32), "enable_constant_pad": _BIT}
RANGES: dict[str, dict[str, tuple[int, int]]] = {
    "set_mte2_nz_para": {"config": (0, 2**64 - 1)},
    **{
        name: {"loop1_src_stride": _FAR, "n_value": (0, 16384), "d_value": _NEAR}
        | {"loop4_src_stride": _FAR, "smallc0_en": _BIT}
        for name in TO_NZ
    },
    **{
        name: {"m_start_position": _U16, "k_start_position": _U16, "m_step": (0, 255)}
        | {"k_step": (0, 255), "src_stride": (-32768, 32767), "dst_stride": _U16}
        for name in (*WINDOWS, *TURNED)
    },
    **{
        name: {"n_burst": (1, 4095), "len_burst": (1, 2**21 - 1)}
        | {"src_stride": _FAR, "dst_stride": _FAR}
        for name in COPIES
    },
    "copy_cbuf_to_fbuf_v2": {"n_burst": (1, 4095), "len_burst": (1, 65535)}
    | {"src_gap_size": _U16, "dst_gap_size": _U16},
    **{
        name: {"k_extension": (1, 65535), "m_extension": (1, 65535), "channel_size": (1, 65535)}
        | {"k_start_pt": _U16, "m_start_pt": _U16, "stride_w": (1, 63), "stride_h": (1, 63)}
        | dict.fromkeys(("filter_w", "filter_h"), (1, 255))
        | dict.fromkeys(("dilation_filter_w", "dilation_filter_h"), (1, 255))
        | dict.fromkeys(("filter_size_w", "filter_size_h", "transpose", "f_matrix_ctrl"), _BIT)
        for name in IMG2COL
    },
    "set_l3d_rpt_v2": {"rpt_stride": _U16, "rpt_time": (0, 255), "rpt_mode": _BIT}
    | {"dst_stride": _U16},
    **{
        name: {"n_burst": (1, 4095), "len_burst": (1, 2**21 - 1)}
        | {"src_stride": _FAR, "dst_stride": _FAR}
        | (_PADS if dst is UB else {})
        for name, (dst, _) in ALIGNED.items()
    },
    **{
        name: {"loop1_size": _NEAR, "loop2_size": _NEAR}
        if part == "loop_size"
        else {
            f"{part[:5]}_src_stride": _NEAR if name.endswith("ubtoout") else _FAR,
            f"{part[:5]}_dst_stride": _FAR if name.endswith("ubtoout") else _NEAR,
        }
        for name, part in LOOPS.items()
    },
    "set_pad_val_outtoub": {"pad_val": (0, 2**32 - 1)},
    "set_pad_val_outtol1": {"pad_val": (0, 2**32 - 1)},
    "copy_gm_to_cbuf_align_v2": {"n_burst": (1, 4095), "len_burst": (1, 2**21 - 1)}
    | {"src_stride": _FAR, "dst_stride": _FAR, **_PADS, "enable_constant_pad": (0, 0)},
    "copy_gm_to_ubuf_nd": {"nearest": _BIT, "constant": (0, 2**64 - 1)}
    | {f"size{n}": (1, 2**20 - 1) for n in range(5)}
    | {f"src_stride{n}": _FAR for n in range(5)}
    | {f"dst_stride{n}": (0, 2**20 - 1) for n in range(5)}
    | {f"{side}{n}": (0, 255) for side in ("left", "right") for n in range(5)},
    "copy_gm_to_ubuf_ndim": {f"loop{n}_size": (1, 2**20 - 1) for n in range(5)}
    | {"loop0_lp_count": (0, 255), "loop0_rp_count": (0, 255), "padding_mode": _BIT},
    **{name: {"dst_stride": (0, 2**20 - 1), "src_stride": _FAR} for name in DIMENSIONS},
    "set_ndim_pad_count": {
        f"loop{n}_{side}_count": (0, 255) for n in range(1, 5) for side in ("lp", "rp")
    },
    "set_ndim_pad_value": {"pad_value": (0, 2**32 - 1)},
    **{name: {"value": (-(2**63), 2**64 - 1)} for name in ATOMICS},
    "store_dev": {"value": (-(2**63), 2**64 - 1), "cached": (0, 0)},
    "scalar_atomic_cas": dict.fromkeys(("value", "compare"), (-(2**63), 2**64 - 1)),
}
WORDS: dict[tuple[str, str], tuple[str | int, ...]] = {
    (name, "l2_cache_ctl"): (0, 1, 2, 4) for name in TO_NZ
} | {
    (name, "l2_cache_mode"): (0, 1, 2, 4)
    for name in (*ALIGNED, "copy_gm_to_ubuf_ndim", "copy_gm_to_cbuf_align_v2")
}
_TYPES = (
    *("int8", "uint8", "float8_e4m3fn", "float8_e5m2", "float16", "bfloat16", "int16", "uint16"),
    *("float32", "int32", "uint32", "hifloat8"),
)
TYPES: dict[tuple[str, str], tuple[str, ...]] = {
    **{(name, "dtype"): _TYPES for name in TO_NZ},
    **{(name, "block"): ("fractal",) for name in WINDOWS},
    **{
        (name, "dtype"): (
            *("int4", "float4_e2m1fn", "int8", "uint8", "float8_e4m3fn", "float8_e5m2"),
            *("float16", "bfloat16", "int16", "uint16", "float32", "int32", "uint32"),
            *("hifloat8", "float4_e1m2"),
        )
        for name in TURNED
    },
    **{(name, "block"): ("byte",) for name in COPIES},
    ("copy_cbuf_to_fbuf_v2", "word"): ("uint64",),
    **{
        (name, "dtype"): (
            *("int8", "uint8", "float8_e4m3fn", "float8_e5m2", "hifloat8", "float16", "bfloat16"),
            *("int16", "uint16", "int32", "uint32", "float32"),
        )
        for name in IMG2COL
    },
    **{
        (name, "dtype"): (
            *("int8", "uint8", "float8_e4m3fn", "float8_e5m2", "int16", "uint16"),
            *("float16", "bfloat16", "int32", "uint32", "float32", "hifloat8"),
        )
        for name in (*ALIGNED, "copy_gm_to_cbuf_align_v2")
    },
    ("copy_gm_to_ubuf_nd", "dtype"): (
        *("int8", "uint8", "int16", "uint16", "float16", "bfloat16", "int32", "uint32"),
        *("float32", "int64", "uint64"),
    ),
    **{
        (name, "dtype"): ("int32", "uint32", "int64", "uint64")
        if name.endswith(("and", "or"))
        else ("uint32", "uint64")
        if name.endswith(("inc", "dec"))
        else ("int32", "uint32", "int64", "uint64", "float32")
        for name in ATOMICS
    },
    ("store_dev", "dtype"): (
        *("int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64"),
    ),
    ("copy_gm_to_ubuf_ndim", "dtype"): (
        *("int8", "uint8", "int16", "uint16", "float16", "bfloat16", "int32", "uint32", "float32"),
        *("float8_e4m3fn", "float8_e5m2", "float8_e8m0fnu", "float4_e2m1fn", "float4_e1m2"),
    ),
}
PREPARED = dict.fromkeys(TO_NZ, ("set_mte2_nz_para",)) | dict.fromkeys(
    IMG2COL, ("set_fmatrix", "set_l3d_rpt_v2")
)
L1_LOADS = "test_loads_of_blocks_to_l1"
ORACLES: dict[str, str] = {
    **dict.fromkeys(("set_mte2_nz_para", *TO_NZ), "isa/mte/test_copies_3510.py::test_to_nz"),
    **dict.fromkeys(WINDOWS, "isa/mte/test_copies_3510.py::test_windows_of_fractals"),
    **dict.fromkeys(TURNED, "isa/mte/test_copies_3510.py::test_windows_transposed"),
    **dict.fromkeys(COPIES, "isa/mte/test_copies_3510.py::test_runs_of_bytes"),
    "copy_cbuf_to_fbuf_v2": "isa/mte/test_copies_3510.py::test_scales_in_units_of_64_bytes",
    **dict.fromkeys(IMG2COL, "isa/mte/test_load3d_3510.py::test_windows_of_the_expanded_matrix"),
    "set_l3d_rpt_v2": "isa/mte/test_load3d_3510.py::test_repeated_windows",
    "copy_gm_to_ubuf_align_v2": "isa/mte/test_copies_unaligned_3510.py::test_padded_loads",
    "copy_ubuf_to_gm_align_v2": "isa/mte/test_copies_unaligned_3510.py::test_unaligned_stores",
    **{
        name: "isa/mte/test_copies_unaligned_3510.py::"
        + {"oub": "test_padded_loads", "out": "test_unaligned_stores"}.get(name[-3:], L1_LOADS)
        for name in LOOPS
    },
    **dict.fromkeys(
        ("copy_gm_to_cbuf_align_v2", "set_pad_val_outtol1"),
        f"isa/mte/test_copies_unaligned_3510.py::{L1_LOADS}",
    ),
    "copy_gm_to_ubuf_nd": "isa/mte/test_copies_nd_3510.py::test_loops",
    **dict.fromkeys(
        ("copy_gm_to_ubuf_ndim", "set_ndim_pad_count", "set_ndim_pad_value", *DIMENSIONS),
        "isa/mte/test_copies_nd_3510.py::test_loops_in_registers",
    ),
    "store_dev": "isa/scalar/test_atomics_3510.py::test_a_store_past_the_data_cache",
    **dict.fromkeys(ATOMICS, "isa/scalar/test_atomics_3510.py::test_atomic_operations"),
    "set_fp8_mode": "isa/cube/test_mad_3510.py::test_every_code_of_an_8_bit_float",
    "set_pad_val_outtoub": "isa/mte/test_copies_unaligned_3510.py::test_two_names_of_the_padding",
}
