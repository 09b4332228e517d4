"""Kernels in Python: `@kernel` makes a launchable kernel of a function over a core handle."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from inspect import signature
from time import perf_counter
from typing import Any, NoReturn, Self, TypeVar, cast, overload

import numpy as np

from cubecore.aliases import Json
from cubecore.chips import chip as chip_named
from cubecore.chips.model import Chip
from cubecore.dtypes import ElementType, element_type
from cubecore.errors import CubecoreError, DeadlockError, did_you_mean, refuse, shortened, unable
from cubecore.frontends.capi.calls.call_sites import known_calls
from cubecore.frontends.capi.calls.issues import Issues
from cubecore.frontends.capi.core_handle import CoreHandle
from cubecore.frontends.capi.pointer import Pointer, RuntimeInt
from cubecore.frontends.diagnosis import launch as diagnosis
from cubecore.frontends.kernels import launch_findings
from cubecore.frontends.kernels.allocation import allocated, private_memory
from cubecore.frontends.kernels.blank_launch import recorded_alone
from cubecore.frontends.kernels.host_tensors import HostTensor, host_tensor, write_back
from cubecore.frontends.kernels.launch_cores import (
    aivs_of_core,
    issued_by_pipe,
    launch_cores,
    sampled_cores,
)
from cubecore.frontends.kernels.parameters import (
    MARKS,
    bound_arguments,
    names_in,
    parameters_of,
    require_one_mark,
)
from cubecore.frontends.kernels.session import (
    KernelRun,
    LaunchOptions,
    current_session,
    is_blank,
    sampled_count,
)
from cubecore.frontends.kernels.tensor_lists import TensorList
from cubecore.frontends.source_locations import (
    InstructionLimitError,
    KernelError,
    place_of,
    raised_at,
)
from cubecore.isa.declare.instruction import Mem
from cubecore.isa.declare.registers import CorePosition
from cubecore.isa.program.topology import CoreId
from cubecore.isa.program.trace import InstructionTrace
from cubecore.isa.program.tree import Location
from cubecore.machine.debug.debugger import LaunchDebugger
from cubecore.machine.execute import one_core
from cubecore.machine.execute.array_bounds import ArrayWatch
from cubecore.machine.execute.core import Core
from cubecore.machine.execute.scheduler import RunOutcome, Task, run
from cubecore.machine.finding_kinds import INITCHECK, MEMCHECK
from cubecore.machine.group.kernels import run_together
from cubecore.machine.group.recorder import Recorder
from cubecore.machine.memory.buffers import GlobalMemory, GlobalTensor
from cubecore.machine.options import checks_of
from cubecore.machine.sanitize.findings import SanitizerFinding

KINDS = ("vector", "cube", "mix", "mix_1_1")


@dataclass(frozen=True)
class Kernel:
    """A function over a core handle, launched as ``kernel[blocks](tensors and numbers)``.

    `blocks` are AIVs for a vector kernel and AI Cores for a cube or mix kernel. Tensors are NumPy,
    ml_dtypes, DLPack or torch CPU arrays: pointers into global memory. Where blocks may take
    `turns`, a launch has up to 65,535 of them. Findings are in its `language`, python or cpp.
    """

    function: Callable[..., None]
    kind: str
    outputs: tuple[str, ...]
    scratch: tuple[str, ...]
    types: dict[str, ElementType]
    options: LaunchOptions
    turns: bool = field(default=False, kw_only=True)
    language: str = field(default="python", kw_only=True)

    @property
    def name(self) -> str:
        """The function's name; of a very long one the beginning."""
        return shortened(self.function.__name__)

    @property
    def place(self) -> Location:
        """Return the source location of the function."""
        return place_of(self.function.__code__)

    def using(self, **options: Any) -> Self:
        """Return the kernel with other options.

        Parameters
        ----------
        **options : object
            Fields of `LaunchOptions`: chip, settings, checks, limit, order, trace, engine; and
            outputs and scratch, which name parameters as in `kernel`.

        Returns
        -------
        Kernel
            The same function with the options replaced.

        Raises
        ------
        RequestError
            If an option does not exist, or does not take its value, or an output or scratch is no
            array of the kernel's, or both.
        """
        plain = dict(options)
        marks = {word: names_in(plain.pop(word)) for word in MARKS if word in plain}
        for word, names in marks.items():
            for name in names:
                self.require_array(word, name)
        outputs, scratch = marks.get("outputs", self.outputs), marks.get("scratch", self.scratch)
        require_one_mark(outputs, scratch)
        options_after = self.options.changed(plain)
        return replace(self, options=options_after, outputs=outputs, scratch=scratch)

    @property
    def names(self) -> tuple[str, ...]:
        """The parameters behind the core."""
        return tuple(signature(self.function).parameters)[1:]

    def require_array(self, subject: str, name: str) -> None:
        """Require a parameter that may be an array.

        Parameters
        ----------
        subject : str
            The words that asked for it, which begin the sentence.
        name : str
            The parameter's name.

        Raises
        ------
        RequestError
            If there is no such parameter.
        """
        if name not in self.names:
            need = f"name a parameter of {self.name} ({', '.join(self.names) or 'none'})"
            raise refuse(subject, need, name, did_you_mean(name, self.names))

    def __call__(self, *_: object, **__: object) -> NoReturn:
        """Refuse a launch without blocks.

        Raises
        ------
        RequestError
            Always: a kernel is launched as ``kernel[blocks](...)``.
        """
        raise unable(self.name, f"{self.name} needs a number of blocks: {self.name}[blocks](...)")

    def __getitem__(self, blocks: int) -> Callable[..., KernelRun]:
        """Return the launch on `blocks` blocks: AIVs of a vector kernel, else AI Cores."""
        return lambda *arguments, **words: launch(self, blocks, arguments, words)


