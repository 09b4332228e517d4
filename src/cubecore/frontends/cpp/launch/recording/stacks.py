"""The calls that led a kernel to a line: return addresses, read by the debug information.

The runtime walks the frames of each issue and asks for a number of each new trail. Only what is
reported is looked up, at the end, by `addr2line`, which knows inlined calls; without it, findings
have no callers.
"""

import os
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

from cubecore.errors import shortened
from cubecore.frontends.cpp.files import INCLUDE
from cubecore.frontends.cpp.toolchain.cache import folder
from cubecore.frontends.cpp.toolchain.spelling import function_as_written
from cubecore.frontends.source_locations import shown_path
from cubecore.isa.program.trace import Names
from cubecore.isa.program.tree import Location
from cubecore.machine.sanitize.findings import SanitizerFinding

_TIMEOUT_S = 20.0
_AT_A_TIME = 500
_BRACKETS = re.compile(r"<[^<>]*>|\([^()]*\)|\[[^\[\]]*\]| const$")
_ENTRY = "entry"
"""The file that a library's entries are written in."""
_LIBRARY = "/include/c++/"


@dataclass(frozen=True, slots=True)
class _Frame:
    file: str
    line: int
    function: str

    @property
    def is_library(self) -> bool:
        """True in the standard library, through which a host program's launch comes."""
        return _LIBRARY in self.file

    @property
    def is_ours(self) -> bool:
        path = self.file
        ours = path.startswith((str(INCLUDE), str(folder()))) or Path(path).name in {_ENTRY, "??"}
        return ours or self.is_library


_Trail = tuple[bytes, tuple[int, ...]]
_Frames = dict[tuple[bytes, int], tuple[_Frame, ...]]


class Stacks:
    """The trails of one launch's locations."""

    def __init__(self) -> None:
        self._numbers: dict[tuple[Location, tuple[int, ...]], int] = {}
        self._trails: dict[int, _Trail] = {}
        self._known: _Frames = {}

    def number(
        self, names: Names, where: Location, library: bytes | None, trail: tuple[int, ...]
    ) -> int:
        """Return the number of a line that was reached by a trail."""
        if library is None or not trail:
            return names.location_number(where)
        # A location of its own for each trail: findings are told apart by location, and so by
        # caller.
        key = where, trail
        number = self._numbers.get(key)
        if number is None:
            number = self._numbers[key] = names.new_location_number(where)
            self._trails[id(where)] = library, trail
        return number

    def told(self, findings: Iterable[SanitizerFinding]) -> tuple[SanitizerFinding, ...]:
        """Return findings whose locations say by which calls the kernel came there."""
        held = tuple(findings)
        places = [
            place
            for finding in held
            for place in (finding.location, *(each.location for each in finding.accesses))
        ]
        known = self.with_callers(places)
        if not known:
            return held
        return tuple(
            replace(
                finding,
                location=known.get(id(finding.location), finding.location),
                accesses=tuple(
                    replace(each, location=known.get(id(each.location), each.location))
                    for each in finding.accesses
                ),
            )
            for finding in held
        )

    def with_callers(self, places: Iterable[Location]) -> dict[int, Location]:
        """Return locations with their calls, by the identity of those that a trail led to."""
        wanted = {id(place): place for place in places if id(place) in self._trails}
        frames = self._frames([self._trails[key] for key in wanted])
        return {
            key: _with_callers(place, self._trails[key], frames) for key, place in wanted.items()
        }

    def _frames(self, trails: Sequence[_Trail]) -> _Frames:
        """Return the frames of trails; those that have been looked up are kept."""
        found = self._known
        for library in dict.fromkeys(name for name, _ in trails):
            of_library = {at for name, trail in trails if name == library for at in trail}
            addresses = sorted(at for at in of_library if (library, at) not in found)
            for first in range(0, len(addresses), _AT_A_TIME):
                part = addresses[first : first + _AT_A_TIME]
                for at, frames in zip(part, _looked_up(library, part), strict=False):
                    found[library, at] = frames
        return found


def _looked_up(library: bytes, addresses: Sequence[int]) -> list[tuple[_Frame, ...]]:
    """Return the frames of each return address, an inlined call before what it lies in."""
    import shutil  # only where something is found
    import subprocess

    tool = shutil.which("addr2line")
    if tool is None:
        return []
    before = [f"{at - 1:#x}" for at in addresses]  # in the call, not behind it
    command = [tool, "-e", os.fsdecode(library), "-a", "-i", "-f", "-C", *before]
    options: dict[str, Any] = {"capture_output": True, "text": True, "errors": "replace"}
    try:
        done = subprocess.run(command, check=False, timeout=_TIMEOUT_S, **options)  # noqa: S603
    except (OSError, subprocess.TimeoutExpired):
        return []
    # addr2line -a -i -f prints for each address a line `0x...`, then pairs of lines, function and
    # file:line, the innermost inlined call first.
    found: list[tuple[_Frame, ...]] = []
    lines = done.stdout.splitlines()
    at = 0
    while at < len(lines):
        frames = []
        at += 1  # the address
        while at + 1 < len(lines) and not lines[at].startswith("0x"):
            file, _, line = lines[at + 1].rpartition(":")
            number = line.split(" ", maxsplit=1)[0]
            known = int(number) if number.isdigit() else 0
            frames.append(_Frame(file, known, _plain(lines[at])))
            at += 2
        found.append(tuple(frames))
    return found


@lru_cache(maxsize=1024)
def line_of(library: bytes, address: int) -> Location | None:
    """Return the user's line before a return address in a library, if it is known."""
    for frames in _looked_up(library, [address]):
        own = next((frame for frame in frames if not frame.is_ours and frame.line), None)
        if own is not None:
            return Location(shown_path(Path(own.file)), own.line, shortened(own.function))
    return None


def _with_callers(place: Location, trail: _Trail, known: _Frames) -> Location:
    """Return a location with its call of the API, and with the user's calls that led there."""
    library, addresses = trail
    frames = [frame for at in addresses for frame in known.get((library, at), ())]
    # Frames from the inside out: cubecore's own headers, of which the outermost is the API's call;
    # the user's line, which the location has already; and the callers behind it.
    first = next((n for n, frame in enumerate(frames) if not frame.is_ours), len(frames))
    call = frames[first - 1].function if 0 < first < len(frames) else ""
    behind = [n for n in range(first + 1, len(frames)) if not frames[n].is_ours and frames[n].line]
    callers = [
        Location(shown_path(Path(frames[n].file)), frames[n].line, shortened(frames[n].function))
        for n in behind
    ]
    if behind and any(frame.is_library for frame in frames[behind[-1] + 1 :]):
        callers[-1] = replace(callers[-1], function="the launch")
    return replace(place, call=call, callers=tuple(callers))


def _plain(function: str) -> str:
    """Return a function's name without its classes, its types and its arguments."""
    if "{lambda" in function.rpartition("::")[0]:
        return "a lambda"
    before, function = "", function_as_written(function)
    while before != function:
        before, function = function, _BRACKETS.sub("", function)
    return function.rpartition("::")[2].rpartition(" ")[2]
