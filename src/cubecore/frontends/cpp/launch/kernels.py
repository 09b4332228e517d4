"""C++ kernels as Python sees them: a file's kernels, and their launches in another process."""

import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from time import perf_counter
from typing import Any

from cubecore.chips import chip as chip_named
from cubecore.errors import CubecoreError, RequestError, refuse, unable
from cubecore.frontends.capi.core_handle import CoreHandle
from cubecore.frontends.capi.pointer import Pointer
from cubecore.frontends.cpp.launch.argument_types import (
    GivenType,
    by_codes,
    note_on,
    spelled_code,
)
from cubecore.frontends.cpp.launch.child_process import Child, ChildSubject
from cubecore.frontends.cpp.launch.device_memory import BlankDeviceMemory, DeviceMemory
from cubecore.frontends.cpp.launch.dimensions import Dimensions, dimensions
from cubecore.frontends.cpp.launch.launch_facts import launch_facts, turns
from cubecore.frontends.cpp.launch.launch_options import LIMIT, TIMEOUT_S
from cubecore.frontends.cpp.launch.recording.bridge import Bridge
from cubecore.frontends.cpp.launch.signature import (
    EntryParameter,
    parameters_of,
    tiling_name,
    word_of,
)
from cubecore.frontends.cpp.rewriting.kinds import kind_of_key, kind_with_headers
from cubecore.frontends.cpp.rewriting.source import (
    Source,
    require_entry,
)
from cubecore.frontends.cpp.toolchain.build import Built, built
from cubecore.frontends.cpp.toolchain.compiler import UNDEFINED
from cubecore.frontends.kernels.host_tensors import write_back
from cubecore.frontends.kernels.kernel import Kernel, ReadyLaunch, ready_launch
from cubecore.frontends.kernels.parameters import MARKS
from cubecore.frontends.kernels.session import (
    KernelRun,
    LaunchOptions,
    current_session,
    is_blank,
)
from cubecore.frontends.kernels.tensor_lists import TensorList
from cubecore.frontends.source_locations import KernelError, location_of
from cubecore.isa.program.tree import Location
from cubecore.machine.finding_kinds import INITCHECK, MEMCHECK
from cubecore.machine.group.recorder import RanAheadError
from cubecore.machine.options import checks_of
from cubecore.machine.sanitize.findings import EVERY_CORE, SanitizerFinding

_GIVEN = ": tiling data"
"""The end of the subject of a refusal by a kernel of what its launch was given."""
_PAUSING: set[Path] = set()
"""Libraries whose cores wait at each wait for others, and for each value: they needed to."""


