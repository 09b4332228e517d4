"""The count of a launch's instructions, with its limit, and the calls that are bound already."""

from collections.abc import Callable
from typing import TYPE_CHECKING

from cubecore.errors import unable
from cubecore.frontends.source_locations import KernelError
from cubecore.isa.program.tree import Location

if TYPE_CHECKING:
    from cubecore.frontends.capi.call_sites import Sites
    from cubecore.isa.declare.instruction import Mem
    from cubecore.isa.program.tree import LoadScalar


class Issues:
    """The count of a launch's instructions, which ends a kernel that loops without end.

    The places of calls are the same on every core, and kept here.
    """

    def __init__(self, most: int) -> None:
        self.most, self.count = most, 0
        self.sites: dict[str, Sites] = {}
        self.loads: dict[tuple[int, Mem, str], tuple[LoadScalar, str]] = {}

    def one(self, where: Location) -> None:
        """Count one.

        Raises
        ------
        KernelError
            If the limit of instructions is passed.
        """
        self.count += 1
        if self.count > self.most:
            raise self.passed(where)

    def many(self, count: int, last: Callable[[], Location]) -> None:
        """Count some; `last` says where the last one is.

        Raises
        ------
        KernelError
            If the limit of instructions is passed.
        """
        self.count += count
        if self.count > self.most:
            raise self.passed(last())

    def passed(self, where: Location) -> KernelError:
        """Return what a kernel that passes the limit ends with."""
        sentence = f"the kernel issued more than {self.most:,} instructions"
        remedy = "check its loops, or raise `limit`"
        return KernelError.at(where, unable("the kernel", sentence, remedy))
