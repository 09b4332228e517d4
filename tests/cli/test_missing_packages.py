"""Commands where packages, or a compiler, are missing: plans need NumPy alone."""

import json
import os
import subprocess
import sys

import pytest

import cubecore

HIDING = """
import sys

class Hiding:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {"greenlet", "threadpoolctl", "ziglang"}:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Hiding())
"""
COMMAND = f"{HIDING}\nfrom cubecore.cli.entry import main\nmain('cubecore')"
SHAPE = ("--m", "128", "--n", "128", "--k", "256")


def without_packages(program, *arguments):
    """Run a Python program without those packages, and without a compiler on the path."""
    environment = dict(os.environ, PATH="/nowhere", CUBECORE_CXX="")
    command = [sys.executable, "-c", program, *map(str, arguments)]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)


@pytest.fixture(scope="module")
def tiling(tmp_path_factory):
    path = tmp_path_factory.mktemp("tilings") / "tiling.json"
    path.write_text(json.dumps(cubecore.plan(m=128, n=128, k=256).tiling.to_json()))
    return path


@pytest.fixture(scope="module")
def config(tmp_path_factory):
    path = tmp_path_factory.mktemp("model") / "config.json"
    widths = {"num_attention_heads": 4, "hidden_size": 64, "intermediate_size": 128}
    path.write_text(
        json.dumps({"model_type": "llama", "num_hidden_layers": 2, "vocab_size": 256} | widths)
    )
    return path


@pytest.mark.thinned(8)
@pytest.mark.parametrize(
    "arguments",
    [
        ["plan", *SHAPE],
        ["check", "TILING", *SHAPE],
        ["tune", "TILING", *SHAPE],
        ["compare", "TILING", "TILING", *SHAPE],
        ["time", *SHAPE, "--tiling", "TILING"],
        ["time", "--op", "attention", "--shape", "4x128x256x64"],
        ["explain", "Mmad"],
        ["chips", "Ascend910B3"],
        ["model", "CONFIG", "--phase", "decode", "--batch", "4", "--seq", "100"],
    ],
    ids=lambda arguments: arguments[0],
)
def test_what_needs_no_execution_needs_numpy_alone(arguments, tiling, config):
    files = {"TILING": tiling, "CONFIG": config}
    done = without_packages(COMMAND, *(files.get(each, each) for each in arguments))
    assert (done.returncode, done.stderr) == (0, "")
    with_all = [sys.executable, "-m", "cubecore", *(str(files.get(a, a)) for a in arguments)]
    assert (
        done.stdout == subprocess.run(with_all, capture_output=True, text=True, check=True).stdout
    )


def test_python_plans_and_checks_with_numpy_alone():
    program = f"""{HIDING}
import cubecore
plan = cubecore.plan(m=128, n=128, k=256)
assert cubecore.check(plan.tiling, m=128, n=128, k=256).legal
print(plan.tiling.baseM)
"""
    done = without_packages(program)
    assert done.stderr == ""
    assert int(done.stdout) > 0


NEEDED = "plan, check, explain, chips, tune and model need NumPy alone\n"


@pytest.mark.parametrize(
    ("arguments", "package"),
    [(["run", *SHAPE], "greenlet"), (["run", "kernel.cpp"], "greenlet")],
)
def test_a_missing_package_is_named_in_a_sentence(arguments, package, tmp_path):
    kernel = tmp_path / "kernel.cpp"
    kernel.write_text('extern "C" __global__ __aicore__ void f() {}\n')
    typed = [kernel if each == "kernel.cpp" else each for each in arguments]
    done = without_packages(COMMAND, *typed)
    sentence = f"this command needs the package {package}, which is not installed; {NEEDED}"
    assert (done.returncode, done.stdout, done.stderr) == (2, "", sentence)


def test_a_missing_package_is_named_to_python():
    program = f"""{HIDING}
import cubecore
try:
    cubecore.kernel
except cubecore.RequestError as error:
    print(error)
"""
    done = without_packages(program)
    needs = "cubecore.kernel needs the package greenlet, which is not installed"
    assert (done.stderr, done.stdout) == ("", f"{needs}; {NEEDED}")
