"""The manual of register instructions: each declaration as text, its distributions and casts."""

from collections.abc import Mapping, Sequence
from functools import cache

from cubecore.isa.vector.registers.c_api.names import c_names
from cubecore.isa.vector.registers.operation import Form, RegisterOperation
from cubecore.isa.vector.registers.operations.catalogue import operations
from cubecore.isa.vector.registers.types_taken import types_in_words

_NAMESPACES = ("AscendC::Reg::", "AscendC::MicroAPI::", "Reg::", "MicroAPI::")
_UNTYPED = frozenset({Form.BARRIER, Form.AR})


def registers_called(name: str) -> tuple[RegisterOperation, ...]:
    """Return the register instructions with a name: in C++ with or without namespace, in C, Python.

    Python's masks take their width as an argument, with which C's names end.
    """
    bare = next((name[len(n) :] for n in _NAMESPACES if name.startswith(n)), name)
    wanted = {bare, f"{bare}_b32"}
    return tuple(each for each in operations().values() if not wanted.isdisjoint(_names(each)))


def spellings_of_registers() -> tuple[str, ...]:
    """Return the names of register instructions."""
    return tuple(dict.fromkeys(name for each in operations().values() for name in _names(each)))


def _names(operation: RegisterOperation) -> tuple[str, ...]:
    known = (operation.name, operation.spelling, *operation.older, *_in_c(operation))
    return tuple(dict.fromkeys(known))


def _in_c(operation: RegisterOperation) -> tuple[str, ...]:
    """Return its names in C: of a distribution, a comparison or a rounding each, too."""
    return _all_in_c().get(operation.name, ())


@cache
def _all_in_c() -> Mapping[str, tuple[str, ...]]:
    """Return the names in C by instruction."""
    found: dict[str, dict[str, None]] = {}
    for name, rows in c_names().items():
        for row in rows:
            found.setdefault(row.operation, {})[name] = None
    return {operation: tuple(names) for operation, names in found.items()}


_CONVERSION_NAMES = (
    "asc_<from>2<to>, perhaps with a rounding, _sat, and _v2 to _v4 for the other layouts"
)


def describe_register(operation: RegisterOperation) -> str:
    """Return a register instruction's declaration as text."""
    lines = [f"{title_of(operation)}: register instruction", "", f"{operation.doc}.", ""]
    lines.append(f"  {'operands':<22}{operation.form.value}")
    if operation.form not in _UNTYPED:
        other = "any: its bytes alone count" if operation.form is Form.STREAM else "of a mask"
        lines.append(f"  {'types':<22}{types_in_words(operation) or other}")
    lines.append(f"  {'cycles a register':<22}{_cycles(operation)}")
    lines.append(f"  {'latency, cycles':<22}{_latency(operation)}")
    alone = "alone" if operation.alone else "beside another instruction"
    lines.append(f"  {'issued':<22}{alone}")
    older = [f"MicroAPI::{name}" for name in (operation.spelling, *operation.older)]
    names = [f"Reg::{operation.spelling}", *dict.fromkeys(older)]
    lines += ["", f"Names: cpp {', '.join(names)}"]
    in_c = _CONVERSION_NAMES if operation.name == "Cast" else ", ".join(_in_c(operation))
    lines += [f"Names: c_api {in_c}"] if in_c else []
    lines += [f"Uncertain: {text}" for text in operation.uncertain]
    return "\n".join([*lines, "From: asc-devkit, Reg vector compute"]) + "\n"


def title_of(operation: RegisterOperation) -> str:
    """Return the name in C++, and where others share it our own behind it."""
    shared = operation.spelling != operation.name
    return f"{operation.spelling} ({operation.name})" if shared else operation.name


def _cycles(operation: RegisterOperation) -> str:
    table = dict(operation.cycles)
    others = table.get("", 1)
    results = dict.fromkeys((*operation.types, *(to for _, to, _ in operation.pairs)))
    groups: dict[int, list[str]] = {}
    for name in results:
        groups.setdefault(table.get(name, others), []).append(name)
    if len(groups) < 2:
        return str(next(iter(groups), others))
    return "; ".join(f"{count} of {', '.join(names)}" for count, names in groups.items())


def _latency(operation: RegisterOperation) -> str:
    first, *others = sorted(operation.latency)
    return "; ".join([str(first[1]), *(f"{cycles} of {name}" for name, cycles in others)])


def registers_page() -> str:
    """Return the manual's page."""
    lines = [
        "# Register instructions",
        "",
        "Vector functions of Ascend 950 (architecture 3510) are made of these. Generated from the",
        "declarations; `cubecore explain Reg::NAME` prints one, and the older namespace `MicroAPI`",
        "has the same names. A line `Uncertain` marks what no public page settles. Lanes without a",
        "bit of the mask become 0, or with `MERGING` stay. Other types than those that are listed",
        "are refused with the line. In Python kernels the names of the C API are methods of the",
        "core in a function with `@cubecore.vector_function`. Latencies are published for few",
        "instructions; any other has the 7 cycles of Add here.",
        "",
    ]
    for operation in sorted(operations().values(), key=lambda each: (each.spelling, each.name)):
        _, _, rest = describe_register(operation).partition("\n")
        lines += [f"## {title_of(operation)}", "", "```text", rest.strip(), "```", ""]
    return "\n".join([*lines, *_distributions(), "", *_conversions(), ""])


def _distributions() -> Sequence[str]:
    from cubecore.isa.vector.registers.operations.moves import LOADS, STORES

    lines = ["## Distributions", "", "| move | distribution | bytes of UB | alignment | mask |"]
    lines.append("|---|---|---|---|---|")
    for name, load in LOADS.items():
        if not name.startswith("BLOCK"):
            lines.append(f"| load | `{name}` | {load.span} | {load.align} | none |")
    for name, store in STORES.items():
        if not name.startswith("BLOCK"):
            mask = "ignored" if store.masked is None else "lanes"
            lines.append(f"| store | `{name}` | {store.span} | {store.align} | {mask} |")
    return lines


def _conversions() -> Sequence[str]:
    from cubecore.isa.vector.registers.operations.convert import CASTS

    lines = ["## Conversions", "", "| from | to | rounding |", "|---|---|---|"]
    return [
        *lines,
        *(
            f"| {source} | {target} | {', '.join(f'`{word}`' for word in words)} |"
            for (source, target), words in CASTS.items()
        ),
    ]
