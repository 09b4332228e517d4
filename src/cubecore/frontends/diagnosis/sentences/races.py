"""Sentences of races: the two calls, their array, and where its order belongs."""

from collections.abc import Sequence
from dataclasses import dataclass

from cubecore.frontends.diagnosis.arguments import receiver
from cubecore.frontends.diagnosis.declarations import (
    array_name,
    declared,
    may_be_queued,
    queue_of,
)
from cubecore.frontends.diagnosis.dependence import key_of, race_of
from cubecore.frontends.diagnosis.dialects import Dialect
from cubecore.frontends.diagnosis.missing_order import (
    AWAITED_LATE,
    SET_EARLY,
    Anchor,
    HalfPair,
    MissingFlag,
    half_pair,
    missing_flag,
)
from cubecore.frontends.diagnosis.source_words import SourceWords, line_of
from cubecore.isa.declare.instruction import Mem
from cubecore.isa.scalar.sync import SetFlag, WaitFlag
from cubecore.machine.sanitize.findings import FindingAccess, SanitizerFinding

_HAS = {"read": "has read", "write": "has written"}
_QUEUED = frozenset({("MTE2", "V"), ("V", "MTE3"), ("MTE2", "MTE1"), ("MTE1", "M"), ("M", "FIX")})
"""Pipes between which EnQue and DeQue hand a tensor on, and FreeTensor and AllocTensor it back."""


def race(finding: SanitizerFinding, words: SourceWords) -> str:
    """Return the sentence of a race."""
    earlier, later = finding.accesses
    calls = [words.call(each.instruction, each.location) for each in finding.accesses]
    if earlier.core != later.core:
        return _of_two_cores(finding, words)
    # From the most certain remedy to the least: two arrays that share bytes by mistake, half of a
    # pair of flags that stands there already, then the pair that is missing as a whole.
    core, between = words.issued.get(earlier.core), race_of(finding)
    half = missing = None
    if core is not None and between is not None:
        half, missing = half_pair(core, between), missing_flag(core, between)
    if missing is not None and missing.in_next_pass:
        calls[1] += ", in the next pass of the loop,"
    shared = _shared(finding, words)
    if shared is not None:
        sentence = f"{calls[1]} writes {words.array(later)} over what {calls[0]} wrote; {shared}"
        return (
            f"{sentence}, or, if they are meant to, {_Order(earlier, later, words).added(missing)}"
        )
    raced = _raced(finding, words, calls)
    if half is not None and words.of(later.location).flag:
        return f"{raced}: {_Order(earlier, later, words).completed(half)}"
    return f"{raced}; {_Order(earlier, later, words).added(missing)}"


def _raced(finding: SanitizerFinding, words: SourceWords, calls: list[str]) -> str:
    """Return the two calls and the bytes that they race for."""
    earlier, later = finding.accesses
    first, second = calls
    array = words.array(later)
    if earlier.how == later.how:
        return f"{second} and {first} may write {array} in either order"
    return f"{second} may {later.how} {array} before {first} {_HAS[earlier.how]} it"


def _shared(finding: SanitizerFinding, words: SourceWords) -> str | None:
    """Return which two arrays of a function begin at bytes that both take; None of one array."""
    earlier, later = finding.accesses
    if finding.id != "race-waw" or earlier.location.file != later.location.file:
        return None
    places = declared_arrays(finding.accesses, words)
    if not places or earlier.location.function != later.location.function:
        return None
    return f"{places[0]} and {places[1]} share bytes: give one of them another address"


def declared_arrays(accesses: Sequence[FindingAccess], words: SourceWords) -> list[str]:
    """Return the arrays of two accesses with their declarations; none unless both are known."""
    file = accesses[0].location.file
    names = [
        array_name(words.operand(each.instruction, each.operand, each.location))
        for each in accesses
    ]
    lines = [declared(file, name) for name in names]
    if names[0] == names[1] or None in lines:
        return []
    return [
        f"{name} ({line.by} at {file}:{line.line})"
        for name, line in zip(names, lines, strict=True)
        if line is not None
    ]


