"""Vector instructions that do two or three steps at once: multiply and add, relu, convert.

Every step rounds to its type and, in half, stays finite as single instructions do (asc-devkit,
boundary values of Memory vector compute, tables 20 to 28, list each step's value).
"""

from collections.abc import Callable, Mapping
from typing import Any, ClassVar

import numpy as np

from cubecore.arrays import Array
from cubecore.chips.model import Chip
from cubecore.dtypes import INT8, ElementType, element_type
from cubecore.errors import Violation
from cubecore.isa.declare.common_3510 import ARCH, PageTypes
from cubecore.isa.declare.family import HALF_AND_FLOAT
from cubecore.isa.declare.instruction import Mem, param, read, types, update, write
from cubecore.isa.declare.registers import Registers
from cubecore.isa.declare.template import parameters
from cubecore.isa.vector.common.family import LONG, Member, declare
from cubecore.isa.vector.common.lane_functions import relu
from cubecore.isa.vector.common.repeated import Repeated, settle, wide
from cubecore.isa.vector.elementwise.binary import ACCUMULATES, WHICH, BinaryStrides
from cubecore.isa.vector.elementwise.unary import SCALAR_DOC, UnaryStrides, scalar_violations
from cubecore.numerics import round_float, saturate
from cubecore.numerics.conversion import to_integer, value_of

_ROUNDED_TWICE = (
    "the product is rounded to dst's type before the sum: documented for its overflow alone",
)
UINT8 = element_type("uint8")
_PAGE = "boundary values of Memory vector compute"
_LATE_SCALED = PageTypes((*HALF_AND_FLOAT, "bfloat16"), LONG)
_LATE_SUMMED = PageTypes(HALF_AND_FLOAT, LONG)
_SAME_LONG = tuple((name, name) for name in LONG)


def _combined(template: "Axpy | MultiplyInto | WithRelu", chip: Chip) -> list[Violation]:
    """Return a violation unless the types are a documented combination (dst, src)."""
    given = (template.dst_type.name, template.src_type.name)
    late = template.late_combinations if chip.arch in ARCH else ()
    allowed = (*template.combinations, *late)
    if given in allowed:
        return []
    listed = ", ".join(f"{dst} from {src}" for dst, src in allowed)
    return [Violation(f"{template.name}: the types", f"be {listed}", f"{given[0]} from {given[1]}")]


def _multiply_add(x: Array, y: Array, z: Array, to: ElementType, registers: Registers) -> Array:
    """Return x * y + z, both steps rounded to the type `to`."""
    product = settle(x * y, to, registers)
    return settle(wide(product, to) + wide(z, to), to, registers)


@parameters
class Axpy(UnaryStrides):
    """dst = src * value + dst, lane by lane; the scalar has src's type.

    Both steps round to dst's type; half stays finite (NaN gives 0) unless CTRL[48].
    """

    combinations: ClassVar[tuple[tuple[str, str], ...]] = (
        ("float16", "float16"),
        ("float32", "float16"),
        ("float32", "float32"),
    )
    late_combinations: ClassVar[tuple[tuple[str, str], ...]] = (
        ("bfloat16", "bfloat16"),
        *_SAME_LONG,
    )
    dst = update(Mem.UB, "repeat lane", "dst_type")
    src = read(Mem.UB, "repeat lane", "src_type")
    dst_type: ElementType = types("dst's element type", *HALF_AND_FLOAT, late=_LATE_SCALED)
    src_type: ElementType = types("src's element type", *HALF_AND_FLOAT, late=_LATE_SCALED)
    value: int = param(-(2**63), 2**64 - 1, SCALAR_DOC)

    def compute(self, inputs: Mapping[str, Array], registers: Registers) -> Mapping[str, Array]:
        """Multiply, then add."""
        with np.errstate(all="ignore"):
            x = wide(inputs["src"], self.src_type)
            y = wide(value_of(self.value, self.src_type), self.src_type)
            return {"dst": _multiply_add(x, y, inputs["dst"], self.dst_type, registers)}

    def preconditions(self, chip: Chip) -> list[Violation]:
        """The types combine; the scalar has at most the bits of its type, or 32."""
        violations = _combined(self, chip)
        violations += scalar_violations(self.name, self.value, self.src_type)
        return violations or super().preconditions(chip)


