"""The buffers of a tile in UB of a core that computes in registers."""

from bisect import bisect_right
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from cubecore.chips.model import Chip
from cubecore.errors import refuse
from cubecore.kernels.operators.functions import OperatorProblem
from cubecore.kernels.operators.launch import ShareBlock
from cubecore.kernels.operators.passes import NUMBER, Passes, PassValue, passes_of
from cubecore.kernels.operators.tile import LANES
from cubecore.units import align_up

_ROWS_KB = (128, 96, 64, 48, 32, 16, 8)
_ELEMENTS_KB = (32, 16, 8)
"""Bytes of a tile in float32, where a row is not longer: of whole rows as many as fit."""
_UNIT_BYTES = 512
"""Buffers begin at the first of both banks of each group."""
_MOST_ROWS = 255


@dataclass(frozen=True)
class TileLayout:
    """A tile of `rows` rows of `columns`, and where its parts lie in one of `buffers` regions.

    All regions are alike, so that one vector function serves each of them.
    """

    problem: OperatorProblem
    rows: int
    columns: int
    buffers: int

    @cached_property
    def passes(self) -> Passes:
        """The passes over the tile."""
        return passes_of(self.problem.function, self.columns)

    @property
    def pitch(self) -> int:
        """Elements from row to row."""
        pitch: int = align_up(self.columns, LANES)
        return pitch

    @cached_property
    def _places(self) -> tuple[Mapping[object, int], int]:
        """The first byte of each part, and the region's end."""
        function, size = self.problem.function, self.problem.dtype.size_bytes
        tile, few = self.rows * self.pitch, 4 * align_up(self.rows, LANES)
        parts: dict[object, int] = {("input", n): tile * size for n in range(function.arrays)}
        vector_bytes = self.problem.vector_type.size_bytes
        parts |= {("vector", n): self.pitch * vector_bytes for n in range(function.vectors)}
        parts |= {("number", n): few for n in range(function.numbers)}
        # Results of rows are a number each; of values between passes each has a place, as nothing
        # that one pass still loads may be stored over by it.
        parts["result"] = few if function.gives == "rows" else tile * size
        parts["last"] = tile * size * function.last
        parts["scales"] = few * (function.gives == "quantised")
        parts |= dict.fromkeys(self.passes.kept, 4 * tile)
        parts |= dict.fromkeys(self.passes.row_values, few)
        found, at = {}, 0
        for name, count in parts.items():
            found[name] = at
            at += align_up(count, _UNIT_BYTES)
        return found, at

    @property
    def region_bytes(self) -> int:
        """Bytes from one region to the next."""
        return self._places[1]

    @property
    def end(self) -> int:
        """The end of the last region."""
        return self.buffers * self.region_bytes

    @property
    def inputs(self) -> tuple[int, ...]:
        """The inputs."""
        return tuple(self._places[0]["input", n] for n in range(self.problem.function.arrays))

    @property
    def vectors(self) -> tuple[int, ...]:
        """The vectors that rows share."""
        return tuple(self._places[0]["vector", n] for n in range(self.problem.function.vectors))

    @property
    def numbers(self) -> tuple[int, ...]:
        """The inputs of a float a row."""
        return tuple(self._places[0]["number", n] for n in range(self.problem.function.numbers))

    @property
    def result(self) -> int:
        """The result."""
        return self._places[0]["result"]

    @property
    def last(self) -> int:
        """The result beside it."""
        return self._places[0]["last"]

    @property
    def scales(self) -> int:
        """The scale of each row."""
        return self._places[0]["scales"]

    def kept_at(self, value: PassValue) -> int:
        """Return where a tile of float32 lies between two passes."""
        return self._places[0][value]

    def row_at(self, value: PassValue) -> int:
        """Return where one number a row lies."""
        return self._places[0][(NUMBER, value.number) if value.kind == NUMBER else value]


def layout_of(problem: OperatorProblem, chip: Chip, block: ShareBlock) -> TileLayout:
    """Return the largest tile that fits, with two regions or one.

    Raises
    ------
    RequestError
        If no row fits in the Unified Buffer.
    """
    # Rows go in tiles as large as UB lets them be, as published kernels of rows do: less of the
    # copies is hidden, and fewer functions begin. Two regions go before larger tiles.
    function = problem.function
    for buffers in (2, 1):
        for size in (1024 * kb for kb in (_ROWS_KB if function.by_rows else _ELEMENTS_KB)):
            columns = block.columns if function.by_rows else min(size // 4, block.columns)
            rows = max(1, min(size // (4 * align_up(columns, LANES)), block.rows, _MOST_ROWS))
            layout = TileLayout(problem, rows, columns, buffers)
            if layout.end <= chip.ub_user_bytes:
                return layout
    lengths = range(LANES, problem.columns, LANES)
    count = bisect_right(
        lengths, chip.ub_user_bytes, key=lambda columns: TileLayout(problem, 1, columns, 1).end
    )
    raise refuse(
        f"the columns of {problem.op}",
        f"be at most {count * LANES}, so that a row fits in the Unified Buffer of {chip.name}",
        problem.columns,
    )
