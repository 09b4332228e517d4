"""`judge`: verdicts of right, wrong, racing and broken submissions, and what is refused."""

import sys

import numpy as np
import pytest

import cubecore
from cubecore.errors import RequestError
from cubecore.workflows.judge import judge as judge_module
from frontends.cpp.cpp_kernels import needs_compiler
from workflows.command import cli
from workflows.judge.judged_kernels import (
    ADD,
    HOST,
    KERNEL,
    PYTHON,
    STORE_LINE,
    TASK,
    TILING,
    strings,
)

pytestmark = needs_compiler


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory):
    made = tmp_path_factory.mktemp("judge")
    (made / "task.py").write_text(TASK)
    return made


def judged(folder, text: str, name: str = "add.cpp", **options):
    (folder / name).write_text(text)
    given = {"blocks": 4, **options} if name.endswith((".cpp", "kernel.py")) else options
    return cubecore.judge(folder / name, folder / "task.py", **given)


def test_a_right_kernel(folder) -> None:
    verdict = judged(folder, ADD)
    assert (verdict.correct, verdict.stage, verdict.compiled) == (True, "done", True)
    assert verdict.findings == ()
    assert verdict.counts == {"right": 2}
    assert verdict.coverage == {"bytes_written": 8192, "bytes_expected": 8192, "launches": 2}
    assert verdict.time["low_us"] < verdict.time["us"] < verdict.time["high_us"]
    assert verdict.submission["operators"] == ["add"]


def test_a_wrong_kernel_names_the_element_and_the_line_that_wrote_it(folder) -> None:
    verdict = judged(folder, ADD.replace("Add(c, a, b, 256)", "Sub(c, a, b, 256)"), "sub.cpp")
    assert (verdict.correct, verdict.stage) == (False, "compare")
    case = verdict.cases[0]
    assert case.outcome == "wrong"
    assert case.written_at["line"] == STORE_LINE
    generator = np.random.default_rng((0, 0))
    x, y = (generator.standard_normal(1024).astype(np.float32) for _ in "xy")
    assert case.compared["value"] == pytest.approx(float(x[0] - y[0]))
    assert case.compared["expected"] == pytest.approx(float(x[0] + y[0]))


def test_a_race_that_gives_right_values_is_right_with_a_finding(folder) -> None:
    verdict = judged(folder, ADD.replace("  c = out.DeQue<float>();\n", ""), "race.cpp")
    assert verdict.correct
    first = verdict.findings[0]
    assert (first.id, first.certainty, first.line) == ("race-raw", "certain", STORE_LINE - 1)
    assert verdict.headline == "right, 2 certain findings"


def test_a_kernel_that_writes_a_part_is_wrong_and_covers_a_part(folder) -> None:
    verdict = judged(
        folder, ADD.replace("DataCopy(gz, c, 256)", "DataCopy(gz, c, 128)"), "part.cpp"
    )
    assert not verdict.correct
    assert verdict.coverage["bytes_written"] * 2 == verdict.coverage["bytes_expected"]
    assert {f.id for f in verdict.findings} == {"uninitialised"}


def test_a_kernel_that_does_not_compile(folder) -> None:
    verdict = judged(folder, ADD.replace("Add(c, a, b, 256)", "Add(c, a, 256)"), "broken.cpp")
    assert (verdict.correct, verdict.stage, verdict.compiled) == (False, "kernel", False)
    (error,) = verdict.errors
    assert (error.stage, error.line) == ("kernel", STORE_LINE - 3)


def test_a_kernel_that_passes_the_budget_is_late(folder) -> None:
    text = ADD.replace("  Add(c, a, b, 256);", "  for (;;) Add(c, a, b, 256);")
    verdict = judged(folder, text, "endless.cpp", instructions=5000)
    assert (verdict.correct, verdict.stage) == (False, "run")
    assert [case.outcome for case in verdict.cases] == ["late", "not run"]


def test_a_limit_of_time_is_no_verdict(folder) -> None:
    text = ADD.replace("  Add(c, a, b, 256);", "  for (volatile int i = 0;; ++i) {}")
    verdict = judged(folder, text, "spins.cpp", wall_s=3)
    assert (verdict.correct, verdict.stage) == (None, "stopped")
    assert verdict.cases == ()


def test_a_python_kernel(folder) -> None:
    verdict = judged(folder, PYTHON, "kernel.py")
    assert (verdict.correct, verdict.findings) == (True, ())


