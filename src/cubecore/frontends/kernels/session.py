"""Options and results of launches, and the session that collects a script's launches."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, fields, replace

import numpy as np
from numpy.typing import NDArray

from cubecore.aliases import Json, JsonMapping
from cubecore.chips import Chip, chip, default_chip
from cubecore.errors import did_you_mean, one_of, refuse, unable
from cubecore.frontends.finding_text import launch_text
from cubecore.frontends.kernels.host_tensors import HostTensor
from cubecore.isa.program.topology import CoreId
from cubecore.isa.program.trace import InstructionTrace
from cubecore.isa.program.tree import Location
from cubecore.machine.debug.debugger import LaunchDebugger
from cubecore.machine.memory.buffers import GlobalTensor
from cubecore.machine.options import require_engine, require_order
from cubecore.machine.sanitize.findings import SanitizerFinding, causes, faults
from cubecore.presented import Figures, Presented

MOST_ISSUES = 2_000_000
"""The default limit of a launch's instructions: ten seconds' to a minute's work."""


@dataclass(frozen=True, slots=True)
class LaunchOptions:
    """The options of a launch, each a keyword of `kernel`, `Kernel.using` and `load`.

    Attributes
    ----------
    chip : str
        Full SoC name.
    settings : mapping
        Fields of the chip to replace, as texts: a what-if chip.
    checks : str
        memcheck, initcheck, racecheck, synccheck and usecheck with commas between them; or usual
        (all but the last), all or none.
    limit : int
        The most instructions that the launch may issue, at least 1.
    order : str
        program, late or early (consumers, or producers, run as early as the flags allow) or
        random:SEED.
    trace : bool
        Keep the instructions that each core issues.
    engine : str
        fast or lockstep (equal cores together, where it makes no difference) or reference; blas
        executes no kernels in Python and falls back to reference.
    """

    chip: str = field(default_factory=default_chip)
    settings: Mapping[str, str] = field(default_factory=dict)
    checks: str = "usual"
    limit: int = MOST_ISSUES
    order: str = "program"
    trace: bool = False
    engine: str = "fast"

    def changed(self, given: JsonMapping) -> "LaunchOptions":
        """Return the options with some of them replaced.

        Raises
        ------
        RequestError
            If an option, the engine or the order is unknown, or the limit is below 1.
        """
        names = [f.name for f in fields(self)]
        for name in given:
            if name not in names:
                raise refuse("an option", one_of(names), repr(name), did_you_mean(name, names))
        changed = replace(self, **given)
        for name in ("chip", "checks", "order", "engine"):
            if not isinstance(value := getattr(changed, name), str):
                raise refuse(name, "be text", repr(value))
        if not isinstance(changed.settings, Mapping):
            raise refuse("settings", "map the chip's fields to values", repr(changed.settings))
        require_engine(changed.engine)
        require_order(changed.order)
        if (
            isinstance(changed.limit, bool)
            or not isinstance(changed.limit, int)
            or changed.limit < 1
        ):
            raise refuse("limit", "be a whole number above 0", repr(changed.limit))
        return changed

    def of_session(self) -> "LaunchOptions":
        """Return the options, with those that the session asks for, if there is one.

        Raises
        ------
        RequestError
            If the kernel names a chip, and the session's is of another architecture.
        """
        session = current_session()
        if session is None:
            return self
        changed = self.changed(session.options)
        # The default stands for no name: kernels without one run on every chip.
        if self.chip != default_chip() and self.chip != changed.chip:
            own, other = chip(self.chip), chip(changed.chip)
            if own.arch != other.arch:
                of = f"the kernel is for {own.name} (architecture {own.arch})"
                said = f"{of}, and {other.name} is {other.arch}"
                raise unable("chip", said, f"run it with --chip {own.name}")
        left = session.instructions_left
        return changed if left is None else replace(changed, limit=max(1, min(changed.limit, left)))


