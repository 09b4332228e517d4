"""Which bytes of a vector function's results hang on bytes that nobody has written.

The program runs on marks in place of values: a byte is 1 where it is undefined. Lanes that a mask
of a pattern or a count keeps out are 0, as their values are. A mask that values decide may let any
lane through, so that the marks are the same on all cores.
"""

from collections.abc import Sequence

import numpy as np

from cubecore.arrays import Array
from cubecore.isa.vector.registers.execution import Execution
from cubecore.isa.vector.registers.operation import REGISTER_BYTES, Bits, Call, Form, governed
from cubecore.isa.vector.registers.program import RegisterProgram

_MOVED = frozenset({Form.LOAD, Form.STORE, Form.PATTERN, Form.COUNT})
"""Forms whose meaning moves bytes, or looks at none."""
_MASKS = frozenset({Form.COMPARE, Form.COMPARE_SCALAR, Form.MASKS, Form.LOAD_MASK})


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
        if call.operation.form in _MASKS:
            return (np.ones((1, REGISTER_BYTES), bool),)
        lanes = [each.reshape(*each.shape[:-1], -1, call.width).max(axis=-1) for each in inputs]
        marked = np.zeros((), np.uint8)
        for each in lanes:
            marked = marked | each
        if not call.operation.by_lane:
            marked = np.broadcast_to(marked.max(axis=-1, keepdims=True), marked.shape)
        if mask is not None:
            marked = np.where(governed(mask, call.width), marked, 0).astype(np.uint8)
        return (np.repeat(marked, call.width, axis=-1),)
