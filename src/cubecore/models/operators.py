"""The operators of a step beside its matmuls: attention, norms, activations and the like."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

from cubecore.models.decoder import (
    Attention,
    Decoder,
    Experts,
    LatentAttention,
    LayerKind,
    Mlp,
)
from cubecore.models.products import HEAD
from cubecore.models.step import InferenceStep
from cubecore.units import align_up, ceil_div

ATTENTION, CACHE, NORMS, ROTARY, ACTIVATIONS, QUANTISATION, ROUTING, PERMUTATION = (
    *("attention", "cache", "norms", "rotary", "activations", "quantisation", "routing"),
    "permutation",
)
OPERATOR_TERMS = (
    *(ATTENTION, CACHE, NORMS, ROTARY, ACTIVATIONS, QUANTISATION, ROUTING, PERMUTATION),
)
"""The terms of a step that operators make."""
_ROWS, _FEW_ROWS, _KEYS = 64, 16, 64
"""Queries and keys come in multiples of these; few queries in those of a fractal."""
_WIDTHS = (64, 128, 256)
"""The head sizes of attention; others are taken as the next one."""
_CHOICE = "routing is the softmax of the scores; the choice of the experts costs nothing beside it"


@dataclass(frozen=True, slots=True)
class StepOperator:
    """One operator: its `op` and `extents` as `time --op` has them, its `launches` in a step.

    `missing` says why it has no sizes; `assumed` what the sizes take for granted. Its time is that
    of the sizes times `scale`.
    """

    term: str
    name: str
    layers: str
    launches: int
    op: str
    extents: tuple[int, ...] = ()
    missing: str = ""
    assumed: str = ""
    scale: float = 1.0


def step_operators(
    decoder: Decoder, step: InferenceStep, *, quantised: bool
) -> tuple[StepOperator, ...]:
    """Return the operators of a step on one card, in the order in which a layer computes them.

    `quantised`: matmuls take integers, made of their inputs token by token.
    """
    found: list[StepOperator] = []
    for kind in decoder.layers:
        found += _Layer(decoder, kind, step, quantised).operators()
    norm, extents = decoder.norm, (step.batch, decoder.hidden)
    return (*found, StepOperator(NORMS, "norm before the head", HEAD, 1, norm, extents))


@dataclass(frozen=True, slots=True)
class _Layer:
    """The layers of one kind."""

    decoder: Decoder
    kind: LayerKind
    step: InferenceStep
    quantised: bool

    def operators(self) -> Iterator[StepOperator]:
        """Yield the operators of a layer."""
        hidden, tokens = self.decoder.hidden, self.step.tokens
        attention = self.kind.attention
        yield from self._norms(hidden)
        yield from self._quantised("the projections' input", tokens, hidden)
        if isinstance(attention, LatentAttention):
            yield from self._latent(attention)
        else:
            yield from self._grouped(attention)
        yield from self._quantised("the block's input", tokens, hidden)
        if isinstance(self.kind.block, Experts):
            yield from self._experts(self.kind.block)
        else:
            width = self._share(self.kind.block.width)
            yield from self._activation(self.kind.block, tokens, width)
            yield from self._quantised("the block's middle", tokens, width)

    def _one(self, term: str, name: str, op: str, *extents: int, assumed: str = "") -> StepOperator:
        kind = self.kind
        return StepOperator(term, name, kind.name, kind.count, op, extents, assumed=assumed)

    def _share(self, value: int) -> int:
        return int(ceil_div(value, self.step.tp))

    def _norms(self, hidden: int) -> Iterator[StepOperator]:
        norm = self.decoder.norm
        for number in range(self.decoder.norms):
            with_sum = "add_" if norm == "rms_norm" and number else ""
            name = f"norm {number + 1}" + (" with the sum before it" if with_sum else "")
            yield self._one(NORMS, name, with_sum + norm, self.step.tokens, hidden)

    def _quantised(self, name: str, rows: int, columns: int) -> Iterator[StepOperator]:
        if self.quantised:
            yield self._one(QUANTISATION, name, "dynamic_quant", rows, columns)

    def _grouped(self, a: Attention) -> Iterator[StepOperator]:
        heads, kv = self._share(a.heads), self._share(a.kv_heads)
        tokens = self.step.tokens
        if self.decoder.head_norms:
            for name, count in (("queries", heads), ("keys", kv)):
                yield self._one(NORMS, f"norm of {name}", "rms_norm", tokens * count, a.head_dim)
        yield self._one(ROTARY, "queries and keys", "rotary", tokens, heads + kv, a.head_dim)
        yield self._cached("keys and values", 2 * kv * a.head_dim)
        yield self._attention(heads // kv, kv, a.head_dim)
        yield from self._quantised("attention's result", tokens, heads * a.head_dim)

    def _latent(self, a: LatentAttention) -> Iterator[StepOperator]:
        heads, tokens = self._share(a.heads), self.step.tokens
        ranks = [("queries", a.q_rank)] if a.q_rank else []
        for name, width in (*ranks, ("latents", a.kv_rank)):
            yield self._one(NORMS, f"norm of {name}", "rms_norm", tokens, width)
        yield self._one(ROTARY, "queries and keys", "rotary", tokens, heads + 1, a.rope)
        yield self._cached("latents", a.kv_rank + a.rope)
        if self.step.phase == "prefill":
            yield self._attention(1, heads, a.nope + a.rope)
        else:
            yield self._over_latents(a, heads)
        yield from self._quantised("attention's result", tokens, heads * a.value)

    def _cached(self, name: str, width: int) -> StepOperator:
        """Return the write of the cache: each token's row goes to a place of its own."""
        return self._one(CACHE, f"write of {name}", "moe_permute", self.step.tokens, 1, 1, width)

    def _over_latents(self, a: LatentAttention, heads: int) -> StepOperator:
        """Return attention of a decode over latents, which all heads share as keys and values."""
        # Scores take kv_rank + rope elements of a key and values kv_rank: the kernel's widest heads
        # are narrower, so that its time at those is continued in proportion.
        width, widest = a.kv_rank + a.rope, _WIDTHS[-1]
        narrow = self._attention(heads, 1, min(width, widest))
        if width <= widest or narrow.missing:
            return narrow
        assumed = f"attention over latents of {width} is continued from heads of {widest}"
        scale = (width + a.kv_rank) / (2 * widest)
        return replace(narrow, assumed=assumed, scale=scale)

    def _without(self, reason: str) -> StepOperator:
        named = (ATTENTION, "attention", self.kind.name, self.kind.count, "attention")
        return StepOperator(*named, missing=reason)

    def _attention(self, group: int, kv_heads: int, width: int) -> StepOperator:
        """Return attention: heads that share keys are one head with all their queries."""
        step = self.step
        if step.seq is None:
            return self._without("attention needs --seq, the tokens behind each sequence")
        fit = next((each for each in _WIDTHS if width <= each), None)
        if fit is None:
            return self._without(f"attention takes heads of up to {_WIDTHS[-1]}, not of {width}")
        queries, keys, assumed = group, step.seq, ""
        if step.phase == "prefill":
            queries, keys = group * step.seq, ceil_div(step.seq, 2)
            assumed = "attention of a prefill goes over half of the keys: later ones are masked"
        queries = align_up(queries, _FEW_ROWS if queries <= _ROWS else _ROWS)
        extents = (step.batch * kv_heads, queries, align_up(keys, _KEYS), fit)
        return self._one(ATTENTION, "attention", "attention", *extents, assumed=assumed)

    def _activation(
        self, block: Mlp, rows: int, width: int, prefix: str = ""
    ) -> Iterator[StepOperator]:
        op = "swiglu" if block.gated else "gelu"
        yield self._one(ACTIVATIONS, f"{prefix}{op}", op, rows, width)

    def _experts(self, block: Experts) -> Iterator[StepOperator]:
        step, hidden = self.step, self.decoder.hidden
        chosen = min(block.per_token, block.count)
        rows = step.tokens * chosen
        width = block.width if step.ep > 1 else self._share(block.width)
        if block.shared_width:
            shared = self._share(block.shared_width)
            yield from self._activation(Mlp(block.shared_width), step.tokens, shared, "shared ")
        yield self._one(ROUTING, "choice", "softmax", step.tokens, block.count, assumed=_CHOICE)
        tokens = step.tokens
        turn = max(block.count // chosen, 1)
        if tokens > turn:
            tokens = align_up(tokens, turn)
        extents = (tokens, turn * chosen, chosen, hidden)
        yield self._one(PERMUTATION, "tokens to experts", "moe_permute", *extents)
        yield from self._activation(Mlp(block.width), rows, width, "experts ")
        yield from self._quantised("the experts' middle", rows, width)
        yield self._one(PERMUTATION, "tokens back", "moe_unpermute", *extents)
