"""The box of a judgement: the files that a submission sees."""

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

from cubecore.aliases import Json
from cubecore.chips import chip as chip_named
from cubecore.frontends.cpp.files import SUFFIXES
from cubecore.frontends.cpp.toolchain.cache import folder, shared_units
from cubecore.frontends.cpp.toolchain.compiler import compiler, has_compiler
from cubecore.sandbox.box import Sandbox, opened
from cubecore.sandbox.confinement import MEMORY_BYTES, PROCESSES, TOTAL_BYTES
from cubecore.sandbox.view import BoxView, Scratch
from cubecore.sandbox.words import NONE
from cubecore.workflows.judge.compilation import Compilations, kept_folder
from cubecore.workflows.judge.limits import CpuBudget, JudgeOptions
from cubecore.workflows.judge.submissions.given_cases import RESULTS
from cubecore.workflows.judge.submissions.kinds import (
    PACKAGE,
    PROJECT,
    PYTHON,
    SAMPLE,
    STRINGS,
    Submission,
)
from cubecore.workflows.judge.tasks.kinds import JudgeTask

_TEMPORARY = Path("/tmp")  # noqa: S108 - where programs of a box look for it
_TEMPORARY_BYTES, _CACHE_BYTES, RESULT_BYTES = 2 << 30, 1 << 30, 1 << 30
_BESIDE = (*SUFFIXES, ".h", ".hpp", ".inc")
LIMITS = {
    "memory_bytes": MEMORY_BYTES,
    "total_bytes": TOTAL_BYTES,
    "processes": PROCESSES,
    "scratch_bytes": _TEMPORARY_BYTES,
}
"""The limits of a box, as the verdict tells them."""


@dataclass(eq=False, slots=True)
class SubmissionBoxes:
    """The boxes of a judgement: what those of the submission show, and what compiles for them.

    `kind` is the word for them, that of the box that was opened as soon as one was.
    """

    kind: str
    view: BoxView = field(default_factory=BoxView)
    service: Compilations | None = None

    @contextmanager
    def opened(self) -> Iterator[Sandbox | None]:
        """Open a box for a step of the submission, unless there is none."""
        with opened(self.kind, self.view) as box:
            if box is not None:
                self.kind = box.kind
            yield box

    def to_json(self) -> Json:
        """Return what the verdict tells of them."""
        return {} if self.kind == NONE else {"sandbox": self.kind, "box_limits": LIMITS}


_STEM, _NAME = re.compile(r"\w+"), re.compile(r"[\w.+-]+")
"""Words of a text that may be the name of a module, or of a header."""


@contextmanager
def submission_boxes(
    submission: Submission,
    place: Path,
    files: Sequence[Path],
    task: JudgeTask,
    cases: Path,
    options: JudgeOptions,
    budget: CpuBudget,
) -> Iterator[SubmissionBoxes]:
    """Give what opens boxes: they show the submission's own files, the inputs, and its libraries.

    Where the cache is, they show the folder with the submission's compiled libraries, which they
    cannot write to; that of kernels in Python has an empty one, in memory.
    """
    if options.sandbox == NONE:
        yield SubmissionBoxes(NONE)
        return
    cache = folder().absolute()
    scratch = {_TEMPORARY: _TEMPORARY_BYTES, cases / RESULTS: RESULT_BYTES}
    if submission.kind == SAMPLE and has_compiler():
        # CMake starts programs of the submission's, the compiler among them: all of it is in one
        # box, with a cache of its own behind the compiled headers that all share.
        _prepare(submission, options)
        scratch[cache] = _CACHE_BYTES
        tools = (Path(compiler().command[0]), *shared_units(), *files)
        yield SubmissionBoxes(options.sandbox, _view((cases, *tools), task, scratch))
        return
    if submission.kind == PYTHON or not has_compiler():
        scratch[cache] = _CACHE_BYTES
        yield SubmissionBoxes(options.sandbox, _view((cases, *files), task, scratch))
        return
    _prepare(submission, options)
    tools = (Path(compiler().command[0]), *shared_units(), *files)
    compiling = _view(tools, task, {_TEMPORARY: _TEMPORARY_BYTES, cache: _CACHE_BYTES})
    kept = kept_folder(submission.sha256, files)
    running = replace(_view((cases, *tools), task, scratch), aliases=((cache, kept),))
    with Compilations(options.sandbox, compiling, place, kept, budget) as service:
        yield SubmissionBoxes(options.sandbox, running, service)


def data_box(task: JudgeTask, written: Sequence[Path], read: Sequence[Path]) -> BoxView:
    """Return the view of a box for the scripts of a submission that brings its own data."""
    folders = {_TEMPORARY: RESULT_BYTES, **dict.fromkeys(written, RESULT_BYTES)}
    scratch = tuple(Scratch(each, size) for each, size in folders.items())
    return BoxView((task.path, *read), scratch=scratch)


def _view(readable: Sequence[Path], task: JudgeTask, scratch: dict[Path, int]) -> BoxView:
    folders = tuple(Scratch(each, size) for each, size in scratch.items())
    # A sample's own data is its task: it may see itself.
    hidden = () if task.path in readable else (task.path,)
    return BoxView(tuple(readable), hidden=hidden, scratch=folders)


def own_files(submission: Submission, path: Path) -> list[Path]:
    """Return a submission's folder; of a file also those of its kind beside it that it names.

    The rest of the folder is not the submission's: it may be the user's home, or a batch's answers.
    """
    if path.is_dir():
        return [path]
    # Python imports a module by the stem of its file; what a file that is named names comes, too.
    is_python = submission.kind == PYTHON
    suffixes = (".py",) if is_python else _BESIDE
    beside = {
        each.stem if is_python else each.name: each
        for each in path.parent.iterdir()
        if each.suffix in suffixes and each.is_file() and not each.is_symlink()
    }
    found = [path]
    for file in found:
        words = set((_STEM if is_python else _NAME).findall(file.read_text("utf-8", "replace")))
        named = (beside[word] for word in sorted(words & beside.keys()))
        found += [each for each in named if each not in found]
    return found


def _prepare(submission: Submission, options: JudgeOptions) -> None:
    """Compile what all submissions share, which a box only reads."""
    from cubecore.frontends.cpp.host_programs.torch_prefix import prepare_torch
    from cubecore.frontends.cpp.operator_projects.host_library import prepare_host
    from cubecore.frontends.cpp.toolchain.build import prepare

    prepare(chip_named(options.chip).arch)
    if submission.kind in {PROJECT, STRINGS}:
        prepare_host()
    if submission.model or submission.kind == PACKAGE:
        prepare_torch()
