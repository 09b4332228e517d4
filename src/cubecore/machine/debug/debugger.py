"""The debugger of a launch: stops at instructions, at steps and at accesses of watched bytes.

A `LaunchDebugger` stands between the cores and their engine. It is asked before every instruction
and called on every access; where it stops, it calls `stopped`, and goes on when that returns. Its
own reads are no accesses: findings and values are those of a run without it.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import FrameType

from cubecore.isa.declare.instruction import Instruction, Mem
from cubecore.isa.program.topology import CoreId
from cubecore.isa.program.tree import LoadScalar
from cubecore.machine.debug.breakpoints import Break, Hit, Range, Stop
from cubecore.machine.execute.core import Core, Recorded
from cubecore.machine.memory.buffers import GlobalTensor
from cubecore.machine.memory.footprint import Footprint, footprints

Execute = Callable[[Core, Recorded], None]


@dataclass(eq=False)
class LaunchDebugger:
    """Stops a launch at `breaks` and `watches`, after `steps` more instructions, and at `ends`.

    `steps` counts down over all cores; None never stops. `frame` gives the frame of the kernel that
    issues; where there is none, a stop knows the launch's `arguments` alone. Cores are stopped in
    the order in which they run.
    """

    stopped: Callable[[Stop], None]
    frame: Callable[[], FrameType | None]
    breaks: list[Break] = field(default_factory=list)
    watches: list[Range] = field(default_factory=list)
    steps: int | None = None
    ends: bool = False
    tensors: Mapping[str, GlobalTensor] = field(default_factory=dict)
    arguments: dict[CoreId, Mapping[str, object]] = field(default_factory=dict)
    _numbers: dict[CoreId, int] = field(default_factory=dict)
    _last: dict[CoreId, tuple[Recorded, FrameType | None]] = field(default_factory=dict)
    _touched: list[Hit] = field(default_factory=list)
    _reached: set[Break | Range] = field(default_factory=set)

    # --- what the run tells

    def launched(self, tensors: Mapping[str, GlobalTensor]) -> None:
        """Begin with a launch; its tensors are watched by name."""
        self.tensors = tensors
        self._numbers.clear()
        self._last.clear()

    def around(self, execute: Execute) -> Execute:
        """Return an engine that asks here before every instruction."""

        def asked(core: Core, recorded: Recorded) -> None:
            self.before(core, recorded)
            execute(core, recorded)
            self._hit(core)

        return asked

    def before(self, core: Core, recorded: Recorded) -> None:
        """Stop before an instruction that is asked for."""
        self._touched.clear()
        self._numbers[core.id] = self._numbers.get(core.id, 0) + 1
        self._last[core.id] = recorded, self.frame()
        if self.steps is not None:
            self.steps -= 1
            if self.steps <= 0:
                self._stop(self._here("step", core))
                return
        if self.breaks:
            here = self._here("break", core)
            matching = [spec for spec in self.breaks if spec.meets(here)]
            if matching:
                self._reached.update(matching)
                self._stop(here)

    def ended(self, core: Core) -> None:
        """Stop behind a core's last instruction, if `ends` asks for it."""
        if self.ends and core.id in self._last:
            self._stop(self._here("end", core))

    def touched(self, core: Core, template: Instruction, addresses: Sequence[int]) -> None:
        """Remember what an instruction is about to touch of the watched bytes."""
        if not self.watches:
            return
        given = zip(template.operands(), addresses, footprints(template), strict=True)
        for operand, address, run in given:
            if run is not None:
                self._meet(core, operand.mem, run.at(address), operand.name, operand.access.value)

    def read(self, core: Core, load: LoadScalar, address: int) -> None:
        """Stop behind the scalar unit's own read of watched bytes."""
        if self.watches and core.id in self._last:
            run = Footprint.run(address, address + load.element.size_bytes)
            self._meet(core, load.mem, run, "the scalar unit", "read")
            self._hit(core)

    def unmet(self) -> list[Break | Range]:
        """Return the breaks and watches that nothing has met."""
        asked: list[Break | Range] = [*self.breaks, *self.watches]
        return [spec for spec in asked if spec not in self._reached]

    # ---

    def _here(self, reason: str, core: Core) -> Stop:
        recorded, frame = self._last[core.id]
        given = self.arguments.get(core.id, {})
        variables = dict(given if frame is None else frame.f_locals)
        return Stop(reason, core, self._numbers[core.id], *recorded, variables=variables)

    def _stop(self, stop: Stop) -> None:
        self.steps = None
        self.stopped(stop)

    def _meet(self, core: Core, mem: Mem, run: Footprint, operand: str, access: str) -> None:
        for watch in self.watches:
            span = watch.bytes_of(self.tensors) if watch.mem is mem else None
            if span is None or (watch.access and access not in {watch.access, "update"}):
                continue
            common = run.first_common(Footprint.run(*span))
            if common is not None:
                low, high = (at - span[0] + watch.start for at in common)
                old = self._bytes(core, watch, low, high)
                self._touched.append(Hit(watch, access, operand, low, high, old, old))

    def _hit(self, core: Core) -> None:
        if not self._touched:
            return
        hits = tuple(
            replace(hit, new=self._bytes(core, hit.watch, hit.start, hit.end))
            for hit in self._touched
        )
        self._touched.clear()
        self._reached.update(hit.watch for hit in hits)
        self._stop(replace(self._here("watch", core), hits=hits))

    def _bytes(self, core: Core, watch: Range, low: int, high: int) -> bytes:
        if watch.mem is Mem.GM:
            return self.tensors[watch.name].buffer.data[low:high].tobytes()
        buffer = core.memory(watch.mem)
        assert buffer is not None
        return buffer.data[low:high].tobytes()
