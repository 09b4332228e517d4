"""The vector function that computes a tile: its passes over the tile as calls on registers."""

import math
from collections.abc import Iterator, Mapping

from cubecore.dtypes import ElementType, element_type
from cubecore.isa.program.tree import Location
from cubecore.isa.vector.registers.operation import Call
from cubecore.isa.vector.registers.operations.catalogue import operations
from cubecore.kernels.build.register_calls import FunctionCalls, Issued
from cubecore.kernels.operators.registers.buffers import TileLayout
from cubecore.kernels.operators.registers.passes import (
    INPUT,
    ONES,
    VECTOR,
    Passes,
    PassValue,
    RegisterPass,
)
from cubecore.kernels.operators.tile import LANES, float_code

_FLOAT, _BITS = element_type("float32"), element_type("uint32")
_NEUTRAL = {"SUM": 0.0, "MAX": -math.inf}
_JOINED = {"SUM": "Add", "MAX": "Max"}
_FLOATS_BYTES = 4 * LANES
_STORES_THEN_LOADS = ("VEC_STORE", 1)
"""The classes of a barrier: stores before it, and loads behind it by its number in MemType."""
_TO_BYTES = (
    ("float32", "int16", "SAT"),
    ("int16", "float16", "NO_SAT"),
    ("float16", "int8", "SAT"),
)
"""Conversions of float32 to int8, which registers have none for; half holds all such integers."""


def vector_function(passes: Passes, layout: TileLayout, rows: int, columns: int) -> Issued:
    """Return the vector function for `rows` rows of so many columns, at the layout's addresses."""
    return _Writer(passes, layout, rows, columns).issued


