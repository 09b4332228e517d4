"""Trees in lockstep: one walk for every core of a group, where the cores do vector work alone.

A walk that lockstep does not take is undone, as that of kernels is (`machine.lockstep.kernels`).
"""

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from cubecore.chips.model import Chip
from cubecore.isa.declare.instruction import Mem
from cubecore.isa.program.launch import CoreGroup, Launch
from cubecore.isa.program.topology import CoreId, Topology
from cubecore.isa.program.tree import Issue, LoadScalar
from cubecore.machine.blas.block_products import IrregularError
from cubecore.machine.lockstep.aliasing import Snapshots, require_apart
from cubecore.machine.lockstep.group import LockstepGroup
from cubecore.machine.lockstep.sanitizer import StrictLog
from cubecore.machine.memory.buffers import GlobalMemory
from cubecore.machine.reference.scheduler import RunOutcome


def walks(launch: Launch) -> bool:
    """Whether a launch does vector work alone, so that cores can walk its trees together."""
    return all(
        operand.mem in {Mem.GM, Mem.UB}
        for program in launch.programs
        for issue in program.issues
        for operand in issue.template.declared
    )


def walk(
    launch: Launch, chip: Chip, gm: GlobalMemory, bases: Mapping[str, int], checks: frozenset[str]
) -> RunOutcome:
    """Run a launch in lockstep; global memory is as it was before if that cannot be.

    Raises:
        IrregularError: it is the reference engine's.
    """
    snapshots = Snapshots()
    topology = Topology([CoreId(core.core, core.sub) for core in launch.cores])
    try:
        groups = []
        for tree in launch.groups(bases):
            cores = [CoreId(core.core, core.sub) for core in tree.cores]
            places = [(core, topology.place(core)) for core in cores]
            group = LockstepGroup(chip, gm, StrictLog(checks), snapshots, places)
            _agree(group, tree, gm)
            follower = _Follower(group)
            tree.program.run(follower, tree.slots[0])
            group.finish()
            groups.append((group, follower.issued))
        require_apart(group.reach for group, _ in groups)
    except IrregularError:
        snapshots.restore()
        raise
    return RunOutcome((), sum(group.count * issued for group, issued in groups))


def _agree(group: LockstepGroup, tree: CoreGroup, gm: GlobalMemory) -> None:
    """Take how far cores lie apart in each tensor that a slot points into."""
    for var, first in tree.slots[0].items():
        tensor = gm.at(first)
        far = np.array([slots[var] - first for slots in tree.slots], np.int64)
        if tensor is None or not group.reach.agree(tensor.address, far):
            raise IrregularError("slots that point into one tensor at other distances")


class _Follower:
    """A sink for `Program.run`: hands the first core's instructions to its group."""

    def __init__(self, group: LockstepGroup) -> None:
        self._group, self.issued = group, 0

    def handler(self, issue: Issue) -> Callable[..., None]:
        """Return the function that runs one leaf on every core."""
        late, step, template = len(issue.late), self._group.issue, issue.template

        def follow(*values: int) -> None:
            self.issued += 1
            step(issue.bound(values[:late]) if late else template, values[late:])

        return follow

    def load_scalar(self, load: LoadScalar, address: int) -> int:
        """Return the value that memory holds, which must be the same on every core."""
        found: Sequence[int] = self._group.load_scalars(load, address)
        if len(set(found)) > 1:
            raise IrregularError("values that differ from core to core")
        return found[0]
