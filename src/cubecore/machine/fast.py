"""The fast engine: proves what a group of equal cores computes, then computes that with BLAS.

The program is walked once for all cores that run it. Local memories hold no bytes here but where
their contents come from: every fractal in L0 knows which part of which global matrix it is. If
each `mad` is shown to multiply two whole blocks of global matrices, and each fixpipe to store such
a sum, then the group computes tiles of C as sums of block products, and those are all that is
computed. Every check of the reference engine is made on the way. Whatever does not fit (an unproven
order of fractals, uninitialised lanes, any finding, instructions of other units) is left to the
reference engine, so the two never differ in what they report.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from numpy.typing import NDArray

from cubecore.chips.model import Chip
from cubecore.dtypes import ElementType
from cubecore.isa.check import memory_bytes, template_violations
from cubecore.isa.cube import CopyCbufToBt, Mad
from cubecore.isa.fixpipe import CopyMatrixCcToGm
from cubecore.isa.launch import CoreGroup
from cubecore.isa.moves import (
    CopyGmToCbufMultiNd2Nz,
    LoadCbufToCa,
    LoadCbufToCaTranspose,
    LoadCbufToCb,
    LoadCbufToCbTranspose,
)
from cubecore.isa.overlap import reach
from cubecore.isa.program import Issue, LoadScalar
from cubecore.isa.spec import Instruction, Mem
from cubecore.isa.sync import PipeBarrier, SetFlag, WaitFlag
from cubecore.isa.system import ScalarWork
from cubecore.machine.memory import GlobalMemory, GlobalTensor
from cubecore.machine.products import Block, Store, Tile, joined, overlapping
from cubecore.units import DATA_BLOCK_BYTES, FRACTAL_BYTES, FRACTAL_ROWS, align_up, ceil_div

Codes = NDArray[np.int64]

_UNKNOWN = -1
_CHUNK, _ROW = 40, 20
"""A fractal's code: chunk << 40 | row << 20 | column, in the units that its load implies."""


_LARGEST_STORE = 1 << 19
"""Elements of C that one store may grow to: enough for BLAS, little enough to share out."""


class IrregularError(Exception):
    """The program is not shown to be block products; the reference engine runs it."""


@dataclass(frozen=True, slots=True)
class _Chunk:
    """A matrix that one transfer brought to L1 in NZ, and where it came from."""

    number: int
    start: int
    end: int
    pitch_rows: int
    rows: int
    columns: int
    source: Block

    @property
    def is_vector(self) -> bool:
        """One row whose pieces of C0 follow each other."""
        return self.rows == 1 and self.pitch_rows == 1


