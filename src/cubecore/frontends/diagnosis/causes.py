"""Causes of findings: a cause is one finding, its consequences are folded under it.

A finding follows from an earlier one if it is about the same call, if the bytes that it is about
depend on what the other's instruction wrote or failed to write, or if the order that the other
lacks would mend it as well. It does not follow if it is left when the other is mended: bytes that
no write covers at another address, or in another order, or that nothing writes at all.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from cubecore.frontends.diagnosis.dependence import (
    Bytes,
    Dependents,
    IssuedCore,
    Key,
    key_of,
    race_of,
)
from cubecore.frontends.diagnosis.dialects import CLASS_API
from cubecore.frontends.diagnosis.sentences.bounds import alignment
from cubecore.frontends.diagnosis.sentences.flags import swapped_set
from cubecore.frontends.diagnosis.source_words import SourceWords
from cubecore.isa.catalogue import instructions
from cubecore.isa.declare.instruction import Mem
from cubecore.isa.scalar.sync import WaitFlagDev
from cubecore.machine.finding_kinds import INITCHECK, MEMCHECK, RACECHECK, SYNCCHECK
from cubecore.machine.sanitize.findings import OVERWRITTEN, FindingAccess, SanitizerFinding

_END = "end of kernel"
_LEAVE_BYTES = frozenset({"no-repeat", "rows-overlap"})
"""Notes of calls that write less than they seem to."""
_SHAPES = frozenset({"SetTail", "SetSingleShape", "SetOrgShape"})
"""Calls of a Matmul object that give the shape of a block."""
_LEFT_OVER = frozenset({"flag-doubled", "flag-leaked"})
_EXTENT = frozenset({"out-of-bounds", "capacity", "overlap"})
"""Kinds that a call of too many elements has at once."""


def with_causes(
    findings: Sequence[SanitizerFinding], words: SourceWords
) -> tuple[SanitizerFinding, ...]:
    """Return findings, each with the finding that it follows from, if there is one.

    A note causes nothing, and follows from nothing.
    """
    if len(findings) == 1:
        return tuple(findings)
    causes = _Causes(findings, words)
    roots = [causes.root(number) for number in range(len(findings))]
    return tuple(
        causes.beside_note(finding) if root == number else replace(finding, cause=findings[root])
        for number, (finding, root) in enumerate(zip(findings, roots, strict=True))
    )


@dataclass(frozen=True, slots=True)
class _Pair:
    """Two findings by their numbers: one that may follow, and one that may be its cause."""

    late: int
    early: int


class _Causes:
    """The findings of a launch, and what is known of how they depend on each other."""

    def __init__(self, findings: Sequence[SanitizerFinding], words: SourceWords) -> None:
        self._findings, self._words = findings, words
        self._issued, self._arrays = issued, arrays = words.issued, words.arrays
        cores = {name: issued.get(name) for name in {finding.core for finding in findings}}
        self._cores = {name: core for name, core in cores.items() if core is not None}
        self._depends: dict[str, Dependents] = {}
        self._of_arrays: dict[str, set[int]] = {}
        faults = self._faults()
        for name, core in self._cores.items():
            self._depends[name] = depends = core.depends(faults, arrays)
            for array, numbers in depends.arrays.items():
                self._of_arrays.setdefault(array, set()).update(numbers)
        self._roots: dict[int, int] = {}

    def root(self, number: int) -> int:
        """Return the first cause of a finding; itself if it follows from nothing."""
        if number in self._roots:
            return self._roots[number]
        self._roots[number] = number  # ends circles
        for early in self._order():
            if early != number and self._follows(_Pair(number, early)):
                root = self.root(early)
                if root != number:
                    self._roots[number] = root
                    break
        return self._roots[number]

    def beside_note(self, finding: SanitizerFinding) -> SanitizerFinding:
        """Return a finding of bytes without a value, with the note that says why, if one does."""
        notes = [each for each in self._findings if each.id in _LEAVE_BYTES]
        core = self._cores.get(finding.core)
        if finding.id != "uninitialised" or core is None or not notes:
            return finding
        keys = {key_of("", note.location): [number] for number, note in enumerate(notes)}
        numbers = core.depends(keys, self._arrays).reads.get(
            key_of(finding.instruction, finding.location)
        )
        if not numbers:
            return finding
        note = notes[min(numbers)]
        reference = f"; the note {note.id} at {note.location.file}:{note.location.line} says why"
        return replace(finding, text=finding.text + reference)

    def _order(self) -> list[int]:
        """Return the findings that may be causes, those before others that name a call's error."""
        numbers = [n for n, finding in enumerate(self._findings) if not finding.is_note]
        return sorted(numbers, key=lambda number: (_rank(self._findings[number]), number))

    def _faults(self) -> dict[Key, list[int]]:
        """Return the findings by the instruction whose results they put in doubt."""
        faults: dict[Key, list[int]] = {}
        for number, finding in enumerate(self._findings):
            if finding.is_note or finding.pipes is not None or finding.instruction == _END:
                continue
            name = finding.instruction if finding.instruction in instructions() else ""
            places = {key_of(name, finding.location)}
            if finding.check == RACECHECK:
                places |= {
                    key_of(access.instruction, access.location)
                    for access in finding.accesses
                    if access.how == "read"
                }
            for key in places:
                faults.setdefault(key, []).append(number)
        return faults

    def _follows(self, pair: _Pair) -> bool:
        late, early = self._findings[pair.late], self._findings[pair.early]
        if late.is_note:
            return False
        earlier = (_rank(early), pair.early) < (_rank(late), pair.late)
        if earlier and any(rule(late, early) for rule in _RULES):
            return not self._is_left(late, early)
        if earlier and self._by_data(pair):
            return not self._is_left(late, early)
        if self._is_in_excess(late, early) or self._is_of_swapped_set(late, early):
            return True
        if earlier and self._by_all_cores(late, early):
            return True
        return self._by_order(pair, earlier=earlier)

    def _is_left(self, late: SanitizerFinding, early: SanitizerFinding) -> bool:
        """Return whether bytes would lack a value with the early finding mended, too."""
        if late.id != "uninitialised":
            return False
        if early.id != "misaligned" and early.check != RACECHECK:
            at_call = early.check == MEMCHECK and _is_of_same_call(late, early)
            return at_call and self._has_no_value(late)
        # Another address or another order of the same writes: all of them must be enough for what
        # is read, or for the array, wherever they begin.
        needed = self._needed(late)
        if needed is None:
            return False
        written = set[tuple[str, int, int]]()
        for name, core in self._writers(late):
            written |= {(name, *each) for each in core.written(needed, late)}
        if early.check == RACECHECK:
            own = (each for each in early.accesses if each.how == "write")
            written |= {
                (each.core, each.start, each.end)
                for each in own
                if each.memory == needed.memory and needed.start < each.end
            }
        return sum(end - start for _, start, end in written) < needed.end - needed.start

    def _has_no_value(self, late: SanitizerFinding) -> bool:
        """Return whether an array lacks a value that a call with another fault reads as well."""
        if late.elements is None or not late.accesses:
            return False
        # Where the operand leaves its array as well, what it lacks may lie beyond the array: that
        # is mended with the count. What it lacks inside is not.
        access = late.accesses[0]
        key = key_of(late.instruction, late.location)
        for each in self._findings:
            if each.id != "out-of-bounds" or each.limits is None or not each.accesses:
                continue
            of_call = key_of(each.instruction, each.location) == key
            if of_call and each.accesses[0].operand == access.operand:
                return access.start < each.limits[1]
        return late.elements[0] == late.elements[1]

    def _needed(self, late: SanitizerFinding) -> Bytes | None:
        """Return the bytes of an array, or those that the call of a finding reads."""
        if late.instruction == _END:
            array = self._arrays.get("" if late.claim is None else late.claim.subject)
            return None if array is None else Bytes(Mem.GM.label, array.start, array.stop)
        core = self._cores.get(late.core)
        if core is None or not late.accesses or late.accesses[0].memory in self._arrays:
            return None
        access = late.accesses[0]
        for number in core.numbers(key_of(late.instruction, late.location)):
            read = core.operand(number, access.operand)
            if read is not None and read.meets(access.memory, access.start, access.end):
                return Bytes(access.memory, read.start, read.end)
        return None

    def _writers(self, late: SanitizerFinding) -> list[tuple[str, IssuedCore]]:
        """Return the cores that may write what a finding lacks."""
        names = self._issued.names if late.instruction == _END else (late.core,)
        cores = [(name, self._issued.get(name)) for name in names]
        return [(name, core) for name, core in cores if core is not None]

    def _by_data(self, pair: _Pair) -> bool:
        """Return whether what a finding is about depends on what the other's instruction wrote."""
        late = self._findings[pair.late]
        if late.instruction == _END:
            name = "" if late.claim is None else late.claim.subject
            return pair.early in self._of_arrays.get(name, ())
        depends, key = self._depends.get(late.core), key_of(late.instruction, late.location)
        if depends is None:
            return False
        if pair.early in depends.addressed.get(key, ()):
            return True
        return _is_about_values(late) and pair.early in depends.reads.get(key, ())

    def _is_in_excess(self, late: SanitizerFinding, early: SanitizerFinding) -> bool:
        """Return whether a call in a loop races for bytes beyond the array of a later pass."""
        core, race = self._cores.get(late.core), race_of(late)
        if early.id != "out-of-bounds" or early.limits is None or core is None or race is None:
            return False
        access = early.accesses[0]
        key, excess = key_of(early.instruction, early.location), access.end - early.limits[1]
        if excess <= 0 or key not in {race.earlier, race.later}:
            return False
        # The finding is of the first pass. In each pass as many bytes lie behind the array.
        for number in core.numbers(key):
            touch = core.operand(number, access.operand)
            if touch is not None and touch.meets(race.memory, race.start, race.end):
                return touch.end - excess <= race.start
        return False

    def _is_of_swapped_set(self, late: SanitizerFinding, early: SanitizerFinding) -> bool:
        """Return whether a flag is left over whose set was meant for the wait of another one."""
        if late.pipes is None or early.pipes is None or late.id not in _LEFT_OVER:
            return False
        if late.core != early.core or late.pipes != early.pipes[::-1]:
            return False
        return late.event == early.event and swapped_set(early, self._words) is not None

    def _by_all_cores(self, late: SanitizerFinding, early: SanitizerFinding) -> bool:
        """Return whether a wait of all cores between two accesses would order a core's own, too."""
        core, race = self._cores.get(late.core), race_of(late)
        pair = None if core is None or race is None else core.pair(race)
        if core is None or pair is None or not _is_across_cores(early):
            return False
        if not self._words.of(early.location).all_cores:
            return False
        keys = [key_of(each.instruction, each.location) for each in early.accesses]
        numbers = [[n for n in core.numbers(key) if pair[0] <= n <= pair[1]] for key in keys]
        return all(numbers) and min(map(min, numbers)) < max(map(max, numbers))

    def _by_order(self, pair: _Pair, *, earlier: bool) -> bool:
        """Return whether the order that one race lacks would order the other's accesses too."""
        late, early = self._findings[pair.late], self._findings[pair.early]
        one, other = race_of(early), race_of(late)
        if one is None or other is None or early.core != late.core:
            return False
        core = self._cores.get(late.core)
        if core is None:
            return earlier and one.later == other.later
        if not core.would_order(one, other):
            return False
        return earlier or not core.would_order(other, one)


