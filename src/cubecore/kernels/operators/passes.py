"""A function's work on a tile as values, and the passes over the tile that compute them.

`FUNCTIONS` says once what a function does to tiles in UB. Here that text is traced: an instruction
on a tile becomes a value. A reduction ends a pass, since what divides or shifts a row is known
behind the row's end. Two kernels are built of passes: that in registers, where a value stays in a
register for as long as a pass needs it and what a later pass needs is stored, and that of rows
which do not fit in UB (`long_rows`), where a later pass computes it again.
"""

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from cubecore.isa.program.tree import Location
from cubecore.kernels.operators.functions import Function, TileBuffers

INPUT, VECTOR, NUMBER, ONES = "input", "vector", "number", "ones"
TILE, REDUCED, ROW = "tile", "reduced", "row"
_OF_ROWS = frozenset({NUMBER, REDUCED, ROW})
_MODES = {"add": "SUM", "max": "MAX"}


@dataclass(frozen=True, eq=False)
class PassValue:
    """A step's result: lanes of a tile, or one number a row.

    `operation` is the register instruction, of a reduction its mode; of inputs, vectors and input
    numbers `number` says which. `in_ub` is the same instruction on UB, as `FUNCTIONS` spells it.
    """

    kind: str
    operation: str = ""
    sources: "tuple[PassValue, ...]" = ()
    scalar: float | None = None
    number: int = 0
    where: Location | None = None
    in_ub: str = ""

    @property
    def of_rows(self) -> bool:
        """True if it is one number a row."""
        return self.kind in _OF_ROWS

    @cached_property
    def turn(self) -> int:
        """The pass that computes it; a number a row can be used from the next pass on."""
        # A number a row is there when its row has ended: numbers made of it are made behind the
        # same pass, lanes in the next.
        later = 0 if self.of_rows else 1
        turns = [each.turn + later * (each.kind in {REDUCED, ROW}) for each in self.sources]
        return max(turns, default=0)


@dataclass(frozen=True, slots=True)
class FunctionPass:
    """A pass over the tile: values of lanes, reductions at each row's end, then row by row.

    `kept` are values that later passes load.
    """

    lanes: tuple[PassValue, ...]
    reduced: tuple[PassValue, ...]
    rows: tuple[PassValue, ...]
    kept: tuple[PassValue, ...]

    @property
    def numbers(self) -> tuple[PassValue, ...]:
        """The numbers of rows that its lanes take."""
        found = [source for each in self.lanes for source in each.sources if source.of_rows]
        return tuple(dict.fromkeys(found))


@dataclass(frozen=True, slots=True)
class Passes:
    """A function's passes, and its results: the tile, the last tile, a number a row."""

    passes: tuple[FunctionPass, ...]
    tile: PassValue | None
    last: PassValue | None
    row: PassValue | None

    @property
    def kept(self) -> tuple[PassValue, ...]:
        """The tiles of float32 that are stored."""
        return tuple(value for each in self.passes for value in each.kept)

    @property
    def row_values(self) -> tuple[PassValue, ...]:
        """The values of one number a row."""
        return tuple(value for each in self.passes for value in (*each.reduced, *each.rows))

    def tiles_of(self, turn: int) -> tuple[PassValue, ...]:
        """Return the resulting tiles that pass `turn` completes."""
        return tuple(each for each in (self.tile, self.last) if each and each.turn == turn)


