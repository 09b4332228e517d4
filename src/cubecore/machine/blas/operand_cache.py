"""Global tensors as float32 matrices, each converted once, and the values of blocks of them."""

from collections.abc import Callable
from functools import partial

import numpy as np
from numpy.lib.stride_tricks import as_strided

from cubecore.arrays import Array
from cubecore.dtypes import FLOAT32, ElementType
from cubecore.machine.blas.block_products import Block, IrregularError
from cubecore.machine.memory import int4
from cubecore.machine.memory.buffers import GlobalTensor
from cubecore.numerics import round_hf32
from cubecore.numerics.codes import numbers
from cubecore.numerics.nibbles import decode

_PART = 1 << 20
"""Elements that one thread converts at a time, about."""


def require_matrix(block: Block) -> None:
    """Give up on a block whose pieces are not those of one NZ matrix, the same for every core."""
    if not block.is_nz:
        return
    c0 = block.kind.c0
    elements = block.tensor.buffer.size_bytes * 8 // block.kind.bits
    fits = block.pitch in {0, c0} and block.step % c0 == 0 and elements % block.step == 0
    if not fits:
        raise IrregularError("pieces of no NZ matrix")
    for core in range(len(block.distances)):
        row, lane = divmod(block.start(core) % block.step, c0)
        if lane or (row + block.rows) * c0 > block.step:
            raise IrregularError("pieces of no NZ matrix")


class OperandCache:
    """Tensors as float32; all that `mad` multiplies on this architecture converts exactly.

    One in NZ becomes a row-major matrix; several matrices of a batch lie side by side in it.
    """

    def __init__(self) -> None:
        self._matrices: dict[tuple[int, ElementType, int, str], Array] = {}

    def prepare(self, block: Block) -> list[Callable[[], None]]:
        """Enter the block's tensor; return what must be done before its values are asked for."""
        if _key(block) in self._matrices:
            return []
        flat = elements(block.tensor, block.kind)
        # Read in place: no conversion, no copy.
        if block.kind is FLOAT32 and block.hf32 == "off" and not block.is_nz:
            self._matrices[_key(block)] = flat
            return []
        # NZ lies as [columns of fractals, rows, C0]; its row-major matrix is the same with the
        # first two axes exchanged, so that the copy reorders by a transposed target.
        source: Array = flat
        matrix: Array = np.empty(flat.size, np.float32)
        target = matrix
        if block.is_nz:
            source = flat.reshape(-1, block.step // block.kind.c0, block.kind.c0)
            count, rows, c0 = source.shape
            matrix = matrix.reshape(rows, count * c0)
            target = matrix.reshape(rows, count, c0).transpose(1, 0, 2)
        self._matrices[_key(block)] = matrix
        parts = max(1, flat.size // _PART)
        return [
            partial(_convert, *part, block.kind, block.hf32)
            for part in zip(
                np.array_split(source, parts), np.array_split(target, parts), strict=True
            )
        ]

    def values(self, block: Block, core: int) -> Array:
        """Return the [r, k] that one core reads, as a view."""
        # `start` counts elements of the stored tensor. In NZ it is (piece, row, lane) in mixed
        # radix, and the row-major matrix has that element at row * pitch + piece * C0 + lane.
        whole, start, pitch = self._matrices[_key(block)], block.start(core), block.pitch
        if block.is_nz:
            piece, rest = divmod(start, block.step)
            row, lane = divmod(rest, block.kind.c0)
            pitch = whole.shape[1]
            start = row * pitch + piece * block.kind.c0 + lane
        size = whole.itemsize
        strides = (pitch * size, size) if block.k_inner else (size, pitch * size)
        flat = whole.reshape(-1)[start:]
        return as_strided(flat, (block.r, block.k), strides, writeable=False)

    def factor(self, block: Block, core: int) -> Array:
        """Return the [r, k] that one core multiplies: with scales, whole pairs of them along K."""
        values = self.values(block, core)
        return values if block.scales is None else block.scales.scaled(values, core)


def row_values(block: Block, core: int) -> Array:
    """Return the elements of a row that one core reads, in their own type."""
    start = block.start(core)
    return elements(block.tensor, block.kind)[start : start + block.k]


def elements(tensor: GlobalTensor, kind: ElementType) -> Array:
    """Return a tensor's elements, flat; 4-bit ones one to a byte."""
    data = tensor.buffer.data
    if kind.bits == int4.BITS:
        return decode(int4.unpack(data), kind)
    return data[: data.size // kind.size_bytes * kind.size_bytes].view(kind.numpy)


def _key(block: Block) -> tuple[int, ElementType, int, str]:
    return block.tensor.address, block.kind, block.step if block.is_nz else 0, block.hf32


def _convert(source: Array, target: Array, kind: ElementType, hf32: str) -> None:
    target[...] = numbers(source, kind) if hf32 == "off" else round_hf32(source, hf32)
