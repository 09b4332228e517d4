"""Operations of a group: an instruction on the bytes of all its cores at once, or not at all."""

from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

from cubecore.arrays import Array
from cubecore.cache import BoundedCache
from cubecore.chips.model import Chip
from cubecore.errors import Violation
from cubecore.isa.declare.instruction import Instruction, Mem
from cubecore.isa.declare.registers import Registers
from cubecore.isa.declare.remark import Remark
from cubecore.isa.program.tree import Location
from cubecore.isa.scalar.store import ScalarStore
from cubecore.machine.execute.core import Core
from cubecore.machine.execute.filled_reads import FilledRead
from cubecore.machine.execute.instruction import Bound, ComputeStep, Lacking, perform
from cubecore.machine.execute.issue_cache import CachedIssue
from cubecore.machine.group.batching import REPLACING, computing_left, stacks
from cubecore.machine.group.sanitize.aliasing import GroupAliasing, Snapshots
from cubecore.machine.group.sanitize.divergence import DivergenceError
from cubecore.machine.group.sanitize.group_watch import GroupWatch
from cubecore.machine.memory.buffers import GlobalMemory, GlobalTensor, MemoryBuffer, Spot
from cubecore.machine.memory.elements import Use, elements
from cubecore.machine.memory.filling_table import FIRST_FILLING, FillingReader
from cubecore.machine.memory.operation import Inputs
from cubecore.machine.memory.places import MemoryStack, Place
from cubecore.machine.memory.pointer_stores import spans
from cubecore.machine.memory.strided import Rows

_MOST_BOUND = 1024
"""Addresses of one template that are remembered, with what is done there."""
Operation = Callable[[tuple[int, ...], Location], Inputs | None]
"""An instruction on all cores of a group, given the first one's addresses."""


class Group(Protocol):
    """The cores that an operation runs on."""

    chip: Chip
    gm: GlobalMemory
    count: int
    aliasing: GroupAliasing
    watch: GroupWatch
    snapshots: Snapshots
    registers: Registers
    where_of: Callable[[int, Location], Location]

    @property
    def cores(self) -> Sequence[Core]:
        """The cores, one by one."""
        ...

    def memory(self, mem: Mem) -> MemoryStack | None:
        """Return a local memory of all cores; None if they lack it."""
        ...


class GroupMemory:
    """The memories of all cores of a group, under its present registers."""

    def __init__(self, group: Group) -> None:
        self.gm, self.registers, self.memory = group.gm, group.registers, group.memory
        self._aliasing, self._snapshots, self._watch = group.aliasing, group.snapshots, group.watch

    def share(self, tensor: GlobalTensor, used: Use, address: int) -> Spot | None:
        """Return where the cores' operands lie in a tensor; None if one is misaligned.

        Raises
        ------
        DivergenceError
            If a core leaves the tensor, or would read what nobody wrote.
        """
        # All cores must stay in the tensor that the first core's operand is in, at the distances
        # that the group has there.
        low, high = address + used.low, address + used.high
        if not tensor.address <= address < tensor.end and self.gm.near(address) is not tensor:
            raise DivergenceError("an address that was counted from another tensor")
        self._aliasing.visible(tensor, low, high)
        far, at, buffer = self._aliasing.distances(tensor), address - tensor.address, tensor.buffer
        # The first core's address is aligned (checked before); the others' are if the greatest
        # common divisor of the distances is a multiple of the unit.
        if far.unit % used.unit:
            return None
        if used.writes:
            if self._watch.notes_each and self._aliasing.meets_itself(tensor, high - low):
                raise DivergenceError("bytes that several cores write")
            self._snapshots.keep(tensor)
            if tensor.issued is not None:
                tensor.issued.note(far.rows, at + used.low, at + used.high)
        # The quick test takes the whole span, gaps between rows included. If it fails, each core's
        # elements themselves are looked at: those to be filled in (offset < 0) need no data.
        elif not (tensor.placed or _written(buffer, far.rows, at, used.low, used.high)):
            filled = used.elements.offsets < 0
            for distance in far.values.tolist():
                self.gm.settle(tensor, low + distance, high + distance)
                of_core = Place(buffer.spot(at + distance), used.elements, used.element)
                if not (of_core.written() or (of_core.ready() | filled).all()):
                    raise DivergenceError("uninitialised global memory")
        if used.reads and self.gm.fillings is not None:
            within = spans(buffer.valid, far.rows, at, used.low, used.high)
            if any(part.max(initial=0) >= FIRST_FILLING for part in within):
                raise DivergenceError("filling in global memory, of some cores perhaps")
        rows = tuple([(count, step, at + first) for count, step, first in far.rows])
        return Spot(buffer.data, buffer.valid, rows, rows, marks=buffer.marks)

    def look(self, template: Instruction, used: Use, _address: int, _where: Location) -> Spot:
        """Let each core look."""
        raise DivergenceError(f"{template.name}.{used.name} is not where it may be")

    def report(
        self, violations: Sequence[Violation], template: Instruction, _where: Location
    ) -> bool:
        """Let each core report what addresses break."""
        if violations:
            raise DivergenceError(f"{template.name}: addresses that break a rule")
        return True

    def meet(
        self, template: Instruction, _addresses: tuple[int, ...], _where: Location, *, wrong: bool
    ) -> None:
        """Let each core meet its own, and go repeat by repeat."""
        raise DivergenceError(f"{template.name}: operands that meet{' wrongly' if wrong else ''}")

    def lack(self, template: Instruction, _lacking: Lacking, _where: Location) -> None:
        """Let each core find what nobody wrote."""
        raise DivergenceError(f"{template.name} reads uninitialised bytes", followed=True)

    def remark(
        self,
        _remarks: Sequence[Remark],
        template: Instruction,
        _addresses: tuple[int, ...],
        _where: Location,
    ) -> None:
        """Let each core log what its values say."""
        raise DivergenceError(f"{template.name} needs what was never written", followed=True)

    def read_filling(self, found: FilledRead, _reader: FillingReader) -> None:
        """Let each core report filling."""
        raise DivergenceError(f"{found.subject} reads filling", followed=True)


