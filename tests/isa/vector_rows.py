"""What the documents say of each vector instruction: the rows of test_catalogue, by family."""

from dataclasses import replace
from typing import Any

from cubecore.dtypes import element_type
from cubecore.isa.declare.instruction import Mem
from isa.bench import Bench

HALF = element_type("float16")
UB = Mem.UB
FLOATS = ("float16", "float32")
ARITHMETIC = ("int16", "float16", "int32", "float32")
BITS = ("int16", "uint16")

BINARY = dict.fromkeys(("vadd", "vsub", "vmul", "vmax", "vmin"), ARITHMETIC) | {
    "vdiv": FLOATS,
    "vand": BITS,
    "vor": BITS,
}
UNARY = dict.fromkeys(("vabs", "vexp", "vln", "vrec", "vsqrt", "vrsqrt"), FLOATS) | {
    "vrelu": ("float16", "int32", "float32"),
    "vnot": BITS,
}
SCALAR = dict.fromkeys(("vadds", "vsubs", "vmuls", "vmaxs", "vmins"), ARITHMETIC) | {
    "vlrelu": FLOATS
}
SHIFTS = dict.fromkeys(("vshl", "vshr"), ("int16", "uint16", "int32", "uint32"))

EXAMPLES: dict[str, dict[str, Any]] = {}
OPERANDS: dict[str, dict[str, tuple[Mem, int]]] = {}
RANGES: dict[str, dict[str, tuple[int, int]]] = {}
WORDS: dict[tuple[str, str], tuple[str, ...]] = {}
TYPES: dict[tuple[str, str], tuple[str, ...]] = {}
ORACLES: dict[str, str] = {}

REPEAT = {"repeat": (0, 255)}
VALUE = (-(2**31), 2**32 - 1)
WIDE_VALUE = (-(2**63), 2**64 - 1)
"""Of a scalar that 3510 has in 64 bits, too; the element type says how many count."""


def strides(*operands: str, high: int) -> dict[str, tuple[int, int]]:
    """Block and repeat strides of operands."""
    return {f"{o}_{what}_stride": (0, high) for o in operands for what in ("block", "repeat")}


def add(
    names: dict[str, tuple[str, ...]],
    operands: tuple[str, ...],
    ranges: dict[str, tuple[int, int]],
    oracle: str,
    **example: Any,
) -> None:
    """Enter the rows of a family whose members have one `dtype`."""
    for name, types in names.items():
        EXAMPLES[name] = {"dtype": element_type(types[0]), **example}
        OPERANDS[name] = dict.fromkeys(operands, (UB, 32))
        RANGES[name] = REPEAT | ranges
        TYPES[name, "dtype"] = types
        ORACLES[name] = oracle


TWO, THREE = ("dst", "src"), ("dst", "src0", "src1")
add(
    BINARY,
    THREE,
    strides(*THREE, high=255),
    "isa/vector/elementwise/test_binary.py::test_every_function",
)
for _name in ("vadd", "vsub", "vmul", "vmax", "vmin"):
    ORACLES[_name] = "isa/vector/common/test_mask.py::test_two_repeats_of_every_function"
_WIDE = strides(*TWO, high=65535)
add(UNARY, TWO, _WIDE, "isa/vector/elementwise/test_unary.py::test_every_function_of_one_source")
_SCALAR = "isa/vector/elementwise/test_unary.py::test_every_function_of_a_source_and_a_scalar"
add(SCALAR, TWO, _WIDE | {"value": WIDE_VALUE}, _SCALAR, value=0)
_SHIFT = _WIDE | {"distance": (0, 64), "rounds": (0, 1)}
add(SHIFTS, TWO, _SHIFT, "isa/vector/elementwise/test_unary.py::test_every_shift", distance=1)

