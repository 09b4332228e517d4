"""The matmuls of a step: every matrix matmul of a decoder on one card, fused and split."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

from cubecore.errors import refuse
from cubecore.models.decoder import Attention, Decoder, Experts, LatentAttention, Mlp
from cubecore.models.step import InferenceStep
from cubecore.units import ceil_div

FUSED, SPLIT = "fused", "split"
BOTH = (FUSED, SPLIT)
ATTENTION, BLOCK, ROUTER, SHARED, EXPERTS, HEAD = PARTS = (
    *("attention", "block", "router", "shared experts", "experts", "head"),
)
"""Parts of a step."""


@dataclass(frozen=True, slots=True)
class StepProduct:
    """One matmul, C[m, n] = A[m, k] B[k, n], or a batch of them in one launch.

    `layers` names the kind of layer, or the head; `part` the part of it: attention, block, router,
    shared experts, experts or head. `launches` counts the launches of a step. `variants` has
    the ways of computing the layer that it belongs to: projections of one input in one matmul
    (fused) or each in its own (split). `kept` is True where a quantised model usually keeps its
    16-bit weights. `stored_kn` is True where the weights lie as [k, n], not as [n, k].
    """

    name: str
    layers: str
    part: str
    launches: int
    m: int
    n: int
    k: int
    batch: int = 1
    bias: bool = False
    variants: tuple[str, ...] = BOTH
    kept: bool = False
    stored_kn: bool = False

    @property
    def weight_elements(self) -> int:
        """Elements of B in one launch."""
        return self.batch * self.k * self.n

    @property
    def operations(self) -> int:
        """Multiplications and additions of one launch."""
        return 2 * self.batch * self.m * self.n * self.k


def step_products(decoder: Decoder, step: InferenceStep) -> tuple[StepProduct, ...]:
    """Return the matmuls of a step, in the order in which a layer computes them.

    Raises
    ------
    RequestError
        If `tp` does not divide heads or widths, or `ep` not the experts.
    """
    products: list[StepProduct] = []
    for kind in decoder.layers:
        attention = _Part(kind.name, kind.count, decoder.hidden, step, ATTENTION)
        if isinstance(kind.attention, LatentAttention):
            products += _latent(attention, kind.attention)
        else:
            products += _grouped(attention, kind.attention)
        if isinstance(kind.block, Experts):
            products += _experts(attention, kind.block)
        else:
            products += _mlp(attention.named(BLOCK), kind.block)
    columns = ceil_div(decoder.vocab, step.tp)
    head = _Part(HEAD, 1, decoder.hidden, step, HEAD)
    products.append(
        head.product("lm_head", columns, rows=step.batch, bias=decoder.head_bias, kept=True)
    )
    return tuple(products)


@dataclass(frozen=True, slots=True)
class _Part:
    """A part of the layers of one kind, and the step that they compute."""

    layers: str
    count: int
    hidden: int
    step: InferenceStep
    part: str

    def named(self, part: str) -> "_Part":
        """Return another part of the same layers."""
        return replace(self, part=part)

    def product(
        self,
        name: str,
        columns: int,
        depth: int | None = None,
        *,
        rows: int | None = None,
        batch: int = 1,
        bias: bool = False,
        variants: tuple[str, ...] = BOTH,
        kept: bool = False,
        stored_kn: bool = False,
    ) -> StepProduct:
        """Return a matmul of every such layer; its depth is the hidden size unless given."""
        m = self.step.tokens if rows is None else rows
        k = self.hidden if depth is None else depth
        name_and_count = (name, self.layers, self.part, self.count)
        extents = (m, columns, k, batch)
        return StepProduct(*name_and_count, *extents, bias, variants, kept, stored_kn)

    def joined(self, name: str, parts: dict[str, int], *, bias: bool = False) -> list[StepProduct]:
        """Return projections of one input: in one matmul, and each in its own."""
        together = self.product(name, sum(parts.values()), bias=bias, variants=(FUSED,))
        apart = [
            self.product(part, columns, bias=bias, variants=(SPLIT,))
            for part, columns in parts.items()
        ]
        return [together, *apart]

    def shared(self, name: str, value: int) -> int:
        """Return a card's share of a width or of heads."""
        tp = self.step.tp
        if value % tp:
            raise refuse("tp", f"divide {name} = {value}", tp)
        return value // tp


