"""Attention: O = softmax(Q K^T / sqrt(D)) V for each head, all of it on the chip.

An AI Core takes 64 rows of Q, or more, and goes over the keys in blocks (`key_steps`). Its AIC
multiplies, its two AIVs, each with half the rows, keep the softmax as it grows (`rows`). Scores,
probabilities and sums pass through global memory, two slots of each for an AI Core; three flags
count blocks of keys. The AIC multiplies Q K_(j+1)^T before it waits for P_j, so that both sides
work; with three slots Q K_(j+2)^T, too, as kernels do that are tuned by hand. It is the kernel of
examples/kernels/flash_attention.py, with shapes as parameters. On Ascend 950 the same products hand
over within the AI Core (`registers.attention`).
"""

from collections.abc import Iterator
from typing import ClassVar, NamedTuple, Protocol

from cubecore.chips import costs
from cubecore.chips.model import Chip
from cubecore.dtypes import element_type
from cubecore.isa.cube.fixpipe import CopyMatrixCcToGm
from cubecore.isa.cube.mad import Mad
from cubecore.isa.mte.copies import (
    CopyGmToCbufMultiNd2Nz,
    LoadCbufToCa,
    LoadCbufToCb,
    LoadCbufToCbTranspose,
)
from cubecore.isa.mte.fill import CreateCbufMatrix
from cubecore.isa.mte.partner import AIVS
from cubecore.isa.program.expr import Expr, Var
from cubecore.isa.program.launch import CoreProgram, Launch, TensorSpec
from cubecore.isa.scalar.sync import FftsCrossCoreSync, PipeBarrier, WaitFlagDev
from cubecore.kernels.build.builder import BASIC, Builder
from cubecore.kernels.build.flags import Flags
from cubecore.kernels.operators.attention.join import joined_rows, part_specs
from cubecore.kernels.operators.attention.key_steps import KeyStep, key_steps
from cubecore.kernels.operators.attention.rows import AttentionRows
from cubecore.kernels.operators.attention.shape import CHANCES, SCORES, VALUES, AttentionShape
from cubecore.kernels.operators.attention.shares import (
    AttentionPart,
    PartExtent,
    attention_shares,
    row_blocks,
)
from cubecore.units import DATA_BLOCK_BYTES, FRACTAL_BYTES, FRACTAL_ROWS

_KEYS_FREE, VALUES_FREE, _QUERIES_FREE = 0, 3, 6
"""Events of MTE1 to MTE2: of the slots of K, of those of V and P, of Q."""
_LEFT_FREE = 2
"""The event of the Cube to MTE1 for Q in L0A; 0 and 1 are those of L0B's slots."""
_SUM_FREE = 2
"""The event of fixpipe to the Cube for O_j; those before are of S_j's parts."""


Extents = tuple[PartExtent, ...]
"""Those of each part of a core's share."""


class VectorTree(Protocol):
    """The tree of an AIV, and that of the `second` one."""

    def __init__(
        self,
        shape: AttentionShape,
        extents: Extents,
        *,
        second: bool = False,
        joined: int | None = None,
    ) -> None:
        """Write the tree for parts of these extents, and for so many rows of a second pass."""

    def on_core(self, core: int, share: tuple[AttentionPart, ...], joins: int = 0) -> CoreProgram:
        """Return the tree with its slots filled for the parts of a core.

        `joins` is the first row of its second pass.
        """


class AttentionTrees(NamedTuple):
    """The trees of an AIC, and of its AIVs."""

    products: "type[AttentionProducts]"
    rows: type[VectorTree]


def attention_launch(
    shape: AttentionShape,
    chip: Chip,
    cores: int | None = None,
    trees_of: AttentionTrees | None = None,
) -> Launch:
    """Return the launch of attention on the AI Cores of a chip, or on so many of them.

    Without `trees_of` its trees are A2's.
    """
    products, rows = trees_of or AttentionTrees(AttentionProducts, AttentionRows)
    shares = attention_shares(shape, cores or chip.require("aic_count", "attention"))
    aics: dict[Extents, AttentionProducts] = {}
    aivs: dict[tuple[Extents, bool, int | None], VectorTree] = {}
    programs = []
    for core, share in enumerate(shares):
        extents = tuple(part.extent for part in share)
        if extents not in aics:
            aics[extents] = products(shape, extents)
        programs.append(aics[extents].on_core(core, share))
        for second in (False, True):
            later = joined_rows(shape, AIVS * len(shares), AIVS * core + second)
            count = None if later is None else later.end - later.first
            key = extents, second, count
            if key not in aivs:
                aivs[key] = rows(shape, extents, second=second, joined=count)
            programs.append(aivs[key].on_core(core, share, 0 if later is None else later.first))
    tensors = _tensors(shape, len(shares), products.in_memory)
    return Launch(tuple(tensors), tuple(programs), BASIC)