_DIRECTED = ("rint", "round", "floor", "ceil", "trunc")
_ANY = ("none", *_DIRECTED)
_PAIRS = (
    *(("f16", "f32", ("none",)), ("bf16", "f32", ("none",)), ("f32", "f16", (*_ANY, "odd"))),
    *(("f32", "bf16", _DIRECTED), ("f32", "f32", _DIRECTED), ("f32", "s16", _DIRECTED)),
    *(("f32", "s32", _DIRECTED), ("f32", "s64", _DIRECTED), ("f16", "s4", _ANY)),
    *(("f16", "s8", _ANY), ("f16", "u8", _ANY), ("f16", "s16", _DIRECTED)),
    *(("f16", "s32", _DIRECTED), ("bf16", "s32", _DIRECTED), ("s4", "f16", ("none",))),
    *(("s8", "f16", ("none",)), ("u8", "f16", ("none",)), ("s16", "f16", _ANY)),
    *(("s16", "f32", ("none",)), ("s32", "f32", _ANY), ("s64", "f32", _DIRECTED)),
    *(("s32", "s16", ("none",)), ("s32", "s64", ("none",)), ("s64", "s32", ("none",))),
)
_OF_PAIR = {
    "f16": "test_every_16_bit_float_to_an_integer",
    "bf16": "test_every_16_bit_float_to_an_integer",
    "s4": "test_every_4_bit_integer_to_half",
    "s8": "test_every_8_bit_integer_to_half",
    "u8": "test_every_8_bit_integer_to_half",
    "s16": "test_every_16_bit_integer_to_half",
    "s32": "test_integer_to_integer",
    "s64": "test_integer_to_integer",
    "f32": "test_float_to_an_integer",
}
for _from, _to, _modes in _PAIRS:
    _name = f"vconv_{_from}2{_to}"
    _narrow = (
        {"dst_repeat_stride": (0, 255), "src_repeat_stride": (0, 255)} if _from == "s4" else {}
    )
    _test = _OF_PAIR[_from]
    if _to in ("f16", "bf16") and _from == "f32":
        _test = "test_float_to_a_narrower_float"
    elif _to == "f32":
        _test = {
            "f16": "test_every_16_bit_float_to_float",
            "bf16": "test_every_16_bit_float_to_float",
            "f32": "test_float_to_an_integral_float",
        }.get(_from, "test_integer_to_float")
    EXAMPLES[_name] = {}
    OPERANDS[_name] = dict.fromkeys(TWO, (UB, 32))
    RANGES[_name] = REPEAT | _WIDE | _narrow
    WORDS[_name, "rounding"] = _modes
    ORACLES[_name] = f"isa/vector/elementwise/test_convert.py::{_test}"

MULTIPLY = dict.fromkeys(("vmadd", "vmaddrelu"), FLOATS)
_THREE = strides(*THREE, high=255)
add(MULTIPLY, THREE, _THREE, "isa/vector/elementwise/test_fused.py::test_multiply_and_add")
WITH_TYPES: dict[str, tuple[tuple[str, ...], tuple[str, ...], dict[str, Any], str]] = {
    "vaxpy": (FLOATS, FLOATS, _WIDE | {"value": WIDE_VALUE}, "test_axpy"),
    "vmla": (FLOATS, FLOATS, _THREE, "test_multiply_and_add"),
    "vaddrelu": (("int8", "int16", *FLOATS), ("int16", *FLOATS), _THREE, "test_sums_with_relu"),
    "vsubrelu": (("int8", "int16", *FLOATS), ("int16", *FLOATS), _THREE, "test_sums_with_relu"),
    "vmulconv": (("int8", "uint8"), ("float16",), _THREE, "test_products_as_integers"),
}
for _name, (_dst, _src, _ranges, _test) in WITH_TYPES.items():
    EXAMPLES[_name] = {"dst_type": element_type(_dst[0]), "src_type": HALF}
    EXAMPLES[_name] |= {"value": 0} if _name == "vaxpy" else {}
    OPERANDS[_name] = dict.fromkeys(TWO if _name == "vaxpy" else THREE, (UB, 32))
    RANGES[_name] = REPEAT | _ranges
    TYPES[_name, "dst_type"], TYPES[_name, "src_type"] = _dst, _src
    ORACLES[_name] = f"isa/vector/elementwise/test_fused.py::{_test}"

