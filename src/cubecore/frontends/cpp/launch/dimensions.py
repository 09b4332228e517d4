"""The grid and the blocks of a kernel of threads (SIMT)."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from cubecore.chips.model import Chip
from cubecore.errors import refuse, unable

MOST_BLOCKS = 65_535
MOST_THREADS = 2048
ARCHITECTURE = "3510"
"""The architecture whose vector cores run threads."""
_UB_BYTES, _SYSTEM_BYTES, _LEAST_CACHE_BYTES = 256 << 10, 8 << 10, 32 << 10
MOST_DYNAMIC_BYTES = _UB_BYTES - _SYSTEM_BYTES - _LEAST_CACHE_BYTES
"""Of UB, where a kernel has no static memory; page "programming model", UB."""

Size = tuple[int, int, int]


@dataclass(frozen=True, slots=True)
class Dimensions:
    """Blocks and threads of a launch by their axes, and the bytes of UB that it asks for."""

    grid: Size
    threads: Size
    dynamic_bytes: int = 0

    def __post_init__(self) -> None:
        """Refuse what no launch takes."""
        if not 1 <= math.prod(self.grid) <= MOST_BLOCKS or min(self.grid) < 1:
            raise refuse("the grid", f"have 1 to {MOST_BLOCKS} blocks", _shown(self.grid))
        if not 1 <= math.prod(self.threads) <= MOST_THREADS or min(self.threads) < 1:
            need = f"have 1 to {MOST_THREADS} threads"
            raise refuse("a block", need, _shown(self.threads))
        if not 0 <= self.dynamic_bytes <= MOST_DYNAMIC_BYTES:
            need = (
                f"be at most {MOST_DYNAMIC_BYTES} B (256 KB without 8 KB of the system and 32 KB of"
                " the data cache)"
            )
            raise refuse("the dynamic UB of a block", need, f"{self.dynamic_bytes} B")

    @property
    def blocks(self) -> int:
        """All blocks of the grid."""
        return math.prod(self.grid)

    def require_chip(self, name: str, chip: Chip) -> None:
        """Refuse a chip that runs no threads.

        Raises
        ------
        RequestError
            If the chip is of another architecture.
        """
        if chip.arch != ARCHITECTURE:
            need = f"architecture {ARCHITECTURE} runs kernels of threads (SIMT), as {name} is one"
            raise unable(name, f"{need}; {chip.name} is {chip.arch}")


def dimensions(given: Sequence[object]) -> Dimensions:
    """Return the dimensions of ``kernel[grid, block]`` or ``kernel[grid, block, dynamic_bytes]``.

    Raises
    ------
    RequestError
        If it is none.
    """
    if len(given) not in {2, 3}:
        raise refuse("kernel[...]", "be grid, block and perhaps bytes of UB", repr(tuple(given)))
    dynamic = given[2] if len(given) == 3 else 0
    if not isinstance(dynamic, int):
        raise refuse("the dynamic UB of a block", "be a number of bytes", repr(dynamic))
    return Dimensions(_size("the grid", given[0]), _size("a block", given[1]), dynamic)


def size_of_text(option: str, text: str) -> Size:
    """Return a size as an option gives it: 40, or 8x4.

    Raises
    ------
    RequestError
        If it is none.
    """
    parts = text.replace(",", "x").split("x")
    if len(parts) > 3 or not all(part.isdigit() for part in parts):
        raise refuse(option, "be a number, or two or three with x between them", repr(text))
    x, y, z = (*map(int, parts), 1, 1)[:3]
    return x, y, z


def _size(subject: str, given: object) -> Size:
    parts = given if isinstance(given, (tuple, list)) else (given,)
    if not 1 <= len(parts) <= 3 or not all(type(part) is int for part in parts):
        raise refuse(subject, "be one to three whole numbers", repr(given))
    x, y, z = (*parts, 1, 1)[:3]
    return x, y, z


def _shown(size: Size) -> str:
    return f"{math.prod(size)} ({size[0]} x {size[1]} x {size[2]})"
