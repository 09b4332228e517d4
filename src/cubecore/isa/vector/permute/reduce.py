"""Reductions: of a whole repeat, of each block of 32 bytes, of pairs; and what they leave behind.

Sums add neighbours, then neighbours of those, each sum rounded (and in half clamped) by itself.
"""

from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache
from types import MappingProxyType
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from cubecore.arrays import Array
from cubecore.dtypes import ElementType, element_type
from cubecore.isa.declare.common_3510 import PageTypes
from cubecore.isa.declare.family import HALF_AND_FLOAT
from cubecore.isa.declare.instruction import (
    Instruction,
    Mem,
    Operand,
    Pipe,
    choice,
    instruction,
    param,
    read,
    types,
    write,
)
from cubecore.isa.declare.registers import Registers
from cubecore.isa.declare.template import parameters
from cubecore.isa.vector.common.family import LONG, WHOLE, Member, declare
from cubecore.isa.vector.common.repeated import Repeated, settle, wide
from cubecore.isa.vector.permute.lane_groups import added, extreme, of_integers
from cubecore.layouts import Offsets

UINT32 = element_type("uint32")
_EVERY = np.ones((), np.bool_)


@parameters
class Reduction(Repeated):
    """Lanes that the mask excludes do not count."""

    in_repeats = False
    dense = MappingProxyType({"dst": 1})
    signature: ClassVar[tuple[str, ...]] = (
        *("dst", "src", "repeat"),
        *("dst_repeat_stride", "src_block_stride", "src_repeat_stride"),
    )
    dtype: ElementType = types("element type", *HALF_AND_FLOAT)
    src_block_stride: int = param(0, 65535, "32 B between src's blocks", default=1)
    src_repeat_stride: int = param(0, 65535, "32 B between src's repeats", default=8)

    @property
    def widest(self) -> ElementType:
        """Src's element type."""
        return self.dtype

    def offsets_src(self) -> Offsets:
        """Shape [repeats, lanes]."""
        return self.strided(self.dtype, self.src_block_stride, self.src_repeat_stride)

    def grouped(self, size: int) -> NDArray[np.bool_] | None:
        """Return which lanes are on, in groups of `size`: [repeats, groups, size]; None: all."""
        on = self.active("src")
        return None if on is None else on.reshape(self.repeats, self.width // size, size)

    def some(self, size: int) -> NDArray[np.bool_] | None:
        """Return which groups of `size` lanes have one that is on: [repeats, groups]; None: all."""
        on = self.grouped(size)
        return None if on is None else np.asarray(on.any(axis=-1))

    def sums(self, values: Array, size: int, registers: Registers) -> Array:
        """Return the sum of each group of `size` lanes, [..., repeats, groups]."""
        # The fast path adds all groups at once and only rounds. Clamping is needed where a sum
        # leaves the range; as infinities and NaN persist, the totals alone tell whether any step
        # did.
        on = self.active("src")
        if on is not None:  # -0 changes nothing that it is added to
            values = np.where(on, values, np.array(-0.0, values.dtype))
        shape = (*values.shape[:-1], values.shape[-1] // size)
        with np.errstate(all="ignore"):
            total = added(wide(values.reshape(-1), self.dtype), size, self.dtype)
            if self.dtype.name == "float32" or 0 not in np.isfinite(total).tobytes():
                return total.reshape(shape)  # had a sum left its range, so would this one
            level = values.reshape(-1)
            while level.size > total.size:
                x, y = (wide(level[part::2], self.dtype) for part in (0, 1))
                level = settle(x + y, self.dtype, registers)
        return level.reshape(shape)

    def extremes(
        self, values: Array, size: int, registers: Registers, *, placed: bool = True
    ) -> tuple[Array, Array]:
        """Return the extreme of each group of `size` lanes and its first place in the group.

        Both are [..., repeats, groups]. Not `placed`: the places may be anything.
        """
        on = self.grouped(size)
        if self.dtype.kind != "float":
            parted = values.reshape(*values.shape[:-1], values.shape[-1] // size, size)
            return of_integers(parted, on, takes_largest=self.takes_largest)
        with np.errstate(all="ignore"):
            x = wide(values, self.dtype)
            # Excluded lanes are replaced by the value that can never be the extreme.
            x = x.reshape(*values.shape[:-1], values.shape[-1] // size, size)
            if on is None:
                on = _EVERY
            else:
                x = np.where(on, x, -np.inf if self.takes_largest else np.inf)
            best = extreme(np.maximum if self.takes_largest else np.minimum, x)
            plain = np.isfinite(best) & (best != 0)
            if 0 not in plain.tobytes():  # no zeros of two signs, no lane is off
                lane = best
                if placed:
                    lane = x.argmax(axis=-1) if self.takes_largest else x.argmin(axis=-1)
                return settle(best, self.dtype, registers), lane
            # The slow path: NaN and zeros. Equal to the extreme are also all NaN, and both zeros;
            # of those the first lane counts, and the sign of a zero is that which the comparison
            # prefers (+0 > -0).
            best = np.where(np.isnan(best), np.array(np.nan, x.dtype), best)  # NumPy leaves any NaN
            level = best[..., None]
            same = on & ((x == level) | (np.isnan(x) & np.isnan(level)))
            lane = same.argmax(axis=-1)
            signs = np.where(same & (np.signbit(x) != self.takes_largest), 1, 0).any(axis=-1)
            zero = np.where(signs == self.takes_largest, 0.0, -0.0).astype(x.dtype)
            best = np.where(best == 0, zero, best)
            return settle(best, self.dtype, registers), lane

    takes_largest: ClassVar[bool] = True


@parameters
class RepeatSum(Reduction):
    """dst[r] = the sum of repeat r.

    Neighbours are added first, then neighbours of those; each sum is rounded, and in half stays
    finite (NaN gives 0) unless CTRL[48]. dst is aligned to an element.
    """

    signature = (
        *("dst", "src", "repeat"),
        *("dst_repeat_stride", "src_block_stride", "src_repeat_stride"),
    )
    dst = write(Mem.UB, "repeat", align_bytes=2)
    src = read(Mem.UB, "repeat lane")
    dst_repeat_stride: int = param(0, 65535, "elements between dst's results", default=1)

    def operands(self) -> tuple[Operand, ...]:
        """Dst and src; dst is aligned to an element."""
        return with_aligned_dst(self.declared, self.dtype.size_bytes)

    def offsets_dst(self) -> Offsets:
        """Shape [repeats, 1]."""
        return np.arange(self.repeats, dtype=np.intp)[:, None] * self.dst_repeat_stride

    def active(self, operand: str) -> NDArray[np.bool_] | None:
        """The mask, of src; every result is written."""
        return super().active(operand) if operand == "src" else None

    def compute(self, inputs: Mapping[str, Array], registers: Registers) -> Mapping[str, Array]:
        """Add pair by pair."""
        return {"dst": self.sums(inputs["src"], self.width, registers)}


_ORDERS = ("value_index", "index_value", "only_value", "only_index")


@parameters
class RepeatExtreme(Reduction):
    """dst[r] = the extreme of repeat r and its lane, of several the first.

    order says what is written: the value at the lower address and then the index, the other way
    round, one of them alone. Beside a value the index has its width (bits of an unsigned integer);
    alone it is a uint32. dst is aligned to what one repeat gives. NaN is the extreme of what it is
    among. A half that is not finite is clamped (NaN gives 0) unless CTRL[48]. MAX_MIN_CNT takes the
    extreme of all repeats and its first index, counted through them.
    """

    register = "extreme"
    dst = write(Mem.UB, "repeat part", align_bytes=2)
    src = read(Mem.UB, "repeat lane")
    order: str = choice("what is written, and in which order", *_ORDERS, default="value_index")
    dst_repeat_stride: int = param(0, 65535, "results between dst's results", default=1)

    @property
    def dst_type(self) -> ElementType:
        """The unit of dst: src's type, or uint32 for the index alone."""
        return UINT32 if self.order == "only_index" else self.dtype

    @property
    def _parts(self) -> int:
        return 1 if self.order.startswith("only") else 2

    def operands(self) -> tuple[Operand, ...]:
        """Dst and src; dst is aligned to a result."""
        return with_aligned_dst(self.declared, self._parts * self.dst_type.size_bytes)

    def element(self, operand: Operand) -> ElementType:
        """Src's type, and for dst what the order asks."""
        return self.dst_type if operand.name == "dst" else self.dtype

    def offsets_dst(self) -> Offsets:
        """Shape [repeats, parts of a result]."""
        start = np.arange(self.repeats, dtype=np.intp)[:, None] * self.dst_repeat_stride
        return start * self._parts + np.arange(self._parts, dtype=np.intp)

    def active(self, operand: str) -> NDArray[np.bool_] | None:
        """The mask, of src; every result is written."""
        return super().active(operand) if operand == "src" else None

    def compute(self, inputs: Mapping[str, Array], registers: Registers) -> Mapping[str, Array]:
        """Find each repeat's extreme."""
        return {"dst": self._written(*self.extremes(inputs["src"], self.width, registers))}

    def _written(self, value: Array, lane: Array) -> Array:
        """Return what dst takes of extremes and their places."""
        if self.order == "only_index":
            return lane.astype(np.uint32)
        index = lane.astype(f"u{self.dtype.size_bytes}").view(self.dtype.numpy)
        parts = {"value_index": (value, index), "index_value": (index, value)}
        return np.concatenate(parts.get(self.order, (value,)), axis=-1)

    def leaves(self, inputs: Mapping[str, Array], registers: Registers) -> Registers:
        """Keep the extreme of all repeats."""
        return self._kept(*self.extremes(inputs["src"], self.width, registers), registers)

    def run(
        self, inputs: Mapping[str, Array], registers: Registers
    ) -> tuple[Mapping[str, Array], Registers]:
        """Find the extremes once for both."""
        values_and_lanes = self.extremes(inputs["src"], self.width, registers)
        return {"dst": self._written(*values_and_lanes)}, self._kept(*values_and_lanes, registers)

    def _kept(self, values: Array, lanes: Array, registers: Registers) -> Registers:
        if not self.repeats:
            return registers
        # The register takes the extreme over all repeats; the index counts lanes from the first
        # repeat.
        repeat = 0
        if self.repeats > 1:
            with np.errstate(all="ignore"):
                x = wide(values.reshape(-1), self.dtype)
            repeat = int(x.argmax() if self.takes_largest else x.argmin())
        bits = values.view(f"u{self.dtype.size_bytes}").item(repeat)
        return registers.leaving("extreme", (bits, repeat * self.width + lanes.item(repeat)))


_BLOCKS = 8


@parameters
class _Groups(Reduction):
    """A result for each group of lanes; of a group without a lane none, or what `fills` says."""

    fills: bool = param(
        0, 1, "a group without a lane gets the result of no elements, as on 3510", default=False
    )

    def written(self, size: int) -> NDArray[np.bool_] | None:
        """Return which groups of `size` lanes are written; None: all."""
        return None if self.fills else self.some(size)

    def filled(self, results: Array, size: int, of_none: float) -> Array:
        """Return results with those of no elements, where they are written."""
        on = self.some(size) if self.fills else None
        return results if on is None else np.where(on, results, results.dtype.type(of_none))


@parameters
class BlockReduction(_Groups):
    """dst[r, b] = the result of block b of repeat r; a block without a lane writes nothing.

    Sums add neighbours first, each rounded; a half that is not finite is clamped (NaN gives 0)
    unless CTRL[48], sums step by step, extremes at the end. NaN is the extreme of a block. dst is
    aligned to what one repeat gives.
    """

    adds: ClassVar[bool] = False
    dst = write(Mem.UB, "repeat block", align_bytes=16)
    src = read(Mem.UB, "repeat lane")
    dst_repeat_stride: int = param(0, 65535, "8 elements between dst's repeats", default=1)

    def operands(self) -> tuple[Operand, ...]:
        """Dst and src; dst is aligned to the results of a repeat."""
        return with_aligned_dst(self.declared, _BLOCKS * self.dtype.size_bytes)

    def offsets_dst(self) -> Offsets:
        """Shape [repeats, 8]."""
        start = np.arange(self.repeats, dtype=np.intp)[:, None] * self.dst_repeat_stride
        return start * _BLOCKS + np.arange(_BLOCKS, dtype=np.intp)

    def active(self, operand: str) -> NDArray[np.bool_] | None:
        """The mask, of src; of dst the blocks that have a lane."""
        if operand == "src":
            return super().active(operand)
        return self.written(self.dtype.c0)

    def compute(self, inputs: Mapping[str, Array], registers: Registers) -> Mapping[str, Array]:
        """Reduce each block."""
        values, size = inputs["src"], self.dtype.c0
        if self.adds:
            return {"dst": self.filled(self.sums(values, size, registers), size, 0)}
        of_none = -np.inf if self.takes_largest else np.inf
        extremes = self.extremes(values, size, registers, placed=False)[0]
        return {"dst": self.filled(extremes, size, of_none)}


@parameters
class PairSum(_Groups):
    """dst[r, i] = lane 2 i of repeat r plus lane 2 i + 1; a pair without a lane writes nothing.

    A sum that is not finite is clamped in half (NaN gives 0) unless CTRL[48].
    """

    dst = write(Mem.UB, "repeat pair")
    src = read(Mem.UB, "repeat lane")
    dst_repeat_stride: int = param(0, 65535, "128 B between dst's repeats", default=1)

    def offsets_dst(self) -> Offsets:
        """Shape [repeats, pairs]."""
        pairs = self.width // 2
        start = np.arange(self.repeats, dtype=np.intp)[:, None] * self.dst_repeat_stride
        return start * pairs + np.arange(pairs, dtype=np.intp)

    def active(self, operand: str) -> NDArray[np.bool_] | None:
        """The mask, of src; of dst the pairs that have a lane."""
        if operand == "src":
            return super().active(operand)
        return self.written(2)

    def compute(self, inputs: Mapping[str, Array], registers: Registers) -> Mapping[str, Array]:
        """Add each pair."""
        return {"dst": self.filled(self.sums(inputs["src"], 2, registers), 2, 0)}


@lru_cache(maxsize=64)
def with_aligned_dst(declared: tuple[Operand, ...], align_bytes: int) -> tuple[Operand, ...]:
    """Return dst, aligned to `align_bytes`, and src."""
    dst, src = declared
    return (replace(dst, align_bytes=align_bytes), src)


_EXTREME = (
    "MAX_MIN_CNT counts its index through all repeats, in counter mode too: two pages disagree on "
    "the latter",
)
_IDENTITY = ("a lane that the mask excludes changes no sum: inferred",)
_TWO_ALIGNMENTS = ("dst of half is aligned to 16 B by one page, to 32 B by another: 16 B here",)
_PAGE = "basic API, reductions; boundary values of Memory vector compute, tables 33 to 41"


def _orders(prefix: str) -> dict[str, dict[str, str]]:
    return {f"{prefix}_{order}": {"order": order} for order in _ORDERS}


_TABLE: tuple[tuple[type[Reduction], Member], ...] = (
    (
        RepeatSum,
        Member(
            name="vcadd",
            since="m100",
            c_api="asc_repeat_reduce_sum",
            cpp="ReduceRepeat<SUM>",
            tik="vec_reduce_add",
            doc="Add up each repeat",
            types=HALF_AND_FLOAT,
            late=PageTypes((*HALF_AND_FLOAT, "int32", "uint32"), LONG),
            uncertain=_IDENTITY,
        ),
    ),
    (
        RepeatExtreme,
        Member(
            name="vcmax",
            since="m100",
            c_api="",
            cpp="ReduceRepeat<MAX>",
            tik="vec_reduce_max",
            doc="Find the largest of each repeat",
            types=HALF_AND_FLOAT,
            late=PageTypes((*WHOLE, *HALF_AND_FLOAT)),
            uncertain=_EXTREME,
            variants=_orders("asc_repeat_reduce_max"),
        ),
    ),
    (
        RepeatExtreme,
        Member(
            name="vcmin",
            since="m100",
            c_api="",
            cpp="ReduceRepeat<MIN>",
            tik="vec_reduce_min",
            doc="Find the smallest of each repeat",
            types=HALF_AND_FLOAT,
            late=PageTypes((*WHOLE, *HALF_AND_FLOAT)),
            uncertain=_EXTREME,
            variants=_orders("asc_repeat_reduce_min"),
            fixed={"takes_largest": False},
        ),
    ),
    (
        BlockReduction,
        Member(
            name="vcgadd",
            since="m100",
            c_api="asc_datablock_reduce_sum",
            cpp="ReduceDataBlock<SUM>",
            tik="vcgadd",
            doc="Add up each block of 32 bytes",
            uncertain=(*_IDENTITY, *_TWO_ALIGNMENTS),
            fixed={"adds": True},
        ),
    ),
    (
        BlockReduction,
        Member(
            name="vcgmax",
            since="m100",
            c_api="asc_datablock_reduce_max",
            cpp="ReduceDataBlock<MAX>",
            tik="vcgmax",
            doc="Find the largest of each block of 32 bytes",
            uncertain=_TWO_ALIGNMENTS,
        ),
    ),
    (
        BlockReduction,
        Member(
            name="vcgmin",
            since="m100",
            c_api="asc_datablock_reduce_min",
            cpp="ReduceDataBlock<MIN>",
            tik="vcgmin",
            doc="Find the smallest of each block of 32 bytes",
            uncertain=_TWO_ALIGNMENTS,
            fixed={"takes_largest": False},
        ),
    ),
    (
        PairSum,
        Member(
            name="vcpadd",
            since="m100",
            c_api="asc_pair_reduce_sum",
            cpp="ReducePairElem<SUM>",
            tik="vec_cpadd",
            doc="Add up each pair of lanes",
            uncertain=_IDENTITY,
        ),
    ),
)
for _base, _member in _TABLE:
    declare(_base, _member, __name__, source=_PAGE)


@instruction(
    "get_max_min_cnt",
    Pipe.S,
    names={"c_api": "asc_get_reduce_max_cnt", "cpp": "GetReduceRepeatMaxMinSpr"},
    source="asc-devkit, asc_get_reduce_max_cnt (2201)",
    variants={"asc_get_reduce_min_cnt": {}},
)
class GetMaxMinCnt(Instruction):
    """Read MAX_MIN_CNT: the bits of the extreme that vcmax or vcmin left, and its first index.

    The scalar unit must have waited for the vector unit.
    """

    register = "extreme"

    def result(self, registers: Registers) -> tuple[int, ...]:
        """The value's bits, the index."""
        return registers.extreme