@overload
def kernel(function: Callable[..., None], /) -> Kernel: ...


@overload
def kernel(
    *,
    kind: str = "vector",
    outputs: str | Sequence[str] = (),
    scratch: str | Sequence[str] = (),
    types: dict[str, str] | None = None,
    **options: object,
) -> Callable[[Callable[..., None]], Kernel]: ...


def kernel(
    function: Callable[..., None] | None = None,
    /,
    *,
    kind: str = "vector",
    outputs: str | Sequence[str] = (),
    scratch: str | Sequence[str] = (),
    types: dict[str, str] | None = None,
    **options: object,
) -> Any:
    """Make a kernel of a function whose first parameter is the core (`CoreHandle`).

    Arrays keep their contents where the kernel stores nothing, but for outputs and scratch.

    Parameters
    ----------
    function : callable
        The function; without it a decorator is returned.
    kind : str
        vector (each block an AIV), cube (an AIC), mix (an AI Core: its AIC and two AIVs all run
        the function, and ask `core.is_aic`) or mix_1_1 (its AIC and one AIV).
    outputs : str or sequence of str
        Parameters whose arrays start uninitialised and must be written whole.
    scratch : str or sequence of str
        Parameters whose arrays are workspaces: they start uninitialised, and bytes left so are 0xFF
        afterwards.
    types : dict or None
        The element type that an argument must have, by parameter.
    **options : object
        Fields of `LaunchOptions`: chip, settings, checks, limit, order, trace, engine.

    Returns
    -------
    Kernel
        The kernel, launched as ``kernel[blocks](tensors and numbers)``.

    Raises
    ------
    RequestError
        If the kind does not exist, an output is no parameter or is in `scratch` as well, or the
        function does not take a core and plain parameters.

    Examples
    --------
    >>> import numpy as np
    >>> @cubecore.kernel(outputs="y")
    ... def copy(core, x, y):
    ...     tile = core.ubuf("float", 64)
    ...     core.asc_copy_gm2ub_sync(tile, x, 256)
    ...     core.asc_copy_ub2gm_sync(y, tile, 256)
    >>> x, y = np.arange(64, dtype=np.float32), np.empty(64, np.float32)
    >>> copy[1](x, y).clean
    True
    """
    make = _maker(kind, names_in(outputs), names_in(scratch), types or {}, options)
    return make if function is None else make(function)


def _maker(
    kind: str,
    outputs: tuple[str, ...],
    scratch: tuple[str, ...],
    types: Mapping[str, str],
    options: Mapping[str, object],
) -> Callable[[Callable[..., None]], Kernel]:
    """Return the decorator that makes kernels of a kind; what it is asked for is as in `kernel`."""
    if kind not in KINDS:
        raise refuse("kind", f"be {', '.join(KINDS)}", repr(kind))
    require_one_mark(outputs, scratch)

    def make(body: Callable[..., None]) -> Kernel:
        parameters = parameters_of(body)
        for name in (*outputs, *scratch, *types):
            if name not in parameters:
                raise unable(name, f"{body.__name__} has no parameter {name} after the core")
        kinds = {name: element_type(text, name) for name, text in types.items()}
        return Kernel(body, kind, outputs, scratch, kinds, LaunchOptions().changed(options))

    return make


