"""Provenance of the contents of L1 and L0: addresses in global memory in place of bytes.

L1 is blocks of 32 B, and L0 fractals of units: 16 rows of 32 B, or after a transposing load, for
each K, runs along the other axis. Each has a code that names bytes of global memory
(`cubecore.machine.blas.address_codes`), for all cores of a group.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from math import gcd

import numpy as np

from cubecore.chips.model import Chip
from cubecore.dtypes import ElementType
from cubecore.isa.cube.mad import Mad
from cubecore.isa.cube.mad_mx import MadMx
from cubecore.isa.declare.instruction import Mem
from cubecore.isa.mte.copies import (
    CopyGmToCbuf,
    CopyGmToCbufMultiNd2Nz,
    LoadCbufToCa,
    LoadCbufToCaTranspose,
    LoadCbufToCb,
    LoadCbufToCbTranspose,
)
from cubecore.isa.mte.fill import CreateCbufMatrix
from cubecore.isa.mte.load2d_3510 import LoadCbufToCaV2Transpose
from cubecore.isa.program.check import memory_bytes
from cubecore.layouts import Offsets
from cubecore.machine.blas.address_codes import (
    ADDRESS_BITS,
    AS_IT_WAS,
    TAKEN,
    TAKEN_BITS,
    UNITS,
    UNKNOWN,
    ZERO,
    Codes,
    ReadLayout,
    Shape,
    read_layouts,
    stored_shape,
    transposed_shape,
    transposed_units,
    unit_elements,
    without_zeros,
)
from cubecore.machine.blas.block_products import Block, IrregularError
from cubecore.machine.blas.mx_scales import WORD_BYTES, Scales
from cubecore.machine.blas.scale_provenance import ScaleLoad, ScaleProvenance, WordFill, steps
from cubecore.machine.memory.buffers import GlobalMemory
from cubecore.units import DATA_BLOCK_BYTES, FRACTAL_BYTES, ceil_div, distinct

Fill = CopyGmToCbuf | CopyGmToCbufMultiNd2Nz
FractalLoad = LoadCbufToCa | LoadCbufToCb
SquareLoad = LoadCbufToCaTranspose | LoadCbufToCbTranspose | LoadCbufToCaV2Transpose
Follow = Callable[[int, int], None]
"""The act that follows one move, given its two addresses."""

_MOST_DISTANCES = 1 << (63 - TAKEN_BITS - ADDRESS_BITS)
_BLOCKS = FRACTAL_BYTES // DATA_BLOCK_BYTES


@dataclass(frozen=True, eq=False, slots=True)
class _Move:
    """Units that a load takes from L1 and where it leaves them; `skipped` bytes of each block.

    `fractals` are those of L0 that it fills.
    """

    source: Offsets
    target: Offsets
    skipped: Offsets
    fractals: Offsets


@lru_cache(maxsize=128)
def _fill(template: Fill) -> tuple[Offsets, Codes]:
    """Return the blocks of L1 that a transfer fills, and what to add to its source's code."""
    source, target = template.offsets("src"), template.offsets("dst")
    if isinstance(template, CopyGmToCbuf):
        return target, (source * DATA_BLOCK_BYTES << TAKEN_BITS) + DATA_BLOCK_BYTES
    c0, size = template.dtype.c0, template.dtype.size_bytes
    blocks, odd = np.divmod(target[..., ::c0] * size, DATA_BLOCK_BYTES)
    if odd.any():
        raise IrregularError("matrices that do not start at a block of L1")
    taken = (source >= 0).reshape(*blocks.shape, c0).sum(axis=-1) * size
    return blocks, (source[..., ::c0] * size << TAKEN_BITS) + taken


@lru_cache(maxsize=128)
def _straight(template: FractalLoad) -> _Move:
    within, fractals = np.arange(_BLOCKS, dtype=np.intp), template.offsets("dst")
    return _Move(
        source=template.offsets("src")[:, None] * _BLOCKS + within,
        target=fractals[:, None] * UNITS + within,
        skipped=np.zeros(0, np.intp),
        fractals=fractals,
    )


