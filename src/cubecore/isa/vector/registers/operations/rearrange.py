"""Reductions, and moves of lanes within registers and masks."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from cubecore.arrays import Array
from cubecore.dtypes import ElementType
from cubecore.isa.vector.common import lane_functions
from cubecore.isa.vector.registers.operation import (
    REGISTER_BYTES,
    Bits,
    Call,
    Compute,
    Form,
    RegisterOperation,
    declare,
    governed,
    lanes,
    raw,
)
from cubecore.isa.vector.registers.operations.arithmetic import (
    ALL,
    BYTES,
    FLOATS,
    HALF_AND_FLOAT,
    LONG,
    scalars,
    settled,
    widened,
)

_SUMMED = ("int32", "uint32", *HALF_AND_FLOAT)
_WIDENED = (("int16", "int32"), ("uint16", "uint32"))
_NARROW = ("int8", "uint8", "int16", "uint16", "int32", "uint32")
SQUEEZED = (*_NARROW, *HALF_AND_FLOAT)
"""Types whose active lanes a squeeze packs."""


def _reductions(summed: tuple[str, ...]) -> tuple[tuple[str, str, str], ...]:
    """Return the types of reductions: sources, results, what is reduced."""
    alike = ("int16", "uint16", *summed)
    return (
        *((name, name, "SUM") for name in summed),
        *((source, wider, "SUM") for source, wider in _WIDENED),
        *((name, name, mode) for mode in ("MAX", "MIN") for name in alike),
    )


_BLOCK_BYTES = 32


def _lowest(element: ElementType, *, largest: bool) -> Array:
    """Return the number that no other is below, or above."""
    if element.kind == "float":
        return np.array(np.inf if largest else -np.inf).astype(element.numpy)
    info = np.iinfo(element.numpy)
    return np.array(info.max if largest else info.min, element.numpy)


def added_up(values: Array, call: Call) -> Array:
    """Return the sums along the last axis, neighbours first, each sum rounded to the type.

    Halves are clamped behind the last sum alone: a NaN in between stays one.
    """
    # A balanced tree over neighbours; each level is rounded to the type, as the hardware's adders
    # do.
    level, inside = widened(values, call.dtype), replace(call, ctrl=0)
    while level.shape[-1] > 1:
        level = level[..., ::2] + level[..., 1::2]
        level = widened(settled(level, inside), call.dtype)
    return settled(level, call)


def _extreme(values: Array, active: Bits, element: ElementType, *, largest: bool) -> Array:
    """Return the largest or smallest along the last axis, of what is active; NaN is it."""
    function = lane_functions.larger if largest else lane_functions.smaller
    level = np.where(active, values, _lowest(element, largest=not largest))
    with np.errstate(invalid="ignore"):
        while level.shape[-1] > 1:
            level = function(level[..., ::2], level[..., 1::2])
    return level


def _in_lanes(call: Call, results: Array) -> Array:
    """Return results in the first lanes of a register, the others 0."""
    count = REGISTER_BYTES // call.width
    register = np.zeros((*results.shape[:-1], count), call.dtype.numpy)
    register[..., : results.shape[-1]] = results
    return raw(register)


def _prepared(call: Call, register: Array, mask: Bits | None) -> tuple[Array, Bits]:
    values = lanes(register, call.source)
    size = call.source.size_bytes
    on = np.ones(REGISTER_BYTES, bool) if mask is None else mask
    return values, np.broadcast_to(governed(on, size), values.shape)


def _reduce(call: Call, inputs: Sequence[Array], mask: Bits | None, _: Array) -> Sequence[Array]:
    values, active = _prepared(call, inputs[0], mask)
    if call.mode == "SUM":
        kept = np.where(active, values, np.zeros((), values.dtype)).astype(call.dtype.numpy)
        with np.errstate(all="ignore"):
            return (_in_lanes(call, added_up(kept, call)),)
    largest = call.mode == "MAX"
    best = _extreme(values, active, call.source, largest=largest)
    # The first lane that holds the extreme, NaN being equal to NaN here, and zeros told apart by
    # sign.
    same = active & ((values == best) | ((values != values) & (best != best)))  # noqa: PLR0124
    if values.dtype.kind == "f":
        same &= np.signbit(values) == np.signbit(best)
    index = np.argmax(same, axis=-1)[..., None].astype(f"u{call.source.size_bytes}")
    register = _in_lanes(call, settled(best, call))
    register[..., call.width : 2 * call.width] = raw(index)
    return (register,)


def _reduce_blocks(
    call: Call, inputs: Sequence[Array], mask: Bits | None, _: Array
) -> Sequence[Array]:
    values, active = _prepared(call, inputs[0], mask)
    blocks = REGISTER_BYTES // _BLOCK_BYTES
    values, active = (each.reshape(*each.shape[:-1], blocks, -1) for each in (values, active))
    if call.mode == "SUM":
        kept = np.where(active, values, np.zeros((), values.dtype)).astype(call.dtype.numpy)
        with np.errstate(all="ignore"):
            return (_in_lanes(call, added_up(kept, call)[..., 0]),)
    best = _extreme(values, active, call.source, largest=call.mode == "MAX")
    return (_in_lanes(call, settled(best[..., 0], call)),)


def _pair_sums(call: Call, inputs: Sequence[Array], mask: Bits | None, _: Array) -> Sequence[Array]:
    values, active = _prepared(call, inputs[0], mask)
    kept = widened(np.where(active, values, np.zeros((), values.dtype)), call.dtype)
    with np.errstate(all="ignore"):
        return (_in_lanes(call, settled(kept[..., ::2] + kept[..., 1::2], call)),)


def _halves(sequence: Array) -> Sequence[Array]:
    middle = sequence.shape[-1] // 2
    return raw(sequence[..., :middle]), raw(sequence[..., middle:])


def _codes(register: Array, width: int) -> Array:
    return np.ascontiguousarray(register).view(f"u{width}")


def _interleave(call: Call, inputs: Sequence[Array], _: Bits | None, _s: Array) -> Sequence[Array]:
    x, y = np.broadcast_arrays(*(_codes(each, call.width) for each in inputs))
    return _halves(np.stack([x, y], axis=-1).reshape(*x.shape[:-1], -1))


def _deinterleave(
    call: Call, inputs: Sequence[Array], _: Bits | None, _s: Array
) -> Sequence[Array]:
    x, y = np.broadcast_arrays(*(_codes(each, call.width) for each in inputs))
    both = np.concatenate([x, y], axis=-1)
    return raw(both[..., ::2]), raw(both[..., 1::2])


def squeeze(call: Call, inputs: Sequence[Array], mask: Bits | None, _: Array) -> Sequence[Array]:
    """Return a register's active lanes at its front, with zeros behind them."""
    if mask is None:
        return (inputs[0],)
    values = _codes(inputs[0], call.width)
    active = np.broadcast_to(governed(mask, call.width), values.shape)
    # False sorts before True and the sort is stable: active lanes come first, in their order.
    order = np.argsort(~active, axis=-1, kind="stable")
    packed = np.take_along_axis(np.where(active, values, 0), order, axis=-1)
    return (raw(packed.astype(values.dtype)),)


