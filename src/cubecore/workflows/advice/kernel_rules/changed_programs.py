"""Programs with one thing mended: larger tiles, more cores, a buffer more, a wait less."""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from cubecore.chips.model import Chip
from cubecore.isa.program.expr import Expr, Var
from cubecore.isa.program.launch import CoreProgram, Launch
from cubecore.isa.program.tree import Issue, Location, Loop, Node, Program
from cubecore.isa.scalar.sync import SetFlag
from cubecore.workflows.advice.kernel_rules.case import Leaf
from cubecore.workflows.advice.kernel_rules.scaled import Scaler

Change = Callable[[Node], Iterable[Node] | None]
"""What stands for a node; None: itself, with its body changed."""


def with_programs(launch: Launch, changed: Mapping[Program, Program]) -> Launch:
    """Return a launch whose cores run other programs."""
    cores = (
        replace(core, program=changed.get(core.program, core.program)) for core in launch.cores
    )
    return replace(launch, cores=tuple(cores))


def with_body(program: Program, body: Iterable[Node]) -> Program:
    """Return a program with another body."""
    return Program(tuple(body), program.slots, program.name)


def rewritten(body: Sequence[Node], change: Change) -> Iterator[Node]:
    """Yield the nodes of a plain body, changed."""
    for node in body:
        instead = change(node)
        if instead is not None:
            yield from instead
        elif isinstance(node, Loop):
            inner = tuple(rewritten(node.body, change))
            if inner:
                yield replace(node, body=inner)
        else:
            yield node


def enlarged(program: Program, tile: Loop, key: Leaf, factor: int, chip: Chip) -> Program:
    """Return a program whose tiles, one for each trip of a loop, are `factor` times as large.

    What stands in the loop does so many times the work, a loop in it has so many times the trips,
    and so it is where the same lines stand outside, as a first or a last tile does. `key` is the
    instruction by which tiles are counted: there are as many less of them.
    """
    direct = {id(node.location) for node in tile.body if isinstance(node, Issue)}
    nested = {
        id(leaf.location) for node in tile.body if isinstance(node, Loop) for leaf in issues(node)
    }
    scaler = Scaler(factor, chip)
    outside = _runs(program.body, key.location, tile)
    inside = sum(each.location is key.location for each in tile.body if isinstance(each, Issue))
    trips = tile.trips.constant or 0
    turns = _product(key.loops, tile)
    kept = round(((trips * inside + outside / turns) / factor - outside / turns) / max(inside, 1))

    def change(node: Node) -> Iterable[Node] | None:
        if node is tile:
            return (
                [replace(tile, trips=Expr(kept), body=tuple(_scaled(tile.body)))]
                if kept > 0
                else []
            )
        if isinstance(node, Issue):
            return [scaler.issue(node, changed=id(node.location) in direct)]
        if isinstance(node, Loop):
            places = {id(leaf.location) for leaf in issues(node)}
            if places <= nested and not places & direct:
                return [replace(node, trips=Expr((node.trips.constant or 0) * factor))]
        return None

    def _scaled(body: Sequence[Node]) -> Iterator[Node]:
        for node in body:
            if isinstance(node, Loop):
                yield replace(node, trips=Expr((node.trips.constant or 0) * factor))
            elif isinstance(node, Issue):
                yield scaler.issue(node)

    return with_body(program, rewritten(program.body, change))


def issues(loop: Loop) -> Iterator[Issue]:
    """Yield the instructions in a loop."""
    for node in loop.body:
        if isinstance(node, Issue):
            yield node
        elif isinstance(node, Loop):
            yield from issues(node)


def _runs(body: Sequence[Node], where: Location, but: Loop, times: int = 1) -> int:
    """Return how often a line's instruction runs outside of a loop."""
    count = 0
    for node in body:
        if isinstance(node, Issue):
            count += times * (node.location is where)
        elif isinstance(node, Loop) and node is not but:
            count += _runs(node.body, where, but, times * (node.trips.constant or 0))
    return count


def _product(loops: Sequence[Loop], inner: Loop) -> int:
    """Return how often a loop is entered."""
    entered = 1
    for loop in loops:
        if loop is inner:
            break
        entered *= loop.trips.constant or 0
    return max(entered, 1)


def shortened(program: Program, share: float) -> Program:
    """Return a program that does a share of its work: its longest loops have fewer trips."""
    weights = {id(node): _weight([node]) for node in program.body}
    whole = sum(weights.values())
    outermost = [
        node for node in program.body if isinstance(node, Loop) and weights[id(node)] * 8 >= whole
    ]
    looped = sum(weights[id(node)] for node in outermost)
    part = max(share * whole - (whole - looped), 0) / looped if looped else 1.0

    def change(node: Node) -> Iterable[Node] | None:
        if not isinstance(node, Loop) or not any(node is one for one in outermost):
            return None
        trips = node.trips.constant or 0
        if trips * part >= 1 or len(node.body) != 1 or not isinstance(node.body[0], Loop):
            kept = round(trips * part)
            return [replace(node, trips=Expr(kept))] if kept else []
        return None

    return with_body(program, rewritten(program.body, change))


def _weight(body: Sequence[Node]) -> int:
    return sum(
        _weight(node.body) * (node.trips.constant or 0) if isinstance(node, Loop) else 1
        for node in body
    )


def spread(launch: Launch, cores: Sequence[tuple[int, int]]) -> Launch:
    """Return a launch whose work is spread evenly over so many cores, (number, part) of each."""
    share = len(launch.cores) / len(cores)
    short = {program: shortened(program, share) for program in launch.programs}
    sizes = {tensor.name: tensor.size_bytes for tensor in launch.tensors}
    made = []
    for number, (core, sub) in enumerate(cores):
        like = launch.cores[number % len(launch.cores)]
        slots = {
            var: (name, _offset(launch, var, number, sizes[name] / len(cores)))
            for var, (name, _) in like.slots.items()
        }
        made.append(CoreProgram(core, short[like.program], slots, sub))
    return replace(launch, cores=tuple(made))


def _offset(launch: Launch, var: Var, number: int, step: float) -> int:
    """Return where the share of a core begins: cores that shared a tensor go on to do so."""
    offsets = {core.slots[var][1] for core in launch.cores if var in core.slots}
    if len(launch.cores) > 1 and len(offsets) == 1:
        return next(iter(offsets))
    return int(number * step) // 512 * 512


def with_tokens(program: Program, flags: Collection[SetFlag], where: Location) -> Program:
    """Return a program in which flags are raised once more at its start: as a buffer more does."""
    raised = [Issue(flag, (), where) for flag in flags]
    return with_body(program, (*raised, *program.body))


def without(program: Program, unwanted: Callable[[Issue], bool]) -> Program:
    """Return a program without some instructions."""

    def change(node: Node) -> Iterable[Node] | None:
        return [] if isinstance(node, Issue) and unwanted(node) else None

    return with_body(program, rewritten(program.body, change))
