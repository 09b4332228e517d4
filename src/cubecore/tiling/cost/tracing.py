"""Tracing: functions of candidates run once on symbols, then as compiled straight-line code.

The rules and the closed form are written once, for one tiling or a struct of arrays. For the few
thousand rows of a step of the search, half of their time is Python's: attributes, records, calls.
`TracedFunction` runs such a function on symbols, which note every operation, and compiles what was
noted: the same NumPy calls in the same order with the same result to the last bit. Equal operations
are done once, numbers of a problem as Python's own, and what depends on one struct only is computed
for that struct's rows, not for those of a join.

Decisions of the function on numbers (`if problem.m == 1`) are noted too: a trace is used where they
come out the same, else another is compiled. A function may not decide on a column's values. The
numbers of a chip are inputs as those of a problem are: chips that know the same ones share traces.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import fields, replace
from functools import lru_cache
from types import CodeType, FunctionType, MethodType
from typing import Any, ClassVar, cast

import numpy as np

from cubecore.aliases import Column
from cubecore.arrays import Array
from cubecore.chips.model import Chip
from cubecore.lazy_dataclass import dataclass
from cubecore.tiling.cost.trace_symbols import NAMES, OperationTrace, Symbol, spell
from cubecore.tiling.model.problem import Problem
from cubecore.tiling.rules.model import RuleCase

EXTENTS = ("m", "n", "k")
"""Numbers that a trace takes as inputs; everything else of a problem belongs to its kind."""
UNREAD_FIELDS = ("chip", "fix", "budget", "seed")
"""Fields of a problem that no function of candidates reads."""
NAMING_FIELDS = ("name", "products", "sources")
"""Fields of a chip that name it and what is known of it."""
WARM_UP_PROBLEMS = 3
"""Problems of one kind before tracing starts: it costs as much as some problems without it."""
TRACES_PER_PROBLEM = 3
"""Traces compiled for one problem: each costs as much as a plan."""
MAX_KINDS = 512
"""Kinds of problems whose traces are kept; then the oldest go."""


class _SymbolicStruct:
    """A struct whose fields are symbols."""

    def __init__(
        self, line: OperationTrace, index: int, struct: object, symbols: dict[str, Column]
    ) -> None:
        self._trace, self._index, self._struct, self._symbols = line, index, struct, symbols

    def __getattr__(self, name: str) -> Column:
        if name not in self._symbols:
            self._symbols[name] = self._trace.input(self._index, name, getattr(self._struct, name))
        return self._symbols[name]

    def with_fields(self, **fields: Column) -> "_SymbolicStruct":
        """Return the struct with some fields replaced or added."""
        return _SymbolicStruct(self._trace, self._index, self._struct, self._symbols | fields)


class _SymbolicChip:
    """A chip whose numbers are symbols; everything else is that of the chip."""

    def __init__(self, line: OperationTrace, index: int, chip: Chip) -> None:
        self._trace, self._index, self._chip = line, index, chip

    def __getattr__(self, name: str) -> Any:
        # Properties and methods run on the symbols, so that what they compute of numbers is traced
        # too.
        declared = getattr(Chip, name, None)
        if isinstance(declared, property) and declared.fget is not None:
            return declared.fget(self)
        if isinstance(declared, FunctionType):
            return MethodType(declared, self)
        value = getattr(self._chip, name)
        return self._trace.input(self._index, name, value) if _is_number(value) else value


def _is_number(value: object) -> bool:
    return type(value) in {int, float}


@lru_cache(maxsize=64)
def _kind_of_chip(chip: Chip) -> tuple[object, ...]:
    """Return what chips have in common that share traces: all but the values of their numbers."""
    kind: list[object] = []
    for name in _CHIP_KIND:
        value = getattr(chip, name)
        table = tuple(value.items()) if isinstance(value, Mapping) else value
        kind.append(type(value) if _is_number(value) else table)
    return tuple(kind)


@dataclass(frozen=True)
class _CompiledTrace:
    """A compiled trace: where its inputs are, whether it applies, what it computes."""

    inputs: tuple[tuple[int, str, str], ...]
    numbers: tuple[tuple[int, str, str], ...]
    decides: Callable[..., tuple[Column, ...]]
    decisions: list[bool]
    run: Callable[..., tuple[Column, ...]]

    @staticmethod
    def of(noted: OperationTrace, results: Sequence[Column]) -> "_CompiledTrace":
        """Compile what was noted."""
        outputs = [noted.at(result, noted.out) for result in results]
        decisions = list(noted.decisions.values())
        inputs, run = _compile(noted, outputs)
        numbers, decides = _compile(noted, [symbol for symbol, _ in decisions])
        return _CompiledTrace(inputs, numbers, decides, [outcome for _, outcome in decisions], run)

    def result(
        self, structs: tuple[object, ...], ups: tuple[Column, ...], rows: tuple[Column, ...]
    ) -> tuple[Column, ...] | None:
        """Return the function's result; None if a decision comes out otherwise."""
        if self.decisions:
            numbers = _input_values(self.numbers, structs)
            if numbers is None:
                return None
            if [bool(x) for x in self.decides((), (), *numbers)] != self.decisions:
                return None
        values = _input_values(self.inputs, structs)
        return None if values is None else self.run(ups, rows, *values)


