"""Compilations for a boxed submission, in a box where nothing of the submission's runs.

The submission's step asks for what the cache lacks, the judge has it compiled in another box and
copies it to a folder that is kept for submissions of equal content. The submission's box shows that
folder to be read: what a submission does while it runs changes no library, of its own neither.
"""

import json
import os
from collections.abc import Callable, Iterable
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Self

from cubecore.aliases import Json
from cubecore.answers.verdict import STOPPED
from cubecore.errors import TIME_LIMIT, CubecoreError, RequestError, Violation, unable
from cubecore.frontends.cpp.host_programs.torch_glue import compiled_binding
from cubecore.frontends.cpp.operator_projects.host_library import host_library
from cubecore.frontends.cpp.operator_projects.project_files import ProjectFiles
from cubecore.frontends.cpp.rewriting.source import Source
from cubecore.frontends.cpp.toolchain.build import fill
from cubecore.frontends.cpp.toolchain.cache import (
    digest,
    file_digest,
    fill_by,
    folder,
    shared_units,
    trim,
    used,
)
from cubecore.frontends.cpp.toolchain.compiler import compiler
from cubecore.frontends.cpp.toolchain.diagnostics import MissingHeaderError
from cubecore.frontends.cpp.toolchain.generated.header_folder import headers
from cubecore.sandbox.box import Sandbox, opened
from cubecore.sandbox.view import BoxView
from cubecore.workflows.judge.limits import CpuBudget
from cubecore.workflows.judge.steps import StepOutcome, forked, lower_cpu_limit

KEPT_BYTES = 512 << 20
"""The most bytes that are kept of a submission."""
_MARK = "used"
_PART_BYTES = 1 << 16


def kept_folder(submission: str, files: Iterable[Path]) -> Path:
    """Return the folder for what a submission compiles, made if it is not there.

    Its name is a digest of the submission, of all files that it can include, of the compiler and of
    cubecore's headers: another submission's box never shows it. Files in it are named by digests of
    what was compiled, as those of the cache.
    """
    content = [compiler().identity, headers(), submission]
    for path in files:
        for file in [path] if path.is_file() else sorted(path.rglob("*")):
            if file.is_file():
                content += [str(file), file_digest(file)]
    kept = folder().absolute() / f"judged-{digest(content)}"
    kept.mkdir(exist_ok=True)
    # What all share is mounted below it, so that its path has to be there.
    for unit in shared_units():
        place = kept / unit.name
        if unit.is_dir():
            place.mkdir(exist_ok=True)
        else:
            place.touch()
    (kept / _MARK).touch()
    used(kept / _MARK)
    return kept


@dataclass(eq=False)
class Compilations:
    """The judge's side: the box that compiles, and the folder that keeps what it makes.

    The box is opened for the first question; with nothing to compile there is none.
    """

    kind: str
    view: BoxView
    place: Path
    kept: Path
    budget: CpuBudget
    wall_s: float = 0.0

    def __post_init__(self) -> None:
        """Begin without a box."""
        self._box: Sandbox | None = None
        self._opened = ExitStack()

    def __enter__(self) -> Self:
        """Return itself; the box ends with the `with`."""
        return self

    def __exit__(self, *_: object) -> None:
        """End the box."""
        if self._box is not None:
            trim()
        self._opened.close()

    def answered(self, text: bytes, left_s: float) -> bytes:
        """Have something compiled within some seconds; return the answer as text."""
        # The box is opened late and stays: a judgement whose libraries are all kept needs none, and
        # one that compiles several reads the headers' compiled form from memory.
        if self._box is None:
            self._box = self._opened.enter_context(opened(self.kind, self.view))
        work = partial(_compiled, text, self.place)
        step = forked("the compilation", work, self.budget, left_s, self._box)
        self.wall_s += step.wall_s
        answer = (
            _late(step) if step.failed is not None and step.failed[0] == STOPPED else step.output
        )
        if "kept" in answer and self._box is not None:
            room = KEPT_BYTES - sum(each.stat().st_size for each in self.kept.iterdir())
            self._box.copied_out(folder().absolute(), self.kept, room)
            if not all((self.kept / name).exists() for name in answer["kept"]):
                sentence = f"libraries of a submission are kept up to {KEPT_BYTES >> 20} MiB"
                answer = _error_json(unable("libraries", sentence))
        return json.dumps({**answer, "cpu_s": step.cpu_s}).encode() + b"\n"

    def used_by(self, ask: int, answers: int) -> None:
        """Have this process, that of the submission, ask for what it would compile."""
        fill_by(partial(_asked, ask, answers))


