"""Advice on a recorded launch, by the timing model."""

from cubecore.chips.model import Chip
from cubecore.isa.program.launch import Launch
from cubecore.timing.launch import time_launch
from cubecore.timing.records import Timeline
from cubecore.workflows.advice.kernel_rules.advise import advice_on
from cubecore.workflows.advice.kernel_rules.case import KernelCase
from cubecore.workflows.advice.kernel_rules.plain import plain_launch
from cubecore.workflows.advice.kernel_rules.rule import Advice


def advice_on_launch(
    launch: Launch, name: str, chip: Chip, without: tuple[str, ...], *, stand_in: bool
) -> tuple[Advice, ...]:
    """Return what all rules but those of `without` advise on a launch.

    `stand_in` is as `time_launch` has it.
    """

    def again(other: Launch, *, lines: bool = False) -> Timeline:
        return time_launch(other, chip, stand_in=stand_in, lines=lines)

    plain = plain_launch(launch, name)
    return advice_on(KernelCase(plain, chip, again(plain, lines=True), again), without)
