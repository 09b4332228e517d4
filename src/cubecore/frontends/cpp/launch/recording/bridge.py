"""Between the C++ runtime and the recorder: numbers of calls and lines, and what a core asks.

The runtime writes kinds, lines and addresses in the recorder's own numbers into pages that this
process sees, and asks when it meets a call or a line for the first time, when the pages are full,
and when a kernel needs a value. A core that something is raised for does not go on.
"""

import ctypes
import struct
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np

from cubecore.dtypes import element_type
from cubecore.errors import CubecoreError, refuse, shortened, unable
from cubecore.frontends.capi.calls.binding import BoundCall
from cubecore.frontends.capi.calls.bound_calls import bound_call
from cubecore.frontends.capi.core_handle import CoreHandle
from cubecore.frontends.capi.pointer import Pointer
from cubecore.frontends.cpp.launch.child_process import Child
from cubecore.frontends.cpp.launch.device_memory import DeviceMemory
from cubecore.frontends.cpp.launch.messages import Message, text, words
from cubecore.frontends.cpp.launch.recording.call_steps import runtime_steps
from cubecore.frontends.cpp.launch.recording.modes import BlockPatterns
from cubecore.frontends.cpp.launch.recording.native_core import NativeCore
from cubecore.frontends.cpp.launch.recording.registered import RegisteredKernel
from cubecore.frontends.cpp.launch.recording.scalar_reads import ScalarReads, around
from cubecore.frontends.cpp.launch.recording.stacks import Stacks, line_of
from cubecore.frontends.cpp.toolchain.elf import object_at
from cubecore.frontends.cpp.toolchain.spelling import function_as_written
from cubecore.frontends.cpp.wire import HOST_CODE, Asks, CallFlags, Commands, Launch, Step, Tells
from cubecore.frontends.source_locations import KernelError, LaunchSizeError, shown_path
from cubecore.isa.declare.instruction import Mem
from cubecore.isa.program.trace import Names
from cubecore.isa.program.tree import Location
from cubecore.isa.scalar.sync import WaitFlagDev
from cubecore.isa.vector.common.mask import SetVectorMask
from cubecore.isa.vector.registers.vector_function import VectorFunction
from cubecore.machine.debug.matrix_view import view
from cubecore.machine.group.recorder import Recorder
from cubecore.machine.memory.local_arrays import LocalArrays
from cubecore.machine.sanitize.findings import SanitizerFinding

if TYPE_CHECKING:
    from cubecore.frontends.cpp.launch.recording.matmul_object.requests import MatmulRequests
    from cubecore.frontends.cpp.launch.recording.simt.calls import ThreadCalls

MEMORIES = (Mem.GM, Mem.UB, Mem.L1, Mem.L0A, Mem.L0B, Mem.L0C, Mem.BT, Mem.FB)
GM_PAST_CACHE = 0x80
"""The number of global memory for the scalar unit without its data cache, as abi.h has it."""
_MIX = 2
"""Codes from here on are notes: numbers of sentences that a call brings with it."""


class HostQuestion(NamedTuple):
    """A question of host code: the numbers and the text of cubecore_host."""

    what: int
    a: int
    b: int
    text: str
    entry: int
    context: int


HostAnswer = Callable[[HostQuestion], int | bytes]
"""Answers a question of host code: with a number, or with bytes for the address `a`."""


def _no_host(_: HostQuestion) -> int:
    """Refuse what a kernel asks as host code would."""
    raise unable("the kernel", "the kernel, or a variable's initialiser, calls a host function")


