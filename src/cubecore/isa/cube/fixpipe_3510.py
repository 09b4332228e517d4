"""Fixpipe of architecture 3510, from L0C to global memory and to L1."""

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import ClassVar, Self

import numpy as np

from cubecore.arrays import Array
from cubecore.chips import costs
from cubecore.chips.model import Chip
from cubecore.chips.products import fixpipe_modes
from cubecore.dtypes import ElementType, element_type
from cubecore.errors import Violation
from cubecore.isa.cube.fixpipe import LEAKY, CopyMatrixCcToGm, Rows
from cubecore.isa.cube.fixpipe_post import (
    NO_POST,
    POST_TARGETS,
    UNCERTAIN_POST,
    WITHOUT_REGISTERS,
    post_need,
)
from cubecore.isa.cube.fixpipe_registers import is_ordinary, with_nz2nd
from cubecore.isa.declare.common_3510 import ARCH, L2_HINTS
from cubecore.isa.declare.instruction import (
    Instruction,
    InstructionCost,
    Mem,
    Pipe,
    choice,
    instruction,
    param,
    read,
    taken,
    write,
)
from cubecore.isa.declare.registers import Registers
from cubecore.isa.declare.template import parameters
from cubecore.layouts import Offsets
from cubecore.numerics.quantisation import SCALE_MASK, leaky, requantised
from cubecore.units import DATA_BLOCK_BYTES, FRACTAL_ROWS

_LATER = "nothing sets up what it takes: 0"
UNCERTAIN = (
    "a scaled value is a float32 product rounded once, and then rounded to the target: the "
    "page says of QF322F32_PRE only that it is right to 2 in 1000",
    "without infinities NaN becomes 0 in float8 too: CTRL[50], which could keep it, is not "
    "modelled",
    *UNCERTAIN_POST,
    "QF322HIF8_PRE_HYBRID rounds as the page of the registers' Cast writes hybrid rounding",
    "matrices in L0C lie src_nd_stride x 16 elements apart, as the basic API has it; the C API "
    "names fractals and 32 B in one sentence",
    "NZ2DN writes one matrix: which register repeats it is not said",
)


