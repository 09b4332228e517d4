"""Options and answers of `run` and `time` for a script of the user's own kernels."""

import sys
from dataclasses import replace
from typing import TYPE_CHECKING

import click

from cubecore.aliases import Json, JsonMapping
from cubecore.cli.console import TEXT, Command, is_script, show, split_options, with_options
from cubecore.cli.requests.kernel_launches import launch_options_of
from cubecore.cli.streams import DONE, FOUND
from cubecore.cli.values import InputFile, Integer, Number, OutputFile

if TYPE_CHECKING:
    from cubecore.cli.files import TimeFiles
    from cubecore.workflows.scripts.debug_session import Dialogue


def script_arguments(command: Command) -> Command:
    """Add SCRIPT and its ARGUMENTS."""
    command = click.argument("arguments", nargs=-1, type=click.UNPROCESSED)(command)
    return click.argument("script", required=False, type=InputFile())(command)


def debug_options(command: Command) -> Command:
    """Add what stops a script's launches."""
    return with_options(
        command,
        click.option("--step", is_flag=True, help="stop a script before the first instruction"),
        click.option(
            "--dump",
            "dumps",
            multiple=True,
            metavar="WHERE",
            help="show x 4x16 NZ or UB:0 float 64 at every stop of a script, or at its end",
        ),
        click.option(
            "--watch",
            "watches",
            multiple=True,
            metavar="WHERE",
            help="stop a script after an access to UB:0x100+64, or c:0+64 of a tensor",
        ),
        click.option(
            "--break",
            "breaks",
            multiple=True,
            metavar="WHERE",
            help="stop a script before asc_add, #12 or FILE:LINE [if EXPRESSION]",
        ),
    )


def expect_options(command: Command) -> Command:
    """Add what the results of a script's kernels are compared with."""
    return with_options(
        command,
        click.option("--atol", type=Number(), help="absolute tolerance of --expect"),
        click.option(
            "--rtol", type=Number(), help="relative tolerance of --expect (default: by type)"
        ),
        click.option(
            "--expect",
            "expected",
            multiple=True,
            metavar="NAME=FILE",
            help="compare an output of a SCRIPT's kernels, as z=golden.npy",
        ),
    )


def advice_options(command: Command) -> Command:
    """Add what says which advice is given on a kernel, and what is tried."""
    return with_options(
        command,
        click.option(
            "--try",
            "try_s",
            type=Number(),
            metavar="SECONDS",
            help="relaunch SCRIPT with other blocks, macros and constants for up to SECONDS",
        ),
        click.option(
            "--without-rule",
            "without_rules",
            multiple=True,
            metavar="RULE",
            help="leave a rule out of --advise on a SCRIPT",
        ),
    )


def file_options(command: Command) -> Command:
    """Add the files that a timing can leave."""
    return with_options(
        command,
        click.option("--metrics", type=OutputFile(), help="write all figures to this JSON file"),
        click.option(
            "--trace-waits", is_flag=True, help="add lanes of waits and of the scalar unit"
        ),
        click.option(
            "--trace-window", metavar="FROM..TO", help="limit the trace to a window in microseconds"
        ),
        click.option(
            "--trace-cores", metavar="LIST", help="limit the trace to cores, such as 0,4..7"
        ),
        click.option(
            "--trace-instructions",
            type=Integer(),
            help="instructions to trace of each group of equal cores",
        ),
        click.option(
            "--trace",
            type=OutputFile(),
            help="write a Chrome trace (JSON) for Perfetto",
        ),
        click.option("--report", type=OutputFile(), help="write an HTML report with the timeline"),
    )


def time_files(options: Json, tiling_from: str = "") -> "TimeFiles":
    """Return the files that `file_options` ask for, out of a command's options.

    Raises
    ------
    RequestError
        If a file cannot be written, or the view of the trace is malformed.
    """
    from cubecore.cli.files import TimeFiles
    from cubecore.reports.files.trace_view import TraceView

    words = ("instructions", "cores", "window", "waits")
    view = TraceView.of_options(*(options.pop(f"trace_{word}") for word in words))
    report, trace, metrics = (options.pop(name) for name in ("report", "trace", "metrics"))
    files = TimeFiles(report, trace, tiling_from, metrics, view)
    files.require_writable()
    return files


def _dialogue(asked: JsonMapping) -> "Dialogue | None":
    """Return the debugger that the options ask for."""
    if not any(asked.values()):
        return None
    from cubecore.workflows.scripts.debug_session import PROMPT, Dialogue

    def write(text: str) -> None:
        sys.stdout.write(text)
        sys.stdout.flush()

    def read() -> str | None:
        if sys.stdin.isatty():
            write(PROMPT)
        line = sys.stdin.readline()
        if line and not sys.stdin.isatty():
            write(PROMPT + line.rstrip("\n") + "\n")
        return line.rstrip("\n") if line else None

    return Dialogue(read, write, **asked)


