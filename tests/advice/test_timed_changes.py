"""What would help: every gain is that of the changed request timed by itself."""

import json
from functools import cache

import pytest

import cubecore
from cubecore.advice.timed_changes import HARDWARE
from cubecore.chips import chip
from cubecore.isa.mte.copies import CopyGmToCbufMultiNd2Nz
from cubecore.isa.program.tree import Issue
from cubecore.kernels.matmul.launch import matmul_launch
from cubecore.tiling.model.problem import Problem
from cubecore.workflows.scripts.script import time_script
from parts import strided
from workflows.command import DONE, cli

KINDS = (
    *(
        "base block",
        "depths",
        "L0C buffers",
        "core grid",
        "row starts",
        "order",
        "unit flag",
        "split K",
    ),
    *("template", "more cores", "NZ weights", "padded rows", "constant tiling", "AI Cores"),
)
PROBLEMS = (
    {"m": 1024, "n": 1024, "k": 3000, "c": "float16"},
    {"m": 512, "n": 768, "k": 1024, "cores": 6, "a": "int8", "bias": "int32"},
    {"m": 1000, "n": 500, "k": 640, "template": "NORM", "chip": "Ascend950PR_9589"},
)


def advised(problem):
    return _advised(json.dumps(problem))


@cache
def _advised(problem):
    return cubecore.time(json.loads(problem), advise=True)


@pytest.fixture(scope="module", params=strided(PROBLEMS), ids=str)
def timed(request):
    return advised(request.param)


def by_kind(timed):
    return {change.kind: change for change in timed.changes.tried}


def test_every_kind_is_tried_once_or_says_why_not(timed):
    parts = [kind for kind in HARDWARE if kind != "UB links"]
    told = [*timed.changes.tried, *timed.changes.untried]
    assert sorted(one.kind for one in told) == sorted((*KINDS, *parts))
    assert all(one.reason for one in timed.changes.untried)


def test_the_most_helpful_comes_first(timed):
    """Of what a user can change, and behind it of what another chip would have."""
    order = [(change.of == "chip", change.cycles) for change in timed.changes.tried]
    assert order == sorted(order)
    for change in timed.changes.tried:
        assert change.gain == pytest.approx(1 - change.cycles / timed.timeline.cycles, abs=1e-12)


def test_a_gain_is_what_time_says_of_the_changed_request(timed):
    """By the public function alone; what no request can ask for has a test of its own."""
    for change in timed.changes.tried:
        if change.kind == "padded rows":
            continue
        again = cubecore.time(
            timed.request.problem,
            tiling=change.tiling or timed.tiling,
            settings=change.settings,
            step="CONSTANT" if change.kind == "constant tiling" else None,
            **change.keys,
        )
        assert (change.kind, again.timeline.cycles) == (change.kind, change.cycles)
        assert (again.timeline.us, again.timeline.limited_by) == (change.us, change.limited_by)


def test_a_changed_tiling_is_legal_and_of_its_kind(timed):
    found = by_kind(timed)
    old = timed.tiling
    for change in timed.changes.tried:
        if change.tiling is not None:
            problem = timed.request.problem
            answer = cubecore.check(change.tiling, problem, settings=change.settings, **change.keys)
            assert answer.legal, change
    grid = ("usedCoreNum", "singleCoreM", "singleCoreN", "singleCoreK", "iterateOrder")
    for kind in ("base block", "depths"):
        if kind in found:
            assert all(getattr(found[kind].tiling, n) == getattr(old, n) for n in grid)
            assert found[kind].tiling != old
    if "depths" in found:
        new = found["depths"].tiling
        assert all(getattr(new, n) == getattr(old, n) for n in ("baseM", "baseN", "baseK"))
    if "order" in found:
        assert found["order"].tiling.iterateOrder == 1 - old.iterateOrder
    if "split K" in found:
        assert found["split K"].tiling.singleCoreK < timed.request.problem.k


def test_a_tiling_that_two_kinds_come_to_is_told_once():
    request = {"m": 2048, "n": 1024, "k": 2048}
    changes = advised(request).changes
    tilings = [change.tiling for change in changes.tried if change.of == "tiling"]
    assert len(tilings) == len(set(tilings)) > 1
    assert ("core grid", "the fastest one is that of base block") in {
        (kind.kind, kind.reason) for kind in changes.untried
    }


def test_parts_of_the_chip_are_twice_what_they_are(timed):
    target = timed.request.chip
    for kind, change in by_kind(timed).items():
        if kind in HARDWARE:
            assert change.of == "chip"
            assert set(change.settings) == set(HARDWARE[kind][0])
            for name, text in change.settings.items():
                assert float(text) == 2 * getattr(target, name)


@pytest.mark.sweep
def test_equal_requests_get_equal_answers():
    problem = PROBLEMS[0]
    assert cubecore.time(problem, advise=True).changes == advised(problem).changes


@pytest.mark.sweep
def test_what_cannot_be_changed_says_why():
    timed = advised({"m": 64, "n": 1000, "k": 64, "format_b": "ND", "cores": 24, "fix": {}})
    reasons = {kind.kind: kind.reason for kind in timed.changes.untried}
    assert reasons["order"] == "a core has one row or column of tiles"
    assert reasons["NZ weights"].startswith(
        "n must be a multiple of 16 for B in NZ (TCubeTiling structure, newer edition"
    )
    nz = advised({"m": 64, "n": 64, "k": 64, "format_a": "NZ", "format_b": "NZ"})
    reasons = {kind.kind: kind.reason for kind in nz.changes.untried}
    assert reasons["NZ weights"] == "B is NZ already"
    assert reasons["padded rows"] == "neither A nor B has rows"
    whole = advised({"m": 2048, "n": 2048, "k": 256, "cores": 20})
    reasons = {kind.kind: kind.reason for kind in whole.changes.untried}
    assert reasons["more cores"] == "all 20 cores are used"
    split = advised({"m": 64, "n": 64, "k": 8192, "split_k": True, "c": "float32"})
    reasons = {kind.kind: kind.reason for kind in split.changes.untried}
    assert reasons["split K"] == "K is split already"


