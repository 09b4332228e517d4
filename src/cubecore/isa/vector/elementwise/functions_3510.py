"""Functions on whole tensors that the class API has on architecture 3510 alone.

On the chip each is code of the register unit, which no page shows; here it is one instruction with
the meaning of its page, and the cost of its repeats.
"""

from collections.abc import Callable, Mapping
from typing import Any, ClassVar

import numpy as np

from cubecore.arrays import Array
from cubecore.chips import costs
from cubecore.chips.model import Chip
from cubecore.dtypes import ElementType, element_type
from cubecore.isa.declare import family
from cubecore.isa.declare.common_3510 import ARCH
from cubecore.isa.declare.instruction import (
    Instruction,
    InstructionCost,
    Mem,
    Operand,
    Pipe,
    param,
    read,
    types,
    write,
)
from cubecore.isa.declare.registers import Registers
from cubecore.isa.declare.template import parameters
from cubecore.isa.vector.common.mask import REPEAT_BYTES
from cubecore.layouts import Offsets
from cubecore.lazy_dataclass import dataclass
from cubecore.numerics import round_float
from cubecore.units import ceil_div

_TRUTH = element_type("uint8")
_WORD = 2**64 - 1
_MOST = 2**18
"""Bytes of the Unified Buffer, which no count of elements exceeds."""
_INTEGERS = ("int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64")
_FLOATS = ("float16", "bfloat16", "float32")
_UNCERTAIN = (
    "the function is code of the register unit that no page shows: its cost is that of repeats of "
    "256 B at the chip's rate (rough)",
)


@parameters
class Counted(Instruction):
    """It takes `count` elements of each tensor, one behind another; 0: nothing happens."""

    overlap = "none"
    function: ClassVar[Callable[..., Any]]
    scalars: ClassVar[tuple[str, ...]] = ()
    inputs: ClassVar[tuple[str, ...]] = ()
    dtype: ElementType = types("element type", *_INTEGERS, *_FLOATS)
    count: int = param(0, _MOST, "elements")

    @property
    def truth(self) -> ElementType:
        """The type of truth values: a byte each."""
        return _TRUTH

    def offsets(self, operand: str) -> Offsets:
        """Shape [count]."""
        return np.arange(self.count, dtype=np.intp)

    def compute(self, inputs: Mapping[str, Array], registers: Registers) -> Mapping[str, Array]:
        """Compute element by element."""
        given = [self._given(name, inputs) for name in type(self).inputs]
        with np.errstate(all="ignore"):
            result = type(self).function(*given)
        to = self.element(next(o for o in self.declared if o.name == "dst"))
        return {"dst": _as_type(np.asarray(result), to)}

    def _given(self, name: str, inputs: Mapping[str, Array]) -> Array:
        if name not in type(self).scalars:
            return inputs[name]
        size = self.dtype.size_bytes
        bits: int = getattr(self, name)
        raw = (bits & (1 << 8 * size) - 1).to_bytes(size, "little")
        return np.frombuffer(raw, self.dtype.numpy)

    def cost(self, chip: Chip) -> InstructionCost:
        """A head and a repeat for each 256 B of the widest tensor."""
        if not self.count:
            return InstructionCost(0)
        widest = max(self.element(o).bits for o in self.operands())
        repeats = ceil_div(self.count * widest, 8 * REPEAT_BYTES)
        return InstructionCost(costs.whole_cycles(costs.vector_cycles(chip, int(repeats))))


def _as_type(values: Array, to: ElementType) -> Array:
    if to.kind == "float" and values.dtype.kind == "f":
        return round_float(values, to, finite=False)
    return values.astype(to.numpy, copy=False)


@dataclass(frozen=True, kw_only=True)
class _Function:
    """A function: its inputs in order, those that are numbers, and the roles of its types."""

    name: str
    cpp: str
    doc: str
    does: Callable[..., Any]
    inputs: tuple[str, ...]
    types: tuple[str, ...]
    scalars: tuple[str, ...] = ()
    to: str = "dtype"
    truths: tuple[str, ...] = ()


def _declare(one: _Function) -> None:
    tensors = [name for name in one.inputs if name not in one.scalars]
    operands: dict[str, Operand] = {"dst": write(Mem.UB, "element", one.to)}
    for name in tensors:
        operands[name] = read(Mem.UB, "element", "truth" if name in one.truths else "dtype")
    fields: dict[str, tuple[Any, Any]] = {
        "dtype": (ElementType, types("element type", *one.types)),
        **{name: (int, param(0, _WORD, f"{name}'s bits", bits_of="dtype")) for name in one.scalars},
    }
    family.member(
        Counted,
        one.name,
        Pipe.V,
        doc=one.doc,
        body={
            "__module__": __name__,
            **operands,
            "function": staticmethod(one.does),
            "inputs": one.inputs,
            "scalars": one.scalars,
            "signature": ("dst", *tensors, *one.scalars, "count"),
        },
        fields=fields,
        names={"cpp": one.cpp},
        source=f"asc-devkit, {one.cpp.split('(')[0]} (3510)",
        uncertain=_UNCERTAIN,
        archs=ARCH,
    )


def _clamped(src: Array, low: Array, high: Array) -> Array:
    """NaN stays; where low is above high, high."""
    raised = np.where(src < low, low, src)
    return np.where(raised > high, high, raised)


def _fused(x: Array, y: Array, z: Array) -> Array:
    return x.astype(np.float64) * y.astype(np.float64) + z.astype(np.float64)