class Bridge:
    """The runtime of a launch or program in its process; `host` takes what host code asks."""

    def __init__(self, child: Child, host: HostAnswer = _no_host) -> None:
        self._child, self._host = child, host
        self._names: Names | None = None
        self._patterns: BlockPatterns | None = None
        self._cores: list[NativeCore] = []
        self._requests: MatmulRequests | None = None
        self._calls: ThreadCalls | None = None
        self._begin = Location("", 0, "")
        self._notes: list[tuple[str, ...]] = [()]
        self._files: dict[bytes, str] = {}
        self._reads: ScalarReads | None = None
        self._stacks = Stacks()
        self._constants: dict[tuple[Path, int], int] = {}

    def go_ahead(self, gm: DeviceMemory, *, ahead: bool) -> None:
        """Open the pages of a launch's arrays to pointers, and no others.

        With `ahead` cores go on behind waits until they touch one of these pages, and read UB
        ahead, too. Where they must not, `Child.ask`, or the executor, raises that the launch must
        run again without.
        """
        arrays = [(gm.base + start, end - start) for start, end in gm.array_pages]
        message = words(gm.base, gm.shared.size, ahead, len(arrays))
        self._child.tell(Commands.AHEAD, message, *(words(*each) for each in arrays))

    @property
    def read_ahead(self) -> bool:
        """True if the runtime has answered a read."""
        return self._reads is not None and self._reads.answered_any

    @property
    def names(self) -> Names:
        """The numbers that kinds and lines have in this launch."""
        assert self._names is not None
        return self._names

    def restart(self) -> None:
        """Forget the numbers of the launch before."""
        self._child.tell(Commands.RESET)
        self._names, self._patterns, self._reads, self._notes = None, None, None, [()]
        self._stacks = Stacks()
        self._cores.clear()
        self._requests = self._calls = None

    def registered(self) -> list[RegisteredKernel]:
        """Return the kernels of the program's files; what is loaded next is their other part."""
        answer = self._child.tell(Commands.KERNELS)
        return [
            RegisteredKernel(
                answer.said(), answer.said(), answer.said(), answer.word(), bool(answer.word())
            )
            for _ in range(answer.word())
        ]

    def in_other_part(self, entry: int) -> int:
        """Return the same launch in the library of the other part, 0 if it has none."""
        return self._child.tell(Commands.PAIRED, words(entry)).word()

    def start(self, program: int, given: Sequence[bytes]) -> int:
        """Run a host program's main; return its code.

        Raises
        ------
        KernelError
            If one of the program's kernels fails.
        """
        message = self._child.ask(Commands.START, words(program, len(given)), *map(text, given))
        while message.what == Asks.HOST:
            message = self.answer_host(message)
        return message.word()

    def answer_host(self, message: Message) -> Message:
        """Answer host code; return the next message."""
        asked = HostQuestion(
            message.word(), message.word(), message.word(), message.said(), *_words(message, 2)
        )
        answer = self._host(asked)
        raw = b"" if isinstance(answer, int) else answer
        number = answer if isinstance(answer, int) else len(answer)
        return self._child.ask(Commands.ANSWER, words(HOST_CODE, number), text(raw))

    def run(
        self,
        handle: CoreHandle,
        entry: int,
        given: Sequence[int] | int,
        launch: Launch,
        at: Location,
    ) -> None:
        """Run an entry of a library on a core, to its end: `given` are words, or their address.

        Raises
        ------
        KernelError
            If the kernel fails.
        """
        core, child, self._begin = handle.core, self._child, at
        if self._names is None:
            self._names = core.trace.names if isinstance(core, Recorder) else Names()
            self._names.with_callers = self._stacks.with_callers
            core.gm.local_arrays = LocalArrays(by_addresses=True)
        if self._patterns is None or self._reads is None:
            self._patterns, self._reads = BlockPatterns(self.names), ScalarReads(self.names)
        number = len(self._cores)
        native_core = NativeCore(handle, number, launch, self.names, self._patterns, self._reads)
        self._cores.append(native_core)
        # From here on the child leads: it runs the kernel, and each message either is its end, a
        # host question, or a question of the core (`_answers`), which is answered before it goes
        # on. What it had recorded before comes with the message and is taken first.
        own, address = (given, 0) if not isinstance(given, int) else ((), given)
        begin, end = words(number, entry, address), words(len(own), *own)
        message = child.ask(Commands.ENTER, begin, bytes(launch), end)
        while True:
            if message.recorded or message.reads:
                native_core.recorded(*child.recorded(message))
            if message.what == Asks.ENDED:
                self._take_workspaces(handle, message, launch.gm_base)
                break
            if message.what == Asks.HOST:
                message = self.answer_host(message)
                continue
            answer = self._answers[message.what](self, native_core, message) or b""
            message = child.ask(Commands.ANSWER, words(number), answer)
        if self._requests is not None or launch.task == _MIX:
            self._matmul_requests().ended(native_core, self.names.location_number(at))
        native_core.hand_over()

    @staticmethod
    def _take_workspaces(handle: CoreHandle, ended: Message, base: int) -> None:
        """Take the tensors that the kernel has called workspaces as scratch."""
        gm = handle.core.gm
        for pointer in _words(ended, ended.word()):
            tensor = gm.at(pointer - base)
            if tensor is not None:
                tensor.buffer.marks.scratch = True

    # --- what is met for the first time

    def _where(self, _: NativeCore, message: Message) -> bytes:
        where, by_pointer = self._location(message), message.word()
        library, trail = message.text(), message.numbers("Q", message.word())
        if by_pointer and library is not None:
            where = line_of(library, trail[0]) or (where if where.file else self._begin)
        return words(self._stacks.number(self.names, where, library, trail))

    def told(self, findings: Iterable[SanitizerFinding]) -> tuple[SanitizerFinding, ...]:
        """Return findings whose locations say by which calls the kernel came there."""
        return self._stacks.told(findings)

    def _location(self, message: Message) -> Location:
        file, function, line = message.text() or b"", message.said(), message.word()
        shown = self._files.get(file)
        if shown is None:
            named = file.decode("utf-8", "replace")
            shown = self._files[file] = shown_path(named) if named else ""
        return Location(shown, line, shortened(function_as_written(function)))

    def _miss(self, native_core: NativeCore, message: Message) -> bytes:
        where, name = self._location(message), message.said()
        arguments, keywords = _decoded(message)
        try:
            bound = bound_call(name, arguments, keywords, native_core.handle.core.chip.arch)
        except CubecoreError as error:
            raise KernelError.at(where, error) from None
        # The runtime keeps the answer and makes the call by itself the next time. Its steps carry
        # the templates' numbers (`kind`) in the first word; a note is the number of a sentence
        # which it sends back when it finds the situation that the sentence is about.
        runtime, note = runtime_steps(bound), 0
        if bound.dropped:
            note = self._noted(bound.dropped, bound.steps[0][0].name)
        elif bound.counted:
            note = self._noted(name, str(runtime.count))
        elif bound.masked:
            note = self._noted(bound.steps[0][0].name)
        steps = bytearray(runtime.raw)
        for number, (template, _) in enumerate(bound.steps):
            kind = self.names.kind(template)
            struct.pack_into("<I", steps, number * ctypes.sizeof(Step), kind)
        return words(self._flags(bound), note, len(bound.steps)) + steps

    def _vector_function(self, _: NativeCore, message: Message) -> bytes:
        from cubecore.frontends.cpp.launch.recording.vector_functions import (  # few have one
            ENTRY_BYTES,
            vector_function,
        )

        where = self._location(message)
        texts = {message.word(): message.said() for _ in range(message.word())}
        raw = message.raw(message.word() * ENTRY_BYTES)
        bound = vector_function(raw, texts, where, lambda file, line: self._at(file, line, where))
        template = bound.steps[0][0]
        assert isinstance(template, VectorFunction)
        steps = bytearray(runtime_steps(bound).raw)
        struct.pack_into("<I", steps, 0, self.names.kind(template))
        starts = [runs[0][0] for _, runs in template.spans]
        return words(len(starts), *starts) + steps

    def _at(self, file: str, line: int, within: Location) -> Location:
        return replace(within, file=shown_path(file), line=line)

    def _flags(self, bound: BoundCall) -> int:
        first = bound.steps[0][0]
        flags = CallFlags.MASKED if bound.masked else 0
        flags |= CallFlags.COUNTED if bound.counted else 0
        if not bound.counted and isinstance(first, SetVectorMask):
            flags |= CallFlags.SETS_MASK
        if isinstance(first, WaitFlagDev):
            flags |= CallFlags.WAITS
        return flags | (CallFlags.DROPPED if bound.dropped else 0)

    def _noted(self, *note: str) -> int:
        self._notes.append(note)
        return len(self._notes) - 1

    # --- what a core needs

    def _pause(self, native_core: NativeCore, _: Message) -> None:
        native_core.hand_over()

    def _ask(self, native_core: NativeCore, message: Message) -> bytes:
        native_core.hand_over()
        template, result = self.names.templates[message.word()], message.word()
        return words(native_core.handle.core.scalars(template)[result])

    def _load(self, native_core: NativeCore, message: Message) -> bytes:
        number, address, at, kind, wanted = message.numbers("q", 5)
        core = native_core.handle.core
        assert self._reads is not None
        past = number == GM_PAST_CACHE
        mem = Mem.GM if past else MEMORIES[number]
        load = self._reads.load(mem, kind, at, message.said, past=past)
        native_core.hand_over()
        native_core.handle.issues.read(load.location)
        if load.by_cache:
            native_core.behind(address, address + load.element.size_bytes, load.location)
        value = core.load_scalar(load, address)
        low, near = around(core, load, address, wanted)
        return words(value, load.element.size_bytes, low) + text(near)

    def _text(self, native_core: NativeCore, message: Message) -> None:
        what, at, stale, stale_note = _words(message, 4)
        texts = [message.said() for _ in range(3)]
        locations = self.names.locations
        where = locations[at] if at < len(locations) and locations[at].file else self._begin
        if what == Tells.PRINT:
            native_core.handle.show(texts[0].removesuffix("\n"))
            return
        if what == Tells.ARRAY:
            number, low, high = map(int, texts[0].split())
            native_core.handle.core.gm.local_arrays.declare(MEMORIES[number], low, high)
            return
        if what in {Tells.REFUSAL, Tells.SIZE}:
            got, _, remedy = texts[2].partition("\n")
            failed = LaunchSizeError if what == Tells.SIZE else KernelError
            raise failed.at(where, refuse(texts[0], texts[1], got, remedy))
        if what == Tells.THROWN:
            got = f"the kernel threw an exception: {' '.join(texts[0].split())}"
            raise KernelError.at(where, unable("the kernel", got))
        native_core.hand_over()
        if what == Tells.FINDING:
            native_core.handle.log(texts[0], f"{texts[1]}: {texts[2]}", texts[1], where)
        elif what == Tells.FLUSH:
            native_core.flush()
        elif what == Tells.BUFFER:
            native_core.judge_buffer(where, *map(int, texts[0].split()))
        elif what >= Tells.NOTE:
            self._note(native_core, self._notes[what - Tells.NOTE], where, stale, stale_note)

    def _note(
        self,
        native_core: NativeCore,
        note: tuple[str, ...],
        where: Location,
        stale: int,
        stale_note: int,
    ) -> None:
        """Log the sentence that a call brings with it: a stale mask, or bytes that stay behind.

        `stale` is the number of the location, from 1, that left the count; `stale_note` its note's.
        """
        if len(note) == 2:
            native_core.handle.log("parameter", note[0], note[1], where)
            return
        call, count = self._notes[stale_note]
        left = self.names.locations[stale - 1]
        message = (
            f"{note[0]} must run under a mask that was set for it, got the count {count} "
            f"that {call} left at {left}; call asc_set_vector_mask first"
        )
        native_core.handle.log("stale-mask", message, note[0], where)

    def _matmul_requests(self) -> "MatmulRequests":
        if self._requests is None:
            from cubecore.frontends.cpp.launch.recording.matmul_object.requests import (
                MatmulRequests,
            )

            self._requests = MatmulRequests(self.names)
        return self._requests

    def _matmul(self, native_core: NativeCore, message: Message) -> bytes:
        what, at = message.word(), message.word()
        number, raw = message.signed(), message.raw(message.word())
        requests = self._matmul_requests()
        call = requests.call(raw, [message.text() for _ in range(4)]) if raw else None
        native_core.hand_over()
        return words(requests.asked(native_core, what, call, number, at))

    def _thread_calls(self) -> "ThreadCalls":
        if self._calls is None:
            from cubecore.frontends.cpp.launch.recording.simt.calls import ThreadCalls

            self._calls = ThreadCalls(self.names)
        return self._calls

    def _simt(self, native_core: NativeCore, message: Message) -> bytes | None:
        kernel = self.names.location_number(self._begin)
        return self._thread_calls().answer(native_core, message, kernel)

    def _constant(self, native_core: NativeCore, message: Message) -> bytes:
        """Return where a constant of a library begins in it, its bytes, and its global address."""
        library, address = Path(message.said()), message.word()
        where = self._location(message)
        found = object_at(library, address)
        if found is None:
            return words(0, 0, 0)
        placed = self._constants.get((library, found.address))
        if placed is None:
            if found.constant is None:
                need, got = (
                    "be a constant to be read as global memory",
                    "a variable of the kernel's",
                )
                error = refuse(found.name, need, got)
                raise KernelError.at(where if where.file else self._begin, error)
            raw = np.frombuffer(found.constant, np.uint8)
            placed = native_core.handle.core.gm.allocate_from(found.name, raw).address
            self._constants[library, found.address] = placed
        return words(found.address, found.size, placed)

    def _dump(self, native_core: NativeCore, message: Message) -> None:
        mem, address = MEMORIES[message.word()], message.signed()
        desc, at = message.word(), message.word()
        where, element = self.names.locations[at], element_type(message.said())
        extents = message.numbers("I", message.word())
        native_core.hand_over()
        native_core.handle.issues.one(where)
        native_core.handle.core.flush()
        try:
            matrix = view(native_core.handle.core, mem, address, element, extents, "ND")
        except CubecoreError as error:
            raise KernelError.at(where, error) from None
        native_core.handle.show(f"desc {desc} at {where}: {matrix}")

    def _dump_register(self, native_core: NativeCore, message: Message) -> None:
        from cubecore.frontends.cpp.launch.recording.vector_functions import dumped_register

        desc, where = message.word(), self.names.locations[message.word()]
        within = self._location(message)
        native_core.hand_over()
        native_core.handle.issues.one(where)
        core = native_core.handle.core
        core.flush()
        said = dumped_register(message, core, lambda file, line: self._at(file, line, within))
        native_core.handle.show(f"desc {desc} at {where}: {said}")

    _answers: ClassVar[dict[int, Callable[["Bridge", NativeCore, Message], bytes | None]]] = {
        Asks.MISS: _miss,
        Asks.VECTOR_FUNCTION: _vector_function,
        Asks.WHERE: _where,
        Asks.PAUSE: _pause,
        Asks.ASK: _ask,
        Asks.LOAD: _load,
        Asks.TEXT: _text,
        Asks.DUMP: _dump,
        Asks.DUMP_REGISTER: _dump_register,
        Asks.MATMUL: _matmul,
        Asks.CONSTANT: _constant,
        **dict.fromkeys(Asks.of_threads(), _simt),
    }
    """The method that answers each kind of question of a core."""


def _words(message: Message, count: int) -> list[int]:
    """Return the next words of a message."""
    return [message.word() for _ in range(count)]


def _decoded(message: Message) -> tuple[list[Any], dict[str, Any]]:
    """Return the arguments of a call, and those given by name."""
    arguments: list[Any] = []
    keywords: dict[str, Any] = {}
    for _ in range(message.word()):
        tag, name = message.word(), message.said()
        value: Any
        if tag & 0xF == 1:
            value = Pointer(MEMORIES[tag >> 4], element_type(message.said()), 0, _NOBODY)
        elif tag & 0xF == 3:
            (value,) = struct.unpack("<d", message.raw(8))
        elif tag & 0xF == 4:
            value = message.said()
        else:
            value = message.word() if tag & 0xF == 5 else message.signed()
        if name:
            keywords[name] = value
        else:
            arguments.append(value)
    return arguments, keywords


class _Nobody:
    """Reads no values: C++ reads them itself."""

    def load(self, pointer: Pointer) -> Any:
        raise AssertionError(f"{pointer} is read by C++")


_NOBODY = _Nobody()
