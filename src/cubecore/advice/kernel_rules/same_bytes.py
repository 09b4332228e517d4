"""Rules on global memory that cores ask for at once, which the timing model charges nothing for."""

from collections.abc import Callable, Hashable, Iterator

from cubecore.advice.kernel_rules.case import KernelCase, Leaf
from cubecore.advice.kernel_rules.plain import bases_of
from cubecore.advice.kernel_rules.rule import Cause, rule
from cubecore.isa.declare.instruction import GlobalTraffic, Mem
from cubecore.isa.program.expr import Expr, Var
from cubecore.isa.program.launch import CoreProgram
from cubecore.isa.program.tree import Location
from cubecore.lazy_dataclass import dataclass

_SERIAL_BYTES = 512
"""Bytes of global memory whose accesses are done one after another."""
_LEAST_BUSY = 20
"""A line counts if it keeps its pipe busy for one part in so many of the time."""
_LEAST_LOADS = 2
_SOURCE = (
    "accesses within 512 B of global memory are done one after another (README of the vendor's "
    "sample mata_address_conflict)"
)
_Chosen = Callable[[KernelCase, Leaf, GlobalTraffic], bool]


@dataclass(frozen=True, slots=True)
class _Shared:
    """A line that most cores reach with the same addresses in the same order."""

    leaf: Leaf
    cores: int
    loads: int
    size_bytes: int


@rule(
    "same-addresses",
    counts="cores that load the same bytes of global memory in the same order",
    threshold="two loads or more that over half of the cores share, in a line that keeps its pipe "
    "busy for a twentieth of the time",
    source=_SOURCE,
    remedy="Let each core begin at another part of it, as (i + block) % parts, or deal out the "
    "work so that cores share less.",
)
def same_addresses(case: KernelCase) -> Iterator[Cause]:
    """Name the busiest load that over half of the cores issue alike."""
    shared = _busiest(case, lambda _, __, traffic: not traffic.writes)
    if shared is None or 2 * shared.cores <= len(case.launch.cores) or shared.loads < _LEAST_LOADS:
        return
    text = (
        f"{shared.cores} of {len(case.launch.cores)} cores load the same {shared.size_bytes:,} B "
        "in the same order"
    )
    yield Cause(shared.leaf.location, text, None)


@rule(
    "colliding-atomics",
    counts="cores that add onto the same bytes of global memory in the same order",
    threshold="two cores, in a line that keeps its pipe busy for a twentieth of the time",
    source=_SOURCE,
    remedy="Add up in local memory first and store once, or let each core begin at other rows.",
)
def colliding_atomics(case: KernelCase) -> Iterator[Cause]:
    """Name the busiest atomic store that cores issue alike."""
    shared = _busiest(case, lambda case, leaf, _: case.combines(leaf.issue))
    if shared is not None:
        text = f"{shared.cores} cores add onto the same {shared.size_bytes:,} B in the same order"
        yield Cause(shared.leaf.location, text, None)


def _busiest(case: KernelCase, chosen: _Chosen) -> _Shared | None:
    """Return the busiest line of chosen accesses that cores share; None of none."""
    lines: dict[int, Leaf] = {}
    for leaf in case.all_leaves:
        traffic = case.traffic(leaf)
        if traffic is not None and chosen(case, leaf, traffic):
            lines.setdefault(id(leaf.location), leaf)
    hot = [leaf for leaf in lines.values() if _busy(case, leaf) * _LEAST_BUSY >= _cycles(case)]
    hot.sort(key=lambda leaf: -_busy(case, leaf))
    return next(filter(None, (_shared(case, leaf) for leaf in hot)), None)


def _busy(case: KernelCase, leaf: Leaf) -> int:
    return case.busy(leaf.location, leaf.issue.template.pipe)


def _cycles(case: KernelCase) -> int:
    return case.timeline.cycles


def _shared(case: KernelCase, leaf: Leaf) -> _Shared | None:
    """Return the most cores that reach a line with the same addresses in the same order."""
    bases = bases_of(case.launch)
    alike: dict[Hashable, list[CoreProgram]] = {}
    for core in case.launch.cores:
        slots = core.addresses(bases)
        walks = tuple(_walk(each, slots) for each in _at(case, core, leaf.location))
        if walks:
            alike.setdefault(walks, []).append(core)
    cores = max(alike.values(), key=len, default=[])
    if len(cores) < 2:
        return None
    of_core = _at(case, cores[0], leaf.location)
    size = sum(each.issue.template.size_bytes * _distinct(each) for each in of_core)
    return _Shared(leaf, len(cores), sum(each.count for each in of_core), size)


def _at(case: KernelCase, core: CoreProgram, where: Location) -> list[Leaf]:
    leaves = case.leaves[core.program]
    return [leaf for leaf in leaves if leaf.location is where and case.traffic(leaf) is not None]


def _walk(leaf: Leaf, slots: dict[Var, int]) -> Hashable:
    """Return where a leaf begins on a core, to 512 B, and by which steps it goes on."""
    address = _in_gm(leaf)
    begin = address.const + sum(
        factor * slots[atom]
        for atom, factor in address.terms
        if isinstance(atom, Var) and atom in slots
    )
    return begin // _SERIAL_BYTES, tuple(_steps(leaf))


def _steps(leaf: Leaf) -> Iterator[tuple[int, int]]:
    """Yield the trips of each loop around a leaf, and how far its address moves in each."""
    terms = dict(_in_gm(leaf).terms)
    for loop in leaf.loops:
        yield loop.trips.constant or 0, terms.get(loop.index, 0)


def _distinct(leaf: Leaf) -> int:
    """Return how many addresses a leaf has, if those of different trips differ."""
    count = 1
    for trips, step in _steps(leaf):
        count *= trips if step else 1
    return count


def _in_gm(leaf: Leaf) -> Expr:
    operands = zip(leaf.issue.template.operands(), leaf.issue.addresses, strict=True)
    return next(at for operand, at in operands if operand.mem is Mem.GM)
