"""Marks of the bytes of a vector function's results that hang on bytes nobody has written.

The program runs on marks in place of values: a byte is 1 where it is undefined. Lanes that a mask
of a pattern or a count keeps out are 0, as their values are. A mask that values decide may let any
lane through that its own mask does, so that the marks are the same on all cores. A comparison and
a reduction need the lanes that they look at: what they make is defined, and they are named.
"""

from collections.abc import Sequence

import numpy as np

from cubecore.arrays import Array
from cubecore.isa.vector.registers.execution import Execution
from cubecore.isa.vector.registers.operation import (
    BY_VALUES,
    KNOWN_MASKS,
    MAKES_MASK,
    MERGING,
    REGISTER_BYTES,
    Bits,
    Call,
    Form,
    governed,
)
from cubecore.isa.vector.registers.operations.moves import STORES
from cubecore.isa.vector.registers.program import RegisterProgram
from cubecore.isa.vector.registers.steps import RegisterStep

_MOVED = frozenset(
    {
        *(Form.LOAD, Form.LOAD_PAIR, Form.STORE, Form.STORE_PAIR, Form.BARRIER, Form.STREAM),
        *(Form.PATTERN, Form.COUNT),
    }
)
"""Forms whose meaning moves bytes, or looks at none."""
_MASKS = MAKES_MASK - _MOVED
_COMPARED = frozenset({Form.COMPARE, Form.COMPARE_SCALAR})
_CARRIES = frozenset({Form.CARRY, Form.CARRIED})
_BYTE_BITS = 8


