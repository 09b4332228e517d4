"""Rules on launches of AICs with AIVs: the side that waits, and places to hand data over in."""

from collections.abc import Iterator, Sequence

from cubecore.advice.kernel_rules.case import KernelCase, Leaf
from cubecore.advice.kernel_rules.changes.changed_programs import with_programs, with_tokens
from cubecore.advice.kernel_rules.rule import Cause, rule
from cubecore.isa.program.tree import Location, Program
from cubecore.isa.scalar.sync import FftsCrossCoreSync, WaitFlagDev
from cubecore.timing.pipes.queues import CROSS_CORE

_READERS = ("MTE2", "MTE1", "M")
"""Pipes whose signal tells that something was read, and its place is free."""
_LEAST_WAIT = 50


@rule(
    "one-slot",
    counts="cycles that AICs or AIVs wait until the others have read what they were handed",
    threshold="2 % of the time",
    source="stalls by the timing model",
    remedy="Hand data over in two places that take turns: signal twice at first that one is free.",
)
def one_slot(case: KernelCase) -> Iterator[Cause]:
    """Signal once more at first that a place is free, as one more place would."""
    signals = {
        program: list(dict.fromkeys(map(_template, filter(_frees, leaves))))
        for program, leaves in case.leaves.items()
    }
    flags = {signal.counter for each in signals.values() for signal in each}
    waits = [leaf for leaf in case.all_leaves if _waits(leaf, flags)]
    if not flags or not waits:
        return
    where = max(waits, key=lambda leaf: _stalled(case, leaf.location)).location
    stalled = _stalled(case, where)
    if stalled * _LEAST_WAIT < case.timeline.cycles:
        return
    text = (
        f"the core waits {stalled:,} cycles here until the others have read what it handed them "
        "before"
    )

    def change(program: Program) -> Program:
        raised = signals[program]
        return with_tokens(program, raised, case.leaves[program][0].location) if raised else program

    yield Cause(where, text, with_programs(case.launch, change), "one place more")


@rule(
    "ping-pong",
    counts="cycles that AICs wait for what AIVs make of what they were handed",
    threshold="2 % of the time, where AICs hand over one turn before they first wait",
    source="stalls by the timing model",
    remedy="Begin the next turn before the wait: what one side makes of this turn and the other of "
    "the next one is then made at the same time. It takes a second place to hand data over in.",
)
def ping_pong(case: KernelCase) -> Iterator[Cause]:
    """Let AICs be a turn ahead: their AIVs' signals are raised once more at first."""
    signals = {
        program: list(dict.fromkeys(map(_template, filter(_hands_over, leaves))))
        for program, leaves in case.leaves.items()
        if _is_of_aiv(case, program)
    }
    flags = {signal.counter for each in signals.values() for signal in each}
    of_aics = [leaves for program, leaves in case.leaves.items() if not _is_of_aiv(case, program)]
    waits = [
        leaf for leaves in of_aics for leaf in leaves if _waits(leaf, flags) and leaf.count > 1
    ]
    if not flags or not waits or any(_is_ahead(leaves, flags) for leaves in of_aics):
        return
    where = max(waits, key=lambda leaf: _stalled(case, leaf.location)).location
    stalled = _stalled(case, where)
    if stalled * _LEAST_WAIT < case.timeline.cycles:
        return
    sides = " and ".join(
        f"{kind}s {_of_kind(case, kind) / case.timeline.cycles:.0%} of the time for {other}s"
        for kind, other in (("AIC", "AIV"), ("AIV", "AIC"))
    )
    text = f"AICs and AIVs take turns: AICs wait {stalled:,} cycles here; in all wait {sides}"

    def change(program: Program) -> Program:
        raised = signals.get(program)
        return with_tokens(program, raised, case.leaves[program][0].location) if raised else program

    yield Cause(where, text, with_programs(case.launch, change), "AICs a turn ahead")


def _is_ahead(leaves: Sequence[Leaf], flags: set[int]) -> bool:
    """True if an AIC hands over two turns or more before it first waits for one of the flags."""
    waits = next((n for n, leaf in enumerate(leaves) if _waits(leaf, flags)), None)
    if waits is None:
        return False
    loop = leaves[waits].loops[:1]
    before = [leaf for leaf in leaves[:waits] if _hands_over(leaf)]
    return sum(1 if loop and leaf.loops[:1] == loop else leaf.count for leaf in before) > 1


def _is_of_aiv(case: KernelCase, program: Program) -> bool:
    return any(core.sub for core in case.launch.cores if core.program is program)


def _of_kind(case: KernelCase, kind: str) -> int:
    """Return the cycles that a core of a kind waits for others, on average."""
    sums: dict[str, int] = {}
    for stall in case.timeline.stalls:
        part = stall.pipe.partition(" ")[0]
        if part.startswith(kind) and stall.reason.startswith(CROSS_CORE):
            sums[part] = sums.get(part, 0) + stall.cycles
    return max(sums.values(), default=0)


def _hands_over(leaf: Leaf) -> bool:
    template = leaf.issue.template
    signals = isinstance(template, FftsCrossCoreSync) and template.mode == 2
    return signals and not _frees(leaf)


def _template(leaf: Leaf) -> FftsCrossCoreSync:
    template = leaf.issue.template
    assert isinstance(template, FftsCrossCoreSync)
    return template


def _frees(leaf: Leaf) -> bool:
    template = leaf.issue.template
    return (
        isinstance(template, FftsCrossCoreSync) and template.on in _READERS and template.mode == 2
    )


def _waits(leaf: Leaf, flags: set[int]) -> bool:
    template = leaf.issue.template
    return isinstance(template, WaitFlagDev) and template.counter in flags


def _stalled(case: KernelCase, where: Location) -> int:
    line = case.line(where)
    stalls = () if line is None else line.stalls
    return sum(stall.cycles for stall in stalls if stall.reason.startswith(CROSS_CORE))
