"""Rules on order: buffers that are too few, barriers and waits that let pipes take turns."""

import itertools
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from cubecore.advice.kernel_rules.case import KernelCase, Leaf
from cubecore.advice.kernel_rules.changes.changed_programs import (
    issues,
    rewritten,
    with_body,
    with_nodes,
    with_programs,
    with_tokens,
    without,
)
from cubecore.advice.kernel_rules.rule import Cause, rule
from cubecore.isa.declare.instruction import Mem, Pipe
from cubecore.isa.program.tree import Issue, Location, Loop, Node, Program
from cubecore.isa.scalar.load import ScalarLoad
from cubecore.isa.scalar.store import ScalarStore
from cubecore.isa.scalar.sync import PipeBarrier, SetFlag, WaitFlag

_FLOW = ("MTE2", "MTE1", "M", "FIX", "V", "MTE3")
"""The order in which data passes the pipes of a core."""
_LEAST_WAIT = 50
"""A wait counts if it is one part in so many of the time."""
_EVENT = 7
READS = "scalar-reads"


@rule(
    "one-buffer",
    counts="cycles that a pipe waits until a later one has left a buffer",
    threshold="2 % of the time, and a local memory with room for the buffer twice",
    source="stalls by the timing model; sizes of the memories (`cubecore chips`)",
    remedy="Give the queue two buffers (a depth of 2), or two tensors that take turns.",
)
def one_buffer(case: KernelCase) -> Iterator[Cause]:
    """Raise the flags of free buffers once more, as one more buffer would."""
    waits: dict[tuple[str, str], list[Leaf]] = {}
    for leaf in case.all_leaves:
        flag = leaf.issue.template
        # A flag against the flow of data says that a buffer is free; raised once more at the start
        # it stands for a second buffer.
        if isinstance(flag, WaitFlag) and leaf.loops and _goes_back(flag.src, flag.dst):
            waits.setdefault((flag.src, flag.dst), []).append(leaf)
    stalled = {pair: _stalled(case, *pair) for pair in waits}
    chosen = [pair for pair in waits if _has_room(case, *pair)]
    whole = sum(stalled[pair] for pair in chosen)
    if whole * _LEAST_WAIT < case.timeline.cycles:
        return
    flags = [flag for pair in chosen for flag in dict.fromkeys(map(_raising, waits[pair]))]
    first = max(chosen, key=lambda pair: stalled[pair])
    where = max(waits[first], key=lambda leaf: leaf.count).location
    listed = ", ".join(
        f"{dst} {stalled[src, dst]:,} cycles for {src}" for src, dst in chosen if stalled[src, dst]
    )
    only = "the only buffer" if len(flags) == len(chosen) else "a buffer"
    text = f"pipes wait for others to leave {only}: {listed}"
    better = with_programs(case.launch, lambda program: with_tokens(program, flags, where))
    yield Cause(where, text, better, "one buffer more")


def _raising(wait: Leaf) -> SetFlag:
    flag = wait.issue.template
    assert isinstance(flag, WaitFlag)
    return SetFlag(src=flag.src, dst=flag.dst, event_id=flag.event_id)


def _goes_back(src: str, dst: str) -> bool:
    """True of a flag against the flow of data, which tells of a free buffer."""
    return src in _FLOW and dst in _FLOW and _FLOW.index(src) > _FLOW.index(dst)


def _stalled(case: KernelCase, src: str, dst: str) -> int:
    reason = f"flag {src} -> {dst} "
    return sum(stall.cycles for stall in case.timeline.stalls if stall.reason.startswith(reason))


def _has_room(case: KernelCase, src: str, dst: str) -> bool:
    """True if the memory between two pipes has room for what is in it twice."""
    mems = {"MTE2": Mem.UB if src in {"V", "MTE3"} else Mem.L1, "V": Mem.UB, "M": Mem.L0C}
    mem = mems.get(dst, Mem.L0A)
    return 2 * case.used_bytes(mem) <= case.room(mem)


