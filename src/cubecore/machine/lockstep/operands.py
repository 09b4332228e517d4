"""Operands of cores in lockstep: their memories, their elements, and where they may lie."""

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Protocol

import numpy as np

from cubecore.arrays import Array
from cubecore.chips.model import Chip
from cubecore.dtypes import ElementType
from cubecore.isa.declare.instruction import Instruction, Mem, Operand
from cubecore.isa.declare.registers import Registers
from cubecore.isa.program.check import memory_bytes
from cubecore.isa.program.tree import Location
from cubecore.lazy_dataclass import dataclass
from cubecore.machine.blas.block_products import IrregularError
from cubecore.machine.lockstep.aliasing import GroupAliasing, Snapshots
from cubecore.machine.lockstep.sanitizer import GroupWatch
from cubecore.machine.memory.buffers import GlobalMemory, MemoryBuffer
from cubecore.machine.memory.elements import Elements, elements
from cubecore.machine.memory.places import MemoryStack, Place, Spot
from cubecore.machine.memory.strided import Rows

Act = Callable[[tuple[int, ...], Location], object]
"""The act of an instruction on all cores of a group, given the first one's addresses."""


class ApartError(IrregularError):
    """Something that the cores of a group do one by one, or that has a finding.

    Nothing was changed yet. `followed`: the watch has seen the instruction.
    """

    def __init__(self, why: str, *, followed: bool = False) -> None:
        super().__init__(why)
        self.followed = followed


class Cores(Protocol):
    """The cores that an operation runs on: a group."""

    chip: Chip
    gm: GlobalMemory
    count: int
    aliasing: GroupAliasing
    watch: GroupWatch
    snapshots: Snapshots
    registers: Registers

    def stack(self, mem: Mem) -> MemoryStack:
        """Return a local memory of all cores."""
        ...


@dataclass(frozen=True, eq=False, slots=True)
class LockstepOperand:
    """An operand: its memory (None: global) and its elements."""

    number: int
    operand: Operand
    stack: MemoryStack | None
    elements: Elements
    element: ElementType


def side(cores: Cores, template: Instruction, number: int) -> LockstepOperand:
    """Return operand `number` of a resolved template."""
    operand = template.operands()[number]
    stack = None if operand.mem is Mem.GM else cores.stack(operand.mem)
    return LockstepOperand(
        number, operand, stack, elements(template, operand.name), template.element(operand)
    )


@dataclass(frozen=True, eq=False, slots=True)
class Limit:
    """The range of an operand's addresses in a local memory: multiples of `unit` in [low, high]."""

    number: int
    unit: int
    low: int
    high: int


@lru_cache(maxsize=4096)
def limits_of(chip: Chip, template: Instruction) -> tuple[Limit, ...]:
    """Return where the operands of a resolved template that lie in local memories may lie."""
    limits = []
    for index, operand in enumerate(template.operands()):
        if operand.mem is Mem.GM:
            continue
        span = elements(template, operand.name).span
        usable = memory_bytes(chip, operand.mem)[1]
        low, high = (-(1 << 62), 1 << 62) if span is None else (-span[0], usable - span[1])
        limits.append(Limit(index, operand.alignment, low, high))
    return tuple(limits)


def require_inside(
    template: Instruction, limits: Sequence[Limit], addresses: tuple[int, ...]
) -> None:
    """Require addresses to be where operands may lie.

    Raises
    ------
    ApartError
        If an address lies outside its memory.
    """
    for limit in limits:
        address = addresses[limit.number]
        if address % limit.unit or not limit.low <= address <= limit.high:
            raise ApartError(f"{template.name} leaves its memory")


def finding(cores: Cores, one: LockstepOperand) -> Callable[[int], Spot]:
    """Return what finds an operand at an address of the first core.

    It raises an `ApartError` if a core would leave its tensor, or read uninitialised bytes.
    """
    if one.stack is not None:
        return one.stack.spot
    if one.elements.span is None:  # all of it is filled
        nothing = np.zeros(1, np.uint8)
        spot = Spot(nothing, nothing, ((1, 0, 0),), ((1, 0, 0),))
        return lambda _: spot
    return _outside(cores, one, one.elements.span)


def _outside(cores: Cores, one: LockstepOperand, span: tuple[int, int]) -> Callable[[int], Spot]:
    """Return what finds an operand in global memory."""
    unit, writes = one.operand.alignment, one.operand.access.writes
    aliasing, gm, snapshots = cores.aliasing, cores.gm, cores.snapshots
    filled = one.elements.offsets < 0

    def find(address: int) -> Spot:
        low = address + span[0]
        try:
            tensor = aliasing.visible(gm.at(low), low, address + span[1])
        except IrregularError as reason:
            raise ApartError(str(reason)) from None
        far, at, buffer = aliasing.distances(tensor), address - tensor.address, tensor.buffer
        if address % unit or far.unit % unit:
            raise ApartError("a global address that is misaligned")
        if writes:
            snapshots.keep(tensor)
        elif not (tensor.placed or _written(buffer, far.rows, at, span)):
            for distance in far.values.tolist():
                elements_of_core = Place(Spot.of(buffer, at + distance), one.elements, one.element)
                if not (elements_of_core.written() or (elements_of_core.ready() | filled).all()):
                    raise ApartError("uninitialised global memory")
        rows = tuple([(count, step, at + first) for count, step, first in far.rows])
        return Spot(buffer.data, buffer.valid, rows, rows)

    return find


def _written(buffer: MemoryBuffer, rows: Sequence[Rows], at: int, span: tuple[int, int]) -> bool:
    """Return whether all bytes of a span were written on every core, gaps included."""
    low, high = span
    parts = (
        np.ndarray((count, high - low), np.uint8, buffer.valid, at + first + low, (step, 1))
        for count, step, first in rows
    )
    return all(part.all() for part in parts)


def read_inside(stack: MemoryStack, at: int, here: Elements, element: ElementType) -> Array | None:
    """Return elements of every core; None where that would leave the memory, or nothing is read."""
    span = here.span
    if span is None or at + span[0] < 0 or at + span[1] > stack.size_bytes:
        return None
    return Place(stack.spot(at), here, element).read()


@lru_cache(maxsize=4096)
def resolved(template: Instruction, registers: Registers) -> Instruction:
    """Return what a template may touch; the same one again in the next launch, a key of caches."""
    return template.resolved(registers).reaching()
