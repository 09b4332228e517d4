"""Building one operator on given arguments, and which files of its repository issued the kernel."""

import contextlib
import importlib
import inspect
import io
import json
import sys
import types
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any
from zlib import crc32

from cubecore.errors import CubecoreError
from cubecore.frontends.tik.host.program import program_session
from cubecore.frontends.tik.trace.run_options import TikOptions
from cubecore.isa.program.tree import Issue, nodes

from .apart import apart
from .case import BUILT_IN, VENDOR, Case
from .frame import Tests, run_tests
from .place import importable

LIMIT = 120
"""Seconds that building may take."""
_LANGUAGE = "the vendor's tensor-expression language"


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """Arguments on which an operator is built; `source` says whose they are.

    With `test` the function is a file of unit tests, whose function of that number is called.
    """

    module: str
    function: str
    arguments: tuple[Any, ...]
    named: Mapping[str, Any] = field(default_factory=dict)
    repository: str = VENDOR
    folder: str = BUILT_IN
    soc: str = "Ascend910A"
    chip: str | None = None
    generator: tuple[str, ...] | None = None
    test: int | None = None
    source: str = "ours"

    @property
    def path(self) -> str:
        """The operator's file in its repository."""
        return f"{self.folder}/{self.module.replace('.', '/')}.py"

    @property
    def key(self) -> str:
        """What tells this attempt from others, in later runs too."""
        given = [self.arguments, dict(self.named), self.soc, self.test]
        number = crc32(json.dumps(given, sort_keys=True, default=str).encode())
        return f"{self.module}.{Path(self.function).stem} {number:08x}"

    @classmethod
    def of(cls, case: Case) -> "Attempt":
        """Return the attempt to build what a case runs."""
        shared = ("module", "function", "arguments", "repository", "folder", "soc")
        shared += ("chip", "generator")
        return cls(**{name: getattr(case, name) for name in shared})


@dataclass(frozen=True, slots=True)
class Built:
    """What building came to: `files` issued the kernel's instructions; `why` it was not built.

    `kind` is built, refused, "tensor expressions", or "arguments" where the operator's own code
    raised.
    """

    attempt: Attempt
    kind: str
    files: frozenset[str] = frozenset()
    why: str = ""


def _files(codes: set[types.CodeType], places: set[tuple[str, int]], top: Path) -> frozenset[str]:
    """Return the files below `top` whose functions ran and hold one of these places."""
    found = set()
    for code in codes:
        path = Path(code.co_filename)
        lines = {line for _, _, line in code.co_lines() if line is not None}
        if any((path.name, line) in places for line in lines):
            found.add(path.resolve())
    return frozenset(str(p.relative_to(top)) for p in found if p.is_relative_to(top))


def _called(attempt: Attempt, top: Path) -> Callable[[], object]:
    """Return the call to make."""
    if attempt.test is not None:
        found = Tests()
        with contextlib.suppress(BaseException):
            run_tests(top / attempt.function, found)
        return partial(found.functions[attempt.test], attempt.soc)
    function = getattr(importlib.import_module(attempt.module), attempt.function)
    named = dict(attempt.named)
    names = list(inspect.signature(function).parameters)
    if "kernel_name" in names[len(attempt.arguments) :]:
        named.setdefault("kernel_name", "kernel")
    return partial(function, *attempt.arguments, **named)


def _call(attempt: Attempt, top: Path, codes: set[types.CodeType]) -> None:
    """Call the operator, noting which code runs."""

    def seen(frame: types.FrameType, event: str, _argument: Any) -> None:
        if event == "call":
            codes.add(frame.f_code)

    from tbe.common.platform import set_current_compile_soc_info

    set_current_compile_soc_info(attempt.soc)
    call = _called(attempt, top)
    sys.setprofile(seen)
    try:
        call()
    finally:
        sys.setprofile(None)


def attempted(attempt: Attempt, checkouts: Path) -> Built:
    """Build an operator in this process, whose modules and paths it changes."""
    top = (checkouts / attempt.repository).resolve()
    codes: set[types.CodeType] = set()
    quiet = contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO())
    failed = Built(
        attempt, "tensor expressions", why=f"these arguments take the path of {_LANGUAGE}"
    )
    options = TikOptions(chip=attempt.chip)
    with program_session(options) as session, importable(attempt, top), quiet[0], quiet[1]:
        try:
            _call(attempt, top, codes)
        except CubecoreError as error:
            said = str(error).splitlines()[0]
            kind = "tensor expressions" if _LANGUAGE in said else "refused"
            failed = Built(attempt, kind, why=said)
        except BaseException as error:  # noqa: BLE001  an operator may raise, or leave, as it likes
            failed = Built(attempt, "arguments", why=f"{type(error).__name__}: {error}"[:300])
    if not session.built:
        return failed
    issues = [
        node
        for tik in session.built
        if tik.kernel
        for node in nodes(tik.kernel.body)
        if isinstance(node, Issue)
    ]
    places = {(issue.location.file, issue.location.line) for issue in issues}
    files = _files(codes, places, top)
    own = frozenset({attempt.path}) if attempt.test is None else frozenset[str]()
    return Built(attempt, "built", files | own)


def _plain(attempt: Attempt, checkouts: Path) -> tuple[Any, ...]:
    built = attempted(attempt, checkouts)
    return built.kind, built.files, built.why


def build(attempt: Attempt, checkouts: Path, limit: float = LIMIT) -> Built:
    """Build an operator in a process of its own, which is ended when its time is over."""
    try:
        return Built(attempt, *apart(_plain, attempt, checkouts, limit=limit))
    except TimeoutError:
        return Built(attempt, "refused", why=f"was not traced within {limit:g} s")
    except EOFError:
        return Built(attempt, "refused", why="its process ended without a result")
