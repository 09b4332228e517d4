"""Programs that `cubecore c++` links: a line that starts cubecore, and a library behind it."""

import os
import shlex
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from cubecore.errors import unable, unreadable, unwritable
from cubecore.frontends.cpp.compile.build import arch_of, headers
from cubecore.frontends.cpp.compile.cache import scratch_folder
from cubecore.frontends.cpp.compile.parts import split
from cubecore.frontends.cpp.launch_options import PROGRAM_HEAD

_END = b"\nexit 126\n"


def write_program(library: bytes, out: Path) -> None:
    """Write a program that runs a library's main; the library may have two parts.

    Raises
    ------
    RequestError
        If the file cannot be written.
    """
    start = f"exec {shlex.quote(sys.executable)} -m cubecore.cli.program"
    text = PROGRAM_HEAD + f'# {headers()}\n{start} "$0" "$@"'.encode()
    beside = out.with_name(f"{out.name}.part")
    try:
        beside.write_bytes(text + _END + library)
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
def libraries_of(path: Path) -> Iterator[tuple[list[Path], str]]:
    """Give the libraries of a program as files, while they are needed, and their architecture.

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
    with scratch_folder() as held:
        paths = []
        for number, part in enumerate(part for part in split(library) if part is not None):
            paths.append(Path(held, f"{number}.so"))
            paths[-1].write_bytes(part)
        yield paths, arch_of(library)
