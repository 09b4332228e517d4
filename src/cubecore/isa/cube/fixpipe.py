"""Fixpipe: from L0C to global memory and to L1, arch 2201."""

import math
from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from cubecore import layouts
from cubecore.arrays import Array
from cubecore.chips import costs
from cubecore.chips.model import Chip
from cubecore.chips.products import (
    HALF_SUM_ARCHS,
    FixpipeRow,
    fixpipe_modes,
    fixpipe_row,
    fixpipe_rows,
    fixpipe_sources,
)
from cubecore.dtypes import FLOAT32, ElementType, element_type
from cubecore.errors import Violation
from cubecore.isa.cube.product import HANDS_OVER, UNIT_FLAGS, beside_results
from cubecore.isa.declare.archs import HALF_SUMS, SUMS, Kirin
from cubecore.isa.declare.instruction import (
    GlobalTraffic,
    Instruction,
    InstructionCost,
    Mem,
    Operand,
    Pipe,
    choice,
    instruction,
    param,
    read,
    taken,
    types,
    write,
)
from cubecore.isa.declare.registers import Registers
from cubecore.isa.declare.scale_registers import FIXPIPE_ALIGN_BYTES, UINT64
from cubecore.isa.declare.template import parameters
from cubecore.layouts import Offsets
from cubecore.numerics import round_float
from cubecore.numerics.codes import codes_of, hybrid
from cubecore.numerics.quantisation import leaky, quantised, scaled
from cubecore.units import FRACTAL_ROWS, ceil_div

_NZ2ND_M_LIMIT = 8192
_L0C_FRACTAL_ELEMENTS = FRACTAL_ROWS * FRACTAL_ROWS
_MERGED_COLUMNS = {8: 32, 4: 64}
"""Columns of a fractal of NZ by the bits of its elements; 16 for wider ones."""
_SPLIT_COLUMNS = 8
"""Columns of a fractal of float32 split by channel."""

_UNCERTAIN = (
    "NaN and infinity: CTRL[48] chooses, says the basic API for this architecture; the C API lists "
    "the modes to float16 and bfloat16 as without infinities",
    "a scaled value is a float32 product rounded once, and then rounded to the target: the "
    "precision between the two is not documented",
    "the 9 bits between rounding and offset, and the offset's sign, follow the published examples; "
    "a shift of N means N + 1 as in the page's table, which the examples contradict",
    "relu_pre 2 is leaky ReLU: a page of the Tensor API lists normal, leaky and PReLU in this "
    "order, and no page gives the numbers; a product with the factor is rounded to float32",
)
LEAKY = 2
_ARCHS = ("2201", *HALF_SUM_ARCHS)
"""The architectures of these instructions."""


_SIGNATURE = (
    *("dst", "src", "n_size", "m_size", "dst_stride", "src_stride"),
    *("unit_flag", "quant_pre", "relu_pre"),
)


