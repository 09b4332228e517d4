"""Calls into an op_host, in a process of its own: what it registers, tiles and infers."""

import ctypes
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from cubecore.chips.model import Chip
from cubecore.errors import unable
from cubecore.frontends.cpp.child import ChildSubject, answered
from cubecore.frontends.cpp.compile.build import runtime
from cubecore.frontends.cpp.host import CHIP, chip_fact
from cubecore.frontends.cpp.host_tiling import HostTilings
from cubecore.frontends.cpp.launch_options import TIMEOUT_S
from cubecore.frontends.cpp.operators.element_types import FORMAT_ND
from cubecore.frontends.cpp.operators.registration import Registration, registrations
from cubecore.frontends.cpp.recording.bridge import Bridge
from cubecore.lazy_dataclass import dataclass

_REFUSED, _ANSWER, _MATMUL_TILING = 7, 8, 9
_SHORT_NAMES = {"2201": "ascend910b", "3510": "ascend950"}
"""Names of chips in AddConfig, by architecture."""


@dataclass(frozen=True, slots=True)
class HostTiling:
    """The results of a tiling function."""

    blocks: int
    key: int
    workspaces: tuple[int, ...]
    data: bytes
    atomic: bool


@dataclass(frozen=True, slots=True)
class GivenTensor:
    """A tensor as an op_host is told of it; `values` is the address of its bytes, or 0."""

    slot: int
    type: int
    shape: tuple[int, ...]
    values: int = 0

    def words(self, role: str) -> Iterable[str]:
        """Return the words of a request."""
        extents = (len(self.shape), *self.shape)
        numbers = (self.slot, self.type, FORMAT_ND, self.values, *extents)
        return (role, *map(str, numbers))


@dataclass(frozen=True, slots=True)
class HostRequest:
    """What a function of an op_host is called with."""

    registration: Registration
    inputs: tuple[GivenTensor, ...]
    outputs: tuple[GivenTensor, ...]
    attributes: tuple[tuple[str, ...], ...]

    def words(self, function: str) -> list[str]:
        """Return the words of the request."""
        own = self.registration
        words = [function, own.type, str(len(own.inputs)), str(len(own.outputs))]
        for role, tensors in (("input", self.inputs), ("output", self.outputs)):
            for tensor in tensors:
                words += tensor.words(role)
        for attribute in self.attributes:
            words += ("attribute", *attribute)
        return words


class HostCalls:
    """The functions of a compiled op_host, for one chip."""

    def __init__(self, library: Path, chip: Chip, timeout_s: float = TIMEOUT_S) -> None:
        self._library, self._chip, self._timeout_s = library, chip, timeout_s

    def registered(self) -> list[Registration]:
        """Return the operators that the op_host registers.

        Raises
        ------
        CubecoreError
            If its variables cannot be initialised.
        """
        short = _SHORT_NAMES.get(self._chip.arch, self._chip.name.lower())
        return registrations(self._asked("the op_host", ["describe", short]))

    def tiling(self, request: HostRequest) -> HostTiling:
        """Return the results of an operator's tiling function.

        Raises
        ------
        CubecoreError
            If it fails.
        """
        what = f"the tiling function of {request.registration.type}"
        found = self._answers(what, request.words("tile"))
        workspaces = tuple(int(size) for size in found.get("workspace", ()))
        key, blocks = int(found["key"][0]), int(found["blocks"][0])
        data = bytes.fromhex(found["data"][0])
        return HostTiling(blocks, key, workspaces, data, found["atomic"] == ["1"])

    def shapes(self, request: HostRequest) -> list[tuple[int, ...]]:
        """Return the shapes of the outputs.

        Raises
        ------
        CubecoreError
            If the function fails.
        """
        what = f"the shape inference of {request.registration.type}"
        found = self._answers(what, request.words("shapes"))
        return [tuple(int(n) for n in text.split(",") if n) for text in found.get("shape", ())]

    def types(self, request: HostRequest) -> list[int]:
        """Return the element types of the outputs, as numbers of ge::DataType.

        Raises
        ------
        CubecoreError
            If the function fails.
        """
        what = f"the type inference of {request.registration.type}"
        found = self._answers(what, request.words("types"))
        return [int(text) for text in found.get("type", ())]

    def _answers(self, subject: str, words: Sequence[str]) -> dict[str, list[str]]:
        found: dict[str, list[str]] = {}
        for line in self._asked(subject, words):
            what, _, rest = line.partition("\t")
            found.setdefault(what, []).append(rest)
        state = int(found["state"][0])
        if state != 0:
            name = "GRAPH_FAILED" if state == (1 << 32) - 1 else str(state)
            reason = found["reason"][0] or "it does not take these inputs"
            raise unable(subject, f"{subject} returned {name}", reason)
        return found

    def _asked(self, subject: str, words: Sequence[str]) -> list[str]:
        support = str(runtime())

        def work(page: int) -> list[str]:
            return _served(Bridge(support, page), self._library, self._chip, subject, words)

        return answered(work, ChildSubject(subject, self._timeout_s))


def _served(
    bridge: Bridge, library: Path, chip: Chip, subject: str, words: Sequence[str]
) -> list[str]:
    """Return the lines that an op_host answers, in the process that runs it."""
    lines: list[str] = []
    tilings = HostTilings(chip)

    def asked(what: int, a: int, b: int, text: bytes | None, *rest: Any) -> None:
        said = (text or b"").decode("utf-8", "replace")
        if what == CHIP:
            rest[-1][0] = chip_fact(chip, a)
        elif what == _REFUSED:
            raise unable(subject, f"{subject}: {said}")
        elif what == _ANSWER:
            lines.append(said)
        elif what == _MATMUL_TILING:
            rest[-1][0] = tilings.answer(said, a, b)

    texts = [word.encode("utf-8", "surrogateescape") for word in words]
    argv = (ctypes.c_char_p * (len(texts) + 1))(*texts, None)
    bridge.start(ctypes.PyDLL(str(library)).cubecore_op_host, argv, len(texts), asked)
    ctypes.CDLL(None).fflush(None)
    return [*lines, f"reason\t{tilings.reason}"]