def _asked(ask: int, answers: int, kind: str, *arguments: Any) -> None:
    """Ask the judge to compile something.

    Raises
    ------
    CubecoreError
        If it does not compile.
    """
    text = json.dumps([kind, *(_plain(each) for each in arguments)]).encode() + b"\n"
    while text:
        text = text[os.write(ask, text) :]
    raw = b""
    while not raw.endswith(b"\n"):
        raw += os.read(answers, _PART_BYTES) or b"{}\n"
    answer = json.loads(raw)
    lower_cpu_limit(answer.get("cpu_s", 0.0))
    if "violations" in answer:
        raise _error(answer)
    if "kept" not in answer:
        raise RuntimeError(str(answer))


def _plain(value: Any) -> Any:
    """Return a part of a question as JSON."""
    if isinstance(value, Source):
        rewritten = sorted(value.rewritten)
        words = value.defines, value.includes, value.tiling_key, rewritten
        return [str(value.path), value.text, *words]
    if isinstance(value, ProjectFiles):
        parts = value.host, value.kernels, value.given
        return [str(value.folder), *([str(each) for each in part] for part in parts)]
    if isinstance(value, (list, tuple)):
        return [_plain(each) for each in value]
    return str(value) if isinstance(value, Path) else value


def _compiled(text: bytes, place: Path) -> Json:
    """Compile what a text asks for, in the box that compiles; its words come from a submission.

    Its errors name files as they are seen from its place, as those of its own step do.
    """
    os.chdir(place if place.is_dir() else place.parent)
    # The names in the question do not matter: what is made goes by digests that are computed here,
    # so that a false question makes a library that nobody else asks for.
    before = _names()
    try:
        kind, *arguments = json.loads(text)
        _COMPILE[kind](*arguments)
    except CubecoreError as error:
        return _error_json(error)
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return _error_json(unable("a library", "the submission asks for no library"))
    return {"kept": sorted(_names() - before)}


def _names() -> set[str]:
    return {each.name for each in folder().iterdir() if each.is_file()}


def _kernel(source: Any, entries: Any, macros: Any, verbose: Any) -> None:
    path, text, defines, includes, key, rewritten = source
    lines = frozenset((str(file), int(line)) for file, line in rewritten)
    words = tuple(map(str, defines)), tuple(map(str, includes))
    rewritten_source = Source(Path(path), str(text), *words, int(key), lines)
    names = tuple(map(str, entries)), tuple(map(str, macros))
    fill(rewritten_source, *names, verbose=bool(verbose))


def _host(files: Any, defines: Any, verbose: Any) -> None:
    base, *parts = files
    host, kernels, includes = (tuple(map(Path, part)) for part in parts)
    project = ProjectFiles(Path(base), host, kernels, includes)
    host_library(project, tuple(map(str, defines)), verbose=bool(verbose))


def _binding(sources: Any, arch: Any) -> None:
    compiled_binding([Path(each) for each in sources], _never, arch=str(arch))


def _never(*_: Any) -> Any:
    """Run no operator: a binding is compiled alone."""
    raise NotImplementedError


_COMPILE: dict[str, Callable[..., None]] = {"kernel": _kernel, "host": _host, "binding": _binding}


def _late(step: StepOutcome) -> Json:
    assert step.failed is not None
    error = unable("the compiler", step.failed[1])
    error.origin = TIME_LIMIT
    return _error_json(error)


def _error_json(error: CubecoreError) -> Json:
    """Return an error as JSON."""
    names = ("subject", "requirement", "value", "remedy", "sentence")
    record: Json = {
        "violations": [[getattr(each, name) for name in names] for each in error.violations],
        "detail": error.detail,
        "origin": error.origin,
    }
    if isinstance(error, MissingHeaderError):
        record["header"] = error.header
    return record


def _error(record: Json) -> CubecoreError:
    """Return the error of such JSON."""
    violations = [Violation(*each) for each in record["violations"]]
    error: CubecoreError = RequestError(violations)
    if "header" in record:
        error = MissingHeaderError(violations[0].subject, record["header"])
        error.violations = tuple(violations)
    error.detail, error.origin = record["detail"], record["origin"]
    if error.detail:
        error.add_note(error.detail)
    return error