MOVED = ("int16", "uint16", "int32", "uint32")
add({"vcopy": MOVED}, TWO, _WIDE, "isa/vector/elementwise/test_fill.py::test_copy")
_FILLED = strides("dst", high=65535)
add(
    {"vector_dup": ("float16", "int16", "uint16", "bfloat16", "float32", "int32", "uint32")},
    ("dst",),
    _FILLED | {"value": VALUE},
    "isa/vector/elementwise/test_fill.py::test_duplicate",
    value=0,
)
add(
    {"vci": ARITHMETIC},
    ("dst",),
    {"dst_block_stride": (0, 65535), "dst_repeat_stride": (0, 255), "first": VALUE},
    "isa/vector/elementwise/test_fill.py::test_index",
    first=0,
)
add(
    {"vbrcb": ("uint16", "uint32")},
    TWO,
    _FILLED,
    "isa/vector/elementwise/test_fill.py::test_broadcast",
)

_SCALED = _WIDE | {f"{o}_repeat_stride": (0, 255) for o in TWO}
for _name, _test in (
    ("vconv_deq", "test_integers_to_half"),
    ("vconv_deqs162b8", "test_halves_to_bytes"),
    ("vconv_vdeqs162b8", "test_halves_to_bytes_by_lane"),
):
    EXAMPLES[_name] = {} if _name == "vconv_deq" else {"dst_type": element_type("uint8")}
    OPERANDS[_name] = dict.fromkeys(TWO, (UB, 32))
    RANGES[_name] = REPEAT | _SCALED
    ORACLES[_name] = f"isa/vector/elementwise/test_dequantise.py::{_test}"
    if _name != "vconv_deq":
        TYPES[_name, "dst_type"] = ("int8", "uint8")
        WORDS[_name, "half"] = ("high", "low")
OPERANDS["vconv_vdeqs162b8"]["scales"] = (UB, 32)
EXAMPLES["set_deqscale"] = {"value": 0}
RANGES["set_deqscale"] = {"value": (0, 2**64 - 1)}
ORACLES["set_deqscale"] = (
    "isa/vector/elementwise/test_dequantise.py::test_the_register_is_packed_as_documented"
)

_REDUCED = strides("src", high=65535) | {"dst_repeat_stride": (0, 65535)}
for _name, _test in (
    *(("vcadd", "test_repeat_sum"), ("vcmax", "test_repeat_extreme")),
    *(("vcmin", "test_repeat_extreme"), ("vcgadd", "test_block_sum")),
    *(("vcgmax", "test_block_extreme"), ("vcgmin", "test_block_extreme")),
    ("vcpadd", "test_pair_sum"),
):
    _fields = _REDUCED | ({} if _name in {"vcadd", "vcmax", "vcmin"} else {"fills": (0, 1)})
    add({_name: FLOATS}, TWO, _fields, f"isa/vector/permute/test_reduce.py::{_test}")
    if _name in ("vcmax", "vcmin"):
        WORDS[_name, "order"] = ("value_index", "index_value", "only_value", "only_index")
_EXTREMES = ("int16", "uint16", "int32", "uint32", *FLOATS, "int64", "uint64")
add(
    dict.fromkeys(("reduce_max", "reduce_min"), _EXTREMES),
    TWO,
    strides("src", high=65535) | {"indexed": (0, 1)},
    "isa/vector/permute/test_reduce_3510.py::test_extremes",
)
EXAMPLES["get_max_min_cnt"] = {}
ORACLES["get_max_min_cnt"] = "isa/vector/permute/test_reduce.py::test_repeat_extreme"
OPERANDS["reduce_max"] |= {"dst": (UB, 2)}
OPERANDS["reduce_min"] |= {"dst": (UB, 2)}
_RESULTS = {"vcadd": 2, "vcmax": 4, "vcmin": 4} | dict.fromkeys(("vcgadd", "vcgmax", "vcgmin"), 16)
for _name, _align in _RESULTS.items():  # of half; dst is aligned to what one repeat gives
    OPERANDS[_name] |= {"dst": (UB, _align)}

