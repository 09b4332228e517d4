"""The matmul kernel that a TCubeTiling implies, template MDL (D13).

Each core walks its singleCoreM x singleCoreN block of C in tiles of baseM x baseN. MTE2 brings
chunks of stepM x stepKa (stepN x stepKb) base blocks to L1, one chunk ahead where the depth gives
two buffers; MTE1 brings base blocks to L0; the Cube accumulates over K in L0C; fixpipe writes C.
The order of everything is kept by flags alone.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from cubecore.chips.model import Chip
from cubecore.chips.products import FIXPIPE_CONVERSIONS, plain_outputs
from cubecore.dtypes import ElementType
from cubecore.errors import RequestError, Violation
from cubecore.isa.cube import Mad
from cubecore.isa.expr import Expr, Var
from cubecore.isa.fixpipe import CopyMatrixCcToGm
from cubecore.isa.launch import CoreProgram, Launch, TensorSpec
from cubecore.isa.sync import PipeBarrier, SetFlag, WaitFlag
from cubecore.isa.system import ScalarWork
from cubecore.kernels.bias import BIAS_EVENTS, BiasRow
from cubecore.kernels.builder import Builder
from cubecore.kernels.operand import OperandPlan
from cubecore.kernels.stream import Flags, Place, Ring, Stream
from cubecore.tiling.cores import CoreBlock, core_blocks
from cubecore.tiling.problem import Problem
from cubecore.tiling.struct import TCubeTiling
from cubecore.units import FRACTAL_ROWS, align_up, ceil_div

_DEPENDENT_MAD_FRACTALS = 10
"""Accumulating Mmads of fewer 16 x 16 fractals need a barrier between them (isa_semantics 3.4)."""


@dataclass(frozen=True, slots=True)
class MatmulPlan:
    """Everything that a core's tree depends on."""

    problem: Problem
    tiling: TCubeTiling
    chip: Chip
    step: str

    @property
    def a(self) -> OperandPlan:
        """Geometry of A."""
        t, p = self.tiling, self.problem
        # A stored [k, 1] is the same bytes as [1, k].
        k_inner = not p.trans_a or p.m == 1
        return OperandPlan(
            is_a=True,
            dtype=p.a_type,
            k_inner=k_inner,
            pitch=p.k if k_inner else p.m,
            base_r=t.baseM,
            base_k=t.baseK,
            step_r=t.stepM,
            step_k=t.stepKa,
            buffers=t.depthA1 // (t.stepM * t.stepKa),
        )

    @property
    def b(self) -> OperandPlan:
        """Geometry of B."""
        t, p = self.tiling, self.problem
        k_inner = p.trans_b
        return OperandPlan(
            is_a=False,
            dtype=p.b_type,
            k_inner=k_inner,
            pitch=p.k if k_inner else p.n,
            base_r=t.baseN,
            base_k=t.baseK,
            step_r=t.stepN,
            step_k=t.stepKb,
            buffers=t.depthB1 // (t.stepN * t.stepKb),
        )

    @property
    def accumulator(self) -> ElementType:
        """The type of L0C."""
        return self.problem.accumulator_type


def matmul_launch(problem: Problem, tiling: TCubeTiling, chip: Chip, step: str = "MDL") -> Launch:
    """Return the launch of the kernel that `tiling` implies for `problem` on `chip`.

    The tiling must be legal in the effective reading. `step` names the scalar cost of a base-K step
    (`scalar_step_cycles`): what kind of kernel the code is taken to be.

    Raises:
        RequestError: an option of the problem that this kernel does not carry, or a tiling of other
            extents.
    """
    require_supported(problem)
    tiling.require_match(problem)
    plan = MatmulPlan(problem, tiling, chip, step)
    trees: dict[tuple[tuple[int, int], ...], CoreTree] = {}
    cores = []
    for core, blocks in enumerate(_blocks_of_cores(plan)):
        shapes = tuple((block.m_len, block.n_len) for block in blocks)
        tree = trees.get(shapes)
        if tree is None:
            tree = trees[shapes] = CoreTree(plan, shapes)
        cores.append(tree.on_core(core, blocks))
    p = problem
    tensors = [
        TensorSpec("a", p.a_type.bytes_of(p.m * p.k)),
        TensorSpec("b", p.b_type.bytes_of(p.k * p.n)),
    ]
    if p.bias_type is not None:
        tensors.append(TensorSpec("bias", p.bias_type.bytes_of(p.n)))
    tensors.append(TensorSpec("c", p.c_type.bytes_of(p.m * p.n), output=True))
    return Launch(tuple(tensors), tuple(cores))


