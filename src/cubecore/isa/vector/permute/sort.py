"""Sorting by score: 32 elements in a repeat, and the merge of up to four sorted queues.

A record is 8 bytes: the score at the lower address (half leaves two bytes), a 32-bit index above.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import ClassVar, Self

import numpy as np

from cubecore.arrays import Array
from cubecore.chips import costs
from cubecore.chips.model import Chip
from cubecore.dtypes import ElementType, element_type
from cubecore.errors import Violation
from cubecore.isa.declare.family import HALF_AND_FLOAT
from cubecore.isa.declare.instruction import (
    Instruction,
    InstructionCost,
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
from cubecore.layouts import Offsets

UINT32, UINT64 = element_type("uint32"), element_type("uint64")
_SORTED = 32
"""Elements that one repeat of vbitsort sorts."""
_QUEUES = 4
_VALID = {3: 2, 7: 3, 15: 4}
"""valid_bit, and how many queues it means."""
RECORD_BYTES = 8

_ORDER = "NaN sorts behind every number, and both zeros are equal: inferred"


def _descending(scores: Array) -> Array:
    """Return the places of scores from the largest to the smallest, last axis; equals in order."""
    with np.errstate(invalid="ignore"):
        return np.argsort(-scores.astype(np.float32), axis=-1, kind="stable")


@instruction(
    "vbitsort",
    Pipe.V,
    names={"c_api": "asc_bitsort", "cpp": "Sort32", "tik": "vsort32"},
    source="asc-devkit, asc_bitsort (2201, 3510); basic API, Sort32",
    archs=("2201", "3510"),
    uncertain=(
        _ORDER,
        "the two bytes between a half and its index become 0",
        "operands are aligned to 32 B, as the C API has it; the basic API asks for a repeat",
    ),
)
class Vbitsort(Instruction):
    """Sort 32 scores from the largest down, each with its index; `repeat` times, without a mask.

    Equal scores keep their order. Repeats follow one another: 32 elements of both sources, 256
    bytes of dst. repeat 0: nothing happens.
    """

    overlap = "general"
    index_type: ClassVar[ElementType] = UINT32
    record_type: ClassVar[ElementType] = UINT64
    dst = write(Mem.UB, "repeat record", "record_type")
    src0 = read(Mem.UB, "repeat element")
    src1 = read(Mem.UB, "repeat element", "index_type")
    dtype: ElementType = types("type of the scores", *HALF_AND_FLOAT)
    repeat: int = param(0, 255, "repeats", default=1)

    def offsets(self, operand: str) -> Offsets:
        """Shape [repeat, 32], of every operand."""
        return np.arange(self.repeat * _SORTED, dtype=np.intp).reshape(self.repeat, _SORTED)

    def compute(self, inputs: Mapping[str, Array], registers: Registers) -> Mapping[str, Array]:
        """Sort each repeat."""
        # Places within a repeat become places in the flat array of all repeats (and cores), so that
        # one indexing permutes everything.
        order = _descending(inputs["src0"])
        first = np.arange(order.size // _SORTED) * _SORTED
        order = order + first.reshape(*order.shape[:-1], 1)  # take_along_axis takes longer
        scores = inputs["src0"].reshape(-1)[order]
        index = inputs["src1"].reshape(-1)[order].astype(np.uint64)
        low = scores.view(f"u{self.dtype.size_bytes}").astype(np.uint64)
        return {"dst": low | index << np.uint64(32)}

    def cost(self, chip: Chip) -> InstructionCost:
        """A head, and for each repeat 32 elements at the chip's rate."""
        if not self.repeat:
            return InstructionCost(0)
        each = costs.vector_repeat_cycles(chip, self.name, self.dtype.name, _SORTED)
        return InstructionCost(costs.whole_cycles(costs.vector_cycles(chip, self.repeat, each)))