def _input_values(
    inputs: tuple[tuple[int, str, str], ...], structs: tuple[object, ...]
) -> list[Column] | None:
    """Return the values of inputs; None if one is of another kind."""
    values = []
    for index, name, kind in inputs:
        value = getattr(structs[index], name)
        if (value.dtype.kind if type(value) is np.ndarray and value.ndim else "") != kind:
            return None
        values.append(value)
    return values


# `minimum(2 * baseM, n) * step + share`, baseM and share of base blocks (struct 0), step of their
# residencies (struct 1) and n the problem's, becomes the text below. What depends on a block alone
# is computed for blocks, then taken to the rows of residencies (`up1`). A column is let go of
# behind its last use, so that the next one is made in memory that the processor's cache still has.
#
#   def line(ups, rows, v0, v1, v4, v8):
#       up1 = ups[1]
#       v2 = v1 * (2)
#       del v1
#       v3 = minimum(v2, v0)
#       del v0, v2
#       v5 = v3.take(up1)
#       del v3
#       v6 = v5 * v4
#       del v4, v5
#       v9 = v8.take(up1)
#       del v8
#       v10 = v6 + v9
#       del v9, v6
#       return (v10, )
def _compile(
    noted: OperationTrace, results: Sequence[Column]
) -> tuple[tuple[tuple[int, str, str], ...], Callable[..., tuple[Column, ...]]]:
    """Return the inputs that results need, and the function that makes them of their values."""
    # Backwards from the results: operations that only led to a decision are left out, as decisions
    # are a function of their own.
    needed_indexes: set[int] = set()
    todo = [value for value in results if isinstance(value, Symbol)]
    while todo:
        symbol = todo.pop()
        if symbol.index not in needed_indexes:
            needed_indexes.add(symbol.index)
            todo += noted.needs[symbol.index]
    needed = sorted(needed_indexes)
    last = {index: step for step in needed for index in _indexes(noted.needs[step])}
    kept = {value.index for value in results if isinstance(value, Symbol)}
    # Constants are names of the text, shared by later calls, and are not let go of.
    dropped = {p for p in needed if noted.texts[p] or p in noted.inputs} - kept
    inputs = [index for index in needed if index in noted.inputs]
    lines = []
    for step in needed:
        text = noted.texts[step]
        if text is not None:
            lines.append(f"v{step} = {text}")
        gone = [p for p in _indexes(noted.needs[step]) if last[p] == step and p in dropped]
        if gone:
            lines.append("del " + ", ".join(f"v{index}" for index in gone))
    body = "\n".join(lines)
    levels = range(len(noted.parents))
    indexes = [f"up{i} = ups[{i}]" for i in levels if f".take(up{i})" in body]
    indexes += [f"rows{i} = rows[{i}]" for i in levels if f".take(rows{i})" in body]
    given = ", ".join(["ups", "rows", *(f"v{index}" for index in inputs)])
    back = "return (" + "".join(f"{spell(value)}, " for value in results) + ")"
    text = "\n    ".join([f"def line({given}):", *indexes, *lines, back])
    compiled: dict[str, Any] = {}
    names = NAMES | noted.constants
    exec(_code(text), names, compiled)  # noqa: S102 - our own text
    return tuple(noted.inputs[index] for index in inputs), compiled["line"]


@lru_cache(maxsize=1024)
def _code(text: str) -> CodeType:
    """Return the code of a trace's text; traces of other types often have the same."""
    return compile(text, "<trace>", "exec")


