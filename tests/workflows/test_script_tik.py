"""`run` and `time` of TIK programs: their modules are there, their findings and lines are told."""

import sys
from textwrap import dedent

import pytest

from cubecore.frontends.tik.host.imports import imports_tik
from cubecore.frontends.tik.host.program import main
from workflows.command import BAD_REQUEST, DONE, FOUND, assert_refused, cli

PROGRAM = """
    import numpy as np
    from tbe import tik
    from tbe.common import platform

    platform.set_current_compile_soc_info(SOC)
    t = tik.Tik()
    x, y = (t.Tensor("float16", (128,), tik.scope_gm, name) for name in ("x", "y"))
    ub = t.Tensor("float16", (128,), tik.scope_ubuf, "ub")
    t.data_move(ub, x, 0, 1, 8, 0, 0)
    t.vec_adds(128, ub, ub, 1.0, 1, 8, 8)
    t.data_move(y, ub, 0, 1, 8, 0, 0)
    t.BuildCCE("add_one", [x], [y])
"""
MAIN = """
    (got,) = t.tikdb.start_debug({"x": np.arange(128, dtype=np.float16)})
    assert (got == np.arange(128) + 1).all(), "y is not x + 1"
"""


@pytest.fixture
def program(tmp_path, monkeypatch):
    """Write a program into an empty working directory; give its name."""
    monkeypatch.chdir(tmp_path)

    def write(*parts, soc="Ascend910B3", name="own.py"):
        text = "".join(dedent(part) for part in parts).replace("SOC", repr(soc))
        (tmp_path / name).write_text(text, encoding="utf-8")
        return name

    return write


def test_a_program_runs_and_is_timed(program):
    name = program(PROGRAM, MAIN)
    answer = cli("run", name, "--json")
    assert (answer.code, answer.err, answer.json["verified"]) == (DONE, "", True)
    (launch,) = answer.json["launches"]
    assert (launch["kernel"], launch["blocks"], launch["chip"]) == ("add_one", 1, "Ascend910B3")
    timed = cli("time", name, "--json")
    assert (timed.code, timed.err) == (DONE, "")
    busy = {n for n, pipe in timed.json["pipes"].items() if pipe["busy_cycles"]}
    assert {"MTE2", "V", "MTE3"} <= busy
    assert "tbe" not in sys.modules


def test_the_command_line_replaces_the_chip(program):
    name = program(PROGRAM, MAIN, soc="Ascend310")
    answer = cli("run", name, "--json", "--chip", "Ascend910A")
    assert answer.json["launches"][0]["chip"] == "Ascend910A"
    assert_refused(
        cli("run", name, "--set", "ub_user_bytes=128"),
        "own.py:9: the tensors of UB must take at most 128 B together, got 256 B; the largest are "
        "ub 256 B",
    )


def test_findings_are_told_once(program):
    beyond = PROGRAM.replace("(y, ub, 0", "(y[64], ub, 0")
    answer = cli("run", program(beyond, MAIN.replace("+ 1", "* got")))
    assert (answer.code, answer.err) == (FOUND, "")
    assert answer.out.count("own.py:12") == 1


def test_a_failed_assertion_does_not_verify(program, capsys):
    name = program(PROGRAM, MAIN.replace("+ 1).", "+ 2)."))
    answer = cli("run", name)
    told = "own.py:16 (<module>): assertion failed: y is not x + 1"
    assert (answer.code, answer.out.splitlines()[1]) == (FOUND, told)
    assert main([name]) == FOUND
    assert capsys.readouterr().err == f"{told}\n"


def test_the_module_runs_a_program_on_its_own(program, capsys):
    assert main([program(PROGRAM, MAIN)]) == DONE
    assert main([]) == BAD_REQUEST
    assert main(["none.py"]) == BAD_REQUEST
    usage, missing = capsys.readouterr().err.splitlines()
    assert usage == "usage: python -m cubecore.frontends.tik PROGRAM.py [ARGUMENT...]"
    assert missing == "PROGRAM must be a file, got none.py"


REFUSED = [
    ("\nt.tikdb.start_debug({})", "own.py:15: input 'x' has no feed"),
    ("\nt.vfancy(1)", "own.py:15: tik.vfancy is not supported: no page documents it"),
]  # fmt: skip


@pytest.mark.parametrize(("more", "message"), REFUSED)
def test_refusals(program, more, message):
    assert_refused(cli("run", program(PROGRAM, more)), message)


def test_what_imports_tik(program, tmp_path):
    for text, expected in {
        "from te import tik": True,
        "import tbe.common.platform as p": True,
        "from impl.util.platform_adapter import tik": True,
        "import tensor": False,
        "from . import tbe": False,
        "from te import (": False,
    }.items():
        assert imports_tik(program(text)) is expected, text
    assert not imports_tik(str(tmp_path))


def test_a_programs_own_error_names_its_line(program):
    answer = cli("run", program(PROGRAM, "\n1 / 0"))
    told = "the script raised ZeroDivisionError: division by zero"
    assert (answer.code, answer.err) == (FOUND, f"own.py:15 (<module>): {told}\n")
