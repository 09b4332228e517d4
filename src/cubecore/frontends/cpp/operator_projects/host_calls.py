"""Calls into an op_host, in a process of its own: what it registers, tiles and infers."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from cubecore.chips.model import Chip
from cubecore.errors import unable
from cubecore.frontends.cpp.host_programs.programs import chip_fact
from cubecore.frontends.cpp.host_programs.tiling_calls import HostTilings
from cubecore.frontends.cpp.launch.child_process import Child, ChildSubject
from cubecore.frontends.cpp.launch.launch_options import TIMEOUT_S
from cubecore.frontends.cpp.launch.recording.bridge import Bridge, HostQuestion
from cubecore.frontends.cpp.operator_projects.element_types import FORMAT_ND
from cubecore.frontends.cpp.operator_projects.registration import Registration, registrations
from cubecore.frontends.cpp.wire import HostAsks

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
    """A tensor as an op_host is told of it; `values` are its bytes, none if they do not matter."""

    slot: int
    type: int
    shape: tuple[int, ...]
    values: bytes = b""

    def words(self, role: str, placed: Callable[[bytes], int]) -> Iterable[str]:
        """Return the words of a request; `placed` returns the address of bytes."""
        extents = (len(self.shape), *self.shape)
        address = placed(self.values) if self.values else 0
        numbers = (self.slot, self.type, FORMAT_ND, address, *extents)
        return (role, *map(str, numbers))


@dataclass(frozen=True, slots=True)
class HostRequest:
    """The tensors and attributes that a function of an op_host is called with."""

    registration: Registration
    inputs: tuple[GivenTensor, ...]
    outputs: tuple[GivenTensor, ...]
    attributes: tuple[tuple[str, ...], ...]

    def words(self, function: str, placed: Callable[[bytes], int]) -> list[str]:
        """Return the words of the request; `placed` returns the address of bytes."""
        own = self.registration
        words = [function, own.type, str(len(own.inputs)), str(len(own.outputs))]
        for role, tensors in (("input", self.inputs), ("output", self.outputs)):
            for tensor in tensors:
                words += tensor.words(role, placed)
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
        return registrations(self._asked("the op_host", lambda _: ["describe", short]))

    def tiling(self, request: HostRequest) -> HostTiling:
        """Return the results of an operator's tiling function.

        Raises
        ------
        CubecoreError
            If it fails.
        """
        what = f"the tiling function of {request.registration.type}"
        found = self._answers(what, "tile", request)
        workspaces = tuple(int(size) for size in found.get("workspace", ()))
        key, blocks = int(found["key"][0]), int(found["blocks"][0])
        data = bytes.fromhex(found["data"][0])
        templates = [line.split("\t") for line in found.get("template", ())]
        chosen = next((rest for own, *rest in templates if int(own) == key), ["", ""])
        return HostTiling(blocks, key, workspaces, data, found["atomic"] == ["1"], *chosen)

    def shapes(self, request: HostRequest) -> list[tuple[int, ...]]:
        """Return the shapes of the outputs.

        Raises
        ------
        CubecoreError
            If the function fails.
        """
        what = f"the shape inference of {request.registration.type}"
        found = self._answers(what, "shapes", request)
        return [tuple(int(n) for n in text.split(",") if n) for text in found.get("shape", ())]

    def types(self, request: HostRequest) -> list[int]:
        """Return the element types of the outputs, as numbers of ge::DataType.

        Raises
        ------
        CubecoreError
            If the function fails.
        """
        what = f"the type inference of {request.registration.type}"
        found = self._answers(what, "types", request)
        return [int(text) for text in found.get("type", ())]

    def _answers(self, subject: str, function: str, request: HostRequest) -> dict[str, list[str]]:
        found: dict[str, list[str]] = {}
        words = partial(request.words, function)
        for line in self._asked(subject, words, request.registration):
            what, _, rest = line.partition("\t")
            found.setdefault(what, []).append(rest)
        state = int(found["state"][0])
        if state != 0:
            name = _STATES.get(state, str(state))
            reason = found["reason"][0] or "it does not take these inputs"
            raise unable(subject, f"{subject} returned {name}", reason)
        return found

    def _asked(
        self,
        subject: str,
        words: Callable[[Callable[[bytes], int]], list[str]],
        own: Registration | None = None,
    ) -> list[str]:
        asked = ChildSubject(subject, self._timeout_s, ends="it returns")
        with Child(asked) as child:
            return _served(child, self._library, self._chip, words(child.placed), own)


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
    child: Child, library: Path, chip: Chip, words: Sequence[str], own: Registration | None
) -> list[str]:
    """Return the lines that an op_host answers."""
    lines: list[str] = []
    tilings = HostTilings(chip)

    def asked(question: HostQuestion) -> int | bytes:
        what, a, b, said, *_ = question
        if what == HostAsks.CHIP:
            return chip_fact(chip, a)
        if what == HostAsks.MATMUL_TILING:
            return tilings.answer(said, b)
        if what == HostAsks.REFUSED:
            raise unable(child.subject, f"{child.subject}: {said}")
        if what == HostAsks.ANSWER:
            lines.append(said)
        elif what == HostAsks.ABSENT and own is not None:
            child.remark = _absence(own, a, b)
        return 0

    texts = [word.encode("utf-8", "surrogateescape") for word in words]
    bridge = Bridge(child, host=asked)
    entry = child.symbol(library, "cubecore_op_host", answer_host=bridge.answer_host)
    bridge.start(entry, texts)
    return [*lines, f"reason\t{tilings.reason}"]
