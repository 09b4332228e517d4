"""Dependence between instructions that a core issued: by the bytes they touch, and by its flags.

It is asked for when findings were made, of the cores that they were made on, and follows at most
`MOST_ISSUES` instructions of each.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice
from typing import NamedTuple

import numpy as np

from cubecore.isa.declare.instruction import Instruction, Mem
from cubecore.isa.declare.operand_overlap import span_bytes
from cubecore.isa.declare.registers import Registers
from cubecore.isa.program.expr import Var
from cubecore.isa.program.trace import InstructionTrace, Recorded
from cubecore.isa.program.tree import Issue, LoadScalar, Location, Program
from cubecore.isa.scalar.sync import PipeBarrier, SetFlag, WaitFlag
from cubecore.machine.sanitize.findings import SanitizerFinding

MOST_ISSUES = 100_000
Key = tuple[str, str, int]
"""An instruction with its file and line; the empty name stands for any instruction there."""
_NOBODY: frozenset[int] = frozenset()


def key_of(instruction: str, where: Location) -> Key:
    """Return the key of an instruction at a location."""
    return instruction, where.file, where.line


@dataclass(frozen=True, slots=True)
class Race:
    """Two accesses that nothing orders, of bytes that both touch: their instructions and pipes."""

    earlier: Key
    earlier_pipe: str
    later: Key
    later_pipe: str
    memory: str
    start: int
    end: int


def race_of(finding: SanitizerFinding) -> Race | None:
    """Return the race inside a core that a finding is; None for everything else."""
    if finding.race_pipes is None:
        return None
    earlier, later = finding.accesses
    return Race(
        key_of(earlier.instruction, earlier.location),
        earlier.pipe,
        key_of(later.instruction, later.location),
        later.pipe,
        later.memory,
        later.start,
        later.end,
    )


class DependentBytes:
    """Findings that bytes of one memory depend on: ranges [start, end), each with numbers.

    They lie in order and apart, and those that touch have other numbers: a kernel that writes one
    tile behind another has one range, not thousands.
    """

    def __init__(self) -> None:
        self._ranges: list[tuple[int, int, frozenset[int]]] = []
        self._ends: list[int] = []

    def read(self, start: int, end: int) -> frozenset[int]:
        """Return the findings that bytes depend on."""
        first, last = self._within(start, end)
        held = [numbers for _, _, numbers in self._ranges[first:last]]
        return frozenset().union(*held) if held else _NOBODY

    def write(self, start: int, end: int, numbers: frozenset[int]) -> None:
        """Let bytes depend on findings, and on no others any more."""
        if (not numbers and not self._ranges) or start >= end:
            return
        first, last = self._within(start, end)
        parts = []
        for low, high, held in self._ranges[first:last]:
            parts += [(low, start, held)] if low < start else []
            parts += [(end, high, held)] if end < high else []
        if numbers:
            # What touches the new range with the same numbers becomes a part of it.
            parts.append((start, end, numbers))
            around = range(max(first - 1, 0), min(last + 1, len(self._ranges)))
            first, last = around.start, around.stop
            kept = [self._ranges[n] for n in around if not self._meets(n, start, end)]
            parts = _joined(sorted([*parts, *kept]))
        self._ranges[first:last] = sorted(parts)
        self._ends[first:last] = [high for _, high, _ in self._ranges[first : first + len(parts)]]

    def _meets(self, number: int, start: int, end: int) -> bool:
        low, high, _ = self._ranges[number]
        return low < end and start < high

    def _within(self, start: int, end: int) -> tuple[int, int]:
        """Return the numbers [first, last) of the ranges that share bytes with [start, end)."""
        first = last = bisect_right(self._ends, start)
        while last < len(self._ranges) and self._ranges[last][0] < end:
            last += 1
        return first, last


def _joined(
    ranges: Iterable[tuple[int, int, frozenset[int]]],
) -> list[tuple[int, int, frozenset[int]]]:
    """Return ranges in order, those that touch and have the same numbers as one."""
    joined: list[tuple[int, int, frozenset[int]]] = []
    for low, high, numbers in ranges:
        if joined and joined[-1][1:] == (low, numbers):
            joined[-1] = joined[-1][0], high, numbers
        else:
            joined.append((low, high, numbers))
    return joined


class TreeTrace:
    """The instructions that a tree issues up to the first value it reads (a sink of programs)."""

    def __init__(self) -> None:
        self.trace = InstructionTrace()

    @classmethod
    def of(cls, program: Program, slots: Mapping[Var, int]) -> InstructionTrace:
        """Return what a program issues on a core, as far as it depends on no value in memory."""
        sink = cls()
        with suppress(UnknownValueError):
            program.run(sink, slots)
        return sink.trace

    def handler(self, issue: Issue) -> Callable[..., None]:
        """Return the function that takes a leaf's late values and then its addresses."""
        late, append = len(issue.late), self.trace.append

        def take(*values: int) -> None:
            append(issue.bound(values[:late]), values[late:], issue.location)

        return take

    def load_scalar(self, load: LoadScalar, address: int) -> int:
        """Stop: nothing holds a value here."""
        raise UnknownValueError


