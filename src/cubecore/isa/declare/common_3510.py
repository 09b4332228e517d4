"""Field bounds, cache hints and types of the class API that instructions of 3510 share."""

from typing import NamedTuple

ARCH = ("3510",)
CARRIED = (
    "3510: the class API has functions of this name on memory, and no page says which instructions "
    "of the register unit they are: values, masks, repeats and strides are taken to be 2201's, and "
    "the cost is that of its repeats at 3510's rate (rough)"
)
"""The inference about an instruction of 2201 that stands for a function of 3510's class API."""
L2_HINTS = (0, 1, 2, 4)
FAR = 2**40 - 1
"""Largest distance between pieces in global memory: 40 bits."""
NEAR = 2**21 - 1
"""Largest length or distance in a local memory: 21 bits."""


class PageTypes(NamedTuple):
    """The element types that a page of 3510's class API lists: of every form, and of a count alone.

    What `by_count` has, calls with masks and repeats do not take.
    """

    types: tuple[str, ...]
    by_count: tuple[str, ...] = ()

    @property
    def listed(self) -> tuple[str, ...]:
        """All of them."""
        return self.types + self.by_count
