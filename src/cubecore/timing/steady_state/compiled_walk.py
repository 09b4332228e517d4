"""A compiled walk over a tree for its time alone: no addresses, and loops may skip what recurs.

The tree is written as a Python function, as `Program.run` does it, with a question at the head of
each long loop. Numbers are parameters of the text, so that problems of one structure share the
compiled function; what a clock does is one too, so that a program is written once for all clocks.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from types import CodeType
from typing import Any

from cubecore.cache import MOST_PROGRAMS, BoundedCache
from cubecore.isa.program.arithmetic import FUNCTIONS
from cubecore.isa.program.expr import Var
from cubecore.isa.program.tree import (
    Assign,
    Branch,
    Issue,
    LoadScalar,
    Loop,
    Node,
    Program,
    ProgramWriter,
)
from cubecore.timing.memory.reuse_marks import ReuseMark
from cubecore.timing.pipes.core_clock import CoreClock, is_plain
from cubecore.timing.pipes.flags import has_late_event
from cubecore.timing.pipes.queues import deciding
from cubecore.timing.steady_state.loop_body import LoopBody, resets_of
from cubecore.timing.steady_state.recurrence import Recurrence

Maker = Callable[[CoreClock], Sequence[object]]
_WORTHWHILE = 64
"""Leaves times trips below which a loop is walked plainly."""


def walk(program: Program, clock: CoreClock, slots: Mapping[Var, int]) -> None:
    """Walk a program by a clock, skipping what recurs; `CoreClock.skipped` counts it."""
    written = _written(program, recording=clock.record > 0, logging=clock.log is not None)
    if clock.log is not None:
        clock.log.take(written.leaves, written.spans)
    handlers = [handler for maker in written.makers for handler in maker(clock)]
    written.run(handlers, written.numbers, [slots[var] for var in program.slots])


@dataclass(frozen=True, slots=True)
class _Written:
    """A program as a function of what its instructions do, of its numbers and its slots.

    Each of `makers` gives the next functions for a clock. `leaves` and `spans` are what its log
    takes (`IssueLog.take`).
    """

    run: Callable[[Sequence[object], Sequence[int], Sequence[int]], None]
    makers: Sequence[Maker]
    numbers: Sequence[int]
    leaves: Sequence[Issue]
    spans: Sequence[tuple[int, int]]


_TEXTS = BoundedCache[tuple[Program, bool, bool], _Written](MOST_PROGRAMS)


def _written(program: Program, *, recording: bool, logging: bool) -> _Written:
    """Return the function; those of the latest programs are kept."""
    key = program, recording, logging
    cached = _TEXTS.get(key)
    if cached is None:
        cached = _TEXTS[key] = _write(program, recording=recording, logging=logging)
    return cached


# A loop of 100 trips over a wait with a late event, a move, a flag and `turn = (turn + 1) % 2` is
# written as follows. h0 and h1 are `Recurrence.begin` and `skip`, h2 the waits by event; c0 is 100
# and c1 is 2, so that loops of other lengths share the text; g are the trips to skip.
#
#   def run(h,c,s):
#    v0=0
#    v1=0
#    h0,h1,h2,h3,h4,=h
#    c0,c1,=c
#    v0=0
#    n1=c0
#    h0()
#    v1=0
#    while v1<n1:
#     if v1%1==0:
#      g,v0,=h1(v1,n1,(v0,))
#      v1+=g
#      if v1>=n1:
#       break
#     h2[v0]()
#     h3()
#     h4()
#     v0=(v0+1)%(c1)
#     v1+=1
def _write(program: Program, *, recording: bool, logging: bool) -> _Written:
    text = _LoggingText(recording=recording) if logging else _Text(recording=recording)
    text.body(program.body, " ")
    names = [text.variable(var) for var in program.slots]
    lines = ["def run(h,c,s):", *(f" {name}=0" for name in text.variables)]
    lines += [*_unpacked(names, "s"), *_numbered("h", text.functions)]
    lines += [*_numbered("c", len(text.numbers)), *text.lines]
    space: dict[str, Any] = dict(FUNCTIONS)
    # Generated from integer expressions only: a walk then costs what Python's own loops cost.
    exec(_compiled("\n".join(lines)), space)  # noqa: S102
    return _Written(space["run"], text.makers, text.numbers, text.leaves, text.spans())


@lru_cache(maxsize=256)
def _compiled(source: str) -> CodeType:
    return compile(source, "<timed program>", "exec")


def _unpacked(names: Sequence[str], of: str) -> list[str]:
    return [f" {','.join(names)},={of}"] if names else []


def _numbered(letter: str, count: int) -> list[str]:
    return _unpacked([f"{letter}{i}" for i in range(count)], letter)


class _Text(ProgramWriter):
    """Writes a tree: `lines`, and what its `h` (`functions`) and `c` (numbers) stand for."""

    def __init__(self, *, recording: bool) -> None:
        super().__init__()
        self._recording = recording
        self._variables: dict[Var, str] = {}
        self._counter_names: dict[int, str] = {}
        self._resets: set[Node] = set()
        self.functions = 0
        self.makers: list[Maker] = []
        self.numbers: list[int] = []
        self.leaves: list[Issue] = []
        self._block_starts: list[int] = []

    def spans(self) -> Sequence[tuple[int, int]]:
        """Return the first leaf of each block, and how many it has."""
        ends = [*self._block_starts[1:], len(self.leaves)]
        return [(start, end - start) for start, end in zip(self._block_starts, ends, strict=False)]

    @property
    def variables(self) -> Iterable[str]:
        """The names of all variables."""
        return self._variables.values()

    def assign(self, node: Assign, indent: str) -> None:
        """Write an assignment, and count it if it is a reset."""
        super().assign(node, indent)
        if node in self._resets:
            self.lines.append(f"{indent}{self.variable(resets_of(node.target))}+=1")

    def issue(self, node: Issue, indent: str) -> None:
        """Call what a clock does with the values that decide it."""
        values = ",".join([self.spelled(value) for value in deciding(node)])
        if has_late_event(node):
            call = f"{self._function(lambda clock: clock.by_event(node))}[{values}]()"
        else:
            call = f"{self._function(lambda clock: clock.unlogged(node))}({values})"
        self.lines.append(indent + call)

    def variable(self, var: Var) -> str:
        """Return a variable's name in the text."""
        return self._variables.setdefault(var, f"v{len(self._variables)}")

    def _function(self, maker: Callable[[CoreClock], object]) -> str:
        self.makers.append(lambda clock: (maker(clock),))
        self.functions += 1
        return f"h{self.functions - 1}"

    def _recurrence(self, body: LoopBody) -> tuple[str, str]:
        """Return the names of the functions that begin and skip."""

        def maker(clock: CoreClock) -> tuple[object, object]:
            recurrence = Recurrence(clock, body)
            return recurrence.begin, recurrence.skip

        self.makers.append(maker)
        self.functions += 2
        return f"h{self.functions - 2}", f"h{self.functions - 1}"

    def number(self, number: int) -> str:
        """Return the name of a number but 0 and 1, which is a parameter."""
        if number in {0, 1}:
            return str(number)
        if number not in self._counter_names:
            self._counter_names[number] = f"c{len(self.numbers)}"
            self.numbers.append(number)
        return self._counter_names[number]

    def load_scalar(self, node: LoadScalar, indent: str) -> None:
        """Ask the clock for the value."""
        load = self._function(lambda clock: partial(clock.load_scalar, node))
        self.lines.append(
            f"{indent}{self.variable(node.target)}={load}({self.spelled(node.address)})"
        )

    def loop(self, node: Loop, indent: str) -> None:
        """Write a loop, with the question of what recurs at the head of a long one."""
        trips, index = self.spelled(node.trips), self.variable(node.index)
        only = node.body[0]
        plain = len(node.body) == 1 and isinstance(only, Issue) and is_plain(only)
        # One instruction again and again is worked out at once by the clock (`EqualLoads`); where
        # segments are recorded each has to be issued.
        if isinstance(only, Issue) and plain and not self._recording:
            self.repeated(only, trips, indent)
            return
        body = LoopBody.of(node) if _is_long(node) else None
        if body is None:
            super().loop(node, indent)
            return
        # Inner loops see the outer one's resets too: a counter that was reset may have been
        # anywhere in between, which the count of its resets tells the guards.
        self._resets |= body.resets
        total, stride = f"n{len(indent)}", body.stride
        changed = [self.variable(v) for v in (*body.counters, *body.given[: body.others])]
        given = "".join(f"{self.variable(var)}," for var in (*body.counters, *body.given))
        begin, skip = self._recurrence(body)
        # The first trip often differs, so the state is looked at from the second on.
        asks = f"{index}%{self.number(stride)}=={1 % stride}"
        self.lines += [
            f"{indent}{total}={trips}",
            f"{indent}{begin}()",
            f"{indent}{index}=0",
            f"{indent}while {index}<{total}:",
            f"{indent} if {asks}:",
            f"{indent}  {','.join(['g', *changed])},={skip}({index},{total},({given}))",
            f"{indent}  {index}+=g",
            f"{indent}  if {index}>={total}:",
            f"{indent}   break",
        ]
        self.body(node.body, indent + " ")
        self.lines.append(f"{indent} {index}+=1")

    def repeated(self, only: Issue, trips: str, indent: str) -> None:
        """Write a loop of one plain leaf."""
        function = self._function(lambda clock: clock.repeated(only))
        self.lines.append(f"{indent}{function}({trips})")


