"""Rules on tiles: bytes of a copy, and what of the local memories they use."""

from collections.abc import Iterable, Iterator

from cubecore.advice.kernel_rules.case import KernelCase, Leaf
from cubecore.advice.kernel_rules.changes.changed_programs import (
    issues,
    with_nodes,
    with_programs,
)
from cubecore.advice.kernel_rules.changes.larger_tiles import enlarged
from cubecore.advice.kernel_rules.changes.scaled import rows_together
from cubecore.advice.kernel_rules.rule import Cause, rule
from cubecore.chips.model import Chip
from cubecore.isa.cube.product import CubeProduct
from cubecore.isa.declare.instruction import GlobalTraffic, Mem, Pipe
from cubecore.isa.program.launch import Launch
from cubecore.isa.program.tree import Issue, Loop, Node, Program

_HEAD_SHARE = 10
"""A copy is large enough where its head is one part in so many."""
_LEAST_ROWS = 4
"""Copies in a row that one copy of several rows may do."""
_LEAST_BUSY = 20
"""A line counts if its copies keep their pipe busy for one part in so many of the time."""


@rule(
    "small-copies",
    counts="bytes of a copy from or to global memory",
    threshold="the size from which what a copy costs before its first byte is under 10 % of its "
    "time",
    source="the chip's cycles per transfer and bytes per cycle (`cubecore chips`)",
    remedy="Copy larger tiles: raise the tile's length as far as the local memory allows.",
)
def small_copies(case: KernelCase) -> Iterator[Cause]:
    """Enlarge the tiles of each loop with small copies, as far as the local memory allows."""
    seen: set[int] = set()
    for leaf in _hottest_first(case):
        traffic = case.cost(leaf.issue).traffic
        if traffic is None or not leaf.loops or id(leaf.location) in seen:
            continue
        if _is_alone(case, leaf):
            continue
        if not _is_hot(case, leaf) or traffic.size_bytes >= enough_bytes(case.chip, traffic):
            continue
        seen |= {id(each.location) for each in issues(leaf.loops[-1])}
        yield from _larger(case, leaf, traffic)


@rule(
    "rows-one-by-one",
    counts="copies in a row, each of one row",
    threshold="four in a row, smaller than a copy whose head is under 10 % of its time",
    source="the chip's cycles per transfer and bytes per cycle (`cubecore chips`)",
    remedy="Copy all rows at once: one copy has a count of rows and the gaps between them.",
)
def rows_one_by_one(case: KernelCase) -> Iterator[Cause]:
    """Copy in one go what loops of nothing but a copy bring."""
    alone = [leaf for leaf in case.all_leaves if _is_alone(case, leaf)]
    if not alone:
        return
    loops = {id(leaf.loops[-1]) for leaf in alone}

    def change(node: Node) -> Iterable[Node] | None:
        if not isinstance(node, Loop) or id(node) not in loops:
            return None
        copy = node.body[0]
        assert isinstance(copy, Issue)
        return [rows_together(copy, node, case.chip)]

    leaf = max(alone, key=lambda each: case.busy(each.location, each.issue.template.pipe))
    traffic = case.cost(leaf.issue).traffic
    assert traffic is not None
    trips = leaf.loops[-1].trips.constant or 0
    text = (
        f"{trips:,} copies in a row move {traffic.size_bytes:,} B each, of which the head is "
        f"{head_share(case.chip, traffic):.0%}"
    )
    yield Cause(leaf.location, text, with_nodes(case.launch, change), "one copy of all rows")


def _is_alone(case: KernelCase, leaf: Leaf) -> bool:
    """True if a copy is all of a loop, and goes elsewhere in the local memory in each trip."""
    traffic = case.cost(leaf.issue).traffic
    loop = leaf.loops[-1] if leaf.loops else None
    if traffic is None or loop is None or len(loop.body) > 1:
        return False
    if (loop.trips.constant or 0) < _LEAST_ROWS:
        return False
    return _goes_elsewhere(leaf) and traffic.size_bytes < enough_bytes(case.chip, traffic)


def _goes_elsewhere(leaf: Leaf) -> bool:
    """True if a copy's addresses all move with the loop: no buffer is used again."""
    index = leaf.loops[-1].index
    return all(index in dict(at.terms) for at in leaf.issue.addresses)


