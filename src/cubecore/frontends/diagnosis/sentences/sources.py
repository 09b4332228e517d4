"""Origins of bytes that lack a value: the calls that wrote some of them, or none."""

from dataclasses import dataclass
from itertools import pairwise

from cubecore.frontends.diagnosis.dependence import IssuedCore, Touch, key_of
from cubecore.frontends.diagnosis.source_words import SourceWords
from cubecore.isa.declare.instruction import Mem
from cubecore.isa.program.tree import Location
from cubecore.machine.sanitize.findings import FindingAccess


@dataclass(frozen=True, slots=True)
class ReadSource:
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
            return f"{self.call(words)} took it from {self.taken(words)}"
        filled, times = self.filled
        if times > 1:
            return f"{counted}, by {self.call(words)}, which fills {filled} B in {times} calls"
        return f"{counted}, by {self.call(words)}, which fills {filled} B"

    @property
    def filled(self) -> tuple[int, int]:
        """The number of bytes read that the writer's line wrote, and in how many calls."""
        assert self.writer is not None
        template, _, where = self.core.issues[self.writer]
        spans = list[tuple[int, int]]()
        for number in self.core.numbers(key_of(template.name, where)):
            if number < self.reader:
                spans += [
                    (touch.start, touch.end)
                    for touch in self.core.touched(number)
                    if touch.is_written
                    and touch.meets(self.read.mem.label, self.read.start, self.read.end)
                ]
        # A loop of copies that lie side by side fills their sum. Ones that meet, as in two passes
        # over one buffer, fill no more than one of them.
        apart = sorted(set(spans))
        if len(apart) > 1 and all(one[1] <= other[0] for one, other in pairwise(apart)):
            return sum(end - start for start, end in apart), len(apart)
        written = self.written
        return (0 if written is None else written.end - written.start), 1

    def taken(self, words: SourceWords) -> str:
        """Return the memory that the writer took what is not initialised from, and what fills it.

        A chain of copies is followed to the one that moves less than the next one takes.
        """
        assert self.writer is not None
        local = (t for t in self.core.touched(self.writer) if t.is_read and t.mem is not Mem.GM)
        read = next(local, None)
        if read is None:
            return "uninitialised memory"
        whole = range(read.start, read.end)
        source = written_before(self.core, self.writer, read, whole)
        if source.covers:
            return source.taken(words)
        taken = f"{len(whole)} B of {read.mem.label}[{read.start}, {read.end})"
        if source.written is None:
            stops = _ends_at(self.core, self.writer, read)
            behind = f": {words.call(*stops)} stops where they begin" if stops else ""
            return f"{taken}, which nothing writes{behind}"
        filled, _ = source.filled
        return f"{taken}, of which {source.call(words)} fills {filled} B"

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


def source_of(core: IssuedCore, access: FindingAccess) -> ReadSource | None:
    """Return what an access reads, and what wrote it."""
    for number in core.numbers(key_of(access.instruction, access.location)):
        read = core.operand(number, access.operand)
        if read is not None and read.meets(access.memory, access.start, access.end):
            return written_before(core, number, read, range(access.start, access.end))
    return None


def _ends_at(core: IssuedCore, number: int, read: Touch) -> tuple[str, Location] | None:
    """Return the last instruction before one that wrote up to where a read begins, if one did."""
    for earlier in range(number - 1, -1, -1):
        for touch in core.touched(earlier):
            if touch.is_written and (touch.mem, touch.end) == (read.mem, read.start):
                return core.issues[earlier][0].name, core.location(earlier)
    return None


def written_before(core: IssuedCore, number: int, read: Touch, lacking: range) -> ReadSource:
    """Return what wrote bytes last before an instruction read them."""
    for earlier in range(number - 1, -1, -1):
        for touch in core.touched(earlier):
            if touch.is_written and touch.meets(read.mem.label, read.start, read.end):
                return ReadSource(core, number, read, lacking, earlier, touch)
    return ReadSource(core, number, read, lacking, None, None)
