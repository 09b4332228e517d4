"""Sentences of outputs: bytes that are not stored, or stored from uninitialised memory."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from cubecore.frontends.diagnosis.dependence import IssuedCore, Touch, key_of
from cubecore.frontends.diagnosis.sentences.sources import written_before
from cubecore.frontends.diagnosis.source_words import SourceWords
from cubecore.isa.catalogue import instructions
from cubecore.isa.declare.instruction import Mem
from cubecore.machine.sanitize.findings import SanitizerFinding

SHOWN_RANGES = 3
"""Ranges of bytes that a sentence lists."""


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

    def taken(self, local: Touch, start: int, end: int) -> range:
        """Return where its local memory has what it stores to bytes [start, end) of the array."""
        begin = local.start + start - self.start
        return range(begin, min(begin + end - start, local.end))


def output(finding: SanitizerFinding, words: SourceWords) -> str:
    """Return which bytes of an output are not stored, or are stored from uninitialised memory."""
    claim = finding.claim
    assert claim is not None
    array, ranges = words.arrays.get(claim.subject), finding.arrays
    subject = f"output {claim.subject}"
    if finding.instruction in instructions():
        return _added_to(finding, words)
    if array is None or not ranges:
        return f"{subject}: {claim.value}; store to all of it"
    stores = list(_stores(words, array))
    bare = [each for each in ranges if not any(s.start <= each[0] < s.end for s in stores)]
    copied = [each for each in ranges if each not in bare]
    sentences = []
    if bare:
        sentences.append(_not_stored(bare, stores, words, len(array)))
    if copied:
        sentences.append(_stored_unwritten(copied, stores, words, len(array)))
    return f"{subject}: {'; '.join(sentences)}"


def _added_to(finding: SanitizerFinding, words: SourceWords) -> str:
    """Return the sentence of an atomic store to bytes of an array that have no value."""
    array = _array_of(finding, words)
    if array is None:
        return f"{words.at(finding)} adds to bytes that are not initialised; fill them first"
    name, start, end = array
    held = words.arrays[name]
    sentence = (
        f"{words.at(finding)} adds to bytes [{start}, {end}) of {name} before they are initialised"
    )
    left = (
        each.arrays
        for each in words.findings
        if each.instruction not in instructions() and each.claim and each.claim.subject == name
    )
    lacking = [(a, b) for a, b in next(left, ()) if a < end and start < b]
    stores = list(_stores(words, held))
    earlier = [s for s in stores if any(s.start <= low < s.end for low, _ in lacking)]
    if not earlier:
        return f"{sentence}; fill them before the launch, or store to them first"
    return f"{sentence}: {_stored_unwritten(lacking, earlier, words, len(held))}"


def _array_of(finding: SanitizerFinding, words: SourceWords) -> tuple[str, int, int] | None:
    """Return the array in global memory that an instruction writes, and the bytes of it."""
    core = words.issued.get(finding.core)
    key = key_of(finding.instruction, finding.location)
    for number in () if core is None else core.numbers(key):
        assert core is not None
        for touch in core.touched(number):
            for name, held in words.arrays.items():
                if touch.is_written and touch.meets(Mem.GM.label, held.start, held.stop):
                    return name, touch.start - held.start, touch.end - held.start
    return None


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
    shown = [f"[{start}, {end})" for start, end in ranges[:SHOWN_RANGES]]
    more = ", ..." if len(ranges) > SHOWN_RANGES else ""
    return f"{missing} of {size} B, bytes {', '.join(shown)}{more},"


def _not_stored(
    ranges: Sequence[tuple[int, int]], stores: Sequence[_Store], words: SourceWords, size: int
) -> str:
    """Return that bytes are never stored, and which store ends where they begin."""
    sentence = f"{_counted(ranges, size)} are never stored"
    if not stores:
        return f"{sentence}: no call writes to it"
    start, end = ranges[0]
    short = next((store for store in stores if store.end == start), None)
    if short is None:
        late = next((store for store in stores if store.start == end), None)
        if late is None:
            return f"{sentence}; store to them"
        return f"{sentence}: {late.call(words)} begins at byte {end}; let it begin at {start}"
    stop = f"stops at byte {start}; let its loop or count go on to {end}"
    return f"{sentence}: {short.call(words)} {stop}"


def _takes_unwritten(store: _Store, start: int, end: int) -> bool:
    """Return whether bytes [start, end) of an array come from memory that nothing has written."""
    local = store.local
    if local is None:
        return False
    source = written_before(store.core, store.number, local, store.taken(local, start, end))
    return source.written is None or not source.covers


def _stored_unwritten(
    ranges: Sequence[tuple[int, int]], stores: Sequence[_Store], words: SourceWords, size: int
) -> str:
    """Return which store takes bytes from uninitialised memory, and what fills less of it."""
    start, end = ranges[0]
    covering = [each for each in stores if each.start <= start < each.end]
    # Others may store the same bytes from memory that is written, such as zeros before a sum.
    store = next((s for s in reversed(covering) if _takes_unwritten(s, start, end)), covering[-1])
    local = store.local
    counted = _counted(ranges, size)
    if local is None:
        return (
            f"{counted} are left out by {store.call(words)}, or stored from uninitialised memory; "
            "write them first"
        )
    sentence = f"{counted} are stored from uninitialised memory by {store.call(words)}"
    source = written_before(store.core, store.number, local, store.taken(local, start, end))
    taken = f"{local.end - local.start} B of {local.mem.label}[{local.start}, {local.end})"
    if source.written is None:
        return f"{sentence}: it takes {taken}, which nothing writes; load or fill them first"
    if source.covers:
        return f"{sentence}: {source.call(words)} took them from there; load or fill that first"
    filled = source.written.end - source.written.start
    filled_by = f"{source.call(words)} fills {filled} B"
    if (dense := source.dense) > filled:
        filled_by += f" with {dense} B that its strides lay over each other"
    return f"{sentence}: it takes {taken}, of which {filled_by}; fill the rest there, or store less"
