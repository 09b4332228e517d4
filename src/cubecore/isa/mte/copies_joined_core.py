"""Moves of the earlier AI Cores between the Cube's accumulators, the scalar unit and UB."""

from abc import abstractmethod
from collections.abc import Mapping
from typing import ClassVar

import numpy as np

from cubecore.arrays import Array
from cubecore.chips.model import JOINED_ARCHS, Chip
from cubecore.dtypes import ElementType, element_type
from cubecore.errors import Violation
from cubecore.isa.declare.instruction import (
    Instruction,
    InstructionCost,
    Mem,
    Pipe,
    instruction,
    param,
    read,
    types,
    write,
)
from cubecore.isa.declare.registers import Registers
from cubecore.isa.declare.template import parameters
from cubecore.isa.mte.copies import Bursts
from cubecore.layouts import Offsets
from cubecore.numerics import round_float
from cubecore.units import FRACTAL_ROWS

_FRACTAL_ELEMENTS = FRACTAL_ROWS * FRACTAL_ROWS
_CONVERSIONS = {
    ("float32", "float32"),
    ("int32", "int32"),
    ("float16", "float16"),
    ("float32", "float16"),
    ("int32", "float16"),
}


def _at(size_bytes: int, bytes_per_cycle: int) -> InstructionCost:
    return InstructionCost(-(-size_bytes // bytes_per_cycle))


class _FractalRuns(Instruction):
    """The semantics common to both ways between L0C and UB: runs of fractals with gaps."""

    n_burst: int
    len_burst: int
    src_gap: int
    dst_gap: int

    @property
    @abstractmethod
    def size_bytes(self) -> int:
        """Bytes moved."""

    def cost(self, chip: Chip) -> InstructionCost:
        """Return the cycles on the pipe, at the configured rate of the way from L0C to UB."""
        return _at(self.size_bytes, chip.require("l0c_to_ub_bytes_per_cycle", "timing"))

    def offsets_src(self) -> Offsets:
        """Shape [n_burst, elements of a run]."""
        return _fractal_runs(self.n_burst, self.len_burst, self.src_gap)

    def offsets_dst(self) -> Offsets:
        """Shape as the source's."""
        return _fractal_runs(self.n_burst, self.len_burst, self.dst_gap)


@instruction(
    "copy_matrix_cc_to_ubuf",
    Pipe.V,
    source="TIK, data_move and tensor_mov from L1OUT, as public TIK programs use them",
    archs=JOINED_ARCHS,
    uncertain=(
        "the queue is V's: TIK's matmul excludes Vector instructions (TIK matmul)",
        "int32 becomes float16 as value * scale, rounded once in float32 and once in float16",
        "ReLU comes before the conversion, as in fixpipe",
    ),
)
class CopyMatrixCcToUbuf(_FractalRuns):
    """Copy runs of fractals of 256 elements from L0C to UB, as they are or converted to half.

    Gaps lie from one run's tail to the next one's head, in fractals of each side's own type.
    """

    propagates = True
    dst = write(Mem.UB, "run element", "dst_type")
    src = read(Mem.L0C, "run element", "src_type")
    src_type: ElementType = types("type in L0C", "float32", "int32", "float16")
    dst_type: ElementType = types("type in UB", "float32", "int32", "float16")
    n_burst: int = param(1, 4095, "runs")
    len_burst: int = param(1, 65535, "length of a run, fractals")
    src_gap: int = param(0, 65535, "gap between runs in L0C, fractals", default=0)
    dst_gap: int = param(0, 65535, "gap between runs in UB, fractals", default=0)
    relu: bool = param(0, 1, "replace negative values by 0", default=False)
    scale: int = param(0, 2**32 - 1, "bits of the float32 that int32 is multiplied by", default=0)

    @property
    def size_bytes(self) -> int:
        """Bytes moved."""
        size: int = self.n_burst * self.len_burst * self.src_type.bytes_of(_FRACTAL_ELEMENTS)
        return size

    def preconditions(self, chip: Chip) -> list[Violation]:
        """Conversions that there are."""
        pair = (self.src_type.name, self.dst_type.name)
        if pair in _CONVERSIONS:
            return []
        conversions = ", ".join(f"{a} to {b}" for a, b in sorted(_CONVERSIONS))
        return [Violation(f"{self.name}.dst_type", f"be one of {conversions}", " to ".join(pair))]

    def compute(self, inputs: Mapping[str, Array], registers: Registers) -> Mapping[str, Array]:
        """ReLU, then the conversion."""
        values = inputs["src"]
        if self.relu:
            values = np.maximum(values, np.zeros((), values.dtype))
        if self.dst_type is self.src_type:
            return {"dst": values}
        if self.src_type.kind == "int":
            factor = np.array(self.scale, np.uint32).view(np.float32)
            values = values.astype(np.float32) * factor
        return {"dst": round_float(values, self.dst_type, finite=not registers.float_ieee)}


@instruction(
    "copy_ubuf_to_matrix_cc",
    Pipe.V,
    source="TIK, data_move and tensor_mov: the way back from UB to L0C",
    archs=JOINED_ARCHS,
    uncertain=(
        "the queue is V's, and lengths count fractals, as for the way from L0C to UB",
        "types stay as they are: no public page tells of a conversion on the way into L0C",
    ),
)
class CopyUbufToMatrixCc(_FractalRuns):
    """Copy runs of fractals of 256 elements from UB to L0C, as they are.

    Gaps lie from one run's tail to the next one's head, in fractals.
    """

    propagates = True
    dst = write(Mem.L0C, "run element")
    src = read(Mem.UB, "run element")
    dtype: ElementType = types("element type", "float32", "int32", "float16")
    n_burst: int = param(1, 4095, "runs")
    len_burst: int = param(1, 65535, "length of a run, fractals")
    src_gap: int = param(0, 65535, "gap between runs in UB, fractals", default=0)
    dst_gap: int = param(0, 65535, "gap between runs in L0C, fractals", default=0)

    @property
    def size_bytes(self) -> int:
        """Bytes moved."""
        size: int = self.n_burst * self.len_burst * self.dtype.bytes_of(_FRACTAL_ELEMENTS)
        return size

    def compute(self, inputs: Mapping[str, Array], registers: Registers) -> Mapping[str, Array]:
        """Pass the elements on."""
        return {"dst": inputs["src"]}


def _fractal_runs(runs: int, length: int, gap: int) -> Offsets:
    # A run is `length` fractals without a gap, so that its elements simply follow each other; runs
    # begin a run and a gap apart.
    starts = np.arange(runs, dtype=np.intp) * (length + gap)
    elements = np.arange(length * _FRACTAL_ELEMENTS, dtype=np.intp)
    return starts[:, None] * _FRACTAL_ELEMENTS + elements


_SHARED = (
    "the queue is inferred: MTE1 is what reads L1, and MTE3 what empties UB",
    "gaps count 32 B, as for every other data_move",
)


@instruction(
    "copy_cbuf_to_ubuf",
    Pipe.MTE1,
    source="TIK, data_move from L1 to UB, as public TIK programs use it",
    archs=JOINED_ARCHS,
    copies=True,
    uncertain=_SHARED,
)
class CopyCbufToUbuf(Bursts):
    """Copy runs of 32-byte blocks from L1 to UB. Bytes arrive unchanged."""

    dst = write(Mem.UB, "run block", "block")
    src = read(Mem.L1, "run block", "block")

    def cost(self, chip: Chip) -> InstructionCost:
        """Return the cycles on the pipe, at the configured rate."""
        return _at(self.size_bytes, chip.require("l1_to_ub_bytes_per_cycle", "timing"))


@instruction(
    "copy_ubuf_to_cbuf",
    Pipe.MTE3,
    source="TIK, data_move from UB to L1, as public TIK programs use it",
    archs=JOINED_ARCHS,
    copies=True,
    uncertain=_SHARED,
)
class CopyUbufToCbuf(Bursts):
    """Copy runs of 32-byte blocks from UB to L1. Bytes arrive unchanged."""

    dst = write(Mem.L1, "run block", "block")
    src = read(Mem.UB, "run block", "block")

    def cost(self, chip: Chip) -> InstructionCost:
        """Return the cycles on the pipe, at the configured rate."""
        return _at(self.size_bytes, chip.require("ub_to_l1_bytes_per_cycle", "timing"))


@instruction(
    "broadcast_ub_to_cc",
    Pipe.V,
    names={"tik": "broadcast_ub_to_l0c"},
    source="TIK, broadcast_ub_to_l0c, as public TIK programs use it",
    archs=JOINED_ARCHS,
    uncertain=(
        "the queue is V's, as for the way back",
        "the source's gap comes first: public programs step over dst's columns with the last one",
    ),
)
class BroadcastUbToCc(Instruction):
    """Copy pieces of 16 elements from UB to L0C, each to all 16 rows of a fractal.

    Gaps lie from one run's tail to the next one's head: 16 elements in UB, fractals in L0C.
    """

    propagates = True
    dst = write(Mem.L0C, "run fractal row element")
    src = read(Mem.UB, "run fractal row element")
    dtype: ElementType = types("element type", "float32", "int32", "float16")
    n_burst: int = param(1, 255, "runs")
    len_burst: int = param(1, 255, "fractals of a run")
    src_gap: int = param(0, 255, "gap between runs in UB, pieces of 16 elements", default=0)
    dst_gap: int = param(0, 255, "gap between runs in L0C, fractals", default=0)

    def offsets_dst(self) -> Offsets:
        """Shape [n_burst, len_burst, 16, 16]."""
        inner = np.arange(_FRACTAL_ELEMENTS, dtype=np.intp).reshape(FRACTAL_ROWS, FRACTAL_ROWS)
        return self._pieces(self.dst_gap) * _FRACTAL_ELEMENTS + inner

    def offsets_src(self) -> Offsets:
        """Shape as dst's; the rows of a fractal are one piece."""
        inner = np.arange(FRACTAL_ROWS, dtype=np.intp) + np.zeros((FRACTAL_ROWS, 1), np.intp)
        return self._pieces(self.src_gap) * FRACTAL_ROWS + inner

    def _pieces(self, gap: int) -> Offsets:
        starts = np.arange(self.n_burst, dtype=np.intp) * (self.len_burst + gap)
        pieces = np.arange(self.len_burst, dtype=np.intp)
        return (starts[:, None] + pieces)[:, :, None, None]

    def compute(self, inputs: Mapping[str, Array], registers: Registers) -> Mapping[str, Array]:
        """Pass the elements on."""
        return {"dst": inputs["src"]}


@parameters
class StoreRegister(Instruction):
    """Write the numbers of a register that values have left."""

    reads_left = True
    dst = write(Mem.UB, "number", "number")
    number: ElementType = types("type of the numbers", "int64", default=element_type("int64"))
    count: ClassVar[int] = 1

    def offsets_dst(self) -> Offsets:
        """Shape [count]."""
        return np.arange(self.count, dtype=np.intp)


@instruction(
    "store_kept",
    Pipe.S,
    since="m100",
    source="TIK, rsvd_scalar of vreduce",
    uncertain=("the scalar unit takes the register by way of UB here",),
)
class StoreKept(StoreRegister):
    """Write to UB how many elements the last vreduce kept."""

    register = "kept"

    def compute(self, inputs: Mapping[str, Array], registers: Registers) -> Mapping[str, Array]:
        """One number."""
        return {"dst": np.array([registers.kept], np.int64)}


@instruction(
    "store_merged",
    Pipe.S,
    since="m100",
    source="TIK, counts of vmrgsort4 and mov_vmrgsort4_sr_to_scalar",
    uncertain=("the scalar unit takes the register by way of UB here",),
)
class StoreMerged(StoreRegister):
    """Write to UB how many proposals or records the last merge took of each of four queues."""

    register = "merged"
    count = 4

    def compute(self, inputs: Mapping[str, Array], registers: Registers) -> Mapping[str, Array]:
        """Four numbers."""
        return {"dst": np.array(registers.merged, np.int64)}
