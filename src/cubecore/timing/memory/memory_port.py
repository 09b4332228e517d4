"""The memory port: L2 and device memory as a group of equal cores sees them.

What L2 still holds is decided by the launch's loops (`l2_reuse`). Device memory is one
server whose time the groups of a launch divide in proportion to what they miss: a group that misses
a third of the bytes finds the server three times as slow, and all groups that wait for it end
together. So groups need not be timed side by side.
"""

import math
from collections import deque
from dataclasses import dataclass, field
from functools import lru_cache

from cubecore.chips import costs
from cubecore.chips.model import Chip
from cubecore.isa.declare.instruction import GlobalTraffic
from cubecore.timing.memory.l2_reuse import STEPS, MemoryShare


@dataclass(frozen=True, slots=True)
class MemoryRequest:
    """The request of an access, for all cores of the group together.

    `server_cycles` of device memory in this group's part of its time, `latency_cycles` to the first
    byte, `more_cycles` of MTE2 for misses, for rows that start off a boundary and for rows that
    meet in one bank of L2, `bytes` over all cores, `missing_bytes` from device memory.
    """

    server_cycles: int
    latency_cycles: int
    more_cycles: int
    bytes: int
    missing_bytes: int


@dataclass(eq=False)
class MemoryPort:
    """State: until when device memory is busy with this group's requests.

    `busy_until` is when the launch's cores start: before that it is idle.

    The server is busy until `served` + the highest of its *peaks*: a request at `time` that finds
    it idle sets one at time - slack - served. `delays` counts the requests that it held up,
    `waited` the cycles for which nothing else was on its way.
    """

    chip: Chip
    part: float = 1.0
    written_back: int = 0
    busy_until: int = 0
    served: int = 0
    requests: int = 0
    delays: int = 0
    waited: int = 0
    read_bytes: int = 0
    hbm_read_bytes: int = 0
    written_bytes: int = 0
    slack: int = field(init=False)
    _peaks: deque[tuple[int, int]] = field(default_factory=lambda: deque(maxlen=_MOST_PEAKS))

    def __post_init__(self) -> None:
        for name in _NEEDED:
            self.chip.require(name, "timing")
        self.slack = self.chip.require("hbm_slack_cycles", "timing")

    def request(self, traffic: GlobalTraffic, share: MemoryShare, level: int = 0) -> MemoryRequest:
        """Return what one access asks for, by the `ReuseMark` level of its blocks."""
        chip, size = self.chip, traffic.size_bytes
        gone = share.gone[level]
        if traffic.writes:
            back = share.written_back
            gone = self.written_back if back is None else back
        missing = int(size * share.blocks * gone / STEPS)
        cycles = _server_cycles(chip, missing, traffic, self.part) if missing else 0
        near = chip.require("l2_latency_cycles", "timing")
        far = chip.require("hbm_latency_cycles", "timing")
        if traffic.of_ub and chip.hbm_ub_latency_cycles is not None:
            far = chip.hbm_ub_latency_cycles
        latency = near + (far - near) * gone // STEPS
        slower = share.off_cycles
        if not traffic.writes:
            misses = costs.gm_miss_cycles(chip, size * gone / STEPS, into_ub=traffic.of_ub)
            slower += int(misses + traffic.conflict_cycles * (STEPS - gone) / STEPS)
        return MemoryRequest(cycles, latency, slower, size * share.cores, missing)

    def load(self, time: int, request: MemoryRequest) -> tuple[int, int]:
        """Serve a load that is ready at `time`: return its start, and when all data is there.

        Device memory may work for it up to `slack` cycles before, as far as it was idle then.
        """
        self.read_bytes += request.bytes
        if not request.missing_bytes:
            return time, time
        self.hbm_read_bytes += request.missing_bytes
        free = self._serve(time, request.server_cycles)
        return max(time, free), self.busy_until

    def store(self, time: int, request: MemoryRequest) -> None:
        """Take what is stored; what L2 has no room for goes on to device memory."""
        self.written_bytes += request.bytes
        if request.missing_bytes:
            self._serve(time, request.server_cycles)

    def _serve(self, time: int, cycles: int) -> int:
        """Return when the server turns to a request of `time`."""
        earliest = time - self.slack
        free = max(self.busy_until, earliest)
        self._raise_peak(earliest - self.served)
        self.requests += 1
        self.served += cycles
        self.busy_until = free + cycles
        return free

    # --- what recurs

    def _raise_peak(self, peak: int) -> None:
        peaks = self._peaks
        # A peak that a later one reaches decides nothing any more: what is kept falls from the
        # oldest to the newest.
        while peaks and peaks[-1][1] <= peak:
            peaks.pop()
        peaks.append((self.requests, peak))

    def peak_since(self, request: int) -> int | None:
        """Return the highest peak from a request on; None where there is none, or it is forgotten.

        Only the latest are remembered, those that no later one exceeds.
        """
        if len(self._peaks) == _MOST_PEAKS and self._peaks[0][0] > request:
            return None
        return next((peak for number, peak in self._peaks if number >= request), None)

    def repeat(self, requests: int, cycles: int, shift: int, peak: int, periods: int) -> None:
        """Serve periods like one that is known, `shift` apart, right behind each other.

        Each has so many requests and cycles; `peak` is the highest of a period right before. The
        server keeps up, so peaks rise from period to period by shift - cycles, which is not
        negative, and the last one's decides.
        """
        # Each period serves `cycles` in `shift` cycles of time, so a request finds the server so
        # much more ahead each time.
        last = peak + periods * (shift - cycles)
        highest = max(self.busy_until - self.served, last)
        self._raise_peak(last)
        self.requests += periods * requests
        self.served += periods * cycles
        self.busy_until = self.served + highest


_MOST_PEAKS = 4096
_NEEDED = (
    *("l2_bytes", "l2_latency_cycles", "hbm_latency_cycles", "hbm_slack_cycles"),
    *("hbm_bytes_per_second", "frequency_hz"),
)


@lru_cache(maxsize=65536)
def _server_cycles(chip: Chip, size: int, traffic: GlobalTraffic, part: float) -> int:
    weight = (chip.hbm_write_weight or 1.0) if traffic.writes else 1.0
    cycles: float = costs.hbm_cycles(chip, size, traffic.row_bytes, of_ub=traffic.of_ub)
    return math.ceil(cycles * weight / part)
