"""The shares of cores in attention: heads, blocks of rows of a head, and parts of its keys."""

from collections.abc import Iterator
from dataclasses import dataclass
from heapq import heappop, heappush
from typing import NamedTuple

from cubecore.isa.program.expr import Expr
from cubecore.kernels.build.builder import Builder
from cubecore.kernels.operators.attention.shape import AttentionShape
from cubecore.units import ceil_div

_MOST_PARTS = 32
"""Parts of a core up to which the rows of a head are cut under a mask: each is in its tree."""


_NEARLY_EVEN = 1.04
"""The longest work of a core, over that of the most even way to give out rows under a mask."""


class PartExtent(NamedTuple):
    """Some heads of a core, and which blocks of rows of each: what its tree depends on.

    `levels` are nested loops over blocks of rows, (trips, blocks of rows from trip to trip), from
    `start` on. Heads lie `apart` heads from each other; `of_group` is the number of the first one
    among those that share keys.
    """

    heads: int
    levels: tuple[tuple[int, int], ...]
    start: int = 0
    apart: int = 1
    of_group: int = 0


@dataclass(frozen=True, slots=True)
class AttentionPart:
    """A part of a core: its extent, and where it begins in Q and in K, bytes.

    `row` is the first row of Q, among those of all heads, and `split` the part of the keys.
    """

    extent: PartExtent
    query: int
    key: int
    row: int = 0
    split: int = 0


class RowBlock(NamedTuple):
    """A block of rows in its loops.

    `row` is its first row behind the part's beginning, `number` the block's in its head, and
    `key_head` the head of its keys behind the part's first one.
    """

    row: Expr
    number: Expr
    key_head: Expr


def attention_shares(shape: AttentionShape, cores: int) -> list[tuple[AttentionPart, ...]]:
    """Return each core's parts: whole heads where there are many, or parts of them.

    The rows of a head are cut where that spreads the work better over the cores.
    """
    return _masked(shape, cores) if shape.causal else _full(shape, cores)


def row_blocks(builder: Builder, shape: AttentionShape, part: PartExtent) -> Iterator[RowBlock]:
    """Yield the blocks of rows of a part, in loops over its heads and rows.

    The body of the ``for`` statement is built once.
    """
    rows = shape.stored_rows
    with builder.loop("head", part.heads) as head:
        key_head = (head * part.apart + part.of_group) // shape.group
        for number in _levels(builder, part.levels, Expr(part.start)):
            row = head * (part.apart * shape.row_blocks * rows) + number * rows
            yield RowBlock(row, number, key_head)


def _levels(builder: Builder, levels: tuple[tuple[int, int], ...], number: Expr) -> Iterator[Expr]:
    if not levels:
        yield number
        return
    trips, apart = levels[0]
    with builder.loop("rows", trips) as index:
        yield from _levels(builder, levels[1:], number + index * apart)


