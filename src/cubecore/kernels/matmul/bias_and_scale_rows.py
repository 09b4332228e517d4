"""Rows with a value for each column of C: bias to BiasTable, scales to fixpipe's buffer.

A row goes from global memory to L1, and a tile's part of it to the table.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar

from cubecore.dtypes import INT16, ElementType
from cubecore.isa.cube.mad import CopyCbufToBt
from cubecore.isa.declare.instruction import Instruction
from cubecore.isa.declare.scale_registers import FIXPIPE_ALIGN_BYTES, CopyCbufToFbuf
from cubecore.isa.mte.copies import CopyGmToCbuf, CopyGmToCbufMultiNd2Nz
from cubecore.isa.mte.copies_3510 import CopyCbufToFbufV2
from cubecore.isa.program.expr import Expr
from cubecore.isa.scalar.sync import PipeBarrier
from cubecore.kernels.build.builder import Builder
from cubecore.kernels.build.flags import Event, Flags
from cubecore.kernels.matmul.chunk_stream import OperandAddresses
from cubecore.units import (
    DATA_BLOCK_BYTES,
    FRACTAL_ROWS,
    SCALE_WORD_BYTES,
    align_up,
    ceil_div,
)

_LONGEST_ROW = 65535
"""Columns that one ND2NZ transfer takes."""


@dataclass(frozen=True, slots=True)
class TableRow(ABC):
    """The values of a core's `n` columns, in tiles of `base_n`.

    The whole row stays in L1 where `room_bytes` of it are left; otherwise each tile's part is
    loaded when it is needed, and the pipe that fills the table waits for it.
    """

    builder: Builder
    addresses: OperandAddresses
    n: int
    base_n: int
    room_bytes: int

    event: ClassVar[int]
    """The flag between MTE2 and MTE1."""
    reader: ClassVar[tuple[str, int]]
    """The pipe that reads the table, and its flag towards the one that fills it."""
    copier: ClassVar[str] = "MTE1"
    """The pipe that fills the table; where it is the reader, barriers keep them in order."""

    @property
    @abstractmethod
    def value_bytes(self) -> int:
        """Bytes of one column's value."""

    @property
    @abstractmethod
    def alignment_bytes(self) -> int:
        """Return the alignment of a row in L1, bytes."""

    @abstractmethod
    def transfer(self, source: Expr, columns: int) -> None:
        """Issue the transfer of `columns` values to L1."""

    @abstractmethod
    def _copy(self, source: Expr, columns: int) -> None:
        """Issue the copy of `columns` values from L1 to the table."""

    @property
    def events(self) -> tuple[Event, ...]:
        """Flags that are up while the row in L1, and in the table, is free."""
        pipe, number = self.reader
        of_l1 = (self.copier, "MTE2", self.event)
        return (of_l1,) if pipe == self.copier else (of_l1, (pipe, self.copier, number))

    @property
    def row_bytes(self) -> int:
        """Bytes of the whole row in L1."""
        return int(align_up(self.n * self.value_bytes, self.alignment_bytes))

    @property
    def is_resident(self) -> bool:
        """True if the whole row is in L1."""
        return self.n <= self.longest and self.row_bytes <= self.room_bytes

    @property
    def longest(self) -> int:
        """The most columns that a transfer brings."""
        return _LONGEST_ROW

    @property
    def held_bytes(self) -> int:
        """Bytes of L1 that are used: the row, or a tile's part of it."""
        part = int(align_up(self.base_n * self.value_bytes, self.alignment_bytes))
        return self.row_bytes if self.is_resident else part

    def start(self) -> None:
        """Load the row if it is resident."""
        if self.is_resident:
            self._load(Expr(0), self.n)

    def finish(self) -> None:
        """Let go of it."""
        if self.is_resident:
            self._flags.set(self.copier, "MTE2", self.event)

    def fetch(self, n_block: Expr, n: int) -> None:
        """Bring the values of tile `n_block`, `n` columns, to the table once it is free."""
        # Two hand-overs: the row's part in L1 (MTE2 -> copier -> MTE2), and the table (copier ->
        # reader -> copier). Where copier and reader are one pipe, its own barrier does for the
        # second.
        offset = n_block * (self.base_n * self.value_bytes)
        if not self.is_resident:
            self._load(offset, n)
        pipe, number = self.reader
        if pipe == self.copier:
            self.builder.issue(PipeBarrier(on=pipe))
        else:
            self._flags.wait(pipe, self.copier, number)
        self._copy(self.addresses.l1 + (offset if self.is_resident else Expr(0)), n)
        if not self.is_resident:
            self._flags.set(self.copier, "MTE2", self.event)

    def used(self) -> None:
        """Free the table behind what the reader has done so far."""
        pipe, number = self.reader
        if pipe != self.copier:
            self._flags.set(pipe, self.copier, number)

    @property
    def _flags(self) -> Flags:
        return Flags(self.builder)

    def _load(self, offset: Expr, columns: int) -> None:
        self._flags.wait(self.copier, "MTE2", self.event)
        self.transfer(self.addresses.source + offset, columns)
        self._flags.set("MTE2", self.copier, self.event)
        self._flags.wait("MTE2", self.copier, self.event)