def _tensors(shape: AttentionShape, cores: int, in_memory: tuple[str, ...]) -> Iterator[TensorSpec]:
    yield TensorSpec("q", shape.q_bytes)
    yield TensorSpec("k", shape.kv_bytes)
    yield TensorSpec("v", shape.kv_bytes)
    yield TensorSpec("y", shape.q_bytes, output=True)
    yield from part_specs(shape)
    for name in in_memory:
        yield TensorSpec(name, shape.handed * cores * shape.workspace[name], output=True)


class AttentionProducts:
    """The AIC's tree; `in_memory` is what it and its AIVs hand over in global memory."""

    in_memory: ClassVar[tuple[str, ...]] = ("scores", "chances", "values")
    a_layout: ClassVar[str] = "ZZ"

    def __init__(self, shape: AttentionShape, extents: Extents) -> None:
        self.shape, self.builder = shape, Builder(f"attention_{shape.name}", BASIC)
        b, s = self.builder, shape
        self.flags = Flags(b)
        self.slots: list[dict[str, Var]] = []
        self.made = {name: b.slot(name) for name in self.in_memory}
        # L0A: Q, of one tile for all key blocks, then two slots of P_j's parts. L0C: two parts of
        # S_j in float32, then O_j.
        size = s.dtype.size_bytes
        self.l1 = s.l1_places
        self.q_l0, self.p_l0 = 0, s.tile * s.width * size
        self.p_apart = s.tile * s.part * size
        self.b_apart = s.part * s.width * size
        self.o_l0 = 4 * s.tile * min(s.block, 2 * s.part)
        self.turn = b.scalar("turn")
        self.l0 = b.scalar("l0")
        # All slots are free at first: their flags are raised before the loops and lowered behind
        # them, so that the loops need no case for the first turn.
        up = [("MTE1", "MTE2", first + n) for first in (0, VALUES_FREE) for n in range(s.slots)]
        up += [("MTE1", "MTE2", _QUERIES_FREE)]
        up += [("M", "MTE1", event) for event in range(_LEFT_FREE + 1)]
        up += [("FIX", "M", event) for event in range(_SUM_FREE + 1)]
        # Loads of Q never write the rows that fill up a fractal: zeros there once are zeros for all
        # heads, and the products of these rows are never stored.
        if s.stored_rows < s.rows:
            blocks = s.rows * s.width * size // DATA_BLOCK_BYTES
            zeros = CreateCbufMatrix(dtype=s.dtype, bits=0, repeat=1, blk_num=blocks)
            b.issue(zeros, self.l1["q"][0])
            b.issue(PipeBarrier(on="MTE2"))
        with self.flags.raised(up):
            for number, extent in enumerate(extents):
                slots = {name: b.slot(f"{name}{number}") for name in "qkv"}
                self.slots.append(slots)
                for block in row_blocks(b, s, extent):
                    query = Expr.of(slots["q"]) + block.row * (s.width * size)
                    keys = block.key_head * (s.keys * s.width * size)
                    matrices = [Expr.of(slots[name]) + keys for name in "kv"]
                    self._rows(query, block.number, matrices)
        self.program = b.finish()

    def on_core(self, core: int, share: tuple[AttentionPart, ...]) -> CoreProgram:
        """Return the tree with its slots filled for the parts of a core."""
        slots = {
            var: (name, self.shape.handed * core * self.shape.workspace[name])
            for name, var in self.made.items()
        }
        for part, named in zip(share, self.slots, strict=True):
            slots[named["q"]] = ("q", part.query)
            slots |= {named[name]: (name, part.key) for name in "kv"}
        return CoreProgram(core, self.program, slots)

    def _rows(self, q: Expr, row_block: Expr, matrices: list[Expr]) -> None:
        """Multiply rows of Q with every block of keys that they see."""
        s, flags = self.shape, self.flags
        self.turn.set(0)
        flags.wait("MTE1", "MTE2", _QUERIES_FREE)
        at, size = self.l1["q"][0], s.tile * s.width * s.dtype.size_bytes
        rows = min(s.stored_rows, s.tile)
        for tile in range(s.tiles):
            into, source = at + tile * size, q + tile * size
            self._fractals(into, source, rows, s.width, column_rows=s.tile)
        for step in key_steps(self.builder, s, row_block):
            if step.values:
                self._values(step.keys)
            else:
                self._scores(step, matrices)
        # One tile of Q was copied to L0A and left L1 at the first block; several stay to the last.
        if s.tiles == 1:
            flags.set("M", "MTE1", _LEFT_FREE)
        else:
            flags.set("MTE1", "MTE2", _QUERIES_FREE)

    def _scores(self, step: KeyStep, matrices: list[Expr]) -> None:
        """Load K_j and V_j; multiply Q by K_j^T, which does not wait for V_j."""
        s, flags = self.shape, self.flags
        size, slot = s.dtype.size_bytes, step.turn(self.turn.value, s.slots)
        at = step.number * (s.block * s.width * size)
        for name, free, matrix in zip("kv", (_KEYS_FREE, VALUES_FREE), matrices, strict=True):
            flags.wait("MTE1", "MTE2", slot + free)
            for start, length in s.parts(step.keys):
                away = start * s.width * size
                self._fractals(self._l1(name, slot) + away, matrix + at + away, length, s.width)
            if name == "k":
                flags.set("MTE2", "MTE1", slot)
        self.values_loaded(slot)
        # K_j is there; V_j may still be under way, and is waited for with P_j in `_values`.
        flags.wait("MTE2", "MTE1", slot)
        for tile in range(s.tiles):
            self._load_queries(tile, first=step.before and step.number == Expr(0))
            self._multiply_queries(step.keys, slot, tile)
            if s.tiles > 1:
                flags.set("M", "MTE1", _LEFT_FREE)
            if tile + 1 == s.tiles:
                flags.set("MTE1", "MTE2", slot + _KEYS_FREE)
            self.signal(SCORES)

    def _load_queries(self, tile: int, *, first: bool) -> None:
        """Bring a tile of Q to L0A: once for all blocks of keys where there is one alone."""
        s, flags = self.shape, self.flags
        if first or s.tiles > 1:
            flags.wait("M", "MTE1", _LEFT_FREE)
            away = tile * s.tile * s.width * s.dtype.size_bytes
            self.load_left(self.q_l0, Expr(self.l1["q"][0] + away), s.width)
            if s.tiles == 1:
                flags.set("MTE1", "MTE2", _QUERIES_FREE)

    def _multiply_queries(self, keys: int, slot: Expr, tile: int) -> None:
        """Multiply a tile of Q by K_j^T, part by part, and hand the scores over."""
        s, b, flags = self.shape, self.builder, self.flags
        size = s.dtype.size_bytes
        for number, (start, length) in enumerate(s.parts(keys)):
            into, half = self._next(), number % 2
            source = self._l1("k", slot) + start * s.width * size
            fractals = length * s.width * size // FRACTAL_BYTES
            b.issue(LoadCbufToCb(repeat=fractals), into * self.b_apart, source)
            flags.set("MTE1", "M", into)
            flags.wait("MTE1", "M", into)
            flags.wait("FIX", "M", half)
            # A column of fractals holds all rows of a tile: 4 B each.
            place = Expr(4 * s.tile * s.part * half)
            self._multiply(place, Expr(self.q_l0), into, s.tile, s.width, length, start=True)
            flags.set("M", "MTE1", into)
            self._store("scores", slot * s.tiles + tile, start, place, length, half)
            self._step()

    def _values(self, keys: int) -> None:
        """Multiply P_j by V_j, tile by tile."""
        s, flags = self.shape, self.flags
        slot = self.turn.value
        for tile in range(s.tiles):
            handed = slot * s.tiles + tile
            self.take_chances(handed, keys)
            flags.wait("MTE2", "MTE1", handed + VALUES_FREE)
            self._multiply_chances(keys, slot, handed)
            if tile + 1 == s.tiles:
                flags.set("MTE1", "MTE2", slot + VALUES_FREE)
            self._store("values", handed, 0, Expr(self.o_l0), s.width, _SUM_FREE)
            self.signal(VALUES)
        self.turn.set((slot + 1) % s.slots)

    def _multiply_chances(self, keys: int, slot: Expr, handed: Expr) -> None:
        """Multiply a tile of P_j by V_j: O_j is the sum over P_j's columns and V_j's rows."""
        s, flags = self.shape, self.flags
        size, p = s.dtype.size_bytes, self._l1("p", handed)
        flags.wait("FIX", "M", _SUM_FREE)
        for start, length in s.parts(keys):
            into = self._next()
            left = into * self.p_apart + self.p_l0
            self.load_left(left, p + start * s.tile * size, length)
            source = self._l1("v", slot) + start * s.width * size
            self._turned(into * self.b_apart, source, length)
            flags.set("MTE1", "M", into)
            flags.wait("MTE1", "M", into)
            total = Expr(self.o_l0)
            self._multiply(total, left, into, s.tile, length, s.width, start=start == 0)
            flags.set("M", "MTE1", into)
            self._step()

    def values_loaded(self, slot: Expr) -> None:
        """Note nothing: P_j, which MTE2 loads behind V_j, says that both are there."""

    def take_chances(self, slot: Expr, keys: int) -> None:
        """Wait for a tile of P_j, and load it."""
        s = self.shape
        self.builder.issue(WaitFlagDev(flag_id=CHANCES))
        chances = Expr.of(self.made["chances"]) + slot * s.workspace["chances"]
        self._fractals(self._l1("p", slot), chances, s.tile, keys, pitch=s.block)
        self.flags.set("MTE2", "MTE1", slot + VALUES_FREE)

    def signal(self, flag: int) -> None:
        """Tell the AIVs that a tile is theirs."""
        self.builder.issue(FftsCrossCoreSync(on="FIX", mode=2, flag_id=flag))

    def hand_over(self, name: str, slot: Expr, start: int, tile: Expr, columns: int) -> None:
        """Write a tile to the AIVs' rows, from their column `start` on."""
        into = Expr.of(self.made[name]) + slot * self.shape.workspace[name] + 4 * start
        store = CopyMatrixCcToGm(
            src_type=element_type("float32"),
            n_size=columns,
            m_size=self.shape.tile,
            dst_stride=self.shape.columns_of(name),
            src_stride=self.shape.tile,
            nz2nd_en=True,
        )
        self.builder.issue(store, into, tile)

    def _l1(self, name: str, slot: Expr) -> Expr:
        at, apart = self.l1[name]
        return slot * apart + at

    def _next(self) -> Expr:
        """Return the slot of L0B whose turn it is, once the Cube is done with it."""
        self.flags.wait("M", "MTE1", self.l0.value)
        return self.l0.value

    def _step(self) -> None:
        self.l0.set((self.l0.value + 1) % 2)

    def _fractals(
        self,
        into: Expr | int,
        source: Expr,
        rows: int,
        columns: int,
        *,
        pitch: int | None = None,
        column_rows: int | None = None,
    ) -> None:
        """Bring rows of global memory into fractals in L1, whose columns hold as many, or more."""
        load = CopyGmToCbufMultiNd2Nz(
            dtype=self.shape.dtype,
            n_value=rows,
            d_value=columns,
            src_d_value=pitch or columns,
            dst_nz_c0_stride=column_rows or rows,
        )
        self.builder.issue(load, into, source)

    def load_left(self, into: Expr | int, matrix: Expr, columns: int) -> None:
        """Move all rows of some columns from L1 to L0A, row of fractals by row."""
        down, across = self.shape.tile // FRACTAL_ROWS, columns // FRACTAL_ROWS
        move = LoadCbufToCa(repeat=across, src_stride=down)
        with self.builder.loop("row", down) as row:
            to = row * (across * FRACTAL_BYTES) + into
            self.builder.issue(move, to, matrix + row * FRACTAL_BYTES)

    def _turned(self, into: Expr, matrix: Expr, keys: int) -> None:
        """Move keys x D from L1 to L0B, transposing every fractal."""
        across, down = self.shape.width // FRACTAL_ROWS, keys // FRACTAL_ROWS
        move = LoadCbufToCbTranspose(dtype=self.shape.dtype, repeat=across, src_stride=down)
        with self.builder.loop("row", down) as row:
            to = row * (across * FRACTAL_BYTES) + into
            self.builder.issue(move, to, matrix + row * FRACTAL_BYTES)

    def _multiply(
        self, tile: Expr, left: Expr, right: Expr, m: int, k: int, n: int, *, start: bool
    ) -> None:
        dtype, wide = self.shape.dtype, element_type("float32")
        product = Mad(
            m=m,
            k=k,
            n=n,
            a_type=dtype,
            b_type=dtype,
            c_type=wide,
            c_matrix_init_val=start,
            a_layout=self.a_layout,
        )
        self.builder.issue(product, tile, left, right * self.b_apart)
        # Small products that follow each other on one tile of L0C are not kept in order by the Cube
        # itself.
        if costs.are_dependent(m, n):
            self.builder.issue(PipeBarrier(on="M"))

    def _store(
        self, name: str, slot: Expr, start: int, tile: Expr, columns: int, event: int
    ) -> None:
        """Hand a tile over once it is summed."""
        self.flags.set("M", "FIX", event)
        self.flags.wait("M", "FIX", event)
        self.hand_over(name, slot, start, tile, columns)
        self.flags.set("FIX", "M", event)
