"""Tilings that a command reads: from a file, a log or standard input."""

from typing import TYPE_CHECKING

from cubecore.cli.console import InputFile
from cubecore.cli.streams import say

if TYPE_CHECKING:
    from cubecore.tiling.model.tcubetiling import TCubeTiling

_LISTED = 4
"""Absent fields that are named."""


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
        more = f" and {len(absent) - _LISTED} more" if absent[_LISTED:] else ""
        where = f"{'standard input' if path == '-' else path}, line {read.line}"
        say(f"{where}: absent fields are 0: {', '.join(absent[:_LISTED])}{more}", to_error=True)
    return read.tiling
