"""Scripts with kernels: run as they are, their launches collected, checked and timed."""

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, redirect_stdout
from pathlib import Path
from stat import S_ISREG
from time import perf_counter
from typing import TYPE_CHECKING

from cubecore.aliases import Json, JsonMapping
from cubecore.answers.scripts import ScriptRun, ScriptTime, TimedLaunch
from cubecore.errors import RequestError, Violation, refuse, unable, unreadable
from cubecore.frontends.cpp.files import SUFFIXES, is_program, is_project
from cubecore.frontends.cpp.launch.launch_options import CppLaunchOptions
from cubecore.frontends.kernels.scripts import run_as_main
from cubecore.frontends.kernels.session import KernelRun, ScriptSession, current_session
from cubecore.frontends.launch_timing import launch_of, timed_chip
from cubecore.frontends.source_locations import KernelError
from cubecore.frontends.tik.host.imports import imports_tik
from cubecore.frontends.tik.trace.run_options import TikOptions
from cubecore.machine.debug.debugger import LaunchDebugger
from cubecore.machine.options import require_engine, require_order
from cubecore.sandbox.boxed_programs import programs_boxed, say_unboxed
from cubecore.sandbox.view import BoxView, Scratch
from cubecore.sandbox.words import AUTO, NONE
from cubecore.timing.launch import time_launch
from cubecore.workflows.data.process import peak_bytes
from cubecore.workflows.scripts.expectations import ExpectOptions, expectations

if TYPE_CHECKING:
    from cubecore.advice.kernel_rules.rule import KernelAdvice
    from cubecore.advice.timed_changes import TimedChanges
    from cubecore.frontends.tik.host.kernel import TikRun
    from cubecore.frontends.tik.host.session import TikSession

_SCRATCH_BYTES = 256 << 20
"""Bytes that a boxed kernel may write to files."""
_INSERTED = ("barrier",)
"""Rules on what TIK inserts, which its programs cannot do otherwise."""


def run_script(
    path: str,
    *,
    arguments: tuple[str, ...] = (),
    chip: str | None = None,
    checks: str | None = None,
    order: str | None = None,
    engine: str | None = None,
    settings: Mapping[str, str] | None = None,
    quiet: bool = False,
    debugger: LaunchDebugger | None = None,
    asked: CppLaunchOptions | None = None,
    debug_inputs: str | None = None,
    expect: ExpectOptions | None = None,
) -> ScriptRun:
    """Run a script, as ``python path arguments`` would, and collect its launches.

    `expect` names files of values that arrays of its launches are compared with. `chip`, fields of
    it (`settings`), `checks`, `order` and `engine` replace those of its kernels. With `quiet` what
    it prints goes to standard error. A `debugger` stops the launches. With `debug_inputs` "random"
    the kernels that a TIK program builds and does not run are launched on random numbers.

    Raises
    ------
    RequestError
        If there is no such script, it launches nothing, or what is expected fits no array.
    KernelError
        If the script or a kernel fails; the message begins with the location in its source.
    """
    if engine is not None:
        require_engine(engine)
    if order is not None:
        require_order(order)
    options: Json = {"chip": chip, "checks": checks, "order": order}
    options |= {"engine": engine, "settings": settings or None}
    options |= {"debug_inputs": debug_inputs}
    work = _work(path, arguments, asked)
    if expect is not None and expect.files:
        options["trace"] = True  # by which the line of a wrong element is found
    return _execute(path, work, options, quiet=quiet, debugger=debugger, expect=expect)


def run_with_constants(
    path: str, arguments: tuple[str, ...], options: JsonMapping, constants: Mapping[str, int]
) -> ScriptRun:
    """Run a script with other numbers for some constants, and collect its launches.

    Raises
    ------
    RequestError
        If the script launches nothing.
    KernelError
        If the script or a kernel fails; the message begins with the location in its source.
    """

    def work(_: JsonMapping, checked: Callable[[], None]) -> str | None:
        return run_as_main(path, arguments, checked, constants)

    return _execute(path, work, options, quiet=True)


def time_script(
    path: str,
    *,
    arguments: tuple[str, ...] = (),
    chip: str | None = None,
    settings: Mapping[str, str] | None = None,
    record: int = 0,
    quiet: bool = False,
    advise: bool = False,
    without: tuple[str, ...] = (),
    asked: CppLaunchOptions | None = None,
    debug_inputs: str | None = None,
) -> ScriptTime:
    """Run a script, and time what its launches issued.

    `advise` names what makes each launch slow, by all rules but those of `without`, and times it
    again with parts of the chip made better.

    Values that kernels read from memory are those of this run; reading them costs what the flags
    cost. TIK's earlier chips have no published costs: their times are rough, and say so.

    Raises
    ------
    RequestError
        As `run_script`, and if no model times a kernel.
    DeadlockError
        If a pipe waits for a flag that is never set.
    """
    options: Json = {"chip": chip, "settings": settings or None, "trace": True}
    options |= {"debug_inputs": debug_inputs}
    done = _execute(path, _work(path, arguments, asked), options, quiet=quiet)
    if done.failure is not None:
        raise KernelError([Violation(path, "verify before it is timed", done.failure)])
    if not done.launches:
        raise _launches_nothing(path, tik=True)
    return times_of(path, done.launches, record, advise=advise, without=without)


