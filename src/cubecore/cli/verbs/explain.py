"""The command `explain`."""

from typing import Any

import click

from cubecore.cli.console import common_options, show, split_options
from cubecore.cli.streams import DONE
from cubecore.cli.values import ChipName, ExplainedName
from cubecore.cli.verb import Verb


@click.command(
    cls=Verb,
    examples=[
        "cubecore explain L0A-CAPACITY",
        "cubecore explain DataCopy",
    ],
)
@click.argument("name", type=ExplainedName())
@click.option("--chip", type=ChipName(), help="full SoC name, for an instruction")
@common_options
def explain(name: str, chip: str | None, **options: Any) -> int:
    """Explain a rule, a field of TCubeTiling, an instruction or a finding by its id."""
    from cubecore.workflows.explain import explain as make_explanation

    _, _, form = split_options(options)
    answer = make_explanation(name, chip)
    show(answer, form, answer.linked_text)
    return DONE
