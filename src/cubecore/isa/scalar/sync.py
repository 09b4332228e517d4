"""Flags between the pipes of a core, barriers, flags and notices between cores, arch 2201."""

from typing import ClassVar

from cubecore.chips.model import Chip
from cubecore.errors import Violation
from cubecore.isa.declare.archs import Kirin
from cubecore.isa.declare.common_3510 import ARCH
from cubecore.isa.declare.instruction import Instruction, Pipe, choice, instruction, param
from cubecore.isa.declare.registers import (
    CROSS_CORE_FLAGS,
    FIRST_OF_PARTS,
    TO_ALL,
    TO_PART,
    TO_PARTNER,
)

_PIPES = tuple(p.value for p in Pipe if p is not Pipe.ALL)
EVENT_IDS = 8
"""Event ids of each pair of pipes (C API, synchronisation)."""
CROSS_CORE_LIMIT = 15
NOTICE_BYTES = 32
"""Largest value of a flag's counter between cores."""
AIC_PIPES = ("M", "MTE1", "MTE2", "MTE3", "FIX")
"""Pipes of an AIC that flags connect; its scalar unit takes no part in flags."""
AIV_PIPES = ("S", "V", "MTE2", "MTE3")
"""Pipes of an AIV that flags connect."""
_ABSENT = {("M", "MTE3"), ("MTE3", "M")}


def pairs(*, aic: bool) -> frozenset[tuple[str, str]]:
    """Return the (source, destination) pairs of pipes that a flag can connect on an AIC or an AIV.

    asc-devkit, pipe synchronisation within a core, tables 2 and 3 (2201): every ordered pair of
    the part's pipes but M and MTE3. Pairs that the tables call possible but of no use are in.
    """
    pipes = AIC_PIPES if aic else AIV_PIPES
    return frozenset((a, b) for a in pipes for b in pipes if a != b) - _ABSENT


JOINED_PAIRS = frozenset((a, b) for a in _PIPES for b in _PIPES if a != b)
"""Pairs of pipes that a flag connects where one core has all of them: inferred, any two."""


class Sync(Instruction):
    """Base of what orders other instructions; it touches no memory."""

    waits: ClassVar[bool] = False


@instruction(
    "set_flag",
    Pipe.S,
    since="m100",
    names={"c_api": "asc_sync_notify", "cpp": "SetFlag"},
    source="asc-devkit, asc_sync_notify",
    archs=("2201", "3510"),
    kirin=Kirin(),
)
class SetFlag(Sync):
    """Raise the flag (src, dst, event_id) once src's earlier instructions have completed."""

    src: str = choice("pipe that raises it", *_PIPES, default="S")
    dst: str = choice("pipe that waits for it", *_PIPES, default="S")
    event_id: int = param(0, EVENT_IDS - 1, "event")

    def preconditions(self, chip: Chip) -> list[Violation]:
        """A pipe does not signal itself."""
        return _distinct(self.name, self.src, self.dst)


@instruction(
    "wait_flag",
    Pipe.S,
    since="m100",
    names={"c_api": "asc_sync_wait", "cpp": "WaitFlag"},
    source="asc-devkit, asc_sync_wait",
    archs=("2201", "3510"),
    kirin=Kirin(),
)
class WaitFlag(Sync):
    """Hold dst's later instructions until the flag (src, dst, event_id) is up, and clear it."""

    waits = True
    src: str = choice("pipe that raises it", *_PIPES, default="S")
    dst: str = choice("pipe that waits for it", *_PIPES, default="S")
    event_id: int = param(0, EVENT_IDS - 1, "event")

    def preconditions(self, chip: Chip) -> list[Violation]:
        """A pipe does not signal itself."""
        return _distinct(self.name, self.src, self.dst)


def _distinct(name: str, src: str, dst: str) -> list[Violation]:
    return [Violation(name, "name two different pipes", f"{src} twice")] if src == dst else []