def times_of(
    path: str,
    launches: "Iterable[KernelRun | TikRun]",
    record: int = 0,
    *,
    advise: bool = False,
    without: tuple[str, ...] = (),
) -> ScriptTime:
    """Return the times of launches that a file made, which kept their traces.

    Raises
    ------
    RequestError
        If no model times a kernel.
    DeadlockError
        If a pipe waits for a flag that is never set.
    """
    timed = (_timed(each, record, path, without if advise else None) for each in launches)
    return ScriptTime(path, tuple(timed))


def time_kernel(run: "KernelRun | TikRun", *, record: int = 0, advise: bool = False) -> TimedLaunch:
    """Return the predicted time of a launch that kept its instructions.

    Parameters
    ----------
    run : KernelRun or TikRun
        A launch made with ``trace=True``: ``kernel.using(trace=True)[blocks](...)``, or a launch of
        ``cubecore.load(path, trace=True)``.
    record : int
        Instructions of each group of equal cores to keep in the timeline.
    advise : bool
        Time the launch again with parts of the chip made better.

    Returns
    -------
    TimedLaunch
        The timeline of the launch, which prints as `cubecore time` does.

    Raises
    ------
    RequestError
        If the launch kept no instructions, or no model times kernels of its chip.
    DeadlockError
        If a pipe waits for a flag that is never set.

    Examples
    --------
    >>> timed = cubecore.time_kernel(scale.using(trace=True)[8](x, y))  # doctest: +SKIP
    """
    if isinstance(run, KernelRun) and not run.traces:
        raise unable("run", "a launch is timed by its instructions; launch it with trace=True")
    return _timed(run, record, "", () if advise else None)


def _timed(
    run: "KernelRun | TikRun", record: int, script: str, without: tuple[str, ...] | None
) -> TimedLaunch:
    """Time a launch; with advice unless `without`, rules that are left out, is None."""
    from cubecore.advice.launch_advice import advice_on_launch, not_modelled_in

    target, rough = timed_chip(run)
    launch = launch_of(run)
    stand_in = rough is not None
    line = time_launch(launch, target, record=record, stand_in=stand_in, lines=True)
    changes: TimedChanges | None = None
    advice: tuple[KernelAdvice, ...] | None = None
    left_out: tuple[KernelAdvice, ...] = ()
    theirs, reads = ((), run.reads) if isinstance(run, KernelRun) else (_INSERTED, {})
    if without is None:
        left_out = not_modelled_in(launch, target, line, reads)
    else:
        from cubecore.advice.timed_changes import chip_changes

        changes = chip_changes(
            target, line, lambda chip: time_launch(launch, chip, stand_in=stand_in)
        )
        rules = (*without, *theirs)
        advice = advice_on_launch(launch, run.kernel, target, rules, stand_in=stand_in, reads=reads)
    return TimedLaunch(run, line, changes, rough, script, advice, left_out)


_Work = Callable[[JsonMapping, Callable[[], None]], str | None]
"""Launches, given the options of the session and what to call at each check of the script.

It returns what an assertion said.
"""


def _is_cpp(path: str) -> bool:
    """True if a file has C++ kernels, or is a program of some."""
    return path.endswith(SUFFIXES) or is_program(path)


def _work(path: str, arguments: tuple[str, ...], asked: CppLaunchOptions | None) -> _Work:
    """Return what launches the kernels of a file: the script itself, or its C++ kernel."""
    if _is_cpp(path):

        def launch(options: JsonMapping, checked: Callable[[], None]) -> str | None:
            from cubecore.frontends.cpp.host_programs.mains import judges_own_result, program_of
            from cubecore.frontends.cpp.launch.arguments import call_of

            given = asked or CppLaunchOptions()
            program = program_of(path, given)
            if program is not None:
                _require_no_box(path, given.sandbox)
                failure = program(arguments)
                # Its exit code is its verdict, if that can depend on results that it has read.
                session = current_session()
                if session is not None and session.results and judges_own_result(path, given):
                    checked()
                return failure
            if arguments:
                raise refuse(path, "be run with --arg NAME=VALUE", repr(arguments[0]))
            with _boxed(given.sandbox):
                call_of(path, given, options).run()
            return None

        return launch
    if is_project(path):

        def run(options: JsonMapping, _: Callable[[], None]) -> str | None:
            from cubecore.frontends.cpp.operator_projects.operator_arguments import run_operator

            if arguments:
                raise refuse(path, "be run with --arg NAME=VALUE", repr(arguments[0]))
            given = asked or CppLaunchOptions()
            with _boxed(given.sandbox):
                run_operator(path, given, options)
            return None

        return run
    if asked is not None and asked.given:
        raise refuse(asked.given[0], "come with a file of C++ kernels", path)
    return lambda _, checked: run_as_main(path, arguments, checked)


