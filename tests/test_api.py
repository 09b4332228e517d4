"""The Python API: four questions as functions, frozen records that become JSON."""

import json
import subprocess
import sys
from dataclasses import FrozenInstanceError, fields

import numpy as np
import pytest

import cubecore
from cubecore.machine.options import ENGINES
from cubecore.tiling.model.cpp_source import to_header
from cubecore.tiling.model.export import to_json_text
from cubecore.tiling.model.tcubetiling import FIELDS
from cubecore.workflows.data.operands import Operands, make_operands
from harness import make_tiling

SMALL = {"m": 33, "n": 17, "k": 40}
PLAN = cubecore.plan(SMALL)
RECORDS = {
    "plan": lambda: PLAN,
    "check": lambda: cubecore.check(PLAN.tiling, SMALL),
    "run": lambda: cubecore.run(SMALL),
    "time": lambda: cubecore.time(SMALL),
    "compare": lambda: cubecore.compare(PLAN.tiling, make_tiling(PLAN.problem), SMALL),
    "explain": lambda: cubecore.explain("mad"),
    "problem": lambda: PLAN.problem,
    "tiling": lambda: PLAN.tiling,
}
KEYS = {
    "plan": "problem tiling predicted lower_bound_us alternatives",
    "check": "legal findings advice",
    "run": "verified max_abs_error max_rel_error tolerance policy findings wall_s verify_wall_s "
    "total_wall_s reference_wall_s peak_bytes",
    "time": "us cycles limited_by tflops utilisation pipes stalls cores simulated_fraction",
}
every_record = pytest.mark.parametrize("name", RECORDS)


def python(code):
    """Return what a new interpreter prints."""
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60
    )
    return done.stdout.strip()


# --- what importing costs

HEAVY = (
    "numpy",
    "ml_dtypes",
    "click",
    "rich",
    "jinja2",
    "safetensors",
    "threadpoolctl",
    "greenlet",
)


@pytest.mark.parametrize(
    ("module", "light"),
    [("cubecore", ()), ("cubecore.cli.commands", ("click",)), ("cubecore.errors", ())],
)
def test_importing_loads_nothing_heavy(module, light):
    loaded = python(f"import {module}, sys; print([m for m in {HEAVY} if m in sys.modules])")
    assert loaded == str(list(light))


def test_help_loads_nothing_heavy():
    code = (
        "import sys\nfrom cubecore.cli.commands import main\n"
        "try:\n    main(['plan', '--help'])\nexcept SystemExit:\n    pass\n"
        "print('numpy' in sys.modules)"
    )
    assert python(code).splitlines()[-1] == "False"


def test_every_public_name_is_there_and_documented():
    for name in cubecore.__all__:
        assert getattr(cubecore, name).__doc__, name


def test_a_name_that_is_not_there_is_an_attribute_error():
    with pytest.raises(AttributeError, match=r"^module cubecore has no attribute plans$"):
        _ = cubecore.plans


# --- records


@every_record
def test_records_are_frozen(name):
    record = RECORDS[name]()
    field = fields(record)[0].name
    with pytest.raises(FrozenInstanceError):
        setattr(record, field, None)


def strict(text):
    """Parse JSON without NaN and Infinity, which JSON does not have."""

    def refuse(constant):
        raise AssertionError(f"{constant} is not JSON")

    return json.loads(text, parse_constant=refuse)


@every_record
@pytest.mark.thinned(2)
def test_json_round_trips(name):
    made = RECORDS[name]().to_json()
    assert strict(json.dumps(made)) == made


@pytest.mark.parametrize("name", KEYS)
def test_json_has_the_contracts_keys(name):
    made = RECORDS[name]().to_json()
    assert set(KEYS[name].split()) <= set(made)


def test_parts_of_the_json_have_the_contracts_keys():
    plan = PLAN.to_json()
    assert set(plan["predicted"]) >= {"us", "cycles", "limited_by"}
    for alternative in plan["alternatives"]:
        assert set(alternative) >= {"tiling", "predicted"}
    assert list(plan["tiling"]) == list(FIELDS)
    broken = cubecore.check(make_tiling(PLAN.problem, baseM=8), SMALL).to_json()
    assert not broken["legal"]
    wanted = {"rule", "used", "limit", "unit", "message", "remedy", "source"}
    assert all(set(finding) >= wanted for finding in broken["findings"])
    for pipe in cubecore.time(SMALL).to_json()["pipes"].values():
        assert "busy_cycles" in pipe


