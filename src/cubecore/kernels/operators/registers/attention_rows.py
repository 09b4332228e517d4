"""The softmax of an AIV's rows in registers, as it grows, on Ascend 950."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, cached_property, reduce

from cubecore.isa.program.expr import Expr, Int
from cubecore.isa.program.tree import Location
from cubecore.isa.vector.registers.operation import Call
from cubecore.isa.vector.registers.operations.catalogue import operations
from cubecore.kernels.build.register_calls import Issued
from cubecore.kernels.operators.attention.shape import AttentionShape
from cubecore.kernels.operators.registers.lane_calls import FLOAT, LaneCalls
from cubecore.kernels.operators.tile import LANES
from cubecore.units import DATA_BLOCK_BYTES, FRACTAL_ROWS, align_up

_LOWEST = -(2.0**100)
_UNIT_BYTES = 512
"""Buffers begin at the first of both banks of each group."""
_STAT_BYTES = DATA_BLOCK_BYTES
"""Bytes from one row's number to the next: no two rows share a block."""


@dataclass(frozen=True)
class AttentionBuffers:
    """Places of an AIV's parts in UB; an AIC writes there, too."""

    shape: AttentionShape

    @property
    def share(self) -> int:
        """Rows of an AIV."""
        return self.shape.rows // 2

    @cached_property
    def places(self) -> Mapping[str, tuple[int, int]]:
        """The first byte of each part, and bytes from slot to slot."""
        places, at = {}, 0
        for name, (apart, count) in self._parts.items():
            places[name] = at, apart
            at += count * apart
        return places

    @property
    def size_bytes(self) -> int:
        """Bytes of all parts."""
        return sum(apart * count for apart, count in self._parts.values())

    @property
    def _parts(self) -> Mapping[str, tuple[int, int]]:
        s, rows = self.shape, self.share
        size, stats = s.dtype.size_bytes, _STAT_BYTES * align_up(rows, LANES // 8)
        parts = {
            "scores": (4 * rows * s.block, s.slots),
            "values": (4 * rows * s.width, s.slots),
            "chances": (size * rows * s.block, s.slots),
            "fade": (stats, s.slots),
            "top": (stats, 1),
            "total": (stats, 1),
            "o": (4 * rows * s.width, 1),
            "out": (size * rows * s.width, 1),
        }
        return {
            name: (align_up(bytes_each, _UNIT_BYTES), count)
            for name, (bytes_each, count) in parts.items()
        }

    def of(self, name: str, slot: Int = 0) -> Expr:
        """Return the first byte of a slot of a part."""
        at, apart = self.places[name]
        return Expr.of(slot) * apart + at

    def at(self, name: str, slot: int = 0) -> int:
        """Return the same of a slot whose number is known."""
        at, apart = self.places[name]
        return at + slot * apart


class RowFunctions:
    """The vector functions of an AIV."""

    def __init__(self, buffers: AttentionBuffers, *, second: bool = False) -> None:
        self.buffers, self.shape, self.second = buffers, buffers.shape, second
        self.chances = cache(self._chances)
        self.add_values = cache(self._add_values)

    @property
    def begin(self) -> Issued:
        """Set what is kept of each row, and O, to those of no keys."""
        calls, at = _calls(), self.buffers.at
        lowest, zero = (
            calls.operate("Duplicate", scalar=value, mask=calls.all) for value in (_LOWEST, 0.0)
        )
        for start in range(0, _STAT_BYTES * self.buffers.share, 4 * LANES):
            calls.store(at("top") + start, lowest, FLOAT, "NORM", calls.all, "top")
            calls.store(at("total") + start, zero, FLOAT, "NORM", calls.all, "total")
        for start in range(0, 4 * self.buffers.share * self.shape.width, 4 * LANES):
            calls.store(at("o") + start, zero, FLOAT, "NORM", calls.all, "o")
        return calls.issued

    def _chances(self, keys: int, slot: int, diagonal: bool) -> Issued:
        """Make P_j of S_j, in NZ; what is kept of each row grows."""
        s, at, calls = self.shape, self.buffers.at, _calls()
        halves = calls.all_halves()
        for row in range(self.buffers.share):
            stat, scores = row * _STAT_BYTES, at("scores", slot) + 4 * row * s.block
            lanes = [
                calls.operate(
                    "Muls",
                    calls.load(scores + 4 * start, FLOAT, "NORM", ("scores", start)),
                    scalar=1 / math.sqrt(s.width),
                    mask=calls.all,
                )
                for start in range(0, keys, LANES)
            ]
            if diagonal:
                lanes = self._masked(calls, lanes, keys, row)
            largest = calls.joined("Max", lanes)
            largest = calls.operate("Reduce", largest, mode="MAX", mask=calls.all)
            largest = calls.operate("DuplicateLane", largest, mask=calls.all)
            before = calls.load(at("top") + stat, FLOAT, "BRC_B32", "before")
            largest = calls.operate("Max", largest, before, mask=calls.all)
            # fade = exp(old maximum - new maximum) rescales all that was summed under the old one;
            # in the first block the old one is `_LOWEST`, so that fade is 0.
            lanes, fade = (
                [calls.power(lane, largest) for lane in lanes],
                calls.power(before, largest),
            )
            calls.store(at("top") + stat, largest, FLOAT, _FIRST, 0, "top")
            calls.store(at("fade", slot) + stat, fade, FLOAT, _FIRST, 0, "fade")
            total = calls.operate("Reduce", calls.joined("Add", lanes), mode="SUM", mask=calls.all)
            summed = calls.load(at("total") + stat, FLOAT, "BRC_B32", "before")
            summed = calls.operate("Mul", summed, fade, mask=calls.all)
            total = calls.operate("Add", total, summed, mask=calls.all)
            calls.store(at("total") + stat, total, FLOAT, _FIRST, 0, "total")
            self._put(calls, lanes, at("chances", slot), row, halves)
        return calls.issued

    def _masked(self, calls: "_Calls", lanes: list[int], keys: int, row: int) -> list[int]:
        """Lower the scores of keys that a row does not see, in the last block that its rows see."""
        shown = keys - self.shape.stored_rows + self.second * self.buffers.share + row + 1
        lowest = calls.operate("Duplicate", scalar=_LOWEST, mask=calls.all)
        return [
            calls.kept(lane, lowest, min(max(shown - number * LANES, 0), LANES))
            for number, lane in enumerate(lanes)
        ]

    def _put(self, calls: "_Calls", lanes: list[int], into: int, row: int, halves: int) -> None:
        """Store a row of P_j in pieces of 32 B, which lie a column of fractals apart."""
        # Narrow lanes stand in the low halves of lanes of 32 bits; two registers of them are one.
        dtype, share = self.shape.dtype, self.buffers.share
        narrow = [calls.cast(lane, "float32", dtype.name, "NO_SAT", calls.all) for lane in lanes]
        apart = share * DATA_BLOCK_BYTES
        for first in range(0, len(narrow), 2):
            pair = narrow[first : first + 2]
            packed = calls.packed(pair[0], pair[-1], self.shape)
            for block in range(len(pair) * LANES // FRACTAL_ROWS):
                column = first * LANES // FRACTAL_ROWS + block
                at = into + column * apart + row * DATA_BLOCK_BYTES
                calls.put_block(at, packed, self.shape, block, halves)

    def _add_values(self, slot: int) -> Issued:
        """Add O_j to O, which fades."""
        s, at, calls = self.shape, self.buffers.at, _calls()
        for row in range(self.buffers.share):
            fade = calls.load(at("fade", slot) + row * _STAT_BYTES, FLOAT, "BRC_B32", "fade")
            for start in range(row * s.width, (row + 1) * s.width, LANES):
                total = calls.load(at("o") + 4 * start, FLOAT, "NORM", "o")
                more = calls.load(at("values", slot) + 4 * start, FLOAT, "NORM", "values")
                total = calls.operate("Mul", total, fade, mask=calls.all)
                total = calls.operate("Add", total, more, mask=calls.all)
                calls.store(at("o") + 4 * start, total, FLOAT, "NORM", calls.all, "sum")
        return calls.issued

    @property
    def divide(self) -> Issued:
        """Divide O by the sums, in the type of the result."""
        s, at, calls = self.shape, self.buffers.at, _calls()
        for row in range(self.buffers.share):
            total = calls.load(at("total") + row * _STAT_BYTES, FLOAT, "BRC_B32", "total")
            for start in range(row * s.width, (row + 1) * s.width, LANES):
                lanes = calls.load(at("o") + 4 * start, FLOAT, "NORM", "o")
                lanes = calls.operate("Div", lanes, total, mask=calls.all)
                into = at("out") + s.dtype.size_bytes * start
                calls.narrowed(into, lanes, s.dtype, calls.all, "out")
        return calls.issued


_FIRST = "FIRST_ELEMENT_B32"


class _Calls(LaneCalls):
    """Calls of attention."""

    def joined(self, name: str, lanes: list[int]) -> int:
        """Join registers lane by lane."""
        return reduce(lambda left, right: self.operate(name, left, right, mask=self.all), lanes)

    def power(self, lane: int, largest: int) -> int:
        """Raise e to the difference."""
        return self.operate("ExpSub", lane, largest, mode="ZERO", mask=self.all)

    def kept(self, lane: int, other: int, lanes: int) -> int:
        """Return the first lanes of one register, and the others of another."""
        if lanes in (0, LANES):
            return lane if lanes else other
        return self.operate("Select", lane, other, mask=self.count(lanes))

    def packed(self, left: int, right: int, shape: AttentionShape) -> int:
        """Return the even lanes of two registers as one."""
        results = self.calls.new_value(), self.calls.new_value()
        call = Call(operations()["DeInterleave"], shape.dtype, shape.dtype)
        self.calls.take(call, self.where, results=results, sources=(left, right))
        return results[0]

    def put_block(
        self, address: int, value: int, shape: AttentionShape, block: int, mask: int
    ) -> None:
        """Store a block of a register."""
        call = Call(operations()["StoreBlock"], shape.dtype, shape.dtype, f"BLOCK{block}")
        variable = self._variable("store", "chances")
        self.calls.take(
            call, self.where, sources=(value,), mask=mask, variable=variable, address=address
        )


def _calls() -> _Calls:
    return _Calls(Location("attention.py", 0, "attention"))
