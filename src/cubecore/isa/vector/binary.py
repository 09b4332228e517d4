"""Vector instructions of two sources, as one family."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from cubecore.chips import costs
from cubecore.chips.model import Chip
from cubecore.dtypes import ElementType
from cubecore.errors import Violation
from cubecore.isa.registers import Registers
from cubecore.isa.spec import (
    Array,
    Cost,
    Instruction,
    Mem,
    Pipe,
    instruction,
    param,
    read,
    types,
    write,
)
from cubecore.isa.vector.mask import REPEAT_BYTES, Lanes, lanes_of
from cubecore.layouts import Offsets
from cubecore.numerics import round_float, saturate, wrap

_WRAPS = 256
"""Times that a count may cover the whole Unified Buffer: zero strides read blocks again."""


@dataclass(frozen=True, kw_only=True)
class Binary(Instruction):
    """dst = function(src0, src1), lane by lane, `repeat` times 256 bytes.

    Lane e of repeat r lies at block r * repeat_stride + (e // C0) * block_stride. Lanes that the
    mask excludes keep dst's old value. repeat 0: nothing happens. In counter mode the count decides
    how many repeats there are. Integers wrap, or saturate under CTRL[53]; floats are rounded once
    and stay finite unless CTRL[48].
    """

    in_repeats = True
    function: ClassVar[Callable[[Array, Array], Any]]
    dst = write(Mem.UB, "repeat lane")
    src0 = read(Mem.UB, "repeat lane")
    src1 = read(Mem.UB, "repeat lane")
    dtype: ElementType = types("element type", "int16", "float16", "int32", "float32")
    repeat: int = param(0, 255, "repeats", default=1)
    dst_block_stride: int = param(0, 255, "32 B between dst's blocks", default=1)
    src0_block_stride: int = param(0, 255, "32 B between src0's blocks", default=1)
    src1_block_stride: int = param(0, 255, "32 B between src1's blocks", default=1)
    dst_repeat_stride: int = param(0, 255, "32 B between dst's repeats", default=8)
    src0_repeat_stride: int = param(0, 255, "32 B between src0's repeats", default=8)
    src1_repeat_stride: int = param(0, 255, "32 B between src1's repeats", default=8)
    lanes: Lanes | None = field(
        default=None,
        metadata={"doc": "the mask, taken from its registers when the instruction starts"},
    )

    def resolved(self, registers: Registers) -> Self:
        """Take the mask."""
        return replace(self, lanes=lanes_of(registers))

    @property
    def _width(self) -> int:
        return REPEAT_BYTES // self.dtype.size_bytes

    @property
    def _repeats(self) -> int:
        return self.repeat if self.lanes is None else self.lanes.repeats(self.repeat, self._width)

    def active(self) -> NDArray[np.bool_] | None:
        """Shape [repeats, lanes]."""
        return None if self.lanes is None else self.lanes.active(self._repeats, self._width)

    def offsets_dst(self) -> Offsets:
        """Shape [repeats, lanes]."""
        return self._strided(self.dst_block_stride, self.dst_repeat_stride)

    def offsets_src0(self) -> Offsets:
        """Shape [repeats, lanes]."""
        return self._strided(self.src0_block_stride, self.src0_repeat_stride)

    def offsets_src1(self) -> Offsets:
        """Shape [repeats, lanes]."""
        return self._strided(self.src1_block_stride, self.src1_repeat_stride)

    def _strided(self, block_stride: int, repeat_stride: int) -> Offsets:
        c0 = self.dtype.c0
        lane = np.arange(self._width, dtype=np.intp)
        start = np.arange(self._repeats, dtype=np.intp)[:, None] * repeat_stride
        return (start + (lane // c0) * block_stride) * c0 + lane % c0

    def compute(self, inputs: Mapping[str, Array], registers: Registers) -> Mapping[str, Array]:
        """Compute wide, then come back to the element type once."""
        floating = self.dtype.kind == "float"
        wide = np.float64 if floating else np.int64
        with np.errstate(over="ignore", invalid="ignore"):
            exact = type(self).function(inputs["src0"].astype(wide), inputs["src1"].astype(wide))
        if floating:
            return {"dst": round_float(exact, self.dtype, finite=not registers.float_ieee)}
        return {"dst": (saturate if registers.int_saturates else wrap)(exact, self.dtype)}

    def preconditions(self, chip: Chip) -> list[Violation]:
        """A normal mask has an active lane among those that the type uses (seed 003).

        A count must not be more than any UB holds: the initial mask, all ones, counts billions.
        """
        lanes = self.lanes
        if lanes is None:
            return []
        if lanes.counts:
            most = chip.ub_bytes // self.dtype.size_bytes * _WRAPS
            if lanes.count <= most:
                return []
            mask = f"{self.name}: the vector mask"
            return [Violation(mask, f"count at most {most} elements", str(lanes.count))]
        used = lanes.low | (lanes.high << 64 if self.dtype.bits == 16 else 0)
        if used:
            return []
        return [Violation(f"{self.name}: the vector mask", "have an active lane", "all lanes off")]

    def cost(self, chip: Chip) -> Cost:
        """A head and a cycle for each repeat; bank conflicts are not modelled yet (issue 6)."""
        repeats = self._repeats
        return Cost(int(costs.vector_cycles(chip, repeats)) if repeats else 0)


_TABLE: tuple[tuple[str, str, str, str, Callable[[Any, Any], Any]], ...] = (
    ("vadd", "asc_add", "Add", "the sum", np.add),
    ("vsub", "asc_sub", "Sub", "the difference", np.subtract),
    ("vmul", "asc_mul", "Mul", "the product", np.multiply),
    ("vmax", "asc_max", "Max", "the larger of two", np.maximum),
    ("vmin", "asc_min", "Min", "the smaller of two", np.minimum),
)


def _declare(name: str, c_api: str, cpp: str, doc: str, function: Callable[[Any, Any], Any]) -> Any:
    body = {
        "__doc__": f"Compute {doc} of src0 and src1, lane by lane; see `Binary`.",
        "__module__": __name__,
        "function": staticmethod(function),
    }
    declare = instruction(
        name,
        Pipe.V,
        names={"c_api": c_api, "cpp": cpp, "tik": f"vec_{name[1:]}"},
        source="seed 003; spec/isa_semantics.md 2.2 to 2.5",
        uncertain=("NaN in vmax and vmin: the result is NaN, inferred",)
        if name in {"vmax", "vmin"}
        else (),
    )
    return declare(type(name.capitalize(), (Binary,), body))


Vadd, Vsub, Vmul, Vmax, Vmin = (_declare(*row) for row in _TABLE)
