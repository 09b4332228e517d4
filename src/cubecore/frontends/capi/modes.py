"""State that a kernel leaves on a core: modes, a count that cuts repeats off, stale cache lines."""

from collections.abc import Callable, Iterable, Iterator

from cubecore.cache import BoundedCache
from cubecore.frontends.capi.cache_lines import CacheLines
from cubecore.isa.declare.instruction import Instruction, Mem, Operand, Pipe
from cubecore.isa.declare.operand_overlap import span_bytes
from cubecore.isa.declare.registers import Registers
from cubecore.isa.declare.scale_registers import SetAtomic
from cubecore.isa.program.tree import Location
from cubecore.isa.scalar.caches import LINE_BYTES, Dcci
from cubecore.isa.scalar.control_registers import SetCtrl
from cubecore.isa.scalar.store import StoreScalarGm
from cubecore.isa.scalar.sync import SetFlag, WaitFlag
from cubecore.isa.scalar.system_variables import Init
from cubecore.isa.scalar.ub_checks import CheckUb
from cubecore.isa.vector.common.mask import SetMaskCount, SetMaskNorm, SetVectorMask
from cubecore.isa.vector.common.repeated import Repeated
from cubecore.machine.memory.footprint import footprints

SETTERS = (SetAtomic, SetCtrl, Init, SetMaskCount, SetMaskNorm, SetVectorMask, CheckUb)
"""Instructions that set a mode, or the mask."""
_RESERVED_FROM = 6
"""Events from this one on are kept by the vendor's libraries (C API, synchronisation)."""

_AT_START = Registers()
Steps = tuple[Instruction, ...]
Stale = tuple[str, int, Location]
"""The count that a call left as a mask: the call, the count, the location."""
Said = tuple[str, str, str, Location]
"""A finding: its id, its sentence, the instruction, and the location."""

_APPLIED: BoundedCache[tuple[int, int], tuple[Instruction, Registers, Registers]] = BoundedCache()
"""The registers after an instruction, by the identities of both before, which are kept for it."""
_REGISTERS: BoundedCache[Registers, Registers] = BoundedCache()


def _one_of(registers: Registers) -> Registers:
    """Return the object that stands for equal ones, so that it is known by its identity."""
    known = _REGISTERS.get(registers)
    if known is None:
        known = _REGISTERS[registers] = registers
    return known


