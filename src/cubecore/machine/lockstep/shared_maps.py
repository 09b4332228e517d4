"""Initialised maps that cores of a group share, while they take turns."""

from collections.abc import Mapping, Sequence

import numpy as np

from cubecore.isa.declare.instruction import Mem
from cubecore.machine.blas.block_products import IrregularError
from cubecore.machine.memory.places import MemoryStack
from cubecore.machine.sanitizer.shadow_memory import Touched


class SharedMaps:
    """The maps that cores share, while they take turns: each finds what the first one found."""

    def __init__(self, stacks: Mapping[Mem, MemoryStack]) -> None:
        self._maps = {mem: stack.valid for mem, stack in stacks.items()}
        self._before = {mem: valid.copy() for mem, valid in self._maps.items()}
        self._left: list[tuple[Mem, int, bytes]] | None = None

    def compare(self, touched_bytes: Sequence[Touched]) -> None:
        """Require a core, which touched this, to leave what the first one left; take it back."""
        left = []
        for mem, low, high in self._written(touched_bytes):
            now, then = self._maps[mem][low:high], self._before[mem][low:high]
            if not (now.all() and then.all()):
                left.append((mem, low, now.tobytes()))
                now[:] = then
        if self._left is None:
            self._left = left
        if left != self._left:
            raise IrregularError("cores that differ in what they have written")

    @staticmethod
    def _written(touched_bytes: Sequence[Touched]) -> list[tuple[Mem, int, int]]:
        return [
            (touch.mem, at + touched.low, at + touched.high)
            for touched, at, touch in touched_bytes
            if touch.writes and isinstance(touch.mem, Mem) and touch.mem is not Mem.GM
        ]

    def settle(self) -> None:
        """Leave what every core left."""
        for mem, low, raw in self._left or ():
            self._maps[mem][low : low + len(raw)] = np.frombuffer(raw, np.uint8)
