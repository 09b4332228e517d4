"""Marks of the bytes of a vector function's results that hang on bytes nobody has written.

The program runs on marks in place of values: a byte is 1 where it is undefined. Lanes that a mask
of a pattern or a count keeps out are 0, as their values are. A mask that values decide may let any
lane through, so that the marks are the same on all cores.
"""

from collections.abc import Sequence

import numpy as np

from cubecore.arrays import Array
from cubecore.isa.vector.registers.execution import Execution
from cubecore.isa.vector.registers.moves import STORES
from cubecore.isa.vector.registers.operation import (
    MAKES_MASK,
    MERGING,
    REGISTER_BYTES,
    Bits,
    Call,
    Form,
    governed,
)
from cubecore.isa.vector.registers.program import RegisterProgram

_MOVED = frozenset(
    {
        *(Form.LOAD, Form.LOAD_PAIR, Form.STORE, Form.STORE_PAIR, Form.BARRIER),
        *(Form.PATTERN, Form.COUNT),
    }
)
"""Forms whose meaning moves bytes, or looks at none."""
_MASKS = MAKES_MASK - _MOVED
_BLENDED = frozenset({Form.SELECT, Form.MOVE, Form.HISTOGRAM})
"""Forms whose mask lets lanes of dst stay, or chooses between two registers."""


def mark_undefined(program: RegisterProgram, image: Array) -> None:
    """Run a program on marks of UB's bytes, in place."""
    _Marks(program, image).run(program.nodes)


class _Marks(Execution):
    """A run on marks."""

    unwritten = 1

    def results(
        self, call: Call, inputs: Sequence[Array], mask: Bits | None, scalars: Array
    ) -> Sequence[Array]:
        """Mark each lane of a result some of whose inputs are marked."""
        if call.operation.form in _MOVED:
            return call.operation.compute(call, inputs, mask, scalars)
        form = call.operation.form
        if form in _MASKS:
            everywhere = np.ones((1, REGISTER_BYTES), bool)
            return (everywhere,) * 2
        if form is Form.STORE_MASK:
            return (np.zeros((1, STORES[call.mode].span), np.uint8),)
        if form in {Form.CARRY, Form.CARRIED}:
            return np.ones((1, REGISTER_BYTES), bool), self._lanes(call, inputs, mask)
        return (self._lanes(call, inputs, mask),) * 2

    @staticmethod
    def _lanes(call: Call, inputs: Sequence[Array], mask: Bits | None) -> Array:
        marked = np.zeros((1, REGISTER_BYTES // call.width), np.uint8)
        alike = call.source.size_bytes == call.dtype.size_bytes
        for each in inputs:
            if each.dtype == bool:
                continue
            lanes = each.reshape(*each.shape[:-1], -1, call.width).max(axis=-1)
            by_lane = call.operation.by_lane and alike
            marked = marked | (lanes if by_lane else lanes.max(axis=-1, keepdims=True))
        kept = call.mode == MERGING or call.operation.form in _BLENDED
        if mask is not None and not kept:
            marked = np.where(governed(mask, call.width), marked, 0).astype(np.uint8)
        return np.repeat(marked, call.width, axis=-1)
