"""Masks: made of a pattern or of a count (*Reg*, MaskReg)."""

from collections.abc import Sequence

import numpy as np

from cubecore.arrays import Array
from cubecore.isa.vector.registers.operation import (
    REGISTER_BYTES,
    Bits,
    Call,
    Form,
    RegisterOperation,
    declare,
)

_WIDTHS = ("uint8", "uint16", "uint32", "uint64")
_COUNTED = "VL"
_MULTIPLES = {"M3": 3, "M4": 4}
PATTERNS = (
    *("ALL", "VL1", "VL2", "VL3", "VL4", "VL8", "VL16", "VL32", "VL64", "VL128"),
    *("M3", "M4", "H", "Q", "ALLF"),
)


def lanes_of(pattern: str, count: int) -> Bits:
    """Return which of so many lanes a pattern lets through."""
    lane = np.arange(count)
    if pattern in _MULTIPLES:
        return np.asarray(lane % _MULTIPLES[pattern] == 0)
    if pattern.startswith(_COUNTED):
        return np.asarray(lane < int(pattern.removeprefix(_COUNTED)))
    shares = {"ALL": count, "ALLF": 0, "H": count // 2, "Q": count // 4}
    return np.asarray(lane < shares[pattern])


def _pattern(call: Call, _: Sequence[Array], _mask: Bits | None, _scalar: Array) -> Sequence[Array]:
    lane = lanes_of(call.mode, REGISTER_BYTES // call.width)
    return (np.repeat(lane, call.width)[None],)


def _count(call: Call, _: Sequence[Array], _mask: Bits | None, scalar: Array) -> Sequence[Array]:
    byte = np.arange(REGISTER_BYTES)
    return (byte < np.minimum(scalar[..., None], REGISTER_BYTES).astype(np.int64) * call.width,)


def _of_block(
    call: Call, inputs: Sequence[Array], _: Bits | None, scalar: Array
) -> Sequence[Array]:
    """Return the bits of a block of a register, each as often as a lane has bytes."""
    size = REGISTER_BYTES // 8 // call.width
    block = inputs[0].reshape(*inputs[0].shape[:-1], -1, size)
    chosen = np.asarray(scalar, np.intp)[..., None, None]
    shape = np.broadcast_shapes(block.shape[:-2], chosen.shape[:-2])
    taken = np.take_along_axis(
        np.broadcast_to(block, (*shape, *block.shape[-2:])),
        np.broadcast_to(chosen, (*shape, 1, 1)),
        axis=-2,
    )[..., 0, :]
    bits = np.unpackbits(np.ascontiguousarray(taken), axis=-1, bitorder="little").astype(bool)
    return (np.repeat(bits, call.width, axis=-1),)


def _of_registers(
    call: Call, _: Sequence[Array], _mask: Bits | None, scalar: Array
) -> Sequence[Array]:
    """Return the bits of MASK1 and MASK0, each as often as a lane has bytes."""
    raw = np.ascontiguousarray(scalar, "<u8").view(np.uint8)
    bits = np.unpackbits(raw, axis=-1, bitorder="little").astype(bool)
    return (np.repeat(bits[..., : REGISTER_BYTES // call.width], call.width, axis=-1),)


_LATENCY = (("", 6),)
_BITS = ("the bits of an active lane are all set: which are besides the lowest is not documented",)
declare(
    RegisterOperation(
        name="CreateMask",
        form=Form.PATTERN,
        doc="Let the lanes of a pattern through",
        compute=_pattern,
        types=_WIDTHS,
        c_api="asc_create_mask_b{bits}",
        latency=_LATENCY,
        uncertain=_BITS,
    ),
    RegisterOperation(
        name="UpdateMask",
        form=Form.COUNT,
        doc="Let the first lanes through, as many as a count says, and take them off it",
        compute=_count,
        types=_WIDTHS,
        c_api="asc_update_mask_b{bits}",
        latency=_LATENCY,
        uncertain=_BITS,
    ),
    RegisterOperation(
        name="MaskGenWithRegTensor",
        form=Form.BLOCK_MASK,
        doc="Take a block of a register as a mask",
        compute=_of_block,
        types=("uint16", "uint32"),
        cycles=(("", 4),),
        alone=True,
    ),
    RegisterOperation(
        name="MoveMask",
        form=Form.MASK_BITS,
        doc="Take the mask that SetVectorMask has set, a bit a lane",
        compute=_of_registers,
        types=("uint16", "uint32"),
    ),
)
