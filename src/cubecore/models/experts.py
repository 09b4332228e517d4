"""Configs of mixtures of experts with usual attention: Qwen2 and 3 MoE, Mixtral, GLM-4.5."""

from cubecore.models.config import Config
from cubecore.models.decoder import Attention, Decoder, Experts, LatentAttention, LayerKind, Mlp
from cubecore.models.llama import attention


def qwen2_moe(config: Config) -> Decoder:
    """Return the decoder of Qwen2-MoE: a shared expert with a gate, biases as Qwen2's."""
    shared = config.whole("shared_expert_intermediate_size")
    experts = _qwen_experts(config, shared, shared_gate=True)
    return _qwen(config, attention(config, qkv_bias=True), experts)


def qwen3_moe(config: Config) -> Decoder:
    """Return the decoder of Qwen3-MoE: no shared expert."""
    bias = config.flag("attention_bias")
    of_layer = attention(config, qkv_bias=bias, out_bias=bias)
    return _qwen(config, of_layer, _qwen_experts(config))


def mixtral(config: Config) -> Decoder:
    """Return the decoder of Mixtral and Phi's mixture: experts in every layer."""
    bias = config.flag("attention_bias")
    experts = Experts(
        config.whole("num_local_experts"),
        config.whole("num_experts_per_tok"),
        config.whole("intermediate_size"),
    )
    depth = config.whole("num_hidden_layers")
    head_bias = config.flag("lm_head_bias")
    of_layer = attention(config, qkv_bias=bias, out_bias=bias)
    return mixed(config, of_layer, experts, [True] * depth, head_bias=head_bias)


def glm4_moe(config: Config) -> Decoder:
    """Return the decoder of GLM-4.5 and its like: the first layers are dense."""
    depth, dense = config.whole("num_hidden_layers"), config.whole_or("first_k_dense_replace", 0, 0)
    of_layer = attention(config, qkv_bias=config.flag("attention_bias"))
    sparse = [number >= dense for number in range(depth)]
    return mixed(config, of_layer, routed(config), sparse)


def routed(config: Config) -> Experts:
    """Return the experts whose fields have DeepSeek's names."""
    width = config.whole("moe_intermediate_size")
    shared = config.whole_or("n_shared_experts", 0, 0)
    count, per_token = config.whole("n_routed_experts"), config.whole("num_experts_per_tok")
    return Experts(count, per_token, width, shared * width)


def mixed(
    config: Config,
    of_layer: Attention | LatentAttention,
    experts: Experts,
    sparse: list[bool],
    *,
    head_bias: bool = False,
) -> Decoder:
    """Return a decoder whose layers have experts where `sparse` says so, else a dense block."""
    kinds = []
    if dense := sparse.count(False):
        block = Mlp(config.whole("intermediate_size"))
        kinds.append(LayerKind("dense layer", dense, of_layer, block))
    if count := sparse.count(True):
        kinds.append(LayerKind("MoE layer", count, of_layer, experts))
    family, predicted = config.text("model_type"), config.whole_or("num_nextn_predict_layers", 0, 0)
    left_out = ("layers of multi-token prediction",) if predicted else ()
    hidden, vocab = config.whole("hidden_size"), config.whole("vocab_size")
    return Decoder(family, hidden, vocab, tuple(kinds), head_bias, left_out)


def _qwen_experts(config: Config, shared: int = 0, *, shared_gate: bool = False) -> Experts:
    count, per_token = config.whole("num_experts"), config.whole("num_experts_per_tok")
    width = config.whole("moe_intermediate_size")
    return Experts(count, per_token, width, shared, shared_gate)


def _qwen(config: Config, of_layer: Attention, experts: Experts) -> Decoder:
    """Return the decoder; every `decoder_sparse_step`-th layer has experts, but for some."""
    every, dense = config.whole_or("decoder_sparse_step", 1), config.wholes("mlp_only_layers")
    depth = config.whole("num_hidden_layers")
    sparse = [(number + 1) % every == 0 and number not in dense for number in range(depth)]
    return mixed(config, of_layer, experts, sparse)
