"""Every example kernel computes the right thing, without a finding, in any order; and its time."""

import json
import runpy
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from cubecore.frontends.kernels.session import ScriptSession
from cubecore.workflows.scripts.script import time_script
from parts import crossed, strided

FOLDER = Path(__file__).parents[2] / "examples" / "kernels"
NAMES = sorted(path.stem for path in FOLDER.glob("*.py"))
EXPECTED = {
    *("vector_add", "reduction", "gelu", "softmax", "layernorm", "quantise"),
    *("transpose", "top_k", "gemv", "matmul", "int8_matmul", "matmul_leaky_relu"),
    *("flash_attention", "reg_add", "reg_softmax", "flash_attention_950", "mx_matmul_950"),
    *("reg_layernorm", "reg_mx_quantise"),
}
ORDERS = ("program", "late", "early", "random:1")


def example(name):
    return SimpleNamespace(**runpy.run_path(str(FOLDER / f"{name}.py")))


def as_tuple(value):
    return value if isinstance(value, tuple) else (value,)


def assert_right(module, given, got):
    """Compare every result with what the example's own float64 computation allows."""
    wanted, allowed = module.reference(*given), module.tolerance(*given)
    for one, want, limit in zip(*map(as_tuple, (got, wanted, allowed)), strict=True):
        assert one.shape == want.shape
        assert (np.abs(one.astype(np.float64) - want) <= limit).all()


def test_the_library_is_whole():
    assert set(NAMES) == EXPECTED


@pytest.mark.parametrize(("name", "order"), crossed(NAMES, ORDERS))
def test_a_small_case_is_right_in_any_order(name, order):
    module = example(name)
    given = module.small()
    kept = [array.copy() for array in given]
    session = ScriptSession({"order": order})
    with session.collecting():
        got = module.launch(*given)
    assert [finding.message for run in session.runs for finding in run.findings] == []
    assert_right(module, given, got)
    assert all((a == b).all() for a, b in zip(given, kept, strict=True)), "an input was changed"


@pytest.mark.parametrize("order", ["program", "late", "early"])
def test_each_style_of_synchronisation_adds(order):
    module = example("vector_add")
    given = module.small()
    for add in module.KERNELS:
        got = module.launch(*given, add=add.using(order=order))
        assert_right(module, given, got)


@pytest.mark.parametrize("name", strided(NAMES, 2))
@pytest.mark.thinned(6)
def test_the_time_and_the_report(name, golden, capsys):
    """The script verifies itself; what it prints is one line for each launch."""
    timed = time_script(str(FOLDER / f"{name}.py"), record=200)
    assert [f.message for launch in timed.launches for f in launch.run.findings] == []
    assert len(capsys.readouterr().out.splitlines()) == len(timed.launches)
    module = example(name)
    assert {launch.run.kernel for launch in timed.launches} == {k.name for k in module.KERNELS}
    golden([summary(launch) for launch in timed.launches])
    page = timed.page()
    data = json.loads(page.split('id="data">')[1].split("</script>")[0])
    assert data["answer"]["cycles"] == timed.longest.timeline.cycles
    assert data["findings"] == []


def summary(launch):
    line = launch.timeline
    return {
        "launch": launch.title,
        "us": round(line.us, 2),
        "cycles": line.cycles,
        "limited_by": line.limited_by,
        "busy": dict(line.pipes),
        "issued": line.issued,
        "read_bytes": line.read_bytes,
        "written_bytes": line.written_bytes,
    }
