"""Vector instructions of two sources, as one family."""

from collections.abc import Callable, Mapping
from typing import Any, ClassVar

import numpy as np

from cubecore.arrays import Array
from cubecore.dtypes import ElementType
from cubecore.isa.declare.common_3510 import PageTypes
from cubecore.isa.declare.family import HALF_AND_FLOAT
from cubecore.isa.declare.instruction import Mem, param, read, types, write
from cubecore.isa.declare.registers import Registers
from cubecore.isa.declare.template import parameters
from cubecore.isa.vector.common import lane_functions
from cubecore.isa.vector.common.family import (
    ARITHMETIC,
    BYTES_BY_COUNT,
    LATE_ANY,
    LATE_BITS,
    LONG,
    WHOLE,
    Member,
    declare,
)
from cubecore.isa.vector.common.repeated import Repeated, settle, wide
from cubecore.layouts import Offsets


@parameters
class BinaryStrides(Repeated):
    """The strides of dst, src0 and src1, in blocks of 32 bytes."""

    dst_block_stride: int = param(0, 255, "32 B between dst's blocks", default=1)
    src0_block_stride: int = param(0, 255, "32 B between src0's blocks", default=1)
    src1_block_stride: int = param(0, 255, "32 B between src1's blocks", default=1)
    dst_repeat_stride: int = param(0, 255, "32 B between dst's repeats", default=8)
    src0_repeat_stride: int = param(0, 255, "32 B between src0's repeats", default=8)
    src1_repeat_stride: int = param(0, 255, "32 B between src1's repeats", default=8)

    def offsets(self, operand: str) -> Offsets:
        """Shape [repeats, lanes]."""
        (element,) = (self.element(o) for o in self.declared if o.name == operand)
        block: int = getattr(self, f"{operand}_block_stride")
        repeat: int = getattr(self, f"{operand}_repeat_stride")
        return self.strided(element, block, repeat)


@parameters
class Binary(BinaryStrides):
    """dst = f(src0, src1), lane by lane.

    Integers wrap, or saturate under CTRL[53]; floats are rounded once. float16 stays finite (NaN
    gives 0) unless CTRL[48]; float32 never does.
    """

    function: ClassVar[Callable[[Array, Array], Any]]
    dst = write(Mem.UB, "repeat lane")
    src0 = read(Mem.UB, "repeat lane")
    src1 = read(Mem.UB, "repeat lane")
    dtype: ElementType = types("element type")

    def compute(self, inputs: Mapping[str, Array], registers: Registers) -> Mapping[str, Array]:
        """Compute wide, then come back to the element type once."""
        with np.errstate(all="ignore"):  # signalling NaN, too
            x, y = (wide(inputs[name], self.dtype) for name in ("src0", "src1"))
            exact = type(self).function(x, y)
        return {"dst": settle(exact, self.dtype, registers)}


ACCUMULATES = {"overlap": "accumulate"}
WHICH = (
    "which calls may have dst of one repeat as src1 of the next: the documents name three "
    "and say 'and such'",
)
_TABLE = (
    Member(
        name="vadd",
        since="m100",
        c_api="asc_add",
        cpp="Add",
        tik="vec_add",
        doc="Add src0 and src1, lane by lane",
        does=np.add,
        types=ARITHMETIC,
        late=LATE_ANY,
        fixed=ACCUMULATES,
    ),
    Member(
        name="vsub",
        since="m100",
        c_api="asc_sub",
        cpp="Sub",
        tik="vec_sub",
        doc="Subtract src1 from src0, lane by lane",
        does=np.subtract,
        types=ARITHMETIC,
        late=LATE_ANY,
        fixed=ACCUMULATES,
    ),
    Member(
        name="vmul",
        since="m100",
        c_api="asc_mul",
        cpp="Mul",
        tik="vec_mul",
        doc="Multiply src0 by src1, lane by lane",
        does=np.multiply,
        types=ARITHMETIC,
        late=PageTypes(LATE_ANY.types, LONG),
        fixed=ACCUMULATES,
    ),
    Member(
        name="vmax",
        since="m100",
        c_api="asc_max",
        cpp="Max",
        tik="vec_max",
        doc="Take the larger of src0 and src1, lane by lane",
        does=lane_functions.larger,
        types=ARITHMETIC,
        late=LATE_ANY,
        uncertain=WHICH,
        fixed=ACCUMULATES,
    ),
    Member(
        name="vmin",
        since="m100",
        c_api="asc_min",
        cpp="Min",
        tik="vec_min",
        doc="Take the smaller of src0 and src1, lane by lane",
        does=lane_functions.smaller,
        types=ARITHMETIC,
        late=LATE_ANY,
        uncertain=WHICH,
        fixed=ACCUMULATES,
    ),
    Member(
        name="vdiv",
        since="1001",
        c_api="asc_div",
        cpp="Div",
        tik="vec_div",
        doc="Divide src0 by src1, lane by lane",
        does=lane_functions.quotient,
        types=HALF_AND_FLOAT,
        late=PageTypes((*WHOLE, *HALF_AND_FLOAT), LONG),
        uncertain=(
            "the quotient is rounded correctly: its precision is not documented",
            "3510: a quotient of integers by 0 is all ones, as in registers",
        ),
    ),
    Member(
        name="vand",
        since="m100",
        c_api="asc_and",
        cpp="And",
        tik="vec_and",
        doc="And the bits of src0 and src1",
        does=np.bitwise_and,
        types=("int16", "uint16"),
        late=LATE_BITS,
        fixed=BYTES_BY_COUNT,
    ),
    Member(
        name="vor",
        since="m100",
        c_api="asc_or",
        cpp="Or",
        tik="vec_or",
        doc="Or the bits of src0 and src1",
        does=np.bitwise_or,
        types=("int16", "uint16"),
        late=LATE_BITS,
        fixed=BYTES_BY_COUNT,
    ),
)
for _member in _TABLE:
    declare(Binary, _member, __name__)