@instruction(
    "pipe_barrier",
    Pipe.S,
    since="m100",
    names={"c_api": "asc_sync_pipe", "cpp": "PipeBarrier"},
    variants={"asc_sync": {"on": "ALL"}, "asc_sync_vec": {"on": "ALL"}},
    source="asc-devkit, asc_sync_pipe",
    archs=("2201", "3510"),
    kirin=Kirin(),
)
class PipeBarrier(Sync):
    """Start the pipe's later instructions only after its earlier ones; ALL joins every pipe."""

    on: str = choice("pipe", *(p.value for p in Pipe if p is not Pipe.S), default=Pipe.ALL.value)


MUTEXES = 32
"""Mutexes of a core of architecture 3510."""
LOCK_MODES = ("ASC_LOCK_BLOCK", "ASC_LOCK_NON_BLOCK")
"""Modes of a mutex, by their numbers in C."""
_BLOCKS = (("on", "mutex_id"),)
_UNCERTAIN_MODE = (
    "in ASC_LOCK_NON_BLOCK the unlock alone waits for earlier unlocks, and later instructions of "
    "its pipe do not wait for it: the page says so of the lock, and of the unlock when it runs",
)


@instruction(
    "lock",
    Pipe.S,
    names={"c_api": "asc_lock", "cpp": "Mutex::Lock"},
    source="asc-devkit, asc_lock and Mutex (3510)",
    uncertain=_UNCERTAIN_MODE,
    archs=ARCH,
)
class Lock(Sync):
    """Hold a pipe's later instructions until every earlier unlock of the mutex has run.

    Of two of one pipe the second holds nothing, and ASC_LOCK_NON_BLOCK (1) none at all.
    """

    waits = True
    signatures = _BLOCKS
    on: str = choice("pipe that takes the mutex", *_PIPES, default="S")
    mutex_id: int = param(0, MUTEXES - 1, "mutex")
    mode: int = param(0, 1, "0 ASC_LOCK_BLOCK, 1 ASC_LOCK_NON_BLOCK: holds nothing", default=0)


@instruction(
    "unlock",
    Pipe.S,
    names={"c_api": "asc_unlock", "cpp": "Mutex::Unlock"},
    source="asc-devkit, asc_unlock and Mutex (3510)",
    uncertain=_UNCERTAIN_MODE,
    archs=ARCH,
)
class Unlock(Sync):
    """Give a mutex back once the pipe's earlier instructions have completed.

    In ASC_LOCK_NON_BLOCK (1) also not before every earlier unlock of the mutex has run.
    """

    signatures = _BLOCKS
    on: str = choice("pipe that has the mutex", *_PIPES, default="S")
    mutex_id: int = param(0, MUTEXES - 1, "mutex")
    mode: int = param(0, 1, "0 ASC_LOCK_BLOCK, 1 ASC_LOCK_NON_BLOCK: as its lock", default=0)


_DSB_PIPES = {
    "DSB_ALL": _PIPES,
    "DSB_DDR": ("S", "MTE1", "MTE2", "MTE3", "FIX"),
    "DSB_UB": ("S", "V", "MTE2", "MTE3"),
}


@instruction(
    "dsb",
    Pipe.S,
    names={"c_api": "asc_sync_data_barrier", "cpp": "DataSyncBarrier"},
    source="asc-devkit, asc_sync_data_barrier (2201)",
    uncertain=(
        "what accesses a memory is judged by pipe: all that the pipe was given completes",
        "DSB_SEQ is reserved, the page says, and refused",
    ),
    archs=("2201", "3510"),
)
class Dsb(Sync):
    """Hold everything later until earlier accesses of global memory, of UB or of both are complete.

    The scalar unit itself waits. `pipes` are those whose instructions access the memory.
    """

    memory: str = choice("whose accesses complete", *_DSB_PIPES, default="DSB_ALL")

    @property
    def pipes(self) -> tuple[str, ...]:
        """The pipes that complete."""
        return _DSB_PIPES[self.memory]


