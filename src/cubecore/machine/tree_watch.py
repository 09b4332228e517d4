"""racecheck and synccheck of a tree, once for all the cores that run it.

Their local memories are touched alike, so one walk judges all. Global memory is left to the fast
engine, which walks only trees that it has shown to store apart from each other and from all loads.
"""

from collections.abc import Callable

from cubecore.isa.declare.instruction import Instruction
from cubecore.isa.declare.registers import Registers
from cubecore.isa.program.launch import CoreGroup
from cubecore.isa.program.topology import CoreId
from cubecore.isa.program.tree import Issue, LoadScalar
from cubecore.isa.scalar.sync import Sync
from cubecore.machine.sanitize.racecheck import Sanitizer


class TreeWatch:
    """A sink for `Program.run` that follows a group's first core."""

    def __init__(self, sanitizer: Sanitizer, group: CoreGroup) -> None:
        first = group.cores[0]
        self._watch = sanitizer.watch(CoreId(first.core, first.sub), len(group.cores))
        self._registers = Registers()

    def handler(self, issue: Issue) -> Callable[..., None]:
        """Return the function that follows one leaf."""
        template, late, where = issue.template, len(issue.late), issue.location
        if isinstance(template, Sync):
            sync = self._watch.sync
            if not late:
                return lambda: sync(template, where)
            return lambda *values: sync(issue.bound(values), where)  # type: ignore[arg-type]
        if late or template.takes_registers or not template.operands():
            return lambda *values: self._resolve(issue.bound(values[:late]), values[late:], issue)
        return self._fixed(template, issue)

    def load_scalar(self, load: LoadScalar, address: int) -> int:
        """Give up: no tree of a group steers by values."""
        raise TypeError(f"a tree that is watched has no memory for {load.target.name} at {address}")

    def _resolve(self, template: Instruction, addresses: tuple[int, ...], issue: Issue) -> None:
        resolved = template.resolved(self._registers)
        self._registers = resolved.apply(self._registers)
        if resolved.operands():
            self._fixed(resolved, issue)(*resolved.operand_addresses(addresses))

    def _fixed(self, template: Instruction, issue: Issue) -> Callable[..., None]:
        """Return the follower of a template whose footprints are known."""
        follow = self._watch.follower(template, issue.location, self._registers, globally=False)
        return lambda *addresses: follow(addresses)

    def finish(self) -> None:
        """Judge what the cores leave behind."""
        self._watch.finish()
