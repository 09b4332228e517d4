"""The declaration of a register instruction, which headers, the executor and the manual read.

A register is 256 bytes whatever its type, so values are arrays of bytes, shaped [..., 256], and an
instruction looks at them as its types say. A mask is 256 bits, one for each byte of a register; a
lane is governed by the lowest bit of its bytes (*Reg*, MaskReg). Axes in front are cores and trips
of loops: a meaning holds for all of them at once.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from cubecore.arrays import Array
from cubecore.dtypes import ElementType
from cubecore.isa.declare.registers import (
    CTRL_CAST_BIT,
    CTRL_CAST_WRAPS_BIT,
    CTRL_FLOAT_IEEE_BIT,
    CTRL_INT_SATURATE_BIT,
)

REGISTER_BYTES = 256
"""VL, the bytes of a vector register, and the bits of a mask."""
Bits = NDArray[np.bool_]


class Form(Enum):
    """The parameters of a register instruction, as C++ and C write them."""

    LOAD = "dst, address"
    LOAD_PAIR = "dst0, dst1, address"
    LOAD_MASK = "mask, address"
    GATHER = "dst, address, indices, mask"
    STORE = "address, src, mask"
    STORE_PAIR = "address, src0, src1, mask"
    STORE_MASK = "address, mask"
    SCATTER = "address, src, indices, mask"
    STORE_COUNTED = "address, src, the buffer of an unaligned stream; AR has the bytes"
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
    COUNTED = "dst, src, mask; AR takes the bytes"
    AR = "nothing: AR is meant"
    MASK_BITS = "a mask of MASK0 and MASK1"
    MASK_UNARY = "mask, mask, mask"
    MASK_BINARY = "mask, mask, mask, mask"
    MASK_PLAIN = "mask, mask; a half"
    MASK_PAIR = "mask0, mask1, mask2, mask3"


KNOWN_MASKS = frozenset({Form.PATTERN, Form.COUNT})
"""Forms of masks that are what they are whatever the values are."""
BY_VALUES = frozenset({Form.GATHER, Form.SCATTER, Form.STORE_COUNTED})
"""Forms that access UB where values of registers say."""
LOADS_MEMORY = frozenset({Form.LOAD, Form.LOAD_PAIR, Form.LOAD_MASK, Form.GATHER})
STORES_MEMORY = frozenset(
    {Form.STORE, Form.STORE_PAIR, Form.STORE_MASK, Form.SCATTER, Form.STORE_COUNTED}
)
MAKES_MASK = frozenset(
    {
        *(Form.LOAD_MASK, Form.PATTERN, Form.COUNT, Form.COMPARE, Form.COMPARE_SCALAR),
        Form.MASK_BITS,
        *(Form.MASK_UNARY, Form.MASK_BINARY, Form.MASK_PLAIN, Form.MASK_PAIR, Form.BLOCK_MASK),
    }
)
"""Forms whose results are masks."""


@dataclass(frozen=True, slots=True)
class Call:
    """A register instruction as a program has it: types, a word that chooses a mode, its scalar.

    `mode` is a distribution, a pattern, a comparison or the words of a cast. `ctrl` is CTRL while
    the program runs: bit 60 hands saturation from the instruction to bits 48 (float results) and 59
    (integers of conversions); in a kernel that leaves it alone half results may be infinite.
    """

    operation: "RegisterOperation"
    dtype: ElementType
    source: ElementType
    mode: str = ""
    ctrl: int = 0

    @property
    def width(self) -> int:
        """Bytes of a lane; two lanes of 4 bits share one."""
        return max(self.dtype.bits // 8, 1)

    @property
    def finite(self) -> bool:
        """True if half results of arithmetic are clamped, and NaN is 0."""
        return self.dtype.name == "float16" and self.global_saturation is True

    @property
    def integers_saturate(self) -> bool:
        """True if sums, differences and products of integers are clamped."""
        return bool(self.ctrl >> CTRL_INT_SATURATE_BIT & 1)

    @property
    def global_saturation(self) -> bool | None:
        """True if CTRL makes conversions to dtype saturate; None if it leaves that to them."""
        if not self.ctrl >> CTRL_CAST_BIT & 1:
            return None
        integer = self.dtype.kind in {"int", "uint"}
        bit = CTRL_CAST_WRAPS_BIT if integer else CTRL_FLOAT_IEEE_BIT
        return not self.ctrl >> bit & 1


Compute = Callable[[Call, Sequence[Array], Bits | None, Array], Sequence[Array]]
"""The meaning: inputs, the mask, the scalar's bits; results as bytes, or masks as bits.

A mask of None lets all lanes through. The scalar is an array of uint64 with the axes in front.
"""


class Landing(NamedTuple):
    """The pieces of UB that an access touches, in order, where values of registers decide.

    `offsets` are bytes from its address on, shaped [..., pieces], and `sizes` how many of the
    `unit` bytes of each piece are touched.
    """

    offsets: NDArray[np.int64]
    sizes: NDArray[np.int64]
    unit: int


Land = Callable[[Call, Sequence[Array], Bits | None], Landing]


@dataclass(frozen=True, eq=False, slots=True)
class RegisterOperation:
    """A register instruction: its names, its form, the types that it takes, meaning and cost.

    `older` are its names in the namespace MicroAPI, `c_api` its name in C, with `{T}` for a width.
    `cycles` are those of one register by the type's name, `""` for others, `latency` those until a
    result is written, by the mode's or the type's name; `alone` says that it shares its cycle with
    no other instruction; `by_lane` that a lane of the result hangs on that lane of the inputs
    alone. `types` are those of all operands; where they are not one type,
    `pairs` are sources, results and modes ("": all). No types at all: those of masks. `cpp` is the
    name in C++ where others share it. `lands` says of those of `BY_VALUES` where they access UB,
    by their inputs and their mask; a load takes what lies there as a further input.
    """

    name: str
    form: Form
    doc: str
    compute: Compute
    types: tuple[str, ...]
    c_api: str = ""
    older: tuple[str, ...] = ()
    cycles: tuple[tuple[str, int], ...] = (("", 1),)
    latency: tuple[tuple[str, int], ...] = (("", 7),)
    alone: bool = False
    by_lane: bool = True
    uncertain: tuple[str, ...] = ()
    pairs: tuple[tuple[str, str, str], ...] = ()
    cpp: str = ""
    lands: Land | None = None

    @property
    def spelling(self) -> str:
        """The name in C++, which instructions on registers, pairs and masks may share."""
        return self.cpp or self.name

    def takes(self, call: "Call") -> bool:
        """Return whether there is this instruction between the types of a call."""
        if self.pairs:
            return (call.source.name, call.dtype.name) in self.pairs_of(call.mode)
        return not self.types or call.dtype.name in self.types

    def pairs_of(self, mode: str) -> tuple[tuple[str, str], ...]:
        """Return the sources and results that an instruction between types takes in a mode."""
        return tuple((source, to) for source, to, of in self.pairs if of in {mode, ""})

    def cycles_of(self, dtype: ElementType) -> int:
        """Return the cycles of one register."""
        table = dict(self.cycles)
        return table.get(dtype.name, table.get("", 1))

    def latency_of(self, call: "Call") -> int:
        """Return the cycles from a call's start until its result is written."""
        table = dict(self.latency)
        return table.get(call.mode) or table.get(call.dtype.name) or table[""]


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
    # Of windows on UB, whose registers are apart, no copy is made.
    together = register if register.strides[-1] == 1 else np.ascontiguousarray(register)
    return together.view(element.numpy)


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
