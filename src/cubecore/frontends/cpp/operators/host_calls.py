"""Calls into an op_host, in a process of its own: what it registers, tiles and infers."""

import ctypes
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

from cubecore.chips.model import Chip
from cubecore.errors import unable
from cubecore.frontends.cpp.child import ChildSubject, answered, remark
from cubecore.frontends.cpp.compile.build import runtime
from cubecore.frontends.cpp.host import CHIP, chip_fact
from cubecore.frontends.cpp.host_tiling import HostTilings
from cubecore.frontends.cpp.launch_options import TIMEOUT_S
from cubecore.frontends.cpp.operators.element_types import FORMAT_ND
from cubecore.frontends.cpp.operators.registration import Registration, registrations
from cubecore.frontends.cpp.recording.bridge import Bridge
from cubecore.lazy_dataclass import dataclass

_REFUSED, _ANSWER, _MATMUL_TILING, _ABSENT = 7, 8, 9, 11
_SHORT_NAMES = {"2201": "ascend910b", "3510": "ascend950"}
"""Names of chips in AddConfig, by architecture."""

_STATES = {0xFFFFFFFF: "GRAPH_FAILED", 50331649: "GRAPH_PARAM_INVALID"}
"""Statuses of host functions by their numbers; op_host/types.h has them all."""


@dataclass(frozen=True, slots=True)
class HostTiling:
    """The results of a tiling function.

    Of a kernel that is a template its arguments, and the kind of cores if they say so.
    """

    blocks: int
    key: int
    workspaces: tuple[int, ...]
    data: bytes
    atomic: bool
    kind: str = ""
    template: str = ""


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
    """The tensors and attributes that a function of an op_host is called with."""

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
        found = self._answers(what, request.words("tile"), request.registration)
        workspaces = tuple(int(size) for size in found.get("workspace", ()))
        key, blocks = int(found["key"][0]), int(found["blocks"][0])
        data = bytes.fromhex(found["data"][0])
        told = [line.split("\t") for line in found.get("template", ())]
        chosen = next((rest for own, *rest in told if int(own) == key), ["", ""])
        return HostTiling(blocks, key, workspaces, data, found["atomic"] == ["1"], *chosen)

    def shapes(self, request: HostRequest) -> list[tuple[int, ...]]:
        """Return the shapes of the outputs.

        Raises
        ------
        CubecoreError
            If the function fails.
        """
        what = f"the shape inference of {request.registration.type}"
        found = self._answers(what, request.words("shapes"), request.registration)
        return [tuple(int(n) for n in text.split(",") if n) for text in found.get("shape", ())]

    def types(self, request: HostRequest) -> list[int]:
        """Return the element types of the outputs, as numbers of ge::DataType.

        Raises
        ------
        CubecoreError
            If the function fails.
        """
        what = f"the type inference of {request.registration.type}"
        found = self._answers(what, request.words("types"), request.registration)
        return [int(text) for text in found.get("type", ())]

    def _answers(
        self, subject: str, words: Sequence[str], own: Registration
    ) -> dict[str, list[str]]:
        found: dict[str, list[str]] = {}
        for line in self._asked(subject, words, own):
            what, _, rest = line.partition("\t")
            found.setdefault(what, []).append(rest)
        state = int(found["state"][0])
        if state != 0:
            name = _STATES.get(state, str(state))
            reason = found["reason"][0] or "it does not take these inputs"
            raise unable(subject, f"{subject} returned {name}", reason)
        return found

    def _asked(
        self, subject: str, words: Sequence[str], own: Registration | None = None
    ) -> list[str]:
        support = str(runtime())

        def work(page: int) -> list[str]:
            def absent(kind: int, index: int) -> None:
                if own is not None:
                    remark(page, _absence(own, kind, index))

            bridge = Bridge(support, page)
            return _served(bridge, self._library, self._chip, subject, words, absent)

        return answered(work, ChildSubject(subject, self._timeout_s, ends="it returns"))


def _absence(own: Registration, kind: int, index: int) -> str:
    """Return what an op_host asked for and did not get, and the remedy."""
    what, registered = (
        ("attribute", own.attributes), ("input", own.inputs), ("output", own.outputs)
    )[kind]  # fmt: skip
    names = [one.name for one in registered]
    if index < len(names):
        return f"it had asked for the {what} {names[index]}, which was not given"
    listed = ", ".join(names) or "none"
    remedy = f"register an {what} for it"
    return f"it had asked for {what} {index}, and {own.type} registers {listed}: {remedy}"


def _served(
    bridge: Bridge,
    library: Path,
    chip: Chip,
    subject: str,
    words: Sequence[str],
    absent: Callable[[int, int], None],
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
        elif what == _ABSENT:
            absent(a, b)
        elif what == _MATMUL_TILING:
            rest[-1][0] = tilings.answer(said, a, b)

    texts = [word.encode("utf-8", "surrogateescape") for word in words]
    argv = (ctypes.c_char_p * (len(texts) + 1))(*texts, None)
    bridge.start(ctypes.PyDLL(str(library)).cubecore_op_host, argv, len(texts), asked)
    ctypes.CDLL(None).fflush(None)
    return [*lines, f"reason\t{tilings.reason}"]
