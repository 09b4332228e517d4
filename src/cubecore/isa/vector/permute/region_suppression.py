"""Areas and overlaps of region proposals, and the greedy suppression that they serve.

A suppression matrix has a row of 16 bits for each proposal: bit b says that it suppresses proposal
b of the group that is being judged. A vector holds 0 for a proposal that is kept, else 1.
"""

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from cubecore.arrays import Array
from cubecore.chips.model import JOINED_ARCHS
from cubecore.dtypes import FLOAT32, ElementType, element_type
from cubecore.isa.declare.family import HALF_AND_FLOAT
from cubecore.isa.declare.instruction import (
    Instruction,
    Mem,
    Pipe,
    instruction,
    param,
    read,
    types,
    write,
)
from cubecore.isa.declare.registers import Registers
from cubecore.isa.declare.template import parameters
from cubecore.layouts import Offsets
from cubecore.numerics import round_float
from cubecore.numerics.conversion import value_of

_ELEMENTS, _CORNERS, _GROUP = 8, 4, 16
_SOURCE = "inferred from how public TIK programs use the call"
_WORD = element_type("uint16")
_ROUNDED = "computed in float32 and rounded once"
_OFFSET = "the offset that is added to both edges is 1 until set_rpn_offset: inferred"


def _corners(groups: int) -> Offsets:
    """Return offsets of shape [16 * groups, 4]: the corners of proposals."""
    proposals = np.arange(groups * _GROUP, dtype=np.intp)[:, None] * _ELEMENTS
    return proposals + np.arange(_CORNERS, dtype=np.intp)


def _area(low: Array, high: Array, offset: Array) -> Array:
    """Return width times height of boxes [..., 2], none where an edge is negative."""
    edges: Array = np.maximum(high - low + offset, np.float32(0))
    area: Array = edges[..., 0] * edges[..., 1]
    return area


@parameters
class _Areas(Instruction):
    overlap = "none"
    dtype: ElementType = types("element type", *HALF_AND_FLOAT)
    repeat: int = param(0, 255, "groups of 16 proposals", default=1)

    def _offset(self, registers: Registers) -> Array:
        return np.asarray(value_of(registers.rpn_offset, FLOAT32), np.float32)

    def _stored(self, values: Array, registers: Registers) -> Mapping[str, Array]:
        return {"dst": round_float(values, self.dtype, finite=not registers.float_ieee)}


@instruction(
    "vrpac",
    Pipe.V,
    names={"tik": "vrpac"},
    source=_SOURCE,
    archs=JOINED_ARCHS,
    uncertain=(_ROUNDED, _OFFSET),
)
class Vrpac(_Areas):
    """dst = the area of each proposal, 0 where an edge is negative. repeat 0: nothing happens."""

    dst = write(Mem.UB, "proposal")
    src = read(Mem.UB, "proposal corner")

    def offsets_dst(self) -> Offsets:
        """Shape [16 * repeat]."""
        return np.arange(self.repeat * _GROUP, dtype=np.intp)

    def offsets_src(self) -> Offsets:
        """Shape [16 * repeat, 4]."""
        return _corners(self.repeat)

    def compute(self, inputs: Mapping[str, Array], registers: Registers) -> Mapping[str, Array]:
        """Width times height."""
        boxes = inputs["src"].astype(np.float32)
        areas = _area(boxes[:, :2], boxes[:, 2:], self._offset(registers))
        return self._stored(areas, registers)


@parameters
class _Pairs(_Areas):
    dst = write(Mem.UB, "proposal other")

    def offsets_dst(self) -> Offsets:
        """Shape [16 * repeat, 16]: a row for each proposal of src0."""
        return np.arange(self.repeat * _GROUP * _GROUP, dtype=np.intp).reshape(-1, _GROUP)


@instruction(
    "viou",
    Pipe.V,
    names={"tik": "viou"},
    source=_SOURCE,
    archs=JOINED_ARCHS,
    uncertain=(_ROUNDED, _OFFSET),
)
class Viou(_Pairs):
    """dst[i, j] = the area that proposal i of src0 and j of src1's 16 have in common.

    repeat counts groups of src0; with 0 nothing happens.
    """

    src0 = read(Mem.UB, "proposal corner")
    src1 = read(Mem.UB, "other corner")

    def offsets_src0(self) -> Offsets:
        """Shape [16 * repeat, 4]."""
        return _corners(self.repeat)

    def offsets_src1(self) -> Offsets:
        """Shape [16, 4]."""
        return _corners(min(self.repeat, 1))

    def compute(self, inputs: Mapping[str, Array], registers: Registers) -> Mapping[str, Array]:
        """The area of the common box."""
        one = inputs["src0"].astype(np.float32)[:, None]
        other = inputs["src1"].astype(np.float32)
        low = np.maximum(one[..., :2], other[..., :2])
        high = np.minimum(one[..., 2:], other[..., 2:])
        areas = _area(low, high, self._offset(registers)).reshape(-1, _GROUP)
        return self._stored(areas, registers)


