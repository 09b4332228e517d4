"""Registers that values leave, of each core of a group, computed where somebody asks."""

from collections.abc import Callable, Sequence
from typing import Any

from cubecore.isa.declare.registers import LEFT, Registers

NONE_LEFT: dict[str, Any] = {name: getattr(Registers(), name) for name in LEFT}


class LeftRegisters:
    """The registers that values leave, by name; `known_as` is who has seen them as they are."""

    def __init__(self, count: int) -> None:
        self._count = count
        self._left: dict[str, list[Any]] = {}
        self._late: dict[str, Callable[[int], object]] = {}
        self.known_as: Registers | None = None

    def __getitem__(self, name: str) -> Sequence[Any]:
        """Return what one register holds on each core."""
        late = self._late.pop(name, None)
        if late is not None:
            self[name] = [late(core) for core in range(self._count)]
        return self._left.get(name) or [NONE_LEFT[name]] * self._count

    def __setitem__(self, name: str, values: Sequence[Any]) -> None:
        self._late.pop(name, None)
        self._left[name], self.known_as = list(values), None

    def on_request(self, name: str, left: Callable[[int], object]) -> None:
        """Let a core's register be computed when somebody asks for it."""
        self._late[name] = left

    def of_cores(self) -> list[dict[str, Any]]:
        """Return what each core's registers hold, of those in which anything was left."""
        for name in list(self._late):
            _ = self[name]
        names = self._left.items()
        return [{name: left[core] for name, left in names} for core in range(self._count)]

    @property
    def pending(self) -> bool:
        """True if something is still to be computed."""
        return bool(self._late)

    def clear(self) -> None:
        """Forget what is still to be computed, and refers to memories."""
        self._late.clear()
