"""Sample projects as the judge sees them: the steps of their README, and the ends of a program."""

import re
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from cubecore.aliases import Json, JsonMapping
from cubecore.arrays import Array
from cubecore.errors import unable
from cubecore.workflows.scripts.sample import project_steps

Step = tuple[str, ...]
_FILE = re.compile(r"^[\w./-]+$")


class ProgramFiles(dict[str, Array]):
    """The files that a program has left, by name, with its exit code and its last words."""

    code: int = 0
    said: str = ""

    @staticmethod
    def of(files: Mapping[str, Array], record: JsonMapping) -> "ProgramFiles":
        """Return the files of a program that ended as `record` has it."""
        program = ProgramFiles(files)
        program.code, program.said = int(record["code"]), str(record["said"])
        return program

    def to_json(self) -> Json:
        """Return how the program ended, as JSON."""
        return {"code": self.code, "said": self.said}


@dataclass(frozen=True, slots=True)
class SampleProject:
    """The steps of a sample: what builds it, makes its data, runs, and compares.

    A sample without a script that compares leaves the comparison to its program.
    """

    root: Path
    builds: tuple[Step, ...]
    makers: tuple[Step, ...]
    program: Step
    checks: tuple[Step, ...]

    @staticmethod
    def of(root: Path) -> "SampleProject":
        """Return the steps of a sample's README, or those that samples share.

        Raises
        ------
        RequestError
            If it has no program of its own that its README starts.
        """
        steps = project_steps(root)
        programs = [number for number, step in enumerate(steps) if step[0].startswith("./")]
        if len(programs) != 1:
            sentence = f"{root.name} must have one program that its README starts"
            raise unable(root.name, sentence, "cubecore sample runs other samples")
        at = programs[0]
        python = [
            (number, (sys.executable, *step[1:]))
            for number, step in enumerate(steps)
            if step[0].startswith("python") and (root / "build" / step[1]).resolve().is_file()
        ]
        return SampleProject(
            root,
            tuple(step for step in steps if step[0] in {"cmake", "make"}),
            tuple(step for number, step in python if number < at),
            steps[at],
            tuple(step for number, step in python if number > at),
        )

    @property
    def compared_files(self) -> tuple[str, ...]:
        """The files that its scripts compare, as they are named from the folder of its build."""
        words = [word for step in self.checks for word in step[2:]]
        return tuple(str(Path(word)) for word in words if _FILE.match(word) and "." in word)


def plain_name(name: str) -> Path:
    """Return the path of a sample's file below the folder that its program runs in.

    Raises
    ------
    RequestError
        If it lies elsewhere.
    """
    path = Path(name)
    if path.is_absolute() or ".." in path.parts:
        raise unable(name, f"{name} lies outside of the sample's folder")
    return path