for _relation in ("eq", "ne", "lt", "le", "gt", "ge"):
    _more = (*FLOATS, "int32") if _relation == "eq" else FLOATS
    add(
        {f"vcmp_{_relation}": FLOATS},
        ("src0", "src1"),
        _THREE,
        "isa/vector/elementwise/test_compare.py::test_to_the_register",
    )
    add(
        {f"vcmpv_{_relation}": _more},
        THREE,
        _THREE,
        "isa/vector/elementwise/test_compare.py::test_to_memory",
    )
    add(
        {f"vcmpvs_{_relation}": _more},
        TWO,
        _WIDE | {"value": WIDE_VALUE},
        "isa/vector/elementwise/test_compare.py::test_with_a_scalar",
        value=0,
    )
add({"vsel": FLOATS}, THREE, _THREE, "isa/vector/elementwise/test_select.py::test_by_the_register")
add(
    {"vsel_tensor": FLOATS},
    (*THREE, "sel"),
    _THREE,
    "isa/vector/elementwise/test_select.py::test_by_memory",
)
add(
    {"vsel_scalar": FLOATS},
    ("dst", "src0", "sel"),
    strides("dst", "src0", high=255),
    "isa/vector/elementwise/test_select.py::test_with_a_scalar",
)
for _name, _operand in (("set_cmpmask", "src"), ("get_cmpmask", "dst")):
    EXAMPLES[_name] = {}
    OPERANDS[_name] = {_operand: (UB, 16)}
    ORACLES[_name] = "isa/vector/elementwise/test_compare.py::test_to_the_register"
BY_REGISTER = {("vsel_tensor", "sel")}
"""Operands whose address a register holds; an example cannot move them."""
FAR = 163840


