"""Scripts of one's own kernels: `run`, `time`, their files, and what goes wrong in them."""

import json
from pathlib import Path
from textwrap import dedent

import pytest

from cubecore.errors import RequestError
from cubecore.frontends.source_locations import KernelError
from cubecore.workflows.scripts.script import run_script, time_script
from workflows.command import BAD_REQUEST, DONE, FOUND, assert_refused, cli, shell

KERNEL = """
    import sys
    import numpy as np
    from cubecore import kernel

    @kernel(outputs="c")
    def add(core, a, c, waits=True):
        x = core.ubuf("float", 64)
        first = core.block_idx * 64
        for _ in range(3):
            core.asc_copy_gm2ub(x, a + first, 256)
            if waits:
                core.asc_sync()
            core.asc_add(x, x, x, 64)
            core.asc_sync()
            core.asc_copy_ub2gm(c + first, x, 256)
            core.asc_sync()
"""
MAIN = """
    if __name__ == "__main__":
        a, c = np.arange(256, dtype=np.float32), np.zeros(256, np.float32)
        add[4](a, c)
        print("launched", sys.argv[1:])
        assert (c == 2 * a).all(), "c is not a + a"
"""


@pytest.fixture
def script(tmp_path, monkeypatch):
    """Write a script into an empty working directory; give its name."""
    monkeypatch.chdir(tmp_path)

    def write(*parts, name="own.py"):
        text = "".join(dedent(part) for part in parts)
        (tmp_path / name).write_text(text, encoding="utf-8")
        return name

    return write


def line_of(script, text):
    lines = Path(script).read_text(encoding="utf-8").splitlines()
    return next(n for n, line in enumerate(lines, 1) if text in line)


# --- run


def test_a_script_that_is_right(script, capsys):
    run = run_script(script(KERNEL, MAIN), arguments=("one", "two"))
    assert (run.verified, run.failure, run.findings) == (True, None, ())
    assert [launch.kernel for launch in run.launches] == ["add"]
    assert capsys.readouterr().out == "launched ['one', 'two']\n"


def test_a_script_that_is_right_as_text_and_json(script):
    name = script(KERNEL, MAIN)
    answer = cli("run", name)
    assert answer.code == DONE
    assert answer.out.splitlines()[:4] == [
        "launched []",
        "own.py: verified",
        "",
        answer.out.splitlines()[3],
    ]
    assert answer.out.splitlines()[3].startswith("add[4] on Ascend910B3: 108 instructions in ")
    assert answer.out.splitlines()[4] == "  findings none"
    answer = cli("run", name, "--json")
    assert answer.err == "launched []\n"
    assert answer.json["verified"]
    assert answer.json["launches"][0]["blocks"] == 4
    keys = {"findings", "issued", "wall_s", "total_wall_s", "peak_bytes", "failure", "script"}
    assert keys <= set(answer.json)


LAUNCH = """
    import sys
    a = np.arange(64, dtype=np.float32)
    c = np.empty(64, np.float32)
    assert a.size == 64
    add[1](a, c)
"""
CHECKS = {
    "": False,
    "print((c == 2 * a).all())": False,
    "for _ in range(2): c.sum()": False,
    "assert (c == 2 * a).all()": True,
    "np.testing.assert_array_equal(c, 2 * a)": True,
    "if (c != 2 * a).any(): sys.exit(1)": True,
    "if (c != 2 * a).any():\n    raise SystemExit(1)": True,
    "if (c == 2 * a).all():\n    pass\nelse:\n    exit(1)": True,
    "if c is a: print(1)\nelif (c != 2 * a).any(): sys.exit(1)": True,
    "sys.exit(int((c != 2 * a).any()))": False,
    "sys.exit(0 if (c == 2 * a).all() else 1)": True,
    "sys.exit(0)": False,
    "if a.size != 64: raise ValueError('64')": False,
    "assert_it = print\nassert_it()": True,
    "def later(): assert False": False,
    "with open(__file__) as f: assert (c == 2 * a).all()": True,
}


UNCOMPARED = "finished, no findings; result not compared (give --expect c=...)"


@pytest.mark.parametrize("check", CHECKS)
def test_a_script_verifies_what_it_checks_after_a_launch(script, check):
    name = script(KERNEL, LAUNCH, "\n", check)
    run = run_script(name)
    assert (run.failure, run.findings, run.clean) == (None, (), True)
    assert run.verified == CHECKS[check]
    verdict = "verified" if CHECKS[check] else UNCOMPARED
    answer = cli("run", name)
    assert (answer.code, f"own.py: {verdict}" in answer.out.splitlines()) == (DONE, True)