@parameters
class MultiplyInto(BinaryStrides):
    """dst = src0 * src1 + dst, lane by lane.

    Both steps round to dst's type; half stays finite (NaN gives 0) unless CTRL[48].
    """

    combinations: ClassVar[tuple[tuple[str, str], ...]] = Axpy.combinations
    late_combinations: ClassVar[tuple[tuple[str, str], ...]] = _SAME_LONG
    dst = update(Mem.UB, "repeat lane", "dst_type")
    src0 = read(Mem.UB, "repeat lane", "src_type")
    src1 = read(Mem.UB, "repeat lane", "src_type")
    dst_type: ElementType = types("dst's element type", *HALF_AND_FLOAT, late=_LATE_SUMMED)
    src_type: ElementType = types("the sources' element type", *HALF_AND_FLOAT, late=_LATE_SUMMED)

    def compute(self, inputs: Mapping[str, Array], registers: Registers) -> Mapping[str, Array]:
        """Multiply, then add."""
        with np.errstate(all="ignore"):
            x, y = (wide(inputs[name], self.src_type) for name in ("src0", "src1"))
            return {"dst": _multiply_add(x, y, inputs["dst"], self.dst_type, registers)}

    def preconditions(self, chip: Chip) -> list[Violation]:
        """The types combine."""
        return _combined(self, chip) or super().preconditions(chip)


@parameters
class MultiplyAdd(BinaryStrides):
    """dst = src0 * dst + src1, lane by lane, and for the relu form what is positive of it.

    Every step rounds; half stays finite (NaN gives 0) unless CTRL[48].
    """

    rectifies: ClassVar[bool] = False
    dst = update(Mem.UB, "repeat lane")
    src0 = read(Mem.UB, "repeat lane")
    src1 = read(Mem.UB, "repeat lane")
    dtype: ElementType = types("element type")

    def compute(self, inputs: Mapping[str, Array], registers: Registers) -> Mapping[str, Array]:
        """Multiply, add, and cut off what is negative."""
        with np.errstate(all="ignore"):
            x, y = (wide(inputs[name], self.dtype) for name in ("src0", "dst"))
            total = _multiply_add(x, y, inputs["src1"], self.dtype, registers)
            return {"dst": relu(total) if self.rectifies else total}


@parameters
class WithRelu(BinaryStrides):
    """dst = relu(src0 +- src1), lane by lane, and for a narrower dst converted to its type.

    The sum rounds to the sources' type; half stays finite (NaN gives 0) unless CTRL[48], int16
    wraps or saturates under CTRL[53]. Converted, an int16 sum is exact, the result is the nearest
    (ties to even), NaN gives 0, and int8 saturates.
    """

    combinations: ClassVar[tuple[tuple[str, str], ...]] = (
        ("int16", "int16"),
        ("float16", "float16"),
        ("float32", "float32"),
        ("int8", "int16"),
        ("int8", "float16"),
        ("float16", "float32"),
    )
    late_combinations: ClassVar[tuple[tuple[str, str], ...]] = _SAME_LONG
    function: ClassVar[Callable[[Array, Array], Any]]
    dst = write(Mem.UB, "repeat lane", "dst_type")
    src0 = read(Mem.UB, "repeat lane", "src_type")
    src1 = read(Mem.UB, "repeat lane", "src_type")
    dst_type: ElementType = types(
        "dst's element type",
        *("int8", "int16", *HALF_AND_FLOAT),
        late=PageTypes(("int8", "int16", *HALF_AND_FLOAT), LONG),
    )
    src_type: ElementType = types(
        "the sources' element type",
        *("int16", *HALF_AND_FLOAT),
        late=PageTypes(("int16", *HALF_AND_FLOAT), LONG),
    )

    def compute(self, inputs: Mapping[str, Array], registers: Registers) -> Mapping[str, Array]:
        """Add or subtract, cut off what is negative, convert."""
        with np.errstate(all="ignore"):
            x, y = (wide(inputs[name], self.src_type) for name in ("src0", "src1"))
            exact = type(self).function(x, y)
            if self.src_type.kind in {"int", "uint"}:
                if self.dst_type is not self.src_type:
                    return {"dst": saturate(relu(exact), self.dst_type)}
                return {"dst": relu(settle(exact, self.dst_type, registers))}
            total = relu(settle(exact, self.src_type, registers))
            if self.dst_type is self.src_type:
                return {"dst": total}
            numbers = np.where(np.isnan(total), np.zeros((), total.dtype), total)
            if self.dst_type.kind == "int":
                return {"dst": to_integer(numbers, self.dst_type, "rint", wraps=False)}
            finite = not registers.float_ieee
            return {"dst": round_float(numbers, self.dst_type, finite=finite)}

    def preconditions(self, chip: Chip) -> list[Violation]:
        """The types combine."""
        return _combined(self, chip) or super().preconditions(chip)


