"""The debugger on the command line: commands on stdin, what they show, how it ends."""

import signal
import subprocess
import sys
from textwrap import dedent

import pytest

from workflows.command import DONE, shell

SCRIPT = """
    import numpy as np
    from cubecore import kernel

    @kernel(outputs="c")
    def scale(core, a, c):
        x, y = core.ubuf("float", 64), core.ubuf("float", 64)
        core.asc_copy_gm2ub(x, a, 256)
        core.asc_sync()
        core.asc_mul_scalar(y, x, 2.0, 64)
        core.asc_sync()
        core.asc_copy_ub2gm(c, y, 256)
        core.asc_sync()

    if __name__ == "__main__":
        a, c = np.arange(64, dtype=np.float32), np.zeros(64, np.float32)
        scale[1](a, c)
        np.save("c.npy", c)
"""


@pytest.fixture
def run(tmp_path):
    """Run the script under the debugger; give the answer, and the lines behind the first stop."""
    (tmp_path / "own.py").write_text(dedent(SCRIPT))

    def run_it(*arguments, typed=""):
        return shell("run", "own.py", *arguments, cwd=tmp_path, input=typed)

    run_it.folder = tmp_path
    return run_it


def test_a_dialogue(run):
    typed = "print src\ns\nd x 2x4\n\nnonsense\nd x\nprint 1 +\ns none\nw UB:0+4\nwhere\nc\n"
    answer = run("--break", "asc_mul_scalar", typed=typed)
    assert (answer.code, answer.err) == (DONE, "")
    assert answer.out.splitlines()[:-4] == [
        "break: core 0 AIV0 #5 vmuls on V at own.py:10 (scale)",
        "  10 | core.asc_mul_scalar(y, x, 2.0, 64)",
        "(cubecore) print src",
        "  0",
        "(cubecore) s",
        "step: core 0 AIV0 #6 set_mask_norm on S at own.py:10 (scale)",
        "  10 | core.asc_mul_scalar(y, x, 2.0, 64)",
        "(cubecore) d x 2x4",
        "  x: 2 x 4 float32 in ND, UB [0, 32)",
        "    0 | 0 1 2 3",
        "    1 | 4 5 6 7",
        "(cubecore) ",
        "(cubecore) nonsense",
        "a command must be step, continue, break, watch, clear, dump, print, where, quit or help, "
        "got nonsense",
        "(cubecore) d x",
        "a dump must be WHERE [TYPE] SHAPE [LAYOUT], such as x 4x16 NZ, got 'x'",
        "(cubecore) print 1 +",
        "cannot evaluate '1 +': SyntaxError: invalid syntax (<string>, line 1)",
        "(cubecore) s none",
        "step must be given a number above 0, got none",
        "(cubecore) w UB:0+4",
        "(cubecore) where",
        "step: core 0 AIV0 #6 set_mask_norm on S at own.py:10 (scale)",
        "  break asc_mul_scalar",
        "  watch UB:0+4",
        "(cubecore) c",
        "watch UB:0+4: nothing met it",
    ]


def test_without_commands_it_only_tells(run):
    answer = run("--watch", "c:0+8/w", "--break", "asc_add", "--dump", "y 4")
    assert answer.code == DONE
    assert answer.out.splitlines()[:-4] == [
        "watch: core 0 AIV0 #8 copy_ubuf_to_gm on MTE3 at own.py:12 (scale)",
        "  dst writes [0, 8) of c: ff ff ff ff ff ff ff ff -> 00 00 00 00 00 00 00 40",
        "  12 | core.asc_copy_ub2gm(c, y, 256)",
        "  y: 4 float32 in ND, UB [256, 272)",
        "    0 | 0 2 4 6",
        "break asc_add: nothing met it",
    ]


def test_dumps_alone_are_of_the_end(run):
    answer = run("--dump", "y 4", "--dump", "nothing 4")
    assert answer.out.splitlines()[:4] == [
        "end: core 0 AIV0 after #9, at own.py:13 (scale)",
        "  y: 4 float32 in ND, UB [256, 272)",
        "    0 | 0 2 4 6",
        "cannot evaluate 'nothing': NameError: name 'nothing' is not defined",
    ]


def test_with_json_the_dialogue_is_on_stderr(run):
    answer = run("--step", "--json", typed="help\nclear\n")
    assert (answer.code, answer.json["verdict"]) == (
        DONE,
        "finished, no findings; result not compared (give --expect c=...)",
    )
    assert answer.err.splitlines()[0].startswith("step: core 0 AIV0 #1 copy_gm_to_ubuf on MTE2")
    assert "  step [N]            go on to the next instruction, or the N-th next (s)" in answer.err


def test_quit_leaves_without_a_traceback(run):
    answer = run("--step", typed="quit\n")
    assert (answer.code, answer.err) == (130, "\n")
    assert answer.out.splitlines()[-1] == "(cubecore) quit"
    assert not (run.folder / "c.npy").exists()


def test_an_interrupt_at_the_prompt_leaves_without_a_traceback(run):
    command = [sys.executable, "-m", "cubecore", "run", "own.py", "--step"]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen(
        command,
        cwd=run.folder,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # noqa: PLW1509
        **pipes,
    ) as process:
        assert process.stdout.readline().startswith(b"step: ")
        process.send_signal(signal.SIGINT)
        assert process.wait(timeout=30) == 130
        assert process.stderr.read() == b"\n"
    assert not (run.folder / "c.npy").exists()


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (
            ("run", "--m", "1", "--n", "1", "--k", "1", "--step"),
            "--step needs a script",
        ),
        (
            ("run", "own.py", "--break", "zzz"),
            "a break must be an instruction, #NUMBER or FILE:LINE, got 'zzz'",
        ),
        (
            ("run", "own.py", "--watch", "x"),
            "a watch must be MEMORY:START+BYTES, such as UB:0x100+64, got 'x'",
        ),
    ],
)
def test_requests_that_are_refused(run, arguments, line):
    answer = shell(*arguments, cwd=run.folder)
    assert (answer.code, answer.out, answer.err) == (2, "", line + "\n")