def _rank(finding: SanitizerFinding) -> int:
    """Return how near a finding is to an error of the source: of bounds, of order, of values."""
    if finding.instruction == _END:
        return 7
    if finding.id == "misaligned":
        return -1
    if finding.id in {OVERWRITTEN, "overlap"}:
        return 1 if finding.id == OVERWRITTEN else 2
    if finding.check == MEMCHECK or finding.id.startswith("queue"):
        return 0
    if _is_of_all_cores(finding):
        return 2
    if _is_across_cores(finding) and finding.id != "race-waw":
        return 3
    if finding.check in {INITCHECK, RACECHECK}:
        return 4
    return 5 if finding.check == SYNCCHECK else 6


def _is_across_cores(finding: SanitizerFinding) -> bool:
    """Return whether a finding is a race of two cores."""
    return finding.check == RACECHECK and len({each.core for each in finding.accesses}) > 1


def _is_of_all_cores(finding: SanitizerFinding) -> bool:
    """Return whether cores wait for each other for ever."""
    return finding.id == "deadlock" and finding.instruction == WaitFlagDev.name


def _is_about_values(finding: SanitizerFinding) -> bool:
    """Return whether a finding is about what bytes hold, or about unit flags of written tiles."""
    if finding.check == INITCHECK or finding.id in {"filling-read", "unread"}:
        return True
    if finding.id == "race-waw" and _is_across_cores(finding):
        return True  # blocks may write equal values to the same bytes
    return finding.id.startswith("flag-") and finding.pipes is None


