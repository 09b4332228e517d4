"""Sizes of a large task of torch: which are run, what decides, and the time of the full shape."""

from importlib.util import find_spec

import numpy as np
import pytest

import cubecore
from cubecore.answers.verdict import JudgedCase, deciding
from cubecore.frontends.kernels.launch_cores import launch_cores, sampled_cores
from cubecore.frontends.kernels.session import ScriptSession
from cubecore.workflows.judge.submissions.full_shape import filled, is_asked, masks_of
from cubecore.workflows.judge.submissions.time_at_full_shape import time_at_full_shape
from cubecore.workflows.judge.tasks.sized_module import TaskModule
from frontends.cpp.cpp_kernels import needs_compiler
from workflows.command import cli
from workflows.judge.judged_kernels import PYTHON
from workflows.judge.test_models import LAUNCH, LAUNCH_MODEL, direct_launch

with_torch = pytest.mark.skipif(find_spec("torch") is None, reason="torch is not installed")
TASK = """import torch


class Model(torch.nn.Module):
    def __init__(self, groups):
        super().__init__()
        self.groups = groups

    def forward(self, x, y):
        if x.shape[1] % self.groups:
            raise ValueError(x.shape)
        return x + y


rows = 4096
heads, width = 32, 1024
groups = heads


def get_inputs():
    return [torch.rand(rows, heads, width), torch.rand(rows, heads, 1024)]


def get_init_inputs():
    return [groups]
"""
MODEL = f"{LAUNCH_MODEL}\n    def __init__(self, groups):\n        super().__init__()\n"
SHAPES = (
    'TORCH_LIBRARY(custom_op, m) { m.def("run_add", run_add); }',
    """at::Tensor shapes(const at::Tensor& x, const at::Tensor&) { return at::empty_like(x); }
TORCH_LIBRARY(custom_op, m) { m.def("run_add(Tensor x, Tensor y) -> Tensor"); }
TORCH_LIBRARY_IMPL(custom_op, Meta, m) { m.impl("run_add", shapes); }
TORCH_LIBRARY_IMPL(custom_op, PrivateUse1, m) { m.impl("run_add", run_add); }
""",
)


@pytest.fixture
def task(tmp_path):
    (tmp_path / "task.py").write_text(TASK)
    return tmp_path / "task.py"


def test_numbers_of_a_task_are_those_of_its_constants_and_inputs(task):
    known = TaskModule(task)
    assert {site.name: site.value for site in known.sites} == {
        "rows": 4096,
        "(heads, width)[0]": 32,
        "(heads, width)[1]": 1024,
        "get_inputs[0]": 1024,
    }
    assert known.changed([16, 32, 64, 1024]) == {
        "rows": [4096, 16],
        "(heads, width)[1]": [1024, 64],
    }


@with_torch
def test_reduced_sizes_are_small_run_and_are_the_same_again(task, monkeypatch, tmp_path):
    from cubecore.workflows.judge.tasks.model_costs import runs
    from cubecore.workflows.judge.tasks.reduction import task_sizes

    monkeypatch.setenv("CUBECORE_CACHE", str(tmp_path / "one"))
    sizes, known = task_sizes(task, 1 << 20), TaskModule(task)
    assert sizes.full["bytes"] == 3 * 4096 * 32 * 1024 * 4
    assert sizes.aligned_cost["bytes"] <= 1 << 20
    assert sizes.odd_cost["bytes"] <= 1 << 16
    rows, heads, width, other = sizes.aligned
    assert (rows, width) == (32, other)
    assert width % 16 == 0
    assert any(number % 2 for number in sizes.odd)
    assert runs(known.made(sizes.aligned))
    assert runs(known.made(sizes.odd))
    assert not runs(known.made((rows, heads, width, 2 * other)))
    monkeypatch.setenv("CUBECORE_CACHE", str(tmp_path / "two"))
    assert task_sizes(task, 1 << 20) == sizes
    assert task_sizes(task, 1 << 40) is None


def case(variant, outcome):
    return JudgedCase(variant, outcome, sizes={"variant": variant})


