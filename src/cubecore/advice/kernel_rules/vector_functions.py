"""Rules on vector functions: what bounds the vector unit while it runs one."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from cubecore.advice.kernel_rules.case import KernelCase, Leaf
from cubecore.advice.kernel_rules.changes.changed_programs import with_nodes
from cubecore.advice.kernel_rules.rule import Cause, rule
from cubecore.isa.program.tree import Issue, Location, Node
from cubecore.isa.vector.registers.checks.live_registers import spills
from cubecore.isa.vector.registers.issue.reliefs import Relief, chains
from cubecore.isa.vector.registers.issue.work import (
    Port,
    UnitWork,
    lines_of,
    work_of,
)
from cubecore.isa.vector.registers.vector_function import VectorFunction

_LEAST_SHARE = 0.1
"""The share of a function's cycles below which a limit is not named."""
_STORY = "cann-samples simd_vf_story, traces of variants of one function"


@dataclass(eq=False)
class _Function:
    """A vector function of a launch, as its unit runs it."""

    case: KernelCase
    leaf: Leaf
    template: VectorFunction

    @cached_property
    def work(self) -> Sequence[UnitWork]:
        """The program that the unit runs."""
        return work_of(self.template.program)

    @cached_property
    def lines(self) -> Sequence[int]:
        """The number of each instruction's line."""
        return lines_of(self.template.program, self.work)

    @cached_property
    def cycles(self) -> int:
        """Its cycles."""
        return self.case.cost(self.leaf.issue).busy

    def saved(self, relief: Relief) -> int:
        """Return the cycles of all calls that leaving a limit out would save; 0 if they are few."""
        saved = self.cycles - self.case.cost(_without(self.leaf.issue, self.template, relief)).busy
        return saved * self.leaf.count if saved >= _LEAST_SHARE * self.cycles else 0

    def location(self, line: int) -> Location:
        """Return a line of the function's body."""
        return self.template.program.entries.locations[line]

    def name(self, line: int) -> str:
        """Return the call at a line as its author wrote it."""
        number = next(n for n, each in enumerate(self.lines) if each == line)
        entries = self.template.program.entries
        operation = entries.table[entries.calls[self.work[number].entry]].operation
        return self.location(line).call or operation.spelling


def _without(issue: Issue, function: VectorFunction, relief: Relief) -> Issue:
    """Return a call of a vector function without a limit of its unit."""
    return replace(issue, template=replace(function, without=relief))


_Words = Callable[[_Function], tuple[int, str]]
"""The line that a limit is felt at, and a text about it."""


def _causes(
    case: KernelCase,
    relief: Relief,
    words: _Words,
    tried: str,
    *,
    at_most: bool = False,
    unless: Relief | None = None,
) -> Iterator[Cause]:
    """Yield the cause that the vector functions of a launch have in one limit, if it is one.

    None is yielded where another limit costs as much: one of the two names the same cycles better.
    """
    functions = [
        _Function(case, leaf, template)
        for leaf in case.all_leaves
        if isinstance(template := leaf.issue.template, VectorFunction) and template.program.steps
    ]
    saved = {function: function.saved(relief) for function in functions}
    if not any(saved.values()):
        return
    function = max(saved, key=saved.__getitem__)
    if unless is not None and function.saved(unless) >= saved[function]:
        return
    line, text = words(function)

    # All functions of the launch lose the limit: kernels call one function from several lines, and
    # launches whose cores differ in a template no longer run as equal ones.
    def change(node: Node) -> Iterable[Node] | None:
        if isinstance(node, Issue) and isinstance(node.template, VectorFunction):
            return [_without(node, node.template, relief)]
        return None

    better = with_nodes(case.launch, change)
    yield Cause(function.location(line), text, better, tried, at_most=at_most)


@rule(
    "vf-chain",
    counts="calls of a vector function that wait for the result of the same call before them",
    threshold="a tenth of the function's cycles",
    source=f"{_STORY}: four accumulators take a sum of 78 rows from 757 cycles to 364",
    remedy="Let four accumulators take turns, and join them behind the loop.",
)
def chain(case: KernelCase) -> Iterator[Cause]:
    """Let each wait for the fourth before it."""

    def words(function: _Function) -> tuple[int, str]:
        before = chains(function.work, function.lines)
        links = Counter(
            line for line, last in zip(function.lines, before, strict=True) if last >= 0
        )
        line, count = links.most_common(1)[0]
        text = (
            f"{function.name(line)} waits for its own result {count:,} times in a function of "
            f"{function.cycles:,} cycles"
        )
        return line, text

    yield from _causes(case, Relief.CHAIN, words, "four accumulators")