def _unsqueeze(call: Call, _: Sequence[Array], mask: Bits | None, _s: Array) -> Sequence[Array]:
    on = np.ones((1, REGISTER_BYTES), bool) if mask is None else mask
    lane = governed(on, call.width)
    # An exclusive prefix sum: how many active lanes lie before each.
    before: Array = np.cumsum(lane, axis=-1) - lane
    return (raw(before.astype(call.dtype.numpy)),)


def _pack(call: Call, inputs: Sequence[Array], _: Bits | None, _s: Array) -> Sequence[Array]:
    narrow = _codes(inputs[0], call.source.size_bytes).astype(f"u{call.width}")
    count = narrow.shape[-1]
    register = np.zeros((*narrow.shape[:-1], 2 * count), narrow.dtype)
    register[..., slice(count) if call.mode == "LOWEST" else slice(count, None)] = narrow
    return (raw(register),)


def _unpack(call: Call, inputs: Sequence[Array], _: Bits | None, _s: Array) -> Sequence[Array]:
    values = lanes(inputs[0], call.source)
    middle = values.shape[-1] // 2
    half = values[..., :middle] if call.mode == "LOWEST" else values[..., middle:]
    return (raw(half.astype(call.dtype.numpy)),)


def _arange(call: Call, _: Sequence[Array], _m: Bits | None, scalar: Array) -> Sequence[Array]:
    first = widened(scalars(call.dtype, scalar), call.dtype)
    count = REGISTER_BYTES // call.width
    steps = np.arange(count) if call.mode == "INCREASE_ORDER" else np.arange(count)[::-1]
    with np.errstate(all="ignore"):
        exact = first + steps.astype(first.dtype)
        if call.dtype.name == "float16":
            exact = _halves_up(exact)
        return (raw(settled(exact, call)),)


