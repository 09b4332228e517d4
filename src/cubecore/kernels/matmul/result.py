"""Stores of C: addresses of its tiles in global memory, and the instructions that write them."""

from dataclasses import dataclass

from cubecore.isa.cube.fixpipe import CopyMatrixCcToGm
from cubecore.isa.cube.fixpipe_3510 import CopyMatrixCcToCbufV2, CopyMatrixCcToGmV2
from cubecore.isa.declare.instruction import Instruction
from cubecore.isa.mte.copies import CopyUbufToGm
from cubecore.isa.program.expr import Expr
from cubecore.kernels.build.builder import Builder
from cubecore.kernels.build.flags import Event, Flags, Ring
from cubecore.tiling.model.problem import Problem
from cubecore.tiling.model.tcubetiling import TCubeTiling
from cubecore.units import DATA_BLOCK_BYTES, FRACTAL_ROWS, align_up, ceil_div


@dataclass(frozen=True, slots=True)
class ResultPlan:
    """Layout of C: ND rows of n elements, or NZ with columns of fractals one after another.

    `pitch` is the elements from one ND row to the next where they are not n. With `channel_split`
    a fractal of float32 has half of its columns.
    """

    problem: Problem
    tiling: TCubeTiling
    pitch: int | None = None
    channel_split: bool = False

    @property
    def nz(self) -> bool:
        """True if C is stored in fractals."""
        return self.problem.format_c == "NZ"

    @property
    def rows(self) -> int:
        """Rows of C in global memory."""
        return int(align_up(self.problem.m, FRACTAL_ROWS)) if self.nz else self.problem.m

    @property
    def columns(self) -> int:
        """Columns of C in global memory."""
        n = self.problem.n
        if self.nz:
            return int(align_up(n, self._wide))
        return self.pitch or n

    @property
    def stored_bytes(self) -> int:
        """Bytes of one C."""
        return int(self.problem.c_type.bytes_of(self.rows * self.columns))

    def stride_of(self, rows: int) -> int:
        """Return the stride between columns of fractals of so many rows: elements, or 32 B."""
        elements = rows * self._wide
        if self._by_elements:
            return elements
        return int(self.problem.c_type.bytes_of(elements) // DATA_BLOCK_BYTES)

    @property
    def _wide(self) -> int:
        """Columns of a fractal."""
        whole = self.problem.c_fractal_columns
        return whole // 2 if self.channel_split else whole

    @property
    def _by_elements(self) -> bool:
        """True if the chip's fixpipe counts elements in NZ."""
        return self.problem.chip_record.arch == "3510"

    def start(self, m0: int, n0: int) -> int:
        """Return where the element (m0, n0) lies, bytes; in NZ n0 starts a fractal."""
        # In NZ column n0 starts a column of fractals: all rows of the n0 columns before it lie
        # ahead, and each row within it is one fractal's width.
        elements = n0 * self.rows + m0 * self._wide if self.nz else m0 * self.columns + n0
        return int(self.problem.c_type.bytes_of(elements))

    def tile(self, m_block: Expr, n_block: Expr) -> Expr:
        """Return where a tile lies from the start of the core's block, bytes."""
        t = self.tiling
        return m_block * self.start(t.baseM, 0) + n_block * self.start(0, t.baseN)

    def store(self, m: int, n: int, *, unit_flag: bool = False) -> CopyMatrixCcToGm:
        """Return the fixpipe of a tile of m x n."""
        p = self.problem
        assert p.fixpipe is not None, "the problem was checked"
        kind = CopyMatrixCcToGmV2 if self._by_elements else CopyMatrixCcToGm
        return kind(
            src_type=p.accumulator_type,
            n_size=align_up(n, FRACTAL_ROWS) if self.nz else n,
            m_size=m,
            dst_stride=self.stride_of(self.rows) if self.nz else self.columns,
            src_stride=align_up(m, FRACTAL_ROWS),
            quant_pre=p.fixpipe.mode,
            relu_pre=p.epilogue.relu,
            nz2nd_en=not self.nz,
            unit_flag=3 if unit_flag else 0,
            channel_split=self.channel_split,
        )


_UB_BUFFERS = 2
_VECTOR_CORES = 2


class VectorStores:
    """C by way of the Unified Buffers: fixpipe leaves a tile there, vector cores write it out.

    To be timed alone: the way into the Unified Buffers is that into L1, of the same documented
    rate, and the core's MTE3 writes what one vector core of the two does.
    """

    def __init__(self, builder: Builder, plan: ResultPlan) -> None:
        self._builder, self._plan, self._flags = builder, plan, Flags(builder)
        self._buffer = Ring(builder, "ub", _UB_BUFFERS)

    @property
    def events(self) -> list[Event]:
        """Flags that are up while the buffers are free."""
        return [("MTE3", "FIX", i) for i in range(_UB_BUFFERS)]

    def store(self, m: int, n: int, source: Expr, to: Expr) -> None:
        """Leave a tile of m x n at `source` in L0C in the Unified Buffers."""
        # A double buffer: MTE3 frees a buffer, FIX fills it, MTE3 writes it out and frees it again.
        self._flags.wait("MTE3", "FIX", self._buffer.at)
        self._builder.issue(self._drain(m, n), 0, source)
        self._flags.set("FIX", "MTE3", self._buffer.at)
        self._flags.wait("FIX", "MTE3", self._buffer.at)
        self._builder.issue(self._write(m, n), to, 0)
        self._flags.set("MTE3", "FIX", self._buffer.at)
        self._buffer.next()

    def _drain(self, m: int, n: int) -> Instruction:
        p = self._plan.problem
        assert p.fixpipe is not None, "the problem was checked"
        return CopyMatrixCcToCbufV2(
            src_type=p.accumulator_type,
            n_size=n,
            m_size=m,
            dst_stride=n,
            src_stride=align_up(m, FRACTAL_ROWS),
            quant_pre=p.fixpipe.mode,
            nz2nd_en=True,
        )

    def _write(self, m: int, n: int) -> Instruction:
        row = ceil_div(self._plan.problem.c_type.bytes_of(n), DATA_BLOCK_BYTES)
        return CopyUbufToGm(n_burst=ceil_div(m, _VECTOR_CORES), len_burst=row)
