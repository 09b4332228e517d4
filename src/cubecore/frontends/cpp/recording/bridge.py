"""Between the C++ runtime and the recorder: numbers of calls and lines, and what a core asks.

The runtime writes kinds, lines and addresses in the recorder's own numbers into a core's buffers
(`CoreState`), and comes here when it meets a call or a line for the first time, when a buffer is
full, and when a kernel needs a value. Nothing raised here may pass through C++: it is kept, the
runtime is told to stop, and it is raised again when the kernel has unwound.
"""

import ctypes
import struct
from collections.abc import Callable, Iterable, Iterator
from ctypes import POINTER
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from cubecore.dtypes import element_type
from cubecore.errors import CubecoreError, refuse, shortened, unable
from cubecore.frontends.capi.binding import BoundCall
from cubecore.frontends.capi.core_handle import CoreHandle
from cubecore.frontends.capi.pointer import Pointer
from cubecore.frontends.cpp.recording.known_calls import known_call
from cubecore.frontends.cpp.recording.modes import BlockPatterns
from cubecore.frontends.cpp.recording.native_core import NativeCore
from cubecore.frontends.cpp.recording.stacks import Stacks
from cubecore.frontends.cpp.recording.structures import (
    BridgeLaunch,
    Callbacks,
    CoreState,
    OnAsk,
    OnDump,
    OnHost,
    OnLoad,
    OnMatmul,
    OnMiss,
    OnPause,
    OnText,
    OnWhere,
    ProgramKernel,
    RegisteredKernel,
)
from cubecore.frontends.cpp.signature import function_as_written
from cubecore.frontends.source_locations import KernelError, shown_path
from cubecore.isa.declare.instruction import Mem
from cubecore.isa.program.expr import Expr, Var
from cubecore.isa.program.trace import Names
from cubecore.isa.program.tree import LoadScalar, Location
from cubecore.isa.scalar.sync import WaitFlagDev
from cubecore.isa.vector.common.mask import SetVectorMask
from cubecore.machine.debugger.matrix_view import view
from cubecore.machine.lockstep.recorder import Recorder
from cubecore.machine.sanitizer.findings import SanitizerFinding

if TYPE_CHECKING:
    from cubecore.frontends.cpp.recording.matmul_object.requests import MatmulRequests

MEMORIES = (Mem.GM, Mem.UB, Mem.L1, Mem.L0A, Mem.L0B, Mem.L0C, Mem.BT, Mem.FB)
_WAITS, _MASKED, _COUNTED, _SETS_MASK, _DROPPED = 1, 2, 4, 8, 16
_NOTE = 64
_MIX = 2
"""Codes from here on are notes: numbers of sentences that a call brings with it."""


@lru_cache(maxsize=4)
def loaded_runtime(path: str) -> ctypes.PyDLL:
    """Return the runtime's library; processes that are forked from here have it, too."""
    return ctypes.PyDLL(path, mode=ctypes.RTLD_GLOBAL)


