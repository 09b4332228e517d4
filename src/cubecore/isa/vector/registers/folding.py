"""Folding: a straight list of issued calls as loops, as the kernel's text had them.

A body that ran 128 trips of 10 calls was recorded as 1,280 entries. Equal calls at equal distances
become a loop, from the inside out, so that the executor makes 10 steps over arrays of 128 trips. A
list ``a b b c a b b c`` becomes ``2 x (a (2 x (b)) c)``. Addresses and scalars play no part: each
leaf has those of all its trips as an array.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Indices = NDArray[np.intp]
_MOST_PERIODS = 12
"""Distances that are tried as a loop's period at one place."""
_LONGEST_PERIOD = 512
"""Calls of the longest body that is looked for."""
_DEPTH = 6
"""Times that the list is gone through, each for loops around those of the last time."""


@dataclass(frozen=True, eq=False, slots=True)
class FoldedCall:
    """A call and the entries that it stands for, shaped by the trips of the loops around it."""

    entries: Indices
    number: int


@dataclass(frozen=True, eq=False, slots=True)
class FoldedLoop:
    """A body that runs some trips."""

    trips: int
    body: "tuple[FoldedCall | FoldedLoop, ...]"
    number: int


Node = FoldedCall | FoldedLoop


@dataclass(frozen=True, eq=False, slots=True)
class _Item:
    """One place of the list: a kind, the first entry, how many entries."""

    kind: int
    start: int
    size: int


class _Kinds:
    """Numbers of kinds: of a call its own, of a loop by its trips and its body's kinds."""

    def __init__(self, first: int, least: int) -> None:
        self._numbers: dict[tuple[int, ...], int] = {}
        self._first, self.least = first, least
        self.loops: dict[int, tuple[int, tuple[int, ...], tuple[int, ...]]] = {}
        """Of a loop's kind: trips, kinds of the body, and their sizes in entries."""

    def of_loop(self, trips: int, body: Sequence[_Item]) -> int:
        key = (trips, *(item.kind for item in body))
        number = self._numbers.setdefault(key, self._first + len(self._numbers))
        self.loops[number] = trips, key[1:], tuple(item.size for item in body)
        return number


def folded(kinds: NDArray[np.int64], least: int = 1) -> tuple[Node, ...]:
    """Return a list of calls, given by the numbers of their kinds, as loops and single calls.

    Bodies have `least` calls or more: equal calls that follow each other need not be a loop.
    """
    items = [_Item(int(kind), n, 1) for n, kind in enumerate(kinds)]
    numbers = _Kinds(int(kinds.max()) + 1 if kinds.size else 0, least)
    items = _with_loops(items, numbers)
    counter = iter(range(kinds.size * 2))
    starts = np.zeros((), np.intp)
    return tuple(_node(item.kind, starts + item.start, numbers, counter) for item in items)


def _with_loops(items: list[_Item], numbers: _Kinds) -> list[_Item]:
    for _ in range(_DEPTH):
        count = len(items)
        items = [*_once(items, numbers)]
        if len(items) == count:
            break
    return items


def _once(items: Sequence[_Item], numbers: _Kinds) -> Iterator[_Item]:
    """Yield the items with the loops that can be seen among them, each at its first place."""
    kinds = np.array([item.kind for item in items], np.int64)
    at = 0
    while at < len(items):
        period, trips = _repetition(kinds, at, numbers.least)
        if trips < 2:
            yield items[at]
            at += 1
            continue
        body = _with_loops([*items[at : at + period]], numbers)  # a loop may be seen before its own
        size = trips * sum(item.size for item in body)
        yield _Item(numbers.of_loop(trips, body), body[0].start, size)
        at += period * trips


def _repetition(kinds: NDArray[np.int64], at: int, least: int) -> tuple[int, int]:
    """Return the period and the trips of a loop that begins at a place; no trips: there is none."""
    # A period can only be a distance at which the same call comes again; the shortest that repeats
    # is the innermost loop.
    ahead = kinds[at + 1 : at + 1 + _LONGEST_PERIOD]
    periods = np.flatnonzero(ahead == kinds[at]) + 1
    for period in periods[periods >= least][:_MOST_PERIODS]:
        trips = 1 + _agreement(kinds, at, int(period)) // int(period)
        if trips > 1:
            return int(period), trips
    return 0, 0


def _agreement(kinds: NDArray[np.int64], at: int, period: int) -> int:
    """Return how many items from a place on equal those a period behind them."""
    most, chunk, agreed = kinds.size - period - at, 64, 0
    # In growing pieces: most candidates differ within the first, and long loops are compared in few
    # calls.
    while agreed < most:
        start, stop = at + agreed, at + min(agreed + chunk, most)
        differ = np.flatnonzero(kinds[start:stop] != kinds[start + period : stop + period])
        if differ.size:
            return agreed + int(differ[0])
        agreed, chunk = agreed + stop - start, 2 * chunk
    return agreed


def _node(kind: int, starts: Indices, numbers: _Kinds, counter: Iterator[int]) -> Node:
    """Return a kind as a node; `starts` are its first entries, by the trips of loops around it."""
    number = next(counter)
    if kind not in numbers.loops:
        return FoldedCall(starts, number)
    # A loop adds an axis: entry = start of the outer trip + trip * length of the body + offset
    # within.
    trips, kinds, sizes = numbers.loops[kind]
    offsets = np.cumsum([0, *sizes])
    of_trips = starts[..., None] + int(offsets[-1]) * np.arange(trips)
    body = tuple(
        _node(each, of_trips + int(offset), numbers, counter)
        for each, offset in zip(kinds, offsets[:-1], strict=True)
    )
    return FoldedLoop(trips, body, number)
