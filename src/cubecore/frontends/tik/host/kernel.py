"""A built kernel: its launch, its execution and its time."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from time import perf_counter
from types import MappingProxyType
from typing import Any

import numpy as np

from cubecore.aliases import Json
from cubecore.arrays import Array
from cubecore.chips.model import Chip
from cubecore.errors import Violation
from cubecore.frontends.diagnosis.launch import told
from cubecore.frontends.kernels.launch_findings import ranges_of
from cubecore.frontends.tik.trace.errors import refuse, unable
from cubecore.frontends.tik.trace.run_options import run_options
from cubecore.frontends.tik.trace.tensor import Tensor
from cubecore.isa.declare.instruction import Mem
from cubecore.isa.declare.scale_registers import SetAtomic
from cubecore.isa.program.expr import Expr, Var
from cubecore.isa.program.launch import CoreProgram, Launch, TensorSpec
from cubecore.isa.program.topology import CoreId
from cubecore.isa.program.trace import InstructionTrace
from cubecore.isa.program.tree import Assign, Issue, LoadScalar, Location, Program, nodes
from cubecore.machine.engines import run_launch
from cubecore.machine.execute.core import Core
from cubecore.machine.finding_kinds import INITCHECK
from cubecore.machine.memory.buffers import GlobalMemory, MemoryBuffer
from cubecore.machine.sanitize.findings import EVERY_CORE, SanitizerFinding, faults
from cubecore.units import align_up

_SLACK = 32
"""Moves are of whole blocks: the last one may end this much past a tensor's last byte."""
_NEVER_WRITTEN = np.array([0xFE, 0xFF], np.uint8)
"""The contents of outputs before a launch: NaN, distinct from uninitialised local memory."""
_ALONE: Mapping[str, str] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class TikRun:
    """The result of a launch: every output by name, and the findings.

    `wall_s` is from the first issue to the last byte written; `launch` is what was run, and `bases`
    says where its tensors lay. `traces` holds what each core issued, if it was asked for and
    depends on what cores read.
    """

    kernel: str
    blocks: int
    chip: Chip
    outputs: Mapping[str, Array]
    findings: tuple[SanitizerFinding, ...]
    issued: int
    wall_s: float
    launch: Launch
    bases: Mapping[str, int]
    traces: Mapping[CoreId, InstructionTrace]

    @property
    def clean(self) -> bool:
        """True if nothing but notes was found."""
        return not faults(self.findings)

    def to_json(self) -> dict[str, Any]:
        """Return the launch as JSON."""
        return {
            "kernel": self.kernel,
            "blocks": self.blocks,
            "chip": self.chip.name,
            "clean": self.clean,
            "findings": [finding.to_json() for finding in self.findings],
            "issued": self.issued,
            "wall_s": self.wall_s,
        }


@dataclass(frozen=True, slots=True)
class _GlobalTensor:
    """The address, shape and bytes of a tensor in global memory during a launch."""

    base: int
    buffer: MemoryBuffer
    shape: tuple[int, ...]
    size: int

    def array(self, dtype: "np.dtype[Any]") -> Array:
        """Return a copy of what lies there."""
        return self.buffer.data[: self.size].copy().view(dtype).reshape(self.shape)


