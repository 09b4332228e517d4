"""C++ kernels with the compiler of the ziglang package alone: `pip install cubecore[compiler]`."""

import os
import subprocess
import sys
from importlib.util import find_spec

import numpy as np
import pytest

from frontends.cpp.cpp_kernels import EXAMPLES

needs_wheel = pytest.mark.skipif(find_spec("ziglang") is None, reason="no ziglang package is here")
HIDDEN = {**os.environ, "PATH": "/nowhere"}
HIDDEN.pop("CUBECORE_CXX", None)


def run(folder, *words):
    command = [sys.executable, "-m", "cubecore", "run", *words]
    done = subprocess.run(
        command, cwd=folder, env=HIDDEN, capture_output=True, text=True, check=False
    )
    return done.returncode, done.stdout, done.stderr


@needs_wheel
def test_an_example_runs_where_there_is_no_other_compiler(tmp_path):
    x = np.arange(64, dtype=np.float32)
    np.save(tmp_path / "x.npy", x)
    arrays = ("--arg", "x=x.npy", "--arg", "y=x.npy", "--out-arg", "z=float32:64:z.npy")
    launch = ("--entry", "add_queued", "--blocks", "1", "--arg", "share=64")
    code, _, err = run(tmp_path, str(EXAMPLES / "vector_add.cpp"), *launch, *arrays)
    assert (code, err) == (0, "")
    assert (np.load(tmp_path / "z.npy") == 2 * x).all()


@needs_wheel
def test_an_error_of_the_file_is_told_of_the_file(tmp_path):
    (tmp_path / "k.cpp").write_text(
        '#include "kernel_operator.h"\n__global__ void k(GM_ADDR x) { half h; h.foo(); }\n'
    )
    said = "k.cpp:2 does not compile: no member named 'foo' in 'half'"
    remedy = "--verbose shows everything the compiler says"
    line = "    2 | __global__ void k(GM_ADDR x) { half h; h.foo(); }"
    want = f"{said}; {remedy}\n{line}\n      | {'~ ^':>42}\n"
    assert run(tmp_path, "k.cpp", "--blocks", "1") == (2, "", want)