@pytest.mark.parametrize(
    ("outcomes", "decides"),
    [
        ({"odd tail": "wrong", "aligned": "right"}, "aligned"),
        ({"odd tail": "right", "aligned": "wrong"}, "aligned"),
        ({"odd tail": "right", "aligned": "refused", "full": "right"}, "full"),
        ({"odd tail": "right", "aligned": "late"}, "odd tail"),
    ],
)
def test_one_of_the_reduced_sizes_decides(outcomes, decides):
    cases = [case(*each) for each in outcomes.items()]
    assert [each.name for each in deciding(cases)] == [decides]


def test_cases_of_a_task_of_its_own_sizes_decide_together():
    cases = [JudgedCase("case 0", "right"), JudgedCase("case 1", "wrong")]
    assert deciding(cases) == cases


@pytest.mark.parametrize(
    ("full", "asked"),
    [
        ({"bytes": 64, "operations": 0}, True),
        ({"bytes": 65, "operations": 0}, False),
        ({"bytes": 64, "operations": 1 << 62}, False),
        ({}, False),
    ],
)
def test_the_full_shape_is_run_where_a_machine_holds_it(full, asked):
    records = [{"sizes": {"variant": "odd tail"}}, {"sizes": {"variant": "aligned"}}]
    wrong = [{"outcome": "right"}, {"outcome": "refused"}]
    assert is_asked(records, wrong, full, 16) is asked
    assert not is_asked(records, wrong[::-1], full, 16)


def test_a_line_through_two_times_leads_to_the_full_shape():
    small = {"us": 12.0, "low_us": 6.0, "high_us": 24.0}
    large = {"us": 14.0, "low_us": 7.0, "high_us": 28.0}
    costs = [{"variant": n, "bytes": size} for n, size in (("odd tail", 100), ("aligned", 200))]
    full = {"bytes": 1000, "operations": 0}
    told = time_at_full_shape([(small, costs[0]), (large, costs[1])], full)
    assert told["us"] == pytest.approx(30)  # 10 us and 2 us for each 100 B
    assert (told["low_us"], told["high_us"]) == (pytest.approx(7.5), pytest.approx(120))
    assert told["at"] == "extrapolated"
    assert told["from"] == [
        {"variant": "odd tail", "bytes": 100, "us": 12.0},
        {"variant": "aligned", "bytes": 200, "us": 14.0},
    ]
    assert time_at_full_shape([(large, costs[1])], full)["us"] == pytest.approx(70)


def test_only_what_sampled_blocks_wrote_is_compared():
    got, expected = np.array([1, 2, 9, 9], np.int32), np.array([1, 3, 3, 4], np.int32)
    mask = np.repeat([True, True, False, False], 4)
    assert filled([got], [expected], [mask])[0].tolist() == [1, 2, 3, 4]
    assert filled([got[:2]], [expected], [mask[:8]])[0].tolist() == [1, 2]
    # Blocks that stored nothing say nothing.
    assert filled([got], [expected], [np.zeros(16, np.bool_)])[0].tolist() == [1, 2, 9, 9]


def test_some_cores_of_a_launch_are_its_first_and_its_last():
    chip = cubecore.chip("Ascend910B3")
    cores = tuple(launch_cores("k", "vector", 40, chip, turns=False))
    assert [core.core for core in sampled_cores(cores, 3)] == [0, 0, 9, 9, 19, 19]
    assert sampled_cores(cores, 100) == cores
    assert sampled_cores(cores[:1], 3) == cores[:1]


def test_a_launch_of_some_blocks_writes_theirs_alone():
    @cubecore.kernel(outputs=("z",))
    def twice(core, x, z):
        at = 64 * core.asc_get_block_idx()
        a = core.ubuf("float", 64)
        core.asc_copy_gm2ub(a, x + at, 256)
        core.asc_sync()
        core.asc_add(a, a, a, 64)
        core.asc_sync()
        core.asc_copy_ub2gm(z + at, a, 256)
        core.asc_sync()

    x, z = np.arange(40 * 64, dtype=np.float32), np.zeros(40 * 64, np.float32)
    session = ScriptSession(sampled=3, keeps_arrays=True)
    with session.collecting():
        run = twice[40](x, z)
    assert run.clean
    (mask,) = masks_of(session, [z])
    written = mask.reshape(40, -1).all(axis=1)
    assert np.flatnonzero(written).tolist() == [0, 1, 18, 19, 38, 39]
    assert (z.reshape(40, -1)[written] == 2 * x.reshape(40, -1)[written]).all()


