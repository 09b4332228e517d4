"""Base of the vector instructions that work in masked repeats (C API general notes)."""

from collections.abc import Mapping
from dataclasses import fields, replace
from functools import cached_property
from types import MappingProxyType
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from cubecore.arrays import Array
from cubecore.chips import costs
from cubecore.chips.model import Chip
from cubecore.dtypes import ElementType
from cubecore.errors import Violation
from cubecore.isa.declare.common_3510 import ARCH
from cubecore.isa.declare.instruction import Instruction, InstructionCost, param, taken
from cubecore.isa.declare.ranges import types_on
from cubecore.isa.declare.registers import Registers
from cubecore.isa.declare.remark import Remark
from cubecore.isa.declare.template import parameters
from cubecore.isa.vector.common.mask import REPEAT_BYTES, MaskState, lanes_of
from cubecore.layouts import Offsets
from cubecore.numerics import round_float, saturate, wrap
from cubecore.units import DATA_BLOCK_BYTES

_MOST_SATURATED_BITS = 32
_WRAPS = 256
"""Times that a count may cover the whole Unified Buffer: zero strides read blocks again."""


@parameters
class Repeated(Instruction):
    """It takes `repeat` times 256 bytes of the widest operand, under the mask.

    Lane e of repeat r lies at block r * repeat_stride + (e // C0) * block_stride, C0 being the
    elements of that operand in 32 bytes. Lanes that the mask excludes keep dst's old value.
    repeat 0: nothing happens. In counter mode the count decides how many repeats there are. All
    lanes of a repeat are read before any is written.
    """

    in_repeats = True
    overlap = "general"
    dense: ClassVar[Mapping[str, int]] = MappingProxyType({})
    """Repeat strides without gaps, of operands whose stride is not in blocks of their lanes."""
    count_form: ClassVar[Mapping[str, Any] | None] = MappingProxyType({})
    counted_types: ClassVar[tuple[str, ...]] = ()
    """Element types that chips take by a count of elements, though no page lists them."""
    repeat: int = param(0, 255, "repeats", default=1)
    lanes: MaskState | None = taken(
        "the mask, taken from its registers when the instruction starts",
    )

    @property
    def unlisted_types(self) -> tuple[str, ...]:
        """Those that it takes by a count, in counter mode."""
        return () if self.lanes is None or not self.lanes.counts else self.counted_types

    def remarks(self, chip: Chip) -> tuple[Remark, ...]:
        """Return a note on an element type that its page does not list."""
        for field in fields(self) if self.counted_types else ():
            kind, meta = getattr(self, field.name), field.metadata
            if not isinstance(kind, ElementType) or kind.name in types_on(chip.arch, meta):
                continue
            if kind.name in self.counted_types:
                listed = " and ".join(meta["types"])
                note = (
                    f"{self.name} of {kind} by a count gives the chip's bits; the documentation "
                    f"lists {listed}"
                )
                return (Remark("unlisted-type", note),)
        return ()

    def resolved(self, registers: Registers) -> Self:
        """Take the mask."""
        return replace(self, lanes=lanes_of(registers))

    @property
    def widest(self) -> ElementType:
        """The element type that decides how many lanes a repeat has."""
        return max((self.element(o) for o in self.operands()), key=lambda e: e.bits)

    @cached_property
    def width(self) -> int:
        """Lanes of a repeat."""
        return REPEAT_BYTES // self.widest.size_bytes

    @property
    def repeats(self) -> int:
        """Repeats, as stated or as the count needs."""
        return self.repeat if self.lanes is None else self.lanes.repeats(self.repeat, self.width)

    def active(self, operand: str) -> NDArray[np.bool_] | None:
        """Shape [repeats, lanes]."""
        return None if self.lanes is None else self.lanes.active(self.repeats, self.width)

    def strided(self, element: ElementType, block_stride: int, repeat_stride: int) -> Offsets:
        """Return the offsets of an operand's lanes, shape [repeats, lanes]."""
        # In elements: a repeat starts `repeat_stride` blocks behind the one before, within it lane
        # e is element e % C0 of block e // C0, and blocks are `block_stride` apart; C0 elements
        # make 32 B.
        c0 = element.c0
        lane = np.arange(self.width, dtype=np.intp)
        start = np.arange(self.repeats, dtype=np.intp)[:, None] * repeat_stride
        return (start + (lane // c0) * block_stride) * c0 + lane % c0

    def contiguous(self) -> Self:
        """Return it with strides that leave no gaps between blocks and repeats, and one repeat."""
        strides: dict[str, Any] = {"repeat": 1}
        for operand in self.operands():
            blocks = self.width * self.element(operand).bits // (8 * DATA_BLOCK_BYTES)
            strides[f"{operand.name}_block_stride"] = 1
            strides[f"{operand.name}_repeat_stride"] = self.dense.get(operand.name, blocks)
        names = {field.name for field in fields(self)}
        return replace(self, **{name: value for name, value in strides.items() if name in names})

    def preconditions(self, chip: Chip) -> list[Violation]:
        """A normal mask has an active lane among those that the type uses (C API general notes).

        A count must not be more than any UB holds: the initial mask, all ones, counts billions.
        """
        lanes = self.lanes
        if lanes is None:
            return []
        if chip.arch in ARCH and not lanes.counts and (by_count := self._types_by_count()):
            need = f"be of a count of elements for {by_count[0]} on {chip.name}"
            return [Violation(f"{self.name}: the call", need, "masks and repeats")]
        mask = f"{self.name}: the vector mask"
        if lanes.counts:
            most = chip.ub_bytes // self.widest.size_bytes * _WRAPS
            if lanes.count <= most:
                return []
            return [Violation(mask, f"count at most {most} elements", str(lanes.count))]
        if lanes.bits & (1 << self.width) - 1:
            return []
        return [Violation(mask, "have an active lane", "all lanes off")]

    def _types_by_count(self) -> list[str]:
        """Return its element types that 3510's pages give to calls with a count alone."""
        return [
            getattr(self, f.name).name
            for f in fields(self)
            if "late" in f.metadata and getattr(self, f.name).name in f.metadata["late"].by_count
        ]

    def cost(self, chip: Chip) -> InstructionCost:
        """A head, and for each repeat what the chip states; bank conflicts are not modelled."""
        repeats = self.repeats
        if not repeats:
            return InstructionCost(0)
        each = costs.vector_repeat_cycles(chip, self.name, self.rated.name, self.width)
        return InstructionCost(costs.whole_cycles(costs.vector_cycles(chip, repeats, each)))

    @property
    def rated(self) -> ElementType:
        """The element type by which the chip states the instruction's rate."""
        return self.widest


def wide(values: Array, element: ElementType) -> Array:
    """Return values in a type in which one of +, -, *, / and the square root loses nothing.

    Integers become int64, but those of uint64 stay. The 16-bit floats become float32, which holds
    more than twice their bits, and two: rounding again is then harmless. float32 stays, as NumPy
    itself rounds it correctly; what takes more than one step to compute must widen further or
    `settle` in between.
    """
    if element.kind != "float":
        whole = np.uint64 if element.name == "uint64" else np.int64
        return values.astype(whole, order="C")
    return values if values.dtype == np.float32 else values.astype(np.float32, order="C")


def settle(exact: Array, element: ElementType, registers: Registers) -> Array:
    """Return results in the element type, rounded once.

    Integers wrap, or saturate under CTRL[53] up to 32 bits. float16 stays finite (NaN gives 0)
    unless CTRL[48]; float32 never does, whatever CTRL says (asc-devkit, boundary values of Memory
    vector compute).
    """
    if element.kind == "float":
        finite = element.name == "float16" and not registers.float_ieee
        return round_float(exact, element, finite=finite)
    saturates = registers.int_saturates and element.bits <= _MOST_SATURATED_BITS
    return (saturate if saturates else wrap)(exact, element)
