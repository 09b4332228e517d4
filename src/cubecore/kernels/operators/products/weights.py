"""Operators that are matmuls: of groups, and with weights of int8 that vector cores convert.

Weights are converted first: all vector cores make float16 of them, times the scale of their column,
in global memory; then the AICs multiply. Kernels that convert a chunk beside the matmul are
faster where the weights are large.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache, partial

from cubecore.chips.model import Chip
from cubecore.dtypes import ElementType, element_type
from cubecore.errors import refuse
from cubecore.isa.catalogue import instruction_named
from cubecore.isa.declare.instruction import Instruction
from cubecore.isa.program.expr import Expr
from cubecore.isa.program.launch import CoreProgram, Launch, TensorSpec
from cubecore.isa.program.tree import Issue, Location, Program
from cubecore.isa.scalar.sync import FftsCrossCoreSync, PipeBarrier, WaitFlagDev
from cubecore.isa.vector.permute.copies import CopyGmToUbufAlign, CopyUbufToGmAlign
from cubecore.kernels.build.builder import BASIC, Builder
from cubecore.kernels.build.flags import Flags, Ring, of_tiles
from cubecore.kernels.matmul.launch import matmul_launch
from cubecore.kernels.operators.double_buffers import DoubleBuffers
from cubecore.tiling.model.problem import Problem
from cubecore.tiling.solver.solver import solve
from cubecore.units import ceil_div

_STEP = "CONSTANT"
_ALL_DONE = 0
"""The flag of all vector cores."""
READY = 1
"""The flag from an AI Core's vector cores to its AIC."""
_COLUMNS, _LANES = 4096, 128
_TILE = 4 * _COLUMNS
"""Weights in a tile."""
_HALF, _INT8 = element_type("float16"), element_type("int8")


def product_launch(
    chip: Chip,
    dtype: ElementType,
    *,
    m: int,
    n: int,
    k: int,
    groups: int = 1,
    result: str | None = None,
) -> Launch:
    """Return the launch of equal matmuls in our planner's tiling; C has A's type or `result`."""
    name = dtype.name
    problem = Problem(chip=chip.name, m=m, n=n, k=k, a=name, c=result or name, batch=groups)
    tiling = solve(problem, chip, 1).best.tiling
    return replace(matmul_launch(problem, tiling, chip, _STEP), kind=BASIC)


def cores_with(
    product: Launch, before: Sequence[Instruction] = (), after: Sequence[Instruction] = ()
) -> list[CoreProgram]:
    """Return the cores of a matmul whose programs have more instructions before and after."""
    here = Location("products.py", 0, "cores_with")
    first, last = (tuple(Issue(one, (), here) for one in more) for more in (before, after))
    longer = {
        program: Program((*first, *program.body, *last), program.slots, program.name)
        for program in product.programs
    }
    return [replace(core, program=longer[core.program]) for core in product.cores]


def tell_when_all_stored(b: Builder) -> None:
    """Let an AIV wait until all have stored what they have to, then tell its AIC: flag `READY`."""
    b.issue(FftsCrossCoreSync(on="MTE3", mode=0, flag_id=_ALL_DONE))
    b.issue(WaitFlagDev(flag_id=_ALL_DONE))
    b.issue(FftsCrossCoreSync(on="MTE3", mode=2, flag_id=READY))


@dataclass(frozen=True, slots=True)
class WeightQuantShape:
    """C[m, n] = A[m, k] (B[k, n] scale[n]) with A of float16 and B of int8.

    Raises
    ------
    RequestError
        If the kernel cannot take so many columns.
    """

    m: int
    n: int
    k: int

    def __post_init__(self) -> None:
        if self.n % _LANES:
            need = f"be a multiple of {_LANES}"
            raise refuse("the columns of weight_quant_matmul", need, self.n)


