"""Rules on cores: blocks against the cores of the chip, and cores that wait for the last one."""

from collections.abc import Iterator

from cubecore.advice.kernel_rules.case import KernelCase
from cubecore.advice.kernel_rules.changes.changed_programs import spread
from cubecore.advice.kernel_rules.rule import Cause, rule
from cubecore.isa.program.tree import Location
from cubecore.units import plural

_UNEVEN = 0.1
"""The share of the work's time for which the mean core must be idle."""


@rule(
    "few-blocks",
    counts="cores that the blocks run on, against those of their kind",
    threshold="fewer blocks than cores",
    source="aic_count and aiv_count of the chip (`cubecore chips`)",
    remedy="Start as many blocks as there are cores, and divide the work among them.",
)
def few_blocks(case: KernelCase) -> Iterator[Cause]:
    """Spread the work over all cores of its kind."""
    used = [(core.core, core.sub) for core in case.launch.cores]
    subs = {sub for _, sub in used}
    if 0 in subs and len(subs) > 1:
        yield from _few_of_mix(case)
        return
    kind, every = "AIC", [(core, 0) for core in range(case.chip.aic_count)]
    if 0 not in subs:
        aivs = case.chip.aiv_count or case.chip.aic_count
        per_core = max(aivs // case.chip.aic_count, 1)
        kind, every = "AIV", [(n // per_core, n % per_core + 1) for n in range(aivs)]
    if len(used) >= len(every):
        return
    where = _hottest(case)
    if where is not None:
        text = (
            f"{plural(len(used), 'block')} on {len(used)} of {len(every)} {kind}s: "
            f"{len(every) - len(used)} of them do nothing"
        )
        yield Cause(where, text, spread(case.launch, every), f"{len(every)} blocks")


def _few_of_mix(case: KernelCase) -> Iterator[Cause]:
    """Let all AI Cores take a part, each with its AIVs: a bound."""
    used = len({core.core for core in case.launch.cores})
    where, every = _hottest(case), case.chip.aic_count
    if used < every and where is not None:
        text = (
            f"{plural(used, 'block')} on {used} of {every} AI Cores: {every - used} of them do "
            "nothing"
        )
        start = case.start_cycles
        shared = start + round((case.timeline.cycles - start) * used / every)
        yield Cause(where, text, max(shared, start + case.memory_cycles))


@rule(
    "uneven-blocks",
    counts="when the mean core is done, against when the last one is",
    threshold="a tenth of the time after the start",
    source="idle time of cores by the timing model",
    remedy="Give blocks equal shares, and as many blocks as cores or a multiple of them.",
)
def uneven_blocks(case: KernelCase) -> Iterator[Cause]:
    """Let all cores of a kind end together, no sooner than device memory can: a bound."""
    groups = [group for group in case.timeline.groups if group.part in {"core", "AIV"}]
    ends = [(group.end_cycles, len(group.cores)) for group in groups]
    if not ends or len(groups) < len(case.timeline.groups):
        return
    last = max(end for end, _ in ends)
    cores = sum(count for _, count in ends)
    mean = sum(end * count for end, count in ends) / cores
    work = case.timeline.cycles - case.start_cycles
    where = _hottest(case)
    if where is None or work <= 0 or last - mean < _UNEVEN * work:
        return
    late = sum(count for end, count in ends if end == last)
    text = (
        f"{plural(late, 'core')} of {cores} end at cycle {last:,}, the mean core at {mean:,.0f}: "
        "the last blocks run while other cores are idle"
    )
    least = case.start_cycles + case.memory_cycles
    yield Cause(where, text, max(round(case.timeline.cycles - (last - mean)), least))


def _hottest(case: KernelCase) -> Location | None:
    """Return the line that keeps pipes busy longest."""
    lines = (line.location for line in case.timeline.lines if line.location is not None)
    return next(lines, None)
