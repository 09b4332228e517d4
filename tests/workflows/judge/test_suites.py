"""Tasks of public suites: their sizes, the headers of their checkout, sparse tensors."""

from importlib.util import find_spec

import numpy as np
import pytest

import cubecore
from cubecore.errors import RequestError
from cubecore.workflows.judge.limits import options_of
from cubecore.workflows.judge.tasks.cann_bench import RULE, is_near
from cubecore.workflows.judge.tasks.comparison import close, leaves, same
from cubecore.workflows.judge.tasks.kinds import task_of
from cubecore.workflows.judge.values import ArrayFolder, arrays_in, loaded
from frontends.cpp.cpp_kernels import needs_compiler, write_files
from workflows.command import assert_refused, cli
from workflows.judge.judged_kernels import HOST, KERNEL, PYTHON, TASK, strings

with_torch = pytest.mark.skipif(find_spec("torch") is None, reason="torch is not installed")


def test_a_task_has_the_headers_of_its_checkout(tmp_path) -> None:
    task = tmp_path / "tasks" / "level1" / "Add"
    (task / "validation").mkdir(parents=True)
    (task / "validation" / "module.py").touch()
    assert task_of(task).includes == ()
    headers = tmp_path / "libs" / "common_include" / "some"
    headers.mkdir(parents=True)
    assert task_of(task).includes == (headers,)


@needs_compiler
def test_folders_for_headers_are_shown_to_the_box(tmp_path) -> None:
    for name in ("answer", "task", "shared"):
        (tmp_path / name).mkdir()
    (tmp_path / "task" / "task.py").write_text(TASK)
    (tmp_path / "shared" / "blocks_of_the_suite.h").write_text("constexpr int kBlocks = 4;\n")
    host = '#include "blocks_of_the_suite.h"\n' + HOST.replace("Dim(4)", "Dim(kBlocks)")
    answer = tmp_path / "answer" / "answer.txt"
    answer.write_text(strings(host_operator_src=host))
    includes = [str(tmp_path / "shared")]
    verdict = cubecore.judge(answer, tmp_path / "task" / "task.py", cases=1, includes=includes)
    assert verdict.correct, verdict.text
    assert f"-I {tmp_path / 'shared'}" in verdict.reproducible


def test_a_folder_for_headers_that_is_not_there_is_refused() -> None:
    with pytest.raises(RequestError) as caught:
        options_of("Ascend910B3", {"includes": ["/of/nobody"]})
    assert str(caught.value) == "cannot read /of/nobody: no such folder"


def test_a_task_whose_cases_are_all_too_large_is_refused(tmp_path) -> None:
    x = np.zeros(1024, np.float32)
    np.savez(tmp_path / "large.npz", x=x, expected_z=x)
    (tmp_path / "kernel.py").write_text(PYTHON)
    with pytest.raises(RequestError) as caught:
        cubecore.judge(tmp_path / "kernel.py", tmp_path / "large.npz", cap_bytes=4095)
    assert str(caught.value) == (
        "no case of large has arrays of at most 4095 B each; raise --cap-bytes"
    )


@with_torch
@pytest.mark.parametrize("summed", [False, True])
def test_sparse_tensors_are_handed_on(tmp_path, summed) -> None:
    import torch

    places, values = torch.tensor([[0, 2, 2], [1, 0, 0]]), torch.tensor([3.0, 4.0, 5.0])
    given = torch.sparse_coo_tensor(places, values, (3, 2), check_invariants=False)
    given = given.coalesce() if summed else given
    record = ArrayFolder(tmp_path).stored([given, 1])
    left = loaded(tmp_path, record)[0]
    assert (left.shape, left.is_coalesced()) == (given.shape, summed)
    assert same(left, given)
    assert torch.equal(left.to_dense(), torch.tensor([[0.0, 3.0], [0.0, 0.0], [9.0, 0.0]]))
    assert [each["dtype"] for each in arrays_in(record)] == ["int64", "float32"]
    assert len(leaves(given)) == 2


