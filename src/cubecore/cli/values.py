"""Kinds of values that options and arguments take; each refuses what it is not in one sentence.

They complete what they can in a shell. Importing this module loads nothing heavy.
"""

from collections.abc import Iterable
from importlib import import_module
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

    from cubecore.errors import CubecoreError

    _IntegerBase = click.ParamType[int]
    _NumberBase = click.ParamType[float]
    _WordBase = click.Choice[str]
else:  # before 8.4 Click's types of values take no parameters at run time
    _IntegerBase, _NumberBase, _WordBase = click.ParamType, click.ParamType, click.Choice


class Integer(_IntegerBase):
    """An integer; says so as every other message does."""

    name = "integer"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """Return the integer that a text spells."""
        try:
            return int(value)
        except ValueError:
            raise _refused(param, "be an integer", value) from None


class Number(_NumberBase):
    """A number; says so as every other message does."""

    name = "number"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        """Return the number that a text spells."""
        try:
            return float(value)
        except ValueError:
            raise _refused(param, "be a number", value) from None


class Word(_WordBase):
    """One of a few words; says so as every other message does."""

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> str:
        """Return the word."""
        if value not in self.choices:
            *first, last = self.choices
            words = f"{', '.join(first)} or {last}" if first else last
            raise _refused(param, f"be {words}", value)
        return str(value)


def _refused(param: click.Parameter | None, need: str, value: object) -> "CubecoreError":
    """Return the refusal of a value that an option does not take."""
    from cubecore.errors import refuse

    return refuse(param.opts[0] if param is not None else "value", need, repr(value))


class CompletedWord(click.types.StringParamType):
    """A text for which a shell is offered words; the command itself judges what is given."""

    def words(self) -> Iterable[str]:
        """Return the words, in the order in which they are offered."""
        raise NotImplementedError

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> "list[CompletionItem]":
        """Return the words that begin as what was typed, in any case."""
        from click.shell_completion import CompletionItem  # no command but a completion needs it

        begun = incomplete.lower()
        return [CompletionItem(word) for word in self.words() if word.lower().startswith(begun)]


class DeclaredWords(CompletedWord):
    """Words that a module declares, read when a help or a shell asks for them."""

    def __init__(self, module: str, name: str) -> None:
        self._module, self._name = module, name

    def words(self) -> tuple[str, ...]:
        """Return them in the order of their declaration."""
        return tuple(getattr(import_module(self._module), self._name))

    def get_metavar(self, *_of: object, **_named: object) -> str:
        """Return the words with bars between them; Click has passed more since its 8.2."""
        return f"[{'|'.join(self.words())}]"


class CommandName(CompletedWord):
    """The name of a command."""

    name = "command"

    def words(self) -> Iterable[str]:
        """Return the commands."""
        from cubecore.cli.front_page import verbs

        return verbs()


class ExplainedName(CompletedWord):
    """A word that `explain` knows."""

    name = "name"

    def words(self) -> Iterable[str]:
        """Return everything that it knows."""
        from cubecore.workflows.explain import explained_names

        return explained_names()


class InputFile(click.types.StringParamType):
    """The name of a file that a command reads."""

    name = "file"

    def path(self, value: str) -> str | None:
        """Return the file that a value names, None if it names none."""
        return value


class ChipName(CompletedWord, InputFile):
    """The name of a SoC, or of a chip file."""

    name = "soc|file"

    def words(self) -> Iterable[str]:
        """Return the chips."""
        from cubecore.chips import chip_names

        return chip_names()

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> "list[CompletionItem]":
        """Return the chips whose names begin so, and let the shell add files."""
        from click.shell_completion import CompletionItem

        begun = super().shell_complete(ctx, param, incomplete)
        return [*begun, CompletionItem(incomplete, type="file")]

    def path(self, value: str) -> str | None:
        """Return the chip file."""
        from cubecore.chips import is_chip_file

        return value if is_chip_file(value) else None


class ArrayFile(InputFile):
    """The name of a file with an array, or of a tensor in one: FILE.safetensors:TENSOR."""

    def path(self, value: str) -> str:
        """Return the file without the tensor."""
        from cubecore.workflows.data.files import array_file

        return array_file(value)


class OutputFile(click.types.StringParamType):
    """The name of a file that a command writes; no file that it reads and no other output."""

    name = "file"
