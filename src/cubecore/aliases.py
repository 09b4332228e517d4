"""Names for types that Python's annotations cannot spell out in full."""

from collections.abc import Mapping
from typing import Any, Protocol

Json = dict[str, Any]
"""A JSON object as Python's json module reads and writes it: answers, records, keyword options."""
JsonMapping = Mapping[str, Any]
"""A JSON object that is only read: requests and records of users."""
Column = Any
"""A quantity of one tiling or of many: an integer or real number, or a NumPy array of them.

Arrays, numbers and the symbols of a trace share their operators, and NumPy's stubs give `Any` for
most results, so that a union would have to be cast back at each step.
"""


class Columns(Protocol):
    """A struct of columns: each attribute is a `Column`, one entry for each tiling."""

    def __getattr__(self, name: str) -> Column:
        """Return the column `name`."""
