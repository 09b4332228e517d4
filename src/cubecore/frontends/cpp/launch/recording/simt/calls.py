"""Calls of threads: what is written of memory when one begins, and what it leaves."""

import ctypes
from dataclasses import fields, replace
from typing import TYPE_CHECKING

import numpy as np

from cubecore.frontends.cpp.launch.messages import Message, words
from cubecore.frontends.cpp.launch.recording.simt.findings import ThreadCall, logged
from cubecore.frontends.cpp.wire import Asks, SimtFinding, ThreadCounts
from cubecore.isa.declare.instruction import Mem
from cubecore.isa.vector.simt.thread_function import ThreadFunction
from cubecore.isa.vector.simt.thread_work import ThreadWork
from cubecore.layouts import Runs

if TYPE_CHECKING:
    from cubecore.frontends.cpp.launch.recording.native_core import NativeCore
    from cubecore.isa.program.trace import Names
    from cubecore.machine.memory.buffers import GlobalMemory

UB_BYTES = 256 << 10
"""Bytes that threads have behind UB's addresses."""
_NONE, _ALL, _SOME, _UNKNOWN = range(4)


class ThreadCalls:
    """The calls of threads of one launch."""

    def __init__(self, names: "Names") -> None:
        self._names, self._count = names, 0
        self._begun: set[tuple[str, int]] = set()
        self._shares: dict[int, ThreadWork] = {}

    def answer(self, native_core: "NativeCore", message: Message, kernel: int) -> bytes | None:
        """Answer a message; `kernel` is the number of the kernel's location."""
        if message.what == Asks.SIMT_BEGINS:
            return self.begins(native_core, message)
        if message.what == Asks.SIMT_MARKS:
            return _marks(native_core.handle.core.gm, message.word(), message.word())
        take = self.ends if message.what == Asks.SIMT_ENDS else self.shares
        take(native_core, message, kernel)
        return None

    def begins(self, native_core: "NativeCore", message: Message) -> bytes:
        """Return where arrays lie, and what is written of UB where vector code calls threads."""
        is_grid = message.word()
        native_core.hand_over()
        core = native_core.handle.core
        if is_grid:  # the first core's first call: nothing else has been issued
            return _arrays(core.gm)
        core.flush()
        arrays = _arrays(core.gm)
        # The bytes of UB up to the last one that is written: those behind it are nobody's.
        memory = core.memory(Mem.UB)
        assert memory is not None
        end = -(-len(memory.valid.tobytes().rstrip(b"\0")) // 8) * 8
        marks = np.packbits(memory.valid[:end] != 0, bitorder="little")
        return arrays + words(end) + memory.data[:end].tobytes() + marks.tobytes()

    def ends(self, native_core: "NativeCore", message: Message, kernel: int) -> None:
        """Take what a call has left: findings, and the bytes that it wrote.

        `kernel` is the number of the kernel's location.
        """
        at, library = message.word(), message.text() or b""
        is_grid, threads, blocks = message.word(), message.word(), message.word()
        at = kernel if is_grid else at
        call = ThreadCall(library, bool(is_grid), threads, blocks, self._names.locations[at])
        size, count = ctypes.sizeof(SimtFinding), message.word()
        found = [SimtFinding.from_buffer_copy(message.raw(size)) for _ in range(count)]
        block, at_once = message.word(), message.word()
        works = [self._work(message) for _ in range(message.word())]
        gm = native_core.handle.core.gm
        for _ in range(message.word()):
            _mark(gm, message.word(), message.raw(message.word()))
        # A kernel of threads holds nothing of UB behind its end; a function that vector code calls
        # does, and later instructions must find there what its threads left.
        work = works[0] if works else None
        if is_grid:
            works = [replace(each, starts=each.calls * len(works)) for each in works]
            self._shares = dict(enumerate(works))
            template = ThreadFunction(number=self._count, work=self._shares.pop(0, None))
        else:
            begun = (str(native_core.handle.core.id), block)
            if work is not None and begun not in self._begun:
                self._begun.add(begun)
                work = replace(work, starts=at_once)
            read, changed = (_runs(message.raw(UB_BYTES // 8)) for _ in range(2))
            values = message.raw(sum(high - low for low, high in changed))
            template = ThreadFunction(
                number=self._count, read=read, written=changed, values=values, work=work
            )
        self._issue(native_core, template, at)
        logged(native_core, call, found)

    def shares(self, native_core: "NativeCore", message: Message, kernel: int) -> None:
        """Issue the blocks that a core takes of a kernel of threads, which the first core ran."""
        work = self._shares.pop(message.word(), None)
        if work is not None and work.calls:
            self._issue(native_core, ThreadFunction(number=self._count, work=work), kernel)

    def _issue(self, native_core: "NativeCore", template: ThreadFunction, at: int) -> None:
        self._count += 1
        kinds = np.array([self._names.kind(template)], np.uint32)
        native_core.take(kinds, np.array(template.addresses, np.int64), at)

    @staticmethod
    def _work(message: Message) -> ThreadWork:
        counts = ThreadCounts.from_buffer_copy(message.raw(ctypes.sizeof(ThreadCounts)))
        return ThreadWork(*(getattr(counts, field.name) for field in fields(ThreadWork)))


def _arrays(gm: "GlobalMemory") -> bytes:
    """Return where the arrays of global memory lie, and which are written as a whole."""
    listed = [words(len(gm.tensors))]
    for tensor in gm.tensors:
        state = _ALL if tensor.buffer.marks.whole else _UNKNOWN
        listed.append(words(tensor.address, tensor.end, state))
    return b"".join(listed)


def _marks(gm: "GlobalMemory", address: int, size: int) -> bytes:
    """Return which bytes of a part of an array are written."""
    tensor = gm.at(address)
    assert tensor is not None
    gm.settle(tensor, address, address + size)
    start = address - tensor.address
    valid = tensor.buffer.valid[start : start + size]
    count = int(np.count_nonzero(valid))
    if count in {0, valid.size}:
        return words(_ALL if count else _NONE)
    return words(_SOME) + np.packbits(valid != 0, bitorder="little").tobytes()


def _mark(gm: "GlobalMemory", address: int, bits: bytes) -> None:
    """Mark bytes of a part of an array that threads have written."""
    tensor = gm.at(address)
    assert tensor is not None
    valid = tensor.buffer.valid[address - tensor.address :]
    valid = valid[: len(bits) * 8]
    marks = np.unpackbits(np.frombuffer(bits, np.uint8), bitorder="little")[: valid.size]
    np.maximum(valid, marks, out=valid)


def _runs(bits: bytes) -> Runs:
    """Return the runs of bytes that are marked."""
    marks = np.zeros(len(bits) * 8 + 2, np.bool_)
    marks[1:-1] = np.unpackbits(np.frombuffer(bits, np.uint8), bitorder="little")
    # Where marks change: up at the first byte of a run, down behind its last one.
    edges = np.flatnonzero(marks[1:] != marks[:-1])
    return tuple((int(low), int(high)) for low, high in edges.reshape(-1, 2))
