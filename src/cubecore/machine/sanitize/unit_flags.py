"""The unit flags of a core's L0C: the hand-over of fractals between `mad` and fixpipe.

Judged in program order. A product that shares them waits until a fractal's flag is down, fixpipe
until it is up; what nobody raises or takes down lets a pipe stand still. The flags of a fractal
(one for each 512 B) move together.
"""

from collections.abc import Callable
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from cubecore.isa.declare.instruction import Instruction, Pipe
from cubecore.isa.program.tree import Location
from cubecore.machine.memory.footprint import Footprint
from cubecore.machine.sanitize.flags import FlagFault
from cubecore.machine.sanitize.shadow_memory import Touched
from cubecore.units import FRACTAL_ROWS, distinct

_UNIT_BYTES = 512
Units = slice | NDArray[np.intp]


class UnitFlags:
    """The unit flags that are up, and their setters; `fault` receives each misuse."""

    def __init__(self, fault: Callable[[FlagFault], None]) -> None:
        self._fault = fault
        self._up = np.zeros(0, np.intp)
        """For each 512 B of L0C 0, or which of `_since` raised its flag, from 1 on."""
        self._since: dict[Location, int] = {}

    def follower(
        self, template: Instruction, used: Touched, where: Location
    ) -> Callable[[int], None]:
        """Return what follows a matmul or fixpipe at an address of its tile in L0C."""
        touched, _, touch = used
        operand = next(o for o in template.operands() if o.name == touch.operand)
        # `mark` is what the flags become: the number of the location that raised them, which a
        # finding names later, or 0 where fixpipe takes them down.
        units, count = _units(touched, template.element(operand).bits // 8)
        product, mark = template.pipe is Pipe.M, 0
        if product and template.hands_units_over:
            mark = self._since.setdefault(where, len(self._since) + 1)

        def follow(address: int) -> None:
            base = address // _UNIT_BYTES
            if self._up.size < base + count:
                self._up = np.append(self._up, np.zeros(base + count - self._up.size, np.intp))
            of_tile = self._up[base : base + count]
            here = of_tile[units]
            if product and here.any():
                self._still_up(template, base, of_tile, where)
            elif not product and not here.all():
                self._not_up(template, base, of_tile, units, where)
            if template.hands_units_over:
                of_tile[units] = mark

        return follow

    @property
    def rest(self) -> bool:
        """True if no flag is up."""
        return not self._up.any()

    def finish(self) -> None:
        """Judge what is left: flags that are still up."""
        for where, number in self._since.items():
            up = self._up == number
            if up.any():
                message = (
                    f"{_named(int(np.argmax(up)))} is still set at the end, since {where}"
                    "; let fixpipe clear it with unit_flag 3"
                )
                self._fault(FlagFault("flag-leaked", "mad", message, where))

    def _still_up(
        self, template: Instruction, base: int, of_tile: NDArray[np.intp], where: Location
    ) -> None:
        first = int(np.argmax(of_tile > 0))
        since = list(self._since)[of_tile[first] - 1]
        message = (
            f"{_named(base + first)} is still set when {template.name} shares the tile again, "
            f"since {since}; let fixpipe clear it with unit_flag 3"
        )
        self._fault(FlagFault("flag-doubled", template.name, message, where))

    def _not_up(
        self,
        template: Instruction,
        base: int,
        up: NDArray[np.intp],
        units: Units,
        where: Location,
    ) -> None:
        first = int(np.arange(up.size)[units][np.argmin(up[units] > 0)])
        message = (
            f"{_named(base + first)} is not set when {template.name} shares the tile; give the "
            "last product on the tile unit_flag 3"
        )
        self._fault(FlagFault("flag-unmet", template.name, message, where))


def _named(unit: int) -> str:
    low = unit * _UNIT_BYTES
    return f"the unit flag of bytes [{low}, {low + _UNIT_BYTES}) of L0C"


@lru_cache(maxsize=256)
def _units(touched: Footprint, element_bytes: int) -> tuple[Units, int]:
    """Return the units of the fractals that are touched, from the tile on, and their size."""
    # A fractal of 16 x 16 elements of 4 B is 1,024 B, that is two units of 512 B, which move
    # together. Touched bytes are widened to whole fractals; where these are in a row, a slice
    # serves, which is faster to index by.
    fractal = FRACTAL_ROWS * FRACTAL_ROWS * element_bytes
    runs = [
        np.arange(low // fractal, -(-high // fractal))
        for low, high in zip(touched.starts.tolist(), touched.ends.tolist(), strict=True)
    ]
    fractals, each = distinct(np.concatenate(runs)), fractal // _UNIT_BYTES
    units = (fractals[:, None] * each + np.arange(each)).ravel()
    first, count = int(units[0]), int(units[-1]) + 1
    return slice(first, count) if units.size == count - first else units, count
