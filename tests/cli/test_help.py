"""The help of all commands is made without them, and says of each what it says of itself."""

import click
import pytest

from cubecore.cli.commands import SUMMARIES, main


@pytest.mark.parametrize("name", sorted(SUMMARIES))
def test_a_summary_is_the_first_paragraph_of_the_command_s_own_help(name):
    command = main.get_command(click.Context(main), name)
    assert command is not None
    assert command.name == name
    assert command.help is not None
    assert " ".join(command.help.split("\n\n")[0].split()) == SUMMARIES[name]


def test_no_other_name_is_a_command():
    assert main.get_command(click.Context(main), "console") is None
