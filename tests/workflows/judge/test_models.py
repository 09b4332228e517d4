"""Submissions with a ModelNew, and tasks of torch: with torch where it is installed."""

import json
from importlib.util import find_spec

import pytest

import cubecore
from cubecore.errors import RequestError
from frontends.cpp.cpp_kernels import needs_compiler
from workflows.judge.judged_kernels import ADD, strings

with_torch = pytest.mark.skipif(find_spec("torch") is None, reason="torch is not installed")
pytestmark = needs_compiler
TASK = """import torch


class Model(torch.nn.Module):
    def forward(self, x, y):
        return x + y


def get_inputs():
    return [torch.rand(1024), torch.rand(1024)]


def get_init_inputs():
    return []
"""
BINDING = """#include <torch/extension.h>
#include "pytorch_npu_helper.hpp"
at::Tensor add_impl(const at::Tensor& x, const at::Tensor& y) {
  at::Tensor z = at::empty_like(x);
  EXEC_NPU_CMD(aclnnAddCustom, x, y, z);
  return z;
}
PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) { m.def("add_custom", &add_impl); }
"""
MODEL = """import torch, torch_npu, custom_ops_lib
class ModelNew(torch.nn.Module):
    def forward(self, x, y):
        return custom_ops_lib.add_custom(x, y)
"""
LAUNCH = (
    ADD.replace('extern "C" ', "").replace(
        '#include "kernel_operator.h"', '#include "kernel_operator.h"\n#include <torch/extension.h>'
    )
    + """
at::Tensor run_add(const at::Tensor& x, const at::Tensor& y) {
  at::Tensor z = at::empty_like(x);
  add<<<x.numel() / 256, nullptr, nullptr>>>((uint8_t*)x.data_ptr(), (uint8_t*)y.data_ptr(),
                                             (uint8_t*)z.data_ptr());
  return z;
}
TORCH_LIBRARY(custom_op, m) { m.def("run_add", run_add); }
"""
)
LAUNCH_MODEL = """import torch
class ModelNew(torch.nn.Module):
    def forward(self, x, y):
        return torch.ops.custom_op.run_add(x, y)
"""


def direct_launch(kernel: str, model: str = LAUNCH_MODEL) -> str:
    """Return a submission in JSON: a kernel with its binding, and the model that calls it."""
    sources = [{"path": "model_new.py", "content": model}]
    sources += [{"path": "kernel/add.cpp", "content": kernel}]
    return json.dumps({"entry": {"model": "model_new.py::ModelNew"}, "sources": sources})


@pytest.fixture
def task(tmp_path):
    (tmp_path / "task.py").write_text(TASK)
    return tmp_path / "task.py"


@pytest.mark.skipif(find_spec("torch") is not None, reason="torch is installed")
def test_a_task_of_torch_without_torch_is_refused(task) -> None:
    (task.parent / "answer.py").write_text(strings(python_bind_src=BINDING, model_src=MODEL))
    with pytest.raises(RequestError) as caught:
        cubecore.judge(task.parent / "answer.py", task)
    assert str(caught.value) == (
        "the task needs torch, which is not installed; pip install torch, its CPU build"
    )


@with_torch
@pytest.mark.parametrize("factor", ["", "0 * "])
def test_six_strings_are_called_by_their_model(task, factor) -> None:
    model = MODEL.replace("custom_ops_lib.add", f"{factor}custom_ops_lib.add")
    (task.parent / "answer.py").write_text(strings(python_bind_src=BINDING, model_src=model))
    verdict = cubecore.judge(task.parent / "answer.py", task, cases=2)
    assert verdict.correct == (not factor)
    assert verdict.coverage == {"bytes_written": 8192, "bytes_expected": 8192, "launches": 2}


@with_torch
def test_a_model_that_computes_is_marked(task) -> None:
    model = MODEL.replace("return custom", "return 1.5 * custom")
    (task.parent / "answer.py").write_text(strings(python_bind_src=BINDING, model_src=model))
    verdict = cubecore.judge(task.parent / "answer.py", task, cases=1)
    marks = {mark["id"]: mark["evidence"] for mark in verdict.cheating}
    assert marks["torch-compute"] == "mul of 1,024"
    assert marks["not-of-a-launch"] == "output 0: its values are in none of 1 arrays"
    assert verdict.headline.startswith("wrong at compare, cheating (not-of-a-launch)")


@with_torch
def test_a_binding_that_does_not_compile(task) -> None:
    text = strings(python_bind_src=BINDING.replace("z = at", "w = at"), model_src=MODEL)
    (task.parent / "answer.py").write_text(text)
    verdict = cubecore.judge(task.parent / "answer.py", task, cases=2)
    assert (verdict.correct, verdict.stage, verdict.compiled) == (False, "binding", False)
    assert (verdict.errors[0].file, verdict.errors[0].line) == ("binding/binding.cpp", 5)


@with_torch
@pytest.mark.parametrize(
    ("call", "error"), [("x.nothing", "AttributeError"), ("x + x.reshape(-1)[:7]", "RuntimeError")]
)
def test_a_model_that_raises(task, call, error) -> None:
    model = MODEL.replace("custom_ops_lib.add_custom(x, y)", call)
    (task.parent / "answer.py").write_text(strings(python_bind_src=BINDING, model_src=model))
    verdict = cubecore.judge(task.parent / "answer.py", task, cases=1)
    assert (verdict.correct, verdict.stage) == (False, "run")
    assert verdict.errors[0].message.startswith(
        f"model_new.py:4 (forward): the submission raised {error}: "
    )


@with_torch
def test_a_kernel_beside_a_model(task) -> None:
    folder = task.parent / "direct"
    folder.mkdir()
    (folder / "custom_op.asc").write_text(LAUNCH)
    (folder / "model_new.py").write_text(LAUNCH_MODEL)
    by_folder = cubecore.judge(folder, task, cases=1)
    by_file = cubecore.judge(folder / "custom_op.asc", task, cases=1)
    assert (by_folder.correct, by_file.correct) == (True, True)
    assert (by_folder.cheating, by_file.cheating) == ((), ())
    assert by_file.submission["operators"] == ["add"]


@with_torch
def test_a_direct_launch_in_json(task) -> None:
    (task.parent / "answer.json").write_text(direct_launch(LAUNCH))
    verdict = cubecore.judge(task.parent / "answer.json", task, cases=1)
    assert (verdict.correct, verdict.submission["kind"]) == (True, "direct launch")
    assert verdict.cheating == ()


@with_torch
def test_launches_of_a_binding_tell_where_results_come_from(task) -> None:
    folder = task.parent / "direct"
    folder.mkdir()
    (folder / "custom_op.asc").write_text(LAUNCH.replace("Add(c", "Sub(c"))
    (folder / "model_new.py").write_text(LAUNCH_MODEL)
    wrong = cubecore.judge(folder, task, cases=1)
    assert (wrong.correct, wrong.cheating) == (False, ())
    assert wrong.cases[0].written_at["file"] == "custom_op.asc"
    model = LAUNCH_MODEL.replace(
        "return ", "torch.ops.custom_op.run_add(x, y)\n        return x + y  # "
    )
    (folder / "model_new.py").write_text(model)
    marks = [mark["id"] for mark in cubecore.judge(folder, task, cases=1).cheating]
    assert "not-of-a-launch" in marks
