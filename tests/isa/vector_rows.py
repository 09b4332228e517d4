"""What the documents say of each vector instruction: the rows of test_catalogue, by family."""

from typing import Any

from cubecore.dtypes import element_type
from cubecore.isa.spec import Mem

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
add(BINARY, THREE, strides(*THREE, high=255), "isa/test_binary.py::test_every_function")
for _name in ("vadd", "vsub", "vmul", "vmax", "vmin"):
    ORACLES[_name] = "isa/test_vector.py::test_two_repeats_of_every_function"
_WIDE = strides(*TWO, high=65535)
add(UNARY, TWO, _WIDE, "isa/test_unary.py::test_every_function_of_one_source")
_SCALAR = "isa/test_unary.py::test_every_function_of_a_source_and_a_scalar"
add(SCALAR, TWO, _WIDE | {"value": VALUE}, _SCALAR, value=0)
_SHIFT = _WIDE | {"distance": (0, 32), "rounds": (0, 1)}
add(SHIFTS, TWO, _SHIFT, "isa/test_unary.py::test_every_shift", distance=1)
