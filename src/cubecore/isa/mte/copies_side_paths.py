"""Moves beside the Cube's main path: GM to L0, GM to L1 by fractals, L1 to GM and to L0C.

No page gives their cost: they are taken at the rate of the main path over the same memories.
"""

import math
from collections.abc import Mapping

import numpy as np

from cubecore.arrays import Array
from cubecore.chips import costs
from cubecore.chips.model import Chip
from cubecore.dtypes import RAW_BYTE, ElementType
from cubecore.errors import Violation
from cubecore.isa.declare.archs import Kirin
from cubecore.isa.declare.instruction import (
    GlobalTraffic,
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
from cubecore.isa.mte.copies import FRACTAL_TYPES, Bursts, Load2d, l1_traffic
from cubecore.layouts import Offsets
from cubecore.numerics import round_float
from cubecore.units import DATA_BLOCK_BYTES, FRACTAL_BYTES

_RATE = "no page gives the cost: that of copy_gm_to_cbuf over as many bytes is taken"
_GAPS_UNIT = "gaps count 32 B: the page names the unit of dst_gap alone, its example agrees"


@parameters
class _GlobalFractals(Load2d):
    """Move 512-byte fractals from global memory: repeat of them, one after another; 0: nothing."""

    src_stride: int = param(0, 65535, "fractals from one source to the next", default=0)

    def cost(self, chip: Chip) -> InstructionCost:
        """One strided transfer of MTE2, a row for each fractal."""
        pitch = self.src_stride * FRACTAL_BYTES
        cycles = costs.gm_to_l1_cycles(chip, self.repeat, FRACTAL_BYTES, pitch)
        traffic = l1_traffic(chip, self.repeat, FRACTAL_BYTES, pitch)
        return (
            InstructionCost(math.ceil(cycles), traffic=traffic)
            if self.repeat
            else InstructionCost(0)
        )


@instruction(
    "load_gm_to_ca",
    Pipe.MTE2,
    names={"c_api": "asc_copy_gm2l0a", "cpp": "LoadData(GM to A2)"},
    source="asc-devkit, asc_copy_gm2l0a (2201); LoadData (2D)",
    uncertain=(_RATE,),
    copies=True,
    kirin=Kirin(),
)
class LoadGmToCa(_GlobalFractals):
    """Move fractals from global memory to L0A, each unchanged."""

    pointers = FRACTAL_TYPES
    dst = write(Mem.L0A, "fractal", "block")
    src = read(Mem.GM, "fractal", "block")


@instruction(
    "load_gm_to_cb",
    Pipe.MTE2,
    names={"c_api": "asc_copy_gm2l0b", "cpp": "LoadData(GM to B2)"},
    source="asc-devkit, asc_copy_gm2l0b (2201); LoadData (2D)",
    uncertain=(_RATE, "units are those of asc_copy_gm2l0a: this page names none"),
    copies=True,
    kirin=Kirin(),
)
class LoadGmToCb(_GlobalFractals):
    """Move fractals from global memory to L0B, each unchanged."""

    pointers = FRACTAL_TYPES
    dst = write(Mem.L0B, "fractal", "block")
    src = read(Mem.GM, "fractal", "block")


@instruction(
    "load_gm_to_cbuf",
    Pipe.MTE2,
    names={"c_api": "asc_copy_gm2l1", "cpp": "LoadData(GM to A1)"},
    source="asc-devkit, asc_copy_gm2l1 (2201), 2D form; LoadData (GM to L1, 2D)",
    uncertain=(
        _RATE,
        "C++ tells the two forms of asc_copy_gm2l1 with four numbers apart by void pointers; here "
        "numbers alone mean runs, and this form is called by its parameters' names",
    ),
    copies=True,
    kirin=Kirin(),
)
class LoadGmToCbuf(_GlobalFractals):
    """Move fractals from global memory to L1, each unchanged."""

    dst = write(Mem.L1, "fractal", "block")
    src = read(Mem.GM, "fractal", "block")


@instruction(
    "copy_cbuf_to_gm",
    Pipe.MTE3,
    names={"c_api": "asc_copy_l12gm", "cpp": "DataCopy(A1 to GM)"},
    source="asc-devkit, asc_copy_l12gm (2201), table of the AIC's flags, samples of Fixpipe to L1",
    uncertain=(
        _RATE,
        _GAPS_UNIT,
        "MTE3, as the samples wait for it and the table of an AIC's flags has it; the C API's page "
        "says MTE1",
    ),
    copies=True,
    kirin=Kirin(),
)
class CopyCbufToGm(Bursts):
    """Copy runs of 32-byte blocks from L1 to global memory. Bytes arrive unchanged."""

    size_unit = 0
    dst = write(Mem.GM, "run block", "block")
    src = read(Mem.L1, "run block", "block")

    def cost(self, chip: Chip) -> InstructionCost:
        """One strided transfer."""
        pitch = (self.len_burst + self.dst_gap) * DATA_BLOCK_BYTES
        cycles = costs.gm_to_l1_cycles(chip, self.n_burst, self.row_bytes, pitch)
        traffic = GlobalTraffic.of_rows(self.n_burst, self.row_bytes, pitch, writes=True)
        return InstructionCost(math.ceil(cycles), traffic=traffic)


_TO_L0C = ("float16", "bfloat16", "float32", "int32", "uint32")
_NARROWED = ("float16", "bfloat16")


@instruction(
    "copy_cbuf_to_matrix_cc",
    Pipe.MTE1,
    names={"c_api": "asc_copy_l12l0c", "cpp": "DataCopy(A1 to CO1)"},
    source="asc-devkit, asc_copy_l12l0c (2201)",
    uncertain=(
        "no page gives the cost: the rate of L1 to L0A is taken",
        "gaps count 32 B on both sides, as the page's example has it; its table names no unit",
        "a narrowed run takes half as many blocks of L0C, and narrowing is that of fixpipe: to "
        "nearest even, finite unless CTRL[48]; the page lists the types and no more",
    ),
)
class CopyCbufToMatrixCc(Instruction):
    """Copy runs from L1 to L0C, element by element; float32 may become float16 or bfloat16.

    Values, not bytes: an uninitialised element travels. A run is len_burst blocks of the source.
    """

    propagates = True
    dst = write(Mem.L0C, "run value", "dst_type")
    src = read(Mem.L1, "run value", "src_type")
    src_type: ElementType = types("type in L1", *_TO_L0C)
    dst_type: ElementType = types("type in L0C", *_TO_L0C)
    n_burst: int = param(1, 4095, "runs")
    len_burst: int = param(1, 65535, "length of a run, 32 B blocks of the source")
    src_gap: int = param(0, 65535, "gap between runs in L1, 32 B blocks", default=0)
    dst_gap: int = param(0, 65535, "gap between runs in L0C, 32 B blocks", default=0)

    def offsets_src(self) -> Offsets:
        """Shape [n_burst, values of a run]."""
        return self._runs(self.src_type, self.src_gap)

    def offsets_dst(self) -> Offsets:
        """Shape as the source's."""
        return self._runs(self.dst_type, self.dst_gap)

    def _runs(self, kind: ElementType, gap: int) -> Offsets:
        # As many values on both sides, blocks as the type has them: narrowed, half as many in L0C.
        values = self.len_burst * self.src_type.c0
        starts = np.arange(self.n_burst, dtype=np.intp) * (values + gap * kind.c0)
        return starts[:, None] + np.arange(values, dtype=np.intp)

    @property
    def size_bytes(self) -> int:
        """Bytes moved."""
        return self.n_burst * self.len_burst * DATA_BLOCK_BYTES

    def compute(self, inputs: Mapping[str, Array], registers: Registers) -> Mapping[str, Array]:
        """As it is, or rounded."""
        values = inputs["src"]
        if self.dst_type is not self.src_type:
            values = round_float(values, self.dst_type, finite=not registers.float_ieee)
        return {"dst": values}

    def preconditions(self, chip: Chip) -> list[Violation]:
        """The same type, or float32 narrowed."""
        narrowed = self.src_type.name == "float32" and self.dst_type.name in _NARROWED
        if self.dst_type is self.src_type or narrowed:
            return []
        need = f"be {self.src_type}" + (
            " or one of " + ", ".join(_NARROWED) if self.src_type.name == "float32" else ""
        )
        return [Violation(f"{self.name}.dst_type", need, self.dst_type.name)]

    def cost(self, chip: Chip) -> InstructionCost:
        """Bytes over the L1 to L0A link."""
        size = self.size_bytes
        return InstructionCost(math.ceil(costs.l1_to_l0a_cycles(chip, size)))


_INSERTED = {mode: 1 << mode - 1 for mode in range(1, 6)}
"""Bytes of data in each 32 B of L1 by mode; the rest is padding."""
_REMOVED = {6: 4, 7: 8, 8: 16}
"""Bytes that are kept of each 32 B of global memory by mode."""


@instruction(
    "copy_gm_to_cbuf_pad",
    Pipe.MTE2,
    variants={f"asc_copy_gm2l1_pad{mode}": {"mode": mode} for mode in (*_INSERTED, *_REMOVED)},
    source="asc-devkit, asc_copy_gm2l1 (2201 and, for what the modes mean, 3510)",
    uncertain=(
        _RATE,
        "modes 1 to 5 put 1, 2, 4, 8 and 16 B of data into each 32 B: the pages count what is "
        "inserted once in bytes and four times in units of 2 B",
        "what the padding holds is on no page: it stays unwritten",
        "a run of modes 1 to 5 is len_burst blocks of L1, as the page of 3510 says; of the others, "
        "of global memory",
    ),
    copies=True,
)
class CopyGmToCbufPad(Instruction):
    """Copy runs from global memory to L1, each 32 bytes padded from fewer, or cut to fewer.

    Modes 1 to 5 read 1, 2, 4, 8 or 16 bytes of each block of L1, one behind the other, and leave
    the block's other bytes unwritten. Modes 6 to 8 keep the first 4, 8 or 16 bytes of each block of
    global memory, one behind the other. Gaps lie from one run's tail to the next one's head.
    """

    size_unit = DATA_BLOCK_BYTES
    dst = write(Mem.L1, "run byte", "byte")
    src = read(Mem.GM, "run byte", "byte")
    mode: int = param(1, 8, "what is inserted or removed")
    n_burst: int = param(1, 4095, "runs")
    len_burst: int = param(1, 65535, "length of a run, 32 B blocks of the longer side")
    src_gap: int = param(0, 65535, "gap between runs at the source, 32 B blocks", default=0)
    dst_gap: int = param(0, 65535, "gap between runs at the destination, 32 B blocks", default=0)

    @property
    def byte(self) -> ElementType:
        """Return the element type of the copy: bytes."""
        return RAW_BYTE

    @property
    def size_bytes(self) -> int:
        """Bytes of the longer side."""
        return self.n_burst * self.len_burst * DATA_BLOCK_BYTES

    @property
    def kept(self) -> int:
        """Bytes of data in 32 bytes of the longer side."""
        return (_INSERTED | _REMOVED)[self.mode]

    @property
    def _inserts(self) -> bool:
        return self.mode in _INSERTED

    def _runs(self, run_bytes: int, gap: int, inside: Offsets) -> Offsets:
        starts = np.arange(self.n_burst, dtype=np.intp) * (run_bytes + gap * DATA_BLOCK_BYTES)
        return starts[:, None] + inside

    def offsets_src(self) -> Offsets:
        """Shape as the destination's; padding is negative."""
        blocks, kept = self.len_burst, self.kept
        # The longer side is walked byte by byte. Where it is the destination, a byte behind the
        # `kept` first ones of its block is padding; where it is the source, only the kept ones are
        # taken.
        if self._inserts:
            offset = np.arange(blocks * DATA_BLOCK_BYTES, dtype=np.intp)
            block, inside = offset // DATA_BLOCK_BYTES, offset % DATA_BLOCK_BYTES
            taken = self._runs(blocks * kept, self.src_gap, block * kept + inside)
            return np.where(inside < kept, taken, -1)
        offset = np.arange(blocks * kept, dtype=np.intp)
        inside = offset // kept * DATA_BLOCK_BYTES + offset % kept
        return self._runs(blocks * DATA_BLOCK_BYTES, self.src_gap, inside)

    def offsets_dst(self) -> Offsets:
        """Shape [n_burst, bytes of a run in L1]."""
        count = self.len_burst * (DATA_BLOCK_BYTES if self._inserts else self.kept)
        return self._runs(count, self.dst_gap, np.arange(count, dtype=np.intp))

    def fill(self, registers: Registers) -> bytes | None:
        """Padding stays unwritten."""
        return None

    def cost(self, chip: Chip) -> InstructionCost:
        """One strided transfer, a row for each run."""
        taken = self.kept if self._inserts else DATA_BLOCK_BYTES
        row = self.len_burst * taken
        pitch = row + self.src_gap * DATA_BLOCK_BYTES
        cycles = costs.gm_to_l1_cycles(chip, self.n_burst, row, pitch)
        traffic = l1_traffic(chip, self.n_burst, row, pitch)
        return InstructionCost(math.ceil(cycles), traffic=traffic)
