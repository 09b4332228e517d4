"""One core of a group as the reference engine sees it: its memories are rows of the stacks."""

from collections.abc import Callable

from cubecore.chips.model import Chip
from cubecore.isa.declare.instruction import Mem
from cubecore.isa.program.topology import CoreId
from cubecore.machine.execute import one_core
from cubecore.machine.execute.core import Core
from cubecore.machine.group.sanitize.group_watch import GroupLog
from cubecore.machine.memory.buffers import GlobalMemory, MemoryBuffer
from cubecore.machine.memory.places import MemoryStack


class GroupRow(Core):
    """A core whose memories are the rows `number` of the stacks that `stack` returns."""

    log: GroupLog

    def __init__(
        self,
        chip: Chip,
        gm: GlobalMemory,
        log: GroupLog,
        core: CoreId,
        number: int,
        stack: Callable[[Mem], MemoryStack | None],
    ) -> None:
        super().__init__(core, chip, gm, log, one_core.execute, _alone, _alone)
        self._stack, self._number = stack, number

    def memory(self, mem: Mem) -> MemoryBuffer | None:
        """Return the core's row."""
        stack = self._stack(mem)
        return None if stack is None else stack.rows[self._number]


def _alone(core: Core, *_: object) -> None:
    raise AssertionError(f"{core.id} is a row of a group, which signals and waits itself")
