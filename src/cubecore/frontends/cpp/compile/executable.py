"""Programs that `cubecore c++` links: a line that starts cubecore, and a library behind it."""

import os
import shlex
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from cubecore.errors import unable, unreadable, unwritable
from cubecore.frontends.cpp.compile.build import headers
from cubecore.frontends.cpp.compile.cache import folder
from cubecore.frontends.cpp.launch_options import PROGRAM_HEAD

_END = b"\nexit 126\n"


def write_program(library: Path, out: Path) -> None:
    """Write a program that runs a library's main.

    Raises
    ------
    RequestError
        If the file cannot be written.
    """
    start = f"exec {shlex.quote(sys.executable)} -m cubecore.cli.program"
    text = PROGRAM_HEAD + f'# {headers()}\n{start} "$0" "$@"'.encode()
    beside = out.with_name(f"{out.name}.part")
    try:
        beside.write_bytes(text + _END + library.read_bytes())
        beside.chmod(0o777 & ~_umask())
        beside.replace(out)
    except OSError as error:
        beside.unlink(missing_ok=True)
        raise unwritable(str(out), error) from None


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


@contextmanager
def library_of(path: Path) -> Iterator[Path]:
    """Give the library of a program as a file, while it is needed.

    Raises
    ------
    RequestError
        If the program cannot be read, or was built by another version.
    """
    try:
        raw = path.read_bytes()
    except OSError as error:
        raise unreadable(str(path), error) from None
    head, _, library = raw.partition(_END)
    if head.splitlines()[2] != f"# {headers()}".encode():
        other = f"{path} was built with other headers than those of this version"
        raise unable(str(path), other, "build it again")
    with tempfile.NamedTemporaryFile(dir=folder(), suffix=".so") as held:
        held.write(library)
        held.flush()
        yield Path(held.name)
