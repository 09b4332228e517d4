"""An example on each instruction's page: a call with values, and what it makes of small numbers.

Both derive from the declaration: the values are those of the smallest legal instance, and the
numbers are what the reference engine computes.
"""

from collections import Counter
from collections.abc import Iterator
from dataclasses import MISSING, fields
from typing import Any, NamedTuple

import numpy as np
from tools.pages.site.text import table

from cubecore.chips import chip
from cubecore.chips.model import Chip
from cubecore.dtypes import ElementType, element_type
from cubecore.errors import CubecoreError
from cubecore.frontends.capi.calls.binding import forms
from cubecore.isa.catalogue import instructions
from cubecore.isa.declare.instruction import Instruction, Mem, Operand
from cubecore.isa.program.check import template_violations
from cubecore.isa.program.tree import Location
from cubecore.machine.execute import one_core
from cubecore.machine.execute.core import Core, CoreId
from cubecore.machine.memory.buffers import GlobalMemory, MemoryBuffer
from cubecore.machine.sanitize.finding_log import FindingLog
from cubecore.workflows.explain import variants_of

CHIPS = {"2201": "Ascend910B3", "3510": "Ascend950PR_9589"}
"""The chip that stands for an architecture."""
_SHOWN = 8
"""Elements of each operand that are shown."""
_APART = 512
"""Operands begin at multiples of so many bytes: whole fractals."""
_REFUSED = (CubecoreError, ValueError, TypeError, KeyError, AssertionError)


def smallest(cls: type[Instruction], on: Chip, fixed: dict[str, int]) -> Instruction | None:
    """Return the smallest legal instance with some parameters; None if none is tried."""
    for size in (1, 16, 32, 64, 128, 0):
        try:
            instance = cls(**(_simplest(cls, size) | fixed))
            if not template_violations(instance, on):
                return instance
        except _REFUSED:
            continue
    return None


def _simplest(cls: type[Instruction], size: int) -> dict[str, Any]:
    """Return values of the parameters that have no default, and two pipes that differ."""
    values: dict[str, Any] = {}
    for field in fields(cls):
        meta = field.metadata
        if field.name == "dst" and "S" in meta.get("options", ()):
            values |= {"src": "MTE2", "dst": "V"}
        if field.default is not MISSING or field.default_factory is not MISSING:
            continue
        if "types" in meta:
            values[field.name] = element_type(meta["types"][0], field.name)
        elif "options" in meta:
            values[field.name] = meta["options"][0]
        else:
            values[field.name] = max(meta.get("low", 0), size if "low" in meta else 0)
    return values


def example_of(cls: type[Instruction]) -> Iterator[str]:
    """Yield the example of an instruction; nothing if no chip that is timed has it."""
    arch = next((arch for arch in CHIPS if arch in cls.archs), None)
    if arch is None:
        return
    on = chip(CHIPS[arch])
    instance = smallest(cls, on, {})
    if instance is None:
        return
    yield from ("## Example", "", "```python", _call(instance), "```", "")
    rows = _executed(instance, on)
    if rows:
        yield from table(("operand", "element type", "first elements"), rows)
        yield f"Executed by the reference engine on one core of {on.name}: written operands after"
        yield from ("the call, the others before it.", "")


def _call(instance: Instruction) -> str:
    """Return the call in Python, or the parameters that are set where Python has no call."""
    kind = type(instance)
    names = [kind.names.get("c_api", "")]
    names += [name for dialect, name, _ in variants_of(kind) if dialect == "c_api"]
    for form in (form for name in names for form in forms(name) if form.kind is kind):
        if all(getattr(instance, name, value) == value for name, value in form.fixed.items()):
            values = [_value(getattr(instance, name, name)) for name in form.parameters]
            return f"core.{form.call}({', '.join([*form.operands, *values])})"
    given = ((each, getattr(instance, each.name)) for each in fields(instance))
    return f"{kind.name}({', '.join(f'{f.name}={_value(v)}' for f, v in given if v != f.default)})"


def _value(value: object) -> str:
    return f'"{value}"' if isinstance(value, ElementType) else str(value)


