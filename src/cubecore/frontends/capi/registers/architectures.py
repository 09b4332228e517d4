"""Calls of another architecture than the chip's: refused, with what replaces them there."""

from collections.abc import Mapping, Sequence
from functools import cache

from cubecore.chips.catalog import default_chip_of
from cubecore.chips.model import Chip
from cubecore.errors import CubecoreError, unable
from cubecore.frontends.capi.calls.binding import forms
from cubecore.frontends.capi.calls.bound_calls import bound_call
from cubecore.frontends.source_locations import ArchitectureError
from cubecore.isa.program.tree import Location

REGISTERS_OF = "3510"
"""The architecture whose vector unit computes on registers."""
_EARLY, _LATE = "2201", REGISTERS_OF


def no_registers(where: Location, subject: str, what: str, chip: Chip) -> ArchitectureError:
    """Return the refusal of registers on a chip that has none."""
    sentence = f"{what} is of architecture {REGISTERS_OF} (Ascend 950); {chip.name} is {chip.arch}"
    remedy = f"run it on {default_chip_of(REGISTERS_OF)}"
    return ArchitectureError.at(where, unable(subject, sentence, remedy))


@cache
def _home_of(name: str, arch: str) -> str:
    """Return the architecture whose call a name is, if it is not `arch`'s; else nothing.

    Instructions of 2201 that stand for functions of 3510's class API, which Python kernels do not
    have, are 2201's.
    """
    known = forms(name)
    own = [f for f in known if arch in f.kind.archs and not (f.kind.carried and arch == _LATE)]
    if own or not known:
        return ""
    return _EARLY if _EARLY in known[0].kind.archs else known[0].kind.archs[0]


def require_own_call(name: str, chip: Chip, where: Location) -> None:
    """Refuse a call that the chip's architecture does not have.

    Raises
    ------
    ArchitectureError
        If it is of another architecture.
    """
    home = _home_of(name, chip.arch)
    if not home:
        return
    from cubecore.frontends.capi.registers.calls import overloads

    call = forms(name)[0]
    on_memory = " on UB" if call.operands and overloads(name) is not None else ""
    sentence = f"{name}{on_memory} is of architecture {home}; {chip.name} is {chip.arch}"
    remedy = f"run it on {default_chip_of(home)}"
    if call.kind.carried and chip.arch == _LATE:
        instead = f"{name} on registers" if on_memory else "registers"
        remedy = f"use {instead} in a function with @cubecore.vector_function"
    raise ArchitectureError.at(where, unable(name, sentence, remedy))


def of_another_architecture(
    name: str, arguments: Sequence[object], keywords: Mapping[str, object], chip: Chip
) -> CubecoreError | None:
    """Return the refusal of arguments that another architecture's call of a name takes.

    None where no architecture takes them.
    """
    own = forms(name, chip.arch)
    for other in (_EARLY, _LATE):
        if other == chip.arch or {f.kind for f in forms(name, other)} == {f.kind for f in own}:
            continue
        try:
            bound_call(name, arguments, keywords, other)
        except CubecoreError:
            continue
        sentence = f"{name} takes these arguments on architecture {other}; {chip.name} is "
        takes = ", ".join((*own[0].operands, *own[0].parameters))
        return unable(name, f"{sentence}{chip.arch}, where it takes {takes}")
    return None
