"""The box of a judgement: the files that a submission sees."""

from pathlib import Path

from cubecore.chips import chip as chip_named
from cubecore.frontends.cpp.files import SUFFIXES
from cubecore.frontends.cpp.toolchain.cache import folder, shared_units
from cubecore.frontends.cpp.toolchain.compiler import compiler, has_compiler
from cubecore.sandbox.confinement import MEMORY_BYTES, PROCESSES
from cubecore.sandbox.view import BoxView, Scratch
from cubecore.workflows.judge.limits import JudgeOptions
from cubecore.workflows.judge.submissions.kinds import PROJECT, PYTHON, STRINGS, Submission
from cubecore.workflows.judge.tasks.kinds import JudgeTask

RESULTS = "results"
"""The folder of a submission's results, below that of its inputs."""
_TEMPORARY = Path("/tmp")  # noqa: S108 - where programs of a box look for it
_TEMPORARY_BYTES, _CACHE_BYTES, RESULT_BYTES = 256 << 20, 1 << 30, 1 << 30
_BESIDE = (*SUFFIXES, ".h", ".hpp", ".inc")
LIMITS = {"memory_bytes": MEMORY_BYTES, "processes": PROCESSES, "scratch_bytes": _TEMPORARY_BYTES}
"""The limits of a box, as the verdict tells them."""


def view_of(
    submission: Submission, path: Path, task: JudgeTask, given: Path, options: JudgeOptions
) -> BoxView:
    """Return the files of a submission's box: its own, the inputs, and cubecore's compiled headers.

    What it compiles lies in memory where the cache is: nothing of it is kept, so that no submission
    can put something into the cache that another one gets.
    """
    cache = folder().absolute()
    readable = [given, *own_files(submission, path)]
    if submission.kind != PYTHON and has_compiler():
        _prepare(submission, options)
        readable += [Path(compiler().command[0]), *shared_units()]
    scratch = {
        _TEMPORARY: _TEMPORARY_BYTES,
        cache: _CACHE_BYTES,
        cache.parent / "judged": _TEMPORARY_BYTES,
        given / RESULTS: RESULT_BYTES,
    }
    return BoxView(
        readable=tuple(readable),
        hidden=(task.path,),
        scratch=tuple(Scratch(each, size) for each, size in scratch.items()),
    )


def own_files(submission: Submission, path: Path) -> list[Path]:
    """Return a submission's folder; of a file also those of its kind beside it, which it includes.

    The rest of the folder is not the submission's: it may be the user's home.
    """
    if path.is_dir():
        return [path]
    suffixes = (".py",) if submission.kind == PYTHON else _BESIDE
    beside = (each for each in sorted(path.parent.iterdir()) if each.suffix in suffixes)
    return [path, *(each for each in beside if each.is_file() and not each.is_symlink())]


def _prepare(submission: Submission, options: JudgeOptions) -> None:
    """Compile what all submissions share, which a box only reads."""
    from cubecore.frontends.cpp.operator_projects.host_library import prepare_host
    from cubecore.frontends.cpp.toolchain.build import prepare

    prepare(chip_named(options.chip).arch)
    if submission.kind in {PROJECT, STRINGS}:
        prepare_host()
