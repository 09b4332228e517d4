"""Deadlocks: each core that waits, for which flag, from whom, and where those stand."""

from collections.abc import Iterable, Sequence
from itertools import islice
from typing import NamedTuple

from cubecore.errors import DeadlockError, Violation
from cubecore.isa.program.topology import CoreId
from cubecore.isa.program.tree import Location
from cubecore.isa.scalar.sync import WaitFlagDev, signal_name
from cubecore.machine.finding_kinds import RACECHECK
from cubecore.machine.sanitize.finding_log import FindingLog
from cubecore.machine.sanitize.findings import SanitizerFinding

Wait = tuple[int, Location]
"""The flag that a core waits for, and where."""
_SHOWN_CORES = 4


class Standing(NamedTuple):
    """The standing of a core when none goes on: at a wait, at its end, or held by its own pipes.

    `missing` are the cores whose signal it lacks, `unsent` says that nobody has ever sent one.
    `stuck` tells how its pipes wait for each other, and `stuck_at` where; `judged`: a finding
    already says why.
    """

    core: CoreId
    waits: Wait | None = None
    missing: Sequence[CoreId] = ()
    stuck: DeadlockError | None = None
    stuck_at: Location | None = None
    judged: bool = False
    unsent: bool = False


def deadlock(
    standings: Sequence[Standing], log: Iterable[SanitizerFinding] = ()
) -> DeadlockError | None:
    """Return the deadlock of cores of which some have not ended; None if all have.

    Where pipes of a core hold each other, in another order than the program's, the sentence ends
    with the first race that is found: it may be why.
    """
    stuck = [str(one.stuck) for one in standings if one.stuck is not None]
    sentences = stuck + [_sentence(one, standings) for one in standings if one.waits is not None]
    if not sentences:
        return None
    head = "deadlock" if stuck else "deadlock, no core sends a signal"
    waiting = [one for one in standings if one.waits is not None]
    flags = {one.waits[0] for one in waiting if one.waits is not None}
    if len(flags) > 1 and all(one.unsent for one in waiting):
        sentences.append("none of these flags was ever sent: send one once before its first wait")
    if stuck:
        races = (one for one in log if one.check == RACECHECK)
        sentences += [f"{race.id}: {race.message}" for race in islice(races, 1)]
    text = "; ".join(sentences)
    return DeadlockError([Violation("every wait", "", text, sentence=f"{head}: {text}")])


def log_deadlocks(log: FindingLog, standings: Sequence[Standing], *, waits: bool) -> None:
    """Log each core whose own pipes wait for each other; with `waits` those that wait for others.

    Each is told with its sentence, the instruction and where it waits.
    """

    def tell(one: Standing, message: str, instruction: str, where: Location) -> None:
        core = str(one.core)
        log.add(SanitizerFinding("deadlock", message, instruction, where, core), core)

    for one in standings:
        if one.stuck is not None and not one.judged:
            assert one.stuck_at is not None
            tell(one, str(one.stuck), "wait_flag", one.stuck_at)
    for one in standings:
        if waits and one.waits is not None:
            tell(one, _sentence(one, standings), WaitFlagDev.name, one.waits[1])


def _sentence(one: Standing, standings: Sequence[Standing]) -> str:
    """Return what a core waits for, from whom, and where those stand."""
    by_core = {other.core: other for other in standings}

    def standing(sender: CoreId) -> str:
        it = by_core[sender]
        if it.waits is not None:
            return f"{sender} (waiting at {it.waits[1]})"
        return f"{sender} ({'at its end' if it.stuck is None else 'held by its own pipes'})"

    assert one.waits is not None
    flag, where = one.waits
    missing = [standing(sender) for sender in one.missing]
    if len(missing) > _SHOWN_CORES:
        missing[_SHOWN_CORES:] = [f"{len(missing) - _SHOWN_CORES} more cores"]
    verb = "has" if len(missing) == 1 else "have"
    unsent = f"{', '.join(missing)} {verb} not sent" if missing else "no core has sent"
    return f"{one.core} waits for {signal_name(flag)} at {where}, which {unsent}"