def test_a_problem_round_trips_with_every_default():
    problem = cubecore.Problem(**SMALL)
    assert cubecore.Problem.from_json(problem.to_json()) == problem
    contract = """
        {"chip": "Ascend910B3", "launch": "cube", "cores": null, "kb": null, "a": "float16",
        "b": "float16", "c": "float32", "bias": null, "scale_a": null, "scale_b": null,
        "trans_a": false, "trans_b": false,
        "format_a": "ND", "format_b": "ND", "format_c": "ND", "pos_a": "GM", "pos_b": "GM",
        "pos_c": "GM", "batch": 1, "split_k": false, "template": "MDL", "unit_flag": null,
        "hf32": false, "intrinsics_check": false, "seed": 0, "fix": {}, "budget": {},
        "layout": null, "heads": 1, "groups": 1, "batch_num": null,
        "epilogue": {"relu": false, "quant": null, "scale": null, "offset": 0}}"""
    assert problem.to_json() == json.loads(contract) | SMALL


@pytest.mark.parametrize(
    ("name", "form"), [("t.json", to_json_text), ("t.h", to_header), ("t.bin", None)]
)
def test_a_tiling_round_trips_through_files(tmp_path, name, form):
    path = tmp_path / name
    data = PLAN.tiling.to_bytes() if form is None else form(PLAN.tiling).encode()
    path.write_bytes(data)
    assert cubecore.load_tiling(path) == PLAN.tiling


# --- ways to ask


def test_a_record_an_object_and_keywords_ask_the_same():
    by_record = cubecore.plan(cubecore.Problem(**SMALL))
    assert by_record == cubecore.plan(SMALL) == cubecore.plan(**SMALL)


def test_keywords_go_before_the_object_and_the_record():
    assert cubecore.plan(SMALL, m=64).problem.m == 64
    assert cubecore.plan(cubecore.Problem(**SMALL), m=64).problem.m == 64


def test_settings_make_a_what_if_chip():
    plan = cubecore.plan(m=512, n=512, k=64, settings={"aic_count": "3"})
    assert plan.tiling.usedCoreNum <= 3


def test_a_tiling_may_be_given_to_check_as_an_object():
    assert cubecore.check(PLAN.tiling.to_json(), SMALL).legal


def test_run_is_the_product_of_the_operands_it_is_given():
    problem = cubecore.Problem(**SMALL, a="int8", trans_b=True)
    operands = make_operands(problem)
    run = cubecore.run(problem, operands=operands)
    assert run.verified
    wanted = operands.a.astype(np.int64) @ operands.b.T.astype(np.int64)
    assert (run.c == wanted).all()


def test_the_seed_fixes_the_operands():
    first, again = (cubecore.run(SMALL, seed=5).c for _ in range(2))
    assert (first == again).all()
    assert (first != cubecore.run(SMALL, seed=6).c).any()


def test_alternatives_are_as_many_as_asked_for_and_never_faster():
    plan = cubecore.plan(m=500, n=500, k=500, alternatives=3)
    assert len(plan.alternatives) == 3
    assert all(a.predicted.cycles >= plan.predicted.cycles for a in plan.alternatives)
    assert cubecore.plan(m=500, n=500, k=500, alternatives=0).alternatives == ()


def test_compare_sets_the_same_tiling_beside_itself():
    both = cubecore.compare(PLAN.tiling, PLAN.tiling, SMALL)
    assert both.legal
    assert both.ratio == 1
    assert both.differing == {}


def test_an_illegal_tiling_is_no_side_that_is_timed():
    both = cubecore.compare(PLAN.tiling, make_tiling(PLAN.problem, baseM=8), SMALL)
    assert not both.legal
    assert both.ratio is None
    assert both.to_json()["tilings"][1]["time"] is None


# --- refusals


def refusal(call):
    with pytest.raises(cubecore.RequestError) as refused:
        call()
    return str(refused.value)


def test_refusals_are_one_sentence_each():
    assert refusal(lambda: cubecore.plan(m=1.5, n=1, k=1)) == "m must be an integer, got 1.5"
    assert refusal(lambda: cubecore.plan(m=True, n=1, k=1)) == "m must be an integer, got True"
    assert refusal(lambda: cubecore.plan(m=1, n=1, k=1, trans_a=1)) == (
        "trans_a must be true or false, got 1"
    )


