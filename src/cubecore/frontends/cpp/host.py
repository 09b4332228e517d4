"""Host programs: a file's own main, whose `<<<>>>` launches kernels on memory of aclrtMalloc."""

import ctypes
import os
import re
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np

from cubecore.chips import chip as chip_named
from cubecore.chips.catalog import default_chip_of
from cubecore.chips.model import Chip
from cubecore.dtypes import element_type
from cubecore.errors import refuse, unable
from cubecore.frontends.capi.core_handle import CoreHandle
from cubecore.frontends.cpp.child import ChildSubject, answered
from cubecore.frontends.cpp.compile.build import (
    PROGRAM,
    built,
    macros_of,
    program_parts,
    runtime,
)
from cubecore.frontends.cpp.compile.source import Source
from cubecore.frontends.cpp.device_memory import shared_pages
from cubecore.frontends.cpp.kernels import launch_facts, turns
from cubecore.frontends.cpp.launch_options import CppLaunchOptions
from cubecore.frontends.cpp.recording.bridge import Bridge
from cubecore.frontends.cpp.recording.structures import RegisteredKernel
from cubecore.frontends.kernels.host_tensors import HostTensor
from cubecore.frontends.kernels.kernel import Kernel, private_memory, ready_launch
from cubecore.frontends.kernels.session import KernelRun, LaunchOptions, current_session
from cubecore.frontends.source_locations import location_of, shown_path
from cubecore.isa.catalogue import spellings
from cubecore.isa.declare.instruction import Mem
from cubecore.isa.program.check import memory_bytes
from cubecore.isa.program.topology import CoreId
from cubecore.isa.program.trace import InstructionTrace
from cubecore.lazy_dataclass import dataclass
from cubecore.machine.memory.buffers import (
    GlobalMemory,
    GlobalTensor,
    MemoryBuffer,
)
from cubecore.machine.sanitizer.findings import SanitizerFinding, checks_of
from cubecore.units import plural

_MOST_BYTES = 2 << 30
"""Device memory of a program, all its allocations together."""
_MAIN = re.compile(r"^\s*(?:int|int32_t|auto)\s+main\s*\(", re.MULTILINE)
_LAUNCH, _ALLOCATE, _WRITTEN, _FREE, CHIP, _TILING_KEY, _MODE, _REFUSED = range(8)
_MATMUL_TILING, _READ = 9, 10
_KINDS = ("", "cube", "vector")
"""The kinds of launches by the number of a mode; none: as the kernel's file says."""
_FACTS = ("L0A", "L0B", "L0C", "L1", "L2", "UB", "HBM", "FB", "BT")
"""Memories of a chip, in the order of the platform's CoreMemType."""


def has_main(source: Source) -> bool:
    """True if a file is a program: it defines main."""
    return _MAIN.search(source.text) is not None


@dataclass(frozen=True, slots=True)
class _LaunchResult:
    """The results of one launch, to be sent to the other process."""

    kernel: str
    blocks: int
    findings: tuple[SanitizerFinding, ...]
    issued: int
    engine: str
    wall_s: float
    traces: dict[CoreId, InstructionTrace]
    tensors: tuple[tuple[str, int, int], ...]


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
    from cubecore.frontends.cpp.compile.executable import libraries_of

    with libraries_of(path) as (libraries, arch):
        return run_libraries(libraries, path, words, asked, arch)


def _options(arch: str = "") -> LaunchOptions:
    """Return the session's options; for a chip of `arch`, if none was asked for."""
    plain = LaunchOptions(chip=default_chip_of(arch)) if arch else LaunchOptions()
    return plain.of_session()


