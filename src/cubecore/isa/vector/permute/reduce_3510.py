"""The largest and the smallest of a tensor on architecture 3510: ReduceMax and ReduceMin.

On 2201 these are reductions of repeats and a register that keeps the extreme of all; 3510 has no
such register. On the chip each is code of the register unit, which no page shows.
"""

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from cubecore.arrays import Array
from cubecore.dtypes import ElementType
from cubecore.isa.declare import family
from cubecore.isa.declare.common_3510 import ARCH, PageTypes
from cubecore.isa.declare.family import HALF_AND_FLOAT
from cubecore.isa.declare.instruction import Mem, Operand, Pipe, param, read, types, write
from cubecore.isa.declare.registers import Registers
from cubecore.isa.declare.template import parameters
from cubecore.isa.vector.common.family import LONG, WHOLE
from cubecore.isa.vector.permute.reduce import Reduction, with_aligned_dst
from cubecore.layouts import Offsets

_NUMBERS = (*WHOLE, *HALF_AND_FLOAT)


@parameters
class TensorExtreme(Reduction):
    """dst = the extreme of all repeats, and if indexed its first index, counted through them.

    The index has the value's width (bits of an unsigned integer); dst is aligned to both. NaN is
    the extreme of what it is among. A half that is not finite is clamped (NaN gives 0) unless
    CTRL[48].
    """

    signature = ("dst", "src", "repeat", "src_block_stride", "src_repeat_stride")
    dst = write(Mem.UB, "part", align_bytes=2)
    src = read(Mem.UB, "repeat lane")
    dtype: ElementType = types(
        "element type", *_NUMBERS, *LONG, late=PageTypes(_NUMBERS, by_count=LONG)
    )
    indexed: bool = param(0, 1, "write the index, too", default=False)

    def operands(self) -> tuple[Operand, ...]:
        """Dst and src; dst is aligned to the result."""
        return with_aligned_dst(self.declared, (1 + self.indexed) * self.dtype.size_bytes)

    def offsets_dst(self) -> Offsets:
        """Shape [value, and index]; nothing of no repeats."""
        return np.arange((2 if self.indexed else 1) if self.repeats else 0, dtype=np.intp)

    def active(self, operand: str) -> NDArray[np.bool_] | None:
        """The mask, of src; the result is written."""
        return super().active(operand) if operand == "src" else None

    def grouped(self, size: int) -> NDArray[np.bool_] | None:
        """Return which lanes are on, as one group of all."""
        on = self.active("src")
        return None if on is None else on.reshape(1, size)

    def compute(self, inputs: Mapping[str, Array], registers: Registers) -> Mapping[str, Array]:
        """Find the extreme, the first of several."""
        src = inputs["src"]
        if not self.repeats:
            return {"dst": np.zeros((*src.shape[:-2], 0), src.dtype)}
        flat = src.reshape(*src.shape[:-2], self.repeats * self.width)
        value, place = self.extremes(flat, flat.shape[-1], registers)
        index = place.astype(f"u{self.dtype.size_bytes}").view(self.dtype.numpy)
        return {"dst": np.concatenate((value, index), axis=-1) if self.indexed else value}


for _word, _largest in (("max", True), ("min", False)):
    family.member(
        TensorExtreme,
        f"reduce_{_word}",
        Pipe.V,
        doc=f"Find the {'largest' if _largest else 'smallest'} of a tensor",
        body={"__module__": __name__, "takes_largest": _largest},
        names={"cpp": f"Reduce{_word.title()}"},
        source=f"asc-devkit, Reduce{_word.title()} (3510)",
        uncertain=(
            "the function is code of the register unit that no page shows: its cost is that of "
            "repeats of 256 B at the chip's rate (rough)",
            "where NaN or zeros of both signs are among the elements, the result is 2201's",
        ),
        archs=ARCH,
    )