@instruction(
    "vmrgsort4",
    Pipe.V,
    names={"c_api": "asc_mrgsort4", "cpp": "MrgSort", "tik": "vmrgsort4"},
    source="asc-devkit, asc_mrgsort4 (2201, 3510); basic API, MrgSort",
    archs=("2201", "3510"),
    uncertain=(
        _ORDER,
        "a queue that is empty from the start is exhausted at once",
        "sources are aligned to 8 B, as the basic API has it; the C API asks for 32 B",
        "VMS4_SR is set without suspension too: then to what every queue gave in the last repeat",
    ),
)
class Vmrgsort4(Instruction):
    """Merge two to four queues of records, sorted from the largest score down, into one.

    Of equal scores the earlier queue's comes first. With suspension the merge stops when a queue is
    exhausted; VMS4_SR says how many records each queue gave. repeat above 1 needs four queues of
    one length that lie one behind another, without suspension; each repeat takes and gives four
    lengths. repeat 0: nothing happens. dst must not meet a source.
    """

    overlap = "none"
    steered_by = ("src0", "src1", "src2", "src3")
    register = "merged"
    record_type: ClassVar[ElementType] = UINT64
    dst = write(Mem.UB, "repeat record", "record_type")
    src0 = read(Mem.UB, "repeat record", "record_type", align_bytes=RECORD_BYTES)
    src1 = read(Mem.UB, "repeat record", "record_type", align_bytes=RECORD_BYTES)
    src2 = read(Mem.UB, "repeat record", "record_type", align_bytes=RECORD_BYTES)
    src3 = read(Mem.UB, "repeat record", "record_type", align_bytes=RECORD_BYTES)
    dtype: ElementType = types("type of the scores", *HALF_AND_FLOAT)
    repeat: int = param(0, 255, "repeats", default=1)
    element_length_0: int = param(0, 4095, "records of queue 0")
    element_length_1: int = param(0, 4095, "records of queue 1")
    element_length_2: int = param(0, 4095, "records of queue 2", default=0)
    element_length_3: int = param(0, 4095, "records of queue 3", default=0)
    if_exhausted_suspension: bool = param(0, 1, "stop when a queue is exhausted", default=False)
    valid_bit: int = param(3, 15, "3, 7 or 15: two, three or four queues", default=15)
    order: bytes | None = taken("the merged order of the queues' records, taken when it starts")

    @property
    def queues(self) -> int:
        """Return the number of queues."""
        return _VALID.get(self.valid_bit, _QUEUES)

    @property
    def lengths(self) -> tuple[int, ...]:
        """Records of each queue."""
        return tuple(getattr(self, f"element_length_{i}") for i in range(self.queues))

    def operands(self) -> tuple[Operand, ...]:
        """Dst and the valid queues."""
        return self.declared[: 1 + self.queues]

    @property
    def steering(self) -> tuple[str, ...]:
        """Scores say how many records there will be if the merge may stop."""
        return self.steered_by if self.if_exhausted_suspension else ()

    def offsets(self, operand: str) -> Offsets:
        """Shape [repeat, records]: of dst as many as are merged."""
        total = sum(self.lengths)
        if operand == "dst":
            count = total if self.order is None else len(self._merged()) // max(self.repeat, 1)
        else:
            count = self.lengths[int(operand.removeprefix("src"))]
        start = np.arange(self.repeat, dtype=np.intp)[:, None] * total
        return start + np.arange(count, dtype=np.intp)

    def _merged(self) -> Array:
        """Return the queue of each merged record, repeat after repeat, if the merge may stop."""
        return np.frombuffer(self.order or b"", np.uint8)

    def located(self, values: Mapping[str, Array]) -> Self:
        """Merge, so that it is known how many records there will be."""
        orders = self._orders(values)
        owner = np.repeat(np.arange(self.queues, dtype=np.uint8), self.lengths)
        merged = [self._until_one_ends(owner[order]).tobytes() for order in orders]
        return replace(self, order=b"".join(merged))

    def _orders(self, values: Mapping[str, Array]) -> Array:
        """Return where each record comes from among those of all queues, along the last axis."""
        scores = [_scores(values[f"src{i}"], self.dtype) for i in range(self.queues)]
        return take_heads(scores)

    def _until_one_ends(self, ordered: Array) -> Array:
        """Return the queues of the records that are merged before one is exhausted."""
        ends = [
            np.flatnonzero(ordered == queue)[-1] if length else -1
            for queue, length in enumerate(self.lengths)
        ]
        return ordered[: min(ends) + 1]

    def compute(self, inputs: Mapping[str, Array], registers: Registers) -> Mapping[str, Array]:
        """Give the records in the merged order."""
        orders = self._orders(inputs)
        records = np.concatenate([inputs[f"src{i}"] for i in range(self.queues)], axis=-1)
        merged = np.take_along_axis(records, orders, axis=-1)
        return {"dst": merged[..., : self.offsets("dst").shape[-1]]}

    def leaves(self, inputs: Mapping[str, Array], registers: Registers) -> Registers:
        """Note how many records each queue gave."""
        if not self.repeat:
            return registers
        counts = [*self.lengths, 0, 0, 0, 0]
        if self.order is not None:
            # Suspension stops with the record that empties a queue; what each gave until then is
            # counted.
            last = self._merged().reshape(self.repeat, -1)[-1]
            counts = [int((last == queue).sum()) for queue in range(_QUEUES)]
        first, second, third, fourth = counts[:_QUEUES]
        return registers.leaving("merged", (first, second, third, fourth))

    def preconditions(self, chip: Chip) -> list[Violation]:
        """Two, three or four queues; what more than one repeat needs."""
        if self.valid_bit not in _VALID:
            return [Violation(f"{self.name}.valid_bit", "be 3, 7 or 15", str(self.valid_bit))]
        if self.repeat <= 1:
            return []
        alike = self.valid_bit == max(_VALID) and len(set(self.lengths)) == 1
        if alike and not self.if_exhausted_suspension:
            return []
        needs = "be 1 but for four queues of one length without suspension"
        return [Violation(f"{self.name}.repeat", needs, str(self.repeat))]

    def address_violations(self, addresses: Mapping[str, int]) -> list[Violation]:
        """For more than one repeat the queues lie one behind another."""
        step = self.element_length_0 * RECORD_BYTES
        wanted = [addresses["src0"] + i * step for i in range(self.queues)]
        got = [addresses[f"src{i}"] for i in range(self.queues)]
        if self.repeat <= 1 or got == wanted:
            return []
        return [Violation(f"{self.name}: the queues", f"lie at {wanted}", str(got))]

    @property
    def lies_anywhere(self) -> bool:
        """With one repeat the queues do."""
        return self.repeat <= 1

    def cost(self, chip: Chip) -> InstructionCost:
        """A head, and every record at the chip's rate; suspension is not foreseen."""
        total = sum(self.lengths)
        if not self.repeat or not total:
            return InstructionCost(0)
        each = costs.vector_repeat_cycles(chip, self.name, self.dtype.name, total)
        return InstructionCost(costs.whole_cycles(costs.vector_cycles(chip, self.repeat, each)))


