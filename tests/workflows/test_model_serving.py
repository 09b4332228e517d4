"""`model` for who serves models: the config's type, memory, TPOT and TTFT, parts and bounds."""

import json
from html import unescape

import pytest

import cubecore
from cubecore.errors import RequestError
from cubecore.models.products import BOTH
from models.configs import DEEPSEEK_V3, LLAMA3_8B
from workflows.command import DONE, assert_refused, cli
from workflows.folders import folder  # noqa: F401 - a fixture

# ruff: noqa: F811 - fixtures are arguments

SMALL = {
    "model_type": "llama", "hidden_size": 256, "intermediate_size": 512,
    "num_attention_heads": 4, "num_key_value_heads": 2, "num_hidden_layers": 3,
    "vocab_size": 1000, "max_position_embeddings": 128,
}  # fmt: skip
DECODE = ("--phase", "decode", "--batch", "4")


@pytest.fixture(scope="module")
def decode():
    return cubecore.model(SMALL, phase="decode", batch=4, seq=64)


@pytest.fixture
def write(folder):
    def written(fields, name="config.json"):
        (folder / name).write_text(json.dumps(fields), encoding="utf-8")
        return name

    return written


# --- the type of the weights


@pytest.mark.thinned(4)
@pytest.mark.parametrize(
    ("fields", "keys", "kind", "kept", "said"),
    [
        ({}, {}, "bfloat16", "bfloat16", "bfloat16: the config names no type"),
        ({"torch_dtype": "float16"}, {}, "float16", "float16",
         "float16: the config's torch_dtype"),
        ({"dtype": "bfloat16"}, {}, "bfloat16", "bfloat16", "bfloat16: the config's dtype"),
        ({"torch_dtype": "float16"}, {"dtype": "bf16"}, "bfloat16", "bfloat16",
         "bfloat16: as asked; the config's torch_dtype is float16"),
        ({"torch_dtype": "float16"}, {"dtype": "int8"}, "int8", "float16",
         "int8: as asked; the config's torch_dtype is float16"),
        ({"torch_dtype": "float16"}, {"dtype": "fp16"}, "float16", "float16",
         "float16: as asked"),
        ({"text_config": {**SMALL, "model_type": "gemma3_text", "head_dim": 64,
                          "torch_dtype": "float16"},
          "model_type": "gemma3"}, {}, "float16", "float16", "float16: the config's torch_dtype"),
    ],
)  # fmt: skip
def test_the_type_is_the_configs_unless_asked(fields, keys, kind, kept, said):
    step = cubecore.model({**SMALL, **fields}, phase="decode", batch=1, **keys)
    assert (step.rows[0].request.problem.a, step.kept_type) == (kind, kept)
    assert step.assumed[0] == f"matmuls are {said}"
    assert f"\n  matmuls are {said}\n" in step.text
    assert step.to_json()["dtype_from"] == said.partition(": ")[2]


def test_a_quantised_checkpoint_is_said_to_be_one():
    quantised = {**SMALL, "torch_dtype": "bfloat16", "quantization_config": {"quant_method": "awq"}}
    said = (
        "the checkpoint is quantised (awq), which is not read: --dtype gives the type of its "
        "matmuls"
    )
    assert said in cubecore.model(quantised, phase="decode", batch=1).assumed
    asked = cubecore.model(quantised, phase="decode", batch=1, dtype="int8")
    assert said not in asked.assumed


@pytest.mark.parametrize(
    ("fields", "line"),
    [
        ({"torch_dtype": 16},
         "config.json: torch_dtype must be the name of an element type, got 16"),
        ({"max_position_embeddings": 0},
         "config.json: max_position_embeddings must be from 1 to 2147483647, got 0"),
        ({"tie_word_embeddings": "no"},
         "config.json: tie_word_embeddings must be true or false, got 'no'"),
        ({"quantization_config": "awq"},
         "config.json: quantization_config must be an object, got 'awq'"),
    ],
)  # fmt: skip
def test_what_is_wrong_in_a_config_is_one_line(write, fields, line):
    assert_refused(cli("model", write({**SMALL, **fields}), *DECODE), line)


