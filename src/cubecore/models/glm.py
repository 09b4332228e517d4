"""Configs of GLM's dense models: ChatGLM's own names of fields, and GLM-4's of Llama's."""

from cubecore.models.config import Config
from cubecore.models.decoder import Attention, Decoder, LayerKind, Mlp
from cubecore.models.llama import attention, uniform


def chatglm(config: Config) -> Decoder:
    """Return the decoder of ChatGLM2, ChatGLM3 and GLM-4-9B."""
    heads, bias = config.whole("num_attention_heads"), config.flag("add_bias_linear")
    grouped = config.flag("multi_query_attention")
    of_layer = Attention(
        heads,
        config.whole("multi_query_group_num") if grouped else heads,
        config.whole("kv_channels"),
        qkv_bias=bias or config.flag("add_qkv_bias"),
        out_bias=bias,
    )
    layers = LayerKind(
        "layer",
        config.whole("num_layers", "num_hidden_layers"),
        of_layer,
        Mlp(config.whole("ffn_hidden_size"), bias=bias),
    )
    vocab = config.whole("padded_vocab_size", "vocab_size")
    return Decoder(config.text("model_type"), config.whole("hidden_size"), vocab, (layers,))


def glm(config: Config) -> Decoder:
    """Return the decoder of GLM-4 as transformers has it: no bias of the output."""
    return uniform(config, attention(config, qkv_bias=config.flag("attention_bias")))