def _full(shape: AttentionShape, cores: int) -> list[tuple[AttentionPart, ...]]:
    blocks, heads = shape.row_blocks, shape.heads * shape.splits
    cuts = [cut for cut in range(1, blocks + 1) if blocks % cut == 0]
    cut = min(cuts, key=lambda cut: (ceil_div(heads * cut, cores) / cut, cut))
    each = ceil_div(heads * cut, cores)
    rows, size = blocks // cut, shape.dtype.size_bytes
    part_rows, row_bytes = rows * shape.stored_rows, shape.width * size

    def part(unit: int, count: int) -> AttentionPart:
        """Return some heads from a unit on; a unit is a part of a head's rows and of its keys."""
        head, split = divmod(unit // cut, shape.splits)
        row = (head * cut + unit % cut) * part_rows
        key = head * shape.keys + split * shape.task_keys
        extent = PartExtent(count, ((rows, 1),))
        return AttentionPart(extent, row * row_bytes, key * row_bytes, row, split)

    shares: list[tuple[AttentionPart, ...]] = []
    for first in range(0, heads * cut, each):
        count = min(each, heads * cut - first)
        whole = cut == 1 and shape.splits == 1
        chosen = range(first, first + count)
        shares.append((part(first, count),) if whole else tuple(part(u, 1) for u in chosen))
    return shares


def _masked(shape: AttentionShape, cores: int) -> list[tuple[AttentionPart, ...]]:
    # Later rows see more keys. A head is cut so that each part has early rows and late ones, where
    # it can be. Cores with other parts have other trees, each of which is built and timed: of the
    # ways that are nearly as even as the best one the one with the fewest is taken.
    blocks = shape.row_blocks
    ways: list[tuple[int, int, list[tuple[AttentionPart, ...]]]] = []
    for cut in (cut for cut in range(1, blocks + 1) if blocks % cut == 0):
        if cut > 1 and shape.heads * cut > _MOST_PARTS * cores:
            break
        extents = [_spread(blocks, cut, unit) for unit in range(cut)]
        work = [sum(map(shape.key_blocks, _numbers(each))) for each in extents]
        for given in _given_out(work, shape.heads, cores):
            most = max(sum(work[unit] for _, unit in each) for each in given)
            shares = [_parts_of(shape, extents, each) for each in given if each]
            trees = len({tuple(part.extent for part in share) for share in shares})
            ways.append((most, trees, shares))
    even = min(most for most, _, _ in ways) * _NEARLY_EVEN
    return min((way for way in ways if way[0] <= even), key=lambda way: (way[1], way[0]))[2]


def _spread(blocks: int, cut: int, unit: int) -> PartExtent:
    """Return a part of a head's blocks of rows: early and late ones where they come in pairs."""
    # Unit u of 4 takes blocks u and 7 - u of each 8: together they see as many keys as those of any
    # other unit, and the two lie a fixed distance apart, so that two loops walk them.
    turns, rest = divmod(blocks, 2 * cut)
    if cut == 1 or rest:
        return PartExtent(1, ((blocks // cut, cut),), unit)
    return PartExtent(1, ((turns, 2 * cut), (2, 2 * cut - 1 - 2 * unit)), unit)


def _numbers(extent: PartExtent) -> list[int]:
    """Return the numbers of the blocks of rows of an extent."""
    numbers = [extent.start]
    for trips, apart in extent.levels:
        numbers = [number + turn * apart for number in numbers for turn in range(trips)]
    return numbers


def _given_out(work: list[int], heads: int, cores: int) -> Iterator[list[list[tuple[int, int]]]]:
    """Yield ways to give out units of heads: the (head, unit) of each core."""
    if len(work) == 1:
        each = ceil_div(heads, cores)
        yield [
            [(head, 0) for head in range(first, min(first + each, heads))]
            for first in range(0, heads, each)
        ]
        return
    # Cores that have one unit of their heads each; or the longest units first, each to the core
    # that has least to do.
    if cores % len(work) == 0:
        apart = cores // len(work)
        yield [
            [(head, unit) for head in range(first, heads, apart)]
            for unit in range(len(work))
            for first in range(apart)
        ]
    given: list[list[tuple[int, int]]] = [[] for _ in range(cores)]
    loads = [(0, core) for core in range(cores)]
    for unit in sorted(range(len(work)), key=lambda unit: (-work[unit], unit)):
        for head in range(heads):
            load, core = heappop(loads)
            given[core].append((head, unit))
            heappush(loads, (load + work[unit], core))
    yield given


def _parts_of(
    shape: AttentionShape, extents: list[PartExtent], units: list[tuple[int, int]]
) -> tuple[AttentionPart, ...]:
    """Return a core's parts: heads at equal distances that have one extent are one part."""
    size = shape.dtype.size_bytes * shape.width
    parts: list[AttentionPart] = []
    for unit in sorted({unit for _, unit in units}):
        heads = sorted(head for head, each in units if each == unit)
        while heads:
            run = _evenly_spaced(heads)
            heads = heads[len(run) :]
            first, apart = run[0], run[1] - run[0] if len(run) > 1 else 1
            of_group = first % shape.group if len(run) > 1 else 0
            extent = extents[unit]._replace(heads=len(run), apart=apart, of_group=of_group)
            query, key = first * shape.queries, first // shape.group * shape.keys
            parts.append(AttentionPart(extent, query * size, key * size))
    return tuple(parts)


def _evenly_spaced(numbers: list[int]) -> list[int]:
    """Return as many of the first numbers as lie at equal distances."""
    count = min(len(numbers), 2)
    while count < len(numbers) and numbers[count] - numbers[count - 1] == numbers[1] - numbers[0]:
        count += 1
    return numbers[:count]
