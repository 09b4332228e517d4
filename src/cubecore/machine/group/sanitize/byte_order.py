"""The order in which cores touch bytes that they share: that of lockstep against each one's turns.

Accesses are entered as the cores make them one after another, each with the number that it had in
lockstep. Two cores that meet in a block of bytes, one of them writing, must have done so in that
order; else the results are another order's.
"""

import numpy as np
from numpy.typing import NDArray

from cubecore.machine.memory.buffers import GM_GUARD_BYTES, GlobalMemory, GlobalTensor
from cubecore.machine.memory.footprint import Footprint
from cubecore.units import distinct

_BLOCK_BITS = 5
"""Accesses that share 32 B are taken to meet."""
_Numbers = NDArray[np.int64]


class ByteOrder:
    """The last accesses of each block of global memory, and which cores met there in which order.

    `met` says for pairs of cores, by number, of which the first came first, whether lockstep had
    the other one first.
    """

    def __init__(self, gm: GlobalMemory, cores: int) -> None:
        self._gm, self._cores = gm, cores
        self._blocks: dict[int, tuple[_Numbers, _Numbers]] = {}
        self.met: dict[tuple[int, int], bool] = {}

    def touch(
        self, number: int, core: int, touched: Footprint, address: int, *, writes: bool
    ) -> None:
        """Enter an access by a core, which was so many-th in lockstep."""
        tensor = self._gm.near(address + touched.low)
        if tensor is None:
            return
        # One integer holds both when and who: order * cores + core. Comparing two of them compares
        # the order in lockstep, and the remainder is the core.
        own = number * self._cores + core
        written, read = self._of(tensor)
        blocks = _blocks(touched, address - tensor.address, written.size)
        # A read conflicts with the last write, a write with the last write and the last read as
        # well. A block keeps only the latest read: its number decides whether lockstep had it
        # before.
        self._meet(core, own, written[blocks])
        if writes:
            self._meet(core, own, read[blocks])
            written[blocks] = own
        else:
            read[blocks] = np.maximum(read[blocks], own)

    def _of(self, tensor: GlobalTensor) -> tuple[_Numbers, _Numbers]:
        """Return the last write and the last read of each block of a tensor; -1 for none."""
        blocks = self._blocks.get(tensor.address)
        if blocks is None:
            count = (tensor.buffer.size_bytes + GM_GUARD_BYTES >> _BLOCK_BITS) + 1
            blocks = np.full(count, -1, np.int64), np.full(count, -1, np.int64)
            self._blocks[tensor.address] = blocks
        return blocks

    def _meet(self, core: int, own: int, before: _Numbers) -> None:
        if not before.size:
            return
        # `before` comes first in the cores' own turns. If its number is greater than this one's,
        # lockstep executed the two the other way round.
        others = before[(before >= 0) & (before % self._cores != core)]
        for other in distinct(others).tolist() if others.size else ():
            pair = other % self._cores, core
            self.met[pair] = self.met.get(pair, False) or other > own

    @property
    def kept(self) -> bool:
        """True if every two accesses had the same order in lockstep."""
        return not any(self.met.values())

    def levels(self) -> list[int] | None:
        """Return for each core when it must go, so that all whom it follows go before, or with it.

        None where cores take turns, so that some follow each other.
        """
        if any(first > second for first, second in self.met):
            return None
        # Cores execute in ascending order here, so that pairs (first, second) with first < second
        # form no cycle. Pairs are taken by their second core: the levels of all before it are
        # final. A pair that lockstep kept may share a level (weight 0); one that it reversed needs
        # the next (weight 1).
        levels = [0] * self._cores
        for first, second in sorted(self.met, key=lambda pair: pair[::-1]):
            levels[second] = max(levels[second], levels[first] + self.met[first, second])
        return levels


def _blocks(touched: Footprint, at: int, count: int) -> slice | NDArray[np.int64]:
    """Return the blocks of a footprint at a distance from the start of a tensor."""
    if touched.is_run:
        low, high = touched.low + at, touched.high + at
        return slice(max(low >> _BLOCK_BITS, 0), max((high - 1 >> _BLOCK_BITS) + 1, 0))
    # Expand each run [start, end) to its block numbers without a loop: repeat each run's first
    # block as often as it has blocks, and add 0, 1, 2, ... within the run.
    first = touched.starts + at >> _BLOCK_BITS
    counts = (touched.ends + at - 1 >> _BLOCK_BITS) - first + 1
    begins = np.cumsum(counts) - counts
    blocks = np.repeat(first - begins, counts) + np.arange(int(counts.sum()))
    return distinct(blocks[(blocks >= 0) & (blocks < count)])
