"""Weights and cache of a card: parameters that model pages publish, and caches by hand."""

import pytest

from cubecore.models.families import read_decoder
from cubecore.models.memory import CardMemory, card_memory
from cubecore.models.step import InferenceStep
from models import configs

PUBLISHED = {
    "LLAMA3_8B": 8.03e9, "MISTRAL_7B": 7.24e9, "QWEN2_7B": 7.62e9, "QWEN3_8B": 8.19e9,
    "QWEN3_30B_A3B": 30.53e9, "MIXTRAL_8X7B": 46.7e9, "DEEPSEEK_V2_LITE": 15.71e9,
    "DEEPSEEK_V3": 671.03e9, "GLM4_9B_CHAT": 9.4e9, "GEMMA2_9B": 9.24e9, "PHI4": 14.66e9,
    "PHI2": 2.78e9,
}  # fmt: skip
"""Parameters as the models' pages and safetensors indices count them."""


def memory(config, batch=1, seq=None, tp=1, ep=1, dtype="bfloat16", card=None):
    step = InferenceStep("decode", batch, seq, tp, ep)
    return card_memory(read_decoder(config), step, dtype, "bfloat16", card, "a source")


@pytest.mark.parametrize("name", PUBLISHED)
def test_weights_are_the_parameters_that_are_published(name):
    found = memory(getattr(configs, name))
    assert found.weights / 2 == pytest.approx(PUBLISHED[name], rel=2e-3)


def test_weights_do_not_depend_on_the_tokens_of_a_step():
    """One token of a mixture reads 8 of 256 experts; the card keeps all of them."""
    sizes = {memory(configs.DEEPSEEK_V3, batch=batch).weights for batch in (1, 64, 4096)}
    assert len(sizes) == 1


@pytest.mark.parametrize(("tp", "ep"), [(8, 1), (1, 64), (8, 64)])
def test_cards_share_the_weights(tp, ep):
    """64 groups of experts have a 64th of them each; what is no expert is divided by tp alone."""
    whole, share = memory(configs.QWEN3_30B_A3B), memory(configs.QWEN3_30B_A3B, tp=tp, ep=ep)
    experts = 2 * 48 * 128 * 3 * 2048 * 768
    rest = whole.weights - experts
    keys = 2 * 48 * 2 * 4 * 128 * 2048 * (max(tp / 4, 1) - 1) / tp  # heads of keys are copied
    expected = experts / max(ep, tp) + rest / tp + keys
    assert share.weights == pytest.approx(expected, rel=2e-2)


def test_narrow_products_leave_the_embedding_and_the_head_as_they_are():
    both = 2 * 2 * 151936 * 4096
    wide, narrow = memory(configs.QWEN3_8B), memory(configs.QWEN3_8B, dtype="int8")
    norms = 2 * (2 * 36 + 1) * 4096
    assert narrow.weights - both - norms == (wide.weights - both - norms) / 2
    scaled = memory(configs.QWEN3_8B, dtype="mxfp4")
    assert scaled.weights - both - norms == (wide.weights - both - norms) * (4 + 8 / 32) / 16


def test_a_tied_embedding_is_the_head():
    apart = memory(configs.QWEN3_8B)
    tied = memory({**configs.QWEN3_8B, "tie_word_embeddings": True})
    assert apart.weights - tied.weights == 2 * 151936 * 4096


@pytest.mark.parametrize(
    ("name", "tp", "a_token"),
    [
        ("LLAMA3_8B", 1, 2 * 2 * 32 * 8 * 128),
        ("LLAMA3_8B", 4, 2 * 2 * 32 * 2 * 128),
        ("LLAMA3_8B", 32, 2 * 2 * 32 * 1 * 128),
        ("DEEPSEEK_V3", 1, 2 * 61 * (512 + 64)),
        ("DEEPSEEK_V3", 16, 2 * 61 * (512 + 64)),
    ],
)
def test_the_cache_of_a_token(name, tp, a_token):
    found = memory(getattr(configs, name), batch=3, seq=100, tp=tp)
    assert (found.cache_token, found.cache) == (a_token, 300 * a_token)
    assert memory(getattr(configs, name), tp=tp).cache is None


def test_what_fits_fits_to_the_last_sequence():
    found = memory(configs.QWEN3_8B, batch=1, seq=4096, card=64 << 30)
    most = found.sequences(4096)
    assert memory(configs.QWEN3_8B, batch=most, seq=4096, card=64 << 30).fits
    assert not memory(configs.QWEN3_8B, batch=most + 1, seq=4096, card=64 << 30).fits
    assert memory(configs.QWEN3_8B, batch=most + 1, seq=4096).fits is None
    assert CardMemory(9, 1, 0, 8).sequences(1) == 0
