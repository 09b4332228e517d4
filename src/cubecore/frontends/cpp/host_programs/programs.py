"""Host programs: a file's own main, whose `<<<>>>` launches kernels on memory of aclrtMalloc."""

import os
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from time import perf_counter
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from cubecore.chips import chip as chip_named
from cubecore.chips.catalog import default_chip_of
from cubecore.chips.model import Chip
from cubecore.dtypes import element_type
from cubecore.errors import Violation, refuse, unable
from cubecore.frontends.capi.core_handle import CoreHandle
from cubecore.frontends.cpp.launch.child_process import Child, ChildSubject
from cubecore.frontends.cpp.launch.device_memory import SharedPages, spread_pages
from cubecore.frontends.cpp.launch.dimensions import Dimensions
from cubecore.frontends.cpp.launch.launch_facts import launch_facts, turns
from cubecore.frontends.cpp.launch.launch_options import LIMIT, CppLaunchOptions
from cubecore.frontends.cpp.launch.recording.bridge import Bridge, HostQuestion
from cubecore.frontends.cpp.launch.recording.registered import RegisteredKernel
from cubecore.frontends.cpp.rewriting.source import Source
from cubecore.frontends.cpp.toolchain.build import (
    PROGRAM,
    built,
    macros_of,
    program_parts,
)
from cubecore.frontends.cpp.wire import HostAsks
from cubecore.frontends.kernels.allocation import private_memory
from cubecore.frontends.kernels.blank_memory import BlankMemory
from cubecore.frontends.kernels.host_tensors import HostTensor
from cubecore.frontends.kernels.kernel import Kernel, ReadyLaunch, ready_launch
from cubecore.frontends.kernels.launch_findings import ranges_of
from cubecore.frontends.kernels.session import LaunchOptions, current_session, is_blank
from cubecore.frontends.source_locations import location_of, shown_path
from cubecore.isa.declare.instruction import Mem
from cubecore.isa.program.check import memory_bytes
from cubecore.machine.memory.buffers import (
    GM_GUARD_BYTES,
    GM_SPACE_BYTES,
    Bytes,
    GlobalMemory,
    GlobalTensor,
    MemoryBuffer,
)
from cubecore.machine.memory.pointer_stores import PointerStores
from cubecore.machine.options import checks_of
from cubecore.machine.sanitize.findings import EVERY_CORE, SanitizerFinding
from cubecore.units import plural

_MOST_BYTES = 2 << 30
"""Device memory of a program, all its allocations together."""
_MOST_EXPLAINED = 20_000
"""Instructions of a launch that are looked through for the store that fell short."""
_KINDS = ("", "cube", "vector")
"""The kinds of launches by the number of a mode; none: as the kernel's file says."""
_FACTS = ("L0A", "L0B", "L0C", "L1", "L2", "UB", "HBM", "FB", "BT")
"""Memories of a chip, in the order of the platform's CoreMemType."""


def run_source(source: Source, words: tuple[str, ...], asked: CppLaunchOptions) -> int:
    """Run the main of a file, compiled if need be; return its code.

    Raises
    ------
    RequestError
        If the file does not compile.
    KernelError
        If a kernel fails, or the program ends early.
    """
    chip = chip_named(_options().chip).what_if(_options().settings)
    libraries = [built(source, PROGRAM, chip.arch, part).path for part in program_parts(source)]
    return run_libraries(libraries, source.path, words, asked)


def run_built(path: Path, words: tuple[str, ...], asked: CppLaunchOptions) -> int:
    """Run a program that `cubecore c++` linked; return its code.

    Raises
    ------
    RequestError
        If the program cannot be read, or was built by another version.
    KernelError
        If a kernel fails, or the program ends early.
    """
    from cubecore.frontends.cpp.host_programs.executable import libraries_of

    with libraries_of(path) as (libraries, arch):
        return run_libraries(libraries, path, words, asked, arch)


def run_built_with(path: Path, asked: CppLaunchOptions, caller: "Caller") -> int:
    """Run a program that serves a caller, as `run_built` runs others; return its code.

    Raises
    ------
    RequestError
        If the program cannot be read, or what it is called for is refused.
    KernelError
        If a kernel fails, or the program ends early.
    """
    from cubecore.frontends.cpp.host_programs.executable import libraries_of

    with libraries_of(path) as (libraries, arch):
        return run_libraries(libraries, path, (), asked, arch, caller)


def _options(arch: str = "") -> LaunchOptions:
    """Return the session's options; for a chip of `arch`, if none was asked for."""
    chip = {"chip": default_chip_of(arch)} if arch else {}
    return LaunchOptions(limit=LIMIT).changed(chip).of_session()


