"""Numbers of a launch that are tried: each change is launched again, checked and timed."""

from pathlib import Path

import numpy as np
import pytest

from frontends.cpp.cpp_kernels import needs_compiler
from workflows.command import BAD_REQUEST, DONE, assert_refused, cli

SCRIPT = """\
from pathlib import Path

import numpy as np

from cubecore import kernel

TILE = 64
ROWS = 4
SIZE = 4096


@kernel(outputs="z", types={"x": "float", "z": "float"})
def move(core, x, z):
    to = core.ubuf("float", TILE)
    for at in range(0, SIZE, TILE):
        core.asc_copy_gm2ub(to, x + at, 4 * TILE)
        core.asc_sync_notify("PIPE_MTE2", "PIPE_MTE3", 0)
        core.asc_sync_wait("PIPE_MTE2", "PIPE_MTE3", 0)
        core.asc_copy_ub2gm(z + at, to, 4 * TILE)
        core.asc_sync_notify("PIPE_MTE3", "PIPE_MTE2", 0)
        core.asc_sync_wait("PIPE_MTE3", "PIPE_MTE2", 0)


if __name__ == "__main__":
    x, z = np.arange(SIZE, dtype=np.float32) * ROWS, np.zeros(SIZE, np.float32)
    move[1](x, z)
    assert np.array_equal(x, z)
"""
KERNEL = """\
#include "kernel_operator.h"
using namespace AscendC;
#ifndef TILE
#define TILE 64
#endif
extern "C" __global__ __aicore__ void move(GM_ADDR x, GM_ADDR z, uint32_t share) {
  TPipe pipe;
  TBuf<TPosition::VECCALC> buffer;
  pipe.InitBuffer(buffer, TILE * sizeof(float));
  LocalTensor<float> to = buffer.Get<float>();
  GlobalTensor<float> from, into;
  from.SetGlobalBuffer((__gm__ float*)x + share * GetBlockIdx(), share);
  into.SetGlobalBuffer((__gm__ float*)z + share * GetBlockIdx(), share);
  for (uint32_t at = 0; at < share; at += TILE) {
    DataCopy(to, from[at], TILE);
    SetFlag<HardEvent::MTE2_MTE3>(0);
    WaitFlag<HardEvent::MTE2_MTE3>(0);
    DataCopy(into[at], to, TILE);
    SetFlag<HardEvent::MTE3_MTE2>(0);
    WaitFlag<HardEvent::MTE3_MTE2>(0);
  }
}
"""


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mover.py").write_text(SCRIPT)
    (tmp_path / "move.cpp").write_text(KERNEL)
    np.save("x.npy", np.arange(4096, dtype=np.float32))
    return tmp_path


def test_constants_of_a_script_are_tried(folder):
    answer = cli("time", "mover.py", "--try", "60", "--json")
    assert answer.code == DONE, answer.err
    trials = answer.json["trials"]
    best, dropped = trials[0], {t["change"]: t["dropped"] for t in trials if t["us"] is None}
    assert best["change"].startswith("TILE = ")
    assert best["us"] == min(t["us"] for t in trials if t["us"] is not None)
    assert best["saves_us"] == pytest.approx(answer.json["us"] - best["us"])
    assert best["saves_us"] > 0
    assert dropped["ROWS = 8"] == "x of launch 1 has other values"
    assert dropped["SIZE = 8192"] == "x of launch 1 has other values"
    assert (folder / "mover.py").read_text() == SCRIPT


@needs_compiler
def test_macros_and_blocks_of_a_kernel_are_tried(folder):
    given = ("--arg", "x=x.npy", "--arg", "share=4096", "--out-arg", "z=float:4096:z.npy")
    answer = cli("time", "move.cpp", "--blocks", "1", *given, "--try", "60", "--json")
    assert answer.code == DONE, answer.err
    before = (folder / "z.npy").read_bytes()
    trials = {trial["change"]: trial for trial in answer.json["trials"]}
    assert trials["-D TILE=128"]["saves_us"] > 0
    assert "findings" in trials["--blocks 2"]["dropped"]  # its second block leaves the array
    text = cli("time", "move.cpp", "--blocks", "1", *given, "--try", "60").out.splitlines()
    assert text.index("Tried, each launched again and right") < text.index("Dropped")
    assert (folder / "z.npy").read_bytes() == before


