"""Findings of a core's watch, in words: races, lost results, flags, lines of the data cache."""

from collections.abc import Sequence
from dataclasses import replace

from cubecore.cache import BoundedCache
from cubecore.isa.declare.instruction import Mem
from cubecore.isa.program.topology import CoreId
from cubecore.isa.program.tree import Location
from cubecore.isa.scalar.load import CachedLoad
from cubecore.isa.scalar.sync import SetFlag, WaitFlag
from cubecore.machine.memory.buffers import GlobalMemory
from cubecore.machine.sanitize.finding_log import CountedFinding, FindingLog
from cubecore.machine.sanitize.findings import FindingAccess, SanitizerFinding
from cubecore.machine.sanitize.flags import PIPES, FlagFault
from cubecore.machine.sanitize.shadow_memory import Clash, MemoryAccess

HOW = {"raw": ("write", "read"), "war": ("read", "write"), "waw": ("write", "write")}
"""The earlier and the later access of each hazard."""


def finding_access(
    gm: GlobalMemory, clash: Clash, touch: MemoryAccess, how: str, pipe: str, core: str
) -> FindingAccess:
    """Return one access of a finding, of a tensor where global memory has one there."""
    memory, low, high = touch.mem.label, clash.low, clash.high
    if (place := gm.windows.place(low)) is not None:
        memory, start = place
        low, high = low - start, high - start
    elif touch.mem is Mem.GM:
        tensor = gm.at(low)
        if tensor is not None:
            memory, low, high = tensor.name, low - tensor.address, high - tensor.address
    return FindingAccess(
        how=how,
        instruction=touch.template.name,
        operand=touch.operand,
        pipe=pipe,
        memory=memory,
        start=low,
        end=high,
        core=core,
        location=touch.where,
    )


_PAST = {"read": "read them", "write": "wrote them"}


def race_sentence(earlier: FindingAccess, later: FindingAccess, *, same_core: bool) -> str:
    """Return what a race should be, is, and the remedy."""
    subject = (
        f"{later.instruction}.{later.operand} must {later.how} bytes [{later.start}, {later.end}) "
        f"of {later.memory} after {earlier.instruction}.{earlier.operand}"
    )
    past = _PAST[earlier.how]
    if not same_core:
        return (
            f"{subject} of {earlier.core} {past}, got no order between {earlier.core} "
            f"({earlier.pipe}, {earlier.location}) and {later.core} ({later.pipe}, "
            f"{later.location}); signal {later.core} after the {earlier.how} and wait there"
        )
    if earlier.pipe == later.pipe:
        return (
            f"{subject} {past}, got both on {later.pipe} ({earlier.location} and "
            f"{later.location}) with no pipe_barrier({later.pipe}) between them; put one there"
        )
    pair = f"{earlier.pipe}, {later.pipe}"
    return (
        f"{subject} {past}, got no order between {earlier.pipe} ({earlier.location}) and "
        f"{later.pipe} ({later.location}); set_flag({pair}) after the {earlier.how} and "
        f"wait_flag({pair}) before the {later.how}"
    )


def overwritten_finding(gm: GlobalMemory, clash: Clash, core: str) -> tuple[SanitizerFinding, str]:
    """Return the finding about an array that another one overwrites, and what tells it apart."""
    assert clash.reader is not None
    pipe, reader = clash.reader
    accesses = lost, over, read = (
        finding_access(gm, clash, clash.earlier, "write", PIPES[clash.earlier_pipe], core),
        finding_access(gm, clash, clash.later, "write", PIPES[clash.later_pipe], core),
        finding_access(gm, clash, reader, "read", PIPES[pipe], core),
    )
    listed = [f"{one.instruction}.{one.operand} ({one.pipe}, {one.location})" for one in accesses]
    shared = f"bytes [{over.start}, {over.end}) of {over.memory}"
    (low, high), (start, end) = clash.arrays
    got = (
        f"arrays in bytes [{low}, {high}) and [{start}, {end}) that share "
        f"[{max(low, start)}, {min(high, end)})"
    )
    message = (
        f"{listed[1]} must not overwrite {shared} before {listed[2]} has read the result of "
        f"{listed[0]} there, got {got}; move one of them, as no barrier fixes it"
    )
    about = f"{over.operand} {lost.instruction} {lost.location} {read.instruction} {read.location}"
    finding = SanitizerFinding("array-overwritten", message, over.instruction, over.location, core)
    return replace(finding, accesses=accesses, arrays=clash.arrays), about