@dataclass(frozen=True, eq=False)
class TikKernel:
    """A tree for each core, and its tensors of global memory in the order of the arguments."""

    name: str
    chip: Chip
    inputs: tuple[Tensor, ...]
    outputs: tuple[Tensor, ...]
    others: tuple[Tensor, ...]
    slots: Mapping[str, Var]
    core: Var
    cores: Var
    blocks: int
    sub: int
    body: tuple[Any, ...]
    zeroed: frozenset[str]
    constants: Mapping[str, Any]
    place: Location

    def to_json(self) -> Json:
        """Return the kernel, its chip and its tensors as JSON."""
        inputs, outputs = ([_described(t) for t in part] for part in (self.inputs, self.outputs))
        return {
            "kernel": self.name,
            "blocks": self.blocks,
            "chip": self.chip.name,
            "inputs": inputs,
            "outputs": outputs,
        }

    def launch(
        self,
        feeds: Mapping[str, object],
        outputs: Mapping[str, Array] | None = None,
        inplace: Mapping[str, str] | None = None,
    ) -> TikRun:
        """Run the kernel on arrays by tensor name; `outputs` give shapes that the program does not.

        `inplace` names outputs that lie where an input does, as frameworks launch operators that
        update a variable: its bytes are the output's first ones.

        Raises
        ------
        RequestError
            If a feed is missing, unknown, or of another shape or type, or an in-place output has no
            input.
        """
        gm, shared = GlobalMemory(), self._shared(inplace or {})
        tensors = self._laid_out(gm, self._feeds_by_tensor(feeds, outputs or {}), shared)
        launch = self._launch({name: held.size for name, held in tensors.items()}, shared)
        bases = {name: held.base for name, held in tensors.items()}
        options = run_options()
        begin = perf_counter()
        traces: dict[CoreId, InstructionTrace] = {}
        loads = (node for node in nodes(self.body) if isinstance(node, LoadScalar))
        traced = traces if options.trace and any(loads) else None
        run = "lockstep", options.wanted_checks, traced
        order = options.order or "program"
        outcome, _ = run_launch(
            launch, self.chip, gm, bases, *run, order=order, ended=self._judge_end
        )
        wall_s = perf_counter() - begin
        results = {t.name: tensors[t.name].array(t.record.numpy) for t in self.outputs}
        findings = outcome.findings
        if INITCHECK in options.wanted_checks:
            findings = (*findings, *self._never_written(tensors))
        if findings:
            findings = self._told(findings, launch, tensors)
        return TikRun(
            kernel=self.name,
            blocks=self.blocks,
            chip=self.chip,
            outputs=results,
            findings=findings,
            issued=outcome.issued,
            wall_s=wall_s,
            launch=launch,
            bases=bases,
            traces=traces,
        )

    def _told(
        self,
        findings: Sequence[SanitizerFinding],
        launch: Launch,
        tensors: Mapping[str, _GlobalTensor],
    ) -> tuple[SanitizerFinding, ...]:
        """Return findings in TIK's words, each with its block and its cause."""
        from cubecore.frontends.diagnosis.dependence import TreeTrace  # only with findings

        bases = {name: held.base for name, held in tensors.items()}
        arrays = {n: range(t.base, t.base + t.size) for n, t in tensors.items()}
        cores = {CoreId(core.core, core.sub): core for core in launch.cores}
        traces = {
            core: TreeTrace.of(own.program, own.addresses(bases)) for core, own in cores.items()
        }
        blocks = {core: range(core.core, core.core + 1) for core in cores}
        return told(findings, self.chip, "tik", blocks, arrays, traces)

    def _judge_end(self, core: Core) -> None:
        """Log an atomic mode that a core leaves on, for the next kernel."""
        atomic = core.registers.atomic
        if not atomic:
            return
        setters = [n for n in nodes(self.body) if isinstance(n, Issue)]
        *_, where = (
            node.location
            for node in setters
            if isinstance(node.template, SetAtomic) and node.template.operation == atomic
        )
        message = (
            f"atomic {atomic} of {core.registers.atomic_type} must be off at the end of the "
            f"kernel, got on since {where}; call set_atomic_add(0)"
        )
        core.log.add(SanitizerFinding("mode-left", message, SetAtomic.name, where, str(core.id)))

    def _laid_out(
        self, gm: GlobalMemory, given: Mapping[str, Array], shared: Mapping[str, str]
    ) -> dict[str, _GlobalTensor]:
        """Return where each tensor lies in global memory, with what it is given."""
        tensors: dict[str, _GlobalTensor] = {}
        for tensor in (*self.inputs, *self.outputs, *self.others):
            if tensor.name in tensors:
                continue
            if tensor.name in shared:
                tensors[tensor.name] = tensors[shared[tensor.name]]
                continue
            values = given.get(tensor.name)
            shape = _shape(tensor) if values is None else values.shape
            size = tensor.record.bytes_of(int(np.prod(shape)))
            padded = align_up(size + _SLACK - 1, _SLACK)
            if values is None:
                zeroed = tensor.name in self.zeroed
                allocated = gm.allocate(tensor.name, padded, zeroed=zeroed)
                if not zeroed:
                    allocated.buffer.data[:] = np.resize(_NEVER_WRITTEN, padded)
            else:
                raw = np.zeros(padded, np.uint8)
                raw[:size] = np.ascontiguousarray(values).reshape(-1).view(np.uint8)
                allocated = gm.allocate_from(tensor.name, raw)
            tensors[tensor.name] = _GlobalTensor(
                allocated.address, allocated.buffer, tuple(shape), size
            )
        return tensors

    def _never_written(self, tensors: Mapping[str, _GlobalTensor]) -> Iterator[SanitizerFinding]:
        """Yield a finding for each output with bytes that no store reached.

        Padding that a store copies from unwritten local memory is the user's to handle.
        """
        for tensor in self.outputs:
            held = tensors[tensor.name]
            raw, valid = held.buffer.data[: held.size], held.buffer.valid[: held.size]
            bare = (valid == 0) & (raw == np.resize(_NEVER_WRITTEN, held.size))
            bare[1::2] &= bare[: held.size - 1 : 2]  # its even bytes tell the pattern apart
            if missing := int(np.count_nonzero(bare)):
                got = f"{missing} of {held.size} B never written, the first at byte"
                got = f"{got} {int(np.argmax(bare))}"
                claim = Violation(tensor.name, "be written whole", got)
                yield SanitizerFinding(
                    *("uninitialised", str(claim), "end of kernel", self.place, EVERY_CORE),
                    arrays=ranges_of(bare),
                    claim=claim,
                )

    def _feeds_by_tensor(
        self, feeds: Mapping[str, object], outputs: Mapping[str, Array]
    ) -> dict[str, Array]:
        names = [tensor.name for tensor in self.inputs]
        for name in feeds:
            if name not in names:
                raise refuse("a feed", f"name an input ({', '.join(names)})", repr(name))
        given: dict[str, Array] = {}
        for tensor in self.inputs:
            if tensor.name not in feeds:
                raise unable(tensor.name, f"input {tensor.name!r} has no feed")
            values = np.asarray(feeds[tensor.name])
            if values.dtype != tensor.record.numpy:
                raise refuse(f"feed {tensor.name!r}", f"be of {tensor.dtype}", values.dtype)
            declared = tensor.shape
            if not values.shape and declared == (1,):
                values = values.reshape(1)  # the value of an InputScalar
            static = all(isinstance(d, int) and d < 2**31 - 1 for d in declared)
            if static and values.shape != declared:
                raise refuse(f"feed {tensor.name!r}", f"have shape {declared}", values.shape)
            given[tensor.name] = values
        for name, (values, record) in self.constants.items():
            given[name] = np.asarray(values, record.numpy)
        return given | {name: np.asarray(values) for name, values in outputs.items()}

    def _shared(self, inplace: Mapping[str, str]) -> Mapping[str, str]:
        for kind, names, tensors in (
            ("output", inplace, self.outputs),
            ("input", inplace.values(), self.inputs),
        ):
            accepted = [tensor.name for tensor in tensors]
            for name in names:
                if name not in accepted:
                    need = f"name an {kind} ({', '.join(accepted)})"
                    raise refuse(f"inplace {name!r}", need, "another name")
        return inplace

    def _launch(self, sizes: Mapping[str, int], shared: Mapping[str, str] = _ALONE) -> Launch:
        written = {shared.get(tensor.name, tensor.name) for tensor in self.outputs}
        specs = tuple(
            TensorSpec(name, size, name in written)
            for name, size in sizes.items()
            if name not in shared
        )
        slots = {
            var: (shared.get(name, name), 0) for name, var in self.slots.items() if name in sizes
        }
        cores = [
            CoreProgram(number, self._program(number), slots, self.sub)
            for number in range(self.blocks)
        ]
        return Launch(specs, tuple(cores))

    def _program(self, number: int) -> Program:
        first = (Assign(self.core, Expr(number)), Assign(self.cores, Expr(self.blocks)))
        return Program((*first, *self.body), tuple(self.slots.values()), self.name)

    def default_launch(self) -> Launch:
        """Return the launch for the declared shapes."""
        tensors = (*self.inputs, *self.outputs, *self.others)
        return self._launch({t.name: t.record.bytes_of(int(np.prod(_shape(t)))) for t in tensors})


def _described(tensor: Tensor) -> Json:
    extents = [extent if isinstance(extent, int) else None for extent in tensor.shape]
    return {"name": tensor.name, "dtype": tensor.dtype, "shape": extents}


def _shape(tensor: Tensor) -> tuple[int, ...]:
    if not all(isinstance(extent, int) for extent in tensor.shape):
        raise refuse(f"tensor {tensor.name}", "have its shape given at launch", "a symbolic one")
    return tuple(int(extent) for extent in tensor.shape)


def sub_core(chip: Chip, memories: set[Mem]) -> int:
    """Return the part of a core that a kernel runs on: 1 for a vector core, else 0.

    Raises
    ------
    RequestError
        If the kernel uses both parts on a chip that has them as separate cores.
    """
    if chip.joins_vector or Mem.UB not in memories:
        return 0
    cube = memories & {Mem.L1, Mem.L0A, Mem.L0B, Mem.L0C}
    if cube:
        both = " and ".join(sorted(mem.label for mem in (*cube, Mem.UB)))
        raise refuse(
            f"a TIK kernel on {chip.name}",
            "use the Cube's memories or UB, which separate cores have",
            both,
            "set Ascend310, Ascend310P or Ascend910 as the target",
        )
    return 1
