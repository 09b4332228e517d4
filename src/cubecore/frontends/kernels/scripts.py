"""Scripts of the user's, run as ``python SCRIPT ARGUMENTS`` would run them."""

import ast
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from traceback import extract_tb
from types import MappingProxyType, ModuleType

from cubecore.errors import CubecoreError, unable
from cubecore.frontends.kernels.assertions import NOTE, noting_checks
from cubecore.frontends.source_locations import KernelError, location_of
from cubecore.isa.program.tree import Location

BLOCKS = "block_num"
"""The keyword by which a TIK program gives the count of blocks of a loop."""


def _nothing() -> None:
    return None


def run_as_main(
    path: str,
    arguments: tuple[str, ...],
    checked: Callable[[], None] = _nothing,
    constants: Mapping[str, int] = MappingProxyType({}),
) -> str | None:
    """Run a script; return what it holds against its kernels, None if it ran to its end.

    That is a failed assertion, or an exit with another code than 0. `checked` is called at each
    check that the script makes (`noting_checks`). `constants` stand in place of the numbers that
    the script gives to these names.

    Raises
    ------
    RequestError
        If the file is not Python.
    KernelError
        If the script fails for another reason; the message begins with the location.
    """
    try:
        with _as_main(path, arguments) as main:
            setattr(main, NOTE, checked)
            tree = noting_checks(_with_constants(_parsed(path), constants))
            exec(compile(tree, path, "exec"), vars(main))  # noqa: S102 - the user's own script
    except CubecoreError:
        raise
    except AssertionError as error:
        where = _line_of_script(path, error)
        return f"{where}: assertion failed: {str(error).strip() or 'False'}"
    except SystemExit as error:
        return None if error.code in {None, 0} else f"{path} ended with exit code {error.code}"
    except SyntaxError as error:
        line = path if error.lineno is None else f"{path}:{error.lineno}"
        raise unable(path, f"{line}: {error.msg}") from None
    except Exception as error:
        where = _line_of_script(path, error)
        got = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
        raise KernelError.at(where, unable("the script", f"the script raised {got}")) from error
    return None


def _parsed(path: str) -> ast.Module:
    try:
        return ast.parse(Path(path).read_bytes(), path)
    except ValueError as error:  # null bytes, before Python 3.11.4
        raise unable(path, f"{path}: {error}") from None


def _with_constants(tree: ast.Module, constants: Mapping[str, int]) -> ast.Module:
    """Return a script with other numbers for some of its names, where it first gives them one.

    `BLOCKS` is what a TIK program gives to its loop of blocks.
    """
    left = dict(constants)
    if BLOCKS in left:
        for keyword in ast.walk(tree):
            if isinstance(keyword, ast.keyword) and keyword.arg == BLOCKS:
                keyword.value = ast.copy_location(ast.Constant(left[BLOCKS]), keyword.value)
    for node in tree.body:
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant):
            target = node.targets[0]
            if isinstance(target, ast.Name) and target.id in left:
                node.value = ast.copy_location(ast.Constant(left.pop(target.id)), node.value)
    return tree


def _line_of_script(path: str, error: BaseException) -> Location:
    """Return the innermost line of the script itself that led to an error."""
    lines = [f for f in extract_tb(error.__traceback__) if f.filename == path]
    last = lines[-1] if lines else None
    return location_of(path, (last.lineno if last else 0) or 0, last.name if last else "<module>")


@contextmanager
def _as_main(path: str, arguments: tuple[str, ...]) -> Iterator[ModuleType]:
    """Give the script its arguments, imports from beside it, and a module of its own."""
    main = ModuleType("__main__")
    main.__file__ = path
    before = sys.argv, list(sys.path), sys.modules["__main__"]
    sys.argv = [path, *arguments]
    sys.path.insert(0, str(Path(path).resolve().parent))
    sys.modules["__main__"] = main
    try:
        yield main
    finally:
        sys.argv, sys.path[:], sys.modules["__main__"] = before
