"""L0C of a group of cores: the tiles it holds, and the lanes of older tiles beside them."""

from dataclasses import dataclass

import numpy as np

from cubecore.machine.blas.block_products import IrregularError, Leftover, ProductSum
from cubecore.units import FRACTAL_ROWS, align_up


@dataclass(eq=False, slots=True)
class L0CTile:
    """A tile of L0C written by `mad`, whose columns of fractals lie one behind another."""

    address: int
    tile: ProductSum

    @property
    def m(self) -> int:
        """Rows."""
        return self.tile.m

    @property
    def n(self) -> int:
        """Columns."""
        return self.tile.n

    @property
    def size(self) -> int:
        """Bytes of a lane."""
        return self.tile.kind.size_bytes

    @property
    def column_rows(self) -> int:
        """Rows of L0C from one column of fractals to the next."""
        return int(align_up(self.m, FRACTAL_ROWS))

    @property
    def end(self) -> int:
        """The first address behind its fractals."""
        lanes = self.column_rows * align_up(self.n, FRACTAL_ROWS)
        return int(self.address + lanes * self.size)

    @property
    def is_whole(self) -> bool:
        """True if it fills its fractals."""
        return self.m % FRACTAL_ROWS == 0 and self.n % FRACTAL_ROWS == 0

    def meets(self, other: "L0CTile") -> bool:
        """True if their fractals overlap."""
        return self.address < other.end and other.address < self.end

    def hides(self, other: "L0CTile") -> bool:
        """True if no lane of an older tile is left."""
        if self.is_whole and self.address <= other.address and other.end <= self.end:
            return True
        here, there = ((p.address, p.column_rows, p.size) for p in (self, other))
        return here == there and other.m <= self.m and other.n <= self.n


class Accumulators:
    """The tiles of L0C: those that are as `mad` left them, and older ones, newest first."""

    def __init__(self) -> None:
        self._intact: dict[int, L0CTile] = {}
        self._all: list[L0CTile] = []

    def start(self, address: int, tile: ProductSum) -> None:
        """Enter a new tile; what it meets is no longer whole."""
        started = L0CTile(address, tile)
        # A tile that was overwritten in part cannot be accumulated on or stored, but lanes of it
        # may still be stored beside another tile: `_all` keeps it until no lane is left.
        self._intact = {at: p for at, p in self._intact.items() if not p.meets(started)}
        self._intact[address] = started
        self._all = [started, *(p for p in self._all if not started.hides(p))]

    def at(self, address: int) -> L0CTile:
        """Return the whole tile that starts at an address."""
        tile = self._intact.get(address)
        if tile is None:
            raise IrregularError("L0C holds no whole tile there")
        return tile

    def leftovers(self, tile: L0CTile, m: int, n: int) -> tuple[Leftover, ...]:
        """Return what the first m rows and n columns from a tile's start hold beside it.

        Lanes of no tile are of no leftover: they were never written.
        """
        if n <= tile.n:
            return ()
        if n > align_up(tile.n, FRACTAL_ROWS):
            raise IrregularError("columns of fractals that are not the tile's")
        i = np.arange(m, dtype=np.intp)[:, None]
        j = np.arange(tile.n, n, dtype=np.intp)
        row_bytes = FRACTAL_ROWS * tile.size
        rows = tile.address // row_bytes + j // FRACTAL_ROWS * tile.column_rows + i
        free = np.ones((m, n - tile.n), bool)
        leftovers_of_tiles = []
        # Newest first: a lane is that of the latest tile that wrote it.
        for other in self._all[self._all.index(tile) + 1 :]:
            if other.size != tile.size or other.address % row_bytes:
                raise IrregularError("a tile of another type beside the tile")
            group, row = np.divmod(rows - other.address // row_bytes, other.column_rows)
            column = group * FRACTAL_ROWS + j % FRACTAL_ROWS
            taken = free & (group >= 0) & (row < other.m) & (column < other.n)
            if not taken.any():
                continue
            free &= ~taken
            at_row, at_column = np.nonzero(taken)
            leftover = (at_row, at_column + tile.n, row[taken], column[taken])
            leftovers_of_tiles.append(Leftover(other.tile, *leftover))
        return tuple(leftovers_of_tiles)
