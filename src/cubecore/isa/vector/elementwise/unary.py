"""Vector instructions of one source, and of one source and a scalar, as two families."""

from collections.abc import Callable, Mapping
from typing import Any, ClassVar

import numpy as np

from cubecore.arrays import Array
from cubecore.chips.model import Chip
from cubecore.dtypes import ElementType
from cubecore.errors import Violation
from cubecore.isa.declare.common_3510 import ARCH, PageTypes
from cubecore.isa.declare.family import HALF_AND_FLOAT
from cubecore.isa.declare.instruction import Mem, param, read, types, write
from cubecore.isa.declare.registers import Registers
from cubecore.isa.declare.template import parameters
from cubecore.isa.vector.common import lane_functions
from cubecore.isa.vector.common.family import (
    ARITHMETIC,
    BYTES,
    BYTES_BY_COUNT,
    LATE_BITS,
    LATE_SCALED,
    LONG,
    WHOLE,
    Member,
    declare,
)
from cubecore.isa.vector.common.repeated import Repeated, settle, wide
from cubecore.layouts import Offsets
from cubecore.numerics import wrap
from cubecore.numerics.conversion import value_of


@parameters
class UnaryStrides(Repeated):
    """The strides of dst and src, in blocks of 32 bytes."""

    dst_block_stride: int = param(0, 65535, "32 B between dst's blocks", default=1)
    src_block_stride: int = param(0, 65535, "32 B between src's blocks", default=1)
    dst_repeat_stride: int = param(0, 65535, "32 B between dst's repeats", default=8)
    src_repeat_stride: int = param(0, 65535, "32 B between src's repeats", default=8)

    def offsets(self, operand: str) -> Offsets:
        """Shape [repeats, lanes]."""
        (element,) = (self.element(o) for o in self.declared if o.name == operand)
        block: int = getattr(self, f"{operand}_block_stride")
        repeat: int = getattr(self, f"{operand}_repeat_stride")
        return self.strided(element, block, repeat)


@parameters
class Unary(UnaryStrides):
    """dst = f(src), lane by lane.

    Results are rounded once. float16 stays finite (NaN gives 0) unless CTRL[48]; float32 never
    does.
    """

    function: ClassVar[Callable[[Array], Any]]
    bitwise: ClassVar[bool] = False
    """True if the result is a pattern of bits, which never saturates."""
    dst = write(Mem.UB, "repeat lane")
    src = read(Mem.UB, "repeat lane")
    dtype: ElementType = types("element type")

    def compute(self, inputs: Mapping[str, Array], registers: Registers) -> Mapping[str, Array]:
        """Compute wide, then come back to the element type once; bits as they are."""
        if self.bitwise:
            bits = inputs["src"].view(f"u{self.dtype.size_bytes}")
            return {"dst": np.asarray(type(self).function(bits)).view(self.dtype.numpy)}
        with np.errstate(all="ignore"):
            exact = type(self).function(wide(inputs["src"], self.dtype))
        return {"dst": settle(exact, self.dtype, registers)}


SCALAR_DOC = "the scalar: an integer, or a float's bits"


def scalar_violations(name: str, value: int, element: ElementType) -> list[Violation]:
    """Return a violation unless a scalar has at most the bits of its type, or 32."""
    bits = max(32, element.bits)
    if -(2 ** (bits - 1)) <= value < 2**bits:
        return []
    return [Violation(f"{name}.value", f"have at most {bits} bits for {element}", str(value))]


