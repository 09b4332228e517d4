"""The command `doctor`."""

from typing import Any

import click

from cubecore.cli.console import common_options, show, split_options
from cubecore.cli.streams import DONE, FOUND
from cubecore.cli.verb import Verb


@click.command(cls=Verb, examples=["cubecore doctor", "cubecore doctor --json"])
@common_options
def doctor(**options: Any) -> int:
    """Say what cubecore finds on this machine: versions, compiler, cache, chip files, extras.

    The exit code is 1 where something that is there does not work; an extra that is missing is no
    fault.
    """
    from cubecore.cli.diagnosis import diagnose

    _, _, form = split_options(options)
    answer = diagnose()
    show(answer, form)
    return FOUND if answer.faults else DONE
