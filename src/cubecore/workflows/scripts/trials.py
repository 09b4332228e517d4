"""Changes of a launch that are plain numbers, each tried: launched again, checked and timed.

Such a number is the count of blocks, a macro of ``-D`` (or one that the file lets ``-D`` replace),
a field of ``--tiling-data``, an attribute of an operator, or a constant of a Python script or a TIK
program. One is
changed at a time, doubled or halved for as long as that saves time.
"""

import ast
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING

import numpy as np

from cubecore.answers.scripts import Trial
from cubecore.arrays import Array
from cubecore.errors import CubecoreError, refuse
from cubecore.frontends.cpp.launch.launch_options import CppLaunchOptions
from cubecore.frontends.kernels.scripts import BLOCKS
from cubecore.machine.sanitize.findings import faults

if TYPE_CHECKING:
    from cubecore.frontends.kernels.session import KernelRun
    from cubecore.frontends.tik.host.kernel import TikRun

_DEFAULT = re.compile(r"^[ \t]*#ifndef (\w+)\s*\n[ \t]*#define \1 (\d+)[ \t]*$", re.MULTILINE)
"""A macro that a file defines as a number unless -D does."""
_NUMBER = re.compile(r"[1-9][0-9]*")
_NEAR = 1e-3
"""Relative difference of floating-point results that the order of sums may make."""

Values = Mapping[str, Array]
Runs = tuple["KernelRun | TikRun", ...]
Launched = tuple[Runs, Values]


@dataclass(frozen=True, slots=True)
class TriedNumber:
    """A number of a launch that can be another one; `launch` launches with it."""

    name: str
    value: int
    launch: Callable[[int], Launched]

    def change(self, value: int) -> str:
        """Return a change of it in words."""
        return f"{self.name}{value}"


def require_budget(budget_s: float) -> None:
    """Refuse a budget that leaves no time.

    Raises
    ------
    RequestError
        If it is not above 0 s.
    """
    if not budget_s > 0:
        raise refuse("--try", "be above 0 s", f"{budget_s:g}")


def tried(
    numbers: Sequence[TriedNumber],
    base: Callable[[], Launched],
    timed: Callable[[Runs], float],
    budget_s: float,
    shown: Callable[[str], None],
) -> tuple[Trial, ...]:
    """Return what was tried within so many seconds, the fastest first, what was dropped last.

    `timed` returns the launches' microseconds; `shown` takes each change before it is tried.

    Raises
    ------
    RequestError
        If the budget is not above 0 s.
    """
    require_budget(budget_s)
    end = perf_counter() + budget_s
    runs, right = base()
    us = timed(runs)
    trials: list[Trial] = []
    for number in numbers:
        # One direction at a time, as far as it saves time; if doubling helped, halving is not
        # tried.
        for factor in (2.0, 0.5):
            best = us
            for value in _steps(number.value, factor):
                if perf_counter() > end:
                    break
                shown(f"trying {number.change(value)}")
                trial = _tried(number, value, right, timed, us)
                trials.append(trial)
                if trial.us is None or trial.us >= best:
                    break
                best = trial.us
            if best < us:
                break
    return tuple(sorted(trials, key=lambda each: (each.us is None, each.us or 0.0)))


def _steps(value: int, factor: float) -> Iterator[int]:
    """Yield a number doubled, or halved while it is even, again and again."""
    while factor > 1 or value % 2 == 0:
        value = int(value * factor)
        yield value


def _tried(
    number: TriedNumber,
    value: int,
    right: Values,
    timed: Callable[[Runs], float],
    us: float,
) -> Trial:
    change = number.change(value)
    try:
        runs, values = number.launch(value)
        # A faster launch that is wrong is no answer: findings and other values drop it before it is
        # timed.
        wrong = faults(tuple(finding for run in runs for finding in run.findings))
        if wrong:
            return Trial(change, None, dropped=f"the launch has findings ({wrong[0].id})")
        differing = next((name for name in right if not _equal(right[name], values.get(name))), "")
        if differing:
            return Trial(change, None, dropped=f"{differing} has other values")
        after = timed(runs)
    except CubecoreError as error:
        return Trial(change, None, dropped=str(error).splitlines()[0])
    return Trial(change, after, us - after)


def _equal(one: Array, other: Array | None) -> bool:
    if other is None or one.shape != other.shape or one.dtype != other.dtype:
        return False
    if one.dtype.kind == "f":
        return bool(np.allclose(one, other, rtol=_NEAR, atol=_NEAR, equal_nan=True))
    return one.tobytes() == other.tobytes()


