"""The registers of a core that instructions read besides memory."""

from dataclasses import dataclass

FULL_MASK = 2**64 - 1
CTRL_FLOAT_IEEE_BIT = 48
"""CTRL[48]: clear, float results stay finite; set, infinities and NaN appear."""
CTRL_INT_SATURATE_BIT = 53
"""CTRL[53]: clear, integer arithmetic wraps; set, it saturates."""


@dataclass(frozen=True, slots=True)
class Registers:
    """Mask (two words and the mode), CTRL, the repetition of NZ2ND, and HF32.

    The defaults are the state after the vendor's initialisation: normal mode, all lanes active.
    """

    mask_high: int = FULL_MASK
    mask_low: int = FULL_MASK
    mask_counts: bool = False
    ctrl: int = 0
    nd_num: int = 1
    src_nd_stride: int = 0
    dst_nd_stride: int = 0
    hf32_enabled: bool = False
    hf32_toward_zero: bool = False

    @property
    def hf32(self) -> str:
        """How `mad` rounds float32 inputs: ``off`` or one of `numerics.HF32_ROUNDINGS`."""
        if not self.hf32_enabled:
            return "off"
        return "toward_zero" if self.hf32_toward_zero else "nearest_even"

    @property
    def float_ieee(self) -> bool:
        """Whether float results may be infinite or NaN."""
        return bool(self.ctrl >> CTRL_FLOAT_IEEE_BIT & 1)

    @property
    def int_saturates(self) -> bool:
        """Whether integer arithmetic clamps instead of wrapping."""
        return bool(self.ctrl >> CTRL_INT_SATURATE_BIT & 1)
