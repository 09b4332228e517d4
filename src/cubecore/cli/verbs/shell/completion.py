"""The command `completion`."""

import click

from cubecore.cli.streams import DONE, say
from cubecore.cli.values import Word
from cubecore.cli.verb import Verb

SHELLS = ["bash", "zsh", "fish"]


@click.command(
    cls=Verb,
    examples=[
        "cubecore completion bash >> ~/.bashrc",
        "cubecore completion fish > ~/.config/fish/completions/cubecore.fish",
    ],
)
@click.argument("shell", type=Word(SHELLS))
@click.pass_context
def completion(context: click.Context, shell: str) -> int:
    """Print a shell's script that completes commands, options, chips and names to explain.

    SHELL is bash, zsh or fish. For zsh, the script belongs into ~/.zshrc behind compinit.
    """
    from click.shell_completion import get_completion_class

    kind = get_completion_class(shell)
    assert kind is not None
    script = kind(context.find_root().command, {}, "cubecore", "_CUBECORE_COMPLETE").source()
    say(script)
    return DONE
