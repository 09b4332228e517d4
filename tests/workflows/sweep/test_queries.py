"""plan --queries and store on the command line, with real processes that are killed."""

import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from cubecore.workflows.sweep import resume
from cubecore.workflows.sweep.answers import model_version
from cubecore.workflows.sweep.pool import CHUNK
from workflows.command import BAD_REQUEST, DONE, FOUND, assert_refused, cli, names_in, shell
from workflows.sweeps import assert_whole, expected, problems, stored, write_queries

ARGUMENTS = ("--alternatives", 0)
MANY = 64
"""Problems of a sweep that is killed before its end."""
SHELL = [sys.executable, "-m", "cubecore"]


def lines_of(text):
    return [json.loads(line) for line in text.splitlines()]


def test_answers_are_lines_in_the_order_of_the_queries(tmp_path):
    asked = problems(20)
    path = write_queries(tmp_path / "q.jsonl", asked)
    answer = cli("plan", "--queries", path, *ARGUMENTS)
    assert (answer.code, answer.err) == (DONE, "")
    assert lines_of(answer.out) == expected(asked)


def test_options_are_what_the_lines_leave_out(tmp_path):
    path = write_queries(tmp_path / "q.jsonl", [{"m": 5}, {"m": 5, "k": 9, "a": "int8"}])
    options = ("--n", 6, "--k", 7, "--a", "half", "--trans-b", "--cores", 2)
    answer = cli("plan", "--queries", path, *options, *ARGUMENTS)
    rest = {"m": 5, "n": 6, "trans_b": True, "cores": 2}
    want = [rest | {"k": 7, "a": "float16"}, rest | {"k": 9, "a": "int8"}]
    assert lines_of(answer.out) == expected(want)


BROKEN = b"""{"m": 16, "n": 16, "k": 16, "cores": 1}
not json

{"m": 16, "n": 16}
[1, 2]
{"m": 1, "n": 1, "k": 1, "m": 2}
\xff\xfe
{"m": 16, "n": 16, "k": 16, "chip": "Ascend910BX"}
{"m": 16, "n": 16, "k": 16, "batch": -1}
{"m": 32, "n": 16, "k": 16, "cores": 1}"""


def test_broken_lines_are_named_and_do_not_stop_the_rest(tmp_path):
    path = tmp_path / "q.jsonl"
    path.write_bytes(BROKEN)
    answer = cli("plan", "--queries", path, *ARGUMENTS)
    assert answer.code == FOUND
    made = lines_of(answer.out)
    assert len(made) == 9
    good = [{"m": m, "n": 16, "k": 16, "cores": 1} for m in (16, 32)]
    assert [made[0], made[-1]] == expected(good)
    assert [line["line"] for line in made[1:-1]] == [2, 4, 5, 6, 7, 8, 9]
    assert all(set(line["error"]) == {"rule", "message"} for line in made[1:-1])
    assert answer.err.splitlines() == [
        f"{path}:2: the line must be JSON, got Expecting value: line 1 column 1 (char 0)",
        f"{path}:4: missing k",
        f"{path}:5: the line must be a JSON object, got list",
        f"{path}:6: the line must give a key once, got 'm'",
        f"{path}:7: the line must be JSON, got bytes that are no UTF-8",
        f"{path}:8: {made[6]['error']['message']}",
        f"{path}:9: batch must be at least 1, got -1",
    ]


def test_many_broken_lines_are_counted(tmp_path):
    path = tmp_path / "q.jsonl"
    path.write_text("x\n" * 50)
    answer = cli("plan", "--queries", path)
    assert answer.code == FOUND
    assert len(lines_of(answer.out)) == 50
    assert len(answer.err.splitlines()) == 21
    assert answer.err.splitlines()[-1] == (
        f"{path}:30 more lines like these; the answers name them"
    ).replace(":30", ": 30")


def test_long_and_deep_lines(tmp_path):
    path = tmp_path / "q.jsonl"
    long = b'{"m": 1' + b" " * 200_000 + b"}"
    path.write_bytes(long + b"\n" + b"[" * 60_000 + b"\n" + b'{"m": 1, "n": 1, "k": 1}')
    first, second, third = lines_of(cli("plan", "--queries", path, *ARGUMENTS).out)
    assert first["error"]["message"] == "the line must be at most 65536 B long, got a longer line"
    assert second["error"]["message"].startswith("the line must be JSON, got ")
    assert third["problem"]["m"] == 1


