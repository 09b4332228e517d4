"""Modes, counts and stale cache lines of a C++ kernel, from the blocks that its runtime records."""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from cubecore.frontends.capi.modes import SETTERS, Modes, Said, stores_globally
from cubecore.isa.declare.instruction import Instruction
from cubecore.isa.program.trace import Names
from cubecore.isa.program.tree import Location
from cubecore.isa.scalar.caches import Dcci
from cubecore.isa.vector.common.mask import SetMaskCount, SetMaskNorm, SetVectorMask
from cubecore.isa.vector.common.repeated import Repeated

_OTHER, _STORE, _CLEAN, _REPEATED, _MASK, _NORM, _COUNT, _SETTER = range(8)
"""Instructions by how they concern the modes; those from `_REPEATED` on set or take them."""
_Words = NDArray[np.uint32]
_Addresses = NDArray[np.int64]


class RecordedModes:
    """Follows the modes of one core, a block of instructions at a time.

    Blocks are long, so that of most instructions only arrays are looked at. Stores to global memory
    are looked at one by one when the scalar unit reads some of it.
    """

    def __init__(self, modes: Modes, names: Names) -> None:
        self._modes, self._names = modes, names
        self._classes: NDArray[np.int8] = np.empty(0, np.int8)
        self._widths: NDArray[np.intp] = np.empty(0, np.intp)
        self._stores: list[tuple[_Words, _Words, list[_Addresses]]] = []

    def follow(self, kinds: _Words, lines: _Words, addresses: _Addresses) -> Iterator[Said]:
        """Take a block; yield a finding for each instruction that an earlier one's count cuts."""
        self._learn()
        classes = self._classes[kinds]
        self._keep_stores(classes, kinds, lines, addresses)
        at = np.flatnonzero(classes >= _REPEATED)
        if at.size and (self._modes.counts or (classes[at] > _REPEATED).any()):
            for index in at[self._chosen(classes[at], kinds[at])].tolist():
                template, where = self._recorded(kinds[index], lines[index])
                said = self._modes.cut(template, where) if self._modes.counts else None
                if said is not None:
                    yield said
                self._modes.follow(((template, ()),), where)

    def behind(self, low: int, high: int, where: Location) -> Said | None:
        """Judge a scalar read of bytes of global memory, behind the stores of this core."""
        for kinds, lines, addresses in self._stores:
            for kind, line, touched in zip(kinds, lines, addresses, strict=True):
                template, location = self._recorded(kind, line)
                self._modes.follow(((template, tuple(touched.tolist())),), location)
        self._stores.clear()
        return self._modes.behind(low, high, where)

    def _recorded(self, kind: np.uint32, line: np.uint32) -> tuple[Instruction, Location]:
        return self._names.templates[int(kind)], self._names.locations[int(line)]

    def _learn(self) -> None:
        """Classify the templates that are new."""
        names, learnt = self._names, len(self._classes)
        if learnt < len(names.templates):
            added = [_class_of(template) for template in names.templates[learnt:]]
            self._classes = np.append(self._classes, np.array(added, np.int8))
            widths = [len(mems) for mems in names.mems[learnt:]]
            self._widths = np.append(self._widths, np.array(widths, np.intp))

    def _keep_stores(
        self, classes: NDArray[np.int8], kinds: _Words, lines: _Words, addresses: _Addresses
    ) -> None:
        """Keep the stores behind the last dcci."""
        cleaned = np.flatnonzero(classes == _CLEAN)
        first = 0
        if cleaned.size:
            first = int(cleaned[-1]) + 1
            self._stores.clear()
            template, where = self._recorded(kinds[first - 1], lines[first - 1])
            self._modes.follow(((template, ()),), where)
        at = first + np.flatnonzero(classes[first:] == _STORE)
        if at.size:
            widths = self._widths[kinds]
            begins = (np.cumsum(widths) - widths)[at]
            touched = [
                addresses[begin : begin + width]
                for begin, width in zip(begins.tolist(), widths[at].tolist(), strict=True)
            ]
            self._stores.append((kinds[at], lines[at], touched))

    def _chosen(self, classes: NDArray[np.int8], kinds: _Words) -> NDArray[np.intp]:
        """Return which instructions to look at: all if a count may cut one, else the last of each.

        An instruction behind its own mask is cut by none. Of what sets a mode the last of each kind
        leaves the same state as all do.
        """
        indices = np.arange(classes.size)
        toggles = np.where(classes > _MASK, indices, -1)
        last = np.maximum.accumulate(toggles)
        counts = np.where(last < 0, self._modes.counts, classes[last] != _NORM)
        repeated = classes == _REPEATED
        masked = np.append(False, classes[:-1] == _MASK)
        if (repeated & counts & ~masked).any():
            return indices
        _, firsts = np.unique(kinds[::-1], return_index=True)
        lasts = classes.size - 1 - firsts
        kept = lasts[classes[lasts] > _REPEATED]
        ran = np.flatnonzero(repeated & counts)[-1:]
        return np.unique(np.concatenate((kept, ran, ran - 1)))  # the last one and its mask


def _class_of(template: Instruction) -> int:
    for kind, number in ((SetVectorMask, _MASK), (SetMaskNorm, _NORM), (SetMaskCount, _COUNT)):
        if isinstance(template, kind):
            return number
    if isinstance(template, SETTERS):
        return _SETTER
    if isinstance(template, Dcci):
        return _CLEAN
    if isinstance(template, Repeated):
        return _REPEATED
    return _STORE if stores_globally(template) else _OTHER
