"""The vector function that computes a tile: its passes over the tile as calls on registers."""

import math
from collections.abc import Iterator, Mapping

from cubecore.dtypes import element_type
from cubecore.isa.program.tree import Location
from cubecore.kernels.build.register_calls import Issued
from cubecore.kernels.operators.passes import (
    INPUT,
    ONES,
    VECTOR,
    FunctionPass,
    Passes,
    PassValue,
)
from cubecore.kernels.operators.registers.buffers import TileLayout
from cubecore.kernels.operators.registers.lane_calls import FLOAT, LaneCalls
from cubecore.kernels.operators.tile import LANES

_NEUTRAL = {"SUM": 0.0, "MAX": -math.inf}
_JOINED = {"SUM": "Add", "MAX": "Max"}
_FLOATS_BYTES = 4 * LANES


def vector_function(passes: Passes, layout: TileLayout, rows: int, columns: int) -> Issued:
    """Return the vector function for `rows` rows of so many columns, at the layout's addresses."""
    return _Writer(passes, layout, rows, columns).issued


class _Writer(LaneCalls):
    """Writes the calls: a pass is a loop over rows, and in it one over registers of 64 columns."""

    def __init__(self, passes: Passes, layout: TileLayout, rows: int, columns: int) -> None:
        self.passes, self.layout, self.rows = passes, layout, rows
        self.whole, self.rest = divmod(columns, LANES)
        super().__init__(Location("functions.py", 0, layout.problem.op))
        if layout.problem.function.gives == "quantised":
            self.all_halves()
        self._tail = self.count(self.rest) if self.rest else 0
        used = {source for each in self._values() for source in each.sources}
        self._ones = {
            each: self.operate("Duplicate", scalar=1.0, mask=self.all)
            for each in used
            if each.kind == ONES
        }
        for number, each in enumerate(passes.passes):
            self._pass(each, is_first=number == 0)
        self._row_results()

    def _values(self) -> Iterator[PassValue]:
        for each in self.passes.passes:
            yield from (*each.lanes, *each.reduced, *each.rows)

    # --- passes

    def _pass(self, now: FunctionPass, *, is_first: bool) -> None:
        if not (now.lanes or now.reduced or self._results_of(now)):
            return
        if not is_first:
            self.barrier()
        for row in range(self.rows):
            numbers = {
                each: self.load(self._row_address(each, row), FLOAT, "BRC_B32", each)
                for each in now.numbers
            }
            self._row(now, row, numbers)
        if now.rows:
            self.barrier()
            self._rows(now)

    def _row(self, now: FunctionPass, row: int, numbers: Mapping[PassValue, int]) -> None:
        """Compute a row: whole registers, the last columns, and the reductions of both."""
        # A reduction joins the row's registers lane by lane, from its neutral value on, and lanes
        # at the end. Of a row of less than a register the mask of its columns suffices.
        joined = {}
        if self.whole:
            for each in now.reduced:
                neutral = _NEUTRAL[each.operation]
                joined[each] = self.operate("Duplicate", scalar=neutral, mask=self.all)
        for chunk in range(self.whole):
            lanes = self._lanes(now, row, chunk, self.all, numbers)
            for each in now.reduced:
                lane = lanes[each.sources[0]]
                joined[each] = self._joined(each, joined[each], lane)
        mask = self.all
        if self.rest:
            lanes = self._lanes(now, row, self.whole, self._tail, numbers)
            for each in now.reduced:
                lane = lanes[each.sources[0]]
                if not self.whole:  # `joined` is the row's only register
                    joined[each], mask = lane, self._tail
                    continue
                other = self.operate("Duplicate", scalar=_NEUTRAL[each.operation], mask=self.all)
                lane = self.operate("Select", lane, other, mask=self._tail)
                joined[each] = self._joined(each, joined[each], lane)
        for each in now.reduced:
            number = self.operate(
                "Reduce", joined[each], mode=each.operation, mask=mask, where=each.where
            )
            at = self._row_address(each, row)
            self.store(at, number, FLOAT, "FIRST_ELEMENT_B32", self.all, each)

    def _joined(self, each: PassValue, so_far: int, lane: int) -> int:
        name = _JOINED[each.operation]
        return self.operate(name, so_far, lane, mask=self.all, where=each.where)

    def _lanes(
        self, now: FunctionPass, row: int, chunk: int, mask: int, numbers: Mapping[PassValue, int]
    ) -> dict[PassValue, int]:
        """Compute the lanes of a register of columns; store what is kept, and results."""
        # First all loads, then the pass's steps in their order, then what goes to UB: `lanes` has
        # the register of each value at this place.
        lanes = {**numbers, **self._ones}
        column = chunk * LANES
        sources = [source for each in (*now.lanes, *now.reduced) for source in each.sources]
        for source in (*sources, *self._results_of(now)):
            if source not in lanes and source not in now.lanes:
                lanes[source] = self._brought(source, row, column, mask)
        for each in now.lanes:
            lanes[each] = self.operate(
                each.operation,
                *(lanes[source] for source in each.sources),
                scalar=each.scalar,
                mask=mask,
                where=each.where,
            )
        for each in now.kept:
            at = self.layout.kept_at(each) + 4 * (row * self.layout.pitch + column)
            self.store(at, lanes[each], FLOAT, "NORM", mask, each)
        for each in self._results_of(now):
            self._give(each, lanes[each], row, column, mask)
        return lanes

    def _brought(self, value: PassValue, row: int, column: int, mask: int) -> int:
        """Load lanes of an input, a vector, or a tile that is kept; of other types, widened."""
        layout = self.layout
        if value.kind not in {INPUT, VECTOR}:
            at = layout.kept_at(value) + 4 * (row * layout.pitch + column)
            return self.load(at, FLOAT, "NORM", (value, "kept"))
        if value.kind == VECTOR:
            dtype, at, element = layout.problem.vector_type, layout.vectors[value.number], column
        else:
            dtype, at = layout.problem.dtype, layout.inputs[value.number]
            element = row * layout.pitch + column
        return self.widened(at + dtype.size_bytes * element, dtype, mask, value)

    def _rows(self, now: FunctionPass) -> None:
        """Compute what there is of one number a row, 64 rows at a time."""
        # Numbers of rows lie one behind another: here a lane is a row, and results get buffers of
        # their own, so that nothing is stored where another row is still to be loaded.
        for chunk, mask in enumerate(self.masks(self.rows)):
            lanes: dict[PassValue, int] = {}
            for each in now.rows:
                for source in each.sources:
                    if source not in lanes:
                        at = self.layout.row_at(source) + _FLOATS_BYTES * chunk
                        lanes[source] = self.load(at, FLOAT, "NORM", (source, "rows"))
                lanes[each] = self.operate(
                    each.operation,
                    *(lanes[source] for source in each.sources),
                    scalar=each.scalar,
                    mask=mask,
                    where=each.where,
                )
                at = self.layout.row_at(each) + _FLOATS_BYTES * chunk
                self.store(at, lanes[each], FLOAT, "NORM", mask, (each, "rows"))

    def _row_address(self, value: PassValue, row: int) -> int:
        return self.layout.row_at(value) + 4 * row

    # --- results

    def _results_of(self, now: FunctionPass) -> tuple[PassValue, ...]:
        """Return the results that are complete in a pass."""
        return self.passes.tiles_of(self.passes.passes.index(now))

    def _give(self, value: PassValue, lane: int, row: int, column: int, mask: int) -> None:
        layout = self.layout
        dtype, begin = layout.problem.dtype, layout.last
        if value is self.passes.tile:
            begin = layout.result
            if layout.problem.function.gives == "quantised":
                dtype = element_type("int8")
        at = begin + dtype.size_bytes * (row * layout.pitch + column)
        self.narrowed(at, lane, dtype, mask, value)

    def _row_results(self) -> None:
        """Bring results of one number a row to where MTE3 takes them."""
        # Behind a barrier, as the numbers were stored row by row; 64 of them are a register here.
        row, gives = self.passes.row, self.layout.problem.function.gives
        if row is None:
            return
        dtype = FLOAT if gives == "quantised" else self.layout.problem.dtype
        begin = self.layout.scales if gives == "quantised" else self.layout.result
        self.barrier()
        for first in range(0, self.rows, LANES):
            count = min(LANES, self.rows - first)
            mask = self.all if count == LANES else self.count(count)
            at = self.layout.row_at(row) + 4 * first
            lane = self.load(at, FLOAT, "NORM", (row, "results"))
            self.narrowed(begin + dtype.size_bytes * first, lane, dtype, mask, row)
