"""Atomic operations of architecture 3510's scalar unit on elements of global memory."""

from collections.abc import Callable, Mapping
from typing import ClassVar

import numpy as np

from cubecore.arrays import Array
from cubecore.dtypes import ElementType
from cubecore.isa.declare import family
from cubecore.isa.declare.common_3510 import ARCH
from cubecore.isa.declare.instruction import Mem, Operand, Pipe, param, types, update
from cubecore.isa.declare.registers import Registers
from cubecore.isa.declare.template import parameters
from cubecore.isa.scalar.store import ScalarStore, element_aligned
from cubecore.numerics.conversion import value_of

Operation = Callable[[Array, Array, Array], Array]
"""Gives the new element of the old one, the value, and what is compared with."""
_INTEGERS = ("int32", "uint32", "int64", "uint64")
_NUMBERS = (*_INTEGERS, "float32")
_COUNTERS = ("uint32", "uint64")


def _increment(old: Array, value: Array, _: Array) -> Array:
    return np.where(old >= value, np.zeros_like(old), old + old.dtype.type(1))


def _decrement(old: Array, value: Array, _: Array) -> Array:
    return np.where((old == 0) | (old > value), value, old - old.dtype.type(1))


_OPERATIONS: tuple[tuple[str, str, tuple[str, ...], Operation], ...] = (
    ("add", "Add a value", _NUMBERS, lambda old, value, _: old + value),
    ("sub", "Subtract a value", _NUMBERS, lambda old, value, _: old - value),
    ("max", "Take the larger of element and value", _NUMBERS, lambda o, v, _: np.maximum(o, v)),
    ("min", "Take the smaller of element and value", _NUMBERS, lambda o, v, _: np.minimum(o, v)),
    ("exch", "Store a value", _NUMBERS, lambda old, value, _: np.broadcast_to(value, old.shape)),
    (
        "cas",
        "Store a value where the element equals `compare`",
        _NUMBERS,
        lambda old, value, compare: np.where(old == compare, value, old),
    ),
    ("and", "And with a value", _INTEGERS, lambda old, value, _: old & value),
    ("or", "Or with a value", _INTEGERS, lambda old, value, _: old | value),
    ("xor", "Exclusive-or with a value", _INTEGERS, lambda old, value, _: old ^ value),
    ("inc", "Count up, from the value on to 0", _COUNTERS, _increment),
    ("dec", "Count down, from 0 or above the value to the value", _COUNTERS, _decrement),
)
_CPP = ("add", "cas", "exch", "max", "min")


@parameters
class ScalarAtomic(ScalarStore):
    """The scalar unit reads the old element and writes the new one, and no other core between.

    It goes past the data cache, whose lines stay as they are. The old element is the call's result.
    """

    register = "atomic_old"
    atomically = "scalar"
    operation: ClassVar[Operation]
    dst = update(Mem.GM, "element", align_bytes=1)
    dtype: ElementType = types("element type", *_NUMBERS)
    value: int = param(-(2**63), 2**64 - 1, "the value: an integer, or a float's bits")

    @property
    def answers(self) -> ElementType:
        """The old element."""
        return self.dtype

    def operands(self) -> tuple[Operand, ...]:
        """Return the element, at a multiple of its size."""
        return (element_aligned(self.declared[0], self.dtype.size_bytes),)

    def compute(self, inputs: Mapping[str, Array], registers: Registers) -> Mapping[str, Array]:
        """Compute the new element."""
        # Only cas has `compare`. The engines run it core by core, as it reads and writes global
        # memory, so that each core meets what the ones before it left.
        compare = value_of(int(getattr(self, "compare", 0)), self.dtype)
        with np.errstate(all="ignore"):
            new = type(self).operation(inputs["dst"], value_of(self.value, self.dtype), compare)
        return {"dst": new.astype(self.dtype.numpy)}

    def leaves(self, inputs: Mapping[str, Array], registers: Registers) -> Registers:
        """Keep the old element's bits."""
        raw = np.ascontiguousarray(inputs["dst"]).tobytes()
        return registers.leaving("atomic_old", int.from_bytes(raw, "little"))

    def result(self, registers: Registers) -> tuple[int, ...]:
        """The old element's bits."""
        return (registers.atomic_old,)


for _name, _doc, _types, _operation in _OPERATIONS:
    _compare = {
        "compare": (
            int,
            param(-(2**63), 2**64 - 1, "the value to compare with", bits_of="dtype"),
        )
    }
    _cpp = {"cpp": f"Atomic{_name.capitalize()}"} if _name in _CPP else {}
    family.member(
        ScalarAtomic,
        f"scalar_atomic_{_name}",
        Pipe.S,
        doc=f"{_doc}: an element of global memory, in one step",
        body={
            "__module__": __name__,
            "operation": staticmethod(_operation),
            **({"signature": ("dst", "compare", "value")} if _name == "cas" else {}),
        },
        fields={
            "dtype": (ElementType, types("element type", *_types)),
            **(_compare if _name == "cas" else {}),
        },
        names={"c_api": f"asc_atomic_{_name}", **_cpp},
        source=f"asc-devkit, asc_atomic_{_name}" + (f", {_cpp['cpp']}" if _cpp else "") + " (3510)",
        uncertain=(
            "an address is a multiple of the element's size: inferred",
            "of NaN the larger and the smaller are NaN",
        )
        if _name in {"max", "min"}
        else ("an address is a multiple of the element's size: inferred",),
        archs=ARCH,
    )
