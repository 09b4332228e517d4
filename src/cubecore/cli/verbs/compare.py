"""The command `compare`."""

from typing import TYPE_CHECKING, Any

import click

from cubecore.cli.console import problem_options, show, split_options, table_options
from cubecore.cli.requests.scripts import file_options, time_files
from cubecore.cli.requests.tilings import TilingFile, given_tiling
from cubecore.cli.streams import DONE, FOUND
from cubecore.cli.verb import Verb

if TYPE_CHECKING:
    from cubecore.errors import RequestError
    from cubecore.tiling.model.tcubetiling import TCubeTiling


@click.command(
    cls=Verb,
    examples=[
        "cubecore compare mine.json other.json",
        "cubecore compare old_time.json new_time.json",
    ],
)
@click.argument("first", type=TilingFile())
@click.argument("second", type=TilingFile())
@problem_options
@file_options
@table_options
def compare(first: str, second: str, **options: Any) -> int:
    """Compare two tilings, or two results that --json printed, and say what differs.

    FIRST and SECOND are tilings of one problem, which are checked and timed (--report and --trace
    draw both on one timeline), or saved results of `time`, `run` or `model`: of matmuls, operators
    or kernels.
    """
    from cubecore.workflows.compare import compare as make_compare
    from cubecore.workflows.compare import saved_comparison

    files = time_files(options, f"1 is {first}, 2 is {second}")
    keys, settings, form = split_options(options)
    saved = saved_comparison(first, second)
    if saved is not None and not keys and not settings and not files.wanted:
        show(saved, form)
        return DONE
    if saved is not None and not saved.of_tilings:
        raise _not_timed(first, second)
    keys |= {"first": _named(first), "second": _named(second), "settings": settings}
    keys["names"] = (first, second)
    files.require_openable(lambda: make_compare(**keys).timed)
    answer = make_compare(**keys, record=files.record)
    if answer.timed:
        files.write(answer.request.chip.name, answer)
    show(answer, form)
    return DONE if answer.legal else FOUND


def _not_timed(first: str, second: str) -> "RequestError":
    """Return the refusal of options that time two results again which have no tiling."""
    from cubecore.errors import unable

    sentence = f"{first} and {second} are saved results without a tiling"
    return unable("compare", f"{sentence}: options of a problem and files need two tilings")


def _named(path: str) -> "TCubeTiling":
    """Return the tiling in a file; what is wrong with it names the file."""
    from cubecore.errors import RequestError

    try:
        return given_tiling(path)
    except RequestError as error:
        raise RequestError(
            v if v.subject == path else v.within(path) for v in error.violations
        ) from None
