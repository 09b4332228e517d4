"""Happens-before order of cores in lockstep: one clock a pipe for all, and what each core heard."""

from collections.abc import Callable, Sequence

import numpy as np

from cubecore.machine.sanitizer.happens_before import PIPES, CoreOrder, FlagFault, Foreign


class GroupOrder(CoreOrder):
    """The order within a group's first core, which is every core's.

    `foreign` is what each of them knows of all cores of the launch, [group, cores, pipes]. `group`
    tells groups apart; `cores` are the numbers of its cores in the launch.
    """

    def __init__(
        self, fault: Callable[[FlagFault], None], group: int, cores: Sequence[int], count: int
    ) -> None:
        super().__init__(fault, count)
        self.group, self.cores = group, np.array(cores, np.int64)
        self._rows = np.arange(len(cores))
        self.foreign = np.zeros((len(cores), count, len(PIPES)), np.int64)

    def signal_all(self, pipe: int) -> Foreign:
        """Return what a signal of each core carries when `pipe` gets to it."""
        number = self.enter(pipe)
        carried = self.foreign.copy()
        own = np.maximum(carried[self._rows, self.cores], self.done[pipe])
        own[:, pipe] = number
        carried[self._rows, self.cores] = own
        return carried

    def hear_all(self, carried: Sequence[Foreign]) -> None:
        """Know from here on what signals carried to each core."""
        heard = np.stack(carried)
        self.foreign = np.maximum(self.foreign, heard)
        # Of itself each core hears as much as the others, or more than is taken here.
        self.hear_own(heard[self._rows, self.cores].min(axis=0).tolist())
