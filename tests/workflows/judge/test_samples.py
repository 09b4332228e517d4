"""Sample projects through `judge`: their own data and scripts, or those of a sample as the task."""

import shutil

import pytest

import cubecore
from cubecore.errors import RequestError
from cubecore.workflows.judge.limits import JudgeOptions
from cubecore.workflows.judge.tasks.kinds import task_of
from cubecore.workflows.judge.tasks.sample_projects import SampleProject, plain_name
from cubecore.workflows.judge.tasks.sample_tasks import SampleTask
from frontends.cpp.cpp_kernels import needs_compiler
from sandbox.machine import missing
from workflows.command import assert_refused, cli
from workflows.judge.judged_kernels import ADD, PYTHON, STORE_LINE, TASK

pytestmark = [
    needs_compiler,
    pytest.mark.skipif(shutil.which("cmake") is None, reason="samples are built by CMake"),
]
CMAKE = """cmake_minimum_required(VERSION 3.16)
set(CMAKE_ASC_ARCHITECTURES "dav-2201" CACHE STRING "architecture")
find_package(ASC REQUIRED)
project(add LANGUAGES ASC CXX)
add_executable(demo add.asc)
target_compile_options(demo PRIVATE
  $<$<COMPILE_LANGUAGE:ASC>:--npu-arch=${CMAKE_ASC_ARCHITECTURES}>)
"""
MAIN = """
#include <cstdio>
#include <vector>
#include "acl/acl.h"
static void load(const char* name, void* to, size_t size) {
  FILE* file = fopen(name, "rb");
  if (file == nullptr || fread(to, 1, size, file) != size) throw 1;
  fclose(file);
}
int main() {
  aclInit(nullptr);
  aclrtSetDevice(0);
  aclrtStream stream;
  aclrtCreateStream(&stream);
  const size_t size = 4096;
  std::vector<float> host(1024);
  void *x, *y, *z;
  for (void** each : {&x, &y, &z}) aclrtMalloc(each, size, ACL_MEM_MALLOC_HUGE_FIRST);
  load("input/x.bin", host.data(), size);
  aclrtMemcpy(x, size, host.data(), size, ACL_MEMCPY_HOST_TO_DEVICE);
  load("input/y.bin", host.data(), size);
  aclrtMemcpy(y, size, host.data(), size, ACL_MEMCPY_HOST_TO_DEVICE);
  add<<<4, nullptr, stream>>>((uint8_t*)x, (uint8_t*)y, (uint8_t*)z);
  aclrtSynchronizeStream(stream);
  aclrtMemcpy(host.data(), size, z, size, ACL_MEMCPY_DEVICE_TO_HOST);
  FILE* file = fopen("output/z.bin", "wb");
  fwrite(host.data(), 1, size, file);
  fclose(file);
  return 0;
}
"""
DATA = """import os
import numpy as np

for name in ("input", "output"):
    os.makedirs(name, exist_ok=True)
x, y = (np.random.uniform(-1, 1, 1024).astype(np.float32) for _ in "xy")
x.tofile("input/x.bin")
y.tofile("input/y.bin")
(x + y).tofile("output/golden.bin")
"""
CHECK = """import sys
import numpy as np

z, golden = (np.fromfile(name, dtype=np.float32) for name in sys.argv[1:3])
if not np.allclose(z, golden, rtol=1e-5):
    print("[ERROR] result error")
    sys.exit(1)
print("test pass!")
"""
README = """# Add
```bash
mkdir -p build && cd build
cmake ..; make -j
python3 ../scripts/gen_data.py
./demo
python3 ../scripts/verify_result.py output/z.bin output/golden.bin
```
"""


@pytest.fixture
def sample(tmp_path):
    """Return a function that writes a sample, some of its files changed."""

    def written(name="add", **changed):
        files = {"CMakeLists.txt": CMAKE, "add.asc": ADD + MAIN, "README.md": README}
        files |= {"scripts/gen_data.py": DATA, "scripts/verify_result.py": CHECK}
        for each, text in {**files, **changed}.items():
            (tmp_path / name / each).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / name / each).write_text(text)
        return tmp_path / name

    return written


