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
    """Explain a rule, a field, an instruction, a call, a finding, a piece of advice or a chip.

    NAME is an id, such as L0A-CAPACITY, baseM, race-raw or loaded-again, a name of the C API, the
    class API or TIK, a chip, or a term of the glossary.
    """
    from cubecore.workflows.explain import explain as make_explanation

    _, _, form = split_options(options)
    answer = make_explanation(name, chip)
    show(answer, form, answer.linked_text)
    return DONE
