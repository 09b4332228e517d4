"""Launches of a script, or of a C++ kernel, tried with other numbers."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import replace
from functools import partial
from io import StringIO
from typing import TYPE_CHECKING

import numpy as np

from cubecore.aliases import Json
from cubecore.answers.scripts import ScriptTime
from cubecore.arrays import Array
from cubecore.errors import unable
from cubecore.frontends.cpp.files import SUFFIXES, is_project
from cubecore.frontends.cpp.launch.arguments import call_of
from cubecore.frontends.cpp.launch.launch_options import CppLaunchOptions
from cubecore.frontends.cpp.operator_projects.operator_arguments import run_operator
from cubecore.frontends.kernels.session import KernelRun, ScriptSession
from cubecore.workflows.scripts.script import run_with_constants, times_of
from cubecore.workflows.scripts.trials import (
    Launched,
    Runs,
    TriedNumber,
    cpp_numbers,
    operator_numbers,
    script_numbers,
    tried,
)

if TYPE_CHECKING:
    from cubecore.frontends.tik.host.kernel import TikRun

_TOLD = ("tiling", "workspace")
"""Tensors by which the host tells a kernel how it is tiled, and in which kernels compute."""


def with_trials(
    answer: ScriptTime,
    budget_s: float,
    *,
    arguments: tuple[str, ...] = (),
    asked: CppLaunchOptions | None = None,
    chip: str | None = None,
    settings: Mapping[str, str] | None = None,
    debug_inputs: str | None = None,
    shown: Callable[[str], None] = lambda _: None,
) -> ScriptTime:
    """Return a timing with what came of other numbers, each launched again, checked and timed.

    A result is right if it is the first launch's. `shown` takes each change before it is tried.

    Raises
    ------
    RequestError
        If the budget is not above 0 s, or nothing of the launch is a plain number.
    """
    path = answer.script
    options: Json = {"chip": chip, "settings": settings or None, "trace": True}
    options |= {"debug_inputs": debug_inputs}
    options = {name: value for name, value in options.items() if value is not None}
    numbers: list[TriedNumber] = []
    if path.endswith(SUFFIXES) and asked is not None and asked.arguments:
        of_kernel = partial(_kernel_launched, path, options)
        base = partial(of_kernel, asked)
        numbers = cpp_numbers(path, asked, of_kernel)
    elif is_project(path) and asked is not None:
        of_operator = partial(_operator_launched, path, options)
        base = partial(of_operator, asked)
        numbers = operator_numbers(asked, of_operator)
    elif path.endswith(".py"):
        of_script = partial(_script_launched, path, arguments, options)
        base = partial(of_script, {})
        numbers = script_numbers(path, of_script)
    if not numbers:
        raise unable("--try", f"nothing of {path} is a number that can be tried")
    return replace(answer, trials=tried(numbers, base, partial(_us, path), budget_s, shown))


def _us(path: str, runs: Runs) -> float:
    """Return the microseconds of all launches together."""
    return sum(launch.timeline.us for launch in times_of(path, runs).launches)


def _kernel_launched(path: str, options: Json, asked: CppLaunchOptions) -> Launched:
    """Launch a kernel of a C++ file; nothing is written to files."""
    session = ScriptSession(options)
    with session.collecting():
        call = call_of(path, asked, options)
        call.kernel[call.blocks](**call.arguments)
    scratch = {text.partition(":")[0] for text in asked.scratch}
    values = {
        name: value
        for name, value in call.arguments.items()
        if isinstance(value, np.ndarray) and name not in scratch
    }
    return tuple(session.runs), values


def _operator_launched(path: str, options: Json, asked: CppLaunchOptions) -> Launched:
    """Launch an operator of a project; nothing is written to files."""
    unwritten = tuple(":".join(text.split(":")[:2]) for text in asked.outputs)
    session = ScriptSession(options)
    with session.collecting():
        run_operator(path, replace(asked, outputs=unwritten), options)
    return tuple(session.runs), _tensors(session.runs)


def _tensors(runs: "Iterable[KernelRun | TikRun]") -> dict[str, Array]:
    """Return what launches left in their tensors, but for what the host tells the kernel."""
    return {
        f"{name} of launch {number}": values
        for number, run in enumerate(runs, 1)
        for name, values in _left(run)
        if name not in _TOLD
    }


def _left(run: "KernelRun | TikRun") -> Iterator[tuple[str, Array]]:
    """Yield what a launch left, by the names of tensors; of a TIK program in its outputs."""
    if not isinstance(run, KernelRun):
        yield from run.outputs.items()
        return
    for tensor, _ in run.tensors:
        dtype = tensor.dtype.numpy if tensor.dtype.bits >= 8 else np.dtype(np.uint8)
        yield tensor.name, tensor.raw.view(dtype).copy()


def _script_launched(
    path: str, arguments: tuple[str, ...], options: Json, constants: Mapping[str, int]
) -> Launched:
    """Run a script with other numbers for some constants; what it prints is not shown."""
    nowhere = StringIO()
    with redirect_stdout(nowhere), redirect_stderr(nowhere):
        done = run_with_constants(path, arguments, options, constants)
    if done.failure is not None:
        raise unable(path, done.failure)
    return done.launches, _tensors(done.launches)
