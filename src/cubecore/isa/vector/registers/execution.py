"""Execution of a vector function: its loops over arrays, on all cores of a group at once.

UB is an image of bytes, shaped [cores, bytes], from the program's base on. Loops whose trips are
independent run at once: each adds an axis to the values that are made in them. The trips of others
follow each other, with the axes of the loops around them kept. A value is [cores, trips ..., 256].
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from cubecore.arrays import Array
from cubecore.isa.vector.registers.folding import FoldedCall, Node
from cubecore.isa.vector.registers.operation import (
    BY_VALUES,
    KNOWN_MASKS,
    REGISTER_BYTES,
    STORES_MEMORY,
    Bits,
    Call,
    Form,
)
from cubecore.isa.vector.registers.operations.indexed import count_in
from cubecore.isa.vector.registers.operations.moves import LOADS, STORES
from cubecore.isa.vector.registers.program import RegisterProgram
from cubecore.isa.vector.registers.steps import (
    NONE,
    Landed,
    PlannedStep,
    RegisterStep,
    ValueSource,
    strides_of,
)

_MASK_BYTES = 16
"""Bytes of MASK1 and MASK0, from the lowest bit on."""
ALL_BITS = 2 ** (8 * _MASK_BYTES) - 1


@dataclass(frozen=True, eq=False, slots=True)
class UbPart:
    """The bytes of UB from a place on, counted from the program's base, shaped [cores, bytes]."""

    low: int
    array: Array


def execute(
    program: RegisterProgram, parts: list[UbPart], ctrl: int = 0, mask: int = ALL_BITS
) -> int:
    """Run a program on parts of UB, in place, under CTRL and the mask's bits; return its AR.

    They are all of UB from the base on, or runs of bytes that each access stays in. A part that is
    stored whole may be another one afterwards.
    """
    key = tuple((part.low, part.array.shape[1]) for part in parts)
    plan = program.plans.get(key)
    if plan:
        _follow(plan, parts, ctrl)
        return 0
    run = Execution(program, parts[0].array, ctrl, mask, parts)
    run.run(program.nodes)
    if key not in program.plans:  # the masks are known now
        program.plans[key] = _plan(program, run)
    return run.ar


def _plan(program: RegisterProgram, run: "Execution") -> tuple[PlannedStep, ...]:
    """Return the steps of a program in their order; none where one of them is not plain."""
    loops = {level for step in program.steps.values() for level in step.levels}
    plain = not program.rewrites and loops <= program.together
    found = list[PlannedStep]()
    for step in _steps_of(program.nodes, program) if plain else ():
        if step.call.operation.form in KNOWN_MASKS:
            continue
        planned = _planned(step, program, run)
        if planned is None:
            return ()
        found.append(planned)
    return tuple(found)


def _steps_of(nodes: Sequence[Node], program: RegisterProgram) -> Iterator[RegisterStep]:
    for node in nodes:
        if isinstance(node, FoldedCall):
            yield program.steps[node.number]
        else:
            yield from _steps_of(node.body, program)


def _planned(step: RegisterStep, program: RegisterProgram, run: "Execution") -> PlannedStep | None:
    """Return a plain step: its masks let all lanes through, its accesses follow each other."""
    if step.call.operation.form in BY_VALUES | {Form.AR, Form.MASK_BITS}:
        return None
    if step.mask is not None:
        known = program.known_masks.get(step.mask.leaf)
        if step.mask.initial is not None or known is None or not known[1]:
            return None
    inputs = list[tuple[int, int, int]]()
    for source in step.sources:
        leaf = program.steps.get(source.leaf)
        if leaf is None or source.initial is not None or leaf.number in program.known_masks:
            return None
        if leaf.levels != step.levels[: len(leaf.levels)]:
            return None
        inputs.append((source.leaf, source.result, len(step.levels) - len(leaf.levels)))
    planned = PlannedStep(step, tuple(inputs), step.scalars[None], stores=step.stores)
    if not step.loads and not step.stores:
        return planned
    span = (LOADS if step.loads else STORES)[step.call.mode].span
    place = run.dense_place(step, span)
    if place is None:
        return None
    part, low, high = place
    return replace(
        planned,
        shape=(*step.addresses.shape, span),
        part=part,
        low=low,
        high=high,
        as_is=step.call.operation.form in {Form.LOAD, Form.STORE} and step.call.mode in _AS_IS,
        replaces=step.stores and run.is_stored_whole(part, low, high),
    )


_AS_IS = frozenset({"NORM", "NORM_B8", "NORM_B16", "NORM_B32"})
"""Distributions that leave a register's bytes in their order."""


