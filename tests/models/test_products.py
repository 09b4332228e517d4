"""The products of a step: each family against a table made by hand, and what cards divide."""

import json

import pytest

from cubecore.errors import RequestError
from cubecore.models.families import FAMILIES, read_decoder
from cubecore.models.products import BOTH, FUSED, SPLIT, step_products
from cubecore.models.step import InferenceStep
from models.configs import DEEPSEEK_V3, LLAMA3_8B, PHI4, QWEN3_30B_A3B
from models.tables import TABLES

WEIGHTS = {  # parameters of the published models in units of 1e9, embeddings and norms included
    "LLAMA3_8B": 8.03, "MISTRAL_7B": 7.24, "QWEN2_7B": 7.62, "QWEN3_8B": 8.19,
    "QWEN2_57B_A14B": 57.4, "QWEN3_30B_A3B": 30.5, "MIXTRAL_8X7B": 46.7,
    "DEEPSEEK_V2_LITE": 15.7, "DEEPSEEK_V3": 671.0, "GLM4_9B_CHAT": 9.4, "GLM4_5_AIR": 106.0,
    "GEMMA2_9B": 9.24, "PHI4": 14.7, "PHI2": 2.78,
}  # fmt: skip


def products(config, **step):
    asked = InferenceStep(**{"phase": "decode", "batch": 2, **step})
    return step_products(read_decoder(config), asked)


def line(product):
    batch = f"{product.batch} of " if product.batch > 1 else ""
    extents = f"{batch}{product.m} x {product.n} x {product.k}"
    words = [product.name, product.layers, str(product.launches), extents]
    words += ["bias"] * product.bias
    words += list(product.variants) if len(product.variants) == 1 else []
    return ", ".join(words)


def line_of(call):
    with pytest.raises(RequestError) as caught:
        call()
    return str(caught.value)


@pytest.mark.parametrize("name", TABLES)
def test_products_are_those_of_the_table(name):
    config, table = TABLES[name]
    assert [line(product) for product in products(config)] == table


@pytest.mark.parametrize("name", TABLES)
def test_weights_are_the_published_number_of_parameters(name):
    """With every expert busy, and the embedding beside the head where the model has its own."""
    config, _ = TABLES[name]
    many = products(config, batch=4096)
    for variant in BOTH:
        count = sum(p.weight_elements * p.launches for p in many if variant in p.variants)
        tied = name == "GEMMA2_9B"
        count += 0 if tied else config["hidden_size"] * many[-1].n
        assert count / 1e9 == pytest.approx(WEIGHTS[name], rel=0.02)


@pytest.mark.parametrize("name", TABLES)
@pytest.mark.parametrize("step", [{}, {"phase": "prefill", "seq": 640}, {"tp": 2}, {"batch": 33}])
def test_both_variants_compute_the_same(name, step):
    of = {variant: [] for variant in BOTH}
    for product in products(TABLES[name][0], **step):
        for variant in product.variants:
            of[variant].append(product.operations * product.launches)
    assert sum(of[FUSED]) == sum(of[SPLIT])


def test_a_prefill_computes_every_token_and_one_head_row_a_sequence():
    many = products(LLAMA3_8B, phase="prefill", batch=3, seq=100)
    assert {p.m for p in many[:-1]} == {300}
    assert many[-1].m == 3


def test_a_prefill_of_mla_decompresses_keys_and_values():
    many = {p.name: p for p in products(DEEPSEEK_V3, phase="prefill", batch=1, seq=64)}
    up = many["kv_b_proj"]
    assert (up.m, up.n, up.k, up.batch) == (64, 128 * 256, 512, 1)
    assert not [name for name in many if "by head" in name]


@pytest.mark.parametrize("seq", [None, 1, 4096])
def test_no_product_of_a_decode_depends_on_the_context(seq):
    assert products(DEEPSEEK_V3, seq=seq) == products(DEEPSEEK_V3)


@pytest.mark.parametrize("tp", [2, 4, 8])
def test_cards_divide_columns_of_the_first_products_and_depth_of_the_last(tp):
    whole = {p.name: p for p in products(LLAMA3_8B)}
    shared = {p.name: p for p in products(LLAMA3_8B, tp=tp)}
    for name in ("qkv_proj", "q_proj", "k_proj", "gate_up_proj", "up_proj", "lm_head"):
        assert (shared[name].n * tp, shared[name].k) == (whole[name].n, whole[name].k)
    for name in ("o_proj", "down_proj"):
        assert (shared[name].n, shared[name].k * tp) == (whole[name].n, whole[name].k)


