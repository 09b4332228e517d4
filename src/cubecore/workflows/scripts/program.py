"""Programs that `cubecore c++` linked: run from their own main, with findings and times."""

from dataclasses import dataclass
from pathlib import Path

from cubecore.aliases import Json
from cubecore.frontends.cpp.host_programs.programs import run_built
from cubecore.frontends.cpp.launch.launch_options import CppLaunchOptions
from cubecore.frontends.kernels.session import KernelRun, ScriptSession


@dataclass(frozen=True, slots=True)
class ProgramRun:
    """A program's end: its exit code and its launches."""

    path: str
    code: int
    launches: tuple[KernelRun, ...]

    @property
    def findings(self) -> bool:
        """True if a launch left findings that are no notes."""
        return not all(launch.clean for launch in self.launches)


def run_linked(
    path: str, arguments: tuple[str, ...], options: Json, asked: CppLaunchOptions
) -> ProgramRun:
    """Run a program; `options` are those of its launches.

    Raises
    ------
    RequestError
        If the program cannot be read, or was built by another version.
    KernelError
        If a kernel fails, or the program ends early.
    """
    session = ScriptSession(options)
    with session.collecting():
        code = run_built(Path(path).resolve(), arguments, asked)
    return ProgramRun(path, code, tuple(session.runs))
