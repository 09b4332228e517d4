"""Back ends for public suites: what they answer to a suite's questions, from one verdict."""

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest

import cubecore
from cubecore.answers.verdict import JudgedError, Verdict
from cubecore.errors import unable

FOLDER = Path(__file__).parents[3] / "integrations"


def module(name, **members):
    made = ModuleType(name)
    vars(made).update(members)
    return made


@pytest.fixture
def backend(monkeypatch):
    """The back end of MultiKernelBench, registered in a stand-in of the suite."""
    registry = {}

    class Backend:
        pass

    def register(name):
        return lambda made: registry.setdefault(name, made())

    stand_ins = {
        "config": {"ascendc_device": "ai_core-Ascend910B2"},
        "backends": {},
        "backends.backend_registry": {"Backend": Backend, "register_backend": register},
        "utils": {},
        "utils.utils": {"get_ref_src_path": lambda op: f"reference/{op}.py"},
    }
    for name, members in stand_ins.items():
        monkeypatch.setitem(sys.modules, name, module(name, **members))
    monkeypatch.delenv("CUBECORE_CHIP", raising=False)
    file = FOLDER / "multikernelbench" / "cubecore_backend.py"
    spec = importlib.util.spec_from_file_location("cubecore_backend", file)
    spec.loader.exec_module(importlib.util.module_from_spec(spec))
    return registry["cubecore"]


def verdict(**other):
    told = {
        "chip": "Ascend910B2",
        "submission": {"kind": "six strings", "operators": ["Relu"]},
        "task": {"name": "relu"},
        "stage": "done",
        "compiled": True,
        "correct": True,
        "time": {"us": 1500.0, "low_us": None, "high_us": None, "limited_by": "V", "case": "full"},
    }
    return Verdict(**{**told, **other, "time": {**told["time"], "launches": []}})


def test_a_suite_is_answered_from_one_verdict(backend, monkeypatch):
    asked = []

    def judge(file, task, chip):
        asked.append((file.name, file.read_text(), task, chip))
        return verdict()

    monkeypatch.setattr(cubecore, "judge", judge)
    assert backend.compile("text", "relu") == (True, None)
    assert asked == [("relu.txt", "text", "reference/relu.py", "Ascend910B2")]
    assert backend.correctness_execution("")[0] is True
    assert backend.time_execution() == [1.5]
    assert backend.detect_cheating("text") == (False, None)
    backend.cleanup()
    assert backend.compile(' {"sources": []}', "relu") == (True, None)
    assert asked[-1][0] == "relu.json"


def test_what_does_not_compile_or_cheats_is_told_with_its_sentences(backend, monkeypatch):
    errors = (JudgedError("kernel", "k.cpp:1 does not compile"),)
    monkeypatch.setattr(
        cubecore, "judge", lambda *_, **__: verdict(compiled=False, correct=False, errors=errors)
    )
    assert backend.compile("text", "relu") == (False, "k.cpp:1 does not compile")
    marks = ({"id": "no-launch", "certainty": "certain", "evidence": "0 launches", "case": ""},)
    monkeypatch.setattr(cubecore, "judge", lambda *_, **__: verdict(cheating=marks))
    assert backend.compile("text", "relu") == (True, None)
    assert backend.detect_cheating("text") == (True, "no-launch: 0 launches")


def test_a_request_that_does_not_fit_is_an_answer(backend, monkeypatch):
    def judge(*_, **__):
        raise unable("answer", "answer has no kernel")

    monkeypatch.setattr(cubecore, "judge", judge)
    assert backend.compile("text", "relu") == (False, "answer has no kernel")
    assert backend.detect_cheating("text") == (False, None)
