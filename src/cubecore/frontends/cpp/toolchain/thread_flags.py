"""Compiler and linker flags of files with code of threads (SIMT)."""

from collections.abc import Sequence
from pathlib import Path

from cubecore.errors import unable
from cubecore.frontends.cpp.files import INCLUDE
from cubecore.frontends.cpp.rewriting.source import Overlay
from cubecore.frontends.cpp.rewriting.threads import THREAD_WORDS, refused_function
from cubecore.frontends.cpp.rewriting.tokens import tokens
from cubecore.frontends.cpp.toolchain.compiler import compiler
from cubecore.frontends.source_locations import shown_path

_OF_THREADS = "__NPU_ARCH__=3510"
"""The macro of the architecture that runs threads."""


def is_of_threads(code: Overlay, macros: Sequence[str]) -> bool:
    """Return whether files have code of threads (SIMT) that is compiled as such."""
    return not code.words.isdisjoint(THREAD_WORDS) and _OF_THREADS in macros


def thread_flags(code: Overlay, macros: Sequence[str]) -> list[str]:
    """Return the words for a unit with code of threads: its header, and `instrumented`.

    Raises
    ------
    RequestError
        If a function of threads is virtual or calls itself.
    """
    if not is_of_threads(code, macros):
        return []
    for path in code.files:
        # A text that lies in no file is in the overlay, where its lines are the same.
        _require_plain(path, path if path.is_file() else code.main)
    return ["-include", str(INCLUDE / "cubecore" / "simt" / "all.h"), *instrumented()]


def instrumented() -> list[str]:
    """Return the words that have the compiler call the runtime before each access of memory.

    The calls are those of its thread sanitizer, whose own library is not linked. The header that
    was compiled before does without; its macro would keep it from being taken.
    """
    # Volatile accesses have calls of their own: they do not race, and pass the data cache.
    # Where a block of operations begins, the runtime counts for the rough time.
    flags = ["-fsanitize=thread", "-U__SANITIZE_THREAD__", "-fsanitize-coverage=trace-pc"]
    if compiler().is_clang:
        without, marked = "-tsan-instrument-func-entry-exit=0", "-tsan-distinguish-volatile=1"
        in_order = "-disable-block-placement"
        return [
            *flags,
            *(word for each in (without, marked, in_order) for word in ("-mllvm", each)),
        ]
    # Blocks in the order of the text, none of them twice: lanes meet again at the lowest address
    # that one waits at.
    params = (
        *("tsan-instrument-func-entry-exit=0", "tsan-distinguish-volatile=1"),
        "max-jump-thread-duplication-stmts=0",
    )
    return [*flags, "-fno-reorder-blocks", *(f"--param={each}" for each in params)]


def _require_plain(path: Path, held: Path) -> None:
    """Refuse a file whose functions of threads no chip runs; `held` has its text.

    Raises
    ------
    RequestError
        If one is virtual or calls itself.
    """
    text = held.read_text("utf-8", "replace")
    first, _, rest = text.partition("\n")
    text = rest if first.startswith("#line") else text
    found = refused_function([t for t in tokens(text) if t.kind not in {"space", "comment"}])
    if found is not None:
        line = text.count("\n", 0, found.start) + 1
        need = "threads run neither virtual functions nor recursive ones"
        said = f"{shown_path(path)}:{line}: {found.name} {found.reason}; {need}"
        raise unable(found.name, said)


_LIBRARIES = ("-nodefaultlibs", "-lstdc++", "-lm", "-lc", "-lgcc_s", "-lgcc")
"""The linker's words for the usual libraries alone: without the sanitizer's own."""


def thread_linking(code: Overlay, macros: Sequence[str]) -> Sequence[str]:
    """Return the linker's words for what is compiled and linked at once."""
    return () if compiler().is_clang or not is_of_threads(code, macros) else _LIBRARIES


def enters(code: Overlay, entry: str) -> str:
    """Return the function of the headers that enters a kernel of cores, or of threads."""
    name = entry.split("<", maxsplit=1)[0].rsplit("::", maxsplit=1)[-1]
    threads = any(kernel.threads for kernel, _, _ in code.kernels if kernel.name == name)
    return "simt::enter" if threads else "cubecore_enter"