@rule(
    "small-products",
    counts="elements of K in one Mmad",
    threshold="the K from which the head of an Mmad is under 10 % of its time",
    source="cycles of `mad`, and mad_queued_cycles of the chip (`cubecore chips`)",
    remedy="Multiply longer pieces of K at once, as far as L0A and L0B allow.",
)
def small_products(case: KernelCase) -> Iterator[Cause]:
    """Multiply longer pieces of K in each loop of short products."""
    head = case.chip.require("mad_queued_cycles", "advice")
    seen: set[int] = set()
    for leaf in sorted(case.all_leaves, key=lambda each: -case.busy(each.location, Pipe.M)):
        template = leaf.issue.template
        if not isinstance(template, CubeProduct) or not leaf.loops or id(leaf.location) in seen:
            continue
        busy = case.cost(leaf.issue).busy
        if busy >= _HEAD_SHARE * head or not _waits_for_products(case):
            continue
        seen |= {id(each.location) for each in issues(leaf.loops[-1])}
        room = min(case.room(mem) // max(case.used_bytes(mem), 1) for mem in (Mem.L0A, Mem.L0B))
        best = _best(case, leaf, room)
        if best is not None:
            k = template.k
            text = (
                f"each Mmad takes {busy} cycles, of which {head} are its head; pieces of "
                f"{k * best[1]:,} of K in place of {k:,} fit into L0A and L0B"
            )
            yield Cause(leaf.location, text, best[2], f"K {best[1]} times as long")


def _waits_for_products(case: KernelCase) -> bool:
    """True if what feeds the Cube, or the Cube, is busy for a good part of the time."""
    busy = sum(n for name, n in case.timeline.pipes.items() if name.split()[-1] in {"M", "MTE1"})
    return busy * 5 >= case.timeline.cycles


def _hottest_first(case: KernelCase) -> list[Leaf]:
    copies = [leaf for leaf in case.all_leaves if case.cost(leaf.issue).traffic is not None]
    return sorted(copies, key=lambda leaf: -case.busy(leaf.location, leaf.issue.template.pipe))


def _is_hot(case: KernelCase, leaf: Leaf) -> bool:
    busy = case.busy(leaf.location, leaf.issue.template.pipe)
    return busy * _LEAST_BUSY >= case.timeline.cycles


def enough_bytes(chip: Chip, traffic: GlobalTraffic) -> float:
    """Return the bytes from which on a copy's head is under a tenth of its time."""
    if traffic.of_ub:
        head = chip.gm_to_ub_transfer_cycles or 0
        rate = chip.ub_to_gm_bytes_per_cycle if traffic.writes else chip.gm_to_ub_bytes_per_cycle
    elif traffic.writes:
        head, rate = chip.l0c_to_gm_head_cycles or 0, chip.l0c_to_gm_bytes_per_cycle
    else:
        head, rate = chip.gm_to_l1_transfer_cycles or 0, chip.gm_to_l1_bytes_per_cycle
    return (_HEAD_SHARE - 1) * head * (rate or 0)


def _larger(case: KernelCase, leaf: Leaf, traffic: GlobalTraffic) -> Iterator[Cause]:
    mem = Mem.UB if traffic.of_ub else Mem.L0C if traffic.writes else Mem.L1
    used, room = case.used_bytes(mem), case.room(mem)
    fresh = _goes_elsewhere(leaf)
    best = _best(case, leaf, leaf.count if fresh else room // max(used, 1))
    if best is None:
        return
    size = traffic.size_bytes
    text = (
        f"each copy moves {size:,} B, of which the head is {head_share(case.chip, traffic):.0%}; "
        f"tiles of {size * best[1]:,} B fit"
    )
    if not fresh:
        text += f": {mem.label} is used to {used:,} of {room:,} B"
    yield Cause(leaf.location, text, best[2], f"tiles {best[1]} times as large")


def _best(case: KernelCase, leaf: Leaf, room: int) -> tuple[int, int, Launch] | None:
    """Return the cycles, the factor and the launch of the best larger tiles, up to `room` times."""
    best: tuple[int, int, Launch] | None = None
    factor = 2
    while factor <= min(leaf.count, room):
        launch = _enlarged(case, leaf, factor)
        cycles = case.with_all_bytes(case.again(launch))
        if best is None or cycles < best[0]:
            best = cycles, factor, launch
        factor *= 2
    return best


def _enlarged(case: KernelCase, leaf: Leaf, factor: int) -> Launch:
    """Return the launch with larger tiles in each program, wherever it copies at that line."""
    l0 = (Mem.L0A, Mem.L0B)
    fits = all(factor * case.used_bytes(mem) <= case.room(mem) for mem in l0)

    def change(program: Program) -> Program:
        leaves = case.leaves[program]
        like = (each for each in leaves if each.location is leaf.location and each.loops)
        key = next(like, None)
        if key is None:
            return program
        return enlarged(program, key, factor, case, fits_l0=fits)

    return with_programs(case.launch, change)


def head_share(chip: Chip, traffic: GlobalTraffic) -> float:
    """Return the share of a copy's time that its head takes."""
    enough = enough_bytes(chip, traffic) / (_HEAD_SHARE - 1)
    return enough / (enough + traffic.size_bytes)
