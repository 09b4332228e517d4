"""Sorting by score: 32 elements in a repeat, and the merge of up to four sorted queues.

A record is 8 bytes: the score at the lower address (half leaves two bytes), a 32-bit index above.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import ClassVar, Self

import numpy as np

from cubecore.chips import costs
from cubecore.chips.model import Chip
from cubecore.dtypes import ElementType, element_type
from cubecore.errors import Violation
from cubecore.isa.registers import Registers
from cubecore.isa.spec import (
    Array,
    Cost,
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
from cubecore.isa.vector.family import HALF_AND_FLOAT
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

    stacks = True
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
        order = _descending(inputs["src0"])
        first = np.arange(order.size // _SORTED) * _SORTED
        order = order + first.reshape(*order.shape[:-1], 1)  # take_along_axis takes longer
        scores = inputs["src0"].reshape(-1)[order]
        index = inputs["src1"].reshape(-1)[order].astype(np.uint64)
        low = scores.view(f"u{self.dtype.size_bytes}").astype(np.uint64)
        return {"dst": low | index << np.uint64(32)}

    def cost(self, chip: Chip) -> Cost:
        """A head, and for each repeat 32 elements at the chip's rate."""
        if not self.repeat:
            return Cost(0)
        each = costs.vector_repeat_cycles(chip, self.name, self.dtype.name, _SORTED)
        return Cost(costs.whole_cycles(costs.vector_cycles(chip, self.repeat, each)))


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
    steering = ("src0", "src1", "src2", "src3")
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
        """How many queues there are."""
        return _VALID.get(self.valid_bit, _QUEUES)

    @property
    def lengths(self) -> tuple[int, ...]:
        """Records of each queue."""
        return tuple(getattr(self, f"element_length_{i}") for i in range(self.queues))

    def operands(self) -> tuple[Operand, ...]:
        """Dst and the valid queues."""
        return self.declared[: 1 + self.queues]

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
        """Return the queue of each merged record, repeat after repeat."""
        return np.frombuffer(self.order or b"", np.uint8)

    def located(self, values: Mapping[str, Array]) -> Self:
        """Merge, so that it is known how many records there will be."""
        queues = [values[f"src{i}"] for i in range(self.queues)]
        scores = [_scores(queue, self.dtype) for queue in queues]
        merged = [
            self._merge([queue[repeat] for queue in scores]).tobytes()
            for repeat in range(self.repeat)
        ]
        return replace(self, order=b"".join(merged))

    def _merge(self, scores: list[Array]) -> Array:
        """Return the queue that each merged record comes from."""
        everything = np.concatenate(scores)
        owner = np.repeat(np.arange(len(scores), dtype=np.uint8), [len(s) for s in scores])
        ordered = take_heads(everything, owner, len(scores))
        if not self.if_exhausted_suspension:
            return ordered
        ends = [np.flatnonzero(ordered == q)[-1] if len(s) else -1 for q, s in enumerate(scores)]
        return ordered[: min(ends) + 1]

    def compute(self, inputs: Mapping[str, Array], registers: Registers) -> Mapping[str, Array]:
        """Give the records in the merged order."""
        owners = self._merged().reshape(self.offsets("dst").shape)
        merged = np.empty(owners.shape, np.uint64)
        for number in range(self.queues):
            here = owners == number
            for repeat in range(self.repeat):
                count = int(here[repeat].sum())
                merged[repeat, here[repeat]] = inputs[f"src{number}"][repeat, :count]
        return {"dst": merged}

    def leaves(self, inputs: Mapping[str, Array], registers: Registers) -> Registers:
        """Note how many records each queue gave."""
        if not self.repeat:
            return registers
        last = self._merged().reshape(self.repeat, -1)[-1]
        first, second, third, fourth = (int((last == queue).sum()) for queue in range(_QUEUES))
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

    def misplaced(self, places: Mapping[str, int]) -> list[Violation]:
        """For more than one repeat the queues lie one behind another."""
        step = self.element_length_0 * RECORD_BYTES
        wanted = [places["src0"] + i * step for i in range(self.queues)]
        got = [places[f"src{i}"] for i in range(self.queues)]
        if self.repeat <= 1 or got == wanted:
            return []
        return [Violation(f"{self.name}: the queues", f"lie at {wanted}", str(got))]

    @property
    def lies_anywhere(self) -> bool:
        """With one repeat the queues do."""
        return self.repeat <= 1

    def cost(self, chip: Chip) -> Cost:
        """A head, and every record at the chip's rate; suspension is not foreseen."""
        total = sum(self.lengths)
        if not self.repeat or not total:
            return Cost(0)
        each = costs.vector_repeat_cycles(chip, self.name, self.dtype.name, total)
        return Cost(costs.whole_cycles(costs.vector_cycles(chip, self.repeat, each)))


def _scores(records: Array, element: ElementType) -> Array:
    """Return the scores of records."""
    low = np.ascontiguousarray(records).view(f"u{element.size_bytes}")
    parts = RECORD_BYTES // element.size_bytes
    return low.reshape(*records.shape, parts)[..., 0].view(element.numpy)


def take_heads(scores: Array, owner: Array, queues: int) -> Array:
    """Return the queue of each record when the largest head is taken again and again.

    Sorted queues merge in the order of a stable sort. Of a queue that is not sorted, a record waits
    for those before it: its score counts no more than the least of theirs.
    """
    with np.errstate(invalid="ignore"):
        keys = np.where(np.isnan(scores), -np.inf, scores).astype(np.float64)
        behind = np.isnan(scores)
    for queue in range(queues):
        mine = owner == queue
        keys[mine] = np.minimum.accumulate(keys[mine])
        behind[mine] = np.logical_or.accumulate(behind[mine])
    return owner[np.lexsort((np.arange(owner.size), -keys, behind))]


@instruction(
    "get_vms4_sr",
    Pipe.S,
    names={"c_api": "asc_get_vms4_sr", "cpp": "GetMrgSortResult"},
    source="asc-devkit, asc_get_vms4_sr (2201)",
)
class GetVms4Sr(Instruction):
    """Read VMS4_SR: how many records each of four queues gave to the last merge.

    The scalar unit must have waited for the vector unit.
    """

    register = "merged"

    def result(self, registers: Registers) -> tuple[int, ...]:
        """Four counts."""
        return registers.merged
