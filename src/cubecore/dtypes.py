"""Element types as records: width, C0, vendor names, and NumPy's type where one exists."""

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from cubecore.aliases import Column
from cubecore.errors import did_you_mean, refuse
from cubecore.units import DATA_BLOCK_BYTES, floor_div

if TYPE_CHECKING:
    import numpy as np


@dataclass(frozen=True, eq=False)
class ElementType:
    """One element type; each exists once, so that types compare by identity.

    `kind` is ``float``, ``int``, ``uint`` or ``scale``. `aliases` are the vendor's spellings.
    `library` names the module that defines the NumPy type (``numpy`` or ``ml_dtypes``), is ``raw``
    for a group of bytes that is only ever moved, and ``codes`` where no library has the format:
    NumPy then holds one code in a byte (`cubecore.numerics.codes`).
    """

    name: str
    bits: int
    kind: str
    library: str
    aliases: tuple[str, ...] = ()

    def __str__(self) -> str:
        """Return the name."""
        return self.name

    def __reduce__(self) -> tuple[object, ...]:
        """Return how to find this type again, so that a copy of it is the type itself."""
        return (_type_called, (self.name,))

    @property
    def c0(self) -> int:
        """Elements in 32 bytes: the inner size of a fractal (TCubeTiling structure and Mmad)."""
        return DATA_BLOCK_BYTES * 8 // self.bits

    @property
    def nz_fractals(self) -> int:
        """fractal_num of table 1: C0 blocks that an NZ operand's K axis is a multiple of."""
        return 2 if self.name == "float32" else 1

    def bytes_of(self, elements: Column) -> Column:
        """Return the bytes of `elements` packed elements (a number or an array of them)."""
        if self.bits % 8 == 0:
            return elements * (self.bits // 8)
        return floor_div(elements * self.bits, 8)

    def extent_bytes(self, first: int, last: int) -> tuple[int, int]:
        """Return the bytes [start, end) that hold the packed elements `first` to `last`."""
        return first * self.bits // 8, -(-(last + 1) * self.bits // 8)

    @cached_property
    def size_bytes(self) -> int:
        """Bytes of one element; refuses types narrower than a byte."""
        if self.bits < 8:
            raise refuse(self.name, "be at least 8 bits wide to be addressed alone", self.bits)
        return self.bits // 8

    @cached_property
    def numpy(self) -> "np.dtype[Any]":
        """NumPy's type; of the formats that no library has, that of their codes."""
        import numpy as np

        if self.library == "numpy":
            return np.dtype(self.name)
        if self.library == "raw":
            return np.dtype(f"V{self.size_bytes}")
        if self.library == "codes":
            return np.dtype(np.uint8)
        import ml_dtypes

        named: np.dtype[Any] = np.dtype(getattr(ml_dtypes, self.name))
        return named


_TYPES = (
    ElementType("float16", 16, "float", "numpy", ("half", "fp16", "DT_FLOAT16")),
    ElementType("bfloat16", 16, "float", "ml_dtypes", ("bfloat16_t", "bf16", "DT_BF16")),
    ElementType("float32", 32, "float", "numpy", ("float", "fp32", "DT_FLOAT")),
    ElementType("float8_e4m3fn", 8, "float", "ml_dtypes", ("fp8_e4m3fn_t", "DT_FLOAT8_E4M3FN")),
    ElementType("float8_e5m2", 8, "float", "ml_dtypes", ("fp8_e5m2_t", "DT_FLOAT8_E5M2")),
    ElementType("hifloat8", 8, "float", "codes", ("hifloat8_t", "DT_HIFLOAT8")),
    ElementType("float4_e2m1fn", 4, "float", "ml_dtypes", ("fp4x2_e2m1_t", "DT_FLOAT4_E2M1")),
    ElementType("float4_e1m2", 4, "float", "codes", ("fp4x2_e1m2_t", "DT_FLOAT4_E1M2")),
    ElementType("float8_e8m0fnu", 8, "scale", "ml_dtypes", ("fp8_e8m0_t", "DT_FLOAT8_E8M0")),
    ElementType("int4", 4, "int", "ml_dtypes", ("int4b_t", "DT_INT4")),
    ElementType("int8", 8, "int", "numpy", ("int8_t", "DT_INT8")),
    ElementType("uint8", 8, "uint", "numpy", ("uint8_t", "DT_UINT8")),
    ElementType("int16", 16, "int", "numpy", ("int16_t", "DT_INT16")),
    ElementType("uint16", 16, "uint", "numpy", ("uint16_t", "DT_UINT16")),
    ElementType("int32", 32, "int", "numpy", ("int32_t", "DT_INT32")),
    ElementType("uint32", 32, "uint", "numpy", ("uint32_t", "DT_UINT32")),
    ElementType("int64", 64, "int", "numpy", ("int64_t", "DT_INT64")),
    ElementType("uint64", 64, "uint", "numpy", ("uint64_t", "DT_UINT64")),
)

ELEMENT_TYPES: dict[str, ElementType] = {t.name: t for t in _TYPES}
"""Every element type by its name."""

_BY_ANY_NAME = ELEMENT_TYPES | {alias: t for t in _TYPES for alias in t.aliases}

RAW_BYTE = ElementType("byte", 8, "raw", "raw")
"""A byte of whatever type."""
DATA_BLOCK = ElementType("datablock", 256, "raw", "raw")
"""32 bytes that move together."""
FRACTAL = ElementType("fractal", 4096, "raw", "raw")
"""512 bytes that move together."""
INDEX_FRACTAL = ElementType("index fractal", 1024, "raw", "raw")
"""128 bytes of indices of a sparse matrix, which belong to a fractal."""
_BY_NAME = ELEMENT_TYPES | {t.name: t for t in (RAW_BYTE, DATA_BLOCK, FRACTAL, INDEX_FRACTAL)}


def _type_called(name: str) -> ElementType:
    return _BY_NAME[name]


FLOAT16 = ELEMENT_TYPES["float16"]
BFLOAT16 = ELEMENT_TYPES["bfloat16"]
FLOAT32 = ELEMENT_TYPES["float32"]
INT4 = ELEMENT_TYPES["int4"]
INT8 = ELEMENT_TYPES["int8"]
INT16 = ELEMENT_TYPES["int16"]
INT32 = ELEMENT_TYPES["int32"]


def type_name(given: object) -> object:
    """Return the name of a type that NumPy, ml_dtypes or PyTorch made; anything else as it is."""
    if isinstance(given, str) or given is None:
        return given
    if type(given).__module__ == "torch":
        return str(given).removeprefix("torch.")
    named = getattr(given, "name", None)  # of a dtype
    if isinstance(named, str) and hasattr(given, "itemsize"):
        return named
    named_by_class = isinstance(given, type) and given.__module__ in {"numpy", "ml_dtypes"}
    return given.__name__ if isinstance(given, type) and named_by_class else given


def element_type(name: object, subject: str = "dtype") -> ElementType:
    """Return the type called `name` in our spelling or the vendor's, or NumPy's or PyTorch's type.

    Raises
    ------
    RequestError
        If no type has that name; the message begins with `subject`.
    """
    called = name if type(name) is str else type_name(name)
    kind = _BY_ANY_NAME.get(called) if isinstance(called, str) else None
    if kind is None:
        near = did_you_mean(called, _BY_ANY_NAME) if isinstance(called, str) else ""
        need = "be an element type (" + ", ".join(ELEMENT_TYPES) + ")"
        raise refuse(subject, need, repr(called), near)
    return kind
