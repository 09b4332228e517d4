"""The accesses of global memory of a matmul kernel, as trees without anything else.

What L2 holds, what cores share and where rows start is worked out on these as on the whole trees:
the loads are those of the kernel's own streams, the stores stand in its own loops.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from cubecore.isa.program.launch import CoreProgram, Launch
from cubecore.isa.program.tree import Issue, Node, Program
from cubecore.kernels.build.builder import Builder
from cubecore.kernels.matmul.bias_and_scale_rows import TableRow
from cubecore.kernels.matmul.block import BlockShape, BlockTree
from cubecore.kernels.matmul.chunk_stream import Along, ChunkStream
from cubecore.kernels.matmul.launch import blocks_of_cores, core_shares, launch_tensors
from cubecore.kernels.matmul.plan import MatmulPlan
from cubecore.tiling.cost.tile_counts import LEVELS
from cubecore.tiling.model.core_grid import CoreBlock


class _Silent:
    """A stream that loads nothing."""

    def enter(self, level: str) -> None:
        """Nothing begins."""

    def leave(self, level: str) -> None:
        """Nothing ends."""


class TileShape(NamedTuple):
    """A tile of m x n elements in a chunk of chunk_m x chunk_n: tiles of one shape are alike."""

    m: int
    n: int
    chunk_m: int
    chunk_n: int


class AccessTree(BlockTree):
    """The loads and the stores of a block of C.

    `bodies` are what a load of A and of B is in the tree, `stores` the store of each shape of tile,
    and `row` the load of a bias that stays in L1.
    """

    streams: dict[str, ChunkStream]
    bodies: dict[str, Sequence[Node]]
    stores: dict[TileShape, Issue]
    row: Sequence[Node]

    def _build(self) -> None:
        b, batches = self.builder, self.share.batches
        # The tree of the real kernel with its loops and streams, but only transfers and stores as
        # leaves: what follows from the position of an access in its nest is the same in both.
        self.streams, self.bodies, self.stores, self.row = {}, {}, {}, ()
        with b.loop("batch", batches) as matrix, b.part(matrix, batches):
            self.scales, self.bias = self._rows()
            if self.bias is not None and self.bias.is_resident:
                self.bias.transfer(self.bias.addresses.source, self.share.n)
                self.row = b.body[-1:]
            self.at_c = self._source("c", matrix, self.plan.c.stored_bytes)
            for name in "ab":
                stream = self._stream(name, matrix)
                assert isinstance(stream, ChunkStream), "template MDL"
                self.streams[name] = stream
            # The order of first loads decides what L2 still holds of the block before.
            for name in sorted("ab", key=self._loaded):
                before = len(b.body)
                self.streams[name].load_chunk()
                self.bodies[name] = b.body[before:]
            self.stream_a = self.stream_b = _Silent()  # type: ignore[assignment]
            for m_chunk, n_chunk in self._chunks():
                self._tiles(m_chunk, n_chunk)

    def _loaded(self, name: str) -> int:
        """Return when an operand's first load is issued: at the start, or where its level begins.

        How long ago a client before on this core loaded the same counts from there.
        """
        stream = self.streams[name]
        return 0 if stream.ahead else LEVELS.index(stream.level)

    @property
    def _table_rows(self) -> tuple[TableRow, ...]:
        return ()

    def _tile(self, m: Along, n: Along) -> None:
        store = self.plan.c.store(m.length, n.length)
        self.builder.issue(store, self.at_c + self.plan.c.tile(m.tile, n.tile), 0)
        issue = self.builder.body[-1]
        assert isinstance(issue, Issue), "the store"
        self.stores[TileShape(m.length, n.length, m.chunk, n.chunk)] = issue


@dataclass(frozen=True)
class ProgramTrees:
    """Cores of one program: the shares that they compute, and the trees of these."""

    program: Program
    shares: tuple[BlockShape, ...]
    trees: tuple[AccessTree, ...]


def access_launch(plan: MatmulPlan) -> tuple[Launch, list[ProgramTrees]]:
    """Return the launch with the accesses alone, and its kinds of cores."""
    # Cores with equal lists of shares run one program; they differ in the slots, that is where
    # their tensors begin.
    kinds: dict[tuple[BlockShape, ...], ProgramTrees] = {}
    cores = []
    for core, core_blocks in enumerate(blocks_of_cores(plan)):
        shares = core_shares(plan, core_blocks)
        if shares not in kinds:
            kinds[shares] = _kind(plan, shares)
        cores.append(_on_core(core, kinds[shares], core_blocks))
    return Launch(launch_tensors(plan), tuple(cores), plan.step), list(kinds.values())


def _kind(plan: MatmulPlan, shares: tuple[BlockShape, ...]) -> ProgramTrees:
    builder = Builder("accesses", plan.step)
    trees: list[AccessTree] = []
    for number, share in enumerate(shares):
        with builder.part(number, len(shares)):
            trees.append(AccessTree(plan, builder, share, trees[-1] if trees else None))
    return ProgramTrees(builder.finish(), shares, tuple(trees))


def _on_core(core: int, kind: ProgramTrees, blocks: Sequence[CoreBlock]) -> CoreProgram:
    pairs = zip(kind.trees, blocks, strict=True)
    slots = {var: offset for tree, block in pairs for var, offset in tree.slots(block).items()}
    return CoreProgram(core, kind.program, slots)
