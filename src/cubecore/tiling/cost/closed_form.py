"""The closed form that ranks tilings: bytes per link, cycles per pipe, and how they overlap.

It follows the kernel on the fullest core (D13). That core walks its block of C in tiles of
baseM x baseN, M first or N first; with stepM or stepN above 1 the walk goes chunk by chunk. MTE2
loads stepM*baseM x stepKa*baseK of A (and B's counterpart) as one strided transfer. A chunk that
holds all of K stays in L1 while its rows (columns) do not change; otherwise every tile loads it
again. NORM and IBSHARE load the same base block by base block. MTE1 feeds L0 block by block, the
Cube accumulates over K, fixpipe writes the finished tile.

How the pipes overlap is in `tiling.cost.pipe_overlap`. Device memory serves the misses of all cores
beside that.

Everything works on one tiling or on a struct of arrays; results are cycles, not rounded. A constant
that the chip file does not know costs nothing and is listed in `Prediction.not_modelled`.

Stated simplifications: transfers of one operand cost as equal parts; the first loads miss L2, a
re-read misses with probability 1 - exp(-bytes touched since / L2 size), all cores walking in step;
device memory serves the misses of all cores one after another; serial stages add, parallel ones
take the longest.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from cubecore.aliases import Column, Json
from cubecore.chips import Chip, costs
from cubecore.tiling.cost.l0_moves import moves
from cubecore.tiling.cost.pipe_overlap import Work, busy_cycles, scalar_cycles, serial_cycles
from cubecore.tiling.cost.tile_counts import TileCounts, tile_counts
from cubecore.tiling.cost.traffic import loads, longest_row_bytes
from cubecore.tiling.model.problem import Problem
from cubecore.tiling.model.tcubetiling import Tilings
from cubecore.tiling.rules.model import RuleCase
from cubecore.units import align_up, ceil_div, floats


@dataclass(frozen=True)
class Prediction:
    """The closed form's prediction for one tiling.

    `us` is None where the chip's clock is unknown. `limited_by` is the busiest of the pipes (M,
    MTE1, MTE2, FIX, S the scalar unit), HBM and start-up. `pipes` are busy cycles of the
    fullest core, `bytes` what its links carry, and HBM what device memory serves to all.
    """

    us: float | None
    cycles: int
    limited_by: str
    pipes: Mapping[str, int]
    bytes: Mapping[str, int]
    not_modelled: tuple[str, ...]

    def to_json(self) -> Json:
        """Return the public contract's keys and the details."""
        return {
            "us": self.us,
            "cycles": self.cycles,
            "limited_by": self.limited_by,
            "pipes": dict(self.pipes),
            "bytes": dict(self.bytes),
            "not_modelled": list(self.not_modelled),
        }

    def _repr_html_(self) -> str:
        """Return the time and the busy cycles of the pipes, for notebooks."""
        from cubecore.presented.card import bars, card_page
        from cubecore.presented.text import duration

        figures = [("time", duration(self.us)), ("cycles", f"{self.cycles:,}")]
        figures += [(f"{pipe}, cycles", f"{busy:,}") for pipe, busy in self.pipes.items()]
        shares = {pipe: busy / self.cycles for pipe, busy in self.pipes.items() if self.cycles}
        return card_page(f"limited by {self.limited_by}", figures, bars(shares))


def _padded(extent: Column, base: Column, count: Column, align: int) -> Column:
    """Return the sum of `count` blocks of `base`, the last one ragged, each padded to `align`."""
    return (count - 1) * align_up(base, align) + align_up(extent - (count - 1) * base, align)


@dataclass(frozen=True)
class TilingCost:
    """The closed form's numbers for one tiling or many, in cycles and bytes, not rounded."""

    total: Column
    start: Column
    hbm: Column
    pipes: Mapping[str, Column]
    bytes: Mapping[str, Column]


PIPES = ("M", "MTE1", "MTE2", "FIX", "S")
LINKS = ("GM->L1", "L1->L0A", "L1->L0B", "L0C->GM", "HBM")
"""The parts of a cost, in the order of its numbers."""