def _of_two_cores(finding: SanitizerFinding, words: SourceWords) -> str:
    """Return the sentence of a race of two cores: neither access is the first one."""
    earlier, later = finding.accesses
    array, dialect = words.array(later), words.of(later.location)
    if earlier.how == later.how:
        calls = [words.call(each.instruction, each.location) for each in finding.accesses]
        blocks = [words.block(each.core) for each in finding.accesses]
        sentence = f"{calls[1]} in {blocks[1]} and {calls[0]} in {blocks[0]} may write {array}"
        if calls[0] == calls[1]:
            sentence = f"{calls[1]} may write {array} in {blocks[1]} and in {blocks[0]},"
        return f"{sentence} in either order; {_own_bytes(finding, words)}"
    # Cores have no order: the sentence begins with the write, whichever was executed first here. A
    # barrier of all cores is the remedy where both ways are possible, a signal where one is.
    write, read = (earlier, later) if earlier.how == "write" else (later, earlier)
    called = [
        f"{words.call(each.instruction, each.location)} in {words.block(each.core)}"
        for each in (write, read)
    ]
    sentence = f"{called[0]} writes {array}, which {called[1]} reads, and nothing orders the two"
    if not dialect.flag:
        return f"{sentence}; give each block bytes of its own"
    across = ("AIC" in earlier.core) != ("AIC" in later.core)
    one_way = _is_one_way(write, read, words)
    order = (write, read) if one_way else _in_order(finding, words)
    before, behind = (words.plain(each.instruction, each.location) for each in order)
    if dialect.all_cores and not across and not one_way:
        return f"{sentence}; put {dialect.all_cores} behind {before} and before {behind}"
    signal, wait = dialect.signals(across_parts=across or "AIC" in earlier.core)
    return f"{sentence}; put {signal} behind {before} and {wait} before {behind}"


def _own_bytes(finding: SanitizerFinding, words: SourceWords) -> str:
    """Return how two blocks that write the same bytes are put right."""
    access = finding.accesses[1]
    dialect = words.of(access.location)
    if access.location.call in dialect.matmul_calls:
        return "give each block bytes of its own, or let them add up by enAtomic = 1"
    begun = _begin_apart(finding, words)
    return f"give each block bytes of its own{begun}"


def _begin_apart(finding: SanitizerFinding, words: SourceWords) -> str:
    """Return where two blocks begin to write, and how far, if not at the same byte."""
    spans = list[tuple[int, int]]()
    for access in finding.accesses:
        core, array = words.issued.get(access.core), words.arrays.get(access.memory, range(0))
        numbers = core.numbers(key_of(access.instruction, access.location)) if core else ()
        if core is None or len(numbers) != 1:
            return ""
        touch = core.operand(numbers[0], access.operand)
        if touch is None:
            return ""
        spans.append((touch.start - array.start, touch.end - array.start))
    spans.sort()  # blocks that begin apart and meet all the same: a count or a stride is wrong
    (one, end), (other, _) = spans
    if one == other:
        return ""
    return (
        f": they begin {other - one} B apart, and the one at byte {one} writes up to byte {end} in "
        "steps of its stride; start them further apart, or change the count or the stride of each"
    )


def _is_one_way(write: FindingAccess, read: FindingAccess, words: SourceWords) -> bool:
    """Return whether the block that writes never comes to the read: the other waits for it."""
    core = words.issued.get(write.core)
    return core is not None and not core.numbers(key_of(read.instruction, read.location))


def _in_order(finding: SanitizerFinding, words: SourceWords) -> tuple[FindingAccess, FindingAccess]:
    """Return the accesses of two cores in the order of the source, if both run the same program.

    It is the order in which one core alone would come to the two.
    """
    earlier, later = finding.accesses
    other = words.issued.get(later.core)
    first, second = _number(earlier, words), _number(later, words)
    if other is None or first is None or second is None:
        return earlier, later
    alike = bool(other.numbers(key_of(earlier.instruction, earlier.location)))
    return (later, earlier) if alike and second < first else (earlier, later)


