"""The bias row on its way: global memory to L1, and a tile's part of it to BiasTable."""

from dataclasses import dataclass

from cubecore.dtypes import ElementType
from cubecore.isa.cube import CopyCbufToBt
from cubecore.isa.expr import Expr
from cubecore.isa.moves import CopyGmToCbufMultiNd2Nz
from cubecore.kernels.builder import Builder
from cubecore.kernels.flags import Flags
from cubecore.kernels.stream import Place
from cubecore.units import DATA_BLOCK_BYTES, align_up, ceil_div

_EVENT = 6
_TABLE_EVENT = 4
_LONGEST_ROW = 65535
"""Columns that one ND2NZ transfer takes."""

BIAS_EVENTS = (("MTE1", "MTE2", _EVENT), ("M", "MTE1", _TABLE_EVENT))
"""Flags that are up while the bias's place in L1, and in BiasTable, is free."""


@dataclass(frozen=True, slots=True)
class BiasRow:
    """The bias of a core's `n` columns, in tiles of `base_n`.

    The whole row stays in L1 where `room_bytes` of it are left; otherwise each tile's part is
    loaded when it is needed, and MTE1 waits for it.
    """

    builder: Builder
    kind: ElementType
    place: Place
    n: int
    base_n: int
    room_bytes: int

    @property
    def stays(self) -> bool:
        """Whether the whole row is in L1."""
        row_bytes = align_up(self.kind.bytes_of(self.n), DATA_BLOCK_BYTES)
        return self.n <= _LONGEST_ROW and row_bytes <= self.room_bytes

    def start(self) -> None:
        """Load what stays."""
        if self.stays:
            self._load(Expr(0), self.n)

    def finish(self) -> None:
        """Let go of it."""
        if self.stays:
            self._flags.set("MTE1", "MTE2", _EVENT)

    def fetch(self, n_block: Expr, n: int) -> None:
        """Bring the bias of tile `n_block`, `n` columns, to BiasTable once its place is free."""
        offset = n_block * int(self.kind.bytes_of(self.base_n))
        if not self.stays:
            self._load(offset, n)
        self._flags.wait("M", "MTE1", _TABLE_EVENT)
        blocks = ceil_div(self.kind.bytes_of(n), DATA_BLOCK_BYTES)
        convert = self.kind.name == "float16"
        copy = CopyCbufToBt(src_type=self.kind, len_burst=blocks, conv_control=convert)
        self.builder.issue(copy, 0, self.place.l1 + (offset if self.stays else 0))
        if not self.stays:
            self._flags.set("MTE1", "MTE2", _EVENT)

    def used(self) -> None:
        """Free BiasTable behind the Mmads so far."""
        self._flags.set("M", "MTE1", _TABLE_EVENT)

    @property
    def _flags(self) -> Flags:
        return Flags(self.builder)

    def _load(self, offset: Expr, columns: int) -> None:
        self._flags.wait("MTE1", "MTE2", _EVENT)
        row = CopyGmToCbufMultiNd2Nz(
            dtype=self.kind, n_value=1, d_value=columns, src_d_value=columns, dst_nz_c0_stride=1
        )
        self.builder.issue(row, self.place.l1, self.place.source + offset)
        self._flags.set("MTE2", "MTE1", _EVENT)
        self._flags.wait("MTE2", "MTE1", _EVENT)
