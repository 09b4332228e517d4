"""The options of attention beside its sizes."""

from collections.abc import Sequence
from dataclasses import dataclass

from cubecore.aliases import Json
from cubecore.chips.model import Chip
from cubecore.dtypes import ElementType
from cubecore.errors import refuse
from cubecore.kernels.operators.attention.shape import ROWS, AttentionShape


@dataclass(frozen=True, slots=True)
class AttentionOptions:
    """A mask, heads that share keys, and how the kernel cuts its work; None is the default.

    `causal`: each row sees the keys up to its own. `kv_heads` heads of K and V are shared by the
    heads of Q. `rows` of Q are an AI Core's at a time, `keys` rows of K are in L1 at once, and
    `splits` parts of a head's keys are taken by cores of their own. `ahead` is `AttentionShape`'s.
    """

    causal: bool = False
    kv_heads: int | None = None
    rows: int | None = None
    keys: int | None = None
    splits: int | None = None
    ahead: int = 1

    def group(self, heads: int) -> int:
        """Return how many heads share keys.

        Raises
        ------
        RequestError
            If they do not divide the heads.
        """
        kv_heads = heads if self.kv_heads is None else self.kv_heads
        if kv_heads < 1 or heads % kv_heads:
            raise refuse("--kv-heads", f"divide the {heads} heads of attention", kv_heads)
        return heads // kv_heads

    def shape(self, extents: Sequence[int], dtype: ElementType) -> AttentionShape:
        """Return the sizes of a kernel: without a mask, heads that share keys are one."""
        # A mask needs to know the row of each head; one row sees all keys, as the last of a head.
        heads, queries, keys, width = extents
        group = self.group(heads)
        causal = self.causal and queries > 1
        if not causal:
            heads, queries, group = heads // group, queries * group, 1
        return AttentionShape(
            *(heads, queries, keys, width, dtype),
            ahead=self.ahead,
            causal=causal,
            group=group,
            held_rows=ROWS if self.rows is None else self.rows,
            held_keys=self.keys,
            splits=1 if self.splits is None else self.splits,
        )

    @property
    def texts(self) -> list[str]:
        """The options that are given, in words."""
        counts = (
            ("{} heads of keys", self.kv_heads),
            ("{} rows a core", self.rows),
            ("{} keys in L1", self.keys),
            ("keys in {} parts", self.splits),
        )
        masked = ["causal"] if self.causal else []
        return masked + [text.format(value) for text, value in counts if value is not None]

    def to_json(self) -> Json:
        """Return the options that are given."""
        given = {
            "causal": self.causal or None,
            "kv_heads": self.kv_heads,
            "rows": self.rows,
            "keys": self.keys,
            "splits": self.splits,
        }
        return {name: value for name, value in given.items() if value is not None}


def require_room(shape: AttentionShape, chip: Chip, ub_bytes: int) -> None:
    """Require that L1 and UB of a chip hold what the kernel keeps there.

    Raises
    ------
    RequestError
        If one does not.
    """
    for name, taken, room in (
        ("L1", shape.l1_bytes, chip.l1_user_bytes),
        ("UB", ub_bytes, chip.ub_user_bytes),
    ):
        if taken > room:
            held = f"{shape.rows} rows of Q and {shape.block} keys of attention"
            need = f"take at most the {room} B of {name} of {chip.name}"
            raise refuse(held, need, taken, "fewer of them fit: --rows, --keys")
