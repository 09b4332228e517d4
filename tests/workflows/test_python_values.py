"""What Python code may hand over: arrays, plans, types; and copies of answers."""

import copy
import pickle
import sys
from types import ModuleType

import ml_dtypes
import numpy as np
import pytest

import cubecore
from cubecore.dtypes import ELEMENT_TYPES
from cubecore.errors import RequestError

SHAPE = {"m": 16, "n": 16, "k": 16}
A = np.arange(256, dtype=np.float16).reshape(16, 16) / 16
ONE = np.eye(16, dtype=np.float16)


def line_of(function, *given, **keys):
    with pytest.raises(RequestError) as caught:
        function(*given, **keys)
    return str(caught.value)


@pytest.mark.parametrize(
    "given",
    [
        {"operands": (A, ONE)},
        {"operands": [A, ONE]},
        {"operands": {"a": A, "b": ONE}},
        {"operands": {"a": np.float32(A), "b": np.float32(ONE)}, "a": "float32"},
        {"a": A, "b": ONE},
        {"operands": (A, ONE, np.zeros(16, np.float16)), "bias": "float16"},
        {"a": A, "b": ONE, "bias": np.zeros(16, np.float16)},
    ],
)
def test_arrays_are_operands(given):
    made = cubecore.run(**SHAPE, **given)
    assert made.verified
    assert np.array_equal(made.c, A.astype(np.float32))


def test_operands_that_are_none_are_one_sentence():
    need = "operands must be Operands, OperandFiles, (A, B), (A, B, bias) or a mapping with a and b"
    assert line_of(cubecore.run, **SHAPE, operands="a.npy") == f"{need}, got str"
    assert line_of(cubecore.run, **SHAPE, operands={"a": A}) == f"{need}, got a mapping with a"
    line = f"{need}, got a mapping with a and x"
    assert line_of(cubecore.run, **SHAPE, operands={"a": A, "x": A}) == line
    assert line_of(cubecore.run, **SHAPE, operands={}) == f"{need}, got a mapping with nothing"
    assert line_of(cubecore.run, **SHAPE, operands=(A,)) == f"{need}, got tuple"
    assert line_of(cubecore.run, **SHAPE, a=A) == f"{need}, got one array"
    both = "operands excludes a, b and bias"
    assert line_of(cubecore.run, **SHAPE, a=A, b=ONE, operands=(A, ONE)) == both
    shape = "a must be an array of float16 with shape [16, 16], got float16 [8, 16]"
    assert line_of(cubecore.run, **SHAPE, a=A[:8], b=ONE) == shape


def test_a_plan_stands_for_its_problem_its_tiling_and_its_chip():
    plan = cubecore.plan(m=64, n=96, k=128, settings={"aic_count": "3"}, alternatives=2)
    assert cubecore.time(plan).tiling == plan.tiling
    assert cubecore.time(plan).request.chip.aic_count == 3
    assert cubecore.run(plan).tiling == plan.tiling
    other = plan.alternatives[0].tiling
    assert cubecore.time(plan, tiling=other).tiling == other


@pytest.mark.parametrize(
    "copied", [copy.copy, copy.deepcopy, lambda x: pickle.loads(pickle.dumps(x))]
)
def test_answers_can_be_copied(copied):
    plan = cubecore.plan(m=64, n=96, k=128, settings={"hbm_bytes_per_second": "1e12"})
    assert copied(plan).to_json() == plan.to_json()
    timed = cubecore.time(plan)
    assert copied(timed).to_json() == timed.to_json()
    assert cubecore.time(copied(plan)).timeline.cycles == timed.timeline.cycles
    for kind in ELEMENT_TYPES.values():
        assert copied(kind) is kind
    assert copied(cubecore.chip("Ascend910B3")).sources == cubecore.chip("Ascend910B3").sources


TYPES = {
    "float16": np.float16,
    "float32": np.dtype("float32"),
    "int8": np.int8,
    "bfloat16": ml_dtypes.bfloat16,
    "float8_e4m3fn": np.dtype(ml_dtypes.float8_e4m3fn),
}


@pytest.mark.parametrize("name", TYPES)
def test_types_of_numpy_are_taken(name):
    given = {**SHAPE, "a": TYPES[name], "chip": "Ascend950PR_9589"}
    assert cubecore.Problem(**given).a == name
    assert cubecore.Problem.from_json(given).a == name
    assert cubecore.Problem.from_json(given) == cubecore.Problem(**given | {"a": name})


def test_types_of_torch_are_taken_by_name(monkeypatch):
    torch = ModuleType("torch")
    kind = type("dtype", (), {"__module__": "torch", "__repr__": lambda _: "torch.bfloat16"})
    torch.bfloat16 = kind()
    monkeypatch.setitem(sys.modules, "torch", torch)
    assert cubecore.Problem(**SHAPE, a=torch.bfloat16).a == "bfloat16"


