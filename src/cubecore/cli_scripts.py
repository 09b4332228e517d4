"""What `run` and `time` do with a script of the user's own kernels."""

from collections.abc import Mapping
from typing import Any

import click

from cubecore.console import DONE, FOUND, Command, show, split_options


def script_arguments(command: Command) -> Command:
    """Add SCRIPT and its ARGUMENTS."""
    command = click.argument("arguments", nargs=-1, type=click.UNPROCESSED)(command)
    return click.argument("script", required=False)(command)


def require_alone(script: str, options: Mapping[str, Any], files: Mapping[str, Any]) -> None:
    """Refuse what describes a matrix product beside a script.

    Raises:
        RequestError: one violation for each option that was given.
    """
    from cubecore.errors import RequestError, Violation
    from cubecore.workflows.script import is_script

    allowed = ("chip", "settings", "as_json")
    given = {k.replace("_", "-"): v for k, v in options.items() if k not in allowed} | dict(files)
    found = [
        Violation(f"--{name}", "be left out with a script", repr(value))
        for name, value in given.items()
        if value is not None
    ]
    if not is_script(script):
        found.insert(0, Violation("SCRIPT", "be a Python file", repr(script)))
    if found:
        raise RequestError(found)


def run_of_script(
    script: str,
    arguments: tuple[str, ...],
    sarif: str | None,
    options: dict[str, Any],
) -> int:
    """Run a script and show what its launches left."""
    from cubecore.reports.files import RunFiles
    from cubecore.reports.script import script_run_text
    from cubecore.workflows.script import run_script

    keys, settings, as_json = split_options(options)
    files = RunFiles(sarif)
    files.require_writable()
    answer = run_script(
        script,
        arguments=arguments,
        checks=keys["checks"],
        order=keys["engine"] if keys["engine"] in {"late", "early"} else None,
        settings=settings,
        quiet=as_json,
        chip=keys.get("chip"),
    )
    files.write(answer.findings)
    show(answer, as_json, script_run_text)
    return DONE if answer.verified else FOUND


def time_of_script(
    script: str,
    arguments: tuple[str, ...],
    report: str | None,
    trace: str | None,
    options: dict[str, Any],
) -> int:
    """Run a script and show where the cycles of its launches go."""
    from cubecore.reports.files import TimeFiles
    from cubecore.reports.script import script_time_text
    from cubecore.workflows.script import time_script

    keys, settings, as_json = split_options(options)
    files = TimeFiles(report, trace)
    files.require_writable()
    answer = time_script(
        script,
        arguments=arguments,
        settings=settings,
        record=files.record,
        quiet=as_json,
        chip=keys.get("chip"),
    )
    files.write_launch(answer.longest)
    show(answer, as_json, script_time_text)
    return DONE