class _LoggingText(_Text):
    """The same, which tells a clock's log of each block of leaves when it begins."""

    def __init__(self, *, recording: bool) -> None:
        super().__init__(recording=recording)
        self._begins, self._again = self._function(_beginning), self._function(_again)
        self._in_block = False

    def body(self, body: Sequence[Node], indent: str) -> None:
        """Write nodes: a block ends where a loop, or a side of a branch, begins or ends."""
        self._in_block = False
        super().body(body, indent)
        self._in_block = False

    def issue(self, node: Issue, indent: str) -> None:
        """Write a leaf, the first of a block behind a line that begins it."""
        if not isinstance(node.template, ReuseMark):
            self.leaf(node, indent)
        super().issue(node, indent)

    def leaf(self, node: Issue, indent: str) -> None:
        """Take a leaf, and write the line that begins its block if it is the first."""
        if not self._in_block:
            block = self.number(len(self._block_starts))
            self._block_starts.append(len(self.leaves))
            self.lines.append(f"{indent}{self._begins}({block})")
            self._in_block = True
        self.leaves.append(node)

    def repeated(self, only: Issue, trips: str, indent: str) -> None:
        """Write a loop of one plain leaf, which is a block of its own."""
        self._in_block = False
        self.leaf(only, indent)
        self.lines.append(f"{indent}{self._again}({trips})")
        super().repeated(only, trips, indent)
        self._in_block = False


def _beginning(clock: CoreClock) -> Callable[[int], None]:
    log = clock.log
    assert log is not None
    return lambda block: log.begin(block, clock.issued)


def _again(clock: CoreClock) -> Callable[[int], None]:
    log = clock.log
    assert log is not None
    return lambda trips: log.again(max(trips, 0) - 1)


def _is_long(loop: Loop) -> bool:
    """True if looking for a steady state may pay."""
    trips = loop.trips.constant
    return trips is None or trips * _leaves(loop.body, _WORTHWHILE) >= _WORTHWHILE


def _leaves(body: Sequence[Node], enough: int) -> int:
    """Return the leaves of a body, or at least `enough`."""
    count = 0
    for node in body:
        if isinstance(node, Loop):
            count += _leaves(node.body, enough)
        elif isinstance(node, Branch):
            count += _leaves((*node.then, *node.otherwise), enough)
        else:
            count += isinstance(node, Issue)
        if count >= enough:
            break
    return count
