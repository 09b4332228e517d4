"""Batching: what one call may do for many cores, stated for every instruction here and only here.

An instruction's meaning is its own, for one core. Of several cores inputs and results have a
further axis in front, and `left` is what the template's register holds on each.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from cubecore.arrays import Array
from cubecore.isa.cube.fixpipe import Fixpipe
from cubecore.isa.cube.mad import CopyCbufToBt, Mad
from cubecore.isa.cube.mad_mx import MadMx
from cubecore.isa.declare.instruction import Instruction
from cubecore.isa.declare.registers import Registers
from cubecore.isa.mte.copies_joined_core import (
    BroadcastUbToCc,
    CopyMatrixCcToUbuf,
    CopyUbufToMatrixCc,
    StoreRegister,
)
from cubecore.isa.mte.copies_side_paths import CopyCbufToMatrixCc
from cubecore.isa.mte.fill import Fill
from cubecore.isa.scalar.store import ScalarStore
from cubecore.isa.vector.common.repeated import wide
from cubecore.isa.vector.elementwise.binary import BinaryStrides
from cubecore.isa.vector.elementwise.compare import (
    CompareToRegister,
    GetCmpmask,
    SetCmpmask,
    bytes_of_masks,
    lanes_of_masks,
    packed_bits,
)
from cubecore.isa.vector.elementwise.fill import Duplicate, Vbrcb, Vci
from cubecore.isa.vector.elementwise.select import (
    BitsInMemory,
    SelectByRegister,
    SelectByTensor,
    SelectScalar,
)
from cubecore.isa.vector.elementwise.unary import UnaryStrides
from cubecore.isa.vector.permute.gather import Gather, Vgatherb
from cubecore.isa.vector.permute.gather_mask import GatherMask
from cubecore.isa.vector.permute.reduce import Reduction, RepeatExtreme
from cubecore.isa.vector.permute.region_proposals import Component
from cubecore.isa.vector.permute.sort import Vbitsort, Vmrgsort4
from cubecore.isa.vector.permute.transpose import To5hd, Vtranspose
from cubecore.isa.vector.registers.indexed_function import CountingFunction
from cubecore.isa.vector.registers.vector_function import VectorFunction
from cubecore.layouts import Offsets
from cubecore.units import DATA_BLOCK_BYTES

Kind = type[Instruction]
ComputeLeft = Callable[
    [Any, Mapping[str, Array], Registers, Sequence[Any]],
    tuple[Mapping[str, Array], Sequence[Any]],
]
"""Computes the operands' values, and what the register holds then."""
Pick = Callable[[Any, Array], Offsets | None]
"""Gives the offsets of `PICKED` by each core's values of what steers; None where one is wrong."""

# Three ways to serve many cores by one call. STACKED: `compute` itself broadcasts over a leading
# axis of cores. LEFT: the cores' registers differ, so that a function here reads or replaces a row
# of registers. PICKS: the operands' bytes differ, as values of one operand choose elements of
# another. An instruction in none of them is computed core by core.
STACKED: tuple[Kind, ...] = (
    *(Mad, MadMx, CopyCbufToBt, Fixpipe, Fill, CopyCbufToMatrixCc, ScalarStore),
    *(CopyMatrixCcToUbuf, CopyUbufToMatrixCc, BroadcastUbToCc),
    *(UnaryStrides, BinaryStrides, Duplicate, Vci, Vbrcb, Vtranspose, To5hd),
    *(Reduction, Vbitsort, Vmrgsort4, Component, Gather, Vgatherb, GatherMask, SetCmpmask),
    VectorFunction,
)
"""Those whose `compute` takes and gives a further axis as it stands."""
REPLACING: tuple[Kind, ...] = (
    *(RepeatExtreme, Vmrgsort4, GatherMask, SetCmpmask),
    CountingFunction,
)
"""Those that leave their register whole, whatever it held: it may be worked out on request."""
REACHING: tuple[Kind, ...] = (BitsInMemory,)
"""Those that serve cores whose steering values differ: `reaching` is all that they touch."""
PICKED = "src"
"""The operand that the values pick from, of those below."""


