"""A sample project of kernels: built, run and verified with the steps that its README has."""

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from time import perf_counter

from cubecore.chips import DEFAULT_CHIP
from cubecore.frontends.cpp.files import is_program
from cubecore.frontends.cpp.host_programs.cmake_project import settings
from cubecore.units import plural
from cubecore.workflows.scripts.project_sample import (
    ProjectSample,
    project_sample,
    readmes_of,
    shell_blocks,
)

_ASSIGNMENT = re.compile(r"(?P<name>[A-Za-z_]\w*)=(?P<value>\S*)$")
_WRONG = re.compile(
    r"(?i)\b(?:test|verif\w*|compar\w*|result)\b[^\n]{0,60}?\b(?:fail\w*|error|wrong|mismatch\w*)\b"
    r"|^\[ERROR\]|\bfailed!|(?-i:\bFAILED)$",
    re.MULTILINE,
)
_KEPT = re.compile(r"\s+(?:2>&1\s*)?(?:\|\s*tee|>)\s+(?P<file>\S+)\s*(?:2>&1\s*)?$")
"""The end of a command that leaves its output in a file."""
_OF_LAUNCHES = ("bash", "run.sh", "-r", "npu", "-v", DEFAULT_CHIP)
"""A kernel-launch project has all its steps in a script of its own."""
_LEFT = {"CUBECORE_FINDINGS": "report", "CUBECORE_LANG": "en"}
"""A script goes on to its verification; findings are counted here, by their English heading."""
_TITLE = re.compile(r"^\S.*\[\d+\] on \S+$", re.MULTILINE)
"""The title of a launch with findings, behind all that its program prints."""
_NOTE = re.compile(r"^note: .*$", re.MULTILINE)
"""Lines of a program on results that no kernel has written, and on tilings that there are not."""
_COMPARES = re.compile(r"(?i)verif|compar|check|golden|acc")
"""Names of scripts that compare results."""
_RIGHT = re.compile(
    r"(?i)\b(?:test|verif\w*|compar\w*|accura\w*|result\w*)\b[^\n]{0,60}?"
    r"\b(?:pass\w*|succe\w*|correct|ok)\b|\[(?:success|pass)\]|(?-i:\bPASSED)\r?$"
    r"|\bprecision (?:is )?100(?:\.0*)?%",
    re.MULTILINE,
)
"""Words of a program that has compared its results."""
_BUILDING = frozenset({"cmake", "make"})
_COMMON = (
    ("cmake", ".."),
    ("make",),
    ("python3", "../scripts/gen_data.py"),
    ("./demo",),
    ("python3", "../scripts/verify_result.py", "output/output.bin", "output/golden.bin"),
)


@dataclass(frozen=True, slots=True)
class SampleRun:
    """A sample's end: the step that failed and its last words; what passed may have findings.

    `told` has the findings of its launches and the notes of its host code, `compared` is true if a
    step compared results.
    """

    folder: str
    seconds: float
    failed: str = ""
    said: str = ""
    findings: int = 0
    told: str = ""
    compared: bool = True

    @property
    def passed(self) -> bool:
        """True if every step passed, without findings."""
        return not self.failed and not self.findings

    @property
    def line(self) -> str:
        """The sample's end in one line."""
        if self.failed:
            return f"{self.folder}: {self.failed} failed: {self.said}"
        if self.findings:
            found = plural(self.findings, "finding")
            if self.compared:
                return f"{self.folder}: FAILED: {found}; verified by itself in {self.seconds:.0f} s"
            return f"{self.folder}: FAILED: {found}; result not compared in {self.seconds:.0f} s"
        if not self.compared:
            return (
                f"{self.folder}: finished in {self.seconds:.0f} s, no findings; result not compared"
            )
        return f"{self.folder}: verified in {self.seconds:.0f} s"


def project_steps(root: Path) -> tuple[tuple[str, ...], ...]:
    """Return the commands of a project's README, or those that samples share."""
    own = (_OF_LAUNCHES,) if _has_script(root) else _COMMON
    return next(filter(None, map(steps_of, readmes_of(root))), own)