@dataclass(frozen=True, eq=False, slots=True)
class KernelRun(Presented):
    """The result of a launch.

    Attributes
    ----------
    kernel : str
        The kernel's name.
    blocks : int
        The blocks of the launch.
    chip : Chip
        The chip that it ran on.
    findings : tuple of SanitizerFinding
        The findings of the checks, in the order in which they were made.
    issued : int
        The instructions that all cores issued.
    engine : str
        The engine that ran it: lockstep or reference.
    wall_s : float
        Seconds from the first issue to the last byte written back.
    traces : dict
        The instructions of each core, with `trace`.
    tensors : tuple
        The kernel's tensors, each with its location in global memory.
    outputs : tuple of str
        The arrays that the kernel must fill, and those that it changed; no workspaces.
    reads : dict
        The values that the scalar units of all cores read from memory, by line.
    unwritten : tuple of str
        The outputs that began uninitialised, of which `written` tells the bytes.
    cores : tuple of CoreId
        The cores of all blocks, of which some have run where blocks were sampled.
    cut : bool
        True if cores that record alone were stopped before their ends.
    """

    kernel: str
    blocks: int
    chip: Chip = field(repr=False)
    findings: tuple[SanitizerFinding, ...]
    issued: int
    engine: str
    wall_s: float
    traces: dict[CoreId, InstructionTrace] = field(repr=False)
    tensors: tuple[tuple[HostTensor, GlobalTensor], ...] = field(repr=False)
    outputs: tuple[str, ...] = ()
    reads: dict[Location, int] = field(default_factory=dict, repr=False)
    unwritten: tuple[str, ...] = ()
    cores: tuple[CoreId, ...] = field(default=(), repr=False)
    cut: bool = field(default=False, repr=False)

    @property
    def counted(self) -> int:
        """Issued instructions and values that scalar units read: a limit counts both."""
        return self.issued + sum(self.reads.values())

    @property
    def clean(self) -> bool:
        """True if there is no finding but notes."""
        return not faults(self.findings)

    def written(self, name: str) -> NDArray[np.bool_]:
        """Return which bytes of an output or a workspace the launch has written.

        Bytes that were copied from uninitialised memory do not count as written.

        Parameters
        ----------
        name : str
            The parameter of the kernel.

        Returns
        -------
        array of bool
            A mark for each byte, in the array's order.

        Raises
        ------
        RequestError
            If the kernel has no such array, or began with its contents: `outputs` and `scratch`
            name those that begin uninitialised.
        """
        return np.asarray(self._fresh(name).buffer.valid != 0)

    def stored(self, name: str) -> NDArray[np.bool_]:
        """Return which bytes of an output or a workspace the launch has stored to.

        Those count that were copied from uninitialised memory, where stores are noted: in C++, and
        where some blocks alone have run.

        Parameters
        ----------
        name : str
            The parameter of the kernel.

        Returns
        -------
        array of bool
            A mark for each byte, in the array's order.

        Raises
        ------
        RequestError
            As `written` does.
        """
        tensor = self._fresh(name)
        return tensor.stored(0, tensor.buffer.size_bytes)

    def _fresh(self, name: str) -> GlobalTensor:
        """Return the tensor of an array that began uninitialised."""
        tensors = {host.name: tensor for host, tensor in self.tensors}
        fresh = [n for n, tensor in tensors.items() if n in self.unwritten or tensor.scratch]
        if name not in fresh:
            need = f"name an array that began uninitialised ({', '.join(fresh) or 'none'})"
            raise refuse("name", need, name, did_you_mean(name, fresh))
        return tensors[name]

    def to_json(self) -> Json:
        """Return the launch as JSON.

        Returns
        -------
        dict
            The fields but `traces`, `tensors`, `reads`, `unwritten`, `cores` and `cut`, with
            the chip's name and ``clean``.
        """
        return {
            "kernel": self.kernel,
            "blocks": self.blocks,
            "chip": self.chip.name,
            "clean": self.clean,
            "findings": [finding.to_json() for finding in self.findings],
            "issued": self.issued,
            "engine": self.engine,
            "wall_s": self.wall_s,
        }

    @property
    def title(self) -> str:
        """The kernel with its blocks, on its chip."""
        return f"{self.kernel}[{self.blocks}] on {self.chip.name}"

    @property
    def text(self) -> str:
        """The title, and what was found."""
        return launch_text(self.title, self.issued, self.wall_s, self.findings)

    def to_rows(self) -> list[Json]:
        """Return the findings as rows.

        Returns
        -------
        list of dict
            A row for each finding.
        """
        return [finding.to_json() for finding in self.findings]

    def _figures(self) -> Figures:
        ids = ", ".join(dict.fromkeys(finding.id for finding in self.findings))
        figures = [("findings", ids or "none"), ("issued", f"{self.issued:,}")]
        return self.title, [*figures, ("engine", self.engine)]

    def _remarks(self) -> list[str]:
        return [finding.text or finding.message for finding in causes(self.findings)]


_session: ContextVar["ScriptSession | None"] = ContextVar("session", default=None)


@dataclass(eq=False)
class ScriptSession:
    """The launches that a script makes.

    `options` replace those of its kernels, None leaving the kernel's own; `runs` collects the
    results; a `debugger` stops the launches. `judge` sees each result while its arrays hold what
    the launch left. `results` are arrays of a program that its main copied to the host, and
    `parameters` the kernel's names of an operator's arrays, by those of its registration. All
    launches together may issue `instructions`, None for no limit but each launch's own. `returned`
    are marks of the bytes that were written, of arrays that bindings have returned, `host_values`
    the bytes of inputs whose values a tiling function was given. With `keeps_arrays` results of a
    program's launches have its arrays as each launch left them, else their sizes alone. With
    `sampled` that many blocks of each launch are run, the first, the last and some between them.
    Arrays of a `blank` one have sizes alone: they are 0, and nothing is copied from or to them.
    """

    options: Json = field(default_factory=dict)
    runs: list[KernelRun] = field(default_factory=list)
    debugger: LaunchDebugger | None = None
    judge: Callable[[KernelRun], None] | None = None
    results: list[str] = field(default_factory=list)
    parameters: dict[str, str] = field(default_factory=dict)
    instructions: int | None = None
    returned: list[NDArray[np.bool_]] = field(default_factory=list)
    host_values: dict[str, int] = field(default_factory=dict)
    keeps_arrays: bool = False
    sampled: int = 0
    blank: bool = False

    @property
    def instructions_left(self) -> int | None:
        """The instructions that launches may still issue; None for no limit."""
        if self.instructions is None:
            return None
        return self.instructions - sum(run.counted for run in self.runs)

    @contextmanager
    def collecting(self) -> Iterator["ScriptSession"]:
        """Collect what is launched inside."""
        token = _session.set(self)
        try:
            yield self
        finally:
            _session.reset(token)


def is_blank() -> bool:
    """Return whether arrays have sizes alone."""
    session = _session.get()
    return session is not None and session.blank


def sampled_count() -> int:
    """Return of how many AI Cores the blocks are run; 0 for all."""
    session = _session.get()
    return 0 if session is None else session.sampled


def current_session() -> ScriptSession | None:
    """Return the session that collects launches, if there is one."""
    return _session.get()
