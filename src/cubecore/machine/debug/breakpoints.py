"""Breakpoints and watches: their syntax, and the state of a run that is stopped."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import PurePath
from typing import Any

from cubecore.errors import CubecoreError, did_you_mean, refuse, unable
from cubecore.isa.catalogue import spelled, spellings
from cubecore.isa.declare.instruction import Instruction, Mem
from cubecore.isa.program.tree import Location
from cubecore.isa.scalar.sync import Sync
from cubecore.isa.vector.registers.vector_function import VectorFunction
from cubecore.machine.execute.core import Core
from cubecore.machine.memory.buffers import GlobalTensor

_SHOWN_BYTES = 16
MEMORIES = {word: mem for mem in Mem for word in (mem.name, mem.label.upper())}
"""Every memory by its names, in capitals."""
_ACCESS = {"r": "read", "w": "write", "rw": ""}
_HOW = {"read": "reads", "write": "writes", "update": "reads and writes"}


@dataclass(frozen=True, slots=True)
class Range:
    """Bytes that are watched: `size` from `start` on, of a local memory or of a tensor by name.

    `access` is read or write, and "" for both.
    """

    text: str
    mem: Mem
    name: str
    start: int
    size: int
    access: str = ""

    def __str__(self) -> str:
        """Return the text that it was parsed from."""
        return self.text

    @classmethod
    def of(cls, text: str) -> "Range":
        """Return the range that ``UB:0x100+64`` spells, or ``c:0+64``: of the tensor c.

        ``/r`` or ``/w`` behind it is for reads or writes alone.

        Raises
        ------
        RequestError
            If the text does not have this form.
        """
        match = re.fullmatch(r"(\w+):(\w+)\+(\w+)(?:/(r|w|rw))?", text)
        numbers = [] if match is None else [_number(match[2]), _number(match[3])]
        if match is None or None in numbers or numbers[1] == 0:
            raise refuse("a watch", "be MEMORY:START+BYTES, such as UB:0x100+64", repr(text))
        mem = MEMORIES.get(match[1].upper(), Mem.GM)
        if match[1].upper() == "GM":
            raise refuse("a watch", "name a tensor of global memory, such as c:0+64", repr(text))
        name = match[1] if mem is Mem.GM else mem.label
        start, size = (int(number or 0) for number in numbers)
        return cls(text, mem, name, start, size, _ACCESS[match[4] or "rw"])

    def bytes_of(self, tensors: Mapping[str, GlobalTensor]) -> tuple[int, int] | None:
        """Return the addresses [low, high), or None for a tensor that is not there."""
        if self.mem is not Mem.GM:
            return self.start, self.start + self.size
        tensor = tensors.get(self.name)
        if tensor is None:
            return None
        return tensor.address + self.start, min(tensor.address + self.start + self.size, tensor.end)


def _number(text: str) -> int | None:
    try:
        return int(text, 0)
    except ValueError:
        return None


@dataclass(frozen=True, slots=True)
class Hit:
    """An access to watched bytes: [start, end) of a memory are the first that it shares with them.

    `old` and `new` are what these bytes held before the instruction and after it.
    """

    watch: Range
    access: str
    operand: str
    start: int
    end: int
    old: bytes
    new: bytes

    def __str__(self) -> str:
        """Return the sentence."""
        what = f"{self.operand} {_HOW[self.access]} [{self.start}, {self.end}) of {self.watch.name}"
        if self.access == "read":
            return f"{what}: {_hex(self.old)}"
        return f"{what}: {_hex(self.old)} -> {_hex(self.new)}"


def _hex(raw: bytes) -> str:
    more = " ..." if len(raw) > _SHOWN_BYTES else ""
    return raw[:_SHOWN_BYTES].hex(" ") + more


@dataclass(frozen=True, slots=True)
class Stop:
    """The point at which a run stands: an instruction, an access to watched bytes, or an end.

    `reason` is break, step, watch, or end (the core has nothing more to issue). `number` counts the
    core's instructions from 1. `variables` are the kernel's, in the function that issued this.
    """

    reason: str
    core: Core
    number: int
    instruction: Instruction
    addresses: tuple[int, ...]
    location: Location
    hits: tuple[Hit, ...] = ()
    variables: Mapping[str, Any] = field(default_factory=dict)

    @property
    def operands(self) -> dict[str, int]:
        """The address of each operand."""
        return dict(zip(self._operand_names, self.addresses, strict=False))

    @property
    def locations(self) -> tuple[Location, ...]:
        """The location, and of a vector function those of its calls, at which it can be met.

        A function is one instruction: the run stops before it, whichever of its lines is meant.
        """
        if isinstance(self.instruction, VectorFunction):
            return (self.location, *self.instruction.program.entries.locations)
        return (self.location,)

    @property
    def _operand_names(self) -> list[str]:
        return [operand.name for operand in self.instruction.operands()]

    @property
    def names(self) -> dict[str, Any]:
        """Return the names of an expression: the kernel's variables and the number of issues.

        ``number``, the instruction's parameters, and its operands' addresses; the kernel's own
        variables go first (``core.block_idx`` is the core's, where it is called core).
        """
        parameters = {n: v for n, v in vars(self.instruction).items() if not n.startswith("_")}
        return {"number": self.number, **parameters, **self.operands, **self.variables}

    def __str__(self) -> str:
        """Return a line, and a line for each hit."""
        template = self.instruction
        if self.reason == "end":
            return f"end: {self.core.id} after #{self.number}, at {self.location}"
        at = f"{self.core.id} #{self.number}"
        head = f"{self.reason}: {at} {template.name} on {_pipe(template)} at {self.location}"
        return "\n".join([head, *(f"  {hit}" for hit in self.hits)])

    def about(self) -> str:
        """Return the instruction's operands and parameters, a line each."""
        template, lines = self.instruction, []
        for operand, address in zip(template.operands(), self.addresses, strict=False):
            kind, where = template.element(operand), _address_text(self.core, operand.mem, address)
            lines.append(f"  {operand.name} {_HOW[operand.access.value]} {kind} at {where}")
        given = {n: v for n, v in vars(template).items() if not n.startswith("_") and v is not None}
        if given:
            lines.append("  " + ", ".join(f"{n}={v}" for n, v in given.items()))
        return "\n".join(lines)


def _pipe(template: Instruction) -> str:
    """Return the pipe of an instruction; of a flag or a barrier, the one that it concerns."""
    if not isinstance(template, Sync):
        return template.pipe.value
    fields = vars(template)
    return str(fields.get("dst" if template.waits else "src") or fields.get("on") or "S")


def _address_text(core: Core, mem: Mem, address: int) -> str:
    tensor = core.gm.at(address) if mem is Mem.GM else None
    return (
        f"{mem.label} {address}"
        if tensor is None
        else f"{tensor.name} + {address - tensor.address}"
    )


@dataclass(frozen=True, slots=True)
class Break:
    """A breakpoint: the name of an instruction, the number N of a core, or a source line.

    A line inside a vector function stops before the function.

    With a `condition` only where that expression of `Stop.names` holds.
    """

    text: str
    names: frozenset[str] = frozenset()
    number: int = 0
    file: str = ""
    line: int = 0
    condition: str = ""

    def __str__(self) -> str:
        """Return the text that it was parsed from."""
        return self.text

    @classmethod
    def of(cls, text: str) -> "Break":
        """Return what ``asc_add``, ``#12``, ``kernel.py:14`` or ``:14`` asks for.

        ``... if EXPRESSION`` adds a condition.

        Raises
        ------
        RequestError
            If no instruction has that name, or the number is below 1.
        """
        where, _, condition = (part.strip() for part in text.partition(" if "))
        if match := re.fullmatch(r"#(\d+)", where):
            if int(match[1]) < 1:
                raise refuse("a break", "count instructions from #1", where)
            return cls(text, number=int(match[1]), condition=condition)
        if match := re.fullmatch(r"(.*):(\d+)", where):
            return cls(text, file=match[1], line=int(match[2]), condition=condition)
        classes = spelled(where)
        if not classes:
            need = "be an instruction, #NUMBER or FILE:LINE"
            raise refuse("a break", need, repr(where), did_you_mean(where, spellings()))
        return cls(text, frozenset(c.name for c, _ in classes), condition=condition)

    def meets(self, stop: Stop) -> bool:
        """True if the run stops there.

        Raises
        ------
        RequestError
            If the condition cannot be evaluated.
        """
        if self.number and stop.number != self.number:
            return False
        if self.names and stop.instruction.name not in self.names:
            return False
        if self.line and not any(map(self._at, stop.locations)):
            return False
        return not self.condition or bool(evaluated(self.condition, stop.names))

    def _at(self, where: Location) -> bool:
        # The shorter path must be the end of the longer one: `kernel.py` and `a/kernel.py` both
        # name `/home/me/a/kernel.py`.
        wanted, parts = PurePath(self.file).parts, PurePath(where.file).parts
        shared = min(len(wanted), len(parts))
        same = not wanted or parts[len(parts) - shared :] == wanted[len(wanted) - shared :]
        return same and where.line == self.line


def evaluated(expression: str, names: Mapping[str, object]) -> Any:
    """Return what an expression of the user's is among `names`.

    Raises
    ------
    RequestError
        If the expression cannot be evaluated.
    """
    try:
        return eval(expression, {"__builtins__": _BUILTINS}, dict(names))  # noqa: S307 - the user's own words
    except CubecoreError:
        raise
    except Exception as error:  # noqa: BLE001 - whatever the user's words do is a sentence
        got = f"{type(error).__name__}: {error}"
        raise unable("the expression", f"cannot evaluate {expression!r}: {got}") from None


_BUILTINS = {f.__name__: f for f in (abs, bin, bool, float, hex, int, len, list, max, min, str)}