def test_cards_beyond_the_heads_of_keys_have_a_copy_of_one():
    many = {p.name: p.n for p in products(LLAMA3_8B, tp=16)}
    assert (many["q_proj"], many["k_proj"], many["qkv_proj"]) == (256, 128, 512)


def test_a_vocabulary_that_cards_do_not_divide_is_padded():
    assert products({**LLAMA3_8B, "vocab_size": 1001}, tp=2)[-1].n == 501


def experts(**step):
    product = {p.name: p for p in products(QWEN3_30B_A3B, **step)}["experts gate_up_proj"]
    return product.batch, product.m, product.n


@pytest.mark.parametrize(
    ("step", "busy"),
    [
        ({"batch": 1}, (8, 1, 1536)),  # eight of 128 experts, a token each
        ({"batch": 16}, (128, 1, 1536)),  # each expert has one
        ({"batch": 17}, (128, 2, 1536)),  # 136 tokens: some have two
        ({"batch": 64, "tp": 4}, (128, 4, 384)),  # a quarter of each expert
        ({"batch": 64, "ep": 8}, (16, 32, 1536)),  # eight groups bring 512 sequences
        ({"batch": 64, "tp": 4, "ep": 8}, (16, 8, 1536)),  # two groups
        ({"batch": 1, "ep": 64}, (2, 4, 1536)),
    ],
)
def test_tokens_are_spread_evenly_over_the_experts_of_a_card(step, busy):
    assert experts(**step) == busy


def test_every_second_layer_may_have_experts_but_for_some():
    config = {**QWEN3_30B_A3B, "num_hidden_layers": 10, "decoder_sparse_step": 2}
    layers = read_decoder({**config, "mlp_only_layers": [1, 2, 9]}).layers
    assert [(kind.name, kind.count) for kind in layers] == [("dense layer", 7), ("MoE layer", 3)]


def test_only_layers_after_the_first_have_experts():
    config = {**DEEPSEEK_V3, "num_hidden_layers": 10, "moe_layer_freq": 3}
    layers = read_decoder(config).layers
    assert [(kind.name, kind.count) for kind in layers] == [("dense layer", 7), ("MoE layer", 3)]


def test_layers_of_multi_token_prediction_are_named_as_left_out():
    assert read_decoder(DEEPSEEK_V3).left_out == ("layers of multi-token prediction",)
    assert read_decoder({**DEEPSEEK_V3, "num_nextn_predict_layers": 0}).left_out == ()


def test_the_text_part_of_a_model_that_sees_is_read():
    text = {**TABLES["GEMMA2_9B"][0], "model_type": "gemma3_text"}
    seeing = read_decoder({"model_type": "gemma3", "text_config": text})
    assert seeing.layers == read_decoder(text).layers
    assert seeing.left_out == ("the vision tower",)


@pytest.mark.parametrize(
    ("config", "step", "line"),
    [
        (LLAMA3_8B, {"tp": 3}, "tp must divide the attention heads = 32, got 3"),
        (PHI4, {"tp": 4}, "tp must divide the heads of keys = 10, got 4"),
        (PHI4, {"tp": 20}, None),
        ({**PHI4, "num_key_value_heads": 4}, {"tp": 10},
         "tp must be a multiple of the heads of keys = 4, got 10"),
        ({**LLAMA3_8B, "intermediate_size": 14337}, {"tp": 2},
         "tp must divide the block's width = 14337, got 2"),
        (QWEN3_30B_A3B, {"ep": 3}, "ep must divide the experts = 128, got 3"),
        (QWEN3_30B_A3B, {"tp": 2, "ep": 3}, "ep must be 1 or a multiple of tp = 2, got 3"),
        (LLAMA3_8B, {"phase": "train"}, "phase must be prefill or decode, got 'train'"),
        (LLAMA3_8B, {"phase": "prefill"}, "seq must be given for a prefill, got nothing"),
        (LLAMA3_8B, {"batch": 0}, "batch must be from 1 to 2147483647, got 0"),
        (LLAMA3_8B, {"batch": 2.5}, "batch must be an integer, got 2.5"),
        (LLAMA3_8B, {"batch": True}, "batch must be an integer, got True"),
        (LLAMA3_8B, {"phase": "prefill", "batch": 2**20, "seq": 2**20},
         "batch x seq must be at most 2147483647, got 1099511627776"),
    ],
)  # fmt: skip
def test_steps_that_cannot_be_are_one_sentence(config, step, line):
    if line is None:
        assert products(config, **step)
    else:
        assert line_of(lambda: products(config, **step)) == line