class Bridge:
    """The runtime of one launch, in the process that runs it."""

    def __init__(self, runtime: str, page: int, names: Names | None = None) -> None:
        self._library = loaded_runtime(runtime)
        self._library.cubecore_core.restype = POINTER(CoreState)
        self._library.cubecore_guard(ctypes.c_void_p(page))
        self._names = names
        self._patterns: BlockPatterns | None = None
        self._cores: list[NativeCore] = []
        self._requests: MatmulRequests | None = None
        self._error: BaseException | None = None
        self._running = 0
        self._begin = Location("", 0, "")
        self._notes: list[tuple[str, ...]] = [()]
        self._files: dict[bytes, str] = {}
        self._stacks = Stacks()
        guarded = self._guarded
        self._callbacks = Callbacks(
            OnMiss(guarded(self._miss)),
            OnWhere(guarded(self._where, failed=-1)),
            OnPause(guarded(self._pause)),
            OnAsk(guarded(self._ask)),
            OnLoad(guarded(self._load)),
            OnText(guarded(self._text)),
            OnDump(guarded(self._dump)),
            OnMatmul(guarded(self._matmul)),
        )
        self._library.cubecore_bind(ctypes.byref(self._callbacks))

    def go_ahead(self, base: int, guarded: int) -> None:
        """Let cores go on behind waits until they touch one of so many bytes from a host address.

        Raises from `child.answered` what says that the launch must run again without.
        """
        self._library.cubecore_go_ahead(ctypes.c_uint64(base), ctypes.c_uint64(guarded))

    @property
    def names(self) -> Names:
        """The numbers that kinds and lines have in this launch."""
        assert self._names is not None
        return self._names

    def restart(self) -> None:
        """Forget the numbers of the launch before."""
        self._library.cubecore_reset()
        self._names, self._patterns, self._notes = None, None, [()]
        self._stacks = Stacks()
        self._cores.clear()
        self._requests = None

    def registered(self) -> Iterator[RegisteredKernel]:
        """Yield the kernels of the program's files."""
        ask = self._library.cubecore_registered
        ask.restype = POINTER(ProgramKernel)
        number = 0
        while entry := ask(number):
            facts = entry.contents
            name, kind, file = (
                text.decode("utf-8", "replace") for text in (facts.name, facts.kind, facts.file)
            )
            yield RegisteredKernel(name, kind, file, facts.line, bool(facts.auto_sync))
            number += 1

    def other_part(self) -> None:
        """Say that the library that is loaded next has the other part of the kernels."""
        self._library.cubecore_other_part()

    def in_other_part(self, entry: int) -> int | None:
        """Return the same launch in the library of the other part, if it has it."""
        find = self._library.cubecore_in_other_part
        find.restype, find.argtypes = ctypes.c_void_p, [ctypes.c_void_p]
        found: int | None = find(entry)
        return found

    def start(self, program: Any, words: Any, count: int, answer: Callable[..., None]) -> int:
        """Run a host program's main; `answer` takes what it asks.

        Raises
        ------
        KernelError
            If one of the program's kernels fails.
        """
        asked = OnHost(self._guarded(answer))
        self._library.cubecore_bind_host(asked)
        code: int = self._library.cubecore_start(program, count, words)
        error, self._error = self._error, None
        if error is not None:
            raise error
        return code

    def run(
        self, handle: CoreHandle, entry: Any, words: Any, launch: BridgeLaunch, at: Location
    ) -> None:
        """Run an entry of a library on a core, to its end.

        Raises
        ------
        KernelError
            If the kernel fails.
        """
        core, self._begin = handle.core, at
        if self._names is None:
            self._names = core.trace.names if isinstance(core, Recorder) else Names()
        if self._patterns is None:
            self._patterns = BlockPatterns(self.names)
        state = self._library.cubecore_core(len(self._cores)).contents
        state.launch = launch
        native_core = NativeCore(handle, state, self.names, self._patterns)
        self._cores.append(native_core)
        self._running += 1
        code = self._library.cubecore_run(ctypes.byref(state), entry, words)
        self._running -= 1
        if code == 0:
            if self._requests is not None or launch.task == _MIX:
                self._matmul_requests().ended(native_core, self.names.location_number(at))
            native_core.hand_over()
            self._library.cubecore_done(ctypes.byref(state))
            return
        error, self._error = self._error, None
        if error is None:
            error = KernelError.at(at, unable("the kernel", "the kernel threw an exception"))
        raise error

    def _guarded(self, work: Callable[..., int | None], failed: int = 1) -> Callable[..., int]:
        def call(*arguments: Any) -> int:
            try:
                return work(*arguments) or 0
            except BaseException as error:  # noqa: BLE001 - it may not pass through C++
                self._error = error
                return failed

        return call

    # --- what is met for the first time

    def _where(self, at: Any, library: bytes | None, trail: Any, depth: int) -> int:
        where = self._location_at(at)
        return self._stacks.number(self.names, where, library, tuple(trail[:depth]))

    def told(self, findings: Iterable[SanitizerFinding]) -> tuple[SanitizerFinding, ...]:
        """Return findings whose locations say by which calls the kernel came there."""
        return self._stacks.told(findings)

    def _location_at(self, at: Any) -> Location:
        location = at.contents
        return self._location(location.file, location.line, location.function)

    def _location(self, file: bytes, line: int, function: bytes) -> Location:
        shown = self._files.get(file)
        if shown is None:
            shown = self._files[file] = shown_path(file.decode("utf-8", "replace"))
        return Location(shown, line, shortened(function_as_written(function.decode())))

    def _miss(self, call: bytes, key: Any, words: int, pointers: int, at: Any, entry: Any) -> None:
        where, name = self._location_at(at), call.decode()
        arguments, keywords = _decoded(key, words)
        chip = self._cores[-1].handle.core.chip
        try:
            call_ = known_call(name, arguments, keywords, chip.arch)
        except CubecoreError as error:
            raise KernelError.at(where, error) from None
        bound, cached = call_.bound, entry.contents
        cached.steps, cached.flags = len(bound.steps), self._flags(bound)
        if bound.dropped:
            cached.note = self._noted(bound.dropped, bound.steps[0][0].name)
        elif bound.counted:
            cached.note = self._noted(name, str(call_.count))
        elif bound.masked:
            cached.note = self._noted(bound.steps[0][0].name)
        ctypes.memmove(cached.step, call_.steps, len(call_.steps))
        for number, (template, _) in enumerate(bound.steps):
            cached.step[number].kind = self.names.kind(template)

    def _flags(self, bound: BoundCall) -> int:
        first = bound.steps[0][0]
        flags = _MASKED if bound.masked else 0
        flags |= _COUNTED if bound.counted else 0
        if not bound.counted and isinstance(first, SetVectorMask):
            flags |= _SETS_MASK
        if isinstance(first, WaitFlagDev):
            flags |= _WAITS
        return flags | (_DROPPED if bound.dropped else 0)

    def _noted(self, *note: str) -> int:
        self._notes.append(note)
        return len(self._notes) - 1

    # --- what a core needs

    def _pause(self, core: int) -> None:
        self._cores[core].hand_over()

    def _ask(self, core: int, kind: int, result: int, answer: Any) -> None:
        native_core = self._cores[core]
        native_core.hand_over()
        values = native_core.handle.core.scalars(self.names.templates[kind])
        answer[0] = _signed(values[result])

    def _load(self, core: int, mem: int, kind: bytes, address: int, at: int, answer: Any) -> None:
        native_core, where = self._cores[core], self.names.locations[at]
        native_core.hand_over()
        native_core.handle.issues.one(where)
        element = element_type(kind.decode())
        load = LoadScalar(Var("value", 0), MEMORIES[mem], element, Expr(address), where)
        if load.mem is Mem.GM:
            native_core.behind(address, address + element.size_bytes, where)
        answer[0] = native_core.handle.core.load_scalar(load, address) & (2**64 - 1)

    def _text(
        self, core: int, what: int, first: bytes, second: bytes, third: bytes, at: int
    ) -> None:
        native_core = self._cores[core]
        texts = [(text or b"").decode("utf-8", "replace") for text in (first, second, third)]
        locations = self.names.locations
        where = locations[at] if at < len(locations) else self._begin
        if what == 2:
            native_core.handle.show(texts[0].removesuffix("\n"))
            return
        if what in {1, 6}:
            if what == 1:
                got, _, remedy = texts[2].partition("\n")
                raise KernelError.at(where, refuse(texts[0], texts[1], got, remedy))
            got = f"the kernel threw an exception: {' '.join(texts[0].split())}"
            raise KernelError.at(where, unable("the kernel", got))
        native_core.hand_over()
        if what == 0:
            native_core.handle.log(texts[0], f"{texts[1]}: {texts[2]}", texts[1], where)
        elif what == 4:
            native_core.handle.core.flush()
        elif what >= _NOTE:
            self._note(native_core, self._notes[what - _NOTE], where)

    def _note(self, native_core: NativeCore, note: tuple[str, ...], where: Location) -> None:
        """Log the sentence that a call brings with it: a stale mask, or bytes that stay behind."""
        if len(note) == 2:
            native_core.handle.log("parameter", note[0], note[1], where)
            return
        call, count = self._notes[native_core.state.stale_note]
        left = self.names.locations[native_core.state.stale - 1]
        message = (
            f"{note[0]} must run under a mask that was set for it, got the count {count} "
            f"that {call} left at {left}; call asc_set_vector_mask first"
        )
        native_core.handle.log("stale-mask", message, note[0], where)

    def _matmul_requests(self) -> "MatmulRequests":
        if self._requests is None:
            from cubecore.frontends.cpp.recording.matmul_object.requests import MatmulRequests

            self._requests = MatmulRequests(self.names)
        return self._requests

    def _matmul(self, core: int, what: int, call: Any, number: int, at: int, answer: Any) -> None:
        native_core = self._cores[core]
        native_core.hand_over()
        answer[0] = self._matmul_requests().asked(native_core, what, call, number, at)

    def _dump(
        self,
        core: int,
        mem: int,
        kind: bytes,
        address: int,
        desc: int,
        shape: Any,
        dims: int,
        at: int,
    ) -> None:
        native_core, where = self._cores[core], self.names.locations[at]
        native_core.hand_over()
        native_core.handle.issues.one(where)
        native_core.handle.core.flush()
        extents = tuple(shape[n] for n in range(dims))
        element = element_type(kind.decode())
        try:
            matrix = view(native_core.handle.core, MEMORIES[mem], address, element, extents, "ND")
        except CubecoreError as error:
            raise KernelError.at(where, error) from None
        native_core.handle.show(f"desc {desc} at {where}: {matrix}")


def _signed(value: int) -> int:
    return value - 2**64 if value >= 2**63 else value


def _decoded(key: Any, words: int) -> tuple[list[Any], dict[str, Any]]:
    """Return the arguments of a call, and those given by name."""
    arguments: list[Any] = []
    keywords: dict[str, Any] = {}
    for at in range(0, words, 2):
        tag, word = key[at], key[at + 1]
        value: Any
        if tag & 0xF == 1:
            kind = element_type(ctypes.string_at(word).decode())
            value = Pointer(MEMORIES[tag >> 4 & 0xF], kind, 0, _NOBODY)
            tag &= ~0xF0
        elif tag & 0xF == 3:
            (value,) = struct.unpack("<d", struct.pack("<Q", word))
        elif tag & 0xF == 4:
            value = ctypes.string_at(word).decode()
        else:
            value = word if tag & 0xF == 5 else _signed(word)
        if tag >> 8:
            keywords[ctypes.string_at(tag >> 8).decode()] = value
        else:
            arguments.append(value)
    return arguments, keywords


class _Nobody:
    """Reads no values: C++ reads them itself."""

    def load(self, pointer: Pointer) -> Any:
        raise AssertionError(f"{pointer} is read by C++")


_NOBODY = _Nobody()
