"""Tilings that a command reads: from a file, a log or standard input."""

from typing import TYPE_CHECKING

from cubecore.cli.streams import say
from cubecore.cli.values import InputFile
from cubecore.units import first_few

if TYPE_CHECKING:
    from cubecore.tiling.model.tcubetiling import TCubeTiling


class TilingFile(InputFile):
    """The name of a file with a tiling, of one in a log (FILE#2), or ``-`` for standard input."""

    def path(self, value: str) -> str:
        """Return the file without the tiling's number."""
        from cubecore.tiling.model.export import tiling_file

        return tiling_file(value)[0]


def given_tiling(path: str) -> "TCubeTiling":
    """Return the tiling in a file; a note on standard error has the fields that a log lacks."""
    from cubecore.tiling.model.export import read_tiling
    from cubecore.tiling.model.log_text import LoggedTiling

    read = read_tiling(path)
    if not isinstance(read, LoggedTiling):
        return read
    if absent := read.absent:
        where = f"{'standard input' if path == '-' else path}, line {read.line}"
        say(f"{where}: absent fields are 0: {first_few(absent)}", to_error=True)
    return read.tiling
