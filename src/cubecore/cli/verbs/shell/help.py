"""The command `help`."""

import click

from cubecore.cli.streams import DONE, say
from cubecore.cli.values import CommandName
from cubecore.cli.verb import Verb


@click.command(cls=Verb, examples=["cubecore help plan", "cubecore help --man | man -l -"])
@click.argument("command", nargs=-1, type=CommandName())
@click.option("--man", is_flag=True, help="print the manual page of all commands, for man")
@click.pass_context
def help(context: click.Context, command: tuple[str, ...], *, man: bool) -> int:  # noqa: A001 - the verb's name
    """Show the help of a command, as its own --help does.

    Without a COMMAND, all commands are listed.
    """
    root = context.find_root()
    if man:
        from cubecore.cli.man_page import man_page

        named = type(root)(root.command, info_name="cubecore")
        say(man_page(named), newline=False)
        return DONE
    page, shown = root, root.command
    for name in command:
        below = shown.get_command(page, name) if isinstance(shown, click.Group) else None
        if below is None:
            page.fail(f"No such command '{name}'.")
        shown = below
        page = type(page)(below, info_name=name, parent=page)
    say(shown.get_help(page))
    return DONE
