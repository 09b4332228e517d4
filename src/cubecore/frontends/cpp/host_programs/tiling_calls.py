"""Tilings that C++ host code asks for: its calls of setters, made again on those in Python."""

from collections.abc import Iterator, Sequence

from cubecore.chips.model import Chip
from cubecore.dtypes import ELEMENT_TYPES
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
from cubecore.tiling.model.problem import Problem
from cubecore.tiling.model.tcubetiling import TCubeTiling
from cubecore.units import FRACTAL_ROWS, align_up, ceil_div

_CLASSES = {
    each.__name__: each for each in (MatmulApiTiling, MultiCoreMatmulTiling, BatchMatmulTiling)
}
_Answered = tuple[MatmulApiTilingBase, TCubeTiling]
_CORES = 5
_LONGER = 0.03
_OF_SHARES = {"set_single_shape", "set_single_range", "set_align_split"}
_OF_BLOCKS = {"set_fix_split", "set_split_range"}
"""Setters by which host code says itself how C is divided."""
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
    asked, tiling = _in_rows(chip, kind, calls)
    cores: tuple[int, ...] = (1, 1, 1)
    if isinstance(asked, (MultiCoreMatmulTiling, BatchMatmulTiling)):
        cores = asked.get_core_num()
    assert isinstance(asked, (ManyCoreTilingBase, MatmulApiTiling))
    counts = (*cores, *(1,) * (_CORES - len(cores)))
    return tiling.to_bytes() + b"".join(n.to_bytes(4, "little", signed=True) for n in counts)


def _in_rows(chip: Chip, kind: str, calls: Sequence[str]) -> _Answered:
    """Return the setters and a tiling that takes at most 3 % longer than the best, and is simple.

    A kernel that knows no tails, or that puts shares or blocks one behind another, works with
    shares of one size, with whole rows of C and with equal steps along K.
    """
    asked, t = best = _answered(chip, kind, calls)
    # From the best tiling on each wish is tried alone and kept if it is little slower: shares of
    # one size, a block that is a whole share or whole rows, steps that divide K. What the host code
    # itself said of shares or blocks is left alone.
    most = asked.solution.best.predicted.cycles * (1 + _LONGER)
    if kind == "BatchMatmulTiling" or t.singleCoreK != asked.problem.k:
        return best
    if kind == "MultiCoreMatmulTiling" and not _names(calls) & _OF_SHARES:
        for m, n in _even_shares(asked.problem.m, asked.problem.n, t):
            more = [*calls, f"set_single_shape {m} {n} -1"]
            found = _within(most, chip, kind, more)
            if found is not None:
                best, calls = found, more
                break
    if _names(calls) & _OF_BLOCKS:
        return best
    for block in _large_blocks(chip, asked.problem.n, best[1]):
        found = _within(most, chip, kind, [*calls, f"set_fix_split {block} -1"])
        if found is not None:
            best = found
            break
    _, t = best
    base_k = _even_steps(chip, asked.problem, t)
    if base_k == t.baseK:
        return best
    steps = f"set_fix_split {t.baseM} {t.baseN} {base_k}"
    return _within(most, chip, kind, [*calls, steps]) or best


def _large_blocks(chip: Chip, n: int, t: TCubeTiling) -> Iterator[str]:
    """Yield baseM and baseN of a block that is a whole share, and of one that is whole rows of C.

    None where a tiling has such blocks.
    """
    height, width = (align_up(x, FRACTAL_ROWS) for x in (t.singleCoreM, t.singleCoreN))
    row = ELEMENT_TYPES["float32"].bytes_of(width)
    if row > (memory_bytes(chip, Mem.BT)[1] or 0):
        return
    taller, wider = t.baseM < height, t.baseN < width
    if (taller or wider) and height * row <= (memory_bytes(chip, Mem.L0C)[1] or 0):
        yield f"{height} {width}"
    if wider and t.singleCoreN == n:
        yield f"-1 {width}"


def _even_steps(chip: Chip, problem: Problem, t: TCubeTiling) -> int:
    """Return the longest baseK that divides K and leaves L0A and L0B two buffers; else its own."""
    steps = []
    # The longest baseK of which half of the buffer holds a block.
    for mem, name, rows in ((Mem.L0A, problem.a, t.baseM), (Mem.L0B, problem.b, t.baseN)):
        dtype = ELEMENT_TYPES[name]
        each = dtype.bytes_of(align_up(rows, FRACTAL_ROWS))
        steps.append((memory_bytes(chip, mem)[1] or 0) // 2 // each)
    unit = max(FRACTAL_ROWS, ELEMENT_TYPES[problem.a].c0)
    even = [k for k in range(unit, min(steps) + 1, unit) if t.singleCoreK % k == 0]
    return max(even, default=t.baseK)


def _even_shares(m: int, n: int, t: TCubeTiling) -> Iterator[tuple[int, int]]:
    """Yield shares of one size for at most as many cores as a tiling has, whole rows first."""
    rows, columns = ceil_div(m, t.singleCoreM), ceil_div(n, t.singleCoreN)
    if columns > 1 and m % (rows * columns) == 0:
        yield m // (rows * columns), n
    if m % t.singleCoreM or n % t.singleCoreN:
        yield m // _divisor(m, rows), n // _divisor(n, columns)


def _divisor(extent: int, most: int) -> int:
    return next(parts for parts in range(most, 0, -1) if extent % parts == 0)


def _within(most: float, chip: Chip, kind: str, calls: Sequence[str]) -> _Answered | None:
    """Return the setters of calls and their best tiling, if it takes so many cycles at most."""
    try:
        found = _answered(chip, kind, calls)
    except CubecoreError:
        return None
    return found if found[0].solution.best.predicted.cycles <= most else None


def _answered(chip: Chip, kind: str, calls: Sequence[str]) -> _Answered:
    asked = _asked(chip, kind, calls)
    return asked, asked.get_tiling()


def _asked(chip: Chip, kind: str, calls: Sequence[str]) -> MatmulApiTilingBase:
    """Return the setters after calls."""
    # More cores than there are AICs can only be vector cores, which a mix launch counts.
    dims = [int(call.split()[1]) for call in calls if call.startswith("set_dim ")]
    vectors = bool(dims) and dims[-1] > chip.aic_count
    asked: MatmulApiTilingBase = _CLASSES[kind](chip, launch="mix" if vectors else "cube")
    for call in calls:
        name, *words = call.split()
        if name == "set_buffer_space":
            words = list(_bounds(chip, words))
        getattr(asked, name)(*(_value(word) for word in words))
    return asked


def _names(calls: Sequence[str]) -> set[str]:
    return {call.split()[0] for call in calls}


def _bounds(chip: Chip, words: Sequence[str]) -> Iterator[str]:
    """Yield the words of set_buffer_space; a whole memory, as the platform says it, is no bound."""
    for name, word in zip(_MEMORIES, words, strict=False):
        yield "-1" if int(word) == (memory_bytes(chip, Mem[name])[1] or 0) else word


def _value(word: str) -> str | int:
    return int(word) if word.lstrip("-").isdigit() else word
