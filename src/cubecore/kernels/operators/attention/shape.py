"""The sizes of attention, and what its kernel holds of them in the memories of a core."""

from collections.abc import Mapping
from dataclasses import dataclass

from cubecore.dtypes import ElementType
from cubecore.errors import refuse
from cubecore.units import FRACTAL_ROWS, align_up, ceil_div

SCORES, CHANCES, VALUES = 0, 1, 2
"""Flags between an AIC and its AIVs: S_j, P_j and O_j are in the workspace."""
ROWS, BLOCK = 64, 256
"""Rows of Q that an AI Core takes, and keys of a block, unless they are given."""
_PART_BYTES = 32 * 1024
"""Bytes of a slot of L0B, at most."""
_L0A_BYTES, _L0C_BYTES = 64 * 1024, 128 * 1024
_MOST_PART = 128
_WIDTHS = (64, 128, 256)
_HELD = (64, 128, 256)
_PRODUCT_ROWS = 128
"""Rows of a product, at most: of more, O_j leaves no room in L0C for S_j."""
KEYS = 64
"""Keys come in multiples of what a repeat of the Vector unit takes."""


@dataclass(frozen=True, slots=True)
class AttentionShape:
    """`heads` heads, each of `queries` rows of Q, and of `keys` rows of K and V, of `width`.

    `group` heads of Q share a head of K and V. `causal`: a row sees the keys up to its own, the
    last row all of them; without it heads that share keys may as well be one head, with all their
    rows. An AI Core takes `held_rows` rows of Q, and holds `held_keys` rows of K in L1 at a time.
    Keys of a head are cut into `splits` parts, which cores take alone; a second pass joins them.

    The AIC multiplies Q by `ahead` blocks of keys before it waits for what its AIVs make of the
    first, 1 or 2: as many more slots of K, V and P in L1 and of what is handed over.

    Raises
    ------
    RequestError
        If the kernel cannot take a size.
    """

    heads: int
    queries: int
    keys: int
    width: int
    dtype: ElementType
    ahead: int = 1
    causal: bool = False
    group: int = 1
    held_rows: int = ROWS
    held_keys: int | None = None
    splits: int = 1

    def __post_init__(self) -> None:
        if self.width not in _WIDTHS:
            raise refuse("the head size of attention", "be 64, 128 or 256", self.width)
        if self.keys % KEYS:
            raise refuse("the keys of attention", f"be a multiple of {KEYS}", self.keys)
        for name, held in (("--rows", self.held_rows), ("--keys", self._most_keys)):
            if held not in _HELD:
                raise refuse(name, "be 64, 128 or 256", held)
        q, rows = self.queries, self.held_rows
        if q > ROWS and q % rows:
            need = f"be at most {ROWS}, or a multiple of {rows}"
            raise refuse("the queries of attention", need, q)
        if self.tile * self.width * self.dtype.size_bytes >= _L0A_BYTES:
            raise refuse("--rows", f"be {ROWS} with heads of {self.width}: L0A holds Q", rows)
        if self.causal:
            self._check_mask()
        if self.splits < 1 or self.keys % (KEYS * self.splits):
            need = f"cut {self.keys} keys into equal multiples of {KEYS}"
            raise refuse("--splits", need, self.splits)

    def _check_mask(self) -> None:
        # The diagonal crosses one block of keys alone, the last one that a core's rows see, where
        # rows and blocks begin together.
        if self.splits > 1:
            raise refuse("--splits", "be 1 with --causal", self.splits)
        if self.keys < self.queries:
            need = f"be at least the {self.queries} queries with --causal"
            raise refuse("the keys of attention", need, self.keys)
        if self.queries > ROWS and self.keys % self.rows:
            need = f"be a multiple of the {self.rows} rows of a core with --causal"
            raise refuse("the keys of attention", need, self.keys)
        if self.block < self.rows:
            need = f"be at most the {self.block} keys in L1 with --causal"
            raise refuse("--rows", need, self.rows)

    @property
    def name(self) -> str:
        """The sizes in a word."""
        return f"{self.heads}x{self.queries}x{self.keys}x{self.width}"

    @property
    def rows(self) -> int:
        """Rows of Q that an AI Core takes, in whole fractals."""
        whole: int = align_up(self.queries, FRACTAL_ROWS)
        return whole if self.queries <= ROWS else self.held_rows

    @property
    def stored_rows(self) -> int:
        """Rows of them that there are in memory: the others are zeros in L1."""
        return min(self.queries, self.rows)

    @property
    def row_blocks(self) -> int:
        """Blocks of rows of a head, each of which an AI Core takes at a time."""
        blocks: int = ceil_div(self.queries, self.rows)
        return blocks

    @property
    def tile(self) -> int:
        """Rows of a product."""
        return min(self.rows, _PRODUCT_ROWS)

    @property
    def tiles(self) -> int:
        """Products that share a block of keys."""
        return self.rows // self.tile

    @property
    def task_keys(self) -> int:
        """Keys that an AI Core goes over: all of a head, or a part of them."""
        return self.keys // self.splits

    @property
    def block(self) -> int:
        """Keys of a block: what L1 and UB hold twice."""
        return min(self._most_keys * 128 // max(self.width, 128), self.task_keys)

    @property
    def _most_keys(self) -> int:
        """Keys of a block of heads of 128; more rows leave less room for keys."""
        most = BLOCK if self.rows <= ROWS else BLOCK // 2
        return most if self.held_keys is None else self.held_keys

    @property
    def blocks(self) -> list[int]:
        """The lengths of the blocks of keys: all of `block` but the last."""
        whole, tail = divmod(self.task_keys, self.block)
        return [self.block] * whole + ([tail] if tail else [])

    @property
    def slots(self) -> int:
        """Slots of K and V in L1; each has as many of P, and of what is handed over, as `tiles`."""
        return self.ahead + 1

    @property
    def handed(self) -> int:
        """Slots of what AIC and AIVs hand over."""
        return self.slots * self.tiles

    @property
    def part(self) -> int:
        """Keys that a slot of L0B takes at a time."""
        # L0A holds Q beside two slots of P, L0C two slots of S beside O_j; a part is a power of 2.
        size, tile = self.dtype.size_bytes, self.tile
        most = min(
            _PART_BYTES // (self.width * size),
            (_L0A_BYTES - tile * self.width * size) // (2 * tile * size),
            (_L0C_BYTES - 4 * tile * self.width) // (2 * 4 * tile),
            _MOST_PART,
        )
        return 1 << (most.bit_length() - 1)

    def parts(self, keys: int) -> list[tuple[int, int]]:
        """Return where the parts of a block of `keys` start, and their lengths."""
        return [(start, min(self.part, keys - start)) for start in range(0, keys, self.part)]

    @property
    def q_bytes(self) -> int:
        """Bytes of Q, and of O."""
        return self.heads * self.queries * self.width * self.dtype.size_bytes

    @property
    def kv_bytes(self) -> int:
        """Bytes of K, and of V."""
        return self.heads // self.group * self.keys * self.width * self.dtype.size_bytes

    @property
    def workspace(self) -> Mapping[str, int]:
        """Bytes of a slot of what AIC and AIVs hand over."""
        return {
            "scores": 4 * self.tile * self.block,
            "chances": self.dtype.size_bytes * self.tile * self.block,
            "values": 4 * self.tile * self.width,
        }

    def columns_of(self, name: str) -> int:
        """Return the columns of a row of what AIC and AIVs hand over."""
        return self.width if name == "values" else self.block

    @property
    def l1_places(self) -> Mapping[str, tuple[int, int]]:
        """Places in L1 of Q, and of slots of K_j, V_j and P_j: the first byte, and bytes of each.

        There are slots so that one is loaded while another one is multiplied.
        """
        at, places = 0, {}
        for name, bytes_each, count in self._l1_parts():
            places[name] = (at, bytes_each)
            at += bytes_each * count
        return places

    @property
    def l1_bytes(self) -> int:
        """Bytes of L1 that the kernel takes."""
        return sum(bytes_each * count for _, bytes_each, count in self._l1_parts())

    def _l1_parts(self) -> tuple[tuple[str, int, int], ...]:
        size = self.dtype.size_bytes
        return (
            ("q", self.rows * self.width * size, 1),
            ("k", self.block * self.width * size, self.slots),
            ("v", self.block * self.width * size, self.slots),
            ("p", self.tile * self.block * size, self.handed),
        )

    def visible(self, row_block: int) -> int:
        """Return the keys that the last row of a block of rows sees."""
        if not self.causal:
            return self.keys
        return self.keys - self.queries + (row_block + 1) * self.stored_rows

    @property
    def operations(self) -> int:
        """Multiplications and additions of the products: those on the diagonal are whole blocks."""
        seen = sum(self.visible(each) for each in range(self.row_blocks))
        return 4 * self.heads * self.stored_rows * seen * self.width

    def key_blocks(self, row_block: int) -> int:
        """Return the blocks of keys that a block of rows goes over."""
        blocks: int = ceil_div(self.visible(row_block), self.block)
        return blocks