def test_fewer_cores_than_there_are_is_seen():
    timed = advised({"m": 2048, "n": 2048, "k": 512, "cores": 4})
    change = by_kind(timed)["more cores"]
    assert change.keys == {"cores": change.tiling.usedCoreNum}
    assert change.tiling.usedCoreNum > 4
    assert change.gain > 0.3, "a product of many tiles is faster on more cores"


# --- padded rows


def transfers(body):
    for node in body:
        if isinstance(node, Issue):
            if isinstance(node.template, CopyGmToCbufMultiNd2Nz):
                yield node.template
        elif hasattr(node, "then"):
            yield from transfers((*node.then, *node.otherwise))
        elif hasattr(node, "body"):
            yield from transfers(node.body)


@pytest.mark.parametrize(("a", "size"), [("float16", 2), ("int8", 1), ("float32", 4)])
@pytest.mark.parametrize(("m", "n", "k"), [(64, 96, 3000), (48, 4096, 4096), (32, 100, 257)])
@pytest.mark.thinned(3)
def test_padded_rows_start_an_odd_number_of_512_bytes_apart(a, size, m, n, k):
    problem = Problem(m=m, n=n, k=k, a=a)
    target = chip(problem.chip)
    tiling = cubecore.plan(problem).tiling
    launch = matmul_launch(problem, tiling, target, padded=True)
    pitches = set()
    for program in launch.programs:
        for template in transfers(program.body):
            if template.n_value > 1:
                pitches.add(template.src_d_value * size)
    rows = {row * size for row in (k, n)}
    assert pitches
    for pitch in pitches:
        assert pitch % 1024 == 512
        assert any(0 <= pitch - row < 1024 for row in rows)
    stored = {tensor.name: tensor.size_bytes for tensor in launch.tensors}
    for name, count, row in (("a", m, k * size), ("b", k, n * size)):
        assert 0 <= stored[name] / count - row < 1024


# --- shown


def test_the_command_shows_what_helps():
    words = ("time", "--m", 1024, "--n", 1024, "--k", 3000, "--c", "half", "--advise")
    answer = cli(*words)
    assert answer.code == DONE
    timed = advised(PROBLEMS[0])
    lines = answer.out.splitlines()
    place = lines.index("What would help, each timed anew")
    best = timed.changes.tried[0]
    assert lines[place + 1].split() == ["saves", "then", "of", "change"]
    shown = lines[place + 2].split(maxsplit=4)
    assert shown[0] == f"{best.gain:.1%}"
    assert shown[3:] == [best.of, f"{best.kind}: {best.what}"]
    for change in timed.changes.tried:
        assert f"{change.kind}: " in answer.out
    for kind in timed.changes.untried:
        assert any(line.startswith(f"  {kind.kind}: ") for line in lines)
    made = cli(*words, "--json").json
    assert made["changes"] == [change.to_json() for change in timed.changes.tried]
    assert made["untried"] == [kind.to_json() for kind in timed.changes.untried]


def test_nothing_is_said_unasked():
    timed = cubecore.time(PROBLEMS[0])
    assert timed.changes is None
    assert not {"changes", "untried"} & set(timed.to_json())
    assert "changes" not in timed.page_data(limit=100)


def test_the_page_holds_what_helps(timed):
    data = timed.page_data(limit=100)
    assert data["changes"] == [change.to_json() for change in timed.changes.tried]
    assert data["untried"] == [kind.to_json() for kind in timed.changes.untried]


# --- kernels of one's own

KERNEL = """
import numpy as np
from cubecore import kernel

@kernel(outputs="c")
def doubled(core, a, c):
    x = core.ubuf("float", 8192)
    core.asc_copy_gm2ub(x, a, 32768)
    core.asc_sync()
    core.asc_add(x, x, x, 8192)
    core.asc_sync()
    core.asc_copy_ub2gm(c, x, 32768)

if __name__ == "__main__":
    doubled[1](np.ones(8192, np.float32), np.zeros(8192, np.float32))
"""


@pytest.fixture(scope="module")
def script(tmp_path_factory):
    path = tmp_path_factory.mktemp("script") / "doubled.py"
    path.write_text(KERNEL, encoding="utf-8")
    return path


def test_a_kernel_of_ones_own_learns_what_of_the_chip_would_help(script):
    timed = time_script(str(script), advise=True, quiet=True)
    changes = timed.longest.changes
    assert {one.kind for one in (*changes.tried, *changes.untried)} == set(HARDWARE)
    links = next(change for change in changes.tried if change.kind == "UB links")
    again = time_script(str(script), settings=links.settings, quiet=True).longest
    assert again.timeline.cycles == links.cycles < timed.longest.timeline.cycles
    assert timed.to_json()["changes"] == [change.to_json() for change in changes.tried]


def test_the_command_says_so_too(script):
    answer = cli("time", script, "--advise")
    assert answer.code == DONE
    assert "What would help, each timed anew" in answer.out
