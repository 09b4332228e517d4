"""Bit operations of the scalar unit on words of 64 bits."""

from collections.abc import Callable

from cubecore.isa.declare.family import member
from cubecore.isa.declare.instruction import Instruction, Pipe, param
from cubecore.isa.declare.registers import Registers
from cubecore.isa.declare.template import parameters

_WORD = 64
_ONES = 2**_WORD - 1


@parameters
class Bits(Instruction):
    """The scalar unit reads the result at once; nothing else changes."""

    function = staticmethod(int)
    value: int = param(-(2**63), _ONES, "the word; a negative number stands for its 64 bits")

    def result(self, registers: Registers) -> tuple[int, ...]:
        """One integer."""
        return (self.function(self.value & _ONES),)


@parameters
class OneBit(Instruction):
    """The scalar unit reads the result at once; nothing else changes.

    An index out of [0, 63] counts modulo 64.
    """

    up = False
    bits: int = param(-(2**63), _ONES, "the word; a negative number stands for its 64 bits")
    idx: int = param(-(2**63), 2**63 - 1, "which bit, 0 being the lowest")

    def result(self, registers: Registers) -> tuple[int, ...]:
        """One unsigned word."""
        bit = 1 << self.idx % _WORD
        word = self.bits & _ONES
        return (word | bit if self.up else word & ~bit,)


def _lowest(word: int) -> int:
    return (word & -word).bit_length() - 1


def _like_sign(word: int) -> int:
    magnitude = ~word & _ONES if word >> _WORD - 1 else word
    return _WORD - 1 - magnitude.bit_length() if magnitude else -1


_COUNTS: tuple[tuple[str, str, str, Callable[[int], int]], ...] = (
    (
        "clz",
        "CountLeadingZero",
        "Count the zeros above the highest one; 64 of 0",
        lambda word: _WORD - word.bit_length(),
    ),
    ("ffs", "GetSFFValue<1>", "Find the lowest one; -1 where there is none", _lowest),
    (
        "ffz",
        "GetSFFValue<0>",
        "Find the lowest zero; -1 where there is none",
        lambda word: _lowest(~word & _ONES),
    ),
    ("popc", "GetBitCount<1>", "Count the ones", int.bit_count),
    ("zero_bits_cnt", "GetBitCount<0>", "Count the zeros", lambda word: _WORD - word.bit_count()),
    (
        "sflbits",
        "CountBitsCntSameAsSignBit",
        "Count the bits under the sign that follow it and are like it; -1 of 0 and of -1",
        _like_sign,
    ),
)
"""Name, C++ name, meaning, function of the unsigned word."""

for _name, _cpp, _doc, _function in _COUNTS:
    member(
        Bits,
        _name,
        Pipe.S,
        doc=_doc,
        body={"__module__": __name__, "function": staticmethod(_function)},
        names={"c_api": f"asc_{_name}", "cpp": _cpp},
        source=f"asc-devkit, asc_{_name} and {_cpp.split('<')[0]} (2201, 3510)",
        archs=("2201", "3510"),
    )
for _name, _doc, _up in (
    ("clear_nthbit", "Clear one bit", False),
    ("set_nthbit", "Set one bit", True),
):
    member(
        OneBit,
        _name,
        Pipe.S,
        doc=_doc,
        body={"__module__": __name__, "up": _up},
        names={"c_api": f"asc_{_name}"},
        source=f"asc-devkit, asc_{_name} (2201, 3510)",
        archs=("2201", "3510"),
    )
