"""The command line: what each command prints, and what it says to a bad request."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import cubecore
from cubecore.chips import chip_names
from cubecore.cli.console import CommandGroup
from cubecore.isa.catalogue import instructions
from cubecore.machine.finding_kinds import FINDING_IDS
from cubecore.tiling.rules.checker import rules
from workflows.command import (
    BAD_REQUEST,
    DONE,
    FOUND,
    PROBLEM,
    assert_refused,
    cli,
    names_in,
    shell,
)
from workflows.folders import folder, on_shelf, shelf  # noqa: F401 - fixtures

# ruff: noqa: F811 - fixtures are arguments

# --- what the commands print

KEYS = {
    "plan": "problem tiling predicted lower_bound_us alternatives",
    "run": "verified max_abs_error max_rel_error tolerance policy findings wall_s verify_wall_s "
    "total_wall_s reference_wall_s peak_bytes",
    "time": "us cycles limited_by tflops utilisation pipes stalls cores simulated_fraction",
}


@pytest.mark.parametrize("command", KEYS)
def test_json_has_the_contracts_keys(command):
    answer = cli(command, *PROBLEM, "--json")
    assert answer.code == DONE
    assert answer.err == ""
    assert set(KEYS[command].split()) <= set(answer.json)
    assert answer.out.count("\n") == 1


def test_check_prints_legal_findings_and_advice(on_shelf):
    assert on_shelf
    legal = cli("check", "good.json", *PROBLEM, "--json")
    assert legal.code == DONE
    assert legal.json["legal"]
    assert legal.json["findings"] == []
    illegal = cli("check", "illegal.json", *PROBLEM, "--json")
    assert illegal.code == FOUND
    (finding,) = illegal.json["findings"]
    assert finding["rule"] == "BASE-M-ALIGNMENT"
    assert set(finding) >= {"rule", "used", "limit", "unit", "message", "remedy", "source"}


def test_check_says_what_is_wrong_and_where_it_is_written(on_shelf):
    assert on_shelf
    answer = cli("check", "illegal.json", *PROBLEM)
    assert answer.code == FOUND
    assert answer.out.splitlines()[:3] == [
        "illegal: 1 rule broken",
        "  BASE-M-ALIGNMENT: baseM = 24, must be a multiple of 16; set baseM to 16",
        "    TCubeTiling structure, newer edition, table 2",
    ]
    assert cli("check", "good.json", *PROBLEM).out.splitlines()[0] == "legal"


@pytest.mark.parametrize("name", ["good.json", "good.bin", "good.h"])
def test_a_tiling_may_be_json_a_blob_or_a_header(on_shelf, name):
    assert on_shelf
    assert cli("check", name, *PROBLEM).code == DONE
    assert cli("run", "--tiling", name, *PROBLEM).code == DONE


@pytest.mark.parametrize("command", ["run", "time"])
def test_an_illegal_tiling_is_neither_run_nor_timed(on_shelf, command):
    assert on_shelf
    line = "BASE-M-ALIGNMENT: baseM = 24, must be a multiple of 16; set baseM to 16"
    answer = cli(command, "--tiling", "illegal.json", *PROBLEM)
    assert (answer.code, answer.out, answer.err) == (FOUND, "", line + "\n")
    as_json = cli(command, "--tiling", "illegal.json", *PROBLEM, "--json")
    assert as_json.code == FOUND
    assert as_json.json["error"]["message"] == line
    assert as_json.json["error"]["findings"][0]["rule"] == "BASE-M-ALIGNMENT"


TWO_RULES = (
    "BASE-M-ALIGNMENT: baseM = 24, must be a multiple of 16; set baseM to 16",
    "BASE-N-ALIGNMENT: baseN = 24, must be a multiple of 16; set baseN to 16",
)


@pytest.mark.parametrize("command", ["run", "time"])
def test_each_rule_that_a_tiling_breaks_is_a_line(on_shelf, command):
    assert on_shelf
    answer = cli(command, "--tiling", "twice_illegal.json", *PROBLEM)
    assert (answer.code, answer.out, answer.err) == (FOUND, "", "\n".join(TWO_RULES) + "\n")
    as_json = cli(command, "--tiling", "twice_illegal.json", *PROBLEM, "--json")
    assert (as_json.code, as_json.err) == (FOUND, "")
    assert as_json.json["error"]["message"] == "\n".join(TWO_RULES)
    shown = cli("check", "twice_illegal.json", *PROBLEM, "--json").json["findings"]
    assert as_json.json["error"]["findings"] == shown
    assert [finding["message"] for finding in shown] == list(TWO_RULES)


def test_compare_shows_each_rule_that_a_tiling_breaks(on_shelf):
    assert on_shelf
    answer = cli("compare", "twice_illegal.json", "good.json", *PROBLEM)
    assert (answer.code, answer.err) == (FOUND, "")
    assert [line for line in answer.out.splitlines() if "ALIGNMENT" in line] == [
        f"twice_illegal.json: {line}" for line in TWO_RULES
    ]
    as_json = cli("compare", "twice_illegal.json", "good.json", *PROBLEM, "--json")
    assert (as_json.code, as_json.err) == (FOUND, "")
    shown = cli("check", "twice_illegal.json", *PROBLEM, "--json").json["findings"]
    assert as_json.json["tilings"][0]["findings"] == shown


def test_compare_of_two_tilings(on_shelf):
    assert on_shelf
    same = cli("compare", "good.json", "good.bin", *PROBLEM, "--json")
    assert same.code == DONE
    assert same.json["ratio"] == 1
    assert same.json["differing"] == {}
    other = cli("compare", "good.json", "illegal.json", *PROBLEM, "--json")
    assert other.code == FOUND
    assert other.json["ratio"] is None
    assert other.json["differing"] == {"baseM": [16, 24]}
    *_, last = cli("compare", "good.json", "good.bin", *PROBLEM).out.splitlines()
    assert last.startswith("good.json and good.bin take the same time (")


def test_chips_lists_every_chip():
    answer = cli("chips")
    assert answer.code == DONE
    assert [line.split()[0] for line in answer.out.splitlines()[1:]] == list(chip_names())
    listed = cli("chips", "--json").json["chips"]
    assert [sheet["name"] for sheet in listed] == list(chip_names())


@pytest.mark.parametrize("name", chip_names())
def test_every_chip_has_a_sheet(name):
    assert cli("chips", name).out.startswith(f"{name}: architecture ")
    facts = cli("chips", name, "--json").json["facts"]
    assert all(set(fact) >= {"value", "source", "reliability"} for fact in facts.values())


def test_a_what_if_chip_shows_what_was_replaced():
    facts = cli("chips", "Ascend910B3", "--set", "aic_count=3", "--json").json["facts"]
    assert facts["aic_count"]["value"] == 3
    assert facts["aic_count"]["source"] == "--set"


@pytest.mark.thinned(4)
@pytest.mark.parametrize("share", range(4))
def test_everything_that_has_a_name_is_explained(share):
    names = [rule.id for rule in rules()]
    names += [name for cls in instructions().values() for name in (cls.name, *cls.names.values())]
    names += FINDING_IDS
    for name in names[share::4]:
        answer = cli("explain", name, "--json")
        assert answer.code == DONE, name
        assert set(answer.json) == {"name", "kind", "text", "manual"}
        assert answer.json["text"] == cli("explain", name).out


def test_the_plan_as_text_names_the_product_and_the_tiling():
    lines = cli("plan", "--m", 100, "--n", 200, "--k", 300, "--trans-a", "--relu").out.splitlines()
    assert lines[0] == (
        "C[100x200] float32 = A[300x100]^T float16 x B[300x200] float16, relu on Ascend910B3"
    )
    assert lines[2] == "Tiling"
    assert lines[3].split()[0] == "usedCoreNum"
    assert any(line.startswith("Predicted ") for line in lines)


def test_what_the_library_calls_a_type_is_understood():
    answer = cli("plan", *PROBLEM, "--a", "half", "--c", "DT_FLOAT", "--json")
    assert (answer.json["problem"]["a"], answer.json["problem"]["c"]) == ("float16", "float32")


@pytest.mark.parametrize("command", [(), ("plan",), ("check",), ("run",), ("time",), ("compare",)])
@pytest.mark.parametrize("option", ["--help", "-h"])
def test_help(command, option):
    answer = cli(*command, option)
    assert (answer.code, answer.err) == (DONE, "")
    assert answer.out.startswith("Usage: ")


def test_version():
    assert cli("--version").out == f"cubecore, version {cubecore.__version__}\n"


# --- bad requests, each as a whole line

NARROW = "TCubeTiling is int32"
WIDE = 10**30
NO_NAME = (
    "NAME must be a rule, a field, an instruction, a name of the class API or of TIK, a finding, "
    "advice, a chip or a term of the glossary, got"
)
B_NAMES = "Ascend910B1, Ascend910B2, Ascend910B2C, Ascend910B3, Ascend910B4, Ascend910B4-1"
LINES = [
    (["plan", "--m", 0, "--n", 1, "--k", 1], "m must be at least 1, got 0"),
    (["run", "--m", 1, "--n", -3, "--k", 1], "n must be at least 1, got -3"),
    (
        ["time", "--m", WIDE, "--n", 1, "--k", 1],
        f"m must be at most 2147483647, got {WIDE}; {NARROW}",
    ),
    (
        ["plan", "--m", 1, "--n", 1, "--k", 2**31],
        f"k must be at most 2147483647, got 2147483648; {NARROW}",
    ),
    (["plan", *PROBLEM, "--kb", 0], "kb must be at least 1, got 0"),
    (["plan", *PROBLEM, "--cores", 0], "cores must be at least 1, got 0"),
    (
        ["plan", *PROBLEM, "--c", "int8"],
        "c must be float32 or float16 or bfloat16 without epilogue.quant (Mmad, table 4: mad "
        "gives float32), got int8; epilogue.quant writes others: QF322B8_PRE to int8, "
        "VQF322B8_PRE to int8",
    ),
    (
        ["run", *PROBLEM, "--a", "int8", "--b", "float16"],
        "a and b must be types that arch 2201 multiplies (int8 by int8, float16 by float16, "
        "float32 by float32, bfloat16 by bfloat16, int4 by int4: Mmad, table 4), got int8 by "
        "float16",
    ),
    (
        ["plan", *PROBLEM, "--a", "float8_e5m2"],
        "a and b must be types that arch 2201 multiplies (int8 by int8, float16 by float16, "
        "float32 by float32, bfloat16 by bfloat16, int4 by int4: Mmad, table 4), got "
        "float8_e5m2 by float8_e5m2",
    ),
    (
        ["plan", *PROBLEM, "--bias", "int32"],
        "bias must be float32 or float16 for float16 by float16 (Mmad, table 5), got int32",
    ),
    (
        ["plan", *PROBLEM, "--chip", "910B"],
        "chip must be the full name of a SoC, got '910B'; 910B may mean Ascend910B, " + B_NAMES,
    ),
    (
        ["run", *PROBLEM, "--chip", "A2"],
        "chip must be the full name of a SoC, got 'A2'; A2 may mean " + B_NAMES,
    ),
    (
        ["chips", "nothing"],
        "chip must be the full name of a SoC, got 'nothing'; cubecore chips lists them",
    ),
    (
        ["run", *PROBLEM, "--chip", "Ascend310B1"],
        "run supports architectures 2201, 3510, 3003 and 3113; Ascend310B1 is 3002 (plan and "
        "check support it)",
    ),
    (
        ["time", *PROBLEM, "--chip", "Ascend310P3"],
        "time supports architectures 2201 and 3510; Ascend310P3 is 2002 (plan and check support "
        "it)",
    ),
    (
        ["plan", *PROBLEM, "--set", "aic=3"],
        "--set: no chip field named aic; `cubecore chips NAME` lists them",
    ),
    (["plan", *PROBLEM, "--set", "aic_count"], "--set must be FIELD=VALUE, got 'aic_count'"),
    (["chips", "Ascend910B3", "--set", "=3"], "--set must be FIELD=VALUE, got '=3'"),
    (
        ["plan", *PROBLEM, "--set", "aic_count=nan"],
        "--set aic_count must be a whole number, got 'nan'",
    ),
    (
        ["plan", *PROBLEM, "--set", "gm_to_l1_bytes_per_cycle=nan"],
        "--set gm_to_l1_bytes_per_cycle must be greater than 0 and finite, got nan",
    ),
    (
        ["plan", *PROBLEM, "--set", "gm_to_l1_bytes_per_cycle=inf"],
        "--set gm_to_l1_bytes_per_cycle must be greater than 0 and finite, got inf",
    ),
    (
        ["plan", *PROBLEM, "--set", "aic_count=-3"],
        "--set aic_count must be greater than 0 and finite, got -3",
    ),
    (
        ["plan", *PROBLEM, "--set", "cube_k=3"],
        "--set cannot replace cube_k, a table of several numbers",
    ),
    (
        ["explain", "qqqqqq"],
        f"{NO_NAME} 'qqqqqq'",
    ),
    (
        ["explain", "L0A-CAPACTY"],
        f"{NO_NAME} 'L0A-CAPACTY'; did you mean L0A-CAPACITY?",
    ),
    (
        ["explain", "FACTOR-K"],
        f"{NO_NAME} 'FACTOR-K'; did you mean MX-FACTOR-KA or MX-FACTOR-KB?",
    ),
    (
        ["explain", "race"],
        f"{NO_NAME} 'race'; did you mean simt-race or race-raw or race-war or race-waw or vf-race?",
    ),
    (
        ["check", "none.json", *PROBLEM],
        "cannot read none.json: no such file",
    ),
    (
        ["run", *PROBLEM, "--tiling", "none.json"],
        "cannot read none.json: no such file",
    ),
    (
        ["run", *PROBLEM, "--a-file", "none.npy"],
        "cannot read --a-file none.npy: no such file",
    ),
    (
        ["run", *PROBLEM, "--bias-file", "a.npy"],
        "--bias-file needs --bias TYPE",
    ),
]


@pytest.mark.parametrize(("arguments", "line"), LINES, ids=lambda x: str(x)[:50])
def test_a_bad_request_is_one_line_and_nothing_else(folder, arguments, line):
    assert_refused(cli(*arguments), line)
    as_json = cli(*arguments, "--json")
    assert (as_json.code, as_json.err) == (BAD_REQUEST, "")
    assert set(as_json.json) == {"error"}
    assert as_json.json["error"]["message"] == line
    assert names_in(folder) == []


def test_sizes_that_are_missing_are_named_as_they_are_typed():
    assert_refused(cli("plan"), "missing --m, --n, --k")
    assert cli("plan", "--json").json["error"]["message"] == "missing m, n, k"


# --- usage


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (["frobnicate"], "no such command 'frobnicate'; cubecore --help lists the commands"),
        (["store", "x"], "no such command 'x'; cubecore store --help lists the commands"),
        (
            ["plan", "--frobnicate"],
            "no such option '--frobnicate'; cubecore plan --help lists arguments and options",
        ),
        (
            ["explain"],
            "missing argument 'NAME'; cubecore explain --help lists arguments and options",
        ),
        (["plan", "-m", "4"], "no such option '-m'; did you mean --m?"),
        (["plan", "--trans"], "no such option '--trans'; did you mean --trans-a or --trans-b?"),
        (["plan", "--alternativs"], "no such option '--alternativs'; did you mean --alternatives?"),
        (["time", "--metric", "4"], "no such option '--metric'; did you mean --metrics?"),
    ],
)
def test_a_request_that_is_not_understood_exits_with_2(arguments, line):
    answer = cli(*arguments)
    assert (answer.code, answer.out, answer.err) == (BAD_REQUEST, "", f"{line}\n")
    assert cli(*arguments, "--json").json["error"]["message"] == line


LONG = "x" * 5000


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (["run", f"{LONG}.py"], f"cannot read {LONG}.py: file name too long"),
        (["time", f"{LONG}.cpp"], f"cannot read {LONG}.cpp: file name too long"),
        (["check", LONG], f"cannot read {LONG}: file name too long"),
        (["check", f"{LONG}#2"], f"cannot read {LONG}: file name too long"),
        (["sample", LONG], f"{LONG} has no CMakeLists.txt"),
        (
            ["plan", "--m", "4", "--queries", LONG],
            f"cannot read --queries {LONG}: file name too long",
        ),
        (
            ["chips", "--frobnicate", LONG],
            "no such option '--frobnicate'; cubecore chips --help lists arguments and options",
        ),
    ],
    ids=["script", "C++", "tiling", "one tiling of many", "sample", "queries", "usage"],
)
def test_a_name_that_no_file_can_have_is_refused(arguments, line):
    answer = cli(*arguments)
    assert (answer.code, answer.out, answer.err) == (BAD_REQUEST, "", f"{line}\n")


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (["plan", "--m", "x"], "--m must be an integer, got 'x'"),
        (["time", *PROBLEM, "--step", "X"], "--step must be MDL, NORM, CONSTANT or BASIC, got 'X'"),
    ],
)
def test_a_value_of_the_wrong_kind_is_refused_in_the_usual_form(arguments, line):
    assert cli(*arguments).err.startswith(line)


def test_a_misspelt_rule_in_lower_case_is_answered_with_the_nearest():
    assert "did you mean L0A-CAPACITY?" in cli("explain", "l0a-capacty").err


def test_no_command_at_all():
    answer = cli()
    assert answer.err.startswith("Usage: ") or answer.err.count("\n") == 1


@pytest.mark.parametrize("command", [("chips",), ("explain", "L0A-CAPACITY")])
def test_every_command_takes_chip(command):
    assert cli(*command, "--chip", "Ascend910B3").code == DONE


# --- requests that are well formed and cannot be met


def test_a_negative_seed_is_refused():
    assert_refused(cli("run", *PROBLEM, "--seed", -1), "seed must be at least 0, got -1")


def test_a_type_that_cannot_be_transposed_is_refused():
    assert cli("run", *PROBLEM, "--a", "int4", "--trans-a").code == BAD_REQUEST


@pytest.mark.parametrize("command", ["run", "time"])
def test_a_result_type_that_the_kernel_does_not_write_is_refused(command):
    answer = cli(command, *PROBLEM, "--c", "int8")
    assert answer.code == BAD_REQUEST


def test_a_product_that_would_be_timed_for_days_is_refused():
    answer = cli("time", "--full", "--m", 200_000, "--n", 200_000, "--k", 200_000)
    assert answer.code == BAD_REQUEST
    assert answer.err.startswith(
        "a core must take at most 50,000,000 base-K steps to be timed one by one, got "
    )
    assert answer.err.endswith("; without --full what recurs is skipped\n")


def test_operands_beyond_memory_are_refused():
    extents = ("--m", 4_000_000, "--n", 16, "--k", 4_000_000)
    assert cli("run", *extents).code == BAD_REQUEST


@pytest.mark.parametrize("field", ["l0a_bytes", "l0b_bytes", "l1_user_bytes"])
def test_a_what_if_size_beyond_any_memory_is_refused(field):
    assert cli("plan", *PROBLEM, "--set", f"{field}={10**25}").code == BAD_REQUEST


def test_a_what_if_rate_that_is_next_to_nothing_is_refused():
    answer = cli("plan", *PROBLEM, "--set", "gm_to_l1_bytes_per_cycle=1e-300", "--json")
    assert answer.code == BAD_REQUEST or answer.json["predicted"]["cycles"] > 0


# --- processes


def test_a_bad_request_to_a_real_process(folder):
    assert folder
    line = "m must be at least 1, got -1"
    assert_refused(shell("plan", "--m", -1, "--n", 1, "--k", 1), line)
    as_json = shell("plan", "--m", -1, "--n", 1, "--k", 1, "--json")
    assert (as_json.code, as_json.err) == (BAD_REQUEST, "")
    assert as_json.json["error"]["message"] == line


def test_the_installed_command_answers():
    command = shutil.which("cubecore", path=Path(sys.executable).parent)
    assert command is not None
    done = subprocess.run([command, "run", *PROBLEM], capture_output=True, text=True, check=False)
    assert done.returncode == DONE
    assert "\nverified: " in done.stdout
    assert done.stderr == ""


def test_names_that_are_no_utf8_are_told_back(folder):
    assert folder
    answer = subprocess.run(
        [sys.executable, "-m", "cubecore", "check", b"\xff.json", *PROBLEM],
        capture_output=True,
        check=False,
    )
    assert answer.returncode == BAD_REQUEST
    assert b"Traceback" not in answer.stderr


def closed_pipe(*arguments):
    """Run a command whose reader has gone away."""
    reader, writer = os.pipe()
    os.close(reader)
    try:
        return shell(*arguments, capture_output=False, stdout=writer, stderr=subprocess.PIPE)
    finally:
        os.close(writer)


@pytest.mark.parametrize("arguments", [("chips",), ("plan", *PROBLEM, "--json"), ("--help",)])
def test_a_reader_that_goes_away_is_no_error_to_tell(arguments):
    assert closed_pipe(*arguments).err == ""


def test_a_reader_that_goes_away_does_not_look_like_findings():
    assert closed_pipe("chips").code == 141


def test_a_reader_that_goes_away_before_an_error_is_told():
    assert "Traceback" not in closed_pipe("plan", "--m", 0, "--n", 1, "--k", 1, "--json").err


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full here")
def test_a_full_disk_under_stdout_is_one_line():
    with Path("/dev/full").open("w") as full:
        answer = shell("chips", capture_output=False, stdout=full, stderr=subprocess.PIPE)
    assert "Traceback" not in answer.err


def handles_interrupts(pid):
    """Whether Python has begun to: before that, the signal ends the process where it stands.

    Before its own program begins, the process is still a copy of this one, which handles them.
    """
    status = Path(f"/proc/{pid}/status")
    if not status.exists():
        return True
    if b"cubecore\0time" not in Path(f"/proc/{pid}/cmdline").read_bytes():
        return False
    (caught,) = (x for x in status.read_text("utf-8").splitlines() if x.startswith("SigCgt"))
    return bool(int(caught.split()[1], 16) >> (signal.SIGINT - 1) & 1)


def test_ctrl_c_leaves_no_traceback_and_no_file(folder):
    extents = ("--m", "60000", "--n", "60000", "--k", "60000")
    process = subprocess.Popen(
        [sys.executable, "-m", "cubecore", "time", "--full", *extents],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        # A run in the background may have told its children to ignore the signal.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # noqa: PLW1509
    )
    while process.poll() is None and not handles_interrupts(process.pid):
        time.sleep(0.05)
    time.sleep(2.0)  # from Python's start to the command's work
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=30)
    # Where it strikes while records are made, Python itself ends by the signal: 130 to a shell.
    assert process.returncode in {130, -signal.SIGINT}
    assert (out, err.strip(), names_in(folder)) == ("", "", [])


def test_ctrl_c_while_a_class_is_made_leaves_no_traceback(capsys):
    group = CommandGroup()

    @group.command()
    def strike():
        raise RuntimeError("Error calling __set_name__") from KeyboardInterrupt()

    with pytest.raises(SystemExit) as left:
        group.main(["strike"])
    assert left.value.code == 130
    assert capsys.readouterr() == ("", "")


# --- checks


def test_checks_are_words():
    assert_refused(
        cli("run", *PROBLEM, "--checks", "memcheck,racechek"),
        "a check must be memcheck, initcheck, racecheck, synccheck, usecheck, usual, all or none, "
        "got 'racechek'; did you mean racecheck?",
    )
    for words in ("none", "racecheck", "memcheck,synccheck"):
        assert cli("run", *PROBLEM, "--checks", words, "--json").json["verified"]


def test_findings_go_to_a_sarif_file(tmp_path):
    path = tmp_path / "findings.sarif"
    assert cli("run", *PROBLEM, "--sarif", str(path)).code == DONE
    document = json.loads(path.read_text(encoding="utf-8"))
    assert document["runs"][0]["results"] == []
    nowhere = tmp_path / "no" / "f.sarif"
    assert_refused(
        cli("run", *PROBLEM, "--sarif", nowhere),
        f"cannot write --sarif {nowhere}: no such file or directory",
    )