def test_an_error_carries_its_violations():
    with pytest.raises(cubecore.RequestError) as refused:
        cubecore.plan(m=0, n=1, k=-1)
    violations = refused.value.violations
    assert [v.subject for v in violations] == ["m", "k"]
    assert refused.value.to_json()["message"] == "\n".join(str(v) for v in violations)


def bug(reason):
    return pytest.mark.xfail(strict=True, reason=reason)


@pytest.mark.parametrize("ask", [cubecore.run, cubecore.time])
def test_a_tiling_may_be_given_to_every_command_as_an_object(ask):
    ask(SMALL, tiling=PLAN.tiling.to_json())


def test_compare_takes_tilings_as_objects():
    cubecore.compare(PLAN.tiling.to_json(), PLAN.tiling.to_json(), SMALL)


@pytest.mark.parametrize("wrong", ["shape", "type", "no bias", "bias for none"])
def test_operands_of_another_shape_or_type_are_refused(wrong):
    bias = None if wrong == "bias for none" else "float32"
    problem = cubecore.Problem(**SMALL, bias=bias)
    good = make_operands(cubecore.Problem(**SMALL, bias="float32"))
    given = {
        "shape": Operands(good.a[:8], good.b, good.bias),
        "type": Operands(good.a.astype(np.float32), good.b, good.bias),
        "no bias": Operands(good.a, good.b, None),
        "bias for none": good,
    }[wrong]
    with pytest.raises(cubecore.RequestError):
        cubecore.run(problem, operands=given)


def test_a_negative_seed_is_refused():
    assert refusal(lambda: cubecore.run(SMALL, seed=-1)) == "seed must be at least 0, got -1"


def test_a_negative_number_of_alternatives_is_refused():
    refusal(lambda: cubecore.plan(SMALL, alternatives=-1))


def test_a_problem_of_another_kind_is_refused():
    assert refusal(lambda: cubecore.plan([16, 16, 16])) == (
        "problem must be a JSON object, got [16, 16, 16]"
    )


def test_a_what_if_chip_is_held_to_what_is_true_of_every_chip():
    text = refusal(lambda: cubecore.plan(SMALL, settings={"l1_bytes": "1024"}))
    assert "l1_user_bytes" in text


def test_a_sum_that_saturates_on_the_way_is_verified():
    problem = cubecore.Problem(m=16, n=16, k=64, a="int8", bias="int32")
    a = np.ones((16, 64), np.int8)
    a[:, 32:] = -1
    operands = Operands(a, np.ones((64, 16), np.int8), np.full(16, 2**31 - 5, np.int32))
    run = cubecore.run(problem, tiling=make_tiling(problem, baseK=32), operands=operands)
    assert not run.findings
    assert run.verified


def test_a_vendors_spelling_of_a_key_is_answered_with_ours():
    assert refusal(lambda: cubecore.plan(**SMALL, transA=True)) == (
        "problem must have only known keys, got 'transA'; did you mean trans_a?"
    )


def test_a_field_is_explained_by_the_rules_that_name_it():
    found = cubecore.explain("basem")
    assert (found.name, found.kind) == ("baseM", "field")
    assert "  L0A-CAPACITY            A's base blocks fit L0A\n" in found.text
    assert "L0B-CAPACITY" not in found.text
    assert cubecore.explain("depthAL1CacheUB").text == (
        "depthAL1CacheUB: a field of TCubeTiling\n\n"
        "Not documented: leave it at 0.\n\n"
        "From: neither edition of TCubeTiling structure\n"
    )


def test_of_a_name_of_two_instructions_the_chips_is_explained():
    found = cubecore.explain("asc_copy_gm2ub")
    assert found.name == "copy_gm_to_ubuf"
    last = "asc_copy_gm2ub is also copy_gm_to_ubuf_v2, on architecture 3510."
    assert found.text.splitlines()[-1] == last
    found = cubecore.explain("asc_copy_gm2ub", "Ascend950PR_9599")
    assert found.name == "copy_gm_to_ubuf_v2"
    assert found.text.splitlines()[-1] == "Ascend950PR_9599 has it."


@pytest.mark.parametrize("engine", ENGINES)
def test_every_engine_of_a_product_says_how_it_sums(engine):
    told = cubecore.run({"m": 32, "n": 32, "k": 32}, engine=engine).to_json()
    assert told["verified"]
    assert told["engine"] in ({"blas"} if engine == "fast" else {engine})
    assert told["policy"].startswith("float")
