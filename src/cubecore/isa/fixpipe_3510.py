"""Fixpipe of architecture 3510, from L0C to global memory."""

from typing import ClassVar

from cubecore.chips.products import fixpipe_modes
from cubecore.isa.fixpipe import CopyMatrixCcToGm
from cubecore.isa.spec import Pipe, choice, instruction, param

_HINTS = (0, 1, 2, 4)
_LATER = "not modelled: 0"


@instruction(
    "copy_matrix_cc_to_gm_v2",
    Pipe.FIX,
    names={"c_api": "asc_copy_l0c2gm", "cpp": "Fixpipe"},
    source="asc-devkit, asc_copy_l0c2gm (3510), Fixpipe (L0C to GM) and on-the-fly quantisation",
    uncertain=(
        "a scaled value is a float32 product rounded once, and then rounded to the target: the "
        "page says of QF322F32_PRE only that it is right to 2 in 1000",
        "without infinities NaN becomes 0 in float8 too: CTRL[50], which could keep it, is not "
        "modelled",
        "what comes behind the first conversion (quant_post, clipped ReLU, element-wise work), "
        "broadcasts and NZ2DN are not modelled",
    ),
    archs=("3510",),
)
class CopyMatrixCcToGmV2(CopyMatrixCcToGm):
    """Write a tile of L0C to global memory as `copy_matrix_cc_to_gm`, with 3510's conversions.

    Without nz2nd_en dst_stride counts elements. A scale's bits 36 to 32 do not count: nothing is
    shifted. Further modes scale to float32, float16, bfloat16 and float8_e4m3fn, rounded to nearest
    even; with CTRL[48] what is too large for float8_e4m3fn becomes NaN.
    """

    signature = (
        *("dst", "src", "n_size", "m_size", "dst_stride", "src_stride", "l2_cache_ctl"),
        *("clip_relu_pre", "unit_flag", "quant_pre", "relu_pre", "channel_split", "nz2nd_en"),
        *("quant_post", "relu_post", "clip_relu_post", "eltwise_op", "eltwise_antq_en"),
        *("c0_pad_en", "broadcast_en", "nz2dn_en"),
    )
    scale_bits: ClassVar[int] = ~(0x1F << 32) & 2**64 - 1
    quant_pre: str = choice("conversion", *fixpipe_modes("GM", "3510"), default="NoQuant")
    l2_cache_ctl: int = choice(
        "L2 hint: 0 normal, 1 last, 2 persistent, 4 disable; no value depends on it",
        *_HINTS,
        default=0,
    )
    clip_relu_pre: int = param(0, 0, _LATER, default=0)
    quant_post: str = choice("a second conversion, not modelled", "NoConv", default="NoConv")
    relu_post: int = param(0, 0, _LATER, default=0)
    clip_relu_post: int = param(0, 0, _LATER, default=0)
    eltwise_op: int = param(0, 0, _LATER, default=0)
    eltwise_antq_en: int = param(0, 0, _LATER, default=0)
    c0_pad_en: int = param(0, 0, _LATER, default=0)
    broadcast_en: int = param(0, 0, _LATER, default=0)
    nz2dn_en: int = param(0, 0, _LATER, default=0)

    @property
    def column_elements(self) -> int:
        """Elements from one column of fractals to the next."""
        return self.dst_stride
