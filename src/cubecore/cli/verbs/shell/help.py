"""The command `help`."""

import click

from cubecore.cli.streams import DONE, say
from cubecore.cli.values import CommandName
from cubecore.cli.verb import Verb


@click.command(cls=Verb, examples=["cubecore help plan", "cubecore help store show"])
@click.argument("command", nargs=-1, type=CommandName())
@click.pass_context
def help(context: click.Context, command: tuple[str, ...]) -> int:  # noqa: A001 - the verb's name
    """Show the help of a command, as its own --help does.

    Without a COMMAND, all commands are listed.
    """
    root = context.find_root()
    page, shown = root, root.command
    for name in command:
        below = shown.get_command(page, name) if isinstance(shown, click.Group) else None
        if below is None:
            page.fail(f"No such command '{name}'.")
        shown = below
        page = type(page)(below, info_name=name, parent=page)
    say(shown.get_help(page))
    return DONE
