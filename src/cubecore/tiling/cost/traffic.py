"""Traffic into L1: a core's transfers, and the share of them that device memory serves.

One tiling or a struct of arrays, as in `tiling.cost.tile_counts`. Transfers of one operand cost as
equal parts.
"""

from dataclasses import dataclass

import numpy as np

from cubecore.aliases import Column
from cubecore.chips import Chip, costs
from cubecore.dtypes import ElementType
from cubecore.tiling.cost.tile_counts import OperandWalk, TileCounts
from cubecore.tiling.model.problem import Problem
from cubecore.tiling.rules.extents import ND_INNER_LIMIT, clamp
from cubecore.tiling.rules.model import RuleCase
from cubecore.units import DATA_BLOCK_BYTES, FRACTAL_ROWS, ceil_div


@dataclass(frozen=True)
class Stored:
    """The layout of A or B in global memory: ND rows of `pitch` elements, or NZ blocks of `pitch`.

    `k_inner` says that the stored rows run along K; `pitch` is the length of an ND row, or the
    rows of an NZ matrix.
    """

    kind: ElementType
    k_inner: bool
    nz: bool
    pitch: int

    @staticmethod
    def of(problem: Problem, operand: str) -> "Stored":
        """Return how operand "a" or "b" is stored.

        A vector that is A is a row either way: a stored [k, 1] is the same bytes as [1, k].
        """
        p, is_a = problem, operand == "a"
        nz = getattr(p, f"format_{operand}") == "NZ"
        whole = p.m if is_a else p.n
        k_inner = not p.trans_a if is_a else p.trans_b
        k_inner = k_inner or (is_a and whole == 1 and not nz)
        kind = p.a_type if is_a else p.b_type
        return Stored(kind, k_inner, nz, p.k if k_inner != nz else whole)

    @property
    def banded(self) -> bool:
        """True if L1 takes bands of 16 rows, each a transfer: 32-bit squares to be transposed."""
        return not self.k_inner and self.kind.c0 < FRACTAL_ROWS

    def whole_bytes(self, elements: Column) -> Column:
        """Return the whole bytes of so many elements."""
        return elements * self.kind.bits // 8

    def apart(self, base: Column, base_k: Column, blocks: Column) -> Column:
        """Return in how many parts a chunk of `blocks` base blocks along the inner axis travels.

        One, unless they are no multiple of C0: then each starts inside a piece.
        """
        columns = base_k if self.k_inner else base
        return np.where(columns % self.kind.c0 == 0, 1.0, blocks)

    def transfer(self, chip: Chip, extent: Column, k: Column, parts: Column = 1.0) -> "Transfer":
        """Return the transfer of `extent` x `k` elements, along M or N and along K, in parts.

        The parts are cut along the stored inner walk.
        """
        # ND: `rows` stored rows of `inner` elements. NZ: a "row" of the copy is a column of
        # fractals, C0 elements wide, so that the two change places.
        rows, inner = (extent, k) if self.k_inner else (k, extent)
        count, inner = parts, inner / parts
        if self.banded:
            bands = ceil_div(rows, FRACTAL_ROWS)
            count, rows = count * bands, rows / bands
        row_bytes = inner * (self.kind.bits / 8)
        pitch_bytes = self.pitch * self.kind.bits / 8
        if self.nz:
            rows, row_bytes = inner / self.kind.c0, rows * DATA_BLOCK_BYTES
            pitch_bytes = self.pitch * DATA_BLOCK_BYTES
        if self.pitch > ND_INNER_LIMIT:  # further apart than a transfer can stride
            count, rows = count * rows, 1.0
            if not self.nz:
                busy = count * costs.gm_to_l1_lone_row_cycles(chip, row_bytes)
                return Transfer(count, busy, row_bytes)
        busy = count * costs.gm_to_l1_cycles(chip, rows, row_bytes, pitch_bytes)
        conflict = count * costs.pitch_conflict_cycles(chip, rows, pitch_bytes)
        stretch = costs.stretch_bytes(rows, row_bytes, pitch_bytes)
        return Transfer(count, busy, stretch, conflict)


@dataclass(frozen=True)
class Transfer:
    """The load of a chunk into L1: transfers, their cycles without latency, bytes of a stretch.

    `conflict_cycles` is how much longer they take of L2 where rows meet in one bank of it.
    """

    count: Column
    busy_cycles: Column
    row_bytes: Column
    conflict_cycles: Column = 0.0


def longest_row_bytes(problem: Problem, operand: str) -> Column:
    """Return the most bytes of an operand that lie in one run in global memory: all of them."""
    stored, whole = Stored.of(problem, operand), problem.m if operand == "a" else problem.n
    return clamp(stored.kind.bytes_of(whole * problem.k))  # one 4-bit element