def _follow(plan: Sequence[PlannedStep], parts: list[UbPart], ctrl: int) -> None:
    """Run planned steps in their order."""
    values: dict[tuple[int, int], Array] = {}
    for each in plan:
        step, window = each.step, None
        if each.part != NONE:
            run = parts[each.part].array[:, each.low : each.high]
            window = run.reshape(run.shape[0], *each.shape)
            if each.as_is and not each.stores:
                values[step.number, 0] = window
                continue
        inputs = [
            _widened(values[leaf, result], axes) if axes else values[leaf, result]
            for leaf, result, axes in each.inputs
        ]
        if window is not None and not each.stores:
            inputs.append(window)
        call = replace(step.call, ctrl=ctrl) if ctrl else step.call
        results = inputs if each.as_is else call.operation.compute(call, inputs, None, each.scalars)
        if window is None or not each.stores:
            for number, array in enumerate(results):
                values[step.number, number] = array
        elif not (each.replaces and _replaces(parts, each.part, window, results[0])):
            window[...] = results[0]


def _replaces(parts: list[UbPart], number: int, window: Array, values: Array) -> bool:
    """Put values in the place of a part that is stored whole, and return whether it was done.

    It saves a copy of what most functions store. The values must be nobody else's bytes.
    """
    if window.shape != values.shape:
        return False
    low, array = parts[number].low, parts[number].array
    # Both lie as the part does: cores, then trips, then bytes. A later store to the part would
    # change a register's value, which other calls may read, and a load's result is UB itself.
    if not (window.flags.c_contiguous and values.flags.c_contiguous):
        return False
    if any(np.may_share_memory(values, each.array) for each in parts):
        return False
    parts[number] = UbPart(low, values.reshape(array.shape))
    return True


def value_after(
    program: RegisterProgram, image: Array, entry: int, result: int, mask: int
) -> Array:
    """Return a result of a program's last entry, after a run on an image of UB of one core.

    `mask` has the bits of MASK1 and MASK0.
    """
    run = Execution(program, image, mask=mask)
    run.run(program.nodes)
    (step,) = (step for step in program.steps.values() if entry in step.entries.reshape(-1))
    return run.latest(step.number, result)


@dataclass(frozen=True, eq=False, slots=True)
class _Value:
    """A register or a mask, and the loops that its axes between cores and bytes are of."""

    array: Array
    axes: tuple[int, ...]


@lru_cache(maxsize=256)
def _dense(shape: tuple[int, ...], span: int) -> tuple[int, ...]:
    """Return the strides of accesses that follow each other."""
    strides = [span]
    for count in reversed(shape[1:]):
        strides.append(strides[-1] * count)
    return tuple(reversed(strides)) if shape else ()


def _widened(array: Array, axes: int) -> Array:
    """Return a value with axes of length 1 for the loops that it is not made in."""
    return array.reshape(*array.shape[:-1], *(1,) * axes, array.shape[-1])