def _number(access: FindingAccess, words: SourceWords) -> int | None:
    """Return the position at which a core comes to an access of global memory first."""
    core, array = words.issued.get(access.core), words.arrays.get(access.memory, range(0))
    if core is None:
        return None
    touched = Mem.GM.label, array.start + access.start, array.start + access.end
    for number in core.numbers(key_of(access.instruction, access.location)):
        if any(touch.meets(*touched) for touch in core.touched(number)):
            return number
    return None


@dataclass(frozen=True, slots=True)
class _Order:
    """The order that the source must give two accesses of a core."""

    earlier: FindingAccess
    later: FindingAccess
    words: SourceWords

    @property
    def _dialect(self) -> Dialect:
        return self.words.of(self.later.location)

    def completed(self, half: HalfPair) -> str:
        """Return what is wrong with the flag that there is, and where its other half belongs."""
        call, word = self._call_of(half), self.words
        before = word.plain(self.earlier.instruction, self.earlier.location)
        later = word.short(self.later.instruction, self.later.location)
        if half.fault == SET_EARLY:
            return f"{call} stands before {before}; move it behind that"
        if half.fault == AWAITED_LATE:
            return f"{call} stands behind this {later}; move it before"
        queue = receiver(half.where) if half.where.call == "EnQue" else ""
        pipes = self.earlier.pipe, self.later.pipe
        wait = f"{queue}.DeQue" if queue else self._dialect.wait_flag(*pipes, half.event)
        behind = word.plain(self.later.instruction, self.later.location)
        return f"{call} is not waited for before that; put {wait} before {behind}"

    def _call_of(self, half: HalfPair) -> str:
        """Return the call that sets or awaits a flag, a queue's or its own, at its line."""
        later, dialect = self.later, self._dialect
        # Several calls may set this flag; that of the array's own queue is the one to name.
        name = self.words.operand(later.instruction, later.operand, later.location)
        queue_name = queue_of(later.location.file, name)
        own = (each for each in half.alike if queue_name and receiver(each) == queue_name)
        where = next(own, half.where)
        pipes = self.earlier.pipe, self.later.pipe
        kind = WaitFlag if half.fault == AWAITED_LATE else SetFlag
        if where.call not in {"", dialect.name(kind)}:
            queue = receiver(where)
            return f"{f'{queue}.' if queue else ''}{where.call} at {line_of(where)}"
        flag = dialect.wait_flag if kind is WaitFlag else dialect.set_flag
        return f"{flag(*pipes, half.event)} at {line_of(where)}"

    def added(self, missing: MissingFlag | None) -> str:
        """Return what orders the accesses, of which nothing is there."""
        earlier, later, words, dialect = self.earlier, self.later, self.words, self._dialect
        before, behind = (words.plain(a.instruction, a.location) for a in (earlier, later))
        if not dialect.flag:
            return f"put {behind} behind {before}"
        if earlier.pipe == later.pipe:
            return f"put {dialect.pipe_barrier(later.pipe)} between them"
        # Where a queue hands this array on between these pipes already, its calls are what reads as
        # the rest of the kernel does; else a pair of flags, at the lines next to the two.
        pipes = earlier.pipe, later.pipe
        handed = pipes if earlier.how == "write" else pipes[::-1]
        name = words.operand(later.instruction, later.operand, later.location)
        queued = dialect.queued(earlier.how, queue_of(later.location.file, name))
        if queued and handed in _QUEUED and may_be_queued(later.location.file, name):
            return queued
        event = None if missing is None else missing.event
        raised, awaited = dialect.set_flag(*pipes, event), dialect.wait_flag(*pipes, event)
        if missing is None:
            return f"put {raised} behind {before} and {awaited} before {behind}"
        text = (
            f"put {raised} behind {self._anchored(missing.behind)} and {awaited} before "
            f"{self._anchored(missing.before)}"
        )
        # The first pass waits for a flag that no pass before has set, and the last one sets a flag
        # that no pass behind it waits for: both halves are needed once more outside of the loop.
        if missing.in_next_pass:
            text += f", and once more {raised} before the loop and {awaited} behind it"
        return text

    def _anchored(self, anchor: Anchor) -> str:
        call = self.words.plain(anchor.instruction, anchor.where)
        return f"the loop of {call}" if anchor.looped else call
