"""Rules on work: short vector calls, and masked lanes."""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import partial

from cubecore.advice.kernel_rules.case import KernelCase, Leaf
from cubecore.advice.kernel_rules.changes.changed_programs import with_nodes
from cubecore.advice.kernel_rules.changes.scaled import Scaler, with_fields
from cubecore.advice.kernel_rules.rule import Cause, rule
from cubecore.isa.declare.instruction import Pipe
from cubecore.isa.program.tree import Issue, Loop, Node
from cubecore.isa.scalar.sync import PipeBarrier
from cubecore.isa.vector.common.mask import SetMaskCount, SetMaskNorm, SetVectorMask
from cubecore.isa.vector.common.repeated import Repeated
from cubecore.units import DATA_BLOCK_BYTES, ceil_div

_LEAST_CALLS = 4
_MOST_STRIDE = 255
"""32 B blocks from repeat to repeat that an instruction can say."""


@rule(
    "short-vectors",
    counts="vector instructions in a row, of a few repeats each",
    threshold="four calls in a row, each with a head of a tenth of its time or more",
    source="vector_head_cycles and vector_repeat_cycles of the chip (`cubecore chips`)",
    remedy="Call it once for all of them: by a count, or with repeats.",
)
def short_vectors(case: KernelCase) -> Iterator[Cause]:
    """Call the instructions of such loops once, with as many times the repeats."""
    loops = {id(leaf.loops[-1]): leaf for leaf in case.all_leaves if _is_short(case, leaf)}
    loops = {key: leaf for key, leaf in loops.items() if _mostly_in(case, leaf, set(loops))}
    if not loops:
        return
    leaf = max(loops.values(), key=lambda each: case.busy(each.location, Pipe.V))
    better = with_nodes(case.launch, partial(_called_once, case, set(loops)))
    trips = leaf.loops[-1].trips.constant or 0
    busy = case.cost(leaf.issue).busy
    text = (
        f"{leaf.issue.template.name} is called {trips:,} times in a row for {busy} cycles each, of "
        f"which {case.chip.vector_head_cycles} are its head"
    )
    yield Cause(leaf.location, text, better, "one call for all")


def _mostly_in(case: KernelCase, leaf: Leaf, loops: set[int]) -> bool:
    """True if a line's instructions mostly run in loops: by the code, not by chance of the data."""
    of_line = [each for each in case.all_leaves if each.location is leaf.location]
    inside = [each for each in of_line if each.loops and id(each.loops[-1]) in loops]
    return 2 * sum(each.count for each in inside) > sum(each.count for each in of_line)


def _is_short(case: KernelCase, leaf: Leaf) -> bool:
    head = case.chip.vector_head_cycles or 0
    if not leaf.loops or leaf.issue.template.pipe is not Pipe.V:
        return False
    loop = leaf.loops[-1]
    parts = [node for node in loop.body if isinstance(node, Issue)]
    if len(parts) < len(loop.body) or not all(_joins(case, each, loop) for each in parts):
        return False
    return case.cost(leaf.issue).busy < 10 * head and (loop.trips.constant or 0) >= _LEAST_CALLS


def _joins(case: KernelCase, issue: Issue, loop: Loop) -> bool:
    """True if one call can do what an instruction does in all trips of a loop.

    Its addresses move evenly, and what it writes lies elsewhere each time.
    """
    template = case.resolved(issue)
    if isinstance(template, (SetVectorMask, SetMaskCount, SetMaskNorm)):
        return True
    if isinstance(template, PipeBarrier):
        return template.on == "V"
    if not isinstance(template, Repeated) or issue.varies:
        return False
    operands = zip(template.operands(), issue.addresses, strict=True)
    return all(
        _moves_on(template, operand.name, dict(address.terms).get(loop.index, 0))
        and (not operand.access.writes or loop.index in dict(address.terms))
        for operand, address in operands
    )


def _moves_on(template: Repeated, operand: str, step: int) -> bool:
    """True if an operand that moves so far from call to call does as repeats of one call do."""
    counts = template.lanes is not None and template.lanes.counts
    if template.repeats == 1:
        return step % DATA_BLOCK_BYTES == 0 and step // DATA_BLOCK_BYTES <= _MOST_STRIDE
    if counts:
        element = template.element(next(o for o in template.operands() if o.name == operand))
        return template.lanes is not None and step == element.bytes_of(template.lanes.count)
    stride = getattr(template, f"{operand}_repeat_stride", 0) * DATA_BLOCK_BYTES
    return bool(step == template.repeats * stride)


def _called_once(case: KernelCase, chosen: set[int], node: Node) -> Iterable[Node] | None:
    """Return what stands for a loop that is among the chosen: its instructions, once each."""
    if not isinstance(node, Loop) or id(node) not in chosen:
        return None
    scaler = Scaler(node.trips.constant or 1, case.chip)
    return [scaler.issue(each) for each in node.body if isinstance(each, Issue)]


@rule(
    "masked-lanes",
    counts="lanes that the mask leaves off in each repeat",
    threshold="half of the lanes, over several repeats",
    source="256 B of lanes a repeat (Vector unit)",
    remedy="Let full repeats do it: a count, or a mask of all lanes and fewer repeats.",
)
def masked_lanes(case: KernelCase) -> Iterator[Cause]:
    """Do with full masks what the active lanes do, in as many repeats as that takes."""
    wasted: dict[int, tuple[Leaf, int, int]] = {}
    for leaf in case.all_leaves:
        template = case.resolved(leaf.issue)
        lanes = getattr(template, "lanes", None)
        if not isinstance(template, Repeated) or lanes is None or lanes.counts:
            continue
        active = (lanes.bits & (1 << template.width) - 1).bit_count()
        if template.repeat > 1 and 0 < active * 2 <= template.width:
            wasted[id(leaf.issue)] = leaf, active, template.width
    if not wasted:
        return

    def change(node: Node) -> Iterable[Node] | None:
        if not isinstance(node, Issue) or id(node) not in wasted:
            return None
        _, active, width = wasted[id(node)]
        repeat: int = getattr(node.template, "repeat", 0)
        fewer = {"repeat": ceil_div(repeat * active, width)}
        return [replace(node, template=with_fields(node.template, fewer))]

    leaf, active, width = max(wasted.values(), key=lambda each: case.busy(each[0].location, Pipe.V))
    name = leaf.issue.template.name
    text = f"{active} of {width} lanes are active in each repeat of {name}"
    yield Cause(leaf.location, text, with_nodes(case.launch, change), "full masks")
