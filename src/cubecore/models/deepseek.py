"""Configs of DeepSeek V2 and V3: latent attention, shared and routed experts."""

from cubecore.models.config import Config
from cubecore.models.decoder import Decoder, LatentAttention, LayerKind, Mlp
from cubecore.models.experts import mixed, routed


def deepseek(config: Config) -> Decoder:
    """Return the decoder; the first layers are dense, then every `moe_layer_freq`-th has experts.

    A model without `q_lora_rank` makes its queries in one matmul (V2-Lite).
    """
    of_layer = LatentAttention(
        heads=config.whole("num_attention_heads"),
        q_rank=config.optional("q_lora_rank"),
        kv_rank=config.whole("kv_lora_rank"),
        nope=config.whole("qk_nope_head_dim"),
        rope=config.whole("qk_rope_head_dim"),
        value=config.whole("v_head_dim"),
        bias=config.flag("attention_bias"),
    )
    depth = config.whole("num_hidden_layers")
    if not config.has("n_routed_experts"):
        layers = LayerKind("layer", depth, of_layer, Mlp(config.whole("intermediate_size")))
        hidden, vocab = config.whole("hidden_size"), config.whole("vocab_size")
        return Decoder(config.text("model_type"), hidden, vocab, (layers,))
    dense, every = (
        config.whole_or("first_k_dense_replace", 0, 0),
        config.whole_or("moe_layer_freq", 1),
    )
    sparse = [number >= dense and number % every == 0 for number in range(depth)]
    return mixed(config, of_layer, routed(config), sparse)