def cpp_numbers(
    path: str, asked: CppLaunchOptions, launch: Callable[[CppLaunchOptions], Launched]
) -> list[TriedNumber]:
    """Return the numbers of a launch of a C++ kernel."""
    numbers = []
    if asked.blocks is not None:
        numbers.append(
            TriedNumber("--blocks ", asked.blocks, lambda n: launch(replace(asked, blocks=n)))
        )
    given = dict(text.partition("=")[::2] for text in asked.defines)
    defaults = dict(_DEFAULT.findall(_text(path)))
    for name, value in (defaults | given).items():
        if _NUMBER.fullmatch(value):
            numbers.append(TriedNumber(f"-D {name}=", int(value), _with_macro(asked, name, launch)))
    for text in (asked.tiling_data or "").split(","):
        name, _, value = text.partition("=")
        if _NUMBER.fullmatch(value.strip()):
            change = _with_field(asked, text, name, launch)
            numbers.append(TriedNumber(f"--tiling-data {name.strip()}=", int(value), change))
    return numbers


def operator_numbers(
    asked: CppLaunchOptions, launch: Callable[[CppLaunchOptions], Launched]
) -> list[TriedNumber]:
    """Return the numbers of a launch of an operator: its attributes and macros."""
    numbers = []
    for option, texts in (("arguments", asked.arguments), ("defines", asked.defines)):
        spelled = {"arguments": "--arg", "defines": "-D"}[option]
        for place, text in enumerate(texts):
            name, _, value = text.partition("=")
            if _NUMBER.fullmatch(value):
                change = _with_text(asked, option, place, launch)
                numbers.append(TriedNumber(f"{spelled} {name}=", int(value), change))
    return numbers


def _with_text(
    asked: CppLaunchOptions,
    option: str,
    place: int,
    launch: Callable[[CppLaunchOptions], Launched],
) -> Callable[[int], Launched]:
    texts: tuple[str, ...] = getattr(asked, option)
    name = texts[place].partition("=")[0]

    def with_number(number: int) -> Launched:
        changed = (*texts[:place], f"{name}={number}", *texts[place + 1 :])
        if option == "arguments":
            return launch(replace(asked, arguments=changed))
        return launch(replace(asked, defines=changed))

    return with_number


def _with_macro(
    asked: CppLaunchOptions, name: str, launch: Callable[[CppLaunchOptions], Launched]
) -> Callable[[int], Launched]:
    others = tuple(text for text in asked.defines if text.partition("=")[0] != name)
    return lambda n: launch(replace(asked, defines=(*others, f"{name}={n}")))


def _with_field(
    asked: CppLaunchOptions,
    text: str,
    name: str,
    launch: Callable[[CppLaunchOptions], Launched],
) -> Callable[[int], Launched]:
    before = asked.tiling_data or ""
    return lambda n: launch(replace(asked, tiling_data=before.replace(text, f"{name}={n}", 1)))


def script_numbers(path: str, launch: Callable[[Mapping[str, int]], Launched]) -> list[TriedNumber]:
    """Return the constants of a Python script: names in capitals that are whole numbers.

    The count of blocks that a TIK program gives to a loop as a number is one of them.
    """
    try:
        tree = ast.parse(_text(path))
    except (SyntaxError, ValueError):
        return []
    numbers = list(_blocks(tree, launch))
    for node in tree.body:
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant):
            value, target = node.value.value, node.targets[0]
            # By convention capitals are what an author means to be set.
            named = isinstance(target, ast.Name) and target.id.isupper()
            if named and type(value) is int and value > 0:
                name = ast.unparse(target)
                numbers.append(TriedNumber(f"{name} = ", value, _with(name, launch)))
    return numbers


def _blocks(
    tree: ast.Module, launch: Callable[[Mapping[str, int]], Launched]
) -> Iterator[TriedNumber]:
    """Yield the count of blocks of a TIK program that gives one as a number."""
    given = [node for node in ast.walk(tree) if isinstance(node, ast.keyword)]
    values = [node.value for node in given if node.arg == BLOCKS]
    numbers = [each.value for each in values if isinstance(each, ast.Constant)]
    if len(values) == 1 and numbers and type(numbers[0]) is int and numbers[0] > 0:
        yield TriedNumber(f"{BLOCKS} = ", numbers[0], _with(BLOCKS, launch))


def _with(name: str, launch: Callable[[Mapping[str, int]], Launched]) -> Callable[[int], Launched]:
    return lambda n: launch({name: n})


def _text(path: str) -> str:
    try:
        return Path(path).read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
