"""The BLAS engine: proof of what a group of equal cores computes, so that BLAS can compute it.

The program is walked once for all cores that run it. Local memories hold no bytes here but where
their contents come from. If each `mad` is shown to multiply two blocks of global matrices, and each
fixpipe to store such a sum, then the group computes tiles of C as sums of block products, and those
are all that is computed. Every check of the reference engine is made on the way. Whatever does not
fit (an unproven order of fractals, uninitialised lanes, any finding, instructions of other units)
is left to the reference engine, so the two never differ in what they report.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace

from cubecore.chips.model import Chip
from cubecore.isa.cube.fixpipe import CopyMatrixCcToGm
from cubecore.isa.cube.fixpipe_3510 import CopyMatrixCcToGmV2
from cubecore.isa.cube.mad import CopyCbufToBt, Mad
from cubecore.isa.cube.mad_mx import LoadCbufToCaMx, LoadCbufToCbMx, MadMx
from cubecore.isa.declare.instruction import Instruction
from cubecore.isa.declare.scale_registers import CopyCbufToFbuf
from cubecore.isa.mte.copies import (
    CopyGmToCbuf,
    CopyGmToCbufMultiNd2Nz,
    LoadCbufToCa,
    LoadCbufToCaTranspose,
    LoadCbufToCb,
    LoadCbufToCbTranspose,
)
from cubecore.isa.mte.copies_3510 import (
    CopyCbufToFbufV2,
    CopyGmToCbufMultiDn2Nz,
    CopyGmToCbufMultiNd2NzV2,
)
from cubecore.isa.mte.fill import CreateCbufMatrix
from cubecore.isa.mte.load2d_3510 import LoadCbufToCaV2Transpose
from cubecore.isa.program.launch import CoreGroup
from cubecore.isa.program.tree import Issue
from cubecore.machine.blas.accumulators import Accumulators
from cubecore.machine.blas.block_products import Block, IrregularError, ProductSum
from cubecore.machine.blas.checked_walk import Act, CheckedWalk, nothing, span_of
from cubecore.machine.blas.operand_cache import elements, require_matrix
from cubecore.machine.blas.provenance import Fill, Provenance, SquareLoad
from cubecore.machine.blas.scale_provenance import ScaleLoad, WordFill
from cubecore.machine.blas.stores import ProvenStore, Target, joined, require_order_does_not_matter
from cubecore.machine.memory.buffers import GlobalMemory, GlobalTensor
from cubecore.units import FRACTAL_ROWS


class Prover(CheckedWalk):
    """A sink for `Program.run`: follows where bytes come from, and collects the stores."""

    def __init__(self, chip: Chip, gm: GlobalMemory, group: CoreGroup) -> None:
        super().__init__(chip)
        self._gm, self.group = gm, group
        self._provenance = Provenance(chip, gm)
        self._accumulators = Accumulators()
        # What BiasTable and the Fixpipe buffer hold, by address: only rows that one transfer
        # brought.
        self._bias: dict[int, tuple[Block, CopyCbufToBt]] = {}
        self._scales: dict[int, Block] = {}
        self._magnitudes: dict[int, int] = {}
        # An instruction that is not in this table ends the proof: nothing is assumed of what is not
        # known.
        self._makers: dict[type[Instruction], Callable[..., Act]] = {
            CopyGmToCbuf: self._fill,
            CopyGmToCbufMultiNd2Nz: self._fill,
            CopyGmToCbufMultiDn2Nz: self._fill,
            CopyGmToCbufMultiNd2NzV2: self._fill,
            CreateCbufMatrix: self._zero,
            LoadCbufToCa: self._load,
            LoadCbufToCb: self._load,
            LoadCbufToCaTranspose: self._turn,
            LoadCbufToCbTranspose: self._turn,
            LoadCbufToCaV2Transpose: self._turn,
            LoadCbufToCaMx: self._load_scales,
            LoadCbufToCbMx: self._load_scales,
            CopyCbufToBt: self._bias_row,
            CopyCbufToFbuf: self._scale_row,
            CopyCbufToFbufV2: self._scale_row,
            Mad: self._multiply,
            MadMx: self._multiply,
            CopyMatrixCcToGm: self._store,
            CopyMatrixCcToGmV2: self._store,
        }
        self.stores: list[ProvenStore] = []

    def move(self, template: Instruction, issue: Issue) -> Act:
        """Return what an instruction does with its operands."""
        maker = self._makers.get(type(template))
        if maker is None:
            raise IrregularError(template.name)
        return maker(template, issue)

    # --- global memory

    def _tensor(
        self, address: int, distances: tuple[int, ...], start: int, end: int
    ) -> GlobalTensor:
        """Return the tensor that holds bytes [address + start, address + end) of every core."""
        # One tensor for the lowest and the highest byte of all cores: those between lie in it as
        # well.
        tensor = self._gm.at(address + min(distances) + start)
        if tensor is None or address + max(distances) + end > tensor.end:
            raise IrregularError("an address outside its tensor")
        return tensor

    def _fill(self, template: Fill | WordFill, issue: Issue) -> Act:
        distances, span = self.group.distances(issue), span_of(template, "src")
        if span == (0, 0):
            return nothing
        if isinstance(template, Fill):
            bring = self._provenance.fill(template, distances)
        else:
            bring = self._provenance.fill_words(template, distances)

        def fill(dst: int, src: int) -> None:
            # Only what the host placed is sure to be initialised and to stay as it is: no store of
            # this launch may reach it (`prove`).
            if not self._tensor(src, distances, *span).placed:
                raise IrregularError("a source that is not wholly initialised")
            bring(dst, src)

        return fill

    def _zero(self, template: CreateCbufMatrix, issue: Issue) -> Act:
        return self._provenance.zero(template)

    # --- L1 to L0, BiasTable and the Fixpipe buffer

    def _load(self, template: LoadCbufToCa | LoadCbufToCb, issue: Issue) -> Act:
        return self._provenance.load(template)

    def _turn(self, template: SquareLoad, issue: Issue) -> Act:
        return self._provenance.turn(template)

    def _load_scales(self, template: ScaleLoad, issue: Issue) -> Act:
        return self._provenance.load_scales(template)

    def _bias_row(self, template: CopyCbufToBt, issue: Issue) -> Act:
        kind, count = template.src_type, template.len_burst * template.src_type.c0
        if template.n_burst != 1:
            raise IrregularError("a bias that is not one row")

        def bring(dst: int, src: int) -> None:
            row = self._provenance.row(src, kind, count)
            # Rows overlap in ways that depend on their type; one row at a time is all that kernels
            # of ours hold.
            self._bias = {at: b for at, b in self._bias.items() if at == dst}
            self._bias[dst] = (row, template)

        return bring

    def _scale_row(self, template: CopyCbufToFbuf | CopyCbufToFbufV2, issue: Issue) -> Act:
        if template.n_burst != 1:
            raise IrregularError("scales that are not one row")
        count = template.offsets("dst").size

        def bring(dst: int, src: int) -> None:
            row = self._provenance.row(src, template.word, count)
            end = dst + template.word.bytes_of(count)
            self._scales = {
                at: s
                for at, s in self._scales.items()
                if at >= end or at + s.kind.bytes_of(s.k) <= dst
            }
            self._scales[dst] = row

        return bring

    # --- the matmul

    def _multiply(self, template: Mad | MadMx, issue: Issue) -> Act:
        if template.empty:
            return nothing
        hf32 = "off"
        # The sum of a tile would be rounded after each base-K step, and BLAS sums all of K at once.
        if template.c_type.name == "float16":
            raise IrregularError("sums in half, which are rounded mad by mad")
        if isinstance(template, Mad):
            hf32 = template.hf32
            if template.starts_from_tile:
                raise IrregularError("a start from another tile")
        operands = self._provenance.operands(template)

        def multiply(c: int, a: int, b: int, bias: int = 0) -> None:
            left, right = operands(a, b)
            # Columns of B beyond what was loaded would be uninitialised lanes; of A they are rows
            # of zeros (`ProductSum`).
            if right.r < template.n:
                raise IrregularError("columns of B that were never loaded")
            if hf32 != "off":
                left, right = (replace(x, hf32=hf32) for x in (left, right))
            # Terms of one tile are joined along K: a whole row of base-K steps becomes one matmul.
            if template.accumulates:
                l0c_tile = self._accumulators.at(c)
                if (l0c_tile.m, l0c_tile.n) != (template.m, template.n):
                    raise IrregularError("an accumulation onto another tile")
                l0c_tile.tile = l0c_tile.tile.plus(left, right)
            else:
                tile = self._start(template, bias)
                self._accumulators.start(c, tile.plus(left, right))

        return multiply

    def _start(self, template: Mad | MadMx, bias: int) -> ProductSum:
        if not template.starts_from_bias:
            return ProductSum(template.m, template.n, template.c_type)
        row = self._bias.get(bias)
        if row is None or row[0].k < template.n or row[1].dst_type is not template.c_type:
            raise IrregularError("a bias that was never loaded, or of another type")
        start = replace(row[0], k=template.n)
        return ProductSum(
            template.m, template.n, template.c_type, start, largest=self._largest(start)
        )

    def _largest(self, row: Block) -> int:
        """Return the largest magnitude in the tensor that an integer bias is from; 0 for floats."""
        if row.kind.kind != "int":
            return 0
        address = row.tensor.address
        if address not in self._magnitudes:
            values = elements(row.tensor, row.kind)
            self._magnitudes[address] = max(-int(values.min()), int(values.max()))
        return self._magnitudes[address]

    # --- the store

    def _store(self, template: CopyMatrixCcToGm, issue: Issue) -> Act:
        t, kind = template, template.dst_type
        if t.nd_num != 1 or t.rearranges or kind.bits < 8:
            raise IrregularError("a store of several matrices, by columns, or of less than a byte")
        distances, span = self.group.distances(issue), span_of(template, "dst")
        # ND: rows `dst_stride` apart. NZ below: columns of fractals `column_elements` apart, whose
        # rows follow each other.
        target = Target(kind, t.dst_stride)
        if not t.nz2nd_en:
            wide = t.fractal_columns
            target = Target(kind, wide, wide, t.column_elements)
        plain = _shapeless(template)
        registers = self.registers

        def store(dst: int, src: int) -> None:
            tile = self._accumulators.at(src)
            if t.m_size > tile.m or t.src_type is not tile.tile.kind:
                raise IrregularError("a store that is not of a known tile")
            # The stride matters from the second column of fractals on.
            if t.src_stride != tile.column_rows and t.n_size > FRACTAL_ROWS:
                raise IrregularError("a store with another stride than the tile's")
            tensor = self._tensor(dst, distances, *span)
            offset, odd = divmod(dst - tensor.address, kind.size_bytes)
            size = tensor.buffer.size_bytes
            if odd or any(d % kind.size_bytes for d in (size, *distances)):
                raise IrregularError("a destination off its elements")
            proven = ProvenStore(
                *(tile.tile, tensor, offset, distances, t.m_size, t.n_size),
                *(target, plain, registers, self._scales_of(template)),
                self._accumulators.leftovers(tile, t.m_size, t.n_size),
            )
            # Tiles come in the order of the kernel: neighbours join to one large matmul as they
            # come, which BLAS computes several times as fast.
            larger = joined(self.stores[-1], proven) if self.stores else None
            if larger is None:
                self.stores.append(proven)
            else:
                self.stores[-1] = larger

        return store

    def _scales_of(self, template: CopyMatrixCcToGm) -> Block | None:
        if template.scales_at is None:
            return None
        row = self._scales.get(template.scales_at)
        if row is None or row.k < template.n_size:
            raise IrregularError("scales that were never loaded")
        return replace(row, k=template.n_size)


def _shapeless(template: CopyMatrixCcToGm) -> CopyMatrixCcToGm:
    """Return a template that converts alike, whatever part of a tile it stores and where."""
    some = FRACTAL_ROWS
    shape = replace(template, m_size=some, n_size=some, src_stride=some, dst_stride=some)
    return replace(shape, scales_at=None, unit_flag=0)


def prove(chip: Chip, gm: GlobalMemory, groups: Sequence[CoreGroup]) -> list[Prover]:
    """Return what each group of cores computes.

    Raises
    ------
    IrregularError
        If the program cannot be proven to be block products without findings, independent of order.
    """
    provers = [Prover(chip, gm, group) for group in groups]
    for prover in provers:
        # The first core's slots stand for all: others differ by distances alone, which
        # `group.distances` has.
        prover.group.program.run(prover, prover.group.slots[0])
    stores = [store for prover in provers for store in prover.stores]
    read = {block.tensor.address for store in stores for block in store.reads()}
    # Matmuls are computed after the whole walk: what is stored must not be what another matmul
    # reads.
    if any(store.tensor.address in read for store in stores):
        raise IrregularError("a tensor that is read and written")
    require_order_does_not_matter(stores)
    # By identity: equal blocks are one object mostly, and hashing one costs more than the look.
    tiles = {id(tile): tile for store in stores for tile in store.tiles()}.values()
    for block in {id(x): x for tile in tiles for pair in tile.terms for x in pair}.values():
        require_matrix(block)
    return provers
