import dataclasses
import json

import pytest

from cubecore.chips import chip
from cubecore.errors import RequestError
from cubecore.tiling.model.epilogue import Epilogue
from cubecore.tiling.model.problem import Problem
from cubecore.tiling.rules.capabilities import require_plannable, validate
from tiling.cases import B3, problem

CONTRACT = (  # noqa: SIM905
    "chip launch cores m n k kb a b c bias scale_a scale_b trans_a trans_b format_a format_b "
    "format_c pos_a pos_b pos_c batch split_k template unit_flag hf32 intrinsics_check "
    "epilogue fix budget layout heads groups batch_num seed"
).split()


def lines(mapping):
    with pytest.raises(RequestError) as caught:
        Problem.from_json({"m": 4, "n": 4, "k": 4} | mapping)
    return str(caught.value).split("\n")


def test_only_extents_are_required_and_defaults_are_the_contracts():
    made = Problem.from_json({"m": 3, "n": 5, "k": 7})
    assert list(made.to_json()) == CONTRACT
    assert made.to_json() == {
        "chip": "Ascend910B3",
        "launch": "cube",
        "cores": None,
        "m": 3,
        "n": 5,
        "k": 7,
        "kb": None,
        "a": "float16",
        "b": "float16",
        "c": "float32",
        "bias": None,
        "scale_a": None,
        "scale_b": None,
        **dict.fromkeys(("trans_a", "trans_b"), False),
        **dict.fromkeys(("format_a", "format_b", "format_c"), "ND"),
        **dict.fromkeys(("pos_a", "pos_b", "pos_c"), "GM"),
        "batch": 1,
        "split_k": False,
        "template": "MDL",
        "unit_flag": None,
        "hf32": False,
        "intrinsics_check": False,
        "epilogue": {"relu": False, "quant": None, "scale": None, "offset": 0},
        "fix": {},
        "budget": {},
        "layout": None,
        "heads": 1,
        "groups": 1,
        "batch_num": None,
        "seed": 0,
    }


def test_json_round_trip():
    made = problem(a="int8", bias="int32", trans_b=True, epilogue=Epilogue(relu=True), cores=3)
    assert Problem.from_json(json.loads(json.dumps(made.to_json()))) == made


@pytest.mark.parametrize(
    ("given", "want"),
    [
        ({}, ("float16", "float16", "float32")),
        ({"a": "half"}, ("float16", "float16", "float32")),
        ({"a": "int8_t"}, ("int8", "int8", "int32")),
        ({"a": "DT_BF16", "c": "half"}, ("bfloat16", "bfloat16", "float16")),
        ({"a": "int8", "b": "float16"}, ("int8", "float16", "int32")),
        ({"a": "int4b_t"}, ("int4", "int4", "int32")),
    ],
)
def test_types_are_normalised_and_default_to_each_other(given, want):
    made = Problem.from_json({"m": 1, "n": 1, "k": 1} | given)
    assert (made.a, made.b, made.c) == want
    assert made.accumulator_type.name == ("int32" if want[0].startswith("int") else "float32")


@pytest.mark.parametrize(
    ("given", "want"),
    [
        ({"m": 0}, "m must be at least 1, got 0"),
        ({"n": -3}, "n must be at least 1, got -3"),
        ({"k": 2**31}, "k must be at most 2147483647, got 2147483648; TCubeTiling is int32"),
        ({"m": 1.0}, "m must be an integer, got 1.0"),
        ({"m": "8"}, "m must be an integer, got '8'"),
        ({"m": True}, "m must be an integer, got True"),
        ({"m": None}, "missing m"),
        ({"kb": 0}, "kb must be at least 1, got 0"),
        ({"cores": 0}, "cores must be at least 1, got 0"),
        ({"batch": 0}, "batch must be at least 1, got 0"),
        ({"launch": "cub"}, "launch must be one of cube, mix, got 'cub'; did you mean cube?"),
        ({"format_b": "nd"}, "format_b must be one of ND, NZ, got 'nd'; did you mean ND?"),
        ({"format_a": ["ND"]}, "format_a must be one of ND, NZ, got ['ND']; did you mean ND?"),
        ({"trans_a": 1}, "trans_a must be true or false, got 1"),
        ({"unit_flag": "no"}, "unit_flag must be true, false or null, got 'no'"),
        ({"seed": "x"}, "seed must be an integer, got 'x'"),
        ({"chip": 910}, "chip must be the full name of a SoC, got 910"),
        ({"a": 16}, "a must be the name of an element type, got 16"),
        ({"c": ""}, "c must be an element type, got ''"),
        ({"epilogue": 3}, "epilogue must be a JSON object, got 3"),
        ({"epilogue": {"relu": 1}}, "epilogue.relu must be true or false, got 1"),
        (
            {"epilogue": {"scale": "1"}},
            "epilogue.scale must be a number, n numbers or null, got '1'",
        ),
        (
            {"epilogue": {"rely": True}},
            "epilogue must have only known keys, got 'rely'; did you mean relu?",
        ),
        (
            {"trans_A": True},
            "problem must have only known keys, got 'trans_A'; did you mean trans_a?",
        ),
    ],
)
def test_bad_values_are_one_sentence(given, want):
    assert lines(given) == [want]


