"""Global tensors as float32 matrices, each converted once, and the values of blocks of them."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import as_strided
from numpy.typing import NDArray

from cubecore.dtypes import BFLOAT16, FLOAT32, ElementType
from cubecore.machine import nibbles
from cubecore.machine.memory import GlobalTensor
from cubecore.machine.products import Block, IrregularError
from cubecore.numerics import round_hf32

Array = NDArray[Any]


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


@dataclass(eq=False, slots=True)
class Shadows:
    """Tensors as float32; all that `mad` multiplies on this architecture converts exactly.

    One in NZ becomes a row-major matrix; several matrices of a batch lie side by side in it.
    """

    _made: dict[tuple[int, ElementType, int, str], Array] = field(default_factory=dict)

    def of(self, block: Block) -> Array:
        """Return the elements of the block's tensor, flat; in NZ as [rows, columns]."""
        key = (block.tensor.address, block.kind, block.step if block.is_nz else 0, block.hf32)
        found = self._made.get(key)
        if found is None:
            found = self._made[key] = _converted(block)
        return found

    def values(self, block: Block, core: int) -> Array:
        """Return the [r, k] that one core reads, as a view."""
        whole, start, pitch = self.of(block), block.start(core), block.pitch
        if block.is_nz:
            piece, rest = divmod(start, block.step)
            pitch = whole.shape[1]
            start = rest // block.kind.c0 * pitch + piece * block.kind.c0
        size = whole.itemsize
        strides = (pitch * size, size) if block.k_inner else (size, pitch * size)
        flat = whole.reshape(-1)[start:]
        return as_strided(flat, (block.r, block.k), strides, writeable=False)


def row_values(block: Block, core: int) -> Array:
    """Return the elements of a row that one core reads, in their own type."""
    start = block.start(core)
    return elements(block.tensor, block.kind)[start : start + block.k]


def elements(tensor: GlobalTensor, kind: ElementType) -> Array:
    """Return a tensor's elements, flat; 4-bit ones one to a byte."""
    data = tensor.buffer.data
    if kind.bits == nibbles.BITS:
        return nibbles.decode(nibbles.unpack(data), kind)
    return data[: data.size // kind.size_bytes * kind.size_bytes].view(kind.numpy)


def _converted(block: Block) -> Array:
    flat = elements(block.tensor, block.kind)
    convert = _WIDENINGS.get(block.kind, _as_float32)
    if not block.is_nz:
        wide = convert(flat)
    else:
        c0 = block.kind.c0
        pieces = flat.reshape(-1, block.step // c0, c0)
        wide = np.empty((pieces.shape[1], pieces.shape[0] * c0), np.float32)
        target = wide.reshape(pieces.shape[1], pieces.shape[0], c0)
        for piece in range(pieces.shape[0]):
            target[:, piece] = convert(pieces[piece])
    return wide if block.hf32 == "off" else round_hf32(wide, block.hf32)


def _as_float32(values: Array) -> Array:
    return values.astype(np.float32)


def _bfloat16_as_float32(values: Array) -> Array:
    bits = values.view(np.uint16).astype(np.uint32)
    return np.left_shift(bits, 16, out=bits).view(np.float32)


_WIDENINGS: dict[ElementType, Callable[[Array], Array]] = {
    FLOAT32: lambda values: values,
    BFLOAT16: _bfloat16_as_float32,
}