@dataclass(frozen=True, slots=True)
class BiasRow(TableRow):
    """Bias of type `kind`, which Mmad reads from BiasTable as `held`.

    `halves` says that moves to L1 take 32 bits as twice 16.
    """

    kind: ElementType
    held: ElementType
    halves: bool
    event: ClassVar[int] = 6
    reader: ClassVar[tuple[str, int]] = ("M", 4)

    @property
    def longest(self) -> int:
        """The most columns that a transfer brings, half as many where each counts twice."""
        return _LONGEST_ROW // 2 if self.halves else _LONGEST_ROW

    @property
    def value_bytes(self) -> int:
        """The bias's size in global memory and L1."""
        return self.kind.size_bytes

    @property
    def alignment_bytes(self) -> int:
        """A block."""
        return DATA_BLOCK_BYTES

    def transfer(self, source: Expr, columns: int) -> None:
        """Issue an ND2NZ of one row."""
        moved, count = self.kind, columns
        if self.halves and self.kind.bits == 32:
            moved, count = INT16, columns * 2
        row = CopyGmToCbufMultiNd2Nz(
            dtype=moved, n_value=1, d_value=count, src_d_value=count, dst_nz_c0_stride=1
        )
        self.builder.issue(row, self.addresses.l1, source)

    def _copy(self, source: Expr, columns: int) -> None:
        self.builder.issue(self.copying(columns), 0, source)

    def copying(self, columns: int) -> CopyCbufToBt:
        """Return the copy of `columns` values to the table."""
        blocks = ceil_div(columns * self.value_bytes, DATA_BLOCK_BYTES)
        convert = self.kind is not self.held
        return CopyCbufToBt(src_type=self.kind, len_burst=blocks, conv_control=convert)


@dataclass(frozen=True, slots=True)
class ScaleRow(TableRow):
    """Words of 64 bits, which fixpipe reads from its buffer; global memory pads them to 128 B.

    Fixpipe itself fills its buffer.
    """

    event: ClassVar[int] = 7
    reader: ClassVar[tuple[str, int]] = ("FIX", 2)
    copier: ClassVar[str] = "FIX"

    @property
    def value_bytes(self) -> int:
        """A word."""
        return SCALE_WORD_BYTES

    @property
    def alignment_bytes(self) -> int:
        """The unit of the copy to fixpipe's buffer."""
        return FIXPIPE_ALIGN_BYTES

    @staticmethod
    def _scaled_bytes(columns: int) -> int:
        """Return the bytes of the words that scale `columns`: a fixpipe to NZ takes fractals."""
        return int(align_up(columns, FRACTAL_ROWS)) * SCALE_WORD_BYTES

    def transfer(self, source: Expr, columns: int) -> None:
        """Issue a copy of whole blocks."""
        blocks = ceil_div(self._scaled_bytes(columns), DATA_BLOCK_BYTES)
        copy = CopyGmToCbuf(n_burst=1, len_burst=blocks)
        self.builder.issue(copy, self.addresses.l1, source)

    def _copy(self, source: Expr, columns: int) -> None:
        self.builder.issue(self._to_buffer(self._scaled_bytes(columns)), 0, source)
        self.builder.issue(PipeBarrier(on="FIX"))

    @staticmethod
    def _to_buffer(size_bytes: int) -> Instruction:
        """Return the copy of so many bytes from L1."""
        return CopyCbufToFbuf(len_burst=ceil_div(size_bytes, FIXPIPE_ALIGN_BYTES))


@dataclass(frozen=True, slots=True)
class ScaleRow3510(ScaleRow):
    """The same on architecture 3510, with its own copy."""

    @staticmethod
    def _to_buffer(size_bytes: int) -> Instruction:
        """Return the copy of so many bytes from L1."""
        return CopyCbufToFbufV2(len_burst=ceil_div(size_bytes, CopyCbufToFbufV2.size_unit))
