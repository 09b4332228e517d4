"""Time by source line on the command line: Python, C++ and TIK, in text, JSON, trace and report."""

import json
import shutil

import numpy as np
import pytest

from workflows.command import DONE, cli

COPY = """\
import numpy as np

from cubecore import kernel

N = 4096


@kernel(outputs="z")
def copy(core, x, z):
    to = core.ubuf("half", 256)
    for n in range(N // 256):
        move(core, to, x + 256 * n, z + 256 * n)


def move(core, to, x, z):
    core.asc_copy_gm2ub(to, x, 512)
    core.asc_sync_notify("PIPE_MTE2", "PIPE_MTE3", 0)
    core.asc_sync_wait("PIPE_MTE2", "PIPE_MTE3", 0)
    core.asc_copy_ub2gm(z, to, 512)
    core.asc_sync_notify("PIPE_MTE3", "PIPE_MTE2", 0)
    core.asc_sync_wait("PIPE_MTE3", "PIPE_MTE2", 0)


if __name__ == "__main__":
    copy[1](np.ones(N, np.float16), np.zeros(N, np.float16))
"""
ADD = """\
#include "kernel_operator.h"
using namespace AscendC;
__aicore__ inline void Step(LocalTensor<half>& to, GlobalTensor<half>& from) {
  DataCopy(to, from, 256);
}
extern "C" __global__ __aicore__ void twice(GM_ADDR x) {
  TPipe pipe;
  TBuf<TPosition::VECCALC> buf;
  pipe.InitBuffer(buf, 4096);
  LocalTensor<half> to = buf.Get<half>();
  LocalTensor<half> other = to[256];
  GlobalTensor<half> from;
  from.SetGlobalBuffer((__gm__ half*)x, 256);
  Step(to, from);
  for (int i = 0; i < 3; i++) {
    LocalTensor<half> part = other[256 * i];
    Step(part, from);
  }
}
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_python_lines_have_their_text(folder):
    (folder / "mover.py").write_text(COPY)
    answer = cli("time", "mover.py", "--json")
    assert answer.code == DONE, answer.err
    lines = answer.json["lines"]
    load, store = lines[:2]
    assert (load["file"], load["line"], load["function"]) == ("mover.py", 16, "move")
    assert load["text"] == "core.asc_copy_gm2ub(to, x, 512)"
    assert (load["instructions"], load["bytes"]) == (16, 16 * 512)
    assert (store["line"], store["bytes"]) == (19, 16 * 512)
    for pipe, used in answer.json["pipes"].items():
        assert sum(line["busy_cycles"].get(pipe, 0) for line in lines) == used["busy_cycles"]
    of_reasons = sum(stall["cycles"] for stall in answer.json["stalls"])
    assert sum(line["stall_cycles"] for line in lines) == of_reasons


def test_the_text_has_the_hottest_lines(folder):
    (folder / "mover.py").write_text(COPY)
    answer = cli("time", "mover.py").out.splitlines()
    first = answer.index("Hottest lines, average cycles") + 1
    assert answer[first].split()[:2] == ["mover.py:16", "MTE2"]
    assert answer[first].endswith("core.asc_copy_gm2ub(to, x, 512)")
    assert answer[first + 1].split()[0] == "mover.py:19"


def test_traces_and_tooltips_have_file_and_line(folder):
    (folder / "mover.py").write_text(COPY)
    answer = cli("time", "mover.py", "--trace", "t.json", "--report", "r.html")
    assert answer.code == DONE, answer.err
    events = json.loads((folder / "t.json").read_text())["traceEvents"]
    lines = {e["name"]: e["args"]["line"] for e in events if e["ph"] == "X"}
    assert lines == {"copy_gm_to_ubuf": "mover.py:16", "copy_ubuf_to_gm": "mover.py:19"}
    assert '"lines":["mover.py:16"]' in (folder / "r.html").read_text()


def test_cpp_lines_are_told_apart_by_the_calls_that_led_there(folder):
    if shutil.which("addr2line") is None:
        pytest.skip("call paths need addr2line")
    (folder / "twice.cpp").write_text(ADD)
    np.save(folder / "x.npy", np.ones(256, np.float16))
    answer = cli("time", "twice.cpp", "--blocks", "1", "--arg", "x=x.npy", "--json")
    assert answer.code == DONE, answer.err
    loads = [line for line in answer.json["lines"] if line["call"] == "DataCopy"]
    paths = {line["callers"][0]: line["instructions"] for line in loads}
    assert paths == {"twice.cpp:14 (twice)": 1, "twice.cpp:17 (twice)": 3}
    assert {line["text"] for line in loads} == {"DataCopy(to, from, 256);"}
    text = cli("time", "twice.cpp", "--blocks", "1", "--arg", "x=x.npy").out
    assert text.count("DataCopy(to, from, 256);") == 1  # a place is one line


def test_a_file_that_is_gone_leaves_no_text(folder):
    script = COPY.replace("copy[1](", "import os\n    os.remove(__file__)\n    copy[1](")
    (folder / "mover.py").write_text(script)
    answer = cli("time", "mover.py", "--json")
    assert answer.code == DONE, answer.err
    assert (answer.json["lines"][0]["line"], answer.json["lines"][0]["text"]) == (16, "")