def test_a_sample_is_judged_by_its_own_scripts(sample) -> None:
    verdict = cubecore.judge(sample(), chip="Ascend910B2")
    assert (verdict.correct, verdict.stage) == (True, "done")
    assert verdict.submission["kind"] == "sample"
    assert [verdict.task[each] for each in ("name", "source", "cases")] == ["add", "sample", 1]
    assert (verdict.findings, verdict.cheating) == ((), ())
    assert verdict.coverage["launches"] == 1
    assert verdict.time["us"] > 0


def test_a_wrong_sample_names_the_line_for_the_task_of_another(sample) -> None:
    task = sample("task")
    wrong = sample("wrong", **{"add.asc": ADD.replace("Add(c", "Sub(c") + MAIN})
    (wrong / "scripts" / "verify_result.py").write_text("print('test pass!')\n")
    verdict = cubecore.judge(wrong, task, chip="Ascend910B2")
    assert (verdict.correct, verdict.stage) == (False, "compare")
    (case,) = verdict.cases
    assert case.written_at["line"] == STORE_LINE
    assert case.written_at["file"] == "add.asc"
    assert case.compared["tolerance"]["rule"] == "the sample's own comparison"


@pytest.mark.sweep
def test_a_sample_that_does_not_compile(sample) -> None:
    verdict = cubecore.judge(sample(**{"add.asc": ADD.replace("Add(c, a, b", "Add(c, a") + MAIN}))
    assert (verdict.correct, verdict.stage, verdict.compiled) == (False, "kernel", False)
    (error,) = verdict.errors
    assert (error.file, error.line) == ("add.asc", STORE_LINE - 3)


@pytest.mark.skipif(bool(missing("auto")), reason=missing("auto") or "there is a box")
def test_the_scripts_of_a_submission_are_in_a_box(sample, tmp_path) -> None:
    (tmp_path / "secret.txt").write_text("of the caller")
    attack = f"open({str(tmp_path / 'secret.txt')!r}).read()\n"
    with pytest.raises(RequestError) as caught:
        cubecore.judge(sample(**{"scripts/gen_data.py": attack}))
    assert str(caught.value) == (
        "gen_data.py failed: FileNotFoundError: [Errno 2] No such file or directory: "
        f"{str(tmp_path / 'secret.txt')!r}"
    )


@pytest.mark.sweep
def test_a_program_that_judges_itself(sample) -> None:
    readme = README.partition("python3")[0] + "./demo\n```\n"
    fixed = MAIN.replace('  load("input/x.bin", host.data(), size);\n', "")
    fixed = fixed.replace('  load("input/y.bin", host.data(), size);\n', "")
    said = fixed.replace("  return 0;", '  printf("test pass!\\n");\n  return 0;')
    parts = {"README.md": readme, "scripts/gen_data.py": "", "scripts/verify_result.py": ""}
    verdict = cubecore.judge(sample("says", **parts, **{"add.asc": ADD + said}))
    assert verdict.correct
    silent = cubecore.judge(sample("silent", **parts, **{"add.asc": ADD + fixed}))
    assert (silent.correct, silent.cases[0].outcome) == (False, "uncomparable")
    assert silent.cases[0].reason == (
        "neither a script nor the program itself compares its results"
    )


def test_the_data_of_equal_judgements_are_equal(sample) -> None:
    known = SampleTask(task_of(sample()))
    draws = [next(known.cases(JudgeOptions("Ascend910B2", seed=seed))) for seed in (1, 1, 2)]
    first, same, other = (case.inputs["input/x.bin"].tobytes() for case in draws)
    assert first == same != other
    assert list(draws[0].expected) == ["output/golden.bin"]


def test_bad_input_is_one_sentence(sample, tmp_path) -> None:
    (tmp_path / "right.py").write_text(PYTHON)
    (tmp_path / "task.py").write_text(TASK)
    line = "right.py needs --task; only a sample project brings data of its own"
    assert_refused(cli("judge", str(tmp_path / "right.py")), line)
    two = sample("two", **{"README.md": README.replace("./demo", "./demo\n./demo 2")})
    with pytest.raises(RequestError) as caught:
        SampleProject.of(two)
    assert str(caught.value) == (
        "two must have one program that its README starts; cubecore sample runs other samples"
    )
    with pytest.raises(RequestError) as caught:
        plain_name("../task.py")
    assert str(caught.value) == "../task.py lies outside of the sample's folder"