def test_bytes_that_blocks_store_from_uninitialised_memory_are_theirs():
    @cubecore.kernel(outputs=("z",))
    def careless(core, z):
        a = core.ubuf("float", 64)
        core.asc_copy_ub2gm(z + 64 * core.asc_get_block_idx(), a, 256)

    z = np.zeros(40 * 64, np.float32)
    session = ScriptSession(sampled=3, keeps_arrays=True)
    with session.collecting():
        run = careless[40](z)
    assert not run.written("z").any()
    (mask,) = masks_of(session, [z])
    stored = mask.reshape(40, -1)
    assert np.flatnonzero(stored.any(axis=1)).tolist() == [0, 1, 18, 19, 38, 39]
    assert stored.all(axis=1).sum() == 6
    (result,) = filled([z], [np.ones_like(z)], [mask])
    assert np.isnan(result.reshape(40, -1)[0]).all()
    assert (result.reshape(40, -1)[2] == 1).all()


@needs_compiler
@with_torch
def test_a_kernel_for_one_shape_is_judged_at_it(tmp_path, monkeypatch):
    """A binding that takes its task's own shape alone: refused at others, right by some blocks."""
    monkeypatch.chdir(tmp_path)
    task = TASK.replace("rows = 4096", "rows = 128").replace("1024", "64")
    (tmp_path / "task.py").write_text(task)
    limit = "at::Tensor z = at::empty_like(x);"
    checked = f'TORCH_CHECK(x.numel() == 262144, "made for one shape"); {limit}'
    only = LAUNCH.replace(limit, checked).replace(*SHAPES)
    none = LAUNCH.replace(limit, f'TORCH_CHECK(false, "for no shape"); {limit}').replace(*SHAPES)
    bare = only.replace("DataCopy(a, gx, 256);", "")
    for name, text in (("any", LAUNCH), ("only", only), ("none", none), ("bare", bare)):
        (tmp_path / f"{name}.json").write_text(direct_launch(text, MODEL))
    words = ("--task", "task.py", "--json")
    wide, narrow = (cli("judge", f"{n}.json", *words).json for n in ("any", "only"))
    assert (wide["correct"], narrow["correct"]) == (True, True)
    assert (wide["task"]["sizes"]["policy"], wide["time"]["at"]) == ("reduced", "full")
    assert narrow["task"]["sizes"]["policy"] == "full, sampled blocks"
    assert [each["outcome"] for each in narrow["cases"]] == ["refused", "refused", "right"]
    assert narrow["cases"][-1]["shapes"] == [[128, 32, 64], [128, 32, 64]]
    # What some blocks store from uninitialised memory is wrong, as it is by all.
    careless = cli("judge", "bare.json", *words).json
    assert [each["outcome"] for each in careless["cases"]] == ["refused", "refused", "wrong"]
    assert careless["task"]["sizes"]["policy"] == "full"
    # What is refused for any shape is not run at the full one.
    refused = cli("judge", "none.json", *words).json
    assert [each["outcome"] for each in refused["cases"]] == ["refused", "refused"]
    assert "tiling, full" in refused["seconds"]
    assert "reference, full" not in refused["seconds"]
    whole = cli("judge", "only.json", *words, "--sizes", "full")
    assert whole.json["task"]["sizes"]["policy"] == "full"
    assert whole.json["correct"]
    # The time of the full shape is that of its own tiling, run or recorded alone.
    times = [each["time"] for each in (wide, narrow, whole.json)]
    assert len({(each["us"], each["low_us"], each["limited_by"]) for each in times}) == 1
    assert times[0]["launches"] == [{"kernel": "add", "blocks": 1024, "us": times[0]["us"]}]


