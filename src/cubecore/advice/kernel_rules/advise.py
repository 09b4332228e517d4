"""Advice on a timed launch: every rule, each cause timed without it, the most helpful first."""

import itertools
from collections.abc import Collection, Iterator, Mapping

from cubecore.advice.kernel_rules import (
    cores,
    loads,
    mix,
    order,
    rows,
    tiles,
    vector_functions,
    work,
)
from cubecore.advice.kernel_rules.case import KernelCase, is_plain
from cubecore.advice.kernel_rules.rule import RULES, UNKNOWN, Cause, KernelAdvice, KernelRule
from cubecore.errors import CubecoreError, DeadlockError, refuse
from cubecore.isa.program.launch import Launch

LEAST_SHARE = 0.02
"""The share of the time below which nothing is advised."""
_MODULES = (tiles, cores, order, mix, work, rows, loads, vector_functions)


def rules() -> Mapping[str, KernelRule]:
    """Return all rules by their names."""
    return RULES


def require_rules(names: Collection[str]) -> None:
    """Refuse names that no rule has.

    Raises
    ------
    RequestError
        If there is no such rule; the message names all.
    """
    for name in names:
        if name not in RULES:
            raise refuse("--without-rule", f"name a rule ({', '.join(RULES)})", name)


def advice_on(case: KernelCase, without: Collection[str] = ()) -> tuple[KernelAdvice, ...]:
    """Return what would save time, the most helpful first; rules of `without` are left out.

    Behind it comes what the timing model charges nothing for.

    Raises
    ------
    RequestError
        If there is no such rule.
    """
    require_rules(without)
    found = [each for name in RULES if name not in without for each in _by_rule(case, name)]
    found.sort(key=lambda each: -each.saves_cycles)
    kept = (each.saves_share >= LEAST_SHARE or each.certainty == UNKNOWN for each in found)
    return tuple(itertools.compress(found, kept))


def uncharged(case: KernelCase) -> tuple[KernelAdvice, ...]:
    """Return what a launch does that the timing model charges nothing for.

    Of a launch whose programs branch the reads of its scalar units are known alone.
    """
    whole = is_plain(case.launch)
    names = (name for name, each in RULES.items() if not each.charged)
    return tuple(
        advice for name in names if whole or name == order.READS for advice in _by_rule(case, name)
    )


def _by_rule(case: KernelCase, name: str) -> Iterator[KernelAdvice]:
    try:
        for cause in RULES[name].find(case):
            better = cause.better
            cycles = _cycles(case, cause, better)
            yield KernelAdvice.of(name, cause, case.timeline, cycles)
    except (CubecoreError, DeadlockError):
        return  # what cannot be changed so, or timed, is no advice


def _cycles(case: KernelCase, cause: Cause, better: Launch | int | None) -> int:
    """Return what a changed launch takes."""
    if better is None:
        return case.timeline.cycles
    if isinstance(better, int):
        return better
    timeline = case.again(better)
    return timeline.cycles if cause.moves_less else case.with_all_bytes(timeline)
