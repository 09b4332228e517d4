"""An odometer over scalars: walks a nest of loops one step at a time, apart from the nest itself.

A load that runs ahead of its use cannot sit in the loop that uses it; it keeps its own place in the
same sequence.
"""

from cubecore.isa.program.expr import Expr, Int
from cubecore.kernels.build.builder import Builder, ScalarVariable


class Cursor:
    """A place in a sequence; the levels, (name, positions), run from the fastest to the slowest."""

    def __init__(self, builder: Builder, name: str, levels: list[tuple[str, int]]) -> None:
        """Wheels with one position need no scalar."""
        self._builder = builder
        self._levels: list[tuple[str, ScalarVariable | None, Int]] = [
            (level, None if trips == 1 else builder.scalar(f"{name}_{level}"), trips)
            for level, trips in levels
        ]
        self._positions = [trips for _, trips in levels]

    def walk(self) -> tuple[tuple[Expr, int], ...]:
        """Return (position, positions in all) of each level that moves, from the slowest."""
        turning = [
            (scalar.value, trips)
            for (_, scalar, _), trips in zip(self._levels, self._positions, strict=True)
            if scalar is not None
        ]
        return tuple(reversed(turning))

    def at(self, level: str) -> Expr:
        """Return the level's position."""
        for name, scalar, _ in self._levels:
            if name == level:
                return Expr(0) if scalar is None else scalar.value
        raise KeyError(level)

    def limit(self, level: str, trips: Expr) -> None:
        """Let the positions of a level depend on slower ones."""
        self._levels = [
            (name, scalar, trips if name == level else limit)
            for name, scalar, limit in self._levels
        ]

    def advance(self) -> None:
        """Take one step, carrying into slower levels."""
        self._carry([(s, t) for _, s, t in self._levels if s is not None])

    def _carry(self, levels: list[tuple[ScalarVariable, Int]]) -> None:
        if not levels:
            return
        (scalar, trips), slower = levels[0], levels[1:]
        scalar.set(scalar.value + 1)
        with self._builder.when(scalar.value, ">=", trips):
            scalar.set(0)
            self._carry(slower)
