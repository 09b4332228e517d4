"""Sample projects as submissions: built by CMake, their program run on a case's files."""

import os
import shutil
import sys
import tempfile
from pathlib import Path

import numpy as np

from cubecore.arrays import Array
from cubecore.dtypes import element_type
from cubecore.errors import unable
from cubecore.frontends.cpp.files import is_program
from cubecore.frontends.cpp.host_programs.programs import run_built
from cubecore.frontends.cpp.launch.launch_options import CppLaunchOptions
from cubecore.frontends.kernels.session import current_session
from cubecore.workflows.judge.limits import JudgeOptions
from cubecore.workflows.judge.submissions.calls import GivenCase, OpenSubmission, StageError
from cubecore.workflows.judge.tasks.sample_projects import ProgramFiles, SampleProject, plain_name
from cubecore.workflows.scripts.sample import reason_of, run_step

_MOST_FILES = 64
_SAID_BYTES = 4000


def opened_sample(place: Path, work: Path, options: JudgeOptions) -> OpenSubmission:
    """Build a sample in a folder of its own, and return what runs its program.

    Raises
    ------
    StageError
        If it does not build.
    RequestError
        If it has no program that its README starts.
    """
    # In a box the folder of inputs is to be read alone, and goes with the judgement elsewhere.
    below = work if os.access(work, os.W_OK) else Path(tempfile.gettempdir())
    root = Path(tempfile.mkdtemp(prefix="sample-", dir=below)) / place.name
    shutil.copytree(place, root, symlinks=True, ignore=shutil.ignore_patterns("build"))
    (root / "build").mkdir()
    sample = SampleProject.of(root)
    for step in sample.builds:
        code, said = run_step(step, root / "build", options.wall_s)
        if code:
            sentence = f"{step[0]} failed: {_from(reason_of(step, said, code), root)}"
            error = unable(place.name, sentence)
            error.detail = said[-_SAID_BYTES:]
            raise StageError("kernel", error)
    program = root / "build" / sample.program[0]
    if not is_program(program):
        sentence = f"{sample.program[0]} is no program of cubecore"
        raise StageError("kernel", unable(place.name, sentence))
    words = sample.program[1:]
    return OpenSubmission(
        (program.name,), lambda case: _program_call(program, words, root, case, options)
    )


def _from(line: str, root: Path) -> str:
    """Return a line of the compiler's with files named from the sample's folder."""
    return line.replace(f"{root}/", "").replace("../", "")


def _program_call(
    program: Path, words: tuple[str, ...], root: Path, case: GivenCase, options: JudgeOptions
) -> ProgramFiles:
    """Run the program on the case's files; return those that it has written.

    Raises
    ------
    CubecoreError
        If a kernel fails, or the program ends early.
    """
    for name, array in case.inputs.items():
        file = root / plain_name(name)
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(np.ascontiguousarray(array).tobytes())
    for name in ("input/data", "output/data", *(record["name"] for record in case.outputs)):
        (root / plain_name(name)).parent.mkdir(parents=True, exist_ok=True)
    before = _states(root)
    os.chdir(root)
    code, said = _run(program, words, root, CppLaunchOptions(timeout_s=options.wall_s))
    session = current_session()
    written = [name for name, state in _states(root).items() if before.get(name) != state]
    files = {n: _array(root / n, case) for n in sorted(written)[:_MOST_FILES]}
    files_after = ProgramFiles.of(files, {"code": code, "said": said})
    if session is not None and not session.runs and not files_after:
        raise unable(program.name, f"{program.name} launched no kernel and wrote no file")
    return files_after


def _run(
    program: Path, words: tuple[str, ...], root: Path, asked: CppLaunchOptions
) -> tuple[int, str]:
    """Run a program; return its exit code and the end of what it printed."""
    log = root / "build" / "program.log"
    sys.stdout.flush()
    kept = os.dup(1), os.dup(2)
    with log.open("wb") as file:
        os.dup2(file.fileno(), 1)
        os.dup2(file.fileno(), 2)
    try:
        code = run_built(program, words, asked)
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        for number, file_number in enumerate(kept, 1):
            os.dup2(file_number, number)
            os.close(file_number)
    return code, log.read_bytes()[-_SAID_BYTES:].decode("utf-8", "replace")


def _states(root: Path) -> dict[str, tuple[int, int]]:
    """Return the files outside of the build, each with its size and when it was written."""
    found = {}
    for folder, folders, names in os.walk(root):
        if Path(folder) == root and "build" in folders:
            folders.remove("build")
        for name in names:
            path = Path(folder) / name
            if not path.is_symlink() and path.is_file():
                state = path.stat()
                found[str(path.relative_to(root))] = state.st_size, state.st_mtime_ns
    return found


def _array(path: Path, case: GivenCase) -> Array:
    """Return a file's values: of the type of the expected result that has as many bytes."""
    raw = np.fromfile(path, np.uint8)
    for record in case.outputs:
        dtype = element_type(record["dtype"]).numpy
        if raw.size == dtype.itemsize * int(np.prod(record["shape"], dtype=np.int64)):
            return raw.view(dtype)
    return raw
