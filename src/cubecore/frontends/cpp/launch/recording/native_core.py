"""One core in the C++ runtime: what it records, and how the recorder takes it."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from operator import attrgetter
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from cubecore.frontends.capi.core_handle import CoreHandle
from cubecore.frontends.cpp.launch.recording.modes import BlockPatterns, RecordedModes
from cubecore.frontends.cpp.launch.recording.scalar_reads import ScalarReads
from cubecore.frontends.cpp.wire import Launch
from cubecore.isa.mte.partner import ToPartner
from cubecore.isa.program.trace import Names
from cubecore.isa.program.tree import Location
from cubecore.isa.scalar.caches import Dcci
from cubecore.isa.scalar.sync import WaitFlagDev
from cubecore.isa.vector.registers.vector_function import VectorFunction
from cubecore.machine.group.recorder import Recorder
from cubecore.machine.sanitize.findings import FindingAccess, SanitizerFinding

if TYPE_CHECKING:
    from cubecore.isa.declare.instruction import Instruction

_WORD_BYTES = 4

_LOAD = attrgetter("load")


class NativeCore:
    """One core: its handle, its number in the runtime, and what it recorded and nobody took yet."""

    def __init__(
        self,
        handle: CoreHandle,
        number: int,
        launch: Launch,
        names: Names,
        patterns: BlockPatterns,
        reads: ScalarReads,
    ) -> None:
        self.handle, self.number, self.launch, self._names = handle, number, launch, names
        self._reads = reads
        self.modes = RecordedModes(handle.modes, names, patterns)
        self._kinds = self._wheres = self._addresses = b""
        self._answered: list[tuple[int, bytes]] = []
        self._cleaned: Dcci | None = None

    def recorded(self, kinds: bytes, wheres: bytes, addresses: bytes, reads: bytes) -> None:
        """Keep what the runtime has recorded."""
        if reads:
            self._answered.append((len(self._kinds) // _WORD_BYTES, reads))
        self._kinds += kinds
        self._wheres += wheres
        self._addresses += addresses

    def flush(self) -> None:
        """Execute what was recorded; a dcci behind it has cleaned what pointers stored."""
        self.hand_over()
        core, cleaned = self.handle.core, self._cleaned
        core.flush()
        if cleaned is not None and core.gm.pointers is not None:
            core.gm.pointers.clean(cleaned.address if cleaned.lines == "single" else None)

    def hand_over(self) -> None:
        """Give the recorder what the runtime has recorded; another core may run meanwhile."""
        kinds, wheres, addresses = self._kinds, self._wheres, self._addresses
        if kinds or self._answered:
            answered, self._answered = self._answered, []
            self._kinds = self._wheres = self._addresses = b""
            self._take(kinds, wheres, addresses, answered)

    def take(self, kinds: NDArray[np.uint32], addresses: NDArray[np.int64], where: int) -> None:
        """Take instructions that Python makes at one line, behind those of the runtime."""
        self.hand_over()
        if kinds.size:
            wheres = np.full(kinds.size, where, np.uint32)
            self._take(kinds.tobytes(), wheres.tobytes(), addresses.tobytes())

    def _take(
        self,
        kinds: bytes,
        wheres: bytes,
        addresses: bytes,
        answered: Sequence[tuple[int, bytes]] = (),
    ) -> None:
        # Three arrays describe the block: the number of the template and of the location of each
        # instruction, and all addresses in a row.
        words = np.frombuffer(kinds, np.uint32), np.frombuffer(wheres, np.uint32)
        findings = tuple(self.modes.follow(*words, np.frombuffer(addresses, np.int64)))
        core, issues, count = self.handle.core, self.handle.issues, len(words[0])
        last = self._names.templates[int(words[0][-1])] if count else None
        self._cleaned = last if isinstance(last, Dcci) and last.cleans_globally else None
        if not isinstance(core, Recorder) or self.handle.debugged:
            self._one_by_one(kinds, wheres, addresses)
            for _, said in findings:
                self.handle.log(*said)
            return
        if self._names.to_partner and not self._names.to_partner.isdisjoint(words[0].tolist()):
            kinds, addresses = self._sent(words[0], addresses)
        # Findings of modes belong to issues of this block; each is told at the first value that the
        # kernel read behind it, else at the block's end, as the recorder judges there.
        begin = len(core.trace)
        ahead = [one for at, raw in answered for one in self._reads.answered(raw, begin + at)]
        issues.many(count + len(ahead), lambda: self._names.locations[int(words[1][-1])])
        for load, times in Counter(map(_LOAD, ahead)).items():
            issues.count_reads(load.location, times)
        core.record_block(kinds, wheres, addresses, ahead)
        if isinstance(last, WaitFlagDev):
            core.settle()  # C++ may read through a pointer what it waited for
        for index, (kind, message, subject, where) in findings:
            read = (one.behind for one in ahead if one.behind > begin + index)
            finding = SanitizerFinding(kind, message, subject, where, str(core.id))
            core.say(finding, next(read, begin + count))

    def _sent(self, kinds: NDArray[np.uint32], addresses: bytes) -> tuple[bytes, bytes]:
        """Return kinds and addresses with copies to other parts as they are made from the core."""
        core, names = self.handle.core, self._names
        own, at = kinds.copy(), np.frombuffer(addresses, np.int64).copy()
        ends = np.cumsum(names.operands().widths[kinds])
        for number in np.flatnonzero(np.isin(kinds, list(names.to_partner))).tolist():
            copy = names.templates[int(kinds[number])]
            assert isinstance(copy, ToPartner)
            end = int(ends[number])
            start = end - len(names.mems[int(kinds[number])])
            given = tuple(at[start:end].tolist())
            template, given = core.gm.windows.sent(core.chip, core.id, copy, given)
            own[number], at[start:end] = names.kind(template), given
        return own.tobytes(), at.tobytes()

    def behind(self, low: int, high: int, where: Location) -> None:
        """Judge a scalar read of global memory."""
        said = self.modes.behind(low, high, where)
        if said is not None:
            self.handle.log(*said)

    def judge_buffer(
        self, where: Location, kind: int, number: int, address: int, low: int, high: int
    ) -> None:
        """Log an operand of the last instruction that leaves bytes [low, high), its buffer."""
        template, spans = self._names.templates[kind], self.handle.issues.calls.spans
        _, touched, _ = spans.effect(spans.at(self.modes.registers), template)
        if not touched or not touched[number][2]:
            return
        operand, start, end = touched[number]
        first, last, name = address + start, address + end, f"{template.name}.{operand.name}"
        if low <= first and last <= high:
            return
        if isinstance(template, VectorFunction):
            left = template.leaves_buffer(operand.name, address, low, high)
            if left is None:
                return
            name, first, last, line = left
            where = replace(where, file=line.file, line=line.line)
        message = (
            f"{name} must stay inside its buffer of {high - low} B, bytes "
            f"[{low}, {high}) of {operand.mem.label}, got bytes [{first}, {last})"
        )
        how, core = "write" if operand.access.writes else "read", str(self.handle.core.id)
        pipe, memory = template.pipe.value, operand.mem.label
        access = (how, template.name, operand.name, pipe, memory, first, last, core, where)
        finding = SanitizerFinding(
            *("out-of-bounds", message, template.name, where, core),
            accesses=(FindingAccess(*access),),
            limits=(low, high),
        )
        self.handle.core.log.add(finding, operand.name)

    def _one_by_one(self, kinds: bytes, wheres: bytes, addresses: bytes) -> None:
        names, at = self._names, 0
        flat = memoryview(addresses).cast("q").tolist()
        lines = memoryview(wheres).cast("I").tolist()
        for kind, line in zip(memoryview(kinds).cast("I").tolist(), lines, strict=True):
            template: Instruction = names.templates[kind]
            end = at + len(names.mems[kind])
            self.handle.record(template, tuple(flat[at:end]), names.locations[line])
            at = end