def steps_of(readme: str) -> tuple[tuple[str, ...], ...]:
    """Return the commands of the first shell block of a README that builds with cmake."""
    for lines in shell_blocks(readme):
        commands = tuple(_commands(lines))
        names = {command[0] for command in commands}
        if "cmake" in names and any(name.startswith("./") for name in names):
            return commands
    return ()


def _commands(lines: Sequence[str]) -> Iterator[tuple[str, ...]]:
    """Yield the commands of a block that a sample's steps consist of; others are left out."""
    variables: dict[str, str] = {}
    for line in lines:
        for part in re.split(r";|&&", line.split(" #")[0].split("\t#")[0]):
            given = part.split()
            matches = [_ASSIGNMENT.match(word) for word in given[given[:1] == ["export"] :]]
            if matches and None not in matches:
                variables |= {match["name"]: match["value"] for match in matches if match}
                continue
            for name, value in variables.items():
                part = re.sub(rf"\$\{{?{name}\b\}}?", value.replace("\\", ""), part)  # noqa: PLW2901
            try:
                words = tuple(shlex.split(part))
            except ValueError:
                continue
            if words and _is_sample_step(words):
                yield words


def _is_sample_step(words: tuple[str, ...]) -> bool:
    if words[0] in {"cmake", "make"} or words[0].startswith("./"):
        return True
    return words[0] in {"python", "python3"} and len(words) > 1 and "scripts/" in words[1]


def run_sample(
    folder: str, timeout_s: float, show: Callable[[str], None] | None = None
) -> SampleRun:
    """Build, run and verify a sample in its folder `build`: a project, or a part of a larger one.

    Raises
    ------
    RequestError
        If the folder has no CMakeLists.txt.
    """
    root, begin = Path(folder).resolve(), perf_counter()
    part = project_sample(folder)
    build = root / "build" if part is None else part.build
    build.mkdir(exist_ok=True)
    run = _Steps(folder, timeout_s, show)
    failed = run.project(root, build) if part is None else run.part(part)
    end, said = failed or ("", "")
    seconds = perf_counter() - begin
    text = "\n\n".join(run.told)
    return SampleRun(folder, seconds, end, said, run.findings, text, run.compared)


@dataclass(eq=False, slots=True)
class _Steps:
    """The steps of a sample; each returns the name of a step that fails, and its last words."""

    folder: str
    timeout_s: float
    show: Callable[[str], None] | None
    findings: int = 0
    said: str = ""
    told: list[str] = field(default_factory=list)
    compared: bool = False

    def project(self, root: Path, build: Path) -> tuple[str, str] | None:
        """Run the commands of a project's README, or those that samples share."""
        for step in project_steps(root):
            if step[0].startswith("python") and not (build / step[1]).is_file():
                continue
            if (failed := self.run(step, build)) is not None:
                return failed
        return None

    def part(self, sample: ProjectSample) -> tuple[str, str] | None:
        """Build a sample of a larger project alone, and run what its README says."""
        if (failed := self.run(sample.configure, sample.build)) is not None:
            return failed
        listing = "cmake", "--build", str(sample.built), "--target", "help"
        if (failed := self.run(listing, sample.build)) is not None:
            return failed
        target = sample.target(self.said)
        make = "cmake", "--build", str(sample.build), "--clean-first", "--target", target
        failed = self.run(make, sample.build)
        for step in sample.steps(target) if failed is None else ():
            if (failed := self.run(step, sample.built)) is not None:
                break
            self.compared |= step[0].startswith("./") and sample.compares(self.said)
        return failed

    def run(self, step: tuple[str, ...], where: Path) -> tuple[str, str] | None:
        """Run a step; None if it passes."""
        name = Path(step[1] if step[0].startswith(("python", "bash")) else step[0]).name
        code, said = run_step(step, where, self.timeout_s)
        self.said = said
        if self.show is not None:
            self.show(f"{shlex.join(step)}\n{said}")
        if step[0].startswith(("./", "bash")):
            self.findings += _findings(said)
            found = _TITLE.search(said)
            self.told += _NOTE.findall(said[: found.start()] if found else said)
            self.told += [said[found.start() :].rstrip()] if found else []
        self.compared |= says_right(said) or _compares(step, where)
        if code or (step[0] not in _BUILDING and _WRONG.search(said) is not None):
            return name, reason_of(step, said, code)
        return None