def _scores(records: Array, element: ElementType) -> Array:
    """Return the scores of records."""
    low = np.ascontiguousarray(records).view(f"u{element.size_bytes}")
    parts = RECORD_BYTES // element.size_bytes
    return low.reshape(*records.shape, parts)[..., 0].view(element.numpy)


def take_heads(queues: Sequence[Array]) -> Array:
    """Return where each record comes from when the largest head is taken again and again.

    `queues` are their scores along the last axis; places count through all queues. Sorted queues
    merge in the order of a stable sort. Of a queue that is not sorted, a record waits for those
    before it: its score counts no more than the least of theirs.
    """
    # A sorted queue merges like one stable sort of everything. A queue that is not sorted gives a
    # large score only after the smaller ones before it: the running minimum is the key that makes a
    # sort do the same. NaN, and what stands behind one, comes last (`behind` is the primary key).
    keys, behind = [], []
    for scores in queues:
        nan = np.isnan(scores)
        ordered = np.where(nan, -np.inf, scores).astype(np.float64)
        keys.append(-np.minimum.accumulate(ordered, axis=-1))
        behind.append(np.logical_or.accumulate(nan, axis=-1))
    return np.lexsort((np.concatenate(keys, axis=-1), np.concatenate(behind, axis=-1)), axis=-1)


@instruction(
    "get_vms4_sr",
    Pipe.S,
    names={"c_api": "asc_get_vms4_sr", "cpp": "GetMrgSortResult"},
    source="asc-devkit, asc_get_vms4_sr (2201)",
    carried=True,
)
class GetVms4Sr(Instruction):
    """Read VMS4_SR: how many records each of four queues gave to the last merge.

    The scalar unit must have waited for the vector unit.
    """

    register = "merged"

    def result(self, registers: Registers) -> tuple[int, ...]:
        """Four counts."""
        return registers.merged
