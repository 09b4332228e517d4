"""A product's kernel on one core as stages: loads of chunks, moves into L0, products, stores.

A kernel says in these records what its core does and what each part costs; the clock of this
package walks them, and knows nothing else of the kernel. They are to a tree what a timetable is to
a map: no address, no flag by number, and of what is alike one record.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from cubecore.tiling.cost.tile_counts import Level
from cubecore.timing.memory.memory_port import MemoryRequest


@dataclass(frozen=True)
class IssueCycles:
    """The scalar unit's cycles: of an issue, and with its own work of a step, a load, a tile."""

    issue: int
    step: int
    load: int
    tile: int


class Load(NamedTuple):
    """One transfer of a chunk: how often, until it is asked for, until its data are there."""

    times: int
    asked: int
    arrive: int
    request: MemoryRequest


@dataclass(frozen=True, slots=True)
class ChunkOrder:
    """The kinds of an operand's chunks in the order in which they are loaded.

    Each of `passes` along K loads the kinds that its number in `patterns` lists, which are as many
    for all. `firsts` has one chunk of each kind: its place along the operand's own axis and along
    K, and its `Touch` level, which is that of the innermost loop that has turned and loads it
    again, 0 where none has. Chunks of a kind are as long.
    """

    passes: list[int]
    patterns: list[list[int]]
    firsts: list[tuple[int, int, int]]

    def __len__(self) -> int:
        return len(self.passes) * len(self.patterns[0])

    def alike(self, start: int, period: int, most: int) -> int:
        """Return how many periods from `start` on are like the one before it, up to `most`.

        Of periods of whole passes those are counted whose passes are alike as a whole; others
        count within one pass.
        """
        length = len(self.patterns[0])
        if period % length == 0:
            first, shift = (start - period) // length, period // length
            passes = self.passes
            last = first + shift
            while last < len(passes) and passes[last] == passes[last - shift]:
                last += 1
            return min((last * length - start) // period, most)
        number, at = divmod(start, length)
        kinds = self.patterns[self.passes[number]] if number < len(self.passes) else []
        whole, count = kinds[at - period : at] if at >= period else None, 0
        while count < most and kinds[at : at + period] == whole:
            count, at = count + 1, at + period
        return count


@dataclass(frozen=True, slots=True)
class ChunkStages:
    """An operand's chunks of one block of C, and how long each stays in one of so many `buffers`.

    `loads` has for each pattern of `order` the loads of its chunks. With `ahead` the next one is
    asked for while one is used. `steps` are the base-K steps of a chunk, 0 where it stays longer.
    """

    order: ChunkOrder
    loads: Sequence[Sequence[Sequence[Load]]]
    buffers: int
    level: Level
    ahead: bool
    steps: int


class L0Move(NamedTuple):
    """Moves of MTE1, one right behind the other: alone, beside MTE2, and what a gap adds.

    None at all, no `times`, is a barrier.
    """

    times: int
    busy: int
    slowed: int
    head: int


class BaseKStep(NamedTuple):
    """A base-K step of a tile: the moves of A and of B, the product, and a barrier behind it."""

    a: tuple[L0Move, ...]
    b: tuple[L0Move, ...]
    busy: int
    head: int
    barrier: bool


@dataclass(frozen=True, slots=True)
class TileWork:
    """A tile of C: its base-K steps, and its store's cycles and request.

    Where it `frees` the table of a bias, no other tile needs that: behind its first product.
    """

    steps: tuple[BaseKStep, ...]
    store: int
    store_head: int
    request: MemoryRequest
    frees: bool


@dataclass(frozen=True, slots=True)
class TileTurn:
    """A tile in the walk over a block: its work, and the operands whose chunks begin and end.

    `kind` is the same for tiles that are alike. `copy` brings a part of a bias to its table, which
    several tiles may need: it is free behind the one that `frees` it.
    """

    kind: int
    enters: tuple[int, ...]
    releases: tuple[int, ...]
    work: TileWork
    copy: L0Move | None
    frees: bool


@dataclass(frozen=True, slots=True)
class BlockStages:
    """A block of C: the chunks of A and of B, and its rows of tiles, for each of its `matrices`.

    `rows` are the lengths of the outer axis' chunks, `turns` the tiles of one of each length.
    `bias` are the loads of a row that stays in L1. A block that `lies_apart` has its buffers
    elsewhere in L1 than the one before.
    """

    chunks: tuple[ChunkStages, ChunkStages]
    rows: Sequence[int]
    turns: Mapping[int, Sequence[TileTurn]]
    matrices: int
    bias: Sequence[Load] | None
    lies_apart: bool


@dataclass(frozen=True, slots=True)
class CoreStages:
    """The blocks of a core in turn, and the cycles of what is set before and behind them.

    `depth` are the places of a pipe's queue, and `l0a`, `l0b` and `l0c` numbers of buffers.
    """

    scalars: IssueCycles
    depth: int
    l0a: int
    l0b: int
    l0c: int
    settings: Sequence[int]
    blocks: Sequence[BlockStages]
    resets: bool


class NotEveryInstruction(Exception):  # noqa: N818 - no error: the caller walks the tree instead
    """The kernel has an instruction that this clock does not know, or more steps than it walks."""