# --- configs


def without(config, name):
    return {key: value for key, value in config.items() if key != name}


OPTIONAL = {
    "attention_bias", "head_dim", "num_key_value_heads", "first_k_dense_replace",
    "n_shared_experts", "add_qkv_bias", "q_lora_rank", "n_routed_experts",
    "multi_query_attention",
}  # fmt: skip
"""Fields without which a config means another model."""


def listed(config):
    try:
        return [line(product) for product in products(config)]
    except RequestError as error:
        return str(error)


@pytest.mark.parametrize("name", TABLES)
def test_a_config_without_a_field_that_it_needs_is_one_sentence(name):
    """Each field is left out: the table is the same, or a sentence names the field."""
    config, table = TABLES[name]
    for field in set(config) - OPTIONAL:
        answer = listed(without(config, field))
        assert answer in (table, f"config has no field {field}")


NAMES = ", ".join(FAMILIES)


@pytest.mark.parametrize(
    ("config", "line"),
    [
        ({}, "config has no field model_type"),
        ({"model_type": 3}, "config: model_type must be a text, got 3"),
        ({"model_type": "lama"},
         f"config: model_type must be one of {NAMES}, got 'lama'; did you mean llama?"),
        ({"model_type": "bert"}, f"config: model_type must be one of {NAMES}, got 'bert'"),
        ({**LLAMA3_8B, "hidden_size": "4096"},
         "config: hidden_size must be a whole number, got '4096'"),
        ({**LLAMA3_8B, "hidden_size": True},
         "config: hidden_size must be a whole number, got true"),
        ({**LLAMA3_8B, "hidden_size": 4096.0},
         "config: hidden_size must be a whole number, got 4096.0"),
        ({**LLAMA3_8B, "num_hidden_layers": 0},
         "config: num_hidden_layers must be from 1 to 2147483647, got 0"),
        ({**LLAMA3_8B, "vocab_size": 2**31},
         "config: vocab_size must be from 1 to 2147483647, got 2147483648"),
        ({**LLAMA3_8B, "attention_bias": "no"},
         "config: attention_bias must be true or false, got 'no'"),
        ({**QWEN3_30B_A3B, "mlp_only_layers": 3},
         "config: mlp_only_layers must be a list of whole numbers, got 3"),
        ({**QWEN3_30B_A3B, "mlp_only_layers": ["a"]},
         "config: mlp_only_layers must be a whole number, got 'a'"),
        ({"model_type": "gemma3", "text_config": 3},
         "config: text_config must be an object, got 3"),
        (3, "config must be a file, a folder or a mapping, got int"),
    ],
)  # fmt: skip
def test_a_config_that_makes_no_sense_is_one_sentence(config, line):
    assert line_of(lambda: read_decoder(config)) == line


def test_a_file_or_its_folder_is_read(tmp_path):
    path = tmp_path / "config.json"
    path.write_text(json.dumps(LLAMA3_8B), encoding="utf-8")
    assert read_decoder(path) == read_decoder(str(tmp_path)) == read_decoder(LLAMA3_8B)
    (tmp_path / "short.json").write_text('{"model_type": "llama"', encoding="utf-8")
    short = tmp_path / "short.json"
    told = line_of(lambda: read_decoder(short))
    assert told.startswith(f"{short} must be JSON, got Expecting")
    (tmp_path / "list.json").write_text("[1]", encoding="utf-8")
    assert line_of(lambda: read_decoder(tmp_path / "list.json")) == (
        f"{tmp_path / 'list.json'} must be a JSON object, got list"
    )
    absent = tmp_path / "absent.json"
    assert line_of(lambda: read_decoder(absent)) == f"cannot read {absent}: no such file"


def test_a_configuration_object_gives_its_fields():
    class Configuration:
        def to_dict(self):
            return LLAMA3_8B

    assert read_decoder(Configuration()) == read_decoder(LLAMA3_8B)
