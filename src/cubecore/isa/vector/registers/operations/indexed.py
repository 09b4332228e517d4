"""Loads and stores of UB where values of registers say: gathers, scatters, counted stores.

A gather takes elements or blocks of 32 bytes by the indices of a register, a scatter puts elements
there. A squeeze may count its bytes; unaligned stores by AR store as many, one behind another, and
AR has the sum (*Reg*, Gather, GatherB, Scatter, Squeeze, StoreUnAlign).
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from cubecore.arrays import Array
from cubecore.dtypes import element_type
from cubecore.isa.vector.registers.operation import (
    REGISTER_BYTES,
    Bits,
    Call,
    Form,
    Landing,
    RegisterOperation,
    declare,
    governed,
    zeroed,
)
from cubecore.isa.vector.registers.operations.moves import ANY, LATENCY
from cubecore.isa.vector.registers.operations.rearrange import SQUEEZED, squeeze

_BLOCK_BYTES = 32
_BLOCKS = REGISTER_BYTES // _BLOCK_BYTES
_PAIR_BYTES = 2
"""The least width of a lane: a byte of UB has one of 16 bits, as its index has."""
AR_BYTES = 8
"""The first bytes of the value that stands for AR, or for a squeeze's count: an integer."""


def _width_of(call: Call) -> int:
    """Return the bytes of a lane of data."""
    return max(call.width, _PAIR_BYTES)


def _lanes_on(mask: Bits | None, lane: int) -> Bits:
    on = np.ones((1, REGISTER_BYTES), bool) if mask is None else mask
    return governed(on, lane)


def _indices(call: Call, register: Array, count: int) -> NDArray[np.int64]:
    """Return the first indices of a register, of the width that the call's mode says."""
    size = element_type(call.mode).size_bytes
    return np.ascontiguousarray(register).view(f"u{size}")[..., :count].astype(np.int64)


