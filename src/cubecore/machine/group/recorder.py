"""Recording: each core's kernel on a greenlet, and what it issued as arrays of numbers."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any
from weakref import ref

import numpy as np
from greenlet import getcurrent, greenlet
from numpy.typing import NDArray

from cubecore.chips.model import Chip
from cubecore.isa.declare.instruction import Instruction, Mem
from cubecore.isa.mte.partner import ToPartner
from cubecore.isa.program.trace import InstructionTrace, Names
from cubecore.isa.program.tree import LoadScalar, Location
from cubecore.isa.scalar.system_variables import Variable
from cubecore.layouts import ascending
from cubecore.machine.execute import one_core
from cubecore.machine.execute.core import FLUSH_AFTER, Core
from cubecore.machine.execute.scheduler import Task
from cubecore.machine.group.sanitize.aliasing import Addresses, GroupAliasing
from cubecore.machine.memory.buffers import GlobalMemory, MemoryBuffer
from cubecore.machine.sanitize.core_schedule import IssuedSyncs
from cubecore.machine.sanitize.finding_log import FindingLog
from cubecore.machine.sanitize.findings import SanitizerFinding

if TYPE_CHECKING:
    from array import array

Issued = tuple[Instruction, tuple[int, ...], Location]
_MOST_READ = 4096
"""Values that a core reads in a row before it pauses."""


@dataclass(frozen=True, slots=True)
class Asked:
    """A value that a core asked for, behind so many issues: a load, or registers, and the answer.

    `address` counts in the trace's addresses. `ahead`: the kernel had the value before what it has
    issued was executed.
    """

    behind: int
    load: LoadScalar | None
    template: Instruction | None
    address: int
    answer: Any
    ahead: bool = False

    @property
    def at_kind(self) -> tuple[int, object]:
        """The issue behind which it was asked for, and what was, wherever that lies."""
        return self.behind, _kind(self.load, self.template)


class RanAheadError(Exception):
    """A kernel went on before what it needs was executed: it must run again, and wait for that."""


class RecordedPart:
    """The record of a core from some issue on: kinds, and addresses by their memories.

    `at` is where the addresses of that issue begin among all of the trace's.
    `like` are other cores', of which one most often has the same kinds.
    """

    def __init__(
        self,
        trace: InstructionTrace,
        issue: int,
        at: int,
        gm: GlobalMemory,
        like: "Sequence[RecordedPart]" = (),
    ) -> None:
        names = self.names = trace.names
        self.kinds = np.frombuffer(trace.kinds[issue:], np.uint32)
        self.wheres = np.frombuffer(trace.wheres[issue:], np.uint32)
        self.addresses: Addresses = np.frombuffer(trace.addresses[at:], np.int64)
        # Which of the flat addresses are global depends on the kinds alone; cores that issued the
        # same kinds share the two index arrays.
        self.in_gm: NDArray[np.intp]
        self.local: NDArray[np.intp]
        same = next((part for part in like if _equal(self.kinds, part.kinds)), None)
        if same is not None:
            self.in_gm, self.local = same.in_gm, same.local
        else:
            self.in_gm, self.local = names.operands().of_issues(self.kinds)
        self.owners = gm.owners(self.addresses[self.in_gm])

    @cached_property
    def tensors(self) -> list[int]:
        """The tensors that its addresses lie in."""
        tensors: list[int] = ascending(self.owners).tolist()
        return tensors

    def apart(self, other: "RecordedPart") -> Addresses | None:
        """Return how far another core's global addresses lie from this one's; None if not alike."""
        if not _equal(self.kinds, other.kinds):
            return None
        # Local addresses must be equal, and global ones lie in the same tensors: then the other
        # core is this one moved by a distance per address, and one instruction on stacked memories
        # serves both.
        far = other.addresses - self.addresses
        if far[self.local].any() or not _equal(self.owners, other.owners):
            return None
        in_gm: Addresses = far[self.in_gm]
        return in_gm

    def common_tail(self, other: "RecordedPart") -> int:
        """Return how many last issues are alike: templates, local addresses, and tensors."""
        # Two steps: first the common tail of kinds, then of addresses within it. Instructions have
        # different numbers of addresses; `ends` maps a position among the addresses back to the
        # issue that owns it, and an issue counts only if all of its addresses are alike.
        count = min(self.kinds.size, other.kinds.size)
        count = _equal_at_end(self.kinds[-count:], other.kinds[-count:]) if count else 0
        if not count:
            return 0
        ends = np.cumsum(self.names.operands().widths[self.kinds[-count:]])
        total = int(ends[-1])
        equal = _equal_at_end(self.places()[-total:], other.places()[-total:]) if total else 0
        unlike = total - equal
        return count - int(np.searchsorted(ends, unlike) + 1) if unlike else count

    def places(self) -> Addresses:
        """Return local addresses, and of those in tensors the tensors."""
        places = self.addresses.copy()
        places[self.in_gm] = self.owners
        return places

    def aligned_like(self, other: "RecordedPart") -> bool:
        """Return whether another core, which is alike, issued from the same places."""
        return _equal(self.wheres, other.wheres)

    def evenly(self, far: Addresses) -> bool:
        """Return whether another core lies equally far from this one all over each tensor."""
        for tensor in self.tensors:
            of_tensor = far[self.owners == tensor]
            if (of_tensor != of_tensor[0]).any():
                return False
        return True

    def issues(self, far: Addresses, aliasing: GroupAliasing) -> Iterator[Issued]:
        """Yield the instructions with their addresses; where distances change, `aliasing` moves.

        `far` are those of the cores in a row each, [cores, global addresses].
        """
        # The distances that hold in `aliasing` are a state that changes along the record. Each
        # change is applied right before the instruction whose addresses first need it.
        templates, mems, locations = self.names.templates, self.names.mems, self.names.locations
        changes = self._changes(far, aliasing.current)
        addresses, at = self.addresses.tolist(), 0
        change = next(changes, None)
        for kind, where in zip(self.kinds.tolist(), self.wheres.tolist(), strict=True):
            end = at + len(mems[kind])
            while change is not None and change[0] < end:
                aliasing.move(change[1], change[2])
                change = next(changes, None)
            yield templates[kind], tuple(addresses[at:end]), locations[where]
            at = end

    def _changes(
        self, far: Addresses, current: Callable[[int], Addresses | None]
    ) -> Iterator[tuple[int, int, Addresses]]:
        """Yield the places among the addresses at which distances in a tensor change."""
        changes: list[tuple[int, int, Addresses]] = []
        for tensor in self.tensors:
            # Within one tensor distances are piecewise constant: a change is where a column of
            # [cores, accesses] differs from the one before it. The first column counts as a change
            # unless it is what the group had already.
            columns = np.flatnonzero(self.owners == tensor)
            of_tensor = far[:, columns]
            other = np.flatnonzero((of_tensor[:, 1:] != of_tensor[:, :-1]).any(axis=0)) + 1
            before = current(tensor)
            starts = other.tolist()
            if before is None or not _equal(before, of_tensor[:, 0]):
                starts.insert(0, 0)
            changes += [(int(self.in_gm[columns[n]]), tensor, of_tensor[:, n]) for n in starts]
        changes.sort(key=lambda change: change[0])
        yield from changes


def _equal(one: NDArray[Any], other: NDArray[Any]) -> bool:
    """Return whether numbers of one kind are the same; their bytes are compared, which is fast."""
    return one is other or (one.size == other.size and one.tobytes() == other.tobytes())


def _equal_at_end(one: NDArray[Any], other: NDArray[Any]) -> int:
    """Return how many last numbers are the same."""
    unlike = np.flatnonzero(one != other)
    return one.size - (int(unlike[-1]) + 1 if unlike.size else 0)


class Recorder(Core):
    """A core that records; `trace` is what it issued, to the end.

    It is `halted` where in the end it makes no more than it has recorded, though it has not ended.
    """

    def __init__(self, task: Task, chip: Chip, gm: GlobalMemory, names: Names) -> None:
        super().__init__(task.id, chip, gm, _Handing(self), one_core.execute, _nobody, _nobody)
        self.thread = greenlet(lambda: self._run(task))
        self.failed: Exception | None = None
        self.trace = InstructionTrace(names)
        self.asked: list[Asked] = []
        self.kinds: list[object] = []
        """Marks of instructions that left the core unlike others, which recorded the same."""
        # The trace's arrays and the names' tables are bound once: `record` runs for every
        # instruction of every core.
        self._kind_of, self._number_of_location = names.kind_of, names.location_of
        self._kinds, self._wheres = self.trace.kinds, self.trace.wheres
        self._addresses, self._pause_at = self.trace.addresses, FLUSH_AFTER
        self._done = self._at = 0
        self._part: tuple[tuple[int, int], RecordedPart] | None = None
        self._settles = False
        self.asks: tuple[LoadScalar | None, Instruction | None, int] | None = None
        self.answer: object = None
        self.row: Core | None = None
        """The core of a group that executes what is recorded."""
        self.is_early: Callable[[LoadScalar, int], bool] = _never
        """True for a value that cores which go first still write: it is asked for, not read."""
        self.read: list[tuple[LoadScalar, int]] = []
        """The values read at once since the core went on."""
        self._ahead: list[Asked] = []
        """The values that the kernel had ahead, and that nobody has judged yet."""
        self.findings: list[tuple[int, SanitizerFinding, str]] = []
        """Findings of the kernel itself, each behind so many issues."""
        self.halted = False
        self._hub = getcurrent()

    def _run(self, task: Task) -> None:
        """Run the kernel; what it raises is kept until what it recorded before has executed."""
        try:
            task.body(self)
        except Exception as error:  # noqa: BLE001 - raised again by who executes
            self.failed = error

    def go_on(self) -> None:
        """Let the kernel record, until it pauses."""
        self.thread.switch()

    def pause(self) -> None:
        """Let others go on, who see all that was recorded."""
        self._hub.switch()

    def settle(self) -> None:
        """Go on once everything recorded has executed: the kernel may look at what it left."""
        self._settles = True
        self.pause()
        self._settles = False

    flush = settle

    def record(self, template: Instruction, addresses: tuple[int, ...], where: Location) -> None:
        """Take one instruction, in program order."""
        kind, location = self._kind_of.get(id(template)), self._number_of_location.get(id(where))
        if kind is None or location is None:
            if isinstance(template, ToPartner):
                template, addresses = self.gm.windows.sent(self.chip, self.id, template, addresses)
            self.trace.append(template, addresses, where)
        else:  # what appending does, of what was met before
            self._kinds.append(kind)
            self._wheres.append(location)
            self._addresses.extend(addresses)
        if len(self._kinds) >= self._pause_at:
            self._hub.switch()

    def record_block(
        self, kinds: bytes, wheres: bytes, addresses: bytes, ahead: Sequence[Asked] = ()
    ) -> None:
        """Take instructions in the trace's own numbers, and the values had ahead among them."""
        self.asked += ahead
        self._ahead += ahead
        self._kinds.frombytes(kinds)
        self._wheres.frombytes(wheres)
        self._addresses.frombytes(addresses)
        if len(self._kinds) >= self._pause_at or len(self._ahead) >= FLUSH_AFTER:
            self._hub.switch()

    def take_numbers(self, kinds: "array[int]", wheres: "array[int]") -> None:
        """Take the numbers of instructions whose addresses the trace has."""
        self._kinds.extend(kinds)
        self._wheres.extend(wheres)
        if len(self._kinds) >= self._pause_at:
            self._hub.switch()

    def scalars(self, template: Instruction) -> tuple[int, ...]:
        """Return what the scalar unit reads from the core's registers."""
        if isinstance(template, Variable) and template.of_launch:
            return template.result(self.registers)
        values: tuple[int, ...] = self._ask(None, template, 0)
        return values

    def load_scalar(self, load: LoadScalar, address: int) -> int:
        """Return the integer, or the bits, that memory holds at `address`."""
        # Fast path: if nothing that the core has issued is pending, memory holds the value now, so
        # that the kernel need not pause. The read is listed in `read`, as it is judged later than
        # it is made.
        pending = len(self._kinds) > self._done or self._ahead
        if self.row is not None and not pending and len(self.read) < _MOST_READ:
            value = None if self.is_early(load, address) else self.row.value_at(load, address)
            if value is not None:
                self.asked.append(Asked(len(self._kinds), load, None, address, value))
                self.read.append((load, address))
                return value
        answer: int = self._ask(load, None, address)
        return answer

    def _ask(self, load: LoadScalar | None, template: Instruction | None, address: int) -> Any:
        self.asks = load, template, address
        self.pause()
        self.asked.append(Asked(len(self.trace), load, template, address, self.answer))
        return self.answer

    def say(self, finding: SanitizerFinding, behind: int, operand: str = "") -> None:
        """Take a finding of the kernel itself, behind so many issues."""
        self.findings.append((behind, finding, operand))

    def memory(self, mem: Mem) -> MemoryBuffer | None:
        """Return a local memory, as what has executed left it."""
        return None if self.row is None else self.row.memory(mem)

    def segment(self, gm: GlobalMemory, like: "Sequence[RecordedPart]" = ()) -> "RecordedPart":
        """Return what was recorded and not executed yet; `like` are other cores'."""
        part, extent = self._part, self.extent
        if part is None or part[0] != extent:
            recorded = RecordedPart(self.trace, self._done, self._at, gm, like)
            part = self._part = extent, recorded
        return part[1]

    @property
    def extent(self) -> tuple[int, int]:
        """The issues from the first that was not executed yet to the last that was recorded."""
        return self._done, len(self._kinds)

    @property
    def pending_count(self) -> int:
        """The instructions that were recorded and not executed yet."""
        return len(self._kinds) - self._done

    def records_any(self, among: Sequence[bool]) -> bool:
        """Return whether it has recorded a template of some numbers that was not executed yet."""
        return any(among) and bool(np.array(among)[self._kinds[self._done :]].any())

    def syncs_and_reads(self, signals: Sequence[bool]) -> IssuedSyncs:
        """Return its legal signals and waits, whose templates have such numbers, and its reads."""
        templates: Sequence[Any] = self.trace.names.templates
        issues = np.flatnonzero(np.array(signals)[self._kinds]).tolist()
        syncs = [(issue, templates[self._kinds[issue]]) for issue in issues]
        legal = [sync for sync in syncs if self.may(sync[1])]
        reads = [one.behind for one in self.asked]
        return IssuedSyncs(self.id, legal, reads, fails=self.failed is not None)

    def where(self, issue: int) -> Location:
        """Return the place of an issue by its number."""
        return self.trace.locations[self.trace.wheres[issue]]

    def take_ahead(self) -> list[Asked]:
        """Return the values had ahead that are to be judged, counted from what is not executed."""
        ahead, self._ahead = self._ahead, []
        return [replace(one, behind=one.behind - self._done) for one in ahead] if ahead else ahead

    def forget(self) -> None:
        """Take what was recorded as executed."""
        self._done, self._at = len(self.trace), len(self.trace.addresses)
        self._pause_at = self._done + FLUSH_AFTER
        self._part = None

    @property
    def only_paused(self) -> bool:
        """True if the core has paused because it has recorded enough."""
        return self.asks is None and not self._settles and not self.over

    @property
    def over(self) -> bool:
        """True if the core records no more."""
        return self.thread.dead or self.halted

    @property
    def reads_globally(self) -> bool:
        """True if it has read, or asks for, a value of global memory."""
        loads = [one.load for one in self.asked]
        loads += [] if self.asks is None else [self.asks[0]]
        return any(load is not None and load.mem is Mem.GM for load in loads)

    def halt(self, issues: int) -> None:
        """Take that the core makes no more than so many issues; -1 if it has no turn at all."""
        # All three arrays of the trace are cut at the same issue; what was asked or found behind it
        # never happened.
        begin, at = self._position(len(self._kinds) - max(issues, 0))
        for numbers, end in ((self._kinds, begin), (self._wheres, begin), (self._addresses, at)):
            del numbers[end:]
        self.asked = [one for one in self.asked if one.behind <= issues]
        self.findings = [one for one in self.findings if one[0] <= issues]
        self.asks, self.halted = None, True

    def record_more(self) -> None:
        """Let a core pause later than it would."""
        self._pause_at = len(self._kinds) + FLUSH_AFTER

    def _position(self, left: int) -> tuple[int, int]:
        """Return where the last so many issues begin, and their addresses."""
        # Counted from the end, as only the addresses of the last issues must be added up then.
        issue, kinds = len(self._kinds) - left, np.array(self._kinds[len(self._kinds) - left :])
        widths = self.trace.names.operands().widths[kinds]
        return issue, len(self._addresses) - int(widths.sum())

    def last(self, left: int, gm: GlobalMemory) -> "RecordedPart":
        """Return the last so many issues."""
        return RecordedPart(self.trace, *self._position(left), gm)

    def take_up(self, left: int) -> None:
        """Take all but so many issues as executed."""
        self._done, self._at = self._position(left)
        self._part = None

    def asked_from(self, left: int) -> list[Asked]:
        """Return what the core has asked within its last issues, counted from the first of them."""
        begin = len(self._kinds) - left
        return [
            replace(one, behind=one.behind - begin) for one in self.asked if one.behind >= begin
        ]

    def rewind(self) -> None:
        """Take nothing of what was recorded as executed."""
        self._done = self._at = 0
        self._part = None
        self.read.clear()
        self._ahead.clear()
        self.row, self.is_early = None, _never

    def asked_like(self, other: "Recorder") -> bool:
        """Return whether another core was as this one, apart from what it recorded.

        So it is where it asked alike at the same issues, ended or asks the same, and is of a kind.
        """
        if self.kinds != other.kinds or not self.ends_like(other):
            return False
        both = zip(self.asked, other.asked, strict=False)
        return len(self.asked) == len(other.asked) and all(a.at_kind == b.at_kind for a, b in both)

    def ends_like(self, other: "Recorder") -> bool:
        """Return whether another core has ended, paused or asks as this one does."""

        def end(core: "Recorder") -> object:
            asks = core.asks and _kind(*core.asks[:2])
            return core.thread.dead, core.halted, core.failed is None, asks

        return end(self) == end(other)


def _kind(load: LoadScalar | None, template: Instruction | None) -> object:
    """Return what is asked for, wherever it lies."""
    return template if load is None else (load.mem, load.element, load.cached)


class _Handing(FindingLog):
    """The findings of a kernel itself, as it is recorded; they are kept for who executes it."""

    def __init__(self, recorder: "Recorder") -> None:
        super().__init__()
        self._recorder = ref(recorder)  # which holds this log, and global memory

    def add(self, finding: SanitizerFinding, operand: str = "") -> None:
        """Hand a finding on."""
        recorder = self._recorder()
        assert recorder is not None
        recorder.say(finding, len(recorder.trace), operand)


def _never(*_: object) -> bool:
    """Let every value be read at once."""
    return False


def _nobody(core: Core, *_: object) -> None:
    raise AssertionError(f"{core.id} records and does not wait")
