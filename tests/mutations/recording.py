"""What a launch issued, core by core, and running that again: in any order, with any checks."""

from dataclasses import dataclass, replace

import numpy as np

from cubecore.errors import DeadlockError
from cubecore.frontends.kernels.session import ScriptSession
from cubecore.isa.declare.instruction import Mem
from cubecore.isa.program.expr import Expr, Var
from cubecore.isa.program.tree import LoadScalar, Location
from cubecore.machine.debug.debugger import LaunchDebugger
from cubecore.machine.execute.array_bounds import ArraySpans, ArrayWatch
from cubecore.machine.execute.scheduler import Task, run
from cubecore.machine.finding_kinds import CHECKS
from cubecore.machine.memory.buffers import GlobalMemory
from cubecore.machine.memory.footprint import footprints
from cubecore.machine.sanitize.findings import SanitizerFinding


@dataclass(frozen=True)
class Read:
    """The scalar unit's read of a value; what it reads is part of what a launch computes."""

    mem: object
    dtype: object
    address: int
    where: Location


@dataclass(frozen=True)
class Tensor:
    """A tensor as the launch found it."""

    name: str
    data: bytes
    placed: bool
    scratch: bool = False


@dataclass(frozen=True)
class Recording:
    """One launch: its chip, its tensors, and what each core issued, in order."""

    kernel: str
    chip: object
    tensors: tuple
    streams: dict
    place: Location
    name: str = ""

    def changed(self, streams):
        """Return the launch with other streams."""
        return replace(self, streams=streams)


@dataclass(frozen=True)
class Result:
    """What a launch left: its findings, the bytes of its tensors and the values it read."""

    findings: tuple
    left: tuple

    @property
    def stuck(self):
        """Whether it never came to its end."""
        return self.left == ()


class Recorder(LaunchDebugger):
    """Takes down what goes by, and never stops."""

    def __init__(self):
        super().__init__(stopped=lambda _: None, frame=lambda: None)
        self.launches = []

    def launched(self, tensors):
        super().launched(tensors)
        made = [
            Tensor(name, tensor.buffer.data.tobytes(), tensor.placed, tensor.scratch)
            for name, tensor in sorted(tensors.items(), key=lambda item: item[1].address)
        ]
        self.launches.append((tuple(made), {}))

    def before(self, core, recorded):
        super().before(core, recorded)
        self.launches[-1][1].setdefault(core.id, []).append(recorded)

    def read(self, core, load, address):
        stream = self.launches[-1][1].setdefault(core.id, [])
        stream.append(Read(load.mem, load.element, address, load.location))


def recorded(launch):
    """Return the recordings of what `launch()` launches."""
    recorder = Recorder()
    with ScriptSession(debugger=recorder).collecting() as session:
        launch()
    return [
        Recording(done.kernel, done.chip, tensors, streams, Location("kernel", 0, done.kernel))
        for done, (tensors, streams) in zip(session.runs, recorder.launches, strict=True)
    ]


def replayed(recording, order="program", checks=frozenset()):
    """Run a recording again; the result of one that stands still has nothing left."""
    gm, values, spans = GlobalMemory(), {}, ArraySpans(recording.chip)
    tensors = [
        gm.allocate_from(t.name, np.frombuffer(t.data, np.uint8))
        if t.placed
        else gm.allocate(t.name, len(t.data), scratch=t.scratch)
        for t in recording.tensors
    ]

    def body(core):
        arrays = ArrayWatch(core, spans)
        for item in recording.streams[core.id]:
            if isinstance(item, Read):
                load = LoadScalar(
                    Var("value", 0), item.mem, item.dtype, Expr(item.address), item.where
                )
                arrays.load(load, item.address)
                values.setdefault(core.id, []).append(core.load_scalar(load, item.address))
            else:
                arrays.issue(*item)
                core.record(*item)

    tasks = [Task(core, body) for core in recording.streams]
    try:
        outcome = run(recording.chip, gm, tasks, checks=checks, order=order)
    except DeadlockError as error:
        stuck = SanitizerFinding("deadlock", str(error), "wait_flag_dev", recording.place, "")
        return Result((stuck,), ())
    findings = list(outcome.findings)
    if checks:
        findings += [
            SanitizerFinding(
                "uninitialised", f"{t.name} must be written whole", "end", recording.place, ""
            )
            for t in tensors
            if not (t.placed or t.scratch or t.buffer.valid.all())
        ]
    kept = (t.buffer.data.tobytes() for t in tensors if not t.scratch)
    left = (*kept, *sorted(map(str, values.items())))
    return Result(tuple(findings), left)


ALL = frozenset(CHECKS)


def first_writers(recording):
    """Return the places (core, index) of what writes local bytes that nobody wrote before."""
    found, at = set(), {}
    seen = {}

    def observe(core, template, places):
        for operand, address in zip(template.operands(), places, strict=True):
            if operand.mem is Mem.GM or not operand.access.writes:
                continue
            run = footprints(template)[template.operands().index(operand)]
            if run is None:
                continue
            written = seen.setdefault((core.id, operand.mem), np.zeros(1 << 20, bool))
            lanes = [
                written[a + address : b + address]
                for a, b in zip(run.starts, run.ends, strict=True)
            ]
            if not all(lane.all() for lane in lanes):
                found.add((core.id, at[core.id]))
            for lane in lanes:
                lane[:] = True

    def body(core):
        core.observe = observe
        for index, item in enumerate(recording.streams[core.id]):
            at[core.id] = index
            if not isinstance(item, Read):
                core.record(*item)
                core.flush()

    gm = GlobalMemory()
    for t in recording.tensors:
        gm.allocate_from(t.name, np.frombuffer(t.data, np.uint8))
    run(recording.chip, gm, [Task(core, body) for core in recording.streams])
    return found