def test_an_unknown_type_of_a_config_names_its_field(write):
    answer = cli("model", write({**SMALL, "torch_dtype": "flot16"}), *DECODE)
    assert answer.err.startswith("the config's torch_dtype must be an element type (")
    assert answer.err.endswith(", got 'flot16'; did you mean float16?\n")
    assert cli("model", "config.json", *DECODE, "--dtype", "bf17").code == 2


# --- the model's name


@pytest.mark.usefixtures("folder")
def test_a_models_name_is_answered_with_where_its_config_is():
    line = (
        "cannot read Qwen/Qwen3-8B: no such file; if it is a model's name, give the path of its "
        "config.json, which is among the model's files on its hub (hf download Qwen/Qwen3-8B "
        "config.json fetches it and prints the path)"
    )
    assert_refused(cli("model", "Qwen/Qwen3-8B", *DECODE), line)
    bare = line.replace("read Qwen/", "read ").replace("download Qwen/", "download OWNER/")
    assert_refused(cli("model", "Qwen3-8B", *DECODE), bare)
    for path in ("a/b/c", "config.json", "folder/config.json"):
        assert_refused(cli("model", path, *DECODE), f"cannot read {path}: no such file")


# --- memory


def test_a_step_that_does_not_fit_is_refused_and_timed_if_forced(write):
    """32 layers of 2 x 8 heads of 128 in 16 bits: 128 KiB a token, 512 MiB for 4,096 of them."""
    name = write({**LLAMA3_8B, "num_hidden_layers": 32})
    words = ("--phase", "decode", "--batch", "1024", "--seq", "4096")
    line = (
        "14.96 GiB of weights and 512 GiB of cache exceed the 64 GiB of Ascend910B3; "
        "98 sequences of 4,096 tokens fit; --force times it all the same"
    )
    assert_refused(cli("model", name, *words), line)
    answer = cli("model", name, *words, "--force")
    assert answer.code == DONE
    assert "\nweights and cache do not fit into the card; timed because of --force\n" in answer.out


def test_weights_that_no_card_holds_are_refused_with_what_helps():
    with pytest.raises(RequestError) as caught:
        cubecore.model(DEEPSEEK_V3, phase="decode", batch=1, seq=64)
    assert str(caught.value) == (
        "1,250 GiB of weights and 0.004189 GiB of cache exceed the 64 GiB of Ascend910B3; raise "
        "--tp or --ep, or take a narrower --dtype; --force times it all the same"
    )


def test_a_chip_without_a_source_of_its_memory_is_not_checked(decode):
    assert decode.memory.source
    assert decode.to_json()["memory"] == {
        "weight_bytes": decode.memory.weights,
        "cache_bytes": 4 * 64 * 2 * 3 * 2 * 2 * 64,
        "cache_bytes_per_token": 2 * 3 * 2 * 2 * 64,
        "card_bytes": 64 << 30,
        "card_source": decode.memory.source,
        "fits": True,
    }
    unknown = cubecore.model(SMALL, phase="decode", batch=4, seq=64, chip="Ascend910B2C")
    assert unknown.memory.fits is None
    assert (
        "; no source gives the memory of Ascend910B2C, so the fit is not checked\n" in unknown.text
    )


@pytest.mark.thinned(2)
@pytest.mark.parametrize(("seq", "beyond"), [(128, False), (129, True)])
def test_a_context_beyond_the_models_is_said(seq, beyond):
    step = cubecore.model(SMALL, phase="decode", batch=1, seq=seq)
    said = f"{seq} tokens are beyond the model's limit of 128 (max_position_embeddings)"
    assert (said in step.remarks) == (f"\n{said}\n" in step.text) == beyond
    assert (said in unescape(step.page())) == beyond


