"""The command `check`."""

from typing import Any

import click

from cubecore.cli.console import TILING_FORMS, problem_options, show, split_options, table_options
from cubecore.cli.requests.tilings import TilingFile, given_tiling
from cubecore.cli.streams import DONE, FOUND
from cubecore.cli.values import OutputFile
from cubecore.cli.verb import Verb


@click.command(
    cls=Verb,
    examples=[
        "cubecore check mine.log --chip Ascend910B3",
        "cubecore check tiling.json --repair --out legal.json",
    ],
)
@click.argument("tiling", type=TilingFile())
@problem_options
@click.option("--edition", default="newer", help="newer or older edition of the TCubeTiling page")
@click.option(
    "--reading",
    default="effective",
    help="effective (hardware and kernels) or documented (the page, literally)",
)
@click.option("--repair", is_flag=True, help="find the legal tiling that changes the fewest fields")
@click.option("--keep", multiple=True, metavar="FIELD", help="field that --repair must not change")
@click.option("--out", type=OutputFile(), help=f"with --repair, {TILING_FORMS}")
@table_options
def check(tiling: str, out: str | None, **options: Any) -> int:
    """Check the tiling in a file against every rule; --repair finds the nearest legal one.

    TILING is JSON, a header, the structure's bytes, or any log that prints its fields (FILE#2 is
    the second of a log, - standard input); a shape that is not given is the tiling's.
    """
    from cubecore.answers.check import RepairedFindings
    from cubecore.errors import unable
    from cubecore.output_files import require_writable, write_whole
    from cubecore.tiling.model.export import require_form, tiling_data
    from cubecore.workflows.check import check as make_check

    keys, settings, form = split_options(options)
    if not keys["repair"] and (out is not None or keys["keep"]):
        name = "--out" if out is not None else "--keep"
        raise unable(name, f"{name} needs --repair")
    if out is not None:
        require_writable(out, "--out")
        require_form(out, "--out")
    answer = make_check(given_tiling(tiling), settings=settings, **keys)
    if out is not None and isinstance(answer, RepairedFindings) and answer.repair is not None:
        write_whole(out, tiling_data(answer.repair.tiling, out), "--out")
    show(answer, form)
    return DONE if answer.legal else FOUND
