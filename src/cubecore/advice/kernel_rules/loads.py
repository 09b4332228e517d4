"""Rules on loads: the same bytes again."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from cubecore.advice.kernel_rules.case import KernelCase
from cubecore.advice.kernel_rules.plain import bases_of, recorded_anew
from cubecore.advice.kernel_rules.rule import Cause, rule
from cubecore.isa.declare.instruction import Mem
from cubecore.isa.program.launch import CoreProgram, Launch
from cubecore.isa.program.tree import Issue, Location, Program
from cubecore.lazy_dataclass import dataclass

_MOST_ISSUES = 300_000
"""Instructions of a core above which its loads are not looked at one by one."""
_LEAST_TIMES = 2


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
    threshold="as many as bring something new, where the local memory has room to keep that",
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
            once = recorded_anew(alone, core.program.name, _Once(where).keeps)
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
    """Keeps the first load of each address at a line, and all else."""

    def __init__(self, where: Location) -> None:
        self._where = where
        self._seen: set[int] = set()

    def keeps(self, issue: Issue, addresses: Sequence[int]) -> bool:
        """Return whether an instruction is kept."""
        place = _place_in_gm(issue) if issue.location is self._where else None
        if place is None:
            return True
        again = addresses[place] in self._seen
        self._seen.add(addresses[place])
        return not again
