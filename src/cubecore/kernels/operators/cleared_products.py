"""A product of slices of K that add up in C, which vector cores clear before.

Every vector core of the AI Cores that multiply stores zeros to its share of C; when all have, the
products start.
"""

from dataclasses import replace

from cubecore.dtypes import element_type
from cubecore.isa.catalogue import instruction_named
from cubecore.isa.program.expr import Expr
from cubecore.isa.program.launch import CoreProgram, Launch
from cubecore.isa.scalar.sync import FftsCrossCoreSync, WaitFlagDev
from cubecore.isa.vector.permute.copies import CopyUbufToGmAlign
from cubecore.kernels.build.builder import BASIC, Builder
from cubecore.kernels.build.flags import Flags
from cubecore.kernels.operators.products import cores_with
from cubecore.units import DATA_BLOCK_BYTES, align_up, ceil_div

_ALL_DONE, _CLEARED = 0, 1
"""Flags: of all vector cores, and from an AI Core's to its AIC."""
_TILE_BYTES = 16384
_REPEAT_BYTES = 256
_FLOAT = element_type("float32")


def cleared(product: Launch) -> Launch:
    """Return the product after the clearing of its result."""
    cores = cores_with(product, before=[WaitFlagDev(flag_id=_CLEARED)])
    total = sum(tensor.size_bytes for tensor in product.tensors if tensor.output)
    share = align_up(ceil_div(total, 2 * len(cores)), DATA_BLOCK_BYTES)
    for number in range(2 * len(cores)):
        first = min(number * share, total)
        aiv = _clearing(min(share, total - first), first, cores[number // 2].core, number % 2)
        cores.append(aiv)
    tensors = tuple(replace(tensor, zeroed=False) for tensor in product.tensors)
    return Launch(tensors, tuple(cores), product.kind, product.warm)


def _clearing(count: int, first: int, core: int, sub: int) -> CoreProgram:
    """Return the program of an AIV that clears `count` bytes of C from `first` on."""
    b = Builder(f"clearing_{count}", BASIC)
    flags, c = Flags(b), b.slot("c")
    if count:
        fill = instruction_named("vector_dup")
        b.issue(fill(dtype=_FLOAT, value=0, repeat=_TILE_BYTES // _REPEAT_BYTES), 0)
        flags.set("V", "MTE3", 0)
        flags.wait("V", "MTE3", 0)
        for index, size in b.split("parts", count, min(count, _TILE_BYTES)):
            store = CopyUbufToGmAlign(dtype=_FLOAT, n_burst=1, len_burst=size)
            b.issue(store, Expr.of(c) + index * _TILE_BYTES, 0)
    b.issue(FftsCrossCoreSync(on="MTE3", mode=0, flag_id=_ALL_DONE))
    b.issue(WaitFlagDev(flag_id=_ALL_DONE))
    b.issue(FftsCrossCoreSync(on="MTE3", mode=2, flag_id=_CLEARED))
    return CoreProgram(core, b.finish(), {c: ("c", first)}, sub=1 + sub)