def _blocks_of_cores(plan: MatmulPlan) -> list[tuple[CoreBlock, ...]]:
    """Return the blocks of C that each AI Core computes, in turn.

    cube: one. mix: those of the AIV clients that share it (D12); how the clients pass their
    requests on is not modelled.
    """
    blocks = core_blocks(plan.tiling)
    each = 1 if plan.problem.launch == "cube" else max(plan.chip.mix_aiv_per_aic, 1)
    return [blocks[i : i + each] for i in range(0, len(blocks), each)]


def require_supported(problem: Problem) -> None:
    """Refuse what this kernel does not carry yet.

    Raises:
        RequestError: one violation for each option.
    """
    inputs = ("float16", "bfloat16", "int8")
    outputs = plain_outputs(problem.accumulator_type.name)
    supported: tuple[tuple[str, object, tuple[object, ...]], ...] = (
        ("template", problem.template, ("MDL",)),
        ("batch", problem.batch, (1,)),
        ("kb", problem.kb, (None, problem.k)),
        ("scale_a", problem.scale_a, (None,)),
        ("split_k", problem.split_k, (False,)),
        ("a", problem.a_type.name, inputs),
        ("c", problem.c_type.name, outputs),
        ("hf32", problem.hf32, (False,)),
        ("unit_flag", problem.unit_flag, (None, False)),
        ("epilogue.quant", problem.epilogue.quant, (None,)),
        *((f"format_{x}", getattr(problem, f"format_{x}"), ("ND",)) for x in "abc"),
        *((f"pos_{x}", getattr(problem, f"pos_{x}"), ("GM",)) for x in "abc"),
    )
    found = [
        Violation(name, f"be {_words(allowed)} to be executed or timed", _word(value))
        for name, value, allowed in supported
        if value not in allowed
    ]
    if found:
        raise RequestError(found)


def _words(values: tuple[object, ...]) -> str:
    return " or ".join(_word(value) for value in values)


def _word(value: object) -> str:
    if value is None:
        return "null"
    return str(value).lower() if isinstance(value, bool) else str(value)


class CoreTree:
    """The tree of a core that computes blocks of C, each `m` x `n`, one after another."""

    def __init__(self, plan: MatmulPlan, shapes: tuple[tuple[int, int], ...]) -> None:
        names = "_".join(f"{m}x{n}x{plan.problem.k}" for m, n in shapes)
        builder = Builder(f"matmul_{names}")
        self._blocks = [BlockTree(plan, builder, m, n) for m, n in shapes]
        self._program = builder.finish()

    def on_core(self, core: int, blocks: tuple[CoreBlock, ...]) -> CoreProgram:
        """Return the tree with its slots filled for a core that computes `blocks`."""
        slots: dict[Var, tuple[str, int]] = {}
        for tree, block in zip(self._blocks, blocks, strict=True):
            slots |= tree.slots(block.m0, block.n0)
        return CoreProgram(core, self._program, slots)


