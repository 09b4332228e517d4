"""plan_many: the answers of plan, in order, on many processes, whatever the questions are like."""

import json
import subprocess
import sys

import pytest

import cubecore
from cubecore.errors import RequestError
from cubecore.workflows.sweep.plan_many import make_options, useful_processes
from cubecore.workflows.sweep.pool import Worker, plan_chunks
from workflows.sweeps import OPTIONS, assert_whole, expected, problems, stored


@pytest.mark.thinned(2)
@pytest.mark.parametrize("processes", [1, 2])
def test_the_answers_are_those_of_plan_in_order(processes):
    asked = problems(18)  # in two chunks
    answers = list(cubecore.plan_many(asked, alternatives=0, processes=processes))
    assert [answer.to_json() for answer in answers] == expected(asked)
    assert [answer.line for answer in answers] == list(range(1, 19))
    assert all(a.planned and not a.stored and a.error is None for a in answers)


def test_problems_may_be_records_and_come_one_by_one():
    asked = problems(3)
    records = (cubecore.Problem.from_json(problem) for problem in asked)
    answers = cubecore.plan_many(records, alternatives=0, processes=1)
    assert next(answers).to_json() == expected(asked)[0]
    assert [a.to_json() for a in answers] == expected(asked)[1:]


def test_nothing_to_plan():
    assert list(cubecore.plan_many([])) == []


def test_what_makes_no_sense_or_has_no_tiling_is_an_answer():
    good = problems(2)
    bad = [{"m": 0, "n": 1, "k": 1}, [1], {"m": 1, "n": 1, "k": 1, "zz": 1}, {"m": float("nan")}]
    asked = [good[0], *bad, good[1]]
    for processes in (1, 2):
        answers = list(cubecore.plan_many(asked, alternatives=0, processes=processes))
        assert [a.planned for a in answers] == [True, False, False, False, False, True]
        assert answers[0].to_json() == expected(good)[0]
        made = [answer.to_json() for answer in answers[1:5]]
        assert [answer["line"] for answer in made] == [2, 3, 4, 5]
        assert made[0]["problem"] == bad[0]
        assert made[0]["error"] == {"rule": None, "message": "m must be at least 1, got 0"}
        assert made[1]["error"]["message"] == "problem must be a JSON object, got [1]"
        assert made[3]["problem"] is None
        assert all(answer.error is not None for answer in answers[1:5])


def test_no_legal_tiling_names_the_rule():
    settings = {"l0a_bytes": "256"}
    for processes, count in ((1, 1), (2, 17)):
        answers = cubecore.plan_many(
            problems(count), settings=settings, alternatives=0, processes=processes
        )
        for answer in answers:
            made = answer.to_json()
            assert set(made) == {"problem", "error"}
            assert made["error"]["rule"] == "L0A-CAPACITY"
            assert "l0a_bytes = 256" in made["error"]["message"]
            assert not answer.planned


@pytest.mark.parametrize(
    ("keys", "line"),
    [
        ({"alternatives": -1}, "alternatives must be at least 0, got -1"),
        ({"processes": 0}, "processes must be at least 1, got 0"),
        ({"settings": {"zz": "1"}}, "--set: no chip field named zz"),
        ({"store": "/no/such/s.sqlite"}, "cannot write store /no/such/s.sqlite: "),
    ],
)
def test_bad_requests_are_refused_before_the_first_answer(keys, line):
    with pytest.raises(RequestError) as caught:
        cubecore.plan_many(problems(1), **keys)
    assert str(caught.value).startswith(line[:25])


