"""Provenance of the scales of MX matmuls in L1 and in the memories of scales.

Pairs of scales are words of 16 bits. A block of 32 B holds those of 16 rows, which may lie anywhere
in global memory; so each word has a code of its own, of the form that blocks of L1 have.
"""

from collections.abc import Callable
from functools import lru_cache

import numpy as np

from cubecore.chips.model import Chip
from cubecore.isa.cube.mad_mx import LoadCbufToCaMx, LoadCbufToCbMx, MadMx
from cubecore.isa.declare.instruction import Mem
from cubecore.isa.mte.copies_3510 import CopyGmToCbufMultiDn2Nz, CopyGmToCbufMultiNd2NzV2
from cubecore.isa.program.check import memory_bytes
from cubecore.layouts import Offsets
from cubecore.machine.blas.address_codes import IN_WORDS, TAKEN_BITS, UNKNOWN, ZERO, Codes
from cubecore.machine.blas.block_products import IrregularError
from cubecore.machine.blas.mx_scales import WORD_BYTES
from cubecore.units import DATA_BLOCK_BYTES

WordFill = CopyGmToCbufMultiDn2Nz | CopyGmToCbufMultiNd2NzV2
ScaleLoad = LoadCbufToCaMx | LoadCbufToCbMx
_WORDS = DATA_BLOCK_BYTES // WORD_BYTES
_SHARE = 16
"""Bytes of L0A or L0B to one byte of scales (asc-devkit, asc_mmad_mx)."""


@lru_cache(maxsize=128)
def _filled(template: WordFill) -> tuple[Offsets, Offsets, Codes]:
    """Return the blocks and words of L1 that a transfer fills, and the codes of its sources."""
    if template.dtype.size_bytes != WORD_BYTES or template.small:
        raise IrregularError("a transfer to NZ that is not of pairs of scales")
    source, target = template.offsets("src"), template.offsets("dst")
    blocks, odd = np.divmod(target[..., ::_WORDS], _WORDS)
    if odd.any():
        raise IrregularError("matrices that do not start at a block of L1")
    # A code is (address << TAKEN_BITS) + bytes taken from there. Adding an address, shifted
    # likewise, moves it; `ZERO` and `UNKNOWN` are negative and never moved.
    codes = (source * WORD_BYTES << TAKEN_BITS) + WORD_BYTES
    return blocks, target, np.where(source < 0, ZERO, codes)


@lru_cache(maxsize=128)
def _loaded(template: ScaleLoad) -> tuple[Offsets, Offsets, Offsets]:
    """Return the blocks and words that a load takes from L1, and the words that it fills."""
    within = np.arange(_WORDS, dtype=np.intp)
    blocks = template.offsets("src")
    target = template.offsets("dst")[..., None] * _WORDS + within
    return blocks, blocks[..., None] * _WORDS + within, target + template.dst_at // WORD_BYTES


@lru_cache(maxsize=128)
def _read(template: MadMx) -> tuple[Offsets, Offsets]:
    """Return the words that a matmul reads for A and for B, [r, pairs], from their places."""
    a, b = template.offsets("scale_a"), template.offsets("scale_b").T
    return a[:, ::WORD_BYTES] // WORD_BYTES, b[:, ::WORD_BYTES] // WORD_BYTES


class ScaleProvenance:
    """The words of L1, L0A's scales and L0B's; `blocks` are the codes of L1's blocks."""

    def __init__(self, chip: Chip, blocks: Codes) -> None:
        self._blocks = blocks
        sizes = (memory_bytes(chip, mem)[0] for mem in (Mem.L1, Mem.L0A_MX, Mem.L0B_MX))
        self._l1, self._a, self._b = (np.full(n // WORD_BYTES, UNKNOWN, np.int64) for n in sizes)

    def fill(self, template: WordFill, source: int) -> Callable[[int, int], None]:
        """Return what brings words from global memory to L1: (to, from).

        `source` is what a code has besides the address.
        """
        blocks, words, codes = _filled(template)

        def fill(dst: int, src: int) -> None:
            # L1's own codes say only that the block holds words; the words' codes are kept beside.
            at = (source + src) << TAKEN_BITS
            self._blocks[dst // DATA_BLOCK_BYTES + blocks] = IN_WORDS
            self._l1[dst // WORD_BYTES + words] = np.where(codes < 0, codes, codes + at)

        return fill

    def load(self, template: ScaleLoad) -> Callable[[int], None]:
        """Return what brings words from L1 to L0A's or L0B's scales: (from)."""
        blocks, source, target = _loaded(template)
        scales = self._a if isinstance(template, LoadCbufToCaMx) else self._b

        def load(src: int) -> None:
            if (self._blocks[src // DATA_BLOCK_BYTES + blocks] != IN_WORDS).any():
                raise IrregularError("scales that did not come in words")
            scales[target] = self._l1[src // WORD_BYTES + source]

        return load

    def read(self, template: MadMx) -> Callable[[int, int], tuple[Codes, Codes]]:
        """Return what finds the codes that a matmul reads: (address in L0A, in L0B)."""
        for_a, for_b = _read(template)

        def read(a: int, b: int) -> tuple[Codes, Codes]:
            words = (address // _SHARE // WORD_BYTES for address in (a, b))
            return self._a[next(words) + for_a], self._b[next(words) + for_b]

        return read


def steps(codes: Codes) -> tuple[int, int]:
    """Return how many bytes lie from one row's word to the next one's, and along K.

    Raises
    ------
    IrregularError
        If the scales lie otherwise, or are not words of global memory.
    """
    if codes.min() < 0:
        raise IrregularError("scales that were never loaded")
    # Scales can be read with strides if all addresses are first + i * to_r + j * to_k: the two
    # steps are taken from the first row and column, and compared with everything else.
    addresses = codes >> TAKEN_BITS
    (r, pairs), first = addresses.shape, int(addresses[0, 0])
    to_r = int(addresses[1, 0]) - first if r > 1 else 0
    to_k = int(addresses[0, 1]) - first if pairs > 1 else 0
    wanted = first + np.arange(r)[:, None] * to_r + np.arange(pairs) * to_k
    if min(to_r, to_k) < 0 or to_r % WORD_BYTES or to_k % WORD_BYTES or (addresses != wanted).any():
        raise IrregularError("scales in another order")
    return to_r // WORD_BYTES, to_k // WORD_BYTES
