"""The page of commands: what each does, its options in tables, and examples."""

from collections.abc import Iterator

import click
from tools.pages.site.text import cell, escaped, table

from cubecore.cli.commands import main
from cubecore.cli.front_page import GROUPS, summaries
from cubecore.cli.verb import Verb


def page() -> str:
    """Return the page."""
    texts = summaries()
    lines = [
        "# Commands",
        "",
        "Exit codes are 0 for success, 1 for findings and 2 for a bad request, with one sentence on"
        " standard error. `cubecore help COMMAND` prints a command's part of this page.",
        "",
    ]
    for title, names in GROUPS.items():
        rows = ((f"[`{name}`](#{_anchor(name)})", cell(texts[name])) for name in names.split())
        lines += [f"**{title}**", "", *table(("command", "does"), rows)]
    with main.make_context("cubecore", [], resilient_parsing=True) as context:
        for names in GROUPS.values():
            for name in names.split():
                command = main.get_command(context, name)
                assert command is not None
                below = click.Context(command, info_name=name, parent=context, show_default=True)
                lines += _command(below, 2)
    return "\n".join(lines)


def _anchor(name: str) -> str:
    return f"cubecore-{name.replace('+', 'p').replace(' ', '-')}"


def _command(context: click.Context, level: int) -> Iterator[str]:
    """Yield the part of a command, and of those below a group."""
    command = context.command
    below = context.command_path.partition(" ")[2]
    yield f"{'#' * level} {context.command_path} {{#{_anchor(below)}}}"
    yield ""
    pieces = " ".join([context.command_path, *command.collect_usage_pieces(context)])
    yield from (f"`{pieces}`", "")
    for paragraph in (command.help or "").split("\n\n"):
        yield from (escaped(" ".join(paragraph.split())), "")
    if isinstance(command, click.Group):
        for below in command.list_commands(context):
            child = command.get_command(context, below)
            assert child is not None
            inner = click.Context(child, info_name=below, parent=context, show_default=True)
            yield from _command(inner, level + 1)
    if isinstance(command, Verb):
        if command.examples:
            yield from ("```sh", *command.examples, "```", "")
        for title, rows in command.option_groups(context):
            cells = ((f"`{option}`", cell(text)) for option, text in rows)
            yield from (f"**{title}**", "", *table(("option", "meaning"), cells))
