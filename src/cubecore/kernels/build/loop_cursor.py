"""An odometer over scalars: walks a nest of loops one step at a time, apart from the nest itself.

A load that runs ahead of its use cannot sit in the loop that uses it; it keeps its own place in the
same sequence.
"""

from cubecore.isa.program.expr import Expr, Int
from cubecore.kernels.build.builder import Builder, ScalarVariable


class Cursor:
    """A place in a sequence; the wheels, (name, positions), run from the fastest to the slowest."""

    def __init__(self, builder: Builder, name: str, wheels: list[tuple[str, int]]) -> None:
        """Wheels with one position need no scalar."""
        self._builder = builder
        self._wheels: list[tuple[str, ScalarVariable | None, Int]] = [
            (wheel, None if trips == 1 else builder.scalar(f"{name}_{wheel}"), trips)
            for wheel, trips in wheels
        ]
        self._positions = [trips for _, trips in wheels]

    def walk(self) -> tuple[tuple[Expr, int], ...]:
        """Return (position, positions in all) of each wheel that turns, from the slowest."""
        turning = [
            (scalar.value, trips)
            for (_, scalar, _), trips in zip(self._wheels, self._positions, strict=True)
            if scalar is not None
        ]
        return tuple(reversed(turning))

    def at(self, wheel: str) -> Expr:
        """Return the wheel's position."""
        for name, scalar, _ in self._wheels:
            if name == wheel:
                return Expr(0) if scalar is None else scalar.value
        raise KeyError(wheel)

    def limit(self, wheel: str, trips: Expr) -> None:
        """Let the positions of a wheel depend on slower ones."""
        self._wheels = [
            (name, scalar, trips if name == wheel else limit)
            for name, scalar, limit in self._wheels
        ]

    def advance(self) -> None:
        """Take one step, carrying into slower wheels."""
        self._carry([(s, t) for _, s, t in self._wheels if s is not None])

    def _carry(self, wheels: list[tuple[ScalarVariable, Int]]) -> None:
        if not wheels:
            return
        (scalar, trips), slower = wheels[0], wheels[1:]
        scalar.set(scalar.value + 1)
        with self._builder.when(scalar.value, ">=", trips):
            scalar.set(0)
            self._carry(slower)
