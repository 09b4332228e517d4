"""The map of cores to blocks of C, as cells of a grid; big grids are aggregated."""

from collections.abc import Sequence
from html import escape

from cubecore.aliases import Json
from cubecore.presented.card import svg
from cubecore.reports.html.lanes import ranges
from cubecore.tiling.model.core_grid import CoreBlock
from cubecore.units import ceil_div

MAX_CELLS = 32
"""Rows and columns of the drawn grid."""
_CELL_SPAN = 200
_CAPTION_WIDTH, _CAPTION_HEIGHT = 280, 22


def core_map(blocks: Sequence[CoreBlock], groups: Sequence[Sequence[int]]) -> Json:
    """Return the cells with their sizes in elements, their cores and their group of cores.

    Neighbouring blocks share a cell where the grid has more than `MAX_CELLS` rows or columns.
    """
    group_of = {core: index for index, cores in enumerate(groups) for core in cores}
    rows, columns = sorted({b.m0 for b in blocks}), sorted({b.n0 for b in blocks})
    down = max(ceil_div(len(rows), MAX_CELLS), 1)
    across = max(ceil_div(len(columns), MAX_CELLS), 1)
    row_of = {m0: index // down for index, m0 in enumerate(rows)}
    column_of = {n0: index // across for index, n0 in enumerate(columns)}
    cells: dict[tuple[int, int], list[CoreBlock]] = {}
    for block in blocks:
        cells.setdefault((row_of[block.m0], column_of[block.n0]), []).append(block)
    return {
        "rows": len(rows),
        "columns": len(columns),
        "aggregated": down * across > 1,
        "cells": [_cell(cell, group_of) for cell in cells.values()],
    }


def _cell(blocks: Sequence[CoreBlock], group_of: dict[int, int]) -> Json:
    numbers = {group_of.get(block.core) for block in blocks}
    return {
        "cores": ranges(sorted({block.core for block in blocks})),
        "blocks": len(blocks),
        "group": numbers.pop() if len(numbers) == 1 else None,
        "m0": min(b.m0 for b in blocks),
        "n0": min(b.n0 for b in blocks),
        "m1": max(b.m0 + b.m_len for b in blocks),
        "n1": max(b.n0 + b.n_len for b in blocks),
    }


def grid(blocks: Sequence[CoreBlock]) -> str:
    """Return an SVG of C with each core's block, drawn to scale within a square."""
    cells = core_map(blocks, ())["cells"]
    m, n = max(cell["m1"] for cell in cells), max(cell["n1"] for cell in cells)
    scale = _CELL_SPAN / max(m, n)
    least = 4.0  # a thin matrix is still seen
    down, across = max(m * scale, least), max(n * scale, least)
    drawn = []
    for cell in cells:
        x, y = cell["n0"] / n * across, cell["m0"] / m * down
        wide, high = (cell["n1"] - cell["n0"]) / n * across, (cell["m1"] - cell["m0"]) / m * down
        drawn.append(
            f'<rect x="{x + 1:.1f}" y="{y + 1:.1f}" width="{wide:.1f}" height="{high:.1f}" '
            f'fill-opacity="0.12" stroke="currentColor" stroke-width="1"><title>cores '
            f"{escape(str(cell['cores']))}: {cell['m1'] - cell['m0']} x "
            f"{cell['n1'] - cell['n0']}</title></rect>"
        )
    # The picture says what it is of: C with its extents, a cell for each core or for several.
    of = "each cell the block of a core" if len(cells) == len(blocks) else "cells of several cores"
    drawn.append(f'<text x="1" y="{down + 16:.0f}">C, {m:,} x {n:,}: {of}</text>')
    return svg(max(across + 2, _CAPTION_WIDTH), down + _CAPTION_HEIGHT, drawn)