@parameters
class VectorScalar(UnaryStrides):
    """dst = f(src, value), lane by lane.

    Integers wrap, or saturate under CTRL[53]; floats are rounded once. float16 stays finite (NaN
    gives 0) unless CTRL[48]; float32 never does.
    """

    function: ClassVar[Callable[[Array, Array], Any]]
    dst = write(Mem.UB, "repeat lane")
    src = read(Mem.UB, "repeat lane")
    dtype: ElementType = types("element type")
    value: int = param(-(2**63), 2**64 - 1, SCALAR_DOC)

    def preconditions(self, chip: Chip) -> list[Violation]:
        """The scalar has at most the bits of its type, or 32."""
        too_wide = scalar_violations(self.name, self.value, self.dtype)
        return too_wide or super().preconditions(chip)

    def compute(self, inputs: Mapping[str, Array], registers: Registers) -> Mapping[str, Array]:
        """Compute wide, then come back to the element type once."""
        with np.errstate(all="ignore"):
            scalar = wide(value_of(self.value, self.dtype), self.dtype)
            exact = type(self).function(wide(inputs["src"], self.dtype), scalar)
        return {"dst": settle(exact, self.dtype, registers)}


@parameters
class Shift(UnaryStrides):
    """dst = src shifted by `distance` bits; bits that leave the type are lost, whatever CTRL says.

    A distance equal to the width leaves 0, or the sign of a signed type that is shifted right.
    """

    function: ClassVar[Callable[[Array, Array], Any]]
    dst = write(Mem.UB, "repeat lane")
    src = read(Mem.UB, "repeat lane")
    dtype: ElementType = types("element type")
    distance: int = param(0, 64, "bits")
    rounds: bool = param(0, 1, "add the last bit shifted out of a signed type", default=False)

    def compute(self, inputs: Mapping[str, Array], registers: Registers) -> Mapping[str, Array]:
        """Shift in int64."""
        rounded = lane_functions.shift_right_rounded if self.rounds else type(self).function
        source = wide(inputs["src"], self.dtype)
        shifted = rounded(source, np.array(self.distance, source.dtype))
        return {"dst": wrap(shifted, self.dtype)}

    def preconditions(self, chip: Chip) -> list[Violation]:
        """The distance is at most the width; only a right shift of signed types rounds.

        On 3510 longer distances shift everything out, and nothing rounds.
        """
        violations = super().preconditions(chip)
        if self.distance > self.dtype.bits and chip.arch not in ARCH:
            limit = f"be at most the {self.dtype.bits} bits of {self.dtype}"
            violations.append(Violation(f"{self.name}.distance", limit, str(self.distance)))
        if self.rounds and chip.arch in ARCH:
            violations.append(Violation(f"{self.name}.rounds", f"be clear on {chip.name}", "set"))
        elif self.rounds and (self.dtype.kind != "int" or self.name != "vshr"):
            needs = "be clear but for vshr of a signed type"
            violations.append(
                Violation(f"{self.name}.rounds", needs, f"{self.name} of {self.dtype}")
            )
        return violations