def _grouped(part: _Part, attention: Attention) -> Iterator[StepProduct]:
    """Yield the projections of queries, keys and values, and of the output.

    Cards that are more than the heads of keys have a copy of one each.
    """
    # Grouped-query attention: heads of queries are divided among the cards; heads of keys are
    # divided too, or copied where cards outnumber them.
    heads, tp = part.shared("the attention heads", attention.heads), part.step.tp
    if attention.kv_heads >= tp:
        kv_heads = part.shared("the heads of keys", attention.kv_heads)
    elif tp % attention.kv_heads:
        raise refuse("tp", f"be a multiple of the heads of keys = {attention.kv_heads}", tp)
    else:
        kv_heads = 1
    q, kv = heads * attention.head_dim, kv_heads * attention.head_dim
    parts = {"q_proj": q, "k_proj": kv, "v_proj": kv}
    yield from part.joined("qkv_proj", parts, bias=attention.qkv_bias)
    yield part.product("o_proj", part.hidden, q, bias=attention.out_bias)


def _latent(part: _Part, attention: LatentAttention) -> Iterator[StepProduct]:
    """Yield the projections of MLA: down and up again, in a decode with the weights absorbed.

    A decode multiplies queries by the keys' part of kv_b_proj and the summed latents by the values'
    part, head by head, so that the cache holds latents only.
    """
    a, heads = attention, part.shared("the attention heads", attention.heads)
    latent, query = a.kv_rank + a.rope, heads * (a.nope + a.rope)
    if a.q_rank is None:
        yield part.product("q_proj", query)
        yield part.product("kv_a_proj_with_mqa", latent, bias=a.bias)
    else:
        parts = {"q_a_proj": a.q_rank, "kv_a_proj_with_mqa": latent}
        yield from part.joined("q_a_kv_a_proj", parts, bias=a.bias)
        yield part.product("q_b_proj", query, a.q_rank)
    if part.step.phase == "prefill":
        yield part.product("kv_b_proj", heads * (a.nope + a.value), a.kv_rank)
    else:
        names = ("kv_b_proj keys, by head", "kv_b_proj values, by head")
        yield part.product(names[0], a.kv_rank, a.nope, batch=heads, kept=True, stored_kn=True)
        yield part.product(names[1], a.value, a.kv_rank, batch=heads, kept=True)
    yield part.product("o_proj", part.hidden, heads * a.value, bias=a.bias)


def _mlp(part: _Part, block: Mlp, prefix: str = "") -> Iterator[StepProduct]:
    """Yield the matmuls of a feed-forward block."""
    width = part.shared("the block's width", block.width)
    if block.gated:
        parts = {f"{prefix}gate_proj": width, f"{prefix}up_proj": width}
        yield from part.joined(f"{prefix}gate_up_proj", parts, bias=block.bias)
    else:
        yield part.product(f"{prefix}up_proj", width, bias=block.bias)
    yield part.product(f"{prefix}down_proj", part.hidden, width, bias=block.bias)


def _experts(part: _Part, block: Experts) -> Iterator[StepProduct]:
    """Yield the router, the shared experts and the routed ones, these as a batch.

    Tokens are spread evenly over the experts, rounded up.
    """
    step = part.step
    yield part.named(ROUTER).product("router", block.count, kept=True)
    shared, part = part.named(SHARED), part.named(EXPERTS)
    if block.shared_gate:
        yield shared.product("shared_expert_gate", 1, kept=True)
    if block.shared_width:
        yield from _mlp(shared, Mlp(block.shared_width), "shared ")
    if block.count % step.ep:
        raise refuse("ep", f"divide the experts = {block.count}", step.ep)
    # `chosen` are (token, expert) pairs that this card computes, `here` the experts that it holds.
    # With expert parallelism a card has some experts whole and the pairs of all cards that chose
    # them; else it has a slice of the width of each.
    chosen, here = step.tokens * min(block.per_token, block.count), block.count
    width = block.width
    if step.ep == 1:
        width = part.shared("an expert's width", width)
    else:
        chosen, here = ceil_div(chosen, step.tp), block.count // step.ep
    busy = min(here, chosen)
    rows = {"rows": ceil_div(chosen, busy), "batch": busy}
    yield part.product("experts gate_up_proj", 2 * width, variants=(FUSED,), **rows)
    for name in ("experts gate_proj", "experts up_proj"):
        yield part.product(name, width, variants=(SPLIT,), **rows)
    yield part.product("experts down_proj", part.hidden, width, **rows)
