"""The command `chips`."""

from typing import Any

import click

from cubecore.cli.console import show, split_options, table_options
from cubecore.cli.streams import DONE
from cubecore.cli.verb import Verb


@click.command(
    cls=Verb,
    examples=[
        "cubecore chips",
        "cubecore chips Ascend910B3 --json",
    ],
)
@click.argument("name", required=False)
@click.option("--chip", help="full SoC name, as NAME")
@table_options
def chips(name: str | None, chip: str | None, **options: Any) -> int:
    """List the chips, or the facts about one with their sources."""
    name = name or chip
    from cubecore.workflows.chips import chip_list, chip_sheet

    _, settings, form = split_options(options)
    if name is not None:
        show(chip_sheet(name, settings), form)
    else:
        show(chip_list(), form)
    return DONE
