"""Cost of L1 residencies: the last level of the solver's search.

A residency of one operand is bounded with the least of the other; a pair of them is a complete
tiling, which is judged and costed. Functions of the rules and of the closed form work on joins
here: what depends on one operand's residency, or on the base block alone, is computed once for it.
"""

import numpy as np

from cubecore.aliases import Column, Columns
from cubecore.arrays import column
from cubecore.tiling.cost.closed_form import cost
from cubecore.tiling.cost.pipe_overlap import first_loads
from cubecore.tiling.cost.traffic import hidden_cycles
from cubecore.tiling.rules.model import RuleCase
from cubecore.tiling.solver.candidates import Floats, Ints, TilingColumns
from cubecore.tiling.solver.l1_residency import (
    RESIDENCY_FIELDS,
    RESIDENCY_RULES,
    Residencies,
    ResidencyPairs,
    keeps_rules,
    with_derived_fields,
)
from cubecore.tiling.solver.lower_bounds import BlockBounds, launch_bound

_LEAST = ("cycles", "memory", "first")
"""The least cost of a residency, whatever that of the other operand."""


def least_by(block: Ints, count: int, values: Floats) -> Floats:
    """Return the least value of each of `count` base blocks; infinite for one without any."""
    least = np.full(count, np.inf)
    np.minimum.at(least, block, values)
    return least


def least_of(operand: Residencies, count: int) -> dict[str, Floats]:
    """Return for each of `count` base blocks the least that any residency of an operand costs."""
    columns = {f"least_{name}": getattr(operand.columns, name) for name in _LEAST}
    return {name: least_by(operand.block, count, values) for name, values in columns.items()}


def residency_bounds(
    case: RuleCase,
    blocks: TilingColumns,
    bounds: BlockBounds,
    operand: Residencies,
    other: dict[str, Floats],
) -> Floats:
    """Return a lower bound for each residency of one operand, in cycles.

    `other` is the least of the other operand for each base block.
    """
    bounded = blocks.with_fields(chain=bounds.chain, other=bounds.other, **other)
    cycles = _residency_bound(case, bounded.take(operand.block), operand.columns)
    return column(cycles, len(operand.block))


def _residency_bound(case: RuleCase, t: Columns, columns: Columns) -> Column:
    # A core can be no faster than the chain from its first load to its last write with this
    # operand's waits, nor than all of its loads one behind the other. Of the other operand each sum
    # takes the least by itself, though no single residency may have them all: so it stays a bound.
    chip = case.chip
    fill = first_loads(chip, columns.first + t.least_first, columns.transfers + 1)
    loaded = columns.cycles + t.least_cycles + t.other + hidden_cycles(chip)
    busy = np.maximum(fill + t.chain + columns.waits, loaded)
    return launch_bound(case, t, busy, columns.memory + t.least_memory, 0)


def pair_bounds(
    case: RuleCase,
    blocks: TilingColumns,
    bounds: BlockBounds,
    pairs: ResidencyPairs,
) -> Floats:
    """Return a lower bound for each pair of A's and B's residencies, in cycles."""
    a, b = pairs.a, pairs.b
    bounded = blocks.with_fields(chain=bounds.chain, other=bounds.other)
    joined = a.columns.take(pairs.rows_a), b.columns.take(pairs.rows_b)
    return column(_pair_bound(case, bounded.take(pairs.block), *joined), len(pairs))


def _pair_bound(case: RuleCase, t: Columns, a: Columns, b: Columns) -> Column:
    chip = case.chip
    fill = first_loads(chip, a.first + b.first, a.transfers + b.transfers)
    loaded = a.cycles + b.cycles + (t.other + hidden_cycles(chip))
    # Chunks that each operand loads in all. Where one operand is cut along its axis while the other
    # one is as well, the inner one is loaded again for each chunk of the outer one.
    a_count = a.count * np.maximum(a.passes, np.where(a.along > 1, b.along, 1))
    b_count = b.count * np.maximum(b.passes, np.where(b.along > 1, a.along, 1))
    # Behind the last load at least one chunk's share of the computation remains. Where both wait,
    # their waits overlap for as many chunks as the one with fewer has.
    rest = t.chain / np.maximum(a_count, b_count)
    together = np.where((a.waits > 0) & (b.waits > 0), np.minimum(a_count, b_count) - 1, 0)
    waits = a.waits + b.waits - together * hidden_cycles(chip)  # for one latency, not for two
    busy = np.maximum(fill + t.chain + waits, loaded + rest)
    return launch_bound(case, t, busy, a.memory + b.memory, rest)


def residency_cycles(
    case: RuleCase,
    blocks: TilingColumns,
    pairs: ResidencyPairs,
    *,
    both_orders: bool,
) -> list[Floats]:
    """Return the cycles, rounded up, of each pair of residencies; infinite if illegal.

    First where M goes first, and then, if it `both_orders`, where N does.
    """
    a, b = pairs.a, pairs.b
    joined = (
        blocks.take(pairs.block),
        a.columns.take(pairs.rows_a),
        b.columns.take(pairs.rows_b),
    )
    orders = (0, 1) if both_orders else (0,)
    return [column(_ordered(order, case, *joined), len(pairs)) for order in orders]


def _ordered(order: int, case: RuleCase, blocks: Columns, a: Columns, b: Columns) -> Column:
    fields = {name: getattr(a, name) for name in RESIDENCY_FIELDS["a"]}
    fields |= {name: getattr(b, name) for name in RESIDENCY_FIELDS["b"]}
    tiling = blocks.with_fields(iterateOrder=order, **fields)
    judged = with_derived_fields(RuleCase(tiling, case.problem, case.chip))
    total = np.ceil(cost(judged.tiling, case.problem, case.chip).total)
    return np.where(keeps_rules(judged, RESIDENCY_RULES), total, np.inf)