# --- rules of two findings alone


def _is_of_same_call(late: SanitizerFinding, early: SanitizerFinding) -> bool:
    """One call, and one kind: another operand of it; or a value behind an error of the call."""
    places = {(early.location.file, early.location.line)}
    if early.check == RACECHECK:
        places |= {(each.location.file, each.location.line) for each in early.accesses}
    if (late.location.file, late.location.line) not in places or late.instruction == _END:
        return False
    if late.id == "overlap" and early.id == OVERWRITTEN:
        return True
    if late.id == early.id or {late.id, early.id} <= _EXTENT:
        call = early.location.call
        return late.instruction == early.instruction or late.location.call == call != ""
    return _is_about_values(late) and early.check in {MEMCHECK, RACECHECK}


def _touches_excess(late: SanitizerFinding, early: SanitizerFinding) -> bool:
    """Bytes that an earlier call touched beyond its array."""
    if early.limits is None or not early.accesses:
        return False
    access, (low, high) = early.accesses[0], early.limits
    beyond = ((access.start, min(low, access.end)), (max(high, access.start), access.end))
    return any(
        each.memory == access.memory and start < each.end and each.start < end
        for each in late.accesses
        for start, end in beyond
        if start < end
    )


def _misses_same_bytes(late: SanitizerFinding, early: SanitizerFinding) -> bool:
    """The same bytes were never written for both."""
    both = {late.id, early.id} == {"uninitialised"}
    return both and any(_meet(one, other) for one in late.accesses for other in early.accesses)


