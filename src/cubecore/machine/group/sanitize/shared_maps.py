"""Initialised maps that cores of a group share, while they take turns."""

from collections.abc import Mapping, Sequence

import numpy as np

from cubecore.isa.declare.instruction import Mem
from cubecore.machine.group.sanitize.divergence import UnlikeError
from cubecore.machine.memory.places import MemoryStack
from cubecore.machine.sanitize.shadow_memory import Touched


class SharedMaps:
    """The maps that cores share, while they take turns: each finds what the first one found."""

    def __init__(self, stacks: Mapping[Mem, MemoryStack]) -> None:
        self._stacks = stacks
        self._maps = {mem: stack.valid for mem, stack in stacks.items()}
        self._before = {mem: valid.copy() for mem, valid in self._maps.items()}
        self._left: list[list[tuple[Mem, int, bytes]]] = []

    def take(self, touched_bytes: Sequence[Touched]) -> None:
        """Remember what a core, which touched this, has left, and take it back."""
        # Each core must start from the same map, since it is one map for all: what a core has
        # marked is kept aside and undone. Bytes that were initialised before and are so now need no
        # note.
        left = []
        for mem, low, high in self._written(touched_bytes):
            if mem not in self._maps:  # a memory that nothing had touched before
                self._maps[mem] = self._stacks[mem].valid
                self._before[mem] = np.zeros_like(self._maps[mem])
            now, then = self._maps[mem][low:high], self._before[mem][low:high]
            alike = now.all() and then.all() and (now == then).all()
            if not alike:
                left.append((mem, low, now.tobytes()))
                now[:] = then
        self._left.append(left)

    @staticmethod
    def _written(touched_bytes: Sequence[Touched]) -> list[tuple[Mem, int, int]]:
        return [
            (touch.mem, at + touched.low, at + touched.high)
            for touched, at, touch in touched_bytes
            if touch.writes and isinstance(touch.mem, Mem) and touch.mem is not Mem.GM
        ]

    def settle(self) -> None:
        """Leave what every core left.

        Raises
        ------
        UnlikeError
            If cores have left different maps.
        """
        if any(left != self._left[0] for left in self._left):
            kinds = [tuple(left) for left in self._left]
            raise UnlikeError("cores that differ in what they have written", kinds)
        for mem, low, raw in self._left[0]:
            self._maps[mem][low : low + len(raw)] = np.frombuffer(raw, np.uint8)
