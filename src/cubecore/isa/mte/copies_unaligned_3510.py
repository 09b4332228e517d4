"""Copies of any length of architecture 3510, and the loops that repeat them.

Runs lie from head to head, in bytes, in global memory and in the Unified Buffer. Registers repeat
the whole copy in an inner and an outer loop.
"""

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from cubecore.chips import costs
from cubecore.chips.model import Chip
from cubecore.dtypes import ElementType, element_type
from cubecore.errors import Violation
from cubecore.isa.declare import family
from cubecore.isa.declare.common_3510 import ARCH, FAR, L2_HINTS, NEAR
from cubecore.isa.declare.instruction import (
    GlobalTraffic,
    Instruction,
    InstructionCost,
    Mem,
    Pipe,
    choice,
    instruction,
    param,
    read,
    taken,
    types,
    write,
)
from cubecore.isa.declare.registers import CopyLoops, Registers
from cubecore.isa.declare.template import parameters
from cubecore.isa.mte.copies import l1_traffic
from cubecore.layouts import Offsets
from cubecore.units import DATA_BLOCK_BYTES, align_up

_BYTE = element_type("uint8")
_TYPES = (
    *("int8", "uint8", "float8_e4m3fn", "float8_e5m2", "int16", "uint16", "float16", "bfloat16"),
    *("int32", "uint32", "float32", "hifloat8"),
)