def run_libraries(
    libraries: Sequence[Path],
    path: Path,
    words: tuple[str, ...],
    asked: CppLaunchOptions,
    arch: str = "",
    caller: "Caller | None" = None,
) -> int:
    """Run the first library's main in another process; its launches go to the session.

    The second, if there is one, has the AIC's part of kernels. `arch` is what they were compiled
    for, if that was told; `caller` is who calls a function of a binding. Return main's code.

    Raises
    ------
    RequestError
        If the chip that is asked for is of another architecture.
    KernelError
        If a kernel fails, or the program ends early.
    """
    options = _options(arch)
    chip = chip_named(options.chip).what_if(options.settings)
    macros_of(chip.arch, "vector")  # which other architectures lack
    if arch not in {"", chip.arch}:
        need = f"be of architecture {arch}, for which {shown_path(path)} was compiled"
        raise refuse("the chip", need, f"{chip.name} of {chip.arch}")
    asked_of = ChildSubject("the program", asked.timeout_s, ends="a program returns from main")
    memory = spread_pages(GM_SPACE_BYTES if is_blank() else _MOST_BYTES)
    try:
        with Child(asked_of, memory) as child:
            auto_sync = asked.auto_sync == "on"
            program = _Program(path, child, memory, options, auto_sync=auto_sync)
            program.caller = caller
            return program.run(libraries, words)
    finally:
        memory.release()


class Memory(Protocol):
    """The device memory of a program, as who calls its functions sees it."""

    def allocate(self, size: int) -> int:
        """Return the address of new memory of the device; 0 for none."""

    def bytes_at(self, address: int, count: int) -> MemoryBuffer:
        """Return bytes of its device memory with the map of what was written there."""

    def stored_at(self, address: int, count: int) -> NDArray[np.bool_]:
        """Return which of these bytes were stored to, from initialised memory or not."""


class Caller(Protocol):
    """The caller of a binding's function, and runs the operators that it calls."""

    def answer(self, memory: Memory, text: str) -> int | bytes:
        """Answer what the binding says."""


class _ProgramMemory(GlobalMemory):
    """Global memory in pages that the program shares, all 0 at first."""

    def __init__(self, pages: SharedPages, pointers: PointerStores) -> None:
        super().__init__(pointers, pages.space_bytes)
        self._pages: Bytes = np.frombuffer(pages.map, np.uint8)

    def _filled(self, address: int, raw: Bytes | None, size: int) -> Bytes:
        held = self._pages[address : address + size + GM_GUARD_BYTES]
        if raw is not None:
            held[:size] = raw
        return held