def test_an_unknown_type_lists_the_types():
    (line,) = lines({"a": "flaot16"})
    assert line.startswith("a must be an element type (float16, bfloat16, ")
    assert line.endswith("), got 'flaot16'; did you mean float16?")


def test_all_violations_come_at_once():
    found = lines({"m": 0, "n": "x", "launch": "no", "nope": 1, "bias": 3})
    assert [line.split(" must ")[0] for line in found] == ["problem", "m", "n", "launch", "bias"]


def test_a_problem_is_an_object():
    with pytest.raises(RequestError, match=r"^problem must be a JSON object, got \[1\]$"):
        Problem.from_json([1])


def test_cores_are_capped_not_refused():
    assert problem().core_count(B3) == 20
    assert problem(cores=7).core_count(B3) == 7
    assert problem(cores=21).core_count(B3) == 20
    assert problem(launch="mix").core_count(B3) == 40
    assert problem(launch="mix", cores=41).core_count(B3) == 40


def test_a_mix_launch_needs_vector_cores():
    with pytest.raises(RequestError) as caught:
        validate(problem(launch="mix"), chip("Ascend910A"))
    want = "launch must be cube on Ascend910A, got mix; a cube launch needs none"
    assert str(caught.value) == want


@pytest.mark.parametrize(
    ("changes", "soc"),
    [
        ({}, "Ascend910B3"),
        ({"c": "float16"}, "Ascend910B3"),
        ({"bias": "float32"}, "Ascend910B3"),
        ({"bias": "float16", "c": "float16"}, "Ascend910B1"),
        ({"a": "int8", "bias": "int32"}, "Ascend910B3"),
        ({"a": "int4"}, "Ascend910B3"),
        ({"a": "bfloat16", "bias": "float32"}, "Ascend910B3"),
        ({"a": "float32"}, "Ascend910B3"),
        ({"a": "float8_e4m3fn", "b": "float8_e5m2"}, "Ascend950PR_9589"),
        ({"a": "float16"}, "Ascend310P3"),
    ],
)
def test_what_the_seed_multiplies_is_accepted(changes, soc):
    validate(problem(**changes), chip(soc))


SCALES = "TCubeTiling structure, newer edition, table 2"
PAIRS = "int8 by int8, float16 by float16, float32 by float32, bfloat16 by bfloat16, int4 by int4"


@pytest.mark.parametrize(
    ("changes", "want"),
    [
        (
            {"a": "int8", "b": "float16"},
            (
                f"a and b must be types that arch 2201 multiplies ({PAIRS}: Mmad, table 4), "
                "got int8 by float16"
            ),
        ),
        (
            {"a": "float8_e4m3fn"},
            (
                f"a and b must be types that arch 2201 multiplies ({PAIRS}: Mmad, table 4), "
                "got float8_e4m3fn by float8_e4m3fn"
            ),
        ),
        (
            {"c": "int32"},
            (
                "c must be float32 or float16 or bfloat16 without epilogue.quant (Mmad, table "
                "4: mad gives float32), got int32; epilogue.quant writes others: QF322B8_PRE to "
                "int8, VQF322B8_PRE to int8"
            ),
        ),
        (
            {"a": "int8", "c": "float16"},
            (
                "c must be int32 without epilogue.quant (Mmad, table 4: mad gives int32), "
                "got float16; epilogue.quant writes others: DEQF16 to float16, VDEQF16 to "
                "float16, REQ8 to int8, VREQ8 to int8"
            ),
        ),
        (
            {"a": "int8", "bias": "float32"},
            "bias must be int32 for int8 by int8 (Mmad, table 5), got float32",
        ),
        (
            {"bias": "int32"},
            "bias must be float32 or float16 for float16 by float16 (Mmad, table 5), got int32",
        ),
    ],
)
def test_other_combinations_name_the_seeds_table(changes, want):
    with pytest.raises(RequestError) as caught:
        validate(problem(**changes), B3)
    assert str(caught.value) == want


def test_quantised_outputs_are_known_with_a_quantisation():
    for quant, c in (("DEQF16", "float16"), ("REQ8", "int8")):
        asked = problem(a="int8", epilogue=Epilogue(quant=quant, scale=0.5))
        assert asked.c == c
        validate(asked, B3)
    validate(problem(epilogue=Epilogue(quant="QF322B8_PRE", scale=0.5)), B3)