class Prover:
    """A sink for `Program.run`: follows where bytes come from, and collects the stores."""

    def __init__(self, chip: Chip, gm: GlobalMemory, group: CoreGroup) -> None:
        self._chip, self._gm, self.group = chip, gm, group
        self._chunks: list[_Chunk] = []
        self._by_number: dict[int, _Chunk] = {}
        self._made = 0
        self._l0: dict[Mem, Codes] = {
            mem: np.full(memory_bytes(chip, mem)[0] // FRACTAL_BYTES, _UNKNOWN, np.int64)
            for mem in (Mem.L0A, Mem.L0B)
        }
        self._turned: dict[Mem, NDArray[np.bool_]] = {
            mem: np.zeros(codes.shape, bool) for mem, codes in self._l0.items()
        }
        self._bias: dict[int, tuple[Block, ElementType]] = {}
        self._tiles: dict[int, Tile] = {}
        self.stores: list[Store] = []
        self.issued = 0

    # --- the sink protocol

    def handler(self, issue: Issue) -> Callable[..., None]:
        """Return the function that follows one leaf."""
        template = issue.template
        self._require(template, legal=not issue.late)
        if isinstance(template, (SetFlag, WaitFlag, PipeBarrier, ScalarWork)):
            return self._order_only(issue)
        if issue.late:
            raise IrregularError(f"{template.name} with parameters known late")
        found: Callable[..., None] | None = None
        if isinstance(template, CopyGmToCbufMultiNd2Nz):
            found = partial(self._load, template, self.group.distances(issue))
        elif isinstance(template, (LoadCbufToCa, LoadCbufToCb)):
            found = self._fractals(template)
        elif isinstance(template, (LoadCbufToCaTranspose, LoadCbufToCbTranspose)):
            found = self._squares(template)
        elif isinstance(template, CopyCbufToBt):
            found = partial(self._bias_row, template)
        elif isinstance(template, Mad):
            found = self._product(template)
        elif isinstance(template, CopyMatrixCcToGm):
            found = partial(self._store, template, self.group.distances(issue))
        if found is None:
            raise IrregularError(template.name)
        return self._placed(template, found)

    def load_scalar(self, load: LoadScalar, address: int) -> int:
        """Give up: cores may read different values."""
        raise IrregularError(f"{load.target.name} is read from {load.mem.label} {address}")

    def _require(self, template: Instruction, *, legal: bool) -> None:
        if legal and template_violations(template, self._chip):
            raise IrregularError(f"{template.name} is not legal")

    def _order_only(self, issue: Issue) -> Callable[..., None]:
        if not issue.late:
            return self._count

        def judge(*values: int) -> None:
            self.issued += 1
            self._require(issue.bound(values), legal=True)

        return judge

    def _count(self) -> None:
        self.issued += 1

    def _placed(self, template: Instruction, act: Callable[..., None]) -> Callable[..., None]:
        """Check alignment and bounds of local operands before `act`."""
        limits = []
        for place, operand in enumerate(template.operands()):
            if operand.mem is Mem.GM:
                continue
            span = reach(template, operand.name) or (0, -1)
            start, end = template.element(operand).extent_bytes(*span)
            usable = memory_bytes(self._chip, operand.mem)[1]
            limits.append((place, operand.alignment, -start, usable - end))

        def run(*addresses: int) -> None:
            self.issued += 1
            for place, alignment, least, most in limits:
                address = addresses[place]
                if address % alignment or not least <= address <= most:
                    raise IrregularError(f"{template.name} leaves its memory")
            act(*addresses)

        return run

    # --- global memory to L1

    def _tensor(self, address: int, distances: tuple[int, ...], size: int) -> GlobalTensor:
        tensor = self._gm.at(address + min(distances))
        if tensor is None or address + max(distances) + size > tensor.end:
            raise IrregularError("an address outside its tensor")
        return tensor

    def _load(
        self, t: CopyGmToCbufMultiNd2Nz, distances: tuple[int, ...], dst: int, src: int
    ) -> None:
        if t.nd_num != 1 or t.dst_nz_n_stride != 1 or 0 in (t.n_value, t.d_value):
            raise IrregularError("an ND2NZ of several matrices, or of none")
        size = t.dtype.size_bytes
        span = ((t.n_value - 1) * t.src_d_value + t.d_value) * size
        tensor = self._tensor(src, distances, span)
        offset, odd = divmod(src - tensor.address, size)
        if odd or any(d % size for d in distances) or not tensor.placed:
            raise IrregularError("a source off its elements, or not wholly initialised")
        source = Block(
            tensor, t.dtype, offset, distances, t.n_value, t.d_value, t.src_d_value, k_inner=True
        )
        pieces = ceil_div(t.d_value, t.dtype.c0)
        end = dst + ((pieces - 1) * t.dst_nz_c0_stride + t.n_value) * DATA_BLOCK_BYTES
        self._made += 1
        chunk = _Chunk(self._made, dst, end, t.dst_nz_c0_stride, t.n_value, t.d_value, source)
        kept = [c for c in self._chunks if c.end <= dst or c.start >= end]
        self._chunks = [chunk, *kept]
        self._by_number[chunk.number] = chunk

    def _chunk_at(self, address: int) -> _Chunk:
        for chunk in self._chunks:
            if chunk.start <= address < chunk.end:
                return chunk
        raise IrregularError("L1 holds nothing known there")

    # --- L1 to L0

    def _fractals(self, t: LoadCbufToCa | LoadCbufToCb) -> Callable[..., None]:
        mem = t.operands()[0].mem
        source, target = t.offsets("src"), t.offsets("dst")

        def load(dst: int, src: int) -> None:
            chunk = self._chunk_at(src)
            to = dst // FRACTAL_BYTES + target
            if chunk.is_vector:
                piece = (src - chunk.start) // DATA_BLOCK_BYTES + source * FRACTAL_ROWS
                codes = (chunk.number << _CHUNK) | piece
            else:
                first, down = self._fractal_of(chunk, src)
                fractal = first + source
                codes = (chunk.number << _CHUNK) | (fractal % down << _ROW) | fractal // down
            self._l0[mem][to] = codes
            self._turned[mem][to] = False

        return load

    def _squares(self, t: LoadCbufToCaTranspose | LoadCbufToCbTranspose) -> Callable[..., None]:
        mem = t.operands()[0].mem
        halves = t.edge // FRACTAL_ROWS
        if t.dtype.bits not in {8, 16}:
            raise IrregularError(f"a transposing load of {t.dtype.bits}-bit elements")
        step = -t.src_stride if t.decrement else t.src_stride
        squares = np.arange(t.repeat, dtype=np.int64)
        source = (t.index_id + squares * step) * halves
        target = squares * (1 + t.dst_gap)

        def load(dst: int, src: int) -> None:
            chunk = self._chunk_at(src)
            first, down = self._fractal_of(chunk, src)
            fractal = first + source
            row, column = fractal % down, fractal // down * halves
            if halves > 1 and (row + 1 >= down).any():
                raise IrregularError("a square across two columns of L1")
            base = (chunk.number << _CHUNK) | (row << _ROW) | column
            for half in range(halves):
                to = dst // FRACTAL_BYTES + target + half * (1 + t.dst_frac_gap)
                self._l0[mem][to] = base + half
                self._turned[mem][to] = True

        return load

    @staticmethod
    def _fractal_of(chunk: _Chunk, address: int) -> tuple[int, int]:
        """Return (the fractal's number in the chunk, fractals of a column of it)."""
        first, odd = divmod(address - chunk.start, FRACTAL_BYTES)
        down, ragged = divmod(chunk.pitch_rows, FRACTAL_ROWS)
        if odd or ragged:
            raise IrregularError("a load off the chunk's fractals")
        return first, down

    def _bias_row(self, t: CopyCbufToBt, dst: int, src: int) -> None:
        chunk = self._chunk_at(src)
        first = (src - chunk.start) // t.src_type.size_bytes
        values = t.len_burst * t.src_type.c0
        if (
            not chunk.is_vector
            or t.n_burst != 1
            or first + values > align_up(chunk.columns, t.src_type.c0)
            or chunk.source.kind is not t.src_type
        ):
            raise IrregularError("a bias that is not one row")
        row = _part(chunk.source, first, 1, min(values, chunk.columns - first), k_inner=True)
        self._bias = {a: b for a, b in self._bias.items() if a == dst}
        self._bias[dst] = (row, t.dst_type)

    # --- the product

    def _product(self, t: Mad) -> Callable[..., None]:
        if t.empty:
            return lambda *_: None
        c0 = t.a_type.c0
        k1 = ceil_div(t.k, c0)
        m1, n1 = ceil_div(t.m, FRACTAL_ROWS), ceil_div(t.n, FRACTAL_ROWS)
        if t.hf32 != "off" or t.starts_from_tile:
            raise IrregularError("inputs rounded to HF32, or a start from another tile")
        a_grid = _Grid.of(m1, k1, c0, row_step=t.a_row_fractals, column_step=1)
        b_grid = _Grid.of(n1, k1, c0, row_step=1, column_step=n1)

        def multiply(c: int, a: int, b: int, bias: int = 0) -> None:
            left = _read_as(self._operand(Mem.L0A, a, a_grid, t.m, t.k), t.a_type)
            right = _read_as(self._operand(Mem.L0B, b, b_grid, t.n, t.k), t.b_type)
            if left.r < t.m and left.k_inner:
                raise IrregularError("rows of A that were never loaded")
            tile = self._tile(t, c, left.r, bias)
            if right.r < t.n:
                raise IrregularError("columns of B that were never loaded")
            self._tiles[c] = tile.plus(left, right)

        return multiply

    def _tile(self, t: Mad, c: int, rows: int, bias: int) -> Tile:
        if t.accumulates:
            tile = self._tiles.get(c)
            if tile is None or (tile.m, tile.n) != (rows, t.n):
                raise IrregularError("an accumulation onto another tile")
            return tile
        size = t.c_type.size_bytes
        end = c + align_up(t.m, FRACTAL_ROWS) * align_up(t.n, FRACTAL_ROWS) * size
        self._tiles = {
            at: tile for at, tile in self._tiles.items() if at >= end or at + _tile_bytes(tile) <= c
        }
        if not t.starts_from_bias:
            return Tile(rows, t.n, t.c_type)
        row = self._bias.get(bias)
        if row is None or row[0].k < t.n or row[1] is not t.c_type:
            raise IrregularError("a bias that was never loaded, or of another type")
        return Tile(rows, t.n, t.c_type, row[0])

    def _operand(self, mem: Mem, address: int, grid: "_Grid", r: int, k: int) -> Block:
        """Return the block that L0 holds at `address`, or give up."""
        places = address // FRACTAL_BYTES + grid.places
        codes = self._l0[mem][places]
        first = int(codes[0])
        if first == _UNKNOWN:
            raise IrregularError("L0 holds nothing known there")
        chunk = self._by_number[first >> _CHUNK]
        turned = bool(self._turned[mem][places[0]])
        row, column = (first >> _ROW) & 0xFFFFF, first & 0xFFFFF
        if chunk.is_vector:
            return self._vector_operand(mem, address, chunk, column, (r, k))
        if r == 1 and mem is Mem.L0A:
            raise IrregularError("GEMV of a matrix in fractals")
        if (codes - first != (grid.turned if turned else grid.straight)).any():
            raise IrregularError("fractals in another order")
        if not (self._turned[mem][places] == turned).all():
            raise IrregularError("fractals of two kinds")
        kind = chunk.source.kind
        if not turned:
            r0, k0 = row * FRACTAL_ROWS, column * kind.c0
            if r0 + r > chunk.rows or k0 + k > chunk.columns:
                raise IrregularError("lanes that were never loaded")
            return _part(chunk.source, r0 * chunk.source.pitch + k0, r, k, k_inner=True)
        k0, r0 = row * FRACTAL_ROWS, column * FRACTAL_ROWS
        if k0 + k > chunk.rows or r0 + r > align_up(chunk.columns, kind.c0):
            raise IrregularError("lanes that were never loaded")
        r = min(r, chunk.columns - r0)
        return _part(chunk.source, k0 * chunk.source.pitch + r0, r, k, k_inner=False)

    def _vector_operand(
        self, mem: Mem, address: int, chunk: _Chunk, piece: int, extents: tuple[int, int]
    ) -> Block:
        r, k = extents
        kind = chunk.source.kind
        fractals = ceil_div(k * kind.size_bytes, FRACTAL_BYTES)
        first = address // FRACTAL_BYTES
        codes = self._l0[mem][first : first + fractals]
        want = codes[0] + np.arange(fractals) * FRACTAL_ROWS
        k0 = piece * kind.c0
        if r != 1 or mem is not Mem.L0A or (codes != want).any() or k0 + k > chunk.columns:
            raise IrregularError("a vector that is not A's only row")
        return _part(chunk.source, k0, 1, k, k_inner=True)

    def _store(self, t: CopyMatrixCcToGm, distances: tuple[int, ...], dst: int, src: int) -> None:
        tile = self._tiles.get(src)
        if t.scaling != "none":
            raise IrregularError("a store with a scale")
        if not t.nz2nd_en or tile is None or t.m_size > tile.m or t.n_size > tile.n:
            raise IrregularError("a store that is not of a known tile")
        if t.src_stride != align_up(tile.m, FRACTAL_ROWS) and t.n_size > FRACTAL_ROWS:
            raise IrregularError("a store with another stride than the tile's")
        size = t.dst_type.size_bytes
        tensor = self._tensor(dst, distances, ((t.m_size - 1) * t.dst_stride + t.n_size) * size)
        offset, odd = divmod(dst - tensor.address, size)
        if odd or any(d % size for d in distances):
            raise IrregularError("a destination off its elements")
        store = Store(
            tile,
            tensor,
            t.dst_type,
            offset,
            distances,
            t.m_size,
            t.n_size,
            t.dst_stride,
            t.relu_pre,
        )
        larger = joined(self.stores[-1], store) if self.stores else None
        if larger is None or larger.m * larger.n > _LARGEST_STORE:
            self.stores.append(store)
        else:
            self.stores[-1] = larger


@dataclass(frozen=True, eq=False, slots=True)
class _Grid:
    """Where a `mad` reads the fractals of an operand, and the codes that they must have."""

    places: Codes
    straight: Codes
    turned: Codes

    @staticmethod
    def of(r1: int, k1: int, c0: int, *, row_step: int, column_step: int) -> "_Grid":
        r, k = (x.reshape(-1) for x in np.indices((r1, k1)).astype(np.int64))
        return _Grid(
            places=r * row_step + k * column_step,
            straight=(r << _ROW) + k,
            turned=((k * (c0 // FRACTAL_ROWS)) << _ROW) + r,
        )


def _read_as(block: Block, kind: ElementType) -> Block:
    """Return the block as `mad` reads it: the same bits, whatever type moved them."""
    if block.kind.bits != kind.bits:
        raise IrregularError("an operand of another width")
    return replace(block, kind=kind)


def _part(source: Block, offset: int, r: int, k: int, *, k_inner: bool) -> Block:
    return Block(
        source.tensor,
        source.kind,
        source.offset + offset,
        source.distances,
        r,
        k,
        source.pitch,
        k_inner,
    )


def _tile_bytes(tile: Tile) -> int:
    rows, columns = align_up(tile.m, FRACTAL_ROWS), align_up(tile.n, FRACTAL_ROWS)
    return int(rows * columns) * tile.kind.size_bytes


def prove(chip: Chip, gm: GlobalMemory, groups: Sequence[CoreGroup]) -> list[Prover]:
    """Return what each group of cores computes.

    Raises:
        IrregularError: it is not shown to be block products without any finding, whose order does
            not matter.
    """
    provers = [Prover(chip, gm, group) for group in groups]
    for prover in provers:
        prover.group.program.run(prover, prover.group.slots[0])
    stores = [store for prover in provers for store in prover.stores]
    starts: dict[int, int] = {}
    if any(_may_saturate(store.tile, starts) for store in stores):
        raise IrregularError("a sum that may leave int32 on the way")
    read = {address for store in stores for address in _sources(store.tile)}
    if any(store.tensor.address in read for store in stores):
        raise IrregularError("a tensor that is read and written")
    if overlapping(stores):
        raise IrregularError("stores that meet")
    return provers


def _may_saturate(tile: Tile, starts: dict[int, int]) -> bool:
    """Whether a partial sum of integers may be clamped, which the order then decides.

    `starts` keeps the largest magnitude of each bias tensor.
    """
    if tile.kind.kind != "int":
        return False
    start = 0
    if tile.bias is not None:
        tensor = tile.bias.tensor
        if tensor.address not in starts:
            row = tensor.buffer.data.view(tile.bias.kind.numpy)
            starts[tensor.address] = int(np.abs(row.astype(np.int64)).max())
        start = starts[tensor.address]
    products = sum(a.k << (a.kind.bits + b.kind.bits - 2) for a, b in tile.terms)
    return bool(start + products >= 2**31)


def _sources(tile: Tile) -> Iterator[int]:
    """Yield the addresses of the tensors that a tile is made from."""
    for pair in tile.terms:
        yield from (block.tensor.address for block in pair)
    if tile.bias is not None:
        yield tile.bias.tensor.address