@parameters
class Fixpipe(Instruction):
    """The fields common to both targets: the tile of L0C, its conversion, and NZ at the target."""

    propagates = True
    unsigned_too = ("dst",)
    scales = read(Mem.FB, "n", "scale_type", align_bytes=FIXPIPE_ALIGN_BYTES, used=True)
    src_type: ElementType = types("type in L0C", "float32", "int32")
    n_size: int = param(1, 4095, "columns")
    m_size: int = param(1, 65535, "rows")
    dst_stride: int = param(1, 2**32 - 1, "from one column of fractals to the next, 32 B")
    src_stride: int = param(0, 65535, "rows of L0C from one column of fractals to the next")
    relu_pre: int = param(
        0,
        2,
        "negative values become 0 (1) or are multiplied by set_lrelu_alpha's factor (2)",
        default=0,
    )
    unit_flag: int = choice(
        "share L0C with mad fractal by fractal: 0 no, 2 yes, 3 yes and give it back",
        *UNIT_FLAGS,
        default=0,
    )
    steps = MappingProxyType({"src_stride": "columns", "dst_stride": "columns"})
    quant_pre: str = "NoQuant"
    scale_bits: ClassVar[int] = 2**64 - 1
    """The bits of a scale's word that count."""
    scale: int | None = taken("the one scale, from set_quant_pre")
    alpha: int | None = taken("the factor of leaky ReLU, from set_lrelu_alpha")
    scales_at: int | None = taken("where in the Fixpipe buffer the scales are, from set_fpc")

    @property
    def shares_units(self) -> bool:
        """As the unit flag says."""
        return self.unit_flag != 0

    @property
    def hands_units_over(self) -> bool:
        """As the unit flag says."""
        return self.unit_flag == HANDS_OVER

    @property
    def row(self) -> FixpipeRow | None:
        """Return the row of the conversion table; None if the mode lacks the source's type."""
        return fixpipe_row(self.quant_pre, self.src_type.name)

    @property
    def dst_type(self) -> ElementType:
        """The type written; an 8-bit result may be unsigned (bit 46 of its scale)."""
        return self.src_type if self.row is None else element_type(self.row.target)

    @property
    def scale_type(self) -> ElementType:
        """The type of the scales."""
        return UINT64

    @property
    def scaling(self) -> str:
        """``none``, ``one`` scale or one for each ``column``."""
        return "none" if self.row is None else self.row.scaling

    @property
    def columns(self) -> int:
        """Columns of fractals of the tile in L0C."""
        return int(ceil_div(self.n_size, FRACTAL_ROWS))

    @property
    def column_elements(self) -> int:
        """Elements from one column of fractals to the next at the target."""
        return self.dst_stride * self.dst_type.c0

    @property
    def fractal_columns(self) -> int:
        """Columns of a fractal at the target: int8 merges two of L0C, int4 four."""
        return _MERGED_COLUMNS.get(self.dst_type.bits, FRACTAL_ROWS)

    @property
    def takes_registers(self) -> bool:
        """Scales, and the factor of leaky ReLU."""
        return self.scaling != "none" or self.relu_pre == LEAKY

    def resolved(self, registers: Registers) -> Self:
        """Take the scale, or its address, and the factor of leaky ReLU from their registers."""
        resolved = self
        if self.relu_pre == LEAKY:
            resolved = replace(resolved, alpha=registers.lrelu_alpha)
        if self.scaling == "one":
            resolved = replace(resolved, scale=registers.quant_pre)
        if self.scaling == "column":
            resolved = replace(resolved, scales_at=registers.scales_at)
        return resolved

    def unmet(self, registers: Registers) -> list[Violation]:
        """Return a violation for a scale or a factor that was not set."""
        violations = super().unmet(registers)
        if self.relu_pre == LEAKY and registers.lrelu_alpha is None:
            violations.append(Violation(f"{self.name}.relu_pre", "follow a set_lrelu_alpha", "2"))
        given = {"one": registers.quant_pre, "column": registers.scales_at}
        if given.get(self.scaling, 0) is None:
            setter = "set_quant_pre" if self.scaling == "one" else "set_fpc"
            violations.append(
                Violation(f"{self.name}.quant_pre", f"follow a {setter}", self.quant_pre)
            )
        return violations

    def operands(self) -> tuple[Operand, ...]:
        """The target, the tile, and the scales once a register has said where they are."""
        tile = tuple(o for o in self.declared if o.mem is not Mem.FB)
        scales = tuple(o for o in self.declared if o.mem is Mem.FB)
        return tile if self.scales_at is None else tile + scales

    def operand_addresses(self, addresses: tuple[int, ...]) -> tuple[int, ...]:
        """The scales are not addressed by the instruction itself."""
        return addresses if self.scales_at is None else (*addresses, self.scales_at)

    @property
    def size_bytes(self) -> int:
        """Bytes of a tile in L0C."""
        size: int = self.m_size * self.src_type.bytes_of(self.n_size)
        return size

    def offsets_scales(self) -> Offsets:
        """Shape [n_size]."""
        return np.arange(self.n_size, dtype=np.intp)

    def tile(self) -> Offsets:
        """Offsets in L0C, shape [m_size, n_size]; all columns are the first if src_stride is 0."""
        if self.src_stride == 0:
            first = layouts.offsets(layouts.NZ, self.m_size, FRACTAL_ROWS, layouts.L0C_FRACTAL)
            return first[:, np.arange(self.n_size) % FRACTAL_ROWS]
        return layouts.offsets(
            layouts.NZ, self.m_size, self.n_size, layouts.L0C_FRACTAL, self.src_stride
        )

    def nz(self, wide: int) -> Offsets:
        """Offsets of NZ with fractals `wide` columns wide; an odd 16 of int8 stay 16 wide."""
        i = np.arange(self.m_size, dtype=np.intp)[:, None]
        # Column j is element j % wide of column of fractals j // wide; where an odd sixteen is left
        # its rows are 16 wide, not `wide`, from one to the next.
        j = np.arange(self.n_size, dtype=np.intp)
        width = np.where(j < self.n_size // wide * wide, wide, FRACTAL_ROWS)
        return (j // wide) * self.column_elements + i * width + j % wide

    def padding(
        self, ready: NDArray[np.bool_], *, whole: bool = False
    ) -> tuple[NDArray[np.bool_], str] | None:
        """Columns beside written ones, of which NZ takes whole fractals; `whole`: rows as well."""
        if not (whole or self.takes_columns):
            return None
        return beside_results(ready, whole=whole)

    @property
    def takes_columns(self) -> bool:
        """True if its columns are whole ones of fractals."""
        return True

    def compute(self, inputs: Mapping[str, Array], registers: Registers) -> Mapping[str, Array]:
        """ReLU, then the conversion, with or without a scale."""
        return {"dst": self.converted(inputs, self.dst_type, finite=not registers.float_ieee)}

    def converted(self, inputs: Mapping[str, Array], target: ElementType, *, finite: bool) -> Array:
        """Return the values behind ReLU and the conversion, which is to `target`."""
        values = inputs["src"]
        if self.relu_pre == LEAKY:
            values = leaky(values, self.alpha or 0)
        elif self.relu_pre:
            values = np.maximum(values, np.zeros((), values.dtype))
        if self.scaling == "none":
            if self.quant_pre != "NoQuant":
                values = round_float(values, target, finite=finite)
            return values
        # One scale is a scalar; scales by column broadcast along rows (and matrices), and may have
        # an axis of cores in front.
        words = np.array(self.scale or 0, np.uint64)
        if self.scaling == "column":
            words = inputs["scales"]
            between = [1] * (values.ndim - words.ndim)
            words = words.reshape(*words.shape[:-1], *between, words.shape[-1])
        words = np.asarray(words & np.uint64(self.scale_bits), np.uint64)
        if target.kind != "float":
            return quantised(values, words, target)
        values = scaled(values, words)
        if target.library != "codes":
            return round_float(values, target, finite=finite)
        if self.quant_pre.endswith("_HYBRID"):
            values = hybrid(values, FLOAT32)
        return codes_of(values, target, finite=finite)

    def preconditions(self, chip: Chip) -> list[Violation]:
        """Conversion by source type; leaky ReLU of float32."""
        if self.relu_pre == LEAKY and self.src_type is not FLOAT32:
            only = "be 0 or 1 unless src_type is float32"
            return [Violation(f"{self.name}.relu_pre", only, str(self.relu_pre))]
        # Three ways to be wrong, from the specific to the general: the source type does not exist
        # on this path, the mode exists but not for this type, the mode does not exist.
        (to,) = (o.mem.label for o in self.declared if o.access.writes)
        rows = [row for row in fixpipe_rows(to) if chip.arch in row.archs]
        modes = dict.fromkeys(row.mode for row in rows if row.source == self.src_type.name)
        if self.quant_pre in modes:
            return []
        if not modes:
            kinds = dict.fromkeys(row.source for row in rows)
            need = f"be {' or '.join(kinds)} on {chip.name}"
            return [Violation(f"{self.name}.src_type", need, str(self.src_type))]
        if self.row is not None:
            need = f"be one of {', '.join(modes)} for {self.src_type} on {chip.name}"
            return [Violation(f"{self.name}.quant_pre", need, self.quant_pre)]
        need = " or ".join(fixpipe_sources(self.quant_pre))
        return [Violation(f"{self.name}.quant_pre", f"convert {need}", str(self.src_type))]

    def whole_fractals(self, columns: int, when: str) -> list[Violation]:
        """Judge the columns: whole fractals."""
        if self.n_size % columns == 0:
            return []
        must = f"be a multiple of {columns} {when}"
        return [Violation(f"{self.name}.n_size", must, str(self.n_size))]


@parameters
class Rows(Fixpipe):
    """The row-major target: global memory, and L1 on architecture 3510."""

    steps = MappingProxyType({"src_stride": "columns", "dst_stride": "target_steps"})
    dst_stride: int = param(
        1, 2**32 - 1, "elements between rows (ND), or 32 B between columns of fractals (NZ)"
    )
    quant_pre: str = "NoQuant"
    channel_split: bool = param(0, 1, "NZ of float32 in fractals of 16 x 8", default=False)
    nz2nd_en: bool = param(0, 1, "write row-major", default=False)
    nd_num: int = param(1, 65535, "matrices, from set_nd_para", default=1)
    src_nd_stride: int = param(0, 65535, "fractals between source matrices", default=0)
    dst_nd_stride: int = param(0, 2**32 - 1, "elements between destination matrices", default=0)

    @property
    def takes_registers(self) -> bool:
        """The repetition of NZ2ND, and scales."""
        return self.nz2nd_en or super().takes_registers

    def resolved(self, registers: Registers) -> Self:
        """Take the repetition from set_nd_para, and the scale."""
        resolved = super().resolved(registers)
        if not self.nz2nd_en or registers.nd_num == 1:
            return resolved
        return replace(
            resolved,
            nd_num=registers.nd_num,
            src_nd_stride=registers.src_nd_stride,
            dst_nd_stride=registers.dst_nd_stride,
        )

    @property
    def fractal_columns(self) -> int:
        """Columns of a fractal of NZ at the target."""
        return _SPLIT_COLUMNS if self.channel_split else super().fractal_columns

    @property
    def rearranges(self) -> bool:
        """True if rows of the tile are not written as rows, each once."""
        return False

    @property
    def source_pitch(self) -> int:
        """Elements of L0C from one source matrix to the next."""
        return self.src_nd_stride * _L0C_FRACTAL_ELEMENTS

    @property
    def target_steps(self) -> int:
        """Rows (ND), or columns of fractals (NZ), that the target has."""
        if self.nz2nd_en:
            return self.m_size
        return int(ceil_div(self.n_size, self.fractal_columns))

    @property
    def takes_columns(self) -> bool:
        """Rows end where n_size says."""
        return not self.nz2nd_en

    def matrices(self, stride: int) -> Offsets:
        """Return where each matrix starts, [nd_num, 1, 1]."""
        return np.arange(self.nd_num, dtype=np.intp)[:, None, None] * stride

    def offsets_src(self) -> Offsets:
        """Shape [nd_num, m_size, n_size]."""
        return self.matrices(self.source_pitch) + self.tile()

    def offsets_dst(self) -> Offsets:
        """Shape as the source's."""
        if not self.nz2nd_en:
            return self.matrices(0) + self.nz(self.fractal_columns)
        i = np.arange(self.m_size, dtype=np.intp)[:, None]
        j = np.arange(self.n_size, dtype=np.intp)
        return self.matrices(self.dst_nd_stride) + i * self.dst_stride + j

    def preconditions(self, chip: Chip) -> list[Violation]:
        """Conversion by source type; rows of NZ2ND; whole columns without it; channel split."""
        violations = super().preconditions(chip)
        if self.nz2nd_en and self.m_size > _NZ2ND_M_LIMIT:
            violations.append(
                Violation(f"{self.name}.m_size", "be in [1, 8192] with nz2nd_en", str(self.m_size))
            )
        if not self.nz2nd_en and self.nd_num != 1:
            violations.append(
                Violation(f"{self.name}.nd_num", "be 1 without nz2nd_en", str(self.nd_num))
            )
        if self.channel_split:
            violations += self._split_violations()
        elif not self.nz2nd_en:
            violations += self.whole_fractals(FRACTAL_ROWS, "without nz2nd_en")
        return violations

    def _split_violations(self) -> list[Violation]:
        subject = f"{self.name}.channel_split"
        violations = self.whole_fractals(_SPLIT_COLUMNS, "with channel_split")
        if (self.src_type, self.dst_type) != (FLOAT32, FLOAT32):
            violations.append(Violation(subject, "write float32 as it is", str(self.dst_type)))
        if self.nz2nd_en:
            violations.append(Violation(subject, "be off with nz2nd_en", "on"))
        if self.unit_flag:
            violations.append(Violation(subject, "be off with unit_flag", "on"))
        return violations

    @property
    def size_bytes(self) -> int:
        """Bytes of all tiles in L0C."""
        return self.nd_num * super().size_bytes


@instruction(
    "copy_matrix_cc_to_gm",
    Pipe.FIX,
    names={"c_api": "asc_copy_l0c2gm", "cpp": "Fixpipe", "tik": "fixpipe"},
    source="asc-devkit, asc_copy_l0c2gm (2201), Fixpipe (L0C to GM) and its features; TIK matmul",
    uncertain=(
        "without NZ2ND dst_stride counts 32 B, as the basic API and TIK matmul have it; the C API "
        "page counts elements, in words that belong to arch 3510",
        *_UNCERTAIN,
    ),
    kirin=Kirin(SUMS, SUMS, HALF_SUMS),
)
class CopyMatrixCcToGm(Rows):
    """Write a tile of L0C to global memory, converted, with or without ReLU.

    With nz2nd_en rows are written row-major, dst_stride elements apart, nd_num matrices. Otherwise
    the tile stays NZ: columns of fractals dst_stride x 32 B apart, m_size rows each, so that rows
    beyond m_size are dropped. There int8 has fractals of 16 x 32 (the last 16 columns of an odd
    number of sixteens stay 16 wide), and channel_split gives float32 fractals of 16 x 8.

    An uninitialised element stays so, but for padding: columns of NZ that a product left unwritten
    beside its last ones are filling. ReLU, plain or leaky, comes first. Modes without a scale
    round to nearest even; CTRL[48] chooses between infinities and the largest finite value, with
    NaN as 0. Modes with a scale are those of `numerics.quantisation`: DEQF16 and VDEQF16 multiply,
    the others also add the offset and clamp. unit_flag pairs with that of `mad`; it orders, and
    changes no value.
    """

    signature: ClassVar[tuple[str, ...]] = (*_SIGNATURE, "channel_split", "nz2nd_en")
    dst = write(Mem.GM, "matrix m n", "dst_type")
    src = read(Mem.L0C, "matrix m n", "src_type", layout="NZ")
    src_type: ElementType = types("type in L0C; half on Kirin alone", "float32", "int32", "float16")
    quant_pre: str = choice("conversion", *fixpipe_modes("GM", *_ARCHS), default="NoQuant")

    def cost(self, chip: Chip) -> InstructionCost:
        """Rows and bytes written."""
        rows = self.nd_num * self.m_size
        row_bytes = self.dst_type.bytes_of(self.n_size)
        pitch_bytes = self.dst_type.bytes_of(self.dst_stride) if self.nz2nd_en else 0
        cycles = costs.l0c_to_gm_cycles(chip, rows, rows * row_bytes, pitch_bytes)
        traffic = GlobalTraffic.of_rows(rows, row_bytes, pitch_bytes, writes=True)
        return InstructionCost(math.ceil(cycles), traffic=traffic)


@instruction(
    "copy_matrix_cc_to_cbuf",
    Pipe.FIX,
    names={"c_api": "asc_copy_l0c2l1", "cpp": "Fixpipe(A1)"},
    source="asc-devkit, asc_copy_l0c2l1 (2201), Fixpipe (L0C to L1) and its features",
    uncertain=(
        "dst_stride counts 32 B (basic API; the C API page: elements), and NoQuant, NZ2ND and "
        "channel split do not exist on this path (basic API; the C API page lists them)",
        "the modes to int4 are named after those of int8: the pages say that they exist, and no "
        "more; they clamp to [-8, 7]",
        *_UNCERTAIN,
    ),
    kirin=Kirin(SUMS, SUMS, HALF_SUMS),
)
class CopyMatrixCcToCbuf(Fixpipe):
    """Write a tile of L0C to L1, converted, in NZ: ready to be an operand of the next matmul.

    Columns of fractals lie dst_stride x 32 B apart, m_size rows each. int8 has fractals of 16 x 32
    (the last 16 columns of an odd number of sixteens stay 16 wide), int4 of 16 x 64. Conversions
    are those of copy_matrix_cc_to_gm.
    """

    signature = (*_SIGNATURE, "_channel_split", "_nz2nd_en")
    dst = write(Mem.L1, "m n", "dst_type", layout="NZ")
    src = read(Mem.L0C, "m n", "src_type", layout="NZ")
    src_type: ElementType = types("type in L0C; half on Kirin alone", "float32", "int32", "float16")
    quant_pre: str = choice("conversion", *fixpipe_modes("L1", *_ARCHS), default="F322F16")

    def offsets_src(self) -> Offsets:
        """Shape [m_size, n_size]."""
        return self.tile()

    def offsets_dst(self) -> Offsets:
        """Shape as the source's."""
        return self.nz(self.fractal_columns)

    def preconditions(self, chip: Chip) -> list[Violation]:
        """Conversion by source type; whole columns of fractals."""
        columns = self.fractal_columns if self.dst_type.bits < 8 else FRACTAL_ROWS
        return super().preconditions(chip) + self.whole_fractals(columns, f"for {self.dst_type}")

    def cost(self, chip: Chip) -> InstructionCost:
        """Elements over the L0C to L1 link."""
        return InstructionCost(math.ceil(costs.l0c_to_l1_cycles(chip, self.m_size * self.n_size)))