@parameters
class FixpipeV2(Rows):
    """Fixpipe with 3510's strides, conversions and layouts.

    Without nz2nd_en and nz2dn_en dst_stride counts elements between columns of fractals. nz2dn_en
    writes column-major: columns dst_stride elements apart, of rows that set_channel_para has lie
    one behind another in L0C (1) or further.
    """

    signature: ClassVar[tuple[str, ...]] = (
        *("dst", "src", "n_size", "m_size", "dst_stride", "src_stride", "l2_cache_ctl"),
        *("clip_relu_pre", "unit_flag", "quant_pre", "relu_pre", "channel_split", "nz2nd_en"),
        *("quant_post", "relu_post", "clip_relu_post", "eltwise_op", "eltwise_antq_en"),
        *("c0_pad_en", "broadcast_en", "nz2dn_en"),
    )
    scale_bits: ClassVar[int] = ~(0x1F << 32) & 2**64 - 1
    l2_cache_ctl: int = choice(
        "L2 hint: 0 normal, 1 last, 2 persistent, 4 disable; no value depends on it",
        *L2_HINTS,
        default=0,
    )
    clip_relu_pre: int = param(0, 255, _LATER, default=0)
    quant_post: str = choice("second conversion", NO_POST, *POST_TARGETS, default=NO_POST)
    relu_post: int = param(
        0,
        2,
        "before the second conversion negative values become 0 (1) or are multiplied by the factor "
        "in bits 63 to 45 of set_relu_alpha (2)",
        default=0,
    )
    clip_relu_post: int = param(0, 1, _LATER, default=0)
    eltwise_op: int = param(0, 255, _LATER, default=0)
    eltwise_antq_en: int = param(0, 255, _LATER, default=0)
    c0_pad_en: int = param(0, 1, _LATER, default=0)
    broadcast_en: bool = param(0, 1, "write the first row to all rows", default=False)
    nz2dn_en: bool = param(0, 1, "write column-major", default=False)
    src_nd_stride: int = param(0, 65535, "16 elements between source matrices", default=0)
    nd_num: int = param(1, 65535, "matrices, from set_nd_para_v2", default=1)
    row_stride: int = param(
        0, 65535, "16 elements between rows of L0C in NZ2DN, from set_channel_para", default=0
    )

    word_post: int | None = taken("QUANT_POST, from set_quant_post")
    alpha_post: int | None = taken("the factor of the later leaky ReLU, from set_relu_alpha")

    @property
    def takes_registers(self) -> bool:
        """The distance of rows and what the second conversion takes, too."""
        return self.nz2dn_en or self.quant_post != NO_POST or super().takes_registers

    def resolved(self, registers: Registers) -> Self:
        """Take the distance of rows, and what the second conversion takes."""
        resolved = super().resolved(registers)
        if self.nz2dn_en:
            resolved = replace(resolved, row_stride=registers.row_stride)
        if self.quant_post != NO_POST:
            resolved = replace(resolved, word_post=registers.quant_post)
            if self.relu_post == LEAKY:
                resolved = replace(resolved, alpha_post=registers.relu_alpha_post)
        return resolved

    def unmet(self, registers: Registers) -> list[Violation]:
        """The distance of rows, which must not be 0; the word and the factor of what is behind."""
        violations = super().unmet(registers)
        if self.nz2dn_en and not registers.row_stride:
            need = "follow a set_channel_para with a row_stride"
            violations.append(Violation(f"{self.name}.nz2dn_en", need, "none"))
        if self.quant_post != NO_POST and registers.quant_post is None:
            subject = f"{self.name}.quant_post"
            violations.append(Violation(subject, "follow a set_quant_post", self.quant_post))
        if self.relu_post == LEAKY and registers.relu_alpha_post is None:
            need = "follow a set_relu_alpha with bits 63 to 45"
            violations.append(Violation(f"{self.name}.relu_post", need, "none"))
        return violations

    @property
    def first_type(self) -> ElementType:
        """The type behind the first conversion."""
        return super().dst_type

    @property
    def dst_type(self) -> ElementType:
        """The type written; an 8-bit result may be unsigned (bit 9 of QUANT_POST)."""
        target = POST_TARGETS.get(self.quant_post)
        return self.first_type if target is None else element_type(target)

    @property
    def rearranges(self) -> bool:
        """Columns, or one row again and again."""
        return self.nz2dn_en or bool(self.broadcast_en)

    def compute(self, inputs: Mapping[str, Array], registers: Registers) -> Mapping[str, Array]:
        """ReLU and a conversion, and again."""
        finite = not registers.float_ieee
        values = self.converted(inputs, self.first_type, finite=finite)
        if self.quant_post == NO_POST:
            return {"dst": values}
        if self.relu_post == LEAKY:
            values = leaky(values.astype(np.float32), self.alpha_post or 0)
        elif self.relu_post:
            values = np.maximum(values, np.zeros((), values.dtype))
        return {"dst": requantised(values, self.word_post or 0, self.dst_type)}

    @property
    def column_elements(self) -> int:
        """Elements from one column of fractals to the next."""
        return self.dst_stride

    @property
    def source_pitch(self) -> int:
        """Elements of L0C from one source matrix to the next."""
        return self.src_nd_stride * FRACTAL_ROWS

    def offsets_src(self) -> Offsets:
        """Shape [nd_num, m_size, n_size]; with broadcast_en the first row for all."""
        offsets = self._offsets_of_rows()
        if not self.broadcast_en:
            return offsets
        return np.broadcast_to(offsets[..., :1, :], offsets.shape)

    def _offsets_of_rows(self) -> Offsets:
        if not self.nz2dn_en or self.row_stride == 1:
            return super().offsets_src()
        i = np.arange(self.m_size, dtype=np.intp)[:, None]
        j = np.arange(self.n_size, dtype=np.intp)
        # L0C in pieces of 16 elements: a column of fractals is `src_stride` of them, and the rows
        # in it are `row_stride` apart where channels are interleaved, else right behind each other.
        piece = j // FRACTAL_ROWS * self.src_stride + i * self.row_stride
        return self.matrices(0) + piece * FRACTAL_ROWS + j % FRACTAL_ROWS

    def offsets_dst(self) -> Offsets:
        """Shape as the source's."""
        if not self.nz2dn_en:
            return super().offsets_dst()
        i = np.arange(self.m_size, dtype=np.intp)[:, None]
        j = np.arange(self.n_size, dtype=np.intp)
        return self.matrices(0) + j * self.dst_stride + i

    @property
    def takes_columns(self) -> bool:
        """Columns end where m_size says."""
        return super().takes_columns and not self.nz2dn_en

    def preconditions(self, chip: Chip) -> list[Violation]:
        """One other layout at a time; whole blocks along what is stored together in NZ2DN."""
        violations = super().preconditions(chip) + self._violations_behind()
        if not self.nz2dn_en:
            return violations
        subject = f"{self.name}.nz2dn_en"
        if self.nz2nd_en or self.channel_split:
            other = "nz2nd_en" if self.nz2nd_en else "channel_split"
            violations.append(Violation(subject, f"be off with {other}", "on"))
        if self.unit_flag and self.row_stride != 1:
            violations.append(Violation(subject, "have a row_stride of 1 with unit_flag", "on"))
        return violations + self.whole_blocks("m_size")

    def _violations_behind(self) -> list[Violation]:
        """Judge what comes behind the first conversion, and one row for all."""
        found = [
            (word, f"be 0, as {reason}", str(int(getattr(self, word))))
            for word, reason in WITHOUT_REGISTERS.items()
            if getattr(self, word)
        ]
        if (need := post_need(self.quant_post, self.first_type.name)) is not None:
            found.append(("quant_post", need, self.quant_post))
        if self.relu_post and self.quant_post == NO_POST:
            found.append(("relu_post", "be 0 without quant_post", str(self.relu_post)))
        if self.broadcast_en and self.unit_flag:
            found.append(("broadcast_en", "be off with unit_flag", "on"))
        violations = [Violation(f"{self.name}.{word}", *said) for word, *said in found]
        if self.dst_type.bits >= 8:
            return violations
        if self.nz2nd_en or self.nz2dn_en:
            rows = "m_size" if self.nz2dn_en else "n_size"
            for word in (rows, "dst_stride"):
                if getattr(self, word) % 2:
                    need = f"be even for {self.dst_type}"
                    got = str(getattr(self, word))
                    violations.append(Violation(f"{self.name}.{word}", need, got))
            return violations
        return violations + self.whole_fractals(self.fractal_columns, f"for {self.dst_type}")

    def whole_blocks(self, word: str) -> list[Violation]:
        """Judge a size: a multiple of 32 B at the target."""
        extent: int = getattr(self, word)
        if self.dst_type.bytes_of(extent) % DATA_BLOCK_BYTES == 0:
            return []
        need = f"fill whole blocks of {DATA_BLOCK_BYTES} B"
        return [Violation(f"{self.name}.{word}", need, f"{self.dst_type.bytes_of(extent)} B")]