@dataclass(frozen=True)
class Chunks:
    """The chunks of an operand in L1: their number in one pass, the mean one and the first.

    `size_bytes` is what one pass brings, `first_bytes` what the first chunk does.
    """

    count: Column
    mean: Transfer
    first: Transfer
    size_bytes: Column
    first_bytes: Column

    def first_cycles(self, chip: Chip) -> Column:
        """Return MTE2's cycles of the first chunk, none of which L2 holds, without latency."""
        return self.first.busy_cycles + costs.gm_miss_cycles(chip, self.first_bytes)


def chunks(case: RuleCase, w: TileCounts, operand: str) -> Chunks:
    """Return the chunks of operand "a" or "b" on the fullest core; NORM and IBSHARE move blocks."""
    t, walk = case.tiling, _walk(case, w, operand)
    stored, base_k = Stored.of(case.problem, operand), t.baseK
    step = np.where(walk.k_chunks == 1, walk.step, 1)
    extent, k = np.minimum(step * walk.base, walk.extent), np.minimum(walk.step_k * base_k, w.k)
    if stored.k_inner:
        blocks, most = w.k_steps / walk.k_chunks, np.minimum(walk.step_k, w.k_steps)
    else:
        blocks, most = walk.tiles / walk.chunks, np.minimum(step, walk.tiles)
    parts = stored.apart(walk.base, base_k, blocks)
    mean = stored.transfer(case.chip, walk.extent / walk.chunks, w.k / walk.k_chunks, parts)
    first = stored.transfer(case.chip, extent, k, stored.apart(walk.base, base_k, most))
    size = walk.extent * w.k * (stored.kind.bits / 8)
    first_size = extent * k * (stored.kind.bits / 8)
    return Chunks(walk.chunks * walk.k_chunks, mean, first, size, first_size)


def _walk(case: RuleCase, w: TileCounts, operand: str) -> OperandWalk:
    walk = w.a if operand == "a" else w.b
    return walk if case.problem.template == "MDL" else walk.by_block()


@dataclass(frozen=True)
class OperandLoads:
    """The loads of one operand into L1.

    `count` chunks take `cycles`, the latency that the next transfer cannot hide included; a chunk
    has arrived `arrival_cycles` after its load began. `first_cycles` are the first chunk's, without
    latency, and `first_transfers` its transfers. `hidden_cycles` are the part of a latency behind
    which the next transfer may start. `core_bytes` are one core's, `hbm_bytes` all cores' misses.
    """

    count: Column
    cycles: Column
    hidden_cycles: Column
    first_cycles: Column
    first_transfers: Column
    core_bytes: Column
    hbm_bytes: Column
    row_bytes: Column

    @property
    def mean_cycles(self) -> Column:
        """Cycles of one chunk with the part of its latency that the next cannot hide."""
        return self.cycles / self.count

    @property
    def arrival_cycles(self) -> Column:
        """Cycles from the start of a chunk's load to its data being there."""
        return self.mean_cycles + self.hidden_cycles


def loads(case: RuleCase, w: TileCounts) -> tuple[OperandLoads, OperandLoads]:
    """Return the loads of A and of B on the fullest core."""
    (a, b) = _passes(case, w)
    return _loads(case, w, "a", *a), _loads(case, w, "b", *b)


def first_and_later_loads(
    case: RuleCase, w: TileCounts
) -> tuple[tuple[Column, OperandLoads, OperandLoads], ...]:
    """Return of A and of B how many passes there are, and the loads of the first and of a later."""
    loads_of_operands = []
    for operand, (passes, distance) in zip("ab", _passes(case, w), strict=True):
        # The first pass misses all, a later one what L2 has lost since the pass before.
        shares = 1.0, miss_share(case.chip, distance)
        apart = _blocks_apart(case, w, operand)
        first, later = (
            _loads_missing(case, w, operand, 1, share, blocks)
            for share, blocks in zip(shares, (apart, 1), strict=True)
        )
        loads_of_operands.append((passes, first, later))
    return tuple(loads_of_operands)


def _blocks_apart(case: RuleCase, w: TileCounts, operand: str) -> Column:
    """Return how many blocks of an operand lie between the first ones of two cores."""
    clients = case.chip.mix_aiv_per_aic
    if operand == "a" or case.problem.launch == "cube" or not clients:
        return 1
    return np.where(np.equal(w.m_blocks, 1), clients, 1)


