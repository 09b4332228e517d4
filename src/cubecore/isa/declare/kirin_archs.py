"""Instructions of arch 2201 on Kirin X90 (3003) and Kirin 9030 (3113), by their pages' tables.

The basic API's pages name both chips among their products, with the element types that each move
takes there. No page describes the chips' instructions themselves: what a call means is taken to be
what its instruction means on 2201.
"""

from collections.abc import Mapping

X90, K9030 = "3003", "3113"
_BYTES = ("int8", "uint8", "int16", "uint16", "float16")
_ANY: tuple[str, ...] = ()
_SUMS = ("float16", "float32", "int32")
_SAME = "Kirin X90 and 9030: taken to be as on 2201, of which alone the page has the details"
_HALF_SUMS = (
    "Kirin: Mmad sums halves into L0C as half, and Fixpipe's tables of types have float and int32 "
    "alone: half is taken to be written as it is"
)
_NO_BIAS_COPY = (
    "Kirin X90: Mmad takes a bias in C2, and the page of the copy to C2 excludes the chip: it is "
    "taken to exist there"
)
_NO_TRANSPOSE = (
    "Kirin 9030: the page excludes the chip; for half it is what LoadData does with ifTranspose, "
    "which it has"
)
_REPEATS = (
    "Kirin X90: the page of the 3D load names the chip, and those of its repetition and its "
    "boundary do not: it is taken to run once, without a boundary"
)
_BYTES_NOT_FILLED = (
    "Kirin X90: the page also gives int8, whose value no instruction of 2201 takes: it is left out"
)

KIRIN_ARCHS: Mapping[str, Mapping[str, tuple[str, ...]]] = {
    **{
        name: {X90: _ANY, K9030: _ANY}
        for name in (
            *("set_flag", "wait_flag", "pipe_barrier", "scalar_work"),
            *("copy_gm_to_cbuf", "copy_cbuf_to_gm", "load_gm_to_cbuf"),
            *("load_gm_to_ca", "load_gm_to_cb", "load_cbuf_to_ca", "load_cbuf_to_cb"),
            *("set_quant_pre", "set_nd_para", "set_fmatrix", "set_fmatrix_b", "set_l3d_padding"),
        )
    },
    "copy_gm_to_cbuf_multi_nd2nz": {X90: _BYTES, K9030: _BYTES},
    "load_cbuf_to_ca_transpose": {X90: ("int8", "float16"), K9030: ("float16",)},
    "load_cbuf_to_cb_transpose": {X90: ("int8", "float16"), K9030: ("float16",)},
    "copy_matrix_cc_to_gm": {X90: _SUMS, K9030: _SUMS},
    "copy_matrix_cc_to_cbuf": {X90: _SUMS, K9030: _SUMS},
    "copy_cbuf_to_bt": {X90: ("int32", "float16")},
    "img2colv2_cbuf_to_ca": {X90: ("int8", "float16")},
    "img2colv2_cbuf_to_cb": {X90: ("int8", "float16")},
    "create_ca_matrix": {X90: ("float16",), K9030: ("float16",)},
    "create_cb_matrix": {X90: ("float16",), K9030: ("float16",)},
    "create_cbuf_matrix": {X90: ("float16",), K9030: ("float16",)},
}
"""By name the further architectures, and the element types that a template takes there; () says
that its own types hold."""

KIRIN_NOTES: Mapping[str, tuple[str, ...]] = {
    **{name: (_SAME,) for name in KIRIN_ARCHS if name != "scalar_work"},
    "copy_matrix_cc_to_gm": (_SAME, _HALF_SUMS),
    "copy_matrix_cc_to_cbuf": (_SAME, _HALF_SUMS),
    "img2colv2_cbuf_to_ca": (_SAME, _REPEATS),
    "img2colv2_cbuf_to_cb": (_SAME, _REPEATS),
    **dict.fromkeys(
        ("create_ca_matrix", "create_cb_matrix", "create_cbuf_matrix"), (_SAME, _BYTES_NOT_FILLED)
    ),
    "copy_cbuf_to_bt": (_SAME, _NO_BIAS_COPY),
    "load_cbuf_to_ca_transpose": (_SAME, _NO_TRANSPOSE),
    "load_cbuf_to_cb_transpose": (_SAME, _NO_TRANSPOSE),
}
"""By name what is inferred of them there."""
