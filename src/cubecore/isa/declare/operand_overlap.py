"""Overlap of an instruction's operands: the cases that the pages allow (C API general notes)."""

from collections.abc import Iterator, Mapping
from functools import lru_cache
from math import gcd
from typing import Any, NamedTuple

import numpy as np

from cubecore.arrays import Array
from cubecore.isa.declare.instruction import Instruction, Operand
from cubecore.layouts import ascending

ACCUMULATING_TYPES = ("float16", "int32", "float32")
"""Types of which dst of a repeat may be src1 of the next (C API general notes: half, int32_t,
float)."""

STEERED = 16
"""The size of caches of templates that values steer: each is asked for in one stretch."""


def touched_span(template: Instruction, operand: str) -> tuple[int, int] | None:
    """Return the lowest and the highest element offset that the mask lets through, or None."""
    return (_steered_extent if template.steering else _extent)(template, operand)


def _find_extent(template: Instruction, operand: str) -> tuple[int, int] | None:
    offsets = template.offsets(operand)
    active = template.active(operand)
    touched = offsets[offsets >= 0] if active is None else offsets[active & (offsets >= 0)]
    return None if touched.size == 0 else (int(touched.min()), int(touched.max()))


_extent = lru_cache(maxsize=4096)(_find_extent)
_steered_extent = lru_cache(maxsize=STEERED)(_find_extent)


def span_bytes(template: Instruction, operand: Operand, address: int) -> tuple[int, int] | None:
    """Return the bytes [start, end) between which an operand lies, or None if it touches none."""
    touched = touched_span(template, operand.name)
    if touched is None:
        return None
    low, high = template.element(operand).extent_bytes(*touched)
    return address + low, address + high


class AddressedOperand(NamedTuple):
    """An operand at an address, in bytes of its memory."""

    operand: Operand
    address: int


def apart(template: Instruction, to: AddressedOperand, source: AddressedOperand) -> bool:
    """Return whether two operands lie apart."""
    first, second = span_bytes(template, *to), span_bytes(template, *source)
    return first is None or second is None or first[1] <= second[0] or second[1] <= first[0]


@lru_cache(maxsize=4096)
def distinct(template: Instruction, operand: str) -> bool:
    """Return whether an operand touches each of its elements once."""
    offsets, active = template.offsets(operand), template.active(operand)
    touched = offsets.reshape(-1) if active is None else offsets[active]
    return ascending(touched).size == touched.size


@lru_cache(maxsize=4096)
def lane_by_lane(template: Instruction, to: str, source: str) -> bool:
    """Return whether operands at one address touch the same elements in one order, each once."""
    sizes = {template.element(o).bits for o in template.operands() if o.name in {to, source}}
    same = np.array_equal(template.offsets(to), template.offsets(source))
    return len(sizes) == 1 and same and distinct(template, to)


def overlaps(template: Instruction, addresses: Mapping[str, int]) -> Iterator[tuple[str, str, str]]:
    """Yield (dst, source, what is wrong) where they meet and no document allows it.

    `addresses` are the operands' addresses in one memory.
    """
    if not template.overlap:
        return
    operands = template.operands()
    for to in operands:
        for source in operands:
            if to is source or to.mem is not source.mem:
                continue
            # Two reads cannot disturb each other, and two writes are the instruction's own affair.
            if not (to.access.writes and source.access.reads):
                continue
            written = AddressedOperand(to, addresses[to.name])
            read = AddressedOperand(source, addresses[source.name])
            if apart(template, written, read):
                continue
            same_address = written.address == read.address and lane_by_lane(
                template, to.name, source.name
            )
            if same_address and template.overlap != "none":
                continue
            wrong = _meeting(template, written, read)
            if wrong:
                yield to.name, source.name, wrong


def relation(template: Instruction, addresses: tuple[int, ...]) -> tuple[bool, bool]:
    """Return whether a repeat may read what an earlier one wrote, and whether operands overlap.

    `addresses` are the operands', in their order.
    """
    if not (template.overlap or template.in_repeats):
        return False, False
    # Only the distances matter: instructions that walk through a buffer side by side share an
    # entry.
    base = min(addresses)
    near = tuple(address - base for address in addresses)
    return (_steered_relation if template.steering else _relation)(template, near)


def _find_relation(template: Instruction, near: tuple[int, ...]) -> tuple[bool, bool]:
    addresses = {o.name: at for o, at in zip(template.operands(), near, strict=True)}
    meets = any(True for _ in overlaps(template, addresses))
    return template.in_repeats and _feeds_itself(template, addresses), meets


_relation = lru_cache(maxsize=4096)(_find_relation)
_steered_relation = lru_cache(maxsize=STEERED)(_find_relation)