@rule(
    "barrier",
    counts="barriers of all pipes in a loop",
    threshold="one in a loop whose pipes could work side by side",
    source="the timing model",
    remedy="Order the pipes by flags or queues, and use two buffers; between steps of one pipe a "
    "barrier of that pipe is enough.",
)
def barrier(case: KernelCase) -> Iterator[Cause]:
    """Order the pipes of the loop by flags, with two buffers, in place of the barriers."""
    places: dict[int, Leaf] = {}
    for leaf in case.all_leaves:
        if _is_barrier(leaf.issue) and leaf.loops:
            places.setdefault(id(leaf.loops[-1]), leaf)
    if not places:
        return
    leaf = max(places.values(), key=lambda each: each.count)
    pipes = [pipe for pipe in _FLOW if pipe in _pipes(leaf.loops[-1])]
    # One pipe alone has nobody to work beside.
    if len(pipes) < 2:
        yield from _of_one_pipe(case, leaf, pipes)
        return
    mems = [Mem.UB] if "V" in pipes or "M" not in pipes else [Mem.L1, Mem.L0A]
    twice = all(2 * case.used_bytes(mem) <= case.room(mem) for mem in mems)
    buffers = 2 if twice else 1
    better = with_programs(case.launch, lambda program: _by_flags(program, buffers))
    text = f"a barrier of all pipes in a loop lets {', '.join(pipes)} take turns"
    tried = "flags and two buffers" if twice else "flags"
    yield Cause(leaf.location, text, better, tried)


def _of_one_pipe(case: KernelCase, leaf: Leaf, pipes: Sequence[str]) -> Iterator[Cause]:
    """Let barriers in loops of one pipe hold that pipe alone."""
    if not pipes:
        return
    own = PipeBarrier(on=pipes[0])

    def change(node: Node) -> Iterable[Node] | None:
        if isinstance(node, Loop) and _pipes(node) == set(pipes):
            return [replace(node, body=tuple(_with_barrier(node.body, own)))]
        return None

    text = f"a barrier of all pipes in a loop of {pipes[0]} alone keeps the others from going on"
    tried = f"barriers of {pipes[0]}"
    yield Cause(leaf.location, text, with_nodes(case.launch, change), tried)


def _with_barrier(body: Sequence[Node], own: PipeBarrier) -> Iterator[Node]:
    for node in body:
        if isinstance(node, Issue) and _is_barrier(node):
            yield replace(node, template=own)
        else:
            yield node


def _is_barrier(issue: Issue) -> bool:
    return isinstance(issue.template, PipeBarrier) and issue.template.on == "ALL"


def _pipes(loop: Loop) -> set[str]:
    works = (leaf.template for leaf in issues(loop) if not _is_sync(leaf))
    return {template.pipe.value for template in works if template.pipe is not Pipe.S}


def _is_sync(issue: Issue) -> bool:
    return isinstance(issue.template, (SetFlag, WaitFlag, PipeBarrier))


def _by_flags(program: Program, buffers: int) -> Program:
    """Return a program whose loops have flags in place of barriers, and so many buffers."""
    first: list[Issue] = []

    def change(node: Node) -> Iterable[Node] | None:
        if isinstance(node, Loop) and any(
            isinstance(n, Issue) and _is_barrier(n) for n in node.body
        ):
            pipes = [pipe for pipe in _FLOW if pipe in _pipes(node)]
            if len(pipes) > 1:
                body = [n for n in node.body if not (isinstance(n, Issue) and _is_barrier(n))]
                where = next(issues(node)).location
                # As many free buffers between each pair of pipes as fit.
                first.extend(_flags(pipes, where, SetFlag, back=True) * buffers)
                return [replace(node, body=tuple(_ordered(body, pipes, where)))]
        return None

    body = tuple(rewritten(program.body, change))
    return with_body(program, (*first, *body))


def _flags(
    pipes: Sequence[str], where: Location, kind: type[SetFlag] | type[WaitFlag], *, back: bool
) -> list[Issue]:
    """Return flags between pipes that follow each other, or back."""
    pairs = [(b, a) if back else (a, b) for a, b in itertools.pairwise(pipes)]
    return [Issue(kind(src=src, dst=dst, event_id=_EVENT), (), where) for src, dst in pairs]


