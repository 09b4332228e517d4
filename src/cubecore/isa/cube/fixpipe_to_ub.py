"""Fixpipe of architecture 3510 from L0C to the Unified Buffers of an AIC's AIVs."""

import math
from dataclasses import replace

import numpy as np

from cubecore.chips.model import Chip
from cubecore.chips.products import fixpipe_modes
from cubecore.errors import Violation
from cubecore.isa.cube.fixpipe_3510 import UNCERTAIN, FixpipeV2
from cubecore.isa.cube.fixpipe_post import NO_POST
from cubecore.isa.declare.common_3510 import ARCH
from cubecore.isa.declare.instruction import (
    InstructionCost,
    Mem,
    Pipe,
    choice,
    instruction,
    param,
    read,
    write,
)
from cubecore.isa.mte.partner import AIVS, ToPartner
from cubecore.layouts import Offsets

ONE, BY_ROWS, BY_COLUMNS = 0, 1, 2
"""The targets: one AIV, half of the rows each, half of the columns each."""
_HALF_COLUMNS = 32


@instruction(
    "copy_matrix_cc_to_ub",
    Pipe.FIX,
    names={"c_api": "asc_copy_l0c2ub", "cpp": "Fixpipe(isToUB)"},
    source="asc-devkit, asc_copy_l0c2ub, Fixpipe (L0C to UB), two destinations of L0C to UB",
    uncertain=(
        *UNCERTAIN,
        "dual_dst_ctl of the C API is taken as dualDstCtl, whose numbers its page has",
        "takes the configured rate of the data path, with no head: no measured copy is public",
    ),
    archs=ARCH,
)
class CopyMatrixCcToUb(ToPartner, FixpipeV2):
    """Write a tile of L0C to the Unified Buffer of an AIV, or half of it to each of both.

    Layouts and conversions are those of copy_matrix_cc_to_gm_v2. dual_dst_ctl 1 halves the rows and
    2 the columns: AIV0 gets the first half, and AIV1 the other one at the same address.
    """

    signature = (
        *("dst", "src", "n_size", "m_size", "dst_stride", "src_stride", "dual_dst_ctl"),
        *("sub_blockid", "clip_relu_pre", "unit_flag", "quant_pre", "relu_pre", "channel_split"),
        *("nz2nd_en", "quant_post", "relu_post", "clip_relu_post", "eltwise_op"),
        *("eltwise_antq_en", "c0_pad_en", "broadcast_en", "nz2dn_en"),
    )
    dst = write(Mem.UB, "matrix m n", "dst_type")
    src = read(Mem.L0C, "matrix m n", "src_type", layout="NZ")
    quant_pre: str = choice("conversion", *fixpipe_modes("UB", "3510"), default="NoQuant")
    dual_dst_ctl: int = choice(
        "targets: 0 one AIV, 1 half of the rows each, 2 half of the columns each",
        *(ONE, BY_ROWS, BY_COLUMNS),
        default=ONE,
    )
    sub_blockid: bool = param(0, 1, "the AIV that it is written to, with one target", default=False)
    channel_split: bool = param(0, 0, "for global memory alone: 0", default=False)

    @property
    def parts(self) -> tuple[int, ...]:
        """The AIVs."""
        return (int(self.sub_blockid),) if self.dual_dst_ctl == ONE else tuple(range(AIVS))

    def offsets_dst(self) -> Offsets:
        """Shape as the source's; each half is in its AIV's window."""
        pitch = self.window_elements
        if self.dual_dst_ctl == ONE:
            return super().offsets_dst() + int(self.sub_blockid) * pitch
        by_rows = self.dual_dst_ctl == BY_ROWS
        half = replace(
            self,
            dual_dst_ctl=ONE,
            sub_blockid=False,
            m_size=self.m_size // (AIVS if by_rows else 1),
            n_size=self.n_size // (1 if by_rows else AIVS),
        )
        offsets = half.offsets_dst()
        return np.concatenate([offsets, offsets + pitch], axis=-2 if by_rows else -1)

    def preconditions(self, chip: Chip) -> list[Violation]:
        """Halves of whole rows or columns of fractals; rows of whole blocks."""
        violations = super().preconditions(chip)
        subject = f"{self.name}.dual_dst_ctl"
        if self.dual_dst_ctl == BY_ROWS and self.m_size % AIVS:
            need = "be a multiple of 2 for two targets by rows"
            violations.append(Violation(f"{self.name}.m_size", need, str(self.m_size)))
        if self.dual_dst_ctl == BY_COLUMNS and self.n_size % _HALF_COLUMNS:
            need = f"be a multiple of {_HALF_COLUMNS} for two targets by columns"
            violations.append(Violation(f"{self.name}.n_size", need, str(self.n_size)))
        features = {
            "nz2dn_en": self.nz2dn_en,
            "quant_pre": self.quant_pre != "NoQuant",
            "relu_pre": self.relu_pre,
            "quant_post": self.quant_post != NO_POST,
            "broadcast_en": self.broadcast_en,
        }
        with_one = next((name for name, is_on in features.items() if is_on), None)
        if self.dual_dst_ctl != ONE and with_one is not None:
            violations.append(Violation(subject, f"be 0 with {with_one}", str(self.dual_dst_ctl)))
        return violations + self.whole_blocks("n_size") if self.nz2nd_en else violations

    def cost(self, chip: Chip) -> InstructionCost:
        """Bytes written at the configured rate from L0C to UB."""
        size = self.nd_num * self.m_size * self.dst_type.bytes_of(self.n_size)
        rate: int = chip.require("l0c_to_ub_bytes_per_cycle", "timing")
        return InstructionCost(math.ceil(size / rate))