@parameters
class MultiplyConvert(BinaryStrides):
    """dst = src0 * src1 as an integer, lane by lane: the nearest, ties to even, saturated.

    NaN gives 0.
    """

    combinations: ClassVar[tuple[tuple[str, str], ...]] = (
        ("int8", "float16"),
        ("uint8", "float16"),
    )
    dst = write(Mem.UB, "repeat lane", "dst_type")
    src0 = read(Mem.UB, "repeat lane", "src_type")
    src1 = read(Mem.UB, "repeat lane", "src_type")
    dst_type: ElementType = types("dst's element type", "int8", "uint8")
    src_type: ElementType = types("the sources' element type", "float16")

    def compute(self, inputs: Mapping[str, Array], registers: Registers) -> Mapping[str, Array]:
        """Multiply in half, then convert."""
        with np.errstate(all="ignore"):
            x, y = (wide(inputs[name], self.src_type) for name in ("src0", "src1"))
            product = settle(x * y, self.src_type, registers)
            return {"dst": to_integer(product, self.dst_type, "rint", wraps=False)}


_SUM_OF_INT16 = ("an int16 sum of int16 wraps before relu unless CTRL[53]: inferred", *WHICH)
_TABLE: tuple[tuple[type[Repeated], Member], ...] = (
    (
        Axpy,
        Member(
            name="vaxpy",
            since="m100",
            c_api="asc_axpy",
            cpp="Axpy",
            tik="vec_axpy",
            doc="Add src times the scalar to dst",
            uncertain=_ROUNDED_TWICE,
        ),
    ),
    (
        MultiplyInto,
        Member(
            name="vmla",
            since="m100",
            c_api="asc_fma",
            cpp="MulAddDst",
            tik="vmla",
            doc="Add src0 times src1 to dst",
            uncertain=_ROUNDED_TWICE,
        ),
    ),
    (
        MultiplyAdd,
        Member(
            name="vmadd",
            since="m100",
            c_api="asc_mul_add",
            cpp="FusedMulAdd",
            tik="vmadd",
            doc="Multiply dst by src0 and add src1",
            types=HALF_AND_FLOAT,
            late=PageTypes(("float16", "bfloat16", "float32"), LONG),
            uncertain=_ROUNDED_TWICE,
        ),
    ),
    (
        MultiplyAdd,
        Member(
            name="vmaddrelu",
            since="m100",
            c_api="asc_mul_add_relu",
            cpp="MulAddRelu",
            tik="vmaddrelu",
            doc="Multiply dst by src0, add src1, and cut off what is negative",
            types=HALF_AND_FLOAT,
            late=PageTypes(HALF_AND_FLOAT, LONG),
            uncertain=_ROUNDED_TWICE,
            fixed={"rectifies": True},
        ),
    ),
    (
        WithRelu,
        Member(
            name="vaddrelu",
            c_api="asc_add_relu",
            cpp="AddRelu",
            tik="vaddrelu",
            doc="Add src1 to src0 and cut off what is negative",
            does=np.add,
            uncertain=_SUM_OF_INT16,
            fixed=ACCUMULATES,
        ),
    ),
    (
        WithRelu,
        Member(
            name="vsubrelu",
            c_api="asc_sub_relu",
            cpp="SubRelu",
            tik="vsubrelu",
            doc="Subtract src1 from src0 and cut off what is negative",
            does=np.subtract,
            uncertain=_SUM_OF_INT16,
            fixed=ACCUMULATES,
        ),
    ),
    (
        MultiplyConvert,
        Member(
            name="vmulconv",
            c_api="",
            cpp="MulCast",
            doc="Multiply src0 by src1 and convert to 8 bits",
            uncertain=(
                "the product is rounded to half before it is converted: documented for its "
                "overflow alone",
            ),
            variants={
                "asc_mul_cast_half2int8": {"dst_type": INT8},
                "asc_mul_cast_half2uint8": {"dst_type": UINT8},
            },
        ),
    ),
)
for _base, _member in _TABLE:
    declare(_base, _member, __name__, source=_PAGE)