@pytest.mark.parametrize("elements", [1, 65536, 65537, 200_000])
def test_blocks_of_a_comparison_have_one_result(elements) -> None:
    wanted = np.random.default_rng(elements).standard_normal(elements)
    got = wanted.copy()
    places = sorted({0, elements // 2, elements - 1})
    got[places] += 0.5
    compared = close(wanted, got)
    errors = np.abs(got - wanted)
    assert (compared.wrong, compared.where) == (len(places), (0,))
    assert compared.max_abs == errors.max()
    assert compared.max_rel == (errors / np.maximum(np.abs(wanted), 1e-12)).max()
    assert (compared.value, compared.expected) == (got[0], wanted[0])
    got[0] = wanted[0]
    assert close(wanted, got).where == ((places[1],) if len(places) > 1 else ())


def test_the_rule_of_cann_bench() -> None:
    wanted = np.linspace(1, 2, 1000, dtype=np.float16)
    step = 2.0**-10
    assert is_near(wanted, (wanted * (1 + step / 2)).astype(np.float16))
    assert not is_near(wanted, (wanted * (1 + 2 * step)).astype(np.float16))
    far = wanted.copy()
    far[7] *= 1 + 9 * step
    assert is_near(wanted, far)
    far[7] *= 1 + 9 * step
    assert not is_near(wanted, far)
    small = np.full(1000, 2.0**-12, np.float16)
    off = small.copy()
    off[:2] = 2.0**-11
    assert is_near(small, off)
    off[2] = 2.0**-11
    assert not is_near(small, off)
    assert is_near(np.array([np.inf, np.nan, 1], np.float32), np.array([np.inf, np.nan, 1]))
    assert not is_near(np.array([1, np.nan], np.float32), np.array([1, 0], np.float32))
    assert not is_near(np.array([3, 4]), np.array([3, 5]))


GOLDEN = """import torch


def add_custom(x, y, factor=1.0):
    return x + factor * y


def add_custom_oracle(x, y, factor=1.0):
    return add_custom(x.double(), y.double(), factor)
"""
CASES = (
    "operator,case_id,input_shape,dtype,attrs,value_range\n"
    'Add,1,"[[1024], [1024]]",[\'float32\'],{},"[-1, 1]"\n'
    'Add,2,"[[512], [512]]","[""float32"", ""float32""]",{},"[[-1, 1], [2, 3]]"\n'
)


@with_torch
@needs_compiler
def test_a_task_of_cann_bench(tmp_path) -> None:
    task = tmp_path / "add_custom"
    task.mkdir()
    (task / "golden.py").write_text(GOLDEN)
    (task / "cases.csv").write_text(CASES)
    (tmp_path / "answer.txt").write_text(strings())
    verdict = cubecore.judge(tmp_path / "answer.txt", task)
    assert verdict.correct, verdict.text
    assert [case.name for case in verdict.cases] == ["case 2", "case 1"]
    wrong = strings(kernel_src=KERNEL.replace("Add(c", "Sub(c"))
    (tmp_path / "answer.txt").write_text(wrong)
    verdict = cubecore.judge(tmp_path / "answer.txt", task, cases=1)
    assert (verdict.correct, verdict.stage) == (False, "compare")
    assert verdict.cases[0].compared["tolerance"]["rule"] == RULE


MODEL = """import torch
class Model(torch.nn.Module):
    def __init__(self{made}):
        super().__init__()
    def forward(self, x):
        return x
"""
NPU_INPUTS = """def get_inputs(param{more}, device=None):
    return []
def get_init_inputs(param, device=None):
    return []
"""
OF_CANN = {"golden.py": GOLDEN, "cases.csv": CASES}
OF_NPU = {
    "validation/module.py": MODEL.format(made=""),
    "validation/pybind.cpp": "",
    "validation/prepare_inputs.py": NPU_INPUTS.format(more=""),
    "validation/test_cases.csv": "n;m\n1;2\n",
}
TABLE = "test_cases.csv must be a table with a row for each case, its columns apart by semicolons"


@with_torch
@pytest.mark.parametrize(
    ("files", "line"),
    [
        (
            OF_CANN | {"cases.csv": "operator,case_id\nAdd,one\n"},
            "cases.csv is no table of cases of cann-bench: invalid literal for int() with base "
            "10: 'one'",
        ),
        (
            OF_CANN | {"cases.csv": CASES.replace("value_range", "range")},
            "cases.csv is no table of cases of cann-bench: 'value_range'",
        ),
        (
            OF_CANN | {"cases.csv": CASES.splitlines()[0]},
            "cases.csv is no table of cases of cann-bench: 'case_id'",
        ),
        (
            OF_CANN | {"golden.py": "LIMIT = 1\n"},
            "task: golden.py must have a function task, or a single one, got none",
        ),
        (
            OF_CANN | {"golden.py": "def add(x, y, of, more):\n    return x\n"},
            "task: golden.py cannot be called as its suite does: TypeError: add() missing 2 "
            "required positional arguments: 'of' and 'more'",
        ),
        (
            OF_CANN | {"golden.py": "def add(\n"},
            "golden.py is no Python: '(' was never closed (golden.py, line 1)",
        ),
        (OF_NPU | {"validation/module.py": "import torch\n"}, "task has no Model"),
        (OF_NPU | {"validation/prepare_inputs.py": "LIMIT = 1\n"}, "task has no get_inputs"),
        (
            OF_NPU | {"validation/prepare_inputs.py": NPU_INPUTS.format(more=", seed")},
            "task: get_inputs cannot be called as its suite does: TypeError: get_inputs() missing "
            "1 required positional argument: 'seed'",
        ),
        (
            OF_NPU | {"validation/test_cases.csv": "n,m\n1;2\n"},
            f"{TABLE}, got rows of other lengths",
        ),
        (OF_NPU | {"validation/test_cases.csv": "n;m\n"}, f"{TABLE}, got no row"),
        ({"task.py": MODEL.format(made="")}, "task.py has no get_inputs()"),
        (
            {"task.py": MODEL.format(made="") + "def get_inputs():\n    return 5\n"},
            "task.py: get_inputs must return a list, got int",
        ),
        (
            {"task.py": MODEL.format(made=", a") + "def get_inputs():\n    return []\n"},
            "task.py: Model cannot be called as its suite does: TypeError: Model.__init__() "
            "missing 1 required positional argument: 'a'",
        ),
        (
            {"task.py": MODEL.format(made="") + "def get_inputs():\n    return []\n"},
            "task.py: Model.forward cannot be called as its suite does: TypeError: "
            "Model.forward() missing 1 required positional argument: 'x'",
        ),
    ],
)
def test_files_of_another_version_of_a_suite_are_refused(tmp_path, files, line) -> None:
    """One sentence, exit 2, whatever the submission is."""
    write_files(tmp_path / "task", files)
    (tmp_path / "answer.txt").write_text(strings())
    task = tmp_path / "task" / "task.py" if "task.py" in files else tmp_path / "task"
    answer = cli("judge", str(tmp_path / "answer.txt"), "--task", str(task))
    assert_refused(answer, line)
