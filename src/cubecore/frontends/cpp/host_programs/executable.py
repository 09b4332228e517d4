"""Files that `cubecore c++` writes: programs, and what has a part for each kind of core.

A program is a line that starts cubecore, and a library behind it. Of an object or a library the
second part lies behind the first, which readers of the first alone do not notice.
"""

import os
import shlex
import struct
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from cubecore.errors import unable, unreadable
from cubecore.frontends.cpp.files import PROGRAM_HEAD, write_at_once
from cubecore.frontends.cpp.toolchain.build import arch_of
from cubecore.frontends.cpp.toolchain.cache import scratch_folder
from cubecore.frontends.cpp.toolchain.generated.header_folder import headers

_END = b"\nexit 126\n"
_MARK = b"cubecore's other part"
_LIBRARIES = (".so", ".a")
_LENGTH = struct.Struct("<Q")


def joined(first: bytes, second: bytes | None) -> bytes:
    """Return the parts as one file."""
    return first if second is None else first + second + _LENGTH.pack(len(second)) + _MARK


def split(raw: bytes) -> tuple[bytes, bytes | None]:
    """Return the parts of a file; None if it has but one."""
    if not raw.endswith(_MARK):
        return raw, None
    end = len(raw) - len(_MARK) - _LENGTH.size
    (length,) = _LENGTH.unpack_from(raw, end)
    return raw[: end - length], raw[end - length : end]


def other_of(path: Path) -> bytes | None:
    """Return the second part of a file, None if it has none or cannot be read."""
    try:
        with path.open("rb") as held:
            held.seek(-len(_MARK), 2)
            if held.read() != _MARK:
                return None
        return split(path.read_bytes())[1]
    except OSError:
        return None


def has_other(path: Path) -> bool:
    """True if a library, or an object in a static one, has a second part."""
    return _MARK in path.read_bytes() if path.suffix == ".a" else other_of(path) is not None


def libraries_among(words: Iterable[str]) -> list[Path]:
    """Return the libraries among a linker's words, `-lNAME` looked for in the folders of `-L`."""
    given = list(words)
    folders = [Path(word.removeprefix("-L")) for word in given if word.startswith("-L")]
    stems = [f"lib{word.removeprefix('-l')}" for word in given if word.startswith("-l")]
    named = [folder / f"{stem}{end}" for stem in stems for folder in folders for end in _LIBRARIES]
    paths = (*map(Path, given), *named)
    return [path for path in paths if {*path.suffixes} & {*_LIBRARIES} and path.is_file()]


def write_program(library: bytes, out: Path) -> None:
    """Write a program that runs a library's main; the library may have two parts.

    Raises
    ------
    RequestError
        If the file cannot be written.
    """
    start = f"exec {shlex.quote(sys.executable)} -m cubecore.cli.program"
    text = PROGRAM_HEAD + f'# {headers()}\n{start} "$0" "$@"'.encode()
    write_at_once(out, text + _END + library, 0o777 & ~_umask())


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
