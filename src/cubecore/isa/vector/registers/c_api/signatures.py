"""Parameters of the C API's names for register instructions.

They are written as in C: a letter for the kind, and a name. Small letters are read: v a vector
register, m a mask, p a pointer into UB, u the buffer of an unaligned stream, n a whole number, s a
scalar, t a word. V and M are written, W is read and written.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from cubecore.isa.vector.registers.operation import Form

UNARY, BINARY = "V dst, v src, m mask", "V dst, v src0, v src1, m mask"
SCALAR, PLAIN = "V dst, v src, s value, m mask", "V dst, v src"
SIGNATURES: Mapping[Form, tuple[str, ...]] = MappingProxyType(
    {
        **dict.fromkeys((Form.UNARY, Form.CAST, Form.TRUNCATE, Form.REDUCE), (UNARY,)),
        **dict.fromkeys((Form.BINARY, Form.SELECT), (BINARY,)),
        Form.SHIFT: ("V dst, v src, v amounts, m mask",),
        Form.SCALAR: (SCALAR,),
        Form.SHIFT_SCALAR: ("V dst, v src, n amount, m mask",),
        Form.FILL: ("V dst, s value, m mask", "V dst, s value"),
        Form.TERNARY: ("W dst, v src0, v src1, m mask",),
        Form.AXPY: ("W dst, v src, s value, m mask",),
        Form.MOVE: ("W dst, v src, m mask",),
        Form.HISTOGRAM: ("W dst, v src, m mask",),
        Form.CARRY: ("M carry, V dst, v src0, v src1, m mask",),
        Form.CARRIED: ("M carry, V dst, v src0, v src1, m carried, m mask",),
        Form.WIDE: ("V dst0, V dst1, v src0, v src1, m mask",),
        Form.COMPARE: ("M dst, v src0, v src1, m mask",),
        Form.COMPARE_SCALAR: ("M dst, v src, s value, m mask",),
        Form.PLAIN: (PLAIN,),
        Form.FROM_MASK: ("V dst, m mask",),
        Form.PAIR: ("V dst0, V dst1, v src0, v src1",),
        Form.INDEXED: ("V dst, v src, v index",),
        Form.INDEX: ("V dst, s value",),
        Form.BLOCK_MASK: ("M dst, v src, n block",),
        Form.COUNTED: (UNARY,),
        Form.GATHER: ("V dst, p src, v index, m mask",),
        Form.SCATTER: ("p dst, v src, v index, m mask", "v src, p dst, v index, m mask"),
        Form.MASK_UNARY: ("M dst, m src, m mask",),
        Form.MASK_BINARY: ("M dst, m src0, m src1, m mask",),
        Form.MASK_PLAIN: ("M dst, m src",),
        Form.MASK_PAIR: ("M dst0, M dst1, m src0, m src1",),
        Form.MASK_BITS: ("",),
        Form.AR: ("",),
        Form.PATTERN: ("t pattern",),
        Form.COUNT: ("n count",),
        Form.BARRIER: ("t type",),
        Form.LOAD: ("V dst, p src", "V dst, p src, n distance"),
        Form.LOAD_PAIR: ("V dst0, V dst1, p src", "V dst0, V dst1, p src, n distance"),
        Form.LOAD_MASK: ("M dst, p src", "M dst, p src, n distance"),
        Form.STORE: ("p dst, v src, m mask", "p dst, v src, n distance, m mask"),
        Form.STORE_PAIR: ("p dst, v src0, v src1", "p dst, v src0, v src1, n distance"),
        Form.STORE_MASK: ("p dst, m src", "p dst, m src, n distance"),
    }
)
"""The parameters of a name by the form of its instruction; further ones are overloads."""


@dataclass(frozen=True, slots=True)
class Parameter:
    """A parameter: its name, and the kind of what is given for it, as in the module's first words.

    `is_result` says that the call writes it, `is_source` that it reads it.
    """

    name: str
    kind: str
    is_result: bool
    is_source: bool


@dataclass(frozen=True, slots=True)
class CName:
    """One overload of a C API name: the instruction ("": none, a new name of a value), its mode.

    In a mode ``{lane}`` stands for the bits of a lane and ``{element}`` for those of what the
    pointer points to. `bits` are those of lanes that the name says, 0 where a register has them.
    `moves` says that the pointer is behind the access afterwards, `source` and `result` the types
    that a conversion's name says.
    """

    name: str
    operation: str
    parameters: tuple[Parameter, ...]
    mode: str = ""
    bits: int = 0
    moves: bool = False
    source: str = ""
    result: str = ""

    @property
    def kinds(self) -> str:
        """The kinds of the parameters, a letter each."""
        return "".join(parameter.kind for parameter in self.parameters)


def parameters_of(signature: str) -> tuple[Parameter, ...]:
    """Return the parameters of a signature such as ``"V dst, v src, m mask"``."""
    words = (part.split() for part in signature.split(",") if part)
    return tuple(
        Parameter(
            name,
            {"w": "v", "s": "n"}.get(kind.lower(), kind.lower()),
            is_result=kind.isupper(),
            is_source=kind in "vmW",
        )
        for kind, name in words
    )
