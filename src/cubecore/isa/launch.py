"""A launch: which cores run which trees on which tensors. Values and times both start from it."""

from collections.abc import Mapping
from dataclasses import dataclass

from cubecore.isa.expr import Var
from cubecore.isa.program import Program


@dataclass(frozen=True, slots=True)
class TensorSpec:
    """A tensor in global memory: its name and size, and whether the kernel fills it."""

    name: str
    size_bytes: int
    output: bool = False


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
class Launch:
    """Tensors and cores."""

    tensors: tuple[TensorSpec, ...]
    cores: tuple[CoreProgram, ...]

    @property
    def programs(self) -> tuple[Program, ...]:
        """The distinct trees, in the order of the first core that runs each."""
        return tuple(dict.fromkeys(core.program for core in self.cores))
