"""Programs with one thing fixed: larger tiles, more cores, a buffer more, a wait less."""

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import replace

from cubecore.isa.program.expr import Expr, Var
from cubecore.isa.program.launch import CoreProgram, Launch
from cubecore.isa.program.tree import Issue, Location, Loop, Node, Program
from cubecore.isa.scalar.sync import FftsCrossCoreSync, SetFlag

Change = Callable[[Node], Iterable[Node] | None]
"""The nodes that stand for a node; None: itself, with its body changed."""


def with_programs(launch: Launch, change: Callable[[Program], Program]) -> Launch:
    """Return a launch whose cores run changed programs; what cores shared they go on to share."""
    changed = {program: change(program) for program in launch.programs}
    cores = (replace(core, program=changed[core.program]) for core in launch.cores)
    return replace(launch, cores=tuple(cores))


def with_nodes(launch: Launch, change: Change) -> Launch:
    """Return a launch whose programs have other nodes."""
    return with_programs(launch, lambda program: rebuilt(program, change))


def rebuilt(program: Program, change: Change) -> Program:
    """Return a program with other nodes."""
    return with_body(program, rewritten(program.body, change))


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


def issues(loop: Loop) -> Iterator[Issue]:
    """Yield the instructions in a loop."""
    for node in loop.body:
        if isinstance(node, Issue):
            yield node
        elif isinstance(node, Loop):
            yield from issues(node)


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

    return rebuilt(program, change)


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


def with_tokens(
    program: Program, flags: Collection[SetFlag | FftsCrossCoreSync], where: Location
) -> Program:
    """Return a program in which flags are raised once more at its start: as a buffer more does."""
    raised = [Issue(flag, (), where) for flag in flags]
    return with_body(program, (*raised, *program.body))


def without(launch: Launch, unwanted: Callable[[Issue], bool]) -> Launch:
    """Return a launch without some instructions."""
    return with_nodes(
        launch, lambda node: [] if isinstance(node, Issue) and unwanted(node) else None
    )