class _Program:
    """A program in its process: its device memory and its launches."""

    def __init__(
        self,
        path: Path,
        child: Child,
        memory: SharedPages,
        options: LaunchOptions,
        *,
        auto_sync: bool,
    ) -> None:
        self._auto_sync, self._tiling_key, self._kind = auto_sync, 0, ""
        self._path, self._options = path, options
        self._pointers = PointerStores(0)
        self._most = memory.size if is_blank() else _MOST_BYTES
        self._gm: GlobalMemory = _ProgramMemory(memory, self._pointers)
        if is_blank():
            self._gm = BlankMemory(np.frombuffer(memory.map, np.uint8), memory.space_bytes)
        from cubecore.frontends.cpp.host_programs.tiling_calls import HostTilings

        self._tilings = HostTilings(chip_named(options.chip).what_if(options.settings))
        self._base, self._child, self._bridge = memory.base, child, Bridge(child, host=self._asked)
        self._size = memory.size
        self._tensors: dict[str, tuple[HostTensor, GlobalTensor]] = {}
        self._kernels: dict[str, RegisteredKernel] = {}
        self._last: ReadyLaunch | None = None
        self.caller: Caller | None = None

    def run(self, libraries: Sequence[Path], words: tuple[str, ...]) -> int:
        """Run the first library's main; return its code."""
        # Loading a library registers its kernels. The AIC's part is loaded behind that, so that
        # kernels are known by the first library's entries.
        texts = [os.fsencode(self._path), *(os.fsencode(word) for word in words)]
        entry = self._child.symbol(libraries[0], "main", answer_host=self._bridge.answer_host)
        self._kernels = {facts.name: facts for facts in self._bridge.registered()}
        for library in libraries[1:]:
            self._child.symbol(library, "main", answer_host=self._bridge.answer_host)
        return self._bridge.start(entry, texts)

    def _asked(self, asked: HostQuestion) -> int | bytes:
        what, a, b, text, entry, context = asked
        if what == HostAsks.ALLOCATE:
            return self.allocate(a)
        if what == HostAsks.GLUE:
            assert self.caller is not None
            return self.caller.answer(self, text)
        if what == HostAsks.CHIP:
            return chip_fact(chip_named(self._options.chip).what_if(self._options.settings), a)
        if what == HostAsks.MATMUL_TILING:
            tiling = self._tilings.answer(text, b)
            if self._tilings.reason:
                sys.stderr.write(f"note: GetTiling returns -1: {self._tilings.reason}\n")
            return tiling
        if what == HostAsks.WRITTEN:
            self._written(a, b)
        elif what == HostAsks.READ:
            self._read(a, b)
        elif what == HostAsks.KEY_OF_TILING:
            self._tiling_key = a
        elif what == HostAsks.KERNEL_MODE:
            self._kind = _KINDS[a] if a < len(_KINDS) else ""
        elif what == HostAsks.REFUSED:
            raise unable("the program", f"the program: {text}")
        elif what == HostAsks.LAUNCH:
            self._launch(text, a, entry, context)
        return 0

    def bytes_at(self, address: int, count: int) -> MemoryBuffer:
        """Return bytes of its device memory with the map of what was written there."""
        tensor = self._gm.at(address - self._base)
        if tensor is None:
            return MemoryBuffer(0)
        start = address - self._base - tensor.address
        self._gm.settle(tensor, tensor.address + start, tensor.address + start + count)
        held = tensor.buffer
        return MemoryBuffer.over(
            held.data[start : start + count], held.valid[start : start + count]
        )

    def stored_at(self, address: int, count: int) -> NDArray[np.bool_]:
        """Return which of these bytes were stored to, from initialised memory or not."""
        tensor = self._gm.at(address - self._base)
        if tensor is None:
            return np.zeros(0, np.bool_)
        start = address - self._base - tensor.address
        self._gm.settle(tensor, tensor.address + start, tensor.address + start + count)
        return tensor.stored(start, start + count)

    def allocate(self, size: int) -> int:
        """Return the address of new memory of the device; 0 for none."""
        name = f"gm{len(self._tensors)}"
        taken = sum(t.buffer.size_bytes for _, t in self._tensors.values())
        last = max((t.end for _, t in self._tensors.values()), default=0)
        room = min(self._most - taken, self._size - last)
        # 64 KiB more, for the alignment and the guard behind a tensor; 0 is no address.
        if not size or size + (1 << 16) > room:
            return 0
        tensor = self._gm.allocate(name, size)
        host = HostTensor(name, tensor.buffer.data, element_type("uint8"), (size,))
        self._tensors[name] = host, tensor
        return self._base + tensor.address

    def _written(self, address: int, count: int) -> None:
        tensor = self._gm.at(address - self._base)
        if tensor is not None and not is_blank():
            start = address - self._base - tensor.address
            tensor.buffer.valid[start : start + count] = 1

    def _read(self, address: int, count: int) -> None:
        """Take an array for a result, and note bytes that go to the host and nobody has written.

        Those are 0 here, as at first.
        """
        tensor = self._gm.at(address - self._base)
        if tensor is None or is_blank():
            return
        session = current_session()
        if session is not None and tensor.name not in session.results:
            session.results.append(tensor.name)
        start = address - self._base - tensor.address
        self._gm.settle(tensor, address - self._base, address - self._base + count)
        unwritten = np.flatnonzero(tensor.buffer.valid[start : start + count] == 0)
        if unwritten.size:
            note = (
                f"note: aclrtMemcpy copies {plural(unwritten.size, 'byte')} of {tensor.name} to "
                f"the host that nothing has written, the first at {start + unwritten[0]}"
            )
            sys.stderr.write(f"{note}{self._why(tensor, start, count)}\n")

    def _why(self, tensor: GlobalTensor, start: int, count: int) -> str:
        """Return which store of the last launch fell short of bytes; nothing of a long one."""
        if self._last is None:
            return ""
        # The same sentence as for an output of a kernel that is run by itself, for the bytes that
        # the host has asked for: the others may be none of its results.
        missing = np.zeros(tensor.buffer.valid.size, bool)
        window = slice(start, start + count)
        missing[window] = tensor.buffer.valid[window] == 0
        claim = Violation(tensor.name, "be written whole", "")
        finding = SanitizerFinding(
            *("uninitialised", str(claim), "end of kernel", self._last.kernel.place, EVERY_CORE),
            arrays=ranges_of(missing),
            claim=claim,
        )
        return f"; {self._last.told([finding])[0].text.partition(': ')[2]}"

    def _launch(self, text: str, blocks: int, entry: int, context: int) -> None:
        said, *numbers = text.split("\t")
        name, of_threads, size = said.strip("() "), numbers[0] == "1", _size(numbers)
        plain = name.split("<", maxsplit=1)[0].rsplit("::", maxsplit=1)[-1].strip()
        # A name in the launch may have template arguments and a namespace; registered are plain
        # names.
        facts = self._kernels.get(plain, RegisteredKernel(name, "vector", str(self._path), 1))
        kind, where = self._kind or facts.kind, location_of(facts.file, facts.line, name)
        auto_sync = self._auto_sync and facts.auto_sync
        self._bridge.restart()
        of_aic = self._bridge.in_other_part(entry) or entry

        def function(core: CoreHandle) -> None:
            # One launch names one entry, of the library that has main; an AIC runs the same one of
            # its own.
            own = of_aic if core.core.id.is_aic else entry

            def run(block: int, at_once: int) -> None:
                facts = launch_facts(
                    core,
                    kind,
                    self._base,
                    block=block,
                    at_once=at_once,
                    tiling_key=self._tiling_key,
                    auto_sync=auto_sync,
                    size=size,
                    counts=ready.options.trace,
                )
                self._bridge.run(core, own, context, facts, where)

            if of_threads:  # the runtime runs its blocks
                run(core.core.registers.position.block, at_once)
            else:
                turns(core, run, at_once, where)

        function.__name__ = name
        kernel = Kernel(function, kind, (), (), {}, self._options, turns=True, language="cpp")
        ready, _ = ready_launch(kernel, blocks, (), {}, private_memory)
        if of_threads:
            size.require_chip(name, ready.chip)
        ready, at_once = replace(ready, tensors=self._tensors), ready.at_once
        session = current_session()
        keeps = session is not None and session.keeps_arrays
        before = {n: t.buffer.data.copy() for n, (_, t) in self._tensors.items() if keeps}
        begin = perf_counter()
        checks = checks_of(ready.options.checks.split(","))
        outcome, engine = ready.run(self._gm, checks)
        wall = perf_counter() - begin
        self._pointers.clean()  # at a kernel's end
        self._last = ready if outcome.issued <= _MOST_EXPLAINED else None
        findings = ready.told(self._bridge.told(outcome.findings))
        tensors = [tensor for _, tensor in self._tensors.values()]
        kept = [_copy(tensor) if keeps else _place(tensor) for tensor in tensors]
        data = {tensor.name: tensor.buffer.data for _, tensor in kept}
        changed = [n for n, raw in before.items() if not np.array_equal(raw, data[n])]
        ready.done(findings, outcome.issued, engine, wall, changed, kept)


