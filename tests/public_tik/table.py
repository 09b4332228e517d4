"""All cases: each operator that the page of public operators calls verified has one here."""

from . import boxes, cube, layouts, moves, plain, values

CASES = (*moves.CASES, *layouts.CASES, *values.CASES, *boxes.CASES, *cube.CASES, *plain.CASES)
