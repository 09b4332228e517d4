"""Aliasing between cores in lockstep: accesses of global memory at constant distances.

The first core of a group stands for all: another one touches the same bytes of each tensor, further
on by its distance. Cores in lockstep take turns that the reference engine gives them otherwise, so
no core may touch what another one writes (`require_apart`).
"""

from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cubecore.arrays import Array
from cubecore.machine.group.sanitize.divergence import (
    DivergenceError,
    UnevenError,
    UnorderedError,
)
from cubecore.machine.memory.buffers import POISON_BYTE, GlobalMemory, GlobalTensor, MemoryBuffer
from cubecore.machine.memory.footprint import Bytes, Footprint
from cubecore.machine.memory.strided import Rows

_MOST_NOTED = 4096
"""Accesses of a tensor that are kept before they are joined."""
Addresses = NDArray[np.int64]
Runs = tuple[Bytes, Bytes]
"""Starts and ends of bytes, ascending, apart from each other."""


@dataclass(frozen=True, eq=False, slots=True)
class Distances:
    """The distances of the cores' bytes from the first core's in a tensor, [cores].

    `rows` are those of neighbours that lie evenly, and ahead of each other; `unit` divides every
    distance, 0 if there is none but 0.
    """

    values: Addresses
    rows: tuple[Rows, ...]
    low: int
    high: int
    unit: int

    @staticmethod
    def of(values: Addresses) -> "Distances":
        """Prepare the distances of a group, the first one 0."""
        # Rows let a strided view serve evenly spaced cores without a gather; the greatest common
        # divisor tells which element sizes every core's address is aligned to, if the first one's
        # is.
        unit = int(np.gcd.reduce(values))
        rows = tuple(_evenly(values.tolist()))
        return Distances(values, rows, int(values.min()), int(values.max()), unit)


def _evenly(values: list[int]) -> Iterator[Rows]:
    """Yield distances as rows of as many in a row as lie evenly."""
    # Example: [0, 64, 128, 512, 576] gives (3 cores, step 64, from 0), (2 cores, step 64, from
    # 512). A step is never negative: such a core begins a row of its own.
    begin, count = 0, len(values)
    while begin < count:
        end = begin + 1
        step = max(values[end] - values[begin], 0) if end < count else 0
        while end < count and values[end] - values[end - 1] == step:
            end += 1
        yield end - begin, step if end - begin > 1 else 0, values[begin]
        begin = end