def _landing_of_lanes(call: Call, register: Array, mask: Bits | None, size: int) -> Landing:
    lane = _width_of(call)
    offsets = _indices(call, register, REGISTER_BYTES // lane) * size
    on = np.broadcast_to(_lanes_on(mask, lane), offsets.shape)
    return Landing(offsets, np.where(on, size, 0), size)


def _gather_lands(call: Call, inputs: Sequence[Array], mask: Bits | None) -> Landing:
    return _landing_of_lanes(call, inputs[0], mask, call.source.size_bytes)


def _gather(call: Call, inputs: Sequence[Array], mask: Bits | None, _: Array) -> Sequence[Array]:
    """Put each element into a lane of its own, bytes with zeros above them."""
    narrow, lane = call.source.size_bytes, _width_of(call)
    elements = np.ascontiguousarray(inputs[1]).view(f"u{narrow}").astype(f"u{lane}")
    return (zeroed(elements, mask, lane),)


def _blocks_land(_: Call, inputs: Sequence[Array], mask: Bits | None) -> Landing:
    offsets = np.ascontiguousarray(inputs[0]).view(np.uint32)[..., :_BLOCKS].astype(np.int64)
    on = _lanes_on(mask, 4)[..., :_BLOCKS]
    sizes = np.where(np.broadcast_to(on, offsets.shape), _BLOCK_BYTES, 0)
    return Landing(offsets, sizes, _BLOCK_BYTES)


def _gather_blocks(
    _: Call, inputs: Sequence[Array], mask: Bits | None, _s: Array
) -> Sequence[Array]:
    if mask is None:
        return (inputs[1],)
    on = np.repeat(_lanes_on(mask, 4)[..., :_BLOCKS], _BLOCK_BYTES, axis=-1)
    return (np.where(on, inputs[1], np.uint8(0)),)


def _scatter_lands(call: Call, inputs: Sequence[Array], mask: Bits | None) -> Landing:
    return _landing_of_lanes(call, inputs[1], mask, call.width)


def _scatter(call: Call, inputs: Sequence[Array], _: Bits | None, _s: Array) -> Sequence[Array]:
    """Take the element of each lane; of bytes those of even lanes."""
    source, lane = inputs[0], _width_of(call)
    parts = source.reshape(*source.shape[:-1], -1, lane)[..., : call.width]
    return (np.ascontiguousarray(parts).reshape(*source.shape[:-1], -1),)


def _count_of(value: Array) -> NDArray[np.int64]:
    return np.ascontiguousarray(value[..., :AR_BYTES]).view(np.int64)


def count_in(value: Array) -> int:
    """Return the bytes that the last of values has which stand for AR."""
    return int(_count_of(value).reshape(-1)[-1])


def _as_value(count: NDArray[np.int64]) -> Array:
    value = np.zeros((*count.shape[:-1], REGISTER_BYTES), np.uint8)
    value[..., :AR_BYTES] = np.ascontiguousarray(count, np.int64).view(np.uint8)
    return value


def _counted_lands(_: Call, inputs: Sequence[Array], _m: Bits | None) -> Landing:
    sizes, offsets = np.broadcast_arrays(_count_of(inputs[1]), _count_of(inputs[2]))
    return Landing(offsets, sizes, REGISTER_BYTES)


def _stored_counted(
    _: Call, inputs: Sequence[Array], _m: Bits | None, _s: Array
) -> Sequence[Array]:
    return (inputs[0],)


def _squeeze_counted(
    call: Call, inputs: Sequence[Array], mask: Bits | None, scalar: Array
) -> Sequence[Array]:
    squeezed = squeeze(call, inputs, mask, scalar)
    on = _lanes_on(mask, call.width)
    counts = np.count_nonzero(on, axis=-1)[..., None] * call.width
    return (*squeezed, _as_value(counts.astype(np.int64)))


def _clear(_: Call, _i: Sequence[Array], _m: Bits | None, _s: Array) -> Sequence[Array]:
    return (_as_value(np.zeros((1, 1), np.int64)),)


def _advance(_: Call, inputs: Sequence[Array], _m: Bits | None, _s: Array) -> Sequence[Array]:
    return (_as_value(_count_of(inputs[0]) + _count_of(inputs[1])),)


_NUMBERS = ("int16", "uint16", "float16", "bfloat16"), ("int32", "uint32", "float32")
_LONG = ("int64", "uint64")
_BYTES = tuple(name for name in ANY if element_type(name).bits == 8)
"""Types of a byte; the lanes that they become are unsigned."""
_TO_UB = (
    *((name, name, "uint16") for name in (*_BYTES, *_NUMBERS[0])),
    *((name, name, "uint32") for name in (*_NUMBERS[1], *_LONG)),
    *((name, name, "uint64") for name in _LONG),
)
_FROM_UB = (
    *(("int8", "int16", "uint16"), ("uint8", "uint16", "uint16")),
    *((name, "uint16", "uint16") for name in _BYTES if name != "uint8"),
    *(row for row in _TO_UB if row[0] not in _BYTES),
)
_CYCLES = (("", 2),)
declare(
    RegisterOperation(
        name="GatherUB",
        cpp="Gather",
        form=Form.GATHER,
        doc="Pick elements of UB by indices in elements; inactive lanes are 0",
        compute=_gather,
        types=(),
        pairs=_FROM_UB,
        c_api="asc_gather",
        older=("DataCopyGather",),
        cycles=_CYCLES,
        latency=LATENCY,
        alone=True,
        by_lane=False,
        lands=_gather_lands,
    ),
    RegisterOperation(
        name="GatherB",
        form=Form.GATHER,
        doc="Pick blocks of 32 bytes of UB by the first eight indices, in bytes",
        compute=_gather_blocks,
        types=ANY,
        c_api="asc_gather_datablock",
        older=("DataCopyGatherB",),
        cycles=_CYCLES,
        latency=LATENCY,
        alone=True,
        by_lane=False,
        lands=_blocks_land,
        uncertain=("an inactive block is 0, as the page of C says; that of C++ has it kept",),
    ),
    RegisterOperation(
        name="Scatter",
        form=Form.SCATTER,
        doc="Put active lanes to UB by indices in elements; of bytes even lanes alone",
        compute=_scatter,
        types=(),
        pairs=_TO_UB,
        c_api="asc_scatter",
        older=("DataCopyScatter",),
        cycles=_CYCLES,
        latency=LATENCY,
        alone=True,
        by_lane=False,
        lands=_scatter_lands,
        uncertain=("the mask of bytes has a bit for each two of them, as their indices are",),
    ),
    RegisterOperation(
        name="SqueezeCounted",
        cpp="Squeeze",
        form=Form.COUNTED,
        doc="Pack the active lanes to the front, and keep their bytes for AR (STORE_REG)",
        compute=_squeeze_counted,
        types=(*SQUEEZED, "bfloat16", *_BYTES[2:]),
        c_api="asc_squeeze_with_status",
        older=("GatherMask",),
        cycles=(("", 5),),
        alone=True,
        by_lane=False,
    ),
    RegisterOperation(
        name="StoreCounted",
        cpp="StoreUnAlign",
        form=Form.STORE_COUNTED,
        doc="Store as many bytes as the last squeeze has counted, behind those of AR",
        compute=_stored_counted,
        types=ANY,
        c_api="asc_storeunalign_postupdate",
        latency=LATENCY,
        older=("DataCopyUnAlign",),
        alone=True,
        by_lane=False,
        lands=_counted_lands,
        uncertain=("AR grows by what is stored, not by what is squeezed",),
    ),
    RegisterOperation(
        name="AdvanceAR",
        cpp="StoreUnAlign",
        form=Form.AR,
        doc="Add to AR what the store by it has stored",
        compute=_advance,
        types=(),
        cycles=(("", 0),),
    ),
    RegisterOperation(
        name="ClearSpr",
        form=Form.AR,
        doc="Let AR be 0",
        compute=_clear,
        types=(),
    ),
)
