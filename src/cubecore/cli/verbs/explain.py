"""The command `explain`."""

from typing import Any

import click

from cubecore.cli.console import Verb, common_options, show, split_options
from cubecore.cli.streams import DONE


@click.command(cls=Verb)
@click.argument("name")
@click.option("--chip", help="full SoC name, for an instruction")
@common_options
def explain(name: str, chip: str | None, **options: Any) -> int:
    """Explain a rule, a field of TCubeTiling, an instruction or a finding by its id."""
    from cubecore.workflows.explain import explain as make_explanation

    _, _, form = split_options(options)
    answer = make_explanation(name, chip)
    show(answer, form, answer.linked_text)
    return DONE
