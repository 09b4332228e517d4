"""Calls of threads: what is written of memory when one begins, and what it leaves."""

import ctypes
from typing import TYPE_CHECKING

import numpy as np

from cubecore.frontends.cpp.launch.messages import Message, words
from cubecore.frontends.cpp.launch.recording.simt.findings import ThreadCall, logged
from cubecore.frontends.cpp.wire import SimtFinding
from cubecore.isa.declare.instruction import Mem
from cubecore.isa.vector.simt.thread_function import ThreadFunction
from cubecore.layouts import Runs

if TYPE_CHECKING:
    from cubecore.arrays import Array
    from cubecore.frontends.cpp.launch.recording.native_core import NativeCore
    from cubecore.isa.program.trace import Names
    from cubecore.machine.memory.buffers import GlobalMemory

UB_BYTES = 256 << 10
"""Bytes that threads have behind UB's addresses."""
_NONE, _ALL, _SOME = range(3)


class ThreadCalls:
    """The calls of threads of one launch."""

    def __init__(self, names: "Names") -> None:
        self._names, self._count = names, 0

    def begins(self, native_core: "NativeCore", message: Message) -> bytes:
        """Return what is written of global memory, and of UB where vector code calls threads."""
        is_grid = message.word()
        native_core.hand_over()
        core = native_core.handle.core
        core.flush()
        told = _arrays(core.gm)
        if is_grid:
            return told
        # The bytes of UB up to the last one that is written: those behind it are nobody's.
        memory = core.memory(Mem.UB)
        assert memory is not None
        used = np.flatnonzero(memory.valid)
        end = -(-(int(used[-1]) + 1) // 8) * 8 if used.size else 0
        marks = np.packbits(memory.valid[:end] != 0, bitorder="little")
        return told + words(end) + memory.data[:end].tobytes() + marks.tobytes()

    def ends(self, native_core: "NativeCore", message: Message) -> None:
        """Take what a call has left: findings, and the bytes that it wrote."""
        at, library = message.word(), message.text() or b""
        is_grid, threads, blocks = message.word(), message.word(), message.word()
        call = ThreadCall(library, bool(is_grid), threads, blocks, self._names.locations[at])
        size, count = ctypes.sizeof(SimtFinding), message.word()
        found = [SimtFinding.from_buffer_copy(message.raw(size)) for _ in range(count)]
        gm = native_core.handle.core.gm
        for _ in range(message.word()):
            _mark(gm, message.word(), message.raw(message.word()))
        # A kernel of threads holds nothing of UB behind its end; a function that vector code calls
        # does, and later instructions must find there what its threads left.
        template = ThreadFunction(number=self._count)
        if not is_grid:
            read, changed = (_runs(message.raw(UB_BYTES // 8)) for _ in range(2))
            values = message.raw(sum(high - low for low, high in changed))
            template = ThreadFunction(number=self._count, read=read, written=changed, values=values)
        self._count += 1
        kinds = np.array([self._names.kind(template)], np.uint32)
        native_core.take(kinds, np.array(template.addresses, np.int64), at)
        logged(native_core, call, found)


def _arrays(gm: "GlobalMemory") -> bytes:
    """Return where the arrays of global memory lie, and which of their bytes are written."""
    # Most arrays are written as a whole or not at all: only the marks of others are handed over.
    told = [words(len(gm.tensors))]
    for tensor in gm.tensors:
        gm.settle(tensor, tensor.address, tensor.end)
        valid = tensor.buffer.valid
        count = int(np.count_nonzero(valid))
        state = _ALL if count == valid.size else _SOME if count else _NONE
        told.append(words(tensor.address, tensor.end, state))
        if state == _SOME:
            told.append(np.packbits(valid != 0, bitorder="little").tobytes())
    return b"".join(told)


def _mark(gm: "GlobalMemory", address: int, bits: bytes) -> None:
    """Mark bytes of an array that threads have written."""
    tensor = gm.at(address)
    assert tensor is not None
    valid = tensor.buffer.valid
    marks = np.unpackbits(np.frombuffer(bits, np.uint8), bitorder="little")[: valid.size]
    np.maximum(valid, marks, out=valid)


def _runs(bits: bytes) -> Runs:
    """Return the runs of bytes that are marked."""
    marks: Array = np.unpackbits(np.frombuffer(bits, np.uint8), bitorder="little")
    # Where marks change: up at the first byte of a run, down behind its last one.
    edges = np.flatnonzero(np.diff(np.concatenate([[0], marks, [0]]).astype(np.int8)))
    return tuple((int(low), int(high)) for low, high in edges.reshape(-1, 2))