def _size(numbers: Sequence[str]) -> Dimensions:
    """Return the size of a launch as its host code has written it; of one of cores the bytes."""
    threads, *sizes = map(int, numbers)
    if not threads:
        return Dimensions((1, 1, 1), (1, 1, 1), sizes[6])
    x, y, z = sizes[:3]
    width, height, depth = sizes[3:6]
    return Dimensions((x, y, z), (width, height, depth), sizes[6])


def _place(tensor: GlobalTensor) -> tuple[HostTensor, GlobalTensor]:
    """Return a tensor of which only the place and the size matter any more."""
    size = tensor.buffer.size_bytes
    nothing = np.broadcast_to(np.uint8(0), (size,))
    buffer = MemoryBuffer.over(nothing, nothing)
    held = HostTensor(tensor.name, nothing, element_type("uint8"), (size,))
    return held, GlobalTensor(tensor.name, tensor.address, buffer)


def _copy(tensor: GlobalTensor) -> tuple[HostTensor, GlobalTensor]:
    """Return a tensor as it is now; the program may change or free its memory."""
    data, valid = tensor.buffer.data.copy(), tensor.buffer.valid.copy()
    held = HostTensor(tensor.name, data, element_type("uint8"), (data.size,))
    return held, GlobalTensor(tensor.name, tensor.address, MemoryBuffer.over(data, valid))


_ARCHITECTURE = 99
"""The number of the architecture among what a program asks of its chip."""


def chip_fact(chip: Chip, number: int) -> int:
    """Return what a program asks of its chip: AICs, AIVs, bytes of a memory, or architecture."""
    if number == _ARCHITECTURE:
        return int(chip.arch)
    if number < 2:
        return chip.aic_count if number == 0 else chip.aiv_count or chip.aic_count
    name = _FACTS[number - 2] if number - 2 < len(_FACTS) else ""
    if name in {"L2", "HBM"}:
        return (chip.l2_bytes or 0) if name == "L2" else 0
    return memory_bytes(chip, Mem[name])[1] or 0 if name else 0


def require_clean_end(path: Path, code: int) -> str | None:
    """Return what is to be said of a program that ended with a code; None for 0."""
    if code == 0:
        return None
    return f"{shown_path(path)} exited with code {code}"
