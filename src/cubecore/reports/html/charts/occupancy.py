"""Occupancy of each buffer of a core, in bytes, from the tiling and the chip.

L1 holds depth base blocks of each operand as L1-CAPACITY counts them; L0 buffers are cut evenly
into their one or two slots, as the kernel addresses them.
"""

from dataclasses import dataclass

from cubecore.aliases import Json
from cubecore.dtypes import ElementType
from cubecore.tiling.rules.model import RuleCase
from cubecore.units import align_up, plural


@dataclass(frozen=True, slots=True)
class Part:
    """Bytes of one kind in a buffer: where they start, how many, in how many base blocks."""

    kind: str
    label: str
    start: int
    size: int
    blocks: int
    detail: str

    def to_json(self) -> Json:
        """Return the part as JSON."""
        return {
            "kind": self.kind,
            "label": self.label,
            "start": self.start,
            "size": self.size,
            "blocks": self.blocks,
            "detail": self.detail,
        }


def occupancy(case: RuleCase) -> list[Json]:
    """Return the buffers with their parts and what these come to."""
    t, chip, bias = case.tiling, case.chip, case.problem.bias_type
    rows = align_up(t.baseM, case.row_align)
    columns = align_up(t.baseN, case.column_align)
    k = align_up(t.baseK, case.k_align)
    a, b = _Block("A", rows, k, case.a), _Block("B", k, columns, case.b)
    c = _Block("C", t.baseM, t.baseN, case.accumulator)
    buffers = [
        _buffer("L1", chip.l1_bytes, _l1(case, a, b)),
        _buffer("L0A", chip.l0a_bytes, _slots(a, t.dbL0A, chip.l0a_bytes)),
        _buffer("L0B", chip.l0b_bytes, _slots(b, t.dbL0B, chip.l0b_bytes)),
        _buffer("L0C", chip.l0c_bytes, _slots(c, t.dbL0C, chip.l0c_bytes)),
    ]
    if chip.bt_bytes is not None:
        row = []
        if bias is not None:
            size = case.accumulator.bytes_of(t.baseN)
            row.append(Part("bias", "bias", 0, size, 1, f"{t.baseN} x {case.accumulator}"))
        buffers.append(_buffer("BiasTable", chip.bt_bytes, row))
    return buffers


@dataclass(frozen=True, slots=True)
class _Block:
    """A base block as it lies on chip."""

    name: str
    rows: int
    columns: int
    kind: ElementType

    @property
    def size(self) -> int:
        return int(self.kind.bytes_of(self.rows * self.columns))

    def __str__(self) -> str:
        return f"{self.rows} x {self.columns} {self.kind}"


def _buffer(name: str, size: int, parts: list[Part]) -> Json:
    return {
        "name": name,
        "size": size,
        "used": sum(part.size for part in parts),
        "parts": [part.to_json() for part in parts],
    }


def _l1(case: RuleCase, a: _Block, b: _Block) -> list[Part]:
    t, bias = case.tiling, case.problem.bias_type
    parts: list[Part] = []
    at = 0
    for block, depth, step in (
        (a, t.depthA1, t.stepM * t.stepKa),
        (b, t.depthB1, t.stepN * t.stepKb),
    ):
        count = max(depth // max(step, 1), 1)
        for number in range(count):
            held = depth // count
            detail = f"{plural(held, 'base block')} of {block}"
            label = f"{block.name} chunk {number}" if count > 1 else f"{block.name} chunk"
            size = held * block.size
            parts.append(Part(block.name.lower(), label, at, size, held, detail))
            at += size
    if bias is not None:
        size = bias.bytes_of(t.baseN)
        parts.append(Part("bias", "bias", at, size, 1, f"{t.baseN} x {bias}"))
    return parts


def _slots(block: _Block, count: int, size: int) -> list[Part]:
    """Return the slots of an L0 buffer, which is cut evenly."""
    return [
        Part(
            block.name.lower(),
            f"{block.name} slot {number}" if count > 1 else block.name,
            number * (size // count),
            block.size,
            1,
            f"base block of {block}",
        )
        for number in range(count)
    ]