def _halves_up(exact: Array) -> Array:
    """Return numbers of which halves are the nearest, ties the larger (boundary values, Arange)."""
    _, exponent = np.frexp(np.where(np.isfinite(exact), exact, 0.0))
    unit = np.ldexp(1.0, exponent - 11)
    return np.where(np.isfinite(exact), np.floor(exact / unit + 0.5) * unit, exact)


def _picked(call: Call, inputs: Sequence[Array], _: Bits | None, _s: Array) -> Sequence[Array]:
    values, indices = (_codes(each, call.width) for each in inputs)
    values, indices = np.broadcast_arrays(values, indices.astype(np.intp) % values.shape[-1])
    return (raw(np.take_along_axis(values, indices, axis=-1)),)


# --- masks


def _groups(mask: Array, width: int) -> Array:
    return mask.astype(bool).reshape(*mask.shape[:-1], -1, width)


def _interleave_masks(
    call: Call, inputs: Sequence[Array], _: Bits | None, _s: Array
) -> Sequence[Array]:
    x, y = np.broadcast_arrays(*(_groups(each, call.width) for each in inputs))
    both = np.stack([x, y], axis=-2).reshape(*x.shape[:-2], 2 * REGISTER_BYTES)
    return both[..., :REGISTER_BYTES], both[..., REGISTER_BYTES:]


def _deinterleave_masks(
    call: Call, inputs: Sequence[Array], _: Bits | None, _s: Array
) -> Sequence[Array]:
    x, y = np.broadcast_arrays(*(_groups(each, call.width) for each in inputs))
    both = np.concatenate([x, y], axis=-2)
    flat = (each.reshape(*each.shape[:-2], -1) for each in (both[..., ::2, :], both[..., 1::2, :]))
    return tuple(flat)


def _pack_mask(call: Call, inputs: Sequence[Array], _: Bits | None, _s: Array) -> Sequence[Array]:
    even = inputs[0].astype(bool)[..., ::2]
    empty = np.zeros_like(even)
    parts = [even, empty] if call.mode == "LOWEST" else [empty, even]
    return (np.concatenate(parts, axis=-1),)


def _unpack_mask(call: Call, inputs: Sequence[Array], _: Bits | None, _s: Array) -> Sequence[Array]:
    bits = inputs[0].astype(bool)
    middle = REGISTER_BYTES // 2
    half = bits[..., :middle] if call.mode == "LOWEST" else bits[..., middle:]
    wider = np.zeros((*half.shape, 2), bool)
    wider[..., 0] = half
    return (wider.reshape(*half.shape[:-1], -1),)


def _shuffled(
    name: str,
    form: Form,
    doc: str,
    compute: Compute,
    types: tuple[str, ...],
    c_api: str = "",
    **more: Any,
) -> RegisterOperation:
    """Return an instruction whose lanes hang on other lanes, and which shares no cycle."""
    row = RegisterOperation(name, form, doc, compute, types, c_api, alone=True, by_lane=False)
    return replace(row, **more)