@needs_compiler
@with_torch
def test_a_kernel_that_is_wrong_at_a_smaller_shape_is_compared_at_its_own(tmp_path, monkeypatch):
    """Its results of both shapes are files of one name: those of the last run count."""
    monkeypatch.chdir(tmp_path)
    task = TASK.replace("rows = 4096", "rows = 128").replace("1024", "64")
    (tmp_path / "task.py").write_text(task)
    blocks = "(x.numel() == 262144 ? x.numel() / 256 : 1)"
    text = LAUNCH.replace("x.numel() / 256", blocks).replace(*SHAPES)
    (tmp_path / "own.json").write_text(direct_launch(text, MODEL))
    verdict = cli("judge", "own.json", "--task", "task.py", "--json").json
    outcomes = {each["name"]: each["outcome"] for each in verdict["cases"]}
    assert (outcomes["aligned"], outcomes["full"]) == ("wrong", "right")
    assert verdict["correct"]


@with_torch
def test_a_model_with_large_weights_of_its_own_has_no_verdict(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    weights = "self.w = torch.nn.Parameter(torch.empty(12288, 12288))"
    model = TASK.replace("self.groups = groups", weights).replace("1024", "12288")
    body = "        if x.shape[1] % self.groups:\n            raise ValueError(x.shape)\n"
    task = model.replace(body, "").replace("return x + y", "return x @ self.w + y")
    (tmp_path / "task.py").write_text(task)
    (tmp_path / "kernel.py").write_text(PYTHON)
    verdict = cli("judge", "kernel.py", "--task", "task.py", "--json").json
    assert (verdict["stage"], verdict["correct"]) == ("stopped", None)
    (error,) = verdict["errors"]
    assert error["message"].startswith("task runs at no sizes that are small enough (6")
    assert error["message"].endswith(" operations of products)")
    assert error["fix"] == "--sizes full runs its own"


@needs_compiler
@with_torch
def test_a_kernel_for_one_shape_that_is_too_large_has_no_verdict(tmp_path, monkeypatch):
    """A binding that takes its task's own shape alone: its refusal of others proves nothing."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "task.py").write_text(TASK.replace("1024", "96"))
    limit = "at::Tensor z = at::empty_like(x);"
    for name, size in (("own", 4096 * 32 * 96), ("other", 4096 * 32 * 48)):
        checked = f'TORCH_CHECK(x.numel() == {size}, "made for one shape"); {limit}'
        text = LAUNCH.replace(limit, checked).replace(*SHAPES)
        (tmp_path / f"{name}.json").write_text(direct_launch(text, MODEL))
    own, other = (
        cli("judge", f"{name}.json", "--task", "task.py", "--json").json
        for name in ("own", "other")
    )
    assert (own["stage"], own["correct"], own["time"]) == ("stopped", None, None)
    refusal = "the binding run_add: x.numel() == 12582912 does not hold: made for one shape"
    assert own["errors"][0]["message"] == (
        f"a smaller shape alone is refused ({refusal}), and that of the task, "
        "150,994,944 B of arrays, is too large to be run"
    )
    assert (other["correct"], other["stage"]) == (False, "run")


@needs_compiler
@with_torch
def test_what_fits_at_a_smaller_shape_alone_is_refused(tmp_path, monkeypatch):
    """A tile that grows with the rows: 32 rows fit UB, the 4096 of the task do not."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "task.py").write_text(TASK)
    grown = LAUNCH.replace("x.numel() / 256", "32").replace("1024", "n * 4").replace("256", "n")
    grown = grown.replace("GM_ADDR z", "GM_ADDR z, uint32_t n")
    grown = grown.replace("mutable_data_ptr()", "data_ptr()")
    grown = grown.replace("(uint8_t*)z.data_ptr()", "(uint8_t*)z.data_ptr(), x.numel() / 32")
    (tmp_path / "grown.json").write_text(direct_launch(grown, MODEL))
    verdict = cli("judge", "grown.json", "--task", "task.py", "--json").json
    assert [(c["name"], c["outcome"]) for c in verdict["cases"]][1:] == [
        ("aligned", "right"),
        ("full", "refused"),
    ]
    assert (verdict["correct"], verdict["task"]["sizes"]["policy"]) == (False, "full")
    (error,) = verdict["errors"]
    assert (error["stage"], error["file"], error["line"]) == ("run", "kernel/add.cpp", 18)
    assert error["message"] == (
        "kernel/add.cpp:18 (add): DataCopy (copy_gm_to_ubuf) at kernel/add.cpp:18: dst (b) must "
        "stay inside UB (0 to 196608 B), got bytes [16777216, 33554432)"
    )
