"""Functions of candidates as straight lines: run once on symbols, then without Python's overhead.

The rules and the closed form are written once, for one tiling or a struct of arrays. For the few
thousand rows of a step of the search, half of their time is Python's: attributes, records, calls.
`Straight` runs such a function on symbols, which note every operation, and compiles what was noted:
the same NumPy calls in the same order with the same result to the last bit. Equal operations are
done once, numbers of a problem as Python's own, and what depends on one struct only is computed for
that struct's rows, not for those of a join.

Decisions of the function on numbers (`if problem.m == 1`) are noted too: a line is used where they
come out the same, else another is made. A function may not decide on a column's values.
"""

from collections.abc import Callable, Iterator, Sequence
from copy import copy
from dataclasses import dataclass, fields, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from cubecore.tiling.cost.trace_symbols import NAMES, Noted, Symbol, spell
from cubecore.tiling.model.problem import Problem
from cubecore.tiling.rules.model import Case

EXTENTS = ("m", "n", "k")
"""What is a number of a line; everything else of a problem belongs to its kind."""
NOT_READ = ("chip", "fix", "budget", "seed")
"""What no function of candidates reads of a problem."""
WARM = 6
"""Problems of one kind before lines are made: they cost as much as some problems do without."""
MADE_AT_ONCE = 2
"""Lines that are made for one problem: each costs as much as a plan."""
MOST_KINDS = 512
"""Kinds of problems whose lines are kept; then the oldest go."""


class _Sketch:
    """A struct whose fields are symbols."""

    def __init__(self, line: Noted, place: int, struct: Any, own: dict[str, Any]) -> None:
        self._line, self._place, self._struct, self._own = line, place, struct, own

    def __getattr__(self, name: str) -> Any:
        if name not in self._own:
            self._own[name] = self._line.input(self._place, name, getattr(self._struct, name))
        return self._own[name]

    def with_fields(self, **fields: Any) -> "_Sketch":
        """Return the struct with some fields replaced or added."""
        return _Sketch(self._line, self._place, self._struct, self._own | fields)


@dataclass(frozen=True)
class _Line:
    """A compiled line: where its inputs are, whether it applies, what it computes."""

    inputs: tuple[tuple[int, str, str], ...]
    numbers: tuple[tuple[int, str, str], ...]
    decides: Callable[..., tuple[Any, ...]]
    decisions: list[bool]
    run: Callable[..., tuple[Any, ...]]

    @staticmethod
    def of(noted: Noted, results: Sequence[Any]) -> "_Line":
        """Compile what was noted."""
        placed = [noted.at(result, noted.out) for result in results]
        decisions = list(noted.decisions.values())
        inputs, run = _compiled(noted, placed)
        numbers, decides = _compiled(noted, [symbol for symbol, _ in decisions])
        return _Line(inputs, numbers, decides, [outcome for _, outcome in decisions], run)

    def result(
        self, structs: tuple[Any, ...], ups: tuple[Any, ...], rows: tuple[Any, ...]
    ) -> tuple[Any, ...] | None:
        """Return the function's result; None if it takes another way."""
        if self.decisions:
            numbers = _given(self.numbers, structs)
            if numbers is None:
                return None
            if [bool(x) for x in self.decides((), (), *numbers)] != self.decisions:
                return None
        values = _given(self.inputs, structs)
        return None if values is None else self.run(ups, rows, *values)


def _given(inputs: tuple[tuple[int, str, str], ...], structs: tuple[Any, ...]) -> list[Any] | None:
    """Return the values of inputs; None if one is of another kind."""
    values = []
    for place, name, kind in inputs:
        value = getattr(structs[place], name)
        if (value.dtype.kind if type(value) is np.ndarray and value.ndim else "") != kind:
            return None
        values.append(value)
    return values


