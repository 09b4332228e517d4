"""The command `compare`."""

from typing import TYPE_CHECKING, Any

import click

from cubecore.cli.console import problem_options, show, split_options, table_options
from cubecore.cli.requests.scripts import file_options, time_files
from cubecore.cli.requests.tilings import TilingFile, given_tiling
from cubecore.cli.streams import DONE, FOUND
from cubecore.cli.verb import Verb

if TYPE_CHECKING:
    from cubecore.tiling.model.tcubetiling import TCubeTiling


@click.command(
    cls=Verb,
    examples=[
        "cubecore compare mine.json other.json",
        "cubecore compare mine.json other.json --report compared.html",
    ],
)
@click.argument("first", type=TilingFile())
@click.argument("second", type=TilingFile())
@problem_options
@file_options
@table_options
def compare(first: str, second: str, **options: Any) -> int:
    """Compare the tilings in two files; --report and --trace draw both on one timeline."""
    from cubecore.workflows.compare import compare as make_compare

    files = time_files(options, f"1 is {first}, 2 is {second}")
    keys, settings, form = split_options(options)
    keys |= {"first": _named(first), "second": _named(second), "settings": settings}
    files.require_openable(lambda: make_compare(**keys).timed)
    answer = make_compare(**keys, record=files.record)
    if answer.timed:
        files.write(answer.request.chip.name, answer)
    show(answer, form)
    return DONE if answer.legal else FOUND


def _named(path: str) -> "TCubeTiling":
    """Return the tiling in a file; what is wrong with it names the file."""
    from cubecore.errors import RequestError

    try:
        return given_tiling(path)
    except RequestError as error:
        raise RequestError(
            v if v.subject == path else v.within(path) for v in error.violations
        ) from None
