"""The command `sample`."""

import click

from cubecore.cli.streams import DONE, FOUND, say, speaks_chinese
from cubecore.cli.values import InputFile, Number
from cubecore.cli.verb import Verb


@click.command(
    cls=Verb,
    examples=[
        "cubecore sample path/to/sample",
        "cubecore sample path/to/sample --timeout 300",
    ],
)
@click.argument("folder", metavar="DIR", type=InputFile())
@click.option("--timeout", type=Number(), default=300.0, help="limit in seconds of each step")
@click.option("--verbose", is_flag=True, help="show the output of each step")
def sample(folder: str, timeout: float, verbose: bool) -> int:
    """Build, run and verify a sample project of kernels, as its README does.

    The steps are cmake, make, scripts/gen_data.py, the program and scripts/verify_result.py, in
    DIR/build; their arguments are those of the first shell block of the README that builds.
    """
    from cubecore.workflows.scripts.sample import run_sample

    answer = run_sample(folder, timeout, show=say if verbose else None)
    lines = [] if verbose or not answer.told else [answer.told, ""]
    text = "\n".join([*lines, answer.line])
    if speaks_chinese():
        from cubecore.cli.zh.translation import translated

        text = translated(text)
    say(text)
    return DONE if answer.passed else FOUND