def _compiled(
    noted: Noted, results: Sequence[Any]
) -> tuple[tuple[tuple[int, str, str], ...], Callable[..., tuple[Any, ...]]]:
    """Return the inputs that results need, and the function that makes them of their values."""
    found: set[int] = set()
    todo = [value for value in results if isinstance(value, Symbol)]
    while todo:
        symbol = todo.pop()
        if symbol.place not in found:
            found.add(symbol.place)
            todo += noted.needs[symbol.place]
    needed = sorted(found)
    last = {place: step for step in needed for place in _places(noted.needs[step])}
    kept = {value.place for value in results if isinstance(value, Symbol)}
    dropped = {p for p in needed if noted.texts[p] or p in noted.inputs} - kept
    inputs = [place for place in needed if place in noted.inputs]
    lines = []
    for step in needed:
        text = noted.texts[step]
        if text is not None:
            lines.append(f"v{step} = {text}")
        gone = [p for p in _places(noted.needs[step]) if last[p] == step and p in dropped]
        if gone:
            lines.append("del " + ", ".join(f"v{place}" for place in gone))
    body = "\n".join(lines)
    levels = range(len(noted.parents))
    indexes = [f"up{i} = ups[{i}]" for i in levels if f".take(up{i})" in body]
    indexes += [f"rows{i} = rows[{i}]" for i in levels if f".take(rows{i})" in body]
    given = ", ".join(["ups", "rows", *(f"v{place}" for place in inputs)])
    back = "return (" + "".join(f"{spell(value)}, " for value in results) + ")"
    text = "\n    ".join([f"def line({given}):", *indexes, *lines, back])
    made: dict[str, Any] = {}
    names = NAMES | noted.constants
    exec(compile(text, "<straight line>", "exec"), names, made)  # noqa: S102 - our own text
    return tuple(noted.inputs[place] for place in inputs), made["line"]


def _places(symbols: tuple[Symbol, ...]) -> set[int]:
    return {symbol.place for symbol in symbols}


class Lines:
    """The lines of one kind of problem on a chip, by function."""

    _of: ClassVar[dict[Any, "Lines"]] = {}

    def __init__(self) -> None:
        self.made: dict[Any, list[_Line]] = {}
        self.calls, self.left = 0, MADE_AT_ONCE

    @classmethod
    def of(cls, case: Case) -> "Lines":
        """Return the lines for problems like the case's, and note that there is another one."""
        key = (case.chip, *(getattr(case.problem, name) for name in _KIND))
        if key not in cls._of:
            if len(cls._of) == MOST_KINDS:
                del cls._of[next(iter(cls._of))]
            cls._of[key] = cls()
        found = cls._of[key]
        found.calls += 1
        found.left = MADE_AT_ONCE
        return found


NO_LINES = Lines()
"""None are made and none are used."""
_KIND = tuple(f.name for f in fields(Problem) if f.name not in (*EXTENTS, *NOT_READ))


def column(value: Any, count: int) -> NDArray[Any]:
    """Return a result as a column: a number in each of `count` rows."""
    if type(value) is np.ndarray and value.ndim:
        return value
    return np.full(count, value)


class Straight:
    """A function of a case and structs of columns, which returns a tuple of columns and numbers.

    `parents` says of each struct whether its rows belong to rows of another one, and of which. A
    call computes the result for the rows of the last struct; `ups[i]` says to which row of its
    parent each row of struct i belongs. With `rows` it is computed for a join instead, and
    `rows[i]` says which row of struct i each row of the join has.
    """

    def __init__(
        self, function: Callable[..., tuple[Any, ...]], parents: tuple[int | None, ...] = (None,)
    ) -> None:
        self.function, self.parents = function, parents

    def __call__(
        self,
        lines: Lines,
        case: Case,
        *structs: Any,
        ups: tuple[Any, ...] = (None,),
        rows: tuple[Any, ...] | None = None,
    ) -> tuple[Any, ...]:
        """Return the function's result, by a line if problems of the kind come more than once."""
        if lines.calls <= WARM:
            return self.function(case, *self._gathered(structs, ups, rows))
        made = lines.made.setdefault((self, rows is None), [])
        given, places = (*structs, case.problem), rows or (None,) * len(structs)
        for line in made:
            found = line.result(given, ups, places)
            if found is not None:
                return found
        if lines.left == 0:
            return self.function(case, *self._gathered(structs, ups, rows))
        line = self._line(case, structs, len(structs) - (rows is None))
        made.append(line)
        lines.left -= 1
        found = line.result(given, ups, places)
        assert found is not None, "a line applies to what it was made of"
        return found

    def _gathered(
        self, structs: tuple[Any, ...], ups: tuple[Any, ...], rows: tuple[Any, ...] | None
    ) -> Iterator[Any]:
        """Return the structs, a row for each row of the result."""
        for place, struct in enumerate(structs):
            if rows is not None:
                yield struct.take(rows[place])
            elif place == self.parents[-1]:
                yield struct.take(ups[-1])
            else:
                yield struct

    def _line(self, case: Case, structs: tuple[Any, ...], out: int) -> _Line:
        noted = Noted(self.parents, out)
        problem = copy(case.problem)
        for name in EXTENTS:
            number = noted.input(len(structs), name, getattr(problem, name))
            object.__setattr__(problem, name, number)
        sketches = [_Sketch(noted, i, struct, {}) for i, struct in enumerate(structs)]
        made = _Line.of(noted, self.function(replace(case, problem=problem), *sketches))
        noted.forget()
        return made
