"""The command line: a command is loaded when it is called, so that --help is instant."""

from importlib import import_module

import click

from cubecore.cli.console import CommandGroup
from cubecore.cli.front_page import PURPOSE, front_page, verbs
from cubecore.cli.streams import LANGUAGES, speaks_chinese
from cubecore.cli.values import Word
from cubecore.cli.verb import LANG_HELP
from cubecore.version import __version__


class LazyGroup(CommandGroup):
    """A group whose commands are modules of `cli.verbs`."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of the commands."""
        return list(verbs())

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return a command from its module; None if there is none of that name."""
        file = verbs().get(cmd_name)
        if file is None:
            return None
        module = file.removesuffix(".py").replace("/", ".")
        loaded = import_module(f"cubecore.cli.verbs.{module}")
        command: click.Command = getattr(loaded, module.rpartition(".")[2])
        return command

    def get_help(self, ctx: click.Context) -> str:
        """Return the page of all commands; none is loaded for that."""
        page = front_page
        if speaks_chinese():
            from cubecore.cli.zh.translation import front_page_text as page
        return page(ctx.command_path, ctx.make_formatter().width)


@click.group(cls=LazyGroup, help=PURPOSE, context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--lang", type=Word(LANGUAGES), expose_value=False, help=LANG_HELP)
@click.version_option(__version__, prog_name="cubecore")
def main() -> None:
    """Run a command; the help is `PURPOSE`."""
