"""Base of the Cube's matmuls: sizes, where C starts, and the unit flag."""

import numpy as np
from numpy.typing import NDArray

from cubecore import layouts
from cubecore.chips import costs
from cubecore.isa.declare.instruction import Instruction, Mem, choice, param, read, update
from cubecore.isa.declare.template import parameters
from cubecore.layouts import Offsets
from cubecore.units import FRACTAL_ROWS, align_up

UNIT_FLAGS = (0, 2, 3)
"""Values of the unit flag of `mad` and fixpipe (Mmad, table 3): 1 is no value of it."""
_C_ALIGN_BYTES = 1024
"""256 elements of 32 bits (Mmad, table 2); 512 B for half."""
HANDS_OVER = 3
"""The value with which the flag is turned."""


def beside_results(
    ready: NDArray[np.bool_], *, whole: bool
) -> tuple[NDArray[np.bool_], str] | None:
    """Return which elements of a tile pad the fractals in which results end, and those in words.

    `ready` are results, [..., m, n]. The padding are columns behind the last one that a fractal has
    results in; `whole`: rows behind the last one as well. A gap among results is none. None: there
    is no padding.
    """
    *outer, m, n = ready.shape
    behind = [(0, 0)] * len(outer) + [(0, align_up(e, FRACTAL_ROWS) - e) for e in (m, n)]
    each = np.pad(ready, behind)
    groups = each.shape[-1] // FRACTAL_ROWS
    fractals = each.reshape(*outer, -1, FRACTAL_ROWS, groups, FRACTAL_ROWS)
    columns, rows = (np.asarray(fractals.any(axis=axis, keepdims=True)) for axis in (-3, -1))
    padding = _behind_last(columns, -1) & rows
    if whole:
        padding = _behind_last(rows, -3) | _behind_last(columns, -1)
        padding &= columns.any(axis=-1, keepdims=True)
    padding = padding.reshape(each.shape)[..., :m, :n]
    if not padding.any():
        return None
    extents = (
        int(np.flatnonzero(ready.any(axis=axis).reshape(-1, extent).any(axis=0))[-1]) + 1
        for axis, extent in ((-1, m), (-2, n))
    )
    return padding, f"{' x '.join(map(str, extents))} results"


def _behind_last(written: NDArray[np.bool_], axis: int) -> NDArray[np.bool_]:
    """Return what lies behind the last of some that were written, along an axis."""
    backwards = np.logical_or.accumulate(np.flip(written, axis), axis=axis)
    return np.asarray(~np.flip(backwards, axis))


@parameters
class CubeProduct(Instruction):
    """Multiply a tile of L0A by a tile of L0B into a tile of L0C."""

    c = update(Mem.L0C, "m n", "c_type", layout="NZ", align_bytes=_C_ALIGN_BYTES)
    a = read(Mem.L0A, "m k", "a_type", layout="ZZ", align_bytes=512)
    b = read(Mem.L0B, "k n", "b_type", layout="ZN", align_bytes=512)
    bias = read(Mem.BT, "n", "c_type", align_bytes=128)
    m: int = param(0, 4095, "rows of a and c")
    k: int = param(0, 4095, "columns of a, rows of b")
    n: int = param(0, 4095, "columns of b and c")
    c_matrix_init_val: bool = param(0, 1, "start from 0", default=True)
    c_matrix_source: bool = param(0, 1, "start from BiasTable, not from L0C", default=False)
    unit_flag: int = choice(
        "share L0C with fixpipe fractal by fractal: 0 no, 2 yes, 3 yes and hand it over",
        *UNIT_FLAGS,
        default=0,
    )

    @property
    def starts_from_bias(self) -> bool:
        """True if the bias operand is read."""
        return self.c_matrix_source and not self.c_matrix_init_val

    @property
    def accumulates(self) -> bool:
        """True if the old value of c is read."""
        return not (self.c_matrix_init_val or self.c_matrix_source)

    @property
    def shares_units(self) -> bool:
        """As the unit flag says."""
        return self.unit_flag != 0

    @property
    def hands_units_over(self) -> bool:
        """As the unit flag says."""
        return self.unit_flag == HANDS_OVER

    def keeps_behind(self, earlier: Instruction, mem: Mem) -> bool:
        """A large tile takes the Cube so long that the next matmul finds it complete.

        A fractal that was handed over comes back from fixpipe before it is written again.
        """
        if isinstance(earlier, CubeProduct) and mem is Mem.L0C:
            handed_over = earlier.hands_units_over and self.shares_units
            return handed_over or not costs.are_dependent(self.m, self.n)
        return super().keeps_behind(earlier, mem)

    @property
    def empty(self) -> bool:
        """True if nothing happens."""
        return 0 in (self.m, self.k, self.n)

    def offsets_c(self) -> Offsets:
        """Shape [m, n]."""
        return self.laid_out(layouts.NZ, self.m, self.n, layouts.L0C_FRACTAL)

    def offsets_bias(self) -> Offsets:
        """Shape [n]."""
        return np.arange(0 if self.empty else self.n, dtype=np.intp)

    def laid_out(
        self, layout: layouts.Layout, rows: int, cols: int, fractal: layouts.Fractal
    ) -> Offsets:
        """Return a matrix's offsets, none where nothing happens."""
        if self.empty:
            return np.zeros((0, 0), dtype=np.intp)
        return layouts.offsets(layout, rows, cols, fractal)