class GroupAliasing:
    """The distances of a group's cores, and the bytes that its first core read and wrote.

    `joins`: accesses are joined, so that distances never change. `names` tell the cores from those
    of other groups; without them no other group has had one of them.
    """

    def __init__(
        self, cores: int, *, joins: bool = True, names: Sequence[Hashable] | None = None
    ) -> None:
        self.cores, self._joins = cores, joins
        self.names = names or [(id(self), number) for number in range(cores)]
        # By (tensor, raw distances): equal distances are one object, since `shared_memory` tells
        # classes of accesses apart by the identity of their distances.
        self._interned: dict[tuple[int, bytes], Distances] = {}
        self._distances: dict[int, Distances] = {}
        # By (tensor, whether written): accesses as they come, and what they were joined to when
        # they became many. Only the first core's are kept; the others' are these, moved.
        self._noted: dict[tuple[int, bool], set[tuple[Footprint, int]]] = {}
        self._runs: dict[tuple[int, bool], Runs] = {}

    def agree(self, tensor: int, values: Addresses) -> bool:
        """Take the distances in the tensor that starts at `tensor`; False if others are known."""
        taken = self._distances.get(tensor)
        if taken is None:
            self._distances[tensor] = Distances.of(values)
            return True
        return np.array_equal(taken.values, values)

    def current(self, tensor: int) -> Addresses | None:
        """Return the distances in the tensor that starts at `tensor`; None if none are known."""
        taken = self._distances.get(tensor)
        return None if taken is None else taken.values

    def move(self, tensor: int, values: Addresses) -> None:
        """Take other distances in a tensor from here on, where accesses are followed one by one.

        Raises
        ------
        UnevenError
            If they differ from those known, and accesses are joined.
        """
        if self._joins:
            if not self.agree(tensor, values):
                raise UnevenError("distances that change")
            return
        key = tensor, values.tobytes()
        interned = self._interned.get(key)
        if interned is None:
            interned = self._interned[key] = Distances.of(values)
        self._distances[tensor] = interned

    def far_at(self, gm: GlobalMemory, address: int) -> Addresses:
        """Return the distances of an address, in whichever tensor, or before all, it lies."""
        (owner,) = gm.owners(np.array([address], np.int64)).tolist()
        return self._distances[owner].values

    def distances(self, tensor: GlobalTensor) -> Distances:
        """Return the distances in a tensor.

        Raises
        ------
        DivergenceError
            If the distances are not known, as an address counts from another tensor.
        """
        taken = self._distances.get(tensor.address)
        if taken is None:
            raise DivergenceError("an address that was counted from another tensor")
        return taken

    def visible(self, tensor: GlobalTensor | None, low: int, high: int) -> GlobalTensor:
        """Return the tensor, in which [low, high) of the first core, and all others', lie.

        Raises
        ------
        DivergenceError
            If a core's bytes lie outside the tensor.
        """
        if tensor is None:
            raise DivergenceError("a core leaves its tensor")
        far = self.distances(tensor)
        if low + far.low < tensor.address or high + far.high > tensor.end:
            raise DivergenceError("a core leaves its tensor")
        return tensor

    def meets_itself(self, tensor: GlobalTensor, extent: int) -> bool:
        """Return whether cores lie nearer to each other in a tensor than so many bytes."""
        apart = np.diff(np.sort(self.distances(tensor).values))
        return bool((apart < extent).any())

    def note(self, tensor: GlobalTensor, touched: Footprint, address: int, *, writes: bool) -> None:
        """Remember an access of the first core."""
        key = tensor.address, writes
        noted = self._noted.get(key)
        if noted is None:
            noted = self._noted[key] = set()
        noted.add((touched, address))
        if len(noted) >= _MOST_NOTED:
            self._join(tensor.address, writes=writes)

    def _join(self, tensor: int, *, writes: bool) -> Runs:
        # Accesses since the last time are merged with the runs so far. `_MOST_NOTED` bounds the
        # memory; a sort is paid once per so many accesses.
        key = tensor, writes
        noted = self._noted.pop(key, set())
        pieces = [(touched.starts + at, touched.ends + at) for touched, at in noted]
        if key in self._runs:
            pieces.append(self._runs[key])
        starts, ends = (np.concatenate(parts) for parts in zip(*pieces, strict=True))
        self._runs[key] = runs = _joined(starts, ends)
        return runs

    def has_written(self, tensor: int) -> bool:
        """Return whether something was written to a tensor."""
        return (tensor, True) in self._noted or (tensor, True) in self._runs

    @property
    def written(self) -> set[int]:
        """The tensors that something was written to, by their addresses."""
        return {tensor for tensor, writes in (*self._noted, *self._runs) if writes}

    def all_runs(self, tensor: int, *, writes: bool) -> Iterator[Runs]:
        """Yield what each core read or wrote in a tensor."""
        key = tensor, writes
        if key not in self._noted and key not in self._runs:
            yield from [(np.zeros(0, np.int64), np.zeros(0, np.int64))] * self.cores
            return
        joined = self._join(tensor, writes=writes) if key in self._noted else self._runs[key]
        starts, ends = joined
        for distance in self._distances[tensor].values:
            yield starts + distance, ends + distance


def _joined(starts: Bytes, ends: Bytes) -> Runs:
    """Return runs of bytes joined where they meet."""
    # Sorted by start, with the running maximum of ends: a new run begins where a start lies beyond
    # all ends before it.
    order = np.argsort(starts, kind="stable")
    starts, ends = starts[order], np.maximum.accumulate(ends[order])
    apart = np.flatnonzero(starts[1:] > ends[:-1])
    first = np.concatenate([[0], apart + 1])
    last = np.concatenate([apart, [starts.size - 1]])
    return starts[first], ends[last]


def written_by_others(
    groups: Iterable[GroupAliasing], tensor: int, core: Hashable, low: int, high: int
) -> bool:
    """Return whether another core than this one has written bytes [low, high) of a tensor."""
    for aliasing in groups:
        if not aliasing.has_written(tensor):
            continue
        of_cores = aliasing.all_runs(tensor, writes=True)
        for name, (starts, ends) in zip(aliasing.names, of_cores, strict=True):
            # Runs are disjoint and ascending: the first one that ends behind `low` is the only one
            # that need be looked at; it overlaps if it starts before `high`.
            first = int(ends.searchsorted(low, side="right"))
            if name != core and first < starts.size and starts[first] < high:
                return True
    return False


def require_apart(groups: Iterable[GroupAliasing]) -> None:
    """Require that no core touched bytes that another one wrote.

    Raises
    ------
    UnorderedError
        If a core touches bytes that another one wrote.
    """
    reaches = list(groups)
    if any(_meet(reaches, tensor) for tensor in set().union(*(r.written for r in reaches))):
        raise UnorderedError("a core touches what another one writes")


