"""What stays in L1 and what it costs: the last level of the solver's search.

A way of one operand is bounded with the least of the other; a pair of ways is a complete tiling,
which is judged and costed. Functions of the rules and of the closed form work on joins here: what
depends on one operand's way, or on the base block alone, is computed once for it.
"""

from typing import Any

import numpy as np

from cubecore.tiling.cost.closed_form import cost
from cubecore.tiling.cost.pipe_overlap import first_loads
from cubecore.tiling.cost.tracing import NO_LINES, Lines, Straight, column
from cubecore.tiling.cost.traffic import hidden_cycles
from cubecore.tiling.rules.model import Case
from cubecore.tiling.solver.candidates import Columns, Floats, Ints
from cubecore.tiling.solver.l1_residency import STAY_FIELDS, STAY_RULES, Ways, derived, kept
from cubecore.tiling.solver.lower_bounds import BlockBounds, launch_bound

_LEAST = ("cycles", "memory", "first")
"""What a way costs at least, whatever the other operand's."""


def least_by(block: Ints, count: int, values: Floats) -> Floats:
    """Return the least value of each of `count` base blocks; infinite for one without any."""
    least = np.full(count, np.inf)
    np.minimum.at(least, block, values)
    return least


def least_of(ways: Ways, count: int) -> dict[str, Floats]:
    """Return for each of `count` base blocks the least that any way of an operand costs."""
    columns = {f"least_{name}": getattr(ways.own, name) for name in _LEAST}
    return {name: least_by(ways.block, count, values) for name, values in columns.items()}


def way_bounds(
    case: Case,
    blocks: Columns,
    bounds: BlockBounds,
    own: Ways,
    other: dict[str, Floats],
    lines: Lines = NO_LINES,
) -> Floats:
    """Return a lower bound for each way of one operand, in cycles.

    `other` is the least of the other operand for each base block.
    """
    known = blocks.with_fields(chain=bounds.chain, other=bounds.other, **other)
    (found,) = _WAY(lines, case, known, own.own, ups=(None, own.block))
    return column(found, len(own.block))


def _way_bound(case: Case, t: Any, own: Any) -> tuple[Any]:
    chip = case.chip
    fill = first_loads(chip, own.first + t.least_first, own.transfers + 1)
    loaded = own.cycles + t.least_cycles + t.other + hidden_cycles(chip)
    busy = np.maximum(fill + t.chain + own.waits, loaded)
    return (launch_bound(case, t, busy, own.memory + t.least_memory, 0),)


_WAY = Straight(_way_bound, parents=(None, 0))


def pair_bounds(
    case: Case,
    blocks: Columns,
    bounds: BlockBounds,
    operands: tuple[Ways, Ways],
    rows: tuple[Ints, Ints],
    lines: Lines = NO_LINES,
) -> Floats:
    """Return a lower bound for each pair of rows of A's and B's ways, in cycles."""
    a, b = operands
    known = blocks.with_fields(chain=bounds.chain, other=bounds.other)
    places, ups = (a.block[rows[0]], *rows), (None, a.block, b.block)
    (found,) = _BESIDE(lines, case, known, a.own, b.own, ups=ups, rows=places)
    return column(found, len(rows[0]))


def _pair_bound(case: Case, t: Any, a: Any, b: Any) -> tuple[Any]:
    chip = case.chip
    fill = first_loads(chip, a.first + b.first, a.transfers + b.transfers)
    loaded = a.cycles + b.cycles + (t.other + hidden_cycles(chip))
    a_count = a.count * np.maximum(a.passes, np.where(a.along > 1, b.along, 1))
    b_count = b.count * np.maximum(b.passes, np.where(b.along > 1, a.along, 1))
    rest = t.chain / np.maximum(a_count, b_count)
    together = np.where((a.waits > 0) & (b.waits > 0), np.minimum(a_count, b_count) - 1, 0)
    waits = a.waits + b.waits - together * hidden_cycles(chip)  # for one latency, not for two
    busy = np.maximum(fill + t.chain + waits, loaded + rest)
    return (launch_bound(case, t, busy, a.memory + b.memory, rest),)


_BESIDE = Straight(_pair_bound, parents=(None, 0, 0))


def stay_cycles(
    case: Case,
    blocks: Columns,
    a: Ways,
    b: Ways,
    rows: tuple[Ints, Ints],
    *,
    turns: bool,
    lines: Lines = NO_LINES,
) -> list[Floats]:
    """Return the cycles, rounded up, of each pair of rows of `a` and `b`; infinite if illegal.

    First where M goes first, and then, if it `turns`, where N does.
    """
    places = (a.block[rows[0]], *rows)
    ups = (None, a.block, b.block)
    found = _STAY[turns](lines, case, blocks, a.own, b.own, ups=ups, rows=places)
    return [column(x, len(rows[0])) for x in found]


def _m_first(case: Case, blocks: Any, a: Any, b: Any) -> tuple[Any, ...]:
    return (_ordered(0, case, blocks, a, b),)


def _both(case: Case, blocks: Any, a: Any, b: Any) -> tuple[Any, ...]:
    return tuple(_ordered(order, case, blocks, a, b) for order in (0, 1))


def _ordered(order: int, case: Case, blocks: Any, a: Any, b: Any) -> Any:
    fields = {name: getattr(a, name) for name in STAY_FIELDS["a"]}
    fields |= {name: getattr(b, name) for name in STAY_FIELDS["b"]}
    tiling = blocks.with_fields(iterateOrder=order, **fields)
    judged = derived(Case(tiling, case.problem, case.chip))
    total = np.ceil(cost(judged.tiling, case.problem, case.chip).total)
    return np.where(kept(judged, STAY_RULES), total, np.inf)


_STAY = [Straight(function, parents=(None, 0, 0)) for function in (_m_first, _both)]