def weight_quant_launch(
    shape: WeightQuantShape, chip: Chip, tree_of: "type[Conversion] | None" = None
) -> Launch:
    """Return the launch: conversion by the vector cores of the AI Cores that multiply.

    `tree_of` makes the tree of a core's rows of the weights, A2's if None.
    """
    product = product_launch(chip, _HALF, m=shape.m, n=shape.n, k=shape.k)
    cores = cores_with(product, before=[WaitFlagDev(flag_id=READY)])
    share = ceil_div(shape.k, 2 * len(cores))
    tree = cache(partial(tree_of or Conversion, shape))
    for number in range(2 * len(cores)):
        count = max(min(share, shape.k - number * share), 0)
        cores.append(tree(count).on_core(cores[number // 2].core, number % 2, number * share))
    tensors = [
        TensorSpec("w", shape.k * shape.n),
        TensorSpec("scale", 2 * shape.n),
        *(replace(one, output=one.name in {"b", "c"}) for one in product.tensors),
    ]
    return Launch(tuple(tensors), tuple(cores), BASIC)


class Conversion:
    """The tree of an AIV with `count` rows of the weights."""

    arranged = DoubleBuffers.side_by_side

    def __init__(self, shape: WeightQuantShape, count: int) -> None:
        self.buffers = self.arranged({"scale": 2 * _COLUMNS, "w": _TILE, "b": 2 * _TILE})
        b = Builder(f"weights_{count}x{shape.n}", BASIC)
        self.builder, self.flags, self.shape = b, Flags(b), shape
        self.slots = {name: b.slot(name) for name in ("w", "scale", "b")}
        self.ring = Ring(b, "buffer", 2)
        if count:
            with self.flags.raised(of_tiles(2)):
                for index, columns in b.split("columns", shape.n, min(_COLUMNS, shape.n)):
                    self._columns(index * min(_COLUMNS, shape.n), columns, count)
        tell_when_all_stored(b)
        self.program = b.finish()

    def on_core(self, core: int, sub: int, row: int) -> CoreProgram:
        """Return the share of an AIV that begins at a row."""
        first = row * self.shape.n
        places = {"w": ("w", first), "scale": ("scale", 0), "b": ("b", 2 * first)}
        slots = {self.slots[name]: place for name, place in places.items()}
        return CoreProgram(core, self.program, slots, sub=1 + sub)

    def _columns(self, first: Expr, columns: int, rows: int) -> None:
        """Convert some columns of all rows, a few rows at a time."""
        b, flags = self.builder, self.flags
        each = max(min(_TILE // columns, 16), 1)
        load = CopyGmToUbufAlign(dtype=_HALF, n_burst=1, len_burst=2 * columns)
        flags.set("V", "MTE2", 2)  # the scales before are read
        flags.wait("V", "MTE2", 2)
        for into in self.scale_places():
            b.issue(load, into, Expr.of(self.slots["scale"]) + first * 2)
        flags.set("MTE2", "V", 2)
        flags.wait("MTE2", "V", 2)
        for index, count in b.split("rows", rows, each):
            event = self.ring.at
            at = index * (each * self.shape.n) + first
            gap = self.shape.n - columns
            flags.wait("V", "MTE2", event)
            copy = CopyGmToUbufAlign(
                dtype=_INT8, n_burst=count, len_burst=columns, src_gap=gap if count > 1 else 0
            )
            b.issue(copy, self.buffers.of("w", event), Expr.of(self.slots["w"]) + at)
            flags.set("MTE2", "V", event)
            flags.wait("MTE2", "V", event)
            flags.wait("MTE3", "V", event)
            self.convert(event, count, columns)
            flags.set("V", "MTE2", event)
            flags.set("V", "MTE3", event)
            flags.wait("V", "MTE3", event)
            store = CopyUbufToGmAlign(
                dtype=_HALF, n_burst=count, len_burst=2 * columns, dst_gap=2 * gap * (count > 1)
            )
            b.issue(store, Expr.of(self.slots["b"]) + at * 2, self.buffers.of("b", event))
            flags.set("MTE3", "V", event)
            self.ring.next()

    def scale_places(self) -> tuple[int, ...]:
        """Return where the scales of columns go in UB."""
        return (self.buffers.first("scale"),)

    def convert(self, event: Expr, rows: int, columns: int) -> None:
        """Convert rows to half, and multiply them by their scales."""
        b, repeats = self.builder, columns // _LANES
        source, into = self.buffers.of("w", event), self.buffers.of("b", event)
        for row in range(rows):
            convert = instruction_named("vconv_s82f16")(repeat=repeats)
            b.issue(convert, into + 2 * columns * row, source + columns * row)
        b.issue(PipeBarrier(on="V"))
        for row in range(rows):
            scaled = instruction_named("vmul")(dtype=_HALF, repeat=repeats)
            place = into + 2 * columns * row
            b.issue(scaled, place, place, self.buffers.first("scale"))