def prepare(bench: Bench) -> None:
    """Let the registers that hold addresses point away from an example's operands."""
    far = {"deq_scale": FAR // 32, "cmp_mask": FAR}
    bench.core.registers = replace(bench.core.registers, **far)


_GATHERED = ("int16", "uint16", "float16", "bfloat16", "int32", "uint32", "float32")
_INDEXED = (*TWO, "offset")
_REPEATS = {"dst_repeat_stride": (0, 65535)}
add({"vgather": _GATHERED}, _INDEXED, _REPEATS, "isa/vector/permute/test_gather.py::test_elements")
OPERANDS["vgather"] |= {"src": (UB, 2)}  # an element's size: a base address may be any element's
_STRIDED = _REPEATS | {"dst_block_stride": (0, 255)}
add(
    {"vgatherb": ("uint16", "uint32")},
    _INDEXED,
    _STRIDED,
    "isa/vector/permute/test_gather.py::test_blocks",
)
_KEPT = {"src0_block_stride": (0, 255), "src1_repeat_stride": (0, 255)}
add(
    {"vreducev2": ("uint16", "uint32")},
    THREE,
    _KEPT | {"repeat": (0, 65535), "pattern": (0, 7), "src0_repeat_stride": (0, 65535)},
    "isa/vector/permute/test_gather_mask.py::test_built_in_patterns",
    pattern=0,
)
add(
    {"vreduce": ("uint16", "uint32")},
    THREE,
    _THREE,
    "isa/vector/permute/test_gather_mask.py::test_squeeze",
)
EXAMPLES["get_rsvd_cnt"] = {}
ORACLES["get_rsvd_cnt"] = "isa/vector/permute/test_gather_mask.py::test_built_in_patterns"

add({"vtranspose": BITS}, TWO, {}, "isa/vector/permute/test_transpose.py::test_sixteen_by_sixteen")
RANGES["vtranspose"] = {}
for _bits in (8, 16, 32):
    _name = f"scatter_vnchwconv_b{_bits}"
    EXAMPLES[_name] = {"dst_va": 0, "src_va": 2}
    OPERANDS[_name] = dict.fromkeys(TWO, (UB, 32))
    RANGES[_name] = REPEAT | {f"{o}_va": (0, 6) for o in TWO}
    RANGES[_name] |= {f"{o}_stride": (0, 65535) for o in TWO}
    RANGES[_name] |= {f"{o}_high_half": (0, 1) for o in TWO} if _bits == 8 else {}
    ORACLES[_name] = "isa/vector/permute/test_transpose.py::test_blocks_at_addresses"
    BY_REGISTER |= {(_name, operand) for operand in TWO}
EXAMPLES["set_va_reg_sb"] = {"va": 0} | {f"address{i}": 0 for i in range(8)}
RANGES["set_va_reg_sb"] = {"va": (0, 7)} | {f"address{i}": (0, 2**32 - 32) for i in range(8)}
ORACLES["set_va_reg_sb"] = "isa/vector/permute/test_transpose.py::test_blocks_at_addresses"

add({"vbitsort": FLOATS}, THREE, {}, "isa/vector/permute/test_sort.py::test_thirty_two")
_QUEUES = tuple(f"src{i}" for i in range(4))
_LENGTHS = {f"element_length_{i}": (0, 4095) for i in range(4)}
add(
    {"vmrgsort4": FLOATS},
    ("dst", *_QUEUES),
    _LENGTHS | {"if_exhausted_suspension": (0, 1), "valid_bit": (3, 15)},
    "isa/vector/permute/test_sort.py::test_merges",
    element_length_0=4,
    element_length_1=4,
    element_length_2=4,
    element_length_3=4,
)
OPERANDS["vmrgsort4"] |= dict.fromkeys(_QUEUES, (UB, 8))
EXAMPLES["get_vms4_sr"] = {}
ORACLES["get_vms4_sr"] = "isa/vector/permute/test_sort.py::test_merges"

GM = Mem.GM
_BURSTS = {"n_burst": (1, 4095), "len_burst": (1, 65535)}
_GAPS = {"src_gap": (0, 65535), "dst_gap": (0, 65535)}
EXAMPLES["copy_ubuf_to_ubuf"] = {"n_burst": 1, "len_burst": 1}
OPERANDS["copy_ubuf_to_ubuf"] = dict.fromkeys(TWO, (UB, 32))
RANGES["copy_ubuf_to_ubuf"] = _BURSTS | _GAPS
TYPES["copy_ubuf_to_ubuf", "block"] = ("datablock",)
ORACLES["copy_ubuf_to_ubuf"] = "isa/vector/permute/test_copies.py::test_runs_inside_the_buffer"
_LOADED = ("int8", "uint8", "int16", "uint16", "float16", "bfloat16", "int32", "uint32", "float32")
for _name, _to, _from, _types in (
    ("copy_gm_to_ubuf_align", (UB, 32), (GM, 1), _LOADED),
    ("copy_ubuf_to_gm_align", (GM, 1), (UB, 32), (*_LOADED, "int64", "uint64")),
):
    EXAMPLES[_name] = {"dtype": HALF, "n_burst": 1, "len_burst": 2}
    OPERANDS[_name] = {"dst": _to, "src": _from}
    RANGES[_name] = {"n_burst": (0, 4095), "len_burst": (0, 2097151)}
    RANGES[_name] |= {f"{side}_padding_num": (0, 32) for side in ("left", "right")}
    RANGES[_name] |= {f"{o}_gap": (0, 2**32 - 1) for o in TWO}
    TYPES[_name, "dtype"] = _types
ORACLES["copy_gm_to_ubuf_align"] = "isa/vector/permute/test_copies.py::test_padded_loads"
ORACLES["copy_ubuf_to_gm_align"] = "isa/vector/permute/test_copies.py::test_unaligned_stores"
EXAMPLES["set_mov_pad_val"] = {"value": 0}
RANGES["set_mov_pad_val"] = {"value": (0, 2**64 - 1)}
ORACLES["set_mov_pad_val"] = "isa/vector/permute/test_copies.py::test_padded_loads"
