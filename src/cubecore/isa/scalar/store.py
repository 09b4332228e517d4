"""The scalar unit's writes of values to memory."""

from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache
from typing import Any

import numpy as np

from cubecore.arrays import Array
from cubecore.dtypes import ElementType
from cubecore.errors import Violation
from cubecore.isa.declare.instruction import (
    Instruction,
    Mem,
    Operand,
    Pipe,
    instruction,
    param,
    types,
    write,
)
from cubecore.isa.declare.registers import Registers
from cubecore.isa.declare.template import parameters
from cubecore.layouts import Offsets
from cubecore.numerics.conversion import value_of

_INTEGERS = ("int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64")
_SCALARS = ("int8", "uint8", "int16", "uint16", "float16", "int32", "uint32", "float32")


@lru_cache
def element_aligned(operand: Operand, size: int) -> Operand:
    """Return an operand of one element, at a multiple of its size."""
    return replace(operand, align_bytes=size)


@parameters
class ScalarStore(Instruction):
    """Write a value to memory."""

    dtype: ElementType = types("element type", *_SCALARS, "int64", "uint64")
    value: int = param(-(2**63), 2**64 - 1, "the value: an integer, or a float's bits")

    def operands(self) -> tuple[Operand, ...]:
        """Return the element, at a multiple of its size."""
        return (element_aligned(self.declared[0], self.dtype.size_bytes),)

    def offsets_dst(self) -> Offsets:
        """Shape [1]."""
        return np.zeros(1, np.intp)

    def unmet(self, registers: Registers) -> list[Violation]:
        """Return nothing: set_atomic is for copies."""
        return []

    def compute(self, inputs: Mapping[str, Array], registers: Registers) -> Mapping[str, Array]:
        """Take the low bits."""
        return {"dst": value_of(self.value, self.dtype).reshape(1)}


def stores_locally(template: Instruction) -> bool:
    """Return whether the scalar unit stores to local memory, where pipes may see it late."""
    return template.pipe is Pipe.S and any(
        operand.access.writes and operand.mem is not Mem.GM for operand in template.operands()
    )


def valueless(template: Instruction) -> Instruction:
    """Return a template that touches, and breaks, what `template` does whatever value it stores.

    A kernel stores most values once, so that what is known of the store of 0 serves all.
    """
    if not isinstance(template, (StoreScalar, StoreScalarGm)) or not template.value:
        return template
    kind: Any = type(template)  # which mypy takes to have no hash
    others = {"cached": template.cached} if isinstance(template, StoreScalarGm) else {}
    return _of_zero(kind, dtype=template.dtype, **others)


@lru_cache
def _of_zero(kind: Any, **parameters: Any) -> Instruction:
    store: Instruction = kind(value=0, **parameters)
    return store


@instruction(
    "store_scalar",
    Pipe.S,
    since="m100",
    source="TIK, set_as of a tensor's element; basic API, SetValue of LocalTensor",
    archs=("2201", "3510"),
    uncertain=(
        "pipes see the value behind a flag of S or a barrier of all pipes, and may see the old one "
        "before; the scalar unit itself sees it at once: inferred",
        "an address is a multiple of the element's size: inferred",
    ),
)
class StoreScalar(ScalarStore):
    """Write one element of UB from the scalar unit: the low bits of an integer, or a float's."""

    dst = write(Mem.UB, "element", align_bytes=1)


@instruction(
    "store_scalar_gm",
    Pipe.S,
    since="m100",
    source="basic API, SetValue of GlobalTensor, WriteGmByPassDCache",
    archs=("2201", "3510"),
    uncertain=(
        "in program order the value is in global memory at once, and what meets its line of the "
        "data cache before a dcci is a finding; in order late the whole line goes back at a dcci, "
        "or when all cores have ended",
        "an address is a multiple of the element's size: inferred",
    ),
)
class StoreScalarGm(ScalarStore):
    """Write one element of global memory from the scalar unit, by its data cache or past it."""

    dst = write(Mem.GM, "element", align_bytes=1)
    cached: int = param(0, 1, "1 by the data cache, 0 past it", default=1)


@instruction(
    "store_dev",
    Pipe.S,
    names={"c_api": "asc_store_dev"},
    source="asc-devkit, asc_store_dev (3510)",
    archs=("3510",),
    uncertain=("an address is a multiple of the element's size: inferred",),
)
class StoreDev(StoreScalarGm):
    """Write one integer of global memory from the scalar unit, past its data cache."""

    signature = ("dst", "value")
    dst = write(Mem.GM, "element", align_bytes=1)
    dtype: ElementType = types("element type", *_INTEGERS)
    cached: int = param(0, 0, "0: past the data cache", default=0)