class BlockTree:
    """Builds the part of a core's tree that computes `m` x `n` of C."""

    def __init__(self, plan: MatmulPlan, builder: Builder, m: int, n: int) -> None:
        self.plan, self.m, self.n, self.k = plan, m, n, plan.problem.k
        t = plan.tiling
        self.builder = b = builder
        self.slot_a, self.slot_b = b.slot("a"), b.slot("b")
        self.slot_bias = b.slot("bias") if plan.problem.bias_type is not None else None
        self.slot_c = b.slot("c")
        self.k_blocks = ceil_div(self.k, t.baseK)
        a, bb = plan.a, plan.b
        a_bytes = a.buffers * a.buffer_bytes(m)
        b_bytes = bb.buffers * bb.buffer_bytes(n)
        self.step = Ring(b, "step", max(t.dbL0A, t.dbL0B))
        self.l0a, self.l0b = Ring(b, "l0a", t.dbL0A), Ring(b, "l0b", t.dbL0B)
        self.l0c = Ring(b, "l0c", t.dbL0C)
        self.flags = Flags(b)
        shape = (m, n, self.k)
        m_outer = t.iterateOrder == 1
        self.stream_a = Stream(b, (a, bb), Place(Expr.of(self.slot_a), 0), shape, outer=m_outer)
        self.stream_b = Stream(
            b, (bb, a), Place(Expr.of(self.slot_b), a_bytes), shape, outer=not m_outer
        )
        self.bias = self._bias_row(a_bytes + b_bytes)
        self._build()

    def _bias_row(self, l1: int) -> BiasRow | None:
        kind = self.plan.problem.bias_type
        if kind is None or self.slot_bias is None:
            return None
        place = Place(Expr.of(self.slot_bias), l1)
        room = self.plan.chip.l1_bytes - l1
        return BiasRow(self.builder, kind, place, self.n, self.plan.tiling.baseN, room)

    def slots(self, m0: int, n0: int) -> dict[Var, tuple[str, int]]:
        """Return what the slots hold for the block that starts at (m0, n0)."""
        p = self.plan.problem
        a_offset = p.a_type.bytes_of(m0 * (1 if not self.plan.a.k_inner else p.k))
        b_offset = p.b_type.bytes_of(n0 * (1 if not self.plan.b.k_inner else p.k))
        slots = {
            self.slot_a: ("a", a_offset),
            self.slot_b: ("b", b_offset),
            self.slot_c: ("c", p.c_type.bytes_of(m0 * p.n + n0)),
        }
        if self.slot_bias is not None and p.bias_type is not None:
            slots[self.slot_bias] = ("bias", p.bias_type.bytes_of(n0))
        return slots

    # --- the walk over tiles

    def _build(self) -> None:
        self._flags_up(SetFlag)
        if self.bias is not None:
            self.bias.start()
        self.stream_a.start()
        self.stream_b.start()
        for m_chunk, n_chunk in self._chunks():
            self._tiles(m_chunk, n_chunk)
        self.stream_a.finish()
        self.stream_b.finish()
        if self.bias is not None:
            self.bias.finish()
        self._flags_up(WaitFlag)

    def _chunks(self) -> Iterator[tuple[tuple[Expr, int], tuple[Expr, int]]]:
        """Give ((index, length) of the M chunk, the same of the N chunk) in the tiling's order."""
        t, b = self.plan.tiling, self.builder
        m_size, n_size = t.stepM * t.baseM, t.stepN * t.baseN
        if t.iterateOrder == 1:
            for m_chunk in b.split("m_chunk", self.m, m_size):
                self.stream_a.enter("outer")
                for n_chunk in b.split("n_chunk", self.n, n_size):
                    self.stream_b.enter("inner")
                    yield m_chunk, n_chunk
                    self.stream_b.leave("inner")
                self.stream_a.leave("outer")
        else:
            for n_chunk in b.split("n_chunk", self.n, n_size):
                self.stream_b.enter("outer")
                for m_chunk in b.split("m_chunk", self.m, m_size):
                    self.stream_a.enter("inner")
                    yield m_chunk, n_chunk
                    self.stream_a.leave("inner")
                self.stream_b.leave("outer")

    def _tiles(self, m_chunk: tuple[Expr, int], n_chunk: tuple[Expr, int]) -> None:
        t, b = self.plan.tiling, self.builder
        m_at, n_at = m_chunk[0] * t.stepM, n_chunk[0] * t.stepN
        if t.iterateOrder == 1:
            for mi, m in b.split("m", m_chunk[1], t.baseM):
                for ni, n in b.split("n", n_chunk[1], t.baseN):
                    self._fetch_bias(n_at + ni, n)
                    self._tile((m_at, mi, m, m_chunk[1]), (n_at, ni, n, n_chunk[1]))
        else:
            for ni, n in b.split("n", n_chunk[1], t.baseN):
                self._fetch_bias(n_at + ni, n)
                for mi, m in b.split("m", m_chunk[1], t.baseM):
                    self._tile((m_at, mi, m, m_chunk[1]), (n_at, ni, n, n_chunk[1]))
                self._bias_used()

    def _fetch_bias(self, n_block: Expr, n: int) -> None:
        if self.bias is not None:
            self.bias.fetch(n_block, n)

    def _bias_used(self) -> None:
        if self.bias is not None:
            self.bias.used()

    # --- one tile

    def _tile(
        self, along_m: tuple[Expr, Expr, int, int], along_n: tuple[Expr, Expr, int, int]
    ) -> None:
        """`along_m` is (first tile of the chunk, tile in the chunk, its rows, the chunk's rows)."""
        t, b = self.plan.tiling, self.builder
        self.flags.wait("FIX", "M", self.l0c.at)
        for k_block, k in b.split("k", self.k, t.baseK):
            self._step(k_block, k, along_m, along_n)
        self.flags.set("M", "FIX", self.l0c.at)
        self.flags.wait("M", "FIX", self.l0c.at)
        self._store(along_m[0] + along_m[1], along_m[2], along_n[0] + along_n[1], along_n[2])
        self.flags.set("FIX", "M", self.l0c.at)
        self.l0c.next()

    def _step(
        self,
        k_block: Expr,
        k: int,
        along_m: tuple[Expr, Expr, int, int],
        along_n: tuple[Expr, Expr, int, int],
    ) -> None:
        b = self.builder
        b.issue(ScalarWork(step=self.plan.step))
        self.stream_a.enter_step(k_block)
        self.stream_b.enter_step(k_block)
        self.flags.wait("M", "MTE1", self.l0a.at)
        self.stream_a.move(k_block, k, along_m, self._l0_slot(self.l0a, self.plan.chip.l0a_bytes))
        self.flags.wait("M", "MTE1", self.l0b.at + 2)
        self.stream_b.move(k_block, k, along_n, self._l0_slot(self.l0b, self.plan.chip.l0b_bytes))
        self.flags.set("MTE1", "M", self.step.at)
        self.stream_a.leave_step(k_block)
        self.stream_b.leave_step(k_block)
        self.flags.wait("MTE1", "M", self.step.at)
        self._multiply(k_block, along_m[2], along_n[2], k)
        self.flags.set("M", "MTE1", self.l0a.at)
        self.flags.set("M", "MTE1", self.l0b.at + 2)
        for ring in (self.step, self.l0a, self.l0b):
            ring.next()

    def _multiply(self, k_block: Expr, m: int, n: int, k: int) -> None:
        b, p, chip = self.builder, self.plan.problem, self.plan.chip
        # A transposing load cannot give GEMV its vector; ND2NZ's zero padding makes the second row.
        rows = 2 if m == 1 and not self.plan.a.k_inner else m
        c = self._l0_slot(self.l0c, chip.l0c_bytes)
        a = self._l0_slot(self.l0a, chip.l0a_bytes)
        bb = self._l0_slot(self.l0b, chip.l0b_bytes)
        for first in b.choose(k_block, "==", 0):
            template = Mad(
                a_type=p.a_type,
                b_type=p.b_type,
                c_type=self.plan.accumulator,
                m=rows,
                k=k,
                n=n,
                c_matrix_init_val=first and self.bias is None,
                c_matrix_source=first and self.bias is not None,
            )
            if template.starts_from_bias:
                b.issue(template, c, a, bb, 0)
                if self.plan.tiling.iterateOrder == 1:  # no other tile reads this bias
                    self._bias_used()
            else:
                b.issue(template, c, a, bb)
        fractals = ceil_div(m, FRACTAL_ROWS) * ceil_div(n, FRACTAL_ROWS)
        if self.k_blocks > 1 and fractals < _DEPENDENT_MAD_FRACTALS:
            b.issue(PipeBarrier(on="M"))

    def _store(self, m_block: Expr, m: int, n_block: Expr, n: int) -> None:
        t, p, chip = self.plan.tiling, self.plan.problem, self.plan.chip
        size = p.c_type.size_bytes
        at = Expr.of(self.slot_c) + m_block * (t.baseM * p.n * size) + n_block * (t.baseN * size)
        template = CopyMatrixCcToGm(
            src_type=self.plan.accumulator,
            n_size=n,
            m_size=m,
            dst_stride=p.n,
            src_stride=align_up(m, FRACTAL_ROWS),
            quant_pre=FIXPIPE_CONVERSIONS[self.plan.accumulator.name, p.c_type.name],
            relu_pre=p.epilogue.relu,
            nz2nd_en=True,
        )
        self.builder.issue(template, at, self._l0_slot(self.l0c, chip.l0c_bytes))

    @staticmethod
    def _l0_slot(ring: Ring, buffer_bytes: int) -> Expr:
        """Return the address that the ring stands at: the buffer is cut evenly."""
        return ring.at * (buffer_bytes // ring.size)

    # --- flags

    def _flags_up(self, kind: type[SetFlag] | type[WaitFlag]) -> None:
        """Raise the flags of everything that is free, or take them back at the end."""
        events = [("FIX", "M", i) for i in range(self.l0c.size)]
        events += [("M", "MTE1", i) for i in range(self.l0a.size)]
        events += [("M", "MTE1", 2 + i) for i in range(self.l0b.size)]
        for first, plan in ((0, self.plan.a), (2, self.plan.b)):
            events += [("MTE1", "MTE2", first + i) for i in range(plan.buffers)]
        if self.bias is not None:
            events += BIAS_EVENTS
        for src, dst, event in events:
            self.builder.issue(kind(src=src, dst=dst, event_id=event))
