"""Views of a memory's bytes as a matrix: its values, and the elements never written."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cubecore.arrays import Array
from cubecore.dtypes import ElementType
from cubecore.errors import did_you_mean, refuse
from cubecore.isa.declare.instruction import Mem
from cubecore.layouts import (
    L0C_FRACTAL,
    NZ,
    ZN,
    ZZ,
    Layout,
    Offsets,
    l0a_fractal,
    l0b_fractal,
    offsets,
)
from cubecore.machine.execute.core import Core
from cubecore.machine.memory.buffers import MemoryBuffer
from cubecore.machine.memory.elements import Elements
from cubecore.machine.memory.places import Place
from cubecore.numerics.codes import numbers
from cubecore.units import FRACTAL_ROWS, align_up

ND = "ND"
LAYOUTS: dict[str, Layout | None] = {ND: None, "NZ": NZ, "ZZ": ZZ, "ZN": ZN}
"""The layouts of a view: ND is row by row, the others are made of fractals."""
_LAYOUT_OF = {Mem.L0A: "ZZ", Mem.L0B: "ZN", Mem.L0C: "NZ"}
UNWRITTEN = "?"
"""The text for an uninitialised element."""
_EDGE, _MOST_ROWS, _MOST_COLUMNS = 4, 20, 16
"""Rows and columns that are printed; of more, this many at each end."""


@dataclass(frozen=True, eq=False, slots=True)
class MatrixView:
    """The elements of bytes [start, end) of a memory, in the order of the matrix that they are.

    `values` and `written` have the view's `shape`; an element that is not `written` has
    a value of poison.
    """

    memory: str
    start: int
    end: int
    dtype: ElementType
    layout: str
    values: Array
    written: NDArray[np.bool_]

    @property
    def shape(self) -> tuple[int, ...]:
        """The matrix' shape."""
        return tuple(self.values.shape)

    @property
    def unwritten(self) -> int:
        """The number of uninitialised elements."""
        return int(self.written.size - self.written.sum())

    def __str__(self) -> str:
        """Return a line about the matrix, and a line for each row; of long ones the ends."""
        shape = " x ".join(map(str, self.shape))
        missing = f", {self.unwritten} never written ({UNWRITTEN})" if self.unwritten else ""
        head = f"{shape} {self.dtype} in {self.layout}, {self.memory} [{self.start}, {self.end})"
        return "\n".join([head + missing, *self._rows()])

    def _rows(self) -> list[str]:
        width = self.shape[-1] if self.shape else 1
        values, written = self.values.reshape(-1, width), self.written.reshape(-1, width)
        columns = _ends(width, _MOST_COLUMNS)
        rows = _ends(len(values), _MOST_ROWS)
        # Row -1 or column -1 stands for those left out, shown as "...".
        cells = [
            ["..." if r < 0 or c < 0 else _cell(values[r, c], bool(written[r, c])) for c in columns]
            for r in rows
        ]
        wide = max(len(cell) for row in cells for cell in row)
        names = ["..." if r < 0 else str(r) for r in rows]
        high = max(map(len, names))
        return [
            f"  {name:>{high}} | {' '.join(f'{cell:>{wide}}' for cell in row)}"
            for name, row in zip(names, cells, strict=True)
        ]


def _ends(count: int, most: int) -> list[int]:
    """Return the indices that are shown; -1 stands for what is left out."""
    if count <= most:
        return list(range(count))
    return [*range(_EDGE), -1, *range(count - _EDGE, count)]


def _cell(value: Any, written: bool) -> str:
    if not written:
        return UNWRITTEN
    number = value.item() if hasattr(value, "item") else value
    return str(number) if isinstance(number, int) else f"{float(value):g}"


def view(
    core: Core,
    mem: Mem,
    address: int,
    dtype: ElementType,
    shape: tuple[int, ...],
    layout: str | None = None,
) -> MatrixView:
    """Return what `core` finds at `address` (of global memory: the device's) as a matrix.

    `layout` is ND, NZ, ZZ or ZN; None takes the memory's own: ZZ in L0A, ZN in L0B, NZ in L0C, else
    ND. The fractal is 16 x C0 (L0C: 16 x 16; ZN: C0 x 16), the last ones whole. ND takes any number
    of dimensions, the others two. Looking is no access: no check hears of it.

    Raises
    ------
    RequestError
        If the layout is unknown, or bytes lie outside the memory or the tensor.
    """
    name = (layout or _LAYOUT_OF.get(mem, ND)).upper()
    if name not in LAYOUTS:
        raise refuse("layout", "be ND, NZ, ZZ or ZN", repr(layout), did_you_mean(name, LAYOUTS))
    if not shape or any(extent < 1 for extent in shape):
        raise refuse("shape", "hold whole numbers above 0", repr(shape))
    there = _offsets(LAYOUTS[name], mem, dtype, shape)
    size = -(-int(there.max() + 1) * dtype.bits // 8)
    memory, buffer, local = _memory(core, mem, address, size)
    elements_there = Place(buffer.spot(local), Elements.of(there, None, dtype), dtype)
    values = numbers(elements_there.read(), dtype)
    return MatrixView(memory, local, local + size, dtype, name, values, elements_there.ready())


def _offsets(
    layout: Layout | None, mem: Mem, dtype: ElementType, shape: tuple[int, ...]
) -> Offsets:
    if layout is None:
        return np.arange(int(np.prod(shape)), dtype=np.intp).reshape(shape)
    if len(shape) != 2:
        got = " x ".join(map(str, shape))
        raise refuse(f"a shape in {layout.name}", "have two dimensions", got)
    if layout is ZN:
        fractal = l0b_fractal(dtype.c0)
    else:
        fractal = L0C_FRACTAL if mem is Mem.L0C else l0a_fractal(dtype.c0)
    return offsets(layout, *shape, fractal, align_up(shape[0], FRACTAL_ROWS))


def _memory(core: Core, mem: Mem, address: int, size: int) -> tuple[str, MemoryBuffer, int]:
    """Return a memory's name, its bytes and the address there.

    Raises
    ------
    RequestError
        If bytes lie outside the memory.
    """
    if mem is Mem.GM:
        tensor = core.gm.at(address)
        if tensor is None:
            raise refuse("the view", "lie in a tensor", f"address {address}")
        name, buffer, local = tensor.name, tensor.buffer, address - tensor.address
    else:
        memory = core.memory(mem)
        if memory is None:
            part = "AIC" if core.id.is_aic else "AIV"
            raise refuse("the view", f"lie in a memory of the {part}", mem.label)
        name, buffer, local = mem.label, memory, address
    if local < 0 or local + size > buffer.size_bytes:
        need = f"stay inside {name} (0 to {buffer.size_bytes} B)"
        raise refuse("the view", need, f"bytes [{local}, {local + size})")
    return name, buffer, local
