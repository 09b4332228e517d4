"""The declaration of a register instruction, which headers, the executor and the manual read.

A register is 256 bytes whatever its type, so values are arrays of bytes, shaped [..., 256], and an
instruction looks at them as its types say. A mask is 256 bits, one for each byte of a register; a
lane is governed by the lowest bit of its bytes (*Reg*, MaskReg). Axes in front are cores and trips
of loops: a meaning holds for all of them at once.
"""

from collections.abc import Callable, Sequence
from enum import Enum

import numpy as np
from numpy.typing import NDArray

from cubecore.arrays import Array
from cubecore.dtypes import ElementType
from cubecore.lazy_dataclass import dataclass

REGISTER_BYTES = 256
"""VL, the bytes of a vector register, and the bits of a mask."""
Bits = NDArray[np.bool_]


class Form(Enum):
    """The parameters of a register instruction, as C++ and C write them."""

    LOAD = "dst, address"
    LOAD_PAIR = "dst0, dst1, address"
    LOAD_MASK = "mask, address"
    STORE = "address, src, mask"
    STORE_PAIR = "address, src0, src1, mask"
    STORE_MASK = "address, mask"
    BARRIER = "nothing"
    STREAM = "the buffer of an unaligned stream, address"
    PATTERN = "a mask of a pattern"
    COUNT = "a mask of a count"
    UNARY = "dst, src, mask"
    BINARY = "dst, src0, src1, mask"
    SHIFT = "dst, src, amounts, mask"
    SCALAR = "dst, src, scalar, mask"
    SHIFT_SCALAR = "dst, src, amount, mask"
    FILL = "dst, scalar, mask"
    TERNARY = "dst, src0, src1, mask; dst is read"
    AXPY = "dst, src, scalar, mask; dst is read"
    CARRY = "carry, dst, src0, src1, mask"
    CARRIED = "carry, dst, src0, src1, carry, mask"
    WIDE = "dst0, dst1, src0, src1, mask"
    COMPARE = "mask, src0, src1, mask"
    COMPARE_SCALAR = "mask, src, scalar, mask"
    SELECT = "dst, src0, src1, mask, which selects"
    CAST = "dst, src, mask; types of their own"
    TRUNCATE = "dst, src, mask; a rounding"
    REDUCE = "dst, src, mask; what is reduced"
    MOVE = "dst, src, perhaps a mask, which merges"
    PLAIN = "dst, src; a half"
    FROM_MASK = "dst, mask"
    PAIR = "dst0, dst1, src0, src1"
    INDEXED = "dst, src, indices"
    INDEX = "dst, scalar; an order"
    HISTOGRAM = "dst, src, mask; dst is read; a bin"
    BLOCK_MASK = "mask, src; a block"
    MASK_UNARY = "mask, mask, mask"
    MASK_BINARY = "mask, mask, mask, mask"
    MASK_PLAIN = "mask, mask; a half"
    MASK_PAIR = "mask0, mask1, mask2, mask3"


LOADS_MEMORY = frozenset({Form.LOAD, Form.LOAD_PAIR, Form.LOAD_MASK})
STORES_MEMORY = frozenset({Form.STORE, Form.STORE_PAIR, Form.STORE_MASK})
MAKES_MASK = frozenset(
    {
        *(Form.LOAD_MASK, Form.PATTERN, Form.COUNT, Form.COMPARE, Form.COMPARE_SCALAR),
        *(Form.MASK_UNARY, Form.MASK_BINARY, Form.MASK_PLAIN, Form.MASK_PAIR, Form.BLOCK_MASK),
    }
)
"""Forms whose results are masks."""


@dataclass(frozen=True, slots=True)
class Call:
    """A register instruction as a program has it: types, a word that chooses a mode, its scalar.

    `mode` is a distribution, a pattern, a comparison or the words of a cast.
    """

    operation: "RegisterOperation"
    dtype: ElementType
    source: ElementType
    mode: str = ""

    @property
    def width(self) -> int:
        """Bytes of a lane; two lanes of 4 bits share one."""
        return max(self.dtype.bits // 8, 1)


Compute = Callable[[Call, Sequence[Array], Bits | None, Array], Sequence[Array]]
"""The meaning: inputs, the mask, the scalar's bits; results as bytes, or masks as bits.

A mask of None lets all lanes through. The scalar is an array of uint64 with the axes in front.
"""


@dataclass(frozen=True, eq=False, slots=True)
class RegisterOperation:
    """A register instruction: its names, its form, the types that it takes, meaning and cost.

    `older` are its names in the namespace MicroAPI, `c_api` its name in C, with `{T}` for a width.
    `cycles` are those of one register by the type's name, `""` for others; `alone` says that it
    shares its cycle with no other instruction; `by_lane` that a lane of the result hangs on that
    lane of the inputs alone.
    """

    name: str
    form: Form
    doc: str
    compute: Compute
    types: tuple[str, ...]
    c_api: str = ""
    older: tuple[str, ...] = ()
    cycles: tuple[tuple[str, int], ...] = (("", 1),)
    alone: bool = False
    by_lane: bool = True
    uncertain: tuple[str, ...] = ()

    def cycles_of(self, dtype: ElementType) -> int:
        """Return the cycles of one register."""
        table = dict(self.cycles)
        return table.get(dtype.name, table.get("", 1))


OPERATIONS: dict[str, RegisterOperation] = {}
"""The register instructions by their names, as far as their modules are imported."""


def declare(*operations: RegisterOperation) -> None:
    """Enter register instructions.

    Raises
    ------
    ValueError
        If one of the name is there.
    """
    for operation in operations:
        if operation.name in OPERATIONS:
            raise ValueError(f"register instruction {operation.name} is declared twice")
        OPERATIONS[operation.name] = operation


def lanes(register: Array, element: ElementType) -> Array:
    """Return a register's bytes as lanes of a type."""
    return np.ascontiguousarray(register).view(element.numpy)


def raw(values: Array) -> Array:
    """Return lanes as a register's bytes."""
    return np.ascontiguousarray(values).view(np.uint8)


def governed(mask: Bits, width: int) -> Bits:
    """Return which lanes of so many bytes a mask lets through."""
    return mask[..., ::width]


def zeroed(values: Array, mask: Bits | None, width: int, instead: Array | None = None) -> Array:
    """Return lanes as bytes; where the mask lets none through they are 0, or of `instead`."""
    if mask is not None:
        others = np.zeros((), values.dtype) if instead is None else instead
        values = np.where(governed(mask, width), values, others)
    return raw(values)


MERGING = "MERGING"
"""The mode of an instruction that keeps the lanes of dst that the mask does not let through."""