def test_what_is_no_type_is_one_short_line():
    line = line_of(cubecore.Problem, **SHAPE, a=float)
    assert line == "a must be the name of an element type, got <class 'float'>"
    line = line_of(cubecore.plan, **SHAPE, a=["x" * 20000])
    assert len(line) < 600
    assert "\n" not in line
    assert line_of(cubecore.plan, **SHAPE, a=A).startswith("a must be the name of an element type")
    for value in (A, [A], {"x": A}):
        for key in ("a", "b", "c", "chip", "fix", "epilogue", "m", "seed", "trans_a", "budget"):
            line = line_of(cubecore.plan, **{**SHAPE, key: value})
            assert len(line) < 600
            assert "\n" not in line


def test_a_number_that_python_does_not_spell_is_one_line():
    many = "a number of too many digits"
    most = f"must be at most 2147483647, got {many}; TCubeTiling is int32"
    assert line_of(cubecore.plan, m=10**5000, n=1, k=1) == f"m {most}"
    assert line_of(cubecore.plan, m=-(10**5000), n=1, k=1) == f"m must be at least 1, got {many}"
    line = f"a must be the name of an element type, got {many}"
    assert line_of(cubecore.plan, **SHAPE, a=[10**5000]) == line
    tiling = cubecore.plan(**SHAPE).tiling.to_json() | {"baseM": 10**5000}
    assert line_of(cubecore.check, tiling, **SHAPE) == f"tiling.baseM must fit int32, got {many}"


def test_a_plan_is_planned_and_checked_again():
    plan = cubecore.plan(**SHAPE, settings={"aic_count": "3"}, alternatives=0)
    again = cubecore.plan(plan, alternatives=0)
    assert again.to_json() == plan.to_json()
    assert cubecore.check(plan).legal
    line = "tiling.Ka must equal the problem's k = 32, got 16"
    assert line_of(cubecore.check, plan, **SHAPE | {"k": 32}).startswith(line)
    assert cubecore.check(plan.tiling, plan).legal


@pytest.mark.parametrize("given", [None, 3, {"m": 16, "n": 16, "k": 16}])
def test_what_is_no_list_of_problems(given):
    line = f"problems must be several, each a record or a mapping, got {given}; "
    line += "cubecore plan --queries reads a file"
    assert line_of(cubecore.plan_many, given) == line


def test_a_text_is_no_list_of_problems():
    line = "problems must be several, each a record or a mapping, got 'q.jsonl'; "
    line += "cubecore plan --queries reads a file"
    assert line_of(cubecore.plan_many, "q.jsonl") == line


def test_settings_that_never_come_again_are_forgotten():
    tiling = cubecore.plan(**SHAPE).tiling

    def time(number):
        cubecore.time(**SHAPE, tiling=tiling, settings={"hbm_bytes_per_second": str(1e12 + number)})

    from cubecore.cache import MOST_PROGRAMS
    from cubecore.timing.memory.global_accesses import _ACCESSES
    from cubecore.timing.memory.reuse_marks import _MARKED
    from cubecore.timing.steady_state.compiled_walk import _TEXTS

    for number in range(MOST_PROGRAMS + 5):
        time(number)
    for kept in (_ACCESSES, _MARKED, _TEXTS):
        assert 0 < len(kept) <= MOST_PROGRAMS


class ByDlpack:
    """An array of another library: it has the protocol and nothing else."""

    def __init__(self, array):
        self._array = array

    def __dlpack__(self, **keys):
        return self._array.__dlpack__(**keys)

    def __dlpack_device__(self):
        return self._array.__dlpack_device__()


@pytest.mark.parametrize(
    "given",
    [
        {"operands": (ByDlpack(A), ByDlpack(ONE))},
        {"operands": {"a": ByDlpack(A), "b": ONE}},
        {"a": ByDlpack(A), "b": ByDlpack(ONE)},
    ],
)
def test_arrays_of_another_library_are_operands(given):
    made = cubecore.run(**SHAPE, **given)
    assert made.verified
    assert np.array_equal(made.c, np.float32(A))
    assert made.request.problem.a == "float16"


def test_types_are_values_of_a_sweep():
    types = [np.float16, np.dtype("int8"), ml_dtypes.bfloat16]
    series = cubecore.sweep({"a": types}, **SHAPE)
    assert series.complete
    assert [point.values["a"] for point in series.answers] == ["float16", "int8", "bfloat16"]


def test_the_host_api_takes_types():
    tiling = cubecore.MultiCoreMatmulTiling("Ascend910B3")
    tiling.set_a_type("GM", "ND", np.float16)
    assert line_of(tiling.set_b_type, "GM", "ND", 3).startswith(
        "set_b_type.data_type must be an element type ("
    )
