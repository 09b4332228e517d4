"""What timing answers: frozen records."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class Stall:
    """Cycles that a pipe stood still for one reason, averaged over the cores."""

    pipe: str
    reason: str
    cycles: int

    def to_json(self) -> dict[str, Any]:
        """Return the stall as JSON."""
        return {"pipe": self.pipe, "reason": self.reason, "cycles": self.cycles}


@dataclass(frozen=True, slots=True)
class Segment:
    """One instruction on one pipe of a group's cores: when it ran, in cycles."""

    pipe: str
    name: str
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class CoreTime:
    """One group of cores that run the same tree: which, when they end, and what their pipes did.

    `part` is what each of them is: a ``core``, an ``AIV`` of a vector kernel, or of a mixed one the
    ``AIC``, ``AIV0`` or ``AIV1``; `cores` has a core's number for each of its AIVs.
    `segments` holds the first instructions of the group, as many as were asked for, of `started`,
    which counts all by pipe.
    """

    program: str
    cores: tuple[int, ...]
    end_cycles: int
    busy_cycles: dict[str, int]
    segments: tuple[Segment, ...] = ()
    part: str = "core"
    started: Mapping[str, int] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """Return the group as JSON."""
        return {
            "program": self.program,
            "part": self.part,
            "cores": list(self.cores),
            "end_cycles": self.end_cycles,
            "busy_cycles": self.busy_cycles,
        }


@dataclass(frozen=True, slots=True)
class Timeline:
    """When a launch ends, and where its cycles go.

    `cycles` counts from the launch to the end of the slowest core. Pipe times are averages over the
    cores, as profilers give them; of a launch on AICs and AIVs they are averages over each kind,
    which stands before the pipe's name. `tflops` and `utilisation` (of the Cube's peak over all AI
    Cores of the chip) are None where the launch is not a product.
    """

    cycles: int
    us: float
    limited_by: str
    pipes: dict[str, int]
    stalls: tuple[Stall, ...]
    groups: tuple[CoreTime, ...]
    issued: int
    read_bytes: int
    hbm_read_bytes: int
    written_bytes: int
    tflops: float | None = None
    utilisation: float | None = None
    simulated_fraction: float = 1.0

    def to_json(self) -> dict[str, Any]:
        """Return the public contract's keys."""
        return {
            "us": self.us,
            "cycles": self.cycles,
            "limited_by": self.limited_by,
            "tflops": self.tflops,
            "utilisation": self.utilisation,
            "pipes": {
                name: {"busy_cycles": busy, "share": busy / self.cycles if self.cycles else 0.0}
                for name, busy in self.pipes.items()
            },
            "stalls": [stall.to_json() for stall in self.stalls],
            "cores": [group.to_json() for group in self.groups],
            "issued": self.issued,
            "bytes": {
                "read": self.read_bytes,
                "read_from_device_memory": self.hbm_read_bytes,
                "written": self.written_bytes,
            },
            "simulated_fraction": self.simulated_fraction,
        }