def joined_pipes(sync: Instruction) -> tuple[str, ...]:
    """Return the pipes that the scalar unit itself waits for: none, some, or all."""
    if isinstance(sync, Dsb):
        return sync.pipes
    return _PIPES if isinstance(sync, PipeBarrier) and sync.on == Pipe.ALL.value else ()


@instruction(
    "ffts_cross_core_sync",
    Pipe.S,
    since="m100",
    names={"cpp": "CrossCoreSetFlag"},
    variants={
        "asc_sync_inter_arrive": {"mode": 0},
        "asc_sync_subblock_arrive": {"mode": 1},
        "asc_sync_block_arrive": {"mode": 2},
    },
    source="asc-devkit, asc_sync_{inter,subblock,block}_arrive (2201, 3510)",
    archs=("2201", "3510"),
    uncertain=("the pipe's earlier instructions complete before the signal: inferred",),
)
class FftsCrossCoreSync(Sync):
    """Signal other cores on a flag once `pipe`'s earlier instructions have completed.

    mode 0: when every core of the same kind has signalled, each one's counter goes up. mode 1: the
    same among the two vector cores of one AI Core. mode 2: an AIC raises the counters of both its
    AIVs; its AIVs together raise the AIC's. A counter may stand at 15 at most.
    """

    on: str = choice("pipe", *_PIPES, default="S")
    mode: int = param(0, 2, "who is signalled")
    flag_id: int = param(0, CROSS_CORE_FLAGS - 1, "flag")

    @property
    def counter(self) -> int:
        """The number of its counter among all of a core's."""
        return self.flag_id


FIRST_MESSAGE = 2**47
"""The number of a first message of the Matmul object, beyond those of flags and notices."""


def signal_name(number: int) -> str:
    """Return the name of a signal between cores; the number of a message means nothing."""
    if FIRST_OF_PARTS <= number < FIRST_OF_PARTS + 2 * CROSS_CORE_FLAGS:
        return f"flag {number - FIRST_OF_PARTS} of mode 4"
    return "message of the Matmul object" if number >= FIRST_MESSAGE else f"flag {number}"


@instruction(
    "wait_flag_dev",
    Pipe.S,
    since="m100",
    names={"cpp": "CrossCoreWaitFlag"},
    variants={f"asc_sync_{who}_wait": {} for who in ("inter", "subblock", "block")},
    source="asc-devkit, asc_sync_{inter,subblock,block}_wait (2201, 3510)",
    uncertain=(
        "on 3510 it holds the pipe that it names and no other (CrossCoreWaitFlag's page); here the "
        "whole core waits, as on 2201: what another pipe does too early there is not found",
    ),
    archs=("2201", "3510"),
)
class WaitFlagDev(Sync):
    """Hold the whole core until the flag's counter is above 0, and take one from it."""

    waits = True
    signature = ("_pipe", "flag_id")
    flag_id: int = param(0, CROSS_CORE_FLAGS - 1, "flag")

    @property
    def counter(self) -> int:
        """The number of its counter among all of the core's."""
        return self.flag_id

    @property
    def signal(self) -> str:
        """The signal that it waits for, as a stall names it."""
        return signal_name(self.counter)


_OF_PARTS = "asc-devkit, asc_sync_intra_arrive, asc_sync_intra_wait, CrossCoreSetFlag (mode 4)"


@instruction(
    "set_intra_block",
    Pipe.S,
    names={"c_api": "asc_sync_intra_arrive", "cpp": "CrossCoreSetFlag"},
    source=_OF_PARTS,
    archs=ARCH,
    uncertain=(
        "flags 11 to 15 and 27 to 31 count, as the C API has it; CrossCoreSetFlag's page lists "
        "those up to 10 and 26",
    ),
)
class SetIntraBlock(FftsCrossCoreSync):
    """Signal one part of the AI Core once `pipe`'s earlier instructions have completed.

    An AIC's flags 0 to 15 are AIV0's and 16 to 31 are AIV1's 0 to 15; an AIV's 0 to 15 are those of
    the AIC. They have counters of their own, apart from those of the other modes.
    """

    signature = ("on", "flag_id")
    mode: int = param(TO_PART, TO_PART, "who is signalled: one part", default=TO_PART)
    flag_id: int = param(0, 2 * CROSS_CORE_FLAGS - 1, "flag")

    @property
    def counter(self) -> int:
        """The counters of mode 4."""
        return FIRST_OF_PARTS + self.flag_id