def _written(buffer: MemoryBuffer, rows: Sequence[Rows], at: int, low: int, high: int) -> bool:
    """Return whether all bytes [low, high) from `at` were written on every core, gaps included."""
    return all(part.all() for part in spans(buffer.valid, rows, at, low, high))


def group_operation(
    group: Group, issue: CachedIssue, compute: Callable[[Inputs], Mapping[str, Array]]
) -> Operation:
    """Return what a settled instruction does on all cores, with the remarks that it may have."""
    act = _performing(group, issue, compute)
    return _remarking(group, issue, act) if issue.remarks else act


def _performing(
    group: Group, issue: CachedIssue, compute: Callable[[Inputs], Mapping[str, Array]]
) -> Operation:
    """Return what an instruction does on all cores; what is found out is remembered.

    One that may touch less than it reaches, which matters where that was not written, is made core
    by core there.
    """
    template, cores = issue.template, GroupMemory(group)
    known = BoundedCache[object, Bound](_MOST_BOUND)
    step = ComputeStep(compute, group.watch.followers(template, group.registers), known)
    # Usual instructions touch all that their operands span.
    if type(template).reaching is Instruction.reaching:
        return lambda addresses, where: perform(cores, issue, addresses, where, step)
    reads = [(n, used) for n, used in enumerate(issue.uses) if used.reads]

    def with_uncertain_reads(addresses: tuple[int, ...], where: Location) -> Inputs | None:
        at = template.operand_addresses(addresses)
        for number, used in reads:
            if not read_inside(group, used, at[number]).written():
                raise DivergenceError(f"{template.name} may touch what nobody wrote")
        return perform(cores, issue, addresses, where, step)

    return with_uncertain_reads


def _remarking(group: Group, issue: CachedIssue, act: Operation) -> Operation:
    """Return an act that logs what its template says of itself, on every core."""

    def remarking(addresses: tuple[int, ...], where: Location) -> Inputs | None:
        for core, row in enumerate(group.cores):
            row.remark(issue.remarks, issue.template, addresses, group.where_of(core, where))
        return act(addresses, where)

    return remarking


class ValueStores:
    """The scalar unit's stores of a group: one act serves all values of a type."""

    def __init__(self) -> None:
        self._acts: dict[tuple[int, Instruction], Operation] = {}
        self._value: Mapping[str, Array] = {}

    def act(
        self, group: Group, state: object, issue: CachedIssue, template: ScalarStore
    ) -> Operation | None:
        """Return the act of a store, in a state of the registers; None if it is not prepared.

        `issue` is what is known of the store of 0.
        """
        # The operation is prepared once, for a store of 0, and stores whatever `_value` holds:
        # kernels store many different values, and each would otherwise be a template of its own.
        key, registers = (id(state), issue.template), group.registers
        stored = self._acts.get(key)
        if stored is None:
            if not prepares(issue.template, registers):
                return None
            stored = self._acts[key] = group_operation(group, issue, lambda _: self._value)
        act, value = stored, template.compute({}, registers)

        def store(addresses: tuple[int, ...], where: Location) -> Inputs | None:
            self._value = value
            return act(addresses, where)

        return store

    def clear(self) -> None:
        """Drop what is prepared."""
        self._acts.clear()


def read_inside(group: Group, used: Use, at: int) -> Place:
    """Return an operand of every core in a local memory.

    Raises
    ------
    DivergenceError
        If it leaves the memory.
    """
    stack = group.memory(used.operand.mem)
    if stack is None or at + used.low < 0 or at + used.high > stack.size_bytes:
        raise DivergenceError(f"an operand that leaves {used.operand.mem.label}")
    return Place(stack.spot(at), used.elements, used.element)


# --- what all cores do at once


def prepares(template: Instruction, registers: Registers) -> bool:
    """True if a resolved template, located if values steer it, is done for all cores at once."""
    # Necessary conditions one by one, the cheap ones first; the core-by-core path serves the rest:
    # addresses must not matter, elements be whole bytes, and global memory take no
    # read-modify-write, as cores might do that to the same bytes.
    kind = type(template)
    if not template.lies_anywhere:
        return False
    operands = template.operands()
    if registers.ub_checks and any(operand.mem is Mem.UB for operand in operands):
        return False
    if any(template.element(operand).bits < 8 for operand in operands):
        return False
    if template.copies:
        to_global = any(o.mem is Mem.GM and o.access.writes for o in operands)
        return not (to_global and registers.atomic)
    globally = [o for o in operands if o.mem is Mem.GM]
    if any(o.access.reads or registers.atomic for o in globally):
        return False
    if kind.leaves is not Instruction.leaves:
        some = all(elements(template, o.name).span is not None for o in operands)
        if not ((issubclass(kind, REPLACING) or computing_left(kind)) and some):
            return False
    return computing_left(kind) is not None if template.reads_left else stacks(kind)
