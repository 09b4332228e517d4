"""Modes of register instructions that names and words of the C API choose."""

from collections.abc import Mapping
from types import MappingProxyType

from cubecore.isa.vector.registers.operations.masks import PATTERNS

COMPARISON_NAMES = {
    "eq": "EQ",
    "ne": "NE",
    "gt": "GT",
    "ge": "GE",
    "lt": "LT",
    "le": "LE",
}
"""Words of the names of comparisons, and their modes."""
_HALVES = (("lower", "LOWEST"), ("upper", "HIGHEST"))
_PACKED = (("to_low", "LOWEST"), ("to_high", "HIGHEST"))
MODES: Mapping[str, tuple[tuple[str, str], ...]] = MappingProxyType(
    {
        "Compare": tuple((f"asc_{word}", mode) for word, mode in COMPARISON_NAMES.items()),
        "Compares": tuple((f"asc_{word}_scalar", mode) for word, mode in COMPARISON_NAMES.items()),
        "Truncate": tuple(
            (f"asc_{word}", f"CAST_{word.upper()}")
            for word in ("rint", "round", "floor", "ceil", "trunc")
        ),
        "Reduce": tuple((f"asc_reduce_{word}", word.upper()) for word in ("sum", "max", "min")),
        "ReduceDataBlock": tuple(
            (f"asc_reduce_{word}_datablock", word.upper()) for word in ("sum", "max", "min")
        ),
        "PairReduceElem": (("asc_pair_reduce_sum", "SUM"),),
        "Arange": (("asc_arange", "INCREASE_ORDER"), ("asc_arange_descend", "DECREASE_ORDER")),
        "Histograms": tuple(
            (f"asc_{word}_histogram_bin{n}", f"{mode}.BIN{n}")
            for word, mode in (("frequency", "FREQUENCY"), ("cumulative", "ACCUMULATE"))
            for n in (0, 1)
        ),
        "ExpSub": (("asc_exp_sub", "ZERO"), ("asc_exp_sub_v2", "ONE")),
        "MulsCast": (("asc_muls", "ZERO"), ("asc_muls_v2", "ONE")),
        "SqueezeCounted": (("asc_squeeze_with_status", ""), ("asc_squeeze_v2", "")),
        "AddCarry": (("asc_add", ""),),
        "SubCarry": (("asc_sub", ""),),
        "MaskGenWithRegTensor": (("asc_copy", ""),),
        "ClearSpr": (("asc_clear_ar_spr", ""),),
        "LocalMemBar": (("asc_mem_bar", ""),),
        **{
            f"{mask}Pack": (
                *((f"asc_pack_{word}", mode) for word, mode in _PACKED),
                *(("asc_pack", "LOWEST"), ("asc_pack_v2", "HIGHEST")),
            )
            for mask in ("", "Mask")
        },
        **{
            f"{mask}UnPack": tuple((f"asc_unpack_{word}", mode) for word, mode in _HALVES)
            for mask in ("", "Mask")
        },
    }
)
"""Names by instruction, each with the mode that it chooses; `asc_pack` is an older one."""
BY_WIDTH: Mapping[str, tuple[str, tuple[int, ...]]] = MappingProxyType(
    {
        "CreateMask": ("asc_create_mask_b{bits}", (8, 16, 32)),
        "UpdateMask": ("asc_update_mask_b{bits}", (8, 16, 32)),
        "MaskInterleave": ("asc_intlv_b{bits}", (8, 16, 32)),
        "MaskDeInterleave": ("asc_deintlv_b{bits}", (8, 16, 32)),
        "MoveMask": ("asc_get_mask_spr_b{bits}", (16, 32)),
    }
)
"""Names that say the width of lanes, by instruction, with the widths."""
_ACCESSES = {"VST": "VEC_STORE", "VLD": "VEC_LOAD", "ST": "SCALAR_STORE", "LD": "SCALAR_LOAD"}
_UNITS = {"V": "VEC_ALL", "S": "SCALAR_ALL"}
BARRIERS: Mapping[str, tuple[str, str]] = MappingProxyType(
    {
        **{
            f"{before}_{behind}": (_ACCESSES[before], _ACCESSES[behind])
            for before, behind in (
                *(("VST", "VLD"), ("VLD", "VST"), ("VST", "VST"), ("VST", "LD"), ("VST", "ST")),
                *(("VLD", "ST"), ("ST", "VLD"), ("ST", "VST"), ("LD", "VST")),
            )
        },
        **{
            f"{before}{behind}_ALL": (_UNITS[before], _UNITS[behind])
            for before, behind in ("VV", "VS", "SV", "SS")
        },
        **{
            f"{before}_{behind}": (_ACCESSES[before], _ACCESSES[behind])
            for before, behind in (("ST", "LD"), ("LD", "ST"), ("ST", "ST"))
        },
    }
)
"""The words of `asc_mem_bar` in the order of MEM_TYPE: accesses before it, and behind it."""
PATTERN_WORDS: Mapping[str, str] = MappingProxyType({f"PAT_{word}": word for word in PATTERNS})
"""The words of asc_mask_pattern."""
