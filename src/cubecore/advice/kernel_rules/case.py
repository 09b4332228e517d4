"""A timed launch as rules look at it: its leaves with their loops, counts and lines."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from cubecore.chips.model import Chip
from cubecore.isa.declare.instruction import GlobalTraffic, Instruction, InstructionCost, Mem, Pipe
from cubecore.isa.declare.operand_overlap import span_bytes
from cubecore.isa.declare.registers import Registers
from cubecore.isa.program.check import memory_bytes
from cubecore.isa.program.expr import Expr, Var
from cubecore.isa.program.launch import Launch
from cubecore.isa.program.tree import (
    Assign,
    Branch,
    Issue,
    LoadScalar,
    Location,
    Loop,
    Node,
    Program,
)
from cubecore.machine.memory.operation import combines
from cubecore.timing.memory.global_accesses import cost_of
from cubecore.timing.records import LineTime, Timeline


@dataclass(frozen=True, eq=False, slots=True)
class Leaf:
    """An instruction of a program: the loops around it, outermost first, and how often it runs."""

    issue: Issue
    loops: tuple[Loop, ...]
    count: int

    @property
    def location(self) -> Location:
        """Return the author's line."""
        return self.issue.location


@dataclass(eq=False)
class KernelCase:
    """A launch on a chip with its timeline, which has lines; `again` times a changed launch.

    `reads` are the values that the scalar units of all cores read, by line, where they are known.
    """

    launch: Launch
    chip: Chip
    timeline: Timeline
    again: Callable[[Launch], Timeline]
    reads: Mapping[Location, int] = field(default_factory=dict)

    @cached_property
    def leaves(self) -> Mapping[Program, tuple[Leaf, ...]]:
        """The leaves of each program, in program order."""
        return {program: leaves_of(program) for program in self.launch.programs}

    @cached_property
    def all_leaves(self) -> tuple[Leaf, ...]:
        """The leaves of all programs."""
        return tuple(leaf for leaves in self.leaves.values() for leaf in leaves)

    @cached_property
    def _lines(self) -> Mapping[int, LineTime]:
        return {id(line.location): line for line in self.timeline.lines}

    def line(self, location: Location) -> LineTime | None:
        """Return what a line takes."""
        return self._lines.get(id(location))

    def busy(self, location: Location, pipe: Pipe) -> int:
        """Return the busy cycles of a pipe at a line, averaged over the cores."""
        line = self.line(location)
        if line is None:
            return 0
        return sum(n for name, n in line.busy_cycles.items() if name.split()[-1] == pipe.value)

    @cached_property
    def _registers(self) -> Mapping[Issue, Registers]:
        before = dict[Issue, Registers]()
        for leaves in self.leaves.values():
            registers = Registers()
            for leaf in leaves:
                before[leaf.issue] = registers
                registers = leaf.issue.template.apply(registers)
        return before

    def resolved(self, issue: Issue) -> Instruction:
        """Return an instruction with what it takes from registers, such as the mask."""
        template = issue.template
        known = template.takes_registers and issue in self._registers
        return template.resolved(self._registers[issue]) if known else template

    def combines(self, issue: Issue) -> bool:
        """True of a store to global memory that adds, or takes the greater or the lesser."""
        traffic = self.cost(issue).traffic
        writes = traffic is not None and traffic.writes
        return writes and combines(issue.template, self._registers[issue])

    def cost(self, issue: Issue) -> InstructionCost:
        """Return what an instruction costs."""
        return cost_of(self.resolved(issue), self.chip)

    def traffic(self, leaf: Leaf) -> GlobalTraffic | None:
        """Return what a leaf moves from or to global memory."""
        return self.cost(leaf.issue).traffic

    def used_bytes(self, mem: Mem) -> int:
        """Return how much of a local memory the launch uses: up to the highest byte."""
        return max((_end(leaf, mem) for leaf in self.all_leaves), default=0)

    def room(self, mem: Mem) -> int:
        """Return the bytes of a local memory that a kernel may use."""
        return memory_bytes(self.chip, mem)[1]

    @property
    def memory_cycles(self) -> int:
        """Cycles in which the links between cores, L2 and device memory bring all that is asked."""
        hertz: int = self.chip.require("frequency_hz", "advice")
        peaks = [(link.bytes, link.peak_bytes_per_second) for link in self.timeline.links]
        return max((round(size / peak * hertz) for size, peak in peaks if peak), default=0)

    def with_all_bytes(self, timeline: Timeline) -> int:
        """Return the cycles of a changed launch, had it moved as many bytes as this one.

        Trips of loops are whole numbers: a launch that is divided otherwise may do a little less or
        more.
        """
        moved = timeline.read_bytes + timeline.written_bytes
        whole = self.timeline.read_bytes + self.timeline.written_bytes
        start = min(self.start_cycles, timeline.cycles)
        if not whole:
            return timeline.cycles
        if not moved:
            return self.timeline.cycles
        return start + round((timeline.cycles - start) * whole / moved)

    @property
    def start_cycles(self) -> int:
        """Cycles before the first instruction, the launch included."""
        none = self._lines.get(id(None))
        start = 0 if none is None else max(none.busy_cycles.values(), default=0)
        launch: int = self.chip.require("launch_cycles", "advice")
        return start + launch


def is_plain(launch: Launch) -> bool:
    """True if all loops of all programs have constant trips, and nothing branches."""
    return all(_is_plain(program.body) for program in launch.programs)


def leaves_of(program: Program) -> tuple[Leaf, ...]:
    """Return the leaves of a plain program, in program order."""
    return tuple(_leaves(program.body, (), 1))


def _is_plain(body: Sequence[Node]) -> bool:
    for node in body:
        if isinstance(node, Branch | Assign | LoadScalar):
            return False
        if isinstance(node, Issue) and node.late:
            return False
        if isinstance(node, Loop) and (node.trips.constant is None or not _is_plain(node.body)):
            return False
    return True


def _leaves(body: Sequence[Node], loops: tuple[Loop, ...], count: int) -> Iterator[Leaf]:
    for node in body:
        if isinstance(node, Issue):
            yield Leaf(node, loops, count)
        elif isinstance(node, Loop):
            yield from _leaves(node.body, (*loops, node), count * (node.trips.constant or 0))


def _end(leaf: Leaf, mem: Mem) -> int:
    """Return the last byte of a memory that a leaf touches, and 1."""
    template, end = leaf.issue.template, 0
    for operand, address in zip(template.operands(), leaf.issue.addresses, strict=True):
        if operand.mem is mem:
            span = span_bytes(template, operand, _highest(address, leaf.loops))
            end = max(end, 0 if span is None else span[1])
    return end


def _highest(address: Expr, loops: Sequence[Loop]) -> int:
    """Return the highest value of an address over the loops around it."""
    trips: dict[object, int] = {loop.index: loop.trips.constant or 0 for loop in loops}
    highest = address.const
    for atom, factor in address.terms:
        if isinstance(atom, Var):
            highest += max(factor * (trips.get(atom, 1) - 1), 0)
    return highest
