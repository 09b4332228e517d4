"""The command `explain`."""

from typing import TYPE_CHECKING, Any

import click

from cubecore.cli.console import Verb, common_options, show, split_options
from cubecore.cli.streams import DONE
from cubecore.manual import address

if TYPE_CHECKING:
    from cubecore.workflows.explain import Explanation


@click.command(cls=Verb)
@click.argument("name")
@click.option("--chip", help="full SoC name, for an instruction")
@common_options
def explain(name: str, chip: str | None, **options: Any) -> int:
    """Explain a rule, a field of TCubeTiling, an instruction or a finding by its id."""
    from cubecore.workflows.explain import explain as make_explanation

    _, _, form = split_options(options)
    show(make_explanation(name, chip), form, _with_page)
    return DONE


def _with_page(explanation: "Explanation") -> str:
    """Return the text, and the address of the name's page where the site is known."""
    link = address(explanation.kind, explanation.name)
    return explanation.text + (f"\n{link}\n" if link else "")
