"""Figures of public configs: what each family's config.json says of the model's widths."""

LLAMA3_8B = {
    "model_type": "llama", "hidden_size": 4096, "intermediate_size": 14336,
    "num_attention_heads": 32, "num_key_value_heads": 8, "num_hidden_layers": 32,
    "vocab_size": 128256, "attention_bias": False, "mlp_bias": False,
}  # fmt: skip
MISTRAL_7B = {
    "model_type": "mistral", "hidden_size": 4096, "intermediate_size": 14336,
    "num_attention_heads": 32, "num_key_value_heads": 8, "num_hidden_layers": 32,
    "vocab_size": 32000, "head_dim": None,
}  # fmt: skip
QWEN2_7B = {
    "model_type": "qwen2", "hidden_size": 3584, "intermediate_size": 18944,
    "num_attention_heads": 28, "num_key_value_heads": 4, "num_hidden_layers": 28,
    "vocab_size": 152064,
}  # fmt: skip
QWEN3_8B = {
    "model_type": "qwen3", "hidden_size": 4096, "intermediate_size": 12288,
    "num_attention_heads": 32, "num_key_value_heads": 8, "head_dim": 128,
    "num_hidden_layers": 36, "vocab_size": 151936, "attention_bias": False,
}  # fmt: skip
QWEN2_57B_A14B = {
    "model_type": "qwen2_moe", "hidden_size": 3584, "intermediate_size": 18944,
    "num_attention_heads": 28, "num_key_value_heads": 4, "num_hidden_layers": 28,
    "vocab_size": 151936, "num_experts": 64, "num_experts_per_tok": 8,
    "moe_intermediate_size": 2560, "shared_expert_intermediate_size": 20480,
    "decoder_sparse_step": 1,
}  # fmt: skip
QWEN3_30B_A3B = {
    "model_type": "qwen3_moe", "hidden_size": 2048, "intermediate_size": 6144,
    "num_attention_heads": 32, "num_key_value_heads": 4, "head_dim": 128,
    "num_hidden_layers": 48, "vocab_size": 151936, "num_experts": 128,
    "num_experts_per_tok": 8, "moe_intermediate_size": 768, "decoder_sparse_step": 1,
    "mlp_only_layers": [],
}  # fmt: skip
MIXTRAL_8X7B = {
    "model_type": "mixtral", "hidden_size": 4096, "intermediate_size": 14336,
    "num_attention_heads": 32, "num_key_value_heads": 8, "num_hidden_layers": 32,
    "vocab_size": 32000, "num_local_experts": 8, "num_experts_per_tok": 2,
}  # fmt: skip
DEEPSEEK_V2_LITE = {
    "model_type": "deepseek_v2", "hidden_size": 2048, "intermediate_size": 10944,
    "moe_intermediate_size": 1408, "n_routed_experts": 64, "n_shared_experts": 2,
    "num_experts_per_tok": 6, "first_k_dense_replace": 1, "moe_layer_freq": 1,
    "num_hidden_layers": 27, "num_attention_heads": 16, "num_key_value_heads": 16,
    "q_lora_rank": None, "kv_lora_rank": 512, "qk_nope_head_dim": 128,
    "qk_rope_head_dim": 64, "v_head_dim": 128, "vocab_size": 102400,
}  # fmt: skip
DEEPSEEK_V3 = {
    "model_type": "deepseek_v3", "hidden_size": 7168, "intermediate_size": 18432,
    "moe_intermediate_size": 2048, "n_routed_experts": 256, "n_shared_experts": 1,
    "num_experts_per_tok": 8, "first_k_dense_replace": 3, "moe_layer_freq": 1,
    "num_hidden_layers": 61, "num_attention_heads": 128, "q_lora_rank": 1536,
    "kv_lora_rank": 512, "qk_nope_head_dim": 128, "qk_rope_head_dim": 64,
    "v_head_dim": 128, "vocab_size": 129280, "num_nextn_predict_layers": 1,
}  # fmt: skip
GLM4_9B_CHAT = {
    "model_type": "chatglm", "hidden_size": 4096, "ffn_hidden_size": 13696,
    "num_attention_heads": 32, "multi_query_attention": True, "multi_query_group_num": 2,
    "kv_channels": 128, "num_layers": 40, "padded_vocab_size": 151552, "vocab_size": 151552,
    "add_qkv_bias": True, "add_bias_linear": False,
}  # fmt: skip
GLM4_5_AIR = {
    "model_type": "glm4_moe", "hidden_size": 4096, "intermediate_size": 10944,
    "moe_intermediate_size": 1408, "n_routed_experts": 128, "n_shared_experts": 1,
    "num_experts_per_tok": 8, "first_k_dense_replace": 1, "num_hidden_layers": 46,
    "num_attention_heads": 96, "num_key_value_heads": 8, "head_dim": 128,
    "vocab_size": 151552, "attention_bias": True, "num_nextn_predict_layers": 1,
}  # fmt: skip
GEMMA2_9B = {
    "model_type": "gemma2", "hidden_size": 3584, "intermediate_size": 14336,
    "num_attention_heads": 16, "num_key_value_heads": 8, "head_dim": 256,
    "num_hidden_layers": 42, "vocab_size": 256000, "attention_bias": False,
}  # fmt: skip
PHI4 = {
    "model_type": "phi3", "hidden_size": 5120, "intermediate_size": 17920,
    "num_attention_heads": 40, "num_key_value_heads": 10, "num_hidden_layers": 40,
    "vocab_size": 100352,
}  # fmt: skip
PHI2 = {
    "model_type": "phi", "hidden_size": 2560, "intermediate_size": 10240,
    "num_attention_heads": 32, "num_key_value_heads": None, "num_hidden_layers": 32,
    "vocab_size": 51200,
}  # fmt: skip