class Execution:
    """One run: the latest values of each leaf, and where the loops are."""

    unwritten = 0
    """The bytes of a register that was never written."""

    def __init__(
        self,
        program: RegisterProgram,
        image: Array,
        ctrl: int = 0,
        mask: int = ALL_BITS,
        parts: list[UbPart] | None = None,
    ) -> None:
        self._program, self._image, self._ctrl = program, image, ctrl
        self._parts = parts or [UbPart(0, image)]
        self._mask_bits = np.frombuffer(mask.to_bytes(_MASK_BYTES, "little"), "<u8")
        self._values: dict[tuple[int, int], _Value] = {}
        self._trips: dict[int, int | slice] = {}
        self._ar: Array | None = None

    def run(self, nodes: Sequence[Node]) -> None:
        """Run nodes in their order."""
        for node in nodes:
            if isinstance(node, FoldedCall):
                self._step(self._program.steps[node.number])
            elif self.runs_together(node.number):
                self._trips[node.number] = slice(None)
                self.run(node.body)
                del self._trips[node.number]
            else:
                for trip in range(node.trips):
                    self._trips[node.number] = trip
                    self.run(node.body)
                del self._trips[node.number]

    def dense_place(self, step: RegisterStep, span: int) -> tuple[int, int, int] | None:
        """Return the part and the bytes of it that accesses which follow each other are."""
        strides = strides_of(step.addresses) if step.strides is None else step.strides
        if strides is None or strides != _dense(step.addresses.shape, span):
            return None
        start = int(step.addresses.flat[0])
        number = self._part_at(start)
        low = start - self._parts[number].low
        high = low + step.addresses.size * span
        return (number, low, high) if high <= self._parts[number].array.shape[1] else None

    def runs_together(self, loop: int) -> bool:
        """Return whether a loop's trips run at once."""
        return loop in self._program.together

    def _axes(self, step: RegisterStep) -> tuple[tuple[int, ...], tuple[int | slice, ...]]:
        """Return the loops around a step whose trips run at once, and where all of them are."""
        axes = tuple(n for n in step.levels if isinstance(self._trips[n], slice))
        return axes, tuple(self._trips[n] for n in step.levels)

    def _mask(self, step: RegisterStep, axes: tuple[int, ...]) -> Bits | None:
        """Return a step's mask; None if it lets all lanes through."""
        if step.mask is None:
            return None
        known = None
        if step.mask.initial is None:
            known = self._program.known_masks.get(step.mask.leaf)
        if known is not None and known[1]:
            return None
        mask = self._value(step.mask, axes).astype(bool, copy=False)
        return None if known is None and mask.all() else mask

    def _step(self, step: RegisterStep) -> None:
        """Run a call, for all trips of the loops that run at once."""
        axes, at = self._axes(step)
        if step.call.operation.form in KNOWN_MASKS and len(axes) == len(at):
            self._values[step.number, 0] = _Value(self._known_mask(step), axes)
            return
        # Loops that run at once are axes of all arrays here; of those that go trip by trip `at` has
        # the trip's number, which drops their axis.
        addresses, scalars = step.addresses[at], step.scalars[at]
        mask = self._mask(step, axes)
        call, form = step.call, step.call.operation.form
        inputs = [self._value(source, axes) for source in step.sources]
        pieces = self._land(step, at, inputs, mask) if form in BY_VALUES else None
        if pieces is not None and step.loads:
            inputs.append(self._picked(pieces))
        elif step.loads:
            window = self._window(step, addresses, LOADS[call.mode].span)
            inputs.append(window.copy() if self._program.rewrites else window)
        scalar = self._mask_bits[None] if form is Form.MASK_BITS else scalars[None]
        results = self.results(call, inputs, mask, scalar)
        if pieces is not None and step.stores:
            self._put_pieces(pieces, results[0])
            return
        if form in STORES_MEMORY:
            self._store(step, addresses, results[0], mask)
            return
        for number, array in enumerate(results):
            self._values[step.number, number] = _Value(array, axes)
        if form is Form.AR:
            self._ar = results[0]

    def _known_mask(self, step: RegisterStep) -> Bits:
        """Return a mask of a pattern or a count, on all trips."""
        known = self._program.known_masks.get(step.number)
        if known is None:
            call = step.call
            (mask,) = call.operation.compute(call, (), None, step.scalars[None])
            # A pattern is one mask for all trips.
            axes = (1, *(1 for _ in step.levels))
            mask = mask.astype(bool, copy=False).reshape(*axes[mask.ndim - 1 :], *mask.shape)
            known = self._program.known_masks[step.number] = mask, bool(mask.all())
        return known[0]

    def latest(self, step: int, result: int) -> Array:
        """Return the bytes of a step's result on the last trip, on the first core."""
        array = self._values[step, result].array
        last: Array = array.reshape(array.shape[0], -1, array.shape[-1])[0, -1]
        return last

    @property
    def ar(self) -> int:
        """The bytes that AR has at the end, 0 if the program leaves it alone."""
        return 0 if self._ar is None else count_in(self._ar)

    def _land(
        self, step: RegisterStep, at: tuple[int | slice, ...], _i: Sequence[Array], _m: Bits | None
    ) -> Landed:
        """Return where a step accesses UB on some trips, as values of registers say."""
        landed = step.landed
        assert landed is not None
        return Landed(landed.low[at], landed.sizes[at], landed.unit)

    def _positions(self, pieces: Landed) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
        """Return the positions of the pieces' bytes, and which of them are touched, in UB."""
        byte = np.arange(pieces.unit)
        positions = pieces.low[..., None] + byte
        touched = (byte < pieces.sizes[..., None]) & (positions >= 0)
        touched &= positions < self._image.shape[1]
        flat = (*pieces.low.shape[:-1], -1)
        return positions.reshape(flat), touched.reshape(flat)

    def _picked(self, pieces: Landed) -> Array:
        """Return the bytes of pieces, 0 where none are touched."""
        positions, touched = self._positions(pieces)
        taken = self._image[:, np.where(touched, positions, 0)]
        return np.where(touched, taken, np.uint8(0))

    def _put_pieces(self, pieces: Landed, values: Array) -> None:
        """Write to the bytes of pieces that are touched."""
        positions, touched = self._positions(pieces)
        shape = (self._image.shape[0], *positions.shape)
        values = np.broadcast_to(values, shape)
        self._image[:, positions[touched]] = values[:, touched]

    def results(
        self, call: Call, inputs: Sequence[Array], mask: Bits | None, scalars: Array
    ) -> Sequence[Array]:
        """Return what a call makes."""
        under = replace(call, ctrl=self._ctrl) if self._ctrl else call
        return call.operation.compute(under, inputs, mask, scalars)

    def _value(self, source: ValueSource, axes: tuple[int, ...]) -> Array:
        """Return a value with the axes of some loops, of length 1 where it has none of its own."""
        while source.initial is not None and self._trips[source.level] == 0:
            source = source.initial
        if source.leaf == NONE:
            return np.full((1, *(1 for _ in axes), REGISTER_BYTES), self.unwritten, np.uint8)
        value = self._values[source.leaf, source.result]
        array = value.array
        # A value's axes must become those asked for: a loop that it has and the reader has not is
        # over (its last trip counts); one that the reader has and it has not gets length 1 and
        # broadcasts.
        for axis in reversed(range(len(value.axes))):
            if value.axes[axis] not in axes:  # of a loop that has ended: its last trip
                array = array[(slice(None),) * (axis + 1) + (-1,)]
        kept = [axis for axis in value.axes if axis in axes]
        if len(kept) < len(axes):
            shape = iter(array.shape[1:-1])
            inner = (next(shape) if axis in kept else 1 for axis in axes)
            array = array.reshape(array.shape[0], *inner, array.shape[-1])
        return array

    def _window(self, step: RegisterStep, addresses: NDArray[np.int64], span: int) -> Array:
        """Return the bytes of UB at addresses, as a view where they lie at even distances."""
        strides = self._strides(step, addresses)
        if strides is not None:
            start = int(addresses.flat[0])
            whole = self._parts[self._part_at(start)]
            end = start - whole.low + addresses.size * span
            if strides == _dense(addresses.shape, span) and end <= whole.array.shape[1]:
                # The usual case: a slice in another shape is made sooner than strides.
                run = whole.array[:, start - whole.low : end]
                return run.reshape(run.shape[0], *addresses.shape, span)
            part = whole.array[:, start - whole.low :]
            return np.lib.stride_tricks.as_strided(
                part,
                (part.shape[0], *addresses.shape, span),
                (part.strides[0], *strides, 1),
                writeable=True,
            )
        return self._image[:, addresses[..., None] + np.arange(span)]

    def _part_at(self, start: int) -> int:
        """Return the number of the part of UB that an address lies in."""
        return next(
            number
            for number, each in enumerate(self._parts)
            if 0 <= start - each.low < each.array.shape[1]
        )

    def is_stored_whole(self, number: int, low: int, high: int) -> bool:
        """Return whether a store to bytes [low, high) of a part is of all of it, and the only one.

        An image of all of UB stays the one that was given.
        """
        if len(self._parts) == 1 or not self._program.stores_once:
            return False
        return low == 0 and high == self._parts[number].array.shape[1]

    def _strides(self, step: RegisterStep, addresses: NDArray[np.int64]) -> tuple[int, ...] | None:
        """Return how far a step's addresses are apart on the trips that run at once."""
        if step.strides is None:
            return strides_of(addresses)
        pairs = zip(step.levels, step.strides, strict=True)
        return tuple(each for level, each in pairs if isinstance(self._trips[level], slice))

    def _store(
        self, step: RegisterStep, addresses: NDArray[np.int64], values: Array, mask: Bits | None
    ) -> None:
        """Write to UB at addresses what the mask lets through."""
        distribution = STORES[step.call.mode]
        span = distribution.span
        let = None
        if mask is not None and distribution.masked is not None:
            let = distribution.masked(mask, step.call.width)
        if self._strides(step, addresses) is None:
            cores = np.arange(self._image.shape[0]).reshape(-1, *(1 for _ in addresses.shape), 1)
            places = np.broadcast_arrays(cores, addresses[None, ..., None] + np.arange(span))
            values = np.broadcast_to(values, places[0].shape)
            if let is None:
                self._image[tuple(places)] = values
            else:
                let = np.broadcast_to(let, values.shape)
                self._image[tuple(place[let] for place in places)] = values[let]
            return
        window = self._window(step, addresses, span)
        if let is None:
            start = int(addresses.flat[0])
            number = self._part_at(start)
            low = start - self._parts[number].low
            whole = self.is_stored_whole(number, low, low + addresses.size * span)
            if not (whole and _replaces(self._parts, number, window, values)):
                window[...] = values
        else:
            np.copyto(window, values, where=let)
