"""Calls on registers that access UB, make masks, or stand for more than one instruction."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Any

from cubecore.errors import did_you_mean, refuse
from cubecore.frontends.capi.pointer import Pointer
from cubecore.frontends.capi.registers.calls import CallArguments, call_of, issued_call, record
from cubecore.frontends.capi.registers.handles import UNWRITTEN, MaskRegister
from cubecore.isa.vector.registers.c_api.modes import BARRIERS, PATTERN_WORDS
from cubecore.isa.vector.registers.operation import REGISTER_BYTES, Form
from cubecore.isa.vector.registers.operations.moves import BLOCKS, MASK_STREAM

Recipe = Callable[[CallArguments], Any]
_BLOCK_BYTES = 32
_SIDES = ("VEC_STORE", "VEC_LOAD", "SCALAR_STORE", "SCALAR_LOAD", "VEC_ALL", "SCALAR_ALL")
"""Accesses that a barrier orders; an entry's scalar is the number of those behind it."""


def _address(call: CallArguments) -> int:
    """Return where an access begins: a distance counts the pointer's elements."""
    distance = call.get("distance")
    pointer = call.pointer()
    return (pointer if distance is None else pointer + distance).address


def _moved(call: CallArguments, pointer: Pointer) -> Pointer | None:
    """Return the pointer behind the access, where the call moves it."""
    if not call.row.moves:
        return None
    if (size := call.get("bytes")) is not None:
        return replaced(pointer, pointer.cast("uint8") + size)
    stride = call.get("stride")
    behind: Pointer = pointer + (call["count"] if stride is None else stride)
    return behind


def replaced(pointer: Pointer, moved: Pointer) -> Pointer:
    """Return a pointer at another address, of the same type."""
    return Pointer(pointer.mem, pointer.dtype, moved.address, pointer.reader)


def _load(call: CallArguments) -> Any:
    results = [call[each.name] for each in call.row.parameters if each.is_result]
    buffer = call.get("buffer")
    # A pair's second register, or the buffer of a stream, is told of by the scalar.
    second = results[1].variable if len(results) > 1 else 0
    record(
        call,
        results=results,
        scalar=second if buffer is None else buffer.variable,
        variable=results[0].variable,
        address=_address(call),
    )
    return _moved(call, call.pointer())


def _store(call: CallArguments) -> Any:
    sources = [call[each.name] for each in call.row.parameters if each.is_source]
    sources = [one for one in sources if one is not call.get("mask")]
    if call.row.operation == "StoreMask" and (buffer := call.get("buffer")) is not None:
        return _store_mask_stream(call, buffer.variable)
    second = sources[1].variable if len(sources) > 1 else 0
    buffer = call.get("buffer")
    if (count := call.get("count")) is not None:
        call = _with_mask(call, first_lanes(call, int(count), sources[0].dtype.bits))
    record(
        call,
        sources=sources,
        scalar=second if buffer is None else buffer.variable,
        variable=sources[0].variable,
        address=_address(call),
    )
    return _moved(call, call.pointer())


def _with_mask(call: CallArguments, mask: MaskRegister) -> CallArguments:
    return replace(call, arguments={**call.arguments, "mask": mask})


def first_lanes(call: CallArguments, count: int, bits: int) -> MaskRegister:
    """Record and return the mask of the first lanes, as many as a count."""
    function, mask = call.function, MaskRegister(call.function)
    mask.value = function.new_value()
    kind = f"uint{max(bits, 8)}"
    mask_call = call_of("UpdateMask", kind, kind, "")
    function.take(mask_call, call.where, results=(mask.value,), scalar=count)
    return mask


def _store_mask_stream(call: CallArguments, buffer: int) -> Pointer:
    """Store a bit of each lane, as many bytes as the pointer's type says."""
    pointer, mask = call.pointer(), call["src"]
    size = pointer.dtype.size_bytes
    call.function.take(
        call_of("StoreMask", "uint8", "uint8", f"{MASK_STREAM}{8 * size}"),
        call.where,
        sources=(mask.value,),
        variable=mask.variable,
        address=pointer.address,
        scalar=buffer,
    )
    return pointer + REGISTER_BYTES // 8 // size // size


def _block_move(call: CallArguments) -> Any:
    """Record the eight blocks of a strided move; with a moved pointer it begins there."""
    loads = call.row.operation == "LoadBlock"
    register, pointer = (call["dst"], call["src"]) if loads else (call["src"], call["dst"])
    step = _BLOCK_BYTES * int(call["repeat_stride"])
    behind = replaced(pointer, pointer.cast("uint8") + step)
    begin = pointer if call.row.moves else behind
    for block in range(BLOCKS):
        of_block = replace(call, row=replace(call.row, mode=f"BLOCK{block}"))
        at = begin.cast("uint8") + _BLOCK_BYTES * int(call["block_stride"]) * block
        record(
            of_block,
            results=(register,) if loads else (),
            sources=(register,),
            variable=register.variable,
            address=at.address,
        )
    return behind if call.row.moves else None