class _Tracer:
    """Stands for a tile in a function's work: buffers are names of values."""

    def __init__(self, function: Function, columns: int) -> None:
        self.columns = columns
        self.values: list[PassValue] = []
        names = iter(range(64))
        count = max(function.wide, function.arrays)
        self.wide = tuple(next(names) for _ in range(count))
        self.vectors = tuple(next(names) for _ in range(function.vectors))
        self.partial, self.one, self.spread_name, self.ones = (next(names) for _ in range(4))
        self.numbers = tuple(next(names) for _ in range(function.numbers))
        self.held = {self.wide[n]: PassValue(INPUT, number=n) for n in range(function.arrays)}
        self.held |= {name: PassValue(VECTOR, number=n) for n, name in enumerate(self.vectors)}
        self.held |= {name: PassValue(NUMBER, number=n) for n, name in enumerate(self.numbers)}
        self.held[self.ones] = PassValue(ONES)

    @property
    def buffers(self) -> TileBuffers:
        """The names, as buffers."""
        rows = self.partial, self.one, self.spread_name
        return TileBuffers(self.wide, self.vectors, *rows, self.ones, self.numbers)

    def _make(
        self, kind: str, name: str, into: int, *sources: int, value: float | None = None
    ) -> None:
        operation = _MODES[name] if kind == REDUCED else _spelled(name)
        taken = tuple(self.held[each] for each in sources)
        result = PassValue(kind, operation, taken, value, where=_caller(), in_ub=name)
        self.held[into] = result
        self.values.append(result)

    def each(self, name: str, into: int, *sources: int, value: float | None = None) -> None:
        """Apply an element-wise instruction."""
        self._make(TILE, name, into, *sources, value=value)

    def with_constant(self, name: str, into: int, lanes: int, source: int) -> None:
        """Apply a binary instruction to equal numbers and the tile."""
        self._make(TILE, name, into, lanes, source)

    def by_row(self, name: str, into: int, source: int, spread: int) -> None:
        """Apply a binary instruction to each row and its own number."""
        self._make(TILE, name, into, source, spread)

    def by_column(self, name: str, into: int, source: int, vector: int) -> None:
        """Apply a binary instruction to each row and a vector that all rows share."""
        self._make(TILE, name, into, source, vector)

    def reduce(self, name: str, into: int, source: int, partial: int) -> None:
        """Reduce each row to one number."""
        del partial  # registers hold what is left of a row
        self._make(REDUCED, name, into, source)

    def each_row_value(
        self, name: str, into: int, *sources: int, value: float | None = None
    ) -> None:
        """Apply an element-wise instruction to one number a row."""
        self._make(ROW, name, into, *sources, value=value)

    def spread(self, into: int, values: int) -> None:
        """Name one number a row anew: a load spreads it over a register."""
        self.held[into] = self.held[values]


def passes_of(function: Function, columns: int) -> Passes:
    """Return the passes of a function over rows of so many columns."""
    # The text runs once, on names in place of buffers; what a name holds in the end is a result.
    tracer = _Tracer(function, columns)
    function.work(tracer, tracer.buffers)
    tile = tracer.held[tracer.wide[0]] if function.gives != "rows" else None
    last = tracer.held[tracer.wide[-1]] if function.last else None
    row = tracer.held.get(tracer.one) if function.gives != "tile" else None
    # Values that no result is made of (a copy that a tile in UB needs, say) are dropped.
    used = _used([value for value in (tile, last, row) if value is not None])
    values = [value for value in tracer.values if value in used]
    count = 1 + max((value.turn for value in values), default=0)
    passes = [
        FunctionPass(
            lanes=_of(values, turn, TILE),
            reduced=_of(values, turn, REDUCED),
            rows=_of(values, turn, ROW),
            kept=tuple(
                value
                for value in _of(values, turn, TILE)
                if any(value in each.sources and each.turn > turn for each in values)
            ),
        )
        for turn in range(count)
    ]
    return Passes(tuple(passes), tile, last, row)


def _of(values: Sequence[PassValue], turn: int, kind: str) -> tuple[PassValue, ...]:
    return tuple(value for value in values if value.turn == turn and value.kind == kind)


def _used(results: Sequence[PassValue]) -> set[PassValue]:
    """Return the results and what they are made of."""
    used: set[PassValue] = set()
    left = list(results)
    while left:
        value = left.pop()
        if value not in used:
            used.add(value)
            left.extend(value.sources)
    return used


def _spelled(name: str) -> str:
    """Return the register instruction of an instruction on UB: of ``vadds`` Adds."""
    return name.removeprefix("v").capitalize()


def _caller() -> Location:
    frame = sys._getframe(3)  # noqa: SLF001 - the line of the function's work
    code = frame.f_code
    return Location(Path(code.co_filename).name, frame.f_lineno, code.co_name)
