"""The broadcast of a tensor to a shape, which the class API has on architecture 3510 alone."""

import math
from typing import ClassVar

import numpy as np

from cubecore.chips.model import Chip
from cubecore.errors import Violation
from cubecore.isa.declare import family
from cubecore.isa.declare.common_3510 import ARCH
from cubecore.isa.declare.instruction import Mem, Pipe, param, read, write
from cubecore.isa.declare.template import parameters
from cubecore.isa.vector.elementwise.functions_3510 import UNCERTAIN, Counted
from cubecore.layouts import Offsets

AXES = range(9)
_MOST = 2**18


@parameters
class BroadcastTensor(Counted):
    """Axes go from the outermost; one of src of size 1 is repeated along dst's."""

    inputs: ClassVar[tuple[str, ...]] = ("src",)
    signature = ("dst", "src", "count")
    function = staticmethod(lambda x: x)
    dst = write(Mem.UB, "element")
    src = read(Mem.UB, "element")

    def _shape(self, of: str) -> tuple[int, ...]:
        return tuple(int(getattr(self, f"{of}{axis}")) for axis in AXES)

    def offsets_src(self) -> Offsets:
        """Shape [count]: where each element of dst comes from."""
        shape = self._shape("src_size")
        places = np.arange(math.prod(shape), dtype=np.intp).reshape(shape)
        return np.broadcast_to(places, self._shape("dst_size")).ravel()

    def offsets(self, operand: str) -> Offsets:
        """Shape [count]."""
        return self.offsets_src() if operand == "src" else super().offsets(operand)

    def preconditions(self, chip: Chip) -> list[Violation]:
        """An axis of src is dst's or 1; count is dst's elements."""
        for axis, (src, dst) in enumerate(
            zip(self._shape("src_size"), self._shape("dst_size"), strict=True)
        ):
            if src not in {1, dst}:
                subject = f"{self.name}.src_size{axis}"
                return [Violation(subject, f"be 1 or {dst}, as dst's", str(src))]
        total = math.prod(self._shape("dst_size"))
        if total != self.count:
            return [Violation(f"{self.name}.count", f"be {total}, dst's elements", str(self.count))]
        return []


family.member(
    BroadcastTensor,
    "broadcast",
    Pipe.V,
    doc="Repeat a tensor along axes of another one",
    body={"__module__": __name__},
    fields={
        f"{of}_size{axis}": (int, param(1, _MOST, f"{of}'s elements along axis {axis}", default=1))
        for of in ("dst", "src")
        for axis in AXES
    },
    names={"cpp": "Broadcast(BroadcastTiling)"},
    source="asc-devkit, Broadcast (3510)",
    uncertain=UNCERTAIN,
    archs=ARCH,
)
