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
from cubecore.isa.vector.elementwise.compare import RELATIONS, packed_bits, relation
from cubecore.layouts import Offsets
from cubecore.numerics import round_float
from cubecore.units import ceil_div

_TRUTH = element_type("uint8")
_WORD = 2**64 - 1
_MOST = 2**18
"""Bytes of the Unified Buffer, which no count of elements exceeds."""
_INTEGERS = ("int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64")
_FLOATS = ("float16", "bfloat16", "float32")
_ANY = (*_INTEGERS, *_FLOATS)
UNCERTAIN = (
    "the function is code of the register unit that no page shows: its cost is that of repeats of "
    "256 B at the chip's rate (rough)",
)


@parameters
class Counted(Instruction):
    """It takes `count` elements of each tensor, one behind another; 0: nothing happens.

    Of those in `elements` it takes the first one again and again.
    """

    overlap = "none"
    function: ClassVar[Callable[..., Any]]
    elements: ClassVar[tuple[str, ...]] = ()
    scalars: ClassVar[tuple[str, ...]] = ()
    inputs: ClassVar[tuple[str, ...]] = ()
    dtype: ElementType = types("element type", *_ANY)
    count: int = param(0, _MOST, "elements")

    @property
    def truth(self) -> ElementType:
        """The type of truth values: a byte each."""
        return _TRUTH

    def offsets(self, operand: str) -> Offsets:
        """Shape [count]."""
        if operand in type(self).elements:
            return np.zeros(self.count, np.intp)
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


def _declare(
    name: str,
    cpp: str,
    doc: str,
    does: Callable[..., Any],
    inputs: tuple[str, ...],
    *,
    base: type[Counted] = Counted,
    kinds: tuple[str, ...] = _ANY,
    scalars: tuple[str, ...] = (),
    elements: tuple[str, ...] = (),
    to: str = "dtype",
    truths: tuple[str, ...] = (),
) -> None:
    """Declare a function: inputs in order, numbers and first elements, and the roles of types."""
    tensors = [given for given in inputs if given not in scalars]
    operands: dict[str, Operand] = {"dst": write(Mem.UB, "element", to)}
    for tensor in tensors:
        operands[tensor] = read(Mem.UB, "element", "truth" if tensor in truths else "dtype")
    fields: dict[str, tuple[Any, Any]] = {
        "dtype": (ElementType, types("element type", *kinds)),
        **{n: (int, param(0, _WORD, f"{n}'s bits", bits_of="dtype")) for n in scalars},
    }
    family.member(
        base,
        name,
        Pipe.V,
        doc=doc,
        body={
            "__module__": __name__,
            **operands,
            "function": staticmethod(does),
            "inputs": inputs,
            "scalars": scalars,
            "elements": elements,
            "signature": ("dst", *tensors, *scalars, "count"),
        },
        fields=fields,
        names={"cpp": cpp},
        source=f"asc-devkit, {cpp.partition('(')[0]} (3510)",
        uncertain=UNCERTAIN,
        archs=ARCH,
    )


def _clamped(src: Array, low: Array, high: Array) -> Array:
    """NaN stays; where low is above high, high."""
    raised = np.where(src < low, low, src)
    return np.where(raised > high, high, raised)


def _fused(x: Array, y: Array, z: Array) -> Array:
    return x.astype(np.float64) * y.astype(np.float64) + z.astype(np.float64)


def _of_float(test: Callable[[Array], Array]) -> Callable[[Array], Array]:
    return lambda x: test(x.astype(np.float32))


def _both(of: Callable[[Array, Array], Array]) -> Callable[[Array, Array], Array]:
    return lambda x, y: of(x != 0, y != 0)


@parameters
class _ToBits(Counted):
    """Give a bit of dst for each element, the first in the lowest bit of a byte; the rest are 0."""

    def offsets(self, operand: str) -> Offsets:
        """Shape [count], of dst [bytes]."""
        return _of_bits(self.count) if operand == "dst" else super().offsets(operand)

    def compute(self, inputs: Mapping[str, Array], registers: Registers) -> Mapping[str, Array]:
        """Compare element by element."""
        given = [self._given(name, inputs) for name in type(self).inputs]
        return {"dst": packed_bits(type(self).function(*given))}


@parameters
class _ByBits(Counted):
    """Take src0 where the bit of an element is 1, else src1."""

    overlap = "general"

    def offsets(self, operand: str) -> Offsets:
        """Shape [count], of the bits [bytes]."""
        return _of_bits(self.count) if operand == "bits" else super().offsets(operand)

    def compute(self, inputs: Mapping[str, Array], registers: Registers) -> Mapping[str, Array]:
        """Choose element by element."""
        raw = np.ascontiguousarray(inputs["bits"])
        bits = np.unpackbits(raw, axis=-1, count=self.count, bitorder="little")
        x, y = (self._given(name, inputs) for name in ("src0", "src1"))
        return {"dst": np.where(bits.view(np.bool_), x, y)}