def _ordered(body: Sequence[Node], pipes: Sequence[str], where: Location) -> Iterator[Node]:
    """Yield a loop's body with a wait before each pipe's first work, and flags behind its last."""
    firsts: dict[str, int] = {}
    lasts: dict[str, int] = {}
    for number, node in enumerate(body):
        for pipe in _of_node(node):
            firsts.setdefault(pipe, number)
            lasts[pipe] = number
    pairs = list(itertools.pairwise(pipes))

    def flag(kind: type[SetFlag] | type[WaitFlag], src: str, dst: str) -> Issue:
        return Issue(kind(src=src, dst=dst, event_id=_EVENT), (), where)

    for number, node in enumerate(body):
        for a, b in pairs:
            # Before its first work a pipe waits for a free buffer behind it, and for data before
            # it.
            if firsts.get(a) == number:
                yield flag(WaitFlag, b, a)
            if firsts.get(b) == number:
                yield flag(WaitFlag, a, b)
        yield node
        for a, b in pairs:
            # Behind its last work it hands the data on, and gives the buffer back.
            if lasts.get(a) == number:
                yield flag(SetFlag, a, b)
            if lasts.get(b) == number:
                yield flag(SetFlag, b, a)


def _of_node(node: Node) -> set[str]:
    if isinstance(node, Loop):
        return _pipes(node)
    if isinstance(node, Issue) and not _is_sync(node) and node.template.pipe is not Pipe.S:
        return {node.template.pipe.value}
    return set()


@rule(
    "scalar-wait",
    counts="cycles that the scalar unit, which issues to all pipes, waits for a pipe",
    threshold="2 % of the time",
    source="stalls by the timing model",
    remedy="Keep values in vectors, or read them once behind the loop: each read stops the core.",
)
def scalar_wait(case: KernelCase) -> Iterator[Cause]:
    """Leave out waits of the scalar unit in loops."""
    waits = [leaf for leaf in case.all_leaves if _is_scalar_wait(leaf.issue)]
    if sum(leaf.count for leaf in waits) <= len(case.launch.programs):
        return
    stalled = sum(
        s.cycles
        for s in case.timeline.stalls
        if s.pipe.endswith("S") and s.reason.startswith("flag ")
    )
    if stalled * _LEAST_WAIT < case.timeline.cycles:
        return
    where = max(waits, key=lambda leaf: _waiting(case, leaf)).location
    text = (
        f"the scalar unit waits {stalled:,} cycles here for a value; nothing is issued until then"
    )
    better = without(case.launch, _is_scalar_wait)
    yield Cause(where, text, better, "no wait of the scalar unit")


def _waiting(case: KernelCase, leaf: Leaf) -> int:
    line = case.line(leaf.location)
    return 0 if line is None else line.stall_cycles


def _is_scalar_wait(issue: Issue) -> bool:
    return isinstance(issue.template, WaitFlag) and issue.template.dst == "S"


@rule(
    "scalar-work",
    counts="cycles in which the scalar unit reads and writes elements one by one",
    threshold="a twentieth of the time",
    source="busy cycles of the scalar unit by the timing model",
    remedy="Let a vector instruction do it: Duplicate, Arange, Select or Gather, or a copy.",
)
def scalar_work(case: KernelCase) -> Iterator[Cause]:
    """Leave out reads and writes of single elements, and the waits of the scalar unit for them."""
    works = [leaf for leaf in case.all_leaves if _is_element(leaf.issue)]
    busy = {id(leaf.location): case.busy(leaf.location, Pipe.S) for leaf in works}
    if sum(busy.values()) * 20 < case.timeline.cycles:
        return
    leaf = max(works, key=lambda each: busy[id(each.location)])
    most = busy[id(leaf.location)]
    text = f"the scalar unit works {most:,} cycles here, element by element; nothing else is issued"
    better = without(case.launch, lambda issue: _is_element(issue) or _is_scalar_wait(issue))
    yield Cause(leaf.location, text, better, "no scalar work", at_most=True)


@rule(
    READS,
    charged=False,
    counts="elements that the scalar unit reads from memory one by one",
    threshold="on one core, so many that issuing as many instructions would take a twentieth of "
    "the time",
    source="scalar_issue_cycles of the chip (`cubecore chips`)",
    remedy="Let a vector instruction do it, such as ReduceMax, Compare and Select, or Gather, and "
    "read its result once.",
)
def scalar_reads(case: KernelCase) -> Iterator[Cause]:
    """Name the line that reads most elements."""
    where = max(case.reads, key=lambda each: case.reads[each], default=None)
    if where is None:
        return
    of_core = case.reads[where] // len(case.launch.cores)
    issue: int = case.chip.require("scalar_issue_cycles", "advice")
    if of_core * issue * 20 >= case.timeline.cycles:
        yield Cause(where, f"a core reads {of_core:,} elements here one by one", None)


def _is_element(issue: Issue) -> bool:
    return isinstance(issue.template, (ScalarStore, ScalarLoad))
