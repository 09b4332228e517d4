"""The C++ compiler of the user's machine."""

import os
import sys
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from pathlib import Path

from cubecore.errors import CubecoreError, refuse, unable

FLAGS = (
    *("-std=c++17", "-O1", "-fPIC", "-fno-strict-aliasing", "-fwrapv", "-w", "-fmax-errors=1"),
    *("-Wno-narrowing", "-fno-gnu-unique", "-fno-omit-frame-pointer", "-g1"),
    *("-gdwarf-4", "-fno-optimize-sibling-calls"),
)
"""Call stacks need frame pointers, calls that stay calls, and lines whose files addr2line names: of
DWARF 5 binutils 2.40 takes the unit for the first file, where a function's section begins."""
UNDEFINED = "undefined symbol"
"""The subject of the refusal of a library that calls a function without a definition."""
_PRINTS = ("printf", "__printf_chk", "puts", "putchar")
_COPIES = ("memcpy", "memmove", "memset")


def wrapped(*names: str) -> list[str]:
    """Return the linker's words for calls that the runtime takes.

    They are prints, copies of threads (SIMT), and those named.
    """
    if sys.platform != "linux":
        return []
    return [f"-Wl,--wrap={name}" for name in (*_PRINTS, *_COPIES, *names)]


_CLANG_FLAGS = {
    "-fno-gnu-unique": "-fno-common",
    "-fmax-errors=1": "-ferror-limit=1",
    "-Wno-narrowing": "-Wno-c++11-narrowing",
}
_GCC_ALONE = ("-fno-var-tracking",)
"""Places of variables by instruction: nobody reads them, and they take an eighth of the time."""
_CLANG_ALONE = ("-fno-delete-null-pointer-checks",)
"""Address 0 of UB is one: g++ (-O1) leaves accesses of it alone, and with the flag takes no
comparison of a function's address for a constant."""


@dataclass(frozen=True, slots=True)
class Compiler:
    """A compiler: how it is started, and what tells one version of it from another."""

    command: tuple[str, ...]
    identity: str
    is_clang: bool

    @property
    def is_zig(self) -> bool:
        """True of the compiler in Zig, a clang whose linker takes other words."""
        return self.command[-1] == "c++" and any("zig" in word for word in self.command[:-1])

    def version(self) -> str:
        """Return the compiler's name and version, as it says them."""
        import subprocess  # only a refusal asks

        words = [*self.command[:-1], "version"] if self.is_zig else [*self.command, "--version"]
        done = subprocess.run(words, capture_output=True, text=True, check=False)  # noqa: S603
        first = (done.stdout.strip() or " ".join(self.command)).splitlines()[0]
        return f"zig {first}" if self.is_zig else first

    def flags(self) -> tuple[str, ...]:
        """Return the flags that every compilation has."""
        if not self.is_clang:
            return (*FLAGS, *_GCC_ALONE)
        return (*(_CLANG_FLAGS.get(flag, flag) for flag in FLAGS), *_CLANG_ALONE)


@cache
def compiler() -> Compiler:
    """Return the compiler: $CUBECORE_CXX, g++, clang++, or the ziglang package's.

    Raises
    ------
    RequestError
        If no compiler is found, or the system is Windows.
    """
    if sys.platform == "win32":
        raise unable("C++ kernels", "C++ kernels need Linux or macOS", "use WSL on Windows")
    named = os.environ.get("CUBECORE_CXX")
    if named:
        parts = named.split()
        program = _program(parts[0])
        if program is None:
            raise refuse("CUBECORE_CXX", "be a compiler", repr(named))
        return _compiler((program, *parts[1:]))
    for name in ("g++", "clang++"):
        program = _program(name)
        if program is not None:
            return _compiler((program,))
    if find_spec("ziglang") is not None:
        return _compiler((sys.executable, "-m", "ziglang", "c++"), clang=True)
    looked = "no C++ compiler: no $CUBECORE_CXX, g++, clang++ or ziglang package"
    raise unable("a C++ kernel", looked, "pip install cubecore[compiler], or install g++")


def has_compiler() -> bool:
    """True if a compiler is there."""
    try:
        compiler()
    except CubecoreError:
        return False
    return True


def _program(name: str) -> str | None:
    """Return a program's path, as shutil.which does; that module takes longer to import."""
    folders = [""] if os.sep in name else os.get_exec_path()
    paths = (os.path.join(folder, name) for folder in folders)  # noqa: PTH118 - as it is found
    return next((p for p in paths if os.path.isfile(p) and os.access(p, os.X_OK)), None)  # noqa: PTH113


def _compiler(command: tuple[str, ...], *, clang: bool = False) -> Compiler:
    real = Path(command[0]).resolve()
    state = real.stat()
    identity = f"{real}:{state.st_size}:{state.st_mtime_ns}:{' '.join(command[1:])}"
    return Compiler(command, identity, clang or "clang" in real.name)
