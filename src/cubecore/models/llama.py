"""Configs of Llama's shape: Llama, Mistral, Qwen2, Qwen3, Gemma; gated blocks in equal layers."""

from cubecore.models.config import Config
from cubecore.models.decoder import Attention, Decoder, LayerKind, Mlp


def llama(config: Config) -> Decoder:
    """Return the decoder of Llama and Mistral: biases as `attention_bias` and `mlp_bias` say."""
    bias = config.flag("attention_bias")
    return uniform(config, attention(config, qkv_bias=bias, out_bias=bias), bias="mlp_bias")


def qwen2(config: Config) -> Decoder:
    """Return the decoder of Qwen2: biases of queries, keys and values, none of the output."""
    return uniform(config, attention(config, qkv_bias=True))


def qwen3(config: Config) -> Decoder:
    """Return the decoder of Qwen3, whose heads have a width of their own."""
    bias = config.flag("attention_bias")
    return uniform(config, attention(config, qkv_bias=bias, out_bias=bias))


def gemma(config: Config) -> Decoder:
    """Return the decoder of Gemma, of the text part of models that also see."""
    if config.has("text_config"):
        inner = gemma(config.within("text_config"))
        part = "the vision tower"
        return Decoder(inner.family, inner.hidden, inner.vocab, inner.layers, left_out=(part,))
    bias = config.flag("attention_bias")
    config.whole("head_dim")  # it is not hidden_size / num_attention_heads
    return uniform(config, attention(config, qkv_bias=bias, out_bias=bias))


def attention(config: Config, *, qkv_bias: bool = False, out_bias: bool = False) -> Attention:
    """Return the attention whose fields have Llama's names."""
    heads = config.whole("num_attention_heads")
    kv_heads = config.whole_or("num_key_value_heads", heads)
    return Attention(heads, kv_heads, head_dim(config, heads), qkv_bias, out_bias)


def head_dim(config: Config, heads: int) -> int:
    """Return `head_dim`, or the hidden size's share of a head."""
    return config.optional("head_dim") or max(config.whole("hidden_size") // heads, 1)


def uniform(config: Config, of_layer: Attention, *, bias: str = "") -> Decoder:
    """Return a decoder of equal layers with gated blocks of `intermediate_size`."""
    block = Mlp(config.whole("intermediate_size"), bias=bool(bias) and config.flag(bias))
    layers = LayerKind("layer", config.whole("num_hidden_layers"), of_layer, block)
    family = config.text("model_type")
    return Decoder(family, config.whole("hidden_size"), config.whole("vocab_size"), (layers,))