def _gather(call: CallArguments) -> None:
    """Record a gather: a byte becomes a lane of 16 bits."""
    call.function.by_values = True
    dst, index = call["dst"], call["index"]
    whole = call.row.operation == "GatherB"
    lane = "uint16" if dst.dtype.bits == 8 and not whole else dst.dtype.name
    source = dst.dtype.name if whole else call["src"].dtype.name
    mode = "" if whole else f"uint{index.dtype.bits}"
    number = call.function.new_value()
    call.function.take(
        call_of(call.row.operation, lane, source, mode),
        call.where,
        results=(number,),
        sources=(index.value,),
        mask=call.mask(),
        variable=dst.variable,
        address=call["src"].address,
    )
    dst.value = number


def _scatter(call: CallArguments) -> None:
    call.function.by_values = True
    src, index = call["src"], call["index"]
    kind = src.dtype.name
    call.function.take(
        call_of("Scatter", kind, kind, f"uint{index.dtype.bits}"),
        call.where,
        sources=(src.value, index.value),
        mask=call.mask(),
        variable=src.variable,
        address=call["dst"].address,
    )


def _stream(call: CallArguments) -> Any:
    """Record a step of an unaligned stream that moves no lanes."""
    pointer, buffer, count = call.pointer(), call["buffer"], call.get("count")
    ar = call.row.operation == "StoreUnAlignPost" and count is None
    call.function.take(
        call_of(call.row.operation, "uint8", "uint8", "AR" if ar else ""),
        call.where,
        variable=buffer.variable,
        address=(pointer if count is None else pointer + count).address,
        scalar=buffer.variable,
    )
    return pointer if call.row.moves else None


def _squeeze(call: CallArguments) -> None:
    function, dst, src = call.function, call["dst"], call["src"]
    numbers = function.new_value(), function.new_value()
    function.take(
        issued_call(call), call.where, results=numbers, sources=(src.value,), mask=call.mask()
    )
    dst.value, function.counted = numbers


def _clear_ar(call: CallArguments) -> None:
    function = call.function
    function.ar = function.new_value()
    function.take(call_of("ClearSpr", "uint8", "uint8", ""), call.where, results=(function.ar,))


def _store_counted(call: CallArguments) -> Any:
    function, src, buffer = call.function, call["src"], call["buffer"]
    if function.is_ar_clear and function.ar == UNWRITTEN:
        _clear_ar(call)
    function.by_values = True
    kind = src.dtype.name
    function.take(
        call_of("StoreCounted", kind, kind, ""),
        call.where,
        sources=(src.value, function.counted, function.ar),
        variable=src.variable,
        address=call["dst"].address,
        scalar=buffer.variable,
    )
    total = function.new_value()
    function.take(
        call_of("AdvanceAR", "uint8", "uint8", ""),
        call.where,
        results=(total,),
        sources=(function.ar, function.counted),
    )
    function.ar = total
    return call["dst"]


def _new_mask(call: CallArguments, mode: str = "", scalar: int = 0) -> MaskRegister:
    mask, kind = MaskRegister(call.function), f"uint{call.row.bits}"
    mask.value = call.function.new_value()
    mask_call = call_of(call.row.operation, kind, kind, mode)
    call.function.take(mask_call, call.where, results=(mask.value,), scalar=scalar)
    return mask


def _pattern(call: CallArguments) -> MaskRegister:
    word = call["pattern"]
    if word not in PATTERN_WORDS:
        near = did_you_mean(word, PATTERN_WORDS)
        raise refuse(f"{call.row.name}.pattern", "be a word of asc_mask_pattern", word, near)
    return _new_mask(call, PATTERN_WORDS[word])


def _count(call: CallArguments) -> tuple[MaskRegister, int]:
    count, lanes = int(call["count"]), 8 * REGISTER_BYTES // call.row.bits
    if count < 0:
        raise refuse(f"{call.row.name}.count", "be 0 or more", count)
    taken = min(count, lanes)
    return _new_mask(call, scalar=taken), count - taken


def _barrier(call: CallArguments) -> None:
    word = call["type"]
    if word not in BARRIERS:
        near = did_you_mean(word, BARRIERS)
        raise refuse(f"{call.row.name}.type", "be a word of MEM_TYPE", word, near)
    before, behind = BARRIERS[word]
    barrier_call = call_of("LocalMemBar", "uint8", "uint8", before)
    call.function.take(barrier_call, call.where, scalar=_SIDES.index(behind))


BY_FORM: Mapping[Form, Recipe] = MappingProxyType(
    {
        **dict.fromkeys((Form.LOAD, Form.LOAD_PAIR, Form.LOAD_MASK), _load),
        **dict.fromkeys((Form.STORE, Form.STORE_PAIR, Form.STORE_MASK), _store),
        Form.GATHER: _gather,
        Form.SCATTER: _scatter,
        Form.STREAM: _stream,
        Form.COUNTED: _squeeze,
        Form.PATTERN: _pattern,
        Form.COUNT: _count,
        Form.MASK_BITS: _new_mask,
        Form.BARRIER: _barrier,
        Form.AR: _clear_ar,
        Form.STORE_COUNTED: _store_counted,
    }
)
"""Recipes for calls of a form; those of other forms are recorded alike."""
RECIPES: Mapping[str, Recipe] = MappingProxyType(
    {"LoadBlock": _block_move, "StoreBlock": _block_move}
)
"""Recipes by instruction, before those by form."""
