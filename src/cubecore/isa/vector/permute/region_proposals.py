"""Region proposals of the earlier AI Cores: eight elements each, of which the fifth is the score.

Corners x1, y1, x2, y2, the score, a label, and two that nobody names; 16 bytes of half, 32 of
float32.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Self

import numpy as np

from cubecore.arrays import Array
from cubecore.chips.model import JOINED_ARCHS, Chip
from cubecore.dtypes import ElementType
from cubecore.errors import Violation
from cubecore.isa.declare.family import HALF_AND_FLOAT
from cubecore.isa.declare.instruction import (
    Instruction,
    Mem,
    Operand,
    Pipe,
    instruction,
    param,
    read,
    taken,
    types,
    write,
)
from cubecore.isa.declare.registers import Registers
from cubecore.isa.declare.template import parameters
from cubecore.isa.vector.permute.sort import take_heads
from cubecore.layouts import Offsets

_ELEMENTS, _SCORE, _GROUP = 8, 4, 16
_QUEUES = {3: 2, 7: 3, 15: 4}
"""valid_bit, and how many queues it means."""
_SOURCE = "the public pages of TIK, and how public programs use the call"
_TIES = "of equal scores the earlier one comes first: the pages leave it open"


@parameters
class Component(Instruction):
    """One component of proposals, 16 in a repeat."""

    overlap = "general"
    dst = write(Mem.UB, "element")
    src = read(Mem.UB, "element")
    dtype: ElementType = types("element type", *HALF_AND_FLOAT)
    repeat: int = param(0, 255, "repeats", default=1)
    mode: int = param(0, 5, "the component: 0 to 3 corners, 4 the score, 5 the label")

    def _elements(self) -> Offsets:
        return np.arange(self.repeat * _GROUP, dtype=np.intp)

    def _components(self) -> Offsets:
        return self._elements() * _ELEMENTS + self.mode

    def compute(self, inputs: Mapping[str, Array], registers: Registers) -> Mapping[str, Array]:
        """Pass the elements on."""
        return {"dst": inputs["src"]}


@instruction(
    "vconcat", Pipe.V, names={"tik": "vconcat"}, source=_SOURCE, archs=JOINED_ARCHS, uncertain=()
)
class Vconcat(Component):
    """Put elements into one component of proposals; the others keep what they hold."""

    def offsets_dst(self) -> Offsets:
        """Shape [16 * repeat]."""
        return self._components()

    def offsets_src(self) -> Offsets:
        """Shape [16 * repeat]."""
        return self._elements()


@instruction(
    "vextract", Pipe.V, names={"tik": "vextract"}, source=_SOURCE, archs=JOINED_ARCHS, uncertain=()
)
class Vextract(Component):
    """Take one component out of proposals, one element behind another."""

    def offsets_dst(self) -> Offsets:
        """Shape [16 * repeat]."""
        return self._elements()

    def offsets_src(self) -> Offsets:
        """Shape [16 * repeat]."""
        return self._components()


@instruction(
    "vrpsort16",
    Pipe.V,
    names={"tik": "vrpsort16"},
    source=_SOURCE,
    archs=JOINED_ARCHS,
    uncertain=(_TIES, "NaN sorts behind every number: inferred"),
)
class Vrpsort16(Instruction):
    """Sort each group of 16 proposals from the largest score down. repeat 0: nothing happens."""

    overlap = "none"
    propagates = True
    dst = write(Mem.UB, "repeat proposal element")
    src = read(Mem.UB, "repeat proposal element")
    dtype: ElementType = types("element type", *HALF_AND_FLOAT)
    repeat: int = param(0, 255, "groups", default=1)
    order: bytes | None = taken("the places of each group's proposals, taken when it starts")

    steered_by = ("src",)

    def offsets(self, operand: str) -> Offsets:
        """Shape [repeat, 16, 8]; of src in the sorted order, once it is known."""
        shape = (self.repeat, _GROUP, _ELEMENTS)
        plain = np.arange(self.repeat * _GROUP * _ELEMENTS, dtype=np.intp).reshape(shape)
        if operand == "dst" or self.order is None:
            return plain
        order = np.frombuffer(self.order, np.uint8).reshape(self.repeat, _GROUP)
        return np.take_along_axis(plain, order[:, :, None].astype(np.intp), axis=1)

    def located(self, values: Mapping[str, Array]) -> Self:
        """Sort the scores."""
        with np.errstate(invalid="ignore"):
            # Upwards and stable on the negative scores: downwards, and of equal ones the earlier
            # first.
            keys = -values["src"][..., _SCORE].astype(np.float64)
        return replace(self, order=np.argsort(keys, kind="stable").astype(np.uint8).tobytes())

    def compute(self, inputs: Mapping[str, Array], registers: Registers) -> Mapping[str, Array]:
        """Pass the proposals on: they are read in order."""
        return {"dst": inputs["src"]}


@instruction(
    "vmrgsort4_proposals",
    Pipe.V,
    source=_SOURCE,
    archs=JOINED_ARCHS,
    uncertain=(_TIES, "a queue that is empty from the start is exhausted at once"),
)
class Vmrgsort4Proposals(Instruction):
    """Merge two to four queues of proposals, each from the largest score down, into one.

    With suspension the merge stops when a queue is exhausted. dst must not meet a source.
    """

    overlap = "none"
    register = "merged"
    steered_by = ("src0", "src1", "src2", "src3")
    dst = write(Mem.UB, "proposal element")
    src0 = read(Mem.UB, "proposal element", align_bytes=16)
    src1 = read(Mem.UB, "proposal element", align_bytes=16)
    src2 = read(Mem.UB, "proposal element", align_bytes=16)
    src3 = read(Mem.UB, "proposal element", align_bytes=16)
    dtype: ElementType = types("element type", *HALF_AND_FLOAT)
    element_length_0: int = param(0, 4095, "proposals of queue 0")
    element_length_1: int = param(0, 4095, "proposals of queue 1")
    element_length_2: int = param(0, 4095, "proposals of queue 2", default=0)
    element_length_3: int = param(0, 4095, "proposals of queue 3", default=0)
    if_exhausted_suspension: bool = param(0, 1, "stop when a queue is exhausted", default=False)
    valid_bit: int = param(3, 15, "3, 7 or 15: two, three or four queues", default=15)
    order: bytes | None = taken("the queue of each merged proposal, taken when it starts")

    @property
    def lengths(self) -> tuple[int, ...]:
        """Proposals of each queue."""
        queues = _QUEUES.get(self.valid_bit, len(self.steered_by))
        return tuple(getattr(self, f"element_length_{i}") for i in range(queues))

    def operands(self) -> tuple[Operand, ...]:
        """Dst and the valid queues."""
        return self.declared[: 1 + len(self.lengths)]

    def offsets(self, operand: str) -> Offsets:
        """Shape [proposals, 8]."""
        if operand == "dst":
            count = sum(self.lengths) if self.order is None else len(self.order)
        else:
            count = self.lengths[int(operand.removeprefix("src"))]
        return np.arange(count * _ELEMENTS, dtype=np.intp).reshape(count, _ELEMENTS)

    def located(self, values: Mapping[str, Array]) -> Self:
        """Merge, so that it is known how many proposals there will be."""
        scores = [values[f"src{i}"][:, _SCORE] for i in range(len(self.lengths))]
        owner = np.repeat(np.arange(len(scores), dtype=np.uint8), self.lengths)
        ordered = owner[take_heads(scores)]
        # The merge stops with the last proposal of the queue that ends first.
        if self.if_exhausted_suspension:
            ends = [
                np.flatnonzero(ordered == queue)[-1] if length else -1
                for queue, length in enumerate(self.lengths)
            ]
            ordered = ordered[: min(ends) + 1]
        return replace(self, order=ordered.tobytes())

    def compute(self, inputs: Mapping[str, Array], registers: Registers) -> Mapping[str, Array]:
        """Give the proposals in the merged order."""
        owners = np.frombuffer(self.order or b"", np.uint8)
        merged = np.empty((owners.size, _ELEMENTS), self.dtype.numpy)
        for queue in range(len(self.lengths)):
            here = owners == queue
            merged[here] = inputs[f"src{queue}"][: int(here.sum())]
        return {"dst": merged}

    def leaves(self, inputs: Mapping[str, Array], registers: Registers) -> Registers:
        """Note how many proposals each queue gave."""
        owners = np.frombuffer(self.order or b"", np.uint8)
        first, second, third, fourth = (int((owners == queue).sum()) for queue in range(4))
        return registers.leaving("merged", (first, second, third, fourth))

    def preconditions(self, chip: Chip) -> list[Violation]:
        """Two, three or four queues."""
        if self.valid_bit in _QUEUES:
            return []
        return [Violation(f"{self.name}.valid_bit", "be 3, 7 or 15", str(self.valid_bit))]
