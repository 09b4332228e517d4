"""The catalogue: every declared instruction, by name and by its spellings in each dialect."""

from collections.abc import Mapping
from functools import cache
from importlib import import_module
from types import MappingProxyType
from typing import Any

from cubecore.errors import refuse
from cubecore.isa.declare.instruction import DECLARED, Instruction

MODULES = (
    "mte.copies_unaligned_3510",
    "scalar.caches",
    "mte.load3d_v1",
    "cube.mad",
    "mte.fill",
    "cube.fixpipe",
    "cube.fixpipe_registers",
    "cube.fixpipe_post",
    "cube.fixpipe_3510",
    "cube.fixpipe_to_ub",
    "mte.copies_joined_core",
    "scalar.store",
    "scalar.atomics",
    "mte.load2d_3510",
    "mte.load3d",
    "mte.load3d_3510",
    "mte.copies",
    "mte.copies_3510",
    "mte.partner",
    "cube.mad_mx",
    "mte.copies_side_paths",
    "mte.copies_nd_3510",
    "mte.load_image",
    "scalar.bits",
    "declare.scale_registers",
    "cube.mad_sparse",
    "scalar.sync",
    "scalar.control_registers",
    "scalar.system_variables",
    "scalar.ub_checks",
    "vector.elementwise.binary",
    "vector.elementwise.broadcast_3510",
    "vector.elementwise.compare",
    "vector.elementwise.convert",
    "vector.elementwise.dequantise",
    "vector.elementwise.fill",
    "vector.common.forms",
    "vector.elementwise.functions_3510",
    "vector.elementwise.fused",
    "vector.permute.gather",
    "vector.permute.gather_mask",
    "vector.registers.indexed_function",
    "vector.common.mask",
    "vector.permute.copies",
    "vector.permute.region_proposals",
    "vector.permute.reduce",
    "vector.permute.reduce_3510",
    "vector.elementwise.select",
    "vector.permute.sort",
    "vector.permute.region_suppression",
    "vector.permute.transpose",
    "vector.elementwise.unary",
)
"""Modules of this package that declare instructions; the order decides which of several
instructions of one name comes first."""

Spelling = tuple[type[Instruction], Mapping[str, Any]]


@cache
def instructions() -> Mapping[str, type[Instruction]]:
    """Return every instruction by name."""
    for module in MODULES:
        import_module(f"{__package__}.{module}")
    rank = {f"{__package__}.{module}": at for at, module in enumerate(MODULES)}
    ordered = sorted(DECLARED.items(), key=lambda item: rank.get(item[1].__module__, len(rank)))
    return MappingProxyType(dict(ordered))


@cache
def _spellings() -> Mapping[str, list[Spelling]]:
    spellings_of: dict[str, list[Spelling]] = {}
    for name, cls in instructions().items():
        for spelling in dict.fromkeys((name, *cls.names.values())):
            spellings_of.setdefault(spelling, []).append((cls, MappingProxyType({})))
        for spelling, fixed in cls.variants.items():
            spellings_of.setdefault(spelling, []).append((cls, MappingProxyType(dict(fixed))))
    return spellings_of


def spellings() -> tuple[str, ...]:
    """Return every name of every instruction, in order of declaration."""
    return tuple(_spellings())


def spelled(name: str) -> tuple[Spelling, ...]:
    """Return every instruction called `name` in some dialect, with the parameters the name fixes.

    A dialect may use one name for several instructions: their operands tell them apart.
    """
    return tuple(_spellings().get(name, ()))


def instruction_named(name: str) -> type[Instruction]:
    """Return the instruction called `name` in the hardware's or any dialect's spelling.

    Of several, it is the one whose module comes first in `MODULES`.
    """
    if name in instructions():
        return instructions()[name]
    for cls, _ in _spellings().get(name, ()):
        return cls
    raise refuse("instruction", "be one that is declared", repr(name))