def loads_behind(
    case: RuleCase,
    w: TileCounts,
    first_of_a: OperandLoads,
    first_of_b: OperandLoads,
    matrices: Column,
) -> tuple[tuple[OperandLoads, Column], ...]:
    """Return the first loads of A and of B of a block that a core computes behind another one.

    Behind each stands whether all cores' blocks in one turn have but a part of the operand. L2
    holds what two blocks of a core share: an even number of blocks along M the columns, one block
    the rows, and where it is odd some cores' have neither. `first_of_a` and `first_of_b` are those
    of a core's first block; it computes blocks of so many `matrices` of a batch.
    """
    if case.problem.launch == "cube":
        return (first_of_a, True), (first_of_b, True)
    t, k = case.tiling, w.k * w.k_blocks
    distance = (t.M * (case.a.bits / 8) + t.N * (case.b.bits / 8)) * k
    in_l2 = miss_share(case.chip, distance)
    alone, odd = np.equal(w.m_blocks, 1), np.equal(w.m_blocks % 2, 1)
    others = np.greater(matrices, 1) | (odd & np.logical_not(alone))
    a_parts = np.where(alone, np.equal(w.n_blocks, 1), np.logical_not(odd))
    behind = []
    for operand, parts in (("a", a_parts), ("b", alone)):
        share = np.where(parts | others, 1.0, in_l2)
        behind.append((_loads_missing(case, w, operand, 1, share), parts))
    return tuple(behind)


def _passes(case: RuleCase, w: TileCounts) -> tuple[tuple[Column, Column], ...]:
    """Return the passes over A and over B, and the bytes that all cores touch between two."""
    t = case.tiling
    m_first, n_first = distances(case, w, t.stepM * t.baseM, t.stepN * t.baseN)
    turned = np.equal(t.iterateOrder, 1)
    a, b = (np.where(turned, late, early) for early, late in zip(m_first, n_first, strict=True))
    return (w.a.passes(w.b), a), (w.b.passes(w.a), b)


def _loads(
    case: RuleCase, w: TileCounts, operand: str, passes: Column, distance: Column
) -> OperandLoads:
    """Return the loads of an operand in all passes over it.

    `distance` are the bytes that all cores touch between two of them.
    """
    share = (1 + (passes - 1) * miss_share(case.chip, distance)) / passes
    return _loads_missing(case, w, operand, passes, share)


def _loads_missing(
    case: RuleCase,
    w: TileCounts,
    operand: str,
    passes: Column,
    share: Column,
    apart: Column = 1,
) -> OperandLoads:
    """Return the loads of an operand in some passes, of which L2 does not hold a share.

    So many blocks along its axis lie `apart` those of two cores.
    """
    chip, problem = case.chip, case.problem
    cut = chunks(case, w, operand)
    near, far = chip.l2_latency_cycles or 0, chip.hbm_latency_cycles or 0
    # A chunk's latency is the mean of L2's and device memory's by the share that misses; a part of
    # it is hidden behind the next transfer of the queue.
    latency = near + share * (far - near)
    hidden = (chip.gm_latency_overlap or 0) * latency
    count = passes * cut.count
    slower = costs.gm_miss_cycles(chip, passes * cut.size_bytes * share)
    slower = slower + count * (1 - share) * cut.mean.conflict_cycles
    slower = slower + count * _row_starts(case, w, operand, apart)
    kind, whole = (case.a, problem.m) if operand == "a" else (case.b, problem.n)
    return OperandLoads(
        count=count,
        cycles=count * (cut.mean.busy_cycles + cut.mean.count * (latency - hidden)) + slower,
        hidden_cycles=hidden,
        first_cycles=cut.first_cycles(chip),
        first_transfers=cut.first.count,
        core_bytes=passes * cut.size_bytes,
        hbm_bytes=w.k * w.k_blocks * whole * (kind.bits / 8) * passes * share,
        row_bytes=cut.mean.row_bytes,
    )


def _row_starts(case: RuleCase, w: TileCounts, operand: str, apart: Column) -> Column:
    """Return how much longer a chunk takes for where its rows start, if all of them start alike."""
    t, stored = case.tiling, Stored.of(case.problem, operand)
    walk = _walk(case, w, operand)
    if stored.k_inner:
        rows, length, chunks = walk.extent / walk.chunks, w.k, walk.k_chunks
        step, share, cores = walk.step_k * t.baseK, t.singleCoreK, w.k_blocks
    else:
        rows, length, chunks = w.k / walk.k_chunks, walk.extent, walk.chunks
        step = np.where(walk.k_chunks == 1, walk.step, 1) * walk.base
        share, cores = _own_share(w, operand)
        share = share * apart
    return row_starts(
        case.chip, stored, rows, length, step=step, chunks=chunks, share=share, cores=cores
    )