def _meet(aliasings: list[GroupAliasing], tensor: int) -> bool:
    # Two sweeps over sorted runs instead of comparing each pair of cores. First, written runs of
    # all cores in order: each core's own are disjoint, so any overlap of neighbours is of two
    # cores.
    written, read = (_by_core(aliasings, tensor, writes=writes) for writes in (True, False))
    starts, ends, owners = _together(written)
    if np.any(starts[1:] < ends[:-1]):
        return True
    # Second, what is read: the written runs [first, last] that a read overlaps must all be the
    # reader's own. `changes` numbers stretches of one owner, so that "all" is two look-ups: the
    # same number at both ends, and the reader as the owner of the first.
    changes = np.cumsum(np.concatenate([[0], owners[1:] != owners[:-1]]))
    low, high, readers = _together(read)
    first = np.searchsorted(ends, low, side="right")
    last = np.searchsorted(starts, high, side="left") - 1
    hit = np.flatnonzero(first <= last)
    owned = owners[first[hit]] == readers[hit]
    alone = changes[first[hit]] == changes[last[hit]]
    return not bool((owned & alone).all())


def _by_core(aliasings: list[GroupAliasing], tensor: int, *, writes: bool) -> list[Runs]:
    """Return what each core read or wrote in a tensor, in whichever groups it was."""
    # A core may have been in several groups, after a divergence: its runs are united, or a core
    # would seem to conflict with itself.
    by_core: dict[Hashable, Runs] = {}
    for aliasing in aliasings:
        runs_by_core = aliasing.all_runs(tensor, writes=writes)
        for name, runs in zip(aliasing.names, runs_by_core, strict=True):
            before = by_core.get(name)
            if before is not None and before[0].size and runs[0].size:
                starts, ends = (np.concatenate(parts) for parts in zip(before, runs, strict=True))
                by_core[name] = _joined(starts, ends)
            elif before is None or runs[0].size:
                by_core[name] = runs
    return list(by_core.values())


def _together(runs: list[Runs]) -> tuple[Bytes, Bytes, Array]:
    """Return the runs of all cores in order, each with the number of its core."""
    owners = np.repeat(np.arange(len(runs)), [starts.size for starts, _ in runs])
    starts = np.concatenate([starts for starts, _ in runs])
    ends = np.concatenate([ends for _, ends in runs])
    order = np.argsort(starts, kind="stable")
    return starts[order], ends[order], owners[order]


_Held = tuple[NDArray[np.uint8] | int, NDArray[np.uint8] | int]
"""A tensor's bytes and map, each a number if all are alike."""


class Snapshots:
    """The contents of global memory before its first write."""

    def __init__(self) -> None:
        self._kept: dict[int, tuple[GlobalTensor, _Held]] = {}

    def keep(self, tensor: GlobalTensor) -> None:
        """Remember a tensor that is about to be written."""
        if tensor.address not in self._kept:
            self._kept[tensor.address] = tensor, _held(tensor)

    def restore(self) -> None:
        """Put back what instructions wrote."""
        # Only bytes that instructions may have written are put back; stores of the host in between
        # stay. A tensor that has an origin takes it from there, so that only what lies behind it
        # was kept.
        for tensor, (data, valid) in self._kept.values():
            buffer, issued = _whole(tensor), tensor.issued
            where = True if issued is None else issued.marked(0, buffer.size_bytes)
            np.copyto(buffer.data, data, where=where)
            np.copyto(buffer.valid, valid, where=where)
            if tensor.origin is not None:
                where = where if issued is None else issued.marked(0, tensor.origin.size)
                np.copyto(tensor.buffer.data, tensor.origin, where=where)
                tensor.buffer.valid[:] = 1


def _held(tensor: GlobalTensor) -> _Held:
    """Return what a tensor holds; of one that has an origin, what lies behind it."""
    if tensor.origin is not None:
        return POISON_BYTE, 0
    data, valid = _whole(tensor).data, _whole(tensor).valid
    if data.size and not valid.any() and data.min() == data.max():
        return int(data[0]), 0
    return _copy(data), _copy(valid)


def _copy(held: NDArray[np.uint8]) -> NDArray[np.uint8]:
    copied = np.empty(held.size, np.uint8)
    copied[:] = held
    return copied


def _whole(tensor: GlobalTensor) -> MemoryBuffer:
    """Return a tensor's bytes with those behind it, which an access may reach."""
    return tensor.wide if tensor.wide.size_bytes else tensor.buffer