class _Slot(NamedTuple):
    """An operand in its memory: where it begins there, and the bytes that each element is at."""

    operand: Operand
    buffer: MemoryBuffer
    address: int
    first: int
    starts: Any
    element: ElementType


def _executed(instance: Instruction, on: Chip) -> list[tuple[str, str, str]]:
    """Return the operands' first elements; none where the instruction needs what others set."""
    try:
        return _rows(instance, on)
    except (*_REFUSED, IndexError, AttributeError):
        return []


def _rows(instance: Instruction, on: Chip) -> list[tuple[str, str, str]]:
    log = FindingLog()
    slots: list[_Slot] = []
    for sub in (0, 1):  # Cube memories are the AIC's, the others an AIV's
        gm = GlobalMemory()
        core = Core(CoreId(0, sub), on, gm, log, one_core.execute, _never, _never)
        mems = {o.mem for o in instance.declared} - {Mem.GM}
        if all(core.memory(mem) is not None for mem in mems):
            slots = _slots(instance, core, gm)
            break
    before = [_elements(slot) for slot in slots]
    where = Location(instance.name, 1, "example")
    core.execute(core, (instance, tuple(slot.address for slot in slots), where))
    if not slots or next(iter(log), None) is not None:
        return []
    rows = []
    for slot, read in zip(slots, before, strict=True):
        written = slot.operand.access.value != "read"
        name = f"`{slot.operand.name}`{' (written)' if written else ''}"
        rows.append((name, str(slot.element), _elements(slot) if written else read))
    return rows


def _slots(instance: Instruction, core: Core, gm: GlobalMemory) -> list[_Slot]:
    """Return the operands one behind another, what is read filled with small numbers."""
    ends: Counter[Mem] = Counter()
    slots = []
    for number, operand in enumerate(instance.declared):
        element = instance.element(operand)
        width = element.size_bytes
        offsets = np.ravel(instance.offsets(operand.name))
        count = int(offsets.max()) + 1
        if operand.mem is Mem.GM:
            tensor = gm.allocate(operand.name, count * width)
            buffer, address, first = tensor.buffer, tensor.address, 0
        else:
            memory = core.memory(operand.mem)
            assert memory is not None
            buffer, address, first = memory, ends[operand.mem], ends[operand.mem]
            ends[operand.mem] += -(-count * width // _APART) * _APART
        if operand.access.value != "write":
            raw = _numbers(element, count, number)
            buffer.data[first : first + raw.size] = raw
            buffer.valid[first : first + raw.size] = 1
        slots.append(_Slot(operand, buffer, address, first, offsets[:_SHOWN] * width, element))
    return slots


def _numbers(element: ElementType, count: int, number: int) -> Any:
    """Return small numbers as bytes: other ones for each operand."""
    kind = np.dtype(np.uint8) if element.numpy.kind == "V" else element.numpy
    values = np.arange(count * element.size_bytes // kind.itemsize)
    return (values * (2 * number + 1) % 16 + number).astype(kind).view(np.uint8)


def _elements(slot: _Slot) -> str:
    """Return the first elements in words."""
    kind = slot.element.numpy
    shown = []
    for start in slot.starts.tolist():
        raw = slot.buffer.data[slot.first + start : slot.first + start + kind.itemsize]
        if kind.kind == "V":
            shown.append("-".join(str(byte) for byte in raw[:4].tolist()) + "-..")
        else:
            shown.append(f"{raw.view(kind)[0].item():g}")
    return " ".join(shown)


def _never(_: Core, sync: Instruction) -> None:
    raise AssertionError(f"an example met {sync}")


def executed_examples() -> dict[str, list[tuple[str, str, str]]]:
    """Return the rows of each instruction whose example is executed."""
    found = {}
    for name, cls in instructions().items():
        arch = next((arch for arch in CHIPS if arch in cls.archs), None)
        instance = None if arch is None else smallest(cls, chip(CHIPS[arch]), {})
        if instance is not None and (rows := _executed(instance, chip(CHIPS[arch or ""]))):
            found[name] = rows
    return found
