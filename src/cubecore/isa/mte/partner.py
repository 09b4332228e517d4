"""Copies into a memory of another part of an AI Core, architecture 3510.

An AIC writes to the Unified Buffers of its AIVs, and an AIV to the L1 of its AIC. For the machine
that memory is a window of global memory, one behind another for all cores of a launch
(`machine.memory.partner_windows`): a copy is `sent` there from its core, and arrives where the
other part has waited for it. What orders both is judged as among cores that share global memory.
"""

from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import ClassVar, Self

from cubecore.chips.model import Chip
from cubecore.dtypes import DATA_BLOCK
from cubecore.errors import Violation
from cubecore.isa.declare.common_3510 import ARCH
from cubecore.isa.declare.instruction import (
    Instruction,
    InstructionCost,
    Mem,
    Operand,
    Pipe,
    instruction,
    param,
    read,
    taken,
    write,
)
from cubecore.isa.declare.template import parameters
from cubecore.isa.mte.copies import Bursts
from cubecore.layouts import Offsets
from cubecore.units import DATA_BLOCK_BYTES, ceil_div

WINDOW_BYTES: Mapping[Mem, int] = MappingProxyType({Mem.UB: 1 << 18, Mem.L1: 1 << 19})
"""The distance of the windows of two AIVs' Unified Buffers, or of two AICs' L1."""
AIVS = 2
"""Windows of Unified Buffers that an AI Core has, whichever AIVs a launch uses."""
_MIX = "be in a mix launch with that AIV"


@parameters
class ToPartner(Instruction):
    """A copy whose dst is in a memory of another part of the AI Core."""

    window: ClassVar[Mem] = Mem.UB
    refused: tuple[Violation, ...] | None = taken("what the target's place breaks, once it is sent")

    @property
    def to_partner(self) -> bool:  # type: ignore[override]
        """True until it is sent."""
        return not self.is_sent

    @property
    def is_sent(self) -> bool:
        """True if dst is in the windows of global memory."""
        return self.refused is not None

    def operands(self) -> tuple[Operand, ...]:
        """Return dst in its window, once it is sent."""
        operands = super().operands()
        if not self.is_sent:
            return operands
        return tuple(_in_window(o) if o.access.writes else o for o in operands)

    @property
    def window_elements(self) -> int:
        """Elements of dst from one window to the next; 0 until it is sent."""
        if not self.is_sent:
            return 0
        (dst,) = (operand for operand in self.declared if operand.access.writes)
        return WINDOW_BYTES[self.window] * 8 // self.element(dst).bits

    @property
    def parts(self) -> tuple[int, ...]:
        """The AIVs that it writes to, by their numbers; none where it writes to the AIC."""
        return ()

    def sent(self, address: int, size: int, parts: int) -> Self:
        """Return it as it is made from a core, with what dst's address and the launch break.

        `size` are the bytes of dst's memory, and `parts` the AIVs that an AIC of the launch has.
        """
        broken: list[Violation] = []
        subject = f"{self.name}.dst"
        if address % DATA_BLOCK_BYTES:
            need = f"start at a multiple of {DATA_BLOCK_BYTES} B in {self.window.label}"
            broken.append(Violation(subject, need, str(address)))
        end = address + self._extent()
        if address < 0 or end > size:
            need = f"stay inside {self.window.label} (0 to {size} B)"
            broken.append(Violation(subject, need, f"bytes [{address}, {end})"))
        lacking = next((part for part in self.parts if part >= parts), None)
        if lacking is not None:
            got = f"AIV{lacking} of a launch with {parts or 'no'} AIV{'' if parts == 1 else 's'}"
            broken.append(Violation(self.name, _MIX, got))
        return replace(self, refused=tuple(broken))

    def _extent(self) -> int:
        offsets = self.offsets("dst")
        (dst,) = (operand for operand in self.declared if operand.access.writes)
        bits: int = self.element(dst).bits
        return (int(offsets.max()) + 1) * bits // 8 if offsets.size else 0

    def preconditions(self, chip: Chip) -> list[Violation]:
        """Return what dst's place breaks, too."""
        return [*super().preconditions(chip), *(self.refused or ())]


def _in_window(operand: Operand) -> Operand:
    return replace(operand, mem=Mem.GM, align_bytes=DATA_BLOCK_BYTES)


_LINK = ("takes the configured rate of the data path, with no head: no measured copy is public",)


@instruction(
    "copy_ubuf_to_cbuf_v2",
    Pipe.MTE3,
    names={"c_api": "asc_copy_ub2l1", "cpp": "DataCopy"},
    source="asc-devkit, asc_copy_ub2l1 and DataCopy (UB to L1)",
    uncertain=_LINK,
    archs=ARCH,
    copies=True,
)
class CopyUbufToCbufV2(ToPartner, Bursts):
    """Copy runs of 32 B from an AIV's Unified Buffer to its AIC's L1. Bytes arrive unchanged."""

    window = Mem.L1
    signature = ("dst", "src", "n_burst", "len_burst", "src_gap", "dst_gap")
    dst = write(Mem.L1, "run block", "block")
    src = read(Mem.UB, "run block", "block")

    def cost(self, chip: Chip) -> InstructionCost:
        """The configured rate from UB to L1."""
        rate: int = chip.require("ub_to_l1_bytes_per_cycle", "timing")
        return InstructionCost(ceil_div(self.size_bytes, rate))


@instruction(
    "copy_cbuf_to_ubuf_v2",
    Pipe.MTE1,
    names={"c_api": "asc_copy_l12ub", "cpp": "DataCopyL1ToUB"},
    source="asc-devkit, asc_copy_l12ub and DataCopyL1ToUB",
    uncertain=_LINK,
    archs=ARCH,
    copies=True,
)
class CopyCbufToUbufV2(ToPartner, Bursts):
    """Copy runs of 32 B from an AIC's L1 to the Unified Buffer of one of its AIVs, unchanged."""

    signature = ("dst", "src", "sub_blockid", "n_burst", "len_burst", "src_gap", "dst_gap")
    dst = write(Mem.UB, "run block", "block")
    src = read(Mem.L1, "run block", "block")
    sub_blockid: bool = param(0, 1, "the AIV that it is copied to", default=False)

    @property
    def parts(self) -> tuple[int, ...]:
        """The AIV."""
        return (int(self.sub_blockid),)

    def offsets_dst(self) -> Offsets:
        """Shape [n_burst, len_burst], in the AIV's window."""
        return super().offsets_dst() + int(self.sub_blockid) * self.window_elements

    def cost(self, chip: Chip) -> InstructionCost:
        """The configured rate from L1 to UB."""
        rate: int = chip.require("l1_to_ub_bytes_per_cycle", "timing")
        return InstructionCost(ceil_div(self.size_bytes, rate))


assert all(size % DATA_BLOCK.size_bytes == 0 for size in WINDOW_BYTES.values())
