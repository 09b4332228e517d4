"""The source line that wrote an element of an array in global memory, looked up in a launch."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from cubecore.frontends.kernels.session import KernelRun
from cubecore.isa.declare.instruction import Instruction
from cubecore.isa.program.topology import CoreId
from cubecore.isa.program.trace import InstructionTrace
from cubecore.isa.program.tree import Issue, LoadScalar, Location
from cubecore.machine.memory.footprint import Footprint, outside

if TYPE_CHECKING:
    from cubecore.frontends.tik.host.kernel import TikRun


@dataclass(frozen=True, slots=True)
class ElementWriter:
    """The last write of an element: its line, its core, and how many cores wrote the element."""

    location: Location
    core: str
    cores: int

    def __str__(self) -> str:
        """Return the line and its core."""
        others = f", the last of {self.cores} cores that did" if self.cores > 1 else ""
        return f"{self.location}, {self.core}{others}"


def writer_of(run: "KernelRun | TikRun", name: str, byte: int, size: int) -> ElementWriter | None:
    """Return what last wrote some bytes of an array, of the core with the highest number.

    None if no instruction did, or the launch kept none: stores through a plain pointer of C++ are
    no instructions.
    """
    base = base_of(run, name)
    wanted = Footprint.run(base + byte, base + byte + size)
    found = [(core, where) for core, where in _last_writes(run, wanted) if where is not None]
    if not found:
        return None
    core, where = found[-1]
    return ElementWriter(where, str(core), len(found))


def writes_into(run: "KernelRun | TikRun", name: str, size: int) -> bool:
    """Return whether an instruction of a launch, which kept them, wrote a byte of an array."""
    base = base_of(run, name)
    wanted = Footprint.run(base, base + size)
    return any(where is not None for _, where in _last_writes(run, wanted))


def reads_from(run: KernelRun, name: str, size: int) -> bool:
    """Return whether an instruction of a launch, which kept them, read a byte of an array."""
    base = base_of(run, name)
    wanted = Footprint.run(base, base + size)
    return any(_last_in_trace(trace, wanted, reads=True) for trace in run.traces.values())


def base_of(run: "KernelRun | TikRun", name: str) -> int:
    """Return the address of an array of a launch in its global memory."""
    if not isinstance(run, KernelRun):
        return run.bases[name]
    return next(tensor.address for host, tensor in run.tensors if host.name == name)


def _last_writes(
    run: "KernelRun | TikRun", wanted: Footprint
) -> Iterator[tuple[CoreId, Location | None]]:
    """Yield each core with the line of its last write of some bytes; None if it wrote none."""
    if run.traces or isinstance(run, KernelRun):
        for core, trace in run.traces.items():
            yield core, _last_in_trace(trace, wanted)
        return
    for each in run.launch.cores:
        sink = _LastWrite(wanted)
        each.program.run(sink, each.addresses(run.bases))
        yield CoreId(each.core, each.sub), sink.where


def _last_in_trace(
    trace: InstructionTrace, wanted: Footprint, *, reads: bool = False
) -> Location | None:
    """Return the line of the last instruction of a trace that wrote some bytes, or read them."""
    kinds = np.frombuffer(trace.kinds, np.uint32)
    addresses = np.frombuffer(trace.addresses, np.int64)
    widths = np.array([len(mems) for mems in trace.names.mems], np.int64)
    starts = np.cumsum(widths[kinds]) - widths[kinds]
    last = -1
    for kind in np.unique(kinds):
        for number, touched, writes in outside(trace.templates[kind]):
            if writes == reads:
                continue
            issues = np.flatnonzero(kinds == kind)
            at = addresses[starts[issues] + number]
            near = (at + touched.low < wanted.high) & (at + touched.high > wanted.low)
            for issue, address in zip(issues[near][::-1], at[near][::-1], strict=True):
                if issue <= last:
                    break
                if touched.at(int(address)).first_common(wanted) is not None:
                    last = int(issue)
                    break
    if last < 0:
        return None
    where = trace.locations[trace.wheres[last]]
    return trace.names.with_callers([where]).get(id(where), where)


class _LastWrite:
    """A sink that keeps the line of the last write of some bytes."""

    def __init__(self, wanted: Footprint) -> None:
        self._wanted = wanted
        self.where: Location | None = None

    def handler(self, issue: Issue) -> Callable[..., None]:
        """Return what is called for each instruction of a leaf."""
        late = len(issue.late)

        def look(*values: int) -> None:
            if self._writes(issue.bound(values[:late]), values[late:]):
                self.where = issue.location

        return look

    def load_scalar(self, load: LoadScalar, address: int) -> int:
        """Refuse: a launch that reads scalars kept its instructions."""
        raise TypeError(f"a launch without its instructions has no {load.target.name} at {address}")

    def _writes(self, template: Instruction, addresses: tuple[int, ...]) -> bool:
        return any(
            writes and touched.at(addresses[number]).first_common(self._wanted) is not None
            for number, touched, writes in outside(template)
        )