def test_an_assertion_inside_a_kernel_checks_no_result(script):
    inside = KERNEL.replace(
        "core, a, c, waits=True):", "core, a, c, waits=True):\n        assert True"
    )
    assert inside != KERNEL
    run = run_script(script(inside, LAUNCH, "    add[1](a, c)"))
    assert (run.clean, run.verified) == (True, False)


def test_a_script_whose_kernel_races(script):
    name = script(KERNEL, MAIN.replace("add[4](a, c)", "add[4](a, c, waits=False)"))
    answer = cli("run", name, "--sarif", "found.sarif")
    assert answer.code == FOUND
    assert "own.py: FAILED: 1 finding\n" in answer.out
    assert f"asc_add (vadd) at own.py:{line_of(name, 'asc_add')} may read " in answer.out
    assert " (12 times; block 0 (core 0 AIV0))\n" in answer.out
    results = json.loads(Path("found.sarif").read_text())["runs"][0]["results"]
    assert {r["ruleId"] for r in results} >= {"race-raw"}
    place = results[0]["locations"][0]["physicalLocation"]
    assert place["artifactLocation"] == {"uri": "own.py"}
    assert cli("run", name, "--checks", "memcheck").code == DONE


def test_a_script_whose_assertion_fails(script):
    name = script(KERNEL, MAIN.replace("2 * a", "3 * a"))
    answer = cli("run", name)
    assert answer.code == FOUND
    assert answer.out.splitlines()[1:3] == [
        "own.py: FAILED: its own check",
        f"own.py:{line_of(name, 'assert')} (<module>): assertion failed: c is not a + a",
    ]


def test_other_ends_of_a_script(script):
    leave = """
    if __name__ == "__main__":
        a = np.zeros(64, np.float32)
        add[1](a, a)
        sys.exit({})
"""
    assert run_script(script(KERNEL, leave.format(0))).failure is None
    assert run_script(script(KERNEL, leave.format(3))).failure == "own.py ended with exit code 3"


@pytest.mark.parametrize(
    ("text", "line"),
    [
        (
            "x = 1 / 0",
            "own.py:1 (<module>): the script raised ZeroDivisionError: division by zero",
        ),
        ("def f(:", "own.py:1: invalid syntax"),
        (
            "print(1)",
            "own.py launches no kernel; call kernel[blocks](...) under `if __name__ == "
            '"__main__":`',
        ),
        (
            "import nowhere",
            "own.py:1 (<module>): the script raised ModuleNotFoundError: No module named 'nowhere'",
        ),
    ],
)
def test_a_script_that_cannot_be_run(script, text, line):
    for command in (run_script, time_script):
        with pytest.raises((RequestError, KernelError)) as error:
            command(script(text))
        assert str(error.value) == line
    answer = cli("run", "own.py", "--json")
    assert answer.json["error"]["message"] == line
    assert answer.code in {FOUND, BAD_REQUEST}


def test_an_error_in_a_kernel_is_one_line(script):
    name = script(KERNEL.replace("asc_add(x, x, x, 64)", "asc_add(x, x, 64)"), MAIN)
    answer = cli("run", name)
    assert (answer.code, answer.out) == (FOUND, "")
    assert answer.err == (
        f"own.py:{line_of(name, 'asc_add')} (add): asc_add.src1 must be a pointer into UB, got 64; "
        "core.ubuf.at(type, address) makes one of an address\n"
    )


def test_options_of_products_are_left_out_with_a_script(script):
    name = script(KERNEL, MAIN)
    assert_refused(cli("run", name, "--m", "4"), "--m does not apply to a script")
    assert_refused(
        cli("time", name, "--tiling", "t.json"),
        "--tiling does not apply to a script",
    )
    assert_refused(cli("run", "nowhere.py"), "cannot read nowhere.py: no such file")
    assert_refused(
        cli("run", "nowhere"),
        "SCRIPT must be a Python file, or a file of C++ kernels, got 'nowhere'",
    )


def test_the_chip_and_its_fields_are_the_commands(script):
    name = script(KERNEL, MAIN)
    answer = cli("run", name, "--chip", "Ascend910_9391", "--json")
    assert answer.json["launches"][0]["chip"] == "Ascend910_9391"
    times = [
        cli("time", name, "--json", *options).json["cycles"]
        for options in ((), ("--set", "launch_cycles=90000"))
    ]
    assert times[1] > times[0]


# --- time


def test_the_reference_engine_runs_a_script(script):
    name = script(KERNEL, MAIN)
    cases = {"lockstep": ([], ["--engine", "lockstep"])}
    cases["reference"] = (["--engine", "reference"], ["--engine", "blas"], ["--order", "late"])
    for words, engine in ((words, engine) for engine, lines in cases.items() for words in lines):
        answer = cli("run", name, "--json", *words)
        assert [launch["engine"] for launch in answer.json["launches"]] == [engine]