@pytest.mark.parametrize(
    ("given", "want"),
    [
        ({}, (None, None)),
        ({"a": "float8_e5m2"}, (None, None)),
        ({"a": "float8_e5m2", "scale_a": "fp8_e8m0_t"}, ("float8_e8m0fnu", "float8_e8m0fnu")),
        ({"a": "float8_e5m2", "scale_b": "DT_FLOAT8_E8M0"}, ("float8_e8m0fnu", "float8_e8m0fnu")),
        ({"a": "mxfp4"}, ("float8_e8m0fnu", "float8_e8m0fnu")),
        ({"a": "float8_e5m2", "b": "mxfp8"}, ("float8_e8m0fnu", "float8_e8m0fnu")),
        ({"a": "float4_e2m1fn"}, ("float8_e8m0fnu", "float8_e8m0fnu")),
    ],
)
def test_scales_come_in_pairs_and_with_float4(given, want):
    made = problem(**given)
    assert (made.scale_a, made.scale_b) == want
    assert made.mx == (want[0] is not None)
    assert Problem.from_json(made.to_json()) == made


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("mxfp8", "float8_e4m3fn"),
        ("mxfp8_e4m3", "float8_e4m3fn"),
        ("mxfp8_e5m2", "float8_e5m2"),
        ("mxfp4", "float4_e2m1fn"),
    ],
)
def test_a_format_with_scales_has_one_name(name, values):
    assert problem(a=name) == problem(a=values, scale_a="float8_e8m0fnu")
    assert problem(a="float8_e5m2", b=name).b == values


@pytest.mark.parametrize(
    ("given", "want"),
    [
        (
            {"a": "mxfp4", "scale_a": "float16", "scale_b": "float8_e8m0fnu"},
            [f"scale_a must be float8_e8m0fnu ({SCALES}), got float16"],
        ),
        (
            {"a": "float8_e5m2", "scale_b": "float16"},
            [
                f"scale_a must be float8_e8m0fnu ({SCALES}), got float16",
                f"scale_b must be float8_e8m0fnu ({SCALES}), got float16",
            ],
        ),
        (
            {"a": "float8_e5m2", "b": "hifloat8", "scale_a": "float8_e8m0fnu"},
            [
                "b must be float8_e4m3fn or float8_e5m2 or float4_e2m1fn or float4_e1m2 with "
                "scales, got hifloat8"
            ],
        ),
        ({"scale_a": 3}, ["scale_a must be the name of an element type, got 3"]),
    ],
)
def test_other_scales_are_refused(given, want):
    assert lines(given) == want


def test_scales_are_stored_in_pairs_along_k():
    for k, factors in ((1, 2), (32, 2), (33, 2), (64, 2), (65, 4), (672, 22)):
        assert problem(k=k, a="float4_e1m2").scale_k == factors


def test_a_and_b_may_differ_along_k():
    assert (problem(k=9).shared_k, problem(k=9, kb=9).shared_k) == (9, 9)
    assert (problem(k=9, kb=5).shared_k, problem(k=5, kb=9).shared_k) == (5, 5)


UNPLANNABLE = [
    ({"hf32": True}, "hf32 must be false without float32 inputs, got true"),
    (
        {"a": "int4", "trans_a": True},
        "trans_a must be false for int4 (asc-devkit, LoadDataWithTranspose: into L0B alone), got "
        "true",
    ),
    (
        {"split_k": True, "c": "float16"},
        "c must be float32 with split_k, got float16; split_k adds up in C",
    ),
    (
        {"split_k": True, "format_c": "NZ", "n": 24},
        "n must be a multiple of 16 for an NZ C with split_k, got 24; split_k adds up in C",
    ),
    (
        {"split_k": True, "epilogue": Epilogue(relu=True)},
        "epilogue.relu must be false with split_k, got true; split_k adds up in C",
    ),
]


@pytest.mark.parametrize(("changes", "want"), UNPLANNABLE)
def test_options_that_do_not_go_together_are_refused(changes, want):
    with pytest.raises(RequestError) as caught:
        require_plannable(problem(**changes))
    assert str(caught.value).split("\n")[0].startswith(want)


def test_what_can_be_planned_is_not_refused():
    require_plannable(problem(unit_flag=False, epilogue=Epilogue(relu=True), bias="float16"))
    require_plannable(problem(a="int8", trans_a=True, trans_b=True, intrinsics_check=True))


def test_problems_are_frozen():
    with pytest.raises(dataclasses.FrozenInstanceError):
        problem().m = 3


def test_the_chip_record_is_the_catalogues():
    assert problem().chip_record is B3


@pytest.mark.parametrize(
    ("keys", "line"),
    [
        (
            {"unit_flag": True},
            "unit_flag must be false on Ascend310P3 (Mmad, table 3: Atlas A2 and A3 have it), "
            "got true",
        ),
        (
            {"template": "IBSHARE"},
            "template must be NORM or MDL on Ascend310P3 (vendor's GetIBShareNormConfig, table of "
            "products), got IBSHARE",
        ),
        (
            {"hf32": True},
            "hf32 must be false on Ascend310P3 (Mmad, table 4: no float32), got true",
        ),
    ],
)
def test_a_chip_without_the_option_says_where_that_stands(keys, line):
    with pytest.raises(RequestError) as refused:
        validate(problem(**keys), chip("Ascend310P3"))
    assert str(refused.value) == line
    for soc in ("Ascend910B3", "Ascend950PR_9589"):
        validate(problem(a="float32", **keys), chip(soc))
