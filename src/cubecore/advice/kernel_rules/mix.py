"""Rules on launches of AICs with AIVs: the side that waits, and places to hand data over in."""

from collections.abc import Iterator

from cubecore.advice.kernel_rules.case import KernelCase, Leaf
from cubecore.advice.kernel_rules.changed_programs import with_programs, with_tokens
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
    flags = {signal.flag_id for each in signals.values() for signal in each}
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
    return isinstance(template, WaitFlagDev) and template.flag_id in flags


def _stalled(case: KernelCase, where: Location) -> int:
    line = case.line(where)
    stalls = () if line is None else line.stalls
    return sum(stall.cycles for stall in stalls if stall.reason.startswith(CROSS_CORE))