def _is_out_by_misalignment(late: SanitizerFinding, early: SanitizerFinding) -> bool:
    """The end of an array is passed by as much as its beginning is off the alignment."""
    if late.id != "out-of-bounds" or early.id != "misaligned" or late.limits is None:
        return False
    same = key_of(late.instruction, late.location) == key_of(early.instruction, early.location)
    access, claim = late.accesses[0], early.claim
    named = claim is not None and claim.subject.rpartition(".")[2] == access.operand
    unit = alignment(early)
    beyond = access.end - late.limits[1]
    return same and named and unit is not None and 0 < beyond <= access.start % unit


def _is_of_wrong_shape(late: SanitizerFinding, early: SanitizerFinding) -> bool:
    """A matmul of a shape that a call refused takes and writes other bytes than those meant."""
    shaped = early.id == "parameter" and early.location.call in _SHAPES
    wrong = late.id in {"out-of-bounds", "uninitialised"} or _is_across_cores(late)
    return shaped and wrong and late.location.call in CLASS_API.matmul_calls


def _overruns_alike(late: SanitizerFinding, early: SanitizerFinding) -> bool:
    """Arrays that end at one index are left by as much."""
    if {late.id, early.id} != {"out-of-bounds"} or late.limits is None or early.limits is None:
        return False
    one, other = late.accesses[0], early.accesses[0]
    alike = one.memory != other.memory and late.core == early.core
    return alike and one.end - late.limits[1] == other.end - early.limits[1] > 0


def _is_of_same_pipes(late: SanitizerFinding, early: SanitizerFinding) -> bool:
    """A flag between the pipes of a race, or the same flag, whose wait or set is missing."""
    if late.pipes is None:
        return False
    if early.race_pipes is not None:
        return frozenset(late.pipes) == early.race_pipes
    return late.pipes == early.pipes and (late.event == early.event or late.id != early.id)


def _is_behind_unmet(late: SanitizerFinding, early: SanitizerFinding) -> bool:
    """A wait that nothing sets off shifts every later pair of its flag by one."""
    return late.id == "flag-late" and early.id == "flag-unmet" and late.core == early.core


def _is_of_same_queue(late: SanitizerFinding, early: SanitizerFinding) -> bool:
    """A queue that gave no tensor, or another's, orders nothing behind it on its core."""
    if not early.id.startswith("queue") or late.core != early.core:
        return False
    return late.id.startswith(("queue", "tensor", "race"))


def _crosses_cores_alike(late: SanitizerFinding, early: SanitizerFinding) -> bool:
    """Another race in the array that cores race in: an order of all cores is one of each, too."""
    if not _is_across_cores(early) or late.check != RACECHECK:
        return False
    return {each.memory for each in late.accesses} == {each.memory for each in early.accesses}


def _races_behind_deadlock(late: SanitizerFinding, early: SanitizerFinding) -> bool:
    """A wait of cores that is never over orders nothing."""
    return _is_of_all_cores(early) and _is_across_cores(late)


def _leaves_array(late: SanitizerFinding, early: SanitizerFinding) -> bool:
    """An array that is not written whole, and a fault of what is written to it."""
    if late.instruction != _END or late.claim is None:
        return False
    written = {each.memory for each in early.accesses if each.how == "write"}
    return late.claim.subject in written


_Rule = Callable[[SanitizerFinding, SanitizerFinding], bool]
_RULES: tuple[_Rule, ...] = (
    _is_of_same_call,
    _touches_excess,
    _misses_same_bytes,
    _is_out_by_misalignment,
    _is_of_wrong_shape,
    _overruns_alike,
    _is_of_same_pipes,
    _is_behind_unmet,
    _is_of_same_queue,
    _crosses_cores_alike,
    _races_behind_deadlock,
    _leaves_array,
)


def _meet(one: FindingAccess, other: FindingAccess) -> bool:
    same = one.memory == other.memory and one.core == other.core
    return same and one.start < other.end and other.start < one.end
