"""Findings of threads, in sentences."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from cubecore.frontends.cpp.launch.recording.stacks import line_of
from cubecore.frontends.cpp.wire import SimtFinding, SimtKinds
from cubecore.isa.program.tree import Location
from cubecore.units import plural

if TYPE_CHECKING:
    from cubecore.frontends.cpp.launch.recording.native_core import NativeCore

_LOW = 2
"""The bit of `writes` that tells an address which no memory of threads has."""
_KINDS = {
    SimtKinds.OUT_OF_BOUNDS: "out-of-bounds",
    SimtKinds.MISALIGNED: "misaligned",
    SimtKinds.UNINITIALISED: "uninitialised",
    SimtKinds.RACE: "simt-race",
    SimtKinds.BLOCK_RACE: "simt-race",
    SimtKinds.BARRIER: "simt-barrier",
    SimtKinds.LANE: "simt-lane",
    SimtKinds.ATOMIC_VALUE: "simt-atomic-value",
    SimtKinds.STALE: "simt-stale",
}


@dataclass(frozen=True, slots=True)
class ThreadCall:
    """A call of threads: the library of its code, whether it is a kernel, its size, its line."""

    library: bytes
    is_grid: bool
    threads: int
    blocks: int
    location: Location


class _ThreadFinding:
    """A finding in its words: of one thread, in one call."""

    def __init__(self, native_core: "NativeCore", call: ThreadCall, found: SimtFinding) -> None:
        self._core, self._call, self.found = native_core, call, found

    def line(self, code: int) -> Location:
        """Return the user's line before a place in the code."""
        return line_of(self._call.library, code) or self._call.location

    def thread(self, block: int, thread: int) -> str:
        """Return a thread by its numbers."""
        return f"thread {thread} of block {block}" if self._call.is_grid else f"thread {thread}"

    @property
    def who(self) -> str:
        """The thread that did it."""
        return self.thread(self.found.block, self.found.thread)

    @property
    def bytes(self) -> str:
        """The bytes of the access."""
        found = self.found
        first = found.address
        if found.in_ub:
            return f"bytes [{first}, {first + found.bytes}) of UB"
        if found.writes & _LOW:
            # Vector code counts UB from 0; only pointers that are passed by themselves are moved to
            # where threads have UB.
            return f"address {first}, null or a pointer into UB that came in a struct"
        tensor = self._core.handle.core.gm.nearest(first)
        if tensor is None:
            return f"address {first:#x}"
        at = first - tensor.address
        size = tensor.buffer.size_bytes
        return f"bytes [{at}, {at + found.bytes}) of {tensor.name} (0 to {size} B)"

    @property
    def message(self) -> str:
        """The sentence."""
        return _SENTENCES[SimtKinds(self.found.kind)](self)

    @property
    def is_one_barrier(self) -> bool:
        """True where threads wait at one line of the text, of which the compiler has two copies."""
        found = self.found
        is_barrier = found.kind == SimtKinds.BARRIER and not found.other_writes
        return is_barrier and self.line(found.code) == self.line(found.other)

    @property
    def kind(self) -> str:
        """The id of its kind."""
        return _KINDS[SimtKinds(self.found.kind)]

    @property
    def is_race(self) -> bool:
        """True of two accesses that nothing orders."""
        return self.found.kind in {SimtKinds.RACE, SimtKinds.BLOCK_RACE}

    @property
    def lines(self) -> frozenset[Location]:
        """The lines of its accesses: two threads race both ways where each has both."""
        return frozenset((self.line(self.found.code), self.line(self.found.other)))

    def follows(self, race: "_ThreadFinding") -> bool:
        """Return whether it reads what the write of a race brings, which comes too late."""
        mine, its = self.found, race.found
        if mine.kind != SimtKinds.UNINITIALISED or mine.in_ub != its.in_ub:
            return False
        meets = mine.address < its.address + its.bytes and its.address < mine.address + mine.bytes
        return meets and self.line(mine.code) in race.lines

    # --- by kind

    def out_of_bounds(self) -> str:
        """Return the sentence of an access outside of memory."""
        found = self.found
        what = self.access(found.writes)
        need = "static and dynamic memory of its block" if found.in_ub else "an array"
        return f"{self.who} must stay inside {need}, got a {what} of {self.bytes}{self._times}"

    def misaligned(self) -> str:
        """Return the sentence of an access off its alignment."""
        found = self.found
        what = self.access(found.writes)
        size = found.bytes
        return (
            f"{self.who} must access {size} B at a multiple of {size}, got a {what} of"
            f" {self.bytes}{self._times}"
        )

    def uninitialised(self) -> str:
        """Return the sentence of a read of what nobody wrote."""
        return f"{self.who} reads {self.bytes}, which nothing has written{self._times}"

    def race(self) -> str:
        """Return the sentence of two accesses that nothing orders."""
        found = self.found
        first = self.thread(found.other_block, found.other_thread)
        how = "writes" if found.writes else "reads"
        other = "wrote" if found.other_writes else "read"
        line = self.line(found.other)
        across = found.kind == SimtKinds.BLOCK_RACE
        between = (
            "blocks run in any order: use an atomic, or asc_threadfence and an atomic flag"
            if across
            else "no asc_syncthreads lies between"
        )
        return (
            f"{self.who} {how} {self.bytes}, which {first} {other} at"
            f" {line}; {between}{self._times}"
        )

    def barrier(self) -> str:
        """Return the sentence of a barrier that not all threads reach."""
        found = self.found
        if found.other_writes:
            rest = f"{plural(found.number, 'thread')} of {found.bytes} have ended"
        else:
            rest = f"thread {found.other_thread} waits at {self.line(found.other)}"
        need = "asc_syncthreads must be reached by all threads of a block"
        return f"{need}; {self.who} waits and {rest}"

    def lane(self) -> str:
        """Return the sentence of a value of a lane that takes no part."""
        found = self.found
        lane = f"lane {found.number}, which is not active here"
        return f"{self.who} takes a value of {lane}{self._times}"

    def atomic_value(self) -> str:
        """Return the sentence of a value that the hardware does not give."""
        return (
            f"{self.who} uses what an atomic of half or bfloat16 returns, which is not the old"
            f" value{self._times}"
        )

    def stale(self) -> str:
        """Return the sentence of a load from a line that another core has changed."""
        found = self.found
        first = self.thread(found.other_block, found.other_thread)
        return (
            f"{self.who} reads {self.bytes}, which {first} wrote at"
            f" {self.line(found.other)}; its core may have the line from before: load it by"
            f" asc_ldcg or volatile, or call asc_dcci_single first{self._times}"
        )

    @staticmethod
    def access(writes: int) -> str:
        """Return what an access is."""
        return "write" if writes & 1 else "read"

    @property
    def _times(self) -> str:
        times = self.found.times
        return f" ({times} times at this line)" if times > 1 else ""