def row_starts(
    chip: Chip,
    stored: Stored,
    rows: Column,
    length: Column,
    *,
    step: Column,
    chunks: Column,
    share: Column,
    cores: Column,
) -> Column:
    """Return how much longer a chunk of `rows` stored rows takes for where these start.

    Along the rows, `length` are a core's elements, `step` those from one chunk's start to the next,
    `chunks` how many a core has, and `share` the elements from one of the `cores`' to the next's.
    """
    size = stored.kind.bits / 8
    apart = stored.pitch * size % costs.LINE_BYTES
    if stored.nz or (apart and stored.pitch <= ND_INNER_LIMIT):
        return 0.0
    if apart:  # each row is a transfer of its own, and begins anywhere
        return rows * costs.mean_row_start_cycles(chip, length / chunks * size, step_bytes=apart)
    step_bytes, share_bytes = stored.whole_bytes(step), stored.whole_bytes(share)
    whole = np.floor(length / step)
    longer: Column = 0.0
    # The last chunk's rows are shorter, and more of them end within their line.
    for count, row in ((whole, step_bytes), (1, stored.whole_bytes(length - whole * step))):
        longer = longer + count * costs.mean_row_start_cycles(
            chip,
            row,
            step_bytes=step_bytes,
            share_bytes=share_bytes,
            cores=cores,
            among=np.greater(chunks, 1),
        )
    return rows * longer / chunks


def _own_share(w: TileCounts, operand: str) -> tuple[Column, Column]:
    """Return a core's share of the operand's own axis, in elements, and the cores along it."""
    return (w.m, w.m_blocks) if operand == "a" else (w.n, w.n_blocks)


@dataclass(frozen=True)
class Pass:
    """The cycles of MTE2 and of device memory for one pass over an operand.

    `cycles` are MTE2's if L2 has everything, `late` what it takes more (or less) if device memory
    has, and `memory` device memory's. `starts` is about what it takes more for where rows start.
    """

    cycles: Column
    late: Column
    memory: Column
    starts: Column = 0.0

    @staticmethod
    def of(
        chip: Chip,
        count: Column,
        chunk: Transfer,
        memory: Column,
        size_bytes: Column,
        starts: Column = 0.0,
    ) -> "Pass":
        """Return the pass of `count` chunks, `size_bytes` in all; `starts` is a chunk's."""
        shown = 1 - (chip.gm_latency_overlap or 0)
        near, far = chip.l2_latency_cycles or 0, chip.hbm_latency_cycles or 0
        transfers = count * chunk.count * shown
        conflict = count * chunk.conflict_cycles
        busy = count * chunk.busy_cycles + conflict + transfers * near
        # A miss in place of a hit: the longer latency and the slower transfer, without L2's bank
        # conflicts.
        late = transfers * (far - near) + costs.gm_miss_cycles(chip, size_bytes) - conflict
        return Pass(busy, late, memory, count * starts)

    def least(self, passes: Column, missing: Column) -> tuple[Column, Column]:
        """Return the same where at least the share `missing` is missing.

        Effective latencies may say that device memory answers sooner than L2.
        """
        missed = 1 + (passes - 1) * missing
        late = np.where(np.less(self.late, 0), passes, missed) * self.late
        return passes * self.cycles + late, missed * self.memory


def hidden_cycles(chip: Chip) -> float:
    """Return the least part of a latency behind which the next transfer may start."""
    least = min(chip.l2_latency_cycles or 0, chip.hbm_latency_cycles or 0)
    return (chip.gm_latency_overlap or 0) * least


def distances(
    case: RuleCase, w: TileCounts, m_step: Column, n_step: Column
) -> tuple[tuple[Column, Column], ...]:
    """Return the bytes that all cores touch between two reads of a chunk of A, and of B.

    First where M goes first, then where N does. The steps are elements of a core's chunk.
    """
    t = case.tiling
    k = w.k * w.k_blocks
    a_size, b_size = case.a.bits / 8 * k, case.b.bits / 8 * k
    a_panels = w.m_blocks * np.minimum(m_step, w.m) * a_size
    b_panels = w.n_blocks * np.minimum(n_step, w.n) * b_size
    # The outer axis' operand is read again after a panel of each; the inner one's after all of its
    # walk.
    near = a_panels + b_panels
    return (t.M * a_size + b_panels, near), (near, a_panels + t.N * b_size)


def miss_share(chip: Chip, distance_bytes: Column) -> Column:
    """Return the share of a later pass that L2 has no more after so many bytes; 1 without L2."""
    return costs.l2_gone(chip, distance_bytes)