_BY_CTRL = "a half result is clamped behind its last sum, where CTRL says so"
declare(
    _shuffled(
        *("Reduce", Form.REDUCE, "Reduce the active lanes to lane 0", _reduce, ()),
        pairs=_reductions((*_SUMMED, *LONG)),
        latency=(("", 16), ("SUM", 22)),
        uncertain=("of no active lane the index is 0", "other lanes are 0", _BY_CTRL),
    ),
    _shuffled(
        *("ReduceDataBlock", Form.REDUCE, "Reduce each block of 32 bytes", _reduce_blocks, ()),
        pairs=_reductions(_SUMMED),
        latency=(("", 16), ("SUM", 22)),
        uncertain=("a sum of a wider type fills the first lanes of that type", _BY_CTRL),
    ),
    _shuffled(
        *("PairReduceElem", Form.REDUCE, "Add neighbours", _pair_sums, HALF_AND_FLOAT),
        c_api="asc_pair_reduce_sum",
        latency=(("", 22),),
    ),
    _shuffled(
        *("Interleave", Form.PAIR, "Interleave two registers", _interleave, ALL),
        c_api="asc_intlv",
    ),
    _shuffled(
        *("DeInterleave", Form.PAIR, "Part even lanes from odd ones", _deinterleave, ALL),
        c_api="asc_deintlv",
    ),
    _shuffled(
        *("Squeeze", Form.UNARY, "Pack the active lanes to the front", squeeze),
        SQUEEZED,
        c_api="asc_squeeze",
        older=("GatherMask",),
        cycles=(("", 5),),
    ),
    _shuffled(
        *("Unsqueeze", Form.FROM_MASK, "Count the active lanes before each one", _unsqueeze),
        _NARROW,
        c_api="asc_unsqueeze",
        cycles=(("", 4),),
        uncertain=("the old dst, which the page calls an operand, is not looked at",),
    ),
    _shuffled(
        *("Pack", Form.PLAIN, "Pack the low half of each lane", _pack, ()),
        pairs=tuple(
            (f"{sign}int{2 * bits}", f"uint{bits}", "")
            for bits in (8, 16, 32)
            for sign in ("", "u")
        ),
        uncertain=("the other half of the register is 0",),
    ),
    _shuffled(
        *("UnPack", Form.PLAIN, "Widen the lanes of a half", _unpack, ()),
        pairs=tuple(
            (f"{sign}int{bits}", f"{sign}int{2 * bits}", "")
            for bits in (8, 16, 32)
            for sign in ("", "u")
        ),
        cycles=(("", 2),),
    ),
    RegisterOperation(
        *("Arange", Form.INDEX, "Count from the scalar on", _arange),
        ("int8", "int16", "int32", "int64", *HALF_AND_FLOAT),
        c_api="asc_arange",
        cycles=(("", 2), ("float16", 1), ("float32", 1)),
        uncertain=(
            "counting down ends with the scalar",
            "between two halves the larger is taken, as the page of boundary values counts them",
        ),
    ),
    _shuffled(
        *("Gather", Form.INDEXED, "Pick lanes of a register by indices", _picked),
        (*_NARROW, *FLOATS, *BYTES),
        c_api="asc_gather",
        cycles=(("", 4),),
    ),
    RegisterOperation(
        *("MaskInterleave", Form.MASK_PAIR, "Interleave two masks", _interleave_masks),
        ("uint8", "uint16", "uint32"),
        alone=True,
        cpp="Interleave",
    ),
    RegisterOperation(
        *("MaskDeInterleave", Form.MASK_PAIR, "Part even bits from odd ones", _deinterleave_masks),
        ("uint8", "uint16", "uint32"),
        alone=True,
        cpp="DeInterleave",
    ),
    RegisterOperation(
        *("MaskPack", Form.MASK_PLAIN, "Pack the even bits of a mask", _pack_mask, ()),
        alone=True,
        cpp="Pack",
    ),
    RegisterOperation(
        *("MaskUnPack", Form.MASK_PLAIN, "Spread half of a mask's bits", _unpack_mask, ()),
        alone=True,
        cpp="UnPack",
    ),
)
