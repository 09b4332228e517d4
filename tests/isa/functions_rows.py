"""The catalogue's rows of what architecture 3510 has for whole tensors, and of its mutexes."""

from typing import Any

from cubecore.dtypes import element_type
from cubecore.isa.declare.instruction import Mem

_TWO = {"src0": "src0", "src1": "src1"}
_BITS = dict.fromkeys(("bitwise_and", "bitwise_or", "bitwise_xor"), ("dst", "src0", "src1"))
_TRUTHS = dict.fromkeys(("logical_and", "logical_or", "logical_xor"), ("dst", "src0", "src1"))
_RELATIONS = ("eq", "ne", "lt", "le", "gt", "ge")
TENSORS: dict[str, tuple[str, ...]] = {
    **{f"compare_{each}": ("dst", "src0", "src1") for each in _RELATIONS},
    **{f"compare_{each}s": ("dst", "src0") for each in _RELATIONS},
    **{f"compare_{each}_element": ("dst", "src0", "src1") for each in _RELATIONS},
    **dict.fromkeys(
        ("select_bits", "select_bits_element", "select_bits_element_first"),
        ("dst", "src0", "src1", "bits"),
    ),
    "select_bits_number": ("dst", "src0", "bits"),
    "select_bits_number_first": ("dst", "src1", "bits"),
    **_BITS,
    **_TRUTHS,
    **dict.fromkeys(("logical_ands", "logical_ors"), ("dst", "src0")),
    **dict.fromkeys(("bitwise_not", "logical_not", "duplicate_first"), ("dst", "src")),
    **{
        f"is_{what}{to}": ("dst", "src")
        for what in ("finite", "inf", "nan")
        for to in ("", "_truth")
    },
    "clamp": ("dst", "src", "low", "high"),
    "clamp_high": ("dst", "src", "low"),
    "clamp_low": ("dst", "src", "high"),
    "clamp_both": ("dst", "src"),
    "where": ("dst", "src0", "src1", "condition"),
    "where_second": ("dst", "src0", "condition"),
    "where_first": ("dst", "src1", "condition"),
    "where_both": ("dst", "condition"),
    "fma": ("dst", "src0", "src1", "src2"),
}
"""The tensors of each function, by its page."""
NUMBERS: dict[str, tuple[str, ...]] = {
    **{f"compare_{each}s": ("src1",) for each in _RELATIONS},
    "select_bits_number": ("src1",),
    "select_bits_number_first": ("src0",),
    "logical_ands": ("src1",),
    "logical_ors": ("src1",),
    "clamp_high": ("high",),
    "clamp_low": ("low",),
    "clamp_both": ("low", "high"),
    "where_second": ("src1",),
    "where_first": ("src0",),
    "where_both": ("src0", "src1"),
}
"""The numbers that stand for tensors."""
FIRSTS: dict[str, str] = {
    **{f"compare_{each}_element": "src1" for each in _RELATIONS},
    "select_bits_element": "src1",
    "select_bits_element_first": "src0",
    "duplicate_first": "src",
}
"""The tensors of which the first element stands for all."""
_MUTEX = ("lock", "unlock")
HOME = dict.fromkeys(
    (*TENSORS, *_MUTEX, "get_ar", "reduce_max", "reduce_min", "broadcast"), "Ascend950PR_9599"
)
EXAMPLES: dict[str, dict[str, Any]] = {
    **{
        name: {"dtype": element_type("int16" if name in (*_BITS, "bitwise_not") else "float16")}
        | {"count": 16, **dict.fromkeys(NUMBERS.get(name, ()), 0)}
        for name in TENSORS
    },
    **{name: {"on": "V", "mutex_id": 0} for name in _MUTEX},
    "broadcast": {"dtype": element_type("float16"), "count": 32, "dst_size7": 2, "dst_size8": 16}
    | {"src_size8": 16},
}
OPERANDS = {
    name: dict.fromkeys(tensors, (Mem.UB, 32))
    for name, tensors in (TENSORS | {"broadcast": ("dst", "src")}).items()
}
RANGES = {
    **{
        name: {"count": (0, 2**18)} | dict.fromkeys(NUMBERS.get(name, ()), (0, 2**64 - 1))
        for name in TENSORS
    },
    **{name: {"mutex_id": (0, 31), "mode": (0, 1)} for name in _MUTEX},
    "broadcast": {"count": (0, 2**18)}
    | {f"{of}_size{axis}": (1, 2**18) for of in ("dst", "src") for axis in range(9)},
}
_INTEGERS = ("int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64")
_FLOATS = ("float16", "bfloat16", "float32")
TYPES = {
    (name, "dtype"): (
        _INTEGERS
        if name.startswith("bitwise")
        else ("float16", "float32")
        if name == "fma"
        else _FLOATS
        if name.startswith("is_")
        else (*_INTEGERS, *_FLOATS)
    )
    for name in (*TENSORS, "broadcast")
}
WORDS = dict.fromkeys(
    (("lock", "on"), ("unlock", "on")), ("S", "V", "M", "MTE1", "MTE2", "MTE3", "FIX")
)
ORACLES = {
    **dict.fromkeys(TENSORS, "isa/vector/elementwise/test_functions_3510.py::test_functions"),
    "broadcast": "isa/vector/elementwise/test_broadcast_3510.py::test_shapes",
    **dict.fromkeys(_MUTEX, "machine/sanitize/test_mutexes.py::test_a_mutex_orders_its_holders"),
}
_CARRIED = """
    vadd vsub vmul vmax vmin vdiv vand vor vabs vexp vln vrec vsqrt vrsqrt vrelu vnot vadds
    vsubs vmuls vmaxs vmins vlrelu vshl vshr vaxpy vmla vmadd vmaddrelu vaddrelu vsubrelu
    vmulconv vector_dup vcopy vci vbrcb vgather vgatherb vreducev2 vreduce get_rsvd_cnt
    vcadd vcmax vcmin vcgadd vcgmax vcgmin vcpadd vsel vsel_tensor vsel_scalar
    set_vector_mask set_mask_norm set_mask_count set_cmpmask get_cmpmask set_deqscale
    get_vms4_sr vconv_deq vconv_deqs162b8 vconv_vdeqs162b8 vconv_f162f32 vconv_bf162f32
    vconv_f322f16 vconv_f322bf16 vconv_f322f32 vconv_f322s16 vconv_f322s32 vconv_f322s64
    vconv_f162s4 vconv_f162s8 vconv_f162u8 vconv_f162s16 vconv_f162s32 vconv_bf162s32
    vconv_s42f16 vconv_s82f16 vconv_u82f16 vconv_s162f16 vconv_s162f32 vconv_s322f32
    vconv_s642f32 vconv_s322s16 vconv_s322s64 vconv_s642s32
"""
CARRIED = frozenset(_CARRIED.split()) | {
    f"v{form}_{mode}"
    for form in ("cmp", "cmpv", "cmpvs")
    for mode in ("eq", "ne", "lt", "le", "gt", "ge")
}
"""Instructions of 2201 whose functions the class API's pages have for Ascend 950, too."""
