"""The program's findings on this machine: versions, compiler, cache, chips and extras."""

import os
import platform
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version

from cubecore.aliases import Json
from cubecore.errors import CubecoreError
from cubecore.version import __version__

_PACKAGES = ("numpy", "ml_dtypes", "click", "greenlet", "threadpoolctl")
_NEEDED = "not installed: run, and time of kernels, need it"
_EXTRAS = {
    "ziglang": "a C++ compiler in a wheel: pip install cubecore[compiler]",
    "pandas": "to_frame() of results: pip install cubecore[frames]",
    "torch": "tensors of PyTorch as arguments of kernels",
}
_PROBE = "int main() { return 0; }\n"


@dataclass(frozen=True, slots=True)
class Probe:
    """One thing that was looked for: what it is, what was found, and whether that is a fault."""

    name: str
    found: str
    is_fault: bool = False


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """Everything that was looked for, in the order of the page."""

    items: tuple[Probe, ...]

    @property
    def faults(self) -> tuple[Probe, ...]:
        """Parts that are there and do not work."""
        return tuple(item for item in self.items if item.is_fault)

    @property
    def text(self) -> str:
        """A line for each thing, and what is wrong at the end."""
        width = max(len(item.name) for item in self.items)
        lines = [f"  {item.name:{width}}  {item.found}" for item in self.items]
        wrong = [f"{item.name}: {item.found}" for item in self.faults]
        return "\n".join([*lines, "", *(wrong or ["Nothing is wrong."])]) + "\n"

    def to_json(self) -> Json:
        """Return the things by name, and the names of those that do not work."""
        found = {item.name: item.found for item in self.items}
        return {"found": found, "faults": [item.name for item in self.faults]}

    def to_rows(self) -> list[Json]:
        """Return a row for each thing."""
        return [{"name": i.name, "found": i.found, "is_fault": i.is_fault} for i in self.items]


def diagnose() -> Diagnosis:
    """Look at this machine; nothing is changed but the cache's folder, which is made."""
    return Diagnosis(
        (
            Probe("cubecore", f"{__version__}, {os.path.dirname(os.path.dirname(__file__))}"),  # noqa: PTH120
            Probe("Python", f"{platform.python_version()}, {sys.executable}"),
            Probe("system", f"{platform.system()} {platform.release()}, {platform.machine()}"),
            *(_distribution(name, _NEEDED, is_fault=True) for name in _PACKAGES),
            _looked("C++ compiler", _compiler),
            _looked("cache", _cache),
            _looked("chip", _chip),
            *(_distribution(name, f"not installed ({use})") for name, use in _EXTRAS.items()),
        )
    )


def _looked(name: str, look: Callable[[], str]) -> Probe:
    """Return what a look found; a refusal of ours is a fault, said in its own words."""
    try:
        return Probe(name, look())
    except (CubecoreError, OSError) as error:
        return Probe(name, str(error), is_fault=True)


def _distribution(name: str, missing: str, *, is_fault: bool = False) -> Probe:
    """Return an installed distribution's version, or what its absence means."""
    try:
        return Probe(name, version(name))
    except PackageNotFoundError:
        return Probe(name, missing, is_fault=is_fault)


def _compiler() -> str:
    """Return the compiler's version once it has compiled a program."""
    from cubecore.errors import unable
    from cubecore.frontends.cpp.toolchain.cache import scratch_folder
    from cubecore.frontends.cpp.toolchain.compiler import compiler

    chosen = compiler()
    with scratch_folder() as work:
        command = [*chosen.command, "-x", "c++", "-", "-o", f"{work}/probe"]
        done = subprocess.run(command, input=_PROBE, capture_output=True, text=True, check=False)  # noqa: S603
    if done.returncode:
        reason = (done.stderr.strip() or "no reason").splitlines()[0]
        raise unable("compiler", f"{chosen.version()} does not compile an empty program: {reason}")
    return f"{chosen.version()}, {chosen.command[0]}"


def _cache() -> str:
    from cubecore.frontends.cpp.toolchain.cache import MOST_BYTES, folder

    files = [path for path in folder().rglob("*") if path.is_file()]
    used = sum(path.stat().st_size for path in files)
    return f"{folder()}, {used / 1e6:,.0f} of at most {MOST_BYTES / 1e6:,.0f} MB"


def _chip() -> str:
    """Return the chip of requests that name none, which CUBECORE_CHIP may make a file's."""
    from cubecore.chips import chip, default_chip

    asked = os.environ.get("CUBECORE_CHIP")
    named = chip(default_chip())
    return f"{named.name}, architecture {named.arch}" + (
        f", from CUBECORE_CHIP={asked}" if asked else ""
    )
