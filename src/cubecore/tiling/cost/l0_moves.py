"""Instructions that bring a base block into L0, by how it lies in L1 and is held in L0.

Those of the kernel's own moves (`kernels.matmul.l1_to_l0`), counted for one tiling or for a struct
of arrays, as in `tiling.cost.tile_counts`.
"""

from typing import NamedTuple

import numpy as np

from cubecore.aliases import Column
from cubecore.chips.products import L0A_NZ_ARCHS
from cubecore.tiling.cost.tile_counts import TileCounts
from cubecore.tiling.cost.traffic import Stored
from cubecore.tiling.rules.model import RuleCase
from cubecore.units import FRACTAL_ROWS, ceil_div


class Moves(NamedTuple):
    """The moves of a mean base block: those beside one, and those that the next one waits for."""

    more: Column
    alone: Column


def moves(case: RuleCase, w: TileCounts, operand: str, *, fewest: bool = False) -> Moves:
    """Return the moves of a base block of operand "a" or "b".

    The fractals of a block lie behind each other in L1 where a chunk is one block along M or N, and
    one instruction takes them all; so it is, with `fewest`, whatever the step. Else there is one
    for each row or column of fractals, of which there are fewer. A transposing load takes squares;
    where the last one is part used, the next row of squares overwrites what it leaves behind, on
    the core with the last and smaller block too.
    """
    t, stored = case.tiling, Stored.of(case.problem, operand)
    if operand == "a":
        whole, own, base, step, tiles = t.M, w.m, t.baseM, t.stepM, w.m_tiles
    else:
        whole, own, base, step, tiles = t.N, w.n, t.baseN, t.stepN, w.n_tiles
    extent = np.minimum(base, own)
    k, c0 = np.minimum(t.baseK, w.k), stored.kind.c0
    held_as_nz = operand == "b" or case.chip.arch in L0A_NZ_ARCHS
    if stored.k_inner:
        many = np.minimum(ceil_div(extent, FRACTAL_ROWS), ceil_div(k, c0)) - 1
        if not held_as_nz:
            return Moves(many, 0)
        return Moves(0 if fewest else np.where(np.greater(step, 1), many, 0), 0)
    edge = max(FRACTAL_ROWS, c0)
    squares, squares_k = ceil_div(extent, edge), ceil_div(k, edge)
    windowed = operand == "a" and held_as_nz
    many = 0 if windowed else np.minimum(squares, squares_k) - 1
    if edge == FRACTAL_ROWS or (operand == "a" and not windowed):
        return Moves(many, 0)
    share = _part_used(own, base, edge) / tiles
    last = whole - (ceil_div(whole, own) - 1) * own
    share = np.maximum(share, _part_used(last, base, edge) / tiles)
    if windowed:
        share = np.where(np.greater(squares_k, 1), share, 0)
    return Moves(many + share * (squares_k - 1 - many), share * squares_k)


def _part_used(extent: Column, base: Column, edge: int) -> Column:
    """Return how many blocks of `base` rows along `extent` do not fill their last square."""
    whole, rest = np.floor(extent / base), extent % base
    each = edge // FRACTAL_ROWS
    of_base = np.where(ceil_div(base, FRACTAL_ROWS) % each != 0, whole, 0)
    return of_base + (ceil_div(rest, FRACTAL_ROWS) % each != 0)
