"""Tilings that C++ host code asks for: its calls of setters, made again on those in Python."""

from collections.abc import Iterator, Sequence

from cubecore.chips.model import Chip
from cubecore.errors import CubecoreError
from cubecore.frontends.matmul_tiling.setters import (
    BatchMatmulTiling,
    ManyCoreTilingBase,
    MatmulApiTiling,
    MatmulApiTilingBase,
    MultiCoreMatmulTiling,
)
from cubecore.isa.declare.instruction import Mem
from cubecore.isa.program.check import memory_bytes

_CLASSES = {
    each.__name__: each for each in (MatmulApiTiling, MultiCoreMatmulTiling, BatchMatmulTiling)
}
_CORES = 5
_MEMORIES = ("L1", "L0C", "UB", "BT")


class HostTilings:
    """Answers what GetTiling asks; `reason` is why the last one had no answer."""

    def __init__(self, chip: Chip) -> None:
        self._chip = chip
        self.reason = ""

    def answer(self, text: str, capacity: int) -> bytes:
        """Return the bytes of the tiling that a text of calls leads to, none if there is none."""
        kind, *calls = text.split("\n")
        self.reason = ""
        try:
            raw = tiling_bytes(self._chip, kind, calls)
        except CubecoreError as error:
            self.reason = f"{kind}: {error}".splitlines()[0]
            return b""
        assert len(raw) <= capacity, "the headers have another TCubeTiling"
        return raw


def tiling_bytes(chip: Chip, kind: str, calls: Sequence[str]) -> bytes:
    """Return a tiling's bytes, and those of its counts of cores.

    Raises
    ------
    CubecoreError
        If a setter refuses its values, or no tiling satisfies them.
    """
    dims = [int(call.split()[1]) for call in calls if call.startswith("set_dim ")]
    vectors = bool(dims) and dims[-1] > chip.aic_count
    asked: MatmulApiTilingBase = _CLASSES[kind](chip, launch="mix" if vectors else "cube")
    for call in calls:
        name, *words = call.split()
        if name == "set_buffer_space":
            words = list(_bounds(chip, words))
        getattr(asked, name)(*(_value(word) for word in words))
    tiling = asked.get_tiling()
    cores: tuple[int, ...] = (1, 1, 1)
    if isinstance(asked, (MultiCoreMatmulTiling, BatchMatmulTiling)):
        cores = asked.get_core_num()
    assert isinstance(asked, (ManyCoreTilingBase, MatmulApiTiling))
    counts = (*cores, *(1,) * (_CORES - len(cores)))
    return tiling.to_bytes() + b"".join(n.to_bytes(4, "little", signed=True) for n in counts)


def _bounds(chip: Chip, words: Sequence[str]) -> Iterator[str]:
    """Yield the words of set_buffer_space; a whole memory, as the platform says it, is no bound."""
    for name, word in zip(_MEMORIES, words, strict=False):
        yield "-1" if int(word) == (memory_bytes(chip, Mem[name])[1] or 0) else word


def _value(word: str) -> str | int:
    return int(word) if word.lstrip("-").isdigit() else word
