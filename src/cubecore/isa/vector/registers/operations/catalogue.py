"""Every register instruction, by name."""

from collections.abc import Mapping
from functools import cache
from importlib import import_module
from types import MappingProxyType

from cubecore.isa.vector.registers.operation import OPERATIONS, RegisterOperation

_MODULES = (
    *("arithmetic", "convert", "histograms", "indexed", "logic", "masks", "moves", "rearrange"),
)


@cache
def operations() -> Mapping[str, RegisterOperation]:
    """Return the declared register instructions."""
    for name in _MODULES:
        import_module(f"cubecore.isa.vector.registers.operations.{name}")
    return MappingProxyType(OPERATIONS)
