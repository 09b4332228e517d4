"""A launch: cores, their program trees and tensors; execution and timing both start from it."""

from collections.abc import Mapping
from dataclasses import dataclass

from cubecore.isa.declare.instruction import Mem
from cubecore.isa.program.expr import Expr, Var
from cubecore.isa.program.tree import Issue, Program


@dataclass(frozen=True, slots=True)
class TensorSpec:
    """A tensor in global memory: its name and size, and whether the kernel fills it.

    An output that is `zeroed` is set to 0 before the kernel starts, for cores that add to it.
    """

    name: str
    size_bytes: int
    output: bool = False
    zeroed: bool = False


@dataclass(frozen=True, eq=False, slots=True)
class CoreProgram:
    """One core's share: a tree, and for each slot a tensor's name and a byte offset into it."""

    core: int
    program: Program
    slots: Mapping[Var, tuple[str, int]]
    sub: int = 0

    def addresses(self, bases: Mapping[str, int]) -> dict[Var, int]:
        """Return the slots' values for tensors that start at `bases`."""
        return {var: bases[name] + offset for var, (name, offset) in self.slots.items()}


@dataclass(frozen=True, eq=False, slots=True)
class CoreGroup:
    """Cores that run one tree: they differ in the values of its slots only."""

    program: Program
    cores: tuple[CoreProgram, ...]
    slots: tuple[dict[Var, int], ...]

    def distances(self, issue: Issue) -> tuple[int, ...]:
        """Return how far each core's global operand of a leaf lies from the first core's, bytes."""
        operand_index = [operand.mem for operand in issue.template.operands()].index(Mem.GM)
        slots_of_program = set(self.program.slots)
        terms = issue.addresses[operand_index].terms
        varying = Expr(
            0, tuple((a, f) for a, f in terms if isinstance(a, Var) and a in slots_of_program)
        )
        first = varying.at(self.slots[0])
        return tuple(varying.at(slots) - first for slots in self.slots)


@dataclass(frozen=True, eq=False, slots=True)
class Launch:
    """Tensors and cores.

    `kind` says what kind of kernel starts (`Chip.start_cycles`); `warm` that the same launch ran
    just before, so that L2 may still hold its tensors; `past_l2` names tensors whose loads leave
    nothing in L2.
    """

    tensors: tuple[TensorSpec, ...]
    cores: tuple[CoreProgram, ...]
    kind: str = "MDL"
    warm: bool = False
    past_l2: frozenset[str] = frozenset()

    @property
    def programs(self) -> tuple[Program, ...]:
        """The distinct trees, in the order of the first core that runs each."""
        return tuple(dict.fromkeys(core.program for core in self.cores))

    def groups(self, bases: Mapping[str, int], *, whole: bool = False) -> tuple[CoreGroup, ...]:
        """Return the cores by the tree that they run, for tensors that start at `bases`.

        Cores of a tree that is not uniform are groups of one. With `whole` the parts of a group are
        alike parts of AI Cores of which all parts run the same trees, as cores that signal each
        other need it.
        """
        # Two cores are alike if they run the same uniform tree; with `whole` also if all parts of
        # their AI Cores do, as a signal goes between parts of one core.
        parts: dict[int, list[object]] = {}
        for core in self.cores:
            parts.setdefault(core.core, []).append((core.sub, _kind(core)))
        alike: dict[object, list[CoreProgram]] = {}
        for core in self.cores:
            neighbours = (core.sub, *parts[core.core]) if whole else ()
            alike.setdefault((_kind(core), neighbours), []).append(core)
        order = {program: number for number, program in enumerate(self.programs)}
        return tuple(
            CoreGroup(part[0].program, tuple(part), tuple(core.addresses(bases) for core in part))
            for part in sorted(alike.values(), key=lambda part: order[part[0].program])
        )


def _kind(core: CoreProgram) -> object:
    """Return what equal cores share: a uniform tree; any other core is its own kind."""
    return core.program if core.program.is_uniform else core
