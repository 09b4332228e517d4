"""Sentences of bounds and of values: the call, its array, and which call fell short."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace

from cubecore.frontends.diagnosis.arguments import receiver, source_lines
from cubecore.frontends.diagnosis.declarations import declared, global_start
from cubecore.frontends.diagnosis.dependence import IssuedCore, Touch, key_of
from cubecore.frontends.diagnosis.source_words import SourceWords, line_of
from cubecore.isa.catalogue import instructions
from cubecore.isa.declare.instruction import Mem
from cubecore.isa.program.check import memory_bytes
from cubecore.lazy_dataclass import dataclass
from cubecore.machine.sanitizer.findings import FindingAccess, SanitizerFinding
from cubecore.units import plural

_SHOWN_RANGES = 3
"""Ranges of bytes that a sentence lists."""
_SCALAR = re.compile(r"the scalar \w+ must be initialised in (?P<memory>\w+), got (?P<address>\d+)")
_ALIGNMENT = re.compile(r"start at a multiple of (?P<unit>\d+) B in \w+")


# --- bounds


def outside(finding: SanitizerFinding, words: SourceWords) -> str:
    """Return the sentence of an access that leaves its array."""
    if finding.limits is None or not finding.accesses:
        return ""
    access, (low, high) = finding.accesses[0], finding.limits
    verb = "reads" if access.how == "read" else "writes"
    beyond = (
        f"{access.end - high} B past its end"
        if access.end > high
        else f"{low - access.start} B before its beginning"
    )
    if access.memory not in words.arrays:
        name = words.operand(access.instruction, access.operand, access.location) or "an array"
        touched = f"bytes [{access.start - low}, {access.end - low}) of {name}"
        has = f"which has {high - low} B ({access.memory}[{low}, {high}))"
        remedy = _of_local(finding, words)
        return f"{words.at(finding)} {verb} {touched}, {has}: {beyond}; {remedy}"
    told = f"{words.at(finding)} {verb} {words.array(access)}, which has {high - low} B"
    if gaps := _gaps(access, words):
        return f"{told}: {beyond}; {gaps}"
    started = _started_past(finding, words) if access.start >= high else ""
    return f"{told}: {started or f'{beyond}; {_of_global(finding, words)}'}"


def _gaps(access: FindingAccess, words: SourceWords) -> str:
    """Return which strides of a call make it leave an array that is large enough without gaps."""
    core, array = words.issued.get(access.core), words.arrays[access.memory]
    # Of a call in a loop the finding is about one pass: the one whose access begins where it does.
    for number in () if core is None else core.numbers(key_of(access.instruction, access.location)):
        assert core is not None
        touch, dense = core.operand(number, access.operand), core.dense(number, access.operand)
        if touch is None or touch.start - array.start != access.start:
            continue
        if dense < touch.end - touch.start and access.start + dense <= len(array):
            spread = f"its strides spread {dense} B over {touch.end - touch.start} B"
            return f"{spread}: make them smaller, or start earlier"
    return ""


def _of_local(finding: SanitizerFinding, words: SourceWords) -> str:
    """Return the remedy for a local array: the count, if a call leaves several; else its size."""
    assert finding.limits is not None
    access, (low, high) = finding.accesses[0], finding.limits
    same_call = {
        each.limits
        for each in words.findings
        if each.id == finding.id and each.location == finding.location
    }
    if len(same_call) > 1:
        return f"take fewer elements there, {len(same_call)} arrays are too short for so many"
    name = words.operand(access.instruction, access.operand, access.location)
    by = declared(access.location.file, name)
    room = _room(access, low, words)
    if room is not None and access.end - low > room:
        return f"take fewer elements there: {access.memory} has {room} B from its first byte on"
    if access.end <= high or by is None:
        return "take fewer elements there, or make it larger"
    at = f"{by.by} at {access.location.file}:{by.line}"
    return f"make it {access.end - low} B ({at}), or take fewer elements there"


def _room(access: FindingAccess, start: int, words: SourceWords) -> int | None:
    """Return how many bytes of its memory an array that starts there can have at most.

    None of a table of the kernel's file, which lies in global memory.
    """
    memory = next((mem for mem in Mem if mem.label == access.memory), None)
    return None if memory is None else memory_bytes(words.chip, memory)[1] - start


def alignment(finding: SanitizerFinding) -> int | None:
    """Return the bytes that an address must be a multiple of; None of another requirement."""
    need = None if finding.claim is None else _ALIGNMENT.fullmatch(finding.claim.requirement)
    return None if need is None else int(need["unit"])


def misaligned(finding: SanitizerFinding, words: SourceWords) -> str:
    """Return the sentence of an address off its alignment, and the nearest ones that are on it."""
    claim, unit = finding.claim, alignment(finding)
    if claim is None or unit is None:
        return ""
    got = int(claim.value)
    operand = claim.subject.rpartition(".")[2]
    written = words.operand(finding.instruction, operand, finding.location)
    subject = f"{operand} ({written})" if written and written != operand else operand
    past = got % unit
    return (
        f"{words.at(finding)}: {subject} must {claim.requirement}, got {got}; start it {past} B "
        f"earlier, at {got - past}, or {unit - past} B later, at {got - past + unit}"
    )


def _of_global(finding: SanitizerFinding, words: SourceWords) -> str:
    """Return the remedy for an array in global memory."""
    if finding.location.call in words.of(finding.location).matmul_calls:
        return (
            "give a smaller block at an edge its rows and columns by SetTail, or start the block "
            "earlier in SetTensorA, SetTensorB or its GlobalTensor"
        )
    return "take fewer elements there, or start elsewhere"


def _started_past(finding: SanitizerFinding, words: SourceWords) -> str:
    """Return which blocks begin at or past the end of an array, and the remedy; else nothing."""
    access = finding.accesses[0]
    array = words.arrays[access.memory]
    key = key_of(access.instruction, access.location)
    starts = dict[int, int]()
    for name in words.issued.names:
        core, blocks = words.issued.get(name), words.blocks.get(name, range(0))
        numbers = () if core is None else core.numbers(key)
        if core is None or len(blocks) != 1 or not numbers:
            continue
        touch = core.operand(numbers[0], access.operand)
        if touch is not None:
            starts[blocks[0]] = touch.start - array.start
    past = sorted(block for block, start in starts.items() if start >= len(array))
    if not past:
        return ""
    verb = "starts" if len(past) == 1 else "start"
    told = f"{_listed('block', [str(block) for block in past])} {verb} at or past its end"
    first = min(starts.values())
    if first > 0:
        begun = _begun(access, words)
        return f"{told}, and no block at byte 0, the first at {first}; start each earlier{begun}"
    inside = len(starts) - len(past)
    return f"{told}; launch {plural(inside, 'block')}, or give each block a smaller share"


def _begun(access: FindingAccess, words: SourceWords) -> str:
    """Return where the source says at which byte of an array an access begins."""
    name = words.operand(access.instruction, access.operand, access.location)
    line = global_start(access.location.file, name)
    places = [f"{name} in this call"] if {"[", "+"} & set(name) else []
    if line and (not places or "+" in source_lines(access.location.file)[line - 1]):
        places.append(f"SetGlobalBuffer at {access.location.file}:{line}")
    return f": change {' or '.join(places)}" if places else ""


def _listed(noun: str, members: Sequence[str]) -> str:
    """Return ``block 3``, or ``blocks 2 and 3``."""
    if len(members) == 1:
        return f"{noun} {members[0]}"
    if len(members) > _SHOWN_RANGES:
        return f"{noun}s {members[0]} to {members[-1]}"
    return f"{noun}s {', '.join(members[:-1])} and {members[-1]}"


# --- values


def uninitialised(finding: SanitizerFinding, words: SourceWords) -> str:
    """Return the sentence of a read of bytes that nothing has written, or of such an output."""
    claim = finding.claim
    if claim is None:
        return _scalar(finding)
    if not finding.accesses:
        return _output(finding, words)
    access = finding.accesses[0]
    if finding.elements is None:
        read = f"{words.at(finding)} reads {words.array(access)} before it is initialised"
        return f"{read}: {claim.value}; load or fill it first"
    kind = instructions()[finding.instruction]
    remedy = "load or fill it first"
    if access.memory == Mem.L0C.label and hasattr(kind, "c_matrix_init_val"):
        remedy = f"{words.of(finding.location).start_zero} to start from 0, or load it first"
    missing, all_of_it = finding.elements
    core = words.issued.get(finding.core)
    source = None if core is None else _source_of(core, access)
    whole, told = access, f"{all_of_it - missing} of {all_of_it} elements are written"
    if source is not None:
        whole = replace(access, start=source.read.start, end=source.read.end)
        remedy = source.remedy(words, remedy)
        told = source.told(words, told)
        if spread := source.spread(all_of_it):
            call = words.short(finding.instruction, finding.location)
            told += f"; the strides of {call} spread {all_of_it} elements over {spread} B"
    verb = "adds to" if words.updates(access) else "reads"
    read = f"{words.at(finding)} {verb} {words.array(whole)} before it is initialised"
    return f"{read}: {told}; {remedy}"


def _scalar(finding: SanitizerFinding) -> str:
    """Return the sentence of a value of memory that the scalar unit reads before it is written."""
    read = _SCALAR.fullmatch(finding.message)
    if read is None:
        return ""
    where, of = finding.location, receiver(finding.location)
    call = f"{of}.{where.call}" if of else where.call or "the scalar unit"
    spot = f"{read['memory']}[{read['address']}]"
    return (
        f"{call} at {line_of(where)} reads {spot} before it is initialised; load or fill it first"
    )


@dataclass(frozen=True, slots=True)
class _Source:
    """Bytes that an access reads, and the last instruction that wrote some of them, if one did.

    `lacking` are the bytes, of those that are not initialised, from the first to the last.
    """

    core: IssuedCore
    reader: int
    read: Touch
    lacking: range
    writer: int | None
    written: Touch | None

    @property
    def covers(self) -> bool:
        """True if the writer wrote what is not initialised: it took that from elsewhere."""
        written = self.written
        return (
            written is not None
            and written.start <= self.lacking.start
            and self.lacking.stop <= written.end
        )

    def call(self, words: SourceWords) -> str:
        """Return the call that wrote some of it."""
        assert self.writer is not None
        return words.call(self.core.issues[self.writer][0].name, self.core.location(self.writer))

    def told(self, words: SourceWords, counted: str) -> str:
        """Return how much is written, and by which call."""
        if self.written is None:
            return counted
        if self.covers:
            return f"{self.call(words)} took it from uninitialised memory"
        filled = self.written.end - self.written.start
        return f"{counted}, by {self.call(words)}, which fills {filled} B"

    @property
    def dense(self) -> int:
        """The bytes of what the writer computes, side by side; 0 where that is not known."""
        if self.writer is None:
            return 0
        written = (o for o in self.core.issues[self.writer][0].operands() if o.access.writes)
        return max((self.core.dense(self.writer, each.name) for each in written), default=0)

    def spread(self, elements: int) -> int:
        """Return over how many bytes a call spreads as many elements as were written, else 0."""
        if self.written is None:
            return 0
        template = self.core.issues[self.reader][0]
        sizes = {each.size_bytes for each in map(template.element, template.operands())}
        filled, span = self.written.end - self.written.start, self.read.end - self.read.start
        return span if len(sizes) == 1 and elements * min(sizes) == filled < span else 0

    def remedy(self, words: SourceWords, otherwise: str) -> str:
        """Return what is to be changed."""
        if self.written is None:
            return otherwise
        return "load or fill that first" if self.covers else "fill the rest there, or read less"


def _source_of(core: IssuedCore, access: FindingAccess) -> _Source | None:
    """Return what an access reads, and what wrote it."""
    for number in core.numbers(key_of(access.instruction, access.location)):
        read = core.operand(number, access.operand)
        if read is not None and read.meets(access.memory, access.start, access.end):
            return _written_before(core, number, read, range(access.start, access.end))
    return None


def _written_before(core: IssuedCore, number: int, read: Touch, lacking: range) -> _Source:
    """Return what wrote bytes last before an instruction read them."""
    for earlier in range(number - 1, -1, -1):
        for touch in core.touched(earlier):
            if touch.is_written and touch.meets(read.mem.label, read.start, read.end):
                return _Source(core, number, read, lacking, earlier, touch)
    return _Source(core, number, read, lacking, None, None)


# --- outputs


@dataclass(frozen=True, slots=True)
class _Store:
    """An instruction that writes bytes [start, end) of an array."""

    core: IssuedCore
    number: int
    start: int
    end: int

    def call(self, words: SourceWords) -> str:
        """Return the call that stores."""
        return words.call(self.core.issues[self.number][0].name, self.core.location(self.number))

    @property
    def local(self) -> Touch | None:
        """The local bytes that it takes, one for one; None where they are not in order."""
        size = self.end - self.start
        reads = [t for t in self.core.touched(self.number) if t.is_read and t.mem is not Mem.GM]
        alike = [touch for touch in reads if touch.end - touch.start == size]
        return alike[0] if len(reads) == len(alike) == 1 else None


def _output(finding: SanitizerFinding, words: SourceWords) -> str:
    """Return which bytes of an output are not stored, or are stored from uninitialised memory."""
    claim = finding.claim
    assert claim is not None
    array, ranges = words.arrays.get(claim.subject), finding.arrays
    subject = f"output {claim.subject}"
    if array is None or not ranges:
        return f"{subject}: {claim.value}; store to all of it"
    stores = list(_stores(words, array))
    bare = [each for each in ranges if not any(s.start <= each[0] < s.end for s in stores)]
    copied = [each for each in ranges if each not in bare]
    told = []
    if bare:
        told.append(_not_stored(bare, stores, words, len(array)))
    if copied:
        told.append(_stored_unwritten(copied, stores, words, len(array)))
    return f"{subject}: {'; '.join(told)}"


def _stores(words: SourceWords, array: range) -> Iterator[_Store]:
    """Yield what writes to an array, in the order of each core."""
    for name in words.issued.names:
        core = words.issued.get(name)
        for number in range(0 if core is None else len(core.issues)):
            assert core is not None
            for touch in core.touched(number):
                if touch.is_written and touch.meets(Mem.GM.label, array.start, array.stop):
                    start, end = touch.start - array.start, touch.end - array.start
                    yield _Store(core, number, start, end)


def _counted(ranges: Sequence[tuple[int, int]], size: int) -> str:
    """Return how many bytes there are in ranges, and the first of these."""
    missing = sum(end - start for start, end in ranges)
    shown = [f"[{start}, {end})" for start, end in ranges[:_SHOWN_RANGES]]
    more = ", ..." if len(ranges) > _SHOWN_RANGES else ""
    return f"{missing} of {size} B, bytes {', '.join(shown)}{more},"


def _not_stored(
    ranges: Sequence[tuple[int, int]], stores: Sequence[_Store], words: SourceWords, size: int
) -> str:
    """Return that bytes are never stored, and which store ends where they begin."""
    told = f"{_counted(ranges, size)} are never stored"
    if not stores:
        return f"{told}: no call writes to it"
    start, end = ranges[0]
    short = next((store for store in stores if store.end == start), None)
    if short is None:
        late = next((store for store in stores if store.start == end), None)
        if late is None:
            return f"{told}; store to them"
        return f"{told}: {late.call(words)} begins at byte {end}; let it begin at {start}"
    return (
        f"{told}: {short.call(words)} stops at byte {start}; let its loop or count go on to {end}"
    )


def _stored_unwritten(
    ranges: Sequence[tuple[int, int]], stores: Sequence[_Store], words: SourceWords, size: int
) -> str:
    """Return which store takes bytes from uninitialised memory, and what fills less of it."""
    start, end = ranges[0]
    store = [each for each in stores if each.start <= start < each.end][-1]
    local = store.local
    counted = _counted(ranges, size)
    if local is None:
        return (
            f"{counted} are left out by {store.call(words)}, or stored from uninitialised memory; "
            "write them first"
        )
    told = f"{counted} are stored from uninitialised memory by {store.call(words)}"
    begin = local.start + start - store.start
    lacking = range(begin, min(begin + end - start, local.end))
    source = _written_before(store.core, store.number, local, lacking)
    taken = f"{local.end - local.start} B of {local.mem.label}[{local.start}, {local.end})"
    if source.written is None:
        return f"{told}: it takes {taken}, which nothing writes; load or fill them first"
    if source.covers:
        return f"{told}: {source.call(words)} took them from there; load or fill that first"
    filled = source.written.end - source.written.start
    filled_by = f"{source.call(words)} fills {filled} B"
    if (dense := source.dense) > filled:
        filled_by += f" with {dense} B that its strides lay over each other"
    return f"{told}: it takes {taken}, of which {filled_by}; fill the rest there, or store less"
