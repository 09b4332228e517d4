"""Shorter forms of the C API: calls with an element count, as masks and repeats."""

from cubecore.isa.declare.instruction import Instruction
from cubecore.isa.vector.common.mask import SetMaskCount, SetMaskNorm, SetVectorMask
from cubecore.isa.vector.common.repeated import Repeated


def counted(template: Repeated, count: int) -> tuple[Instruction, ...]:
    """Return what a call with `count` elements issues, in order; `template` holds the addresses.

    The mask becomes the count, the strides leave no gaps, and afterwards the mask is in normal mode
    again: but it still holds the count, which the next call with strides takes for lanes
    (C API general notes, mask).
    """
    return (
        SetMaskCount(),
        SetVectorMask(mask_high=0, mask_low=count),
        template.contiguous(),
        SetMaskNorm(),
    )
