"""Fixpipe: from L0C to global memory, arch 2201."""

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Self

import numpy as np

from cubecore import layouts
from cubecore.chips import costs
from cubecore.chips.model import Chip
from cubecore.chips.products import FIXPIPE_CONVERSIONS
from cubecore.dtypes import ElementType, element_type
from cubecore.errors import Violation
from cubecore.isa.cube import UNIT_FLAGS
from cubecore.isa.registers import Registers
from cubecore.isa.spec import (
    Array,
    Cost,
    GlobalTraffic,
    Instruction,
    Mem,
    Pipe,
    choice,
    instruction,
    param,
    read,
    types,
    write,
)
from cubecore.layouts import Offsets
from cubecore.numerics import round_float
from cubecore.units import FRACTAL_ROWS

_QUANT: dict[str, tuple[str, ...]] = {}
for (_source, _), _mode in FIXPIPE_CONVERSIONS.items():
    _QUANT[_mode] = (*_QUANT.get(_mode, ()), _source)
_WRITES = {(of, mode): element_type(to) for (of, to), mode in FIXPIPE_CONVERSIONS.items()}
_NZ2ND_M_LIMIT = 8192
_L0C_FRACTAL_ELEMENTS = FRACTAL_ROWS * FRACTAL_ROWS


@instruction(
    "copy_matrix_cc_to_gm",
    Pipe.FIX,
    names={"c_api": "asc_copy_l0c2gm", "cpp": "Fixpipe", "tik": "fixpipe"},
    source="asc-devkit, asc_copy_l0c2gm (2201) and NZ2ND; seed 004; spec/isa_semantics.md 3.5",
    uncertain=(
        "without NZ2ND dst_stride counts elements (C API page; the basic API counts 32 B)",
        "F322F16 and F322BF16 turn NaN into 0: inferred from their lack of an INF_NAN mode",
        "relu comes before the conversion: inferred (the order does not change a result here)",
    ),
)
class CopyMatrixCcToGm(Instruction):
    """Write a tile of L0C to global memory, converted, with or without ReLU.

    With nz2nd_en rows are written row-major, dst_stride elements apart, nd_num matrices; otherwise
    the tile stays NZ: columns of 16, dst_stride elements apart, m_size rows each, so that rows
    beyond m_size are dropped. An uninitialised element stays so. F322F16 and
    F322BF16: round to nearest even, overflow and infinity become the largest finite value.
    unit_flag pairs with that of `mad`; it orders, and changes no value.
    """

    propagates = True
    dst = write(Mem.GM, "matrix m n", "dst_type")
    src = read(Mem.L0C, "matrix m n", "src_type", layout="NZ")
    src_type: ElementType = types("type in L0C", "float32", "int32")
    n_size: int = param(1, 4095, "columns")
    m_size: int = param(1, 65535, "rows")
    dst_stride: int = param(1, 2**32 - 1, "elements between rows (ND) or columns of fractals (NZ)")
    src_stride: int = param(0, 65535, "rows of L0C from one column of fractals to the next")
    quant_pre: str = choice("conversion", *_QUANT, default="NoQuant")
    relu_pre: bool = param(0, 1, "replace negative values by 0", default=False)
    nz2nd_en: bool = param(0, 1, "write row-major", default=False)
    unit_flag: int = choice(
        "share L0C with mad fractal by fractal: 0 no, 2 yes, 3 yes and give it back",
        *UNIT_FLAGS,
        default=0,
    )
    nd_num: int = param(1, 65535, "matrices, from set_nd_para", default=1)
    src_nd_stride: int = param(0, 65535, "fractals between source matrices", default=0)
    dst_nd_stride: int = param(0, 2**32 - 1, "elements between destination matrices", default=0)

    @property
    def dst_type(self) -> ElementType:
        """The type written."""
        return _WRITES.get((self.src_type.name, self.quant_pre), self.src_type)

    def resolved(self, registers: Registers) -> Self:
        """Take the repetition from set_nd_para."""
        if not self.nz2nd_en or registers.nd_num == 1:
            return self
        return replace(
            self,
            nd_num=registers.nd_num,
            src_nd_stride=registers.src_nd_stride,
            dst_nd_stride=registers.dst_nd_stride,
        )

    def _matrices(self, stride: int) -> Offsets:
        return np.arange(self.nd_num, dtype=np.intp)[:, None, None] * stride

    def offsets_src(self) -> Offsets:
        """Shape [nd_num, m_size, n_size]."""
        tile = layouts.offsets(
            layouts.NZ, self.m_size, self.n_size, layouts.L0C_FRACTAL, self.src_stride
        )
        return self._matrices(self.src_nd_stride * _L0C_FRACTAL_ELEMENTS) + tile

    def offsets_dst(self) -> Offsets:
        """Shape as the source's."""
        i = np.arange(self.m_size, dtype=np.intp)[:, None]
        j = np.arange(self.n_size, dtype=np.intp)
        if self.nz2nd_en:
            return self._matrices(self.dst_nd_stride) + i * self.dst_stride + j
        column = (j // FRACTAL_ROWS) * self.dst_stride + i * FRACTAL_ROWS + j % FRACTAL_ROWS
        return self._matrices(0) + column

    def compute(self, inputs: Mapping[str, Array], registers: Registers) -> Mapping[str, Array]:
        """ReLU, then the conversion."""
        values = inputs["src"]
        if self.relu_pre:
            values = np.maximum(values, np.zeros((), values.dtype))
        if self.quant_pre != "NoQuant":
            values = round_float(values, self.dst_type, finite=True)
        return {"dst": values}

    def preconditions(self, chip: Chip) -> list[Violation]:
        """Conversion by source type; rows of NZ2ND; whole columns without it."""
        found = []
        if self.src_type.name not in _QUANT[self.quant_pre]:
            need = " or ".join(_QUANT[self.quant_pre])
            found.append(Violation(f"{self.name}.quant_pre", f"convert {need}", str(self.src_type)))
        if self.nz2nd_en and self.m_size > _NZ2ND_M_LIMIT:
            found.append(
                Violation(f"{self.name}.m_size", "be in [1, 8192] with nz2nd_en", str(self.m_size))
            )
        if not self.nz2nd_en and self.nd_num != 1:
            found.append(
                Violation(f"{self.name}.nd_num", "be 1 without nz2nd_en", str(self.nd_num))
            )
        if not self.nz2nd_en and self.n_size % FRACTAL_ROWS:
            found.append(
                Violation(
                    f"{self.name}.n_size",
                    f"be a multiple of {FRACTAL_ROWS} without nz2nd_en",
                    str(self.n_size),
                )
            )
        return found

    def cost(self, chip: Chip) -> Cost:
        """Rows and bytes written."""
        rows = self.nd_num * self.m_size
        row_bytes = self.dst_type.bytes_of(self.n_size)
        cycles = costs.l0c_to_gm_cycles(chip, rows, rows * row_bytes)
        traffic = GlobalTraffic(rows * row_bytes, row_bytes, writes=True)
        return Cost(math.ceil(cycles), traffic=traffic)


@instruction(
    "set_nd_para",
    Pipe.S,
    names={"c_api": "asc_set_l0c2gm_nz2nd", "cpp": "SetFixpipeNz2ndFlag"},
    source="asc-devkit, asc_set_l0c2gm_nz2nd and NZ2ND",
    uncertain=(
        "src_nd_stride counts fractals of 256 elements, as NZ2ND says; the C API page: 32 B",
    ),
)
class SetNdPara(Instruction):
    """Set how many matrices an NZ2ND fixpipe writes, and their distances."""

    nd_num: int = param(1, 65535, "matrices")
    src_nd_stride: int = param(0, 65535, "fractals between source matrices")
    dst_nd_stride: int = param(1, 2**32 - 1, "elements between destination matrices")

    def apply(self, registers: Registers) -> Registers:
        """Keep the three values."""
        return replace(
            registers,
            nd_num=self.nd_num,
            src_nd_stride=self.src_nd_stride,
            dst_nd_stride=self.dst_nd_stride,
        )