class UnknownValueError(Exception):
    """A tree goes on by a value that memory holds."""


class Touch(NamedTuple):
    """The bytes [start, end) that an operand touches, and how."""

    mem: Mem
    is_read: bool
    is_written: bool
    start: int
    end: int

    def conflicts(self, other: "Touch") -> bool:
        """Return whether two instructions must keep an order for these operands."""
        written = self.is_written or other.is_written
        return written and self.meets(other.mem.label, other.start, other.end)

    def meets(self, memory: str, start: int, end: int) -> bool:
        """Return whether it touches one of the bytes [start, end) of a memory."""
        return self.mem.label == memory and self.start < end and start < self.end


class Bytes(NamedTuple):
    """The bytes [start, end) of a memory."""

    memory: str
    start: int
    end: int


class Dependents(NamedTuple):
    """The findings that what an instruction reads depends on, and those of each array.

    `addressed`: the findings that the addresses of an instruction depend on, which registers hold.
    """

    reads: Mapping[Key, frozenset[int]]
    arrays: Mapping[str, frozenset[int]]
    addressed: Mapping[Key, frozenset[int]]


class IssuedCore:
    """The instructions of one core, as far as they are followed."""

    def __init__(self, trace: InstructionTrace) -> None:
        self._issues = _resolved(islice(trace, MOST_ISSUES))
        self._names = trace.names
        self._positions: dict[Key, list[int]] = {}
        for number, (template, _, where) in enumerate(self._issues):
            key = key_of(template.name, where)
            self._positions.setdefault(key, []).append(number)

    def depends(
        self, faults: Mapping[Key, Sequence[int]], arrays: Mapping[str, range]
    ) -> Dependents:
        """Return the findings that instructions and arrays depend on.

        `faults` are the numbers of findings about an instruction: what it writes depends on them.
        """
        contents: dict[Mem, DependentBytes] = {}
        reads: dict[Key, frozenset[int]] = {}
        addressed: dict[Key, frozenset[int]] = {}
        registers = _NOBODY
        of_arrays: dict[str, frozenset[int]] = {}
        for template, addresses, where in self._issues:
            key = key_of(template.name, where)
            touched = tuple(_touched(template, addresses))
            read = frozenset[int]()
            for mem, is_read, _, start, end in touched:
                if is_read and mem in contents:
                    read |= contents[mem].read(start, end)
            own = (*faults.get(key, ()), *faults.get(key_of("", where), ()))
            # Registers hold the addresses of an instruction that is issued without any: a fault of
            # one that sets registers reaches it, and what it writes.
            if touched and not addresses and registers:
                addressed[key] = registers
                read |= registers
            elif not touched and type(template).apply is not Instruction.apply:
                registers = registers.union(own)
            if read:
                reads[key] = reads.get(key, _NOBODY) | read
            numbers = read.union(own) if own else read
            for mem, _, is_written, start, end in touched:
                if is_written and (numbers or mem in contents):
                    contents.setdefault(mem, DependentBytes()).write(start, end, numbers)
                if is_written and numbers and mem is Mem.GM:
                    for name, held in arrays.items():
                        if held.start < end and start < held.stop:
                            of_arrays[name] = of_arrays.get(name, _NOBODY) | numbers
        return Dependents(reads, of_arrays, addressed)

    @property
    def issues(self) -> Sequence[Recorded]:
        """The instructions in order, each with its addresses and its location."""
        return self._issues

    def location(self, number: int) -> Location:
        """Return where an instruction was issued, with the calls that led there."""
        where = self._issues[number][2]
        return self._names.with_callers([where]).get(id(where), where)

    def numbers(self, key: Key) -> Sequence[int]:
        """Return the positions of the instructions of a key."""
        return self._positions.get(key, ())

    def touched(self, number: int) -> tuple[Touch, ...]:
        """Return what the operands of an instruction touch."""
        template, addresses, _ = self._issues[number]
        return tuple(_touched(template, addresses))

    def operand(self, number: int, name: str) -> Touch | None:
        """Return what one operand of an instruction touches, by its name."""
        template, addresses, _ = self._issues[number]
        for operand, span, address in zip(
            template.operands(), _spans(template), addresses, strict=False
        ):
            mem, is_read, is_written, low, high = span
            if operand.name == name and high > low:
                return Touch(mem, is_read, is_written, address + low, address + high)
        return None

    def dense(self, number: int, name: str) -> int:
        """Return the bytes of an operand's elements side by side."""
        template = self._issues[number][0]
        operand = next(each for each in template.operands() if each.name == name)
        offsets, active = template.offsets(name), template.active(name)
        count = offsets.size if active is None else np.count_nonzero(active)
        return int(count) * template.element(operand).bits // 8

    def written(self, held: Bytes, reader: SanitizerFinding) -> set[tuple[int, int]]:
        """Return the bytes of each write that meets some, before a finding's instruction."""
        reads = self._positions.get(key_of(reader.instruction, reader.location))
        before = len(self._issues) if not reads else reads[-1]
        return {
            (touch.start, touch.end)
            for number in range(before)
            for touch in self.touched(number)
            if touch.is_written and touch.meets(*held)
        }

    def would_order(self, race: Race, other: Race) -> bool:
        """Return whether `other` would be none, were the accesses of `race` ordered by a flag.

        The flag is set on the pipe of the earlier access just before the later one is issued, and
        the later one's pipe waits for it there.
        """
        pair = self.pair(other)
        if pair is None:
            return False
        first, last = pair
        for at in self._positions.get(race.later, ()):
            if first < at <= last:
                before = self._ordered(first + 1, at, other.earlier_pipe)
                behind = self._ordered(at, last, race.later_pipe)
                if race.earlier_pipe in before and other.later_pipe in behind:
                    return True
        return False

    def pair(self, race: Race) -> tuple[int, int] | None:
        """Return the positions of the first two accesses that race."""
        earlier = [n for n in self._positions.get(race.earlier, ()) if self._is_there(n, race)]
        for last in self._positions.get(race.later, ()):
            before = bisect_left(earlier, last)
            if before and self._is_there(last, race):
                return earlier[before - 1], last
        return None

    def _is_there(self, number: int, race: Race) -> bool:
        """Return whether an instruction touches the bytes of a race, which global memory names."""
        template, addresses, _ = self._issues[number]
        touched = list(_touched(template, addresses))
        local = [each for each in touched if each[0].label == race.memory]
        if not local:
            return True
        return any(start < race.end and race.start < end for _, _, _, start, end in local)

    def _ordered(self, start: int, stop: int, pipe: str) -> set[str]:
        """Return the pipes that are behind what `pipe` issued before `start`, at `stop`."""
        reached, raised = {pipe}, set[tuple[str, str, int]]()
        for template, _, _ in self._issues[start:stop]:
            if isinstance(template, SetFlag) and template.src in reached:
                raised.add((template.src, template.dst, template.event_id))
            elif isinstance(template, WaitFlag):
                if (template.src, template.dst, template.event_id) in raised:
                    reached.add(template.dst)
            elif isinstance(template, PipeBarrier) and template.on == "ALL":
                return {"S", "V", "M", "MTE1", "MTE2", "MTE3", "FIX"}
        return reached


