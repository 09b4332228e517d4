"""Refusal of register instructions between element types that their pages do not list.

Conversions that lack are findings of their own (`checks.forms`), so Cast is let through.
"""

import numpy as np

from cubecore.errors import RequestError, Violation
from cubecore.isa.program.tree import Location
from cubecore.isa.vector.registers.folding import Indices
from cubecore.isa.vector.registers.operation import Call, RegisterOperation


def require_types(
    table: tuple[Call, ...], locations: tuple[Location, ...], calls: Indices, places: Indices
) -> None:
    """Refuse calls whose instruction does not take their types, each where it is first made.

    `calls` are the numbers in `table` of a body's calls, `places` those of their locations.

    Raises
    ------
    RequestError
        If there are such calls; its sentences begin with the location.
    """
    violations = []
    for number, call in enumerate(table):
        if call.operation.name != "Cast" and not call.operation.takes(call):
            first = int(np.flatnonzero(calls == number)[0])
            violations.append(_violation(call).within(str(locations[places[first]])))
    if violations:
        raise RequestError(violations)


def _violation(call: Call) -> Violation:
    operation = call.operation
    if not operation.pairs:
        listed = ", ".join(operation.types)
        return Violation(operation.name, f"take one of {listed}", call.dtype.name)
    source, target = call.source.name, call.dtype.name
    modes = operation.pairs_of(call.mode)
    results = [result for given, result in modes if given == source]
    if results:
        requirement = f"give {' or '.join(results)} of {source}"
        return Violation(operation.name, requirement, target)
    sources = dict.fromkeys(given for given, _ in modes)
    return Violation(operation.name, f"take one of {', '.join(sources)}", source)


def types_in_words(operation: RegisterOperation) -> str:
    """Return the types of an instruction for its manual, "" where it has masks alone."""
    if not operation.pairs:
        return ", ".join(operation.types)
    words = []
    for mode in dict.fromkeys(mode for _, _, mode in operation.pairs):
        results: dict[str, list[str]] = {}
        for source, target, of in operation.pairs:
            if of == mode:
                results.setdefault(source, []).append(target)
        listed = "; ".join(
            source if targets == [source] else f"{source} to {', '.join(targets)}"
            for source, targets in results.items()
        )
        words.append(f"{mode}: {listed}" if mode else listed)
    return "; ".join(words)