def _indexes(symbols: tuple[Symbol, ...]) -> set[int]:
    return {symbol.index for symbol in symbols}


class TraceCache:
    """The traces of one kind of problem on one kind of chip, by function."""

    _of: ClassVar[dict[object, "TraceCache"]] = {}

    def __init__(self) -> None:
        self.traces: dict[object, list[_CompiledTrace]] = {}
        self.calls, self.left = 0, TRACES_PER_PROBLEM

    @classmethod
    def of(cls, case: RuleCase) -> "TraceCache":
        """Return the traces for problems like the case's, and count one more problem."""
        key = (_kind_of_chip(case.chip), *(getattr(case.problem, name) for name in _KIND))
        if key not in cls._of:
            if len(cls._of) == MAX_KINDS:
                del cls._of[next(iter(cls._of))]
            cls._of[key] = cls()
        cache = cls._of[key]
        cache.calls += 1
        cache.left = TRACES_PER_PROBLEM
        return cache


NO_TRACES = TraceCache()
"""Functions run untraced."""
_KIND = tuple(f.name for f in fields(Problem) if f.name not in (*EXTENTS, *UNREAD_FIELDS))
_CHIP_KIND = tuple(f.name for f in fields(Chip) if f.name not in NAMING_FIELDS)


def column(value: Column, count: int) -> Array:
    """Return a result as a column: a number in each of `count` rows."""
    if type(value) is np.ndarray and value.ndim:
        return value
    return np.full(count, value)


class TracedFunction:
    """A function of a case and structs of columns, which returns a tuple of columns and numbers.

    `parents` says of each struct whether its rows belong to rows of another one, and of which. A
    call computes the result for the rows of the last struct; `ups[i]` says to which row of its
    parent each row of struct i belongs. With `rows` it is computed for a join instead, and
    `rows[i]` says which row of struct i each row of the join has.
    """

    def __init__(
        self, function: Callable[..., tuple[Column, ...]], parents: tuple[int | None, ...] = (None,)
    ) -> None:
        self.function, self.parents = function, parents

    def __call__(
        self,
        cache: TraceCache,
        case: RuleCase,
        *structs: object,
        ups: tuple[Column, ...] = (None,),
        rows: tuple[Column, ...] | None = None,
    ) -> tuple[Column, ...]:
        """Return the function's result, by a trace if problems of the kind come more than once."""
        # A sweep asks for hundreds of problems of one kind; a single plan never gets here.
        if cache.calls <= WARM_UP_PROBLEMS:
            return self.function(case, *self._gathered(structs, ups, rows))
        traces = cache.traces.setdefault((self, rows is None), [])
        given, join_rows = (*structs, case.problem, case.chip), rows or (None,) * len(structs)
        for trace in traces:
            result = trace.result(given, ups, join_rows)
            if result is not None:
                return result
        if cache.left == 0:
            return self.function(case, *self._gathered(structs, ups, rows))
        trace = self._trace(case, structs, len(structs) - (rows is None))
        traces.append(trace)
        cache.left -= 1
        result = trace.result(given, ups, join_rows)
        assert result is not None, "a trace applies to the case that it was compiled from"
        return result

    def _gathered(
        self, structs: tuple[Any, ...], ups: tuple[Column, ...], rows: tuple[Column, ...] | None
    ) -> Iterator[Any]:
        """Return the structs, a row for each row of the result."""
        for index, struct in enumerate(structs):
            if rows is not None:
                yield struct.take(rows[index])
            elif index == self.parents[-1]:
                yield struct.take(ups[-1])
            else:
                yield struct

    def _trace(self, case: RuleCase, structs: tuple[object, ...], out: int) -> _CompiledTrace:
        noted = OperationTrace(self.parents, out)
        problem = copy(case.problem)
        for name in EXTENTS:
            number = noted.input(len(structs), name, getattr(problem, name))
            object.__setattr__(problem, name, number)
        sketches = [_SymbolicStruct(noted, i, struct, {}) for i, struct in enumerate(structs)]
        chip = _SymbolicChip(noted, len(structs) + 1, case.chip)
        symbolic = replace(case, problem=problem, chip=cast("Chip", chip))
        trace = _CompiledTrace.of(noted, self.function(symbolic, *sketches))
        noted.forget()
        return trace
