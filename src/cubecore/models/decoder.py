"""A decoder's layers as widths: what a config says of the products, whatever the family."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Attention:
    """Projections of grouped-query attention; `kv_heads` heads of keys and of values."""

    heads: int
    kv_heads: int
    head_dim: int
    qkv_bias: bool = False
    out_bias: bool = False


@dataclass(frozen=True, slots=True)
class LatentAttention:
    """Projections of multi-head latent attention (MLA).

    `q_rank` is the width that queries pass through, None without one; `kv_rank` that of keys and
    values together. A head has `nope` + `rope` elements of a key and `value` of a value.
    """

    heads: int
    q_rank: int | None
    kv_rank: int
    nope: int
    rope: int
    value: int
    bias: bool = False


@dataclass(frozen=True, slots=True)
class Mlp:
    """A feed-forward block of a width; `gated` has a matmul for the gate beside that up."""

    width: int
    gated: bool = True
    bias: bool = False


@dataclass(frozen=True, slots=True)
class Experts:
    """A mixture of experts, of which a token takes `per_token`.

    `shared_width` is the width of the experts that every token takes, together; `shared_gate` is
    True where a matmul of one column weighs them.
    """

    count: int
    per_token: int
    width: int
    shared_width: int = 0
    shared_gate: bool = False


@dataclass(frozen=True, slots=True)
class LayerKind:
    """Equal layers: their name, their number, and their two blocks."""

    name: str
    count: int
    attention: Attention | LatentAttention
    block: Mlp | Experts


@dataclass(frozen=True, slots=True)
class Decoder:
    """A decoder: its layers by kind, and the head that makes logits.

    `left_out` names the parts of the config that no matmul is listed for. A layer has `norms`
    norms of the hidden size, and with `head_norms` one of queries and one of keys by head. With
    `tied`, the embedding of tokens is the head's weight. `context_limit` is the longest context of
    the model, `stored_type` the type of the checkpoint's weights; the config gives them in
    `limit_field` and `type_field`, and all are None where it does not. `quantised` names the method
    by which a checkpoint is quantised, None of one that is not.
    """

    family: str
    hidden: int
    vocab: int
    layers: tuple[LayerKind, ...]
    head_bias: bool = False
    left_out: tuple[str, ...] = ()
    norm: str = "rms_norm"
    norms: int = 2
    head_norms: bool = False
    tied: bool = False
    context_limit: int | None = None
    stored_type: str | None = None
    type_field: str | None = None
    limit_field: str | None = None
    quantised: str | None = None

    @property
    def depth(self) -> int:
        """The number of layers."""
        return sum(kind.count for kind in self.layers)
