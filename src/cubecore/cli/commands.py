"""The command line: a command is loaded when it is called, so that --help is instant."""

from importlib import import_module

import click

from cubecore.cli.console import CommandGroup
from cubecore.version import __version__

SUMMARIES = {
    "check": (
        "Check the tiling in a file against every rule; --repair finds the nearest legal one."
    ),
    "chips": "List the chips, or the facts about one with their sources.",
    "compare": (
        "Compare the tilings in two files; --report and --trace draw both on one timeline."
    ),
    "explain": "Explain a rule, a field of TCubeTiling, an instruction or a finding by its id.",
    "plan": "Find a legal, fast TCubeTiling for a product, or for every product in a file.",
    "run": "Execute the kernel instruction by instruction and verify its result.",
    "store": "Show, compare or export a store of plans (plan --store).",
    "sweep": "Time a product over values of its shape, its options, its tiling or its chip.",
    "time": "Time a kernel: cycles by pipe, stalls and links.",
    "validate": "Compare the timing model with measurements, case by case.",
}
"""Every command: the module of this package that has it under its own name, and its summary."""


class LazyGroup(CommandGroup):
    """A group whose commands are modules of this package."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of the commands."""
        return sorted(SUMMARIES)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return a command from its module; None if there is none of that name."""
        if cmd_name not in SUMMARIES:
            return None
        command: click.Command = getattr(import_module(f"cubecore.cli.{cmd_name}"), cmd_name)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the summaries; no command is loaded for that."""
        listed = {name: click.Command(name, help=text) for name, text in SUMMARIES.items()}
        click.Group(commands=listed).format_commands(ctx, formatter)


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="cubecore")
def main() -> None:
    """Plan, check, execute and time matrix kernels for the Ascend (Da Vinci) AI Core."""