def cost(tiling: Tilings, problem: Problem, chip: Chip) -> TilingCost:
    """Return what `tiling` (one, or a struct of arrays) costs; it must satisfy the rules.

    The arrays of a struct may have any shapes that broadcast.

    Raises
    ------
    RequestError
        If the catalogue has no Cube rate for the input types on `chip`.
    """
    case = RuleCase(tiling, problem, chip)
    w = tile_counts(tiling)
    a, b = loads(case, w)
    pipes, carried = inner_pipes(case, w)
    pipes["MTE2"] = a.cycles + b.cycles + pipes["MTE2"]
    pipes["S"] = pipes["S"] + (a.count + b.count) * scalar_cycles(problem, chip).load
    carried["GM->L1"] = a.core_bytes + b.core_bytes
    busy, tail = busy_cycles(Work(case, w, pipes, a, b))
    # Blocks of C that a core computes in turn: each takes the same, and device memory serves all of
    # them together.
    clients = clients_per_core(tiling, problem, chip)
    hbm = costs.hbm_cycles(chip, a.hbm_bytes, a.row_bytes)
    hbm = problem.batch * (hbm + costs.hbm_cycles(chip, b.hbm_bytes, b.row_bytes))
    row_bytes = stored_bytes(problem, w)
    hbm = hbm + written_back(
        case, problem.batch * (a.hbm_bytes + b.hbm_bytes), row_bytes, w.k_blocks
    )
    # Device memory alone: its last data come after all it serves, and then the last chunk's tiles
    # are left to compute.
    served = (chip.hbm_latency_cycles or 0) + hbm + tail
    start = start_cycles(chip)
    return TilingCost(
        total=start + np.maximum(clients * busy, served),
        start=start,
        hbm=hbm,
        pipes={name: clients * cycles for name, cycles in pipes.items()},
        bytes={
            **{n: clients * x for n, x in carried.items()},
            "HBM": problem.batch * (a.hbm_bytes + b.hbm_bytes),
        },
    )


def start_cycles(chip: Chip, step: str | None = None) -> int:
    """Return the cycles before the first load: the launch, and the start of a kind of kernel."""
    return (chip.launch_cycles or 0) + costs.kernel_start_cycles(chip, step)


def clients_per_core(t: Tilings, problem: Problem, chip: Chip) -> Column:
    """Return how many blocks one AI Core computes in turn.

    1, or up to 2 clients in a mix launch (D12), for each matrix of its share of the batch.
    """
    clients: Column = 1
    if problem.launch != "cube":
        clients = np.minimum(t.usedCoreNum, max(chip.mix_aiv_per_aic, 1))
    return clients * matrices_per_core(t, problem, chip)


