"""Matmuls with a right matrix of which half the values are 0: 4 of K kept as 2 and their places.

B is stored without its zeros, and beside it an index of 2 bits for each value that is kept. The
load takes both: 512 bytes to L0B, and 128 bytes to a buffer of the Cube's own that is a quarter as
large and has no addresses of its own: what belongs to L0B's byte x lies at x / 4.
"""

import math
from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache
from typing import Self

import numpy as np

from cubecore import layouts
from cubecore.arrays import Array
from cubecore.chips import costs
from cubecore.chips.model import Chip
from cubecore.dtypes import FRACTAL, INDEX_FRACTAL, INT8, INT32, ElementType, element_type
from cubecore.errors import Violation
from cubecore.isa.cube.product import CubeProduct
from cubecore.isa.declare.instruction import (
    Instruction,
    InstructionCost,
    Mem,
    Operand,
    OperandAccess,
    Pipe,
    instruction,
    param,
    read,
    taken,
    types,
    write,
)
from cubecore.isa.declare.registers import Registers
from cubecore.layouts import Offsets
from cubecore.numerics import accumulate_product
from cubecore.units import FRACTAL_BYTES, ceil_div

UINT8 = element_type("uint8")
GROUP = 4
"""Values of K of which two are kept."""
_KEPT = 2
_CODES = 4
"""Indices in a byte, the first in the lowest bits."""
_PER_INDEX_BYTE = 4
"""Bytes of L0B to one byte of its indices."""
_LARGEST_CODE = 2


