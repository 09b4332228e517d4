"""The sizes of attention, and how cores divide it."""

from collections.abc import Mapping

from cubecore.dtypes import ElementType
from cubecore.errors import refuse
from cubecore.lazy_dataclass import dataclass
from cubecore.units import FRACTAL_ROWS, align_up, ceil_div

SCORES, CHANCES, VALUES = 0, 1, 2
"""Flags between an AIC and its AIVs: S_j, P_j and O_j are in the workspace."""
ROWS, BLOCK, _PART_BYTES = 64, 256, 32 * 1024
"""Rows of Q that an AI Core takes, keys of a block, and bytes of a slot of L0B, at most."""
_WIDTHS = (64, 128, 256)
KEYS = 64
"""Keys come in multiples of what a repeat of the Vector unit takes."""


def whole_queries(queries: int) -> int:
    """Return queries brought to what the kernel takes."""
    whole: int = align_up(queries, FRACTAL_ROWS if queries <= ROWS else ROWS)
    return whole


@dataclass(frozen=True, slots=True)
class AttentionPart:
    """Some heads of a core, with blocks of rows of each; where they begin in Q and in K, bytes."""

    heads: int
    blocks: int
    query: int
    key: int


@dataclass(frozen=True, slots=True)
class AttentionShape:
    """`heads` heads, each of `queries` rows of Q, and of `keys` rows of K and V, of `width`.

    Heads of queries that share keys are one head here, with all their rows. The AIC multiplies Q by
    `ahead` blocks of keys before it waits for what its AIVs make of the first, 1 or 2: as many more
    slots of K, V and P in L1 and of what is handed over.

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

    def __post_init__(self) -> None:
        if self.width not in _WIDTHS:
            raise refuse("the head size of attention", "be 64, 128 or 256", self.width)
        if self.keys % KEYS:
            raise refuse("the keys of attention", f"be a multiple of {KEYS}", self.keys)
        q = self.queries
        if q != whole_queries(q):
            need = f"be a multiple of {FRACTAL_ROWS} up to {ROWS}, or a multiple of {ROWS}"
            raise refuse("the queries of attention", need, q)

    @property
    def name(self) -> str:
        """The sizes in a word."""
        return f"{self.heads}x{self.queries}x{self.keys}x{self.width}"

    @property
    def rows(self) -> int:
        """Rows of Q that an AI Core takes."""
        return min(self.queries, ROWS)

    @property
    def block(self) -> int:
        """Keys of a block: what L1 and UB hold twice."""
        return min(BLOCK * 128 // max(self.width, 128), self.keys)

    @property
    def blocks(self) -> list[int]:
        """The lengths of the blocks of keys: all of `block` but the last."""
        whole, tail = divmod(self.keys, self.block)
        return [self.block] * whole + ([tail] if tail else [])

    @property
    def slots(self) -> int:
        """Slots of what AIC and AIVs hand over, and of K, V and P in L1."""
        return self.ahead + 1

    @property
    def part(self) -> int:
        """Keys that a slot of L0B takes at a time."""
        return min(_PART_BYTES // (self.width * self.dtype.size_bytes), 128)

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
        return self.heads * self.keys * self.width * self.dtype.size_bytes

    @property
    def workspace(self) -> Mapping[str, int]:
        """Bytes of a slot of what AIC and AIVs hand over."""
        return {
            "scores": 4 * self.rows * self.block,
            "chances": self.dtype.size_bytes * self.rows * self.block,
            "values": 4 * self.rows * self.width,
        }

    def columns_of(self, name: str) -> int:
        """Return the columns of a row of what AIC and AIVs hand over."""
        return self.width if name == "values" else self.block

    @property
    def l1_places(self) -> Mapping[str, tuple[int, int]]:
        """Places in L1 of Q, and of slots of K_j, V_j and P_j: the first byte, and bytes of each.

        There are slots so that one is loaded while another one is multiplied.
        """
        size, at = self.dtype.size_bytes, 0
        places = {}
        for name, bytes_each, count in (
            ("q", self.rows * self.width * size, 1),
            ("k", self.block * self.width * size, self.slots),
            ("v", self.block * self.width * size, self.slots),
            ("p", self.rows * self.block * size, self.slots),
        ):
            places[name] = (at, bytes_each)
            at += bytes_each * count
        return places

    @property
    def operations(self) -> int:
        """Multiplications and additions of the products."""
        return 4 * self.heads * self.queries * self.keys * self.width

    def shares(self, cores: int) -> list[tuple[AttentionPart, ...]]:
        """Return each core's parts: whole heads where there are many, or parts of them.

        The rows of a head are cut where that spreads the work better over the cores.
        """
        blocks = self.queries // self.rows
        cuts = [cut for cut in range(1, blocks + 1) if blocks % cut == 0]
        cut = min(cuts, key=lambda cut: (ceil_div(self.heads * cut, cores) / cut, cut))
        each = ceil_div(self.heads * cut, cores)
        rows, size = blocks // cut, self.dtype.size_bytes
        of_part, of_keys = rows * self.rows * self.width * size, self.keys * self.width * size
        units = self.heads * cut
        shares: list[tuple[AttentionPart, ...]] = []
        for first in range(0, units, each):
            count = min(each, units - first)
            if cut == 1:
                shares.append((AttentionPart(count, rows, first * of_part, first * of_keys),))
                continue
            chosen = range(first, first + count)
            shares.append(
                tuple(AttentionPart(1, rows, u * of_part, u // cut * of_keys) for u in chosen)
            )
        return shares