@pytest.mark.parametrize(
    ("options", "line"),
    [
        (("--try", "soon"), "--try must be a number, got 'soon'"),
        (("--try", "0"), "--try must be above 0 s, got 0"),
        (("--try", "nan"), "--try must be above 0 s, got nan"),
    ],
)
def test_a_budget_that_is_none_is_refused(options, line):
    assert_refused(cli("time", "mover.py", *options), line)


def test_a_rule_that_is_none_is_refused():
    answer = cli("time", "mover.py", "--without-rule", "slow")
    assert (answer.code, answer.out) == (BAD_REQUEST, "")
    assert answer.err.startswith("--without-rule must name a rule (few-blocks, ")
    assert answer.err.endswith("masked-lanes), got slow\n")


def test_a_rule_is_left_out():
    with_all = cli("time", "mover.py", "--advise", "--json").json["advice"]
    without = cli("time", "mover.py", "--without-rule", "small-copies", "--json").json["advice"]
    assert {each["rule"] for each in with_all} - {each["rule"] for each in without} == {
        "small-copies"
    }


def test_what_is_no_script_has_nothing_to_try():
    shape = ("--m", "16", "--n", "16", "--k", "16")
    assert_refused(cli("time", *shape, "--try", "3"), "--try needs a script")


def test_a_script_without_numbers_has_nothing_to_try(folder):
    text = SCRIPT.replace("TILE = 64", "TILE = 8 * 8").replace("ROWS = 4", "ROWS = 2 * 2")
    (folder / "mover.py").write_text(text.replace("SIZE = 4096", "SIZE = 64 * 64"))
    line = "nothing of mover.py is a number that can be tried"
    assert_refused(cli("time", "mover.py", "--try", "3"), line)


TIK = """\
import numpy as np
from tbe import tik

TILE = 256
SCALE = 2
t = tik.Tik(tik.Dprofile("v100", "cloud"))
x = t.Tensor("float16", (8, 4096), name="x", scope=tik.scope_gm)
y = t.Tensor("float16", (8, 4096), name="y", scope=tik.scope_gm)
with t.for_range(0, 8, block_num=2) as row:
    with t.for_range(0, 4096 // TILE) as i:
        tile = t.Tensor("float16", (TILE,), name="tile", scope=tik.scope_ubuf)
        t.data_move(tile, x[row, i * TILE], 0, 1, TILE // 16, 0, 0)
        t.vmuls(128, tile, tile, SCALE, TILE // 128, 1, 1, 8, 8)
        t.data_move(y[row, i * TILE], tile, 0, 1, TILE // 16, 0, 0)
t.BuildCCE(kernel_name="k", inputs=[x], outputs=[y])
"""


@pytest.mark.parametrize("launched", [True, False])
def test_constants_and_blocks_of_a_tik_program_are_tried(folder, launched):
    text = TIK
    if launched:
        text += 't.tikdb.start_debug({"x": np.ones((8, 4096), np.float16)})\n'
    (folder / "t.py").write_text(text)
    random = () if launched else ("--debug-inputs", "random")
    answer = cli("time", "t.py", *random, "--try", "60", "--json")
    assert answer.code == DONE, answer.err
    trials = {trial["change"]: trial for trial in answer.json["trials"]}
    assert trials["TILE = 512"]["saves_us"] > 0
    assert trials["block_num = 4"]["saves_us"] > 0
    assert trials["block_num = 8"]["saves_us"] > trials["block_num = 4"]["saves_us"]
    assert trials["SCALE = 4"]["dropped"] == "y of launch 1 has other values"
    assert (folder / "t.py").read_text() == text


@pytest.mark.sweep
@needs_compiler
def test_attributes_of_an_operator_are_tried():
    project = Path(__file__).parents[2] / "advice" / "pairs" / "weigh"
    np.save("x.npy", np.arange(8 * 4096, dtype=np.float32))
    given = ("x=x.npy", "blocks=8", "tile=128", "part=128")
    words = [word for text in given for word in ("--arg", text)]
    answer = cli("time", project, *words, "--try", "60", "--json")
    assert answer.code == DONE, answer.err
    trials = {trial["change"]: trial for trial in answer.json["trials"]}
    assert trials["--arg tile=256"]["saves_us"] > 0
    assert trials["--arg blocks=16"]["saves_us"] > 0
    assert "findings" in trials["--arg part=256"]["dropped"]  # a part leaves its tile