def matrices_per_core(t: Tilings, problem: Problem, chip: Chip) -> Column:
    """Return how many matrices of the batch one AI Core computes blocks of."""
    if problem.batch == 1:
        return 1
    # Groups of usedCoreNum cores take a matrix each.
    together = np.maximum(problem.core_count(chip) // np.maximum(t.usedCoreNum, 1), 1)
    return ceil_div(problem.batch, np.minimum(together, problem.batch))


def stored_bytes(problem: Problem, w: TileCounts) -> Column:
    """Return the bytes of a stretch of C in global memory that one tile fills."""
    row = problem.c_type.bytes_of(w.n / w.n_tiles)
    pitch = problem.c_type.bytes_of(problem.n) if problem.format_c == "ND" else 0
    return costs.stretch_bytes(w.m / w.m_tiles, row, pitch)


def written_back(
    case: RuleCase, read_bytes: Column, row_bytes: Column, k_blocks: Column = 1
) -> Column:
    """Return the cycles of device memory with what L2 does not keep of C.

    `read_bytes` come in beside it; C is written in stretches of `row_bytes` for each block of K.
    """
    chip, problem = case.chip, case.problem
    size = problem.c_type.bytes_of(problem.batch * problem.m * problem.n) * floats(k_blocks)
    # What is still dirty in L2 at the end is written back after the launch.
    gone = 1 - costs.l2_kept_dirty(chip, read_bytes + size)
    return costs.hbm_cycles(chip, size * gone, row_bytes) * (chip.hbm_write_weight or 1)


def inner_pipes(
    case: RuleCase, w: TileCounts, *, fewest: bool = False
) -> tuple[dict[str, Column], dict[str, Column]]:
    """Return busy cycles by pipe, and bytes by link, of one client on the fullest core.

    Without the loads of A and B: MTE2's are the bias's, the scalar unit's those of steps and tiles.
    With `fewest`, MTE1 makes the fewest moves of any residency in L1.
    """
    t, chip, problem = case.tiling, case.chip, case.problem
    # Moves and products take whole fractals; only loads and stores have the problem's own extents.
    # Each tile of N moves all of A's share into L0A again, each tile of M all of B's into L0B.
    k = _padded(w.k, t.baseK, w.k_steps, case.k_align)
    to_l0a = case.a.bytes_of(w.n_tiles * _padded(w.m, t.baseM, w.m_tiles, case.row_align) * k)
    to_l0b = case.b.bytes_of(w.m_tiles * _padded(w.n, t.baseN, w.n_tiles, case.column_align) * k)
    head, queued = chip.l1_to_l0_head_cycles or 0, chip.l1_to_l0_queued_cycles or 0
    heads: Column = head + queued
    for operand in "ab":
        more, alone = moves(case, w, operand, fewest=fewest)
        heads = heads + more * queued + alone * head
    mte1 = costs.l1_to_l0a_cycles(chip, to_l0a) + costs.l1_to_l0b_cycles(chip, to_l0b)
    mte1 = mte1 + w.steps * heads
    mte2: Column = 0
    if (bias := problem.bias_type) is not None:
        row_bytes = bias.bytes_of(w.n) / w.n_tiles
        held = problem.accumulator_type.bytes_of(w.n) / w.n_tiles
        # N first: a part of the bias for each tile; M first: one for a column of tiles of a chunk.
        rows = np.where(np.equal(t.iterateOrder, 1), w.m_tiles, w.a.chunks) * w.n_tiles
        mte2 = rows * costs.gm_to_l1_cycles(chip, 1, row_bytes, bias.bytes_of(t.N))
        mte1 = mte1 + rows * costs.l1_to_bt_cycles(chip, held)
    out = problem.c_type.bytes_of(w.m * w.n)
    pitch = problem.c_type.bytes_of(problem.n) if problem.format_c == "ND" else 0
    scalar = scalar_cycles(problem, chip)
    pipes = {
        "M": costs.mad_cycles(chip, case.a, w.m, w.n, k, hf32=problem.hf32)
        + w.steps * ((chip.mad_queued_cycles or 0) + serial_cycles(case, w)),
        "MTE1": mte1,
        "MTE2": mte2,
        "FIX": w.tiles * costs.l0c_to_gm_cycles(chip, w.m / w.m_tiles, out / w.tiles, pitch),
        "S": w.steps * scalar.step + w.tiles * scalar.tile,
    }
    carried = {
        "GM->L1": 0,
        "L1->L0A": to_l0a,
        "L1->L0B": to_l0b,
        "L0C->GM": out,
    }
    return pipes, carried


def predict(tiling: Tilings, problem: Problem, chip: Chip) -> Prediction:
    """Return the prediction for one tiling that satisfies the rules.

    Raises
    ------
    RequestError
        If the catalogue has no Cube rate for the input types on `chip`.
    """
    (prediction,) = predictions(cost(tiling, problem, chip), [0], 1, chip)
    return prediction


def predictions(c: TilingCost, chosen: list[int], count: int, chip: Chip) -> list[Prediction]:
    """Return the predictions of the tilings in the rows `chosen` of `count`."""

    def rows(values: Column) -> list[float]:
        """Return a value for each tiling."""
        numbers: list[float] = np.broadcast_to(values, count)[chosen].tolist()
        return numbers

    total, start, hbm = rows(c.total), rows(c.start), rows(c.hbm)
    pipes = {name: rows(values) for name, values in c.pipes.items()}
    carried = {name: rows(values) for name, values in c.bytes.items()}
    answers, unknown = [], chip.unknown_costs
    for row in range(len(chosen)):
        busy = {name: values[row] for name, values in pipes.items()}
        by_all = {**busy, "HBM": hbm[row], "start-up": start[row]}
        cycles = math.ceil(total[row])
        answers.append(
            Prediction(
                us=chip.microseconds(cycles),
                cycles=cycles,
                limited_by=max(by_all, key=lambda name: by_all[name]),
                pipes={name: math.ceil(value) for name, value in busy.items()},
                bytes={name: math.ceil(values[row]) for name, values in carried.items()},
                not_modelled=unknown,
            )
        )
    return answers


def lower_bound(problem: Problem, chip: Chip, step: str | None = None) -> int:
    """Return cycles that no tiling of this model can beat.

    Launch and start, of the kind of kernel that `step` names if it does, and the largest of: the
    Cube at its rate on all cores, every byte of A and B read once from device memory in whole
    stored rows, every byte of C written by all fixpipes.

    Raises
    ------
    RequestError
        If the catalogue has no Cube rate for the input types on `chip`.
    """
    cores = problem.core_count(chip)
    if problem.launch == "mix":
        cores = ceil_div(cores, max(chip.mix_aiv_per_aic, 1))
    m, n, k = problem.m, problem.n, problem.k
    a, b = problem.a_type, problem.b_type
    cube = costs.mad_cycles(chip, a, m, n, k, hf32=problem.hf32) / cores
    memory = costs.hbm_cycles(chip, a.bytes_of(m * k), longest_row_bytes(problem, "a"))
    memory += costs.hbm_cycles(chip, b.bytes_of(k * n), longest_row_bytes(problem, "b"))
    # Overlap is perfect here, so that no tiling can be faster.
    rate = chip.l0c_to_gm_bytes_per_cycle
    output = problem.c_type.bytes_of(m * n) / (rate * cores) if rate else 0.0
    bound: float = start_cycles(chip, step) + problem.batch * max(cube, memory, output)
    return math.ceil(bound)