# --- time and throughput


def test_a_decode_has_a_tpot_and_its_tokens_a_second(decode):
    us = decode.whole_us("fused")
    whole = decode.to_json()["whole"][0]
    assert (whole["tpot_us"], whole["ttft_us"]) == (us, None)
    assert whole["tokens_per_second"] == pytest.approx(4 / us * 1e6)
    assert decode.text.splitlines()[3].startswith("TPOT ")
    assert decode.text.splitlines()[3].endswith(" tokens/s")


def test_a_prefill_has_a_ttft():
    step = cubecore.model(SMALL, phase="prefill", batch=2, seq=64, tp=2)
    us = step.whole_us("fused")
    whole = step.to_json()["whole"][0]
    assert (whole["tpot_us"], whole["ttft_us"]) == (None, us)
    assert whole["tokens_per_second"] == pytest.approx(128 / us * 1e6)
    assert step.text.splitlines()[3].startswith("TTFT ")
    assert step.text.splitlines()[3].endswith(" a card)")


def test_memory_cannot_give_weights_and_cache_faster_than_the_step():
    """A long decode is bound by them: most of its time is theirs."""
    long = {**LLAMA3_8B, "num_hidden_layers": 2}
    step = cubecore.model(long, phase="decode", batch=16, seq=8192)
    least = step.least_memory_us
    read = step.total("step", "fused").weight_bytes + step.memory.cache
    assert least == pytest.approx(read / step.request.chip.hbm_bytes_per_second * 1e6)
    assert 0.5 < least / step.whole_us("fused") < 1


def test_parts_add_up_to_the_step_and_have_the_bound_of_their_longest(decode):
    for variant in BOTH:
        parts = decode.parts(variant)
        assert sum(part.us for part in parts) == pytest.approx(decode.whole_us(variant))
        assert [part.name for part in parts] == [
            *("projections", "block", "head", "attention", "cache", "norms", "rotary"),
            *("activations", "launches"),
        ]
    (attention,) = (row for row in decode.terms if row.term == "attention")
    assert next(p for p in parts if p.name == "attention").limited_by == attention.bound != ""
    head = next(row for row in decode.rows if row.product.part == "head")
    assert next(p for p in parts if p.name == "head").limited_by == head.limited_by


@pytest.mark.parametrize(
    ("keys", "missing"),
    [
        ({"batch": 1}, "attention (attention needs --seq, the tokens behind each sequence)"),
        ({"batch": 1, "seq": 64, "without": ["attention"]}, "attention (left out)"),
        ({"batch": 1, "seq": 64, "tp": 16},
         "collectives (no page gives the links of 16 cards of Ascend910B3)"),
    ],
)  # fmt: skip
def test_a_step_of_which_a_part_has_no_time_has_no_total(keys, missing):
    heads = {"num_attention_heads": 16, "num_key_value_heads": 16, "head_dim": 64}
    step = cubecore.model({**SMALL, **heads}, phase="decode", **keys)
    assert [step.whole_us(variant) for variant in BOTH] == [None, None]
    counted = step.counted_us("fused")
    assert counted > 0
    assert f"No total, fused: {missing}. All else takes " in step.text
    assert "\n  step         " in step.text
    assert "no total" in step.text
    assert "TPOT" not in step.text
    whole = step.to_json()["whole"][0]
    gone = ("us", "interval", "tokens_per_second", "tpot_us")
    assert [whole[name] for name in gone] == [None] * 4
    assert (whole["counted_us"], whole["missing"]) == (counted, [missing])
    assert f"No total: {missing}." in unescape(step.page())
    assert "no total" in repr(step)


def test_other_terms_can_be_left_out_and_the_total_says_so():
    step = cubecore.model(SMALL, phase="decode", batch=1, seq=64, without=["norms"])
    assert step.whole_us("fused") == step.counted_us("fused")
    assert " fused, without norms (" in step.text
