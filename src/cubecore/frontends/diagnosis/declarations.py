"""Declarations of arrays, tensors and queues in the user's file, as far as one line shows them."""

import re
from dataclasses import dataclass

from cubecore.frontends.diagnosis.arguments import mentions, source_lines

_NAME = re.compile(r"[A-Za-z_]\w*")
_TAKEN = re.compile(
    r"\b(\w+)\s*=\s*([\w.\[\]>-]+?)(?:\.|->)(?:template\s+)?(Get|AllocTensor|DeQue)\b"
)


@dataclass(frozen=True, slots=True)
class TakenTensor:
    """A tensor that a call of a queue or buffer gives: its name, both of these, and the line."""

    name: str
    giver: str
    call: str
    line: int


@dataclass(frozen=True, slots=True)
class Declared:
    """The call or the declaration that gives a local array its bytes, and its line."""

    by: str
    line: int


def lines_with(file: str, pattern: str) -> list[int]:
    """Return the lines of a file that match a pattern."""
    found = re.compile(pattern)
    return [number for number, line in enumerate(source_lines(file), 1) if found.search(line)]


def tensor_of(file: str, queue: str, call: str) -> TakenTensor | None:
    """Return the tensor that a call of a queue gives, if one line does."""
    taken = [each for each in _taken(file) if (each.giver, each.call) == (queue, call)]
    return taken[0] if len(taken) == 1 else None


def _taken(file: str) -> list[TakenTensor]:
    """Return the tensors that a file takes from queues and buffers by name."""
    return [
        TakenTensor(match[1], match[2], match[3], number)
        for number, line in enumerate(source_lines(file), 1)
        for match in _TAKEN.finditer(line)
    ]


def array_name(argument: str) -> str:
    """Return the array that an argument such as ``c + 8`` or ``c[8]`` begins with."""
    match = _NAME.match(argument)
    return match.group() if match else ""


def declared(file: str, argument: str) -> Declared | None:
    """Return the call or declaration of an array, if one line gives it its bytes."""
    name = array_name(argument)
    if not name:
        return None
    givers = {each.giver for each in _taken(file) if each.name == name}
    if len(givers) == 1:
        giver = re.escape(givers.pop())
        lines = lines_with(file, rf"\bInitBuffer\s*\(\s*{giver}\b")
        return Declared("InitBuffer", lines[0]) if len(lines) == 1 else None
    lines = _declaring(file, name)
    return Declared("its declaration", lines[0]) if len(lines) == 1 else None


def may_be_queued(file: str, argument: str) -> bool:
    """Return whether a file has queues, and gives a tensor no address of its own."""
    name = array_name(argument)
    return mentions(file, "TQue") and not (name and _declaring(file, name))


def queue_of(file: str, argument: str) -> str:
    """Return the queue that gives the tensor of an argument, if the file names just one."""
    name = array_name(argument)
    queues = {each.giver for each in _taken(file) if each.name == name and each.call != "Get"}
    return queues.pop() if len(queues) == 1 else ""


def _declaring(file: str, name: str) -> list[int]:
    """Return the lines that declare an array by its size or address."""
    array = rf"__(?:ubuf|cbuf|ca|cb|cc)__\s+\w+\s+{name}\s*\["
    tensor = rf"\bLocalTensor<[^;]*>\s[^;]*\b{name}\s*\(|\b{name}\s*=\s*[\w.]+\.Tensor\s*\("
    of_python = rf"\b{name}\b[^=]*=\s*.*\bcore\.(?:ubuf|cbuf|ca|cb|cc)\b"
    return lines_with(file, f"{array}|{tensor}|{of_python}")


def global_start(file: str, argument: str) -> int | None:
    """Return the line that says where a global tensor begins, if one line does."""
    name = array_name(argument)
    lines = lines_with(file, rf"\b{name}\.SetGlobalBuffer\b") if name else []
    return lines[0] if len(lines) == 1 else None
