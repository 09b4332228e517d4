"""Products of a decode of two sequences on one card, listed by hand from the papers' diagrams.

A line: product, layers, launches a step, M x N x K (BATCH of ... for a batch), ``bias`` where it
has one, ``fused`` or ``split`` where it is of one variant.
"""

from models import configs

LLAMA3_8B = """
qkv_proj, layer, 32, 2 x 6144 x 4096, fused
q_proj, layer, 32, 2 x 4096 x 4096, split
k_proj, layer, 32, 2 x 1024 x 4096, split
v_proj, layer, 32, 2 x 1024 x 4096, split
o_proj, layer, 32, 2 x 4096 x 4096
gate_up_proj, layer, 32, 2 x 28672 x 4096, fused
gate_proj, layer, 32, 2 x 14336 x 4096, split
up_proj, layer, 32, 2 x 14336 x 4096, split
down_proj, layer, 32, 2 x 4096 x 14336
lm_head, head, 1, 2 x 128256 x 4096
"""
MISTRAL_7B = LLAMA3_8B.replace("128256", "32000")
QWEN2_7B = """
qkv_proj, layer, 28, 2 x 4608 x 3584, bias, fused
q_proj, layer, 28, 2 x 3584 x 3584, bias, split
k_proj, layer, 28, 2 x 512 x 3584, bias, split
v_proj, layer, 28, 2 x 512 x 3584, bias, split
o_proj, layer, 28, 2 x 3584 x 3584
gate_up_proj, layer, 28, 2 x 37888 x 3584, fused
gate_proj, layer, 28, 2 x 18944 x 3584, split
up_proj, layer, 28, 2 x 18944 x 3584, split
down_proj, layer, 28, 2 x 3584 x 18944
lm_head, head, 1, 2 x 152064 x 3584
"""
QWEN3_8B = """
qkv_proj, layer, 36, 2 x 6144 x 4096, fused
q_proj, layer, 36, 2 x 4096 x 4096, split
k_proj, layer, 36, 2 x 1024 x 4096, split
v_proj, layer, 36, 2 x 1024 x 4096, split
o_proj, layer, 36, 2 x 4096 x 4096
gate_up_proj, layer, 36, 2 x 24576 x 4096, fused
gate_proj, layer, 36, 2 x 12288 x 4096, split
up_proj, layer, 36, 2 x 12288 x 4096, split
down_proj, layer, 36, 2 x 4096 x 12288
lm_head, head, 1, 2 x 151936 x 4096
"""
QWEN2_57B_A14B = """
qkv_proj, MoE layer, 28, 2 x 4608 x 3584, bias, fused
q_proj, MoE layer, 28, 2 x 3584 x 3584, bias, split
k_proj, MoE layer, 28, 2 x 512 x 3584, bias, split
v_proj, MoE layer, 28, 2 x 512 x 3584, bias, split
o_proj, MoE layer, 28, 2 x 3584 x 3584
router, MoE layer, 28, 2 x 64 x 3584
shared_expert_gate, MoE layer, 28, 2 x 1 x 3584
shared gate_up_proj, MoE layer, 28, 2 x 40960 x 3584, fused
shared gate_proj, MoE layer, 28, 2 x 20480 x 3584, split
shared up_proj, MoE layer, 28, 2 x 20480 x 3584, split
shared down_proj, MoE layer, 28, 2 x 3584 x 20480
experts gate_up_proj, MoE layer, 28, 16 of 1 x 5120 x 3584, fused
experts gate_proj, MoE layer, 28, 16 of 1 x 2560 x 3584, split
experts up_proj, MoE layer, 28, 16 of 1 x 2560 x 3584, split
experts down_proj, MoE layer, 28, 16 of 1 x 3584 x 2560
lm_head, head, 1, 2 x 151936 x 3584
"""
QWEN3_30B_A3B = """
qkv_proj, MoE layer, 48, 2 x 5120 x 2048, fused
q_proj, MoE layer, 48, 2 x 4096 x 2048, split
k_proj, MoE layer, 48, 2 x 512 x 2048, split
v_proj, MoE layer, 48, 2 x 512 x 2048, split
o_proj, MoE layer, 48, 2 x 2048 x 4096
router, MoE layer, 48, 2 x 128 x 2048
experts gate_up_proj, MoE layer, 48, 16 of 1 x 1536 x 2048, fused
experts gate_proj, MoE layer, 48, 16 of 1 x 768 x 2048, split
experts up_proj, MoE layer, 48, 16 of 1 x 768 x 2048, split
experts down_proj, MoE layer, 48, 16 of 1 x 2048 x 768
lm_head, head, 1, 2 x 151936 x 2048
"""
MIXTRAL_8X7B = """
qkv_proj, MoE layer, 32, 2 x 6144 x 4096, fused
q_proj, MoE layer, 32, 2 x 4096 x 4096, split
k_proj, MoE layer, 32, 2 x 1024 x 4096, split
v_proj, MoE layer, 32, 2 x 1024 x 4096, split
o_proj, MoE layer, 32, 2 x 4096 x 4096
router, MoE layer, 32, 2 x 8 x 4096
experts gate_up_proj, MoE layer, 32, 4 of 1 x 28672 x 4096, fused
experts gate_proj, MoE layer, 32, 4 of 1 x 14336 x 4096, split
experts up_proj, MoE layer, 32, 4 of 1 x 14336 x 4096, split
experts down_proj, MoE layer, 32, 4 of 1 x 4096 x 14336
lm_head, head, 1, 2 x 32000 x 4096
"""
DEEPSEEK_V2_LITE = """
q_proj, dense layer, 1, 2 x 3072 x 2048
kv_a_proj_with_mqa, dense layer, 1, 2 x 576 x 2048
kv_b_proj keys, by head, dense layer, 1, 16 of 2 x 512 x 128
kv_b_proj values, by head, dense layer, 1, 16 of 2 x 128 x 512
o_proj, dense layer, 1, 2 x 2048 x 2048
gate_up_proj, dense layer, 1, 2 x 21888 x 2048, fused
gate_proj, dense layer, 1, 2 x 10944 x 2048, split
up_proj, dense layer, 1, 2 x 10944 x 2048, split
down_proj, dense layer, 1, 2 x 2048 x 10944
q_proj, MoE layer, 26, 2 x 3072 x 2048
kv_a_proj_with_mqa, MoE layer, 26, 2 x 576 x 2048
kv_b_proj keys, by head, MoE layer, 26, 16 of 2 x 512 x 128
kv_b_proj values, by head, MoE layer, 26, 16 of 2 x 128 x 512
o_proj, MoE layer, 26, 2 x 2048 x 2048
router, MoE layer, 26, 2 x 64 x 2048
shared gate_up_proj, MoE layer, 26, 2 x 5632 x 2048, fused
shared gate_proj, MoE layer, 26, 2 x 2816 x 2048, split
shared up_proj, MoE layer, 26, 2 x 2816 x 2048, split
shared down_proj, MoE layer, 26, 2 x 2048 x 2816
experts gate_up_proj, MoE layer, 26, 12 of 1 x 2816 x 2048, fused
experts gate_proj, MoE layer, 26, 12 of 1 x 1408 x 2048, split
experts up_proj, MoE layer, 26, 12 of 1 x 1408 x 2048, split
experts down_proj, MoE layer, 26, 12 of 1 x 2048 x 1408
lm_head, head, 1, 2 x 102400 x 2048
"""
DEEPSEEK_V3 = """
q_a_kv_a_proj, dense layer, 3, 2 x 2112 x 7168, fused
q_a_proj, dense layer, 3, 2 x 1536 x 7168, split
kv_a_proj_with_mqa, dense layer, 3, 2 x 576 x 7168, split
q_b_proj, dense layer, 3, 2 x 24576 x 1536
kv_b_proj keys, by head, dense layer, 3, 128 of 2 x 512 x 128
kv_b_proj values, by head, dense layer, 3, 128 of 2 x 128 x 512
o_proj, dense layer, 3, 2 x 7168 x 16384
gate_up_proj, dense layer, 3, 2 x 36864 x 7168, fused
gate_proj, dense layer, 3, 2 x 18432 x 7168, split
up_proj, dense layer, 3, 2 x 18432 x 7168, split
down_proj, dense layer, 3, 2 x 7168 x 18432
q_a_kv_a_proj, MoE layer, 58, 2 x 2112 x 7168, fused
q_a_proj, MoE layer, 58, 2 x 1536 x 7168, split
kv_a_proj_with_mqa, MoE layer, 58, 2 x 576 x 7168, split
q_b_proj, MoE layer, 58, 2 x 24576 x 1536
kv_b_proj keys, by head, MoE layer, 58, 128 of 2 x 512 x 128
kv_b_proj values, by head, MoE layer, 58, 128 of 2 x 128 x 512
o_proj, MoE layer, 58, 2 x 7168 x 16384
router, MoE layer, 58, 2 x 256 x 7168
shared gate_up_proj, MoE layer, 58, 2 x 4096 x 7168, fused
shared gate_proj, MoE layer, 58, 2 x 2048 x 7168, split
shared up_proj, MoE layer, 58, 2 x 2048 x 7168, split
shared down_proj, MoE layer, 58, 2 x 7168 x 2048
experts gate_up_proj, MoE layer, 58, 16 of 1 x 4096 x 7168, fused
experts gate_proj, MoE layer, 58, 16 of 1 x 2048 x 7168, split
experts up_proj, MoE layer, 58, 16 of 1 x 2048 x 7168, split
experts down_proj, MoE layer, 58, 16 of 1 x 7168 x 2048
lm_head, head, 1, 2 x 129280 x 7168
"""
GLM4_9B_CHAT = """
qkv_proj, layer, 40, 2 x 4608 x 4096, bias, fused
q_proj, layer, 40, 2 x 4096 x 4096, bias, split
k_proj, layer, 40, 2 x 256 x 4096, bias, split
v_proj, layer, 40, 2 x 256 x 4096, bias, split
o_proj, layer, 40, 2 x 4096 x 4096
gate_up_proj, layer, 40, 2 x 27392 x 4096, fused
gate_proj, layer, 40, 2 x 13696 x 4096, split
up_proj, layer, 40, 2 x 13696 x 4096, split
down_proj, layer, 40, 2 x 4096 x 13696
lm_head, head, 1, 2 x 151552 x 4096
"""
GLM4_5_AIR = """
qkv_proj, dense layer, 1, 2 x 14336 x 4096, bias, fused
q_proj, dense layer, 1, 2 x 12288 x 4096, bias, split
k_proj, dense layer, 1, 2 x 1024 x 4096, bias, split
v_proj, dense layer, 1, 2 x 1024 x 4096, bias, split
o_proj, dense layer, 1, 2 x 4096 x 12288
gate_up_proj, dense layer, 1, 2 x 21888 x 4096, fused
gate_proj, dense layer, 1, 2 x 10944 x 4096, split
up_proj, dense layer, 1, 2 x 10944 x 4096, split
down_proj, dense layer, 1, 2 x 4096 x 10944
qkv_proj, MoE layer, 45, 2 x 14336 x 4096, bias, fused
q_proj, MoE layer, 45, 2 x 12288 x 4096, bias, split
k_proj, MoE layer, 45, 2 x 1024 x 4096, bias, split
v_proj, MoE layer, 45, 2 x 1024 x 4096, bias, split
o_proj, MoE layer, 45, 2 x 4096 x 12288
router, MoE layer, 45, 2 x 128 x 4096
shared gate_up_proj, MoE layer, 45, 2 x 2816 x 4096, fused
shared gate_proj, MoE layer, 45, 2 x 1408 x 4096, split
shared up_proj, MoE layer, 45, 2 x 1408 x 4096, split
shared down_proj, MoE layer, 45, 2 x 4096 x 1408
experts gate_up_proj, MoE layer, 45, 16 of 1 x 2816 x 4096, fused
experts gate_proj, MoE layer, 45, 16 of 1 x 1408 x 4096, split
experts up_proj, MoE layer, 45, 16 of 1 x 1408 x 4096, split
experts down_proj, MoE layer, 45, 16 of 1 x 4096 x 1408
lm_head, head, 1, 2 x 151552 x 4096
"""
GEMMA2_9B = """
qkv_proj, layer, 42, 2 x 8192 x 3584, fused
q_proj, layer, 42, 2 x 4096 x 3584, split
k_proj, layer, 42, 2 x 2048 x 3584, split
v_proj, layer, 42, 2 x 2048 x 3584, split
o_proj, layer, 42, 2 x 3584 x 4096
gate_up_proj, layer, 42, 2 x 28672 x 3584, fused
gate_proj, layer, 42, 2 x 14336 x 3584, split
up_proj, layer, 42, 2 x 14336 x 3584, split
down_proj, layer, 42, 2 x 3584 x 14336
lm_head, head, 1, 2 x 256000 x 3584
"""
PHI4 = """
qkv_proj, layer, 40, 2 x 7680 x 5120, fused
q_proj, layer, 40, 2 x 5120 x 5120, split
k_proj, layer, 40, 2 x 1280 x 5120, split
v_proj, layer, 40, 2 x 1280 x 5120, split
o_proj, layer, 40, 2 x 5120 x 5120
gate_up_proj, layer, 40, 2 x 35840 x 5120, fused
gate_proj, layer, 40, 2 x 17920 x 5120, split
up_proj, layer, 40, 2 x 17920 x 5120, split
down_proj, layer, 40, 2 x 5120 x 17920
lm_head, head, 1, 2 x 100352 x 5120
"""
PHI2 = """
qkv_proj, layer, 32, 2 x 7680 x 2560, bias, fused
q_proj, layer, 32, 2 x 2560 x 2560, bias, split
k_proj, layer, 32, 2 x 2560 x 2560, bias, split
v_proj, layer, 32, 2 x 2560 x 2560, bias, split
o_proj, layer, 32, 2 x 2560 x 2560, bias
up_proj, layer, 32, 2 x 10240 x 2560, bias
down_proj, layer, 32, 2 x 2560 x 10240, bias
lm_head, head, 1, 2 x 51200 x 2560, bias
"""
TABLES = {
    name: (getattr(configs, name), table.strip().splitlines())
    for name, table in list(globals().items())
    if name.isupper() and isinstance(table, str)
}