@instruction(
    "copy_matrix_cc_to_gm_v2",
    Pipe.FIX,
    names={"c_api": "asc_copy_l0c2gm", "cpp": "Fixpipe"},
    source="asc-devkit, asc_copy_l0c2gm (3510), Fixpipe (L0C to GM) and on-the-fly quantisation",
    uncertain=UNCERTAIN,
    archs=ARCH,
)
class CopyMatrixCcToGmV2(FixpipeV2, CopyMatrixCcToGm):
    """Write a tile of L0C to global memory as `copy_matrix_cc_to_gm`, with 3510's conversions.

    Without nz2nd_en and nz2dn_en dst_stride counts elements. A scale's bits 36 to 32 do not count:
    nothing is shifted. Further modes scale to float32, float16, bfloat16 and float8_e4m3fn, rounded
    to nearest even, and to hifloat8, of two numbers as near to the one away from 0; with CTRL[48]
    what is too large for float8_e4m3fn becomes NaN. nz2dn_en writes
    column-major, columns dst_stride elements apart, and broadcast_en the first row to all rows.
    quant_post makes int4, int8 or int16 of half, by the factor and the offset of set_quant_post.
    """

    signature = FixpipeV2.signature
    quant_pre: str = choice("conversion", *fixpipe_modes("GM", "3510"), default="NoQuant")


