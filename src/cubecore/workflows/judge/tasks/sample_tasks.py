"""Sample projects as tasks: their script makes the data, their script compares.

A sample that has no such script makes and compares its data in its program, which judges itself.
"""

import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from cubecore.arrays import Array
from cubecore.errors import unable
from cubecore.frontends.cpp.host_programs.cmake_project import settings
from cubecore.workflows.judge.limits import JudgeOptions
from cubecore.workflows.judge.tasks.cases import ReferenceCase
from cubecore.workflows.judge.tasks.comparison import (
    RIGHT,
    UNCOMPARABLE,
    WRONG,
    Compared,
    close,
    plain,
)
from cubecore.workflows.judge.tasks.kinds import JudgeTask
from cubecore.workflows.judge.tasks.sample_projects import (
    ProgramFiles,
    SampleProject,
    Step,
    plain_name,
)
from cubecore.workflows.scripts.sample import reason_of, says_right, says_wrong

_RULE = "the sample's own comparison"
_GOLDEN = "golden"
_RESULTS = "output"
"""The folder of results and of what is expected."""
_TYPE = re.compile(r"fromfile\([^)]*?dtype\s*=\s*(?:np|numpy)\.(\w+)")
_SEEDED = (
    "import random, runpy, sys\nimport numpy\nseed = int(sys.argv[1])\n"
    "random.seed(seed)\nnumpy.random.seed(seed)\nsys.argv = sys.argv[2:]\n"
    "sys.path[0] = sys.argv[0].rpartition('/')[0]\n"
    "runpy.run_path(sys.argv[0], run_name='__main__')\n"
)
"""Runs a script with the random numbers of a seed: those of equal judgements are equal."""


class SampleTask:
    """The data and the comparison of a sample."""

    def __init__(self, task: JudgeTask) -> None:
        self._sample, self._shown = SampleProject.of(task.path), task.path.name

    def cases(self, options: JudgeOptions) -> Iterator[ReferenceCase]:
        """Yield the one case, drawn with the seed."""
        with tempfile.TemporaryDirectory(prefix="cubecore-data-") as scratch:
            build = self._copied(Path(scratch))
            for step in self._sample.makers:
                _, script, *words = step
                seeded = (sys.executable, "-c", _SEEDED, str(options.seed), script, *words)
                code, said = _done(seeded, build, options.wall_s)
                if code:
                    sentence = f"{Path(script).name} failed: {reason_of(step, said, code)}"
                    raise unable(self._shown, sentence)
            # The program gets what the generator left but for what is compared: a submission that
            # copies the golden file would be right. One that compares by itself needs all of it.
            files = {str(path.relative_to(build)): path for path in _files(build)}
            expected = [n for n in files if self._is_expected(n)] if self._sample.checks else []
            if self._sample.checks and not expected:
                sentence = f"{self._shown} has no reference: its data has no file named golden"
                raise unable(self._shown, sentence)
            inputs = {n: np.fromfile(p, np.uint8) for n, p in files.items() if n not in expected}
            kind = self._type()
            wanted = {n: _typed(np.fromfile(files[n], np.uint8), kind) for n in expected}
        yield ReferenceCase("sample", inputs, wanted)

    def _is_expected(self, name: str) -> bool:
        return _GOLDEN in Path(name).name or Path(name).parts[0] == _RESULTS

    def _type(self) -> "np.dtype[Any]":
        """Return the type of results that its script reads; bytes where it does not say."""
        for _, script, *_ in self._sample.checks:
            text = (self._sample.root / "build" / script).resolve().read_text("utf-8", "replace")
            match = _TYPE.search(text)
            if match is not None:
                try:
                    return np.dtype(match[1])
                except TypeError:
                    continue
        return np.dtype(np.uint8)

    def compared(self, case: ReferenceCase, got: Any) -> Compared:
        """Compare by the sample's script, or by what its program says itself."""
        if not isinstance(got, ProgramFiles):  # the expected results themselves
            return Compared(RIGHT, _RULE, 0.0, 0.0)
        if got.code:
            program = self._sample.program
            reason = f"{program[0]} ended with {got.code}: {reason_of(program, got.said, got.code)}"
            return Compared(WRONG, _RULE, 0.0, 0.0, reason=reason)
        if not self._sample.checks:
            return self._by_itself(got)
        with tempfile.TemporaryDirectory(prefix="cubecore-data-") as scratch:
            build = self._copied(Path(scratch))
            for files in (case.inputs, got, case.expected):
                _write(files, build)
            for step in self._sample.checks:
                code, said = _done(step, build, None)
                if code or says_wrong(said):
                    return self._wrong(case.expected, got, reason_of(step, said, code))
        return Compared(RIGHT, _RULE, 0.0, 0.0)

    def _by_itself(self, got: ProgramFiles) -> Compared:
        if says_wrong(got.said):
            reason = reason_of(self._sample.program, got.said, 1)
            return Compared(WRONG, _RULE, 0.0, 0.0, reason=reason)
        if says_right(got.said):
            return Compared(RIGHT, _RULE, 0.0, 0.0)
        reason = "neither a script nor the program itself compares its results"
        return Compared(UNCOMPARABLE, _RULE, 0.0, 0.0, reason=reason)

    def _wrong(self, expected: dict[str, Array], got: ProgramFiles, said: str) -> Compared:
        """Return what is wrong: the first element where files are of a size, else what was said."""
        golden = [name for name in self._sample.compared_files if name in expected]
        results = [name for name in self._sample.compared_files if name not in expected]
        for wanted, found in zip(golden, results, strict=False):
            if found not in got:
                reason = f"the program has not written {found}"
                return Compared(WRONG, _RULE, 0.0, 0.0, reason=reason)
            one, other = plain(expected[wanted]), plain(got[found])
            if one.shape == other.shape and one.dtype == other.dtype:
                near = close(one, other)
                if near.outcome == WRONG:
                    names = ("max_abs", "max_rel", "where", "value", "expected", "wrong")
                    figures = {name: getattr(near, name) for name in names}
                    number = list(got).index(found)
                    return Compared(WRONG, _RULE, near.atol, near.rtol, output=number, **figures)
        return Compared(WRONG, _RULE, 0.0, 0.0, reason=said)

    def _copied(self, scratch: Path) -> Path:
        """Copy the sample's files, and return the folder that its steps run in."""
        root = scratch / self._sample.root.name
        skipped = shutil.ignore_patterns("build", "input", "output")
        shutil.copytree(self._sample.root, root, ignore=skipped)
        build = root / "build"
        build.mkdir()
        for name in ("input", _RESULTS):
            (build / name).mkdir()
        return build


def _typed(raw: Array, kind: "np.dtype[Any]") -> Array:
    return raw if raw.size % kind.itemsize else raw.view(kind)


def _files(build: Path) -> Sequence[Path]:
    return sorted(path for path in build.rglob("*") if path.is_file() and not path.is_symlink())


def _write(files: dict[str, Array], build: Path) -> None:
    for name, array in files.items():
        file = build / plain_name(name)
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(np.ascontiguousarray(plain(array)).tobytes())


def _done(step: Step, build: Path, timeout_s: float | None) -> tuple[int, str]:
    """Run a script of the sample's; return its exit code and its output."""
    try:
        done = subprocess.run(  # noqa: S603 - the task's own script
            step,
            cwd=build,
            env={**os.environ, **settings()},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=timeout_s,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return 1, f"no end within {timeout_s:g} s"
    return done.returncode, done.stdout.decode("utf-8", "replace")