@instruction(
    "load_cbuf_to_cb_sp",
    Pipe.MTE1,
    names={"c_api": "asc_copy_l12l0b_sparse", "cpp": "LoadDataWithSparse"},
    source="asc-devkit, asc_copy_l12l0b_sparse and LoadDataWithSparse (2201)",
    uncertain=(
        "start_index counts the fractals of the index as well, as the basic API's figure says",
        "no page gives the cost: that of 512 B and 128 B over the L1 to L0B link is taken",
    ),
    copies=True,
)
class LoadCbufToCbSp(Instruction):
    """Move fractals of a compacted matrix from L1 to L0B, and 128 B of indices with each.

    repeat 0: nothing happens. Fractals and their indices follow each other in L1 as in L0B.
    """

    pairs = (("dst", "src"), ("index_dst", "index"))
    pointers = ("int8",)
    signature = ("dst", "src", "index", "start_index", "repeat")
    dst = write(Mem.L0B, "fractal", "block")
    src = read(Mem.L1, "fractal", "block")
    index = read(Mem.L1, "fractal", "index_block")
    index_dst = write(Mem.L0B_INDEX, "fractal", "index_block")
    block: ElementType = types("the unit of the move", "fractal", default=FRACTAL)
    index_block: ElementType = types("its indices", "index fractal", default=INDEX_FRACTAL)
    start_index: int = param(0, 65535, "first fractal, counted from the source address", default=0)
    repeat: int = param(0, 255, "fractals")
    addressed: bool | None = taken(
        "whether the indices' address is known: a quarter of dst's address"
    )

    def resolved(self, registers: Registers) -> Self:
        """The indices have a place when the instruction starts."""
        return replace(self, addressed=True)

    def operands(self) -> tuple[Operand, ...]:
        """The indices' place is no argument."""
        return self.declared if self.addressed else self.declared[:3]

    def operand_addresses(self, addresses: tuple[int, ...]) -> tuple[int, ...]:
        """The indices lie at a quarter of dst's address."""
        if not self.addressed:
            return addresses
        return (*addresses[:3], addresses[0] // _PER_INDEX_BYTE)

    def offsets_src(self) -> Offsets:
        """Shape [repeat]."""
        return self.start_index + np.arange(self.repeat, dtype=np.intp)

    def offsets_index(self) -> Offsets:
        """Shape [repeat]."""
        return self.offsets_src()

    def offsets_dst(self) -> Offsets:
        """Shape [repeat]."""
        return np.arange(self.repeat, dtype=np.intp)

    def offsets_index_dst(self) -> Offsets:
        """Shape [repeat]."""
        return self.offsets_dst()

    def cost(self, chip: Chip) -> InstructionCost:
        """Bytes over the L1 to L0B link."""
        size = self.repeat * (FRACTAL_BYTES + FRACTAL_BYTES // _PER_INDEX_BYTE)
        return InstructionCost(math.ceil(costs.l1_to_l0b_cycles(chip, size)))


@instruction(
    "mad_sp",
    Pipe.M,
    names={"c_api": "asc_mmad_sparse", "cpp": "MmadWithSparse"},
    source="asc-devkit, asc_mmad_sparse, MmadWithSparse and the index matrix of 4:2 (2201)",
    uncertain=(
        "the C API's page calls A dense and B sparse and has the load take A; the basic API's page "
        "is followed, which has A whole and B compacted",
        "the second value never lies before the first: the page's table takes the same place twice "
        "where the first index is 2 and the second 0",
        "a K that is no multiple of 4: A counts as 0 beyond it",
        "no page gives the cost: half that of an int8 matmul of the same sizes is taken",
    ),
)
class MadSp(CubeProduct):
    """Multiply int8 A by a compacted int8 B into int32 C; the indices say which of A take part.

    A is [m, k]. B is [k / 2, n]: two values for each 4 of K. For the group g of column n the
    indices i and j pick A's columns 4 g + i and 4 g + 1 + j: c[m, n] = start + sum over g of
    a[m, 4 g + i] * b[2 g, n] + a[m, 4 g + 1 + j] * b[2 g + 1, n]. Indices are 0, 1 or 2, four in a
    byte from the lowest bits up, laid out as B. m equal to 1 is no GEMV. Start, limits and the unit
    flag are those of `mad`.
    """

    signature = (
        *("c", "a", "b", "m", "k", "n", "unit_flag", "c_matrix_source", "c_matrix_init_val"),
    )
    steered_by = ("index",)
    index = read(Mem.L0B_INDEX, "k n", "index_type")
    addressed: bool | None = taken(
        "whether the indices' address is known: a quarter of b's address"
    )
    picks: bytes | None = taken("the indices, taken when the instruction starts")

    @property
    def a_type(self) -> ElementType:
        """The left matrix."""
        return INT8

    b_type = a_type

    @property
    def c_type(self) -> ElementType:
        """The result."""
        return INT32

    @property
    def index_type(self) -> ElementType:
        """Four indices."""
        return UINT8

    def resolved(self, registers: Registers) -> Self:
        """The indices have a place when the instruction starts."""
        return replace(self, addressed=True)

    def located(self, values: Mapping[str, Array]) -> Self:
        """Take the indices."""
        return replace(self, picks=np.ascontiguousarray(values["index"]).tobytes())

    def operands(self) -> tuple[Operand, ...]:
        """C is only written unless it accumulates; the indices' place is no argument."""
        return _operands(self.accumulates, self.starts_from_bias, bool(self.addressed))

    def operand_addresses(self, addresses: tuple[int, ...]) -> tuple[int, ...]:
        """The indices lie at a quarter of b's address."""
        if not self.addressed:
            return addresses
        count = len(self.operands()) - 1
        return (*addresses[:count], addresses[2] // _PER_INDEX_BYTE)

    @property
    def groups(self) -> int:
        """Groups of 4 along K."""
        return int(ceil_div(self.k, GROUP))

    def offsets_a(self) -> Offsets:
        """Shape [m, k]."""
        return self.laid_out(layouts.ZZ, self.m, self.k, layouts.l0a_fractal(INT8.c0))

    def offsets_b(self) -> Offsets:
        """Shape [two for each group, n]."""
        rows = self.groups * _KEPT
        return self.laid_out(layouts.ZN, rows, self.n, layouts.l0b_fractal(INT8.c0))

    def offsets_index(self) -> Offsets:
        """Shape [bytes of a column, n]."""
        rows = ceil_div(self.groups * _KEPT, _CODES)
        return self.laid_out(layouts.ZN, rows, self.n, layouts.l0b_fractal(INT8.c0 // _CODES))

    def _codes(self) -> Offsets:
        """Return the indices, shape [groups, 2, n]."""
        packed = np.frombuffer(self.picks or b"", np.uint8).reshape(-1, self.n)
        shifts = 2 * np.arange(_CODES, dtype=np.uint8)
        codes = (packed[:, None, :] >> shifts[:, None] & 3).reshape(-1, self.n)
        wanted = codes[: self.groups * _KEPT].astype(np.intp)
        return wanted.reshape(self.groups, _KEPT, self.n)

    def preconditions(self, chip: Chip) -> list[Violation]:
        """Indices are 0, 1 or 2."""
        if not self.picks:
            return []
        wrong = np.argwhere(self._codes() > _LARGEST_CODE)
        if not wrong.size:
            return []
        group, which, column = (int(i) for i in wrong[0])
        location = f"3 at row {group * _KEPT + which}, column {column}"
        return [Violation(f"{self.name}.index", "hold indices 0, 1 and 2", location)]

    def compute(self, inputs: Mapping[str, Array], registers: Registers) -> Mapping[str, Array]:
        """Spread B over the places that its indices name, and multiply."""
        if self.empty:
            return {"c": np.zeros((0, 0), np.int32)}
        # Decompress: of each group of four places along K, the two kept values go to the places
        # that the two codes name; the second code counts from place 1 on. The rest is 0, and the
        # matmul is dense.
        codes = self._codes()
        first = codes[:, 0]
        second = np.maximum(first, 1 + codes[:, 1])
        whole = np.zeros((self.groups, GROUP, self.n), np.int64)
        kept = inputs["b"].reshape(self.groups, _KEPT, self.n).astype(np.int64)
        group = np.arange(self.groups)[:, None]
        column = np.arange(self.n)
        for row, which in ((first, 0), (second, 1)):
            np.add.at(whole, (group, row, column), kept[:, which])
        b = whole.reshape(-1, self.n)[: self.k]
        start: Array = np.zeros((1, 1), np.int32)
        if self.accumulates:
            start = inputs["c"]
        elif self.starts_from_bias:
            start = np.broadcast_to(inputs["bias"], (self.m, self.n))
        return {"c": accumulate_product(start, inputs["a"], b, INT32)}

    def cost(self, chip: Chip) -> InstructionCost:
        """Whole fractals of half of K."""
        if self.empty:
            return InstructionCost(0)
        half = ceil_div(self.k, _KEPT)
        cycles = costs.mad_cycles(chip, INT8, self.m, self.n, half)
        queued = chip.require("mad_queued_cycles", "timing")
        head = chip.require("mad_head_cycles", "timing")
        return InstructionCost(math.ceil(cycles) + queued, idle_head=head - queued)


_C, _A, _B, _BIAS, _INDEX = MadSp.declared


@lru_cache
def _operands(accumulates: bool, biased: bool, addressed: bool) -> tuple[Operand, ...]:
    c = replace(_C, access=OperandAccess.UPDATE if accumulates else OperandAccess.WRITE)
    return (c, _A, _B, *((_BIAS,) if biased else ()), *((_INDEX,) if addressed else ()))