def _finite(x: Array) -> Array:
    return np.isfinite(x.astype(np.float32))


def _infinite(x: Array) -> Array:
    return np.isinf(x.astype(np.float32))


def _nan(x: Array) -> Array:
    return np.isnan(x.astype(np.float32))


def _both(of: Callable[[Array, Array], Array]) -> Callable[[Array, Array], Array]:
    return lambda x, y: of(x != 0, y != 0)


_ANY = (*_INTEGERS, *_FLOATS)
_TWO = ("src0", "src1")
_TABLE: list[_Function] = []
for _cpp, _bits in (("And", np.bitwise_and), ("Or", np.bitwise_or), ("Xor", np.bitwise_xor)):
    _TABLE += [
        _Function(
            name=f"bitwise_{_cpp.lower()}",
            cpp=f"Bitwise{_cpp}",
            doc=f"Combine the bits of src0 and src1 by {_cpp.lower()}",
            does=_bits,
            inputs=_TWO,
            types=_INTEGERS,
        )
    ]
_TABLE += [
    _Function(
        name="bitwise_not",
        cpp="BitwiseNot",
        doc="Turn the bits of src",
        does=np.bitwise_not,
        inputs=("src",),
        types=_INTEGERS,
    ),
    _Function(
        name="logical_not",
        cpp="LogicalNot",
        doc="Give 1 where src is 0, else 0",
        does=lambda x: x == 0,
        inputs=("src",),
        types=_ANY,
        to="truth",
    ),
]
for _cpp, _truths in (("And", np.logical_and), ("Or", np.logical_or), ("Xor", np.logical_xor)):
    _TABLE += [
        _Function(
            name=f"logical_{_cpp.lower()}",
            cpp=f"Logical{_cpp}",
            doc=f"Give 1 where src0 {_cpp.lower()} src1 hold, which are not 0 there, else 0",
            does=_both(_truths),
            inputs=_TWO,
            types=_ANY,
            to="truth",
        )
    ]
    if _cpp != "Xor":
        _TABLE += [
            _Function(
                name=f"logical_{_cpp.lower()}s",
                cpp=f"Logical{_cpp}s",
                doc=f"Give 1 where src0 {_cpp.lower()} a number hold, which are not 0, else 0",
                does=_both(_truths),
                inputs=_TWO,
                scalars=("src1",),
                types=_ANY,
                to="truth",
            )
        ]
for _text, _scalars in (
    ("", ()),
    ("_high", ("high",)),
    ("_low", ("low",)),
    ("_both", ("low", "high")),
):
    _TABLE += [
        _Function(
            name=f"clamp{_text}",
            cpp="Clamp" if not _text else f"Clamp({', '.join(_scalars)} a number)",
            doc="Raise src to low, then lower it to high; NaN stays",
            does=_clamped,
            inputs=("src", "low", "high"),
            scalars=_scalars,
            types=_ANY,
        )
    ]
for _text, _scalars in (
    ("", ()),
    ("_second", ("src1",)),
    ("_first", ("src0",)),
    ("_both", ("src0", "src1")),
):
    _TABLE += [
        _Function(
            name=f"where{_text}",
            cpp="Where" if not _text else f"Where({', '.join(_scalars)} a number)",
            doc="Take src0 where the condition is not 0, else src1",
            does=lambda x, y, condition: np.where(condition != 0, x, y),
            inputs=(*_TWO, "condition"),
            scalars=_scalars,
            truths=("condition",),
            types=_ANY,
        )
    ]
_TABLE += [
    _Function(
        name="fma",
        cpp="Fma",
        doc="Multiply src0 by src1 and add src2, rounded once",
        does=_fused,
        inputs=("src0", "src1", "src2"),
        types=("float16", "float32"),
    ),
]
for _cpp, _test in (("Finite", _finite), ("Inf", _infinite), ("Nan", _nan)):
    for _text, _to in (("", "dtype"), ("_truth", "truth")):
        _TABLE += [
            _Function(
                name=f"is_{_cpp.lower()}{_text}",
                cpp=f"Is{_cpp}" if not _text else f"Is{_cpp}(bool)",
                doc={
                    "Finite": "Give 1 where src is a number, else 0",
                    "Inf": "Give 1 where src is infinite, else 0",
                    "Nan": "Give 1 where src is NaN, else 0",
                }[_cpp],
                does=_test,
                inputs=("src",),
                types=_FLOATS,
                to=_to,
            )
        ]
for _one in _TABLE:
    _declare(_one)


@parameters
class _First(Counted):
    """Fill dst with the first element of src."""

    def offsets(self, operand: str) -> Offsets:
        """Shape [count]; of src the first element again and again."""
        return np.zeros(self.count, np.intp) if operand == "src" else super().offsets(operand)


family.member(
    _First,
    "duplicate_first",
    Pipe.V,
    doc="Fill a tensor with the first element of another one",
    body={
        "__module__": __name__,
        "dst": write(Mem.UB, "element", "dtype"),
        "src": read(Mem.UB, "element", "dtype"),
        "function": staticmethod(lambda x: x),
        "inputs": ("src",),
        "signature": ("dst", "src", "count"),
    },
    names={"cpp": "Duplicate(a tensor)"},
    source="asc-devkit, Duplicate (3510)",
    uncertain=_UNCERTAIN,
    archs=ARCH,
)
