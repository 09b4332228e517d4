"""A request is validated once, however many steps its answer takes."""

import pytest

import cubecore
from cubecore.cli.commands import main
from cubecore.tiling.model.export import to_json_text
from cubecore.tiling.rules import capabilities

KEYS = {"m": 64, "n": 48, "k": 80}
LAID_OUT = {"batch": 2, "template": "NORM", "trans_b": True}
OPTIONS = [text for name, value in KEYS.items() for text in (f"--{name}", str(value))]
TILING = cubecore.plan(**KEYS).tiling
BROKEN = {**TILING.to_json(), "baseK": 8}


@pytest.fixture
def validations(monkeypatch):
    """The problems whose types were held against their chip, one for each validation."""
    seen = []
    judged = capabilities._type_violations

    def counted(problem, chip):
        seen.append(problem)
        return judged(problem, chip)

    monkeypatch.setattr(capabilities, "_type_violations", counted)
    return seen


@pytest.mark.parametrize(
    "ask",
    [
        pytest.param(lambda: cubecore.plan(**KEYS), id="plan"),
        pytest.param(lambda: cubecore.plan(**KEYS, layout="BSNGD", **LAID_OUT), id="plan-layout"),
        pytest.param(lambda: cubecore.plan(**KEYS, fix={"baseM": 32}), id="plan-fix"),
        pytest.param(lambda: list(cubecore.plan_many([KEYS], processes=1)), id="plan-many"),
        pytest.param(lambda: cubecore.check(TILING, **KEYS), id="check"),
        pytest.param(lambda: cubecore.check(BROKEN, **KEYS, repair=True), id="check-repair"),
        pytest.param(lambda: cubecore.time(**KEYS), id="time"),
        pytest.param(lambda: cubecore.time(**KEYS, tiling=TILING), id="time-tiling"),
        pytest.param(lambda: cubecore.run(**KEYS), id="run"),
        pytest.param(lambda: cubecore.run(**KEYS, tiling=TILING), id="run-tiling"),
        pytest.param(lambda: cubecore.compare(TILING, TILING, **KEYS), id="compare"),
        pytest.param(lambda: cubecore.compare(TILING, BROKEN, **KEYS), id="compare-illegal"),
    ],
)
def test_a_function_validates_its_request_once(validations, ask):
    ask()
    assert len(validations) == 1


@pytest.mark.parametrize("verb", ["plan", "check", "time", "run", "compare"])
def test_a_command_validates_its_request_once(validations, verb, tmp_path, capsys):
    path = tmp_path / "tiling.json"
    path.write_text(to_json_text(TILING))
    files = {"check": 1, "compare": 2}.get(verb, 0)
    with pytest.raises(SystemExit) as left:
        main([verb, *[str(path)] * files, *OPTIONS])
    assert left.value.code == 0
    assert capsys.readouterr().out
    asked = [problem for problem in validations if problem == cubecore.Problem(**KEYS)]
    assert len(asked) == 1
