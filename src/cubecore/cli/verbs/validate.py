"""The command `validate`."""

from dataclasses import replace
from typing import Any

import click

from cubecore.cli.console import show, split_options, table_options
from cubecore.cli.streams import DONE, FOUND
from cubecore.cli.values import InputFile, OutputFile
from cubecore.cli.verb import Verb


@click.command(
    cls=Verb,
    examples=[
        "cubecore validate",
        "cubecore validate --points op_summary.csv --chip Ascend910B3",
    ],
)
@click.option(
    "--points",
    type=InputFile(),
    help="JSONL file of measurements, or op_summary_*.csv (default: the published ones)",
)
@click.option("--chip", help="full SoC name of a profiler's table")
@click.option("--report", type=OutputFile(), help="write an HTML page: scatter plot and every case")
@click.option("--held-out", is_flag=True, help="add errors on publications held out of the fit")
@table_options
def validate(
    *, points: str | None, chip: str | None, report: str | None, held_out: bool, **options: Any
) -> int:
    """Compare the timing model with measurements, case by case.

    Exits with 1 if a line is not a valid measurement.
    """
    from cubecore.cli.progress import working
    from cubecore.errors import unable
    from cubecore.output_files import require_writable, write_whole
    from cubecore.workflows.calibration.held_out import held_out as make_held_out
    from cubecore.workflows.calibration.validate import validate as make_validation

    if held_out and (points is not None or options["settings"]):
        raise unable("--held-out", "--held-out excludes --points and --set")
    _, settings, form = split_options(options)
    if report is not None:
        require_writable(report, "--report")
    with working("timing the points"):
        answer = make_validation(points, settings=settings, chip=chip)
        if held_out:
            answer = replace(answer, held_out=make_held_out(answer))
        if report is not None:
            from cubecore.cli.provenance import signed

            write_whole(report, signed(answer.page(), chip or ""), "--report")
    show(answer, form)
    return FOUND if answer.unreadable else DONE
