"""Answers of any executor: each once, in order, the same; what is lost is said and resumed."""

import os
import signal
import subprocess
import sys
from concurrent.futures import Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor
from multiprocessing import get_context

import pytest

import cubecore
from cubecore.errors import RequestError
from cubecore.workflows.executors import AHEAD, in_order

PROBLEMS = [{"m": m, "n": 32, "k": 32} for m in (*range(16, 16 * 18, 16), 0)]
AXES = {"m": [16, 0, 48], "k": [16, 32]}


class Backwards(Executor):
    """Runs what it was given when a result is asked for, the last task first."""

    def __init__(self):
        self.tasks = []
        self.most = 0

    def submit(self, function, /, *given, **keys):
        future = _Asked(self)
        self.tasks.append((future, function, given, keys))
        self.most = max(self.most, len(self.tasks))
        return future

    def run(self):
        while self.tasks:
            future, function, given, keys = self.tasks.pop()
            try:
                future.set_result(function(*given, **keys))
            except Exception as error:  # noqa: BLE001 - it is the future's
                future.set_exception(error)


class _Asked(Future):
    def __init__(self, executor):
        super().__init__()
        self.executor = executor

    def result(self, timeout=None):
        self.executor.run()
        return super().result(timeout)


def texts(answers):
    return [(answer.line, answer.text) for answer in answers]


@pytest.fixture(scope="module")
def alone():
    return texts(cubecore.plan_many(PROBLEMS, alternatives=0, processes=1))


@pytest.fixture(params=["threads", "processes", "backwards"])
def executor(request):
    if request.param == "threads":
        made = ThreadPoolExecutor(4)
    elif request.param == "processes":
        made = ProcessPoolExecutor(2, mp_context=get_context("spawn"))
    else:
        made = Backwards()
    with made:
        yield made


@pytest.mark.thinned(3)
def test_plans_sweeps_and_validation_are_those_of_one_process(executor, alone, tmp_path):
    assert texts(cubecore.plan_many(PROBLEMS, alternatives=0, executor=executor)) == alone
    series = cubecore.sweep(AXES, n=32, executor=executor)
    assert series.to_json() == cubecore.sweep(AXES, n=32).to_json()
    points = tmp_path / "points.jsonl"
    points.write_text(
        '{"id": "one", "kind": "matmul", "chip": "Ascend910B3", "soc": "Ascend910B3", "M": 64, '
        '"N": 64, "K": 64, "dtypes": "float16", "measured": {"wall_us": 9}}\nnothing\n',
        encoding="utf-8",
    )
    validated = cubecore.validate(points, executor=executor)
    assert validated.to_json() == cubecore.validate(points).to_json()


def test_tasks_are_taken_as_they_are_needed():
    executor, taken = Backwards(), []

    def tasks():
        for number in range(10 * AHEAD):
            taken.append(number)
            yield (number,)

    answers = in_order(executor, str, tasks())
    assert [next(answers) for _ in range(3)] == ["0", "1", "2"]
    assert len(taken) < 2 * AHEAD + 3
    assert executor.most <= AHEAD
    answers.close()


def test_a_pool_whose_workers_die_is_one_sentence_and_goes_on_from_the_store(alone, tmp_path):
    store = str(tmp_path / "p.sqlite")
    problems = PROBLEMS * 90  # more chunks than are given to the pool at a time
    pool = ProcessPoolExecutor(1, mp_context=get_context("spawn"))
    answers = cubecore.plan_many(problems, alternatives=0, executor=pool, store=store)
    with pool:
        assert next(answers).line == 1  # the first chunk is answered and kept
        for process in list(pool._processes.values()):
            os.kill(process.pid, signal.SIGKILL)
        with pytest.raises(RequestError) as caught:
            list(answers)
    assert str(caught.value).startswith("the executor lost its workers: BrokenProcessPool: ")
    assert "\n" not in str(caught.value)
    again = list(cubecore.plan_many(PROBLEMS, alternatives=0, processes=1, store=store))
    assert texts(again) == alone
    assert all(answer.stored for answer in again[:16])


def test_an_executor_that_is_shut_down_is_one_sentence():
    pool = ThreadPoolExecutor(1)
    pool.shutdown()
    with pytest.raises(RequestError) as caught:
        cubecore.sweep(AXES, n=32, executor=pool)
    assert str(caught.value) == (
        "the executor lost its workers: RuntimeError: cannot schedule new futures after shutdown"
    )


@pytest.mark.parametrize(
    "call",
    [
        lambda: cubecore.plan_many(PROBLEMS, executor=3),
        lambda: cubecore.sweep(AXES, n=32, executor=3),
        lambda: cubecore.validate(executor=3),
    ],
)
def test_something_else_is_no_executor(call):
    with pytest.raises(RequestError) as caught:
        call()
    assert str(caught.value) == "executor must be a concurrent.futures.Executor, got int"


CLUSTER = """
import os, signal, sys
import cubecore
from distributed import Client, LocalCluster

if __name__ == "__main__":
    problems = [{"m": m, "n": 64, "k": 64} for m in range(16, 16 * 160, 16)]
    with LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster:
        with Client(cluster) as client:
            pids = list(client.run(os.getpid).values())
            answers = []
            executor = client.get_executor()
            for answer in cubecore.plan_many(problems, alternatives=0, executor=executor):
                answers.append(answer)
                if len(answers) == 1:
                    os.kill(pids[0], signal.SIGKILL)
    alone = list(cubecore.plan_many(problems, alternatives=0, processes=1))
    assert [a.line for a in answers] == list(range(1, len(problems) + 1))
    assert [a.text for a in answers] == [a.text for a in alone]
    print("every answer once, in order")
"""


@pytest.mark.sweep
def test_a_cluster_that_loses_a_worker_answers_everything_once(tmp_path):
    pytest.importorskip("distributed")
    script = tmp_path / "cluster.py"
    script.write_text(CLUSTER, encoding="utf-8")
    done = subprocess.run(
        [sys.executable, str(script)], capture_output=True, text=True, timeout=300, check=False
    )
    assert done.stdout == "every answer once, in order\n", done.stderr
