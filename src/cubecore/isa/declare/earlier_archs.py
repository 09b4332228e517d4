"""Instructions of arch 2201 on the earlier AI Cores, with the meaning that TIK gives them.

Their kits are programmed in TIK, whose public pages name the chips that each call exists on
(spec/tik.md, sections 4 and 6; "where a chip is not named, the call exists from 310 on"). What a
call means there is taken to be what its instruction means on 2201, where the pages say no other.
"""

from collections.abc import Mapping

M100, A1001, A2002 = "m100", "1001", "2002"
_ALL = (M100, A1001, A2002)
_LATER = (A1001, A2002)
_INFERENCE = (A2002,)

_MOVES = (
    *("copy_gm_to_cbuf", "copy_gm_to_ubuf", "copy_ubuf_to_gm", "copy_ubuf_to_ubuf"),
    *("load_cbuf_to_ca", "load_cbuf_to_cb", "mad"),
    *("load_cbuf_to_ca_transpose", "load_cbuf_to_cb_transpose"),
)
_CONTROL = (
    "set_flag",
    "wait_flag",
    "pipe_barrier",
    "set_vector_mask",
    "set_mask_norm",
    "store_scalar",
    "store_scalar_gm",
    "store_kept",
    "store_merged",
    # how cores meet: the kits of these chips count in global memory, with the same effect
    "ffts_cross_core_sync",
    "wait_flag_dev",
)
_LANES = (
    *("vadd", "vsub", "vmul", "vmax", "vmin", "vand", "vor", "vmla", "vmadd", "vmaddrelu"),
    *("vabs", "vexp", "vln", "vrec", "vrsqrt", "vsqrt", "vrelu", "vnot", "vcopy", "vector_dup"),
    *("vadds", "vmuls", "vmaxs", "vmins", "vaxpy", "vshl", "vshr"),
    *("vsel", "set_cmpmask", "get_cmpmask", "set_deqscale", "vconv_deq"),
)
_SHAPES = (
    *("vcadd", "vcmax", "vcmin", "vcgadd", "vcgmax", "vcgmin", "vcpadd"),
    *("vtranspose", "set_va_reg_sb"),
    *("scatter_vnchwconv_b16", "scatter_vnchwconv_b32", "scatter_vnchwconv_b8"),
)
_RELATIONS = ("eq", "ne", "lt", "le", "gt", "ge")
_CONVERSIONS = ("f162f32", "f322f16", "f162s32", "f162s8", "f162u8", "s82f16", "u82f16")

EARLIER_ARCHS: Mapping[str, tuple[str, ...]] = {
    **dict.fromkeys((*_MOVES, *_CONTROL, *_LANES, *_SHAPES), _ALL),
    **{f"{kind}_{relation}": _ALL for kind in ("vcmp", "vcmpv") for relation in _RELATIONS},
    **{f"vconv_{pair}": _ALL for pair in _CONVERSIONS},
    **dict.fromkeys(("vdiv", "vconv_f322s32", "vconv_s322f32", "set_atomic"), _LATER),
    **{f"vcmpvs_{relation}": _INFERENCE for relation in _RELATIONS},
    **dict.fromkeys(
        (
            *(
                "set_mask_count",
                "vsel_tensor",
                "vsel_scalar",
                "vreduce",
                "vreducev2",
                "get_rsvd_cnt",
            ),
            *("vgather", "vconv_f162s16", "vconv_s162f16"),
        ),
        _INFERENCE,
    ),
}
"""Further architectures of an instruction, by its name."""
