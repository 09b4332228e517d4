"""Rules on the same bytes of global memory: again by one core, or by several cores at once."""

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from cubecore.advice.kernel_rules.case import KernelCase, Leaf
from cubecore.advice.kernel_rules.changes.plain import bases_of, recorded_anew
from cubecore.advice.kernel_rules.rule import Cause, rule
from cubecore.isa.declare.instruction import GlobalTraffic, Mem, Pipe
from cubecore.isa.program.expr import Expr, Var
from cubecore.isa.program.launch import CoreProgram, Launch
from cubecore.isa.program.tree import Issue, Location, Program
from cubecore.isa.scalar.sync import SetFlag, WaitFlag

_MOST_ISSUES = 300_000
"""Instructions of a core above which its loads are not looked at one by one."""
_LEAST_TIMES = 2
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


@dataclass(eq=False, slots=True)
class _Loads:
    """The loads of a line on one core: how often each address was loaded."""

    issue: Issue
    times: dict[int, int]

    @property
    def again(self) -> int:
        """Loads that bring what an earlier one brought."""
        return sum(self.times.values()) - len(self.times)

    @property
    def kept_bytes(self) -> int:
        """Bytes that are brought more than once."""
        repeated = sum(times > 1 for times in self.times.values())
        return repeated * self.issue.template.size_bytes


@rule(
    "loaded-again",
    counts="loads from global memory that bring what an earlier one of the same core brought",
    threshold="half of a line's loads, where the local memory has room to keep what they bring",
    source="addresses of the loads; sizes of the memories (`cubecore chips`)",
    remedy="Load it once in front of the loop and keep it in the local memory.",
)
def loaded_again(case: KernelCase) -> Iterator[Cause]:
    """Load once what is loaded again and again."""
    loads = _loads(case)
    for each in sorted(loads, key=lambda one: -one.again * one.issue.template.size_bytes):
        where = each.issue.location
        most, kept = max(each.times.values()), each.kept_bytes
        traffic = case.cost(each.issue).traffic
        mem = Mem.UB if traffic is not None and traffic.of_ub else Mem.L1
        room = case.room(mem) - case.used_bytes(mem)
        alone = len(each.times) == 1  # its own buffer keeps it
        if each.again < len(each.times) or most < _LEAST_TIMES or (kept > room and not alone):
            continue
        text = f"the same {kept:,} B are loaded {most:,} times by a core"
        yield Cause(where, text, _once(case.launch, where), "loaded once", moves_less=True)


def _loads(case: KernelCase) -> list[_Loads]:
    """Return the loads by line, of the first core of each program."""
    bases, found = bases_of(case.launch), dict[int, _Loads]()
    for program, leaves in case.leaves.items():
        if sum(leaf.count for leaf in leaves) > _MOST_ISSUES:
            continue
        core = next(core for core in case.launch.cores if core.program is program)
        counting = _Counting(case, found)
        program.run(counting, core.addresses(bases))
    return list(found.values())


class _Counting:
    """A sink that counts loads by line and address."""

    def __init__(self, case: KernelCase, found: dict[int, _Loads]) -> None:
        self._case, self._found = case, found
        self._own: set[int] = set()

    def handler(self, issue: Issue) -> Callable[..., None]:
        """Return the function that takes an instruction's addresses."""
        traffic = self._case.cost(issue).traffic
        place = _place_in_gm(issue)
        if traffic is None or traffic.writes or place is None:
            return _nothing
        key = id(issue.location)
        if key not in self._own and key in self._found:
            return _nothing  # another program's line
        self._own.add(key)
        times = self._found.setdefault(key, _Loads(issue, {})).times

        def count(*addresses: int) -> None:
            times[addresses[place]] = times.get(addresses[place], 0) + 1

        return count

    def load_scalar(self, *_: object) -> int:
        """Refuse: the launch is plain."""
        raise TypeError("a plain program reads no memory")


def _nothing(*_: int) -> None:
    return None


def _place_in_gm(issue: Issue) -> int | None:
    mems = [operand.mem for operand in issue.template.operands()]
    return mems.index(Mem.GM) if Mem.GM in mems else None


def _once(launch: Launch, where: Location) -> Launch:
    """Return a launch in which a core loads each address at a line once."""
    changed: dict[Program, CoreProgram] = {}
    firsts: dict[Program, CoreProgram] = {}
    for core in launch.cores:
        if core.program not in changed:
            alone = replace(launch, cores=(core,))
            keeps = _Once(where, core, bases_of(launch)).keeps
            once = recorded_anew(alone, core.program.name, keeps)
            changed[core.program], firsts[core.program] = once.cores[0], core
    return replace(
        launch,
        cores=tuple(
            _like(core, firsts[core.program], changed[core.program]) for core in launch.cores
        ),
    )


def _like(core: CoreProgram, first: CoreProgram, changed: CoreProgram) -> CoreProgram:
    """Return what a core runs whose first like now runs `changed`: its tensors lie as far apart."""
    own, theirs = dict(core.slots.values()), dict(first.slots.values())
    slots = {
        var: (name, offset + own.get(name, 0) - theirs.get(name, 0))
        for var, (name, offset) in changed.slots.items()
    }
    return CoreProgram(core.core, changed.program, slots, core.sub)


class _Once:
    """Says of each instruction of a core, in order, whether it is kept.

    Left out are the loads of a line that bring what an earlier one brought, and the waits for their
    buffer: those before such a load, where no other load follows it until its pipe waits again.
    """

    def __init__(self, where: Location, core: CoreProgram, bases: Mapping[str, int]) -> None:
        self._where = where
        self._seen: set[int] = set()
        self._kept: list[bool] = []
        self._waits: list[int] = []
        """Waits of the pipe since its last load."""
        self._idle: list[int] = []
        """Waits behind which no load has been kept so far, but one was left out."""
        core.program.run(self, core.addresses(bases))
        self._leave_out(self._idle)
        self._next = iter(self._kept)

    def keeps(self, _: Issue, __: Sequence[int]) -> bool:
        """Return whether the next instruction is kept."""
        return next(self._next)

    def handler(self, issue: Issue) -> Callable[..., None]:
        """Return the function that takes an instruction's addresses."""
        template, late = issue.template, len(issue.late)
        place = _place_in_gm(issue) if issue.location is self._where else None
        waits = isinstance(template, WaitFlag) and template.dst == Pipe.MTE2.value
        loads = template.pipe is Pipe.MTE2 and not isinstance(template, (SetFlag, WaitFlag))

        def judge(*values: int) -> None:
            number = len(self._kept)
            self._kept.append(True)
            if waits:
                self._leave_out(self._idle)
                self._waits.append(number)
                self._idle = []
            elif place is not None and values[late + place] in self._seen:
                self._leave_out([number])
                self._idle += self._waits
                self._waits = []
            elif loads:
                self._waits, self._idle = [], []
            if place is not None:
                self._seen.add(values[late + place])

        return judge

    def load_scalar(self, *_: object) -> int:
        """Refuse: the launch is plain."""
        raise TypeError("a plain program reads no memory")

    def _leave_out(self, numbers: Iterable[int]) -> None:
        for number in numbers:
            self._kept[number] = False


@dataclass(frozen=True, slots=True)
class _Shared:
    """A line that most cores reach with the same addresses in the same order."""

    leaf: Leaf
    cores: int
    loads: int
    size_bytes: int


@rule(
    "same-addresses",
    charged=False,
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
    charged=False,
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
