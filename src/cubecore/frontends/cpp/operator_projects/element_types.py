"""Element types as operator projects name them: numbers of ge::DataType, and types of C++."""

from dataclasses import dataclass

import numpy as np

from cubecore.dtypes import element_type

FORMAT_ND = 2


@dataclass(frozen=True, slots=True)
class RegisteredType:
    """A type: its number and name in ge::DataType, its name in kernels and in arrays."""

    number: int
    name: str
    kernel: str
    array: str


_TYPES = (
    RegisteredType(0, "DT_FLOAT", "float", "float32"),
    RegisteredType(1, "DT_FLOAT16", "half", "float16"),
    RegisteredType(2, "DT_INT8", "int8_t", "int8"),
    RegisteredType(3, "DT_INT32", "int32_t", "int32"),
    RegisteredType(4, "DT_UINT8", "uint8_t", "uint8"),
    RegisteredType(6, "DT_INT16", "int16_t", "int16"),
    RegisteredType(7, "DT_UINT16", "uint16_t", "uint16"),
    RegisteredType(8, "DT_UINT32", "uint32_t", "uint32"),
    RegisteredType(9, "DT_INT64", "int64_t", "int64"),
    RegisteredType(10, "DT_UINT64", "uint64_t", "uint64"),
    RegisteredType(11, "DT_DOUBLE", "double", "float64"),
    RegisteredType(12, "DT_BOOL", "bool", "bool"),
    RegisteredType(16, "DT_COMPLEX64", "complex64", "complex64"),
    RegisteredType(27, "DT_BF16", "bfloat16_t", "bfloat16"),
)
"""Page DataType (namespace ge); those that arrays have."""
BY_NUMBER = {one.number: one for one in _TYPES}
BY_ARRAY = {one.array: one for one in _TYPES}


def name_of(number: int) -> str:
    """Return the name of an element type that a sentence shows."""
    known = BY_NUMBER.get(number)
    return known.array if known else f"ge::DataType {number}"


def numpy_type(one: RegisteredType) -> np.dtype[np.generic]:
    """Return the type of arrays."""
    if one.array == "bfloat16":
        return element_type(one.array).numpy
    return np.dtype(one.array)