@dataclass(frozen=True)
class CppKernel(Kernel):
    """An entry of a C++ file, launched as ``kernel[blocks](tensors and numbers)``.

    The launch runs in a process of its own, which a crash of the kernel's code ends; arrays are
    written when it has ended, or not at all.

    Notes
    -----
    1. `frontends.kernels.kernel.ready_launch` binds the arguments as those of a Python kernel, and
       places tensors in memory that the process will share.
    2. `frontends.cpp.toolchain.build.built` compiles the kernel's file against the package's
       headers, if the cache does not hold its library.
    3. `frontends.cpp.launch.child_process.Child.ask` starts the runtime's program, which loads the
       library, and carries questions and answers from then on.
    4. `machine.group.kernels.run_together` executes what the cores issue, as of a Python kernel.
    5. `frontends.cpp.launch.recording.bridge.Bridge.run` runs a core in that process up to its next
       question, and answers it: a call's instruction, then values that the kernel reads.
    6. `frontends.kernels.host_tensors.write_back` writes the user's arrays at the end.

    A call's instruction is bound once (`frontends.capi.calls.binding.bind`) and found later.
    """

    source: Source = field(repr=False, kw_only=True)
    entry: str = field(kw_only=True)
    parameters: tuple[EntryParameter, ...] = field(kw_only=True)
    timeout_s: float = field(default=TIMEOUT_S, kw_only=True)
    tiling_key: int = field(default=0, kw_only=True)
    workspace: str = field(default="", kw_only=True)
    auto_sync: bool = field(default=True, kw_only=True)
    verbose: bool = field(default=False, kw_only=True)
    language: str = field(default="cpp", kw_only=True)
    dimensions: Dimensions | None = field(default=None, kw_only=True)

    @property
    def name(self) -> str:
        """The entry's name."""
        return self.entry

    @property
    def place(self) -> Location:
        """Return the source location of the entry."""
        entry = self.source.entry(self.entry)
        return location_of(str(self.source.path), entry.line if entry else 1, self.entry)

    def __getitem__(
        self, blocks: int | tuple[object, ...] | Dimensions
    ) -> Callable[..., KernelRun]:
        """Return the launch on `blocks` blocks; of a kernel of threads on a grid and a block."""
        if isinstance(blocks, int):
            return lambda *arguments, **words: launch(self, blocks, arguments, words)
        size = blocks if isinstance(blocks, Dimensions) else dimensions(blocks)
        sized = replace(self, dimensions=size)
        return lambda *arguments, **words: launch(sized, size.blocks, arguments, words)

    @property
    def is_of_threads(self) -> bool:
        """True of a kernel that threads run (SIMT)."""
        entry = self.source.entry(self.entry)
        return entry is not None and entry.threads

    def changed(self, **fields: Any) -> "CppKernel":
        """Return the kernel with other fields, such as outputs, timeout_s or tiling_key.

        A tiling key may have a kind of its own.
        """
        if "tiling_key" in fields and "kind" not in fields:
            kernel = replace(self, tiling_key=fields["tiling_key"])
            arch = chip_named(self.options.of_session().chip).arch
            types = kernel.build("cube" if self.kind == "cube" else "vector", arch).types
            own = kind_of_key(self.source.entry(self.entry), kernel.tiling_key, types)
            fields["kind"] = own or self.kind
        return replace(self, **fields)

    @property
    def names(self) -> tuple[str, ...]:
        """The parameters."""
        return tuple(parameter.name for parameter in self.parameters)

    def require_array(self, subject: str, name: str) -> None:
        """Require a pointer among the parameters.

        Raises
        ------
        RequestError
            If there is no such parameter, or it is no pointer.
        """
        super().require_array(subject, name)
        (parameter,) = (each for each in self.parameters if each.name == name)
        if parameter.letter != "p":
            pointers = ", ".join(each.name for each in self.parameters if each.letter == "p")
            need = f"name a pointer of {self.name} ({pointers or 'none'})"
            raise refuse(subject, need, f"{name}, which is {parameter.meaning}")

    def build(self, part: str, arch: str) -> Built:
        """Return the library of one part of the kernel: vector or cube."""
        source = replace(self.source, tiling_key=self.tiling_key)
        return built(source, self.entry, arch, part, verbose=self.verbose)


def kernel_of(
    source: Source,
    entry: str | None = None,
    *,
    verbose: bool = False,
    auto_sync: bool = True,
    **options: Any,
) -> CppKernel:
    """Return an entry of a file as a kernel; `options` are those of `Kernel.using`.

    Raises
    ------
    RequestError
        If there is no such entry, the file does not compile, or no compiler is found.
    """
    name = require_entry(source, entry)
    kind = source.kind(name)
    marks = {word: options.pop(word) for word in MARKS if word in options}
    plain = LaunchOptions(limit=LIMIT).changed(options)
    arch = chip_named(plain.of_session().chip).arch
    try:
        first = built(source, name, arch, "cube" if kind == "cube" else "vector", verbose=verbose)
    except CubecoreError as error:
        # A mix kernel need not have code for vector cores: then it is one for AICs.
        if not kind.startswith("mix") or error.violations[0].subject != UNDEFINED:
            raise
        kind, first = "cube", built(source, name, arch, "cube", verbose=verbose)
    if kind == "vector":
        kind = _kind_by_use(source, name, arch, first)
    source_entry = source.entry(name)
    parameters = parameters_of(first.signature, source_entry.parameters if source_entry else ())
    names = ["core", *(p.name for p in parameters)]

    def function(core: CoreHandle, **_: Any) -> None:
        raise AssertionError(f"{name} runs on {core} through `launch` alone")

    parameters_of_call = [
        inspect.Parameter(n, inspect.Parameter.POSITIONAL_OR_KEYWORD) for n in names
    ]
    function.__signature__ = inspect.Signature(parameters_of_call)  # type: ignore[attr-defined]
    function.__name__ = name
    kernel = CppKernel(
        function,
        kind,
        (),
        (),
        {},
        plain,
        source=source,
        entry=name,
        parameters=parameters,
        auto_sync=auto_sync,
        verbose=verbose,
        turns=True,
    )
    return kernel.using(**marks)


