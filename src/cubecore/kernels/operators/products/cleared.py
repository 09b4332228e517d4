"""A matmul of slices of K that add up in C, which vector cores clear before.

Every vector core of the AI Cores that multiply stores zeros to its share of C; when all have, the
matmuls start.
"""

from dataclasses import replace
from functools import cache

from cubecore.dtypes import element_type
from cubecore.isa.catalogue import instruction_named
from cubecore.isa.program.expr import Expr, Var
from cubecore.isa.program.launch import CoreProgram, Launch
from cubecore.isa.program.tree import Program
from cubecore.isa.scalar.sync import WaitFlagDev
from cubecore.isa.vector.permute.copies import CopyUbufToGmAlign
from cubecore.kernels.build.builder import BASIC, Builder
from cubecore.kernels.build.flags import Flags
from cubecore.kernels.operators.products.weights import READY, cores_with, tell_when_all_stored
from cubecore.units import DATA_BLOCK_BYTES, align_up, ceil_div

_TILE_BYTES = 16384
_REPEAT_BYTES = 256
_FLOAT = element_type("float32")


def cleared(product: Launch) -> Launch:
    """Return the matmul after the clearing of its result."""
    cores = cores_with(product, before=[WaitFlagDev(flag_id=READY)])
    total = sum(tensor.size_bytes for tensor in product.tensors if tensor.output)
    share = align_up(ceil_div(total, 2 * len(cores)), DATA_BLOCK_BYTES)
    clearing = cache(_clearing)
    for number in range(2 * len(cores)):
        first = min(number * share, total)
        count = min(share, total - first)
        program, c = clearing(count)
        core = cores[number // 2].core
        cores.append(CoreProgram(core, program, {c: ("c", first)}, sub=1 + number % 2))
    tensors = tuple(replace(tensor, zeroed=False) for tensor in product.tensors)
    return Launch(tensors, tuple(cores), product.kind, product.warm)


def _clearing(count: int) -> tuple[Program, Var]:
    """Return the program of an AIV that clears `count` bytes of C, and where its share begins."""
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
    tell_when_all_stored(b)
    return b.finish(), c
