"""The memory of one card: bytes of the weights that it keeps, and of the cache of a step."""

from dataclasses import dataclass, replace

from cubecore.dtypes import element_type
from cubecore.models.decoder import Decoder, Experts, LatentAttention, LayerKind
from cubecore.models.products import FUSED, step_products
from cubecore.models.step import InferenceStep
from cubecore.tiling.model.problem import MX_FORMATS
from cubecore.units import ceil_div

_MX_BLOCK = 32
"""Elements that share a scale of one byte (OCP Microscaling Formats specification v1.0)."""


@dataclass(frozen=True, slots=True)
class CardMemory:
    """Bytes on one card: what a step keeps there, and what the card has.

    `cache_token` are the bytes of one token of one sequence in all layers. `cache` is None where
    the context is not given, `card` where no source gives the card's memory; `source` is that of
    `card`. Activations, workspaces and what a runtime keeps are not in it.
    """

    weights: int
    cache_token: int
    cache: int | None
    card: int | None
    source: str = ""

    @property
    def needed(self) -> int:
        """Bytes of weights and cache, as far as these are known."""
        return self.weights + (self.cache or 0)

    @property
    def fits(self) -> bool | None:
        """True if weights and cache fit into the card; None where its memory is not known."""
        return None if self.card is None else self.needed <= self.card

    def sequences(self, seq: int) -> int:
        """Return how many sequences of `seq` tokens fit beside the weights; the card is known."""
        assert self.card is not None
        return max(self.card - self.weights, 0) // (self.cache_token * seq)


def card_memory(
    decoder: Decoder, step: InferenceStep, dtype: str, kept: str, card: int | None, source: str
) -> CardMemory:
    """Return the memory that a step takes of one card.

    `dtype` is the type of the products' weights, `kept` that of embedding, head, routers, norms and
    cache.
    """
    per_token = sum(kind.count * _cached(kind, step.tp) for kind in decoder.layers)
    cache_token = int(element_type(kept).bytes_of(per_token))
    cache = None if step.seq is None else step.batch * step.seq * cache_token
    weights = _weights(decoder, step, dtype, kept)
    return CardMemory(weights, cache_token, cache, card, source)


def _weights(decoder: Decoder, step: InferenceStep, dtype: str, kept: str) -> int:
    # Products of a step read the weights of those experts alone that have a token. A decode of
    # enough sequences gives one to each, and its products read every weight of the card once.
    experts = [kind.block.count for kind in decoder.layers if isinstance(kind.block, Experts)]
    busy = replace(step, phase="decode", batch=max(experts, default=1) * step.tp, seq=None)
    size = 0
    for product in step_products(decoder, busy):
        if FUSED in product.variants:
            elements = product.launches * product.weight_elements
            size += _bytes(kept if product.kept else dtype, elements)
    embedding = 0 if decoder.tied else ceil_div(decoder.vocab, step.tp)
    norms = decoder.depth * decoder.norms + 1
    return size + _bytes(kept, (embedding + norms) * decoder.hidden)


def _bytes(kind: str, elements: int) -> int:
    """Return the bytes of elements, with their scales where these belong to the format."""
    scales = elements // _MX_BLOCK if kind in MX_FORMATS else 0
    size: int = element_type(MX_FORMATS.get(kind, kind)).bytes_of(elements)
    return size + scales


def _cached(kind: LayerKind, tp: int) -> int:
    """Return the elements that a layer of one card caches of a token.

    Cards that are more than the heads of keys cache a copy of one each; latents are on every card.
    """
    attention = kind.attention
    if isinstance(attention, LatentAttention):
        return attention.kv_rank + attention.rope
    heads: int = ceil_div(attention.kv_heads, tp)
    return 2 * heads * attention.head_dim
