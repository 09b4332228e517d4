"""Every option of a plan: what is asked for is had, or one sentence says why it cannot be.

Expectations are computed here from the request, in plain integers.
"""

import json
from dataclasses import replace

import pytest

import cubecore
from cubecore.errors import CubecoreError, NoLegalTilingError, RequestError
from cubecore.tiling.repair.infeasibility import ConflictError
from parts import stride
from workflows.command import BAD_REQUEST, DONE, FOUND, cli

M, N, K = 320, 768, 1152
SIZE = {"m": M, "n": N, "k": K}
HEADS = {"m": 96, "n": 64, "k": 128, "trans_b": True, "template": "NORM", "batch": 24}
HEADS |= {"layout": "BSNGD", "heads": 4, "groups": 3}


def up(value, multiple):
    return -(-value // multiple) * multiple


def at_most(name, size):
    return lambda t: use(t)[name] <= size


def use(t):
    """Bytes of L1 and L0C for float16 inputs, every block being whole fractals."""
    a, b = up(t.baseM, 16) * up(t.baseK, 16), up(t.baseK, 16) * up(t.baseN, 16)
    return {"l1": 2 * (t.depthA1 * a + t.depthB1 * b), "l0c": 4 * t.dbL0C * t.baseM * t.baseN}


def layout(operand, t):
    axes = ("B", "S1", "N", "G", "S2") if operand == "C" else ("B", "S", "N", "G", "D")
    return [getattr(t, f"{operand}LayoutInfo{axis}") for axis in axes]


RIGHT = {
    "a fixed block": (
        {"fix": {"baseM": 48, "baseK": 32}},
        lambda t: (t.baseM, t.baseK) == (48, 32),
    ),
    "a fixed share": (
        {"fix": {"singleCoreM": 160, "singleCoreN": 96}},
        lambda t: (t.singleCoreM, t.singleCoreN, t.usedCoreNum) == (160, 96, 16),
    ),
    "a range": ({"fix": {"baseN": {"min": 33, "max": 60}}}, lambda t: 33 <= t.baseN <= 60),
    "a range as a text": ({"fix": {"baseN": "33..60"}}, lambda t: 33 <= t.baseN <= 60),
    "a multiple": (
        {"fix": {"singleCoreN": {"multiple": 96}}},
        lambda t: t.singleCoreN % 96 == 0 or t.singleCoreN == N,
    ),
    "a least and a multiple": (
        {"fix": {"singleCoreM": "100../48"}},
        lambda t: (t.singleCoreM >= 100 and t.singleCoreM % 48 == 0) or t.singleCoreM == M,
    ),
    "along M first": ({"fix": {"iterateOrder": 0}}, lambda t: t.iterateOrder == 0),
    "along N first": ({"fix": {"iterateOrder": 1}}, lambda t: t.iterateOrder == 1),
    "single buffers": ({"fix": {"dbL0A": 1, "dbL0C": 1}}, lambda t: (t.dbL0A, t.dbL0C) == (1, 1)),
    "so many cores": ({"fix": {"usedCoreNum": 8}}, lambda t: t.usedCoreNum == 8),
    "less L1": ({"budget": {"l1": 98304}}, at_most("l1", 98304)),
    "less L0C": ({"budget": {"l0c": 16384}}, at_most("l0c", 16384)),
    "a budget in capitals": ({"budget": {"L0C": 16384}}, at_most("l0c", 16384)),
    "K cut in three": (
        {"split_k": True, "fix": {"singleCoreK": 384}},
        lambda t: (
            t.singleCoreK == 384
            and t.usedCoreNum == 3 * -(-M // t.singleCoreM) * -(-N // t.singleCoreN)
        ),
    ),
    "a longer Ka": ({"kb": 640}, lambda t: (t.Ka, t.Kb, t.singleCoreK) == (K, 640, 640)),
    "a longer Kb": ({"kb": 2048}, lambda t: (t.Ka, t.Kb, t.singleCoreK) == (K, 2048, K)),
    "A in TSCM": (
        {"pos_a": "TSCM"},
        lambda t: (
            2 * up(t.singleCoreM, 16) * t.singleCoreK + 2 * t.depthB1 * t.baseK * up(t.baseN, 16)
            <= 524032
        ),
    ),
    "B in TSCM": (
        {"pos_b": "TSCM"},
        lambda t: (
            2 * up(t.singleCoreN, 16) * t.singleCoreK + 2 * t.depthA1 * t.baseK * up(t.baseM, 16)
            <= 524032
        ),
    ),
    "A in UB": ({"pos_a": "VECOUT"}, lambda t: 2 * t.singleCoreM * t.singleCoreK <= 196352),
    "C to UB": ({"pos_c": "VECIN"}, lambda t: 4 * t.baseM * t.baseN <= 196352),
    "less UB": (
        {"pos_c": "VECIN", "budget": {"ub": 8192}},
        lambda t: 4 * t.baseM * t.baseN <= 8192,
    ),
    "NORM": ({"template": "NORM"}, lambda t: t.usedCoreNum > 0),
    "the unit flag": ({"unit_flag": True}, lambda t: t.usedCoreNum > 0),
    "no unit flag": ({"unit_flag": False, "template": "NORM"}, lambda t: t.usedCoreNum > 0),
    "vector cores": ({"launch": "mix", "cores": 40}, lambda t: t.usedCoreNum <= 40),
    "B, S, N, G, D": (
        HEADS,
        lambda t: (
            (layout("A", t), layout("B", t), layout("C", t))
            == ([2, 96, 4, 3, 128], [2, 64, 4, 3, 128], [2, 96, 4, 3, 64])
            and t.BatchNum * 2 * 128 * (t.singleCoreM + t.singleCoreN) <= 524032
            and 12 % t.BatchNum == 0
        ),
    ),
    "S, B, N, G, D": (HEADS | {"layout": "SBNGD"}, lambda t: layout("A", t) == [2, 96, 4, 3, 128]),
    "B, N, G, S1, S2": (
        HEADS | {"layout": "BNGS1S2", "batch_num": 3},
        lambda t: t.BatchNum == 3 and layout("C", t) == [2, 96, 4, 3, 64],
    ),
    "B, M, K": (
        {"layout": "NORMAL", "template": "NORM", "batch": 6},
        lambda t: t.BatchNum == 6 and layout("A", t) == [6, M, 1, 1, K],
    ),
    "no layout": ({"batch": 6}, lambda t: t.BatchNum == 0 and layout("A", t) == [0] * 5),
}


@pytest.mark.parametrize("name", RIGHT)
@pytest.mark.thinned(8)
def test_what_is_asked_for_is_had(name):
    keys, holds = RIGHT[name]
    plan = cubecore.plan({**SIZE, **keys}, alternatives=2)
    assert plan.problem == cubecore.Problem.from_json({**SIZE, **keys})
    for tiling in (plan.tiling, *(ranked.tiling for ranked in plan.alternatives)):
        assert holds(tiling), tiling
        found = cubecore.check(tiling, plan.problem)
        assert found.legal


WRONG = {
    "no field": (
        {"fix": {"baseX": 3}},
        "fix must name fields of TCubeTiling, got 'baseX'; did you mean baseN?",
    ),
    "no planned field": (
        {"fix": {"M": 3}},
        "fix must name fields that the planner chooses, got 'M'; it follows from the problem, or "
        "is reserved",
    ),
    "no number": (
        {"fix": {"baseM": "many"}},
        "fix.baseM must be a number, a text like 16..64/32, or an object of min, max and "
        "multiple, got 'many'",
    ),
    "no such part": (
        {"fix": {"baseM": {"least": 3}}},
        "fix.baseM must be a number, a text like 16..64/32, or an object of min, max and "
        "multiple, got {'least': 3}",
    ),
    "true is no number": (
        {"fix": {"baseM": True}},
        "fix.baseM must be a number, a text like 16..64/32, or an object of min, max and "
        "multiple, got True",
    ),
    "ends the wrong way round": (
        {"fix": {"baseM": "64..16"}},
        "fix.baseM must have a max of at least its min 64, got 16",
    ),
    "below nothing": (
        {"fix": {"baseM": -16}},
        "fix.baseM must hold numbers from 0 to 2147483647, and a multiple of at least 1, got -16",
    ),
    "no object": ({"fix": [48]}, "fix must be a JSON object of TCubeTiling's fields, got [48]"),
    "no buffer": (
        {"budget": {"l2": 3}},
        "budget must name l1, l0c, ub, bt, got 'l2'",
    ),
    "no size": (
        {"budget": {"l1": "big"}},
        "budget.l1 must be an integer, in bytes, got 'big'",
    ),
    "no bytes": ({"budget": {"l1": 0}}, "budget.l1 must be from 1 to 2147483647 B, got 0 B"),
    "more than there is": (
        {"budget": {"l0c": 262144}},
        "budget.l0c must be at most what Ascend910B3 has, 131072 B, got 262144 B",
    ),
    "no such layout": (
        {"layout": "BNGSD"},
        "layout must be one of NORMAL, BSNGD, SBNGD, BNGS1S2, got 'BNGSD'; did you mean SBNGD?",
    ),
    "a layout in MDL": (
        HEADS | {"template": "MDL"},
        "template must be NORM with a layout (vendor's IterateBatch), got MDL",
    ),
    "a batch that does not divide": (
        HEADS | {"batch": 25},
        "batch must be a multiple of heads * groups = 12, got 25",
    ),
    "matrices that do not divide": (
        HEADS | {"batch_num": 5},
        "batch_num must divide heads * groups = 12 (vendor's IterateBatch), got 5",
    ),
    "heads without a layout": ({"heads": 4}, "layout must be given with heads, got nothing"),
    "D is no row": (
        HEADS | {"trans_b": False},
        "trans_b must be true with layout BSNGD: S and D are N and K of B, got false",
    ),
    "NZ apart": (
        HEADS | {"format_a": "NZ"},
        "format_a must be ND with layout BSNGD (vendor's IterateBatch), got NZ",
    ),
    "rows too long": (
        HEADS | {"k": 8192},
        "intrinsics_check must be true for a stored row of 98304 elements, over 65535 (vendor's "
        "IterateBatch), got false",
    ),
    "no int4 in batches": (
        HEADS | {"a": "int4"},
        "a must be float16 or bfloat16 or float32 with a layout (vendor's IterateBatch), got int4",
    ),
    "another chip's": (
        HEADS | {"chip": "Ascend310P3"},
        "layout must be NORMAL on Ascend310P3 (vendor's IterateBatch), got BSNGD",
    ),
    "a chip without": (
        {"layout": "NORMAL", "template": "NORM", "chip": "Ascend910A"},
        "layout must be left out on Ascend910A (vendor's IterateBatch), got NORMAL",
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_makes_no_sense_is_one_sentence(name):
    keys, line = WRONG[name]
    with pytest.raises(RequestError) as caught:
        cubecore.plan({**SIZE, **keys})
    assert str(caught.value) == line


CONFLICTS = {
    "no fractal": ({"fix": {"baseM": 20}}, {"BASE-M-ALIGNMENT", "baseM"}),
    "L0C": (
        {"fix": {"baseM": "300..", "baseN": "208.."}},
        {"L0C-CAPACITY", "baseM", "baseN"},
    ),
    "a budget of L1": ({"budget": {"l1": 1000}}, {"L1-CAPACITY", "budget.l1"}),
    "a budget and a block": (
        {"budget": {"l0c": 16384}, "fix": {"baseM": 128, "baseN": 64}},
        {"L0C-CAPACITY", "budget.l0c", "baseM", "baseN"},
    ),
    "K cut without leave": ({"fix": {"singleCoreK": 384}}, {"SINGLE-CORE-K", "singleCoreK"}),
    "too many shares": (
        {"fix": {"singleCoreM": 16, "singleCoreN": "..128"}},
        {"USED-CORE-NUM-RANGE", "USED-CORE-NUM-PRODUCT", "singleCoreM", "singleCoreN"},
    ),
    "TSCM": (
        {"pos_a": "TSCM", "fix": {"singleCoreM": 320}},
        {"L1-CAPACITY", "SINGLE-CORE-K", "singleCoreM"},
    ),
}


@pytest.mark.parametrize("name", CONFLICTS)
def test_what_excludes_itself_is_named(name):
    keys, want = CONFLICTS[name]
    with pytest.raises(ConflictError) as caught:
        cubecore.plan({**SIZE, **keys})
    found = caught.value.conflict
    assert found.minimal
    assert {constraint.name for constraint in found.constraints} == want


@pytest.mark.parametrize(("batch_num", "matrices"), [(None, 1), (2, 2)])
def test_shares_are_cut_so_that_a_batch_fits_l1(batch_num, matrices):
    """512 x 512 x 512 takes 1 MiB whole: cores share a matrix, each with what L1 holds."""
    whole = HEADS | {"m": 512, "n": 512, "k": 512, "batch_num": batch_num}
    plan = cubecore.plan(whole, alternatives=3)
    for t in (plan.tiling, *(ranked.tiling for ranked in plan.alternatives)):
        held = 2 * 512 * (up(t.singleCoreM, 16) + up(t.singleCoreN, 16))
        assert t.BatchNum >= matrices
        assert t.BatchNum * held <= 524032
        assert -(-512 // t.singleCoreM) * -(-512 // t.singleCoreN) == t.usedCoreNum > 1
        assert cubecore.check(t, plan.problem).legal


@pytest.mark.parametrize(
    ("keys", "line"),
    [
        (
            {"m": 1024, "n": 1024, "batch_num": 12},
            # 20 cores: 205 x 256 of C each, in whole fractals of 16
            f"12 x a core's share of A and B of BSNGD must fit L1's 524032 B on Ascend910B3 "
            f"(vendor's IterateBatch), got {12 * 2 * 512 * (208 + 256)} B",
        ),
        (
            {"m": 512, "n": 16, "fix": {"singleCoreM": 512}},
            f"1 x a core's share of A and B of BSNGD must fit L1's 524032 B on Ascend910B3 "
            f"(vendor's IterateBatch), got {2 * 512 * (512 + 16)} B",
        ),
    ],
)
def test_a_batch_that_does_not_fit_l1_says_so(keys, line):
    with pytest.raises(NoLegalTilingError) as caught:
        cubecore.plan(HEADS | {"k": 512} | keys)
    assert str(caught.value) == line


def arguments(keys):
    """Spell a request as a user would on the command line."""
    made = []
    for key, value in keys.items():
        name = f"--{key.replace('_', '-')}"
        if isinstance(value, dict):
            for field, wish in value.items():
                made += [name, f"{field}={spelled(wish)}"]
        elif isinstance(value, bool):
            off = ["--no-unit-flag"] if key == "unit_flag" else []
            made += [name] if value else off
        else:
            made += [name, str(value)]
    return made


def spelled(wish):
    if not isinstance(wish, dict):
        return wish
    ends = f"{wish.get('min', '')}..{wish.get('max', '')}" if {"min", "max"} & set(wish) else ""
    return ends + (f"/{wish['multiple']}" if "multiple" in wish else "")


def test_the_command_line_and_a_file_of_queries_ask_the_same(tmp_path):
    requests = [{**SIZE, **keys} for keys, _ in list(RIGHT.values())[:: stride(8)]]
    answers = []
    for keys in requests:
        answer = cli("plan", *arguments(keys), "--alternatives", 0, "--json")
        assert answer.code == DONE, (keys, answer)
        timed = {"reasons", "beside"}
        answers.append({key: answer.json[key] for key in answer.json if key not in timed})
    queries = tmp_path / "q.jsonl"
    queries.write_text("".join(json.dumps(keys) + "\n" for keys in requests))
    swept = cli("plan", "--queries", queries, "--alternatives", 0, "--processes", 1)
    assert swept.code == DONE
    assert [json.loads(line) for line in swept.out.splitlines()] == answers


def test_the_command_line_refuses_in_one_line():
    for keys, line in WRONG.values():
        if all(not isinstance(x, list) for x in keys.values()):
            answer = cli("plan", *arguments({**SIZE, **keys}))
            assert answer.code == BAD_REQUEST
            assert answer.err.count("\n") == 1
            subject = line.partition(" must ")[0]
            assert answer.err.startswith((f"{subject} must ", "fix.baseM must ", "--fix must "))
    for keys, _ in CONFLICTS.values():
        answer = cli("plan", *arguments({**SIZE, **keys}))
        assert (answer.code, answer.out) == (FOUND, "")
        assert answer.err.endswith("exclude each other; drop any one of them\n")


@pytest.mark.parametrize(
    ("given", "line"),
    [
        (["--fix", "baseM"], "--fix must be FIELD=VALUE, got 'baseM'"),
        (["--fix", "=48"], "--fix must be FIELD=VALUE, got '=48'"),
        (["--fix", "baseM=16", "--fix", "baseM=32"], "--fix must name a field once, got 'baseM'"),
        (["--budget", "l1"], "--budget must be BUFFER=BYTES, got 'l1'"),
        (["--budget", "l1=64K"], "budget.l1 must be an integer, in bytes, got '64K'"),
    ],
)
def test_pairs_that_are_none(given, line):
    answer = cli("plan", "--m", M, "--n", N, "--k", K, *given)
    assert (answer.code, answer.err) == (BAD_REQUEST, line + "\n")


def test_a_forced_split_of_k_has_its_cost():
    """Every slice loads and stores its part of C: the bytes are those of all slices."""
    whole = cubecore.plan(SIZE, fix={"singleCoreM": 160, "singleCoreN": 384})
    keys = {"split_k": True, "fix": {"singleCoreM": 160, "singleCoreN": 384, "singleCoreK": 288}}
    cut = cubecore.plan({**SIZE, **keys})
    assert (whole.tiling.usedCoreNum, cut.tiling.usedCoreNum) == (4, 16)
    assert len(cut.blocks) == 16
    assert {(block.k0, block.k_len) for block in cut.blocks} == {
        (0, 288),
        (288, 288),
        (576, 288),
        (864, 288),
    }
    assert cut.predicted.bytes["L0C->GM"] == whole.predicted.bytes["L0C->GM"] == 4 * 160 * 384
    assert 4 * cut.predicted.pipes["M"] >= 0.98 * whole.predicted.pipes["M"]  # other base blocks


@pytest.mark.parametrize(("k", "kb"), [(1024, 752), (752, 1024)])
def test_an_uncut_k_is_the_shorter_of_two(k, kb):
    """A share may be the whole extent, whatever its multiple: that is what both operands have."""
    keys = SIZE | {"k": k, "kb": kb, "split_k": True, "fix": {"singleCoreK": {"multiple": 480}}}
    plan = cubecore.plan(keys, alternatives=3)
    for tiling, as_asked in (
        (plan.tiling, True),
        (replace(plan.tiling, usedCoreNum=1, singleCoreM=M, singleCoreN=N, singleCoreK=752), True),
        (replace(plan.tiling, singleCoreK=480), True),
        (replace(plan.tiling, singleCoreK=736), False),
    ):
        assert (list(plan.problem.fix.broken(tiling)) == []) is as_asked
    shares = {t.singleCoreK for t in (plan.tiling, *(r.tiling for r in plan.alternatives))}
    assert shares <= {480, 752}
    only = cubecore.plan(keys, cores=1)
    assert (only.tiling.singleCoreK, only.tiling.usedCoreNum) == (752, 1)


def test_a_small_budget_is_no_reason_to_leave_cores_idle():
    """Of many base blocks that do not fit L1 the search comes to those that do."""
    large = {"m": 69440, "n": 7104, "k": 64}
    plan = cubecore.plan(large, budget={"l1": 2620})
    assert use(plan.tiling)["l1"] <= 2620
    assert plan.tiling.usedCoreNum == 20


def test_a_plan_says_what_was_asked_in_vain():
    plan = cubecore.plan(SIZE, cores=99, pos_a="VECIN")
    assert [advice.id for advice in plan.advice] == ["CORES-CAPPED", "POSITION", "POSITION-TIME"]
    assert cubecore.plan(SIZE).advice == ()


def test_a_kernel_of_a_layout_is_not_executed():
    with pytest.raises(CubecoreError, match="layout BSNGD can be planned but not executed"):
        cubecore.run(HEADS)