@pytest.mark.sweep
def test_a_project_and_its_strings_have_one_verdict(folder) -> None:
    texts = {"op_host/add_custom.cpp": HOST, "op_host/add_custom_tiling.h": TILING}
    for name, text in {**texts, "op_kernel/add_custom.cpp": KERNEL}.items():
        (folder / "project" / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / "project" / name).write_text(text)
    whole = cubecore.judge(folder / "project", folder / "task.py")
    assert (whole.correct, whole.findings) == (True, ())
    text = judged(folder, strings(), "answer.txt")
    assert text.submission["kind"] == "six strings"
    kept = [
        {**v.to_json(), "seconds": 0, "reproducible": "", "submission": ""} for v in (whole, text)
    ]
    for each in kept:
        for case in each["cases"]:
            case["seconds"] = 0
    assert kept[0] == kept[1]


def test_arrays_in_a_file_are_a_task(folder) -> None:
    x = np.arange(1024, dtype=np.float32)
    np.savez(folder / "arrays.npz", x=x, y=x, expected_z=2 * x)
    (folder / "add.cpp").write_text(ADD)
    assert cubecore.judge(folder / "add.cpp", folder / "arrays.npz", blocks=4).correct


def test_the_command_prints_a_verdict_and_its_exit_code(folder) -> None:
    (folder / "add.cpp").write_text(ADD)
    words = ["judge", str(folder / "add.cpp"), "--task", str(folder / "task.py"), "--blocks", "4"]
    done = cli(*words, "--json")
    told = done.json
    assert (done.code, told["schema"], told["correct"]) == (0, "cubecore.judge/1", True)
    (folder / "sub.cpp").write_text(ADD.replace("Add(c", "Sub(c"))
    page = folder / "verdict.html"
    words[1] = str(folder / "sub.cpp")
    done = cli(*words, "--report", str(page))
    assert done.code == 1
    assert done.out.startswith("add for task on Ascend910B3: wrong at compare\n  case 0: wrong: ")
    assert "wrong at compare" in page.read_text()


REFUSED = {
    "plain.cpp has no kernel; a kernel is a __global__ function": ("plain.cpp", "task.py"),
    "none.py has no reference; it needs reference(...) and inputs(case, rng), or a class Model "
    "with get_inputs": ("add.cpp", "none.py"),
    "answer.txt: project_json_src must name the operator that OP_ADD registers (AddCustom), got "
    "SubCustom": ("answer.txt", "task.py"),
    "arrays.npz has no reference: no array expected_NAME; np.savez(file, x=x, y=y, expected_z=z) "
    "makes one": ("add.cpp", "arrays.npz"),
    "absent needs the package of_nobody, which is not installed; pip install of_nobody": (
        "add.cpp",
        "absent.py",
    ),
}


@pytest.mark.parametrize("sentence", REFUSED)
def test_what_is_refused(tmp_path, sentence, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "task.py").write_text(TASK)
    (tmp_path / "none.py").write_text("x = 1\n")
    (tmp_path / "absent.py").write_text(f"import of_nobody.part\n{TASK}")
    (tmp_path / "plain.cpp").write_text("int plain;\n")
    (tmp_path / "add.cpp").write_text(ADD)
    (tmp_path / "answer.txt").write_text(strings(project_json_src='[{"op": "SubCustom"}]'))
    np.savez(tmp_path / "arrays.npz", x=np.zeros(4))
    submission, task = REFUSED[sentence]
    with pytest.raises(RequestError) as caught:
        cubecore.judge(submission, task)
    assert str(caught.value) == sentence


def test_a_fault_of_cubecore_is_no_verdict(folder, monkeypatch) -> None:
    (folder / "add.cpp").write_text(ADD)
    monkeypatch.setattr(sys, "executable", "/bin/false")
    with pytest.raises(
        judge_module.JudgeFaultError, match=r"^the judgement ended without an answer"
    ):
        cubecore.judge(folder / "add.cpp", folder / "task.py")
    done = cli("judge", str(folder / "add.cpp"), "--task", str(folder / "task.py"))
    assert (done.code, done.out) == (3, "")


@pytest.mark.sweep
def test_equal_requests_have_equal_verdicts(folder) -> None:
    def plain(verdict):
        told = verdict.to_json()
        for case in told["cases"]:
            case["seconds"] = 0
        return {**told, "seconds": None}

    text = ADD.replace("  c = out.DeQue<float>();\n", "").replace("Add(c, a, b", "Sub(c, a, b")
    first, second = (judged(folder, text, "twice.cpp", seed=7) for _ in range(2))
    assert plain(first) == plain(second)
    assert plain(first)["findings"]
    assert plain(first) != plain(judged(folder, text, "twice.cpp", seed=8))