@rule(
    "vf-short-loops",
    counts="loops that begin inside a vector function",
    threshold="a tenth of the function's cycles",
    source="vf_loop_cycles of the chip (`cubecore chips`)",
    remedy="Put the longest loop inside, or unroll a short one.",
)
def short_loops(case: KernelCase) -> Iterator[Cause]:
    """Let loops begin at once."""

    def words(function: _Function) -> tuple[int, str]:
        begun = Counter(
            line for each, line in zip(function.work, function.lines, strict=True) if each.loops
        )
        line, _ = begun.most_common(1)[0]
        count, each = sum(begun.values()), function.case.chip.vf_loop_cycles
        text = (
            f"{count:,} loops begin in a function of {len(function.work):,} instructions, which "
            f"cost {each} cycles each"
        )
        return line, text

    yield from _causes(case, Relief.LOOPS, words, "unrolled loops", at_most=True)


@rule(
    "vf-window",
    counts="instructions of a vector function that wait for room behind slow ones",
    threshold="a tenth of the function's cycles",
    source="vf_window of the chip; asc-devkit gelu_eltwise_high_performance: 125 us to 97",
    remedy="Part the loop behind a slow call (Exp, Div, a reduction), with the values through UB.",
)
def window(case: KernelCase) -> Iterator[Cause]:
    """Let the unit hold as many instructions as there are."""

    def words(function: _Function) -> tuple[int, str]:
        number = max(range(len(function.work)), key=lambda n: function.work[n].latency)
        line = function.lines[number]
        text = (
            f"the vector unit holds {function.case.chip.vf_window} instructions, and trips are too "
            f"long to overlap: {function.name(line)} takes {function.work[number].latency} cycles"
        )
        return line, text

    yield from _causes(
        case, Relief.WINDOW, words, "room for all trips", at_most=True, unless=Relief.CHAIN
    )


@rule(
    "vf-banks",
    counts="loads and stores of a vector function that meet in a bank of UB",
    threshold="a tenth of the function's cycles",
    source="asc-devkit bank_conflict_3510: 16 banks of 16 KB, whose groups take blocks of 32 B",
    remedy="Let arrays and rows begin at multiples of 256 B in UB: other accesses touch two banks.",
)
def banks(case: KernelCase) -> Iterator[Cause]:
    """Let a load and a store share each cycle."""

    def words(function: _Function) -> tuple[int, str]:
        line, count = _most(function, Port.STORE)
        text = (
            f"the {count:,} stores meet the function's loads in banks of UB, in a function of "
            f"{function.cycles:,} cycles"
        )
        return line, text

    yield from _causes(case, Relief.BANKS, words, "aligned accesses")


@rule(
    "vf-spills",
    charged=False,
    counts="values of a vector function that are needed at a time, beyond its registers",
    threshold="32 vector registers, 8 masks",
    source="asc-devkit, 3510: the compiler keeps such values in 6 KB of UB that are reserved",
    remedy="Take fewer rows or columns at once, or load values anew where they are needed.",
)
def spilled(case: KernelCase) -> Iterator[Cause]:
    """Name the calls that find no free register; the time counts neither stores nor loads."""
    lines = set()
    for leaf in case.all_leaves:
        template = leaf.issue.template
        if not isinstance(template, VectorFunction) or not template.program.steps:
            continue
        entries = template.program.entries
        for spill in spills(template.program):
            where = entries.locations[entries.places[spill.entry]]
            if (spill.kind, where) in lines:
                continue
            lines.add((spill.kind, where))
            text = (
                f"{spill.live} values are needed at a time, of which {spill.most} are in "
                f"{spill.kind} registers"
            )
            yield Cause(where, text, None)


_PORTS = {
    Relief.LOADS: (Port.LOAD, "loads: one a cycle"),
    Relief.STORES: (Port.STORE, "stores: one a cycle"),
    Relief.COMPUTE: (Port.COMPUTE, "register instructions: two, and two results, a cycle"),
    Relief.SLOW: (Port.COMPUTE, "register instructions, some of several cycles a register"),
}


@rule(
    "vf-busy",
    counts="loads, stores or register instructions of a vector function",
    threshold="a tenth of the function's cycles that a port of its own would save",
    source=f"{_STORY}; asc-devkit, theoretical performance of register instructions",
    remedy="Do it in fewer: keep a register for all its uses, join functions, take fused calls.",
)
def busy(case: KernelCase) -> Iterator[Cause]:
    """Let the busiest part of the unit take everything at once."""
    for relief, (port, what) in _PORTS.items():

        def words(function: _Function, port: Port = port, what: str = what) -> tuple[int, str]:
            line, count = _most(function, port)
            return line, f"{what}; {count:,} in a function of {function.cycles:,} cycles"

        yield from _causes(case, relief, words, "a free port", unless=Relief.BANKS)


def _most(function: _Function, port: Port) -> tuple[int, int]:
    """Return the line whose instructions hold a port longest, and how many the function has."""
    held, count = Counter[int](), 0
    for each, line in zip(function.work, function.lines, strict=True):
        if each.port is port:
            held[line] += each.cycles
            count += 1
    return held.most_common(1)[0][0], count
