"""The count of a launch's instructions, with its limit, and what it has said of its calls."""

from collections.abc import Callable
from typing import TYPE_CHECKING

from cubecore.errors import unable
from cubecore.frontends.source_locations import InstructionLimitError
from cubecore.isa.program.tree import Location

if TYPE_CHECKING:
    from cubecore.frontends.capi.calls.call_sites import KnownCalls, Site
    from cubecore.frontends.capi.modes import Said


class Issues:
    """The count of a launch's instructions, which ends a kernel that loops without end.

    The places of calls are the same on every core, and on the next launch of the kernel. `told` are
    those whose notice this launch has; `cut` says that cores were stopped before their ends.
    """

    def __init__(self, most: int, calls: "KnownCalls") -> None:
        self.most, self.count, self.calls, self.cut = most, 0, calls, False
        self.told: set[int] = set()
        self._reads: dict[int, int] = {}
        self._read_at: dict[int, Location] = {}

    def untold(self, site: "Site") -> "Said | None":
        """Return the notice of a place, once in a launch."""
        if site.notice is None or id(site) in self.told:
            return None
        self.told.add(id(site))
        return site.notice

    def one(self, where: Location) -> None:
        """Count one.

        Raises
        ------
        InstructionLimitError
            If the limit of instructions is passed.
        """
        self.count += 1
        if self.count > self.most:
            raise self.passed(where)

    def read(self, where: Location) -> None:
        """Count a value that the scalar unit reads, which is an issue too.

        Raises
        ------
        InstructionLimitError
            If the limit of instructions is passed.
        """
        self.one(where)
        self.count_reads(where, 1)

    def count_reads(self, where: Location, times: int) -> None:
        """Count values that the scalar unit reads at a line, and that are issues already."""
        key = id(where)
        self._reads[key] = self._reads.get(key, 0) + times
        self._read_at[key] = where

    @property
    def reads(self) -> dict[Location, int]:
        """The values that the scalar units of all cores have read, by line."""
        sums: dict[Location, int] = {}
        for key, where in self._read_at.items():
            sums[where] = sums.get(where, 0) + self._reads[key]
        return sums

    def many(self, count: int, last: Callable[[], Location]) -> None:
        """Count some; `last` says where the last one is.

        Raises
        ------
        InstructionLimitError
            If the limit of instructions is passed.
        """
        self.count += count
        if self.count > self.most:
            raise self.passed(last())

    def passed(self, where: Location) -> InstructionLimitError:
        """Return what a kernel that passes the limit ends with."""
        sentence = f"the kernel issued more than {self.most:,} instructions"
        remedy = "check its loops, or raise `limit` (of judge: --instructions)"
        return InstructionLimitError.at(where, unable("the kernel", sentence, remedy))