@instruction(
    "copy_matrix_cc_to_cbuf_v2",
    Pipe.FIX,
    names={"c_api": "asc_copy_l0c2l1", "cpp": "Fixpipe(A1)"},
    source="asc-devkit, asc_copy_l0c2l1 (3510), Fixpipe (L0C to L1) and on-the-fly quantisation",
    uncertain=(
        *UNCERTAIN,
        "channel split is for global memory alone, as the basic API has it; the C API lists it",
    ),
    archs=ARCH,
)
class CopyMatrixCcToCbufV2(FixpipeV2):
    """Write a tile of L0C to L1, converted or as it is, in NZ, row-major or column-major.

    In NZ columns of fractals lie dst_stride elements apart, m_size rows each; 8-bit results have
    fractals of 16 x 32. nz2nd_en writes rows and nz2dn_en columns dst_stride elements apart.
    Conversions are those of copy_matrix_cc_to_gm_v2.
    """

    signatures = (
        tuple(
            word
            for word in FixpipeV2.signature
            if word not in {"l2_cache_ctl", "broadcast_en", "nz2dn_en"}
        ),
    )
    dst = write(Mem.L1, "matrix m n", "dst_type")
    src = read(Mem.L0C, "matrix m n", "src_type", layout="NZ")
    quant_pre: str = choice("conversion", *fixpipe_modes("L1", "3510"), default="NoQuant")
    channel_split: bool = param(0, 0, "for global memory alone: 0", default=False)

    def preconditions(self, chip: Chip) -> list[Violation]:
        """Rows of whole blocks too."""
        violations = super().preconditions(chip)
        return violations + self.whole_blocks("n_size") if self.nz2nd_en else violations

    def cost(self, chip: Chip) -> InstructionCost:
        """Elements over the L0C to L1 link."""
        elements = self.nd_num * self.m_size * self.n_size
        return InstructionCost(math.ceil(costs.l0c_to_l1_cycles(chip, elements)))


@instruction(
    "set_nd_para_v2",
    Pipe.S,
    names={"c_api": "asc_set_l0c2gm_nz2nd", "cpp": "SetFixpipeNz2ndFlag"},
    source="asc-devkit, asc_set_l0c2gm_nz2nd (3510) and SetFixpipeNz2ndFlag",
    archs=ARCH,
)
class SetNdParaV2(Instruction):
    """Set how many matrices an NZ2ND fixpipe writes, and their distances."""

    nd_num: int = param(1, 65535, "matrices")
    src_nd_stride: int = param(0, 65535, "16 elements between source matrices")
    dst_nd_stride: int = param(1, 2**32 - 1, "elements between destination matrices")

    def apply(self, registers: Registers) -> Registers:
        """Keep the three values."""
        return with_nz2nd(registers, self.nd_num, self.src_nd_stride, self.dst_nd_stride)


@instruction(
    "set_channel_para",
    Pipe.S,
    names={"c_api": "asc_set_l0c2gm_channel_para"},
    source="asc-devkit, asc_set_l0c2gm_channel_para (3510)",
    archs=ARCH,
)
class SetChannelPara(Instruction):
    """Set how far rows of L0C lie apart for an NZ2DN fixpipe: bits 63 to 48, in 16 elements."""

    config: int = param(0, 2**64 - 1, "the register's 64 bits")

    def apply(self, registers: Registers) -> Registers:
        """Keep the distance."""
        return replace(registers, row_stride=self.config >> 48)


@instruction(
    "set_relu_alpha",
    Pipe.S,
    names={"c_api": "asc_set_l0c2gm_relu_alpha"},
    source="asc-devkit, asc_set_l0c2gm_relu_alpha (3510)",
    archs=ARCH,
)
class SetReluAlpha(Instruction):
    """Set the factor of fixpipe's leaky ReLU: bits 31 to 13, the upper 19 of a float32.

    Bits 63 to 45 are that of the ReLU of the second conversion.
    """

    config: int = param(0, 2**64 - 1, "the register's 64 bits")

    def preconditions(self, chip: Chip) -> list[Violation]:
        """Ordinary numbers or 0."""
        factors = self.config & SCALE_MASK, self.config >> 32 & SCALE_MASK
        if all(map(is_ordinary, factors)):
            return []
        need = "hold no infinity, NaN or subnormal number"
        return [Violation(f"{self.name}.config", need, f"{self.config:#x}")]

    def apply(self, registers: Registers) -> Registers:
        """Keep the factors."""
        return replace(
            registers,
            lrelu_alpha=self.config & SCALE_MASK,
            relu_alpha_post=self.config >> 32 & SCALE_MASK,
        )
