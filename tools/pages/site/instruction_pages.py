"""A page for each instruction: its names first, then what it does, its cycles and its operands."""

import inspect
from collections.abc import Iterator
from dataclasses import fields
from inspect import getdoc

from tools.pages.site.instruction_examples import CHIPS, example_of, smallest
from tools.pages.site.text import cell, escaped, table

from cubecore.chips import chip
from cubecore.chips.model import Chip
from cubecore.errors import CubecoreError
from cubecore.frontends.capi.calls.binding import forms
from cubecore.frontends.tik.host.instance import Tik
from cubecore.isa.catalogue import instructions
from cubecore.isa.declare.instruction import Instruction, Pipe
from cubecore.isa.declare.not_modelled import NOT_MODELLED, NOT_MODELLED_3510
from cubecore.timing.pipes.core_clock import cost_of
from cubecore.workflows.explain import parameter_range, variants_of

_DIALECTS = {"c_api": "C API, and core.NAME in Python", "cpp": "C++ class API", "tik": "TIK"}
_COUNTS = ("repeat", "repeats", "repeat_times", "burst_count", "n_burst", "m", "n", "k")
"""Parameters that an instruction's cycles are shown for, the first that it has."""
_SIZES = (1, 16, 64, 255)


def index() -> str:
    """Return the tables of instructions, by pipe, and of names that are not modelled."""
    lines = [
        "# Instructions",
        "",
        "The instructions that kernels issue, by the pipe that executes them. Each has a page with"
        " its names, operands, parameters and cycles; `cubecore explain NAME` prints it, for any"
        " dialect's spelling.",
        "",
    ]
    for pipe in Pipe:
        named = [cls for cls in instructions().values() if cls.pipe is pipe]
        if named:
            head = ("instruction", "names", "does", "architectures")
            rows = (
                (
                    f"[{cls.name}](instructions/{cls.name}.md)",
                    ", ".join(f"`{name}`" for name in dict.fromkeys(cls.names.values())),
                    cell((getdoc(cls) or "").split("\n", 1)[0]),
                    ", ".join(cls.archs),
                )
                for cls in named
            )
            lines += [f"## Pipe {pipe.value}", "", *table(head, rows)]
    lines += ["## Names that are not modelled", ""]
    named_not = NOT_MODELLED | NOT_MODELLED_3510
    lines += table(("C API", "why"), ((f"`{n}`", cell(why)) for n, why in named_not.items()))
    return "\n".join(lines)


def page(cls: type[Instruction]) -> str:
    """Return the page of an instruction."""
    lines = [f"# {_title(cls)}", "", *_names(cls)]
    lines += [f"Pipe **{cls.pipe.value}**, architectures {', '.join(cls.archs)}.", ""]
    lines += [escaped(getdoc(cls) or ""), "", *example_of(cls), *_cycles(cls)]
    if cls.declared:
        head = ("operand", "access", "memory", "axes", "layout", "alignment")
        rows = (
            (f"`{o.name}`", o.access.value, o.mem.label, o.axes, o.layout or "", f"{o.alignment} B")
            for o in cls.declared
        )
        lines += ["## Operands", "", *table(head, rows)]
    documented = [field for field in fields(cls) if "doc" in field.metadata]
    if documented:
        rows = (
            (f"`{f.name}`", cell(f.metadata["doc"] + parameter_range(f.metadata)))
            for f in documented
        )
        lines += ["## Parameters", "", *table(("parameter", "meaning"), rows)]
    if cls.uncertain:
        lines += ["## Uncertain", "", *(f"- {escaped(text)}" for text in cls.uncertain), ""]
    return "\n".join([*lines, f"Source: {escaped(cls.source)}", ""])


def _title(cls: type[Instruction]) -> str:
    """Return the names that users search for, the C++ one first, and the instruction's."""
    spelled = [cls.names[d].partition("(")[0] for d in ("cpp", "c_api", "tik") if d in cls.names]
    return ", ".join(dict.fromkeys([*spelled, cls.name]))


def _names(cls: type[Instruction]) -> Iterator[str]:
    """Yield the calls by dialect, with the parameters where the dialect has them in one order."""
    rows = [(_DIALECTS.get(d, d), f"`{_call(cls, d, name)}`", "") for d, name in cls.names.items()]
    rows += [(_DIALECTS.get(d, d), f"`{name}`", cell(w)) for d, name, w in variants_of(cls)]
    if any(told for *_, told in rows):
        yield from table(("in", "call", "with"), rows)
    elif rows:
        yield from table(("in", "call"), (row[:2] for row in rows))


def _call(cls: type[Instruction], dialect: str, name: str) -> str:
    if dialect == "c_api":
        mine = [form for form in forms(name) if form.kind is cls]
        if mine:
            return f"{name}({', '.join([*mine[0].operands, *mine[0].parameters])})"
    if dialect == "tik":
        method = getattr(Tik, name, None)
        if method is not None:
            named = inspect.Parameter.POSITIONAL_OR_KEYWORD
            taken = inspect.signature(method).parameters.values()
            listed = [p.name for p in taken if p.kind is named and p.name != "self"]
            return f"{name}({', '.join(listed)})" if listed else name
    plain, _, where = name.partition("(")
    return f"{plain}  // {where.rstrip(')')}" if where else name


def _cycles(cls: type[Instruction]) -> Iterator[str]:
    """Yield the cycles that the pipe is busy, at the smallest instance and at larger counts."""
    documented = {field.name: field for field in fields(cls) if "doc" in field.metadata}
    counted = next((name for name in _COUNTS if name in documented), None)
    rows = []
    for arch, name in CHIPS.items():
        if arch not in cls.archs:
            continue
        sizes = _SIZES if counted else (1,)
        costs = [_cost(cls, chip(name), {counted: size} if counted else {}) for size in sizes]
        if any(cost is not None for cost in costs):
            rows.append((name, *("" if cost is None else f"{cost:,}" for cost in costs)))
    if rows:
        yield from ("## Cycles of the pipe", "")
        heads = [f"{counted} = {size}" for size in _SIZES] if counted else ["cycles"]
        yield from table(("chip", *heads), rows)
        yield from (
            "From the timing model, with every other parameter at its smallest (strides too).",
            "",
        )


def _cost(cls: type[Instruction], on: Chip, fixed: dict[str, int]) -> int | None:
    """Return the busy cycles of the simplest legal instance with some parameters."""
    instance = smallest(cls, on, fixed)
    if instance is None:
        return None
    try:
        return cost_of(instance, on).busy
    except (CubecoreError, ValueError, TypeError, KeyError, AssertionError):
        return None