def _compare(
    template: CompareToRegister,
    inputs: Mapping[str, Array],
    _: Registers,
    left: Sequence[int],
) -> tuple[Mapping[str, Array], Sequence[int]]:
    """Replace the bits of active lanes of each core's CMPMASK."""
    x, y = (wide(inputs[name], template.dtype) for name in ("src0", "src1"))
    # CMPMASK is an integer of 128 bits. Lanes that the mask excludes keep the bit that they had:
    # `held & ~lanes`; the others take theirs from the packed results, lane 0 in bit 0.
    results, lanes = template.results(x, y)
    return {}, [
        held & ~lanes | int.from_bytes(row.tobytes(), "little")
        for held, row in zip(left, packed_bits(results), strict=True)
    ]


def _mask(
    _: GetCmpmask, _inputs: Mapping[str, Array], _registers: Registers, left: Sequence[int]
) -> tuple[Mapping[str, Array], Sequence[int]]:
    """Give each core's bytes."""
    return {"dst": bytes_of_masks(left)}, left


def _store(
    template: StoreRegister,
    _inputs: Mapping[str, Array],
    _registers: Registers,
    left: Sequence[Any],
) -> tuple[Mapping[str, Array], Sequence[Any]]:
    """Give each core's numbers."""
    return {"dst": np.array(left, np.int64).reshape(len(left), template.count)}, left


def _select(
    template: SelectByRegister,
    inputs: Mapping[str, Array],
    _: Registers,
    left: Sequence[int],
) -> tuple[Mapping[str, Array], Sequence[int]]:
    """Choose by each core's CMPMASK."""
    # [cores, 1, lanes]: the same lanes choose in every repeat, as CMPMASK does not advance.
    bits = lanes_of_masks(left)[:, None, : template.width]
    return {"dst": np.where(bits, inputs["src0"], inputs["src1"])}, left


def _select_tensor(
    template: SelectByTensor,
    inputs: Mapping[str, Array],
    registers: Registers,
    left: Sequence[int],
) -> tuple[Mapping[str, Array], Sequence[int]]:
    """Choose by each core's bits; CMPMASK says where they lie."""
    return template.compute(inputs, registers), left


def _select_scalar(
    template: SelectScalar,
    inputs: Mapping[str, Array],
    _: Registers,
    left: Sequence[int],
) -> tuple[Mapping[str, Array], Sequence[int]]:
    """Choose by each core's bits and scalar."""
    # Here CMPMASK holds no bits but the scalar operand, in its lowest bytes; it is reinterpreted as
    # an element, one a core.
    low = np.ascontiguousarray(bytes_of_masks(left)[:, : template.dtype.size_bytes])
    scalars = low.view(template.dtype.numpy)[:, :, None]
    return {"dst": np.where(template.bits(inputs), inputs["src0"], scalars)}, left


LEFT: Mapping[Kind, ComputeLeft] = {
    CompareToRegister: _compare,
    GetCmpmask: _mask,
    StoreRegister: _store,
    SelectByRegister: _select,
    SelectByTensor: _select_tensor,
    SelectScalar: _select_scalar,
}
"""Those that a register with each core's own value decides."""


def _pick_elements(template: Gather, values: Array) -> Offsets | None:
    # Offsets count bytes. Inactive lanes read nothing, so that whatever their offset holds must not
    # refuse the whole gather: it is taken as 0.
    on, size = template.active("dst"), template.dtype.size_bytes
    offsets = values.astype(np.intp)
    if on is not None:
        offsets = np.where(on, offsets, 0)
    return None if (offsets % size).any() else offsets // size


def _pick_blocks(template: Vgatherb, values: Array) -> Offsets | None:
    offsets = values.astype(np.intp)
    if (offsets % DATA_BLOCK_BYTES).any():
        return None
    return template.elements_of(offsets // template.dtype.size_bytes)


PICKS: Mapping[Kind, Pick] = {Gather: _pick_elements, Vgatherb: _pick_blocks}
"""Those of which each core's values say what it reads, and nothing else."""


def stacks(kind: Kind) -> bool:
    """Return whether `compute` serves several cores as it stands."""
    return issubclass(kind, STACKED)


def computing_left(kind: Kind) -> ComputeLeft | None:
    """Return what serves several cores whose registers decide it; None if nothing does."""
    return next((LEFT[base] for base in kind.__mro__ if base in LEFT), None)


def picks(kind: Kind) -> Pick | None:
    """Return what picks for several cores; None if nothing does."""
    return next((PICKS[base] for base in kind.__mro__ if base in PICKS), None)
