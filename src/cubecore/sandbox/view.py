"""The files that a box shows: what may be read, what is hidden, and memory to write to."""

import sys
import sysconfig
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

SHARED_BYTES = 64 << 20
"""The most bytes of /dev/shm."""
_SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32")
_SETTINGS = ("/etc/ld.so.cache", "/etc/alternatives")
DEVICES = ("null", "zero", "full", "random", "urandom")


@dataclass(frozen=True, slots=True)
class Scratch:
    """A folder in memory that a box writes to, with the most bytes that it takes."""

    path: Path
    most_bytes: int


@dataclass(frozen=True, slots=True)
class BoxView:
    """The files of a box: nothing else of the machine's is there.

    Attributes
    ----------
    readable : tuple of Path
        Files and folders that are shown under their paths, to be read.
    hidden : tuple of Path
        Files and folders below those that are not.
    scratch : tuple of Scratch
        Folders in memory, which go with the box.
    aliases : tuple of pairs of Path
        Folders that are shown under another path, to be read: the path, and the folder.
    """

    readable: tuple[Path, ...] = ()
    hidden: tuple[Path, ...] = ()
    scratch: tuple[Scratch, ...] = ()
    aliases: tuple[tuple[Path, Path], ...] = ()

    def mounts(self) -> Iterator[tuple[Path, Scratch | Path | None]]:
        """Yield what is mounted at each path, outer ones first: scratch, a path, None if hidden."""
        found: dict[Path, Scratch | Path | None] = {}
        for path in (*system_paths(), *self.readable):
            found[path.absolute()] = path.resolve()
        found |= dict(self.aliases)
        found |= {each: None for each in self.hidden if _is_shown(each, found)}
        found |= {each.path: each for each in self.scratch}
        yield from sorted(found.items(), key=lambda each: len(each[0].parts))


def _is_shown(path: Path, shown: Iterable[Path]) -> bool:
    return any(path.is_relative_to(each) for each in shown)


def system_links() -> list[tuple[str, str]]:
    """Return the links of the system's folders to those in /usr, where there are some."""
    return [(str(Path(each).readlink()), each) for each in _SYSTEM if Path(each).is_symlink()]


@cache
def system_paths() -> tuple[Path, ...]:
    """Return what a compiler and this interpreter read: system, Python, packages, cubecore."""
    folders = [Path(each) for each in _SYSTEM if Path(each).is_dir()]
    folders = [each for each in folders if not each.is_symlink()]
    own = [Path(__file__).resolve().parents[2], Path(sys.executable).resolve().parents[1]]
    own += [Path(each) for each in (sys.prefix, sys.base_prefix, sys.exec_prefix)]
    own += [Path(each) for each in sys.path if Path(each).name.endswith("-packages")]
    own += [Path(each) for each in sysconfig.get_paths().values() if Path(each).is_dir()]
    for each in dict.fromkeys(own):
        if each.is_dir() and each != Path("/") and not _is_shown(each, folders):
            folders.append(each)
    compiled = [Path(f"{sys.pycache_prefix}{each}") for each in folders if sys.pycache_prefix]
    others = (*(Path(each) for each in _SETTINGS), *compiled)
    return (*folders, *(each for each in others if each.exists()))