@pytest.mark.sweep
def test_a_script_without_a_guard_may_start_processes(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(
        "import cubecore\n"
        "asked = [{'m': 16, 'n': 16, 'k': k} for k in range(1, 41)]\n"
        "print([a.planned for a in cubecore.plan_many(asked, processes=2)].count(True))\n"
    )
    done = subprocess.run(
        [sys.executable, script], capture_output=True, text=True, check=True, timeout=120
    )
    assert done.stdout == "40\n"


@pytest.mark.sweep
def test_a_caller_that_stops_early_leaves_no_process(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(
        "import os, cubecore\n"
        "asked = ({'m': 16, 'n': 16, 'k': k} for k in range(1, 10**9))\n"
        "answers = cubecore.plan_many(asked, processes=2)\n"
        "next(answers)\n"
        "answers.close()\n"
        "try:\n"
        "    os.waitpid(-1, os.WNOHANG)\n"
        "except ChildProcessError:\n"
        "    print('none')\n"
    )
    done = subprocess.run(
        [sys.executable, script], capture_output=True, text=True, check=True, timeout=120
    )
    assert done.stdout == "none\n"


def test_a_process_that_ends_is_one_sentence():
    worker = Worker(OPTIONS)
    worker._process.kill()
    with pytest.raises(RequestError, match=r"^a planning process ended with exit code"):
        worker.plan([cubecore.Problem(m=1, n=1, k=1).to_json()])
    worker.stop()


def test_chunks_keep_their_order_and_may_be_empty():
    asked = [cubecore.Problem.from_json(p).to_json() for p in problems(7)]
    chunks = [asked[:1], [], asked[1:4], [], asked[4:]]
    made = list(plan_chunks(iter(chunks), OPTIONS, 2))
    assert [len(lines) for lines in made] == [len(chunk) for chunk in chunks]
    flat = [json.loads(line.text)["problem"] for lines in made for line in lines]
    assert flat == asked


def test_few_problems_need_few_processes():
    assert useful_processes(0) == useful_processes(1) == useful_processes(16) == 1
    assert useful_processes(10**6) >= 1


# --- with a store


@pytest.mark.parametrize("processes", [1, 2])
@pytest.mark.thinned(2)
def test_what_the_store_has_is_not_planned_again(tmp_path, processes):
    path = str(tmp_path / "s.sqlite")
    asked = problems(18)
    how = {"alternatives": 0, "processes": processes, "store": path}
    first = list(cubecore.plan_many(asked[:10], **how))
    assert not any(answer.stored for answer in first)
    again = list(cubecore.plan_many(asked, **how))
    assert [answer.stored for answer in again] == [True] * 10 + [False] * 8
    assert [answer.to_json() for answer in again] == expected(asked)
    assert_whole(path, asked)


def test_a_question_asked_twice_is_kept_once(tmp_path):
    path = str(tmp_path / "s.sqlite")
    asked = problems(3) * 4
    answers = list(cubecore.plan_many(asked, alternatives=0, store=path))
    assert [a.to_json() for a in answers] == expected(problems(3)) * 4
    assert_whole(path, problems(3))


def test_other_options_are_other_questions(tmp_path):
    path = str(tmp_path / "s.sqlite")
    asked = problems(2)
    for how in ({"alternatives": 0}, {"alternatives": 1}, {"settings": {"aic_count": "4"}}):
        assert not any(a.stored for a in cubecore.plan_many(asked, store=path, **how))
    assert len(stored(path)) == 6


def test_refusals_are_kept_and_nonsense_is_not(tmp_path):
    path = str(tmp_path / "s.sqlite")
    asked = [*problems(1), {"m": 0, "n": 1, "k": 1}]
    how = {"settings": {"l0a_bytes": "256"}, "store": path}
    for known in (False, True):
        none, nonsense = cubecore.plan_many(asked, **how)
        assert (none.planned, none.stored) == (False, known)
        assert not nonsense.stored
    ((_, _, kept),) = stored(path)
    assert kept.rule == "L0A-CAPACITY"
    assert kept.tiling is None


def test_options_are_checked_on_the_chip_that_is_asked_for():
    assert make_options({"aic_count": "3"}, 1).alternatives == 1
    with pytest.raises(RequestError):
        make_options({"aic_count": "3"}, 1, "nope")
