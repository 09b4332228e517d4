"""The type of an array of any elements; apart from other aliases, for this needs NumPy."""

from typing import Any

from numpy.typing import NDArray

Array = NDArray[Any]
"""A NumPy array of any elements and shape."""