def test_where_the_cycles_of_a_script_go(script):
    name = script(KERNEL, MAIN)
    timed = time_script(name)
    (launch,) = timed.launches
    assert launch.title == "add[4] on Ascend910B3"
    assert launch.timeline.issued == 108
    assert launch.timeline.pipes["V"] > 0
    assert launch.timeline.read_bytes == 3 * 1024
    assert launch.timeline.written_bytes == 3 * 1024
    answer = cli("time", name, "--json")
    keys = "us cycles limited_by tflops utilisation pipes stalls cores simulated_fraction"
    assert set(keys.split()) <= set(answer.json)
    assert answer.json["launches"][0]["cycles"] == answer.json["cycles"] == launch.timeline.cycles
    assert "Pipe busy, average over cores" in cli("time", name).out


def test_more_trips_take_longer(script):
    short = time_script(script(KERNEL, MAIN))
    long = time_script(script(KERNEL.replace("range(3)", "range(60)"), MAIN))
    assert long.longest.timeline.cycles > short.longest.timeline.cycles


def test_the_report_and_the_trace_of_a_script(script):
    name = script(KERNEL, MAIN.replace("add[4](a, c)", "add[4](a, c, waits=False)"))
    answer = cli("time", name, "--report", "page.html", "--trace", "trace.json")
    assert answer.code == FOUND  # of what is timed there are findings
    page = Path("page.html").read_text(encoding="utf-8")
    assert "<title>add[4] on Ascend910B3</title>" in page
    data = page.split('id="data">')[1].split("</script>")[0]
    shown = json.loads(data)
    assert shown["answer"]["issued"] == 96
    assert {f["id"] for f in shown["findings"]} >= {"race-raw"}
    assert "tiling" not in shown
    assert [g["label"] for g in shown["timeline"]["groups"]] == ["4 AIVs of cores 0..1 add"]
    trace = json.loads(Path("trace.json").read_text())
    assert trace["otherData"]["problem"] == "add[4] on Ascend910B3"
    assert {e["name"] for e in trace["traceEvents"]} >= {"copy_gm_to_ubuf", "vadd"}
    threads = {e["args"].get("name") for e in trace["traceEvents"] if e["name"] == "thread_name"}
    assert "MTE2 (GM to UB)" in threads


def test_a_script_that_fails_is_not_timed(script):
    name = script(KERNEL, MAIN.replace("2 * a", "3 * a"))
    with pytest.raises(KernelError, match=r"^own\.py must verify before it is timed, got own\.py:"):
        time_script(name)


def test_an_interrupt_leaves_no_file(script):
    name = script(KERNEL, "raise KeyboardInterrupt\n")
    answer = shell("run", name, "--sarif", "found.sarif")
    assert answer.code == 130
    assert answer.out == ""
    assert not Path("found.sarif").exists()


@pytest.mark.parametrize(
    ("text", "line"),
    [
        (b"x = 1\0\n", "own.py: source code string cannot contain null bytes"),
        (b"x = " + b"{" * 300 + b"\n", "own.py:1: too many nested parentheses"),
    ],
)
@pytest.mark.usefixtures("script")
def test_a_text_that_python_does_not_parse(text, line):
    Path("own.py").write_bytes(text)
    assert_refused(cli("run", "own.py"), line)


@pytest.mark.parametrize("sign", ["not ", "-"])
@pytest.mark.usefixtures("script")
def test_a_text_too_deep_for_pythons_parser(sign):
    Path("own.py").write_text(f"x = {sign * 20000}1\n")
    for verb in ("run", "time"):
        answer = cli(verb, "own.py")
        assert answer.code in {FOUND, BAD_REQUEST}
        assert answer.err.startswith("own.py")
        assert answer.err.count("\n") == 1


def test_a_long_name_of_a_kernel_is_shown_by_its_beginning(script):
    name = script(
        KERNEL.replace("def add(", f"def {'n' * 90_000}(").replace("add[4]", f"{'n' * 90_000}[4]"),
        MAIN.replace("add[4]", f"{'n' * 90_000}[4]"),
    )
    shown = f"{'n' * 400}... (90000 characters)"
    answer = cli("time", name, "--report", "page.html", "--trace", "trace.json")
    assert f"{shown}[4] on Ascend910B3" in answer.out
    for page in ("page.html", "trace.json"):
        assert Path(page).stat().st_size < 300_000
        assert "n" * 401 not in Path(page).read_text("utf-8")