@dataclass(frozen=True, eq=False, slots=True)
class ReadyLaunch:
    """A launch that is ready: its cores, its arguments, its tensors in global memory."""

    kernel: Kernel
    options: LaunchOptions
    chip: Chip
    blocks: int
    cores: tuple[CoreId, ...]
    arguments: Json
    tensors: dict[str, tuple[HostTensor, GlobalTensor]]
    recorded: dict[CoreId, InstructionTrace]
    """The issues of each core."""
    issues: Issues
    debugger: LaunchDebugger | None

    @property
    def at_once(self) -> int:
        """The blocks that run at once; a core's next block is this much further on."""
        return len({self._position(core).block for core in self._every_core})

    @property
    def _every_core(self) -> tuple[CoreId, ...]:
        """The cores of all blocks; those that run are fewer where blocks are sampled."""
        own = self.kernel
        return tuple(launch_cores(own.name, own.kind, self.blocks, self.chip, turns=own.turns))

    def run(self, gm: GlobalMemory, checks: frozenset[str]) -> tuple[RunOutcome, str]:
        """Run every core to its end; return the findings, and the engine that ran it."""
        try:
            return self._run(gm, checks)
        except DeadlockError as error:
            error.findings = self.told(error.findings)
            raise
        except InstructionLimitError as error:
            error.issued = issued_by_pipe(self.recorded.values())
            raise

    def _run(self, gm: GlobalMemory, checks: frozenset[str]) -> tuple[RunOutcome, str]:
        # Lockstep executes cores together in program order: another order and a debugger, which
        # stops single cores, need the reference engine.
        tasks, order = [Task(core, self.body) for core in self.cores], self.options.order
        if is_blank():
            return recorded_alone(self.chip, gm, tasks, self.issues), "recorded"
        together = order == "program" and self.options.engine in {"fast", "lockstep"}
        if self.debugger is None and together:
            known = self.issues.calls.launches
            return run_together(self.chip, gm, tasks, checks, known=known), "lockstep"
        if self.debugger is None:
            return run(self.chip, gm, tasks, checks=checks, order=order), "reference"
        self.debugger.launched(self._places)
        stepping = self.debugger.around(one_core.execute)
        return run(self.chip, gm, tasks, stepping, checks=checks, order=order), "reference"

    def told(self, findings: Sequence[SanitizerFinding]) -> tuple[SanitizerFinding, ...]:
        """Return findings in the kernel's language, each with its blocks and its cause."""
        last, step = self.blocks, self.at_once
        blocks = {core: range(self._position(core).block, last, step) for core in self.cores}
        arrays = {name: range(held.address, held.end) for name, held in self._places.items()}
        language, recorded = self.kernel.language, {} if is_blank() else self.recorded
        return diagnosis.told(findings, self.chip, language, blocks, arrays, recorded)

    def done(
        self,
        findings: tuple[SanitizerFinding, ...],
        issued: int,
        engine: str,
        wall_s: float,
        changed: Sequence[str] = (),
        kept: Sequence[tuple[HostTensor, GlobalTensor]] | None = None,
    ) -> KernelRun:
        """Return what the launch left, with arrays `changed` and `kept`; tell the session."""
        run = KernelRun(
            kernel=self.kernel.name,
            blocks=self.blocks,
            chip=self.chip,
            findings=findings,
            issued=issued,
            engine=engine,
            wall_s=wall_s,
            traces=self.recorded if self.options.trace else {},
            tensors=tuple(self.tensors.values()),
            outputs=self._outputs(changed),
            reads=self.issues.reads,
            unwritten=self.kernel.outputs,
            cores=self._every_core,
            cut=self.issues.cut,
        )
        session = current_session()
        if session is not None and session.judge is not None:
            session.judge(run)
        if kept is not None:
            run = replace(run, tensors=tuple(kept))
        if session is not None:
            session.runs.append(run)
        return run

    def _outputs(self, changed: Sequence[str]) -> tuple[str, ...]:
        """Return the arrays that it must fill, and others but workspaces that it changed."""
        kept = (name for name in changed if not self.tensors[name][1].scratch)
        return tuple(dict.fromkeys((*self.kernel.outputs, *kept)))

    def body(self, core: Core) -> None:
        """Run the function on one core."""
        trace = None if isinstance(core, Recorder) else InstructionTrace()
        self.recorded[core.id] = trace if trace is not None else cast("Recorder", core).trace
        core.registers = core.registers.leaving("position", self._position(core.id))
        checked = MEMCHECK in checks_of(self.options.checks.split(","))
        arrays = ArrayWatch(core, self.issues.calls.spans) if checked else None
        handle = CoreHandle(core, self.issues, trace, self.debugger, arrays)
        arguments = {n: self._argument(handle, n, v) for n, v in self.arguments.items()}
        if self.debugger is not None:
            core.observe = self.debugger.touched
            self.debugger.arguments[core.id] = arguments
        try:
            self.kernel.function(handle, **arguments)
            handle.ended()
            if self.debugger is not None:
                self.debugger.ended(core)
            else:
                handle.release()
        except (KernelError, DeadlockError):
            raise
        except Exception as error:
            where = raised_at(error.__traceback__) or self.kernel.place
            if isinstance(error, CubecoreError):
                raise KernelError.at(where, error) from None
            got = f"{type(error).__name__}: {error}"
            if error.__traceback__ is not None:  # begin with the kernel's function, not with this
                error = error.with_traceback(error.__traceback__.tb_next)
            raise KernelError.at(where, unable("the kernel", f"the kernel raised {got}")) from error

    def _position(self, core: CoreId) -> CorePosition:
        """Return where a core is: a vector kernel's blocks are single AIVs."""
        each = aivs_of_core(self.chip)
        if self.kernel.kind == "vector":
            return CorePosition(core.core * each + core.sub - 1, self.blocks)
        if core.is_aic:
            return CorePosition(core.core, self.blocks)
        return CorePosition(core.core, self.blocks, core.sub - 1, each)

    def _argument(self, handle: CoreHandle, name: str, value: object) -> Any:
        if name not in self.tensors:
            return value
        host, tensor = self.tensors[name]
        return Pointer(Mem.GM, host.dtype, tensor.address, handle)

    def unwritten(self) -> Iterator[SanitizerFinding]:
        """Yield a finding for each tensor that uninitialised bytes are left in.

        Blocks that were not run would have written some.
        """
        if self.cores != self._every_core:
            return iter(())
        return launch_findings.unwritten(self._places, self.kernel.outputs, self.kernel.place)

    @property
    def _places(self) -> dict[str, GlobalTensor]:
        return {name: tensor for name, (_, tensor) in self.tensors.items()}


