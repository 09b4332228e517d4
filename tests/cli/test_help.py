"""The help of all commands is made without them, and says of each what it says of itself."""

import click
import pytest

from cubecore.cli.commands import main
from cubecore.cli.front_page import front_page, summaries


@pytest.mark.parametrize("name", list(summaries()))
def test_a_summary_is_the_first_paragraph_of_the_command_s_own_help(name):
    command = main.get_command(click.Context(main), name)
    assert command is not None
    assert command.name == name
    assert command.help is not None
    assert " ".join(command.help.split("\n\n")[0].split()) == summaries()[name]


def test_no_other_name_is_a_command():
    assert main.get_command(click.Context(main), "console") is None


@pytest.mark.parametrize("program", ["cubecore", "python -m cubecore", "a-long-name-of-a-program"])
def test_the_front_page_is_laid_out_as_click_lays_out_a_group(program):
    """The oracle is Click's own layout of the same commands and options, at every width."""
    commands = {name: click.Command(name, help=text) for name, text in summaries().items()}
    names = {"help_option_names": ["-h", "--help"]}
    group = click.Group(help=main.help, commands=commands, context_settings=names)
    group = click.version_option("1")(group)
    for width in range(50, 121):
        context = group.make_context(program, [], resilient_parsing=True, terminal_width=width)
        assert front_page(program, width) == group.get_help(context)


def test_a_group_asked_for_help_among_options_answers_the_front_page():
    context = main.make_context("cubecore", [], resilient_parsing=True, terminal_width=66)
    assert main.get_help(context) == front_page("cubecore", 66)