def _kind_by_use(source: Source, name: str, arch: str, vector: Built) -> str:
    """Return the kind of an entry whose file says none, by what its part for AICs issues.

    Headers that it includes may hold more than it uses.
    """
    wider = kind_with_headers(source.entry(name), source.scan.words, vector.words)
    if wider == "vector":
        return wider
    try:
        return wider if built(source, name, arch, "cube").products else "vector"
    except CubecoreError:
        return "vector"  # it is not for AICs


def launch(
    device_kernel: CppKernel, blocks: int, arguments: tuple[Any, ...], words: dict[str, Any]
) -> KernelRun:
    """Run a C++ kernel in another process; the arrays are written when it has ended, or not at all.

    Raises
    ------
    RequestError
        If the kernel does not accept the blocks or the arguments, or reads tiling data of more.
    KernelError
        If the kernel fails; the message begins with the location in its source.
    DeadlockError
        If cores wait for each other.
    """
    _require_size(device_kernel)
    plain = tuple(by_codes(each) for each in arguments)
    plain_words = {name: by_codes(each) for name, each in words.items()}
    memory = BlankDeviceMemory if is_blank() else DeviceMemory
    ready, gm = ready_launch(device_kernel, blocks, plain, plain_words, memory)
    for parameter in device_kernel.parameters:
        word_of(parameter, ready.arguments[parameter.name], tensor=parameter.name in ready.tensors)
    notes = tuple(_notes(device_kernel, ready, arguments, words))
    parts = _built_parts(device_kernel, ready)
    _complete_lists(ready, gm)
    # A kernel may run ahead: it is given values before what it has issued is executed. If that
    # proves wrong (`RanAheadError`), its libraries are remembered, and the launch begins anew with
    # a kernel that waits for each value. Nothing has been written back by then.
    checks, paths = checks_of(ready.options.checks.split(",")), {p.path for p in parts.values()}
    session = current_session()
    alone = session is None or session.debugger is None
    cores = tuple(str(core) for core in ready.cores)
    subject = ChildSubject("the kernel", device_kernel.timeout_s, cores, device_kernel.place)
    asked = replace(subject, named=gm.named)
    begin = perf_counter()
    try:
        with Child(asked, gm.shared) as child:
            loaded = _Loaded(child, parts, gm.base, device_kernel, ready)
            loaded.bridge.go_ahead(gm, ahead=alone and not paths & _PAUSING)
            try:
                outcome, engine = replace(ready, kernel=loaded.kernel).run(gm, checks)
            except CubecoreError:
                if loaded.bridge.read_ahead and ready.issues.count > ready.issues.most:
                    raise RanAheadError from None  # which core passes the limit depends on it
                raise
            findings = loaded.bridge.told(outcome.findings)
    except RanAheadError:
        _PAUSING.update(paths)
        return launch(device_kernel, blocks, arguments, words)
    except KernelError as error:
        if all(each.subject.endswith(_GIVEN) for each in error.violations):
            raise RequestError(error.violations) from None
        raise
    changed: tuple[str, ...] = ()
    unwritten: tuple[SanitizerFinding, ...] = ()
    if not is_blank():
        changed = write_back((host, tensor.buffer.data) for host, tensor in ready.tensors.values())
        unwritten = _unwritten(gm, ready, checks)
    wall_s = perf_counter() - begin
    every = (*(notes if MEMCHECK in checks else ()), *findings, *unwritten)
    return ready.done(ready.told(every), outcome.issued, engine, wall_s, changed)


def _complete_lists(ready: ReadyLaunch, gm: DeviceMemory) -> None:
    """Write the addresses of tensors into the lists that name them."""
    addresses = {name: gm.base + own.address for name, (_, own) in ready.tensors.items()}
    for name, value in ready.arguments.items():
        if isinstance(value, TensorList):
            host, tensor = ready.tensors[name]
            value.complete(name, tensor.buffer.data, addresses)
            host.raw[:] = tensor.buffer.data


def _require_size(device_kernel: CppKernel) -> None:
    """Refuse a launch of threads as one of cores, or the other way round, or on another chip."""
    name, size = device_kernel.name, device_kernel.dimensions
    if device_kernel.is_of_threads and size is None:
        raise unable(name, f"{name} is a kernel of threads (SIMT): {name}[grid, block](...)")
    if size is not None and not device_kernel.is_of_threads:
        raise unable(name, f"{name} is a kernel of cores: {name}[blocks](...)")
    if size is not None:
        size.require_chip(name, chip_named(device_kernel.options.of_session().chip))