def _feeds_itself(template: Instruction, addresses: Mapping[str, int]) -> bool:
    """True if bytes that one repeat writes are bytes that a later one reads."""
    operands = template.operands()
    for to in operands:
        if not to.access.writes:
            continue
        for source in operands:
            if not source.access.reads or to.mem is not source.mem:
                continue
            written = AddressedOperand(to, addresses[to.name])
            read = AddressedOperand(source, addresses[source.name])
            if to is source:
                if not distinct(template, to.name):
                    return True
            # Operands that lie apart, or on each other element by element, can hand nothing on;
            # only for the rest the repeats are compared one by one.
            elif not (
                apart(template, written, read)
                or (
                    written.address == read.address and lane_by_lane(template, to.name, source.name)
                )
            ) and _later_reads(template, written, read):
                return True
    return False


def _later_reads(template: Instruction, to: AddressedOperand, source: AddressedOperand) -> bool:
    """Return whether a repeat reads what an earlier one wrote; True where bits are the unit."""
    sides = to, source
    if any(template.element(o).bits % 8 or template.offsets(o.name).min() < 0 for o, _ in sides):
        return True
    unit = gcd(to.address, source.address, *(template.element(o).bits // 8 for o, _ in sides))
    written, read = (_granules(template, operand, at, unit) for operand, at in sides)
    return _reads_of_earlier(_first_writers(written, read.end), read) is not None


def _meeting(template: Instruction, to: AddressedOperand, source: AddressedOperand) -> str | None:
    """Return what is wrong with two operands whose spans meet, or None."""
    (dst, at), (src, start) = to, source
    # The finest unit in which both operands' elements begin and end: overlaps are exact in it.
    unit = gcd(at, start, *(template.element(o).bits // 8 for o in (dst, src)))
    written, read = (_granules(template, o, a, unit) for o, a in (to, source))
    # A read is of an earlier repeat if a byte of it was written in one: the first writer decides.
    first = _first_writers(written, read.end)
    later = _reads_of_earlier(first, read)
    overlap = any((first[granules] < _NEVER).any() for _, granules in read.backwards())
    if template.overlap == "whole" and dst.axes == src.axes:
        if at != start:
            rule = f"coincide with {src.name}, or keep apart from it"
            return f"{rule}, got {at} and {start}" if overlap else None
        rule = f"not be {src.name} of a later element"
        return f"{rule}, got elements {later[0]} and {later[1]}" if later else None
    if template.overlap in {"none", "whole"} or len(written.rows) != len(read.rows):
        return f"keep apart from {src.name}, got {_both(at, start)}" if overlap else None
    # In one repeat the two sides must be the same granules or share none. Repeats that only differ
    # from each other are what `later` is for.
    for repeat in range(len(written.rows)):
        mine, theirs = ascending(written.rows[repeat]), ascending(read.rows[repeat])
        if not np.array_equal(mine, theirs) and np.intersect1d(mine, theirs).size:
            rule = f"coincide with {src.name}, or keep apart from it, within a repeat"
            return f"{rule}, got repeat {repeat}"
    if later is None or _accumulates(template, src):
        return None
    return f"not be {src.name} of a later repeat, got repeats {later[0]} and {later[1]}"


def _both(at: int, start: int) -> str:
    return f"both at {at}" if at == start else f"{at} and {start}"


_NEVER = np.iinfo(np.intp).max


class _Granules:
    """The granules of memory that each repeat of an operand touches."""

    def __init__(self, rows: list[Array]) -> None:
        self.rows = rows
        self.end = max((int(row.max()) + 1 for row in rows if row.size), default=0)

    def backwards(self) -> Iterator[tuple[int, Array]]:
        """Yield (repeat, granules) from the last repeat to the first."""
        for repeat in range(len(self.rows) - 1, -1, -1):
            yield repeat, self.rows[repeat]


def _granules(template: Instruction, operand: Operand, address: int, unit: int) -> _Granules:
    offsets, active = template.offsets(operand.name), template.active(operand.name)
    size = template.element(operand).bits // 8
    inside = np.arange(size // unit, dtype=np.intp)
    rows = []
    for repeat in range(offsets.shape[0]):
        touched: Any = offsets[repeat] if active is None else offsets[repeat][active[repeat]]
        starts = (address + touched.reshape(-1) * size) // unit
        rows.append((starts[:, None] + inside).reshape(-1))
    return _Granules(rows)


def _first_writers(written: _Granules, end: int) -> Array:
    """Return the first repeat that writes each granule up to `end`, `_NEVER` where none does."""
    first = np.full(max(written.end, end), _NEVER, np.intp)
    # From the last repeat to the first, so that the earliest writer stays.
    for repeat, granules in written.backwards():
        first[granules] = repeat
    return first


def _reads_of_earlier(first: Array, read: _Granules) -> tuple[int, int] | None:
    """Return (a repeat that writes, a later one that reads it), or None."""
    for repeat, granules in enumerate(read.rows):
        writers = first[granules]
        if writers.size and int(writers.min()) < repeat:
            return int(writers.min()), repeat
    return None


def _accumulates(template: Instruction, source: Operand) -> bool:
    """Return whether the exception holds: src1, one of three types, a repeat stride of 0."""
    strides = ("dst_repeat_stride", "src1_repeat_stride")
    return (
        template.overlap == "accumulate"
        and source.name == "src1"
        and template.element(source).name in ACCUMULATING_TYPES
        and any(getattr(template, stride) == 0 for stride in strides)
    )
