r"""The manual page of all commands, in roff: made of their help, as ``man`` shows it.

A command's part begins so::

    .SS cubecore chips [OPTIONS] [NAME]
    List the chips, or the facts about one with their sources.
    .PP
    \fBOptions\fR
    .TP
    \fB\-\-json\fR
    print one JSON object
"""

from collections.abc import Iterable, Iterator

import click

from cubecore.cli.front_page import EXAMPLES, PURPOSE
from cubecore.cli.verb import Verb
from cubecore.version import __version__

_EXIT_CODES = {
    "0": "success",
    "1": "findings, or a result that is wrong",
    "2": "a request that cannot be carried out; one sentence on standard error says why",
    "130": "interrupted",
}
_VARIABLES = {
    "CUBECORE_CHIP": "the chip, or chip file, of requests that name none",
    "CUBECORE_CACHE": "the folder of compiled kernels",
    "CUBECORE_CXX": "the C++ compiler",
    "CUBECORE_DOCS": "the address of the site, or its folder, for links in answers",
    "CUBECORE_DEBUG": "shows the traceback of an internal error",
}


def man_page(root: click.Context) -> str:
    """Return the page for a group's context."""
    lines = [
        f'.TH CUBECORE 1 "" "cubecore {__version__}" "User Commands"',
        *(".SH NAME", f"cubecore \\- {_roff(PURPOSE)}"),
        *(".SH SYNOPSIS", ".B cubecore", "COMMAND [OPTIONS] [ARGS]..."),
        ".SH COMMANDS",
        *_below(root),
        *(".SH EXIT STATUS", *_rows(_EXIT_CODES.items())),
        *(".SH ENVIRONMENT", *_rows(_VARIABLES.items())),
        *(".SH EXAMPLES", *_examples(EXAMPLES)),
    ]
    return "\n".join(lines) + "\n"


def _below(context: click.Context) -> Iterator[str]:
    """Yield the lines of a command, or of every command of a group."""
    command = context.command
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            below = command.get_command(context, name)
            assert below is not None
            yield from _below(below.context_class(below, info_name=name, parent=context))
        return
    usage = " ".join([context.command_path, *command.collect_usage_pieces(context)])
    yield f".SS {_roff(usage)}"
    for paragraph in (command.help or "").split("\n\n"):
        yield from (_roff(" ".join(paragraph.split())), ".PP")
    if isinstance(command, Verb):
        for title, rows in command.option_groups(context):
            yield f"\\fB{_roff(title)}\\fR"
            yield from _rows(rows)
        yield from _examples(command.examples)


def _rows(rows: Iterable[tuple[str, str]]) -> Iterator[str]:
    """Yield names in bold, each with its text below."""
    for name, text in rows:
        yield from (".TP", f"\\fB{_roff(name)}\\fR", _roff(text))
    yield ".PP"


def _examples(lines: tuple[str, ...]) -> Iterator[str]:
    if lines:
        yield from (".nf", *map(_roff, lines), ".fi", ".PP")


def _roff(text: str) -> str:
    """Return text that roff prints as it is."""
    shown = text.replace("\\", "\\e").replace("-", "\\-")
    return f"\\&{shown}" if shown.startswith((".", "'")) else shown
