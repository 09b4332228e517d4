"""Modes, counts and stale cache lines of a C++ kernel, from the blocks that its runtime records."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cubecore.cache import BoundedCache
from cubecore.frontends.capi.modes import SETTERS, Modes, Said, stores_globally
from cubecore.isa.declare.instruction import Instruction, Mem
from cubecore.isa.declare.registers import Registers
from cubecore.isa.program.trace import Names
from cubecore.isa.program.tree import Location
from cubecore.isa.scalar.caches import Dcci
from cubecore.isa.scalar.store import StoreScalarGm
from cubecore.isa.vector.common.mask import SetMaskCount, SetMaskNorm, SetVectorMask
from cubecore.isa.vector.common.repeated import Repeated
from cubecore.units import distinct

_OTHER, _STORE, _CLEAN_LINE, _CACHED, _LOAD, _CLEAN = range(6)
"""Instructions by how they concern the data cache: those before `_CACHED` count once it is read."""
_REPEATED, _MASK, _NORM, _COUNT, _SETTER = range(6, 11)
"""Instructions that take the modes, and those that set them."""
_Words = NDArray[np.uint32]
_Addresses = NDArray[np.int64]
_SHORT, _MOST_SHORT, _MOST_LONG = 512, 4096, 64
"""Instructions of a short block, and how many patterns of short blocks and of others are kept."""


class BlockPatterns:
    """Modes as a block's kinds of calls set them: learnt once for all cores of a launch.

    Cores issue the same short blocks again and again, between the flags of a mix kernel.
    """

    def __init__(self, names: Names) -> None:
        self._names = names
        self.classes: NDArray[np.int8] = np.empty(0, np.int8)
        self.widths: NDArray[np.intp] = np.empty(0, np.intp)
        self._short: BoundedCache[tuple[bytes, bool], _Pattern] = BoundedCache(_MOST_SHORT)
        self._long: BoundedCache[tuple[bytes, bool], _Pattern] = BoundedCache(_MOST_LONG)

    def of(self, kinds: _Words, *, counts: bool) -> "_Pattern":
        """Return a block's pattern, under a mask that counts or not."""
        known = self._long if kinds.size > _SHORT else self._short
        key = kinds.tobytes(), counts
        pattern = known.get(key)
        if pattern is None:
            pattern = known[key] = self._made(kinds, counts=counts)
        return pattern

    def _made(self, kinds: _Words, *, counts: bool) -> "_Pattern":
        self._learn()
        # Every instruction of the block by its class. A dcci of all lines cleans what came before
        # it, so that stores count from the last one on. Modes: only those instructions are looked
        # at one by one that a count may cut, or that are the last to set something.
        classes = self.classes[kinds]
        cleaned = np.flatnonzero(classes == _CLEAN)
        first = int(cleaned[-1]) + 1 if cleaned.size else 0
        at = np.flatnonzero(classes >= _REPEATED)
        looked: list[int] = []
        if at.size and (counts or (classes[at] > _REPEATED).any()):
            looked = at[_chosen(classes[at], kinds[at], counts=counts)].tolist()
        lazy = (classes[first:] == _STORE) | (classes[first:] == _CLEAN_LINE)
        stores = first + np.flatnonzero(lazy)
        # Addresses of all instructions lie in one flat array; the running sum of the numbers of
        # operands says where those of each begin and end.
        widths = self.widths[kinds]
        ends = np.cumsum(widths)
        begins = ends - widths
        through = np.flatnonzero((classes >= _STORE) & (classes <= _CLEAN))
        dirties = bool((classes[through] == _CACHED).any())
        cached = through, begins[through], ends[through]
        return _Pattern(first, stores, begins[stores], ends[stores], looked, cached, dirties)

    def _learn(self) -> None:
        """Classify the templates that are new."""
        names, learnt = self._names, len(self.classes)
        if learnt < len(names.templates):
            added = [_class_of(template) for template in names.templates[learnt:]]
            self.classes = np.append(self.classes, np.array(added, np.int8))
            widths = [len(mems) for mems in names.mems[learnt:]]
            self.widths = np.append(self.widths, np.array(widths, np.intp))


@dataclass(frozen=True, slots=True)
class _Pattern:
    """Of a block: where the last dcci of all lines ends, and what to follow.

    `stores` are what stores past the data cache from there on, and what cleans a line; the
    addresses of each lie from `begins` to `ends`. `cached` are, with begins and ends, all that
    concerns the cache; `dirties` says if something stores to it.
    """

    behind_dcci: int
    stores: NDArray[np.intp]
    begins: NDArray[np.intp]
    ends: NDArray[np.intp]
    looked: list[int]
    cached: tuple[NDArray[np.intp], NDArray[np.intp], NDArray[np.intp]]
    dirties: bool