class _Writer:
    """Writes the calls: a pass is a loop over rows, and in it one over registers of 64 columns."""

    def __init__(self, passes: Passes, layout: TileLayout, rows: int, columns: int) -> None:
        self.passes, self.layout, self.rows = passes, layout, rows
        self.whole, self.rest = divmod(columns, LANES)
        self.where = Location("functions.py", 0, layout.problem.op)
        self.calls = FunctionCalls(self.where)
        self._variables: dict[object, int] = {}
        self._all = self._operate("CreateMask", mode="ALL", dtype=_BITS)
        self._halves = 0
        if layout.problem.function.gives == "quantised":  # for lanes of int16 and half
            self._halves = self._operate("CreateMask", mode="ALL", dtype=element_type("uint16"))
        self._tail = self._count(self.rest) if self.rest else 0
        used = {source for each in self._values() for source in each.sources}
        self._ones = {
            each: self._operate("Duplicate", scalar=1.0, mask=self._all)
            for each in used
            if each.kind == ONES
        }
        for number, each in enumerate(passes.passes):
            self._pass(each, is_first=number == 0)
        self._row_results()
        issued = self.calls.issued()
        assert issued is not None
        self.issued = issued

    def _values(self) -> Iterator[PassValue]:
        for each in self.passes.passes:
            yield from (*each.lanes, *each.reduced, *each.rows)

    # --- calls

    def _operate(
        self,
        name: str,
        *sources: int,
        mode: str = "",
        dtype: ElementType = _FLOAT,
        source: ElementType | None = None,
        scalar: float | None = None,
        mask: int = 0,
        where: Location | None = None,
    ) -> int:
        """Record a call on registers; return the number of its result."""
        result = self.calls.new_value()
        call = Call(operations()[name], dtype, source or dtype, mode)
        code = 0 if scalar is None else float_code(scalar)
        where = where or self.where
        self.calls.take(call, where, results=(result,), sources=sources, mask=mask, scalar=code)
        return result

    def _count(self, lanes: int) -> int:
        result = self.calls.new_value()
        call = Call(operations()["UpdateMask"], _BITS, _BITS)
        self.calls.take(call, self.where, results=(result,), scalar=lanes)
        return result

    def _load(self, address: int, dtype: ElementType, mode: str, of: object) -> int:
        result = self.calls.new_value()
        call = Call(operations()["LoadAlign"], dtype, dtype, mode)
        variable = self._variable("load", of)
        self.calls.take(call, self.where, results=(result,), variable=variable, address=address)
        return result

    def _store(
        self, address: int, value: int, dtype: ElementType, mode: str, mask: int, of: object
    ) -> None:
        call = Call(operations()["StoreAlign"], dtype, dtype, mode)
        sources, variable = (value,), self._variable("store", of)
        self.calls.take(
            call, self.where, sources=sources, mask=mask, variable=variable, address=address
        )

    def _variable(self, *of: object) -> int:
        """Return the number of the register variable that a text would have there."""
        if of not in self._variables:
            self._variables[of] = self.calls.new_variable()
        return self._variables[of]

    def _barrier(self) -> None:
        before, behind = _STORES_THEN_LOADS
        call = Call(
            operations()["LocalMemBar"], element_type("uint8"), element_type("uint8"), before
        )
        self.calls.take(call, self.where, scalar=behind)

    def _cast(self, value: int, source: str, target: str, saturation: str, mask: int) -> int:
        rounding = "CAST_NONE" if target == "float32" else "CAST_RINT"
        return self._operate(
            "Cast",
            value,
            mode=f"ZERO.{saturation}.{rounding}",
            dtype=element_type(target),
            source=element_type(source),
            mask=mask,
        )

    # --- passes

    def _pass(self, now: RegisterPass, *, is_first: bool) -> None:
        if not (now.lanes or now.reduced or self._results_of(now)):
            return
        if not is_first:
            self._barrier()
        for row in range(self.rows):
            numbers = {
                each: self._load(self._row_address(each, row), _FLOAT, "BRC_B32", each)
                for each in _row_sources(now)
            }
            self._row(now, row, numbers)
        if now.rows:
            self._barrier()
            self._rows(now)

    def _row(self, now: RegisterPass, row: int, numbers: Mapping[PassValue, int]) -> None:
        """Compute a row: whole registers, the last columns, and the reductions of both."""
        # A reduction joins the row's registers lane by lane, from its neutral value on, and lanes
        # at the end. Of a row of less than a register the mask of its columns suffices.
        joined = {}
        if self.whole:
            for each in now.reduced:
                neutral = _NEUTRAL[each.operation]
                joined[each] = self._operate("Duplicate", scalar=neutral, mask=self._all)
        for chunk in range(self.whole):
            lanes = self._lanes(now, row, chunk, self._all, numbers)
            for each in now.reduced:
                lane = lanes[each.sources[0]]
                joined[each] = self._joined(each, joined[each], lane)
        mask = self._all
        if self.rest:
            lanes = self._lanes(now, row, self.whole, self._tail, numbers)
            for each in now.reduced:
                lane = lanes[each.sources[0]]
                if not self.whole:  # `joined` is the row's only register
                    joined[each], mask = lane, self._tail
                    continue
                other = self._operate("Duplicate", scalar=_NEUTRAL[each.operation], mask=self._all)
                lane = self._operate("Select", lane, other, mask=self._tail)
                joined[each] = self._joined(each, joined[each], lane)
        for each in now.reduced:
            number = self._operate(
                "Reduce", joined[each], mode=each.operation, mask=mask, where=each.where
            )
            at = self._row_address(each, row)
            self._store(at, number, _FLOAT, "FIRST_ELEMENT_B32", self._all, each)

    def _joined(self, each: PassValue, so_far: int, lane: int) -> int:
        name = _JOINED[each.operation]
        return self._operate(name, so_far, lane, mask=self._all, where=each.where)

    def _lanes(
        self, now: RegisterPass, row: int, chunk: int, mask: int, numbers: Mapping[PassValue, int]
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
            lanes[each] = self._operate(
                each.operation,
                *(lanes[source] for source in each.sources),
                scalar=each.scalar,
                mask=mask,
                where=each.where,
            )
        for each in now.kept:
            at = self.layout.kept_at(each) + 4 * (row * self.layout.pitch + column)
            self._store(at, lanes[each], _FLOAT, "NORM", mask, each)
        for each in self._results_of(now):
            self._give(each, lanes[each], row, column, mask)
        return lanes

    def _brought(self, value: PassValue, row: int, column: int, mask: int) -> int:
        """Load lanes of an input, a vector, or a tile that is kept; of other types, widened."""
        layout = self.layout
        if value.kind not in {INPUT, VECTOR}:
            at = layout.kept_at(value) + 4 * (row * layout.pitch + column)
            return self._load(at, _FLOAT, "NORM", (value, "kept"))
        size, dtype = layout.problem.dtype.size_bytes, layout.problem.dtype
        at = layout.vectors[value.number] if value.kind == VECTOR else layout.inputs[value.number]
        at += size * (column + (0 if value.kind == VECTOR else row * layout.pitch))
        if dtype == _FLOAT:
            return self._load(at, dtype, "NORM", value)
        loaded = self._load(at, dtype, "UNPACK_B16", value)
        return self._cast(loaded, dtype.name, "float32", "NO_SAT", mask)

    def _rows(self, now: RegisterPass) -> None:
        """Compute what there is of one number a row, 64 rows at a time."""
        # Numbers of rows lie one behind another: here a lane is a row, and results get buffers of
        # their own, so that nothing is stored where another row is still to be loaded.
        whole, rest = divmod(self.rows, LANES)
        masks = [self._all] * whole + ([self._count(rest)] if rest else [])
        for chunk, mask in enumerate(masks):
            lanes: dict[PassValue, int] = {}
            for each in now.rows:
                for source in each.sources:
                    if source not in lanes:
                        at = self.layout.row_at(source) + _FLOATS_BYTES * chunk
                        lanes[source] = self._load(at, _FLOAT, "NORM", (source, "rows"))
                lanes[each] = self._operate(
                    each.operation,
                    *(lanes[source] for source in each.sources),
                    scalar=each.scalar,
                    mask=mask,
                    where=each.where,
                )
                at = self.layout.row_at(each) + _FLOATS_BYTES * chunk
                self._store(at, lanes[each], _FLOAT, "NORM", mask, (each, "rows"))

    def _row_address(self, value: PassValue, row: int) -> int:
        return self.layout.row_at(value) + 4 * row

    # --- results

    def _results_of(self, now: RegisterPass) -> tuple[PassValue, ...]:
        """Return the results that are complete in a pass."""
        gives = self.layout.problem.function.gives
        if gives == "rows":
            return ()
        turn = self.passes.passes.index(now)
        results = (self.passes.tile, self.passes.last) if gives == "both" else (self.passes.tile,)
        return tuple(each for each in results if each.turn == turn)

    def _give(self, value: PassValue, lane: int, row: int, column: int, mask: int) -> None:
        layout = self.layout
        dtype = layout.problem.dtype
        if layout.problem.function.gives == "quantised":
            dtype = element_type("int8")
        begin = layout.result if value is self.passes.tile else layout.last
        at = begin + dtype.size_bytes * (row * layout.pitch + column)
        self._narrowed(at, lane, dtype, mask, value)

    def _narrowed(self, at: int, lane: int, dtype: ElementType, mask: int, of: object) -> None:
        """Convert lanes of float32 and store them."""
        # Narrow lanes stand in the low bytes of lanes of 32 bits, and the store packs them. float32
        # becomes int8 by way of int16, which rounds, and of half.
        mode = "NORM"
        if dtype.name == "int8":
            for source, target, saturation in _TO_BYTES:
                on = self._all if source == "float32" else self._halves
                lane = self._cast(lane, source, target, saturation, on)
            mode = "PACK4_B32"
        elif dtype != _FLOAT:
            lane = self._cast(lane, "float32", dtype.name, "NO_SAT", mask)
            mode = "PACK_B32"
        self._store(at, lane, dtype, mode, mask, (of, "result"))

    def _row_results(self) -> None:
        """Bring results of one number a row to where MTE3 takes them."""
        # Behind a barrier, as the numbers were stored row by row; 64 of them are a register here.
        row, gives = self.passes.row, self.layout.problem.function.gives
        if row is None or gives not in {"rows", "quantised"}:
            return
        dtype = _FLOAT if gives == "quantised" else self.layout.problem.dtype
        begin = self.layout.scales if gives == "quantised" else self.layout.result
        self._barrier()
        for first in range(0, self.rows, LANES):
            count = min(LANES, self.rows - first)
            mask = self._all if count == LANES else self._count(count)
            at = self.layout.row_at(row) + 4 * first
            lane = self._load(at, _FLOAT, "NORM", (row, "results"))
            self._narrowed(begin + dtype.size_bytes * first, lane, dtype, mask, row)


def _row_sources(now: RegisterPass) -> tuple[PassValue, ...]:
    """Return the numbers of rows that lanes of a pass take."""
    found = [source for each in now.lanes for source in each.sources if source.of_rows]
    return tuple(dict.fromkeys(found))
