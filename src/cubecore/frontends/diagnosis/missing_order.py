"""Order that two accesses of a core lack: half of a flag, or where a whole one belongs."""

from dataclasses import dataclass
from typing import NamedTuple

from cubecore.frontends.diagnosis.dependence import IssuedCore, Race
from cubecore.isa.program.tree import Location
from cubecore.isa.scalar.sync import SetFlag, WaitFlag

NOT_AWAITED = "set, and not waited for"
SET_EARLY = "set before the earlier access"
AWAITED_LATE = "waited for behind the later access"
EVENTS = 8


@dataclass(frozen=True, slots=True)
class HalfPair:
    """A flag between the pipes of a race that does not order it: why, its event, and the call.

    `alike`: the calls of all flags that have the same fault.
    """

    fault: str
    event: int
    where: Location
    alike: tuple[Location, ...] = ()


@dataclass(frozen=True, slots=True)
class Anchor:
    """An access that a flag has to stand at; `looped` if a loop repeats it without the other."""

    instruction: str
    where: Location
    looped: bool


@dataclass(frozen=True, slots=True)
class MissingFlag:
    """A flag that would order a race: behind which access it is set, and before which awaited.

    `in_next_pass`: the later access is one of the next pass of a loop around both.
    """

    behind: Anchor
    before: Anchor
    event: int
    in_next_pass: bool


class _FlagBetween(NamedTuple):
    """The positions of a set, the earlier access of a race, a wait, and the later access."""

    raised: int
    first: int
    awaited: int
    last: int


@dataclass(frozen=True, slots=True)
class _Flags:
    """The sets of flags between the pipes of a race: the ones that wait, the early ones."""

    pending: dict[int, int]
    early: list[int]


def comes_before(one: Location, other: Location) -> bool:
    """Return whether the source has one call before another, in the function that has both."""
    paths = [(*reversed(each.callers), each) for each in (one, other)]
    for here, there in zip(*paths, strict=False):
        if (here.file, here.line) != (there.file, there.line):
            return bool(here.file == there.file and here.line < there.line)
    return False


def half_pair(core: IssuedCore, race: Race) -> HalfPair | None:
    """Return the flag between the pipes of a race that was meant to order it, if there is one."""
    pair = core.pair(race)
    if pair is None:
        return None
    first, last = pair
    flags = _flags_before(core, race, first, last)
    behind = {number: event for event, number in flags.pending.items() if number > first}
    for number, event in sorted(behind.items()):
        late = _wait_behind(core, race, last, event)
        if late is None:
            return HalfPair(NOT_AWAITED, event, core.location(number))
        if not comes_before(core.location(late), core.location(last)):
            return HalfPair(AWAITED_LATE, event, core.location(late))
        # Else the wait is that of a later pass of the loop, and the flag another buffer's.
    # Flags that are set before a loop let its first pass go on: they are no early ones.
    early = [n for n in flags.early if not _is_before_loop(core, n, first, last)]
    if early:
        last_set = early[-1]
        template = core.issues[last_set][0]
        assert isinstance(template, SetFlag)
        alike = tuple(core.location(number) for number in early)
        return HalfPair(SET_EARLY, template.event_id, core.location(last_set), alike)
    return None


def _is_before_loop(core: IssuedCore, number: int, first: int, last: int) -> bool:
    """Return whether a set stands before a loop in which the later access is of the next pass."""
    at, begin = core.location(number), core.location(last)
    return comes_before(begin, core.location(first)) and comes_before(at, begin)


def missing_flag(core: IssuedCore, race: Race) -> MissingFlag | None:
    """Return the flag that would order a race: behind the last access that conflicts."""
    pair = core.pair(race)
    if pair is None:
        return None
    first, last = pair
    behind = max(n for n in range(first, last) if n == first or _conflict(core, race, n, last))
    again = [n for n in core.numbers(race.later) if n < last]
    since = again[-1] if again else -1
    used = _events(core, race)
    free = next((event for event in range(EVENTS) if event not in used), 0)
    return MissingFlag(
        Anchor(core.issues[behind][0].name, core.location(behind), _repeats(core, behind, since)),
        Anchor(core.issues[last][0].name, core.location(last), looped=False),
        free,
        bool(again)
        and again[0] < first
        and not comes_before(core.location(first), core.location(last)),
    )


def _flags_before(core: IssuedCore, race: Race, first: int, last: int) -> _Flags:
    pending = dict[int, int]()
    early = list[int]()
    for number in range(last):
        template = core.issues[number][0]
        if not isinstance(template, (SetFlag, WaitFlag)):
            continue
        if (template.src, template.dst) != (race.earlier_pipe, race.later_pipe):
            continue
        event = template.event_id
        if isinstance(template, SetFlag):
            pending[event] = number
            continue
        raised = pending.pop(event, None)
        if raised is None or not raised < first < number:
            continue
        if _is_for(core, race, _FlagBetween(raised, first, number, last)):
            early.append(raised)
    return _Flags(pending, early)


def _events(core: IssuedCore, race: Race) -> set[int]:
    """Return the events between the pipes of a race that the core uses."""
    pipes = race.earlier_pipe, race.later_pipe
    flags = (each[0] for each in core.issues if isinstance(each[0], (SetFlag, WaitFlag)))
    return {flag.event_id for flag in flags if (flag.src, flag.dst) == pipes}


def _is_for(core: IssuedCore, race: Race, flag: _FlagBetween) -> bool:
    """Return whether a flag that is set too early is meant for the accesses of a race.

    It is if nothing else runs on their pipes between the set and the earlier access, and between
    the wait and the later one: a flag of another buffer has accesses of its own there.
    """
    of_set = _working(core, range(flag.raised + 1, flag.first), race.earlier_pipe)
    of_wait = _working(core, range(flag.awaited + 1, flag.last), race.later_pipe)
    return all(_conflicts(core, n, flag.last) for n in of_set) and all(
        _conflicts(core, flag.first, n) for n in of_wait
    )


def _working(core: IssuedCore, numbers: range, pipe: str) -> list[int]:
    """Return the instructions of a pipe that touch memory."""
    return [n for n in numbers if _pipe(core, n) == pipe and core.touched(n)]


def _wait_behind(core: IssuedCore, race: Race, last: int, event: int) -> int | None:
    """Return the wait for a flag behind an access, if it is not set again before."""
    flag = race.earlier_pipe, race.later_pipe, event
    for number in range(last, len(core.issues)):
        template = core.issues[number][0]
        if isinstance(template, (SetFlag, WaitFlag)):
            if (template.src, template.dst, template.event_id) != flag:
                continue
            return number if isinstance(template, WaitFlag) else None
    return None


def _conflict(core: IssuedCore, race: Race, number: int, last: int) -> bool:
    """Return whether an access on the pipe of the earlier one must come before the later one."""
    return _pipe(core, number) == race.earlier_pipe and _conflicts(core, number, last)


def _conflicts(core: IssuedCore, one: int, other: int) -> bool:
    touched = core.touched(other)
    return any(mine.conflicts(its) for mine in core.touched(one) for its in touched)


def _repeats(core: IssuedCore, number: int, since: int) -> bool:
    """Return whether a loop has issued an instruction more than once since a position."""
    template, _, where = core.issues[number]
    return any(
        core.issues[n][0].name == template.name and core.issues[n][2] is where
        for n in range(since + 1, number)
    )


def _pipe(core: IssuedCore, number: int) -> str:
    return core.issues[number][0].pipe.value