class Modes:
    """The modes of one core, as its program sets them."""

    def __init__(self) -> None:
        self.counts = False
        """True in counter mode."""
        self.registers = _AT_START
        self._set: dict[str, Location] = {}
        self._used: tuple[str, Location] | None = None
        self.lines = CacheLines()
        self._jumps: dict[tuple[int, int], tuple[Registers, Steps, Registers]] = {}
        self._jumped: tuple[Registers, Steps, Registers] | None = None
        self.stale: Stale | None = None

    def follow(
        self, issued: Iterable[tuple[Instruction, tuple[int, ...]]], where: Location
    ) -> None:
        """Take what instructions set, store and clean at one location."""
        for template, addresses in issued:
            if isinstance(template, SETTERS):
                self.set(template, where)
            elif isinstance(template, Dcci):
                self.lines.clean(template)
            elif isinstance(template, StoreScalarGm) and template.cached:
                self.lines.store(*_stored_bytes(template, addresses), where)
            elif stores_globally(template):
                self._store(template, addresses, where)

    def set(self, template: Instruction, where: Location) -> None:
        """Take what an instruction of `SETTERS` sets."""
        # Templates are shared and registers made one by `_one_of`, so that a loop's settings are
        # looked up by two identities; the entry keeps both objects alive, or another could get the
        # number.
        before, key = self.registers, (id(template), id(self.registers))
        known = _APPLIED.get(key)
        if known is None:
            known = _APPLIED[key] = template, before, _one_of(template.apply(before))
        self.registers = after = known[2]
        if after.atomic != before.atomic or isinstance(template, SetAtomic):
            self._set["atomic"] = where
        if after.mask_counts and not before.mask_counts:
            self._set["counter"] = where
        if isinstance(template, CheckUb):
            self._set["check"] = where
        if isinstance(template, SetVectorMask):
            self._used = None
        self.counts = after.mask_counts

    def jump(self, steps: Steps) -> None:
        """Take what instructions set that leave the mask and nothing else, in normal mode."""
        # Most jumps are the same as the last one from the same state: no key is even made for
        # these.
        last = self._jumped
        if last is not None and last[1] is steps and last[0] is self.registers:
            self.registers, self._used = last[2], None
            return
        key = id(self.registers), id(steps)
        cached = self._jumps.get(key)
        if cached is None:
            after = self.registers
            for template in steps:
                after = template.apply(after)
            cached = self._jumps[key] = self.registers, steps, _one_of(after)
        self._jumped = cached
        self.registers, self._used = cached[2], None

    def _store(self, template: Instruction, addresses: tuple[int, ...], where: Location) -> None:
        for operand, address in zip(template.operands(), addresses, strict=False):
            if operand.mem is Mem.GM and operand.access.writes:
                span = span_bytes(template, operand, address)
                if span is not None:
                    self.lines.write(*span, (template.name, where))

    def behind(self, low: int, high: int, where: Location) -> Said | None:
        """Take and judge a scalar read of bytes of global memory by the data cache."""
        found = self.lines.load(low, high)
        if found is None:
            return None
        name, at = found
        message = (
            "a scalar read of global memory must come behind a dcci, got none since "
            f"{name} at {at} wrote there past the data cache; call asc_dcci_single first"
        )
        return "stale-cache", message, "scalar read", where

    def passing(
        self, template: Instruction, addresses: tuple[int, ...], where: Location
    ) -> Said | None:
        """Judge what an instruction does to global memory beside lines of the data cache."""
        if isinstance(template, StoreScalarGm) and template.cached:
            return self._storing(template, addresses, where)
        if not self.lines.changed:
            return None
        for number, operand in enumerate(template.operands()):
            if operand.mem is not Mem.GM:
                continue
            touched = template, operand, number, addresses[number]
            message = None
            if operand.access.reads and (at := _first(self.lines.changed_at, *touched)):
                message = (
                    f"{template.name} must read global memory behind a dcci, got none since "
                    f"the scalar unit's store at {at}, which is in the data cache; call "
                    "asc_dcci_single first"
                )
            elif operand.access.writes and (at := _first(self.lines.waiting_at, *touched)):
                message = (
                    f"{template.name} must write global memory behind a dcci, got none since the "
                    f"scalar unit's store at {at} to the same {LINE_BYTES} B, which the data cache "
                    "writes back over it; call asc_dcci_single first"
                )
            if message is not None:
                return "stale-cache", message, template.name, where
        return None

    def _storing(
        self, template: StoreScalarGm, addresses: tuple[int, ...], where: Location
    ) -> Said | None:
        """Judge a store to a line that is older than what was written beside it."""
        found = self.lines.overwritten(*_stored_bytes(template, addresses))
        if found is None:
            return None
        name, at = found
        message = (
            f"{template.name} must store behind a dcci, got none since {name} at {at} wrote past "
            f"the data cache into the same {LINE_BYTES} B, which it holds as they were before and "
            "writes back; call asc_dcci_single first"
        )
        return "stale-cache", message, template.name, where

    def cut(self, template: Instruction, where: Location) -> Said | None:
        """Judge a vector instruction in counter mode: an earlier one's count may end its repeats.

        The first instruction under a count is the one that it was set for.
        """
        if not isinstance(template, Repeated):
            return None
        used, count = self._used, self.registers.mask_low
        self._used = used or (template.name, where)
        # A count ends an instruction's repeats early, silently. That is what the first one under it
        # wants; a later one with more repeats than the count gives was most likely written for a
        # mask.
        needed = -(-count // template.width)
        if used is None or template.repeat <= max(needed, 1):
            return None
        name, location = used
        message = (
            f"{template.name} must run under a count that was set for it, got the count {count} "
            f"that {name} at {location} ran under: {template.repeat - needed} of its "
            f"{template.repeat} repeats are left out; call asc_set_mask_norm, or "
            "asc_set_vector_mask first"
        )
        return "stale-count", message, template.name, where

    def left(self) -> Iterator[Said]:
        """Judge what is still on at the end of the kernel."""
        at = self.registers
        if at.atomic:
            where = self._set["atomic"]
            message = (
                f"atomic {at.atomic} of {at.atomic_type} must be off at the end of the kernel, got "
                f"on since {where}; call asc_set_atomic_none"
            )
            yield "mode-left", message, SetAtomic.name, where
        if at.mask_counts:
            where = self._set["counter"]
            message = (
                "counter mode must be off at the end of the kernel, got on since "
                f"{where}; call asc_set_mask_norm"
            )
            yield "mode-left", message, SetMaskCount.name, where
        if at.ub_checks:
            where = self._set["check"]
            message = (
                "checks of UB must be off at the end of the kernel, got "
                f"{len(at.ub_checks)} on, the last set at {where}; call CheckLocalMemoryIA with "
                "isEnable false"
            )
            yield "mode-left", message, CheckUb.name, where


def _stored_bytes(template: StoreScalarGm, addresses: tuple[int, ...]) -> tuple[int, int]:
    """Return the bytes [start, end) that the scalar unit stores."""
    return addresses[0], addresses[0] + template.dtype.size_bytes


def _first(
    look: Callable[[int, int], Location | None],
    template: Instruction,
    operand: Operand,
    number: int,
    address: int,
) -> Location | None:
    """Return what `look` says of the first run of an operand's bytes of which it says something."""
    span = span_bytes(template, operand, address)
    if span is None or (at := look(*span)) is None:
        return None
    touched = footprints(template)[number]
    if touched is None or touched.is_run:
        return at
    runs = zip((touched.starts + address).tolist(), (touched.ends + address).tolist(), strict=True)
    return next((at for run in runs if (at := look(*run)) is not None), None)


def stores_globally(template: Instruction) -> bool:
    """Return whether an instruction writes global memory past the data cache."""
    if isinstance(template, StoreScalarGm):
        return not template.cached
    past = template.pipe is not Pipe.S or bool(template.atomically)
    return past and any(o.mem is Mem.GM and o.access.writes for o in template.declared)


def stale_mask(template: Instruction, left: Stale, where: Location) -> Said:
    """Return the finding on an instruction under the count that an earlier call left as a mask."""
    call, count, location = left
    message = (
        f"{template.name} must run under a mask that was set for it, got the count {count} "
        f"that {call} left at {location}; call asc_set_vector_mask first"
    )
    return "stale-mask", message, template.name, where


def reserved(template: Instruction, where: Location) -> Said | None:
    """Judge the event of a flag: the vendor's libraries keep the last two."""
    if not isinstance(template, (SetFlag, WaitFlag)) or template.event_id < _RESERVED_FROM:
        return None
    message = (
        f"{template.name}.event_id must be below {_RESERVED_FROM} beside the vendor's libraries, "
        f"which keep events 6 and 7, got {template.event_id}"
    )
    return "event-reserved", message, template.name, where
