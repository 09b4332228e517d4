"""L2 and device memory, shared by all cores.

Cores that run the same tree march in step: one request stands for all of them, with the distinct
addresses that they ask for. A block that was touched before survives in L2 with a probability that
falls with the bytes brought in since (facts/timing_notes.md); device memory is one server.
"""

import math
from dataclasses import dataclass, field

from cubecore.chips import costs
from cubecore.chips.model import Chip

_STEPS = 64
"""Survival is counted in 64ths, so that equal states are equal on every machine."""


@dataclass(frozen=True, slots=True)
class Demand:
    """The addresses of one leaf over the cores of a group: distances from the first core's."""

    deltas: tuple[int, ...]
    cores_each: tuple[int, ...]

    @property
    def cores(self) -> int:
        """Cores that ask."""
        return sum(self.cores_each)


@dataclass(frozen=True, slots=True)
class Service:
    """The answer to a load: when it may start, what latency it sees, when its data is all there."""

    start: int
    latency: int
    data_at: int
    missing_bytes: int


@dataclass(eq=False)
class MemorySystem:
    """State: what L2 last saw of each block, and until when device memory is busy."""

    chip: Chip
    _touched: dict[int, int] = field(default_factory=dict)
    _clock_bytes: int = 0
    _busy_until: int = 0
    read_bytes: int = 0
    hbm_read_bytes: int = 0
    written_bytes: int = 0

    def __post_init__(self) -> None:
        chip = self.chip
        self._l2 = chip.require("l2_bytes", "timing")
        self._l2_latency: int = chip.require("l2_latency_cycles", "timing")
        self._hbm_latency: int = chip.require("hbm_latency_cycles", "timing")
        self._slack: int = chip.require("hbm_slack_cycles", "timing")
        chip.require("hbm_bytes_per_second", "timing")
        chip.require("frequency_hz", "timing")

    def load(self, time: int, size: int, row_bytes: int, address: int, demand: Demand) -> Service:
        """Serve a load of `size` bytes by every core of a group, ready to start at `time`."""
        missing_64ths = shared_64ths = 0
        for delta, cores in zip(demand.deltas, demand.cores_each, strict=True):
            gone = self._gone(address + delta)
            missing_64ths += gone
            shared_64ths += gone * cores
            self._touched[address + delta] = self._clock_bytes
        missing = size * missing_64ths // _STEPS
        self._clock_bytes += missing
        self.read_bytes += size * demand.cores
        self.hbm_read_bytes += missing
        spread = self._hbm_latency - self._l2_latency
        latency = self._l2_latency + spread * shared_64ths // (_STEPS * demand.cores)
        if not missing:
            return Service(time, latency, time, 0)
        free = max(self._busy_until, time - self._slack)
        self._busy_until = free + math.ceil(costs.hbm_cycles(self.chip, missing, row_bytes))
        return Service(max(time, free), latency, self._busy_until, missing)

    def store(self, time: int, size: int, row_bytes: int, address: int, demand: Demand) -> None:
        """Take `size` bytes from every core; once L2 is full, each byte evicts an older one."""
        total = size * len(demand.deltas)
        for delta in demand.deltas:
            self._touched[address + delta] = self._clock_bytes
        self._clock_bytes += total
        self.written_bytes += size * demand.cores
        if self._clock_bytes > self._l2:
            free = max(self._busy_until, time - self._slack)
            self._busy_until = free + math.ceil(costs.hbm_cycles(self.chip, total, row_bytes))

    def _gone(self, key: int) -> int:
        """Return the 64ths of a block that L2 no longer holds."""
        seen = self._touched.get(key)
        if seen is None:
            return _STEPS
        since = self._clock_bytes - seen
        return _STEPS - int(_STEPS * math.exp(-since / self._l2) + 0.5) if since else 0
