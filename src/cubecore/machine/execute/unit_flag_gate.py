"""Unit-flag gate: holds matmuls and fixpipe where queues run in any allowed order.

Every fractal of L0C has flags that move together. A product that shares them waits until they are
down, fixpipe until they are up; with unit_flag 3 each turns them when it is done.
"""

from functools import lru_cache

import numpy as np

from cubecore.isa.declare.instruction import Instruction, Mem, Pipe
from cubecore.isa.declare.registers import Registers
from cubecore.layouts import ascending
from cubecore.machine.memory.elements import elements
from cubecore.units import FRACTAL_ROWS

_LANES = FRACTAL_ROWS * FRACTAL_ROWS


class UnitGate:
    """The unit flags of a core's L0C that are up, by the addresses of their fractals."""

    def __init__(self) -> None:
        self._up: set[int] = set()

    def lets(self, template: Instruction, addresses: tuple[int, ...], registers: Registers) -> bool:
        """True if an instruction need not wait."""
        if not template.shares_units:
            return True
        tile = _tile(template.resolved(registers), addresses)
        return tile.isdisjoint(self._up) if template.pipe is Pipe.M else tile <= self._up

    def turn(self, template: Instruction, addresses: tuple[int, ...], registers: Registers) -> None:
        """Follow an instruction that is done."""
        if template.shares_units and template.hands_units_over:
            tile = _tile(template.resolved(registers), addresses)
            self._up = self._up | tile if template.pipe is Pipe.M else self._up - tile


def _tile(template: Instruction, addresses: tuple[int, ...]) -> set[int]:
    operand_index, starts = _fractals(template)
    return {addresses[operand_index] + start for start in starts}


@lru_cache(maxsize=256)
def _fractals(template: Instruction) -> tuple[int, tuple[int, ...]]:
    """Return which operand is the tile, and where its fractals start, bytes from its address."""
    operand_index, operand = next(
        (i, o) for i, o in enumerate(template.operands()) if o.mem is Mem.L0C
    )
    lanes = ascending(np.asarray(elements(template, operand.name).through // _LANES))
    size = _LANES * template.element(operand).size_bytes
    return operand_index, tuple(int(lane) * size for lane in lanes)