def require_alone(script: str, options: JsonMapping, files: JsonMapping) -> None:
    """Refuse what describes a matrix matmul beside a script.

    Raises
    ------
    RequestError
        One violation for each option that was given.
    """
    from cubecore.errors import RequestError, Violation

    allowed = ("chip", "settings", "as_json", "as_csv")
    given = {k.replace("_", "-"): v for k, v in options.items() if k not in allowed} | dict(files)
    wrong = [
        Violation(f"--{name}", "", "", "", f"--{name} does not apply to a script")
        for name, value in given.items()
        if value is not None
    ]
    if not is_script(script):
        need = "be a Python file, or a file of C++ kernels"
        wrong.insert(0, Violation("SCRIPT", need, repr(script)))
    if wrong:
        raise RequestError(wrong)


def require_script(asked: JsonMapping, kernel: JsonMapping) -> None:
    """Refuse to debug or launch what is no script.

    Raises
    ------
    RequestError
        One violation for each option that was given.
    """
    from cubecore.errors import RequestError, Violation

    words = {"breaks": "--break", "watches": "--watch", "dumps": "--dump", "step": "--step"}
    words |= {"debug_inputs": "--debug-inputs", "try_s": "--try"}
    words |= {"without_rules": "--without-rule", "expected": "--expect"}
    words |= {"rtol": "--rtol", "atol": "--atol"}
    given = [words[name] for name, value in asked.items() if value not in {None, False, ()}]
    given += [
        name for name, value in kernel.items() if not any(value is n for n in (None, False, ()))
    ]
    wrong = [Violation(name, "", "", "", f"{name} needs a script") for name in given]
    if wrong:
        raise RequestError(wrong)


def run_of_script(
    script: str,
    arguments: tuple[str, ...],
    sarif: str | None,
    asked: JsonMapping,
    kernel: JsonMapping,
    options: Json,
    *,
    everything: bool = False,
) -> int:
    """Run a script and show what its launches left; `asked` is what `debug_options` give.

    With `everything` findings that follow from others are shown as well.
    """
    from cubecore.cli.files import write_sarif
    from cubecore.errors import CubecoreError
    from cubecore.output_files import require_writable
    from cubecore.workflows.scripts.expectations import ExpectOptions
    from cubecore.workflows.scripts.script import run_script

    keys, settings, form = split_options(options)
    expect = ExpectOptions(keys["expected"], keys.get("rtol"), keys.get("atol"))
    if sarif is not None:
        require_writable(sarif, "--sarif")
    dialogue = _dialogue(asked)
    try:
        answer = run_script(
            script,
            arguments=arguments,
            checks=keys["checks"],
            order=keys.get("order"),
            engine=keys.get("engine"),
            settings=settings,
            quiet=form != TEXT,
            chip=keys.get("chip"),
            debugger=None if dialogue is None else dialogue.debugger,
            asked=launch_options_of(kernel),
            debug_inputs=keys.get("debug_inputs"),
            expect=expect,
        )
    except CubecoreError as error:
        if error.findings:
            write_sarif(sarif, error.findings)
        raise
    if dialogue is not None:
        dialogue.finish()
    write_sarif(sarif, answer.findings)
    show(replace(answer, everything=everything), form)
    return DONE if answer.clean else FOUND


def time_of_script(
    script: str,
    arguments: tuple[str, ...],
    files: "TimeFiles",
    kernel: JsonMapping,
    options: Json,
) -> int:
    """Run a script and show where the cycles of its launches go."""
    from cubecore.workflows.scripts.script import time_script

    keys, settings, form = split_options(options)
    without, budget = tuple(keys.get("without_rules", ())), keys.get("try_s")
    if without:
        from cubecore.advice.kernel_rules.advise import require_rules

        require_rules(without)
    if budget is not None:
        from cubecore.workflows.scripts.trials import require_budget

        require_budget(budget)
    asked = launch_options_of(kernel)
    answer = time_script(
        script,
        arguments=arguments,
        settings=settings,
        record=files.record,
        quiet=form != TEXT,
        chip=keys.get("chip"),
        advise=keys["advise"] or budget is not None or bool(without),
        without=without,
        asked=asked,
        debug_inputs=keys.get("debug_inputs"),
    )
    if budget is not None:
        from cubecore.cli.progress import working
        from cubecore.workflows.scripts.tried_script import with_trials

        with working("trying other numbers") as shown:
            answer = with_trials(
                answer,
                budget,
                arguments=arguments,
                asked=asked,
                chip=keys.get("chip"),
                settings=settings,
                debug_inputs=keys.get("debug_inputs"),
                shown=shown,
            )
    files.write(answer.longest.run.chip.name, answer)
    show(answer, form)
    return DONE if answer.clean else FOUND
