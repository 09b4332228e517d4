"""The command `chips`."""

import json
from typing import Any

import click

from cubecore.cli.console import JSON, Verb, common_options, show, split_options
from cubecore.cli.streams import DONE, say


@click.command(cls=Verb)
@click.argument("name", required=False)
@click.option("--chip", help="full SoC name, as NAME")
@common_options
def chips(name: str | None, chip: str | None, **options: Any) -> int:
    """List the chips, or the facts about one with their sources."""
    name = name or chip
    from cubecore.reports.text.answers import chip_text, chips_text
    from cubecore.workflows.chips import ChipSheet, chip_list, chip_sheet

    _, settings, form = split_options(options)
    if name is not None:
        show(chip_sheet(name, settings), form, chip_text)
        return DONE
    sheets = [ChipSheet(record) for record in chip_list()]
    if form == JSON:
        say(json.dumps({"chips": [sheet.to_json() for sheet in sheets]}))
    else:
        say(chips_text(sheets), newline=False)
    return DONE
