"""Writing a program: a tree grows under `with` statements as its author reads it.

Everything that is already known is decided while building: a loop of one trip is its body, a
condition of constants is one of its branches.
"""

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from types import CodeType
from typing import NamedTuple

from cubecore.isa.declare.instruction import Instruction
from cubecore.isa.program.expr import Condition, Expr, Int, Var
from cubecore.isa.program.tree import Assign, Branch, Issue, Location, Loop, Node, Program

_HERE = __file__


class ScalarVariable:
    """A variable of the scalar unit: read it with `value`, change it with `set`."""

    def __init__(self, builder: "Builder", var: Var) -> None:
        self._builder = builder
        self._var = var

    @property
    def value(self) -> Expr:
        """Return the value that the variable has when the expression is used."""
        return Expr.of(self._var)

    def set(self, value: Int) -> None:
        """Give it a new value from here on."""
        self._builder.append(Assign(self._var, Expr.of(value)))


class CutBlock(NamedTuple):
    """A block of a length that was cut: its number among them, and the elements that it has."""

    number: Expr
    length: int


BASIC = "BASIC"
"""The kind of a kernel that is written by hand."""


class Builder:
    """Builds one `Program`."""

    def __init__(self, name: str, kind: str = BASIC) -> None:
        """`kind` says whose scalar costs the kernel has (`ScalarWork`)."""
        self.kind = kind
        self._name = name
        self._variables = 0
        self._slots: list[Var] = []
        self._open: list[list[Node]] = [[]]
        self._part: tuple[tuple[Expr, int], ...] = ()
        self._walk: tuple[tuple[Expr, int], ...] | None = None

    def append(self, node: Node) -> None:
        """Add a node at the current place."""
        self._open[-1].append(node)

    def slot(self, name: str) -> Var:
        """Return a variable that each core gives its own value."""
        var = self._new(name)
        self._slots.append(var)
        return var

    def scalar(self, name: str, initial: Int = 0) -> ScalarVariable:
        """Return a new scalar, set to `initial` here."""
        scalar = ScalarVariable(self, self._new(name))
        scalar.set(initial)
        return scalar

    def _new(self, name: str) -> Var:
        self._variables += 1
        return Var(name, self._variables - 1)

    @property
    def body(self) -> Sequence[Node]:
        """The nodes at the current place so far."""
        return self._open[-1]

    @contextmanager
    def loop(self, name: str, trips: Int) -> Iterator[Expr]:
        """Repeat what is issued inside; gives the index. No trips: nothing; one: no loop."""
        count = Expr.of(trips)
        index = self._new(name)
        body: list[Node] = []
        self._open.append(body)
        walk = self._walk
        if walk is not None and count.constant != 1:
            self._walk = (*walk, (Expr.of(index), count.constant or 1))
        # One trip: its body is built in place, with 0 for the index, so that what depends on it is
        # decided here.
        yield Expr(0) if count.constant == 1 else Expr.of(index)
        self._walk = walk
        self._open.pop()
        if count.constant == 1:
            self._open[-1].extend(body)
        elif count.constant != 0 and body:
            self.append(Loop(index, count, tuple(body)))

    @contextmanager
    def part(self, number: Int, parts: int) -> Iterator[None]:
        """Say that what is issued inside is one of several parts that run one after another."""
        outer, self._part = self._part, (*self._part, (Expr.of(number), parts))
        yield
        self._part = outer

    @contextmanager
    def walking(self, levels: Sequence[tuple[Expr, int]]) -> Iterator[None]:
        """Say that loads issued inside walk `levels`, not the loops around them (`Issue.walk`)."""
        outer, self._walk = self._walk, (*self._part, *levels)
        yield
        self._walk = outer

    def split(self, name: str, total: int, block: int) -> Iterator[CutBlock]:
        """Cut `total` into blocks: gives one for all the whole ones, and one for a tail.

        The body of the ``for`` statement is built at most twice.
        """
        whole, tail = divmod(total, block)
        if whole:
            with self.loop(name, whole) as index:
                yield CutBlock(index, block)
        if tail:
            yield CutBlock(Expr(whole), tail)

    @contextmanager
    def when(self, left: Int, comparison: str, right: Int) -> Iterator[None]:
        """Do what is issued inside only if the comparison holds."""
        condition = Condition.of(left, comparison, right)
        body: list[Node] = []
        self._open.append(body)
        yield
        self._open.pop()
        if condition.constant is None:
            if body:
                self.append(Branch(condition, tuple(body)))
        elif condition.constant:
            self._open[-1].extend(body)

    def choose(self, left: Int, comparison: str, right: Int) -> Iterator[bool]:
        """Build both sides of a branch: gives True inside the first, False inside the second.

        A comparison of constants gives only the side that is taken.
        """
        condition = Condition.of(left, comparison, right)
        if condition.constant is not None:
            yield condition.constant
            return
        sides: list[tuple[Node, ...]] = []
        for side in (True, False):
            self._open.append([])
            yield side
            sides.append(tuple(self._open.pop()))
        if any(sides):
            self.append(Branch(condition, *sides))

    def issue(self, template: Instruction, *addresses: Int, **late: Int) -> None:
        """Issue an instruction at addresses in bytes; `late` are parameters known only then."""
        variable: tuple[tuple[str, Expr], ...] = ()
        if late:
            expressions = {name: Expr.of(value) for name, value in late.items()}
            fixed = {n: e.constant for n, e in expressions.items() if e.constant is not None}
            if fixed:
                from dataclasses import replace

                template = replace(template, **fixed)  # type: ignore[type-var]
            variable = tuple((n, e) for n, e in expressions.items() if e.constant is None)
        at = tuple(Expr.of(address) for address in addresses)
        if len(at) != len(template.operands()):
            raise TypeError(
                f"{template.name} takes {len(template.operands())} addresses, got {len(at)}"
            )
        self.append(Issue(template, at, _caller(), variable, self._walk))

    def finish(self) -> Program:
        """Return the program."""
        assert len(self._open) == 1, "a loop or branch is still open"
        return Program(tuple(self._open[0]), tuple(self._slots), self._name)


def _caller() -> Location:
    """Return the nearest place outside this file."""
    frame = sys._getframe(2)  # noqa: SLF001 - inspect.stack reads source files, this does not
    while frame.f_back is not None and frame.f_code.co_filename == _HERE:
        frame = frame.f_back
    return _location(frame.f_code, frame.f_lineno)


@lru_cache(maxsize=4096)
def _location(code: CodeType, line: int) -> Location:
    return Location(Path(code.co_filename).name, line, code.co_name)
