"""Advice on a recorded launch, by the timing model."""

from collections.abc import Mapping
from types import MappingProxyType

from cubecore.advice.kernel_rules.advise import advice_on, uncharged
from cubecore.advice.kernel_rules.case import KernelCase, is_plain
from cubecore.advice.kernel_rules.changes.plain import plain_launch
from cubecore.advice.kernel_rules.rule import KernelAdvice
from cubecore.chips.model import Chip
from cubecore.isa.program.launch import Launch
from cubecore.isa.program.tree import Location
from cubecore.timing.launch import time_launch
from cubecore.timing.records import Timeline

_MOST_RECORDED = 2_000_000
"""Instructions of a launch above which one that branches is not recorded."""


def advice_on_launch(
    launch: Launch,
    name: str,
    chip: Chip,
    without: tuple[str, ...],
    *,
    stand_in: bool,
    reads: Mapping[Location, int] = MappingProxyType({}),
) -> tuple[KernelAdvice, ...] | None:
    """Return what all rules but those of `without` advise on a launch.

    `reads` are the values that scalar units read, by line. None where its programs branch and are
    too long to be recorded. `stand_in` is as `time_launch` has it.
    """

    def again(other: Launch, *, lines: bool = False) -> Timeline:
        return time_launch(other, chip, stand_in=stand_in, lines=lines)

    if not is_plain(launch) and again(launch).issued > _MOST_RECORDED:
        return None
    plain = plain_launch(launch, name)
    return advice_on(KernelCase(plain, chip, again(plain, lines=True), again, reads), without)


def not_modelled_in(
    launch: Launch, chip: Chip, timeline: Timeline, reads: Mapping[Location, int]
) -> tuple[KernelAdvice, ...]:
    """Return what the time of a launch leaves out; `timeline` has its lines."""

    def again(other: Launch) -> Timeline:
        raise AssertionError(f"{other} is timed for what has no cost")

    # These rules only look: what has no cost in the model cannot be timed without it.
    return uncharged(KernelCase(launch, chip, timeline, again, reads))