def _resolved(issues: Iterable[Recorded]) -> list[Recorded]:
    """Return instructions with what they take from registers, such as the count of a vector call.

    One that registers do not fit, or that values in memory decide, is as it was issued.
    """
    resolved = list[Recorded]()
    registers, known = Registers(), dict[tuple[int, int], tuple[Instruction, Registers]]()
    states = {registers: registers}
    for template, addresses, where in issues:
        key = id(registers), id(template)
        if key not in known:
            known[key] = template, registers
            with suppress(AttributeError, TypeError, ValueError):
                now = template.resolved(registers)
                after = registers if template.operands() else now.apply(registers)
                known[key] = now, states.setdefault(after, after)
        now, registers = known[key]
        resolved.append((now, addresses, where))
    return resolved


class IssuedCores:
    """The instructions of a launch's cores by their names, followed when they are asked for."""

    def __init__(self, traces: Mapping[str, InstructionTrace]) -> None:
        self._traces = traces
        self._cores: dict[str, IssuedCore] = {}

    @property
    def names(self) -> Iterable[str]:
        """The names of the cores of which instructions were recorded."""
        return self._traces.keys()

    def get(self, name: str) -> IssuedCore | None:
        """Return a core; None where its instructions were not recorded."""
        if name not in self._traces:
            return None
        if name not in self._cores:
            self._cores[name] = IssuedCore(self._traces[name])
        return self._cores[name]


def _touched(template: Instruction, addresses: Sequence[int]) -> Iterator[Touch]:
    """Yield the bytes of each operand; registers hold the addresses of some."""
    spans = _spans(template)
    starts = addresses if addresses or not spans else template.operand_addresses(tuple(addresses))
    for (mem, is_read, is_written, low, high), address in zip(spans, starts, strict=False):
        if high > low:
            yield Touch(mem, is_read, is_written, address + low, address + high)


@lru_cache(maxsize=4096)
def _spans(template: Instruction) -> tuple[tuple[Mem, bool, bool, int, int], ...]:
    """Return each operand's memory, access and bytes from its address on."""
    spans = []
    for operand in template.operands():
        try:
            low, high = span_bytes(template, operand, 0) or (0, 0)
        except (AttributeError, TypeError, ValueError):  # registers decide what it touches
            low, high = 0, 0
        spans.append((operand.mem, operand.access.reads, operand.access.writes, low, high))
    return tuple(spans)