def _built_parts(device_kernel: CppKernel, ready: ReadyLaunch) -> dict[str, Built]:
    """Return the libraries of a kernel for the kinds of core that it is launched on."""
    return {
        part: device_kernel.build(part, ready.chip.arch)
        for part in ("cube", "vector")
        if any(core.is_aic == (part == "cube") for core in ready.cores)
    }


def _notes(
    device_kernel: CppKernel,
    ready: ReadyLaunch,
    arguments: Sequence[Any],
    words: Mapping[str, Any],
) -> Iterator[SanitizerFinding]:
    """Yield notes on arrays that typed pointers take; bytes of tiling data have no type.

    Raises
    ------
    RequestError
        If a pointer does not take its array.
    """
    given = {**dict(zip(device_kernel.names, arguments, strict=False)), **words}
    untyped = {device_kernel.workspace, tiling_name(device_kernel.parameters)}
    for each in device_kernel.parameters:
        if each.name in ready.tensors and each.name not in untyped:
            has = ready.tensors[each.name][0].dtype
            spelled = spelled_code(given.get(each.name)) or has.name
            note = note_on(each, GivenType(has, spelled))
            if note is not None:
                place = device_kernel.place
                yield SanitizerFinding("other-sign", note, each.name, place, EVERY_CORE)


def _unwritten(
    gm: DeviceMemory, ready: ReadyLaunch, checks: frozenset[str]
) -> tuple[SanitizerFinding, ...]:
    """Return findings at outputs; what the kernel stored by pointers counts as written."""
    gm.take_stores()
    return tuple(ready.unwritten()) if INITCHECK in checks else ()


class _Loaded:
    """The libraries of a launch in its process, and the kernel that runs them."""

    def __init__(
        self,
        child: Child,
        parts: Mapping[str, Built],
        base: int,
        device_kernel: CppKernel,
        ready: ReadyLaunch,
    ) -> None:
        self.bridge, self._child, self._place = Bridge(child), child, device_kernel.place
        self._parts, self._base, self._kernel = parts, base, device_kernel
        self._entries: dict[str, int] = {}
        self._at_once, self._counts = ready.at_once, ready.options.trace
        named = tiling_name(device_kernel.parameters)
        self._tiled = named if named in ready.tensors else None
        self._tiling_bytes = ready.tensors[named][0].raw.size if named in ready.tensors else 0

    @property
    def kernel(self) -> CppKernel:
        """The kernel as the cores of the launch run it."""

        def function(handle: CoreHandle, **arguments: Any) -> None:
            self._run(handle, arguments)

        return self._kernel.changed(function=function)

    def _run(self, handle: CoreHandle, arguments: Mapping[str, Any]) -> None:
        """Run the kernel on one core: its blocks, one after another."""
        entry = self._entry("cube" if handle.core.id.is_aic else "vector")
        given = [self._word(each, arguments[each.name]) for each in self._kernel.parameters]
        device_kernel = self._kernel

        def run(block: int, at_once: int) -> None:
            facts = launch_facts(
                handle,
                device_kernel.kind,
                self._base,
                block=block,
                at_once=at_once,
                tiling_key=device_kernel.tiling_key,
                auto_sync=device_kernel.auto_sync,
                size=device_kernel.dimensions,
                counts=self._counts,
            )
            if device_kernel.workspace:
                facts.workspace = self._base + arguments[device_kernel.workspace].address
            if self._tiled is not None:
                facts.tiling = self._base + arguments[self._tiled].address
                facts.tiling_bytes = self._tiling_bytes
            self.bridge.run(handle, entry, given, facts, self._place)

        # Threads of all blocks run in one call of the first core: blocks have no turns.
        if device_kernel.dimensions is None:
            turns(handle, run, self._at_once, self._place)
        else:
            run(handle.core.registers.position.block, self._at_once)

    def _word(self, parameter: EntryParameter, value: Any) -> int:
        if isinstance(value, Pointer):
            return self._base + value.address
        if isinstance(value, bytes):
            return self._child.placed(value)
        return word_of(parameter, value, tensor=False)

    def _entry(self, part: str) -> int:
        """Return the entry of a part; a library with variables is loaded once for each core."""
        library = self._parts[part]
        symbol = partial(self._child.symbol, library.path, library.symbol)
        if library.copies:
            return symbol(answer_host=self.bridge.answer_host, copied=True)
        if part not in self._entries:
            self._entries[part] = symbol(answer_host=self.bridge.answer_host)
        return self._entries[part]
