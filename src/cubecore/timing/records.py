"""Results of timing: frozen records."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from cubecore.isa.declare.instruction import InnerCall
from cubecore.isa.declare.remark import Line
from cubecore.isa.program.tree import Location


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
    """One instruction on one pipe of a group's cores: when it ran, in cycles.

    What it makes is there at `done`, which for a load is later than its `end`. `cause` is what the
    pipe waited for before it, empty where it followed another without a gap. `operand` names what
    it moves (A, B, C), where that is known; `parts` what happens inside of it.
    """

    pipe: str
    name: str
    start: int
    end: int
    done: int = 0
    cause: str = ""
    operand: str = ""
    line: Line | None = None
    parts: tuple[InnerCall, ...] = ()

    @property
    def inside(self) -> Iterator["Segment"]:
        """The events inside of it, as segments whose pipes are lanes of the pipe."""
        for part in self.parts:
            times = self.end + part.start, self.end + part.end
            yield Segment(part.lane, part.name, *times, cause=part.cause, line=part.line)


@dataclass(frozen=True, slots=True)
class LineTime:
    """The part of a launch that one source line, reached by one path of calls, takes.

    `location` is None for what a kernel does before its first instruction. Cycles are averages over
    the cores, as `Timeline` has them: over all lines they add up to its pipes and its stalls.
    `instructions` and `bytes`, those moved from and to global memory, are of all cores together.
    `text` is the line as its author wrote it, empty where the file is not at hand.
    """

    location: Location | None
    busy_cycles: Mapping[str, int]
    stalls: tuple[Stall, ...]
    instructions: int
    bytes: int
    text: str = ""

    @property
    def busy(self) -> int:
        """Busy cycles of all pipes together."""
        return sum(self.busy_cycles.values())

    @property
    def stall_cycles(self) -> int:
        """Cycles that pipes stood still before what the line issues."""
        return sum(stall.cycles for stall in self.stalls)

    def to_json(self) -> dict[str, Any]:
        """Return the line as JSON; `call` is the function of the API that it calls, if known."""
        where = self.location
        return {
            "file": None if where is None else where.file,
            "line": None if where is None else where.line,
            "function": None if where is None else where.function,
            "call": "" if where is None else where.call,
            "callers": [] if where is None else [str(caller) for caller in where.callers],
            "text": self.text,
            "busy_cycles": dict(self.busy_cycles),
            "stall_cycles": self.stall_cycles,
            "stalls": [stall.to_json() for stall in self.stalls],
            "instructions": self.instructions,
            "bytes": self.bytes,
        }


@dataclass(frozen=True, slots=True)
class PathStep:
    """A step of a critical path: from when to when the end waited for this instruction.

    `number` is its place among its pipe's recorded instructions, None for the scalar unit's work.
    """

    pipe: str
    name: str
    start: int
    end: int
    number: int | None = None


@dataclass(frozen=True, slots=True)
class CriticalPath:
    """The path of a group from its start to the end of what was recorded, first step first.

    `complete` says whether all that the group ran was recorded. `cycles` are the path's by pipe;
    they add up to the time that it covers, ``start-up`` being what no instruction takes.
    """

    steps: tuple[PathStep, ...]
    cycles: dict[str, int]
    complete: bool

    def to_json(self) -> dict[str, Any]:
        """Return the path's cycles by pipe, and how many steps it has."""
        return {"cycles": self.cycles, "steps": len(self.steps), "complete": self.complete}


@dataclass(frozen=True, slots=True)
class Link:
    """The traffic over a link of the chip, all cores together, and the link's capacity.

    `bytes_per_second` is over the whole run, the launch left out; `peak_bytes_per_second` is None
    where no source gives the link's rate.
    """

    name: str
    bytes: int
    bytes_per_second: float
    peak_bytes_per_second: float | None

    @property
    def share(self) -> float | None:
        """Achieved over possible."""
        peak = self.peak_bytes_per_second
        return None if peak is None else self.bytes_per_second / peak

    def to_json(self) -> dict[str, Any]:
        """Return the link as JSON."""
        return {
            "link": self.name,
            "bytes": self.bytes,
            "bytes_per_second": self.bytes_per_second,
            "peak_bytes_per_second": self.peak_bytes_per_second,
            "share": self.share,
        }


@dataclass(frozen=True, slots=True)
class OperandReads:
    """The bytes of an operand that all cores read, and those of them that L2 did not hold.

    `name` is the tensor's, or the matrix that it is: A, B.
    """

    name: str
    read_bytes: int
    missed_bytes: int

    @property
    def hit_rate(self) -> float:
        """The share of the bytes that L2 held; 1 of none."""
        return 1 - self.missed_bytes / self.read_bytes if self.read_bytes else 1.0

    def to_json(self) -> dict[str, Any]:
        """Return the operand as JSON."""
        return {
            "operand": self.name,
            "read_bytes": self.read_bytes,
            "missed_bytes": self.missed_bytes,
            "l2_hit_rate": self.hit_rate,
        }


@dataclass(frozen=True, slots=True)
class CoreTime:
    """One group of cores that run the same tree: which, when they end, and what their pipes did.

    `part` is what each of them is: a ``core``, an ``AIV`` of a vector kernel, or of a mixed one the
    ``AIC``, ``AIV0`` or ``AIV1``; `cores` has a core's number for each of its AIVs.
    `segments` holds the first instructions of the group, as many as were asked for, of `started`,
    which counts all by pipe. `aside` holds what happened beside them until then: a wait of a pipe,
    named by what it was for, and the scalar unit's own work. `path` is the critical path over what
    was recorded, None where nothing was.
    """

    program: str
    cores: tuple[int, ...]
    end_cycles: int
    busy_cycles: dict[str, int]
    segments: tuple[Segment, ...] = ()
    part: str = "core"
    started: Mapping[str, int] = field(default_factory=dict)
    aside: tuple[Segment, ...] = ()
    path: CriticalPath | None = None

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
    """The timeline of a launch: its end, and the cycles of every pipe.

    `cycles` counts from the launch to the end of the slowest core. Pipe times are averages over the
    cores, as profilers give them; of a launch on AICs and AIVs they are averages over each kind,
    which stands before the pipe's name. `tflops` and `utilisation` (of the Cube's peak over all AI
    Cores of the chip) are None where the launch is not a product. `lines` are the source lines,
    the busiest first, where they were asked for; `operands` are reads of global memory by operand.
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
    links: tuple[Link, ...] = ()
    lines: tuple[LineTime, ...] = ()
    operands: tuple[OperandReads, ...] = ()

    @property
    def critical(self) -> CriticalPath | None:
        """The critical path of the group that ends last; None where nothing was recorded."""
        slowest = max(self.groups, key=lambda group: group.end_cycles, default=None)
        return None if slowest is None else slowest.path

    def to_json(self) -> dict[str, Any]:
        """Return the public contract's keys; ``critical_path`` where instructions were recorded."""
        path = self.critical
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
            "links": [link.to_json() for link in self.links],
            "operands": [operand.to_json() for operand in self.operands],
            "simulated_fraction": self.simulated_fraction,
            **({} if path is None else {"critical_path": path.to_json()}),
        }