@instruction(
    "wait_intra_block",
    Pipe.S,
    names={"c_api": "asc_sync_intra_wait", "cpp": "CrossCoreWaitFlag"},
    source=_OF_PARTS,
    archs=ARCH,
    uncertain=("it holds the pipe that it names; here the whole core waits, as in other modes",),
)
class WaitIntraBlock(WaitFlagDev):
    """Hold the core until the counter of a flag of mode 4 is above 0, and take one from it."""

    flag_id: int = param(0, 2 * CROSS_CORE_FLAGS - 1, "flag")

    @property
    def counter(self) -> int:
        """The counters of mode 4."""
        return FIRST_OF_PARTS + self.flag_id


_NOTICES = (
    "the copies and the polling by which the library sends a notice are one signal here",
    "its notice is sent when MTE3's earlier instructions have completed",
)
_NOTICE_SOURCE = "asc-devkit, IBSet, IBWait, WaitPreBlock, NotifyNextBlock, GroupBarrier"


@instruction(
    "notify_blocks",
    Pipe.S,
    names={"cpp": "IBSet"},
    source=_NOTICE_SOURCE,
    archs=("2201", "3510"),
    uncertain=_NOTICES,
)
class NotifyBlocks(FftsCrossCoreSync):
    """Put a notice for AIVs into 32 B of global memory, once `pipe`'s instructions have completed.

    `flag_id` is its address over 32. Every AIV can wait for it, each as often as it was put there.
    """

    mode: int = param(TO_ALL, TO_ALL, "who is told: every AIV", default=TO_ALL)
    flag_id: int = param(0, 2**48, "address of the notice, 32 B")


@instruction(
    "await_block",
    Pipe.S,
    names={"cpp": "IBWait"},
    source=_NOTICE_SOURCE,
    archs=("2201", "3510"),
    uncertain=_NOTICES,
)
class AwaitBlock(WaitFlagDev):
    """Hold the whole core until a notice of `notify_blocks` is in global memory."""

    flag_id: int = param(0, 2**48, "address of the notice, 32 B")

    @property
    def signal(self) -> str:
        """The notice, by its address in global memory."""
        return f"notice at GM {self.flag_id * NOTICE_BYTES:#x}"


_MESSAGES = (
    "the writing and the polling of global memory by which the library passes messages are one "
    "signal here",
    "a message is sent when the earlier instructions of its pipe have completed",
)
_MESSAGE_SOURCE = "asc-devkit, REGIST_MATMUL_OBJ, IterateAll"


@instruction(
    "send_message",
    Pipe.S,
    names={"cpp": "Matmul::IterateAll"},
    source=_MESSAGE_SOURCE,
    archs=("2201", "3510"),
    uncertain=_MESSAGES,
)
class SendMessage(FftsCrossCoreSync):
    """Pass a message between an AIV and the AIC of its AI Core, as a Matmul object's calls do.

    It is sent once `pipe`'s earlier instructions have completed. Each wait takes one.
    """

    mode: int = param(TO_PARTNER, TO_PARTNER, "who is told: the partner", default=TO_PARTNER)
    flag_id: int = param(0, 2**48, "number of the message's place")


@instruction(
    "await_message",
    Pipe.S,
    names={"cpp": "Matmul::WaitIterateAll"},
    source=_MESSAGE_SOURCE,
    archs=("2201", "3510"),
    uncertain=_MESSAGES,
)
class AwaitMessage(WaitFlagDev):
    """Hold the whole core until a message of `send_message` has come."""

    flag_id: int = param(0, 2**48, "number of the message's place")

    @property
    def signal(self) -> str:
        """A message, whose number means nothing to a reader."""
        return signal_name(self.flag_id)
