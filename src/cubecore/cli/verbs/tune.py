"""The command `tune`."""

from typing import Any

import click

from cubecore.cli.console import fix_option, problem_options, show, split_options, table_options
from cubecore.cli.requests.tilings import TilingFile, given_tiling
from cubecore.cli.streams import DONE, FOUND
from cubecore.cli.values import OutputFile
from cubecore.cli.verb import Verb


@click.command(
    cls=Verb,
    examples=[
        "cubecore tune mine.log --chip Ascend910B3",
        "cubecore tune tiling.json --report tuned.html",
    ],
)
@click.argument("tiling", type=TilingFile())
@problem_options
@fix_option
@click.option("--report", type=OutputFile(), help="write an HTML page")
@table_options
def tune(tiling: str, report: str | None, **options: Any) -> int:
    """Diagnose a tiling: is it legal, how fast is it, which small changes help.

    TILING is JSON, a header, the structure's bytes, or any log that prints its fields (FILE#2 is
    the second of a log, - standard input); a shape that is not given is the tiling's. One that
    breaks rules is repaired by the fewest changes first, and the exit code is 1.
    """
    from cubecore.cli.progress import working
    from cubecore.output_files import require_writable, write_whole
    from cubecore.workflows.tune import tune as make_tuned

    keys, settings, form = split_options(options)
    record = 0
    if report is not None:
        from cubecore.reports.html.page import SHOWN_INSTRUCTIONS

        require_writable(report, "--report")
        record = SHOWN_INSTRUCTIONS
    given = given_tiling(tiling)
    with working("timing the changes"):
        answer = make_tuned(given, settings=settings, record=record, **keys)
    if report is not None:
        from cubecore.cli.provenance import signed

        write_whole(report, signed(answer.page(tiling), answer.request.chip.name), "--report")
    show(answer, form)
    return DONE if answer.legal else FOUND
