"""The entry of the program: --help at once, else the command, with Python's own costs kept low."""

import gc
import os
import sys

from cubecore.cli.front_page import front_page
from cubecore.cli.streams import DONE, page_width, say, speaks_chinese

_NEW_OBJECTS = 10_000
"""Objects between two collections; Python's 700 make a hundred of them while modules load."""


def main(program: str | None = None) -> None:
    """Run the command that the arguments name, and leave with its exit code.

    `program` is the name of the program in the help; the file's unless given.
    """
    if sys.argv[1:] in (["--help"], ["-h"]):
        name = program or os.path.basename(sys.argv[0])  # noqa: PTH119
        page = front_page
        if speaks_chinese():
            from cubecore.cli.zh.translation import front_page_text as page
        say(page(name, page_width()))
        sys.exit(DONE)
    gc.set_threshold(_NEW_OBJECTS)
    from cubecore.cli.commands import main as run_command

    try:
        run_command()
    except SystemExit as left:
        if isinstance(left.code, int):
            _leave(left.code)
        raise


def _leave(code: int) -> None:
    """End the process, unless a thread or a profiler would miss it; nothing is freed one by one.

    That would take a twentieth of a short command's time, and more behind a kernel's process, with
    which this one shares its pages.
    """
    import atexit
    import threading

    if threading.active_count() > 1 or sys.getprofile() or sys.gettrace():
        return
    atexit._run_exitfuncs()  # noqa: SLF001 - the system's own exit would leave them out
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)