class UndefinedLanes(Execution):
    """A run on marks of UB's bytes, in place; then the calls that undefined lanes reach.

    `needing` are comparisons and reductions of some, with how many bytes of a register those are;
    `stored` are stores of some, of those whose mask is known.
    """

    unwritten = 1

    def __init__(self, program: RegisterProgram, image: Array) -> None:
        super().__init__(program, image)
        self.needing: dict[int, int] = {}
        self.stored: dict[int, int] = {}
        self._current: RegisterStep | None = None
        self.run(program.nodes)

    def _step(self, step: RegisterStep) -> None:
        self._current = step
        super()._step(step)

    def results(
        self, call: Call, inputs: Sequence[Array], mask: Bits | None, scalars: Array
    ) -> Sequence[Array]:
        """Mark each lane of a result some of whose inputs are marked."""
        form = call.operation.form
        if form in BY_VALUES or form is Form.COUNTED or form is Form.AR:
            return self._by_values(call, inputs, mask)
        if form in _MOVED:
            results = call.operation.compute(call, inputs, mask, scalars)
            if form in {Form.STORE, Form.STORE_PAIR}:
                self._note_stored(call, results[0], mask)
            return results
        if form in _COMPARED:
            return (self._compared(call, inputs, mask),)
        if form in _MASKS:
            everywhere = np.ones((1, REGISTER_BYTES), bool)
            within = everywhere if mask is None else everywhere & mask
            # `within` is the most that a mask can let through: its own mask's lanes, whatever
            # values say.
            if call.operation.name == "MaskAnd":
                within = within & inputs[0].astype(bool) & inputs[1].astype(bool)
            return (within,) * 2
        if form is Form.STORE_MASK:
            return (np.zeros((1, STORES[call.mode].span), np.uint8),)
        if form in _CARRIES:
            return np.ones((1, REGISTER_BYTES), bool), self._lanes(call, inputs, mask)
        if form is Form.HISTOGRAM:
            counted = self._active(1, inputs[0], mask).max(axis=-1, keepdims=True)
            return (np.maximum(inputs[1], counted),)
        if form is Form.CAST:
            return (self._converted(call, inputs, mask),)
        if form is Form.REDUCE:
            self._need(self._active(call.source.size_bytes, inputs[0], mask))
            return (np.zeros((1, REGISTER_BYTES), np.uint8),)
        return (self._lanes(call, inputs, mask),) * 2

    def _by_values(self, call: Call, inputs: Sequence[Array], mask: Bits | None) -> Sequence[Array]:
        """Mark what undefined elements of UB or of a register reach; indices must be defined."""
        form = call.operation.form
        none = np.zeros((1, REGISTER_BYTES), np.uint8)
        if form is Form.AR:
            return (none,)
        if form is Form.COUNTED:
            return self._lanes(call, inputs, mask), none
        if form is Form.STORE_COUNTED:
            return (inputs[0],)
        indices = inputs[0] if form is Form.GATHER else inputs[1]
        self._need(self._active(call.width, indices, mask))
        if form is Form.SCATTER:
            return call.operation.compute(call, inputs, mask, none)
        picked = call.operation.compute(call, [none, inputs[1]], mask, none)[0]
        lanes = picked.reshape(*picked.shape[:-1], -1, max(call.width, 1)).max(axis=-1)
        return (np.repeat(lanes, max(call.width, 1), axis=-1),)

    def _note_stored(self, call: Call, marks: Array, mask: Bits | None) -> None:
        masked = STORES[call.mode].masked
        if mask is not None and masked is not None:
            marks = np.where(masked(mask, call.width), marks, 0)
        if marks.any() and (mask is None or self._mask_is_known()):
            assert self._current is not None
            self.stored.setdefault(self._current.number, int(np.count_nonzero(marks)))

    def _need(self, marks: Array) -> None:
        if marks.any():
            assert self._current is not None
            self.needing.setdefault(self._current.number, int(np.count_nonzero(marks)))

    def _mask_is_known(self) -> bool:
        """Return whether the mask of the call is what it is whatever the values are."""
        assert self._current is not None
        source = self._current.mask
        if source is None or source.leaf < 0:
            return True
        steps = self._program.steps
        return steps[source.leaf].call.operation.form in KNOWN_MASKS

    def _compared(self, call: Call, inputs: Sequence[Array], mask: Bits | None) -> Array:
        for each in inputs:
            self._need(self._active(call.width, each, mask))
        return np.ones((1, REGISTER_BYTES), bool) if mask is None else mask

    @staticmethod
    def _active(width: int, marks: Array, mask: Bits | None) -> Array:
        """Return the marks of the lanes that a mask lets through."""
        if mask is None:
            return marks
        active: Array = np.where(np.repeat(governed(mask, width), width, axis=-1), marks, 0)
        return active

    @staticmethod
    def _converted(call: Call, inputs: Sequence[Array], mask: Bits | None) -> Array:
        """Return the marks of a conversion: in the bytes of the wider type's lane.

        Two lanes of 4 bits share a byte, and the place of four that the byte has.
        """
        bits = (call.source.bits, call.dtype.bits)
        group = (2 if min(bits) < _BYTE_BITS else 1) * max(bits) // _BYTE_BITS
        grouped = [each.reshape(*each.shape[:-1], -1, group).max(axis=-1) for each in inputs]
        marks: Array = np.maximum.reduce(np.broadcast_arrays(*grouped))
        if mask is not None:
            marks = np.where(mask.reshape(*mask.shape[:-1], -1, group).any(axis=-1), marks, 0)
        return np.repeat(marks, group, axis=-1)

    def _lanes(self, call: Call, inputs: Sequence[Array], mask: Bits | None) -> Array:
        # A lane of `width` bytes is marked where one of its bytes is. Where the operation moves
        # values between lanes, or a result's lanes are wider than a source's, any marked lane marks
        # all of them, as nothing says which one goes where.
        alike = call.source.size_bytes == call.dtype.size_bytes
        by_lane = call.operation.by_lane and alike
        marked = [
            lanes if by_lane else lanes.max(axis=-1, keepdims=True)
            for lanes in (
                each.reshape(*each.shape[:-1], -1, call.width).max(axis=-1)
                for each in inputs
                if each.dtype != bool
            )
        ]
        none = np.zeros((1, REGISTER_BYTES // call.width), np.uint8)
        result = self._blended(call, marked, none, mask)
        return np.repeat(result.astype(np.uint8), call.width, axis=-1)

    def _blended(
        self, call: Call, marked: Sequence[Array], none: Array, mask: Bits | None
    ) -> Array:
        """Return the marks of the lanes that a call makes, and of those that it keeps."""
        form = call.operation.form
        # The last source of such a call is what the lanes keep that the mask leaves out; of other
        # calls these lanes are zero, which is defined.
        kept = form in {Form.SELECT, Form.MOVE} or call.mode == MERGING
        new, old = (marked[:-1], marked[-1]) if kept and marked else (marked, none)
        # Marks of values that are equal in all trips of a loop have one row, others one a trip.
        undefined: Array = np.maximum.reduce(np.broadcast_arrays(none, *new)[1:] or [none])
        if mask is None:
            return undefined
        on = governed(mask, call.width)
        # The values decide between old and new, and may do so differently on each core.
        if kept and not self._mask_is_known():
            undefined = np.maximum(undefined, old)
        blended: Array = np.where(on, undefined, old)
        return blended
