"""The arguments that a repository's own unit tests build its operators with."""

import contextlib
import io
import multiprocessing
from collections.abc import Iterator
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from cubecore.frontends.tik.host.program import program_session

from .attempt import Attempt
from .case import VENDOR
from .frame import Tests, run_tests
from .place import importable

TESTS = "ops/built-in/tests/ut"
SOURCE = "its unit tests"
_LIMIT = 30
_CHIPS = ("Ascend910A", "Ascend310P3", "Ascend310")
_ALIKE = {"Ascend910": "Ascend910A", "Ascend310P": "Ascend310P3", "Ascend710": "Ascend310P3"}


def _plain(value: Any) -> Any:
    """Return a value as plain data, which may be sent to another process."""
    if isinstance(value, dict):
        return {key: _plain(part) for key, part in value.items()}
    if isinstance(value, (list, tuple)):
        return type(value)(map(_plain, value))
    if isinstance(value, (int, float, str, bool, type(None))):
        return value
    return None if callable(value) else repr(value)


def _chip(asked: Any, number: int) -> str:
    """Return the chip to build for: the one that a case asks for, or each in turn."""
    named = asked[0] if isinstance(asked, (list, tuple)) and asked else asked
    named = _ALIKE.get(named, named) if isinstance(named, str) else ""
    return named if named in _CHIPS else _CHIPS[number % len(_CHIPS)]


def _attempts(path: Path, checkout: Path) -> tuple[list[Attempt], list[Attempt]]:
    """Return what one file of tests builds: what it expects to succeed, and the rest."""
    found = Tests()
    quiet = contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO())
    place = Attempt(module="cases", function="", arguments=())
    raised = contextlib.suppress(BaseException)
    with raised, program_session(), importable(place, checkout), quiet[0], quiet[1]:
        run_tests(path, found)
    first, later = [], []
    for number, asked in enumerate(found.cases):
        attempt = Attempt(
            module=asked.module,
            function=asked.function,
            arguments=tuple(_plain(asked.case["params"])),
            named=_plain(asked.case.get("addition_params") or {}),
            soc=_chip(asked.chips, number),
            source=SOURCE,
        )
        expected = str(asked.case.get("expect")) == "success"
        (first if expected else later).append(attempt)
    name = str(path.relative_to(checkout))
    for number, module in enumerate(found.modules):
        first.append(
            Attempt(module=module, function=name, arguments=(), test=number, source=SOURCE)
        )
    return first, later


def _child(path: Path, checkout: Path, pipe: Connection) -> None:
    pipe.send(_attempts(path, checkout))
    pipe.close()


def _of(path: Path, checkout: Path) -> tuple[list[Attempt], list[Attempt]]:
    context = multiprocessing.get_context("fork")
    mine, theirs = context.Pipe(duplex=False)
    process = context.Process(target=_child, args=(path, checkout, theirs))
    process.start()
    theirs.close()
    try:
        return mine.recv() if mine.poll(_LIMIT) else ([], [])
    except EOFError:
        return [], []
    finally:
        process.kill()
        process.join()


def unit_test_attempts(checkouts: Path) -> Iterator[Attempt]:
    """Yield what the vendor's unit tests build: cases that they expect to succeed come first."""
    checkout = checkouts / VENDOR
    later: list[Attempt] = []
    for path in sorted((checkout / TESTS).rglob("*.py")):
        if "OpUT" in path.read_text(encoding="utf-8", errors="replace"):
            first, rest = _of(path, checkout)
            yield from first
            later += rest
    yield from later