_PRECISE = ("the result is rounded correctly: its precision is not documented",)
_UNARY = (
    Member(
        name="vabs",
        since="m100",
        c_api="asc_abs",
        cpp="Abs",
        tik="vec_abs",
        doc="Take the absolute value",
        does=np.abs,
        types=HALF_AND_FLOAT,
        late=PageTypes(("int16", "float16", "int32", "float32"), ("int8", "int64")),
    ),
    Member(
        name="vexp",
        since="m100",
        c_api="asc_exp",
        cpp="Exp",
        tik="vec_exp",
        doc="Raise e to src",
        does=lane_functions.exponential,
        types=HALF_AND_FLOAT,
        uncertain=_PRECISE,
    ),
    Member(
        name="vln",
        since="m100",
        c_api="asc_log",
        cpp="Ln",
        tik="vec_ln",
        doc="Take the natural logarithm",
        does=lane_functions.logarithm,
        types=HALF_AND_FLOAT,
        uncertain=_PRECISE,
    ),
    Member(
        name="vrec",
        since="m100",
        c_api="asc_rcp",
        cpp="Reciprocal",
        tik="vec_rec",
        doc="Divide one by src",
        does=lane_functions.reciprocal,
        types=HALF_AND_FLOAT,
        late=PageTypes(HALF_AND_FLOAT, LONG),
        uncertain=_PRECISE,
    ),
    Member(
        name="vsqrt",
        since="m100",
        c_api="asc_sqrt",
        cpp="Sqrt",
        tik="vec_sqrt",
        doc="Take the square root",
        does=np.sqrt,
        types=HALF_AND_FLOAT,
        uncertain=_PRECISE,
    ),
    Member(
        name="vrsqrt",
        since="m100",
        c_api="asc_rsqrt",
        cpp="Rsqrt",
        tik="vec_rsqrt",
        doc="Divide one by the square root",
        does=lane_functions.reciprocal_root,
        types=HALF_AND_FLOAT,
        uncertain=_PRECISE,
    ),
    Member(
        name="vrelu",
        since="m100",
        c_api="asc_relu",
        cpp="Relu",
        tik="vec_relu",
        doc="Replace what is negative, and -0, by 0",
        does=lane_functions.relu,
        types=("float16", "int32", "float32"),
        late=PageTypes(("float16", "int32", "float32"), ("int64",)),
    ),
    Member(
        name="vnot",
        since="m100",
        c_api="asc_not",
        cpp="Not",
        tik="vec_not",
        doc="Invert every bit",
        does=np.invert,
        types=("int16", "uint16"),
        late=PageTypes((*WHOLE, *HALF_AND_FLOAT), BYTES + LONG),
        fixed={"bitwise": True, **BYTES_BY_COUNT},
    ),
)
_SCALAR = (
    Member(
        name="vadds",
        since="m100",
        c_api="asc_add_scalar",
        cpp="Adds",
        tik="vec_adds",
        doc="Add the scalar",
        does=np.add,
        types=ARITHMETIC,
        late=LATE_SCALED,
    ),
    Member(
        name="vsubs",
        c_api="asc_sub_scalar",
        cpp="Subs",
        doc="Subtract the scalar",
        does=np.subtract,
        types=ARITHMETIC,
        late=LATE_SCALED,
        uncertain=("an instruction of its own: it may lower to vadds of the negated scalar",),
    ),
    Member(
        name="vmuls",
        since="m100",
        c_api="asc_mul_scalar",
        cpp="Muls",
        tik="vec_muls",
        doc="Multiply by the scalar",
        does=np.multiply,
        types=ARITHMETIC,
        late=PageTypes(LATE_SCALED.types, LONG),
    ),
    Member(
        name="vmaxs",
        since="m100",
        c_api="asc_max_scalar",
        cpp="Maxs",
        tik="vmaxs",
        doc="Take the larger of src and the scalar",
        does=lane_functions.larger,
        types=ARITHMETIC,
        late=LATE_SCALED,
    ),
    Member(
        name="vmins",
        since="m100",
        c_api="asc_min_scalar",
        cpp="Mins",
        tik="vmins",
        doc="Take the smaller of src and the scalar",
        does=lane_functions.smaller,
        types=ARITHMETIC,
        late=LATE_SCALED,
    ),
    Member(
        name="vlrelu",
        c_api="asc_leakyrelu",
        cpp="LeakyRelu",
        tik="vlrelu",
        doc="Multiply what has a negative sign by the scalar",
        does=lane_functions.leaky_relu,
        types=HALF_AND_FLOAT,
    ),
)
_SHIFTED = ("int16", "uint16", "int32", "uint32")
_SHIFTS = (
    Member(
        name="vshl",
        since="m100",
        c_api="asc_shiftleft",
        cpp="ShiftLeft",
        tik="vshl",
        doc="Shift to the left",
        does=lane_functions.shift_left,
        types=_SHIFTED,
        late=LATE_BITS,
    ),
    Member(
        name="vshr",
        since="m100",
        c_api="asc_shiftright",
        cpp="ShiftRight",
        tik="vshr",
        doc="Shift to the right, keeping the sign of signed types",
        does=lane_functions.shift_right,
        types=_SHIFTED,
        late=LATE_BITS,
        variants={"asc_shiftright_round": {"rounds": True}},
    ),
)
for _base, _table in ((Unary, _UNARY), (VectorScalar, _SCALAR), (Shift, _SHIFTS)):
    for _member in _table:
        declare(_base, _member, __name__)
