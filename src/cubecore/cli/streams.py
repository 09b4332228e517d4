"""Text on standard output and standard error, and the exit codes of a command."""

import os
import sys

TYPE_CHECKING = False  # typing would be most of what --help loads
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import NoReturn, TextIO

DONE, FOUND, BAD_REQUEST, INTERRUPTED, READER_GONE = 0, 1, 2, 130, 141


LANGUAGES = ("en", "zh")
_LANG = "--lang"
_VARIABLES = ("CUBECORE_LANG", "LC_ALL", "LC_MESSAGES", "LANG")
"""Variables of the language, the first one that is set; ours is for programs that samples run."""
_chosen = [""]


def choose_language(arguments: "list[str]") -> None:
    """Take the language of texts for people: that of --lang, else of the environment."""
    _chosen[0] = next(_asked(arguments), "") or _usual()


def _asked(arguments: "list[str]") -> "Iterator[str]":
    """Yield the language that --lang names, which is no argument of a script's."""
    for number, argument in enumerate(arguments):
        if argument == "--":
            return
        if argument == _LANG:
            yield from arguments[number + 1 : number + 2]
        elif argument.startswith(f"{_LANG}="):
            yield argument.removeprefix(f"{_LANG}=")


def _usual() -> str:
    """Return the language of the environment, as the system's programs take it."""
    first = next(filter(None, map(os.environ.get, _VARIABLES)), "")
    return "zh" if first.startswith("zh") else "en"


def speaks_chinese() -> bool:
    """Return whether texts for people are in Chinese."""
    return (_chosen[0] or _usual()) == "zh"


def say(text: str, *, to_error: bool = False, newline: bool = True) -> None:
    """Write an answer; a reader that went away ends the program, a full disk is one line."""
    stream = sys.stderr if to_error else sys.stdout
    encoding = stream.encoding or "utf-8"
    try:  # the escape of a character stands for it where the stream cannot encode it
        shown = text.encode(encoding, "backslashreplace").decode(encoding)
        stream.write(f"{shown}\n" if newline else shown)
        stream.flush()
    except OSError as error:
        _leave(stream, error)


def require_output(error: BaseException) -> None:
    """Leave if `error` is a standard output that takes no more from a script or from Click.

    The system does not say which file had no space: one more line end tells.
    """
    try:
        if isinstance(error, OSError) and error.filename is None:
            sys.stdout.write("\n")
        sys.stdout.flush()
    except OSError as unwritable:
        _leave(sys.stdout, unwritable)


def _leave(stream: "TextIO", error: OSError) -> "NoReturn":
    """Leave since a stream takes no more: in silence if its reader went away."""
    _drop_output(stream)
    if isinstance(error, BrokenPipeError):
        sys.exit(READER_GONE)
    if stream is not sys.stderr:
        reason = str(error.strerror or error)
        line = f"cannot write to standard output: {reason[:1].lower()}{reason[1:]}"
        sys.stderr.write(f"{line}\n")
    sys.exit(BAD_REQUEST)


def _drop_output(stream: "TextIO") -> None:
    """Send the buffered rest nowhere, so that leaving does not fail on it again."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, stream.fileno())


def terminal_columns() -> int:
    """Return the columns of the terminal: COLUMNS, else those of standard output, else 80."""
    columns = os.environ.get("COLUMNS", "")
    if columns.isdecimal() and int(columns):
        return int(columns)
    try:
        return os.get_terminal_size(sys.__stdout__.fileno()).columns or 80  # type: ignore[union-attr]
    except (AttributeError, ValueError, OSError):  # closed, or no terminal
        return 80


def page_width(most: int = 80) -> int:
    """Return the columns of a page of help."""
    return max(min(terminal_columns(), most) - 2, 50)