@parameters
class _Aligned(Instruction):
    """n_burst runs of len_burst bytes, again in each turn of the two loops that registers hold.

    Strides count bytes from one run's head to the next one's. The stride in the Unified Buffer is a
    multiple of 32, or len_burst: then runs follow each other there without padding.
    """

    in_ub: ClassVar[str]
    in_gm: ClassVar[str]
    loops_of: ClassVar[str]
    size_unit = 1
    run_unit: ClassVar[int] = 1
    """Bytes that `len_burst` counts."""
    counted_in: ClassVar[str] = "it is a number of bytes"
    dtype: ElementType = types("element type", *_TYPES)
    n_burst: int = param(1, 4095, "runs")
    len_burst: int = param(1, NEAR, "length of a run, bytes")
    l2_cache_mode: int = choice(
        "L2 hint: 0 first victim, 1 last victim, 2 persistent, 4 none; no value depends on it",
        *L2_HINTS,
        default=0,
    )
    src_stride: int = param(0, FAR, "from run to run at the source, bytes", default=0)
    dst_stride: int = param(0, FAR, "from run to run at the destination, bytes", default=0)
    loops: CopyLoops | None = taken("the loops")

    def resolved(self, registers: Registers) -> Self:
        """Take the loops."""
        held: CopyLoops = getattr(registers, self.loops_of)
        return self if held == CopyLoops() else replace(self, loops=held)

    @property
    def turns(self) -> CopyLoops:
        """The loops; a turn of each before they are set."""
        return self.loops or CopyLoops()

    @property
    def run_bytes(self) -> int:
        """Bytes of a run."""
        return self.len_burst * self.run_unit

    @property
    def size_bytes(self) -> int:
        """Bytes moved."""
        return self.turns.inner * self.turns.outer * self.n_burst * self.run_bytes

    def _steps(self, side: str) -> tuple[int, int, int]:
        """Bytes from one turn of the outer loop, of the inner loop, from one run to the next."""
        outer, inner = (getattr(self.turns, f"{loop}_{side}") for loop in ("outer", "inner"))
        stride: int = getattr(self, f"{side}_stride")
        return outer, inner, stride if self.n_burst > 1 else 0

    @property
    def unit(self) -> ElementType:
        """Return the unit of the copy: elements where all are aligned to their size, else bytes."""
        return self.dtype if self.splits_elements() is None else _BYTE

    def splits_elements(self) -> tuple[str, str, str] | None:
        """Return the stride in global memory that is no whole number of elements."""
        size, side = self.dtype.size_bytes, self.in_gm
        names = (f"loop2_{side}_stride", f"loop1_{side}_stride", f"{side}_stride")
        for name, step in zip(names, self._steps(side), strict=True):
            if step % size:
                need = f"be a multiple of {self.dtype}'s {size} B"
                return name, need, f"{step} B; strides in global memory count bytes"
        return None

    @property
    def packed(self) -> bool:
        """True if runs follow each other in UB, not each from a block on."""
        stride: int = getattr(self, f"{self.in_ub}_stride")
        return self.n_burst > 1 and stride == self.run_bytes and stride % DATA_BLOCK_BYTES != 0

    def _starts(self, side: str) -> Offsets:
        """Return units to the start of each run: [outer, inner, run, 1]."""
        counts = (self.turns.outer, self.turns.inner, self.n_burst)
        starts = np.zeros((1, 1, 1, 1), np.intp)
        for axis, (count, step) in enumerate(zip(counts, self._steps(side), strict=True)):
            shape = [1, 1, 1, 1]
            shape[axis] = count
            starts = starts + (np.arange(count, dtype=np.intp) * step).reshape(shape)
        return np.asarray(starts // self.unit.size_bytes, np.intp)

    def _elements(self, size_bytes: int) -> Offsets:
        return np.arange(size_bytes // self.unit.size_bytes, dtype=np.intp)

    def preconditions(self, chip: Chip) -> list[Violation]:
        """Whole elements; in UB whole blocks, unless runs follow each other there."""
        violations = []
        size, stride = self.dtype.size_bytes, getattr(self, f"{self.in_ub}_stride")
        if self.len_burst % size:
            whole = f"be a multiple of {self.dtype}'s {size} B"
            subject = f"{self.name}.len_burst"
            violations.append(Violation(subject, whole, str(self.len_burst), self.counted_in))
        apart = self.n_burst > 1 and stride not in {0, self.run_bytes}
        if apart and stride % DATA_BLOCK_BYTES:
            need = f"be len_burst or a multiple of {DATA_BLOCK_BYTES} B"
            violations.append(Violation(f"{self.name}.{self.in_ub}_stride", need, str(stride)))
        return violations


_RUN_OF = "the first value, where it fills, is that of each run"
_LOOPS = "with a loop of 0 turns nothing happens: the page allows it and says no more"


@instruction(
    "copy_gm_to_ubuf_align_v2",
    Pipe.MTE2,
    names={"c_api": "asc_copy_gm2ub_align"},
    source="asc-devkit, asc_copy_gm2ub_align (3510) and DataCopyPad from GM to UB",
    uncertain=(
        _RUN_OF,
        _LOOPS,
        "what is left of a run's last block is filled as DataCopyPad has it: without padding with "
        "the first value, else as the padding",
        "where runs follow each other, what is left of the last block is set_mov_pad_val's with "
        "enable_constant_pad, and unwritten without",
        "cache modes that drop what L2 holds are refused: no value of L2 is modelled",
    ),
    archs=ARCH,
    copies=True,
)
class CopyGmToUbufAlignV2(_Aligned):
    """Copy runs of any length from global memory to the Unified Buffer, with padding.

    Padding holds what set_mov_pad_val set (before that it stays unwritten), or without
    enable_constant_pad the run's first element.
    """

    in_ub, in_gm, loops_of = "dst", "src", "to_ub"
    signature = (
        *("dst", "src", "n_burst", "len_burst", "left_padding_num", "right_padding_num"),
        *("enable_constant_pad", "l2_cache_mode", "src_stride", "dst_stride"),
    )
    dst = write(Mem.UB, "outer inner run element", "unit")
    src = read(Mem.GM, "outer inner run element", "unit")
    left_padding_num: int = param(0, 32, "elements in front of each run in UB", default=0)
    right_padding_num: int = param(0, 32, "elements behind each run in UB", default=0)
    enable_constant_pad: bool = param(0, 1, "pad with set_mov_pad_val's value", default=False)

    @property
    def _front(self) -> int:
        return self.left_padding_num * self.dtype.size_bytes

    @property
    def _pads(self) -> bool:
        return bool(self.left_padding_num or self.right_padding_num)

    @property
    def _whole(self) -> int:
        """Bytes of a run in UB, with its padding."""
        padded = self._front + self.run_bytes + self.right_padding_num * self.dtype.size_bytes
        return int(align_up(padded, DATA_BLOCK_BYTES))

    def offsets_dst(self) -> Offsets:
        """Shape [outer, inner, runs, elements with padding]; [outer, inner, 1, all] if packed."""
        if self.packed:
            end = int(align_up(self.n_burst * self.run_bytes, DATA_BLOCK_BYTES))
            return self._starts("dst")[:, :, :1] + self._elements(end)
        return self._starts("dst") + self._elements(self._whole)

    def offsets_src(self) -> Offsets:
        """Shape as dst's; what the register fills is negative."""
        unit = self.unit.size_bytes
        taken = self._starts("src") + self._elements(self.run_bytes)
        pattern_of = self.dtype.size_bytes // unit
        if self.packed:
            rest = -self.n_burst * self.run_bytes % DATA_BLOCK_BYTES // unit
            fill = -1 - np.arange(rest, dtype=np.intp) % pattern_of
            dense = taken.reshape(*taken.shape[:2], 1, -1)
            return np.concatenate([dense, np.broadcast_to(fill, (*dense.shape[:3], rest))], axis=3)
        count = taken.shape[3]
        element = self._elements(self._whole) - self._front // unit
        inside = (element >= 0) & (element < count)
        pattern = np.arange(element.size, dtype=np.intp) % pattern_of
        constant = self._pads and self.enable_constant_pad
        filled = -1 - pattern if constant else taken[..., pattern]
        return np.where(inside, taken[..., np.clip(element, 0, count - 1)], filled)

    def filling(self) -> tuple[NDArray[np.bool_], str] | None:
        """The rest of a run's blocks, around it, unless the register gives its value."""
        if self.packed or (self._pads and self.enable_constant_pad):
            return None
        element = self._elements(self._whole) * self.unit.size_bytes - self._front
        outside = (element < 0) | (element >= self.run_bytes)
        if not outside.any():
            return None
        runs = "runs" if self.size_bytes > self.run_bytes else "a run"
        return np.broadcast_to(outside, self.offsets_dst().shape), f"{runs} of {self.run_bytes} B"

    def fill(self, registers: Registers) -> bytes | None:
        """Give the padding's element."""
        if registers.pad_value is None or not self.enable_constant_pad:
            return None
        size = self.dtype.size_bytes
        return (registers.pad_value & (1 << 8 * size) - 1).to_bytes(size, "little")

    def preconditions(self, chip: Chip) -> list[Violation]:
        """Padding of at most 32 B, none between runs that follow each other; runs keep apart."""
        violations = super().preconditions(chip)
        for side in ("left", "right"):
            subject = f"{self.name}.{side}_padding_num"
            number: int = getattr(self, f"{side}_padding_num")
            padding = number * self.dtype.size_bytes
            if padding > DATA_BLOCK_BYTES:
                most = f"fill at most {DATA_BLOCK_BYTES} B"
                violations.append(Violation(subject, most, f"{padding} B"))
            elif number and self.n_burst > 1 and self.dst_stride == self.run_bytes:
                violations.append(
                    Violation(subject, "be 0 where dst_stride is len_burst", str(number))
                )
        return violations or self._apart()

    def _apart(self) -> list[Violation]:
        """Return a violation if a loop iteration or a burst overwrites the next one."""
        extent = self.n_burst * self.run_bytes if self.packed else self._whole
        counts = (self.turns.outer, self.turns.inner, 1 if self.packed else self.n_burst)
        names = ("loop2_dst_stride", "loop1_dst_stride", "dst_stride")
        steps = zip(counts, self._steps("dst"), names, strict=True)
        for count, step, name in reversed(list(steps)):
            extent = int(align_up(extent, DATA_BLOCK_BYTES))
            if count > 1 and step < extent:
                need = f"be {extent} or more, what is written before the next"
                return [Violation(f"{self.name}.{name}", need, str(step))]
            extent += (count - 1) * step if count else 0
        return []

    def cost(self, chip: Chip) -> InstructionCost:
        """One transfer of a vector core's MTE2, a row for each run."""
        if not self.size_bytes:
            return InstructionCost(0)
        rows = self.size_bytes // self.run_bytes
        cycles = costs.gm_to_ub_cycles(chip, self.size_bytes, rows, self.src_stride)
        traffic = GlobalTraffic(self.size_bytes, self.run_bytes, writes=False, of_ub=True)
        return InstructionCost(math.ceil(cycles), traffic=traffic)


@instruction(
    "copy_ubuf_to_gm_align_v2",
    Pipe.MTE3,
    names={"c_api": "asc_copy_ub2gm_align"},
    source="asc-devkit, asc_copy_ub2gm_align (3510) and DataCopyPad from UB to GM",
    uncertain=(_LOOPS,),
    archs=ARCH,
    copies=True,
)
class CopyUbufToGmAlignV2(_Aligned):
    """Copy runs of any length from the Unified Buffer to global memory."""

    in_ub, in_gm, loops_of = "src", "dst", "from_ub"
    signature = (
        *("dst", "src", "n_burst", "len_burst", "l2_cache_mode", "dst_stride", "src_stride"),
    )
    dst = write(Mem.GM, "outer inner run element", "unit")
    src = read(Mem.UB, "outer inner run element", "unit")

    def offsets_dst(self) -> Offsets:
        """Shape [outer, inner, runs, elements]."""
        return self._starts("dst") + self._elements(self.run_bytes)

    def offsets_src(self) -> Offsets:
        """Shape as dst's."""
        return self._starts("src") + self._elements(self.run_bytes)

    def unmet(self, registers: Registers) -> list[Violation]:
        """An atomic store moves elements of the type that was set."""
        if not registers.atomic or self.unit.bits >= element_type(registers.atomic_type).bits:
            return super().unmet(registers)
        wanted = f"move elements of {registers.atomic_type}, as set_atomic says"
        return [Violation(self.name, wanted, f"runs of {self.unit}")]

    def cost(self, chip: Chip) -> InstructionCost:
        """One transfer of a vector core's MTE3."""
        if not self.size_bytes:
            return InstructionCost(0)
        traffic = GlobalTraffic(self.size_bytes, self.run_bytes, writes=True, of_ub=True)
        return InstructionCost(
            math.ceil(costs.ub_to_gm_cycles(chip, self.size_bytes)), traffic=traffic
        )


@instruction(
    "copy_gm_to_cbuf_align_v2",
    Pipe.MTE2,
    names={"c_api": "asc_copy_gm2l1_align"},
    source="asc-devkit, asc_copy_gm2l1_align (3510)",
    uncertain=(
        _RUN_OF,
        _LOOPS,
        "len_burst counts 32 B and is a multiple of the element's bytes, as the page has both",
        "a stride of 0 is that of runs that follow each other: the page's example has it for two",
    ),
    archs=ARCH,
    copies=True,
)
class CopyGmToCbufAlignV2(CopyGmToUbufAlignV2):
    """Copy runs of 32 B from global memory to L1; padding holds each run's first element."""

    loops_of, size_unit, run_unit = "to_l1", 0, DATA_BLOCK_BYTES
    counted_in = "it counts 32 B"
    dst = write(Mem.L1, "outer inner run element", "unit")
    enable_constant_pad: bool = param(0, 0, "the page: for false alone", default=False)

    def _steps(self, side: str) -> tuple[int, int, int]:
        """Bytes as of other copies; runs without a stride follow each other."""
        outer, inner, _ = super()._steps(side)
        stride: int = getattr(self, f"{side}_stride")
        follows = self._whole if side == "dst" else self.run_bytes
        return outer, inner, (stride or follows) if self.n_burst > 1 else 0

    def cost(self, chip: Chip) -> InstructionCost:
        """One strided transfer of an AIC's MTE2."""
        if not self.size_bytes:
            return InstructionCost(0)
        rows, pitch = self.size_bytes // self.run_bytes, self._steps("src")[2]
        cycles = costs.gm_to_l1_cycles(chip, rows, self.run_bytes, pitch)
        traffic = l1_traffic(chip, rows, self.run_bytes, pitch)
        return InstructionCost(math.ceil(cycles), traffic=traffic)


# --- registers


@parameters
class _SetLoop(Instruction):
    """Part of the loops that repeat a copy of any length; they stay until they are set anew."""

    loops_of: ClassVar[str]
    sets: ClassVar[Mapping[str, str]]
    """The part of the loops that each parameter is."""

    def apply(self, registers: Registers) -> Registers:
        """Keep the part."""
        held: CopyLoops = getattr(registers, self.loops_of)
        part: dict[str, Any] = {part: getattr(self, name) for name, part in self.sets.items()}
        loops: dict[str, Any] = {self.loops_of: replace(held, **part)}
        return replace(registers, **loops)


_DIRECTIONS = {
    "outtoub": ("gm2ub", "to_ub", "from global memory to UB"),
    "ubtoout": ("ub2gm", "from_ub", "from UB to global memory"),
    "outtol1": ("gm2l1", "to_l1", "from global memory to L1"),
}
_SIDES = ("src", "dst")
_LOOPS_OF = ((1, "inner"), (2, "outer"))
_MULTIPLE = {
    "src": {"ubtoout": DATA_BLOCK_BYTES},
    "dst": dict.fromkeys(("outtoub", "outtol1"), DATA_BLOCK_BYTES),
}


def _stride(loop: int, side: str, direction: str) -> tuple[Any, Any]:
    multiple = _MULTIPLE[side].get(direction, 1)
    high = NEAR if multiple > 1 else FAR
    where = "source" if side == "src" else "destination"
    doc = f"bytes between turns of loop {loop} at the {where}"
    return int, param(0, high, doc, multiple=multiple)


for _direction, (_call, _register, _text) in _DIRECTIONS.items():
    for _loop, _held in _LOOPS_OF:
        family.member(
            _SetLoop,
            f"set_loop{_loop}_stride_{_direction}",
            Pipe.S,
            doc=f"Set how far turns of the {_held} loop of copies {_text} lie apart",
            body={
                "__module__": __name__,
                "loops_of": _register,
                "sets": {f"loop{_loop}_{side}_stride": f"{_held}_{side}" for side in _SIDES},
            },
            fields={
                f"loop{_loop}_{side}_stride": _stride(_loop, side, _direction) for side in _SIDES
            },
            names={"c_api": f"asc_set_{_call}_loop{_loop}_stride"},
            source=f"asc-devkit, asc_set_{_call}_loop{_loop}_stride (3510)",
            archs=ARCH,
        )
    family.member(
        _SetLoop,
        f"set_loop_size_{_direction}",
        Pipe.S,
        doc=f"Set how often the two loops repeat copies {_text}",
        body={
            "__module__": __name__,
            "loops_of": _register,
            "sets": {f"loop{n}_size": held for n, held in _LOOPS_OF},
        },
        fields={
            f"loop{n}_size": (int, param(0, NEAR, f"turns of the {held} loop"))
            for n, held in _LOOPS_OF
        },
        names={"c_api": f"asc_set_{_call}_loop_size"},
        source=f"asc-devkit, asc_set_{_call}_loop_size (3510)",
        archs=ARCH,
    )


@instruction(
    "set_pad_val_outtoub",
    Pipe.S,
    names={"c_api": "asc_set_gm2ub_pad"},
    source="asc-devkit, asc_set_gm2ub_pad (3510, deprecated)",
    archs=ARCH,
)
class SetPadValOuttoub(Instruction):
    """Set what copies with padding fill with, as set_mov_pad_val does."""

    pad_val: int = param(0, 2**32 - 1, "the value's bits")

    def apply(self, registers: Registers) -> Registers:
        """Keep the bits."""
        return replace(registers, pad_value=self.pad_val)


@instruction(
    "set_pad_val_outtol1",
    Pipe.S,
    names={"c_api": "asc_set_gm2l1_pad"},
    source="asc-devkit, asc_set_gm2l1_pad (3510)",
    uncertain=("no copy reads it: asc_copy_gm2l1_align pads with its first element alone",),
    archs=ARCH,
)
class SetPadValOuttol1(Instruction):
    """Set what copies to L1 with padding fill with, which the page of the copy does not offer."""

    pad_val: int = param(0, 2**32 - 1, "the value's bits")