class RecordedModes:
    """Follows the modes of one core, a block of instructions at a time.

    Of most instructions only arrays are looked at. Stores to global memory are looked at one by
    one when the scalar unit reads some of it.
    """

    def __init__(self, modes: Modes, names: Names, patterns: BlockPatterns) -> None:
        self._modes, self._names, self._patterns = modes, names, patterns
        self._stores: list[tuple[_Pattern, _Words, _Words, _Addresses]] = []

    @property
    def registers(self) -> Registers:
        """Return the registers that the core's instructions have set."""
        return self._modes.registers

    def follow(
        self, kinds: _Words, lines: _Words, addresses: _Addresses
    ) -> Iterator[tuple[int, Said]]:
        """Take a block; yield the number of each instruction that an earlier one makes wrong.

        A count cuts it, or it reads what is in the data cache. With it comes the finding.
        """
        pattern = self._patterns.of(kinds, counts=self._modes.counts)
        if pattern.dirties or self._modes.lines.changed:
            yield from self._follow_cached(pattern, kinds, lines, addresses)
        else:
            if pattern.behind_dcci:
                self._stores.clear()
                at = pattern.behind_dcci - 1
                template, where = self._recorded(kinds[at], lines[at])
                self._modes.follow(((template, ()),), where)
            if pattern.stores.size:
                at_stores = pattern.stores
                self._stores.append((pattern, kinds[at_stores], lines[at_stores], addresses))
        for index in pattern.looked:
            template, where = self._recorded(kinds[index], lines[index])
            if isinstance(template, SETTERS):
                self._modes.set(template, where)
            elif self._modes.counts and (said := self._modes.cut(template, where)):
                yield index, said

    def _follow_cached(
        self, pattern: _Pattern, kinds: _Words, lines: _Words, addresses: _Addresses
    ) -> Iterator[tuple[int, Said]]:
        """Take what concerns the data cache while it has lines that wait to be written back."""
        self._settle()
        held, modes = addresses.tolist(), self._modes
        indices, begins, ends = (numbers.tolist() for numbers in pattern.cached)
        for index, begin, end in zip(indices, begins, ends, strict=True):
            template, where = self._recorded(kinds[index], lines[index])
            issued = template, tuple(held[begin:end])
            if said := modes.passing(*issued, where):
                yield index, said
            modes.follow((issued,), where)

    def _settle(self) -> None:
        """Take the stores past the data cache that were kept until something is read."""
        for pattern, kinds, lines, addresses in self._stores:
            held = addresses.tolist()
            spans = zip(pattern.begins.tolist(), pattern.ends.tolist(), strict=True)
            for kind, line, (begin, end) in zip(kinds, lines, spans, strict=True):
                template, location = self._recorded(kind, line)
                self._modes.follow(((template, tuple(held[begin:end])),), location)
        self._stores.clear()

    def behind(self, low: int, high: int, where: Location) -> Said | None:
        """Judge a scalar read of bytes of global memory, behind the stores of this core."""
        self._settle()
        return self._modes.behind(low, high, where)

    def _recorded(self, kind: np.uint32, line: np.uint32) -> tuple[Instruction, Location]:
        return self._names.templates[int(kind)], self._names.locations[int(line)]


def _chosen(classes: NDArray[np.int8], kinds: _Words, *, counts: bool) -> NDArray[np.intp]:
    """Return which instructions to look at: all if a count may cut one, else the last of each.

    An instruction behind its own mask is cut by none. Of what sets a mode the last of each kind
    leaves the same state as all do.
    """
    # For each instruction the last one before it that switched counting on or off: the running
    # maximum of positions, -1 for none. Behind none, `counts` is the state at the block's start.
    indices = np.arange(classes.size)
    toggles = np.where(classes > _MASK, indices, -1)
    last = np.maximum.accumulate(toggles)
    counted = np.where(last < 0, counts, classes[last] != _NORM)
    repeated = classes == _REPEATED
    masked = np.append(False, classes[:-1] == _MASK)
    if (repeated & counted & ~masked).any():
        return indices
    last_of = np.full(int(kinds.max()) + 1, -1)
    last_of[kinds] = indices  # of those with one kind the last is kept
    lasts = last_of[last_of >= 0]
    kept = lasts[classes[lasts] > _REPEATED]
    ran = np.flatnonzero(repeated & counted)[-1:]
    return distinct(np.concatenate((kept, ran, ran - 1)))  # the last one and its mask


def _class_of(template: Instruction) -> int:
    for kind, number in ((SetVectorMask, _MASK), (SetMaskNorm, _NORM), (SetMaskCount, _COUNT)):
        if isinstance(template, kind):
            return number
    if isinstance(template, SETTERS):
        return _SETTER
    if isinstance(template, Dcci):
        of_lines = _CLEAN if template.lines == "entire" else _CLEAN_LINE
        return of_lines if template.cleans_globally else _OTHER
    if isinstance(template, StoreScalarGm):
        return _CACHED if template.cached else _STORE
    if isinstance(template, Repeated):
        return _REPEATED
    if stores_globally(template):
        return _STORE
    reads = (each.access.reads for each in template.operands() if each.mem is Mem.GM)
    return _LOAD if any(reads) else _OTHER
