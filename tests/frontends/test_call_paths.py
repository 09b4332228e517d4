"""Time by line, of lines in functions that a kernel calls: each path of calls has its share."""

from pathlib import Path

import pytest

from cubecore.workflows.scripts.script import time_script
from workflows.command import DONE, cli

PYTHON = """\
import numpy as np
from cubecore import kernel


def move(core, to, x, z, size):
    core.asc_copy_gm2ub(to, x, 4 * size)
    core.asc_sync_notify("PIPE_MTE2", "PIPE_MTE3", 0)
    core.asc_sync_wait("PIPE_MTE2", "PIPE_MTE3", 0)
    core.asc_copy_ub2gm(z, to, 4 * size)
    core.asc_sync_notify("PIPE_MTE3", "PIPE_MTE2", 0)
    core.asc_sync_wait("PIPE_MTE3", "PIPE_MTE2", 0)


def both(core, to, x, z):
    move(core, to, x, z, 64)


@kernel(outputs="z", types={"x": "float", "z": "float"})
def halves(core, x, z):
    to = core.ubuf("float", 1024)
    for at in range(0, 4096, 1024):
        move(core, to, x + at, z + at, 1024)
    for at in range(4096, 8192, 64):
        both(core, to, x + at, z + at)


if __name__ == "__main__":
    x, z = np.arange(8192, dtype=np.float32), np.zeros(8192, np.float32)
    halves[1](x, z)
    halves[1](x, z)
"""
TIK = """\
import numpy as np
from tbe import tik

t = tik.Tik(tik.Dprofile("v100", "cloud"))
x = t.Tensor("float16", (8192,), name="x", scope=tik.scope_gm)
y = t.Tensor("float16", (8192,), name="y", scope=tik.scope_gm)
tile = t.Tensor("float16", (1024,), name="tile", scope=tik.scope_ubuf)


def move(at, blocks):
    t.data_move(tile, x[at], 0, 1, blocks, 0, 0)
    t.data_move(y[at], tile, 0, 1, blocks, 0, 0)


with t.for_range(0, 4) as i:
    move(i * 1024, 64)
with t.for_range(0, 64) as i:
    move(4096 + i * 64, 4)
t.BuildCCE(kernel_name="k", inputs=[x], outputs=[y])
t.tikdb.start_debug({"x": np.ones(8192, np.float16)})
"""
CASES = {
    "halves.py": (
        PYTHON,
        (6, "asc_copy_gm2ub"),
        {("halves.py:22 (halves)",): 1024, ("halves.py:15 (both)", "halves.py:24 (halves)"): 64},
        4,
    ),
    "t.py": (
        TIK,
        (11, "data_move"),
        {("t.py:16 (<module>)",): 1024, ("t.py:18 (<module>)",): 64},
        2,
    ),
}


@pytest.fixture(params=CASES)
def script(request, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path(request.param).write_text(CASES[request.param][0])
    return request.param


def test_a_line_in_a_helper_has_its_time_by_call(script):
    _, (number, call), paths, element = CASES[script]
    for launch in time_script(script).launches:
        lines = [each for each in launch.lines if each.location and each.location.line == number]
        told = {tuple(map(str, each.location.callers)): each for each in lines}
        assert set(told) == set(paths)
        assert all(call in each.text for each in lines)
        first, second = (told[path] for path in paths)
        # Both bring half of x: the second by sixteen times as many instructions.
        assert first.bytes == second.bytes
        assert second.instructions == 16 * first.instructions
        assert 0 < first.busy < second.busy
        assert first.bytes == 4 * 1024 * element
        pipes = dict.fromkeys(launch.timeline.pipes, 0)
        for line in launch.lines:
            for pipe, cycles in line.busy_cycles.items():
                pipes[pipe] += cycles
        assert pipes == dict(launch.timeline.pipes)


def test_text_and_json_and_page_tell_the_calls(script, tmp_path):
    paths = CASES[script][2]
    text = cli("time", script)
    assert text.code == DONE, text.err
    rows = [line.strip() for line in text.out.splitlines()]
    answer = cli("time", script, "--json", "--report", tmp_path / "page.html").json
    lines = answer["launches"][0]["lines"] if "launches" in answer else answer["lines"]
    page = (tmp_path / "page.html").read_text()
    for path in paths:
        called = ", ".join(path)
        assert any(row.endswith(f"called at {called}") for row in rows), rows
        assert list(path) in [line["callers"] for line in lines]
        assert f"{called}: ".replace("<", r"\u003c").replace(">", r"\u003e") in page
