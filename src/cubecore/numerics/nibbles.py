"""Numbers of 4 bits: their codes, and what NumPy holds, one to a byte."""

import numpy as np
from numpy.typing import NDArray

from cubecore.arrays import Array
from cubecore.dtypes import ElementType

_SIGN = 8
Bytes = NDArray[np.uint8]


def decode(codes: Bytes, element: ElementType) -> Array:
    """Return the values of `codes` as NumPy holds them, one to a byte."""
    if element.kind == "int":
        return np.asarray((codes ^ _SIGN) - np.uint8(_SIGN), np.uint8).view(element.numpy)
    return codes.view(element.numpy)


def encode(values: Array) -> Bytes:
    """Return the codes of `values`, which NumPy holds one to a byte."""
    return np.asarray(np.ascontiguousarray(values).view(np.uint8) & 0xF, np.uint8)