class WatchFindings:
    """Logs what a core's watch finds; it stands for as many cores as the log counts."""

    def __init__(
        self, gm: GlobalMemory, cores: Sequence[CoreId], core: CoreId, log: FindingLog
    ) -> None:
        self._gm, self._cores, self._core, self._log = gm, cores, core, log
        self._reported = BoundedCache[
            tuple[str, int, int], tuple[MemoryAccess, MemoryAccess, CountedFinding]
        ]()

    def fault(self, fault: FlagFault) -> None:
        """Log a flag that is set or waited for wrongly."""
        finding = SanitizerFinding(
            fault.id,
            fault.message,
            fault.instruction,
            fault.where,
            str(self._core),
            pipes=None if fault.flag is None else fault.flag.pipes,
            event=None if fault.flag is None else fault.flag.event,
            other_event=fault.other,
        )
        self._log.add(finding, fault.message if fault.id == "flag-leaked" else "")

    def no_such_pair(self, template: SetFlag | WaitFlag, where: Location) -> None:
        """Log a flag between pipes that this core does not connect."""
        part = "AIC" if self._core.is_aic else "AIV"
        message = (
            f"{template.name} must connect two pipes of an {part} that flags connect, "
            f"got {template.src} -> {template.dst}"
        )
        core = str(self._core)
        self._log.add(SanitizerFinding("flag-pair", message, template.name, where, core))

    def of_line(self, message: str, touch: MemoryAccess) -> None:
        """Log a finding about a line of the data cache."""
        core, name = str(self._core), touch.template.name
        name = "scalar read" if isinstance(touch.template, CachedLoad) else name
        finding = SanitizerFinding("stale-cache", message, name, touch.where, core)
        self._log.add(finding, touch.operand)

    def again(self, kind: str, earlier: MemoryAccess, later: MemoryAccess) -> bool:
        """Count a clash of two touches that were reported before; False if they were not."""
        reported = self._reported.get((kind, id(earlier), id(later)))
        if reported is None:
            return False
        reported[2].count += self._log.weight
        return True

    def report(self, clash: Clash) -> None:
        """Log a race, or a result that is lost; one that is known only counts."""
        if clash.kind == "unread":
            self._unread(clash)
        elif clash.kind == "overwritten":
            finding, about = overwritten_finding(self._gm, clash, str(self._core))
            self._log.add(finding, about)
        else:
            self._race(clash)

    def _race(self, clash: Clash) -> None:
        earlier_touch, later_touch = clash.earlier, clash.later
        kind, name = f"race-{clash.kind}", later_touch.template.name
        about = f"{later_touch.operand} {earlier_touch.template.name} {earlier_touch.where}"
        # The text of a finding is costly. A race of the same two places is only counted, and its
        # pair of touches is remembered by identity, so that `again` need not come here any more.
        counted = self._log.again((kind, name, about, later_touch.where))
        if counted is not None:  # the two touches live as long as their numbers are known
            known = earlier_touch, later_touch, counted
            self._reported[clash.kind, id(earlier_touch), id(later_touch)] = known
            return
        first, second = self._core_of(clash.earlier_core), self._core_of(clash.later_core)
        hows, pipes = HOW[clash.kind], (clash.earlier_pipe, clash.later_pipe)
        touched = zip((earlier_touch, later_touch), hows, pipes, (first, second), strict=True)
        earlier, later = accesses = tuple(
            finding_access(self._gm, clash, touch, how, PIPES[pipe], str(core))
            for touch, how, pipe, core in touched
        )
        finding = SanitizerFinding(
            kind,
            race_sentence(earlier, later, same_core=first == second),
            later.instruction,
            later.location,
            str(second),
            accesses=accesses,
            arrays=clash.arrays,
        )
        self._log.add(finding, about)

    def _core_of(self, number: int) -> CoreId:
        """Return a core by its number in the launch; -1 is the one that is watched."""
        return self._core if number < 0 else self._cores[number]

    def _unread(self, clash: Clash) -> None:
        """Log a result that is overwritten before it is read."""
        lost, over, core = clash.earlier, clash.later, str(self._core)
        about = f"{lost.operand} {over.template.name} {over.where}"
        if self._log.again(("unread", lost.template.name, about, lost.where)) is not None:
            return
        earlier, later = accesses = tuple(
            finding_access(self._gm, clash, touch, "write", PIPES[pipe], core)
            for touch, pipe in ((lost, clash.earlier_pipe), (over, clash.later_pipe))
        )
        message = (
            f"{later.instruction}.{later.operand} ({later.pipe}, {later.location}) overwrites "
            f"bytes [{earlier.start}, {earlier.end}) of {earlier.memory}, a result of "
            f"{earlier.instruction}.{earlier.operand} ({earlier.pipe}, {earlier.location}) that is "
            "never read; read it first, or do not compute it"
        )
        finding = SanitizerFinding(
            "unread", message, earlier.instruction, earlier.location, core, accesses=accesses
        )
        self._log.add(finding, about)