_SENTENCES = {
    SimtKinds.OUT_OF_BOUNDS: _ThreadFinding.out_of_bounds,
    SimtKinds.MISALIGNED: _ThreadFinding.misaligned,
    SimtKinds.UNINITIALISED: _ThreadFinding.uninitialised,
    SimtKinds.RACE: _ThreadFinding.race,
    SimtKinds.BLOCK_RACE: _ThreadFinding.race,
    SimtKinds.BARRIER: _ThreadFinding.barrier,
    SimtKinds.LANE: _ThreadFinding.lane,
    SimtKinds.ATOMIC_VALUE: _ThreadFinding.atomic_value,
    SimtKinds.STALE: _ThreadFinding.stale,
}


def logged(native_core: "NativeCore", call: ThreadCall, found: Sequence[SimtFinding]) -> None:
    """Log the findings of a call, without those that another one is the cause of."""
    findings = [_ThreadFinding(native_core, call, each) for each in found]
    races = dict[frozenset[Location], _ThreadFinding]()
    for finding in findings:
        if finding.is_race:
            races.setdefault(finding.lines, finding)
    for finding in findings:
        if finding.is_one_barrier or (finding.is_race and races[finding.lines] is not finding):
            continue
        if not any(finding.follows(race) for race in races.values()):
            where = finding.line(finding.found.code)
            native_core.handle.log(finding.kind, finding.message, "a thread", where)