@lru_cache(maxsize=128)
def _turned(template: SquareLoad) -> _Move:
    """Return a transposing load by units; the declared offsets already are transposed."""
    unit = unit_elements(template.dtype)
    first, to = (template.offsets(name)[:, ::unit] for name in ("src", "dst"))
    blocks, skipped = np.divmod(template.dtype.bytes_of(first), DATA_BLOCK_BYTES)
    units = transposed_units(to, template.dtype)
    return _Move(blocks, units, skipped, distinct(units // UNITS))


@lru_cache(maxsize=128)
def _zeroed(template: CreateCbufMatrix) -> Offsets:
    if template.bits:
        raise IrregularError("a fill of L1 with something else than zeros")
    each = DATA_BLOCK_BYTES // template.dtype.size_bytes
    return template.offsets("dst")[:, ::each] // each


class Provenance:
    """L1, L0A and L0B of a group of cores."""

    def __init__(self, chip: Chip, gm: GlobalMemory) -> None:
        self._gm = gm
        self._l1 = np.full(memory_bytes(chip, Mem.L1)[0] // DATA_BLOCK_BYTES, UNKNOWN, np.int64)
        fractals = {m: memory_bytes(chip, m)[0] // FRACTAL_BYTES for m in (Mem.L0A, Mem.L0B)}
        self._l0 = {m: np.full(n * UNITS, UNKNOWN, np.int64) for m, n in fractals.items()}
        self._kinds = {m: np.zeros(n, np.uint8) for m, n in fractals.items()}
        self._distances: list[tuple[int, ...]] = []
        self._shapes: dict[ReadLayout, Shape] = {}
        self._scales = ScaleProvenance(chip, self._l1)

    # --- moves; addresses are bytes

    def fill(self, template: Fill, distances: tuple[int, ...]) -> Follow:
        """Return what brings blocks from global memory to L1: (to, from)."""
        blocks, codes = _fill(template)
        # The first core's address is in the code; those of others follow from the number of the
        # distances.
        source = self._source(distances) << ADDRESS_BITS

        def fill(dst: int, src: int) -> None:
            at = (source + src) << TAKEN_BITS
            self._l1[dst // DATA_BLOCK_BYTES + blocks] = codes + at

        return fill

    def zero(self, template: CreateCbufMatrix) -> Callable[[int], None]:
        """Return what fills blocks of L1 with zeros: (to)."""
        blocks = _zeroed(template)

        def zero(dst: int) -> None:
            self._l1[dst // DATA_BLOCK_BYTES + blocks] = ZERO

        return zero

    def fill_words(self, template: WordFill, distances: tuple[int, ...]) -> Follow:
        """Return what brings pairs of scales from global memory to L1: (to, from)."""
        return self._scales.fill(template, self._source(distances) << ADDRESS_BITS)

    def load_scales(self, template: ScaleLoad) -> Callable[[int], None]:
        """Return what brings scales from L1 to L0A's or L0B's: (from)."""
        return self._scales.load(template)

    def _source(self, distances: tuple[int, ...]) -> int:
        """Return the number that codes name a group's distances by."""
        if distances not in self._distances:
            if len(self._distances) == _MOST_DISTANCES:
                raise IrregularError("too many ways in which cores differ")
            self._distances.append(distances)
        return self._distances.index(distances)

    def load(self, template: FractalLoad) -> Follow:
        """Return what brings fractals from L1 to L0 as they are: (to, from)."""
        mem, move = template.operands()[0].mem, _straight(template)
        codes, kinds = self._l0[mem], self._kinds[mem]

        def load(dst: int, src: int) -> None:
            first = dst // FRACTAL_BYTES
            codes[first * UNITS + move.target] = self._l1[src // DATA_BLOCK_BYTES + move.source]
            kinds[first + move.fractals] = AS_IT_WAS

        return load

    def turn(self, template: SquareLoad) -> Follow:
        """Return what brings squares from L1 to L0, transposed: (to, from)."""
        mem, move = template.operands()[0].mem, _turned(template)
        codes, kinds = self._l0[mem], self._kinds[mem]
        c0 = template.dtype.c0
        unit_bytes = template.dtype.bytes_of(unit_elements(template.dtype))

        def turn(dst: int, src: int) -> None:
            sources = self._l1[src // DATA_BLOCK_BYTES + move.source]
            if unit_bytes < DATA_BLOCK_BYTES:
                # A unit is a part of a block: of its bytes only those that were taken from memory
                # are known, the rest are ND2NZ's zeros. Negative codes (unknown, zeros) stay as
                # they are.
                taken = sources & TAKEN
                left = np.clip(taken - move.skipped, 0, unit_bytes)
                parts = sources - taken + (move.skipped << TAKEN_BITS) + left
                sources = np.where(sources < 0, sources, parts)
            first = dst // FRACTAL_BYTES
            codes[first * UNITS + move.target] = sources
            kinds[first + move.fractals] = c0

        return turn

    # --- what is there

    def operands(self, template: Mad | MadMx) -> Callable[[int, int], tuple[Block, Block]]:
        """Return what finds the blocks that `mad` reads at (address in L0A, address in L0B)."""
        for_a, for_b = read_layouts(template)

        def find(a: int, b: int) -> tuple[Block, Block]:
            return self._operand(Mem.L0A, a, for_a), self._operand(Mem.L0B, b, for_b)

        if isinstance(template, Mad):
            return find
        read = self._scales.read(template)

        def find_scaled(a: int, b: int) -> tuple[Block, Block]:
            left, right = zip(find(a, b), read(a, b), strict=True)
            return self._scaled(*left), self._scaled(*right)

        return find_scaled

    def _scaled(self, block: Block, codes: Codes) -> Block:
        """Return a block with its scales; of rows that are zeros they are zeros too."""
        if (codes[block.r :] != ZERO).any():
            raise IrregularError("scales of rows that are not there")
        rows_of_block = codes[: block.r]
        (r, pairs), (to_r, to_k) = rows_of_block.shape, steps(rows_of_block)
        number, address = divmod(int(rows_of_block[0, 0]) >> TAKEN_BITS, 1 << ADDRESS_BITS)
        tensor, distances = self._gm.at(address), self._distances[number]
        last = address + ((r - 1) * to_r + (pairs - 1) * to_k) * WORD_BYTES
        if tensor is None or last + WORD_BYTES > tensor.end:
            raise IrregularError("scales that are not in one tensor")
        start, odd = divmod(address - tensor.address, WORD_BYTES)
        if odd:
            raise IrregularError("scales off their words")
        return block.with_scales(Scales(tensor, start, distances, r, pairs, to_r, to_k))

    def _operand(self, mem: Mem, address: int, layout: ReadLayout) -> Block:
        first = address // FRACTAL_BYTES
        kinds = self._kinds[mem][first + layout.fractals]
        kind = int(kinds[0])
        # A transposed fractal has its elements in an order that depends on the type it was
        # transposed as.
        if (kinds != kind).any() or kind not in {AS_IT_WAS, layout.kind.c0}:
            raise IrregularError("fractals of several kinds, or of another type")
        units = layout.as_stored if kind == AS_IT_WAS else layout.transposed
        codes = self._l0[mem][first * UNITS + units]
        if layout.filled:
            codes = without_zeros(codes)
        start = int(codes[0, 0])
        # Base blocks of one kernel have the same codes relative to the first: comparing them is
        # much faster than deriving the shape again.
        shape = self._shapes.get(layout)
        if shape is None or not shape.is_of(kind, start & TAKEN, codes - start):
            if codes.min() < 0:
                raise IrregularError("lanes that were never loaded")
            find = stored_shape if kind == AS_IT_WAS else transposed_shape
            shape = self._shapes[layout] = find(codes, layout)
        return self._block(start >> TAKEN_BITS, shape, layout.kind)

    def row(self, address: int, kind: ElementType, count: int) -> Block:
        """Return the one row that L1 holds from `address` on: at most `count` elements."""
        first = address // DATA_BLOCK_BYTES
        codes = self._l1[first : first + ceil_div(kind.bytes_of(count), DATA_BLOCK_BYTES)]
        start, taken = codes >> TAKEN_BITS, codes & TAKEN
        # The row goes on as long as blocks follow each other in global memory; the last may be in
        # part.
        follows = (codes >= 0) & (start == start[0] + np.arange(codes.size) * DATA_BLOCK_BYTES)
        whole = follows & (taken == DATA_BLOCK_BYTES)
        blocks = codes.size if whole.all() else int(whole.argmin())
        size = blocks * DATA_BLOCK_BYTES
        if blocks < codes.size and follows[blocks]:
            size += int(taken[blocks])
        count = min(count, size * 8 // kind.bits)
        if not count:
            raise IrregularError("L1 holds nothing known there")
        shape = Shape(
            r=1,
            k=count,
            pitch_bytes=0,
            step_bytes=DATA_BLOCK_BYTES,
            size_bytes=kind.bytes_of(count),
            k_inner=True,
            kind=AS_IT_WAS,
            taken=int(taken[0]),
            relative=codes - codes[0],
        )
        return self._block(int(start[0]), shape, kind)

    def _block(self, address_code: int, shape: Shape, kind: ElementType) -> Block:
        """Return the block of a shape that starts at an address code."""
        number, address = address_code >> ADDRESS_BITS, address_code & ((1 << ADDRESS_BITS) - 1)
        tensor = self._gm.at(address)
        if tensor is None or address + shape.size_bytes > tensor.end:
            raise IrregularError("a block that is not in one tensor")
        distances, start = self._distances[number], address - tensor.address
        pitch, step, bits = shape.pitch_bytes, shape.step_bytes, kind.bits
        # Offsets are counted in elements from here on, of every core.
        if bits > 8 and gcd(start, pitch, step, *distances) % kind.size_bytes:
            raise IrregularError("a source off its elements")
        return Block(
            tensor,
            kind,
            start * 8 // bits,
            distances,
            shape.r,
            shape.k,
            pitch * 8 // bits,
            step * 8 // bits,
            shape.k_inner,
        )