def _boxed(word: str) -> AbstractContextManager[None]:
    """Have kernels and tiling functions run in the box that a word asks for."""
    from cubecore.frontends.cpp.toolchain.cache import folder

    scratch = Scratch(Path("/tmp"), _SCRATCH_BYTES)  # noqa: S108 - where programs look for it
    view = BoxView((folder().absolute(),), scratch=(scratch,))
    return nullcontext() if word == NONE else programs_boxed(word, view)


def _require_no_box(path: str, word: str) -> None:
    """Refuse a box for a program, which reads and writes files of its own.

    Raises
    ------
    RequestError
        If one is asked for by its name.
    """
    sentence = f"no sandbox for {path}: it is a program, whose files a box would not have"
    if word == AUTO:
        say_unboxed(sentence)
    elif word != NONE:
        raise unable("--sandbox", sentence, "--sandbox none runs it with your rights")


def _require_script(path: str) -> None:
    """Raise unless a path names a regular file or an operator project."""
    try:
        readable = S_ISREG(Path(path).stat().st_mode) or is_project(path)
    except (OSError, ValueError) as error:
        raise unreadable(path, error) from None
    if not readable:
        raise unreadable(path, "no regular file")


def _execute(
    path: str,
    work: _Work,
    options: JsonMapping,
    *,
    quiet: bool,
    debugger: LaunchDebugger | None = None,
    expect: ExpectOptions | None = None,
) -> ScriptRun:
    begin = perf_counter()
    _require_script(path)
    given = {name: value for name, value in options.items() if value is not None}
    session = ScriptSession(given, debugger=debugger)
    expected = expectations(expect or ExpectOptions(), session)
    session.judge = None if expected is None else expected.judge
    tik = path.endswith(".py") and imports_tik(path)
    names = ("chip", "settings", "checks", "order", "trace")
    tik_options = TikOptions(**{n: given[n] for n in names if n in given}, echo=False)
    provided = _tik_session(tik_options) if tik else nullcontext(None)
    if "debug_inputs" in given and not tik:
        raise unable("debug_inputs", f"{path} is no TIK program; --debug-inputs needs one")
    checks: list[bool] = []

    def checked() -> None:
        if session.runs or (programs and programs.runs):
            checks.append(True)

    with session.collecting(), provided as programs, _printing(quiet=quiet):
        failure = work(given, checked)
        waiting = programs.not_launched if programs and failure is None else ()
        if "debug_inputs" in given:
            from cubecore.frontends.tik.host.random_inputs import random_inputs

            for instance in waiting:
                instance.launch(random_inputs(instance.built_kernel))
    runs = (*session.runs, *(programs.runs if programs else ()))
    built = tuple(instance.built_kernel for instance in waiting if not instance.launched)
    if not runs and not built and failure is None:
        raise _launches_nothing(path, tik=tik)
    if programs and expected is not None:
        for run in programs.runs:
            expected.judge(run)
    total = perf_counter() - begin
    return ScriptRun(
        path,
        runs,
        failure,
        total,
        peak_bytes(),
        checked=bool(checks),
        linked=is_program(path),
        built=built,
        compared=() if expected is None else expected.results(),
        results=_results(runs, session),
    )


def _results(runs: "Sequence[KernelRun | TikRun]", session: ScriptSession) -> tuple[str, ...]:
    """Return the names of the arrays that launches left, those of the last one first."""
    words = {parameter: name for name, parameter in session.parameters.items()}
    names = [name for run in reversed(runs) for name in run.outputs]
    return tuple(dict.fromkeys(words.get(name, name) for name in (*session.results, *names)))


def _tik_session(options: TikOptions) -> "AbstractContextManager[TikSession]":
    from cubecore.frontends.tik.host.program import program_session

    return program_session(options)


def _launches_nothing(path: str, *, tik: bool) -> RequestError:
    remedy = 'call kernel[blocks](...) under `if __name__ == "__main__":`'
    if tik:
        remedy = (
            "call tik_instance.tikdb.start_debug(feed_dict={...}) after BuildCCE, or give "
            "--debug-inputs random"
        )
    elif _is_cpp(path):
        remedy = "its main launches one as kernel<<<blocks, nullptr, stream>>>(...)"
    return unable(path, f"{path} launches no kernel", remedy)


@contextmanager
def _printing(*, quiet: bool) -> Iterator[None]:
    if not quiet:
        yield
        return
    with redirect_stdout(sys.stderr):
        yield
