"""The part of a core's tree that computes one block of C."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

from cubecore.chips import costs
from cubecore.chips.products import HALF_SUM_ARCHS
from cubecore.isa.cube.mad import Mad
from cubecore.isa.cube.mad_mx import MadMx
from cubecore.isa.program.expr import Expr, Var
from cubecore.isa.scalar.control_registers import ScalarWork
from cubecore.isa.scalar.sync import PipeBarrier, SetFlag
from cubecore.kernels.build.builder import Builder, CutBlock
from cubecore.kernels.build.flags import Event, Flags, Ring
from cubecore.kernels.matmul.bias_and_scale_rows import (
    BiasRow,
    ScaleRow,
    ScaleRow3510,
    TableRow,
)
from cubecore.kernels.matmul.chunk_stream import (
    Along,
    ChunkStream,
    OperandAddresses,
    Slot,
    Stream,
    StreamGeometry,
)
from cubecore.kernels.matmul.norm_stream import norm_stream
from cubecore.kernels.matmul.plan import MatmulPlan
from cubecore.kernels.matmul.result import VectorStores
from cubecore.tiling.cost.tile_counts import OperandWalk
from cubecore.tiling.model.core_grid import CoreBlock, batch_groups
from cubecore.units import (
    DATA_BLOCK_BYTES,
    SCALE_WORD_BYTES,
    align_up,
    ceil_div,
)

_L0B_EVENT, _DRAIN_EVENT = 2, 5
"""First event id of L0B's buffers, L0A's start at 0; and of all of L0."""


@dataclass(frozen=True, slots=True)
class BlockShape:
    """The parameters of a block's tree: sizes, matrices of the batch, data already in L1.

    `kept` is ``a`` or ``b`` where the client before on this core left that operand, else empty.
    """

    m: int
    n: int
    k: int
    batches: int = 1
    kept: str = ""
    has_bias: bool = True

    def lies_as(self, other: "BlockShape") -> bool:
        """True if its buffers lie in L1 where those of `other` do."""
        return (self.m, self.n, self.k) == (other.m, other.n, other.k)


class BlockTree:
    """Builds the tree of a block, and knows its slots.

    `up` are the flags that are up between the blocks of a core: everything is free there.
    """

    def __init__(
        self, plan: MatmulPlan, builder: Builder, share: BlockShape, before: "BlockTree | None"
    ) -> None:
        self.plan, self.share, self.builder = plan, share, builder
        self.flags = Flags(builder)
        self.up: list[Event] = [] if before is None else list(before.up)
        self.k_blocks = ceil_div(share.k, plan.tiling.baseK)
        self.walk_a, self.walk_b = self._walks()
        kind = plan.problem.bias_type if share.has_bias else None
        optional = {"bias": kind is not None, "scale": plan.problem.scales_columns}
        optional |= dict.fromkeys(("scale_a", "scale_b"), plan.problem.mx)
        # Slots in this order: operands, what is optional, the result; a core's listing names
        # tensors by it.
        names = ("a", "b", *(name for name, given in optional.items() if given), "c")
        self._slots = {name: builder.slot(name) for name in names}
        # L1 holds A, then B, then scales and bias; what a client before left stays where it was.
        a_bytes = plan.a.buffers * plan.a.buffer_bytes(share.m)
        kept = before is not None and bool(share.kept)
        self.l1_b: int = before.l1_b if before is not None and kept else a_bytes
        self.l1_rows = self.l1_b + plan.b.buffers * plan.b.buffer_bytes(share.n)
        self._build()

    def slots(self, block: CoreBlock) -> dict[Var, tuple[str, int]]:
        """Return what the slots hold for `block`: tensor and offset in bytes."""
        p, plan = self.plan.problem, self.plan
        batch = block.batch0
        offsets = {
            "a": plan.a.start(block.m0, block.k0),
            "b": plan.b.start(block.n0, block.k0),
            "c": plan.c.start(block.m0, block.n0),
        }
        if batch:
            for name, matrix in (("a", plan.a), ("b", plan.b), ("c", plan.c)):
                offsets[name] += batch * matrix.stored_bytes
        if p.bias_type is not None:
            offsets["bias"] = p.bias_type.bytes_of(block.n0)
        offsets["scale"] = block.n0 * SCALE_WORD_BYTES
        for name, operand, first in (("a", plan.a, block.m0), ("b", plan.b, block.n0)):
            if operand.scales is not None:
                scale_start = operand.scales.start(first, block.k0)
                offsets[f"scale_{name}"] = batch * operand.scales.stored_bytes + scale_start
        return {slot: (name, offsets[name]) for name, slot in self._slots.items()}

    # --- the walk over tiles

    def _build(self) -> None:
        b, t = self.builder, self.plan.tiling
        self.l0a, self.l0b = Ring(b, "l0a", t.dbL0A), Ring(b, "l0b", t.dbL0B)
        self.l0c, self.step = Ring(b, "l0c", t.dbL0C), Ring(b, "step", max(t.dbL0A, t.dbL0B))
        stores = VectorStores(b, self.plan.c) if self.plan.by_vector_cores else None
        self.vector_stores: VectorStores | None = stores
        with b.loop("batch", self.share.batches) as matrix, b.part(matrix, self.share.batches):
            self._matrix(matrix)

    def _matrix(self, matrix: Expr) -> None:
        """Compute the block for one matrix of the batch; it ends with everything free."""
        b = self.builder
        self.stream_a = self._stream("a", matrix)
        self.stream_b = self._stream("b", matrix)
        self.scales, self.bias = self._rows()
        self.at_c = self._source("c", matrix, self.plan.c.stored_bytes)
        # Free flags are raised once: a matrix of the batch ends with everything free, as it began.
        with b.when(matrix, "==", 0):
            self._raise_flags()
        for row in self._table_rows:
            row.start()
        self.stream_a.start()
        self.stream_b.start()
        for m_chunk, n_chunk in self._chunks():
            self._tiles(m_chunk, n_chunk)
        self.stream_a.finish()
        self.stream_b.finish()
        for row in self._table_rows:
            row.finish()

    def _source(self, name: str, matrix: Expr, size_bytes: int) -> Expr:
        p, plan = self.plan.problem, self.plan
        groups = batch_groups(p, plan.chip, plan.tiling.usedCoreNum)
        return Expr.of(self._slots[name]) + matrix * (groups * size_bytes)

    def _walks(self) -> tuple[OperandWalk, OperandWalk]:
        """Return the walks over A and over B; NORM has chunks only where K stays in L1."""
        t, share, k_steps = self.plan.tiling, self.share, self.k_blocks
        m_outer = t.iterateOrder == 1
        a = OperandWalk(share.m, t.baseM, t.stepM, k_steps, t.stepKa, m_outer)
        b = OperandWalk(share.n, t.baseN, t.stepN, k_steps, t.stepKb, not m_outer)
        if self.plan.problem.template == "MDL":
            return a, b
        a, b = (x if x.k_chunks == 1 else replace(x, step=1) for x in (a, b))
        return a, b

    def _stream(self, name: str, matrix: Expr) -> Stream:
        if name == "a":
            plan, l1, own, other = self.plan.a, 0, self.walk_a, self.walk_b
        else:
            plan, l1, own, other = self.plan.b, self.l1_b, self.walk_b, self.walk_a
        walk = StreamGeometry(own, other, self.share.k, self.plan.preload)
        scales = None
        if plan.scales is not None:
            scales = self._source(f"scale_{name}", matrix, plan.scales.stored_bytes)
        addresses = OperandAddresses(self._source(name, matrix, plan.stored_bytes), l1, scales)
        if self.plan.problem.template == "MDL":
            return ChunkStream(self.builder, plan, addresses, walk)
        return norm_stream(self.builder, plan, addresses, walk, kept=self.share.kept == name)

    def _rows(self) -> tuple[ScaleRow | None, BiasRow | None]:
        """Return the rows of scales and of bias, one behind the other in what is left of L1."""
        l1 = self.l1_rows
        base_n, n = self.plan.tiling.baseN, self.share.n
        # A part of the bias always has its buffer; the rules count it.
        kind = self.plan.problem.bias_type if "bias" in self._slots else None
        kept = 0 if kind is None else align_up(kind.bytes_of(base_n), DATA_BLOCK_BYTES)
        scales = bias = None
        if "scale" in self._slots:
            addresses = OperandAddresses(Expr.of(self._slots["scale"]), l1)
            room = self.plan.chip.l1_bytes - l1 - kept
            kind_of_row = ScaleRow3510 if self.plan.chip.arch == "3510" else ScaleRow
            scales = kind_of_row(self.builder, addresses, n, base_n, room)
            l1 += scales.held_bytes
        if kind is not None:
            addresses = OperandAddresses(Expr.of(self._slots["bias"]), l1)
            room = self.plan.chip.l1_bytes - l1
            halves = self.plan.chip.arch in HALF_SUM_ARCHS
            held = self.plan.accumulator
            bias = BiasRow(self.builder, addresses, n, base_n, room, kind, held, halves)
        return scales, bias

    def _chunks(self) -> Iterator[tuple[CutBlock, CutBlock]]:
        """Give the M chunk and the N chunk in the tiling's order."""
        t, b = self.plan.tiling, self.builder
        m_size, n_size = self.walk_a.step * t.baseM, self.walk_b.step * t.baseN
        if t.iterateOrder == 1:
            for m_chunk in b.split("m_chunk", self.share.m, m_size):
                self.stream_a.enter("outer")
                for n_chunk in b.split("n_chunk", self.share.n, n_size):
                    self.stream_b.enter("inner")
                    yield m_chunk, n_chunk
                    self.stream_b.leave("inner")
                self.stream_a.leave("outer")
        else:
            for n_chunk in b.split("n_chunk", self.share.n, n_size):
                self.stream_b.enter("outer")
                for m_chunk in b.split("m_chunk", self.share.m, m_size):
                    self.stream_a.enter("inner")
                    yield m_chunk, n_chunk
                    self.stream_a.leave("inner")
                self.stream_b.leave("outer")

    def _tiles(self, m_chunk: CutBlock, n_chunk: CutBlock) -> None:
        t, b = self.plan.tiling, self.builder
        m_at, n_at = m_chunk.number * self.walk_a.step, n_chunk.number * self.walk_b.step
        if t.iterateOrder == 1:
            for mi, m in b.split("m", m_chunk.length, t.baseM):
                for ni, n in b.split("n", n_chunk.length, t.baseN):
                    self._fetch_rows(n_at + ni, n)
                    along_n = Along(n_at, ni, n, n_chunk.length)
                    self._tile(Along(m_at, mi, m, m_chunk.length), along_n)
        else:
            for ni, n in b.split("n", n_chunk.length, t.baseN):
                self._fetch_rows(n_at + ni, n)
                for mi, m in b.split("m", m_chunk.length, t.baseM):
                    along_n = Along(n_at, ni, n, n_chunk.length)
                    self._tile(Along(m_at, mi, m, m_chunk.length), along_n)
                for row in self._table_rows:
                    row.used()

    @property
    def _table_rows(self) -> tuple[TableRow, ...]:
        return tuple(row for row in (self.scales, self.bias) if row is not None)

    def _fetch_rows(self, n_block: Expr, n: int) -> None:
        for row in self._table_rows:
            row.fetch(n_block, n)

    # --- one tile

    def _tile(self, m: Along, n: Along) -> None:
        b, flags, slot = self.builder, self.flags, self.l0c.at
        # The scalar unit's own work at the head of a tile, which only timing sees.
        b.issue(ScalarWork(step=self.plan.step, part="tile"))
        if not self.plan.problem.shares_unit_flag:
            flags.wait("FIX", "M", slot)
        for k_block, k in b.split("k", self.share.k, self.plan.tiling.baseK):
            self._step(k_block, k, m, n)
        if not self.plan.problem.shares_unit_flag:
            flags.set("M", "FIX", slot)
            flags.wait("M", "FIX", slot)
        to = self.at_c + self.plan.c.tile(m.tile, n.tile)
        source = self._l0_slot(self.l0c, self.plan.chip.l0c_bytes).at
        if self.vector_stores is not None:
            self.vector_stores.store(m.length, n.length, source, to)
        else:
            shared = self.plan.problem.shares_unit_flag
            b.issue(self.plan.c.store(m.length, n.length, unit_flag=shared), to, source)
        if not self.plan.problem.shares_unit_flag:
            flags.set("FIX", "M", slot)
        if self.scales is not None and self.plan.tiling.iterateOrder == 1:
            self.scales.used()  # no other tile reads these scales
        self.l0c.next()

    def _step(self, k_block: Expr, k: int, m: Along, n: Along) -> None:
        b, chip, flags = self.builder, self.plan.chip, self.flags
        # The scalar unit's own work of a step along K.
        b.issue(ScalarWork(step=self.plan.step))
        self.stream_a.enter_step(k_block, m, n)
        self.stream_b.enter_step(k_block, n, m)
        if self.plan.drains_l0:
            with b.when(k_block % min(self.walk_a.step_k, self.walk_b.step_k), "==", 0):
                flags.set("M", "MTE1", _DRAIN_EVENT)
                flags.wait("M", "MTE1", _DRAIN_EVENT)
        # Each side of L0 waits by itself, so that A's move may begin while B's buffer is still
        # read.
        flags.wait("M", "MTE1", self.l0a.at)
        self.stream_a.move(k_block, k, m, self._l0_slot(self.l0a, chip.l0a_bytes))
        flags.wait("M", "MTE1", self.l0b.at + _L0B_EVENT)
        self.stream_b.move(k_block, k, n, self._l0_slot(self.l0b, chip.l0b_bytes))
        # One flag says that both operands have arrived; then L1's buffers are free before the
        # product is.
        flags.set("MTE1", "M", self.step.at)
        self.stream_a.leave_step(k_block)
        self.stream_b.leave_step(k_block)
        flags.wait("MTE1", "M", self.step.at)
        self._multiply(k_block, m.length, n.length, k)
        flags.set("M", "MTE1", self.l0a.at)
        flags.set("M", "MTE1", self.l0b.at + _L0B_EVENT)
        for ring in (self.step, self.l0a, self.l0b):
            ring.next()

    def _multiply(self, k_block: Expr, m: int, n: int, k: int) -> None:
        b, chip = self.builder, self.plan.chip
        c = self._l0_slot(self.l0c, chip.l0c_bytes).at
        a = self._l0_slot(self.l0a, chip.l0a_bytes).at
        bb = self._l0_slot(self.l0b, chip.l0b_bytes).at
        # Templates differ in the first step (from 0 or the bias) and, with the unit flag, in the
        # last: a branch of the program each.
        for first in b.choose(k_block, "==", 0):
            for final in self._lasts(k_block):
                biased = self.bias is not None
                template = product(self.plan, m, k, n, biased=biased, first=first, final=final)
                if template.starts_from_bias:
                    b.issue(template, c, a, bb, 0)
                else:
                    b.issue(template, c, a, bb)
            # N first: the next tile has other columns, and so another part of the bias.
            if first and self.bias is not None and self.plan.tiling.iterateOrder == 1:
                self.bias.used()  # no other tile reads this bias
        # A small tile's next product would read L0C before this one has written it.
        if self.k_blocks > 1 and costs.are_dependent(m, n):
            b.issue(PipeBarrier(on="M"))

    def _lasts(self, k_block: Expr) -> Iterator[bool]:
        """Give whether the step is the last of its tile, where the unit flag makes it matter."""
        if self.plan.problem.shares_unit_flag:
            return self.builder.choose(k_block, "==", self.k_blocks - 1)
        return iter((False,))

    @staticmethod
    def _l0_slot(ring: Ring, buffer_bytes: int) -> Slot:
        """Return the part of a buffer that the ring stands at: it is cut evenly."""
        return Slot(ring.at, buffer_bytes // ring.size)

    # --- flags

    def _raise_flags(self) -> None:
        """Raise the flags of everything that is free, but for what the client before left up."""
        events: list[Event] = []
        if not self.plan.problem.shares_unit_flag:
            events += [("FIX", "M", i) for i in range(self.l0c.size)]
        events += [("M", "MTE1", i) for i in range(self.l0a.size)]
        events += [("M", "MTE1", _L0B_EVENT + i) for i in range(self.l0b.size)]
        events += self.stream_a.events + self.stream_b.events
        for row in self._table_rows:
            events += row.events
        if self.vector_stores is not None:
            events += self.vector_stores.events
        for src, dst, event in events:
            if (src, dst, event) not in self.up:
                self.builder.issue(SetFlag(src=src, dst=dst, event_id=event))
                self.up.append((src, dst, event))


def product(
    plan: MatmulPlan, m: int, k: int, n: int, *, biased: bool, first: bool, final: bool
) -> Mad | MadMx:
    """Return the Mmad of a base-K step of m x k x n, the `first` or the `final` one of its tile."""
    p = plan.problem
    unit_flag = (3 if final else 2) if p.shares_unit_flag else 0
    # A transposing load cannot give GEMV its vector; ND2NZ's zero padding makes the second row.
    rows = 2 if m == 1 and not plan.a.has_vector(1) else m
    zero, from_bias = first and not biased, first and biased
    if p.mx:
        return MadMx(
            a_type=p.a_type,
            b_type=p.b_type,
            m=rows,
            k=plan.a.multiplied(k),
            n=n,
            c_matrix_init_val=zero,
            c_matrix_source=from_bias,
            unit_flag=unit_flag,
        )
    return Mad(
        a_type=p.a_type,
        b_type=p.b_type,
        c_type=plan.accumulator,
        m=rows,
        k=k,
        n=n,
        c_matrix_init_val=zero,
        bias_in_c2=from_bias,
        k_direction_align=plan.a.banded,
        a_layout="NZ" if plan.a.l0_by_column else "ZZ",
        unit_flag=unit_flag,
    )