def _of_bits(count: int) -> Offsets:
    return np.arange(ceil_div(count, 8), dtype=np.intp)


def _related(function: Callable[[Array, Array], Any]) -> Callable[[Array, Array], Array]:
    return lambda x, y: relation(function, _plain(x), _plain(y))


def _plain(values: Array) -> Array:
    """Return integers as they are, and floats of any width as float32."""
    return values if values.dtype.kind in "iu" else values.astype(np.float32)


_TWO = ("src0", "src1")
for _name, _doc, _relates in RELATIONS:
    for _text, _numbers, _firsts in (
        ("", (), ()),
        ("s", ("src1",), ()),
        ("_element", (), ("src1",)),
    ):
        _declare(
            f"compare_{_name}{_text}",
            f"Compare{'s' if _firsts else _text}({_name.upper()}, count"
            + (", src1 an element)" if _firsts else ")"),
            f"Note as bits where {_doc}",
            _related(_relates),
            _TWO,
            base=_ToBits,
            scalars=_numbers,
            elements=_firsts,
            to="truth",
        )
for _text, _which, _numbers, _firsts in (
    ("", "", (), ()),
    ("_number", ", src1 a number", ("src1",), ()),
    ("_number_first", ", src0 a number", ("src0",), ()),
    ("_element", ", src1 an element", (), ("src1",)),
    ("_element_first", ", src0 an element", (), ("src0",)),
):
    _declare(
        f"select_bits{_text}",
        f"Select(count{_which})",
        "Take src0 where a bit is 1, else src1",
        lambda x, y: (x, y),
        (*_TWO, "bits"),
        base=_ByBits,
        scalars=_numbers,
        elements=_firsts,
        truths=("bits",),
    )
for _cpp, _bits in (("And", np.bitwise_and), ("Or", np.bitwise_or), ("Xor", np.bitwise_xor)):
    _declare(
        f"bitwise_{_cpp.lower()}",
        f"Bitwise{_cpp}",
        f"Combine the bits of src0 and src1 by {_cpp.lower()}",
        _bits,
        _TWO,
        kinds=_INTEGERS,
    )
_declare(
    "bitwise_not",
    "BitwiseNot",
    "Turn the bits of src",
    np.bitwise_not,
    ("src",),
    kinds=_INTEGERS,
)
_declare(
    "logical_not",
    "LogicalNot",
    "Give 1 where src is 0, else 0",
    lambda x: x == 0,
    ("src",),
    to="truth",
)
for _cpp, _truths in (("And", np.logical_and), ("Or", np.logical_or), ("Xor", np.logical_xor)):
    _declare(
        f"logical_{_cpp.lower()}",
        f"Logical{_cpp}",
        f"Give 1 where src0 {_cpp.lower()} src1 hold, which are not 0 there, else 0",
        _both(_truths),
        _TWO,
        to="truth",
    )
    if _cpp != "Xor":
        _declare(
            f"logical_{_cpp.lower()}s",
            f"Logical{_cpp}s",
            f"Give 1 where src0 {_cpp.lower()} a number hold, which are not 0, else 0",
            _both(_truths),
            _TWO,
            scalars=("src1",),
            to="truth",
        )
for _text, _scalars in (
    ("", ()),
    ("_high", ("high",)),
    ("_low", ("low",)),
    ("_both", ("low", "high")),
):
    _declare(
        f"clamp{_text}",
        "Clamp" if not _text else f"Clamp({', '.join(_scalars)} a number)",
        "Raise src to low, then lower it to high; NaN stays",
        _clamped,
        ("src", "low", "high"),
        scalars=_scalars,
    )
for _text, _scalars in (
    ("", ()),
    ("_second", ("src1",)),
    ("_first", ("src0",)),
    ("_both", _TWO),
):
    _declare(
        f"where{_text}",
        "Where" if not _text else f"Where({', '.join(_scalars)} a number)",
        "Take src0 where the condition is not 0, else src1",
        lambda x, y, condition: np.where(condition != 0, x, y),
        (*_TWO, "condition"),
        scalars=_scalars,
        truths=("condition",),
    )
_declare(
    "fma",
    "Fma",
    "Multiply src0 by src1 and add src2, rounded once",
    _fused,
    ("src0", "src1", "src2"),
    kinds=family.HALF_AND_FLOAT,
)
for _cpp, _test, _what in (
    ("Finite", np.isfinite, "a number"),
    ("Inf", np.isinf, "infinite"),
    ("Nan", np.isnan, "NaN"),
):
    for _text, _to in (("", "dtype"), ("_truth", "truth")):
        _declare(
            f"is_{_cpp.lower()}{_text}",
            f"Is{_cpp}" if not _text else f"Is{_cpp}(bool)",
            f"Give 1 where src is {_what}, else 0",
            _of_float(_test),
            ("src",),
            kinds=_FLOATS,
            to=_to,
        )
_declare(
    "duplicate_first",
    "Duplicate(a tensor)",
    "Fill a tensor with the first element of another one",
    lambda x: x,
    ("src",),
    elements=("src",),
)