def _compares(step: tuple[str, ...], build: Path) -> bool:
    """Return whether a step is a script that compares results, by its name or its text."""
    if step[0] == "bash":
        text = (build.parent / step[1]).read_bytes().decode("utf-8", "replace")
        return re.search(r"\b(?:cmp|diff)\b", text) is not None or bool(_COMPARES.search(text))
    return step[0].startswith("python") and _COMPARES.search(Path(step[1]).name) is not None


def _has_script(root: Path) -> bool:
    """True if a project is built by a script that takes the way to run and the chip."""
    script = root / "run.sh"
    return script.is_file() and "RUN_MODE" in script.read_bytes().decode("utf-8", "replace")


def _findings(said: str) -> int:
    return sum(int(count) for count in re.findall(r"^Findings: (\d+)$", said, re.MULTILINE))


def _inherited(timeout_s: float) -> dict[str, str]:
    """Return variables for programs: the limit of their launches, and this Python as python3."""
    limit = os.environ.get("CUBECORE_TIMEOUT") or f"{timeout_s:g}"
    paths = [str(Path(sys.executable).parent), os.environ.get("PATH", "")]
    return {"CUBECORE_TIMEOUT": limit, "PATH": os.pathsep.join(filter(None, paths))}


def says_right(said: str) -> bool:
    """Return whether a step says that it has compared results, and that they are right."""
    return _RIGHT.search(said) is not None


def says_wrong(said: str) -> bool:
    """Return whether a step says that results are wrong."""
    return _WRONG.search(said) is not None


def reason_of(step: tuple[str, ...], said: str, code: int) -> str:
    """Return the line of a failed step's output that says why it failed."""
    wrong = _WRONG.search(said) if step[0] not in _BUILDING else None
    printed = [line.replace("\r", "").strip() for line in said.split("\n")]
    lines = [line for line in printed if line]
    if wrong is not None:
        return printed[said.count("\n", 0, wrong.start())]
    if step[0] in _BUILDING:
        lines = [line for line in lines if not line.startswith(("make", "gmake", "["))] or lines
        return lines[0] if len(lines) == 1 else _longest_error(lines)
    return lines[-1] if lines else f"exit code {code}"


def _longest_error(lines: list[str]) -> str:
    errors = [line for line in lines if "does not" in line or "error" in line or " not " in line]
    return (errors or lines)[-1]


def run_step(step: tuple[str, ...], build: Path, timeout_s: float) -> tuple[int, str]:
    """Run a step; return its exit code and its output, which is left in a file if it says so."""
    kept = _KEPT.search(" ".join(step))
    if kept is None:
        return _done(step, build, timeout_s)
    left = len(kept[0].split())
    code, said = _done(step[:-left], build, timeout_s)
    (build / kept["file"]).write_text(said, "utf-8")
    return code, said


def _done(step: tuple[str, ...], build: Path, timeout_s: float) -> tuple[int, str]:
    command = list(step)
    if command[0] in {"python", "python3"}:
        command[0] = sys.executable
    if command[0] == "make":
        command = ["make"]  # a machine's own number of jobs
    if command[0].startswith("./") and not is_program(build / command[0]):
        return 1, f"{command[0]} is no program of cubecore"
    try:
        done = subprocess.run(  # noqa: S603 - the user's own sample
            command,
            cwd=build.parent if command[0] == "bash" else build,
            env={**os.environ, **settings(), **_LEFT, **_inherited(timeout_s)},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=timeout_s,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return 1, f"no end within {timeout_s:g} s"
    except OSError as error:
        return 1, f"cannot run {command[0]}: {error.strerror}"
    return done.returncode, done.stdout.decode("utf-8", "replace")