def run_libraries(
    libraries: Sequence[Path],
    path: Path,
    words: tuple[str, ...],
    asked: CppLaunchOptions,
    arch: str = "",
) -> int:
    """Run the first library's main in another process; its launches go to the session.

    The second, if there is one, has the AIC's part of kernels. `arch` is what they were compiled
    for, if that was told. Return main's code.

    Raises
    ------
    RequestError
        If the chip that is asked for is of another architecture.
    KernelError
        If a kernel fails, or the program ends early.
    """
    session, options = current_session(), _options(arch)
    chip = chip_named(options.chip).what_if(options.settings)
    macros_of(chip.arch, "vector")  # which other architectures lack
    if arch not in {"", chip.arch}:
        need = f"be of architecture {arch}, for which {shown_path(path)} was compiled"
        raise refuse("the chip", need, f"{chip.name} of {chip.arch}")
    support = str(runtime())
    spellings()  # declared here, and not in each process again

    debugger = None if session is None else session.debugger

    def work(page: int) -> tuple[int, list[_LaunchResult], tuple[str, ...]]:
        program = _Program(path, support, page, options, auto_sync=asked.auto_sync == "on")
        code = program.run(libraries, words)
        ctypes.CDLL(None).fflush(None)
        return code, program.launched, () if debugger is None else debugger.reached()

    code, launched, reached = answered(
        work, ChildSubject("the program", asked.timeout_s, ends="a program returns from main")
    )
    if debugger is not None:
        debugger.met_elsewhere(reached)
    for left in launched:
        run = KernelRun(
            kernel=left.kernel,
            blocks=left.blocks,
            chip=chip,
            findings=left.findings,
            issued=left.issued,
            engine=left.engine,
            wall_s=left.wall_s,
            traces=left.traces,
            tensors=tuple(_tensor(*tensor) for tensor in left.tensors),
        )
        if session is not None:
            session.runs.append(run)
    return code


def _tensor(name: str, address: int, size: int) -> tuple[HostTensor, GlobalTensor]:
    """Return a tensor of which only the place and the size matter any more."""
    nothing = np.broadcast_to(np.uint8(0), (size,))
    buffer = MemoryBuffer.over(nothing, nothing)
    return HostTensor(name, nothing, element_type("uint8"), (size,)), GlobalTensor(
        name, address, buffer
    )


