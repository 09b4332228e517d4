"""The work of each leaf of a program: cycles, stalls and bytes, as a log that NumPy adds up.

A walk appends a number for each block of leaves that it issues, and a pair for what an instruction
takes. A period that is skipped is a range of the log and how often it happens again.
"""

from array import array
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from cubecore.isa.program.tree import Issue
from cubecore.timing.pipes.queues import NAMES, SCALAR

Counts = NDArray[np.int64]
BYTES = "bytes"
BUSY = "busy"


class LogMark(NamedTuple):
    """A position in a log: its blocks, its amounts, and its repeats so far."""

    blocks: int
    amounts: int
    repeats: int


class Amount(NamedTuple):
    """The kind of an amount: the leaf's number, bytes or busy cycles or a stall of a pipe."""

    leaf: int
    kind: str
    pipe: str = ""


class _Repeat(NamedTuple):
    begin: LogMark
    end: LogMark
    times: int


@dataclass(eq=False, slots=True)
class IssueLog:
    """The log of one walk. `leaf` is the one whose instruction starts, on any pipe but the scalar.

    `spans` are the blocks: the number of a block's first leaf, and how many it has; a block's
    leaves are issued one after another. `first` is what had been issued when the last one began.
    """

    leaf: int = 0
    first: int = 0
    leaves: Sequence[Issue] = ()
    spans: Sequence[tuple[int, int]] = ()
    blocks: "array[int]" = field(default_factory=lambda: array("q"))
    kinds: "array[int]" = field(default_factory=lambda: array("q"))
    amounts: "array[int]" = field(default_factory=lambda: array("q"))
    repeats: list[_Repeat] = field(default_factory=list)
    _kind_numbers: dict[Amount, int] = field(default_factory=dict)
    _leaf_numbers: dict[Issue, int] = field(default_factory=dict)

    def take(self, leaves: Sequence[Issue], spans: Sequence[tuple[int, int]]) -> None:
        """Take the leaves of the program that is walked, and its blocks."""
        self.leaves, self.spans = leaves, spans
        self._leaf_numbers = {leaf: number for number, leaf in enumerate(leaves)}

    def number(self, leaf: Issue) -> int:
        """Return the number of a leaf."""
        return self._leaf_numbers[leaf]

    def kind(self, kind: Amount) -> int:
        """Return the number of a kind of amounts."""
        return self._kind_numbers.setdefault(kind, len(self._kind_numbers))

    def begin(self, block: int, issued: int) -> None:
        """Note that a block begins, `issued` instructions having been issued before."""
        self.blocks.append(block)
        self.first = issued

    def again(self, times: int) -> None:
        """Note that the block that just began is issued so many times more; -1: not at all."""
        if times:
            here = self.mark()
            begin = LogMark(here.blocks - 1, here.amounts, here.repeats)
            self.repeats.append(_Repeat(begin, here, times))

    def add(self, kind: int, amount: int) -> None:
        """Note an amount."""
        self.kinds.append(kind)
        self.amounts.append(amount)

    def stall(self, pipe: str, reason: str, cycles: int, issued: int) -> None:
        """Note a stall: of the scalar unit, at what is issued as number `issued`; or of a pipe."""
        leaf = self.leaf
        if pipe == NAMES[SCALAR]:
            first, count = self.spans[self.blocks[-1]]
            # A block's leaves are issued in a row, so that the count since its begin is the leaf.
            leaf = first + min(issued - self.first, count) - 1
        self.add(self.kind(Amount(leaf, reason, pipe)), cycles)

    # --- what recurs

    def mark(self) -> LogMark:
        """Return where the log is."""
        return LogMark(len(self.blocks), len(self.amounts), len(self.repeats))

    def repeat(self, begin: LogMark, end: LogMark, times: int) -> None:
        """Note that all from one mark to another happens so many times again."""
        self.repeats.append(_Repeat(begin, end, times))

    # --- sums

    def sums(self) -> tuple[Counts, dict[Amount, int]]:
        """Return how often each leaf was issued, and the sum of each kind of amounts."""
        blocks, amounts = self._weights()
        of_blocks = _added(np.frombuffer(self.blocks, np.int64), blocks, len(self.spans))
        issued = np.zeros(len(self.leaves), np.int64)
        for (first, count), times in zip(self.spans, of_blocks.tolist(), strict=True):
            issued[first : first + count] += times
        each = np.frombuffer(self.amounts, np.int64) * amounts
        kinds = np.frombuffer(self.kinds, np.int64)
        totals = _added(kinds, each, len(self._kind_numbers))
        return issued, dict(zip(self._kind_numbers, totals.tolist(), strict=True))

    def _weights(self) -> tuple[Counts, Counts]:
        """Return how often each block, and each amount, of the log happened.

        A repeat that lies in a later one happens as often as that says: the last one goes first.
        """
        blocks = np.ones(len(self.blocks), np.int64)
        amounts = np.ones(len(self.amounts), np.int64)
        repeats = np.ones(len(self.repeats), np.int64)
        # From the last to the first: what a repeat says of earlier ones is complete before they are
        # counted themselves.
        for number in range(len(self.repeats) - 1, -1, -1):
            begin, end, times = self.repeats[number]
            more = times * repeats[number]
            blocks[begin.blocks : end.blocks] += more
            amounts[begin.amounts : end.amounts] += more
            repeats[begin.repeats : end.repeats] += more
        return blocks, amounts


def _added(numbers: Counts, amounts: Counts, count: int) -> Counts:
    """Return the sum of the amounts of each number, exactly."""
    # Exact sums of int64: `np.bincount` with weights adds in float64.
    # Sorted by number, a running sum: the sum of one number is the difference of the running sum at
    # the ends of its stretch and of the one before.
    order = np.argsort(numbers, kind="stable")
    totals = np.zeros(count + 1, np.int64)
    np.cumsum(amounts[order], out=amounts)
    ends = np.searchsorted(numbers[order], np.arange(count), side="right")
    totals[1:] = np.where(ends > 0, amounts[ends - 1], 0) if amounts.size else 0
    return np.diff(totals)
