"""`judge --batch`: verdicts of many submissions, resumed after a kill, and what is refused."""

import fcntl
import json
import os
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from importlib.util import find_spec
from pathlib import Path

import pytest

import cubecore
from cubecore.answers.judged.batch import JudgedBatch, JudgedRequest
from cubecore.workflows.judge.batch import judge_batch
from cubecore.workflows.judge.batch_requests import batch_requests
from cubecore.workflows.judge.content import content_digest
from cubecore.workflows.judge.judge import judge_started
from cubecore.workflows.judge.starts import LoadedInterpreter, NewInterpreter
from cubecore.workflows.judge.submissions.kinds import submission_of
from cubecore.workflows.judge.verdict_store import VerdictStore
from workflows.command import assert_refused, cli
from workflows.judge.judged_kernels import PYTHON, TASK

CHIP = "Ascend910B3"
OPTIONS = {"blocks": 4}
WRONG = PYTHON.replace("asc_add", "asc_sub")
BESIDE = {"outcome", "reason"}
TORCH_TASK = """import torch


class Model(torch.nn.Module):
    def forward(self, x):
        return x + x


def get_inputs():
    return [torch.rand(16)]
"""
OUTCOMES = {"right.py": "right", "unfit.txt": "request", "wrong.py": "wrong"}


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A task, and a right, a wrong and an unfit submission."""
    (tmp_path / "task.py").write_text(TASK)
    answers = tmp_path / "answers"
    answers.mkdir()
    (answers / "right.py").write_text(PYTHON)
    (answers / "wrong.py").write_text(WRONG)
    (answers / "unfit.txt").write_text("no kernel\n")
    (answers / ".hidden.py").write_text(PYTHON)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def judged(*, executor=None, jobs=1):
    requests = batch_requests("answers", "task.py", CHIP, OPTIONS)
    return judge_batch(requests, "verdicts.sqlite", executor=executor, jobs=jobs)


def outcomes(batch):
    return {each.submission.split("/")[-1]: each.outcome for each in batch.requests}


def test_a_folder_has_one_digest_whatever_its_build_has_left(folder):
    project = folder / "project"
    (project / "op_host").mkdir(parents=True)
    (project / "op_kernel").mkdir()
    (project / "op_kernel" / "a.cpp").write_text("// a\n")
    before = content_digest("project"), submission_of(project).sha256
    (project / "build").mkdir()
    (project / "build" / "a.o").write_text("built")
    assert (content_digest("project"), submission_of(project).sha256) == before
    assert before[0] == before[1]
    (project / "op_kernel" / "a.cpp").write_text("// b\n")
    assert content_digest("project") != before[0]


@pytest.mark.usefixtures("folder")
def test_folders_of_killed_judgements_go_and_those_in_use_stay(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    for name in ("cubecore-judge-killed", "cubecore-judge-used", "cubecore-judge-new", "other"):
        (tmp_path / name).mkdir()
        if name != "cubecore-judge-new":  # which has no lock yet
            (tmp_path / name / "lock").touch()
    with (tmp_path / "cubecore-judge-used" / "lock").open("wb") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        judged()
    assert sorted(each.name for each in tmp_path.glob("*-*")) == [
        "cubecore-judge-new",
        "cubecore-judge-used",
    ]
    assert (tmp_path / "other" / "lock").exists()


def test_submissions_are_named_from_the_folder_that_they_share():
    def batch(*paths):
        requests = (
            JudgedRequest(p, "task.py", CHIP, "wrong", "no", 1.0, "run 1.0 s") for p in paths
        )
        return JudgedBatch(tuple(requests), len(paths), 2.0, "verdicts.sqlite")

    several = batch("/data/out/a/relu.txt", "/data/out/b/relu.txt", "/data/out/relu.txt")
    assert several.folder == "/data/out"
    assert "Submissions below /data/out\n" in several.text
    assert [line.split()[0] for line in several.text.splitlines() if "relu" in line] == [
        *("a/relu.txt", "b/relu.txt", "relu.txt"),
        "a/relu.txt",
    ]
    for paths in (("/data/relu.txt",), ("/a/relu.txt", "/b/relu.txt"), ("a.txt", "b.txt")):
        assert batch(*paths).folder == ""
        assert all(path in batch(*paths).text for path in paths)


@pytest.mark.usefixtures("folder")
def test_each_submission_has_the_verdict_that_judge_gives_alone():
    with ThreadPoolExecutor(2) as executor:
        batch = judged(executor=executor)
    assert (outcomes(batch), batch.judged) == (OUTCOMES, 3)
    alone = cubecore.judge("answers/wrong.py", "task.py", chip=CHIP, **OPTIONS).to_json()
    with VerdictStore.open("verdicts.sqlite") as store:
        (wrong,) = (each for each in store.verdicts() if each["outcome"] == "wrong")
    unstable = ("seconds", "cases")
    assert {k: v for k, v in wrong.items() if k not in {*unstable, *BESIDE}} == {
        k: v for k, v in alone.items() if k not in unstable
    }
    again = judged()
    assert (outcomes(again), again.judged) == (OUTCOMES, 0)
    assert again.speed == "nothing new to judge; 3 verdicts reused"


@pytest.mark.usefixtures("folder")
def test_judgements_that_are_forked_are_those_of_new_interpreters():
    """Also behind the end of the process that they are forked from; none is left then."""

    def told(start):
        verdict = judge_started(start, "answers/wrong.py", "task.py", CHIP, stages.append, OPTIONS)
        plain = verdict.to_json()
        cases = [{k: v for k, v in each.items() if k != "seconds"} for each in plain["cases"]]
        return {k: v for k, v in plain.items() if k != "seconds"} | {"cases": cases}

    stages: list[str] = []
    expected = told(NewInterpreter())
    with LoadedInterpreter(torch=False) as start:
        for _ in range(2):
            stages.clear()
            assert told(start) == expected
            assert stages[:2] == ["reference", "submission"]
        kept = start._process.pid
        assert children(kept) == []
        os.kill(kept, signal.SIGKILL)
        assert told(start) == expected
    assert not Path(f"/proc/{kept}").exists()


def children(pid):
    """The processes that a process has started and not waited for."""
    return Path(f"/proc/{pid}/task/{pid}/children").read_text("ascii").split()


@pytest.mark.skipif(find_spec("torch") is None, reason="torch is not installed")
def test_judgements_of_torch_tasks_share_one_interpreter(folder, monkeypatch):
    """Three of them do, with the verdicts of those that do not."""
    (folder / "task.py").write_text(TORCH_TASK)
    (folder / "answers" / "right.py").unlink()
    started = []
    real = LoadedInterpreter.started
    monkeypatch.setattr(
        LoadedInterpreter, "started", lambda *given: started.append(given) or real(*given)
    )
    for number in range(2):
        (folder / "answers" / f"{number}.txt").write_text("no kernel")
    texts = {each.submission: each.reason for each in judged().requests}
    assert len(texts) == 4
    assert len(started) == 1  # texts without a kernel are refused before
    assert "wrong.py has no ModelNew" in " ".join(texts.values())


def test_what_changes_is_judged_again_and_what_moves_is_not(folder):
    judged()
    (folder / "answers" / "wrong.py").rename(folder / "answers" / "moved.py")
    (folder / "answers" / "right.py").write_text(PYTHON + "\n# another\n")
    batch = judged()
    assert batch.judged == 1
    assert outcomes(batch) == {"moved.py": "wrong", "right.py": "right", "unfit.txt": "request"}


def test_a_batch_that_is_killed_goes_on_where_it_was(folder):
    """Killed as soon as there is a verdict, again and again: each is judged once."""
    for number in range(4):
        (folder / "answers" / f"right{number}.py").write_text(f"{PYTHON}\n# {number}\n")
    words = ("judge", "--batch", "answers", "--task", "task.py", "--store", "verdicts.sqlite")
    command = [sys.executable, "-m", "cubecore", *words, "--blocks", "4", "--jobs", "1"]
    command += ["--sandbox", "none"]
    before: dict[str, bytes] = {}
    for _ in range(2):
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
        while process.poll() is None and len(stored(folder)) <= len(before):
            time.sleep(0.05)
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
        assert before.items() <= stored(folder).items()
        before = stored(folder)
    done = subprocess.run([*command, "--json"], capture_output=True, text=True, check=True)
    told = json.loads(done.stdout)
    assert told["counts"] == {"right": 5, "wrong": 1, "request": 1}
    assert told["judged"] == 7 - len(before)
    assert before.items() <= stored(folder).items()


def stored(folder):
    """The rows of the store as they lie in the file."""
    store = folder / "verdicts.sqlite"
    if not store.exists():
        return {}
    try:
        with sqlite3.connect(store) as connection:
            return dict(connection.execute("SELECT key, verdict FROM verdicts"))
    except sqlite3.OperationalError:  # the table is not there yet
        return {}


def test_a_line_has_a_task_and_options_of_its_own(folder):
    (folder / "task2.py").write_text(TASK.replace("x + y", "x - y"))
    lines = [
        {"submission": "answers/wrong.py", "task": "task2.py"},
        {"submission": "answers/right.py", "cases": 1},
    ]
    (folder / "batch.jsonl").write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    words = ("--task", "task.py", "--blocks", 4, "--store", "v.sqlite", "--json")
    answer = cli("judge", "--batch", "batch.jsonl", *words)
    assert answer.code == 0
    rows = answer.json["submissions"]
    assert [row["outcome"] for row in rows] == ["right", "right"]
    with VerdictStore.open("v.sqlite") as store:
        assert sorted(len(verdict["cases"]) for verdict in store.verdicts()) == [1, 2]


def test_a_page_names_the_chips_of_its_lines(folder):
    lines = [
        {"submission": "answers/right.py", "chip": chip}
        for chip in ("Ascend910B2", "Ascend910_9392", "Ascend910B2")
    ]
    (folder / "batch.jsonl").write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    words = ("--task", "task.py", "--blocks", 4, "--store", "v.sqlite", "--report", "page.html")
    assert cli("judge", "--batch", "batch.jsonl", *words).code == 0
    page = (folder / "page.html").read_text()
    assert "Ascend910B2, Ascend910_9392" in page
    assert "Ascend910B3" not in page


def test_the_text_names_what_is_not_right_and_the_page_every_one(folder):
    words = ("--task", "task.py", "--blocks", 4, "--store", "v.sqlite", "--report", "page.html")
    answer = cli("judge", "--batch", "answers", *words)
    assert answer.code == 0
    lines = answer.out.splitlines()
    assert lines[0] == "3 submissions: 1 right, 1 wrong, 1 request"
    at = WRONG[: WRONG.index("core.asc_copy_ub2gm")].count("\n") + 1
    (wrong,) = (line for line in lines if line.startswith("  answers/wrong.py   wrong    case 0"))
    assert wrong.endswith(f"written at wrong.py:{at} (add)")
    page = (folder / "page.html").read_text()
    assert all(f"answers/{name}" in page for name in OUTCOMES)


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (("--batch", "answers"), "--batch needs --store, the file of the verdicts"),
        (
            ("--batch", "answers", "--store", "v.sqlite"),
            "--batch with a folder needs --task, the task of them all",
        ),
        (("--store", "v.sqlite"), "--store needs --batch"),
        (
            ("--batch", "answers", "--store", "v.sqlite", "--jobs", "0"),
            "--jobs must be a whole number above 0, got 0",
        ),
        (
            ("answers/right.py", "--task", "task.py", "--sizes", "tiny"),
            "--sizes must be auto or full, got 'tiny'",
        ),
        (
            ("answers/right.py", "--task", "task.py", "--cpu", "1e300"),
            "cpu_s must be at most 10,000,000 s, got 1e+300",
        ),
        (("answers/right.py", "--task", "task.py", "--jobs", "2"), "--jobs needs --batch"),
        (
            ("answers/right.py", "--batch", "answers", "--store", "v.sqlite"),
            "--batch stands in the place of SUBMISSION",
        ),
        (
            ("--task", "task.py"),
            "missing SUBMISSION; cubecore judge --help lists arguments and options",
        ),
        (
            ("answers/right.py",),
            "right.py needs --task; only a sample project brings data of its own",
        ),
        (
            ("--batch", "lines.jsonl", "--store", "v.sqlite"),
            "lines.jsonl line 1 must have a task, the path of a file or folder, got None",
        ),
        (
            ("--batch", "nothing", "--task", "task.py", "--store", "v.sqlite"),
            "nothing must have at least one submission, got none",
        ),
        (
            ("--batch", "answers", "--task", "task.py", "--store", "other/text.sqlite"),
            "--store other/text.sqlite must be a store of verdicts, got another file",
        ),
        (
            ("--batch", "answers", "--task", "task.py", "--store", "other.sqlite"),
            "--store other.sqlite must be a store of verdicts, got another SQLite file",
        ),
        (
            ("--batch", "answers", "--task", "task.py", "--store", "newer.sqlite"),
            "--store newer.sqlite has format 7, this version reads format 1",
        ),
    ],
)
def test_bad_input_is_one_sentence(folder, words, line):
    (folder / "lines.jsonl").write_text('{"submission": "answers/right.py"}\n')
    (folder / "nothing").mkdir()
    (folder / "other").mkdir()
    (folder / "other" / "text.sqlite").write_text("some text that is no database at all\n" * 40)
    with sqlite3.connect("other.sqlite") as connection:
        connection.execute("CREATE TABLE t (x)")
    VerdictStore.open("newer.sqlite").__exit__()
    with sqlite3.connect("newer.sqlite") as connection:
        connection.execute("PRAGMA user_version = 7")
    assert_refused(cli("judge", *words), line)


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("[1]", "lines.jsonl line 1 must be a JSON object, got list"),
        ("{", "lines.jsonl line 1 must be a JSON object, got '{'"),
        *(
            (
                json.dumps({"submission": "a.py", "task": "t.py", name: value}),
                f"lines.jsonl line 1: {name} must {said}",
            )
            for name, value, said in (
                ("cases", "two", "be a whole number above 0, got 'two'"),
                ("cases", 1.5, "be a whole number above 0, got 1.5"),
                ("blocks", True, "be a whole number above 0, got True"),
                (
                    "seed",
                    10**20,
                    "be at most 9,223,372,036,854,775,807, got 100,000,000,000,000,000,000",
                ),
                ("cpu_s", "x", "be a finite number above 0, got 'x'"),
                ("wall_s", 1e300, "be at most 10,000,000 s, got 1e+300"),
                ("sizes", 3, "be auto or full, got 3"),
                ("entry", 5, "be text, got 5"),
                ("settings", [1], "map the chip's fields to values, got [1]"),
                ("includes", "x", "be a list of folders, got 'x'"),
            )
        ),
        (
            '{"submission": "a.py", "task": "t.py", "case": 2}',
            "lines.jsonl line 1: an option must be cases, cap_bytes, sizes, seed, instructions, "
            "entry, blocks, cpu_s, wall_s, sandbox, includes or settings, got 'case'; did you mean "
            "cases?",
        ),
    ],
)
def test_a_bad_line_is_refused_before_anything_is_judged(folder, text, line):
    (folder / "lines.jsonl").write_text(text + "\n")
    answer = cli("judge", "--batch", "lines.jsonl", "--store", "v.sqlite")
    assert_refused(answer, line)
    assert not (folder / "v.sqlite").exists()
