"""Files with a main of their own: what runs it, where no kernel of the file is asked for."""

import re
from collections.abc import Callable
from pathlib import Path

from cubecore.frontends.cpp.files import is_program
from cubecore.frontends.cpp.launch.arguments import defined
from cubecore.frontends.cpp.launch.launch_options import CppLaunchOptions
from cubecore.frontends.cpp.rewriting.source import Source, source_of

_MAIN = re.compile(r"^\s*(?:int|int32_t|auto)\s+main\s*\(", re.MULTILINE)


def has_main(source: Source) -> bool:
    """True if a file is a program: it defines main."""
    return _MAIN.search(source.text) is not None


def judges_own_result(path: str, asked: CppLaunchOptions) -> bool:
    """Return whether a file's main may return another code than 0 for what its kernels computed.

    Of a program that is linked already nothing is known.
    """
    if is_program(path):
        return False
    from cubecore.frontends.cpp.host_programs.own_checks import judges_results

    return judges_results(source_of(path, defined(asked.defines)).text)


def program_of(
    path: str, asked: CppLaunchOptions
) -> Callable[[tuple[str, ...]], str | None] | None:
    """Return what runs a file's main, where it has one and no kernel of it is asked for.

    It takes the program's arguments, and returns what is to be said of its end.

    Raises
    ------
    RequestError
        If a file cannot be read.
    """
    of_kernel = (asked.arguments, asked.outputs, asked.marked_outputs, asked.scratch)
    if asked.entry is not None or any(of_kernel):
        return None
    from cubecore.frontends.cpp.host_programs.programs import (  # a kernel starts without
        require_clean_end,
        run_built,
        run_source,
    )

    built = Path(path).resolve()
    if is_program(path):
        return lambda words: require_clean_end(built, run_built(built, words, asked))
    source = source_of(path, defined(asked.defines))
    if not has_main(source):
        return None
    return lambda words: require_clean_end(source.path, run_source(source, words, asked))
