"""Configs of Phi: Phi-3 and 4 of Llama's shape, Phi-1 and 2 with biases and no gate."""

from cubecore.models.config import Config
from cubecore.models.decoder import Decoder, LayerKind, Mlp
from cubecore.models.llama import attention, uniform


def phi3(config: Config) -> Decoder:
    """Return the decoder of Phi-3 and Phi-4."""
    bias = config.flag("attention_bias")
    return uniform(config, attention(config, qkv_bias=bias, out_bias=bias))


def phi(config: Config) -> Decoder:
    """Return the decoder of Phi-1, 1.5 and 2: every matmul has a bias, the block no gate."""
    block = Mlp(config.whole("intermediate_size"), gated=False, bias=True)
    of_layer = attention(config, qkv_bias=True, out_bias=True)
    layers = LayerKind("layer", config.whole("num_hidden_layers"), of_layer, block)
    family, hidden = config.text("model_type"), config.whole("hidden_size")
    return Decoder(family, hidden, config.whole("vocab_size"), (layers,), head_bias=True)