@pytest.mark.parametrize("content", ["", "\n\n  \n"])
def test_an_empty_file_has_no_answers(tmp_path, content):
    path = tmp_path / "q.jsonl"
    path.write_text(content)
    answer = cli("plan", "--queries", path)
    assert (answer.code, answer.out, answer.err) == (DONE, "", "")


def test_no_plan_is_an_answer_and_a_finding(tmp_path):
    path = write_queries(tmp_path / "q.jsonl", problems(1))
    answer = cli("plan", "--queries", path, "--set", "l0a_bytes=256")
    assert answer.code == FOUND
    (made,) = lines_of(answer.out)
    assert made["error"]["rule"] == "L0A-CAPACITY"


def test_queries_from_standard_input():
    text = json.dumps(problems(1)[0]) + "\n"
    answer = shell("plan", "--queries", "-", *ARGUMENTS, input=text)
    assert answer.code == DONE
    assert lines_of(answer.out) == expected(problems(1))


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (("--store", "s.sqlite"), "--store needs --queries"),
        (("--processes", 2), "--processes needs --queries"),
        (
            ("--queries", "no.jsonl"),
            "cannot read --queries no.jsonl: no such file",
        ),
        (("--queries", "."), "cannot read --queries .: is a directory"),
    ],
)
def test_bad_requests(tmp_path, monkeypatch, arguments, line):
    monkeypatch.chdir(tmp_path)
    assert_refused(cli("plan", "--m", 1, "--n", 1, "--k", 1, *arguments), line)


def test_an_unwritable_store_or_file_is_refused_before_any_work(tmp_path, monkeypatch):
    monkeypatch.setattr("cubecore.workflows.sweep.plan_many.plan_chunks", None)
    path = write_queries(tmp_path / "q.jsonl", problems(2))
    before = names_in(tmp_path)
    store = tmp_path / "no" / "s.sqlite"
    line = f"cannot write --store {store}: unable to open database file"
    assert_refused(cli("plan", "--queries", path, "--store", store), line)
    out = tmp_path / "no" / "o.jsonl"
    line = f"cannot write --out {out}: no such file or directory"
    assert_refused(cli("plan", "--queries", path, "--out", out), line)
    assert names_in(tmp_path) == before


def test_out_is_there_when_all_answers_are(tmp_path):
    asked = problems(5)
    path = write_queries(tmp_path / "q.jsonl", asked)
    out = tmp_path / "o.jsonl"
    answer = cli("plan", "--queries", path, "--out", out, *ARGUMENTS)
    assert answer.code == DONE
    assert answer.out.startswith("5 of 5 planned in ")
    assert lines_of(out.read_text()) == expected(asked)
    assert names_in(tmp_path) == ["o.jsonl", "q.jsonl"]
    as_json = cli("plan", "--queries", path, "--out", out, *ARGUMENTS, "--json").json
    assert {"queries": 5, "planned": 5, "broken": 0, "from_store": 0}.items() <= as_json.items()


# --- killed and resumed


