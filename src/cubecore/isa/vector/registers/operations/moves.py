"""Loads and stores of registers, by their distributions (*Reg*, LoadAlign and StoreAlign).

A distribution says how many bytes of UB an access touches, and how they become lanes. `window` is
what the executor reads or writes; `compute` spreads it over a register, or packs it.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from cubecore.arrays import Array
from cubecore.isa.vector.registers.operation import (
    REGISTER_BYTES,
    Bits,
    Call,
    Form,
    RegisterOperation,
    declare,
    governed,
)

ANY = (
    *("uint8", "int8", "uint16", "int16", "uint32", "int32", "uint64", "int64"),
    *("float16", "bfloat16", "float32", "hifloat8", "float8_e4m3fn", "float8_e5m2"),
    *("float8_e8m0fnu", "float4_e2m1fn", "float4_e1m2", "int4"),
)
"""Types of registers that loads and stores move."""
_TO_32_BITS = tuple(name for name in ANY if not name.endswith("64"))


@dataclass(frozen=True, eq=False, slots=True)
class Distribution:
    """A way between UB and a register: bytes of UB, alignment, and what becomes of them.

    `lane` is the width in bytes that it works on, 0 for that of the type; `alone` as an
    instruction's.
    """

    span: int
    align: int
    spread: Callable[[Array], Array]
    alone: bool = False


def _same(window: Array) -> Array:
    return window


def _elements(window: Array, width: int) -> Array:
    """Return [..., elements, width] bytes."""
    return window.reshape(*window.shape[:-1], -1, width)


def _flat(elements: Array) -> Array:
    return np.ascontiguousarray(elements).reshape(*elements.shape[:-2], -1)


def _broadcast(width: int) -> Distribution:
    def spread(window: Array) -> Array:
        return _flat(np.broadcast_to(_elements(window, width), _filled(window, width)))

    return Distribution(width, width, spread)


def _filled(window: Array, width: int) -> tuple[int, ...]:
    return (*window.shape[:-1], REGISTER_BYTES // width, width)


def _block(window: Array) -> Array:
    return np.concatenate([window] * (REGISTER_BYTES // window.shape[-1]), axis=-1)


def _to_blocks(width: int) -> Distribution:
    """Eight elements, each of which fills a block of 32 bytes."""

    def spread(window: Array) -> Array:
        return _flat(np.repeat(_elements(window, width), 32 // width, axis=-2))

    return Distribution(8 * width, 8 * width, spread)


def _upsampled(width: int) -> Distribution:
    def spread(window: Array) -> Array:
        return _flat(np.repeat(_elements(window, width), 2, axis=-2))

    return Distribution(REGISTER_BYTES // 2, 32, spread)


def _downsampled(width: int) -> Distribution:
    def spread(window: Array) -> Array:
        return _flat(_elements(window, width)[..., ::2, :])

    return Distribution(2 * REGISTER_BYTES, 32, spread, alone=True)


def _unpacked(width: int, ratio: int) -> Distribution:
    """Each element with zeros behind it, `ratio` times as wide."""

    def spread(window: Array) -> Array:
        narrow = _elements(window, width)
        wide = np.zeros((*narrow.shape[:-1], ratio * width), np.uint8)
        wide[..., :width] = narrow
        return _flat(wide)

    return Distribution(REGISTER_BYTES // ratio, 32, spread)


LATENCY = (("", 9),)
"""Cycles of a load or a store, of which public traces and the cost model in PTO agree."""
BLOCKS = REGISTER_BYTES // 32
"""Blocks of a register, which a strided move takes one by one."""
_TWO = Distribution(2 * REGISTER_BYTES, 32, _same, alone=True)
LOADS: dict[str, Distribution] = {
    "NORM": Distribution(REGISTER_BYTES, 32, _same),
    **{f"BRC_B{8 * w}": _broadcast(w) for w in (1, 2, 4)},
    "BLK": Distribution(32, 32, _block),
    **{f"E2B_B{8 * w}": _to_blocks(w) for w in (2, 4)},
    **{f"US_B{8 * w}": _upsampled(w) for w in (1, 2)},
    **{f"DS_B{8 * w}": _downsampled(w) for w in (1, 2)},
    **{f"UNPACK_B{8 * w}": _unpacked(w, 2) for w in (1, 2, 4)},
    "UNPACK4_B8": _unpacked(1, 4),
    "UNALIGNED": Distribution(REGISTER_BYTES, 1, _same),
    **{f"BLOCK{k}": Distribution(32, 32, _same) for k in range(BLOCKS)},
    **{f"DINTLV_B{8 * w}": _TWO for w in (1, 2, 4)},
    "MASK_NORM": Distribution(REGISTER_BYTES // 8, 32, _same),
    "MASK_US": Distribution(REGISTER_BYTES // 16, 16, _same),
    "MASK_DS": Distribution(REGISTER_BYTES // 4, 32, _same),
}
"""Distributions of loads by their names; those of a block, of pairs and of masks are of their own
instructions."""


@dataclass(frozen=True, eq=False, slots=True)
class StoreDistribution:
    """A way from a register to UB: bytes and alignment, the packing, and which bytes are written.

    `masked` takes a mask of a register's bytes to one of the bytes in UB; None: the mask is not
    looked at.
    """

    span: int
    align: int
    pack: Callable[[Array], Array]
    masked: Callable[[Bits, int], Bits] | None


def _by_lane(mask: Bits, width: int) -> Bits:
    return np.repeat(governed(mask, width), width, axis=-1)


def _by_width(width: int, mask: Bits, _: int) -> Bits:
    return _by_lane(mask, width)


def _stored_packed(width: int, ratio: int) -> StoreDistribution:
    """The low bytes of each lane of `width`, one behind another."""
    narrow = width // ratio

    def pack(register: Array) -> Array:
        return _flat(_elements(register, width)[..., :narrow])

    def masked(mask: Bits, _: int) -> Bits:
        return np.repeat(governed(mask, width), narrow, axis=-1)

    return StoreDistribution(REGISTER_BYTES // ratio, 32, pack, masked)


def _stored_block(block: int) -> StoreDistribution:
    """One block of 32 bytes of a register."""
    part = slice(32 * block, 32 * block + 32)

    def masked(mask: Bits, width: int) -> Bits:
        return _by_lane(mask, width)[..., part]

    return StoreDistribution(32, 32, lambda register: register[..., part], masked)


def _first(width: int) -> StoreDistribution:
    return StoreDistribution(width, width, lambda register: register[..., :width], None)


MASK_STREAM = "MASK_B"
"""Begins the distribution of a mask's unaligned store: a bit of each lane of so many bits."""
_STORED_TWO = StoreDistribution(2 * REGISTER_BYTES, 32, _same, None)
STORES: dict[str, StoreDistribution] = {
    "NORM": StoreDistribution(REGISTER_BYTES, 32, _same, _by_lane),
    **{
        f"NORM_B{8 * w}": StoreDistribution(REGISTER_BYTES, 32, _same, partial(_by_width, w))
        for w in (1, 2, 4)
    },
    **{f"FIRST_ELEMENT_B{8 * w}": _first(w) for w in (1, 2, 4)},
    **{f"PACK_B{8 * w}": _stored_packed(w, 2) for w in (2, 4, 8)},
    "PACK4_B32": _stored_packed(4, 4),
    "UNALIGNED": StoreDistribution(REGISTER_BYTES, 1, _same, _by_lane),
    **{f"BLOCK{k}": _stored_block(k) for k in range(BLOCKS)},
    **{f"INTLV_B{8 * w}": _STORED_TWO for w in (1, 2, 4)},
    "MASK_NORM": StoreDistribution(REGISTER_BYTES // 8, 32, _same, None),
    "MASK_PACK": StoreDistribution(REGISTER_BYTES // 16, 16, _same, None),
    **{
        f"{MASK_STREAM}{8 * w}": StoreDistribution(
            REGISTER_BYTES // 8 // w, REGISTER_BYTES // 8 // w, _same, None
        )
        for w in (1, 2, 4)
    },
}
"""Distributions of stores by their names, likewise."""


def _load(call: Call, inputs: Sequence[Array], _: Bits | None, _scalar: Array) -> Sequence[Array]:
    return (LOADS[call.mode].spread(inputs[0]),)


def _load_block(
    call: Call, inputs: Sequence[Array], mask: Bits | None, _: Array
) -> Sequence[Array]:
    """Put a block into the register before; one with no active lane is 0."""
    before, block = inputs
    start = 32 * int(call.mode.removeprefix("BLOCK"))
    if mask is not None:
        # A strided move loads whole blocks: a mask decides by block whether it is loaded at all.
        active = governed(mask[..., start : start + 32], call.width).any(axis=-1, keepdims=True)
        block = np.where(active, block, np.uint8(0))
    shape = np.broadcast_shapes(before.shape[:-1], block.shape[:-1])
    register = np.broadcast_to(before, (*shape, REGISTER_BYTES)).copy()
    register[..., start : start + 32] = block
    return (register,)


def _load_pair(
    call: Call, inputs: Sequence[Array], _: Bits | None, _scalar: Array
) -> Sequence[Array]:
    elements = _elements(inputs[0], int(call.mode.removeprefix("DINTLV_B")) // 8)
    return _flat(elements[..., ::2, :]), _flat(elements[..., 1::2, :])


def _store_pair(
    call: Call, inputs: Sequence[Array], _: Bits | None, _scalar: Array
) -> Sequence[Array]:
    width = int(call.mode.removeprefix("INTLV_B")) // 8
    # [..., element, register, bytes]: element i of both registers, one behind the other.
    both = np.broadcast_arrays(*(_elements(each, width) for each in inputs))
    return (_flat(np.stack(both, axis=-2).reshape(*both[0].shape[:-2], -1, width)),)


def _load_mask(
    call: Call, inputs: Sequence[Array], _: Bits | None, _scalar: Array
) -> Sequence[Array]:
    bits = np.unpackbits(np.ascontiguousarray(inputs[0]), axis=-1, bitorder="little").astype(bool)
    if call.mode == "MASK_US":
        bits = np.repeat(bits, 2, axis=-1)
    return (bits[..., ::2] if call.mode == "MASK_DS" else bits,)


def _store_mask(
    call: Call, inputs: Sequence[Array], _: Bits | None, _scalar: Array
) -> Sequence[Array]:
    bits = inputs[0].astype(bool)
    kept = REGISTER_BYTES // 8 // STORES[call.mode].span
    bits = bits[..., ::kept]
    return (np.packbits(bits, axis=-1, bitorder="little"),)


def _nothing(
    _: Call, _inputs: Sequence[Array], _mask: Bits | None, _scalar: Array
) -> Sequence[Array]:
    return ()


def _store(call: Call, inputs: Sequence[Array], _: Bits | None, _scalar: Array) -> Sequence[Array]:
    return (STORES[call.mode].pack(inputs[0]),)


declare(
    RegisterOperation(
        name="LoadAlign",
        form=Form.LOAD,
        doc="Load a register from UB, as its distribution says",
        compute=_load,
        types=ANY,
        c_api="asc_loadalign",
        older=("DataCopy",),
        latency=LATENCY,
    ),
    RegisterOperation(
        name="StoreAlign",
        form=Form.STORE,
        doc="Store the active lanes of a register to UB, as its distribution says",
        compute=_store,
        types=ANY,
        c_api="asc_storealign",
        older=("DataCopy",),
        latency=(*LATENCY, ("UNALIGNED", 8)),
        alone=True,
        uncertain=("a packed lane keeps its place where others are inactive",),
    ),
    RegisterOperation(
        name="LoadBlock",
        cpp="LoadAlign",
        form=Form.LOAD,
        doc="Load a block of 32 bytes of a strided move",
        compute=_load_block,
        types=_TO_32_BITS,
        latency=LATENCY,
        alone=True,
    ),
    RegisterOperation(
        name="StoreBlock",
        cpp="StoreAlign",
        form=Form.STORE,
        doc="Store a block of 32 bytes of a strided move",
        compute=_store,
        types=_TO_32_BITS,
        latency=LATENCY,
        alone=True,
    ),
    RegisterOperation(
        name="LoadPair",
        cpp="LoadAlign",
        form=Form.LOAD_PAIR,
        doc="Load two registers, even elements and odd ones",
        compute=_load_pair,
        types=ANY,
        cycles=(("", 2),),
        latency=LATENCY,
        alone=True,
    ),
    RegisterOperation(
        name="StorePair",
        cpp="StoreAlign",
        form=Form.STORE_PAIR,
        doc="Store two registers, their elements in turn",
        compute=_store_pair,
        types=ANY,
        cycles=(("", 2),),
        latency=LATENCY,
        alone=True,
    ),
    RegisterOperation(
        name="LoadMask",
        cpp="LoadAlign",
        form=Form.LOAD_MASK,
        doc="Load a mask from UB",
        compute=_load_mask,
        types=(),
        latency=LATENCY,
    ),
    RegisterOperation(
        name="StoreMask",
        cpp="StoreAlign",
        form=Form.STORE_MASK,
        doc="Store a mask to UB",
        compute=_store_mask,
        types=(),
        latency=LATENCY,
        alone=True,
    ),
    RegisterOperation(
        name="LoadUnAlignPre",
        form=Form.STREAM,
        doc="Fill the buffer of an unaligned stream of loads",
        compute=_nothing,
        types=(),
        latency=LATENCY,
    ),
    RegisterOperation(
        name="StoreUnAlignPost",
        form=Form.STREAM,
        doc="Store what the buffer of an unaligned stream still holds",
        compute=_nothing,
        types=(),
        latency=LATENCY,
        alone=True,
    ),
    RegisterOperation(
        name="LocalMemBar",
        form=Form.BARRIER,
        doc="Order accesses of UB of one kind behind those of another",
        compute=_nothing,
        types=(),
    ),
)
