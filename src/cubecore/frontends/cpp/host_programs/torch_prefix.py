"""All that bindings for PyTorch share, compiled once: the program's main, and the headers."""

from functools import cache
from pathlib import Path

from cubecore.frontends.cpp.host_programs.driver import compile_and_link
from cubecore.frontends.cpp.host_programs.launch_headers import write_host_headers
from cubecore.frontends.cpp.toolchain.cache import digest, folder, scratch_folder, used
from cubecore.frontends.cpp.toolchain.compiler import compiler
from cubecore.frontends.cpp.toolchain.generated.header_folder import (
    header_folder,
    headers,
    include_flags,
    write_header,
)

_MAIN = '#include "cubecore/torch/aclnn.h"\nint main() { return ::cubecore::glue::serve(); }\n'
_PREFIX = '#include "cubecore/torch/two_step.h"\n'


@cache
def torch_main() -> Path:
    """Return the object with the main of every binding's program, compiled if it is not there."""
    ready = _base() / "serve.o"
    if not ready.is_file():
        with scratch_folder() as scratch:
            unit, out = Path(scratch) / "serve.cpp", Path(scratch) / "serve.o"
            unit.write_text(_MAIN)
            compile_and_link(["-c", str(unit), "-o", str(out)])
            ready.parent.mkdir(exist_ok=True)
            out.replace(ready)
    used(ready)
    return ready


@cache
def torch_prefix() -> Path | None:
    """Return the header that includes all of PyTorch's that is here; None if none is compiled.

    Its compiled form lies beside it. A file that includes it first is compiled in half the time.
    """
    tool = compiler()
    if tool.is_clang:
        return None
    prefix, ready = _base() / "prefix.h", _base() / "prefix.h.gch"
    if not ready.is_file():
        from cubecore.frontends.cpp.toolchain.diagnostics import compile_with

        write_header(prefix, _PREFIX)
        with scratch_folder() as scratch:
            out, host = Path(scratch) / "out.gch", Path(scratch) / "host"
            write_host_headers(host, functions=True)
            search = include_flags(host)
            command = [*tool.flags(), *search, "-x", "c++-header", str(prefix), "-o", str(out)]
            compile_with(command, prefix, Path(scratch))
            out.replace(ready)
    used(ready)
    return prefix


def prepare_torch() -> None:
    """Compile what all bindings share, unless the cache has it."""
    torch_main()
    torch_prefix()


def _base() -> Path:
    tool = compiler()
    made_of = (tool.identity, header_folder().name, headers(), _MAIN, _PREFIX, *tool.flags())
    return folder() / f"torch-{digest(made_of)}"