def start(*arguments):
    return subprocess.Popen(
        [*SHELL, *map(str, arguments)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        # A run in the background may have told its children to ignore the signal.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # noqa: PLW1509
    )


def wait_until(what, process, limit=60):
    end = time.monotonic() + limit
    while not what():
        assert process.poll() is None, process.stderr.read().decode()
        assert time.monotonic() < end
        time.sleep(0.01)


def count_lines(path):
    return path.read_bytes().count(b"\n") if path is not None and path.exists() else 0


def part_in(folder):
    """Return the file in which a sweep collects its answers."""
    return next(folder.glob(".cubecore*.part"), None)


def children_of(pid):
    """Return the processes that a process started (from /proc)."""
    tasks = Path(f"/proc/{pid}/task")
    if not (tasks / str(pid) / "children").exists():
        pytest.skip("this system does not list children")
    lists = [(task / "children").read_text() for task in tasks.iterdir()]
    return [int(child) for text in lists for child in text.split()]


def is_alive(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


@pytest.mark.parametrize(
    "kill",
    [
        pytest.param(signal.SIGKILL, id="kill"),
        pytest.param(signal.SIGINT, id="interrupt", marks=pytest.mark.sweep),
    ],
)
def test_a_killed_sweep_goes_on_with_nothing_lost_or_doubled(tmp_path, kill):
    asked = problems(MANY)
    path = write_queries(tmp_path / "q.jsonl", asked)
    store, out = tmp_path / "s.sqlite", tmp_path / "o.jsonl"
    command = ("plan", "--queries", path, "--store", store, "--out", out, "--processes", 2)
    begun = start(*command, *ARGUMENTS)
    wait_until(lambda: count_lines(part_in(tmp_path)) >= CHUNK, begun)
    part = part_in(tmp_path)
    helpers = children_of(begun.pid)
    begun.send_signal(kill)
    begun.communicate(timeout=60)
    assert begun.returncode == (-9 if kill == signal.SIGKILL else 130)
    assert len(helpers) == 2
    end = time.monotonic() + 30
    while any(map(is_alive, helpers)):
        assert time.monotonic() < end, "the processes that it started live on"
        time.sleep(0.01)
    done = count_lines(part)
    assert CHUNK <= done < MANY
    assert not out.exists()
    with part.open("ab") as file:
        file.write(b'{"problem": {"m": 1')  # what a kill in the middle of a line leaves
    again = shell(*command, *ARGUMENTS, "--json", timeout=120)
    assert again.code == DONE
    assert again.json["resumed"] == done
    assert again.json["planned"] == MANY - done
    assert lines_of(out.read_text()) == expected(asked)
    assert_whole(store, asked)
    assert names_in(tmp_path) == ["o.jsonl", "q.jsonl", "s.sqlite"]


@pytest.mark.sweep
def test_a_killed_sweep_into_a_store_alone(tmp_path):
    asked = problems(MANY)
    path = write_queries(tmp_path / "q.jsonl", asked)
    store = tmp_path / "s.sqlite"
    command = ("plan", "--queries", path, "--store", store, "--processes", 2, *ARGUMENTS)
    begun = start(*command)
    wait_until(lambda: store.exists() and rows_of(store) >= CHUNK, begun)
    begun.kill()
    begun.communicate(timeout=60)
    kept = rows_of(store)
    assert CHUNK <= kept < MANY
    again = shell(*command, "--json", timeout=120)
    assert (again.code, again.json["from_store"]) == (DONE, kept)
    assert_whole(store, asked)


def rows_of(store):
    try:
        return len(stored(store))
    except Exception:  # noqa: BLE001 - the store is being made
        return 0


@pytest.mark.sweep
def test_two_sweeps_fill_one_store_at_once(tmp_path):
    asked = problems(24)
    first = write_queries(tmp_path / "a.jsonl", asked[:16])
    second = write_queries(tmp_path / "b.jsonl", asked[8:][::-1])
    store = tmp_path / "s.sqlite"
    both = []
    for path, name in ((first, "a.out"), (second, "b.out")):
        arguments = ("--queries", path, "--store", store, "--out", tmp_path / name)
        both.append(start("plan", *arguments, "--processes", 2, *ARGUMENTS))
    for process in both:
        _, errors = process.communicate(timeout=120)
        assert (process.returncode, errors) == (0, b"")
    assert_whole(store, asked)
    assert lines_of((tmp_path / "a.out").read_text()) == expected(asked[:16])
    assert lines_of((tmp_path / "b.out").read_text()) == expected(asked[8:][::-1])


def test_two_sweeps_do_not_write_one_file(tmp_path):
    path = write_queries(tmp_path / "q.jsonl", problems(MANY))
    out = tmp_path / "o.jsonl"
    begun = start("plan", "--queries", path, "--out", out, "--processes", 1, *ARGUMENTS)
    wait_until(lambda: count_lines(part_in(tmp_path)) > 0, begun)
    line = f"another sweep writes --out {out}"
    assert_refused(cli("plan", "--queries", path, "--out", out), line)
    begun.kill()
    begun.communicate(timeout=60)


@pytest.mark.parametrize("change", ["nothing", "queries", "options", "model"])
def test_the_part_of_another_sweep_is_not_continued(tmp_path, monkeypatch, change):
    path = write_queries(tmp_path / "q.jsonl", problems(3))
    out = tmp_path / "o.jsonl"

    def stop(_self):
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(resume.GrowingFile, "finish", stop)
        assert cli("plan", "--queries", path, "--out", out, *ARGUMENTS).code == 130
    assert count_lines(part_in(tmp_path)) == 3
    arguments = ARGUMENTS
    if change == "queries":
        path.write_text(path.read_text() + "\n")
    elif change == "options":
        arguments = ("--alternatives", 1)
    elif change == "model":
        monkeypatch.setattr(resume, "model_version", lambda: "another")
    again = cli("plan", "--queries", path, "--out", out, *arguments, "--json")
    assert again.json["resumed"] == (3 if change == "nothing" else 0)
    assert len(lines_of(out.read_text())) == 3
    assert names_in(tmp_path) == ["o.jsonl", "q.jsonl"]


# --- the store


@pytest.fixture(scope="module")
def filled(tmp_path_factory):
    """Return a store with three plans and a refusal."""
    folder = tmp_path_factory.mktemp("store")
    path = write_queries(folder / "q.jsonl", problems(3))
    store = folder / "s.sqlite"
    assert cli("plan", "--queries", path, "--store", store).code == DONE
    one = write_queries(folder / "one.jsonl", problems(1))
    refused = cli("plan", "--queries", one, "--store", store, "--set", "l0a_bytes=256")
    assert refused.code == FOUND
    return store


def test_show(filled):
    answer = cli("store", "show", filled)
    assert answer.code == DONE
    assert answer.out.splitlines()[1].split() == [model_version(), "4"]
    assert len(answer.out.splitlines()) == 3 + 5
    made = cli("store", "show", filled, "--json").json
    assert made["models"] == [{"model": model_version(), "answers": 4}]
    assert len(made["plans"]) == 4
    chosen = cli("store", "show", filled, "--json", "--set", "l0a_bytes=256").json
    assert [plan["rule"] for plan in chosen["plans"]] == ["L0A-CAPACITY"]
    shape = problems(1)[0]
    arguments = [x for name in "mnk" for x in (f"--{name}", shape[name])]
    assert len(cli("store", "show", filled, "--json", *arguments).json["plans"]) == 2
    assert cli("store", "show", filled, "--json", "--chip", "Ascend910A").json["plans"] == []
    halves = sum(problem["a"] == "float16" for problem in problems(3))
    some = cli("store", "show", filled, "--json", "--set", "l0a_bytes=65536", "--a", "half").json
    assert some["plans"] == []
    every = cli("store", "show", filled, "--json", "--a", "half").json["plans"]
    assert len(every) == halves + (problems(1)[0]["a"] == "float16")
    assert len(cli("store", "show", filled, "--json", "--limit", 2).json["plans"]) == 2


def test_export(filled, tmp_path):
    printed = cli("store", "export", filled)
    assert printed.code == DONE
    assert len(printed.out.splitlines()) == 5
    out = tmp_path / "p.csv"
    answer = cli("store", "export", filled, "--out", out, "--model", model_version())
    assert answer.out == f"4 plans in {out}\n"
    assert out.read_text() == printed.out


def test_compare(filled):
    line = "store must hold answers of two models to compare, got 1"
    assert_refused(cli("store", "compare", filled), line)
    same = cli("store", "compare", filled, model_version(), model_version())
    assert same.code == DONE
    assert same.out.splitlines()[1] == "  predicted time 1.0000 times on average (geometric)"
    made = cli("store", "compare", filled, model_version(), model_version(), "--json").json
    assert (made["mean_ratio"], made["same_tiling"]) == (1.0, 3)


def test_stores_that_are_none(tmp_path):
    path = tmp_path / "s.sqlite"
    line = f"cannot read store {path}: no such file"
    for command in ("show", "compare", "export"):
        assert_refused(cli("store", command, path), line)
    assert cli("store", "show", tmp_path / "x", "--model", "y").code == BAD_REQUEST
