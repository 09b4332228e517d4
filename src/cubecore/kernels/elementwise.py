"""Element-wise kernels: streamed vector work on arrays, and loads alone.

Each core walks its share in tiles: MTE2 brings the tile's inputs to the Unified Buffer, the Vector
unit works, MTE3 writes the result back. With two buffers the next tile's loads run beside it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from cubecore.dtypes import ElementType
from cubecore.isa.catalogue import instruction_named
from cubecore.isa.declare.instruction import Instruction, Mem
from cubecore.isa.mte.copies import CopyGmToUbuf, CopyUbufToGm
from cubecore.isa.program.expr import Expr, Var
from cubecore.isa.program.launch import CoreProgram, Launch, TensorSpec
from cubecore.isa.program.tree import Program
from cubecore.isa.scalar.sync import PipeBarrier
from cubecore.isa.vector.common.mask import REPEAT_BYTES
from cubecore.kernels.build.builder import Builder
from cubecore.kernels.build.flags import Flags, Ring, of_tiles
from cubecore.units import DATA_BLOCK_BYTES, ceil_div

_MOST_REPEATS = 255
KIND = "VECTOR"


@dataclass(frozen=True, slots=True)
class Elementwise:
    """An element-wise kernel: `inputs` arrays and one result of `elements` elements.

    `work` is what the Vector unit does to a tile: (instruction, how often, its element type). A
    core takes `tile` elements at a time and holds `buffers` tiles of each array, `skew_bytes` apart
    beyond their size. `past_l2`: the inputs do not stay in L2. The result is written `outputs`
    times, to arrays of their own, which is for timing alone. `drains_rings` loads into all
    buffers again only when what all of them had is written, as flags do that a compiler inserts.
    """

    elements: int
    dtype: ElementType
    inputs: int
    work: Sequence[tuple[str, int, ElementType]]
    tile: int
    buffers: int
    cores: int
    skew_bytes: int = 0
    past_l2: bool = False
    outputs: int = 1
    drains_rings: bool = False

    @property
    def results(self) -> list[str]:
        """The names of the arrays that are written."""
        return ["y", *(f"y{i}" for i in range(1, self.outputs))]


def elementwise_launch(kernel: Elementwise) -> Launch:
    """Return the launch: cores have equal shares of whole tiles, the last has what is left."""
    share = ceil_div(ceil_div(kernel.elements, kernel.cores), kernel.tile) * kernel.tile
    size = kernel.dtype.bytes_of(kernel.elements)
    names = [f"x{i}" for i in range(kernel.inputs)]
    trees: dict[int, _Tree] = {}
    cores = []
    for core in range(ceil_div(kernel.elements, share)):
        length = min(share, kernel.elements - core * share)
        tree = trees.setdefault(length, _Tree(kernel, length))
        offset = kernel.dtype.bytes_of(core * share)
        arrays = zip(tree.slots, (*names, *kernel.results), strict=True)
        slots = {var: (name, offset) for var, name in arrays}
        cores.append(on_vector_core(core, tree.program, slots))
    tensors = [TensorSpec(name, size) for name in names]
    tensors += [TensorSpec(name, size, output=True) for name in kernel.results]
    past = frozenset(names) if kernel.past_l2 else frozenset()
    return Launch(tuple(tensors), tuple(cores), KIND, past_l2=past)


def on_vector_core(
    core: int, program: Program, slots: Mapping[Var, tuple[str, int]]
) -> CoreProgram:
    """Return a vector core's share; two of them belong to one AI Core."""
    return CoreProgram(core // 2, program, slots, sub=1 + core % 2)


class _Tree:
    """The tree of a core with `elements` elements."""

    def __init__(self, kernel: Elementwise, elements: int) -> None:
        b = Builder(f"elementwise_{elements}", KIND)
        self.kernel, self.builder, self.flags = kernel, b, Flags(b)
        self.slots = [b.slot(f"x{i}") for i in range(kernel.inputs)]
        self.slots += [b.slot(name) for name in kernel.results]
        self.ring = Ring(b, "buffer", kernel.buffers)
        with self.flags.raised(of_tiles(kernel.buffers)):
            for index, length in b.split("tile", elements, kernel.tile):
                self._tile(index, length)
        self.program = b.finish()

    def _tile(self, index: Expr, length: int) -> None:
        b, kernel, event = self.builder, self.kernel, self.ring.at
        buffer_bytes = int(kernel.dtype.bytes_of(kernel.tile)) + kernel.skew_bytes
        offset = index * int(kernel.dtype.bytes_of(kernel.tile))
        blocks = ceil_div(kernel.dtype.bytes_of(length), DATA_BLOCK_BYTES)
        first = event * (buffer_bytes * (kernel.inputs + 1))
        if kernel.drains_rings:
            with b.when(index % kernel.buffers, "==", 0):
                self.flags.set("MTE3", "MTE2", 0)
                self.flags.wait("MTE3", "MTE2", 0)
        self.flags.wait("V", "MTE2", event)
        for number, slot in enumerate(self.slots[: kernel.inputs]):
            copy = CopyGmToUbuf(n_burst=1, len_burst=blocks)
            b.issue(copy, first + number * buffer_bytes, Expr.of(slot) + offset)
        self.flags.set("MTE2", "V", event)
        self.flags.wait("MTE2", "V", event)
        self.flags.wait("MTE3", "V", event)
        to = first + kernel.inputs * buffer_bytes
        for name, times, dtype in kernel.work:
            for template, done in _repeats(name, dtype, length):
                buffers = [first + i * buffer_bytes for i in range(len(template.operands()) - 1)]
                with b.loop("again", times):
                    b.issue(template, to + done, *[buffer + done for buffer in buffers])
                    b.issue(PipeBarrier(on="V"))  # all work of a tile writes one buffer
        self.flags.set("V", "MTE2", event)
        self.flags.set("V", "MTE3", event)
        self.flags.wait("V", "MTE3", event)
        out = CopyUbufToGm(n_burst=1, len_burst=blocks)
        for slot in self.slots[kernel.inputs :]:
            b.issue(out, Expr.of(slot) + offset, to)
        self.flags.set("MTE3", "V", event)
        self.ring.next()


def _repeats(name: str, dtype: ElementType, elements: int) -> list[tuple[Instruction, int]]:
    """Return the instructions that cover `elements`, each with its offset in bytes."""
    total = ceil_div(dtype.bytes_of(elements), REPEAT_BYTES)
    return [
        (
            vector_instruction(name, dtype, min(_MOST_REPEATS, total - first)),
            first * REPEAT_BYTES,
        )
        for first in range(0, total, _MOST_REPEATS)
    ]


def vector_instruction(name: str, dtype: ElementType, repeat: int) -> Instruction:
    """Return a vector instruction of so many repeats; a scalar that it takes has the code 1."""
    cls: Any = instruction_named(name)
    scalar = {"value": 1} if "value" in cls.__dataclass_fields__ else {}
    instruction: Instruction = cls(dtype=dtype, **scalar, repeat=repeat)
    return instruction


def loads_launch(
    template: Instruction, tiles: Sequence[int], cores: int, spacing_bytes: int
) -> Launch:
    """Return a launch that only loads: `template` for every tile of a nest of loops.

    `tiles` are the trips of the nest, outermost first; a negative one repeats the same addresses.
    Tiles of a core lie `spacing_bytes` apart, and the cores behind each other.
    """
    b = Builder("loads", KIND)
    slot = b.slot("x")
    moving = [trips for trips in tiles if trips > 0]
    strides = [spacing_bytes]
    for trips in reversed(moving[1:]):
        strides.append(strides[-1] * trips)
    share = strides[-1] * moving[0]

    def nest(rest: Sequence[int], address: Expr, left: list[int]) -> None:
        if not rest:
            b.issue(template, 0, address)
            return
        with b.loop("tile", abs(rest[0])) as index:
            step, more = (left[-1], left[:-1]) if rest[0] > 0 else (0, left)
            nest(rest[1:], address + index * step, more)

    nest(tiles, Expr.of(slot), strides)
    program = b.finish()
    into_ub = any(operand.mem is Mem.UB for operand in template.operands())
    on_core = on_vector_core if into_ub else CoreProgram
    programs = tuple(on_core(i, program, {slot: ("x", i * share)}) for i in range(cores))
    return Launch((TensorSpec("x", cores * share),), programs, KIND)