class _Program:
    """A program in its process: its device memory and its launches."""

    def __init__(
        self, path: Path, library: str, page: int, options: LaunchOptions, *, auto_sync: bool
    ) -> None:
        self._auto_sync, self._tiling_key, self._kind = auto_sync, 0, ""
        self.launched: list[_LaunchResult] = []
        self._path, self._options = path, options
        self._gm = GlobalMemory()
        from cubecore.frontends.cpp.host_tiling import HostTilings

        self._tilings = HostTilings(chip_named(options.chip).what_if(options.settings))
        self._pages, self._base = shared_pages(_MOST_BYTES)
        self._bridge = Bridge(library, page)
        self._tensors: dict[str, tuple[HostTensor, GlobalTensor]] = {}
        self._kernels: dict[str, RegisteredKernel] = {}
        self._others: list[ctypes.PyDLL] = []

    def run(self, libraries: Sequence[Path], words: tuple[str, ...]) -> int:
        """Run the first library's main; return its code."""
        texts = [os.fsencode(self._path), *(os.fsencode(word) for word in words)]
        argv = (ctypes.c_char_p * (len(texts) + 1))(*texts, None)
        entry = ctypes.PyDLL(str(libraries[0])).main
        self._kernels = {facts.name: facts for facts in self._bridge.registered()}
        self._bridge.other_part()
        self._others = [ctypes.PyDLL(str(library)) for library in libraries[1:]]
        return self._bridge.start(entry, argv, len(texts), self._asked)

    def _asked(
        self, what: int, a: int, b: int, text: bytes | None, entry: int, context: int, answer: Any
    ) -> None:
        if what == _ALLOCATE:
            answer[0] = self._allocate(a)
        elif what == _WRITTEN:
            self._written(a, b)
        elif what == _READ:
            self._read(a, b)
        elif what == CHIP:
            answer[0] = chip_fact(chip_named(self._options.chip).what_if(self._options.settings), a)
        elif what == _TILING_KEY:
            self._tiling_key = a
        elif what == _MODE:
            self._kind = _KINDS[a] if a < len(_KINDS) else ""
        elif what == _MATMUL_TILING:
            answer[0] = self._tilings.answer((text or b"").decode(), a, b)
            if self._tilings.reason:
                sys.stderr.write(f"{self._tilings.reason}\n")
        elif what == _REFUSED:
            raise unable("the program", f"the program: {(text or b'').decode()}")
        elif what == _LAUNCH:
            self._launch((text or b"").decode(), a, entry, context)

    def _allocate(self, size: int) -> int:
        name = f"gm{len(self._tensors)}"
        last = max((t.end for _, t in self._tensors.values()), default=0)
        if not size or last + size + (1 << 16) > _MOST_BYTES:
            return 0
        tensor = self._gm.allocate(name, size, scratch=True)
        held = self._pages[tensor.address : tensor.end]
        tensor.buffer.data = held
        tensor.wide.data = self._pages[tensor.address : tensor.address + tensor.wide.size_bytes]
        self._tensors[name] = HostTensor(name, held, element_type("uint8"), (size,)), tensor
        return self._base + tensor.address

    def _written(self, address: int, count: int) -> None:
        tensor = self._gm.at(address - self._base)
        if tensor is not None:
            start = address - self._base - tensor.address
            tensor.buffer.valid[start : start + count] = 1

    def _read(self, address: int, count: int) -> None:
        """Say which of the bytes that go to the host nobody has written: 0 here, as at first."""
        tensor = self._gm.at(address - self._base)
        if tensor is None:
            return
        start = address - self._base - tensor.address
        unwritten = np.flatnonzero(tensor.buffer.valid[start : start + count] == 0)
        if unwritten.size:
            sys.stderr.write(
                f"note: aclrtMemcpy copies {plural(unwritten.size, 'byte')} of {tensor.name} to "
                f"the host that nothing has written, the first at {start + unwritten[0]}\n"
            )

    def _launch(self, text: str, blocks: int, entry: int, context: int) -> None:
        name = text.strip("() ")
        plain = name.split("<", maxsplit=1)[0].rsplit("::", maxsplit=1)[-1].strip()
        facts = self._kernels.get(plain, RegisteredKernel(name, "vector", str(self._path), 1))
        kind, where = self._kind or facts.kind, location_of(facts.file, facts.line, name)
        auto_sync = self._auto_sync and facts.auto_sync
        self._bridge.restart()
        of_aic = self._bridge.in_other_part(entry) or entry
        held = ctypes.c_void_p(context)

        def function(core: CoreHandle) -> None:
            own = ctypes.c_void_p(of_aic if core.core.id.is_aic else entry)

            def run(*turn: int) -> None:
                facts = (kind, self._base, (turn[0], turn[1]), self._tiling_key)
                told = launch_facts(core, *facts, auto_sync=auto_sync)
                self._bridge.run(core, own, held, told, where)

            turns(core, run, at_once, where)

        function.__name__ = name
        made = Kernel(function, kind, (), (), {}, self._options, turns=True)
        ready, _ = ready_launch(made, blocks, (), {}, private_memory)
        ready, at_once = replace(ready, tensors=self._tensors), ready.at_once
        begin = perf_counter()
        checks = checks_of(ready.options.checks.split(","))
        outcome, engine = ready.run(self._gm, checks)
        for trace in ready.traces.values():
            trace.names.kind_of.clear()
            trace.names.location_of.clear()
        places = tuple(
            (tensor.name, tensor.address, tensor.buffer.size_bytes)
            for _, tensor in self._tensors.values()
        )
        wall = perf_counter() - begin
        findings = self._bridge.told(outcome.findings)
        left = (findings, outcome.issued, engine, wall, dict(ready.traces), places)
        self.launched.append(_LaunchResult(name, blocks, *left))


def chip_fact(chip: Chip, number: int) -> int:
    """Return what a program asks of its chip: AICs, AIVs, or the bytes of a memory."""
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
