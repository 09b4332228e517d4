"""Cheating: each cheat has its mark, and right submissions have no certain one."""

from pathlib import Path

import pytest

import cubecore
from cubecore.workflows.judge.cheating.kinds import KINDS
from frontends.cpp.cpp_kernels import needs_compiler
from workflows.judge.cheats import CHEATS, HEAD
from workflows.judge.judged_kernels import ADD, HOST, KERNEL, PYTHON, TASK, strings

FEW = {
    "an expression",
    "a launch for show",
    "zeros, and the results behind",
    "a kernel that copies",
    "zeros within the tolerance",
    "results into the inputs",
    "results that never change",
    "a shift of the inputs that were drawn",
}
"""Those of an ordinary run: one of each kind that launches show."""
CERTAINTY = {kind.id: kind.certainty for kind in KINDS}


def judged(folder, text, task=TASK, entry=""):
    (folder / "task").mkdir()
    (folder / "task" / "task.py").write_text(task)
    name = "kernel.py" if text.startswith("import") else "kernel.cpp"
    name = "answer.txt" if text.startswith("host") else name
    (folder / name).write_text(text)
    blocks = {} if name == "answer.txt" else {"blocks": 4}
    return cubecore.judge(folder / name, folder / "task" / "task.py", entry=entry, **blocks)


@pytest.mark.thinned(2)
@pytest.mark.parametrize(
    "name", [n if n in FEW else pytest.param(n, marks=pytest.mark.sweep) for n in CHEATS]
)
@needs_compiler
def test_a_cheat_is_marked(tmp_path, name) -> None:
    cheat = CHEATS[name]
    verdict = judged(tmp_path, cheat.text, cheat.task, cheat.entry)
    marks = {mark["id"]: mark for mark in verdict.cheating}
    assert cheat.mark in marks, (verdict.cheating, verdict.text)
    assert marks[cheat.mark]["certainty"] == CERTAINTY[cheat.mark]


@pytest.mark.thinned(3)
@pytest.mark.parametrize("text", [ADD, PYTHON, strings()], ids=["C++", "Python", "operator"])
@needs_compiler
def test_a_right_submission_has_no_mark(tmp_path, text) -> None:
    assert judged(tmp_path, text).cheating == ()


def test_a_kernel_that_repeats_its_input_has_no_mark(tmp_path) -> None:
    task = TASK.replace("x + y", "np.concatenate([x[:512], x[:512]])").replace('("x", "y")', '"x"')
    text = (
        f"{HEAD}\ndef answer(x):\n    z = np.empty_like(x)\n    for n in range(2):\n"
        "        copy.using(outputs=('z',))[2](x=x[:512], z=z[512 * n : 512 * (n + 1)])\n"
        "    return z\n"
    )
    verdict = judged(tmp_path, text, task.replace("reference(x, y)", "reference(x)"), "answer")
    assert (verdict.correct, verdict.cheating) == (True, ())


def test_results_that_join_arrays_of_launches_have_no_mark(tmp_path) -> None:
    task = TASK.replace("x + y", "np.concatenate([x, y])")
    text = (
        f"{HEAD}\ndef answer(x, y):\n    parts = []\n    for each in (x, y):\n"
        "        z = np.empty_like(each)\n        copy.using(outputs=('z',))[4](x=each, z=z)\n"
        "        parts.append(z)\n    return np.concatenate(parts)\n"
    )
    verdict = judged(tmp_path, text, task, "answer")
    assert (verdict.correct, verdict.cheating) == (True, ())


@needs_compiler
def test_results_in_a_workspace_have_no_mark(tmp_path) -> None:
    host = HOST.replace("WorkspaceSizes(1)[0] = 0", "WorkspaceSizes(1)[0] = 4096")
    last = "  DataCopy(gz, c, t.elements);\n"
    assert last in KERNEL
    kernel = KERNEL.replace(
        last,
        last + "  GlobalTensor<float> gw;\n"
        "  gw.SetGlobalBuffer((__gm__ float*)workspace + at, t.elements);\n"
        "  DataCopy(gw, c, t.elements);\n",
    )
    verdict = judged(tmp_path, strings(host_operator_src=host, kernel_src=kernel))
    assert (verdict.correct, verdict.cheating) == (True, ())


def test_an_input_that_a_launch_leaves_has_no_mark(tmp_path) -> None:
    task = TASK.replace('{"z": x + y}', '{"x": x}')
    text = f"{HEAD}\ndef answer(x, y):\n    nothing[1](x=x, y=y, z=x)\n    return x\n"
    marks = {mark["id"] for mark in judged(tmp_path, text, task, "answer").cheating}
    assert "not-of-a-launch" not in marks


def test_a_value_that_an_output_begins_with_has_no_mark(tmp_path) -> None:
    task = TASK.replace('{"z": x + y}', '{"z": np.zeros_like(x)}')
    text = (
        f"{HEAD}\ndef answer(x, y):\n    z = np.zeros_like(x)\n"
        "    nothing[1](x=x, y=y, z=z)\n    return z\n"
    )
    marks = {mark["id"] for mark in judged(tmp_path, text, task, "answer").cheating}
    assert "not-of-a-launch" not in marks


def test_a_task_whose_results_have_no_inputs_needs_no_read(tmp_path) -> None:
    task = TASK.replace("x + y", "np.zeros_like(x)")
    text = (
        f"{HEAD}\ndef answer(x, y):\n    z = np.empty_like(x)\n"
        "    zeros.using(outputs=('z',))[4](x=x, y=y, z=z)\n    return z\n"
    )
    verdict = judged(tmp_path, text, task, "answer")
    assert (verdict.correct, verdict.cheating) == (True, ())


def test_inputs_of_one_value_need_no_read(tmp_path) -> None:
    task = TASK.replace("rng.standard_normal(1024)", "np.zeros(1024)")
    text = (
        f"{HEAD}\ndef answer(x, y):\n    z = np.empty_like(x)\n"
        "    zeros.using(outputs=('z',))[4](x=x, y=y, z=z)\n    return z\n"
    )
    verdict = judged(tmp_path, text, task, "answer")
    assert (verdict.correct, verdict.cheating) == (True, ())


def test_an_honest_function_has_no_mark(tmp_path) -> None:
    text = f"{HEAD}\ndef answer(x, y):\n    return honest(x, y)\n"
    assert judged(tmp_path, text, entry="answer").cheating == ()


def test_the_guide_has_all_kinds_with_an_example_each() -> None:
    guide = (Path(__file__).parents[3] / "docs" / "judging.md").read_text("utf-8")
    for kind in KINDS:
        row = f"| `{kind.id}` | {kind.certainty} | {kind.meaning} | {kind.example} |"
        assert row in guide


def test_every_kind_has_a_cheat() -> None:
    apart = {"registered-in-place", "torch-compute"}
    assert {cheat.mark for cheat in CHEATS.values()} | apart == {kind.id for kind in KINDS}


@needs_compiler
def test_a_kernel_that_reads_by_pointers_has_no_certain_mark(tmp_path) -> None:
    text = (
        '#include "kernel_operator.h"\nextern "C" __global__ __aicore__ void add(__gm__ float* x, '
        "__gm__ float* y, __gm__ float* z) {\n  const int at = 256 * AscendC::GetBlockIdx();\n"
        "  for (int i = at; i < at + 256; ++i) z[i] = x[i] + y[i];\n}\n"
    )
    verdict = judged(tmp_path, text)
    assert verdict.correct
    assert [mark for mark in verdict.cheating if mark["certainty"] == "certain"] == []
