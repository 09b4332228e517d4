"""Walking a tree for its time alone: addresses are left out, and loops may skip what recurs.

The tree is written as a Python function, as `Program.run` does it, with a question at the head of
each long loop. Numbers are parameters of the text, so that problems of one structure share the
compiled function.
"""

from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from types import CodeType
from typing import Any

from cubecore.isa.arithmetic import FUNCTIONS
from cubecore.isa.expr import Condition, Expr, Operation, Var
from cubecore.isa.program import Assign, Branch, Issue, LoadScalar, Loop, Node, Program
from cubecore.timing.body import Body
from cubecore.timing.pipes import CoreClock
from cubecore.timing.queues import deciding
from cubecore.timing.steady import Recurrence

_WORTHWHILE = 64
"""Leaves times trips below which a loop is walked plainly."""
_OPERATIONS = {
    "floordiv": "({})//({})",
    "mod": "({})%({})",
    "mul": "({})*({})",
    "min": "min({},{})",
    "max": "max({},{})",
    **{name: name + "({},{})" for name in FUNCTIONS},
}


def walk(program: Program, clock: CoreClock, slots: Mapping[Var, int]) -> None:
    """Walk a program by a clock, skipping what recurs; `CoreClock.skipped` counts it."""
    text = _Text(clock)
    text.body(program.body, " ")
    names = [text.variable(var) for var in program.slots]
    lines = ["def run(h,c,s):", *(f" {name}=0" for name in text.variables)]
    lines += [*_unpacked(names, "s"), *_numbered("h", len(text.handlers))]
    lines += [*_numbered("c", len(text.numbers)), *text.lines]
    space: dict[str, Any] = dict(FUNCTIONS)
    # Generated from integer expressions only: a walk then costs what Python's own loops cost.
    exec(_compiled("\n".join(lines)), space)  # noqa: S102
    space["run"](text.handlers, text.numbers, [slots[var] for var in program.slots])


@lru_cache(maxsize=256)
def _compiled(source: str) -> CodeType:
    return compile(source, "<timed program>", "exec")


def _unpacked(names: Sequence[str], of: str) -> list[str]:
    return [f" {','.join(names)},={of}"] if names else []


def _numbered(letter: str, count: int) -> list[str]:
    return _unpacked([f"{letter}{i}" for i in range(count)], letter)


class _Text:
    """Writes a tree: `lines`, and what its `h` (functions) and `c` (numbers) stand for."""

    def __init__(self, clock: CoreClock) -> None:
        self._clock = clock
        self._variables: dict[Var, str] = {}
        self._places: dict[int, str] = {}
        self.handlers: list[Any] = []
        self.numbers: list[int] = []
        self.lines: list[str] = []

    @property
    def variables(self) -> Iterable[str]:
        """The names of all variables."""
        return self._variables.values()

    def body(self, body: Sequence[Node], indent: str) -> None:
        """Write nodes at an indentation."""
        if not body:
            self.lines.append(f"{indent}pass")
        for node in body:
            if isinstance(node, Issue):
                self._issue(node, indent)
            elif isinstance(node, Assign):
                target, value = self.variable(node.target), self._expr(node.value)
                self.lines.append(f"{indent}{target}={value}")
            elif isinstance(node, Branch):
                self._branch(node, indent)
            elif isinstance(node, Loop):
                self._loop(node, indent)
            else:
                self._load_scalar(node, indent)

    def _issue(self, node: Issue, indent: str) -> None:
        values = ",".join([self._expr(value) for value in deciding(node)])
        by_event = self._clock.by_event(node)
        if by_event is None:
            call = f"{self._function(self._clock.handler(node))}({values})"
        else:
            call = f"{self._function(by_event)}[{values}]()"
        self.lines.append(indent + call)

    def variable(self, var: Var) -> str:
        """Return a variable's name in the text."""
        return self._variables.setdefault(var, f"v{len(self._variables)}")

    def _function(self, function: object) -> str:
        self.handlers.append(function)
        return f"h{len(self.handlers) - 1}"

    def _number(self, number: int) -> str:
        if number in {0, 1}:
            return str(number)
        if number not in self._places:
            self._places[number] = f"c{len(self.numbers)}"
            self.numbers.append(number)
        return self._places[number]

    def _branch(self, node: Branch, indent: str) -> None:
        self.lines.append(f"{indent}if {self._condition(node.condition)}:")
        self.body(node.then, indent + " ")
        if node.otherwise:
            self.lines.append(f"{indent}else:")
            self.body(node.otherwise, indent + " ")

    def _condition(self, condition: Condition) -> str:
        left, right = self._expr(condition.left), self._expr(condition.right)
        return f"{left}{condition.comparison}{right}"

    def _load_scalar(self, node: LoadScalar, indent: str) -> None:
        load = self._function(lambda address: self._clock.load_scalar(node, address))
        self.lines.append(
            f"{indent}{self.variable(node.target)}={load}({self._expr(node.address)})"
        )

    def _loop(self, node: Loop, indent: str) -> None:
        trips, index = self._expr(node.trips), self.variable(node.index)
        only = node.body[0]
        if len(node.body) == 1 and isinstance(only, Issue):
            repeated = self._clock.repeated(only)
            if repeated is not None:
                self.lines.append(f"{indent}{self._function(repeated)}({trips})")
                return
        body = Body.of(node) if _is_long(node) else None
        if body is None:
            self.lines.append(f"{indent}for {index} in range({trips}):")
            self.body(node.body, indent + " ")
            return
        recurrence = Recurrence(self._clock, body)
        total, stride = f"n{len(indent)}", body.stride
        changed = [self.variable(v) for v in (*body.counters, *body.given[: body.others])]
        given = "".join(f"{self.variable(var)}," for var in (*body.counters, *body.given))
        begin, skip = self._function(recurrence.begin), self._function(recurrence.skip)
        # The first trip often differs, so the state is looked at from the second on.
        asks = f"{index}%{self._number(stride)}=={1 % stride}"
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

    def _expr(self, expr: Expr) -> str:
        parts = []
        for atom, factor in expr.terms:
            text = self.variable(atom) if isinstance(atom, Var) else self._operation(atom)
            parts.append(text if factor == 1 else f"{self._number(factor)}*({text})")
        if expr.const or not parts:
            parts.append(self._number(expr.const))
        return "+".join(parts)

    def _operation(self, operation: Operation) -> str:
        left, right = self._expr(operation.left), self._expr(operation.right)
        return _OPERATIONS[operation.kind].format(left, right)


def _is_long(loop: Loop) -> bool:
    """Whether looking for a steady state may pay."""
    trips = loop.trips.constant
    return trips is None or trips * _leaves(loop.body, _WORTHWHILE) >= _WORTHWHILE


def _leaves(body: Sequence[Node], enough: int) -> int:
    """Return the leaves of a body, or at least `enough`."""
    found = 0
    for node in body:
        if isinstance(node, Loop):
            found += _leaves(node.body, enough)
        elif isinstance(node, Branch):
            found += _leaves((*node.then, *node.otherwise), enough)
        else:
            found += isinstance(node, Issue)
        if found >= enough:
            break
    return found