@instruction(
    "vaadd",
    Pipe.V,
    names={"tik": "vaadd"},
    source=_SOURCE,
    archs=JOINED_ARCHS,
)
class Vaadd(_Pairs):
    """dst[i, j] = src0[i] + src1[j], of areas; j counts src1's 16. repeat 0: nothing happens."""

    src0 = read(Mem.UB, "proposal")
    src1 = read(Mem.UB, "other")

    def offsets_src0(self) -> Offsets:
        """Shape [16 * repeat]."""
        return np.arange(self.repeat * _GROUP, dtype=np.intp)

    def offsets_src1(self) -> Offsets:
        """Shape [16]."""
        return np.arange(_GROUP if self.repeat else 0, dtype=np.intp)

    def compute(self, inputs: Mapping[str, Array], registers: Registers) -> Mapping[str, Array]:
        """The sums."""
        one, other = (inputs[name].astype(np.float32) for name in ("src0", "src1"))
        return self._stored((one[:, None] + other).reshape(-1, _GROUP), registers)


# --- suppression


@parameters
class _Judging(Instruction):
    reads_left = True
    register = "suppressed"
    matrix = read(Mem.UB, "repeat row", "word")
    word: ElementType = types("type of rows and marks", "uint16", default=_WORD)


@instruction(
    "rpn_cor",
    Pipe.V,
    names={"tik": "rpn_cor"},
    source=_SOURCE,
    archs=JOINED_ARCHS,
    uncertain=("strides count blocks of 32 B: every known program has 1",),
)
class RpnCor(_Judging):
    """Add what kept proposals suppress to the suppression register: the OR of their rows.

    16 rows and 16 marks of the vector in a repeat. repeat 0: nothing happens.
    """

    vector = read(Mem.UB, "repeat mark", "word")
    repeat: int = param(0, 255, "groups of 16 proposals", default=1)
    matrix_stride: int = param(0, 255, "blocks between the rows of two repeats", default=1)
    vector_stride: int = param(0, 255, "blocks between the marks of two repeats", default=1)

    def offsets_matrix(self) -> Offsets:
        """Shape [repeat, 16]."""
        return self._groups(self.matrix_stride)

    def offsets_vector(self) -> Offsets:
        """Shape [repeat, 16]."""
        return self._groups(self.vector_stride)

    def _groups(self, stride: int) -> Offsets:
        lanes = np.arange(_GROUP, dtype=np.intp)
        return np.arange(self.repeat, dtype=np.intp)[:, None] * (stride * _GROUP) + lanes

    def compute(self, inputs: Mapping[str, Array], registers: Registers) -> Mapping[str, Array]:
        """Write no memory."""
        return {}

    def leaves(self, inputs: Mapping[str, Array], registers: Registers) -> Registers:
        """Or the rows of those that are kept."""
        rows = inputs["matrix"][inputs["vector"] == 0]
        suppressed = int(np.bitwise_or.reduce(rows.astype(np.uint16), axis=None, initial=0))
        return replace(registers, suppressed=registers.suppressed | suppressed)


@instruction(
    "rpn_cor_diag",
    Pipe.V,
    names={"tik": "rpn_cor_diag"},
    source=_SOURCE,
    archs=JOINED_ARCHS,
    uncertain=("within the group the first proposal is judged first",),
)
class RpnCorDiag(_Judging):
    """Judge a group of 16: dst = 1 where the register or a kept one before suppresses, else 0."""

    dst = write(Mem.UB, "mark", "word")

    def offsets_matrix(self) -> Offsets:
        """Shape [16]."""
        return np.arange(_GROUP, dtype=np.intp)

    def offsets_dst(self) -> Offsets:
        """Shape [16]."""
        return np.arange(_GROUP, dtype=np.intp)

    def compute(self, inputs: Mapping[str, Array], registers: Registers) -> Mapping[str, Array]:
        """One after another."""
        # Greedy non-maximum suppression: proposals come by falling score. Each that is not
        # suppressed by a better one is kept, and suppresses by its own row from then on.
        marks, suppressed = np.zeros(_GROUP, np.uint16), registers.suppressed
        for index, row in enumerate(inputs["matrix"]):
            marks[index] = suppressed >> index & 1
            if not marks[index]:
                suppressed |= int(row)
        return {"dst": marks}


@instruction(
    "set_rpn_cor_ir",
    Pipe.V,
    names={"tik": "set_rpn_cor_ir"},
    source=_SOURCE,
    archs=JOINED_ARCHS,
)
class SetRpnCorIr(Instruction):
    """Set the suppression register, a bit for each proposal of the group to be judged."""

    register = "suppressed"
    value: int = param(0, 2**16 - 1, "the bits", default=0)

    def apply(self, registers: Registers) -> Registers:
        """Keep them."""
        return replace(registers, suppressed=self.value)


@instruction(
    "set_rpn_offset",
    Pipe.S,
    names={"tik": "set_rpn_offset"},
    source=_SOURCE,
    archs=JOINED_ARCHS,
)
class SetRpnOffset(Instruction):
    """Set what vrpac and viou add to both edges of a box: a float32's bits."""

    value: int = param(0, 2**32 - 1, "the offset's bits", bits_of="float32")

    def apply(self, registers: Registers) -> Registers:
        """Keep it."""
        return replace(registers, rpn_offset=self.value)