Memory = TypeVar("Memory", bound=GlobalMemory)


def ready_launch(
    device_kernel: Kernel,
    blocks: int,
    arguments: tuple[object, ...],
    words: dict[str, Any],
    memory: Callable[[Sequence[int]], Memory],
) -> tuple[ReadyLaunch, Memory]:
    """Return a launch that is ready to run, and its global memory.

    `memory` makes it, given the bytes of each tensor.

    Raises
    ------
    RequestError
        If the chip does not have the blocks, or an argument is not a tensor.
    """
    session, options = current_session(), device_kernel.options.of_session()
    chip = chip_named(options.chip).what_if(options.settings)
    chip = chip.with_one_aiv_per_aic if device_kernel.kind == "mix_1_1" else chip
    given = bound_arguments(device_kernel.name, device_kernel.function, arguments, words)
    hosts = []
    for name, value in given.items():
        if isinstance(value, TensorList):
            hosts += value.hosts(name)
            continue
        host = host_tensor(name, value, device_kernel.types.get(name))
        if host is not None:
            hosts.append(host)
        elif name in (*device_kernel.outputs, *device_kernel.scratch, *device_kernel.types):
            raise refuse(name, "be an array", repr(value))
        elif isinstance(value, (int, np.integer)) and not isinstance(value, bool):
            given[name] = RuntimeInt(int(value), f"the argument {name}")
    gm = memory([host.raw.size for host in hosts])
    sampled = sampled_count()
    if sampled and not is_blank():  # what is blank has no contents, and may have terabytes
        gm.follow_stores()
    tensors = allocated(gm, hosts, device_kernel.outputs, device_kernel.scratch)
    name, kind, turns = device_kernel.name, device_kernel.kind, device_kernel.turns
    cores = tuple(launch_cores(name, kind, blocks, chip, turns=turns))
    if sampled:
        cores = sampled_cores(cores, sampled)
    issues = Issues(options.limit, known_calls(device_kernel.function, chip, traced=options.trace))
    debugger = None if session is None else session.debugger
    return ReadyLaunch(
        device_kernel, options, chip, blocks, cores, given, tensors, {}, issues, debugger
    ), gm


def launch(
    device_kernel: Kernel, blocks: int, arguments: tuple[object, ...], words: Json
) -> KernelRun:
    """Run a kernel; the arrays are written when all cores have ended, or not at all.

    Raises
    ------
    RequestError
        If the chip does not have the blocks, or an argument is not a tensor.
    KernelError
        If the kernel fails; the message begins with the location in its source.
    DeadlockError
        If cores wait for each other.
    """
    ready, gm = ready_launch(device_kernel, blocks, arguments, words, private_memory)
    checks = checks_of(ready.options.checks.split(","))
    begin = perf_counter()
    outcome, engine = ready.run(gm, checks)
    changed = write_back((host, tensor.buffer.data) for host, tensor in ready.tensors.values())
    unwritten = ready.unwritten() if INITCHECK in checks else ()
    wall_s = perf_counter() - begin
    findings = ready.told((*outcome.findings, *unwritten))
    return ready.done(findings, outcome.issued, engine, wall_s, changed)
