"""A vector function of a Python kernel while its body runs."""

import numpy as np

from cubecore.frontends.capi.registers.handles import UNWRITTEN
from cubecore.isa.declare.instruction import Mem
from cubecore.isa.program.tree import Location
from cubecore.isa.vector.registers.flow import WHOLE
from cubecore.isa.vector.registers.vector_function import VectorFunction
from cubecore.kernels.build.register_calls import FunctionCalls
from cubecore.machine.execute.array_bounds import ArrayWatch, InArray


class OpenFunction(FunctionCalls):
    """A vector function that is being recorded.

    `ar` and `counted` are the values of AR and of what the last squeeze has counted.
    """

    def __init__(self, name: str, where: Location, *, is_ar_clear: bool) -> None:
        super().__init__(where)
        self.name, self.is_ar_clear = name, is_ar_clear
        self.ar = self.counted = UNWRITTEN

    @property
    def uses_ar(self) -> bool:
        """True if calls have cleared AR or stored by it."""
        return self.ar != UNWRITTEN

    def judge_arrays(self, template: VectorFunction, arrays: ArrayWatch) -> bool:
        """Log the first access of each call that leaves the array of its pointer.

        Lanes that no call looks at may lie behind it: a load takes no mask. Return whether none
        leaves any.
        """
        inside = True
        limits = [_limits(row.address) for row in self._rows]
        low, high = (np.array([each[n] for each in limits], np.int64) for n in (0, 1))
        given = np.array([row.address for row in self._rows], np.int64)
        for step in template.program.steps.values():
            if step.by_values or not (step.loads or step.stores):
                continue
            at, extents = step.entries.reshape(-1), step.extents.reshape(-1)
            start, end = given[at], given[at] + extents
            last = end if step.stores or step.call.mode in WHOLE else start + 1
            left = np.flatnonzero((extents > 0) & ((start < low[at]) | (last > high[at])))
            if not left.size:
                continue
            first, inside = int(left[0]), False
            address = self._rows[at[first]].address
            assert isinstance(address, InArray)
            arrays.judge(
                step.location.call or step.call.operation.name,
                "dst" if step.stores else "src",
                Mem.UB,
                int(start[first]),
                int(end[first]),
                address,
                step.location,
                writes=step.stores,
            )
        return inside


_FAR = 1 << 62


def _limits(address: int) -> tuple[int, int]:
    """Return the bytes that an address may lead to: those of its array."""
    return (address.low, address.high) if isinstance(address, InArray) else (-_FAR, _FAR)
